-- migrate:up
alter table app.email_bodies add column unsubscribe_mark text;
comment on column app.email_bodies.unsubscribe_mark is
  'What stands in the content where the link to unsubscribe belongs: a random mark, which no value contains. Null: {{unsubscribe_url}}, as the sender wrote it.';

-- migrate:down
alter table app.email_bodies drop column unsubscribe_mark;
