-- Assets as callers see them, and the sums of their bytes. The server signs URLs; SQL only says which bytes a URL leads
-- to. Locks are taken in one order: users, then assets in the order of their ids, then the lock of the budget.
comment on constraint media_assets_filename_1_to_255 on app.media_assets is
  '400 INVALID_INPUT filename: must have 1 to 255 characters.';
comment on constraint media_assets_folder_id_fkey on app.media_assets is
  '409 FOLDER_NOT_EMPTY: Assets are in this folder. Move them, or delete them.';

select internal.audit_declare('app.media_assets', 'media', 'object_version', 'upload_version', 'upload_size_bytes',
                              'thumbnail_of');

create or replace function internal.media_most_bytes() returns bigint
language sql immutable parallel safe
return 52428800;
comment on function internal.media_most_bytes is 'The most bytes that a file may have: 50 MB.';

create or replace function internal.media_new_version() returns text
language sql volatile
return encode(extensions.gen_random_bytes(12), 'hex');
comment on function internal.media_new_version is 'A name for bytes that are to be stored.';

create or replace function internal.media_link(a app.media_assets, object text, mime_type text) returns text
language sql stable as $$
  select current_setting('app.media_nonce')
         || concat_ws('|', (media_link.a).id, media_link.object, media_link.mime_type,
                      replace(replace((media_link.a).filename, '%', '%25'), '|', '%7C'), (media_link.a).key)
$$;
comment on function internal.media_link is
  'What stands in a reply in place of a URL: the nonce of the call, the bytes that the URL leads to, and the name that
   they are saved under. The server puts the signed URL there; a text of a caller cannot contain the nonce.';

create or replace function internal.media_links_begin(nonce text) returns void
language plpgsql volatile as $$
begin
  if media_links_begin.nonce !~ '^[0-9a-f]{32}$' then
    raise exception 'a nonce has 32 hexadecimal digits';
  end if;
  perform set_config('app.media_nonce', media_links_begin.nonce, true);
end $$;
comment on function internal.media_links_begin is 'Sets the nonce of internal.media_link for this transaction.';

create or replace function internal.media_is_public(a app.media_assets) returns boolean
language sql immutable parallel safe
return (media_is_public.a).is_public and (media_is_public.a).status = 'committed'
  and (media_is_public.a).blocked_at is null;
comment on function internal.media_is_public is
  'Whether anybody reads an asset at its public address: it is public, committed, and not hidden by moderation.';

create or replace function internal.media_asset_json(a app.media_assets) returns json
language sql stable as $$
  select json_build_object(
    'id', (media_asset_json.a).id, 'key', (media_asset_json.a).key, 'filename', (media_asset_json.a).filename,
    'mime_type', (media_asset_json.a).mime_type, 'status', (media_asset_json.a).status,
    'storage_url', internal.media_link(media_asset_json.a, (media_asset_json.a).object_version,
                                       (media_asset_json.a).mime_type),
    'thumbnail_url', case when (media_asset_json.a).thumbnail_of = (media_asset_json.a).object_version
                          then internal.media_link(media_asset_json.a,
                                                   (media_asset_json.a).object_version || '.thumbnail.webp',
                                                     'image/webp') end,
    'is_public', (media_asset_json.a).is_public,
    'public_url', case when internal.media_is_public(media_asset_json.a)
                       then current_setting('app.media_nonce') || 'public|' || (media_asset_json.a).id end,
    'alt_text', (media_asset_json.a).alt_text, 'metadata', (media_asset_json.a).metadata,
    'size_bytes', (media_asset_json.a).size_bytes,
    'folder_id', (media_asset_json.a).folder_id, 'uploaded_by', (media_asset_json.a).uploaded_by,
    'created_at', internal.iso((media_asset_json.a).created_at),
    'updated_at', internal.iso((media_asset_json.a).updated_at))
$$;
comment on function internal.media_asset_json is
  'An asset as responses show it, with links that the server replaces by signed URLs.';

create or replace function internal.media_upload_json(a app.media_assets) returns json
language sql stable as $$
  select json_build_object(
    'asset_id', (media_upload_json.a).id, 'key', (media_upload_json.a).key,
      'version', (media_upload_json.a).upload_version,
    'mime_type', (media_upload_json.a).upload_mime_type,
    'size_bytes', case when (media_upload_json.a).status = 'pending' then (media_upload_json.a).size_bytes
                       else (media_upload_json.a).upload_size_bytes end,
    'expires_at', internal.iso((media_upload_json.a).upload_expires_at),
    'former', case when (media_upload_json.a).status = 'committed' then (media_upload_json.a).object_version end)
$$;
comment on function internal.media_upload_json is
  'The open upload of an asset, for the server: its exact size if that was registered, and former, the version that it
   replaces.';

