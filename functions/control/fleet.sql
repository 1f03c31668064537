-- Functions for jobs over all project databases: provisioning, migration, sweeps, workers' heartbeats.
create or replace function api.tenant_get(project_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  tenant app.tenants;
begin
  select t.* into tenant
    from app.tenants t
    join app.projects p on p.id = t.project_id and p.deleted_at is null
   where t.project_id = tenant_get.project_id;
  return internal.reply(200, case when tenant.project_id is not null then json_build_object(
    'project_id', tenant.project_id, 'cluster_id', tenant.cluster_id, 'database_name', tenant.database_name,
    'status', tenant.status, 'steps', tenant.steps, 'attempt', tenant.attempt,
    'is_gone', internal.database_is_gone(tenant)) end);
end $$;
comment on function api.tenant_get is
  'A project''s tenant: its cluster, database and provisioning state; null when the project is deleted.';

create or replace function internal.database_is_gone(t app.tenants) returns boolean
language sql immutable
return (database_is_gone.t).status = 'failed' and (database_is_gone.t).error ->> 'code' = 'DATABASE_GONE';
comment on function internal.database_is_gone is
  'Whether the database of a tenant was ready and has been found missing.';

create or replace function api.fleet_moved(cluster_id uuid, databases json) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(t.project_id), '[]'))
    from app.tenants t
    join app.projects p on p.id = t.project_id and p.deleted_at is null
    left join (select n as name from json_array_elements_text(fleet_moved.databases) n) d on d.name = t.database_name
   where t.cluster_id = fleet_moved.cluster_id
     and case when d.name is null then t.status = 'ready' else internal.database_is_gone(t) end
$$;
comment on function api.fleet_moved is
  'Compares a cluster''s list of databases with the records of control: projects that are recorded as ready but whose
   database is not in the list, and projects that are recorded as lost but whose database is.';

create or replace function api.tenant_seen(project_id uuid, attempt int, is_there boolean) returns api.reply
language plpgsql volatile as $$
declare
  has_changed boolean;
begin
  update app.tenants t
     set status = case when tenant_seen.is_there then 'ready' else 'failed' end,
         error = case when not tenant_seen.is_there then json_build_object('code', 'DATABASE_GONE', 'message',
                   'The database of this project is missing. Restore it from a backup, or POST reprovision for a new, '
                   'empty one.') end,
         completed_at = case when tenant_seen.is_there then internal.now() end,
         moved_at = internal.now(),
         -- a backup may have the functions of an older version
         content_hash = case when tenant_seen.is_there then '' else t.content_hash end,
         steps = (select jsonb_agg(s.value || jsonb_build_object('status',
                                                                 case when tenant_seen.is_there then 'succeeded'
                                                                      when s.value ->> 'name' = 'create_database' then
                                                                        'failed'
                                                                      else 'pending' end) order by s.n)
                    from jsonb_array_elements(t.steps) with ordinality as s (value, n))
   where t.project_id = tenant_seen.project_id
     -- another attempt means that the database was created again since: it is a different one
     and t.attempt = tenant_seen.attempt
     and case when tenant_seen.is_there then internal.database_is_gone(t) else t.status = 'ready' end
     -- the database of a deleted project is dropped by its removal
     and exists (select from app.projects p where p.id = t.project_id and p.deleted_at is null);
  has_changed := found;
  if has_changed then
    perform internal.changed('project:' || tenant_seen.project_id);
    -- evicts what servers have cached of its rows
    perform internal.changed('tenant:' || tenant_seen.project_id);
  end if;
  return internal.reply(200, to_json(has_changed));
end $$;
comment on function api.tenant_seen is
  'Records whether the database of this attempt exists on its cluster: a ready tenant whose database is missing becomes
   failed with DATABASE_GONE; a tenant whose database was restored becomes ready again. true when the status changed.
   Locks the tenant.';

create or replace function api.tenants_restored(cluster_id uuid, databases json) returns api.reply
language plpgsql volatile as $$
declare
  restored uuid;
begin
  for restored in
    update app.tenants t set content_hash = ''
     where t.cluster_id = tenants_restored.cluster_id
       and t.status = 'ready'
       and t.database_name in (select n from json_array_elements_text(tenants_restored.databases) n)
    returning t.project_id
  loop
    perform internal.changed('project:' || restored);
  end loop;
  return internal.reply(200, 'true');
