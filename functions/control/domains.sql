-- Domains of projects: mail is sent from them, sites and functions answer under them. DNS is the server's to ask: these
-- functions store what it found and decide what follows. Whoever attaches or detaches a domain locks the project, as a
-- change of its sender and its deletion do.
comment on index app.domains_verified_once is
  '409 DOMAIN_TAKEN domain: Another project has proved that it owns this domain.';
comment on constraint domains_one_of_a_kind on app.domains is
  '409 CONFLICT domain: The project has this domain already.';

select internal.audit_declare('app.domains', 'domains', 'dkim_sealed');

create or replace function internal.domain_put(project_id uuid, domain text, kind text, status text default 'pending')
returns uuid
language sql volatile as $$
  insert into app.domains as d (project_id, domain, kind, status, verified_at, last_checked_at)
  values (domain_put.project_id, lower(domain_put.domain), domain_put.kind, domain_put.status,
          case when domain_put.status = 'verified' then internal.now() end, internal.now())
  on conflict on constraint domains_one_of_a_kind do update
     set status = excluded.status, verified_at = coalesce(excluded.verified_at, d.verified_at),
       last_checked_at = excluded.last_checked_at
  returning d.id
$$;
comment on function internal.domain_put is
  'Attaches a domain to a project, or records the result of its verification. Refuses 409 DOMAIN_TAKEN. Granted to
   nobody.';

create or replace function internal.domain_sends(project_id uuid, email text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from app.domains d
     where d.project_id = domain_sends.project_id and d.kind = 'email' and d.status = 'verified'
       and d.domain = lower(split_part(domain_sends.email, '@', 2)))
$$;
comment on function internal.domain_sends is
  'Whether an address is on a verified sending domain of the project; subdomains do not count.';

create or replace function internal.has_function_domains(project_id uuid) returns boolean
language sql stable as $$
  select exists (select from app.domains d where d.project_id = has_function_domains.project_id and d.kind = 'function')
$$;
comment on function internal.has_function_domains is
  'Whether functions of the project are served under a domain, which must be detached before the project can be
   deleted.';

select internal.row_declare('domain_json', null::app.domains,
                            '{id,domain,kind,status,dns_records:records,verified_at,last_checked_at,error,created_at}');
comment on function internal.domain_json is
  'A domain as responses show it, without its token alone and without its private key.';

