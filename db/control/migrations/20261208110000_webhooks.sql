-- migrate:up
alter table app.webhooks add column audit_since timestamptz;
update app.webhooks w set audit_since = internal.now() where 'audit.event' = any (w.event_types) and w.status <> 'disabled';
comment on column app.webhooks.audit_since is 'Since when it watches audit.event, which projects report after a while; null while it does not.';

create table app.webhook_audit_cursors (
  project_id uuid primary key references app.projects on delete cascade,
  position   bigint not null
);
comment on table app.webhook_audit_cursors is
  'How far the trail in a project''s own database has been reported: the position of a seal. A project that nobody watches has no row.';

-- migrate:down
drop table app.webhook_audit_cursors;
alter table app.webhooks drop column audit_since;
