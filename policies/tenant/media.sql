alter table app.media_folders enable row level security;
select internal.checks_declare('app.media_folders');
alter table app.media_buckets enable row level security;
select internal.checks_declare('app.media_buckets', but => '{name,file_size_limit,allowed_mime_types}');
create policy "users see public buckets, and the one of apps" on app.media_buckets for select to app_user
  using (is_public or name = 'media');
create policy "server keys see buckets" on app.media_buckets for select to app_server using (true);
create policy "administrators see buckets" on app.media_buckets for select to app_admin using (true);
grant select on app.media_buckets to app_user, app_server, app_admin;
grant execute on function internal.media_bucket_json, api.bucket_get, api.bucket_list to app_user, app_server;
grant execute on function api.bucket_create, api.bucket_update, api.bucket_delete, api.bucket_empty
  to app_user, app_server;
grant execute on function internal.bucket_make, internal.bucket_change, internal.bucket_drop, internal.bucket_clear
  to app_user, app_server, app_admin;
grant execute on function internal.media_own_bucket_json, internal.media_bucket_answer, api.media_bucket_create,
  api.media_bucket_list, api.media_bucket_get, api.media_bucket_update, api.media_bucket_delete,
  api.media_bucket_empty to app_admin;
grant execute on function api.media_public_at to app_anon;

alter table app.media_assets enable row level security;
select internal.checks_declare('app.media_assets', but => '{status,source,size_bytes,upload_size_bytes}');
alter table app.media_totals enable row level security;
alter table app.media_removals enable row level security;
alter table app.media_catalogs enable row level security;
select internal.checks_declare('app.media_catalogs');

create policy "users read their own committed assets" on app.media_assets for select to app_user
  using (uploaded_by = (select internal.user_id()) and status = 'committed' and blocked_at is null);
create policy "server keys read committed assets" on app.media_assets for select to app_server
  using (status = 'committed');
create policy "administrators read assets" on app.media_assets for select to app_admin using (true);

grant select on app.media_assets to app_user, app_server, app_admin;
grant execute on function internal.media_link, internal.media_links_begin, internal.media_asset_json,
  internal.media_upload_json, internal.media_is_mine, internal.media_is_public, internal.media_is_committed,
  internal.media_is_shown, internal.media_found, internal.media_commit, internal.media_delete,
  internal.media_assets_page, api.media_lookup, api.media_commit, api.media_delete,
  api.media_list to app_user, app_server, app_admin;
grant execute on function internal.media_removed, api.media_removed to app_user, app_server, app_admin, app_worker;
grant execute on function internal.media_register, api.media_upload to app_user, app_admin;
grant execute on function internal.media_presign_put, internal.media_presign_get, internal.media_mine_page,
  api.media_presign, api.media_names, api.media_names_by_time, api.media_admit, internal.media_move, api.media_move,
  internal.media_begin, api.media_begin, internal.media_upload_end, api.media_upload_end
  to app_user, app_server;
grant execute on function internal.media_mine_page to app_admin;
-- the list of server keys has its total from a counter
grant execute on function internal.counted, internal.list_counted, internal.reads_every_row to app_server;
grant execute on function internal.media_is_pending, internal.media_pending_page to app_admin;
grant execute on function internal.purge__media, api.media_upload_open, api.media_removals_next, api.media_unused,
  api.media_pending_old, api.media_pending_drop, api.media_uploads_end_old, api.media_commit_late to app_worker;

grant execute on function internal.moderation_subject__media to app_user;

select internal.graphql_declare('app.media_assets',
                                hidden => '{object_version,thumbnail_of,upload_size_bytes,upload_version}');
select internal.graphql_declare('app.media_buckets');
select internal.graphql_declare('app.media_catalogs');
select internal.graphql_declare('app.media_folders');
select internal.graphql_declare('app.media_jobs');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.media_assets', 'uploaded_by', 'media_assets',
   array['id', 'key', 'filename', 'mime_type', 'status', 'source', 'size_bytes', 'alt_text', 'metadata', 'folder_id',
         'bucket', 'uploaded_by', 'committed_at', 'deleted_at', 'blocked_at',
         'is_public', 'created_at', 'updated_at'],
   array['object_version', 'thumbnail_of', 'upload_version', 'upload_mime_type', 'upload_size_bytes',
         'upload_expires_at'],
   'media', 'move', 'cascade', null, current_setting('trellis.file'));

create policy "administrators read folders" on app.media_folders for select to app_admin using (true);
create policy "administrators add folders" on app.media_folders for insert to app_admin with check (true);
create policy "administrators change folders" on app.media_folders for update to app_admin using (true)
  with check (true);
create policy "administrators delete folders" on app.media_folders for delete to app_admin using (true);
create policy "administrators read catalogs" on app.media_catalogs for select to app_admin using (true);
create policy "administrators add catalogs" on app.media_catalogs for insert to app_admin with check (true);
create policy "administrators change catalogs" on app.media_catalogs for update to app_admin using (true)
  with check (true);
create policy "administrators delete catalogs" on app.media_catalogs for delete to app_admin using (true);

grant execute on function internal.media_catalog_public, internal.media_links_begin, api.media_catalog_get to app_auth;
grant execute on function api.media_public to app_anon;
grant execute on function internal.media_assets_hold, internal.media_catalog_check, internal.media_search,
  internal.media_update, internal.media_sums, internal.media_budget, internal.media_most_bytes,
  internal.storage_buckets, internal.storage_bucket_check, internal.storage_object_json, internal.storage_delete,
  api.media_list_admin, api.media_update, api.storage_buckets, api.storage_usage, api.storage_objects,
  api.storage_delete to app_admin;

insert into internal.definitions (kind, table_name, singular, plural, found_by, max_count, create_order, kept_back,
                                  declared_in)
values ('media_folder', 'app.media_folders', 'folder', 'folders', 'id', 1000, 60, 'files are not copied',
        current_setting('trellis.file'));
select internal.definition_declare('media_folder');
insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, fixed_columns, max_count,
                                  create_order, kept_back, declared_in)
values ('media_catalog', 'app.media_catalogs', 'catalog', 'catalogs', 'slug', 'key', '{slug}', 200, 61,
        'files are not copied', current_setting('trellis.file'));
select internal.definition_declare('media_catalog');

alter table app.media_jobs enable row level security;
create policy "administrators read jobs" on app.media_jobs for select to app_admin using (true);
grant select on app.media_jobs to app_admin;
grant execute on function internal.media_job_json, internal.media_jobs_page, internal.media_job_create,
  api.media_job_create, api.media_job_get, api.media_jobs_list to app_admin;
grant execute on function api.media_job_wait, internal.purge__media_jobs,
  api.media_job_begin, api.media_job_fail, api.media_job_succeed
  to app_worker;
