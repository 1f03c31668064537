-- Creating and updating keys of remote configuration.
comment on constraint config_keys_conditions_is_list on app.config_keys is
  '400 INVALID_INPUT conditions: must be a list of at most 100.';

create or replace function internal.config_conditions(conditions json) returns jsonb
language plpgsql volatile as $$
declare
  sent jsonb;
  c jsonb;
begin
  if json_typeof(config_conditions.conditions) is distinct from 'array'
    or json_array_length(config_conditions.conditions) > 100 then
    perform internal.invalid('conditions', 'must be a list of at most 100', 'INVALID_INPUT');
  elsif not internal.is_storable_json(config_conditions.conditions) then
    perform internal.invalid('conditions', 'holds a character or a number that cannot be stored, or nests too deeply',
                             'INVALID_INPUT');
  end if;
  sent := config_conditions.conditions::jsonb;
  for i in 0 .. jsonb_array_length(sent) - 1 loop
    c := sent -> i;
    if jsonb_typeof(c) <> 'object' then
      perform internal.invalid('conditions.' || i, 'must be an object {segment_id?, percentage?, value}',
                               'INVALID_INPUT');
    elsif not c ? 'value' then
      perform internal.invalid('conditions.' || i || '.value', 'is required', 'INVALID_INPUT');
    elsif coalesce(c -> 'percentage', 'null') <> 'null'
          and (jsonb_typeof(c -> 'percentage') <> 'number' or not (c -> 'percentage')::numeric between 0 and 100) then
      perform internal.invalid('conditions.' || i || '.percentage', 'must be a number from 0 to 100', 'INVALID_INPUT');
    elsif coalesce(c -> 'segment_id', 'null') <> 'null'
      and not internal.segment_lock_shared(internal.as_uuid(c ->> 'segment_id')) then
      perform internal.invalid('conditions.' || i || '.segment_id', 'must be a segment of the project',
                               'INVALID_INPUT');
    end if;
  end loop;
  return sent;
end $$;
comment on function internal.config_conditions is
  'Validates conditions and returns them as they are stored. Refuses 400 INVALID_INPUT. Locks the referenced segments
   against deletion.';

create or replace function internal.config_key_json(k app.config_keys) returns json
language sql stable as $$
  select json_build_object(
    'key', (config_key_json.k).key, 'value', (config_key_json.k).value, 'value_type', (config_key_json.k).value_type,
    'description', (config_key_json.k).description, 'default_value', (config_key_json.k).value,
    'conditions', (config_key_json.k).conditions, 'version', (config_key_json.k).version,
    'created_at', internal.iso((config_key_json.k).created_at),
    'updated_at', internal.iso((config_key_json.k).updated_at))
$$;
comment on function internal.config_key_json is 'A key as every response shows it. default_value equals value.';

create or replace function internal.config_storable(value json) returns jsonb
language plpgsql volatile as $$
begin
  if config_storable.value is null then
    perform internal.invalid('value', 'is required', 'INVALID_INPUT');
  elsif not internal.is_storable_json(config_storable.value) then
    perform internal.invalid('value', 'holds a character or a number that cannot be stored, or nests too deeply',
                             'INVALID_INPUT');
  end if;
  return config_storable.value::jsonb;
end $$;
comment on function internal.config_storable is
  'Validates a value and returns it as it is stored. Refuses 400 INVALID_INPUT.';

create or replace function internal.config_size_check() returns void
language plpgsql volatile as $$
begin
  if (select sum(octet_length(k.value::text) + octet_length(k.conditions::text))
        from app.config_keys k) > internal.page_bytes() / 2 then
    perform internal.invalid('value', 'would give the configuration more than 4 MB in all', 'INVALID_INPUT');
  end if;
end $$;
comment on function internal.config_size_check is
  'Refuses 400 INVALID_INPUT when values and conditions of all keys have more than 4 MB: apps read the whole
   configuration in one response.';