end $$;
comment on function api.tenants_restored is
  'Records that these databases were restored by hand, possibly from a backup of an older version: db:migrate and the
   next start of a server migrate them to this one. They are not migrated at once, because the restore may still be
   running. Locks the tenants.';

create or replace function api.health() returns api.reply
language sql stable as $$
  with gone as (
    select t.project_id
      from app.tenants t
      join app.projects p on p.id = t.project_id and p.deleted_at is null
     where t.status = 'failed' and internal.database_is_gone(t)
  )
  select internal.reply(200, json_build_object(
    'has_template', exists (select from app.templates),
    'gone', (select count(*) from gone),
    'projects', (select coalesce(json_agg(f.project_id), '[]')
                   from (select g.project_id from gone g order by g.project_id limit 20) f)))
$$;
comment on function api.health is
  'Whether a template exists, how many projects have lost their database, and the first twenty of these.';

create or replace function internal.is_attempt(t app.tenants, attempt int) returns boolean
language sql immutable
return (is_attempt.t).status = 'provisioning' and is_attempt.attempt = (is_attempt.t).attempt;
comment on function internal.is_attempt is
  'Whether this attempt at creating a database is the current one: a worker that stalled may resume during a later
   one.';

create or replace function api.provision_step(project_id uuid, step text, status text, attempt int) returns api.reply
language plpgsql volatile as $$
begin
  update app.tenants t
     set moved_at = internal.now(),
         steps = (
           select jsonb_agg(case when s.value ->> 'name' = provision_step.step
                                 then s.value || jsonb_build_object('status', provision_step.status)
                                      || case when provision_step.status = 'running'
                                              then jsonb_build_object('started_at', internal.iso(internal.now()),
                                                                      'finished_at', null)
                                              else jsonb_build_object('finished_at', internal.iso(internal.now())) end
                                 else s.value end order by s.n)
             from jsonb_array_elements(t.steps) with ordinality as s (value, n))
   where t.project_id = provision_step.project_id
     and internal.is_attempt(t, provision_step.attempt);
  return internal.reply(200, to_json(found));
end $$;
comment on function api.provision_step is
  'Records that a step of this attempt is running, has succeeded or has failed: true; false when the attempt is over,
   and nothing is written.';

create or replace function api.provision_end(project_id uuid, attempt int, schema_version text default null,
                                             content_hash text default null, error_code text default null,
                                             error_message text default null)
returns api.reply
language plpgsql volatile as $$
begin
  update app.tenants t
     set status = case when provision_end.error_code is null then 'ready' else 'failed' end,
         schema_version = coalesce(provision_end.schema_version, t.schema_version),
         content_hash = coalesce(provision_end.content_hash, t.content_hash),
         error = case when provision_end.error_code is not null
                      then jsonb_build_object('code', provision_end.error_code, 'message',
                                              provision_end.error_message) end,
         completed_at = case when provision_end.error_code is null then internal.now() end,
         moved_at = internal.now()
   where t.project_id = provision_end.project_id
     and internal.is_attempt(t, provision_end.attempt);
  if not found then
    return internal.reply(200, 'false');
  end if;
  perform internal.changed('project:' || provision_end.project_id);
  return internal.reply(200, 'true');
end $$;
comment on function api.provision_end is
  'Records that the database is ready, or that its creation failed, with an error that the developer may read: true;
   false when the attempt is over, and nothing is written.';

create or replace function api.cluster_list() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(json_build_object(
           'id', c.id, 'name', c.name, 'dsn_sealed', c.dsn_sealed,
           'template', (select json_build_object('schema_version', t.schema_version, 'content_hash', t.content_hash)
                          from app.templates t where t.cluster_id = c.id)) order by c.created_at, c.id), '[]'))
    from app.clusters c
$$;
comment on function api.cluster_list is 'Every cluster with the version of its template.';

create or replace function api.cluster_ensure(name text) returns api.reply
language plpgsql volatile as $$
declare
  cluster_id uuid;
begin
  insert into app.clusters (name) values (cluster_ensure.name) on conflict
    on constraint clusters_name_unique do nothing;
  select c.id into cluster_id from app.clusters c where c.name = cluster_ensure.name;
  return internal.reply(200, json_build_object('id', cluster_id));
