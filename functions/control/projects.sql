-- Projects, their API keys, and the provisioning of each project's database.

create or replace function internal.owner_share(organization_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  -- accounts cost nothing until an address is verified: those whose is not are one owner here
  select case when d.account_state = 'sandbox' then 'sandbox' else coalesce(d.id, o.id)::text end
    from app.organizations o
    left join lateral (select d.id, d.account_state from app.organization_members n
                         join app.developers d on d.id = n.developer_id
                        where n.organization_id = o.id and n.role = 'owner'
                        order by d.account_state = 'sandbox', d.id is distinct from o.developer_id, n.joined_at, d.id
                          limit 1) d on true
   where o.id = owner_share.organization_id
$$;
comment on function internal.owner_share is
  'Who the queues of jobs take the owner of an organization for, in names of queues: the id of a verified account,
   whatever the number of its organizations, or sandbox. Granted to nobody.';

create or replace function internal.job_lane(kind text, project_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  select job_lane.kind || ' ' || s.share
         -- an owner has one of these, and those that share one share two
         || case when job_lane.kind = 'indexes' or job_lane.kind = 'projects' and s.share <> 'sandbox' then ''
                 else ' ' || (hashtext(p.id::text) & 1) end
    from app.projects p
    cross join lateral (select internal.owner_share(p.organization_id) as share) s
   where p.id = job_lane.project_id
$$;
comment on function internal.job_lane is
  'The queue of a job for a project, of which one runs at a time: an owner has two queues for operations, one for the
   making of databases and one for indexes, whatever the number of projects. So no owner holds all slots of a worker.
   Accounts in the sandbox share two for databases. Granted to nobody.';

create or replace function internal.add_job(task text, payload json, job_key text, lane text default null) returns void
language sql volatile security definer set search_path = '' as $$
  select graphile_worker.add_job(add_job.task, payload := add_job.payload, job_key := add_job.job_key,
                                 queue_name := add_job.lane, max_attempts := 25,
                                  -- a person waits for this job: it precedes migrations and drains, which have priority
                                  -- 0, and drains that a sweep has queued
                                  priority := -5)
$$;
comment on function internal.add_job is
  'Queues a graphile-worker job in this transaction, so that the job exists exactly if its cause is committed. For the
   control database only; tenants have their outbox. Granted to nobody.';

create or replace function internal.effective_tier(tier text, comped boolean) returns text
language sql immutable parallel safe
return case when effective_tier.comped then 'enterprise' else effective_tier.tier end;
comment on function internal.effective_tier is
  'The tier that determines quotas: enterprise for a comped project, whose stored tier does not change.';

create or replace function internal.project_json(p app.projects) returns json
language sql stable as $$
  select json_build_object(
    'id', (project_json.p).id, 'name', (project_json.p).name, 'developer_id', (project_json.p).developer_id,
    'organization_id', (project_json.p).organization_id,
    'bundle_id', (project_json.p).bundle_id, 'google_oauth_client_id', (project_json.p).google_oauth_client_id,
    'platform', (project_json.p).platform, 'environment', (project_json.p).environment, 'tier', (project_json.p).tier,
    'effective_tier', internal.effective_tier((project_json.p).tier, (project_json.p).comped),
    'comped', (project_json.p).comped,
    'default_from_email', (project_json.p).default_from_email, 'default_from_name', (project_json.p).default_from_name,
    'default_reply_to', (project_json.p).default_reply_to,
    'magic_link_redirect_url', (project_json.p).magic_link_redirect_url,
    'auth_email_brand_name', (project_json.p).auth_email_brand_name,
    'user_search_enabled', (project_json.p).user_search_enabled,
    'graphql_enabled', (project_json.p).graphql_enabled,
    'rest_enabled', (project_json.p).rest_enabled,
    'anonymous_reads', (project_json.p).anonymous_reads,
    'created_at', internal.iso((project_json.p).created_at), 'updated_at', internal.iso((project_json.p).updated_at))
$$;
comment on function internal.project_json is 'A project as responses show it.';

create or replace function internal.own_project(project_id uuid) returns app.projects
language plpgsql stable as $$
declare
  found_project app.projects;
begin
  -- row-level security leaves only the caller's own projects; the HTTP layer has distinguished 404 from 403 already
  select p.* into found_project from app.projects p where p.id = own_project.project_id and p.deleted_at is null;
  perform internal.check_found(found_project.id is not null, 'project');
  return found_project;
end $$;
comment on function internal.own_project is 'A project of the caller. Refuses 404 NOT_FOUND.';

create or replace function internal.own_project_lock(project_id uuid) returns app.projects
language plpgsql volatile as $$
begin
  -- a concurrent deletion has committed or rolled back when this holds the row lock
  perform from app.projects p where p.id = own_project_lock.project_id and p.deleted_at is null for key share;
  return internal.own_project(own_project_lock.project_id);
end $$;
comment on function internal.own_project_lock is
  'A project of the caller that is not deleted before the transaction ends. Refuses 404 NOT_FOUND.';

create or replace function internal.choose_cluster() returns uuid
language sql stable security definer set search_path = '' as $$
  select c.id
    from app.clusters c
   where c.is_open and c.capacity > (select count(*) from app.tenants t where t.cluster_id = c.id)
   order by c.capacity - (select count(*) from app.tenants t where t.cluster_id = c.id) desc, c.created_at
   limit 1
$$;
comment on function internal.choose_cluster is
  'The open cluster with the most free capacity, or null when all are closed or full.';

create or replace function internal.provisioning_steps() returns jsonb
language sql immutable as $$
  select jsonb_agg(jsonb_build_object('name', s.name, 'status', 'pending', 'started_at', null, 'finished_at',
                                      null) order by s.n)
    from unnest(array['create_database', 'run_migrations', 'create_roles', 'seed_defaults',
                      'verify']) with ordinality as s (name, n)
$$;
comment on function internal.provisioning_steps is 'The steps of provisioning a tenant, all pending.';

create or replace function internal.provisioning_absent_json() returns json
language sql stable as $$
  select json_build_object(
    'status', 'failed', 'workflow_id', null, 'current_step', null, 'steps', internal.provisioning_steps(), 'attempt', 0,
    'is_stalled', false, 'started_at', null, 'completed_at', null,
    'error', json_build_object('code', 'NOT_STARTED',
                               'message', 'No cluster had free capacity. POST reprovision to try again.'))
$$;
comment on function internal.provisioning_absent_json is
  'The progress of a project that was created while no cluster was open: provisioning has not started.';

create or replace function internal.provisioning_start(project_id uuid, database_name text) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  cluster uuid;
begin
  -- projects are placed one after the other: two never take the last place together
  perform from app.clusters c where c.is_open order by c.id for no key update;
  cluster := internal.choose_cluster();
  if not exists (select from app.projects p where p.id = provisioning_start.project_id
                    and p.organization_id = any (internal.organization_ids('admin'))) then
    raise exception 'a database is made for the caller''s own projects only';
  end if;
  if cluster is null then
    perform internal.control_event('project.provisioning_failed', p.organization_id, p.id,
                                   internal.json_merge(internal.project_json(p),
                                                       json_build_object('provisioning',
                                                                         internal.provisioning_absent_json())))
       from app.projects p where p.id = provisioning_start.project_id;
    return 'failed';
  end if;
  insert into app.tenants (project_id, cluster_id, database_name, workflow_id, steps)
  values (provisioning_start.project_id, cluster, provisioning_start.database_name,
          'provision-' || provisioning_start.project_id, internal.provisioning_steps());
  perform internal.add_job('tenant__provision', json_build_object('project_id', provisioning_start.project_id),
                           'provision ' || provisioning_start.project_id,
                           internal.job_lane('projects', provisioning_start.project_id));
  return 'provisioning';
end $$;
comment on function internal.provisioning_start is
  'Places a new project on a cluster and queues the creation of its database, in this transaction. failed: no cluster is
   open and has room. Locks the clusters.';

create or replace function internal.project_place_check(organization_id uuid, sandbox_projects int,
                                                        account_projects int)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  home constant uuid := coalesce(project_place_check.organization_id,
                                 (select o.id from app.organizations o where o.developer_id = internal.developer_id()));
  them app.developers;
  most int;
begin
  -- the organization before the account, as in every change of members
  perform from app.organizations o where o.id = home for key share;
  if project_place_check.organization_id is not null then
    -- its API keys are in the response, and keys are an admin's
    perform internal.organization_check(project_place_check.organization_id, 'admin');
  end if;
  perform internal.lock_own_account();
  select d.* into them from app.developers d where d.id = internal.developer_id();
  if them.provisioning is distinct from 'on' then
    perform internal.fail(403, 'INVITE_REQUIRED', 'This account needs an invite before it can create projects.');
  end if;
  most := case them.account_state when 'sandbox' then project_place_check.sandbox_projects
               when 'verified_free' then project_place_check.account_projects end;
  perform internal.check_limit((select count(*) from app.projects p
                                 where p.developer_id = them.id and p.deleted_at is null), most,
                               case when them.account_state = 'sandbox'
                                    then format('An account has at most %s projects until its address is verified: '
                                                'sign in with a code by mail.', most)
                                    else format('An account has at most %s projects.', most) end)
    where most is not null;
end $$;
comment on function internal.project_place_check is
  'Whether the caller may make one more project, in an organization (null: the personal one). Refuses 404 NOT_FOUND, 403
   ROLE_FORBIDDEN, INVITE_REQUIRED, 401 INVALID_DEVELOPER_TOKEN, 409 LIMIT_REACHED. Locks the organization against
   deletion, then the account.';

create or replace function api.project_create(
  id uuid, name text, keys json, signing json, database_name text, bundle_id text default null,
  google_oauth_client_id text default null, platform text default 'all', environment text default 'production',
  organization_id uuid default null, sandbox_projects int default 3, account_projects int default 100)
returns api.reply
language plpgsql volatile as $$
declare
  made app.projects;
  provisioning text;
begin
  perform internal.project_place_check(project_create.organization_id, project_create.sandbox_projects,
                                       project_create.account_projects);
  insert into app.projects (id, developer_id, organization_id, name, bundle_id, google_oauth_client_id, platform,
                            environment)
  values (project_create.id, internal.developer_id(), project_create.organization_id, project_create.name,
          project_create.bundle_id,
          project_create.google_oauth_client_id, project_create.platform, project_create.environment)
  returning * into made;
  insert into app.project_signing_keys (project_id, key_id, public_jwk, sealed)
  values (made.id, project_create.signing ->> 'key_id', project_create.signing -> 'public_jwk',
          project_create.signing ->> 'sealed');
  insert into app.api_keys (project_id, key_prefix, key_hash, key_type, environment)
  select made.id, k.key_prefix, k.key_hash, k.key_type, k.environment
    from json_to_recordset(project_create.keys) as k (key_prefix text, key_hash text, key_type text, environment text);
  provisioning := internal.provisioning_start(made.id, project_create.database_name);
  return internal.reply(201, json_build_object('project', internal.project_json(made),
                                               'provisioning_status', provisioning));
end $$;
comment on function api.project_create is
  'Creates a project with its API keys, as hashes: 201 {project, provisioning_status}; the server adds the texts of the
   keys to this response only. organization_id null: the caller''s personal organization. Refuses as
   internal.project_place_check.';

create or replace function api.project_list(organization_id uuid default null) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(json_build_object(
           'id', p.id, 'name', p.name, 'tier', p.tier, 'effective_tier', internal.effective_tier(p.tier, p.comped),
           'comped', p.comped, 'created_at', internal.iso(p.created_at)) order by p.created_at desc, p.id desc), '[]'))
    from app.projects p
   where p.organization_id = any ((select internal.organization_ids())::uuid[]) and p.deleted_at is null
     and (project_list.organization_id is null or p.organization_id = project_list.organization_id)
