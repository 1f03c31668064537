-- Asynchronous work that a developer may poll: an area starts an operation in the transaction that queues its job, and the job
-- moves it.
create or replace function internal.operation_json(o app.operations) returns json
language sql stable as $$
  select internal.json_merge(
    json_build_object(
      'operation_id', (operation_json.o).id, 'type', (operation_json.o).type, 'status', (operation_json.o).status,
      'progress', case when (operation_json.o).total is not null
                       then json_build_object('done', coalesce((operation_json.o).done, 0), 'total', (operation_json.o).total) end,
      'confirm_required', (operation_json.o).confirm_required),
    internal.json_merge(
      case when (operation_json.o).plan_hash is not null then json_build_object('plan_hash', (operation_json.o).plan_hash) else '{}' end,
      json_build_object(
        'result', (operation_json.o).result, 'failed_reason', (operation_json.o).failed_reason,
        'created_at', internal.iso((operation_json.o).created_at), 'updated_at', internal.iso((operation_json.o).updated_at))))
$$;
comment on function internal.operation_json is 'An operation as its polling shows it. Supplement A6.';

create or replace function internal.operation_start(project_id uuid, type text, task text, input jsonb default '{}') returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  operation_id uuid;
begin
  if not exists (select from app.projects p where p.id = operation_start.project_id and p.developer_id = internal.developer_id()) then
    raise exception 'operations are started on the caller''s own projects only';
  end if;
  insert into app.operations (project_id, type, input)
  values (operation_start.project_id, operation_start.type, operation_start.input)
  returning id into operation_id;
  perform internal.add_job(operation_start.task, json_build_object('operation_id', operation_id), 'operation ' || operation_id);
  return operation_id;
end $$;
comment on function internal.operation_start is
  'Makes an operation and queues its job {operation_id}, in this transaction. Granted to nobody: areas call it from their own functions.';

create or replace function api.operation_get(project_id uuid, operation_id uuid) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(operation_get.project_id);
  operation app.operations;
begin
  select o.* into operation from app.operations o where o.id = operation_get.operation_id and o.project_id = project.id;
  if operation.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such operation.');
  end if;
  return internal.reply(200, internal.operation_json(operation));
end $$;
comment on function api.operation_get is 'How an operation stands. Refuses 404 NOT_FOUND, also for another project''s.';

create or replace function api.operation_begin(operation_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  operation app.operations;
begin
  update app.operations o
     set status = 'running', updated_at = internal.now()
   where o.id = operation_begin.operation_id and o.status in ('queued', 'running')
  returning o.* into operation;
  return internal.reply(200, case when operation.id is not null then json_build_object(
    'operation_id', operation.id, 'project_id', operation.project_id, 'type', operation.type, 'input', operation.input,
    'done', operation.done, 'total', operation.total) end);
end $$;
comment on function api.operation_begin is 'For the job: takes a queued operation, or one whose worker died; null when it is cancelled or over.';

create or replace function api.operation_progress(operation_id uuid, done bigint, total bigint default null) returns api.reply
language plpgsql volatile as $$
begin
  update app.operations o
     set done = operation_progress.done, total = coalesce(operation_progress.total, o.total), updated_at = internal.now()
   where o.id = operation_progress.operation_id and o.status = 'running';
  return internal.reply(200, to_json(found));
end $$;
comment on function api.operation_progress is 'For the job: how far it has come. false when the operation runs no more, so that the job can stop.';

create or replace function api.operation_end(operation_id uuid, result json default null, failed_reason text default null) returns api.reply
language plpgsql volatile as $$
begin
  update app.operations o
     set status = case when operation_end.failed_reason is null then 'succeeded' else 'failed' end,
         done = case when operation_end.failed_reason is null then coalesce(o.total, o.done) else o.done end,
         result = operation_end.result, failed_reason = operation_end.failed_reason, updated_at = internal.now()
   where o.id = operation_end.operation_id and o.status = 'running';
  return internal.reply(200, to_json(found));
end $$;
comment on function api.operation_end is 'For the job: it succeeded with a result, or failed for a reason that the developer may read.';
