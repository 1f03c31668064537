-- Operators' commands on projects and accounts, for scripts/admin: run as the owner of the database, granted to nobody.
create or replace function internal.operator_projects(search text, page_limit int) returns json
language sql stable as $$
  select coalesce(json_agg(json_build_object(
           'id', f.id, 'name', f.name, 'organization', f.organization, 'owner', f.owner, 'tier', f.tier,
             'comped', f.comped,
           'status', f.status, 'hold', f.hold, 'hold_note', f.hold_note, 'held_since', internal.iso(f.held_since),
           'most_connections', f.most_connections, 'cluster', f.cluster,
           'database', f.database_name, 'version', f.schema_version, 'migration', f.migration_status,
           'last_written_at', internal.iso(f.last_written_at), 'created_at', internal.iso(f.created_at))
           order by f.created_at desc, f.id desc), '[]')
    from (select p.id, p.name, o.name as organization, d.email as owner, p.tier, p.comped, p.created_at,
                 coalesce(t.status, 'none') as status, t.hold, t.hold_note, t.held_since, t.most_connections,
                 c.name as cluster,
                 t.database_name, t.schema_version, t.migration_status, t.last_written_at
            from app.projects p
            join app.developers d on d.id = p.developer_id
            join app.organizations o on o.id = p.organization_id
            left join app.tenants t on t.project_id = p.id
            left join app.clusters c on c.id = t.cluster_id
           where p.deleted_at is null
             and (operator_projects.search is null
                  or p.id::text = lower(operator_projects.search)
                  or position(lower(operator_projects.search) in lower(concat_ws(' ', p.name, o.name, d.email, c.name,
                                        t.hold, t.status))) > 0)
           order by p.created_at desc, p.id desc
           limit operator_projects.page_limit) f
$$;
comment on function internal.operator_projects is
  'Projects, newest first: those whose id it is, or whose name, organization, owner, cluster, hold or status contains
   the text; null for all.';

create or replace function internal.operator_developers(search text, page_limit int) returns json
language sql stable as $$
  select coalesce(json_agg(json_build_object(
           'id', f.id, 'email', f.email, 'name', f.name, 'account_state', f.account_state,
             'email_verified', f.email_verified,
           'provisioning', f.provisioning, 'projects', f.projects, 'last_seen_at', internal.iso(f.last_seen_at),
           'created_at', internal.iso(f.created_at)) order by f.created_at desc, f.id desc), '[]')
    from (select d.id, d.email, d.name, d.account_state, d.email_verified, d.provisioning, d.created_at,
                 (select count(*) from app.projects p where p.developer_id = d.id and p.deleted_at is null) as projects,
                 (select max(s.last_used_at) from app.developer_sessions s where s.developer_id = d.id) as last_seen_at
            from app.developers d
           where operator_developers.search is null
              or position(lower(operator_developers.search) in lower(concat_ws(' ', d.email, d.name))) > 0
           order by d.created_at desc, d.id desc
           limit operator_developers.page_limit) f
$$;
comment on function internal.operator_developers is
  'Accounts of developers, newest first, whose address or name contains the text; null for all.';

create or replace function internal.operator_tenant(project_id uuid) returns app.tenants
language plpgsql volatile as $$
declare
  project constant app.projects := internal.operator_project(operator_tenant.project_id);
  tenant app.tenants;
begin
  select t.* into tenant from app.tenants t where t.project_id = project.id for no key update;
  perform internal.check_found(tenant.project_id is not null, 'database');
  return tenant;
end $$;
comment on function internal.operator_tenant is
  'The tenant of a project of any developer. Refuses 404 NOT_FOUND. Locks the project, then the tenant.';

create or replace function internal.operator_project_pause(project_id uuid, is_paused boolean, note text default null)
returns json
language plpgsql volatile as $$
declare
  tenant app.tenants := internal.operator_tenant(operator_project_pause.project_id);
  before constant text := tenant.hold;
begin
  if before = 'moving' then
    perform internal.fail(409, 'CONFLICT', 'This project is moving to another server: wait until it has arrived.');
  end if;
  update app.tenants t
     set hold = case when operator_project_pause.is_paused then 'paused' end,
         hold_note = case when operator_project_pause.is_paused then operator_project_pause.note end,
         held_since = case when operator_project_pause.is_paused then coalesce(t.held_since, internal.now()) end
   where t.project_id = tenant.project_id
  returning t.* into tenant;
  if tenant.hold is distinct from before then
    perform internal.audit('projects.update', 'projects', tenant.project_id::text,
                           json_build_object('hold', json_build_array(before, tenant.hold)),
                           scope => tenant.project_id);
  end if;
  if before is not null and tenant.hold is null then
    perform internal.tenant_wake(tenant.project_id);
  end if;
  perform internal.changed('project:' || tenant.project_id);
  return json_build_object('id', tenant.project_id, 'hold', tenant.hold, 'held_since', internal.iso(tenant.held_since));