$$;
comment on function api.project_list is 'Projects of the caller''s organizations, or of one of them, newest first.';

select internal.row_declare('api_key_json', null::app.api_keys,
                            '{id,key_prefix,key_type,environment,is_active,created_at,last_used_at,expires_at}');
comment on function internal.api_key_json is 'An API key as responses show it: its prefix, without text and hash.';

create or replace function api.project_get(project_id uuid) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(project_get.project_id);
begin
  return internal.reply(200, internal.json_merge(
    internal.project_json(project),
    json_build_object('api_keys', coalesce((
      select json_agg(internal.api_key_json(k) order by k.created_at desc, k.id desc)
        from app.api_keys k
       where k.project_id = project.id), '[]'))));
end $$;
comment on function api.project_get is
  'A project with its API keys; the server adds the integrations, which are stored in the project''s own database.
   Refuses 404 NOT_FOUND.';

create or replace function internal.tg_projects__development() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if new.environment <> 'development' then
    new.development_since := null;
  elsif tg_op = 'INSERT' or old.environment <> 'development' then
    new.development_since := internal.now();
  end if;
  return new;
end $$;
comment on function internal.tg_projects__development is
  'Records since when a project is in development. Each return to it begins anew, so that no session for tests of an
   earlier time comes back.';
create or replace trigger tg_projects__development
  before insert or update of environment on app.projects
  for each row execute function internal.tg_projects__development();

