comment on constraint users_email_unique on app.users is '409 EMAIL_EXISTS email: This address is in use.';
comment on constraint users_external_id_unique on app.users is '409 USER_ALREADY_EXISTS external_id: A user with this external_id exists.';
comment on constraint users_anonymous_id_unique on app.users is '409 USER_ALREADY_EXISTS anonymous_id: A user with this anonymous_id exists.';
comment on constraint users_display_name_at_most_100 on app.users is '400 INVALID_INPUT display_name: must have 1 to 100 characters.';

create or replace function internal.generated_name() returns text
language sql volatile as $$
  select initcap(a.word) || ' ' || initcap(n.word)
    from app.name_words a, app.name_words n
   where a.kind = 'adjective'
     and a.position = (select floor(random() * count(*)) from app.name_words w where w.kind = 'adjective')
     and n.kind = 'noun'
     and n.position = (select floor(random() * count(*)) from app.name_words w where w.kind = 'noun')
$$;
comment on function internal.generated_name is 'A friendly name from the nature-themed word lists, such as Quiet Meadow. Not unique.';

create or replace function internal.user_json(u app.users) returns json
language sql stable as $$
  select json_build_object(
    'id', (user_json.u).id, 'email', (user_json.u).email, 'phone', (user_json.u).phone,
    'display_name', (user_json.u).display_name, 'avatar_url', (user_json.u).avatar_url,
    'external_id', (user_json.u).external_id, 'anonymous_id', (user_json.u).anonymous_id,
    'auth_providers', coalesce((
      select json_agg(json_build_object('provider', i.provider, 'provider_id', i.provider_id) order by i.created_at, i.id)
        from app.user_identities i
       where i.app_user_id = (user_json.u).id), '[]'),
    'properties', (user_json.u).properties, 'timezone', (user_json.u).timezone,
    'email_verified', (user_json.u).email_verified, 'phone_verified', (user_json.u).phone_verified,
    'first_seen_at', internal.iso((user_json.u).first_seen_at), 'last_seen_at', internal.iso((user_json.u).last_seen_at))
$$;
comment on function internal.user_json is 'An end user as the contract shows it.';

create or replace function internal.is_timezone(name text) returns boolean
language sql stable as $$
  select exists (select from app.timezones t where t.name = is_timezone.name)
$$;
comment on function internal.is_timezone is 'Whether a text is an IANA time zone that this Postgres knows, spelled exactly.';

create or replace function api.me_get(time_zones json default null) returns api.reply
language plpgsql volatile as $$
declare
  me app.users;
  wished text;
begin
  select u.* into me from app.users u where u.id = internal.user_id();
  if me.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  if me.timezone is null and me_get.time_zones is not null then
    select z.name into wished
      from json_array_elements_text(me_get.time_zones) with ordinality as z (name, n)
     where internal.is_timezone(z.name)
     order by z.n
     limit 1;
    if wished is not null then
      -- two devices at once: the first one's zone stays
      update app.users u set timezone = wished, updated_at = internal.now()
       where u.id = internal.user_id() and u.timezone is null;
      select u.* into me from app.users u where u.id = internal.user_id();
    end if;
  end if;
  return internal.reply(200, internal.user_json(me));
end $$;
comment on function api.me_get is
  'The caller''s profile. time_zones are the headers'' wishes, best first: the first valid one is stored when none is yet. Refuses 404 NOT_FOUND.';

create or replace function api.user_exists(user_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('exists', exists (select from app.users u where u.id = user_exists.user_id),
                                               'is_banned', exists (select from app.users u where u.id = user_exists.user_id and u.is_banned)))
$$;
comment on function api.user_exists is 'For a server key that acts on behalf of a user.';
