-- Organizations own projects; every developer has a personal one.

create or replace function internal.organization_json(o app.organizations, role text) returns json
language sql stable as $$
  select json_build_object(
    'id', (organization_json.o).id, 'name', (organization_json.o).name, 'slug', (organization_json.o).slug,
    'is_personal', (organization_json.o).developer_id is not null, 'role', organization_json.role,
    'created_at', internal.iso((organization_json.o).created_at))
$$;
comment on function internal.organization_json is 'An organization as responses show it, with the caller''s role.';

create or replace function internal.organization_is_shown(organization_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select internal.token_project_ids() is null
      or exists (select from app.projects p
                  where p.organization_id = organization_is_shown.organization_id and p.deleted_at is null
                    and p.id = any (internal.token_project_ids()))
$$;
comment on function internal.organization_is_shown is
  'Whether lists show an organization of the caller: to a personal access token that is limited to some projects only
   theirs. Granted to nobody.';

create or replace function internal.organizations_of_caller() returns json
language sql stable security definer set search_path = '' as $$
  select coalesce(json_agg(json_build_object('id', o.id, 'name', o.name, 'role', m.role) order by m.joined_at, o.id),
                  '[]')
    from app.organization_members m
    join app.organizations o on o.id = m.organization_id
   where m.developer_id = internal.developer_id() and internal.organization_is_shown(o.id)
$$;
comment on function internal.organizations_of_caller is
  'The caller''s organizations as GET /auth/developer/me shows them, oldest membership first.';

create or replace function internal.membership_limit_check(developer_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- two memberships of one developer come one after the other
  perform from app.developers d where d.id = membership_limit_check.developer_id for no key update;
  perform internal.check_limit((select count(*) from app.organization_members m
                                 where m.developer_id = membership_limit_check.developer_id), 100,
                               'A developer is a member of at most 100 organizations.');
end $$;
comment on function internal.membership_limit_check is
  'Refuses 409 LIMIT_REACHED at 100 organizations. Locks the account. Granted to nobody.';

create or replace function internal.organization_make(name text, sandbox_organizations int default 3)
returns app.organizations
language plpgsql volatile security definer set search_path = '' as $$
declare
  words constant text := coalesce(nullif(left(btrim(regexp_replace(lower(organization_make.name), '[^a-z0-9]+', '-',
                                                                   'g'), '-'), 40), ''), 'organization');
  plain constant text := btrim(words, '-');
  slug text := plain;
  made app.organizations;
begin
  perform internal.lock_own_account();
  perform internal.membership_limit_check(internal.developer_id());
  perform internal.check_limit((select count(*) from app.organization_members m
                                  join app.organizations o on o.id = m.organization_id and o.developer_id is null
                                 where m.developer_id = internal.developer_id() and m.role = 'owner'),
                               organization_make.sandbox_organizations,
                               format('An account owns at most %s organizations besides its personal one until its '
                                      'address is verified: sign in with a code by mail.',
                                      organization_make.sandbox_organizations))
    where (select d.account_state from app.developers d where d.id = internal.developer_id()) = 'sandbox';
  loop
    insert into app.organizations (name, slug) values (organization_make.name, slug)
    on conflict on constraint organizations_slug_unique do nothing
    returning * into made;
    exit when made.id is not null;
    -- eight random hexadecimal digits: a slug that is taken leads to another one
    slug := plain || '-' || right(replace(internal.new_id()::text, '-', ''), 8);
  end loop;
  insert into app.organization_members (organization_id, developer_id, role)
    values (made.id, internal.developer_id(), 'owner');
  return made;
end $$;
comment on function internal.organization_make is
  'Creates an organization with the caller as its owner; its slug is made from the name. Refuses 401
   INVALID_DEVELOPER_TOKEN, 409 LIMIT_REACHED. Locks the account.';

create or replace function api.organization_create(name text, sandbox_organizations int default 3) returns api.reply
language plpgsql volatile as $$
begin
  return internal.reply(201, internal.organization_json(internal.organization_make(organization_create.name,
                                        organization_create.sandbox_organizations),
                                                           'owner'));
end $$;
comment on function api.organization_create is
  'Creates an organization of the caller: 201. Refuses 409 LIMIT_REACHED (for an account whose address is not verified
   at sandbox_organizations), 400 VALIDATION_ERROR.';

create or replace function api.organization_list(page_limit int, page_offset bigint) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply_page(
    (select json_agg(internal.organization_json(o, p.role) order by p.joined_at, p.organization_id)
       from (select m.organization_id, m.role, m.joined_at
               from app.organization_members m
              where m.developer_id = internal.developer_id() and internal.organization_is_shown(m.organization_id)
              order by m.joined_at, m.organization_id
              limit organization_list.page_limit offset organization_list.page_offset) p
       join app.organizations o on o.id = p.organization_id),
    (select count(*) from app.organization_members m
      where m.developer_id = internal.developer_id() and internal.organization_is_shown(m.organization_id)),
    organization_list.page_offset, organization_list.page_limit)
$$;
comment on function api.organization_list is
  'The caller''s organizations that internal.organization_is_shown, the personal one among them, oldest membership
   first: at most 100.';

create or replace function api.organization_get(org_id uuid) returns api.reply
language plpgsql stable as $$
declare
  own_role constant text := internal.organization_check(organization_get.org_id, 'viewer');
begin
  return (select internal.reply(200, internal.organization_json(o, own_role)) from app.organizations o
           where o.id = organization_get.org_id);
end $$;
comment on function api.organization_get is 'An organization, with the caller''s role. Refuses 404 NOT_FOUND.';

create or replace function api.organization_patch(org_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  own_role constant text := internal.organization_lock(organization_patch.org_id, 'admin');
  organization app.organizations;
begin
  update app.organizations o
     set name = organization_patch.patch ->> 'name', updated_at = internal.now()
   where o.id = organization_patch.org_id and organization_patch.patch ? 'name';
  select o.* into organization from app.organizations o where o.id = organization_patch.org_id;
  return internal.reply(200, internal.organization_json(organization, own_role));
end $$;
comment on function api.organization_patch is
  'Changes the name; the slug stays. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN. Locks the organization.';

create or replace function api.organization_delete(org_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- for update: a project that is being created or moved into the organization holds a key share lock of it
  perform from app.organizations o where o.id = organization_delete.org_id for update;
  perform internal.organization_check(organization_delete.org_id, 'owner');
  if exists (select from app.organizations o
              where o.id = organization_delete.org_id and o.developer_id is not null) then
    perform internal.fail(409, 'PERSONAL_ORGANIZATION', 'A personal organization exists as long as its account.');
  end if;
  if exists (select from app.projects p where p.organization_id = organization_delete.org_id
                and p.deleted_at is null) then
    perform internal.fail(409, 'PROJECTS_EXIST', 'This organization has projects: delete or transfer them first.');
  end if;
  delete from app.organizations o where o.id = organization_delete.org_id;
  return internal.reply_deleted();
end $$;
comment on function api.organization_delete is
  'Deletes an organization, with its memberships and invites. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 409
   PERSONAL_ORGANIZATION, PROJECTS_EXIST. Locks it.';

create or replace function internal.tg_developers__personal_organization() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  made_id uuid;
begin
  insert into app.organizations (name, slug, developer_id)
  values (left(coalesce(nullif(btrim(new.name), ''), nullif(btrim(internal.as_line(split_part(new.email, '@', 1))), ''),
                        'Personal'), 200), 'personal-' || replace(new.id::text, '-', ''), new.id)
  returning id into made_id;
  insert into app.organization_members (organization_id, developer_id, role) values (made_id, new.id, 'owner');
  return null;
end $$;
comment on function internal.tg_developers__personal_organization is
  'Gives each new account its personal organization.';
create or replace trigger tg_developers__personal_organization
  after insert on app.developers
  for each row execute function internal.tg_developers__personal_organization();

create or replace function internal.tg_projects__organization() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if new.organization_id is null then
    select o.id into new.organization_id from app.organizations o where o.developer_id = new.developer_id;
  end if;
  return new;
end $$;
comment on function internal.tg_projects__organization is
  'A project that names no organization belongs to the personal one of its creator.';
create or replace trigger tg_projects__organization
  before insert on app.projects
  for each row execute function internal.tg_projects__organization();

select internal.audit_declare('app.organizations', 'organizations');
