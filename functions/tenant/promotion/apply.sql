-- Applying a plan: each row is written by the function that its own route calls, so that every check, lock, counter and
-- task of the area is the same.
create or replace function internal.promotion_id(d internal.definitions, key text) returns uuid
language plpgsql stable as $$
declare
  id uuid;
begin
  execute format('select t.id from %s t where t.%I = $1', (promotion_id.d).table_name::regclass,
                 internal.promotion_key_column(promotion_id.d))
     into id
    using promotion_id.key;
  return id;
end $$;
comment on function internal.promotion_id is
  'The id of a row by the key, or name, by which it is copied; null when there is none.';

create or replace function internal.promotion_resolved(d internal.definitions, wanted jsonb) returns jsonb
language plpgsql stable as $$
declare
  made jsonb := promotion_resolved.wanted;
  reference record;
  ids jsonb;
begin
  for reference in
    select r.value ->> 'path' as path, internal.definition_of(r.value ->> 'kind') as other
      from jsonb_array_elements(internal.promotion_references(promotion_resolved.d)) r
     where r.value ->> 'by' = 'id'
  loop
    select jsonb_object_agg(k.key, internal.promotion_id(reference.other, k.key)) into ids
      from (select distinct v.value #>> '{}' as key from jsonb_path_query(made, reference.path::jsonpath) v (value)
             where v.value <> 'null') k;
    if ids is not null then
      made := internal.promotion_named(made, internal.promotion_steps(reference.path), ids);
    end if;
  end loop;
  return made;
end $$;
comment on function internal.promotion_resolved is
  'A row of a document, keys of other rows replaced by the ids that they have in this project.';

create or replace function internal.promotion_function(d internal.definitions, verbs text[], out called regprocedure,
                                                       out names text[], out types regtype[], out required int)
language sql stable as $$
  select p.oid::regprocedure, p.proargnames[1:p.pronargs], p.proargtypes::regtype[], p.pronargs - p.pronargdefaults
    from unnest(promotion_function.verbs) with ordinality v (verb, n)
    join pg_catalog.pg_proc p on p.pronamespace = 'api'::regnamespace
      and p.proname = (promotion_function.d).kind || '_' || v.verb
   order by v.n
   limit 1
$$;
comment on function internal.promotion_function is
  'The function api.<kind>_<verb> that an entity has in place of the common one, its parameters, and how many of them
   have no default; nulls when it has none.';

create or replace function internal.promotion_call(d internal.definitions, verbs text[], compiled text, id uuid,
                                                   key text, sent jsonb)
returns void
language plpgsql volatile as $$
declare
  own record;
  identifier constant text := case when (promotion_call.d).found_by = 'key' then promotion_call.key
                                   else promotion_call.id::text end;
  arguments text;
  missing text;
begin
  select f.called, f.names, f.types, f.required into own
    from internal.promotion_function(promotion_call.d, promotion_call.verbs) f;
  if own.called is null then
    if promotion_call.id is null then
      execute format('select from %s($1)', internal.definition_compiled(promotion_call.d, promotion_call.compiled))
        using promotion_call.sent;
    elsif promotion_call.sent is null then
      execute format('select from %s($1)', internal.definition_compiled(promotion_call.d, promotion_call.compiled))
        using identifier;
    else
      execute format('select from %s($1, $2)',
                     internal.definition_compiled(promotion_call.d, promotion_call.compiled)) using identifier,
                       promotion_call.sent;
    end if;
    return;
  end if;
  select string_agg(format(case
                      when a.name = 'patch' then '%I => $1::%s'
                      -- the parameter that identifies the row, which is in no document
                      when not promotion_call.sent ? a.name then '%I => $2::%s'
                      when a.type in ('json'::regtype, 'jsonb'::regtype) then '%I => ($1 -> %3$L)::%2$s'
                      else '%I => ($1 ->> %3$L)::%2$s' end, a.name, a.type, a.name), ', ' order by a.n),
         min(a.name) filter (where a.name <> 'patch' and promotion_call.id is null and not promotion_call.sent ? a.name)
    into arguments, missing
    from unnest(own.names, own.types) with ordinality a (name, type, n)
   where a.n <= own.required or a.name = 'patch' or promotion_call.sent ? a.name;
  if missing is not null then
    perform internal.invalid(missing, 'is required');
  end if;
  execute format('select from %s(%s)', split_part(own.called::text, '(', 1), arguments) using promotion_call.sent,
    identifier;