create or replace function internal.domain_project_lock(project_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.projects p
    where p.id = domain_project_lock.project_id and p.organization_id = any (internal.organization_ids('developer'))
      and p.deleted_at is null
      for update;
  perform internal.check_found(found, 'project');
end $$;
comment on function internal.domain_project_lock is
  'Locks a project of the caller: its domains, its sender and its deletion change one after the other. Refuses 404
   NOT_FOUND.';

create or replace function internal.domain_is_taken(project_id uuid, domain text, kind text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from app.domains d
     where d.kind = domain_is_taken.kind and d.domain = domain_is_taken.domain and d.status = 'verified'
       and d.project_id <> domain_is_taken.project_id)
$$;
comment on function internal.domain_is_taken is 'Whether another project has proved that it owns a domain.';

create or replace function api.domain_create(project_id uuid, domain text, kind text, token text, records jsonb,
                                             dkim_public text default null, dkim_sealed text default null)
returns api.reply
language plpgsql volatile as $$
declare
  made app.domains;
begin
  perform internal.domain_project_lock(domain_create.project_id);
  perform internal.check_limit((select count(*) from app.domains d where d.project_id = domain_create.project_id), 20,
                               'A project has at most 20 domains.');
  if internal.domain_is_taken(domain_create.project_id, domain_create.domain, domain_create.kind) then
    perform internal.fail(409, 'DOMAIN_TAKEN', 'Another project has proved that it owns this domain.',
                          '{"field": "domain"}');
  end if;
  insert into app.domains (project_id, domain, kind, token, records, dkim_public, dkim_sealed)
  values (domain_create.project_id, domain_create.domain, domain_create.kind, domain_create.token,
          domain_create.records, domain_create.dkim_public,
          domain_create.dkim_sealed)
  returning * into made;
  return internal.reply(201, internal.domain_json(made));
end $$;
comment on function api.domain_create is
  'Attaches a domain to a project, pending: 201 with the records to write. The server makes token, records and keys.
   Refuses 404 NOT_FOUND, 409 DOMAIN_TAKEN, CONFLICT, LIMIT_REACHED (20). Locks the project.';

select internal.list_declare('domains_page', null::app.domains, 'domain_json', '{created_at,id}',
                             required => '{project_id}', filters => '{kind}');

create or replace function api.domain_list(project_id uuid, kind text default null, page_offset int default 0,
                                           page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(domain_list.project_id);
begin
  return internal.domains_page(project.id, domain_list.kind, domain_list.page_offset, domain_list.page_limit);
end $$;
comment on function api.domain_list is 'The domains of a project, newest first. Refuses 404 NOT_FOUND.';

create or replace function internal.own_domain(project_id uuid, domain_id uuid) returns app.domains
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(own_domain.project_id);
  found_domain app.domains;
begin
  select d.* into found_domain from app.domains d where d.id = own_domain.domain_id and d.project_id = project.id;
  perform internal.check_found(found_domain.id is not null, 'domain');
  return found_domain;
end $$;
comment on function internal.own_domain is 'A domain of a project of the caller. Refuses 404 NOT_FOUND.';

create or replace function api.domain_get(project_id uuid, domain_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.domain_json(internal.own_domain(domain_get.project_id, domain_get.domain_id)))
$$;
comment on function api.domain_get is 'A domain. Refuses 404 NOT_FOUND.';

create or replace function api.domain_delete(project_id uuid, domain_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  doomed app.domains;
begin
  perform internal.domain_project_lock(domain_delete.project_id);
  doomed := internal.own_domain(domain_delete.project_id, domain_delete.domain_id);
  if doomed.kind = 'email' and exists (
    select from app.projects p where p.id = domain_delete.project_id
       and lower(split_part(p.default_from_email, '@', 2)) = doomed.domain) then
    perform internal.fail(409, 'DOMAIN_IN_USE', 'The sender of the project, default_from_email, is on this domain.');
  end if;
  delete from app.domains d where d.id = doomed.id;
  return internal.reply_deleted();
end $$;
comment on function api.domain_delete is
  'Detaches a domain. Refuses 404 NOT_FOUND, 409 DOMAIN_IN_USE while the sender of the project is on it. Locks the
   project.';

select internal.row_declare('domain_check_json', null::app.domains, '{id,domain,kind,token,dkim_public}');
comment on function internal.domain_check_json is 'What the server needs to check a domain.';

create or replace function api.domain_check_begin(project_id uuid, domain_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  checked app.domains := internal.own_domain(domain_check_begin.project_id, domain_check_begin.domain_id);
  wait int;
begin
  update app.domains d
     set verify_at = internal.now()
   where d.id = checked.id and (d.verify_at is null or d.verify_at <= internal.now() - interval '10 seconds')
  returning d.* into checked;
  if not found then
    select d.* into checked from app.domains d where d.id = domain_check_begin.domain_id;
    perform internal.check_found(found, 'domain');
    wait := greatest(ceil(extract(epoch from checked.verify_at + interval '10 seconds' - internal.now())), 1);
    perform internal.fail(429, 'RATE_LIMITED', 'A domain is checked at most once in ten seconds.',
                          json_build_object('retry_after_seconds', wait),
                          json_build_object('Retry-After', wait::text));
  end if;
  return internal.reply(200, internal.domain_check_json(checked));
end $$;
comment on function api.domain_check_begin is
  'Begins a check that a developer asked for: what to look for. Refuses 404 NOT_FOUND, 429 RATE_LIMITED within ten
   seconds of the last.';

create or replace function internal.domain_checked(domain_id uuid, records jsonb, outcome text, error text,
                                                   is_daily boolean)
returns app.domains
language plpgsql volatile security definer set search_path = '' as $$
declare
  checked app.domains;
begin
  update app.domains d
     set records = domain_checked.records,
         error = domain_checked.error,
         last_checked_at = internal.now(),
         status = case
           when domain_checked.outcome = 'found' then 'verified'
           when domain_checked.is_daily and domain_checked.outcome = 'missing' and d.failed_checks >= 2 then 'failed'
           when not domain_checked.is_daily and d.status = 'failed' then 'pending'
           else d.status end,
         failed_checks = case
           when domain_checked.outcome = 'found' or not domain_checked.is_daily and d.status = 'failed' then 0
           when domain_checked.is_daily and domain_checked.outcome = 'missing' then d.failed_checks + 1
           else d.failed_checks end,
         verified_at = case
           when domain_checked.outcome = 'found' then case when d.status = 'verified' then d.verified_at
                                                           else internal.now() end
           when domain_checked.is_daily and domain_checked.outcome = 'missing' and d.failed_checks >= 2 then null
           else d.verified_at end,
         next_check_at = internal.now() + case when domain_checked.is_daily
                                               and domain_checked.outcome = 'unknown' then interval '1 hour'
                                                 else interval '1 day' end
   where d.id = domain_checked.domain_id
     and (internal.caller() = 'worker'
          or exists (select from app.projects p where p.id = d.project_id
                        and p.organization_id = any (internal.organization_ids('developer')) and p.deleted_at is null))
  returning d.* into checked;
  return checked;
end $$;
comment on function internal.domain_checked is
  'Stores the outcome of a check: found, missing, or unknown where the name servers did not answer, which counts for
   nothing. Three daily checks in a row without the records make a domain failed; a check that was asked for makes a
   failed one pending again. Refuses 409 DOMAIN_TAKEN by its index, so that of two projects that prove a domain at once
   one has it. Locks the domain.';

create or replace function api.domain_check_end(project_id uuid, domain_id uuid, records jsonb, outcome text,
                                                error text default null)
returns api.reply
language plpgsql volatile as $$
declare
  checked app.domains := internal.own_domain(domain_check_end.project_id, domain_check_end.domain_id);
begin
  checked := internal.domain_checked(checked.id, domain_check_end.records, domain_check_end.outcome,
                                     domain_check_end.error, false);
  perform internal.check_found(checked.id is not null, 'domain');
  return internal.reply(200, internal.domain_json(checked));
end $$;
comment on function api.domain_check_end is
  'The domain after a check that was asked for. Refuses 404 NOT_FOUND, 409 DOMAIN_TAKEN.';

create or replace function api.domains_due(batch int) returns api.reply
language sql volatile as $$
  with due as (
    select d.id
      from app.domains d
     where d.status <> 'failed' and d.next_check_at <= internal.now()
     order by d.next_check_at
     limit domains_due.batch
       for update skip locked
  ), taken as (
    -- what a check that breaks off leaves is due again in an hour
    update app.domains d set next_check_at = internal.now() + interval '1 hour' from due where d.id = due.id
      returning d.*
  )
  select internal.reply(200, coalesce(json_agg(internal.domain_check_json(t)), '[]')) from taken t
$$;
comment on function api.domains_due is 'Takes domains that are due for their daily check, longest due first.';

create or replace function api.domain_daily_check(domain_id uuid, records jsonb, outcome text, error text default null)
returns api.reply
language plpgsql volatile as $$
declare
  checked app.domains;
begin
  select d.* into checked from app.domains d where d.id = domain_daily_check.domain_id;
  if domain_daily_check.outcome = 'found' and internal.domain_is_taken(checked.project_id, checked.domain,
                                                                       checked.kind) then
    perform internal.domain_checked(domain_daily_check.domain_id, domain_daily_check.records, 'unknown',
                                    'Another project has proved that it owns this domain.', true);
  else
    perform internal.domain_checked(domain_daily_check.domain_id, domain_daily_check.records,
                                    domain_daily_check.outcome, domain_daily_check.error, true);
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.domain_daily_check is
  'Stores the outcome of a daily check; a domain that another project has proved stays as it is.';

create or replace function internal.domain_serves(domain text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from app.domains d
      join app.projects p on p.id = d.project_id and p.deleted_at is null
     where d.kind in ('site', 'function') and d.domain = lower(domain_serves.domain) and d.status = 'verified')
$$;
comment on function internal.domain_serves is
  'Whether a site or functions of a project answer under a domain that is verified.';

create or replace function api.tls_ask(domain text) returns api.reply
language plpgsql stable as $$
begin
  perform internal.check_found(internal.domain_serves(tls_ask.domain), 'domain');
  return internal.reply(200, json_build_object('domain', lower(tls_ask.domain)));
end $$;
comment on function api.tls_ask is
  'Whether a reverse proxy may obtain a certificate for a name: 200 for a verified domain of a site or of functions, and
   nothing else. Refuses 404 NOT_FOUND.';