end $$;
comment on function internal.operator_project_pause is
  'Pauses a project: servers answer 503 for it and workers leave it alone; or ends that. Idempotent. Refuses 404
   NOT_FOUND, 409 CONFLICT while it moves. Locks the project, then the tenant.';

create or replace function internal.tenant_wake(project_id uuid) returns void
language plpgsql volatile as $$
begin
  perform graphile_worker.add_job('tenant__drain', json_build_object('project_id', tenant_wake.project_id),
                                  job_key := tenant_wake.project_id || ':now',
                                  max_attempts := 5);
end $$;
comment on function internal.tenant_wake is 'Has a worker look at the work that waits in a project. Granted to nobody.';

create or replace function internal.operator_project_connections(project_id uuid, most int) returns json
language plpgsql volatile as $$
declare
  tenant app.tenants := internal.operator_tenant(operator_project_connections.project_id);
  before constant int := tenant.most_connections;
begin
  update app.tenants t set most_connections = operator_project_connections.most where t.project_id = tenant.project_id
  returning t.* into tenant;
  if tenant.most_connections is distinct from before then
    perform internal.audit('projects.update', 'projects', tenant.project_id::text,
                           json_build_object('most_connections', json_build_array(before, tenant.most_connections)),
                           scope => tenant.project_id);
  end if;
  perform internal.changed('project:' || tenant.project_id);
  return json_build_object('id', tenant.project_id, 'most_connections', tenant.most_connections);
end $$;
comment on function internal.operator_project_connections is
  'Sets how many connections one server process may hold to a project''s database at most; null removes the bound.
   Refuses 404 NOT_FOUND. Locks the project, then the tenant.';

create or replace function internal.operator_wake(project_id uuid) returns boolean
language plpgsql volatile as $$
begin
  perform internal.tenant_wake((internal.operator_tenant(operator_wake.project_id)).project_id);
  return true;
end $$;
comment on function internal.operator_wake is
  'Has a worker look at the work that waits in a project: true. Refuses 404 NOT_FOUND. Locks the project, then the
   tenant.';

create or replace function internal.operator_move_hold(project_id uuid, is_held boolean) returns boolean
language plpgsql volatile as $$
declare
  tenant constant app.tenants := internal.operator_tenant(operator_move_hold.project_id);
begin
  if tenant.hold = 'paused' and operator_move_hold.is_held then
    perform internal.fail(409, 'CONFLICT', 'This project is paused: end that first.');
  end if;
  update app.tenants t
     set hold = case when operator_move_hold.is_held then 'moving' end, hold_note = null,
         held_since = case when operator_move_hold.is_held then internal.now() end
   where t.project_id = tenant.project_id and t.hold is distinct from 'paused';
  perform internal.changed('project:' || tenant.project_id);
  return true;
end $$;
comment on function internal.operator_move_hold is
  'Holds a project for the moment in which it changes servers, or ends that. Refuses 404 NOT_FOUND, 409 CONFLICT for one
   that is paused. Locks the project, then the tenant.';

create or replace function internal.operator_move_switch(project_id uuid) returns boolean
language plpgsql volatile as $$
declare
  tenant constant app.tenants := internal.operator_tenant(operator_move_switch.project_id);
  moved app.tenant_moves;
begin
  select m.* into moved from app.tenant_moves m where m.project_id = tenant.project_id for update;
  if moved.state is distinct from 'following' or tenant.hold is distinct from 'moving' or tenant.status <> 'ready'
    or tenant.cluster_id <> moved.from_cluster_id then
    return false;
  end if;
  update app.tenants t set cluster_id = moved.to_cluster_id, hold = null, held_since = null, moved_at = internal.now()
    where t.project_id = tenant.project_id;
  update app.tenant_moves m set state = 'switched' where m.project_id = tenant.project_id;
  perform internal.audit('projects.update', 'projects', tenant.project_id::text,
                         json_build_object('cluster', json_build_array((select c.name from app.clusters c
                                                                         where c.id = moved.from_cluster_id),
                                                                       (select c.name from app.clusters c
                                                                         where c.id = moved.to_cluster_id))),
                         scope => tenant.project_id);
  perform internal.changed('project:' || tenant.project_id);
  -- what servers have compiled for its rows
  perform internal.changed('tenant:' || tenant.project_id);
  perform internal.tenant_wake(tenant.project_id);
  return true;
end $$;
comment on function internal.operator_move_switch is
  'Has a project served by the server to which it was moved: true; false when it is not ready for that any more. Refuses
   404 NOT_FOUND, also for a project that was deleted meanwhile. Locks the project, the tenant, the move.';

create or replace function internal.operator_restore_hold(project_id uuid, is_held boolean) returns boolean
language plpgsql volatile as $$
declare
  tenant constant app.tenants := internal.operator_tenant(operator_restore_hold.project_id);
