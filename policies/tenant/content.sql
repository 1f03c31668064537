alter table app.content_types enable row level security;
alter table app.content_entries enable row level security;
alter table app.content_locales enable row level security;
alter table app.content_versions enable row level security;
alter table app.content_texts enable row level security;
alter table app.content_failures enable row level security;
alter table app.content_previews enable row level security;
select internal.checks_declare('app.content_entries');

create policy "administrators read content types" on app.content_types for select to app_admin using (true);
create policy "administrators read content" on app.content_entries for select to app_admin using (true);
create policy "administrators read languages of content" on app.content_locales for select to app_admin using (true);
create policy "administrators read versions of content" on app.content_versions for select to app_admin using (true);
create policy "administrators search texts of content" on app.content_texts for select to app_admin using (true);
grant select on app.content_types, app.content_entries, app.content_locales, app.content_versions,
  app.content_texts to app_admin;

-- writes and the reads of apps are functions with the owner's rights
grant execute on function api.content_entry, api.content_entries to app_anon, app_user;
grant execute on function internal.locale_tag, internal.locale_checked, internal.content_state, internal.content_json,
  internal.content_version_json, internal.content_at, internal.content_find, internal.content_place,
  internal.content_searched, api.content_list, api.content_get, api.content_versions, api.content_create,
  api.content_update, api.content_delete, api.content_locale_put, api.content_publish, api.content_unpublish,
  api.content_rollback, api.content_preview_token, api.content_type_put, api.content_type_get,
  api.content_types, internal.content_type_json, internal.content_types_page, internal.promotion_rows__content,
  internal.promotion_merged__content, internal.promotion_write__content, internal.promotion_lock__content to app_admin;
grant execute on function api.content_settle, internal.purge__content to app_worker;

select internal.graphql_declare('app.content_types');
select internal.graphql_declare('app.content_entries');
select internal.graphql_declare('app.content_locales');
select internal.graphql_declare('app.content_versions');

insert into internal.composed_definitions (kind, promoted_as, singular, plural, fields, fixed_columns, max_count,
                                           create_order, refs, declared_in)
values
  ('content', 'content', 'entry', 'entries',
   '{"content_type": ["string"], "default_locale": ["string"], "tags": ["array"], "segment_id": ["string", "null"],
     "starts_at": ["string", "null"], "ends_at": ["string", "null"], "sort_order": ["number"], "locales": ["object"],
     "fields": ["array"]}',
   '{content_type}', null, 90, '[{"path": "$.segment_id", "kind": "segment", "by": "key"}]',
   current_setting('trellis.file'));
