-- Apply operations of monetization: an operation with its steps and its position in them. The job that runs it records
-- each step before and after its call of the provider, so that another worker continues at the same call.
comment on index app.operations_one_monetization_apply is
  '409 ALREADY_RUNNING: An apply of this project runs, or waits for its confirmation. Poll, confirm or cancel its '
  'operation.';

create or replace function internal.monetization_wait_seconds() returns int
language sql immutable parallel safe
return 86400;
comment on function internal.monetization_wait_seconds is 'How long an apply waits for its confirmation: 24 hours.';

create or replace function internal.monetization_apply_json(operation_id uuid, status text) returns json
language sql stable as $$
  select json_build_object(
    'provider', 'revenuecat', 'operation_id', o.id, 'status', monetization_apply_json.status, 'plan_hash', o.plan_hash,
    'confirm_required', jsonb_array_length(a.steps) > a.additive and not a.is_confirmed,
    'gated', (select coalesce(json_agg(json_build_object('op', s.value -> 'op', 'object_type', s.value -> 'object_type',
                                                         'identifier', s.value -> 'identifier',
                                                         'reason', s.value -> 'reason') order by s.n), '[]')
                from jsonb_array_elements(a.steps) with ordinality as s (value, n)
               where s.n > a.additive),
    'refused', o.input -> 'refused')
    from app.operations o
    join app.monetization_applies a on a.operation_id = o.id
   where o.id = monetization_apply_json.operation_id
$$;
comment on function internal.monetization_apply_json is 'An apply operation in the answer that starts or confirms it.';

create or replace function internal.monetization_apply_end_waiting(operation_id uuid) returns void
language sql volatile as $$
  update app.operations o
     set status = 'failed', confirm_required = false,
       failed_reason = 'CONFIRMATION_EXPIRED: nobody confirmed within 24 hours.', updated_at = internal.now()
   where o.id = monetization_apply_end_waiting.operation_id and o.status = 'waiting';
  update app.monetization_applies a set expired_at = internal.now()
    where a.operation_id = monetization_apply_end_waiting.operation_id
$$;
comment on function internal.monetization_apply_end_waiting is
  'Ends an apply that nobody confirmed in time. Granted to nobody.';

create or replace function internal.monetization_apply_confirm(operation app.operations, apply app.monetization_applies,
                                                               plan_hash text, confirm text, current_hash text,
                                                               stated jsonb)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  open_id constant uuid := (monetization_apply_confirm.operation).id;
  is_waiting constant boolean := (monetization_apply_confirm.operation).status = 'waiting';
begin
  if monetization_apply_confirm.confirm is null
     or monetization_apply_confirm.confirm = monetization_apply_confirm.plan_hash
        and not (monetization_apply_confirm.apply).is_confirmed
        and jsonb_array_length((monetization_apply_confirm.apply).steps) =
          (monetization_apply_confirm.apply).additive then
    perform internal.fail(409, 'ALREADY_RUNNING',
                          'An apply of this project runs, or waits for its confirmation. Poll, confirm or cancel its '
                          'operation.',
                          json_build_object('operation_id', open_id));
  elsif monetization_apply_confirm.confirm <> (monetization_apply_confirm.operation).plan_hash
        or monetization_apply_confirm.plan_hash <> (monetization_apply_confirm.operation).plan_hash then
    perform internal.fail(409, 'CONFIRM_MISMATCH',
                          'confirm must be the plan_hash of the apply that waits: it is in details.',
                          json_build_object('operation_id', open_id,
                                            'plan_hash', (monetization_apply_confirm.operation).plan_hash));
  elsif not (monetization_apply_confirm.operation).input @> monetization_apply_confirm.stated then
    perform internal.fail(409, 'CONFIRM_MISMATCH',
                          'The apply that waits began with another allow_detach_live or reconcile: leave them out, or '
                          'cancel its operation.',
                          json_build_object('operation_id', open_id));
  elsif is_waiting and (monetization_apply_confirm.apply).waiting_hash <> monetization_apply_confirm.current_hash then
    perform internal.fail(409, 'PLAN_CHANGED',
                          'The definitions or the provider have changed since the apply began to wait. Cancel its '
                          'operation and plan again.',
                          json_build_object('operation_id', open_id));
  elsif (monetization_apply_confirm.apply).is_confirmed
    and (monetization_apply_confirm.apply).confirm_sent_at is null then
    perform internal.fail(409, 'ALREADY_RUNNING', 'An apply of this project runs: wait until it has ended.',
                          json_build_object('operation_id', open_id));
  end if;
  if not (monetization_apply_confirm.apply).is_confirmed then
    update app.monetization_applies a set is_confirmed = true, confirm_sent_at = internal.now()
      where a.operation_id = open_id;
    update app.operations o
       set status = case when is_waiting then 'queued' else o.status end, confirm_required = false,
         updated_at = internal.now()
     where o.id = open_id;
    if is_waiting then
      perform internal.add_job('monetization__apply', json_build_object('operation_id', open_id),
                               'operation ' || open_id,
                               internal.job_lane('operations', (monetization_apply_confirm.operation).project_id));
    end if;
    perform internal.audit('monetization.confirm', 'monetization', open_id::text,
                           json_build_object('plan_hash', json_build_array(null, monetization_apply_confirm.plan_hash)),
                           202,
                           (monetization_apply_confirm.operation).project_id);
  end if;
  return internal.reply(202, internal.monetization_apply_json(open_id, 'confirm_sent'));
