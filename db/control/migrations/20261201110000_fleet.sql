-- migrate:up
-- when the sweep last looked into this tenant's outbox; without an index, so that noting it stays cheap
alter table app.tenants add column swept_at timestamptz;

-- migrate:down
alter table app.tenants drop column swept_at;
