-- Moving a project into another organization.
create or replace function internal.project_move(project_id uuid, organization_id uuid) returns app.projects
language plpgsql volatile security definer set search_path = '' as $$
declare
  project app.projects;
begin
  -- the target is not deleted before the project is in it
  perform from app.organizations o where o.id = project_move.organization_id for key share;
  perform internal.organization_check(project_move.organization_id, 'owner');
  select p.* into project from app.projects p
   where p.id = project_move.project_id and p.deleted_at is null for no key update;
  perform internal.check_found(project.id is not null, 'project');
  -- under the lock: of two transfers at once the later one needs the owner of the organization that the earlier one
  -- chose
  perform internal.organization_check(project.organization_id, 'owner');
  if project.organization_id <> project_move.organization_id then
    update app.projects p set organization_id = project_move.organization_id, updated_at = internal.now()
     where p.id = project.id
    returning p.* into project;
    perform internal.changed('project:' || project.id);
  end if;
  return project;
end $$;
comment on function internal.project_move is
  'Moves a project of the caller into another organization of theirs. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN. Locks
   the target, then the project.';

create or replace function api.project_transfer(project_id uuid, organization_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.project_json(internal.project_move(project_transfer.project_id,
                                                                         project_transfer.organization_id)))
$$;
comment on function api.project_transfer is
  'Moves a project: 200 project. The caller is owner of both organizations. Refuses as internal.project_move.';

create or replace function internal.tg_projects__moved() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- the accounts before their tokens, as their deletion locks them. One that was limited to this project alone has
  -- nothing left
  update app.service_accounts a
     set project_ids = case when cardinality(a.project_ids) > 1 then array_remove(a.project_ids, new.id)
                            else a.project_ids end,
         is_active = a.is_active and cardinality(a.project_ids) > 1, updated_at = internal.now()
   where a.organization_id = old.organization_id and new.id = any (a.project_ids);
  perform internal.operator_tokens_revoke(project_id => new.id);
  if internal.caller() = 'developer' then
    -- in the trails of both organizations; the project's own has it from its table's trigger
    perform internal.audit('projects.transfer', 'projects', new.id::text,
                           json_build_object('organization_id', json_build_array(old.organization_id,
                                        new.organization_id)), scope => o.id)
       from unnest(array[old.organization_id, new.organization_id]) as o (id);
  end if;
  return null;
end $$;
comment on function internal.tg_projects__moved is
  'A transfer ends what the former organization delegated for the project: operator tokens, and the place of the project
   among those of a service account (one that has no other is deactivated). Audits the transfer in the trails of both
   organizations.';
create or replace trigger tg_projects__moved
  after update of organization_id on app.projects
  for each row when (old.organization_id is not null and new.organization_id is not null
                     and old.organization_id <> new.organization_id)
  execute function internal.tg_projects__moved();
