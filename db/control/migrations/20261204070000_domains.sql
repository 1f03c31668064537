-- migrate:up
alter table app.domains
  add column token text not null default replace(gen_random_uuid()::text, '-', '')
             constraint domains_token_form check (token ~ '^[0-9a-f]{32}$'),
  add column records jsonb not null default '[]' constraint domains_records_is_list check (jsonb_typeof(records) = 'array'),
  add column dkim_public text,
  add column dkim_sealed text,
  add column failed_checks smallint not null default 0,
  add column verify_at timestamptz,
  add column next_check_at timestamptz not null default internal.now() + interval '1 day',
  add constraint domains_dkim_has_both_keys check ((dkim_public is null) = (dkim_sealed is null));
comment on column app.domains.token is 'What the TXT record must say that proves ownership: random, of this row alone.';
comment on column app.domains.records is 'The DNS records of the domain, [{type, name, value, purpose, verified}], as the last check found them.';
comment on column app.domains.dkim_sealed is 'The private key of DKIM, encrypted by the server; it is never returned.';
comment on column app.domains.failed_checks is 'Daily checks in a row that did not find the records.';
comment on column app.domains.verify_at is 'When a developer last asked for a check: at most one in ten seconds.';
-- serves the daily checks
create index domains_due on app.domains (next_check_at) where status <> 'failed';

-- migrate:down
drop index app.domains_due;
alter table app.domains
  drop constraint domains_dkim_has_both_keys,
  drop column next_check_at,
  drop column verify_at,
  drop column failed_checks,
  drop column dkim_sealed,
  drop column dkim_public,
  drop column records,
  drop column token;
