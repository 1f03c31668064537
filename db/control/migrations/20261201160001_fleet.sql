-- migrate:up
alter table app.tenants add column data_lost_at timestamptz;
comment on column app.tenants.data_lost_at is 'When an empty database was last begun in place of one that was gone, or null.';
create index tenants_failed on app.tenants (project_id) where status = 'failed';

-- migrate:down
drop index app.tenants_failed;
alter table app.tenants drop column data_lost_at;