end $$;
comment on function api.cluster_ensure is 'The cluster of this name, which is registered if it does not exist.';

create or replace function api.template_built(cluster_id uuid, schema_version text, content_hash text) returns api.reply
language sql volatile as $$
  insert into app.templates as t (cluster_id, schema_version, content_hash)
  values (template_built.cluster_id, template_built.schema_version, template_built.content_hash)
  on conflict (cluster_id) do update
     set schema_version = excluded.schema_version, content_hash = excluded.content_hash, built_at = internal.now();
  select internal.reply(200, 'true');
$$;
comment on function api.template_built is 'Records the version of a cluster''s new template.';

create or replace function api.key_check(expected text) returns api.reply
language plpgsql volatile as $$
declare
  stored text;
begin
  insert into app.installation (key_check) values (key_check.expected) on conflict (only_one) do nothing;
  select i.key_check into stored from app.installation i;
  return internal.reply(200, json_build_object('matches', stored = key_check.expected));
end $$;
comment on function api.key_check is
  'Whether this SECRETS_KEY is the one that the installation was set up with. The first call records the key.';

create or replace function api.fleet_behind(content_hash text, batch int default 1000) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(f.project_id), '[]'))
    from (select t.project_id
            from app.tenants t
            join app.projects p on p.id = t.project_id and p.deleted_at is null
           where t.status = 'ready' and t.content_hash <> fleet_behind.content_hash
           order by t.last_written_at desc
           limit fleet_behind.batch) f
$$;
comment on function api.fleet_behind is 'Tenants that are not at this version yet, the busiest first.';

create or replace function api.fleet_migrated(project_id uuid, schema_version text default null,
                                              content_hash text default null, error text default null)
returns api.reply
language plpgsql volatile as $$
begin
  update app.tenants t
     set schema_version = coalesce(fleet_migrated.schema_version, t.schema_version),
         -- files are applied one by one: after a failure the tenant has parts of two versions, and every version must
         -- migrate it
         content_hash = case when fleet_migrated.error is null then coalesce(fleet_migrated.content_hash,
                                        t.content_hash) else '' end,
         migration_status = case when fleet_migrated.error is null then 'current' else 'failed' end,
         migration_error = fleet_migrated.error
   where t.project_id = fleet_migrated.project_id;
  perform internal.changed('project:' || fleet_migrated.project_id);
  return internal.reply(200, 'true');
end $$;
comment on function api.fleet_migrated is
  'Records that a tenant is at the new version, or the error; after an error the tenant counts as behind for every
   version.';

create or replace function api.fleet_status(content_hash text) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
    'tenants', count(*),
    'ready', count(*) filter (where t.status = 'ready'),
    'provisioning', count(*) filter (where t.status = 'provisioning'),
    'not_made', count(*) filter (where t.status = 'failed' and not internal.database_is_gone(t)),
    'gone', coalesce(json_agg(json_build_object('project_id', t.project_id, 'database', t.database_name))
                       filter (where internal.database_is_gone(t)), '[]'),
    'current', count(*) filter (where t.status = 'ready' and t.content_hash = fleet_status.content_hash),
    'behind', count(*) filter (where t.status = 'ready' and t.content_hash <> fleet_status.content_hash),
    'failed', coalesce(json_agg(json_build_object('project_id', t.project_id, 'database', t.database_name,
                                                  'error', t.migration_error))
                         filter (where t.migration_status = 'failed'), '[]'),
    'versions', (select coalesce(json_object_agg(v.schema_version, v.count), '{}')
                   from (select x.schema_version, count(*) from app.tenants x where x.status = 'ready' group by 1) v)))
    from app.tenants t
$$;
comment on function api.fleet_status is 'Counts, versions and failures of the whole fleet.';

create or replace function api.fleet_to_sweep(all_tenants boolean) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(t.project_id), '[]'))
    from app.tenants t
   where t.status = 'ready'
     and (fleet_to_sweep.all_tenants or t.last_written_at > internal.now() - interval '15 minutes')
$$;
comment on function api.fleet_to_sweep is 'Tenants that are ready: those that were written to recently, or all.';

create or replace function api.sweep_take(all_tenants boolean, batch int default null) returns api.reply
language plpgsql volatile as $$
declare
  taken json;
