alter table app.moderation_rules enable row level security;
select internal.checks_declare('app.moderation_rules', 'INVALID_INPUT', but => '{action}');
alter table app.moderation_items enable row level security;
alter table app.moderation_reports enable row level security;
alter table app.moderation_trust_levels enable row level security;
alter table internal.moderated_texts enable row level security;

create policy "administrators read rules" on app.moderation_rules for select to app_admin using (true);
create policy "administrators add rules" on app.moderation_rules for insert to app_admin with check (true);
create policy "administrators change rules" on app.moderation_rules for update to app_admin using (true)
  with check (true);
create policy "administrators delete rules" on app.moderation_rules for delete to app_admin using (true);
create policy "administrators read the queue" on app.moderation_items for select to app_admin using (true);
create policy "administrators read trust levels" on app.moderation_trust_levels for select to app_admin using (true);
create policy "users read their own reports" on app.moderation_reports for select to app_user
  using (reporter_id = (select internal.user_id()));

grant select on app.moderation_items, app.moderation_trust_levels to app_admin;
grant select on app.moderation_reports to app_user;
grant execute on function internal.moderation_report_json, internal.moderation_reports_page, internal.moderation_report,
  internal.moderation_subject, internal.moderation_subject__user, internal.moderation_subject__group,
  internal.moderation_subject__collection_row, api.moderation_report, api.moderation_reports to app_user;
grant execute on function internal.moderate to app_auth;
grant execute on function internal.moderation_rule_json, internal.moderation_item_json, internal.moderation_trust_json,
  internal.moderation_items_page, internal.moderation_trust_page, internal.moderation_move,
  internal.moderation_simulate, internal.moderation_found, internal.moderation_visible, internal.moderation_normal,
  internal.moderation_unmarked, internal.moderation_word_list, internal.moderation_readings, internal.moderation_hosts,
  api.moderation_queue, api.moderation_approve, api.moderation_reject, api.moderation_escalate,
  api.moderation_trust_put, api.moderation_trust_list, api.moderation_rule_test,
  api.moderation_rule_simulate to app_admin;

select internal.graphql_declare('app.moderation_items');
select internal.graphql_declare('app.moderation_rules');
select internal.graphql_declare('app.moderation_trust_levels');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.moderation_items', 'subject_user_id', 'moderation_items',
   array['id', 'subject_type', 'subject_id', 'subject_user_id', 'snapshot', 'status', 'is_hidden', 'resolved_at',
         'created_at'],
   array['source', 'rule_id', 'reasons', 'report_count', 'priority', 'kept', 'moderator_id', 'note'],
   null, 'one open item of a profile', 'cascade', current_setting('trellis.file')),
  ('app.moderation_reports', 'reporter_id', 'moderation_reports',
   array['id', 'reporter_id', 'subject_type', 'subject_id', 'reason', 'details', 'status', 'created_at'],
   array['item_id'],
   null, 'one of each subject', 'cascade', current_setting('trellis.file')),
  ('app.moderation_trust_levels', 'app_user_id', 'moderation_trust_levels',
   array['app_user_id', 'trust_level', 'auto_approve', 'created_at', 'updated_at'], '{}', null, 'keep survivor',
   'cascade',
   current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, found_by, invalid_code, max_count, state_columns,
                                  create_order, declared_in)
values ('moderation_rule', 'app.moderation_rules', 'rule', 'rules', 'id', 'INVALID_INPUT', 50,
        '{applies_to,action,words,expression}', 20,
        current_setting('trellis.file'));
select internal.definition_declare('moderation_rule');

insert into internal.moderated_texts (kind, subject_type, table_name, text_columns, id_column, user_column, at_column,
                                      texts_function, declared_in)
values
  ('display_name', 'user', 'app.users', '{display_name}', 'id', 'id', 'created_at', null,
   current_setting('trellis.file')),
  ('group_name', 'group', 'app.groups', '{name}', 'id', null, 'created_at', null, current_setting('trellis.file')),
  ('collection_row', 'collection_row', null, null, null, null, null, 'moderated_texts__collection_row',
   current_setting('trellis.file'));