end $$;
comment on function internal.monetization_apply_confirm is
  'A call while an apply is open: confirms it, or refuses 409 ALREADY_RUNNING, CONFIRM_MISMATCH, PLAN_CHANGED. The
   caller holds the lock of the operation. Repeating a confirmation returns the same.';

create or replace function internal.monetization_apply_open(project_id uuid, plan_hash text, confirm text,
                                                            decided jsonb, input jsonb)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  steps constant jsonb := (monetization_apply_open.decided -> 'additive')
    || (monetization_apply_open.decided -> 'gated');
  n_additive constant int := jsonb_array_length(monetization_apply_open.decided -> 'additive');
  is_ready constant boolean := monetization_apply_open.confirm is not null
    and not (monetization_apply_open.decided ->> 'always_waits')::boolean;
  started uuid;
begin
  -- refuses projects of other developers; the unique index refuses a second apply
  started := internal.operation_start(
    monetization_apply_open.project_id, 'monetization.apply', 'monetization__apply',
    monetization_apply_open.input
      || jsonb_build_object('project_id', monetization_apply_open.project_id,
                            'refused', monetization_apply_open.decided -> 'refused'));
  insert into app.monetization_applies (operation_id, steps, additive, reconcile, is_confirmed)
  values (started, steps, n_additive, monetization_apply_open.input ->> 'reconcile', is_ready);
  update app.operations o
     set plan_hash = monetization_apply_open.plan_hash,
       confirm_required = not is_ready and jsonb_array_length(steps) > n_additive,
         done = 0, total = jsonb_array_length(steps)
   where o.id = started;
  perform internal.audit('monetization.apply', 'monetization', started::text,
                         json_build_object('plan_hash', json_build_array(null, monetization_apply_open.plan_hash),
                                           'reconcile', json_build_array(null,
                                                                         monetization_apply_open.input -> 'reconcile'),
                                           'allow_detach_live', json_build_array(null,
                                             monetization_apply_open.input -> 'allow_detach_live')),
                         202, monetization_apply_open.project_id);
  return internal.reply(202, internal.monetization_apply_json(started, 'started'));
end $$;
comment on function internal.monetization_apply_open is
  'Creates an apply operation with its steps and queues its job. Refuses 409 ALREADY_RUNNING, also the second of two at
   once. Audited.';

create or replace function internal.monetization_apply_request(project_id uuid, plan_hash text, confirm text,
                                                               decided jsonb, input jsonb, stated jsonb)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  current_hash constant text := monetization_apply_request.decided ->> 'plan_hash';
  operation app.operations;
  apply app.monetization_applies;
