alter table app.organizations enable row level security;
select internal.checks_declare('app.organizations');
alter table app.organization_members enable row level security;
alter table app.organization_invites enable row level security;

create policy "members read their organizations" on app.organizations for select to control_developer
  using (id = any ((select internal.organization_ids())::uuid[]));

grant select on app.organizations to control_developer;
grant execute on function internal.role_rank, internal.organization_ids, internal.organization_check,
  internal.organization_json, internal.organizations_of_caller, internal.organization_make,
  internal.organization_invite_make, internal.project_move, api.organization_create, api.organization_list,
  api.organization_get, api.organization_patch, api.organization_delete, api.member_list, api.member_patch,
  api.member_delete, api.organization_invite_create, api.organization_invite_list, api.organization_invite_delete,
  api.organization_invite_accept, api.project_transfer to control_developer;
grant execute on function internal.organization_roles to control_auth;
grant execute on function api.organization_invite_mail to control_worker;
