-- migrate:up
-- what a leaf of a segment's rules compares: see internal.segment_operand
create type internal.segment_operand as (kind text, expression text, members text, missing text, condition text, positive text);

alter table app.segment_states
  add column query     text,
  add column cursor_id uuid;
comment on column app.segment_states.query is 'The rules as a query of all users in a range of ids; null until they are compiled.';
comment on column app.segment_states.cursor_id is 'How far the evaluation that is under way came: users up to this id are done. Null: none is under way.';

-- serves rules that compare a property with a value, of which few users have it
create index users_properties on app.users using gin (properties jsonb_path_ops);

-- migrate:down
drop index app.users_properties;
alter table app.segment_states drop column query, drop column cursor_id;
drop type internal.segment_operand;
