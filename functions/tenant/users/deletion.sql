-- Deletion and reset of users. The registry internal.user_data, which each area fills, declares the tables with a
-- user's data.

create or replace function internal.user_delete(user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  place record;
begin
  -- from here on no new row can refer to the user; a deletion that waited for another one finds no row
  perform from app.users u where u.id = user_delete.user_id for update;
  perform internal.check_found(found, 'user');
  -- codes and links that were sent to the user's addresses but do not refer to the user. Sign-in locks a code before
  -- the user: a code that is being used at this moment is skipped, and finds no user
  delete from app.user_codes c
   where c.id in (select o.id
                    from app.users u
                    join app.user_codes o on (o.channel, o.address) in (('email', u.email), ('phone', u.phone))
                   where u.id = user_delete.user_id and o.app_user_id is null
                     for update of o skip locked);
  -- stored responses of idempotent requests refer to their caller as text
  delete from app.idempotency_keys k where k.caller = 'user ' || user_delete.user_id;
  delete from app.collection_keys k using app.collections c
    where k.collection_id = c.id and k.caller = 'user ' || user_delete.user_id;
  for place in
    select d.table_name, d.user_column
      from internal.user_data d
     where d.on_delete = 'delete' and d.table_name <> 'app.users' and to_regclass(d.table_name) is not null
     order by d.table_name, d.user_column
  loop
    execute format('delete from %s where %I = $1', place.table_name::regclass,
                   place.user_column) using user_delete.user_id;
  end loop;
  delete from app.users u where u.id = user_delete.user_id;
end $$;
comment on function internal.user_delete is
  'Deletes a user with all of their rows: foreign keys cascade, tables without one are registered with on_delete delete,
   and rows without a column for the user are deleted here. Every deletion of a user, by administrators and by the users
   themselves, goes through this function. Refuses 404 NOT_FOUND. Locks the user. Granted to nobody.';

create or replace function internal.user_delete_by_administrator(user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'users are deleted by administrators and by themselves');
  perform internal.user_delete(user_delete_by_administrator.user_id);
end $$;
comment on function internal.user_delete_by_administrator is 'internal.user_delete, for administrators alone.';

create or replace function api.user_delete(user_id text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.user_delete_by_administrator((internal.user_found(user_delete.user_id)).id);
  return internal.reply_deleted();
end $$;
comment on function api.user_delete is
  'Deletes a user with all of their rows. Refuses 400 INVALID_USER_ID, 404 NOT_FOUND.';

create or replace function api.user_delete_anonymous(anonymous_id text default null) returns api.reply
language plpgsql volatile as $$
declare
  whose constant uuid := (select u.id from app.users u where u.anonymous_id = user_delete_anonymous.anonymous_id);
begin
  if coalesce(user_delete_anonymous.anonymous_id, '') = '' then
    perform internal.invalid('anonymous_id', 'is required', 'INVALID_BODY');
  end if;
  perform internal.check_found(whose is not null, 'user');
  perform internal.user_delete_by_administrator(whose);
  return internal.reply_deleted();
end $$;
comment on function api.user_delete_anonymous is
  'Deletes the user with this anonymous id, with all of their rows. Refuses 400 INVALID_BODY (no id), 404 NOT_FOUND.';

create or replace function internal.account_delete(code_hash text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  me app.users;
  has_code boolean := false;
begin
  if internal.caller() <> 'user' then
    perform internal.fail(403, 'SESSION_REQUIRED',
                          'Only a signed-in user can delete the account: call with an access token.');
  end if;
  me := internal.session_owner();
  if account_delete.code_hash is not null then
    has_code := internal.deletion_code_consume(account_delete.code_hash);
  end if;
  if not has_code and internal.has_identity(me.id) and not internal.session_is_young() then
    return false;
  end if;
  perform internal.user_delete(me.id);
  return true;
end $$;
comment on function internal.account_delete is
  'Deletes the caller''s own account. A user who has an identity must have signed in less than 10 minutes ago (a refresh
   does not count) or send a code; returns false otherwise. Refuses 403 SESSION_REQUIRED, 401 UNAUTHORIZED. Locks the
   user, then the code.';

create or replace function api.me_delete(confirm text default null, code_hash text default null) returns api.reply
language plpgsql volatile as $$
begin
  if internal.caller() <> 'user' then
    perform internal.fail(403, 'SESSION_REQUIRED',
                          'Only a signed-in user can delete the account: call with an access token.');
  end if;
  if me_delete.confirm is distinct from 'DELETE' then
    perform internal.fail(400, 'CONFIRMATION_REQUIRED', 'Send confirm: "DELETE" to delete the account.',
                          '{"field": "confirm", "reason": "must be DELETE"}');
  end if;
  if not internal.account_delete(me_delete.code_hash) then
    -- returned, not raised, so that a wrong code stays counted
    return internal.refuse(401, 'REAUTH_REQUIRED', 'Sign in again, or send a code, to delete the account.');
  end if;
  return internal.reply_deleted();
end $$;
comment on function api.me_delete is
  'Deletes the caller''s account with all of its rows. code_hash is the hash of a code for this purpose. Refuses 400
   CONFIRMATION_REQUIRED, 401 REAUTH_REQUIRED, UNAUTHORIZED, 403 SESSION_REQUIRED.';

create or replace function internal.reset_sections() returns text[]
language sql immutable parallel safe
return array['events', 'streaks', 'xp', 'achievements', 'challenges', 'leaderboards', 'leagues', 'currencies',
             'inventory', 'onboarding',
             'entitlements', 'experiments', 'properties', 'collections', 'media', 'messages', 'feeds', 'friends',
             'groups', 'push', 'sessions',
             'sync'];
comment on function internal.reset_sections is 'The sections of a user''s data that can be reset.';

create or replace function internal.user_reset__properties(user_id uuid) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  emptied bigint;
begin
  update app.users u set properties = '{}' where u.id = user_reset__properties.user_id and u.properties <> '{}';
  get diagnostics emptied = row_count;
  return emptied;
end $$;
comment on function internal.user_reset__properties is
  'Empties a user''s properties: 1, or 0 when there were none. Part of internal.user_reset.';

create or replace function internal.user_reset__sessions(user_id uuid) returns bigint
language plpgsql volatile as $$
begin
  perform internal.changed('user:' || user_reset__sessions.user_id);
  return 0;
end $$;
comment on function internal.user_reset__sessions is
  'Invalidates the tokens of the sessions, whose rows are deleted, at once.';

create or replace function internal.user_reset(user_id uuid, sections text[]) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  section text;
  place record;
  counted bigint;
  deleted jsonb := '{}';
begin
  perform internal.check_caller('developer', 'users are reset by administrators');
  perform from app.users u where u.id = user_reset.user_id for update;
  perform internal.check_found(found, 'user');
  foreach section in array user_reset.sections loop
    deleted := deleted || jsonb_build_object(section, 0);
  end loop;
  -- counted before the deletion: deleting rows of one table may cascade to another
  for place in
    select d.table_name, d.user_column, d.reset_section
      from internal.user_data d
     where d.reset_section = any (user_reset.sections) and to_regclass(d.table_name) is not null
  loop
    execute format('select count(*) from %s where %I = $1', place.table_name::regclass, place.user_column)
       into counted using user_reset.user_id;
    deleted := jsonb_set(deleted, array[place.reset_section],
                         to_jsonb((deleted ->> place.reset_section)::bigint + counted));
  end loop;
  -- the steps of areas beyond the deletion run while the rows still exist
  foreach section in array user_reset.sections loop
    if to_regprocedure(format('internal.%I(uuid)', 'user_reset__' || section)) is not null then
      execute format('select internal.%I($1)', 'user_reset__' || section) into counted using user_reset.user_id;
      deleted := jsonb_set(deleted, array[section], to_jsonb((deleted ->> section)::bigint + coalesce(counted, 0)));
    end if;
  end loop;
  for place in
    select d.table_name, d.user_column
      from internal.user_data d
     where d.reset_section = any (user_reset.sections) and to_regclass(d.table_name) is not null
     order by d.table_name, d.user_column
  loop
    execute format('delete from %s where %I = $1', place.table_name::regclass,
                   place.user_column) using user_reset.user_id;
  end loop;
  perform internal.audit('users.reset', 'users', user_reset.user_id::text,
                         json_build_object('sections', json_build_array(null, user_reset.sections)));
  return (select json_object_agg(s.name, deleted -> s.name order by s.n)
            from unnest(user_reset.sections) with ordinality as s (name, n));
end $$;
comment on function internal.user_reset is
  'Deletes a user''s rows in these sections, as internal.user_data declares, and calls
   internal.user_reset__<section>(uuid) returns bigint of the areas that have one; returns the number of deleted rows by
   section. For administrators only. Refuses 404 NOT_FOUND when the user was deleted meanwhile. Locks the user. Audited
   as users.reset.';

create or replace function api.user_reset(user_id text, sections text default null, delete_user boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  them constant app.users := internal.user_found(user_reset.user_id);
  wanted text[];
  unknown text;
  deleted json;
begin
  if user_reset.sections is null then
    select array_agg(s.name order by s.n) into wanted
      from unnest(internal.reset_sections()) with ordinality as s (name, n)
     where s.name not in ('entitlements', 'push', 'sessions');
  else
    select coalesce(array_agg(distinct btrim(n)), '{}') into wanted from string_to_table(user_reset.sections, ',') as n
     where btrim(n) <> '';
    select w into unknown from unnest(wanted) as w where w <> all (internal.reset_sections()) order by w limit 1;
    if unknown is not null then
      perform internal.fail(400, 'INVALID_INPUT', 'sections: there is no section ' || left(unknown, 100),
                            json_build_object('field', 'sections',
                                              'reason', 'may hold ' || array_to_string(internal.reset_sections(),
                                                ', ')));
    end if;
    if wanted = '{}' then
      perform internal.fail(400, 'INVALID_INPUT', 'sections: must name at least one section',
                            '{"field": "sections", "reason": "must name at least one section"}');
    end if;
  end if;
  deleted := internal.user_reset(them.id, wanted);
  if user_reset.delete_user then
    perform internal.user_delete_by_administrator(them.id);
  end if;
  return internal.reply(200, json_build_object('user_id', them.id, 'reset', to_json(wanted), 'rows_deleted', deleted,
                                               'user_deleted', user_reset.delete_user));
end $$;
comment on function api.user_reset is
  'Resets sections of a user, all but entitlements, push and sessions when none is named, and deletes the user if
   requested: {user_id, reset, rows_deleted, user_deleted}. Refuses 400 INVALID_INPUT (unknown section),
   INVALID_USER_ID, 404 NOT_FOUND.';
