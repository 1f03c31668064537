-- Why a compiled statement failed, or wrote nothing. The hot path does not check values; only after an error of
-- Postgres are they checked one by one, so that the refusal names the wrong one.

create or replace function internal.collection_cast_problem(value text, type text) returns boolean
language plpgsql stable as $$
begin
  execute format('select $1::%s', collection_cast_problem.type) using collection_cast_problem.value;
  return false;
exception when data_exception or program_limit_exceeded or check_violation or syntax_error then
  return true;
end $$;
comment on function internal.collection_cast_problem is 'Whether a text cannot be cast to a type of the compiler.';

create or replace function internal.collection_check_values(definition jsonb, compiled jsonb, request json) returns void
language plpgsql stable as $$
declare
  vals constant text[] := internal.collection_values(collection_check_values.compiled -> 'params',
                                                     collection_check_values.request);
  param jsonb;
  sent json;
  item json;
  field record;
  is_batch constant boolean := collection_check_values.compiled #>> '{patterns,at}' = 'rows';
begin
  for n in 1 .. cardinality(vals) loop
    param := collection_check_values.compiled -> 'params' -> (n - 1);
    if vals[n] is not null and internal.collection_cast_problem(vals[n], param ->> 'type') then
      if param ->> 'column' is not null then
        perform internal.collection_refuse_column(param ->> 'column', 'is out of range');
      end if;
      if param #>> '{path,0}' = 'after' then
        -- the cursor of a column that had another type
        perform internal.collection_refuse('cursor', 'is not one of this query');
      end if;
      perform internal.collection_refuse(internal.collection_place(param -> 'path'),
                                         'is out of range, or there is no such date');
    end if;
  end loop;

  if collection_check_values.compiled -> 'patterns' is null
    or collection_check_values.compiled -> 'patterns' = 'null' then
    return;
  end if;
  sent := collection_check_values.request -> (collection_check_values.compiled #>> '{patterns,at}');
  for item in
    select e.value from json_array_elements(case when is_batch then sent
                                                 else json_build_array(sent) end) with ordinality as e (value, n)
                                                   order by e.n
  loop
    for field in select f.key, f.value from json_each(item) as f (key, value) where json_typeof(f.value) <> 'null' loop
      param := collection_check_values.definition -> 'columns' -> field.key;
      continue when param is null or (param ->> 'managed')::boolean and field.key not in ('user_id', 'group_id');
      if internal.collection_record_problem(item, field.key, param ->> 'sql') then
        perform internal.collection_refuse_column(field.key, case param ->> 'type'
          when 'vector' then format('must have %s numbers',
                                    param ->> 'dimensions') else 'is out of range, or there is no such date' end);
      end if;
    end loop;
  end loop;
end $$;
comment on function internal.collection_check_values is
  'Refuses the first value that cannot be cast to its type: 400 INVALID_BODY with details.path, or details.column of a
   value to be stored.';

create or replace function internal.collection_record_problem(item json, name text, type text) returns boolean
language plpgsql stable as $$
begin
  execute format('select from json_to_record($1) as r (%I %s)', collection_record_problem.name,
                 collection_record_problem.type)
    using json_build_object(collection_record_problem.name, collection_record_problem.item
                            -> collection_record_problem.name);
  return false;
exception when data_exception or program_limit_exceeded or check_violation then
  return true;
end $$;
comment on function internal.collection_record_problem is
  'Whether a value of a row cannot be cast to its column''s type.';

create or replace function internal.collection_constraint_refusal(collection text, error json) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  state constant text := collection_constraint_refusal.error ->> 'code';
  relation constant regclass := to_regclass(format('collections.%I', collection_constraint_refusal.collection));
  comment_parts text[];
  columns text[];
begin
  if state = '23502' then
    if collection_constraint_refusal.error ->> 'column' = 'group_id' then
      perform internal.fail(400, 'GROUP_CONTEXT_REQUIRED',
                            'Send the header X-Group-Context with the group that the row belongs to.');
    end if;
    perform internal.fail(400, 'NOT_NULL_VIOLATION',
                          format('%s: must not be null.', collection_constraint_refusal.error ->> 'column'),
                          json_build_object('column', collection_constraint_refusal.error ->> 'column'));
  end if;
  columns := coalesce(
    (select array_agg(a.attname::text order by k.n)
       from pg_catalog.pg_constraint c
      cross join lateral unnest(c.conkey) with ordinality as k (attnum, n)
       join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum
      where c.conrelid = relation and c.conname = collection_constraint_refusal.error ->> 'constraint'),
    (select array_agg(a.attname::text order by k.n)
       from pg_catalog.pg_index i
       join pg_catalog.pg_class r on r.oid = i.indexrelid
         and r.relname = collection_constraint_refusal.error ->> 'constraint'
      cross join lateral unnest(i.indkey::int2[]) with ordinality as k (attnum, n)
       join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
      where i.indrelid = relation));
  comment_parts := regexp_match(
    internal.constraint_refusal('collections', collection_constraint_refusal.collection,
                                collection_constraint_refusal.error ->> 'constraint'),
    '^(\d{3}) ([A-Z_]+)(?: ([a-z0-9_.]+))?: (.+)$');
  if state = '23505' then
    perform internal.fail(409, 'CONFLICT', coalesce(comment_parts[4], 'A row with these values exists.'),
                          json_build_object('columns', columns, 'field', coalesce(
                            -- the developer's own: the owner is none that a sender can change
                            (select c.name from unnest(columns) with ordinality as c (name, n)
                              where c.name not in ('user_id', 'group_id') order by c.n limit 1),
                            columns[1])));
  elsif state = '23503' and columns = array['user_id'] and internal.user_id() is not null then
    -- the caller was deleted just now
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  elsif comment_parts is not null and comment_parts[2] <> 'INVALID_BODY' then
    -- a DBA's own rule, with the DBA's own message
    perform internal.fail(comment_parts[1]::int, comment_parts[2], comment_parts[4],
                          json_strip_nulls(json_build_object('field', comment_parts[3])));
  elsif columns is not null then
    perform internal.collection_refuse_column(columns[1], coalesce(rtrim(comment_parts[4], '.'), case
      when state = '23503' and columns[1] = 'user_id' then 'must be the id of a user'
      when state = '23503' and columns[1] = 'group_id' then 'must be the id of a group'
      else 'is not allowed' end));
  end if;
end $$;
comment on function internal.collection_constraint_refusal is
  'Refuses as the comment of the violated constraint: 400 NOT_NULL_VIOLATION, GROUP_CONTEXT_REQUIRED, INVALID_BODY with
   details.column, 404 USER_NOT_FOUND (the caller), 409 CONFLICT. Returns when the error is none of these.';

create or replace function internal.collection_unreadable_column(definition jsonb, request json) returns text
language plpgsql stable as $$
declare
  item json;
  reference record;
  is_there boolean;
begin
  for item in
    select e.value
      from json_array_elements(case when json_typeof(collection_unreadable_column.request -> 'rows') = 'array'
                                      then collection_unreadable_column.request -> 'rows'
                                    else json_build_array(collection_unreadable_column.request -> 'data') end) as e (
                                      value)
  loop
    for reference in
      select f.key, internal.as_uuid(f.value #>> '{}') as id,
             collection_unreadable_column.definition -> 'columns' -> f.key ->> 'references' as target
        from json_each(case when json_typeof(item) = 'object' then item else '{}' end) as f (key, value)
       where collection_unreadable_column.definition -> 'columns' -> f.key ->> 'references' is not null
         and json_typeof(f.value) = 'string'
    loop
      execute format('select exists (select from collections.%I t where t.id = $1 and t.deleted_at is null)',
                     reference.target)
        into is_there using reference.id;
      if not is_there then
        return reference.key;
      end if;
    end loop;
  end loop;
  return null;
end $$;
comment on function internal.collection_unreadable_column is
  'The first column that refers to a row that the caller cannot read, or null.';

create or replace function internal.collection_replay(definition jsonb, request json) returns api.reply
language plpgsql volatile as $$
declare
  found_id uuid;
  answer record;
begin
  select k.row_id into found_id
    from app.collection_keys k
   where k.collection_id = (collection_replay.definition ->> 'id')::uuid
     and k.caller = internal.idempotency_caller()
     and k.key = coalesce(collection_replay.request ->> 'key',
                          case when not collection_replay.definition -> 'columns' ? 'idempotency_key'
                               then collection_replay.request -> 'data' ->> 'idempotency_key' end);
  if found_id is null then
    return null;
  end if;
  select r.status, r.body, r.headers into answer
    from internal.collection_run('get', collection_replay.definition ->> 'name', json_build_object('id', found_id)) r;
  if answer.status <> 200 then
    perform internal.fail(409, 'IDEMPOTENCY_REPLAY_GONE',
                          'The row that was created with this Idempotency-Key was deleted: use a new key.');
  end if;
  return row(200, answer.body::json, internal.json_merge(answer.headers::json,
                                                         '{"Idempotency-Replayed": "true"}'))::api.reply;
end $$;
comment on function internal.collection_replay is
  'The row that was created with an Idempotency-Key, in its present state and as far as the caller may read it; null
   when there is none. Refuses 409 IDEMPOTENCY_REPLAY_GONE.';

create or replace function internal.collection_policy_refusal(definition jsonb, is_certain boolean) returns void
language plpgsql volatile as $$
declare
  has_others constant boolean := exists (
    select from pg_catalog.pg_policy p
     where p.polrelid = to_regclass(format('collections.%I', collection_policy_refusal.definition ->> 'name'))
       and obj_description(p.oid, 'pg_policy') is distinct from 'Made by collections');
begin
  if collection_policy_refusal.definition ->> 'scope' = 'group' and current_setting('role') = 'app_user'
     and (has_others or collection_policy_refusal.is_certain) then
    perform internal.fail(403, 'GROUP_ROLE_FORBIDDEN', 'The caller''s role in this group does not allow this.');
  elsif has_others then
    perform internal.fail(403, 'FORBIDDEN', 'A policy of the project does not allow this.');
  end if;
end $$;
comment on function internal.collection_policy_refusal is
  'Refuses what row-level security denied (is_certain: Postgres reported it): 403 GROUP_ROLE_FORBIDDEN in a group, 403
   FORBIDDEN when a DBA''s own policies exist beside ours. Returns when neither is possible.';

create or replace function internal.collection_trigger_refusal(definition jsonb, command text) returns void
language plpgsql volatile as $$
begin
  if exists (
    select
      from pg_catalog.pg_trigger t
      join pg_catalog.pg_proc f on f.oid = t.tgfoid and f.pronamespace <> 'internal'::regnamespace
     where t.tgrelid = to_regclass(format('collections.%I', collection_trigger_refusal.definition ->> 'name'))
       and not t.tgisinternal and t.tgenabled <> 'D'
       -- before each row: a trigger that returns null suppresses the write
       and t.tgtype & 3 = 3
       and t.tgtype & case collection_trigger_refusal.command when 'insert' then 4 when 'delete' then 8
                           else 16 end <> 0) then
    perform internal.fail(403, 'FORBIDDEN', 'A trigger of the project does not allow this.');
  end if;
end $$;
comment on function internal.collection_trigger_refusal is
  'Refuses a write that a DBA''s own trigger suppressed silently: 403 FORBIDDEN. Returns when there is no such
   trigger.';

create or replace function internal.collection_role_missing(definition jsonb) returns boolean
language sql stable as $$
  select collection_role_missing.definition ->> 'scope' = 'user' and current_setting('role') = 'app_user'
     and exists (select from unnest(array[collection_role_missing.definition ->> 'read',
                                          collection_role_missing.definition ->> 'write']) p (policy)
                  where p.policy like 'role:%' and not internal.has_role(substr(p.policy, 6)))
$$;
comment on function internal.collection_role_missing is
  'Whether a policy of a collection of users requires a role that the caller does not have.';

create or replace function internal.collection_explain_error(kind text, definition jsonb, request json, error json)
returns api.reply
language plpgsql volatile as $$
declare
  state constant text := collection_explain_error.error ->> 'code';
begin
  if state = '23505' and collection_explain_error.error ->> 'constraint' = 'collection_keys_pkey' then
    -- the transaction with the same key has rolled back since: the server tries again
    return row(0, '{}', null)::api.reply;
  end if;
  if state like '23%' then
    perform internal.collection_constraint_refusal(collection_explain_error.definition ->> 'name',
                                                   collection_explain_error.error);
  elsif state = '42501' and internal.collection_role_missing(collection_explain_error.definition) then
    perform internal.fail(403, 'FORBIDDEN', 'The caller does not have the role that this collection requires.');
  elsif state = '42501' and coalesce(collection_explain_error.request ->> 'on_conflict', 'error') <> 'error' then
    perform internal.fail(409, 'CONFLICT', 'A row with these values exists.');
  elsif state = '42501' then
    perform internal.collection_policy_refusal(collection_explain_error.definition, true);
  elsif state like '54%' then
    perform internal.fail(400, 'INVALID_BODY', 'A value is too long for an index on its column.',
                          '{"reason": "is too long for an index"}');
  elsif state like '22%' then
    perform internal.fail(400, 'INVALID_BODY', 'A value is out of range.', '{"reason": "is out of range"}');
  end if;
  return null;
end $$;
comment on function internal.collection_explain_error is
  'Refuses with the meaning of a statement''s error for the caller; null when the error is a defect.';

create or replace function internal.collection_explain_nothing(kind text, definition jsonb, request json)
returns api.reply
language plpgsql volatile as $$
declare
  d constant jsonb := collection_explain_nothing.definition;
  name constant text := collection_explain_nothing.definition ->> 'name';
  target record;
  asked json;
  held record;
  columns jsonb;
  met jsonb;
  is_mine boolean;
begin
  if collection_explain_nothing.kind in ('insert', 'batch') then
    if coalesce(collection_explain_nothing.request ->> 'on_conflict', 'error') <> 'error' then
      columns := internal.collection_data_columns(d, (collection_explain_nothing.request -> 'data')::jsonb, '');
      met := internal.collection_conflict_sql(d, collection_explain_nothing.request::jsonb, columns,
        case when not columns @> '[{"name": "group_id"}]' then format('%L::uuid',
                                                                      collection_explain_nothing.request ->>
                                                                        'group') end);
      execute format('select exists (select from %s t, %s where %s)', met ->> 'rows',
                     case when jsonb_array_length(columns) = 0 then '(select $1) r'
                          else format('json_to_record($1) as r (%s)', internal.collection_record_sql(columns)) end,
                     met ->> 'same')
        into is_mine using collection_explain_nothing.request -> 'data';
      if is_mine then
        if collection_explain_nothing.request ->> 'on_conflict' = 'update' then
          perform internal.collection_trigger_refusal(d, 'update');
        end if;
        -- the row was inserted meanwhile: the next attempt finds it
        return row(0, '{}', null)::api.reply;
      end if;
      -- the owner of the row is not revealed
      perform internal.fail(409, 'CONFLICT', 'A row with these values exists.');
    end if;
    perform internal.collection_trigger_refusal(d, 'insert');
    return row(0, '{}', null)::api.reply;
  end if;

  execute format('select t.deleted_at, %s as group_id, (%s) as may_write from collections.%I t where t.id = $1',
                 case when d ->> 'scope' = 'group' then 't.group_id' else 'null::uuid' end,
                 internal.collection_write_condition_of(d), name)
    into target using internal.as_uuid(collection_explain_nothing.request ->> 'id');
  if target.may_write is null and target.deleted_at is null and target.group_id is null
     or collection_explain_nothing.kind <> 'restore' and target.deleted_at is not null
     or collection_explain_nothing.kind = 'restore' and target.deleted_at <= internal.now() - interval '30 days'
     or d ->> 'scope' = 'group' and target.group_id
       <> internal.as_uuid(collection_explain_nothing.request ->> 'group') then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such row.');
  end if;
  if not coalesce(target.may_write, false) then
    if d ->> 'scope' = 'group' then
      perform internal.fail(403, 'GROUP_ROLE_FORBIDDEN', 'The caller''s role in this group does not allow this.');
    end if;
    perform internal.fail(404, 'NOT_FOUND', 'There is no such row.');
  end if;
  if collection_explain_nothing.kind = 'patch'
     or collection_explain_nothing.kind = 'delete'
     and collection_explain_nothing.request ->> 'if_match' is not null then
    asked := json_strip_nulls(json_build_object(
      'id', collection_explain_nothing.request ->> 'id', 'if_match', collection_explain_nothing.request ->> 'if_match',
      'data', '{}'::json));
    if json_typeof(collection_explain_nothing.request -> 'data' -> '$if') = 'object' then
      asked := json_build_object('id', collection_explain_nothing.request ->> 'id',
                                 'if_match', collection_explain_nothing.request ->> 'if_match',
                                 'data', json_build_object('$if', collection_explain_nothing.request -> 'data'
                                                           -> '$if'));
    end if;
    select r.status into held from internal.collection_run('patch', name, asked) r;
    if held.status = 0 then
      select r.body into held from internal.collection_run('get', name,
                                                           json_build_object('id', collection_explain_nothing.request
                                                             ->> 'id')) r;
      perform internal.fail(409, 'CONFLICT', 'The row has changed: details.current is its present state.',
                            json_build_object('current', held.body::json -> 'data'));
    end if;
  end if;
  -- our own policies allow the write
  perform internal.collection_policy_refusal(d, false);
  perform internal.collection_trigger_refusal(d, case when collection_explain_nothing.kind = 'delete'
    and coalesce((collection_explain_nothing.request ->> 'hard')::boolean, false) then 'delete' else 'update' end);
  return row(0, '{}', null)::api.reply;
end $$;
comment on function internal.collection_explain_nothing is
  'Why nothing was written: refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN or FORBIDDEN, 409 CONFLICT with
   details.current; or status 0: try again.';

create or replace function internal.collection_explain(kind text, collection text, request json, version bigint,
                                                       error json)
returns api.reply
language plpgsql volatile as $$
declare
  d constant jsonb := internal.collection_definition(collection_explain.collection);
  compiled constant jsonb := internal.collection_compile(collection_explain.kind, collection_explain.collection,
                                                         collection_explain.request);
  unreadable text;
  replay api.reply;
begin
  if (compiled ->> 'version')::bigint <> collection_explain.version then
    return row(0, '{}', null)::api.reply;
  end if;
  if d ->> 'scope' = 'group' and collection_explain.request ->> 'group' is not null then
    perform internal.collection_group(collection_explain.request ->> 'group',
                                      internal.collection_group_role(d, collection_explain.kind in ('insert', 'batch')),
                                      collection_explain.kind in ('insert', 'batch'));
  end if;
  if collection_explain.kind = 'insert' then
    -- checked first: a row that was inserted under this key would violate its own unique values
    replay := internal.collection_replay(d, collection_explain.request);
    if replay.status is not null then
      return replay;
    end if;
  end if;
  perform internal.collection_check_values(d, compiled, collection_explain.request);
  unreadable := internal.collection_unreadable_column(d, collection_explain.request);
  if unreadable is not null then
    perform internal.collection_refuse_column(unreadable,
                                              format('must be the id of a row of %s',
                                                     d -> 'columns' -> unreadable ->> 'references'));
  end if;
  if collection_explain.error is null then
    return internal.collection_explain_nothing(collection_explain.kind, d, collection_explain.request);
  end if;
  return internal.collection_explain_error(collection_explain.kind, d, collection_explain.request,
                                           collection_explain.error);
end $$;
comment on function internal.collection_explain is
  'Why a statement compiled for this version failed (error: {code, constraint, column}) or wrote nothing (null): raises
   the refusal, or returns a replay, or status 0: compile and try again; null when the reason is unknown.';

create or replace function api.collection_explain(kind text, collection text, request json, version bigint,
                                                  error json default null)
returns api.reply
language sql volatile as $$
  select case when e.status is null then row(-1, '{}', null)::api.reply else e end
    from internal.collection_explain(collection_explain.kind, collection_explain.collection, collection_explain.request,
                                     collection_explain.version, collection_explain.error) e
$$;
comment on function api.collection_explain is
  'For the server, after a statement failed or wrote nothing. Status 0: try again. -1: a defect. Refuses as
   internal.collection_explain.';

create or replace function internal.purge__collections(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  name text;
  deleted bigint := 0;
begin
  for name in select c.name from app.collections c order by c.name loop
    begin
      deleted := greatest(deleted, internal.purge_rows(format('collections.%I', name)::regclass,
                                                       't.deleted_at < internal.now() - interval ''30 days''',
                                                       purge__collections.most));
    exception when undefined_table then
      -- dropped meanwhile
      null;
    end;
  end loop;
  deleted := greatest(deleted, internal.purge_rows('app.collection_keys',
                                                   't.created_at < internal.now() - interval ''30 days''',
                                                     purge__collections.most));
  -- rows staged for an import whose upload was broken off, or that was cancelled before it began;
  -- each import is deleted with its parts, up to hundreds
  return greatest(deleted, internal.purge_rows('app.collection_imports',
                                               't.created_at < internal.now() - interval ''7 days''',
                                                 purge__collections.most));
end $$;
comment on function internal.purge__collections is
  'Deletes rows that were soft-deleted 30 days ago, Idempotency-Keys of the same age, and rows that were staged for an
   import a week ago.';
