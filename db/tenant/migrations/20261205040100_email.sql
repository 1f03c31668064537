-- migrate:up
alter table app.email_messages
  add column delivery_id uuid references app.push_deliveries on delete set null,
  add column track boolean not null default false,
  add column opened_at timestamptz,
  add column clicked_at timestamptz,
  -- also serves the foreign key: a delivery of a campaign has one message, however often a worker is killed
  add constraint email_messages_once_per_delivery unique (delivery_id);
comment on column app.email_messages.track is 'Whether the content has a picture that reports opening, and links that report clicks.';

-- migrate:down
alter table app.email_messages
  drop constraint email_messages_once_per_delivery,
  drop column clicked_at,
  drop column opened_at,
  drop column track,
  drop column delivery_id;
