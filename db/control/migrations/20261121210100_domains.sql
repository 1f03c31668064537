-- migrate:up
create table app.domains (
  id              uuid primary key default internal.new_id(),
  project_id      uuid not null references app.projects on delete cascade,
  domain          text not null
                    constraint domains_domain_lower_case check (domain = lower(domain) and char_length(domain) between 3 and 253),
  kind            text not null constraint domains_kind_known check (kind in ('email', 'site', 'function')),
  status          text not null default 'pending'
                    constraint domains_status_known check (status in ('pending', 'verified', 'failed')),
  verified_at     timestamptz,
  last_checked_at timestamptz,
  error           text,
  created_at      timestamptz not null default internal.now(),
  constraint domains_one_of_a_kind unique (project_id, kind, domain)
);
comment on table app.domains is 'Domains of projects: those that mail is sent from, and those that sites and functions answer under.';
-- a domain is one project's, once it is proved
create unique index domains_verified_once on app.domains (kind, domain) where status = 'verified';

-- migrate:down
drop table app.domains;
