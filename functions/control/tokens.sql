-- Personal access tokens of developers for programs, limited by scopes, projects and time.

create or replace function internal.token_project_ids() returns uuid[]
language sql stable parallel safe as $$
  select case when internal.actor() ->> 'project_ids' is not null
              then array(select p::uuid from json_array_elements_text(internal.actor() -> 'project_ids') p) end
$$;
comment on function internal.token_project_ids is
  'The projects that the caller''s personal access token is limited to; null: no limit. In policies always inside
   (select ...).';

select internal.row_declare('developer_token_json', null::app.developer_tokens,
                            '{id,name,token_prefix,scopes,project_ids,expires_at,last_used_at,created_at,
                             revoked_at}');
comment on function internal.developer_token_json is
  'A personal access token as responses show it: its first characters, without text and hash.';

create or replace function internal.token_limit_check() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- the lock serialises a developer's requests, so that two never pass the limit together
  perform internal.lock_own_account();
  perform internal.check_limit((select count(*) from app.developer_tokens t
                                 where t.developer_id = internal.developer_id() and t.revoked_at is null
                                   and (t.expires_at is null or t.expires_at > internal.now())),
                               50, 'There are 50 live tokens already: revoke one first.', 'TOKEN_LIMIT_REACHED');
end $$;
comment on function internal.token_limit_check is
  'Refuses 409 TOKEN_LIMIT_REACHED when the caller has 50 live tokens, 401 INVALID_DEVELOPER_TOKEN. Locks the account
   until the transaction ends.';

create or replace function api.token_create(name text, scopes json, token_prefix text, token_hash text,
                                            project_ids json default null, expires_in_days int default null)
returns api.reply
language plpgsql volatile as $$
declare
  wanted constant uuid[] := case when token_create.project_ids is not null
                                 then array(select distinct p::uuid
                                              from json_array_elements_text(token_create.project_ids) p order by 1) end;
  made app.developer_tokens;
begin
  -- row-level security shows only the caller's own projects
  if (select count(*) from app.projects p where p.id = any (wanted) and p.deleted_at is null) < cardinality(wanted) then
    perform internal.invalid('project_ids', 'must name projects of yours');
  end if;
  perform internal.token_limit_check();
  insert into app.developer_tokens (developer_id, name, token_prefix, scopes, project_ids, lifetime_days, expires_at)
  values (internal.developer_id(), token_create.name, token_create.token_prefix,
          array(select distinct s from json_array_elements_text(token_create.scopes) s order by 1), wanted,
          token_create.expires_in_days, internal.now() + make_interval(days => token_create.expires_in_days))
  returning * into made;
  insert into app.developer_token_secrets (token_hash, token_id) values (token_create.token_hash, made.id);
  return internal.reply(201, internal.developer_token_json(made));
end $$;
comment on function api.token_create is
  'Creates a token of the caller: 201; the server adds its text to this response only. expires_in_days null: the token
   never expires. Refuses 400 VALIDATION_ERROR, 401 INVALID_DEVELOPER_TOKEN, 409 TOKEN_LIMIT_REACHED.';

select internal.list_declare('developer_tokens_page', null::app.developer_tokens, 'developer_token_json',
                             '{created_at,id}',
                             required => '{developer_id}');

create or replace function api.token_list(page_limit int, page_offset bigint) returns api.reply
language sql stable as $$
  select internal.developer_tokens_page(internal.developer_id(), token_list.page_offset, token_list.page_limit)
$$;
comment on function api.token_list is
  'The caller''s tokens, newest first, with revoked and expired ones, which are deleted after 90 days.';

create or replace function api.token_revoke(token_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  update app.developer_tokens t set revoked_at = internal.now(), updated_at = internal.now()
   where t.id = token_revoke.token_id and t.developer_id = internal.developer_id() and t.revoked_at is null;
  perform internal.check_found(found, 'token');
  perform internal.changed('token:' || token_revoke.token_id);
  return internal.reply_deleted();
end $$;
comment on function api.token_revoke is
  'Revokes a token, with every text that is still valid for it. Refuses 404 NOT_FOUND, also for a revoked token.';

create or replace function api.token_rotate(token_id uuid, token_prefix text, token_hash text) returns api.reply
language plpgsql volatile as $$
declare
  token app.developer_tokens;
begin
  perform internal.lock_own_account();
  select t.* into token from app.developer_tokens t
   where t.id = token_rotate.token_id and t.developer_id = internal.developer_id() and t.revoked_at is null
     for update;
  perform internal.check_found(token.id is not null, 'token');
  if token.expires_at <= internal.now() then
    perform internal.token_limit_check();
  end if;
  -- the old text stays valid for another hour, but not beyond its original expiry
  update app.developer_token_secrets s
     set ends_at = least(internal.now() + interval '1 hour', token.expires_at)
   where s.token_id = token.id and s.ends_at is null;
  insert into app.developer_token_secrets (token_hash, token_id) values (token_rotate.token_hash, token.id);
  update app.developer_tokens t
     set token_prefix = token_rotate.token_prefix, updated_at = internal.now(),
         expires_at = internal.now() + make_interval(days => t.lifetime_days)
   where t.id = token.id
  returning t.* into token;
  perform internal.changed('token:' || token.id);
  return internal.reply(200, internal.developer_token_json(token));
end $$;
comment on function api.token_rotate is
  'Rotates a token: a new text, valid for the token''s whole lifetime; the server adds it to this response only. Refuses
   401 INVALID_DEVELOPER_TOKEN, 404 NOT_FOUND, 409 TOKEN_LIMIT_REACHED when an expired token becomes live again. Locks
   the account, then the token.';

create or replace function api.token_check(token_hash text) returns api.reply
language plpgsql volatile as $$
declare
  held record;
begin
  select t.id, t.developer_id, t.name, t.scopes, t.project_ids, t.last_used_at,
         least(t.expires_at, s.ends_at) as ends_at
    into held
    from app.developer_token_secrets s
    join app.developer_tokens t on t.id = s.token_id
   where s.token_hash = token_check.token_hash and t.revoked_at is null
     and coalesce(least(t.expires_at, s.ends_at) > internal.now(), true);
  if held.id is null then
    return internal.reply(200, 'null');
  end if;
  if held.last_used_at is null or held.last_used_at < internal.now() - interval '1 minute' then
    update app.developer_tokens t set last_used_at = internal.now() where t.id = held.id;
  end if;
  return internal.reply(200, json_build_object(
    'token_id', held.id, 'developer_id', held.developer_id, 'name', held.name, 'scopes', to_json(held.scopes),
    'project_ids', to_json(held.project_ids), 'expires_at', extract(epoch from held.ends_at),
    'roles', internal.organization_roles(held.developer_id)));
end $$;
comment on function api.token_check is
  'For the server: the live token whose text has this hash, or null, with the developer''s roles as {organization_id:
   role}. expires_at in Unix seconds. Records its use, at most once a minute.';

select internal.audit_declare('app.developer_tokens', 'tokens');