create or replace function api.config_key_put(key text, value json, value_type text default 'string',
                                              description text default null, conditions json default '[]')
returns api.reply
language plpgsql volatile as $$
declare
  stored app.config_keys;
begin
  insert into app.config_keys as k (key, value, value_type, description, conditions)
  values (config_key_put.key, internal.config_storable(config_key_put.value), config_key_put.value_type,
          config_key_put.description,
          internal.config_conditions(config_key_put.conditions))
  on conflict on constraint config_keys_key_unique do update
     set value = excluded.value, value_type = excluded.value_type, description = excluded.description,
       conditions = excluded.conditions,
         version = k.version + case when k.value = excluded.value then 0 else 1 end, updated_at = internal.now()
  returning k.* into stored;
  perform internal.config_size_check();
  return internal.reply(201, internal.config_key_json(stored));
end $$;
comment on function api.config_key_put is
  'Creates or replaces a key: 201 in both cases; version counts changes of value. Refuses 400 INVALID_INPUT. Contract,
   remote config.';

create or replace function api.config_key_list() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(internal.config_key_json(k) order by k.key), '[]'))
    from app.config_keys k
$$;
comment on function api.config_key_list is 'All keys, by key; the unique index serves the order.';

create or replace function api.config_key_update(key text, patch json) returns api.reply
language plpgsql volatile as $$
declare
  stored app.config_keys;
begin
  -- null is a value, so the check is for presence
  update app.config_keys k
     set value = case when config_key_update.patch -> 'value' is null then k.value
                      else internal.config_storable(config_key_update.patch -> 'value') end,
         description = case when config_key_update.patch -> 'description' is null then k.description
                            else config_key_update.patch ->> 'description' end,
         conditions = case when config_key_update.patch -> 'conditions' is null then k.conditions
                           else internal.config_conditions(config_key_update.patch -> 'conditions') end,
         version = k.version + case when config_key_update.patch -> 'value' is null
                                      or (config_key_update.patch -> 'value')::jsonb = k.value then 0 else 1 end,
         updated_at = internal.now()
   where k.key = config_key_update.key
     and exists (select from json_object_keys(config_key_update.patch) p
                  where p in ('value', 'description', 'conditions'))
  returning k.* into stored;
  if found then
    perform internal.config_size_check();
  else
    select k.* into stored from app.config_keys k where k.key = config_key_update.key;
    perform internal.check_found(found, 'key');
  end if;
  return internal.reply(200, internal.config_key_json(stored));
end $$;
comment on function api.config_key_update is
  'Changes those of value, description and conditions that are present. Refuses 404 NOT_FOUND, 400 INVALID_INPUT. Locks
   the key.';

create or replace function internal.tg_config_keys__hash() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from changed) then
    update app.config_versions v
       set version_hash = encode(sha256(convert_to(v.version_hash || gen_random_uuid(), 'UTF8')), 'hex'),
         changed_at = internal.now();
  end if;
  return null;
end $$;
comment on function internal.tg_config_keys__hash is
  'Sets a new hash after every statement that writes a key, also when the statement restores a former state. This
   serialises changes.';

create or replace trigger tg_config_keys__hash_of_insert
  after insert on app.config_keys referencing new table as changed
  for each statement execute function internal.tg_config_keys__hash();
create or replace trigger tg_config_keys__hash_of_update
  after update on app.config_keys referencing new table as changed
  for each statement execute function internal.tg_config_keys__hash();
create or replace trigger tg_config_keys__hash_of_delete
  after delete on app.config_keys referencing old table as changed
  for each statement execute function internal.tg_config_keys__hash();

select internal.audit_declare('app.config_keys', 'config');

create or replace function internal.segment_used__config(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'config ' || k.key
                 from app.config_keys k
                where exists (select from jsonb_array_elements(k.conditions) c
                               where internal.as_uuid(c.value ->> 'segment_id') = segment_used__config.segment_id)
                order by k.key)
$$;
comment on function internal.segment_used__config is 'The keys whose conditions refer to a segment.';
