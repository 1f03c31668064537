alter table app.audit_events enable row level security;
alter table app.audit_digests enable row level security;
alter table app.audit_seals enable row level security;
alter table app.audit_heads enable row level security;

create policy "developers read the trails of their projects, their organizations and their account" on app.audit_events
  for select to control_developer
  using (scope = (select internal.developer_id())
         or scope = any ((select internal.organization_ids())::uuid[])
         or scope in (select p.id from app.projects p
                       where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "developers read digests of their trails" on app.audit_digests for select to control_developer
  using (scope = (select internal.developer_id())
         or scope = any ((select internal.organization_ids())::uuid[])
         or scope in (select p.id from app.projects p
                       where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "developers read seals of their trails" on app.audit_seals for select to control_developer
  using (scope = (select internal.developer_id())
         or scope = any ((select internal.organization_ids())::uuid[])
         or scope in (select p.id from app.projects p
                       where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "developers read where their seals begin and end" on app.audit_heads for select to control_developer
  using (scope = (select internal.developer_id())
         or scope = any ((select internal.organization_ids())::uuid[])
         or scope in (select p.id from app.projects p
                       where p.organization_id = any ((select internal.organization_ids())::uuid[])));

grant select on app.audit_events, app.audit_digests, app.audit_seals, app.audit_heads to control_developer;
grant execute on function internal.audit_json, internal.audit_key, internal.audit_oldest_month,
  internal.audit_oldest_time, internal.audit_canonical, internal.audit_digest, internal.audit_seal_hash,
  internal.audit_key_of, internal.audit_verify_seals, internal.audit_verify_rows, internal.audit_verify_digests,
  internal.audit_verify_limit, internal.audit_is_cut, internal.audit_sealed, api.audit_rows, api.audit_row,
  api.audit_verify, api.audit_sealed to control_developer;
grant execute on function api.audit_maintain, internal.make_audit_partition, internal.purge_audit,
  internal.audit_oldest_month, internal.audit_seal, internal.audit_waiting, api.audit_seal to control_worker;
