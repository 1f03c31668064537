-- migrate:up
-- the names by which an event knows its user
alter table app.subscription_events add column names text[] not null default '{}';
update app.subscription_events e
   set names = array(select distinct left(n.name, 255)
                       from (values (e.payload ->> 'app_user_id'), (e.payload ->> 'original_app_user_id')) as n (name)
                      where n.name <> '')
 where e.type <> 'TRANSFER';
-- serves events that wait for a user, and purchases that a transfer moves
create index subscription_events_of_name on app.subscription_events using gin (names);
-- serves the transfers of a purchase
create index subscription_events_transfers on app.subscription_events using gin ((payload -> 'transferred_from')) where type = 'TRANSFER';
-- serves the purge of events whose user never appeared
create index subscription_events_nobodys on app.subscription_events (received_at) where app_user_id is null;
-- serves the search for a restored purchase by its transaction
create index subscription_events_of_transaction on app.subscription_events (left(payload ->> 'transaction_id', 255)) where source_ref is not null;

-- migrate:down
drop index app.subscription_events_of_transaction;
drop index app.subscription_events_nobodys;
drop index app.subscription_events_transfers;
drop index app.subscription_events_of_name;
alter table app.subscription_events drop column names;
