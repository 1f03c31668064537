-- migrate:up
alter table app.collection_columns add column is_moderated boolean not null default false;
comment on column app.collection_columns.is_moderated is 'Whether rules of moderation read the texts of the column.';

-- migrate:down
alter table app.collection_columns drop column is_moderated;