begin
  if not exists (select from app.projects p
                  where p.id = monetization_apply_request.project_id
                    and p.organization_id = any (internal.organization_ids('developer')) and p.deleted_at is null) then
    raise exception 'applies are started in the caller''s own projects only';
  end if;
  select o.* into operation
    from app.operations o
   where o.project_id = monetization_apply_request.project_id and o.type = 'monetization.apply'
     and o.status in ('queued', 'running', 'waiting')
     for update;
  if operation.id is not null then
    select a.* into apply from app.monetization_applies a where a.operation_id = operation.id;
    if operation.status <> 'waiting'
      or apply.waiting_since > internal.now() - make_interval(secs => internal.monetization_wait_seconds()) then
      return internal.monetization_apply_confirm(operation, apply, monetization_apply_request.plan_hash,
                                                 monetization_apply_request.confirm, current_hash,
                                                 monetization_apply_request.stated);
    end if;
    perform internal.monetization_apply_end_waiting(operation.id);
  end if;
  if monetization_apply_request.confirm is not null then
    -- the first confirmation that comes too late is told so; the next one begins anew
    update app.monetization_applies a
       set is_expiry_known = true
      from app.operations o
     where o.id = a.operation_id and o.project_id = monetization_apply_request.project_id
       and o.plan_hash = monetization_apply_request.plan_hash
       and a.expired_at is not null and not a.is_expiry_known;
    if found then
      return internal.refuse(409, 'CONFIRMATION_EXPIRED',
                             'The apply waited 24 hours for its confirmation and has ended. Plan and apply again.');
    elsif monetization_apply_request.confirm <> monetization_apply_request.plan_hash then
      perform internal.fail(409, 'CONFIRM_MISMATCH', 'confirm must be the plan_hash of the plan that is applied.');
    end if;
  end if;
  if current_hash <> monetization_apply_request.plan_hash then
    perform internal.fail(409, 'PLAN_CHANGED',
                          'The definitions or the provider have changed since this plan. Plan again.');
  end if;
  return internal.monetization_apply_open(monetization_apply_request.project_id, monetization_apply_request.plan_hash,
                                          monetization_apply_request.confirm,
                                          monetization_apply_request.decided, monetization_apply_request.input);
end $$;
comment on function internal.monetization_apply_request is
  'Starts an apply or confirms the one that waits. Refuses 409 ALREADY_RUNNING, CONFIRM_MISMATCH, PLAN_CHANGED, and
   returns 409 CONFIRMATION_EXPIRED, which ends the one that waited. Locks the open operation.';

create or replace function api.monetization_apply_start(project_id uuid, plan_hash text, confirm text, decided jsonb,
                                                        input jsonb, stated jsonb)
returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(monetization_apply_start.project_id);
begin
  return internal.monetization_apply_request(project.id, monetization_apply_start.plan_hash,
                                             monetization_apply_start.confirm, monetization_apply_start.decided,
                                             monetization_apply_start.input, monetization_apply_start.stated);
end $$;
comment on function api.monetization_apply_start is
  'An apply, whose plan the project''s database has computed as decided {plan_hash, additive, gated, always_waits,
   refused}: 202. stated has the options of the request itself: a confirmation may leave them out, but not change them.
   Refuses 404 NOT_FOUND and the 409s of internal.monetization_apply_request.';

