-- The names by which providers know users: our id, the external_id, and those of users who were merged into them; and
-- whom the provider's events name.
create or replace function internal.provider_names(app_user_id uuid, most int) returns table (name text)
language sql stable security definer set search_path = '' as $$
  select k.name
    from app.users u
   cross join lateral (
     (select u.id::text as name, 0 as place
      union all
      select u.external_id, 1 where u.external_id <> ''
      union all
      (select m.name, 2
         from app.merged_names m
        where m.app_user_id = u.id
          -- the name is another user's now
          and not exists (select from app.users o where o.external_id = m.name)
        order by m.created_at desc, m.name
        limit provider_names.most))) k
   where u.id = provider_names.app_user_id
   order by k.place
$$;
comment on function internal.provider_names is
  'The names by which a provider may know a user: the id, the external_id, and the newest names of users who were merged
   into this one. Granted to nobody.';

create or replace function internal.subscription_user_named(names text[]) returns uuid
language sql stable security definer set search_path = '' as $$
  select found.id
    from (
      select u.id, named.place, case when u.id = internal.as_uuid(named.name) then 0 else 1 end as rank
        from unnest(subscription_user_named.names) with ordinality as named (name, place)
        join app.users u on u.id = internal.as_uuid(named.name) or u.external_id = named.name
      union all
      select m.app_user_id, named.place, 2
        from unnest(subscription_user_named.names) with ordinality as named (name, place)
        join app.merged_names m on m.name in (named.name, internal.as_uuid(named.name)::text)) found
   order by found.place, found.rank
   limit 1
$$;
comment on function internal.subscription_user_named is
  'The first user whose id or external_id is one of these names, or into whom a user of that name was merged. Granted to
   nobody.';

create or replace function internal.merge__merged_names(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  update app.merged_names m set app_user_id = merge__merged_names.survivor
    where m.app_user_id = merge__merged_names.other;
  get diagnostics moved = row_count;
  insert into app.merged_names (name, app_user_id)
  select k.name, merge__merged_names.survivor
    from app.users u
   cross join lateral (values (u.id::text), (u.external_id)) as k (name)
   where u.id = merge__merged_names.other and k.name <> ''
  on conflict (name) do update set app_user_id = excluded.app_user_id, created_at = excluded.created_at;
  return moved;
end $$;
comment on function internal.merge__merged_names is
  'Providers go on to report what concerns a merged user under that user''s names: they are those of the survivor from
   now on. Granted to nobody.';

create or replace function internal.subscription_names(payload jsonb) returns text[]
language sql immutable as $$
  select coalesce(array_agg(n.name order by n.place), '{}')
    from (select named.name, min(named.place) as place
            from (select subscription_names.payload ->> 'app_user_id' as name, 0::bigint as place
                  union all
                  select subscription_names.payload ->> 'original_app_user_id', 1
                  union all
                  (select a.name, a.n + 1
                     from jsonb_array_elements_text(case
                                                         when jsonb_typeof(subscription_names.payload -> 'aliases') =
                                                           'array'
                                                         then subscription_names.payload -> 'aliases'
                                                           else '[]' end) with ordinality as a (name, n)
                    limit 100)) named
           where char_length(named.name) between 1 and 255
           group by named.name) n
$$;
comment on function internal.subscription_names is
  'The names by which an event of the provider knows its user: the present one, the original one, then aliases, at most
   100.';

create or replace function internal.subscription_texts(list jsonb) returns text[]
language sql immutable as $$
  select internal.subscription_names(jsonb_build_object('aliases', subscription_texts.list))
$$;
comment on function internal.subscription_texts is 'The names of a list, such as transferred_to of a transfer.';

create or replace function internal.subscription_user(names text[]) returns uuid
language sql stable security definer set search_path = '' as $$
  select coalesce(
    internal.subscription_user_named(subscription_user.names),
    -- by another event of the same customer, which has our name beside one of these
    (select internal.subscription_user_named(e.names)
       from (select k.names
               from app.subscription_events k
              where k.names && subscription_user.names and k.type <> 'TRANSFER'
              order by k.event_at desc
              limit 50) e
      where internal.subscription_user_named(e.names) is not null
      limit 1))
$$;
comment on function internal.subscription_user is
  'The user of an event: found by our id, else by external_id, from the provider''s names of the user in their order, or
   from the aliases that other events name. Granted to nobody.';
