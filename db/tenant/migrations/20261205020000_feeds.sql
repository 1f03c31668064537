-- migrate:up
-- serves the list of administrators by an action
create index feed_entries_of_action on app.feed_entries (action, created_at desc, id desc);

-- migrate:down
drop index app.feed_entries_of_action;
