alter table app.audit_events enable row level security;
alter table app.audit_digests enable row level security;
alter table app.audit_seals enable row level security;
alter table app.audit_heads enable row level security;

create policy "administrators read the audit trail" on app.audit_events for select to app_admin using (true);
create policy "administrators read digests that wait" on app.audit_digests for select to app_admin using (true);
create policy "administrators read seals" on app.audit_seals for select to app_admin using (true);
create policy "administrators read where seals begin and end" on app.audit_heads for select to app_admin using (true);

grant select on app.audit_events, app.audit_digests, app.audit_seals, app.audit_heads to app_admin;
grant execute on function api.audit_read, internal.audit_act, internal.audit_json, internal.audit_key,
  internal.audit_oldest_month, internal.audit_oldest_time, internal.audit_canonical, internal.audit_digest,
  internal.audit_seal_hash, internal.audit_key_of, internal.audit_verify_seals, internal.audit_verify_rows,
  internal.audit_verify_digests, internal.audit_verify_limit, internal.audit_is_cut, internal.audit_sealed,
  api.audit_rows, api.audit_row, api.audit_verify, api.audit_sealed to app_admin;
grant execute on function api.audit_maintain, internal.make_audit_partition, internal.purge_audit,
  internal.audit_oldest_month, internal.audit_seal, internal.audit_waiting, api.audit_seal,
  api.audit_sealed_since to app_worker;

select internal.graphql_declare('app.audit_events');
