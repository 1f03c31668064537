-- Look-ups that fill the server's project cache: the project of an API key, the place of the project's database, the
-- keys that sign its tokens. The server caches the results for at most 30 seconds.
create or replace function internal.signing_keys(project_id uuid) returns setof app.project_signing_keys
language sql stable as $$
  select k.*
    from app.project_signing_keys k
   where k.project_id = signing_keys.project_id
     and not exists (select from app.project_signing_keys newer
                      where newer.project_id = k.project_id and newer.use_from > k.use_from
                        and newer.use_from <= internal.now() - interval '2 hours')
   order by k.use_from desc
$$;
comment on function internal.signing_keys is
  'The keys of a project''s session tokens, newest first: one that will sign within a minute, the one that signs, and
   those before it for two hours after they signed last.';

create or replace function internal.template_hash() returns text
language sql stable security definer set search_path = '' as $$
  select t.content_hash from app.templates t join app.clusters c on c.id = t.cluster_id where c.name = 'own'
$$;
comment on function internal.template_hash is
  'The program that new projects are made of, as control notes it; null before there is one.';

create or replace function internal.edge_json(project_id uuid) returns json
language sql stable as $$
  select json_build_object(
           'project_id', p.id, 'developer_id', p.developer_id, 'organization_id', p.organization_id,
             'environment', p.environment,
           'development_since', p.development_since, 'is_sandbox', internal.project_is_sandbox(p.id),
           'effective_tier', internal.effective_tier(p.tier, p.comped), 'comped', p.comped,
           'user_search_enabled', p.user_search_enabled,
           'graphql_enabled', p.graphql_enabled,
           'rest_enabled', p.rest_enabled, 'anonymous_reads', p.anonymous_reads,
           'signing_keys', (select json_agg(json_build_object('key_id', s.key_id, 'public_jwk', s.public_jwk,
                                                              'sealed', s.sealed,
                                                              'use_from', internal.iso(s.use_from))
                                                                order by s.use_from desc)
                              from internal.signing_keys(p.id) s),
           'tenant', case when t.project_id is not null then json_build_object(
             'status', t.status, 'cluster_id', t.cluster_id, 'database_name', t.database_name,
             'schema_version', t.schema_version, 'content_hash', t.content_hash,
             -- a reload changes the template and then each project, while servers go on
             'is_behind', coalesce(t.content_hash <> internal.template_hash(), false),
             'hold', t.hold, 'most_connections', t.most_connections) end)
    from app.projects p
    left join app.tenants t on t.project_id = p.id
   where p.id = edge_json.project_id and p.deleted_at is null
$$;
comment on function internal.edge_json is 'A project as the server''s project cache holds it, or null.';

create or replace function api.edge_key(key_hash text) returns api.reply
language plpgsql volatile as $$
declare
  key app.api_keys;
begin
  select k.* into key
    from app.api_keys k
   where k.key_hash = edge_key.key_hash and k.is_active and (k.expires_at is null or k.expires_at > internal.now());
  if key.id is null then
    return internal.reply(200, 'null');
  end if;
  if key.last_used_at is null or key.last_used_at < internal.now() - interval '1 minute' then
    update app.api_keys k set last_used_at = internal.now() where k.id = key.id;
  end if;
  return internal.reply(200, (
    select json_build_object('key_id', key.id, 'key_type', key.key_type, 'project', e.project,
                             -- a copy in the cache may be 30 seconds old: in its last minute a key is looked up
                             'expires_soon', coalesce(key.expires_at < internal.now() + interval '1 minute', false))
      from (select internal.edge_json(key.project_id) as project) e
     where e.project is not null));
end $$;
comment on function api.edge_key is
  'The active key with this hash and its project, or null. Records the time of the key''s use, at most once a minute.';

create or replace function api.edge_project(project_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.edge_json(edge_project.project_id))
$$;
comment on function api.edge_project is 'A project as the server''s project cache holds it, or null.';
