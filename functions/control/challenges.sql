-- Operations for recounts of challenges: control stores the operation, its job works in the project's own database.
create or replace function internal.challenges_operation(project_id uuid, challenge_id uuid) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  operation_id uuid;
begin
  operation_id := internal.operation_start(challenges_operation.project_id, 'challenges.recompute', 'challenges__recompute',
                                           jsonb_build_object('challenge_id', challenges_operation.challenge_id));
  perform internal.audit('challenges.recompute', 'challenges', challenges_operation.challenge_id::text, '{}', 202);
  return operation_id;
end $$;
comment on function internal.challenges_operation is
  'Starts the recount of a challenge in one of the caller''s own projects: internal.operation_start queues its job. Audited.';

create or replace function api.challenges_recompute_start(project_id uuid, challenge_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(challenges_recompute_start.project_id);
begin
  return internal.reply(202, json_build_object(
    'operation_id', internal.challenges_operation(project.id, challenges_recompute_start.challenge_id), 'status', 'queued'));
end $$;
comment on function api.challenges_recompute_start is 'Queues a recount, whose challenge the project''s database has found: 202 {operation_id, status}. Refuses 404 NOT_FOUND.';
