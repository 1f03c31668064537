-- migrate:up
-- serve the search for a subscription that was restored before, by the provider's id and by a transaction
create index subscription_events_of_restored on app.subscription_events (left(payload ->> 'provider_id', 255)) where type = 'RESTORE';
create index subscription_events_of_restored_ref on app.subscription_events (left(payload ->> 'ref', 255)) where type = 'RESTORE';

-- migrate:down
drop index app.subscription_events_of_restored_ref;
drop index app.subscription_events_of_restored;
