-- migrate:up
alter table app.segment_states add column template text, add column sets jsonb;
comment on column app.segment_states.template is
  'The compiled condition with its marks for sets, as it becomes part of the segments that name this one; null until it is compiled by this version.';
comment on column app.segment_states.sets is 'The sets of the template: [{members, missing}].';

-- migrate:down
alter table app.segment_states drop column template, drop column sets;
