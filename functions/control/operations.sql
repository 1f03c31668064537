-- Asynchronous work that a developer may poll: an area starts an operation in the transaction that queues its job, and
-- the job updates its state.
create or replace function internal.operation_json(o app.operations) returns json
language sql stable as $$
  select internal.json_merge(
    json_build_object(
      'operation_id', (operation_json.o).id, 'type', (operation_json.o).type, 'status', (operation_json.o).status,
      'progress', case when (operation_json.o).total is not null
                       then json_build_object('done', coalesce((operation_json.o).done, 0),
                                              'total', (operation_json.o).total) end,
      'confirm_required', (operation_json.o).confirm_required),
    internal.json_merge(
      case when (operation_json.o).plan_hash is not null
             then json_build_object('plan_hash', (operation_json.o).plan_hash) else '{}' end,
      json_build_object(
        'result', (operation_json.o).result, 'failed_reason', (operation_json.o).failed_reason,
        'created_at', internal.iso((operation_json.o).created_at),
        'updated_at', internal.iso((operation_json.o).updated_at))))
$$;
comment on function internal.operation_json is 'An operation as responses show it to a polling client.';

create or replace function internal.operation_start(project_id uuid, type text, task text, input jsonb default '{}')
returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  operation_id uuid;
begin
  perform from app.projects p where p.id = operation_start.project_id
    and p.organization_id = any (internal.organization_ids('developer')) for key share;
  if not found then
    raise exception 'operations are started on the caller''s own projects only';
  end if;
  insert into app.operations (project_id, type, input)
  values (operation_start.project_id, operation_start.type, operation_start.input)
  returning id into operation_id;
  perform internal.add_job(operation_start.task, json_build_object('operation_id', operation_id),
                           'operation ' || operation_id,
                           internal.job_lane(case operation_start.task when 'collections__index' then 'indexes'
                                                  else 'operations' end,
                                             operation_start.project_id));
  return operation_id;
end $$;
comment on function internal.operation_start is
  'Creates an operation and queues its job {operation_id}, in this transaction. Granted to nobody: areas call it from
   their own functions.';

create or replace function internal.operation_request(project_id uuid, type text, input jsonb) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  area constant text := split_part(operation_request.type, '.', 1);
  operation_id uuid;
begin
  if operation_request.type is null or operation_request.type not in ('achievements.backfill', 'challenges.recompute',
                                                                      'events.delete', 'events.replay',
                                                                      'leaderboards.rebuild') then
    raise exception 'no such operation: %', operation_request.type;
  end if;
  operation_id := internal.operation_start(operation_request.project_id, operation_request.type,
                                           replace(operation_request.type, '.', '__'),
                                           operation_request.input);
  if area = 'events' then
    perform internal.audit(operation_request.type, area, operation_id::text,
                           internal.operation_input_changes(operation_request.input), 202,
                           operation_request.project_id);
  else
    -- the others are about one definition: achievement_id, challenge_id, leaderboard_id
    perform internal.audit(operation_request.type, area,
                           (operation_request.input ->> (rtrim(area, 's') || '_id'))::uuid::text,
                           case area when 'achievements' then operation_request.input::json else '{}' end, 202);
  end if;
  return operation_id;
end $$;
comment on function internal.operation_request is
  'Starts an operation on one of the caller''s own projects: internal.operation_start queues its job, named as its type
   (events__replay). Audited.';

create or replace function api.operation_request(project_id uuid, type text, input jsonb) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(operation_request.project_id);
begin
  return internal.reply(202, json_build_object(
    'operation_id', internal.operation_request(project.id, operation_request.type, operation_request.input),
      'status', 'queued'));
end $$;
comment on function api.operation_request is
  'Queues an operation, whose input the project''s database has checked: 202 {operation_id, status}. Refuses 404
   NOT_FOUND.';

create or replace function api.operation_get(project_id uuid, operation_id uuid) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(operation_get.project_id);
  operation app.operations;
begin
  select o.* into operation from app.operations o where o.id = operation_get.operation_id and o.project_id = project.id;
  perform internal.check_found(operation.id is not null, 'operation');
  return internal.reply(200, internal.operation_json(operation));
end $$;
comment on function api.operation_get is
  'The state of an operation. Refuses 404 NOT_FOUND, also for an operation of another project.';

select internal.list_declare('operations_page', null::app.operations, 'operation_json', '{created_at,id}',
                             required => '{project_id}',
                             filters => '{type,status}');

create or replace function api.operation_list(page_limit int default 50, page_offset int default 0,
                                              type text default null, status text default null)
