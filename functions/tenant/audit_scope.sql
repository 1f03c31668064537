-- The audit scope of a change in a project's own database.
create or replace function internal.audit_scope(area text default null, changed jsonb default null) returns uuid
language sql immutable as $$
  select '00000000-0000-0000-0000-000000000000'::uuid
$$;
comment on function internal.audit_scope is 'A project''s own database has one trail.';
