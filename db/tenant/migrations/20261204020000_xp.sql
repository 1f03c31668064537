-- migrate:up
-- The statistics of a week find their rows by id, which begins with the time: another index of the time cost each row of the ledger as much as one of these.
drop index app.xp_transactions_newest;

-- migrate:down
create index xp_transactions_newest on app.xp_transactions using brin (created_at);
