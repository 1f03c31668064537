-- migrate:up
alter table app.webhook_deliveries add column app_user_id uuid;
update app.webhook_deliveries d set app_user_id = e.app_user_id from app.engagement_events e where e.id = d.event_id;
comment on column app.webhook_deliveries.app_user_id is
  'Whose event it tells of: the body has what the user did, and their profile, so it goes when they do. No foreign key: the event has one already.';
-- serves the deletion of a user
create index webhook_deliveries_of_user on app.webhook_deliveries (app_user_id);

-- migrate:down
drop index app.webhook_deliveries_of_user;
alter table app.webhook_deliveries drop column app_user_id;
