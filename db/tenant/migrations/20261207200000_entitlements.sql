-- migrate:up
create table app.merged_names (
  name        text primary key constraint merged_names_name_1_to_255 check (char_length(name) between 1 and 255),
  app_user_id uuid not null references app.users on delete cascade,
  created_at  timestamptz not null default internal.now()
);
comment on table app.merged_names is
  'Ids and external_ids of users who were merged into another: providers go on to report purchases and events under them.';
-- serves the names of a user, newest first; the foreign key
create index merged_names_of_user on app.merged_names (app_user_id, created_at desc);

-- the names of merges that happened before are in their events; a merge into a user who is no longer there leads nowhere
insert into app.merged_names (name, app_user_id, created_at)
select distinct on (m.name) m.name, u.id, m.received_at
  from (select e.properties ->> 'from_user_id' as name, e.app_user_id, e.received_at
          from app.engagement_events e
         where e.event_name = 'svc.user.merged') m
  join app.users u on u.id = m.app_user_id
 where char_length(m.name) between 1 and 255
 order by m.name, m.received_at desc;

-- entitlement_grants_of_store_product serves the question that this index was made for
drop index app.entitlement_grants_of_product;

-- migrate:down
create index entitlement_grants_of_product on app.entitlement_grants (product_id) where product_id is not null;
drop table app.merged_names;
