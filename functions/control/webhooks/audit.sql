-- audit.event for the trail in a project's own database: a worker that has sealed rows there reports them here, if a
-- webhook watches them.
create or replace function internal.tg_webhooks__audit_since() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if new.status = 'disabled' or 'audit.event' <> all (new.event_types) then
    new.audit_since := null;
  else
    new.audit_since := coalesce(new.audit_since, internal.now());
  end if;
  return new;
end $$;
comment on function internal.tg_webhooks__audit_since is
  'Records since when a webhook watches audit.event: it gets none of the time before.';
create or replace trigger tg_webhooks__audit_since
  before insert or update of status, event_types on app.webhooks
  for each row execute function internal.tg_webhooks__audit_since();

create or replace function api.webhook_audit_begin(project_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  since timestamptz;
begin
  perform internal.check_caller('worker', 'trails are reported by workers');
  select min(w.audit_since) into since
    from app.projects p
    join app.webhooks w on w.organization_id = p.organization_id
   where p.id = webhook_audit_begin.project_id and p.deleted_at is null;
  if since is null then
    delete from app.webhook_audit_cursors c where c.project_id = webhook_audit_begin.project_id;
    return internal.reply(200, null);
  end if;
  return internal.reply(200, json_build_object(
    'since', since, 'after', (select c.position from app.webhook_audit_cursors c
                               where c.project_id = webhook_audit_begin.project_id)));
end $$;
comment on function api.webhook_audit_begin is
  'For workers: where the report of a project''s trail goes on, {since, after}: after a position, or, for the first
   time, since when it is watched. Null when no webhook watches it.';

create or replace function api.webhook_audit_report(project_id uuid, events json, last bigint) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'trails are reported by workers');
  -- the project is not removed before the position is stored
  perform from app.projects p where p.id = webhook_audit_report.project_id and p.deleted_at is null for key share;
  if not found then
    return internal.reply(200, 'true');
  end if;
  perform internal.control_project_event('audit.event', webhook_audit_report.project_id, e.value,
                                         (e.value ->> 'id')::uuid)
     from json_array_elements(webhook_audit_report.events) with ordinality as e (value, n)
    order by e.n;
  insert into app.webhook_audit_cursors as c (project_id, position)
  values (webhook_audit_report.project_id, webhook_audit_report.last)
  on conflict on constraint webhook_audit_cursors_pkey do update set position = greatest(c.position, excluded.position);
  return internal.reply(200, 'true');
end $$;
comment on function api.webhook_audit_report is
  'For workers: raises audit.event for rows of a project''s trail, once for each row, and stores how far the report has
   come. Locks the project against removal.';
