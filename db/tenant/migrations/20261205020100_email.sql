-- migrate:up
-- serves the list by reason
create index email_suppressions_of_reason on app.email_suppressions (reason, created_at desc, id desc);

-- migrate:down
drop index app.email_suppressions_of_reason;
