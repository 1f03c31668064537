comment on constraint users_email_unique on app.users is '409 EMAIL_EXISTS email: This address is in use.';
comment on constraint users_external_id_unique on app.users is
  '409 USER_ALREADY_EXISTS external_id: A user with this external_id exists.';
comment on constraint users_anonymous_id_unique on app.users is
  '409 USER_ALREADY_EXISTS anonymous_id: A user with this anonymous_id exists.';

create or replace function internal.generated_name() returns text
language sql volatile as $$
  select initcap(a.word) || ' ' || initcap(n.word)
    from app.name_words a, app.name_words n
   where a.kind = 'adjective'
     and a.position = (select floor(random() * count(*)) from app.name_words w where w.kind = 'adjective')
     and n.kind = 'noun'
     and n.position = (select floor(random() * count(*)) from app.name_words w where w.kind = 'noun')
$$;
comment on function internal.generated_name is
  'A friendly name from the nature-themed word lists, such as Quiet Meadow. Not unique.';

create or replace function internal.user_json(u app.users) returns json
language sql stable as $$
  select json_build_object(
    'id', (user_json.u).id, 'email', (user_json.u).email, 'phone', (user_json.u).phone,
    'display_name', (user_json.u).display_name, 'avatar_url', (user_json.u).avatar_url,
    'external_id', (user_json.u).external_id, 'anonymous_id', (user_json.u).anonymous_id,
    'auth_providers', coalesce((
      select json_agg(json_build_object('provider', i.provider, 'provider_id', i.provider_id) order by i.created_at,
                      i.id)
        from app.user_identities i
       where i.app_user_id = (user_json.u).id), '[]'),
    'properties', (user_json.u).properties, 'timezone', (user_json.u).timezone,
    'email_verified', (user_json.u).email_verified, 'phone_verified', (user_json.u).phone_verified,
    'first_seen_at', internal.iso((user_json.u).first_seen_at),
    'last_seen_at', internal.iso((user_json.u).last_seen_at))
$$;
comment on function internal.user_json is 'An end user as responses show it.';

create or replace function internal.is_timezone(name text) returns boolean
language sql stable as $$
  select exists (select from app.timezones t where t.name = is_timezone.name)
$$;
comment on function internal.is_timezone is
  'Whether a text is the exact name of an IANA time zone that this Postgres has.';

create or replace function api.me_get(time_zones json default null) returns api.reply
language plpgsql volatile as $$
declare
  me app.users;
  requested text;
begin
  select u.* into me from app.users u where u.id = internal.user_id();
  if me.timezone is null and me_get.time_zones is not null then
    select z.name into requested
      from json_array_elements_text(me_get.time_zones) with ordinality as z (name, n)
     where internal.is_timezone(z.name)
     order by z.n
     limit 1;
    if requested is not null then
      -- two concurrent devices: the first one's zone is kept
      update app.users u set timezone = requested where u.id = internal.user_id() and u.timezone is null;
      select u.* into me from app.users u where u.id = internal.user_id();
    end if;
  end if;
  -- checked last: the user may have been deleted while the update waited for the row
  if me.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  return internal.reply(200, internal.user_json(me));
end $$;
comment on function api.me_get is
  'The caller''s profile. time_zones are those of the headers, best first: the first valid one is stored if the user has
   none yet. Refuses 404 NOT_FOUND.';

create or replace function internal.is_blank(value text) returns boolean
language sql immutable parallel safe
-- white space of any script, control characters, and characters without width
return is_blank.value ~
  '^[\u0001-\u0020\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]*$';
comment on function internal.is_blank is 'Whether a text has no visible character.';

create or replace function internal.user_fields(fields jsonb, code text) returns jsonb
language plpgsql stable as $$
declare
  field text;
  value jsonb;
  text_value text;
  normal jsonb := '{}';
  most constant jsonb := '{"display_name": 100, "avatar_url": 2048, "external_id": 255}';
