-- Operations for rebuilds of leaderboards: control stores the operation, its job works in the project's own database.
create or replace function internal.leaderboards_operation(project_id uuid, leaderboard_id uuid) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  operation_id uuid;
begin
  operation_id := internal.operation_start(leaderboards_operation.project_id, 'leaderboards.rebuild', 'leaderboards__rebuild',
                                           jsonb_build_object('leaderboard_id', leaderboards_operation.leaderboard_id));
  perform internal.audit('leaderboards.rebuild', 'leaderboards', leaderboards_operation.leaderboard_id::text, '{}', 202);
  return operation_id;
end $$;
comment on function internal.leaderboards_operation is
  'Starts the rebuild of a leaderboard in one of the caller''s own projects: internal.operation_start queues its job. Audited.';

create or replace function api.leaderboards_rebuild_start(project_id uuid, leaderboard_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(leaderboards_rebuild_start.project_id);
begin
  return internal.reply(202, json_build_object(
    'operation_id', internal.leaderboards_operation(project.id, leaderboards_rebuild_start.leaderboard_id), 'status', 'queued'));
end $$;
comment on function api.leaderboards_rebuild_start is
  'Queues a rebuild, whose leaderboard the project''s database has found: 202 {operation_id, status}. Refuses 404 NOT_FOUND.';
