-- Operations for backfills of achievements: control stores the operation, its job works in the project's own database.
create or replace function internal.achievements_operation(project_id uuid, input jsonb) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  operation_id uuid;
begin
  operation_id := internal.operation_start(achievements_operation.project_id, 'achievements.backfill', 'achievements__backfill', achievements_operation.input);
  perform internal.audit('achievements.backfill', 'achievements', achievements_operation.input ->> 'achievement_id', achievements_operation.input::json, 202);
  return operation_id;
end $$;
comment on function internal.achievements_operation is
  'Starts the backfill of an achievement in one of the caller''s own projects: internal.operation_start queues its job. Audited.';

create or replace function api.achievements_backfill_start(project_id uuid, input jsonb) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(achievements_backfill_start.project_id);
begin
  return internal.reply(202, json_build_object(
    'operation_id', internal.achievements_operation(project.id, achievements_backfill_start.input), 'status', 'queued'));
end $$;
comment on function api.achievements_backfill_start is 'Queues a backfill, whose input the project''s database has checked: 202 {operation_id, status}. Refuses 404 NOT_FOUND.';