end $$;
comment on function internal.promotion_call is
  'Calls the function that creates, changes or deletes a row: that of its own route, or the one compiled for its kind.
   Refuses as they do.';

create or replace function internal.promotion_write(d internal.definitions, op text, key text, wanted jsonb,
                                                    fields jsonb)
returns void
language plpgsql volatile as $$
declare
  id constant uuid := case when promotion_write.op <> 'create' then internal.promotion_id(promotion_write.d,
                                        promotion_write.key) end;
  key_field constant jsonb := jsonb_build_object(internal.promotion_key_column(promotion_write.d), promotion_write.key);
  hook constant regprocedure := to_regprocedure(format('internal.%I(uuid,jsonb)',
                                                       (promotion_write.d).kind || '_promote'));
  resolved constant jsonb := internal.promotion_resolved(promotion_write.d, promotion_write.wanted);
  changed jsonb;
begin
  if promotion_write.op = 'delete' then
    perform internal.promotion_call(promotion_write.d, '{}', 'delete', id, promotion_write.key, null);
  elsif promotion_write.op = 'create' then
    perform internal.promotion_call(promotion_write.d, '{create,put}', 'insert', null, promotion_write.key,
                                    resolved || key_field);
  else
    changed := (select jsonb_object_agg(f.name, resolved -> f.name)
                  from jsonb_array_elements_text(promotion_write.fields) f (name));
    if (internal.promotion_function(promotion_write.d, '{put}')).called is not null then
      -- replaces the row: what the document does not name stays as it is
      changed := internal.promotion_stored(promotion_write.d, id) || changed || key_field;
      perform internal.promotion_call(promotion_write.d, '{put}', 'update', null, promotion_write.key, changed);
    else
      perform internal.promotion_call(promotion_write.d, '{update}', 'update', id, promotion_write.key, changed);
    end if;
    if hook is not null then
      execute format('select %s($1, $2)', hook::regproc) using id, changed;
    end if;
  end if;
end $$;
comment on function internal.promotion_write is 'Executes one op of a plan. Refuses as the routes of its kind do.';

create or replace function internal.promotion_stored(d internal.definitions, id uuid) returns jsonb
language plpgsql stable as $$
declare
  pairs text;
  stored jsonb;
begin
  select string_agg(format('%L, %s', c.name, c.shown), ', ' order by c.name) into pairs
    from internal.definition_columns(promotion_stored.d) c
   where c.is_settable;
  execute format('select jsonb_build_object(%s) from %s r where r.id = $1', pairs,
                 (promotion_stored.d).table_name::regclass)
     into stored
    using promotion_stored.id;
  return stored;
end $$;
comment on function internal.promotion_stored is 'What of a row is configuration, references as ids.';

create or replace function internal.catalog_item_promote(item_id uuid, changed jsonb) returns void
language plpgsql volatile as $$
declare
  item app.catalog_items;
begin
  select i.* into item from app.catalog_items i where i.id = catalog_item_promote.item_id;
  if jsonb_typeof(catalog_item_promote.changed -> 'prices') = 'array' then
    perform internal.catalog_prices_set(item, catalog_item_promote.changed -> 'prices');
  end if;
  if jsonb_typeof(catalog_item_promote.changed -> 'bundle_contents') = 'array' then
    perform internal.catalog_contents_set(item, catalog_item_promote.changed -> 'bundle_contents');
  end if;
end $$;
comment on function internal.catalog_item_promote is
  'Stores the prices and the contents of an item that a plan changes. Refuses 400 VALIDATION_ERROR, BUNDLE_CYCLE.';

create or replace function internal.promotion_lock(todo jsonb) returns void
language plpgsql volatile as $$
declare
  d internal.definitions;
  composed internal.composed_definitions;
  hook text;
  mine jsonb;