begin
  update app.tenants t
     set hold = case when operator_restore_hold.is_held then 'moving' end,
         held_since = case when operator_restore_hold.is_held then internal.now() end
   where t.project_id = tenant.project_id and t.hold is distinct from 'paused';
  perform internal.changed('project:' || tenant.project_id);
  return true;
end $$;
comment on function internal.operator_restore_hold is
  'Holds a project for the moment in which it gets the database of a backup, or ends that; one that is paused stays so.
   Refuses 404 NOT_FOUND. Locks the project, then the tenant.';

create or replace function internal.operator_project_restored(project_id uuid, schema_version text, content_hash text,
                                                              restored_at text)
returns boolean
language plpgsql volatile as $$
declare
  tenant constant app.tenants := internal.operator_tenant(operator_project_restored.project_id);
begin
  update app.tenants t
     set status = 'ready', error = null, completed_at = internal.now(), moved_at = internal.now(),
         schema_version = operator_project_restored.schema_version,
         content_hash = operator_project_restored.content_hash,
         hold = nullif(t.hold, 'moving'), held_since = case when t.hold <> 'moving' then t.held_since end
   where t.project_id = tenant.project_id;
  perform internal.audit('projects.update', 'projects', tenant.project_id::text,
                         json_build_object('restored_at', json_build_array(null,
                                        operator_project_restored.restored_at)), scope => tenant.project_id);
  perform internal.changed('project:' || tenant.project_id);
  -- what servers have compiled for its rows
  perform internal.changed('tenant:' || tenant.project_id);
  perform internal.tenant_wake(tenant.project_id);
  return true;
end $$;
comment on function internal.operator_project_restored is
  'After a restore in place: the project has the database of a backup, made at this time (ISO 8601), which has this
   program, and is served again. Refuses 404 NOT_FOUND. Locks the project, then the tenant.';

create or replace function internal.operator_project_copied(id uuid, organization_id uuid, source json, keys json,
                                                            signing json, cluster_id uuid, database_name text,
                                                            schema_version text, content_hash text)
returns json
language plpgsql volatile as $$
declare
  owner constant uuid := (select m.developer_id from app.organization_members m
                           where m.organization_id = operator_project_copied.organization_id and m.role = 'owner'
                             order by m.joined_at, m.developer_id limit 1);
  made app.projects;
begin
  perform internal.check_found(owner is not null, 'organization');
  insert into app.projects (id, developer_id, organization_id, name, bundle_id, google_oauth_client_id, platform,
                            environment, magic_link_redirect_url,
                            auth_email_brand_name, user_search_enabled, rest_enabled, anonymous_reads, graphql_enabled)
  select operator_project_copied.id, owner, operator_project_copied.organization_id, s.name, s.bundle_id,
         s.google_oauth_client_id, s.platform, s.environment,
         s.magic_link_redirect_url, s.auth_email_brand_name, s.user_search_enabled, s.rest_enabled,
         -- a copy that was made before the setting is one in which it is off
         coalesce(s.anonymous_reads, false), s.graphql_enabled
    from json_to_record(operator_project_copied.source)
      as s (name text, bundle_id text, google_oauth_client_id text, platform text, environment text,
            magic_link_redirect_url text, auth_email_brand_name text,
            user_search_enabled boolean, rest_enabled boolean, anonymous_reads boolean, graphql_enabled boolean)
  returning * into made;
  insert into app.project_signing_keys (project_id, key_id, public_jwk, sealed)
  values (made.id, operator_project_copied.signing ->> 'key_id',
          (operator_project_copied.signing -> 'public_jwk')::jsonb,
          operator_project_copied.signing ->> 'sealed');
  insert into app.api_keys (project_id, key_prefix, key_hash, key_type, environment)
  select made.id, k.key_prefix, k.key_hash, k.key_type, k.environment
    from json_to_recordset(operator_project_copied.keys) as k (key_prefix text, key_hash text, key_type text,
                                                               environment text);
  insert into app.tenants (project_id, cluster_id, database_name, status, workflow_id, steps, completed_at,
                           schema_version, content_hash, hold,
                           hold_note, held_since)
  values (made.id, operator_project_copied.cluster_id, operator_project_copied.database_name, 'ready',
          'restore-' || made.id,
          (select jsonb_agg(s.value || '{"status": "succeeded"}')
             from jsonb_array_elements(internal.provisioning_steps()) s (value)),
          internal.now(), operator_project_copied.schema_version, operator_project_copied.content_hash, 'paused',
          'restored from a backup', internal.now());
  perform internal.audit('projects.create', 'projects', made.id::text, scope => made.id);
  return internal.project_json(made);
end $$;
comment on function internal.operator_project_copied is
  'A new project of an organization, of its first owner, with a database that was filled from a backup of another
   project: paused, since webhooks, mail and pushes that were queued then would be sent once more. source: columns of
   the former project; keys, signing: as api.project_create takes them. Refuses 404 NOT_FOUND.';
