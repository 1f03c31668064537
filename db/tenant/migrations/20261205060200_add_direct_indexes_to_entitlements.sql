-- migrate:up
-- each search of a GIN index reads its whole list of pending entries: 20 ms after a busy hour, also for each new user with an external_id
alter index app.subscription_events_of_name set (fastupdate = off);
alter index app.subscription_events_transfers set (fastupdate = off);
select gin_clean_pending_list('app.subscription_events_of_name'), gin_clean_pending_list('app.subscription_events_transfers');

-- migrate:down
alter index app.subscription_events_transfers reset (fastupdate);
alter index app.subscription_events_of_name reset (fastupdate);