create or replace function internal.media_is_mine(a app.media_assets) returns boolean
language sql stable as $$
  select internal.caller() in ('server_key', 'developer')
         or (media_is_mine.a).uploaded_by = internal.user_id() and (media_is_mine.a).blocked_at is null
$$;
comment on function internal.media_is_mine is
  'Whether the caller reads and changes an asset: its owner unless it is blocked, server keys without a user,
   administrators.';

create or replace function internal.media_is_committed(a app.media_assets) returns boolean
language sql immutable parallel safe
return (media_is_committed.a).status = 'committed';
comment on function internal.media_is_committed is 'Whether the bytes of an asset have arrived and lists show it.';

create or replace function internal.media_is_shown(a app.media_assets) returns boolean
language sql immutable parallel safe
return (media_is_shown.a).status = 'committed' and (media_is_shown.a).blocked_at is null;
comment on function internal.media_is_shown is
  'Whether the list of its owner shows an asset: it is committed and not blocked.';

create or replace function internal.media_is_pending(a app.media_assets) returns boolean
language sql immutable parallel safe
return (media_is_pending.a).status = 'pending';
comment on function internal.media_is_pending is
  'Whether an asset is registered and its bytes have not been committed.';

create or replace function internal.media_counted(a app.media_assets) returns bigint
language sql immutable parallel safe
return greatest((media_counted.a).size_bytes, (media_counted.a).upload_size_bytes);
comment on function internal.media_counted is
  'The bytes of an asset that count against the budget: those that it has, or is going to have.';

select internal.slots_declare('media_usage_add', 'app.media_totals', '{}', '{registered_bytes,stored_bytes,objects}');

create or replace function internal.tg_media_assets__usage() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  added record;
  gone record;
begin
  if tg_op <> 'DELETE' then
    select coalesce(sum(internal.media_counted(n)) filter (where n.status <> 'deleted'), 0) as registered,
           coalesce(sum(n.size_bytes) filter (where n.status = 'committed'), 0) as stored,
           count(*) filter (where n.status = 'committed') as objects
      into added from new_rows n;
  end if;
  if tg_op <> 'INSERT' then
    select coalesce(sum(internal.media_counted(o)) filter (where o.status <> 'deleted'), 0) as registered,
           coalesce(sum(o.size_bytes) filter (where o.status = 'committed'), 0) as stored,
           count(*) filter (where o.status = 'committed') as objects
      into gone from old_rows o;
  end if;
  if tg_op = 'INSERT' then
    perform internal.media_usage_add(added.registered::bigint, added.stored::bigint, added.objects);
  elsif tg_op = 'DELETE' then
    perform internal.media_usage_add(-gone.registered::bigint, -gone.stored::bigint, -gone.objects);
  elsif (added.registered, added.stored, added.objects) <> (gone.registered, gone.stored, gone.objects) then
    perform internal.media_usage_add((added.registered - gone.registered)::bigint, (added.stored - gone.stored)::bigint,
                                     added.objects - gone.objects);
  end if;
  return null;
end $$;
comment on function internal.tg_media_assets__usage is
  'After a statement on assets: keeps the sums of app.media_totals.';

create or replace trigger tg_media_assets__usage_of_insert
  after insert on app.media_assets referencing new table as new_rows
  for each statement execute function internal.tg_media_assets__usage();
create or replace trigger tg_media_assets__usage_of_update
  after update on app.media_assets referencing old table as old_rows new table as new_rows
  for each statement execute function internal.tg_media_assets__usage();
create or replace trigger tg_media_assets__usage_of_delete
  after delete on app.media_assets referencing old table as old_rows
  for each statement execute function internal.tg_media_assets__usage();

create or replace function internal.media_budget() returns bigint
language sql immutable parallel safe
return 262144000;
comment on function internal.media_budget is
  'The most bytes that the assets of a free project may have: 250 MB, counted from registration.';

create or replace function internal.media_budget_check(wanted bigint) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  used bigint;
begin
  -- registrations of a free project come one after the other: each sees what those before it have registered
  perform internal.advisory_lock('media budget');
  select coalesce(sum(u.registered_bytes), 0) into used from app.media_totals u;
  if used + media_budget_check.wanted > internal.media_budget() then
    perform internal.fail(402, 'FREE_TIER_LIMIT_REACHED', 'The files of a free project may have 250 MB.',
                          json_build_object('limit', 'media_storage', 'used', used, 'max', internal.media_budget()));
  end if;
end $$;
comment on function internal.media_budget_check is
  'Refuses 402 FREE_TIER_LIMIT_REACHED {limit, used, max} when so many bytes more are over the budget of a free project.
   Holds the lock of the budget to the end of the transaction. Granted to nobody.';
