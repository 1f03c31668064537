alter table app.segments enable row level security;
select internal.checks_declare('app.segments');
alter table app.segment_states enable row level security;
alter table app.segment_members enable row level security;
alter table app.segment_counts enable row level security;

create policy "administrators read segments" on app.segments for select to app_admin using (true);
create policy "administrators add segments" on app.segments for insert to app_admin with check (true);
create policy "administrators change segments" on app.segments for update to app_admin using (true) with check (true);
create policy "administrators delete segments" on app.segments for delete to app_admin using (true);
create policy "administrators read what is worked out" on app.segment_states for select to app_admin using (true);
create policy "administrators read members" on app.segment_members for select to app_admin using (true);
create policy "administrators read counts" on app.segment_counts for select to app_admin using (true);
create policy "workers read segments" on app.segments for select to app_worker using (true);

grant select on app.segments, app.segment_states, app.segment_members, app.segment_counts to app_admin;
grant select on app.segments to app_worker;

grant execute on function api.user_segments to app_admin;
grant execute on function internal.segment_caller_check, internal.segment_member, internal.segment_ids_of
  to app_user, app_server, app_admin, app_worker;
grant execute on function internal.promotion_begin__segment, internal.promotion_end__segment,
  internal.segment_lock_shared, internal.segment_json, internal.segment_rules, internal.segment_used_by,
  internal.segment_before_delete, internal.segment_preview, internal.segment_refresh_now, internal.segment_user_json,
  internal.segment_user_ids, internal.segment_change, internal.segments_lock, internal.segments_enqueue_refresh,
  internal.segment_explain, internal.segment_is_time, internal.segment_value, internal.segment_date,
  internal.segment_time, internal.segment_size, internal.version_key, api.segment_create, api.segment_update,
  api.segment_preview, api.segment_refresh, api.segment_history, internal.segment_member_json, api.segment_members,
  api.segment_members_add, api.segment_member_remove, api.segment_explain to app_admin;
grant execute on function api.segments_due, api.segments_refresh to app_worker;

select internal.graphql_declare('app.segment_counts');
select internal.graphql_declare('app.segment_members');
select internal.graphql_declare('app.segments');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
values
  ('app.segment_members', 'app_user_id', 'segments', array['segment_id', 'app_user_id', 'entered_at'],
   null, 'move', 'delete', null, current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, max_count,
                                  create_order, promoted_refs, declared_in)
values ('segment', 'app.segments', 'segment', 'segments', 'key', '{key,kind}', 200, 35,
   -- rules are a tree, whose leaves name other segments
   '[{"path": "$.rules.**.segment_id", "kind": "segment", "by": "id"}]', current_setting('trellis.file'));
select internal.definition_declare('segment');
