-- migrate:up
-- Of each event every rule writes a row here: what one index can do, two do not.
drop index app.xp_transactions_over_time;
drop index app.xp_transactions_of_rule;
-- serves sums over a time and cooldowns: an event is counted when it occurred, or later, when a device sends it later
create index xp_transactions_counted on app.xp_transactions (app_user_id, counted_at);
-- read backwards it serves the history as well, and grows at the end of each user's part: downwards its pages were split again and again
drop index app.xp_transactions_of_user;
create index xp_transactions_of_user on app.xp_transactions (app_user_id, id);
drop index app.xp_transactions_newest;
-- serves the figures of a week: rows come in this order
create index xp_transactions_newest on app.xp_transactions using brin (created_at);
-- users are locked by whoever writes here, and a trigger on app.users takes these rows with them
alter table app.xp_transactions drop constraint xp_transactions_app_user_id_fkey;
alter table app.xp_rule_days drop constraint xp_rule_days_app_user_id_fkey;

-- migrate:down
alter table app.xp_rule_days add constraint xp_rule_days_app_user_id_fkey foreign key (app_user_id) references app.users on delete cascade;
alter table app.xp_transactions add constraint xp_transactions_app_user_id_fkey foreign key (app_user_id) references app.users on delete cascade;
drop index app.xp_transactions_newest;
create index xp_transactions_newest on app.xp_transactions (created_at);
drop index app.xp_transactions_of_user;
create index xp_transactions_of_user on app.xp_transactions (app_user_id, id desc);
drop index app.xp_transactions_counted;
create index xp_transactions_of_rule on app.xp_transactions (app_user_id, rule_key, counted_at) where rule_key is not null;
create index xp_transactions_over_time on app.xp_transactions (app_user_id, occurred_at);