returns api.reply
language sql stable as $$
  select internal.operations_page((internal.own_project(internal.project_id())).id, operation_list.type,
                                  operation_list.status,
                                  operation_list.page_offset, operation_list.page_limit)
$$;
comment on function api.operation_list is
  'Operations of a project, newest first, all or those of one type or status. Refuses 404 NOT_FOUND.';

create or replace function internal.operation_cancel(operation_id uuid) returns app.operations
language plpgsql volatile security definer set search_path = '' as $$
declare
  before app.operations;
  operation app.operations;
begin
  -- the row lock decides between this cancellation and the worker that begins the operation
  select o.* into before
    from app.operations o
    join app.projects p on p.id = o.project_id and p.organization_id = any (internal.organization_ids('developer'))
      and p.deleted_at is null
   where o.id = operation_cancel.operation_id and o.project_id = internal.project_id()
     for update of o;
  perform internal.check_found(before.id is not null, 'operation');
  if before.status not in ('queued', 'waiting') then
    perform internal.fail(409, 'OPERATION_NOT_CANCELLABLE',
                          'This operation has begun or ended already: only a queued one can be cancelled.',
                          json_build_object('status', before.status));
  end if;
  update app.operations o set status = 'cancelled', updated_at = internal.now()
   where o.id = before.id
  returning o.* into operation;
  perform internal.audit('operations.cancel', 'operations', operation.id::text,
                         json_build_object('status', json_build_array(before.status, operation.status)), 200,
                         operation.project_id);
  return operation;
end $$;
comment on function internal.operation_cancel is
  'Cancels an operation that has not begun. Refuses 404 NOT_FOUND, 409 OPERATION_NOT_CANCELLABLE. Locks the operation,
   as the worker that begins it does.';

create or replace function api.operation_cancel(operation_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.operation_json(internal.operation_cancel(operation_cancel.operation_id)))
$$;
comment on function api.operation_cancel is
  'Cancels an operation that is queued or waiting. Refuses 404 NOT_FOUND, also for an operation of another project, 409
   OPERATION_NOT_CANCELLABLE.';

create or replace function api.operation_begin(operation_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  operation app.operations;
begin
  update app.operations o
     set status = 'running', updated_at = internal.now()
   where o.id = operation_begin.operation_id and o.status in ('queued', 'running')
     and exists (select from app.projects p where p.id = o.project_id and p.deleted_at is null)
  returning o.* into operation;
  return internal.reply(200, case when operation.id is not null then json_build_object(
    'operation_id', operation.id, 'project_id', operation.project_id, 'type', operation.type, 'input', operation.input,
    'done', operation.done, 'total', operation.total) end);
end $$;
comment on function api.operation_begin is
  'For the job: begins a queued operation, or continues one whose worker died; null when it is cancelled or has ended,
   or its project was deleted.';

create or replace function api.operation_progress(operation_id uuid, done bigint, total bigint default null)
returns api.reply
language plpgsql volatile as $$
begin
  update app.operations o
     set done = operation_progress.done, total = coalesce(operation_progress.total, o.total),
       updated_at = internal.now()
   where o.id = operation_progress.operation_id and o.status = 'running';
  return internal.reply(200, to_json(found));
end $$;
comment on function api.operation_progress is
  'For the job: records its progress. false when the operation is no longer running, so that the job can stop.';

create or replace function api.operation_end(operation_id uuid, result json default null,
                                             failed_reason text default null)
returns api.reply
language plpgsql volatile as $$
begin
  update app.operations o
     set status = case when operation_end.failed_reason is null then 'succeeded' else 'failed' end,
         done = case when operation_end.failed_reason is null then coalesce(o.total, o.done) else o.done end,
         result = operation_end.result, failed_reason = operation_end.failed_reason, updated_at = internal.now()
   where o.id = operation_end.operation_id
     -- a job that never got to begin it may have exhausted its attempts
     and (o.status = 'running' or o.status = 'queued' and operation_end.failed_reason is not null);
  return internal.reply(200, to_json(found));
end $$;
comment on function api.operation_end is
  'For the job: ends the operation, running or still queued, with a result, or as failed with a reason that the
   developer may read.';

create or replace function internal.operation_input_changes(input jsonb) returns json
language sql immutable as $$
  select json_object_agg(i.key, json_build_array(null, i.value) order by i.key)
    from jsonb_each(jsonb_strip_nulls(operation_input_changes.input)) as i
$$;
comment on function internal.operation_input_changes is
  'The input of an operation in the form of changes in the audit trail: {field: [null, value]}.';
