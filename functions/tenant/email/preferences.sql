-- Suppressions belong to addresses, preferences to users. Whoever follows a link to unsubscribe is an address; a
-- signed-in user is a user.
create or replace function internal.merge__email_preferences(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  merged int;
begin
  -- a person who refused mail in one account did not ask for it by merging two
  insert into app.email_preferences as p (app_user_id, unsubscribed_all, categories)
  select merge__email_preferences.survivor, o.unsubscribed_all, o.categories
    from app.email_preferences o
   where o.app_user_id = merge__email_preferences.other
  on conflict on constraint email_preferences_pkey do update
     set unsubscribed_all = p.unsubscribed_all or excluded.unsubscribed_all,
         categories = excluded.categories || p.categories
                      || (select coalesce(jsonb_object_agg(e.key, false), '{}') from jsonb_each(excluded.categories) e
                           where e.value = 'false'),
         updated_at = internal.now();
  get diagnostics merged = row_count;
  return merged;
end $$;
comment on function internal.merge__email_preferences is
  'What either user refused, the survivor refuses. Granted to nobody.';

create or replace function internal.email_preferences() returns json
language sql stable security definer set search_path = '' as $$
  with me as (
    select u.id, u.email, coalesce(p.unsubscribed_all, false) as is_off, coalesce(p.categories, '{}') as chosen
      from app.users u
      left join app.email_preferences p on p.app_user_id = u.id
     where u.id = internal.user_id()
  ), refused as (
    select s.category from me join app.email_suppressions s on s.address = me.email and s.reason = 'unsubscribe'
  ), known as (
    select distinct t.category from app.email_templates t where t.category <> 'transactional'
    union select jsonb_object_keys(me.chosen) from me
    union select r.category from refused r where r.category is not null
  )
  select json_build_object(
    'categories', coalesce((select json_object_agg(k.category, coalesce((me.chosen ->> k.category)::boolean, true)
                                                               and not exists (select from refused r
                                                                 where r.category = k.category) order by k.category)
                              from known k), '{}'),
    'unsubscribed_all', me.is_off or exists (select from refused r where r.category is null))
    from me
$$;
comment on function internal.email_preferences is
  'What the caller gets: each category that a template or the caller names, and whether all but transactional mail is
   refused. What the caller''s address has unsubscribed from counts too.';

create or replace function api.email_preferences() returns api.reply
language plpgsql stable as $$
declare
  shown constant json := internal.email_preferences();
begin
  perform internal.check_found(shown is not null, 'user', 'USER_NOT_FOUND');
  return internal.reply(200, shown);
end $$;
comment on function api.email_preferences is 'The caller''s preferences of mail.';

create or replace function internal.email_preferences_put(categories jsonb, unsubscribed_all boolean) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  me app.users;
  was json;
  stored app.email_preferences;
begin
  perform internal.check_found(internal.lock_users(array[internal.user_id()]) is not null, 'user', 'USER_NOT_FOUND');
  select u.* into me from app.users u where u.id = internal.user_id();
  was := internal.email_preferences();
  insert into app.email_preferences as p (app_user_id, unsubscribed_all, categories)
  values (me.id, coalesce(email_preferences_put.unsubscribed_all, false),
          coalesce(email_preferences_put.categories, '{}'))
  on conflict on constraint email_preferences_pkey do update
     set unsubscribed_all = coalesce(email_preferences_put.unsubscribed_all, p.unsubscribed_all),
         categories = p.categories || excluded.categories, updated_at = internal.now()
  returning p.* into stored;
  if (select count(*) from jsonb_object_keys(stored.categories)) > 100 then
    perform internal.invalid('categories', 'must be at most 100 in all');
  end if;
  -- who has proved the address may take back what a link in a mail did; anybody else may have taken the address of
  -- another
  if me.email_verified then
    delete from app.email_suppressions s
     where s.address = me.email and s.reason = 'unsubscribe'
       and (s.category is null and email_preferences_put.unsubscribed_all = false
            or (email_preferences_put.categories -> s.category) = 'true');
  end if;
  perform internal.emit(me.id, 'svc.email.unsubscribed', jsonb_build_object('category', null))
    where stored.unsubscribed_all and not (was ->> 'unsubscribed_all')::boolean;
  perform internal.emit(me.id, 'svc.email.unsubscribed', jsonb_build_object('category', c.key))
     from jsonb_each(coalesce(email_preferences_put.categories, '{}')) c
    where c.value = 'false' and coalesce((was -> 'categories' ->> c.key)::boolean, true);
end $$;
comment on function internal.email_preferences_put is
  'Stores what the caller chose; categories that are not named stay. Emits svc.email.unsubscribed for what is refused
   newly. Refuses 404 USER_NOT_FOUND, 400 VALIDATION_ERROR (100 categories). Locks the user.';

create or replace function api.email_preferences_put(categories jsonb default null,
                                                     unsubscribed_all boolean default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.email_preferences_put(email_preferences_put.categories, email_preferences_put.unsubscribed_all);
  return internal.reply(200, internal.email_preferences());
end $$;
comment on function api.email_preferences_put is
  'Changes the caller''s preferences of mail, and shows them. Refuses as internal.email_preferences_put.';
