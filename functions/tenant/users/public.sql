-- Public profiles of users: the name, the picture, and properties.public.

create or replace function internal.public_profile(u app.users) returns json
language sql stable as $$
  select internal.json_merge(
    json_build_object('id', (public_profile.u).id, 'display_name', (public_profile.u).display_name,
                      'avatar_url', (public_profile.u).avatar_url),
    coalesce((select json_object_agg(p.key, p.value order by p.key)
                -- no user can impersonate another
                from jsonb_each(case when jsonb_typeof((public_profile.u).properties -> 'public') = 'object'
                                     then (public_profile.u).properties -> 'public' else '{}' end) p
               where p.key not in ('id', 'display_name', 'avatar_url')), '{}'))
$$;
comment on function internal.public_profile is
  'id, display_name, avatar_url and the keys of properties.public, where that is an object.';

create or replace function api.user_profile(user_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  them app.users;
begin
  if internal.user_id() is null then
    raise exception 'profiles are shown to users, not to %', internal.caller();
  end if;
  select u.* into them from app.users u where u.id = user_profile.user_id;
  if them.id is null or internal.is_blocked(them.id) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  return internal.reply(200, internal.public_profile(them));
end $$;
comment on function api.user_profile is
  'A user''s public profile. Refuses 404 USER_NOT_FOUND, also when either user has blocked the other.';

create or replace function internal.profiles_named(beginning text, most int) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  wanted constant text := lower(profiles_named.beginning);
  found_ones json;
begin
  if internal.user_id() is null then
    raise exception 'profiles are shown to users, not to %', internal.caller();
  end if;
  select json_agg(internal.public_profile(u) order by lower(u.display_name) using operator(pg_catalog.~<~), u.id)
    into found_ones
    from (select n.*
            from app.users n
           -- bounds that the index can serve, even in a generic plan; no pattern, so nothing needs escaping
           where lower(n.display_name) operator(pg_catalog.~>=~) wanted
             and lower(n.display_name) operator(pg_catalog.~<=~) (wanted || chr(1114111))
             and starts_with(lower(n.display_name), wanted)
             and not n.is_banned
             and n.id <> all (array(select internal.blocked_ids()))
           order by lower(n.display_name) using operator(pg_catalog.~<~), n.id
           limit profiles_named.most) u;
  return coalesce(found_ones, '[]');
end $$;
comment on function internal.profiles_named is
  'Public profiles whose name begins with a text, ignoring case, in the order of names. Omits users who blocked the
   caller, whom the caller blocked, or who are banned.';

create or replace function api.users_search(page_limit int, is_enabled boolean, q text default null) returns api.reply
language plpgsql stable as $$
begin
  if not users_search.is_enabled then
    perform internal.fail(403, 'FORBIDDEN', 'Users of this project cannot search for each other.');
  end if;
  if coalesce(char_length(btrim(users_search.q)), 0) < 2 then
    perform internal.fail(400, 'INVALID_INPUT', 'q: must have at least 2 characters',
                          '{"field": "q", "reason": "must have at least 2 characters"}');
  end if;
  return internal.reply(200, internal.profiles_named(btrim(users_search.q), users_search.page_limit));
end $$;
comment on function api.users_search is
  'Public profiles by the beginning of the name. is_enabled is the project''s user_search_enabled, which the server
   reads from control and passes. Refuses 403 FORBIDDEN where it is false, 400 INVALID_INPUT.';

create or replace function internal.rows_with_users(rows json, include text, key text default 'app_user_id')
returns json
language plpgsql stable as $$
declare
  named json;
begin
  if rows_with_users.include is null then
    return rows_with_users.rows;
  end if;
  with shown as materialized (
    select d.value as item, d.n, internal.as_uuid(d.value ->> rows_with_users.key) as user_id
      from json_array_elements(rows_with_users.rows) with ordinality d (value, n)
  ), known as materialized (
    select u.id, json_build_object('id', u.id, 'display_name', u.display_name, 'avatar_url', u.avatar_url) as shown
      from app.users u
     where u.id = any (array(select s.user_id from shown s))
  )
  select json_agg(internal.json_merge(s.item, json_build_object('user', k.shown)) order by s.n) into named
    from shown s
    left join known k on k.id = s.user_id;
  return coalesce(named, '[]');
end $$;
comment on function internal.rows_with_users is
  'Rows that have the user of their key beside it, {id, display_name, avatar_url} or null, where include is user; else
   the rows as they are. One query, by the primary key of users, under the caller''s policies.';

create or replace function internal.reply_with_users(reply api.reply, include text, key text default 'app_user_id')
returns api.reply
language plpgsql stable as $$
declare
  named json;
begin
  if reply_with_users.include is null then
    return reply_with_users.reply;
  end if;
  named := internal.rows_with_users((reply_with_users.reply).body -> 'data', reply_with_users.include,
                                    reply_with_users.key);
  return row((reply_with_users.reply).status,
             (select json_object_agg(b.key, case b.key when 'data' then named else b.value end)
                from json_each((reply_with_users.reply).body) b),
             (reply_with_users.reply).headers)::api.reply;
end $$;
comment on function internal.reply_with_users is
  'A page with the users of its rows, as internal.rows_with_users has them, where include is user; any other page as it
   is.';