create or replace function api.monetization_apply_take(operation_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  taken app.monetization_applies;
begin
  update app.monetization_applies a set run = a.run + 1 where a.operation_id = monetization_apply_take.operation_id
    returning a.* into taken;
  return internal.reply(200, json_build_object(
    'steps', taken.steps, 'additive', taken.additive, 'reconcile', taken.reconcile, 'is_checked', taken.is_checked,
      'is_confirmed', taken.is_confirmed,
    'position', taken.position, 'begun', taken.begun, 'run', taken.run, 'waiting_hash', taken.waiting_hash,
    'plan_hash', (select o.plan_hash from app.operations o where o.id = taken.operation_id)));
end $$;
comment on function api.monetization_apply_take is
  'For the job: the apply as it stands, and the number of this run, which takes it from every earlier one.';

create or replace function internal.monetization_apply_held(operation_id uuid, run int) returns boolean
language sql volatile as $$
  -- the lock keeps a cancellation and another run out until the step is recorded
  select exists (
    select from app.operations o
      join app.monetization_applies a on a.operation_id = o.id
     where o.id = monetization_apply_held.operation_id and o.status = 'running' and a.run = monetization_apply_held.run
       for update)
$$;
comment on function internal.monetization_apply_held is
  'Whether an apply still runs and this run is its newest. Locks both rows.';

create or replace function api.monetization_apply_mark(operation_id uuid, run int, is_checked boolean default null,
                                                       begun int default null, done int default null)
returns api.reply
language plpgsql volatile as $$
declare
  is_held constant boolean := internal.monetization_apply_held(monetization_apply_mark.operation_id,
                                                               monetization_apply_mark.run);
begin
  if is_held then
    update app.monetization_applies a
       set is_checked = coalesce(monetization_apply_mark.is_checked, a.is_checked),
         begun = coalesce(monetization_apply_mark.begun, a.begun),
           position = coalesce(monetization_apply_mark.done, a.position)
     where a.operation_id = monetization_apply_mark.operation_id;
    update app.operations o
       set done = coalesce(monetization_apply_mark.done, o.done), updated_at = internal.now()
     where o.id = monetization_apply_mark.operation_id;
  end if;
  return internal.reply(200, to_json(is_held));
end $$;
comment on function api.monetization_apply_mark is
  'For the job: records that the plan was checked, that the call of a step begins, or how many steps are done. false
   when the operation was ended or another run has taken it, so that the job stops.';

create or replace function api.monetization_apply_wait(operation_id uuid, run int, waiting_hash text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  held boolean;
  ready boolean;
begin
  perform internal.check_caller('worker', 'an apply is made to wait by workers');
  held := internal.monetization_apply_held(monetization_apply_wait.operation_id, monetization_apply_wait.run);
  select a.is_confirmed into ready from app.monetization_applies a
   where a.operation_id = monetization_apply_wait.operation_id;
  if held and not ready then
    update app.monetization_applies a
       set waiting_hash = monetization_apply_wait.waiting_hash, waiting_since = internal.now()
     where a.operation_id = monetization_apply_wait.operation_id;
    update app.operations o set status = 'waiting', confirm_required = true, updated_at = internal.now()
      where o.id = monetization_apply_wait.operation_id;
    perform graphile_worker.add_job('monetization__expire',
                                    payload := json_build_object('operation_id', monetization_apply_wait.operation_id),
                                    job_key := 'monetization expiry ' || monetization_apply_wait.operation_id,
                                    max_attempts := 25,
                                    run_at := internal.now() + make_interval(
                                      secs => internal.monetization_wait_seconds()));
  end if;
  return internal.reply(200, json_build_object('is_held', held, 'is_confirmed', ready));
end $$;
comment on function api.monetization_apply_wait is
  'For the job, when only gated steps remain: {is_held, is_confirmed}. Lets the apply wait for its confirmation for 24
   hours, unless it has been confirmed already: where it is held and not confirmed, the operation waits from now on and
   the job ends.';

create or replace function api.monetization_apply_expire(operation_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_over boolean;
begin
  perform internal.check_caller('worker', 'an apply that nobody confirmed is ended by workers');
  select true into is_over
    from app.operations o
    join app.monetization_applies a on a.operation_id = o.id
   where o.id = monetization_apply_expire.operation_id and o.status = 'waiting'
     and a.waiting_since <= internal.now() - make_interval(secs => internal.monetization_wait_seconds())
     for update of o;
  if is_over then
    perform internal.monetization_apply_end_waiting(monetization_apply_expire.operation_id);
  end if;
  return internal.reply(200, to_json(coalesce(is_over, false)));
end $$;
comment on function api.monetization_apply_expire is
  'For the job: ends an apply that has waited for 24 hours; false when it does not wait, or not that long.';
