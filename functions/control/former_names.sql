-- Functions under the names that workers of the former version call while both versions run during an upgrade. Remove with the next version.
create or replace function api.provision_begin(project_id uuid) returns api.reply
language sql volatile as $$
  select api.tenant_get(provision_begin.project_id)
$$;
comment on function api.provision_begin is 'As api.tenant_get, under the name with which workers of the former version begin each job.';
