-- Administrators' reads and writes of flags. Due steps of schedules are applied first, so that nothing depends on a
-- worker's timing.
create or replace function internal.flag_json(f app.flags) returns json
language sql stable as $$
  select json_build_object(
    'id', (flag_json.f).id, 'key', (flag_json.f).key, 'name', (flag_json.f).name,
      'description', (flag_json.f).description,
    'value_type', (flag_json.f).value_type, 'is_enabled', (flag_json.f).is_enabled,
    'off_value', (flag_json.f).off_value,
    'default_value', (flag_json.f).default_value, 'rules', (flag_json.f).rules, 'schedule', (flag_json.f).schedule,
    'ramp', internal.flag_ramp_json((flag_json.f).ramp), 'tags', (flag_json.f).tags, 'owner', (flag_json.f).owner,
    'last_evaluated_at', internal.iso(s.last_evaluated_at),
    'created_at', internal.iso((flag_json.f).created_at), 'updated_at', internal.iso((flag_json.f).updated_at),
    'version', (flag_json.f).version)
    from (select) nothing
    left join app.flag_states s on s.flag_id = (flag_json.f).id
$$;
comment on function internal.flag_json is
  'A flag as every response shows it; last_evaluated_at is as of the last count of evaluations.';

create or replace function internal.flag_find(id_or_key text) returns app.flags
language plpgsql volatile as $$
declare
  flag app.flags;
begin
  perform internal.flags_apply_schedule();
  select f.* into flag from app.flags f where internal.is_id_or_key(f.id, f.key, flag_find.id_or_key);
  perform internal.check_found(found, 'flag');
  return flag;
end $$;
comment on function internal.flag_find is
  'A flag by its id or key, with the due steps of its schedule applied. Refuses 404 NOT_FOUND.';

create or replace function internal.flag_locked(id_or_key text) returns app.flags
language plpgsql volatile as $$
declare
  flag app.flags := internal.flag_find(flag_locked.id_or_key);
begin
  select f.* into flag from app.flags f where f.id = flag.id for no key update;
  perform internal.check_found(found, 'flag');
  return flag;
end $$;
comment on function internal.flag_locked is 'As flag_find, for a change: locks the flag. Refuses 404 NOT_FOUND.';

create or replace function internal.flag_stored(flag app.flags) returns app.flags
language plpgsql volatile as $$
declare
  stored app.flags;
begin
  update app.flags f
     set name = (flag_stored.flag).name, description = (flag_stored.flag).description, owner = (flag_stored.flag).owner,
         tags = (flag_stored.flag).tags, is_enabled = (flag_stored.flag).is_enabled,
         off_value = (flag_stored.flag).off_value,
         default_value = (flag_stored.flag).default_value, rules = (flag_stored.flag).rules,
         schedule = (flag_stored.flag).schedule,
         ramp = (flag_stored.flag).ramp, updated_at = internal.now()
   where f.id = (flag_stored.flag).id
     and (internal.flag_snapshot(f), f.ramp) is distinct
       from (internal.flag_snapshot(flag_stored.flag), (flag_stored.flag).ramp);
  -- a step of the new schedule may be due already
  perform internal.flags_apply_schedule();
  select f.* into stored from app.flags f where f.id = (flag_stored.flag).id;
  return stored;
end $$;
comment on function internal.flag_stored is
  'Writes a flag and applies the steps that are due then. The caller must hold the flag''s lock.';

create or replace function api.flag_create(patch json) returns api.reply
language plpgsql volatile as $$
declare
  flag app.flags;
begin
  -- serialised, so that two concurrent creations cannot pass the limit together
  perform internal.advisory_lock('flags');
  perform internal.definition_limit_check(null::app.flags);
  flag.key := flag_create.patch ->> 'key';
  flag.name := flag.key;
  flag.value_type := coalesce(flag_create.patch ->> 'value_type', 'boolean');
  flag.is_enabled := true;
  flag.default_value := case when flag.value_type = 'boolean' then 'false'::jsonb end;
  flag.rules := '[]';
  flag.schedule := '[]';
  flag.tags := '{}';
  flag := internal.flag_changed(flag, flag_create.patch);
  if flag.default_value is null then
    perform internal.invalid('default_value', 'is required, unless value_type is boolean');
  end if;
  flag.off_value := coalesce(flag.off_value,
                             case when flag.value_type = 'boolean' then 'false' else flag.default_value end);
  insert into app.flags as f (key, name, description, value_type, is_enabled, off_value, default_value, rules, schedule,
                              tags, owner)
  values (flag.key, flag.name, flag.description, flag.value_type, flag.is_enabled, flag.off_value, flag.default_value,
          flag.rules, flag.schedule,
          flag.tags, flag.owner)
  returning f.* into flag;
  return internal.reply(201, internal.flag_json(internal.flag_find(flag.id::text)));
