-- Suppressions belong to addresses, preferences to users. Whoever follows a link to unsubscribe is an address; a signed-in user is a user.
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
                      || (select coalesce(jsonb_object_agg(e.key, false), '{}') from jsonb_each(excluded.categories) e where e.value = 'false'),
         updated_at = internal.now();
  get diagnostics merged = row_count;
  return merged;
end $$;
comment on function internal.merge__email_preferences is 'What either user refused, the survivor refuses. Granted to nobody.';
