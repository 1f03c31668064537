alter table internal.feed_events enable row level security;
alter table app.feed_entries enable row level security;
select internal.checks_declare('app.feed_entries');
alter table app.feed_counts enable row level security;
alter table app.feed_totals enable row level security;

create policy "administrators read entries" on app.feed_entries for select to app_admin using (true);

grant select on app.feed_entries to app_admin;
-- users read entries of others through these functions only, which know friends, groups and blocks
grant execute on function internal.feed_scope, api.feed_home, api.feed_own, api.feed_of_group, api.feed_post,
  api.feed_delete to app_user;
grant execute on function internal.feed_entry_json, internal.feed_entry_of, internal.feed_entries_page,
  api.feed_entries, api.feed_post_as, api.feed_remove, api.feed_settings_put
  to app_admin;

select internal.graphql_declare('app.feed_entries');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.feed_entries', 'actor_id', 'feed_entries',
   array['id', 'actor_id', 'action', 'target_id', 'group_id', 'metadata', 'created_at'], array['is_home'],
   null, 'move', 'cascade', current_setting('trellis.file'));

grant execute on function internal.moderation_subject__feed_entry to app_user;

insert into internal.moderated_texts (kind, subject_type, table_name, text_columns, id_column, user_column, at_column,
                                      texts_function, declared_in)
values ('feed_entry', 'feed_entry', null, null, null, null, null, 'moderated_texts__feed_entry',
        current_setting('trellis.file'));
