-- migrate:up
create table app.domains (
  id              uuid primary key default internal.new_id(),
  project_id      uuid not null references app.projects on delete cascade,
  domain          text not null
                    constraint domains_domain_lower_case
                      check (domain = lower(domain) and char_length(domain) between 3 and 253),
  kind            text not null constraint domains_kind_known check (kind in ('email', 'site', 'function')),
  status          text not null default 'pending'
                    constraint domains_status_known check (status in ('pending', 'verified', 'failed')),
  verified_at     timestamptz,
  last_checked_at timestamptz,
  error           text,
  created_at      timestamptz not null default internal.now(),
  token           text not null default replace(gen_random_uuid()::text, '-', '')
                    constraint domains_token_form check (token ~ '^[0-9a-f]{32}$'),
  records         jsonb not null default '[]' constraint domains_records_is_list
    check (jsonb_typeof(records) = 'array'),
  dkim_public     text,
  dkim_sealed     text,
  failed_checks   smallint not null default 0,
  verify_at       timestamptz,
  next_check_at   timestamptz not null default internal.now() + interval '1 day',
  constraint domains_one_of_a_kind unique (project_id, kind, domain),
  constraint domains_dkim_has_both_keys check ((dkim_public is null) = (dkim_sealed is null))
);
comment on table app.domains is
  'Domains of projects: those that mail is sent from, and those that sites and functions answer under.';
comment on column app.domains.token is 'What the TXT record must say that proves ownership: random, of this row alone.';
comment on column app.domains.records is
  'The DNS records of the domain, [{type, name, value, purpose, verified}], as the last check found them.';
comment on column app.domains.dkim_sealed is 'The private key of DKIM, encrypted by the server; it is never returned.';
comment on column app.domains.failed_checks is 'Daily checks in a row that did not find the records.';
comment on column app.domains.verify_at is 'When a developer last asked for a check: at most one in ten seconds.';
-- a domain is one project's, once it is proved
create unique index domains_verified_once on app.domains (kind, domain) where status = 'verified';
-- serves the daily checks
create index domains_due on app.domains (next_check_at) where status <> 'failed';

-- migrate:down
drop table app.domains;
