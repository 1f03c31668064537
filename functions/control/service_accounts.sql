-- Service accounts: machines of an organization. Their key makes operator tokens and opens nothing else.

create or replace function internal.scope_covers(scopes text[], scope text) returns boolean
language sql immutable parallel safe
return exists (
  select from unnest(scope_covers.scopes) s
   where split_part(s, ':', 1) in ('*', split_part(scope_covers.scope, ':', 1))
     and (split_part(s, ':', 2) = 'write' or split_part(scope_covers.scope, ':', 2) = 'read'));
comment on function internal.scope_covers is
  'Whether scopes include another one: write includes read, * every area. *:read is covered by *:read and *:write
   only.';

create or replace function internal.scopes_common(a text[], b text[]) returns text[]
language sql immutable parallel safe
return (
  with shared as (
    select distinct case split_part(x, ':', 1) when '*' then split_part(y, ':', 1) else split_part(x, ':', 1) end
             || ':' || case when 'read' in (split_part(x, ':', 2), split_part(y, ':', 2)) then 'read'
                            else 'write' end as scope
      from unnest(scopes_common.a) x
     cross join unnest(scopes_common.b) y
     where '*' in (split_part(x, ':', 1), split_part(y, ':', 1)) or split_part(x, ':', 1) = split_part(y, ':', 1)
  )
  select coalesce(array_agg(s.scope order by s.scope), '{}')
    from shared s
   where not exists (select from shared wider
                      where wider.scope <> s.scope and internal.scope_covers(array[wider.scope], s.scope)));
comment on function internal.scopes_common is
  'What two sets of scopes both allow, without scopes that another one includes.';

select internal.row_declare('service_account_json', null::app.service_accounts,
                            '{id,organization_id,name,scopes,project_ids,is_active,last_used_at,
                             created_at}');
comment on function internal.service_account_json is 'A service account as responses show it, without its key.';

create or replace function internal.service_account_projects(organization_id uuid, project_ids json) returns uuid[]
language plpgsql stable security definer set search_path = '' as $$
declare
  wanted uuid[];
begin
  if json_typeof(service_account_projects.project_ids) is distinct from 'array' then
    return null;
  end if;
  wanted := array(select distinct p::uuid from json_array_elements_text(service_account_projects.project_ids) p
                   order by 1);
  if (select count(*) from app.projects p
       where p.id = any (wanted) and p.organization_id = service_account_projects.organization_id
         and p.deleted_at is null) < cardinality(wanted) then
    perform internal.invalid('project_ids', 'must name projects of the organization');
  end if;
  return wanted;
end $$;
comment on function internal.service_account_projects is
  'The projects that a service account is limited to, which must be of its organization; null: no limit. Refuses 400
   VALIDATION_ERROR. Granted to nobody.';

create or replace function internal.service_account_make(organization_id uuid, name text, scopes json, project_ids json,
                                                         key_hash text)
returns app.service_accounts
language plpgsql volatile security definer set search_path = '' as $$
declare
  made app.service_accounts;
begin
  perform internal.organization_lock(service_account_make.organization_id, 'admin');
  perform internal.lock_own_account();
  perform internal.check_limit((select count(*) from app.service_accounts a
                                 where a.organization_id = service_account_make.organization_id), 50,
                               'An organization has at most 50 service accounts.');
  insert into app.service_accounts (organization_id, name, scopes, project_ids, key_hash)
  values (service_account_make.organization_id, service_account_make.name,
          array(select distinct s from json_array_elements_text(service_account_make.scopes) s order by 1),
          internal.service_account_projects(service_account_make.organization_id, service_account_make.project_ids),
          service_account_make.key_hash)
  returning * into made;
  return made;
end $$;
comment on function internal.service_account_make is
  'Creates a service account. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 400 VALIDATION_ERROR, 401
   INVALID_DEVELOPER_TOKEN, 409 LIMIT_REACHED. Locks the organization, then the account of the caller.';

create or replace function api.service_account_create(organization_id uuid, name text, scopes json, key_hash text,
                                                      project_ids json default null)
returns api.reply
language plpgsql volatile as $$
begin
  return internal.reply(201, internal.service_account_json(internal.service_account_make(
    service_account_create.organization_id, service_account_create.name, service_account_create.scopes,
      service_account_create.project_ids,
    service_account_create.key_hash)));
end $$;
comment on function api.service_account_create is
  'Creates a service account: 201; the server adds its key to this response only. Refuses as
   internal.service_account_make.';

create or replace function api.service_account_list(page_limit int, page_offset bigint,
                                                    organization_id uuid default null)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  organizations constant uuid[] := case when service_account_list.organization_id is null
                                          then internal.organization_ids('admin')
                                        else array[service_account_list.organization_id] end;
begin
  if service_account_list.organization_id is not null then
    perform internal.organization_check(service_account_list.organization_id, 'admin');
  end if;
  return internal.reply_page(
    (select json_agg(internal.service_account_json(p.account) order by (p.account).created_at desc, (p.account).id desc)
       from (select a as account from app.service_accounts a
              where a.organization_id = any (organizations)
              order by a.created_at desc, a.id desc
              limit service_account_list.page_limit offset service_account_list.page_offset) p),
    (select count(*) from app.service_accounts a where a.organization_id = any (organizations)),
    service_account_list.page_offset, service_account_list.page_limit);