begin
  for d in
    select k.* from internal.promotion_kinds(null) k
     where internal.promoted_as(k) in (select o.value ->> 'kind' from jsonb_array_elements(promotion_lock.todo) o)
  loop
    select jsonb_agg(o.value) into mine from jsonb_array_elements(promotion_lock.todo) o
     where o.value ->> 'kind' = internal.promoted_as(d);
    -- in the order of the functions that write a row: locks of the area, then users, then the number of rows, then the
    -- row
    hook := internal.definition_hook(d, 'before_write');
    if hook is not null then
      execute format('select %s(null)', hook);
    end if;
    hook := internal.definition_hook(d, 'before_update');
    if hook is not null then
      execute format(
        'select %1$s(t, (select jsonb_object_agg(f.name, null) from jsonb_array_elements_text(o.value -> ''fields'') '
        'f (name)))
           from jsonb_array_elements($1) o
           join %2$s t on t.%3$I = o.value ->> ''key''
          where o.value ->> ''op'' = ''update''
          order by t.id', hook, d.table_name::regclass, internal.promotion_key_column(d)) using mine;
    end if;
    if d.max_count is not null and mine @> '[{"op": "create"}]' then
      perform pg_advisory_xact_lock(73054420, hashtext(d.kind));
    end if;
    execute format(
      'select from %1$s t where t.%2$I in (select o.value ->> ''key'' from jsonb_array_elements($1) o) order by t.id '
      'for no key update',
      d.table_name::regclass, internal.promotion_key_column(d)) using mine;
  end loop;
  for composed in
    select c.* from internal.composed_definitions c
     where c.promoted_as in (select o.value ->> 'kind' from jsonb_array_elements(promotion_lock.todo) o)
     order by c.create_order, c.kind
  loop
    perform internal.promotion_composed_lock(composed.kind, array(
      select o.value ->> 'key' from jsonb_array_elements(promotion_lock.todo) o
       where o.value ->> 'kind' = composed.promoted_as));
  end loop;
end $$;
comment on function internal.promotion_lock is
  'Locks what a plan changes: rows against changes and deletions, and kinds of which it creates rows against creations,
   until the transaction ends.';

create or replace function internal.promotion_blocked(kind text, key text, status int, code text, reason text)
returns void
language sql volatile
return internal.fail(promotion_blocked.status,
                     case promotion_blocked.status when 400 then 'INVALID_BODY' else 'PLAN_BLOCKED' end,
                     format('%s %s: %s', promotion_blocked.kind, left(promotion_blocked.key, 100),
                            promotion_blocked.reason),
                     json_build_object('kind', promotion_blocked.kind, 'key', promotion_blocked.key,
                                       'code', promotion_blocked.code, 'reason', promotion_blocked.reason));
comment on function internal.promotion_blocked is
  'Refuses a plan because of one row: 400 INVALID_BODY or 409 PLAN_BLOCKED with details {kind, key, code, reason}.';

create or replace function internal.promotion_refused(state text, said text, detail text, found_constraint text,
                                                      found_table text, out status int, out code text, out reason text)
language plpgsql stable as $$
declare
  refusal text[];
begin
  if promotion_refused.state = 'TR000' then
    promotion_refused.status := promotion_refused.detail::json ->> 'status';
    promotion_refused.code := promotion_refused.detail::json ->> 'code';
    promotion_refused.reason := promotion_refused.said;
  elsif promotion_refused.state like '23%' then
    refusal := (select regexp_match(obj_description(c.oid, 'pg_constraint'), '^(\d{3}) ([A-Z_]+)([^:]*): (.+)$')
                  from pg_catalog.pg_constraint c
                 where c.conname = promotion_refused.found_constraint
                   and c.conrelid = to_regclass('app.' || quote_ident(promotion_refused.found_table)));
    promotion_refused.status := coalesce(refusal[1], '400');
    promotion_refused.code := coalesce(refusal[2], 'VALIDATION_ERROR');
    promotion_refused.reason := coalesce(trim(refusal[3] || ' ' || refusal[4]), 'The database refuses this row.');
  else
    promotion_refused.status := 400;
    promotion_refused.code := 'VALIDATION_ERROR';
    promotion_refused.reason := 'A value cannot be stored.';
  end if;
end $$;
comment on function internal.promotion_refused is
  'What an error that a row has caused says: status, code and reason of the refusal.';

create or replace function internal.promotion_step(d internal.definitions, composed internal.composed_definitions,
                                                   step jsonb, is_rehearsal boolean)
returns boolean
language plpgsql volatile as $$
declare
  op constant text := promotion_step.step ->> 'op';
  key constant text := promotion_step.step ->> 'key';
  wanted jsonb := promotion_step.step -> 'wanted';
  rehearsal regprocedure;
  before jsonb;
begin
  if (promotion_step.composed).kind is not null then
    if op = 'update' then
      wanted := internal.promotion_merged((promotion_step.composed).kind, promotion_step.step -> 'was', wanted);
    end if;
    rehearsal := to_regprocedure(format('internal.%I(text,text,jsonb,jsonb)',
                                        'promotion_rehearse__' || (promotion_step.composed).kind));
    if promotion_step.is_rehearsal and rehearsal is not null then
      execute format('select %s($1, $2, $3, $4)', rehearsal::regproc) using op, key, wanted,
        promotion_step.step -> 'was';
      return true;
    end if;
    perform internal.promotion_composed_write((promotion_step.composed).kind, op, key, wanted);
    return not promotion_step.is_rehearsal or op <> 'update'
           or promotion_step.step -> 'was' is distinct from (
                select r.configuration from internal.promotion_composed_rows((promotion_step.composed).kind) r
                 where r.key = promotion_step.step ->> 'key');
  end if;
  if promotion_step.is_rehearsal and op = 'update' then
    select r.configuration into before from internal.promotion_rows((promotion_step.d).kind, key) r;
  end if;
  perform internal.promotion_write(promotion_step.d, op, key, wanted, promotion_step.step -> 'fields');
  return before is null or before is distinct
    from (select r.configuration from internal.promotion_rows((promotion_step.d).kind, key) r);
end $$;
comment on function internal.promotion_step is
  'Executes one op, on a row of a definition or on something composed; false where a rehearsal sees that an update
   leaves the row as it is. Refuses as the routes of the kind do. What would lock tables is rehearsed by
   internal.promotion_rehearse__<kind>(op, key, wanted, was).';

create or replace function internal.promotion_hook(verb text, promoted_as text) returns void
language plpgsql volatile as $$
declare
  kind constant text := coalesce((select d.kind from internal.definitions d
                                   where d.kept_back is null and internal.promoted_as(d) = promotion_hook.promoted_as),
                                 (select c.kind from internal.composed_definitions c
                                   where c.promoted_as = promotion_hook.promoted_as));
  hook constant regprocedure := case when kind is not null then to_regprocedure(format('internal.%I()',
                                        'promotion_' || promotion_hook.verb || '__' || kind)) end;
begin
  if hook is not null then
    execute format('select %s()', hook::regproc);
  end if;
end $$;
comment on function internal.promotion_hook is
  'Calls internal.promotion_begin__<kind>() before the ops on a kind, or internal.promotion_end__<kind>() after them,
   where there is one. Nothing for null.';

create or replace function internal.promotion_plans_hold() returns void
language sql volatile as $$
  select set_config('app.event_plans_later', 'on', true)
$$;
comment on function internal.promotion_plans_hold is
  'From here on to internal.promotion_plans_release definitions are written without a refresh of the plans of events for
   each.';

create or replace function internal.promotion_plans_release() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  has_changed constant boolean := coalesce(current_setting('app.event_plans_later', true), '') = 'changed';
begin
  perform internal.check_caller('developer', 'plans of events are refreshed by administrators');
  perform set_config('app.event_plans_later', 'off', true);
  if has_changed then
    perform internal.event_plans_refresh();
  end if;
end $$;
comment on function internal.promotion_plans_release is
  'Refreshes the plans of events once, where a definition that they are made of was written since
   internal.promotion_plans_hold.';

create or replace function internal.promotion_run(todo jsonb, is_rehearsal boolean default false,
                                                  invalid_status int default 409)
returns jsonb
language plpgsql volatile as $$
declare
  declared constant jsonb := (select jsonb_object_agg(internal.promoted_as(k), k.kind)
                                from internal.promotion_kinds(null) k);
  d internal.definitions;
  composed internal.composed_definitions;
  of_kind text;
  due jsonb;
  -- the op that a refusal is about
  step jsonb;
  steps constant jsonb[] := array(select o.value
                                    from jsonb_array_elements(promotion_run.todo) with ordinality o (value, n)
                                      order by o.n);
  outcome jsonb[] := '{}';
  state text;
  said text;
  detail text;
  found_constraint text;
  found_table text;
  refused record;
begin
  foreach due in array steps loop
    if of_kind is distinct from due ->> 'kind' then
      perform internal.promotion_hook('end', of_kind);
      perform internal.promotion_plans_release();
      perform internal.promotion_plans_hold();
      of_kind := due ->> 'kind';
      select c.* into composed from internal.composed_definitions c where c.promoted_as = of_kind;
      d := null;
      if composed.kind is null then
        d := internal.definition_of(declared ->> of_kind);
      end if;
      perform internal.promotion_hook('begin', of_kind);
    end if;
    step := due;
    outcome := outcome || jsonb_build_object('is_same',
                                             not internal.promotion_step(d, composed, step,
                                                                         promotion_run.is_rehearsal));
  end loop;
  perform internal.promotion_hook('end', of_kind);
  perform internal.promotion_plans_release();
  return to_jsonb(outcome);
exception when sqlstate 'TR000' or integrity_constraint_violation or data_exception or program_limit_exceeded then
  get stacked diagnostics state = returned_sqlstate, said = message_text, detail = pg_exception_detail,
    found_constraint = constraint_name, found_table = table_name;
  refused := internal.promotion_refused(state, said, detail, found_constraint, found_table);
  perform internal.promotion_blocked(step ->> 'kind', step ->> 'key',
                                     case when refused.status = 400 then promotion_run.invalid_status else 409 end,
                                     refused.code, refused.reason);
end $$;
comment on function internal.promotion_run is
  'Executes the ops of a plan in their order, all or none. Refuses 409 PLAN_BLOCKED for what a row refuses, and
   invalid_status for an invalid value.';

create or replace function internal.promotion_try(step jsonb, is_last boolean) returns jsonb
language plpgsql volatile as $$
declare
  composed internal.composed_definitions;
  d internal.definitions;
  has_changed boolean;
  state text;
  said text;
  detail text;
  found_constraint text;
  found_table text;
  refused record;
begin
  select c.* into composed from internal.composed_definitions c where c.promoted_as = promotion_try.step ->> 'kind';
  if composed.kind is null then
    select k.* into d from internal.promotion_kinds(array[promotion_try.step ->> 'kind']) k;
  end if;
  has_changed := internal.promotion_step(d, composed, promotion_try.step, true);
  if promotion_try.is_last then
    perform internal.promotion_hook('end', promotion_try.step ->> 'kind');
  end if;
  return jsonb_build_object('is_same', not has_changed);
exception when sqlstate 'TR000' or integrity_constraint_violation or data_exception or program_limit_exceeded then
  get stacked diagnostics state = returned_sqlstate, said = message_text, detail = pg_exception_detail,
    found_constraint = constraint_name, found_table = table_name;
  refused := internal.promotion_refused(state, said, detail, found_constraint, found_table);
  return jsonb_build_object('code', refused.code, 'reason', refused.reason);
end $$;
comment on function internal.promotion_try is
  'Executes one op in a rehearsal, and after the last one of a kind what the kind does then: {is_same}, or {code,
   reason} where it is refused, and undone.';

