-- migrate:up
alter table app.user_codes add column locales text[];
comment on column app.user_codes.locales is 'The languages that the request asked for, most wanted first: the message comes in the first that there is.';

-- migrate:down
alter table app.user_codes drop column locales;
