-- Operations on a project's events: control stores them, their jobs work in the project's own database.
create or replace function internal.events_operation(project_id uuid, type text, input jsonb) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  operation_id uuid;
begin
  if events_operation.type is null or events_operation.type not in ('events.delete', 'events.replay') then
    raise exception 'no such operation on events: %', events_operation.type;
  end if;
  operation_id := internal.operation_start(events_operation.project_id, events_operation.type,
                                           replace(events_operation.type, '.', '__'), events_operation.input);
  perform internal.audit(events_operation.type, 'events', operation_id::text, internal.operation_input_changes(events_operation.input), 202,
                         events_operation.project_id);
  return operation_id;
end $$;
comment on function internal.events_operation is
  'Starts the deletion or the replay of events of one of the caller''s own projects: internal.operation_start queues its job. Audited.';

create or replace function api.events_operation_start(project_id uuid, type text, input jsonb) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(events_operation_start.project_id);
begin
  return internal.reply(202, json_build_object(
    'operation_id', internal.events_operation(project.id, events_operation_start.type, events_operation_start.input), 'status', 'queued'));
end $$;
comment on function api.events_operation_start is 'Queues an operation on events, whose input the project''s database has checked: 202 {operation_id, status}. Refuses 404 NOT_FOUND.';
