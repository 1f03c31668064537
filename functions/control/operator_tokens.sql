-- Operator tokens: what a machine or an agent does in projects on behalf of a service account or a developer.
comment on constraint operator_tokens_actor_at_most_200 on app.operator_tokens is
  '400 VALIDATION_ERROR actor: must have at most 200 characters.';

create or replace function internal.operator_token_status(t app.operator_tokens) returns text
language sql stable as $$
  select case when (operator_token_status.t).revoked_at is not null then 'revoked'
              when (operator_token_status.t).expires_at <= internal.now() then 'expired'
              else 'active' end
$$;
comment on function internal.operator_token_status is 'active, expired or revoked.';

create or replace function internal.operator_token_json(t app.operator_tokens) returns json
language sql stable as $$
  select json_build_object(
    'id', (operator_token_json.t).id, 'scopes', to_json((operator_token_json.t).scopes),
      'project_id', (operator_token_json.t).project_id,
    'organization_id', case when (operator_token_json.t).project_id is null
                              then (operator_token_json.t).organization_id end,
    'label', (operator_token_json.t).label, 'actor', (operator_token_json.t).acts_for,
    'status', internal.operator_token_status(operator_token_json.t),
    'expires_at', internal.iso((operator_token_json.t).expires_at),
    'last_used_at', internal.iso((operator_token_json.t).last_used_at),
    'created_at', internal.iso((operator_token_json.t).created_at))
$$;
comment on function internal.operator_token_json is 'An operator token as responses show it, without its text.';

create or replace function internal.service_account_id() returns uuid
language sql stable as $$
  select case when internal.actor() ->> 'type' = 'service_account' then internal.as_uuid(internal.actor() ->> 'id') end
$$;
comment on function internal.service_account_id is 'The service account of this call, or null.';

create or replace function internal.role_scopes(role text) returns text[]
language sql immutable parallel safe as $$
  select case when internal.role_rank(role_scopes.role) >= internal.role_rank('developer') then array['*:write']
              when role_scopes.role = 'viewer' then array['*:read'] else '{}' end
$$;
comment on function internal.role_scopes is 'The ceiling of the tokens that a developer of this role makes.';

create or replace function internal.operator_token_ceiling(organization_id uuid, project_id uuid,
                                                           service_account_id uuid, developer_id uuid,
                                                           out scopes text[], out role text, out project_ids uuid[])
language plpgsql stable security definer set search_path = '' as $$
declare
  account app.service_accounts;
begin
  -- moved or deleted: the token's project is no longer one of the organization
  if operator_token_ceiling.project_id is not null
     and not exists (select from app.projects p where p.id = operator_token_ceiling.project_id and p.deleted_at is null
                        and p.organization_id = operator_token_ceiling.organization_id) then
    return;
  end if;
  if operator_token_ceiling.service_account_id is not null then
    select a.* into account from app.service_accounts a
     where a.id = operator_token_ceiling.service_account_id and a.is_active
       and a.organization_id = operator_token_ceiling.organization_id;
    if account.id is null or operator_token_ceiling.project_id <> all (account.project_ids) then
      return;
    end if;
    scopes := account.scopes;
    role := 'developer';
    project_ids := case when operator_token_ceiling.project_id is not null then array[operator_token_ceiling.project_id]
                        else account.project_ids end;
  else
    select m.role into role
      from app.organization_members m
     where m.organization_id = operator_token_ceiling.organization_id
       and m.developer_id = operator_token_ceiling.developer_id;
    scopes := internal.role_scopes(role);
    -- nothing that needs more is ever delegated
    role := case when internal.role_rank(role) > internal.role_rank('developer') then 'developer' else role end;
    project_ids := case when operator_token_ceiling.project_id is not null
                          then array[operator_token_ceiling.project_id] end;
  end if;
end $$;
comment on function internal.operator_token_ceiling is
  'What the maker of a token may delegate now: scopes, the role on routes, and the projects (null: all of the
   organization). role is null where nothing may be delegated: the account is inactive, the developer has left, the
   project has moved. Granted to nobody.';

create or replace function internal.operator_token_make(project_id uuid, organization_id uuid, scopes json,
                                                        token_hash text, expires_in_seconds int, label text,
                                                        acts_for text)
returns app.operator_tokens
language plpgsql volatile security definer set search_path = '' as $$
declare
  wanted constant text[] := array(select distinct s from json_array_elements_text(operator_token_make.scopes) s
                                   order by 1);
  account constant uuid := internal.service_account_id();
  home uuid := operator_token_make.organization_id;
  own_home uuid;
  ceiling record;
  made app.operator_tokens;
