-- migrate:up
-- one engine of campaigns for push and mail: what differs is the content of a message and how one is sent
alter table app.push_campaigns
  add column channel text not null default 'push' constraint push_campaigns_channel_known check (channel in ('push', 'email')),
  drop constraint push_campaigns_workflow_id_unique,
  add constraint push_campaigns_workflow_id_unique unique (channel, workflow_id);
comment on column app.push_campaigns.message is
  'What is sent: of push the message; of mail {template_key, category, variables?, from?, reply_to?, track}. Each variant has one in its message.';
-- serve the lists of a channel, newest first: all, and those of a status
create index push_campaigns_of_channel on app.push_campaigns (channel, created_at desc, id desc);
create index push_campaigns_by_status on app.push_campaigns (channel, status, created_at desc, id desc);
drop index app.push_campaigns_newest;

alter table app.push_deliveries
  add column channel text not null default 'push' constraint push_deliveries_channel_known check (channel in ('push', 'email')),
  add column clicked_at timestamptz;
alter table app.push_counts add column clicked bigint not null default 0;

-- migrate:down
alter table app.push_counts drop column clicked;
alter table app.push_deliveries drop column clicked_at, drop column channel;
create index push_campaigns_newest on app.push_campaigns (created_at desc, id desc);
drop index app.push_campaigns_by_status, app.push_campaigns_of_channel;
alter table app.push_campaigns
  drop constraint push_campaigns_workflow_id_unique,
  add constraint push_campaigns_workflow_id_unique unique (workflow_id),
  drop column channel;
