-- Domains of projects: the functions that other areas call.
comment on index app.domains_verified_once is '409 DOMAIN_TAKEN domain: Another project has proved that it owns this domain.';

create or replace function internal.domain_put(project_id uuid, domain text, kind text, status text default 'pending') returns uuid
language sql volatile as $$
  insert into app.domains as d (project_id, domain, kind, status, verified_at, last_checked_at)
  values (domain_put.project_id, lower(domain_put.domain), domain_put.kind, domain_put.status,
          case when domain_put.status = 'verified' then internal.now() end, internal.now())
  on conflict on constraint domains_one_of_a_kind do update
     set status = excluded.status, verified_at = coalesce(excluded.verified_at, d.verified_at), last_checked_at = excluded.last_checked_at
  returning d.id
$$;
comment on function internal.domain_put is
  'Attaches a domain to a project, or records the result of its verification. Refuses 409 DOMAIN_TAKEN. Granted to nobody.';

create or replace function internal.domain_sends(project_id uuid, email text) returns boolean
language sql stable as $$
  select exists (
    select from app.domains d
     where d.project_id = domain_sends.project_id and d.kind = 'email' and d.status = 'verified'
       and d.domain = lower(split_part(domain_sends.email, '@', 2)))
$$;
comment on function internal.domain_sends is 'Whether an address is on a verified sending domain of the project; subdomains do not count.';

create or replace function internal.has_function_domains(project_id uuid) returns boolean
language sql stable as $$
  select exists (select from app.domains d where d.project_id = has_function_domains.project_id and d.kind = 'function')
$$;
comment on function internal.has_function_domains is 'Whether functions of the project are served under a domain, which must be detached before the project can be deleted.';
