-- Users reach all of this through functions alone.
alter table app.sync_collections enable row level security;
alter table app.sync_pending_changes enable row level security;
alter table app.sync_changes enable row level security;
alter table app.sync_positions enable row level security;
alter table app.sync_times enable row level security;
alter table app.sync_checkpoints enable row level security;
alter table app.sync_views enable row level security;
alter table app.sync_steps enable row level security;
alter table app.sync_mutations enable row level security;

create policy "administrators read clients" on app.sync_checkpoints for select to app_admin using (true);
grant select on app.sync_checkpoints to app_admin;

grant execute on function internal.sync_is_pending, api.sync_number, api.sync_hint, internal.sync_pull_begin,
  internal.sync_loses_now, internal.sync_pull_end, internal.sync_idle, internal.sync_differs, internal.sync_same,
  internal.sync_changed, internal.sync_lost, internal.sync_set_aside, internal.sync_pushed, internal.sync_outputs,
  internal.sync_rows, internal.sync_chunk, internal.sync_first_chunk, internal.sync_shown, internal.sync_segments,
  internal.sync_collect, internal.sync_after, api.sync_pull, internal.sync_status_begin, api.sync_status,
  api.sync_reset, internal.sync_push_begin, internal.sync_push_end, internal.sync_check_length,
  internal.sync_keep_outputs, internal.sync_statement, internal.sync_write, internal.sync_row, internal.sync_apply,
  internal.sync_attempt, internal.sync_lock, internal.sync_values_fit_sql, internal.sync_put_many,
  internal.sync_put_end, internal.sync_rows_text, api.sync_push, api.sync_put, internal.sync_result,
  internal.sync_duplicate to app_user;
grant execute on function internal.sync_client_json, internal.sync_clients_page, api.sync_clients,
  api.sync_stats to app_admin;
grant execute on function internal.purge__sync to app_worker;

select internal.graphql_declare('app.sync_checkpoints', hidden => '{seed,first_checkpoint,stamp}');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.sync_checkpoints', 'app_user_id', 'sync_checkpoints',
   array['id', 'app_user_id', 'client_id', 'checkpoint', 'last_pull_at', 'last_push_at', 'used_at', 'created_at'],
   array['seed', 'first_checkpoint', 'stamp'], 'sync', 'end', 'cascade', null, current_setting('trellis.file')),
  ('app.sync_mutations', 'app_user_id', 'sync_mutations', null,
   array['app_user_id', 'client_id', 'id', 'status', 'code', 'message', 'row_json', 'at'],
   null, 'move', 'delete', 'answers to pushes, whose rows are exported themselves', current_setting('trellis.file'));
