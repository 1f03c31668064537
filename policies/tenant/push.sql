alter table app.push_templates enable row level security;
select internal.checks_declare('app.push_templates');
alter table app.push_automations enable row level security;
select internal.checks_declare('app.push_automations');
alter table app.push_breakers enable row level security;
alter table app.push_preferences enable row level security;
alter table app.push_categories enable row level security;
alter table app.push_inbox_items enable row level security;

create policy "administrators read templates" on app.push_templates for select to app_admin using (true);
create policy "administrators add templates" on app.push_templates for insert to app_admin with check (true);
create policy "administrators change templates" on app.push_templates for update to app_admin using (true)
  with check (true);
create policy "administrators delete templates" on app.push_templates for delete to app_admin using (true);
create policy "administrators read automations" on app.push_automations for select to app_admin using (true);
create policy "administrators add automations" on app.push_automations for insert to app_admin with check (true);
create policy "administrators change automations" on app.push_automations for update to app_admin using (true)
  with check (true);
create policy "administrators delete automations" on app.push_automations for delete to app_admin using (true);
create policy "users read their own inbox" on app.push_inbox_items for select to app_user
  using (app_user_id = (select internal.user_id()));

grant select on app.push_inbox_items to app_user;

grant execute on function internal.push_template_check, internal.push_template_after_write,
  internal.push_template_before_delete, internal.push_automation_check, internal.push_titles_check,
  internal.push_automation_after_write, internal.push_categories_note, internal.push_deliver,
  internal.campaign_content__push, internal.push_delivery_json, internal.campaign_deliveries__push,
  internal.push_deliveries_page, internal.push_user_deliveries_page, internal.push_lease, api.push_send,
  api.push_deliveries, api.push_automation_stats to app_admin;
grant execute on function internal.push_preferences_json, internal.push_inbox_json, internal.push_inbox_is_current,
  internal.push_inbox_page, internal.push_inbox_unread_page, internal.push_report, api.push_preferences_get,
  api.push_preferences_put, api.push_inbox, api.push_inbox_unread_count, api.push_inbox_read, api.push_inbox_read_all,
  api.push_inbox_delete, api.push_opened, api.push_received to app_user;
grant execute on function internal.purge__push, api.push_record, api.push_providers to app_worker;

select internal.graphql_declare('app.push_automations');
select internal.graphql_declare('app.push_templates');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.push_preferences', 'app_user_id', 'push_preferences',
   array['app_user_id', 'enabled', 'categories', 'quiet_hours', 'updated_at'], '{}',
   'push', 'keep survivor', 'cascade', current_setting('trellis.file')),
  ('app.push_inbox_items', 'app_user_id', 'push_inbox_items',
   array['id', 'app_user_id', 'delivery_id', 'title', 'body', 'image_url', 'deep_link', 'data', 'created_at', 'read_at',
         'expires_at'], array['is_read'],
   'push', 'newest 500', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, fixed_columns, max_count,
                                  create_order, declared_in)
values ('push_template', 'app.push_templates', 'template', 'push templates', 'key', 'key', '{key}', 200, 60,
        current_setting('trellis.file'));
insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, fixed_columns, max_count,
                                  create_order, refs, declared_in)
values ('push_automation', 'app.push_automations', 'automation', 'push automations', 'key', 'id', '{key}', 100, 61,
        '[{"path": "$.trigger.segment_id", "kind": "segment", "by": "id"}, {"path": "$.template_key", "kind": '
        '"push_template", "by": "key"}]',
        current_setting('trellis.file'));
select internal.definition_declare('push_template');
select internal.definition_declare('push_automation');

insert into internal.campaign_channels (channel, skip_reasons, sends_per_second, lease, is_estimated, send_task,
                                        declared_in)
values ('push', '{no_token,opted_out}', 1000, internal.push_lease(), true, 'push__send',
        current_setting('trellis.file'));