begin
  -- the project before the account, as its deletion locks them
  if operator_token_make.project_id is not null then
    -- shared, as everything below: a transfer, a removal of the member or a narrowing that is under way sees this
    -- token, or this sees that
    select p.organization_id into home from app.projects p
     where p.id = operator_token_make.project_id and p.deleted_at is null for share;
    perform internal.check_found(found, 'project');
  end if;
  if account is not null then
    -- against a change of the ceiling, a deactivation and a deletion at the same time
    select a.organization_id into own_home from app.service_accounts a
     where a.id = account and a.is_active for no key update;
    if own_home is null then
      perform internal.fail(401, 'INVALID_DEVELOPER_TOKEN', 'The developer token is missing, expired or invalid.');
    end if;
  else
    perform internal.lock_own_account();
    perform from app.organization_members m where m.organization_id = home
      and m.developer_id = internal.developer_id() for share;
  end if;
  select c.* into ceiling
    from internal.operator_token_ceiling(home, operator_token_make.project_id, account,
                                         case when account is null then internal.developer_id() end) c;
  if ceiling.role is null then
    perform internal.check_found(operator_token_make.project_id is not null or account is not null, 'organization');
    perform internal.fail(403, 'PROJECT_FORBIDDEN', 'This is outside of the projects that you may delegate.');
  end if;
  if exists (select from unnest(wanted) w where not internal.scope_covers(ceiling.scopes, w)) then
    perform internal.fail(403, 'SCOPE_EXCEEDS_CEILING',
                          'A token may have only scopes that its maker has: details.ceiling lists them.',
                          json_build_object('ceiling', to_json(ceiling.scopes),
                                            'exceeding', (select json_agg(w) from unnest(wanted) w
                                                           where not internal.scope_covers(ceiling.scopes, w))));
  end if;
  perform internal.check_limit((select count(*) from app.operator_tokens t
                                 where (t.service_account_id = account
                                        or t.developer_id = internal.developer_id() and account is null)
                                   and t.revoked_at is null and t.expires_at > internal.now()),
                               200, 'There are 200 live operator tokens already: revoke one first.');
  insert into app.operator_tokens (organization_id, project_id, service_account_id, developer_id, scopes, label,
                                   acts_for, token_hash, expires_at)
  values (home, operator_token_make.project_id, account, case when account is null then internal.developer_id() end,
          wanted,
          operator_token_make.label, operator_token_make.acts_for, operator_token_make.token_hash,
          internal.now() + make_interval(secs => operator_token_make.expires_in_seconds))
  returning * into made;
  return made;
end $$;
comment on function internal.operator_token_make is
  'Creates a token of the caller, a service account or a developer. Refuses 401 INVALID_DEVELOPER_TOKEN, 404 NOT_FOUND,
   403 PROJECT_FORBIDDEN, SCOPE_EXCEEDS_CEILING (details {ceiling, exceeding}), 409 LIMIT_REACHED. Locks the project,
   the maker, then the membership.';

