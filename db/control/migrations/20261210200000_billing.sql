-- migrate:up
alter table app.traffic_reports add column failed_requests bigint not null default 0;
comment on column app.traffic_reports.failed_requests is 'Those of api_requests that were answered with a status of 400 or more.';

-- migrate:down
alter table app.traffic_reports drop column failed_requests;