begin
  for field, value in select f.key, f.value from jsonb_each(user_fields.fields) f loop
    text_value := case when jsonb_typeof(value) = 'string' then value #>> '{}' end;
    case
      when field = 'properties' then
        if jsonb_typeof(value) <> 'object' then
          perform internal.invalid(field, 'must be an object', user_fields.code);
        end if;
      when field = 'is_banned' then
        if jsonb_typeof(value) <> 'boolean' then
          perform internal.invalid(field, 'must be true or false', user_fields.code);
        end if;
      when field = 'display_name' then
        if text_value is null or internal.is_blank(text_value) or char_length(text_value) > 100 then
          perform internal.invalid(field, 'must have 1 to 100 characters', user_fields.code);
        elsif not internal.is_line(text_value) then
          perform internal.invalid(field, 'must be one line of text', user_fields.code);
        end if;
      when value = 'null' then
        null;
      when text_value is null then
        perform internal.invalid(field, 'must be a string or null', user_fields.code);
      when field in ('avatar_url', 'external_id') then
        if char_length(text_value) not between 1 and (most ->> field)::int then
          perform internal.invalid(field, 'must have 1 to ' || (most ->> field) || ' characters', user_fields.code);
        end if;
      when field = 'email' then
        if not internal.is_email(btrim(text_value)) then
          perform internal.invalid(field, 'must be a mail address', user_fields.code);
        end if;
        value := to_jsonb(internal.email_normal(text_value));
      when field = 'phone' then
        if text_value !~ '^\+[1-9][0-9]{6,14}$' then
          perform internal.invalid(field, 'must be a phone number such as +4930123456', user_fields.code);
        end if;
      when field = 'anonymous_id' then
        if text_value !~ '^anon_[A-Za-z0-9_-]{1,128}$' then
          perform internal.invalid(field, 'must be anon_ and 1 to 128 of A-Z a-z 0-9 _ -', user_fields.code);
        end if;
      when field = 'timezone' then
        if not internal.is_timezone(text_value) then
          perform internal.invalid(field, 'must be an IANA time zone', user_fields.code);
        end if;
      when field = 'muted_until' then
        if internal.as_time(text_value) is null then
          perform internal.invalid(field, 'must be an ISO 8601 time', user_fields.code);
        end if;
      else
        perform internal.invalid(field, 'cannot be set', user_fields.code);
    end case;
    normal := normal || jsonb_build_object(field, value);
  end loop;
  return normal;
end $$;
comment on function internal.user_fields is
  'Validates fields of a user and returns them as they are stored. Refuses 400 with the given code and details {field,
   reason}. Null clears a nullable field.';

create or replace function internal.merged_properties(properties jsonb, changes jsonb) returns jsonb
language sql immutable parallel safe as $$
  select (merged_properties.properties || merged_properties.changes)
         - array(select c.key from jsonb_each(merged_properties.changes) c where c.value = 'null')
$$;
comment on function internal.merged_properties is
  'Merges changes into properties at the top level; a null removes its key.';

create or replace function internal.check_properties_size(properties jsonb, code text) returns void
language plpgsql volatile as $$
begin
  if octet_length(check_properties_size.properties::text) > 65536 then
    perform internal.invalid('properties', 'must have at most 64 KB in all', check_properties_size.code);
  end if;
end $$;
comment on function internal.check_properties_size is 'Refuses 400 when a user''s properties take more than 64 KB.';

create or replace function api.me_update(patch json) returns api.reply
language plpgsql volatile as $$
declare
  me app.users;
  requested jsonb;
