-- migrate:up
-- serves the lease: from each task and lane in turn what is due longest, so that a long backlog of one holds up no other
create index outbox_groups on app.outbox (task, (coalesce(lane, '')), due_at) where failed_at is null;
drop index app.outbox_lanes;

-- migrate:down
create index outbox_lanes on app.outbox (lane, due_at) where failed_at is null;
drop index app.outbox_groups;