create or replace function internal.promotion_apply(source_project_id uuid, document jsonb, kinds jsonb, keys jsonb,
                                                    prune boolean, plan_hash text, confirm text, invalid_status int)
returns api.reply
language plpgsql volatile as $$
declare
  planned record;
  blocked json;
  needs_confirm boolean;
begin
  if not internal.try_advisory_lock('promotion') then
    perform internal.fail(409, 'ALREADY_RUNNING',
                          'Another plan is being applied to this project: wait until it has ended.');
  end if;
  for turn in 1 .. 2 loop
    select p.plan, p.todo into planned
      from internal.promotion_plan(promotion_apply.source_project_id, promotion_apply.document, promotion_apply.kinds,
                                   promotion_apply.keys,
                                   promotion_apply.prune, false) p;
    if turn = 1 and planned.plan ->> 'plan_hash' <> promotion_apply.plan_hash then
      -- the hash of a plan in which a rehearsal found something that is refused
      select p.plan, p.todo into planned
        from internal.promotion_plan(promotion_apply.source_project_id, promotion_apply.document, promotion_apply.kinds,
                                     promotion_apply.keys,
                                     promotion_apply.prune, true) p;
    end if;
    if planned.plan ->> 'plan_hash' <> promotion_apply.plan_hash then
      perform internal.fail(409, 'PLAN_CHANGED', 'The definitions have changed since this plan. Plan again.');
    end if;
    blocked := planned.plan -> 'blocked' -> 0;
    if blocked is not null then
      perform internal.promotion_blocked(blocked ->> 'kind', blocked ->> 'key', 409, blocked ->> 'code',
                                         blocked ->> 'reason');
    end if;
    needs_confirm := planned.todo @> '[{"op": "delete"}]' or exists (
      select from jsonb_array_elements(planned.todo) o
        join internal.composed_definitions c on c.promoted_as = o.value ->> 'kind' and c.is_confirmed);
    if promotion_apply.confirm <> (planned.plan ->> 'plan_hash') then
      perform internal.fail(409, 'CONFIRM_MISMATCH', 'confirm must be the plan_hash of the plan that is applied.');
    elsif needs_confirm and promotion_apply.confirm is null then
      return internal.reply(200, json_build_object('plan_hash', planned.plan ->> 'plan_hash', 'confirm_required', true,
                                                   'ops', null));
    end if;
    if turn = 1 then
      -- read again under the locks: what was committed in between changes the plan
      perform internal.promotion_lock(planned.todo);
    end if;
  end loop;
  perform internal.promotion_run(planned.todo, invalid_status => promotion_apply.invalid_status);
  perform internal.audit_act('promotion.apply', 'promotion', planned.plan ->> 'plan_hash', json_build_object(
    'source_project_id', json_build_array(null, promotion_apply.source_project_id),
      'ops', json_build_array(null, jsonb_array_length(planned.todo))), 202);
  return internal.reply(200, json_build_object('plan_hash', planned.plan ->> 'plan_hash', 'confirm_required', false,
                                               'ops', jsonb_array_length(planned.todo)));