begin
  select jsonb_object_agg(f.key, f.value) into requested
    from jsonb_each(me_update.patch::jsonb) f
   where f.key in ('display_name', 'avatar_url', 'properties', 'timezone');
  if requested is null then
    perform internal.fail(400, 'INVALID_INPUT', 'Send display_name, avatar_url, properties or timezone.',
                          '{"field": "", "reason": "must have display_name, avatar_url, properties or timezone"}');
  end if;
  if requested ? 'timezone' then
    if jsonb_typeof(requested -> 'timezone') <> 'string' or not internal.is_timezone(requested ->> 'timezone') then
      perform internal.invalid('timezone', 'must be an IANA time zone', 'INVALID_TIMEZONE');
    end if;
  end if;
  requested := internal.user_fields(requested, 'INVALID_INPUT');
  update app.users u
     set display_name = case when requested ? 'display_name' then requested ->> 'display_name' else u.display_name end,
         avatar_url = case when requested ? 'avatar_url' then requested ->> 'avatar_url' else u.avatar_url end,
         timezone = case when requested ? 'timezone' then requested ->> 'timezone' else u.timezone end,
         properties = case when requested ? 'properties' then internal.merged_properties(u.properties,
                                        requested -> 'properties')
                           else u.properties end
   where u.id = internal.user_id()
  returning u.* into me;
  if me.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  if requested ? 'display_name' then
    -- RETURNING has read it before moderation, which may have hidden the name
    select u.* into me from app.users u where u.id = internal.user_id();
  end if;
  if requested ? 'properties' then
    perform internal.check_properties_size(me.properties, 'INVALID_INPUT');
  end if;
  return internal.reply(200, internal.user_json(me));
end $$;
comment on function api.me_update is
  'Changes display_name, avatar_url and timezone of the caller and merges properties; every other field is ignored.
   Refuses 400 INVALID_INPUT (also when none of the four is sent), INVALID_TIMEZONE (also null), CONTENT_REJECTED, 404
   NOT_FOUND, 403 USER_MUTED. Locks the one row.';

create or replace function api.user_exists(user_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('exists', exists (select from app.users u
                                                                  where u.id = user_exists.user_id),
                                               'is_banned', exists (select from app.users u
                                                                     where u.id = user_exists.user_id and u.is_banned)))
$$;
comment on function api.user_exists is 'Whether a user exists, for a server key that acts on behalf of one.';

create or replace function internal.tg_users__keep() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  new.updated_at := internal.now();
  -- the user has not proved an address or number that an administrator writes
  if internal.caller() = 'developer' then
    new.email_verified := new.email_verified and new.email is not distinct from old.email;
    new.phone_verified := new.phone_verified and new.phone is not distinct from old.phone;
  end if;
  return new;
end $$;
comment on function internal.tg_users__keep is
  'Sets updated_at of a profile, which roles need not write themselves, and marks an address or number that an
   administrator sets as unverified.';

create or replace trigger tg_users__keep
  before update of email, phone, display_name, avatar_url, external_id, anonymous_id, properties, timezone, is_banned,
    muted_until on app.users
  for each row when (old.* is distinct from new.*)
  execute function internal.tg_users__keep();

create or replace function internal.tg_users__credentials() returns trigger
language plpgsql volatile as $$
begin
  perform internal.changed('user:' || old.id);
  return null;
end $$;
comment on function internal.tg_users__credentials is
  'Cache invalidation: makes the servers drop the sessions of a user who was banned, unbanned, or deleted.';

create or replace trigger tg_users__credentials_of_banned
  after update of is_banned on app.users
  for each row when (old.is_banned is distinct from new.is_banned)
  execute function internal.tg_users__credentials();
create or replace trigger tg_users__credentials_of_deleted
  after delete on app.users
  for each row execute function internal.tg_users__credentials();

-- Names, addresses and properties are not copied into the audit trail, which outlives the account.
create or replace trigger tg_users__audit_of_insert
  after insert on app.users referencing new table as new_rows
  for each statement when (internal.caller() = 'developer')
  execute function internal.tg_statement__audit('users', 'email', 'phone', 'display_name', 'avatar_url', 'external_id',
                                                'anonymous_id', 'properties');
create or replace trigger tg_users__audit_of_update
  after update on app.users referencing old table as old_rows new table as new_rows
  for each statement when (internal.caller() = 'developer')
  execute function internal.tg_statement__audit('users', 'email', 'phone', 'display_name', 'avatar_url', 'external_id',
                                                'anonymous_id', 'properties');
create or replace trigger tg_users__audit_of_delete
  after delete on app.users referencing old table as old_rows
  for each statement when (internal.caller() = 'developer')
  execute function internal.tg_statement__audit('users', 'email', 'phone', 'display_name', 'avatar_url', 'external_id',
                                                'anonymous_id', 'properties');