end $$;
comment on function api.service_account_list is
  'Service accounts of the organizations in which the caller is an admin, or of one, newest first. Refuses 404
   NOT_FOUND, 403 ROLE_FORBIDDEN.';

create or replace function internal.service_account_own(service_account_id uuid) returns app.service_accounts
language plpgsql volatile security definer set search_path = '' as $$
declare
  account app.service_accounts;
begin
  select a.* into account from app.service_accounts a where a.id = service_account_own.service_account_id;
  -- to a stranger to the organization the account does not exist
  perform internal.check_found(account.id is not null
                               and account.organization_id = any (internal.organization_ids()), 'service account');
  perform internal.organization_lock(account.organization_id, 'admin');
  select a.* into account from app.service_accounts a where a.id = service_account_own.service_account_id for update;
  perform internal.check_found(account.id is not null, 'service account');
  return account;
end $$;
comment on function internal.service_account_own is
  'A service account whose organization the caller administrates, locked. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN.
   Locks the organization first.';

create or replace function api.service_account_get(service_account_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  account app.service_accounts;
begin
  select a.* into account from app.service_accounts a
   where a.id = service_account_get.service_account_id and a.organization_id = any (internal.organization_ids());
  perform internal.check_found(account.id is not null, 'service account');
  perform internal.organization_check(account.organization_id, 'admin');
  return internal.reply(200, internal.service_account_json(account));
end $$;
comment on function api.service_account_get is
  'A service account, for admins of its organization. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN.';

create or replace function api.service_account_patch(service_account_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  account app.service_accounts := internal.service_account_own(service_account_patch.service_account_id);
begin
  if (select count(*) from jsonb_object_keys(service_account_patch.patch)) > 0 then
    update app.service_accounts a
       set name = coalesce(service_account_patch.patch ->> 'name', a.name),
           scopes = case when service_account_patch.patch ? 'scopes'
                         then array(select distinct s
                                      from jsonb_array_elements_text(service_account_patch.patch -> 'scopes') s
                                        order by 1) else a.scopes end,
           project_ids = case when service_account_patch.patch ? 'project_ids'
                              then internal.service_account_projects(a.organization_id,
                                                                     (service_account_patch.patch
                                                                      -> 'project_ids')::json) else a.project_ids end,
           is_active = coalesce((service_account_patch.patch ->> 'is_active')::boolean, a.is_active),
           updated_at = internal.now()
     where a.id = account.id
    returning a.* into account;
    perform internal.changed('service_account:' || account.id);
  end if;
  return internal.reply(200, internal.service_account_json(account));
end $$;
comment on function api.service_account_patch is
  'Changes the fields that are present; what is narrowed holds for live tokens too. Refuses 404 NOT_FOUND, 403
   ROLE_FORBIDDEN, 400 VALIDATION_ERROR. Locks as internal.service_account_own.';

create or replace function api.service_account_delete(service_account_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  account constant app.service_accounts := internal.service_account_own(service_account_delete.service_account_id);
begin
  delete from app.service_accounts a where a.id = account.id;
  perform internal.changed('service_account:' || account.id);
  return internal.reply_deleted();
end $$;
comment on function api.service_account_delete is
  'Deletes a service account with its tokens. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN. Locks as
   internal.service_account_own.';

create or replace function api.service_account_rotate(service_account_id uuid, key_hash text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  account app.service_accounts := internal.service_account_own(service_account_rotate.service_account_id);
begin
  perform internal.lock_own_account();
  update app.service_accounts a set key_hash = service_account_rotate.key_hash, updated_at = internal.now()
   where a.id = account.id
  returning a.* into account;
  perform internal.changed('service_account_key:' || account.id);
  return internal.reply(200, internal.service_account_json(account));
end $$;
comment on function api.service_account_rotate is
  'Replaces the key: 200; the server adds the new one to this response only. The former key ends, live tokens do not.
   Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 401 INVALID_DEVELOPER_TOKEN. Locks as internal.service_account_own, then
   the account of the caller.';

create or replace function api.service_account_check(key_hash text) returns api.reply
language plpgsql volatile as $$
declare
  account app.service_accounts;
begin
  select a.* into account from app.service_accounts a where a.key_hash = service_account_check.key_hash and a.is_active;
  if account.id is null then
    return internal.reply(200, 'null');
  end if;
  if account.last_used_at is null or account.last_used_at < internal.now() - interval '1 minute' then
    update app.service_accounts a set last_used_at = internal.now() where a.id = account.id;
  end if;
  return internal.reply(200, json_build_object('id', account.id, 'name', account.name));
end $$;
comment on function api.service_account_check is
  'For the server: the active service account whose key has this hash, or null. Records its use, at most once a
   minute.';

select internal.audit_declare('app.service_accounts', 'service_accounts', 'key_hash', 'last_used_at');
