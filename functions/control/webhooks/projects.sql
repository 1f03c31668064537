-- The control database's part of webhooks: the replay of a range is an operation, and the project's owner is notified
-- by mail.
create or replace function internal.webhook_replay_operation(project_id uuid, input jsonb) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- refuses projects of other developers
  started constant uuid := internal.operation_start(webhook_replay_operation.project_id, 'webhooks.replay',
                                                    'webhooks__replay',
                                                    webhook_replay_operation.input);
begin
  perform internal.audit('webhooks.replay', 'webhooks', webhook_replay_operation.input ->> 'webhook_id',
                         internal.operation_input_changes(webhook_replay_operation.input), 202,
                         webhook_replay_operation.project_id);
  return (select internal.operation_json(o) from app.operations o where o.id = started);
end $$;
comment on function internal.webhook_replay_operation is
  'Starts the operation of a replay, with its job, in this transaction, and returns it.';

create or replace function api.webhook_replay_start(project_id uuid, input jsonb) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(webhook_replay_start.project_id);
begin
  return internal.reply(202, internal.webhook_replay_operation(project.id, webhook_replay_start.input));
end $$;
comment on function api.webhook_replay_start is
  'Starts the replay of a range: 202 with its operation. input is {webhook_id, since, until, statuses, as_of}. Refuses
   404 NOT_FOUND.';

create or replace function api.webhook_owner(project_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'receivers of mails are read by workers');
  return internal.reply(200, (
    select json_build_object('email', d.email, 'project_name', p.name)
      from app.projects p
      join app.organization_members m on m.organization_id = p.organization_id
      join app.developers d on d.id = m.developer_id
     where p.id = webhook_owner.project_id and p.deleted_at is null
     -- its creator, if still a member; else the first of the highest role
     order by d.id = p.developer_id desc, internal.role_rank(m.role) desc, m.joined_at, d.id
     limit 1));
end $$;
comment on function api.webhook_owner is
  'For workers: the developer who is notified about a project by mail: {email, project_name}; null when the project is
   deleted.';