create or replace function internal.operator_tokens_revoke(organization_id uuid default null,
                                                           developer_id uuid default null, project_id uuid default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended uuid;
begin
  for ended in
    update app.operator_tokens t set revoked_at = internal.now()
     where t.revoked_at is null and t.expires_at > internal.now()
       and (operator_tokens_revoke.organization_id is null
            or t.organization_id = operator_tokens_revoke.organization_id)
       and (operator_tokens_revoke.developer_id is null or t.developer_id = operator_tokens_revoke.developer_id)
       and (operator_tokens_revoke.project_id is null or t.project_id = operator_tokens_revoke.project_id)
    returning t.id
  loop
    perform internal.changed('operator_token:' || ended);
  end loop;
end $$;
comment on function internal.operator_tokens_revoke is
  'Revokes the live tokens to which all given conditions apply: what has ended by a removal or a transfer does not come
   back with its maker or its project. Granted to nobody.';

create or replace function api.operator_token_create(scopes json, token_hash text, expires_in_seconds int,
                                                     project_id uuid default null, organization_id uuid default null,
                                                     label text default null, actor text default null)
returns api.reply
language plpgsql volatile as $$
begin
  if num_nonnulls(operator_token_create.project_id, operator_token_create.organization_id) <> 1 then
    perform internal.invalid(case when operator_token_create.project_id is null then 'project_id'
                                  else 'organization_id' end,
                             'must be given, or organization_id, and only one of the two');
  end if;
  return internal.reply(201, internal.operator_token_json(internal.operator_token_make(
    operator_token_create.project_id, operator_token_create.organization_id, operator_token_create.scopes,
      operator_token_create.token_hash,
    operator_token_create.expires_in_seconds, operator_token_create.label, operator_token_create.actor)));
end $$;
comment on function api.operator_token_create is
  'Creates an operator token: 201; the server adds its text to this response only. Refuses 400 VALIDATION_ERROR, and as
   internal.operator_token_make.';

select internal.list_declare('operator_tokens_page', null::app.operator_tokens, 'operator_token_json',
                             '{created_at,id}', required => '{developer_id}');
select internal.list_declare('operator_tokens_of_account', null::app.operator_tokens, 'operator_token_json',
                             '{created_at,id}', required => '{service_account_id}');

create or replace function api.operator_token_list(page_limit int, page_offset bigint) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  account constant uuid := internal.service_account_id();
begin
  return case when account is null
              then internal.operator_tokens_page(internal.developer_id(), operator_token_list.page_offset,
                                                 operator_token_list.page_limit)
              else internal.operator_tokens_of_account(account, operator_token_list.page_offset,
                                                       operator_token_list.page_limit) end;
end $$;
comment on function api.operator_token_list is
  'Operator tokens that the caller made, newest first, with those that ended; they are deleted 90 days after their
   expiry.';

create or replace function api.operator_token_revoke(operator_token_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.operator_tokens t set revoked_at = internal.now()
   where t.id = operator_token_revoke.operator_token_id and t.revoked_at is null
     and case when internal.service_account_id() is not null then t.service_account_id = internal.service_account_id()
              else t.developer_id = internal.developer_id() end;
  perform internal.check_found(found, 'operator token');
  perform internal.changed('operator_token:' || operator_token_revoke.operator_token_id);
  return internal.reply_deleted();
end $$;
comment on function api.operator_token_revoke is
  'Revokes an operator token that the caller made. Refuses 404 NOT_FOUND, also for a revoked one.';

create or replace function internal.operator_token_live(token app.operator_tokens) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  ceiling record;
begin
  if (operator_token_live.token).id is null
    or internal.operator_token_status(operator_token_live.token) <> 'active' then
    return null;
  end if;
  select c.* into ceiling
    from internal.operator_token_ceiling((operator_token_live.token).organization_id,
                                         (operator_token_live.token).project_id,
                                         (operator_token_live.token).service_account_id,
                                         (operator_token_live.token).developer_id) c;
  if ceiling.role is null then
    return null;
  end if;
  return json_build_object(
    'id', (operator_token_live.token).id, 'organization_id', (operator_token_live.token).organization_id,
      'project_id', (operator_token_live.token).project_id,
    'service_account_id', (operator_token_live.token).service_account_id,
    'developer_id', (operator_token_live.token).developer_id,
    'scopes', to_json(internal.scopes_common((operator_token_live.token).scopes, ceiling.scopes)), 'role', ceiling.role,
    'project_ids', to_json(ceiling.project_ids),
    'label', nullif(concat_ws(': ', (operator_token_live.token).label, (operator_token_live.token).acts_for), ''),
    'expires_at', extract(epoch from (operator_token_live.token).expires_at));
end $$;
comment on function internal.operator_token_live is
  'What a token may do now, with the scopes that its maker still has; null when it has ended or its maker may delegate
   nothing. Granted to nobody.';

create or replace function api.operator_token_introspect(token_hash text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  token app.operator_tokens;
  live json;
begin
  select t.* into token
    from app.operator_tokens t
   where t.token_hash = operator_token_introspect.token_hash
     and case when internal.service_account_id() is not null then t.service_account_id = internal.service_account_id()
              else t.developer_id = internal.developer_id() end;
  live := internal.operator_token_live(token);
  return internal.reply(200, json_build_object(
    'active', live is not null, 'scopes', coalesce(live -> 'scopes', '[]'), 'project_id', live -> 'project_id',
    'organization_id', case when live is not null and token.project_id is null then token.organization_id end,
    'expires_at', case when live is not null then internal.iso(token.expires_at) end));
end $$;
comment on function api.operator_token_introspect is
  'The state of an operator token that the caller made, with the scopes that it has now: {active, scopes, project_id,
   organization_id, expires_at}. active false, and nothing else, for any other text: an unknown, ended or another''s
   token.';

create or replace function api.operator_token_check(token_hash text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  token app.operator_tokens;
  live json;
begin
  select t.* into token from app.operator_tokens t where t.token_hash = operator_token_check.token_hash;
  live := internal.operator_token_live(token);
  if live is not null and (token.last_used_at is null or token.last_used_at < internal.now() - interval '1 minute') then
    update app.operator_tokens t set last_used_at = internal.now() where t.id = token.id;
  end if;
  return internal.reply(200, live);
end $$;
comment on function api.operator_token_check is
  'For the server: what the live token whose text has this hash may do now, or null; expires_at in Unix seconds. Records
   its use, at most once a minute.';

create or replace trigger tg_operator_tokens__audit
  after insert or update of revoked_at on app.operator_tokens
  for each row execute function internal.tg_audit('operator_tokens', 'token_hash');