end $$;
comment on function api.flag_create is
  'Creates a flag, 201. Refuses 400 VALIDATION_ERROR, 409 CONFLICT (the key is taken), LIMIT_REACHED (500).';

create or replace function api.flags_list(page_offset int default 0, page_limit int default 50,
                                          stale boolean default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.flags_apply_schedule();
  perform internal.flags_flush_counts();
  return (
    with chosen as materialized (
      select f as flag, f.created_at, f.id
        from app.flags f
       where flags_list.stale is null or internal.flag_is_stale(f) = flags_list.stale
    )
    select internal.reply_page(
      (select json_agg(internal.flag_json(c.flag) order by c.created_at desc, c.id desc)
         from (select l.* from chosen l order by l.created_at desc, l.id desc limit flags_list.page_limit
               offset flags_list.page_offset) c),
      (select count(*) from chosen), flags_list.page_offset, flags_list.page_limit));
end $$;
comment on function api.flags_list is 'Flags, newest first, optionally only those that are stale or not.';

create or replace function api.flag_get(id_or_key text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.flags_flush_counts();
  return internal.reply(200, internal.flag_json(internal.flag_find(flag_get.id_or_key)));
end $$;
comment on function api.flag_get is 'A flag. Refuses 404 NOT_FOUND.';

create or replace function api.flag_update(id_or_key text, patch json) returns api.reply
language plpgsql volatile as $$
declare
  flag app.flags := internal.flag_locked(flag_update.id_or_key);
begin
  return internal.reply(200, internal.flag_json(internal.flag_stored(internal.flag_changed(flag, flag_update.patch))));
end $$;
comment on function api.flag_update is
  'Changes the fields of a flag except key and value_type. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR. Locks the
   flag.';

create or replace function api.flag_toggle(id_or_key text, is_enabled boolean) returns api.reply
language plpgsql volatile as $$
declare
  flag app.flags := internal.flag_locked(flag_toggle.id_or_key);
begin
  flag.is_enabled := flag_toggle.is_enabled;
  return internal.reply(200, internal.flag_json(internal.flag_stored(flag)));
end $$;
comment on function api.flag_toggle is 'Switches a flag on or off. Refuses 404 NOT_FOUND. Locks the flag.';

create or replace function internal.flag_overrides_put(flag_id uuid, overrides jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  changes json;
begin
  perform internal.check_caller('developer', 'overrides are set by administrators');
  with sent as (
    select internal.as_uuid(e.key) as app_user_id, e.value from jsonb_each(flag_overrides_put.overrides) e
  ), before as (
    select o.app_user_id, o.value from app.flag_overrides o
     where o.flag_id = flag_overrides_put.flag_id and o.app_user_id in (select s.app_user_id from sent s)
  ), gone as (
    delete from app.flag_overrides o
     using sent s
     where o.flag_id = flag_overrides_put.flag_id and o.app_user_id = s.app_user_id and s.value = 'null'
  ), put as (
    insert into app.flag_overrides as o (flag_id, app_user_id, value)
    select flag_overrides_put.flag_id, s.app_user_id, s.value from sent s where s.value <> 'null' order by s.app_user_id
    on conflict on constraint flag_overrides_pkey do update set value = excluded.value, updated_at = internal.now()
     where o.value <> excluded.value
  )
  select json_object_agg(s.app_user_id, json_build_array(b.value, nullif(s.value, 'null')) order by s.app_user_id)
    into changes
    from sent s
    left join before b on b.app_user_id = s.app_user_id
   where nullif(s.value, 'null') is distinct from b.value;
  if changes is null then
    return;
  end if;
  -- the count includes the new overrides: minus one, the last of them is the one beyond the limit
  perform internal.check_limit((select count(*) - 1 from app.flag_overrides o
                                 where o.flag_id = flag_overrides_put.flag_id), 1000,
                               'A flag has at most 1000 overrides.');
  perform internal.audit('flags.overrides', 'flags', flag_overrides_put.flag_id::text, changes);
  perform internal.flags_rehash();
end $$;
comment on function internal.flag_overrides_put is
  'Sets overrides and removes those that are null, for an administrator. The caller must hold the flag''s lock. Refuses
   409 LIMIT_REACHED (1000). Writes the audit trail.';

create or replace function internal.flag_users_lock(app_user_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'overrides are set by administrators');
  return internal.lock_users(flag_users_lock.app_user_ids);
end $$;
comment on function internal.flag_users_lock is
  'Locks those of these users who exist, for an administrator, and returns them, or null.';

create or replace function api.flag_overrides_put(id_or_key text, patch json) returns api.reply
language plpgsql volatile as $$
declare
  flag app.flags := internal.flag_find(flag_overrides_put.id_or_key);
  sent jsonb;
  known uuid[];
  override record;
begin
  if not internal.is_storable_json(flag_overrides_put.patch) then
    perform internal.invalid('overrides', 'hold a character or a number that cannot be stored, or nest too deeply');
  end if;
  select coalesce(jsonb_object_agg(lower(e.key), e.value), '{}') into sent
    from jsonb_each(flag_overrides_put.patch::jsonb) e;
  -- lock order: users first, as everywhere
  known := internal.flag_users_lock(array(select internal.as_uuid(e.key) from jsonb_each(sent) e));
  flag := internal.flag_locked(flag.id::text);
  for override in
    select e.key, e.value, u.id as app_user_id
      from jsonb_each(sent) e
      left join unnest(known) as u (id) on u.id = internal.as_uuid(e.key)
     order by e.key
  loop
    if override.app_user_id is null then
      perform internal.invalid(override.key, 'must be the id of a user');
    elsif override.value <> 'null' then
      perform internal.flag_value(override.value, flag.value_type, override.key);
    end if;
  end loop;
  perform internal.flag_overrides_put(flag.id, sent);
  return internal.reply(200, (
    select coalesce(json_object_agg(o.app_user_id, o.value order by o.app_user_id), '{}') from app.flag_overrides o
     where o.flag_id = flag.id));
end $$;
comment on function api.flag_overrides_put is
  'Sets the overrides of users, by their ids; null removes one. Answers all overrides. Refuses 404 NOT_FOUND, 400
   VALIDATION_ERROR, 409 LIMIT_REACHED (1000). Locks the users, then the flag.';

create or replace function internal.flag_snapshot(f app.flags) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'name', (flag_snapshot.f).name, 'description', (flag_snapshot.f).description,
      'is_enabled', (flag_snapshot.f).is_enabled,
    'off_value', (flag_snapshot.f).off_value, 'default_value', (flag_snapshot.f).default_value,
    'rules', (flag_snapshot.f).rules,
    'schedule', (flag_snapshot.f).schedule, 'tags', (flag_snapshot.f).tags, 'owner', (flag_snapshot.f).owner)
$$;
comment on function internal.flag_snapshot is 'The content of a version of a flag, as its history shows it.';

create or replace function internal.flag_version_json(v app.flag_versions) returns json
language sql stable as $$
  select json_build_object(
    'version', (flag_version_json.v).version, 'changed_at', internal.iso((flag_version_json.v).changed_at),
      'actor', (flag_version_json.v).actor,
    'changes', (
      select coalesce(json_object_agg(n.key, json_build_array(b.snapshot -> n.key, n.value) order by n.key), '{}')
        from jsonb_each((flag_version_json.v).snapshot) n
        left join app.flag_versions b on b.flag_id = (flag_version_json.v).flag_id
          and b.version = (flag_version_json.v).version - 1
       where b.snapshot -> n.key is distinct from n.value))
$$;
comment on function internal.flag_version_json is
  'A version of a flag: its author, and each changed field before and after.';

select internal.list_declare('flag_versions_page', null::app.flag_versions, 'flag_version_json', '{version}',
                             required => '{flag_id}');

create or replace function api.flag_history(id_or_key text, page_offset int default 0, page_limit int default 50)
returns api.reply
language sql volatile as $$
  select internal.flag_versions_page((internal.flag_find(flag_history.id_or_key)).id, flag_history.page_offset,
                                     flag_history.page_limit)
$$;
comment on function api.flag_history is
  'The versions of a flag, newest first: the author, and each changed field before and after. Refuses 404 NOT_FOUND.';

create or replace function api.flag_revert(id_or_key text, version int) returns api.reply
language plpgsql volatile as $$
declare
  flag app.flags := internal.flag_locked(flag_revert.id_or_key);
  former jsonb;
begin
  select v.snapshot into former from app.flag_versions v where v.flag_id = flag.id and v.version = flag_revert.version;
  if not found then
    perform internal.invalid('version', 'must be a version of this flag');
  end if;
  -- the schedule of the former version is not restored: pending steps stay, except steps of a ramp when the rules
  -- change
  former := former - 'schedule' - case when former -> 'rules' = flag.rules then 'rules' else '' end;
  return internal.reply(200, internal.flag_json(internal.flag_stored(internal.flag_changed(flag, former::json))));
end $$;
comment on function api.flag_revert is
  'Restores a former version of a flag as a new version; its schedule stays. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR
   (no such version, or it refers to a segment that was deleted). Locks the flag.';

create or replace function internal.flags_rehash() returns void
language sql volatile security definer set search_path = '' as $$
  update app.flag_sets s set version_hash = encode(sha256(convert_to(s.version_hash || gen_random_uuid(), 'UTF8')),
                                                   'hex'), changed_at = internal.now()
$$;
comment on function internal.flags_rehash is
  'Sets a new hash of the project''s flags, which serialises changes. Granted to nobody.';

create or replace function internal.tg_flags__hash() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from changed) then
    perform internal.flags_rehash();
  end if;
  return null;
end $$;
comment on function internal.tg_flags__hash is 'Sets a new hash after every statement that writes a flag.';

create or replace trigger tg_flags__hash_of_insert
  after insert on app.flags referencing new table as changed
  for each statement execute function internal.tg_flags__hash();
create or replace trigger tg_flags__hash_of_update
  after update on app.flags referencing new table as changed
  for each statement execute function internal.tg_flags__hash();
create or replace trigger tg_flags__hash_of_delete
  after delete on app.flags referencing old table as changed
  for each statement execute function internal.tg_flags__hash();

create or replace function internal.tg_flags__number() returns trigger
language plpgsql volatile as $$
begin
  new.next_at := (new.schedule #>> '{0,at}')::timestamptz;
  if tg_op = 'UPDATE' then
    if (internal.flag_snapshot(new), new.ramp) is not distinct from (internal.flag_snapshot(old), old.ramp) then
      new.updated_at := old.updated_at;
      new.version := old.version;
    else
      new.version := old.version + 1;
    end if;
  end if;
  return new;
end $$;
comment on function internal.tg_flags__number is
  'Increments a flag''s version at each change, and sets the time when its schedule is due.';

create or replace trigger tg_flags__number before insert or update on app.flags
  for each row execute function internal.tg_flags__number();

create or replace function internal.tg_flags__remember() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  actor constant json := case when internal.caller() = 'developer' then internal.actor() end;
begin
  if tg_op = 'INSERT' or new.version <> old.version then
    insert into app.flag_versions (flag_id, version, snapshot, actor, changed_at)
    values (new.id, new.version, internal.flag_snapshot(new),
            jsonb_build_object('type', coalesce(actor ->> 'type', 'system'), 'id', actor ->> 'id', 'label',
                               actor ->> 'label'), new.updated_at);
  end if;
  if new.next_at is not null and (tg_op = 'INSERT' or new.next_at is distinct from old.next_at) then
    perform internal.enqueue('flags__advance', due_at => new.next_at);
  end if;
  return null;
end $$;
comment on function internal.tg_flags__remember is
  'Stores each version of a flag, and queues the next step of its schedule.';

create or replace trigger tg_flags__remember after insert or update on app.flags
  for each row execute function internal.tg_flags__remember();

select internal.audit_declare('app.flags', 'flags');

create or replace function internal.segment_used__flags(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'flag ' || f.key
                 from app.flags f
                where exists (select from (select jsonb_path_query(f.rules, '$[*].segment_id')
                                           union all
                                           select jsonb_path_query(f.schedule, '$[*].patch.rules[*].segment_id')) s (id)
                               where internal.as_uuid(s.id #>> '{}') = segment_used__flags.segment_id)
                order by f.key)
$$;
comment on function internal.segment_used__flags is
  'The flags whose rules, now or by their schedule, refer to a segment.';