create or replace function internal.project_guard_check(project app.projects, patch jsonb) returns void
language plpgsql stable as $$
begin
  if exists (select from unnest('{environment,bundle_id,google_oauth_client_id,magic_link_redirect_url}'::text[]) f
              where project_guard_check.patch ? f and project_guard_check.patch ->> f is distinct
                from to_jsonb(project_guard_check.project) ->> f) then
    perform internal.organization_check((project_guard_check.project).organization_id, 'admin');
  end if;
end $$;
comment on function internal.project_guard_check is
  'Refuses 403 ROLE_FORBIDDEN to a member below admin who changes what decides how the project''s users sign in: with
   another value of these fields anybody could sign in as any of them.';

create or replace function api.project_patch(project_id uuid, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  project app.projects := internal.own_project_lock(project_patch.project_id);
begin
  perform internal.project_guard_check(project, project_patch.patch);
  if project_patch.patch ->> 'default_from_email' is not null
     and not internal.domain_sends(project.id, project_patch.patch ->> 'default_from_email') then
    perform internal.fail(400, 'INVALID_SENDER',
                          'default_from_email must be on a verified sending domain of the project.',
                          '{"field": "default_from_email", "reason": "is not on a verified sending domain"}');
  end if;
  if (select count(*) from jsonb_object_keys(project_patch.patch)) > 0 then
    update app.projects p
       set name = case when project_patch.patch ? 'name' then project_patch.patch ->> 'name' else p.name end,
           bundle_id = case when project_patch.patch ? 'bundle_id' then project_patch.patch ->> 'bundle_id'
                            else p.bundle_id end,
           google_oauth_client_id = case when project_patch.patch ? 'google_oauth_client_id'
                                           then project_patch.patch ->> 'google_oauth_client_id'
                                             else p.google_oauth_client_id end,
           platform = case when project_patch.patch ? 'platform' then project_patch.patch ->> 'platform'
                           else p.platform end,
           environment = case when project_patch.patch ? 'environment' then project_patch.patch ->> 'environment'
                              else p.environment end,
           default_from_email = case when project_patch.patch ? 'default_from_email'
                                       then project_patch.patch ->> 'default_from_email' else p.default_from_email end,
           default_from_name = case when project_patch.patch ? 'default_from_name'
                                      then project_patch.patch ->> 'default_from_name' else p.default_from_name end,
           default_reply_to = case when project_patch.patch ? 'default_reply_to'
                                     then project_patch.patch ->> 'default_reply_to' else p.default_reply_to end,
           magic_link_redirect_url = case when project_patch.patch ? 'magic_link_redirect_url'
                                            then project_patch.patch ->> 'magic_link_redirect_url'
                                              else p.magic_link_redirect_url end,
           auth_email_brand_name = case when project_patch.patch ? 'auth_email_brand_name'
                                          then project_patch.patch ->> 'auth_email_brand_name'
                                            else p.auth_email_brand_name end,
           rest_enabled = case when project_patch.patch ? 'rest_enabled'
                                 then (project_patch.patch ->> 'rest_enabled')::boolean else p.rest_enabled end,
           anonymous_reads = case when project_patch.patch ? 'anonymous_reads'
                                    then (project_patch.patch ->> 'anonymous_reads')::boolean
                                      else p.anonymous_reads end,
           user_search_enabled = case when project_patch.patch ? 'user_search_enabled'
                                        then (project_patch.patch ->> 'user_search_enabled')::boolean
                                          else p.user_search_enabled end,
           graphql_enabled = case when project_patch.patch ? 'graphql_enabled'
                                    then (project_patch.patch ->> 'graphql_enabled')::boolean
                                      else p.graphql_enabled end,
           updated_at = internal.now()
     where p.id = project.id
    returning p.* into project;
    perform internal.changed('project:' || project.id);
  end if;
  return internal.reply(200, json_build_object('id', project.id, 'name', project.name,
                                               'updated_at', internal.iso(project.updated_at)));
end $$;
comment on function api.project_patch is
  'Changes the fields that are present; null clears a nullable field; an empty patch changes nothing. Refuses 404
   NOT_FOUND, 400 INVALID_INPUT, INVALID_SENDER, and as internal.project_guard_check.';

create or replace function api.api_key_create(project_id uuid, key_prefix text, key_hash text, key_type text,
                                              environment text)
returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project_lock(api_key_create.project_id);
begin
  perform internal.lock_own_account();
  insert into app.api_keys (project_id, key_prefix, key_hash, key_type, environment)
  values (project.id, api_key_create.key_prefix, api_key_create.key_hash, api_key_create.key_type,
          api_key_create.environment);
  return internal.reply(201, json_build_object('prefix', api_key_create.key_prefix, 'type', api_key_create.key_type,
                                               'environment', api_key_create.environment));
end $$;
comment on function api.api_key_create is
  'Creates another API key of a project; the server adds its text to this response only. Refuses 404 NOT_FOUND, 401
   INVALID_DEVELOPER_TOKEN. Locks the project, then the account.';

create or replace function api.api_key_deactivate(project_id uuid, key_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(api_key_deactivate.project_id);
  key app.api_keys;
begin
  update app.api_keys k set is_active = false
   where k.id = api_key_deactivate.key_id and k.project_id = project.id
  returning k.* into key;
  perform internal.check_found(key.id is not null, 'key');
  perform internal.changed('key:' || key.key_hash);
  return internal.reply(200, internal.api_key_json(key));
end $$;
comment on function api.api_key_deactivate is
  'Deactivates a key; idempotent. The server evicts its cached copy before it responds. Refuses 404 NOT_FOUND.';

create or replace function internal.api_key_rotatable(project_id uuid, key_id uuid) returns app.api_keys
language plpgsql stable as $$
declare
  key app.api_keys;
begin
  select k.* into key
    from app.api_keys k
   where k.id = api_key_rotatable.key_id and k.project_id = api_key_rotatable.project_id;
  perform internal.check_found(key.id is not null, 'key');
  if not key.is_active then
    perform internal.fail(409, 'CONFLICT', 'This key is deactivated: create another one.');
  elsif key.expires_at is not null then
    perform internal.fail(409, 'CONFLICT',
                          'This key was rotated already: it is accepted until ' || internal.iso(key.expires_at) || '.');
  end if;
  return key;
end $$;
comment on function internal.api_key_rotatable is
  'A key of a project that can be rotated. Refuses 404 NOT_FOUND, 409 CONFLICT for one that is deactivated or was
   rotated before.';

create or replace function api.api_key_to_rotate(project_id uuid, key_id uuid) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(api_key_to_rotate.project_id);
begin
  return internal.reply(200, internal.api_key_json(internal.api_key_rotatable(project.id, api_key_to_rotate.key_id)));
end $$;
comment on function api.api_key_to_rotate is
  'A key that can be rotated, for the server, which makes a text of the same type and environment. Refuses 404
   NOT_FOUND, and as internal.api_key_rotatable.';

create or replace function api.api_key_rotate(project_id uuid, key_id uuid, key_prefix text, key_hash text,
                                              grace_seconds int default 86400) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project_lock(api_key_rotate.project_id);
  former app.api_keys;
begin
  perform internal.lock_own_account();
  update app.api_keys k
     set expires_at = internal.now() + make_interval(secs => api_key_rotate.grace_seconds),
         is_active = api_key_rotate.grace_seconds > 0
   where k.id = api_key_rotate.key_id and k.project_id = project.id and k.is_active and k.expires_at is null
  returning k.* into former;
  if former.id is null then
    -- says why
    former := internal.api_key_rotatable(project.id, api_key_rotate.key_id);
  end if;
  insert into app.api_keys (project_id, key_prefix, key_hash, key_type, environment)
  values (project.id, api_key_rotate.key_prefix, api_key_rotate.key_hash, former.key_type, former.environment);
  perform internal.changed('key:' || former.key_hash);
  return internal.reply(201, json_build_object('prefix', api_key_rotate.key_prefix, 'type', former.key_type,
                                               'environment', former.environment));
end $$;
comment on function api.api_key_rotate is
  'Creates a key of the same type and environment as another one, which is accepted for grace_seconds more; 0: it is
   deactivated at once. The server adds the text of the new key to this response only, and evicts its cached copy of
   the former one before it responds. Refuses 404 NOT_FOUND, 401 INVALID_DEVELOPER_TOKEN, and as
   internal.api_key_rotatable. Locks the project, then the account.';

create or replace function api.api_keys_expire() returns api.reply
language sql volatile security definer set search_path = '' as $$
  with ended as (
    update app.api_keys k set is_active = false
     where k.is_active and k.expires_at <= internal.now()
    returning internal.changed('key:' || k.key_hash))
  select internal.reply(200, to_json(count(*))) from ended
$$;
comment on function api.api_keys_expire is
  'Deactivates rotated keys whose time is over, for the sweep: they are refused from expires_at on, and here their
   revocation is told. Returns their number.';

create or replace function internal.provisioning_json(t app.tenants) returns json
language sql stable as $$
  select internal.json_merge(json_build_object(
    'status', (provisioning_json.t).status, 'workflow_id', (provisioning_json.t).workflow_id,
    'current_step', (select s ->> 'name' from jsonb_array_elements((provisioning_json.t).steps) s
                      where s ->> 'status' = 'running' limit 1),
    'steps', (provisioning_json.t).steps, 'attempt', (provisioning_json.t).attempt,
    'is_stalled', (provisioning_json.t).status = 'provisioning'
      and (provisioning_json.t).moved_at < internal.now() - interval '5 minutes',
    'started_at', internal.iso((provisioning_json.t).started_at),
    'completed_at', internal.iso((provisioning_json.t).completed_at),
    'error', (provisioning_json.t).error),
    case when (provisioning_json.t).data_lost_at is null then '{}'
         else json_build_object('data_lost_at', internal.iso((provisioning_json.t).data_lost_at)) end)
$$;
comment on function internal.provisioning_json is
  'The progress of creating a database. Stalled: no step advanced for five minutes. data_lost_at is set only when an
   empty database replaced one that was lost.';

create or replace function api.provisioning_status(project_id uuid) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(provisioning_status.project_id);
  tenant app.tenants;
begin
  select t.* into tenant from app.tenants t where t.project_id = project.id;
  if tenant.project_id is null then
    -- no cluster was open when the project was created: provisioning has not started
    return internal.reply(200, internal.provisioning_absent_json());
  end if;
  return internal.reply(200, internal.provisioning_json(tenant));
end $$;
comment on function api.provisioning_status is 'The progress of a project''s provisioning. Refuses 404 NOT_FOUND.';

create or replace function internal.provisioning_restart(project_id uuid, database_name text,
                                                         workflow_id text default null)
returns app.tenants
language plpgsql volatile security definer set search_path = '' as $$
declare
  tenant app.tenants;
  was_gone boolean;
begin
  -- locks the project's row, which serialises two restarts of a project that was never placed, and a restart and a
  -- deletion
  perform from app.projects p
    where p.id = provisioning_restart.project_id and p.organization_id = any (internal.organization_ids('developer'))
      and p.deleted_at is null
      for update;
  perform internal.check_found(found, 'project');
  select t.* into tenant from app.tenants t where t.project_id = provisioning_restart.project_id for update;
  if tenant.project_id is null then
    if internal.provisioning_start(provisioning_restart.project_id, provisioning_restart.database_name) = 'failed' then
      perform internal.fail(503, 'TENANT_UNAVAILABLE',
                            'No cluster has free capacity for another database: try again later.', null,
                              '{"Retry-After": "60"}');
    end if;
    update app.tenants t set workflow_id = coalesce(provisioning_restart.workflow_id, t.workflow_id)
     where t.project_id = provisioning_restart.project_id
    returning t.* into tenant;
    perform internal.audit('projects.reprovision', 'projects', tenant.project_id::text,
                           json_build_object('attempt', json_build_array(null, tenant.attempt)), 202,
                           tenant.project_id);
    return tenant;
  end if;
  if tenant.status = 'ready' then
    perform internal.fail(409, 'ALREADY_PROVISIONED',
                          'The database of this project is ready: there is nothing to provision.');
  end if;
  if tenant.status = 'provisioning' and tenant.moved_at >= internal.now() - interval '5 minutes' then
    perform internal.fail(409, 'ALREADY_RUNNING', 'The database of this project is being created already.');
  end if;
  was_gone := internal.database_is_gone(tenant);
  update app.tenants t
     set status = 'provisioning', attempt = t.attempt + 1, error = null,
         data_lost_at = case when was_gone then internal.now() else t.data_lost_at end,
         workflow_id = coalesce(provisioning_restart.workflow_id, t.workflow_id), started_at = internal.now(),
         moved_at = internal.now(),
         completed_at = null,
         -- steps that succeeded are kept; the others run again
         steps = (select jsonb_agg(case when s.value ->> 'status' = 'succeeded' then s.value
                                        else s.value || '{"status": "pending", "started_at": null, "finished_at": '
                                                        'null}' end order by s.n)
                    from jsonb_array_elements(t.steps) with ordinality as s (value, n))
   where t.project_id = provisioning_restart.project_id
  returning t.* into tenant;
  perform internal.add_job('tenant__provision', json_build_object('project_id', tenant.project_id),
                           'provision ' || tenant.project_id,
                           internal.job_lane('projects', tenant.project_id));
  perform internal.audit('projects.reprovision', 'projects', tenant.project_id::text, internal.json_merge(
                           json_build_object('attempt', json_build_array(tenant.attempt - 1, tenant.attempt)),
                           case when was_gone then '{"data_lost": [false, true]}' else '{}' end::json), 202,
                           tenant.project_id);
  return tenant;
end $$;
comment on function internal.provisioning_restart is
  'Starts the creation of a database again, at the first step that has not succeeded, or from the beginning if the
   database was lost, under the given workflow id. Refuses 404 NOT_FOUND, 409 ALREADY_PROVISIONED, ALREADY_RUNNING, 503
   TENANT_UNAVAILABLE. Locks project and tenant.';

create or replace function api.reprovision(project_id uuid, database_name text, workflow_id text default null)
returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(reprovision.project_id);
  tenant constant app.tenants := internal.provisioning_restart(project.id, reprovision.database_name,
                                                               reprovision.workflow_id);
begin
  return internal.reply(202, internal.json_merge(
    json_build_object('provisioning_status', tenant.status, 'workflow_id', tenant.workflow_id,
                      'attempt', tenant.attempt),
    case when tenant.data_lost_at = tenant.started_at then '{"data_lost": true}' else '{}' end::json));
end $$;
comment on function api.reprovision is
  '202, with data_lost when the database was lost and an empty one is created. Refuses 404 NOT_FOUND, and as
   internal.provisioning_restart.';

create or replace function internal.tg_projects__organization_trail() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() = 'developer' then
    -- the project's own trail goes with it
    perform internal.audit('projects.' || case tg_op when 'INSERT' then 'create' else 'delete' end, 'projects',
                           new.id::text,
                           json_build_object('name', case tg_op when 'INSERT' then json_build_array(null, new.name)
                                                          else json_build_array(new.name, null) end),
                           case tg_op when 'INSERT' then 201 else 200 end, new.organization_id);
  end if;
  return null;
end $$;
comment on function internal.tg_projects__organization_trail is
  'Audits the making and the deletion of a project in the trail of its organization too, which outlives the project.';
create or replace trigger tg_projects__organization_trail_made
  after insert on app.projects
  for each row execute function internal.tg_projects__organization_trail();
create or replace trigger tg_projects__organization_trail_deleted
  after update of deleted_at on app.projects
  for each row when (old.deleted_at is null and new.deleted_at is not null)
  execute function internal.tg_projects__organization_trail();

select internal.audit_declare('app.projects', 'projects');
select internal.audit_declare('app.api_keys', 'api_keys', 'key_hash');
