-- migrate:up
-- serve the administrator's search for one or two letters, which trigrams cannot find: beginnings, as users_named serves those of names
create index users_by_beginning_of_email on app.users (email text_pattern_ops) where email is not null;
create index users_by_beginning_of_external_id on app.users (lower(external_id) text_pattern_ops) where external_id is not null;
-- far pages of the list are found in its index alone while vacuum has seen most pages, so it comes after 2 % of the rows and not after 20 %
alter table app.users set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- migrate:down
alter table app.users reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
drop index app.users_by_beginning_of_external_id;
drop index app.users_by_beginning_of_email;