end $$;
comment on function internal.promotion_apply is
  'Applies a plan in this transaction, or nothing of it: {plan_hash, confirm_required, ops}. With confirm_required
   nothing was applied yet. plan_hash null means the plan of this moment. Refuses 409 ALREADY_RUNNING, PLAN_CHANGED,
   PLAN_BLOCKED, CONFIRM_MISMATCH, 400 INVALID_BODY.';

create or replace function api.promotion_apply(source_project_id uuid, document text, plan_hash text,
                                               confirm text default null, kinds jsonb default null,
                                               keys jsonb default '{}', prune boolean default false)
returns api.reply
language sql volatile as $$
  select internal.promotion_apply(promotion_apply.source_project_id, promotion_apply.document::jsonb -> 'data',
                                  promotion_apply.kinds, promotion_apply.keys,
                                  promotion_apply.prune, promotion_apply.plan_hash, promotion_apply.confirm, 409)
$$;
comment on function api.promotion_apply is
  'Applies the plan of this hash to this project, all or nothing. Refuses 409 ALREADY_RUNNING, PLAN_CHANGED,
   PLAN_BLOCKED, CONFIRM_MISMATCH.';

create or replace function api.promotion_import(document text, plan_hash text default null, confirm text default null,
                                                kinds jsonb default null, keys jsonb default '{}',
                                                prune boolean default false, dry_run boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  sent constant jsonb := promotion_import.document::jsonb;
begin
  perform internal.promotion_document_check(sent);
  if promotion_import.dry_run then
    return api.promotion_plan(null, jsonb_build_object('data', sent)::text, promotion_import.kinds,
                              promotion_import.keys, promotion_import.prune);
  end if;
  return internal.promotion_apply(null, sent, promotion_import.kinds, promotion_import.keys, promotion_import.prune,
                                  promotion_import.plan_hash,
                                  promotion_import.confirm, 400);
end $$;
comment on function api.promotion_import is
  'The plan of a document for this project, or with dry_run false: applies it, all or nothing; plan_hash, where it is
   given, must be that of the plan. Refuses 400 INVALID_BODY, 409 ALREADY_RUNNING, PLAN_CHANGED, PLAN_BLOCKED,
   CONFIRM_MISMATCH, LIMIT_REACHED.';
