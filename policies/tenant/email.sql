alter table app.email_templates enable row level security;
select internal.checks_declare('app.email_templates');
alter table app.email_messages enable row level security;
alter table app.email_bodies enable row level security;
alter table app.email_suppressions enable row level security;
alter table app.email_preferences enable row level security;
alter table app.email_provider_events enable row level security;

create policy "administrators read templates" on app.email_templates for select to app_admin using (true);
create policy "administrators add templates" on app.email_templates for insert to app_admin with check (true);
create policy "administrators change templates" on app.email_templates for update to app_admin using (true)
  with check (true);
create policy "administrators delete templates" on app.email_templates for delete to app_admin using (true);
create policy "administrators read messages" on app.email_messages for select to app_admin using (true);

create policy "administrators read suppressions" on app.email_suppressions for select to app_admin using (true);
create policy "administrators suppress addresses" on app.email_suppressions for insert to app_admin with check (true);
create policy "administrators delete suppressions" on app.email_suppressions for delete to app_admin using (true);

grant select on app.email_messages to app_admin;
grant select, delete, insert (address, reason, category) on app.email_suppressions to app_admin;
grant execute on function internal.email_suppression_json, internal.email_suppressions_page, api.email_suppression_put,
  api.email_suppressions, api.email_suppression_delete to app_admin;
grant execute on function api.email_unsubscribe, api.email_webhook_secret, api.email_provider_event to app_worker;
grant execute on function internal.email_preferences, internal.email_preferences_put, api.email_preferences,
  api.email_preferences_put to app_user;
grant execute on function internal.email_mark, internal.email_escape, internal.email_scalar, internal.email_render,
  internal.email_part_check, internal.email_sign_in_check, internal.email_template_check, internal.email_template_json,
  internal.email_template_pick, internal.email_sample_url, internal.email_missing_check, internal.email_event,
  internal.email_message_json, internal.email_messages_page, internal.email_queue, internal.email_recipients_lock,
  internal.email_rate_check, internal.email_audit, internal.email_message_cancel, internal.campaign_content__email,
  internal.email_template_before_delete, internal.email_delivery_json, internal.campaign_deliveries__email,
  internal.email_deliveries_page, api.email_template_preview, api.email_send, api.email_send_batch, api.email_messages,
  api.email_message_get, api.email_message_cancel to app_admin;
grant execute on function api.email_message_from, api.email_attempt_begin, api.email_attempt_end,
  internal.email_is_suppressed, api.email_track, internal.purge__email to app_worker;

select internal.graphql_declare('app.email_messages', hidden => '{delivery_id,headers}');
select internal.graphql_declare('app.email_suppressions');
select internal.graphql_declare('app.email_templates');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.email_messages', 'app_user_id', 'email_messages',
   array['id', 'app_user_id', 'to_address', 'from_address', 'subject', 'template_key', 'locale', 'category', 'status',
         'send_at', 'sent_at', 'opened_at',
         'clicked_at', 'created_at', 'updated_at'],
   array['reply_to', 'headers', 'template_version', 'attempts', 'attempting_at', 'next_attempt_at', 'last_error',
         'events', 'delivery_id', 'track'],
   null, 'move', 'cascade', current_setting('trellis.file')),
  ('app.email_preferences', 'app_user_id', 'email_preferences',
   array['app_user_id', 'unsubscribed_all', 'categories', 'updated_at'], '{}',
   null, 'what either refused', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, fixed_columns,
                                  state_columns, max_count, create_order, declared_in)
values ('email_template', 'app.email_templates', 'template', 'templates', 'key', 'key', '{key}', '{version}', 200, 60,
        current_setting('trellis.file'));
select internal.definition_declare('email_template');
grant execute on function internal.email_has_own_server, api.email_has_own_server to app_admin;

-- of a campaign nothing more is rendered while a thousand messages wait for the mail server
insert into internal.campaign_channels (channel, skip_reasons, sends_per_second, most_waiting, has_clicks, declared_in)
values ('email', '{no_address,suppressed,opted_out}', 10, 1000, true, current_setting('trellis.file'));
