-- The audit scope of a change in the control database.
create or replace function internal.audit_scope(area text default null, changed jsonb default null) returns uuid
language sql stable as $$
  select coalesce(
    internal.as_uuid(audit_scope.changed ->> 'project_id'),
    case when audit_scope.area = 'projects' then internal.as_uuid(audit_scope.changed ->> 'id') end,
    case when audit_scope.area = 'organizations' then internal.as_uuid(audit_scope.changed ->> 'id') end,
    internal.as_uuid(audit_scope.changed ->> 'organization_id'),
    internal.project_id(), internal.as_uuid(internal.actor() ->> 'organization_id'),
    internal.as_uuid(audit_scope.changed ->> 'developer_id'), internal.developer_id(),
    '00000000-0000-0000-0000-000000000000')
$$;
comment on function internal.audit_scope is
  'The scope of an audit row: the project or the organization that the changed row belongs to, else the project or
   organization of the call, else the developer''s own account. Each scope has its own hash chain, so that developers
   never wait for one another.';