begin
  with picked as (
    select t.project_id
      from app.tenants t
     where t.status = 'ready'
       and case when sweep_take.all_tenants then coalesce(t.swept_at < internal.now() - interval '15 minutes', true)
                else t.last_written_at > internal.now() - interval '15 minutes'
                     and coalesce(t.swept_at < internal.now() - interval '50 seconds', true) end
     order by t.swept_at nulls first, t.project_id
     -- one call a minute covers all tenants in 45 minutes, which leaves time to check missed ones again within the hour
     limit coalesce(sweep_take.batch, (select ceil(count(*) / 45.0) from app.tenants n where n.status = 'ready'))
       for update skip locked
  ), noted as (
    update app.tenants t set swept_at = internal.now() from picked p where t.project_id = p.project_id
    returning t.project_id
  )
  select json_agg(n.project_id) into taken from noted n;
  return internal.reply(200, coalesce(taken, '[]'));
end $$;
comment on function api.sweep_take is
  'The tenants whose outbox to check next, longest unchecked first, and records that they were checked: either tenants
   that were written to recently, or a share of all tenants such that one call a minute reaches each within the hour.
   Skips locked rows.';

create or replace function api.fleet_page(after uuid, batch int) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(f.project_id order by f.project_id), '[]'))
    from (select t.project_id
            from app.tenants t
           where t.status = 'ready' and (fleet_page.after is null or t.project_id > fleet_page.after)
           order by t.project_id
           limit fleet_page.batch) f
$$;
comment on function api.fleet_page is
  'A page of ready tenants, ordered by id, after the given one: for jobs that visit all tenants.';

create or replace function api.tenants_written(project_ids json) returns api.reply
language plpgsql volatile as $$
begin
  update app.tenants t set last_written_at = internal.now()
   where t.project_id in (select p::uuid from json_array_elements_text(tenants_written.project_ids) p);
  return internal.reply(200, 'true');
end $$;
comment on function api.tenants_written is
  'Records that tenants were written to, so that the sweep of every minute checks them.';

create or replace function api.provision_stalled() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(t.project_id), '[]'))
    from app.tenants t
   where t.status = 'provisioning' and t.moved_at < internal.now() - interval '1 minute'
$$;
comment on function api.provision_stalled is 'Tenants whose provisioning has stalled, for the sweep to queue again.';

create or replace function api.workers_beat(ids json) returns api.reply
language sql volatile as $$
  -- real time, not internal.now(), which tests set: a heartbeat concerns processes
  insert into app.workers as w (id, started_at, heartbeat_at)
  select i, clock_timestamp(), clock_timestamp() from json_array_elements_text(workers_beat.ids) i order by i
  on conflict (id) do update set heartbeat_at = clock_timestamp();
  select internal.reply(200, 'true');
$$;
comment on function api.workers_beat is 'Records a heartbeat of these workers.';

create or replace function api.workers_stopped(ids json) returns api.reply
language sql volatile as $$
  delete from app.workers w where w.id in (select i from json_array_elements_text(workers_stopped.ids) i);
  select internal.reply(200, 'true');
$$;
comment on function api.workers_stopped is 'Records that these workers ended in order and hold no locked jobs.';

create or replace function api.control_maintain() returns api.reply
language plpgsql volatile as $$
begin
  delete from app.rate_limits r where r.started_at < internal.now() - interval '2 days';
  delete from app.operations o where o.created_at < internal.now() - interval '90 days';
  delete from app.developer_sessions s where coalesce(s.ended_at, s.expires_at) < internal.now() - interval '30 days';
  perform internal.purge_accounts();
  perform internal.purge_billing();
  perform internal.purge_webhooks();
  return internal.reply(200, 'true');
end $$;
comment on function api.control_maintain is
  'Daily: deletes expired rate-limit windows, operations, sessions, codes, tokens, traffic and deliveries of webhooks.';

create or replace function api.workers_gone(silent_seconds int) returns api.reply
language plpgsql volatile as $$
declare
  gone json;
begin
  with removed as (
    delete from app.workers w
     where w.heartbeat_at < clock_timestamp() - make_interval(secs => workers_gone.silent_seconds)
    returning w.id
  )
  select coalesce(json_agg(r.id), '[]') into gone from removed r;
  return internal.reply(200, gone);
end $$;
comment on function api.workers_gone is
  'Workers without a heartbeat for too long, whose rows this deletes; the caller must unlock their jobs.';
