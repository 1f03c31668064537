-- What happens to projects, as events for webhooks of their organization. Triggers raise them in the transaction of
-- what happened: there is an event exactly if that is committed.
create or replace function internal.control_event_body(id uuid, type text, organization_id uuid, project_id uuid,
                                                       data json)
returns text
language sql stable
return json_build_object(
  'id', control_event_body.id, 'type', control_event_body.type, 'created_at', internal.iso(internal.now()),
  'organization_id', control_event_body.organization_id, 'project_id', control_event_body.project_id,
  'data', control_event_body.data)::text;
comment on function internal.control_event_body is
  'The body of a delivery: built once, stored, and sent byte for byte the same in every attempt.';

create or replace function internal.control_event(type text, organization_id uuid, project_id uuid, data json,
                                                  event_id uuid default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  own_id constant uuid := coalesce(control_event.event_id, internal.new_id());
  watching uuid[];
  held uuid[];
  body text;
  queued record;
begin
  -- most organizations have no webhook: this one query is all
  if not exists (select from app.webhooks w where w.organization_id = control_event.organization_id
                    and w.status <> 'disabled') then
    return;
  end if;
  -- locked against deletion until the delivery is committed, so that the purge of a deleted webhook finds it
  watching := array(
    select w.id
      from app.webhooks w
      -- not when it is being deleted, with its webhooks
      join app.organizations o on o.id = w.organization_id
     where w.organization_id = control_event.organization_id and w.status <> 'disabled'
       and (control_event.type = any (w.event_types) or w.event_types = '{*}' and control_event.type <> 'audit.event')
       -- rows of a project's own trail are reported after a while
       and (control_event.type <> 'audit.event'
            or (control_event.data ->> 'occurred_at')::timestamptz >= date_trunc('milliseconds', w.audit_since))
     order by w.id
       for key share of w);
  if watching = '{}' then
    return;
  end if;
  -- locked so that these stay degraded until the event is committed: otherwise a release could miss the deliveries held
  -- here
  held := array(select w.id from app.webhooks w where w.id = any (watching) and w.status = 'degraded'
                 order by w.id for share);
  body := internal.control_event_body(own_id, control_event.type, control_event.organization_id,
                                      control_event.project_id, control_event.data);
  for queued in
    insert into app.webhook_deliveries as d (id, webhook_id, secret_id, event_id, event_name, payload, next_attempt_at,
                                             held_until, created_at)
    select internal.new_id(), w.id, w.secret_id, own_id, control_event.type, body,
           case when w.id <> all (held) then internal.now() end,
           case when w.id = any (held) then internal.now() + internal.webhook_hold_interval() end,
           internal.now()
      from app.webhooks w
     where w.id = any (watching)
    on conflict on constraint webhook_deliveries_once_per_event do nothing
    returning d.id, d.webhook_id, d.next_attempt_at
  loop
    continue when queued.next_attempt_at is null;
    perform internal.enqueue('webhooks__deliver', queued.id::text, due_at => queued.next_attempt_at,
                             lane => 'webhook ' || queued.webhook_id);
  end loop;
end $$;
comment on function internal.control_event is
  'Queues an event for each webhook of the organization that watches its type, once for an event_id that is given.
   Deliveries of a degraded webhook are held. Locks the webhooks against deletion, and degraded ones against a change of
   status. Granted to nobody.';

create or replace function internal.control_project_event(type text, project_id uuid, data json,
                                                          event_id uuid default null)
returns void
language sql volatile security definer set search_path = '' as $$
  select internal.control_event(control_project_event.type, p.organization_id, p.id, control_project_event.data,
                                control_project_event.event_id)
    from app.projects p
   where p.id = control_project_event.project_id
$$;
comment on function internal.control_project_event is
  'internal.control_event for the organization that a project belongs to now. Granted to nobody.';

create or replace function internal.tg_projects__control_event() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.control_event(case when tg_op = 'INSERT' then 'project.created' else 'project.deleted' end,
                                 new.organization_id, new.id,
                                 internal.project_json(new));
  return null;
end $$;
comment on function internal.tg_projects__control_event is 'Raises project.created and project.deleted.';
create or replace trigger tg_projects__created
  after insert on app.projects
  for each row execute function internal.tg_projects__control_event();
create or replace trigger tg_projects__deleted
  after update of deleted_at on app.projects
  for each row when (old.deleted_at is null and new.deleted_at is not null)
  execute function internal.tg_projects__control_event();

create or replace function internal.tg_tenants__control_event() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.control_event(case new.status when 'ready' then 'project.provisioned'
                                      else 'project.provisioning_failed' end, p.organization_id, p.id,
                                 internal.json_merge(internal.project_json(p),
                                                     json_build_object('provisioning', internal.provisioning_json(
                                                       new))))
     from app.projects p
    where p.id = new.project_id and p.deleted_at is null;
  return null;
end $$;
comment on function internal.tg_tenants__control_event is
  'Raises project.provisioned and project.provisioning_failed, with the progress of provisioning.';
create or replace trigger tg_tenants__control_event
  after update of status on app.tenants
  for each row when (old.status = 'provisioning' and new.status in ('ready', 'failed'))
  execute function internal.tg_tenants__control_event();

create or replace function internal.tg_api_keys__control_event() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.control_project_event(case when tg_op = 'INSERT' then 'api_key.created' else 'api_key.revoked' end,
                                         new.project_id,
                                         internal.api_key_json(new));
  return null;
end $$;
comment on function internal.tg_api_keys__control_event is
  'Raises api_key.created and api_key.revoked, also for the keys that come and go with their project.';
create or replace trigger tg_api_keys__created
  after insert on app.api_keys
  for each row execute function internal.tg_api_keys__control_event();
create or replace trigger tg_api_keys__revoked
  after update of is_active on app.api_keys
  for each row when (old.is_active and not new.is_active)
  execute function internal.tg_api_keys__control_event();

create or replace function internal.tg_organization_members__control_event() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  member constant app.organization_members := case when tg_op = 'INSERT' then new else old end;
begin
  perform internal.control_event(case when tg_op = 'INSERT' then 'member.joined' else 'member.removed' end,
                                 member.organization_id, null,
                                 -- of a deleted account nothing is left but its id
                                 coalesce(internal.member_json(member), json_build_object(
                                   'developer_id', member.developer_id, 'email', null, 'name', null,
                                     'role', member.role,
                                   'joined_at', internal.iso(member.joined_at))));
  return null;
end $$;
comment on function internal.tg_organization_members__control_event is 'Raises member.joined and member.removed.';
create or replace trigger tg_organization_members__control_event
  after insert or delete on app.organization_members
  for each row execute function internal.tg_organization_members__control_event();

create or replace function internal.tg_domains__control_event() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.control_project_event('domain.verified', new.project_id, internal.domain_json(new));
  return null;
end $$;
comment on function internal.tg_domains__control_event is 'Raises domain.verified.';
create or replace trigger tg_domains__verified
  after update of status on app.domains
  for each row when (new.status = 'verified' and old.status <> 'verified')
  execute function internal.tg_domains__control_event();

create or replace function internal.tg_audit_events__control_event() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- the scope is a project, an organization, or an account
  perform internal.control_event('audit.event', o.organization_id, o.project_id, internal.audit_json(new))
     from (select p.organization_id, p.id as project_id from app.projects p where p.id = new.scope
           union all
           select g.id, null from app.organizations g where g.id = new.scope or g.developer_id = new.scope) o;
  return null;
end $$;
comment on function internal.tg_audit_events__control_event is
  'Raises audit.event for a row of the trail in the control database; of an account''s own trail, in its personal
   organization.';
create or replace trigger tg_audit_events__control_event
  after insert on app.audit_events
  for each row execute function internal.tg_audit_events__control_event();

create or replace function api.webhook_degraded(project_id uuid, event_id uuid, webhook json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'degraded webhooks are reported by workers');
  perform internal.control_project_event('webhook.degraded', p.id, webhook_degraded.webhook, webhook_degraded.event_id)
     from app.projects p
    where p.id = webhook_degraded.project_id and p.deleted_at is null;
  return internal.reply(200, 'true');
end $$;
comment on function api.webhook_degraded is
  'For the task that notifies the owner: raises webhook.degraded for a webhook of a project, once for each event_id.';
