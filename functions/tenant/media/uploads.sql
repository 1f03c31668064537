-- Registration of uploads, and the commit of what has arrived.
create or replace function internal.media_type(mime_type text) returns text
language plpgsql volatile as $$
declare
  charset constant text := (regexp_match(lower(media_type.mime_type),
                                         '^(?:text/plain|application/json)\s*;\s*charset=([a-z0-9._-]{1,40})$'))[1];
  normal constant text := case when charset is null then lower(media_type.mime_type)
                               else btrim(split_part(lower(media_type.mime_type), ';', 1)) end;
begin
  if normal !~ '^(image|audio|video)/[a-z0-9][a-z0-9.+-]{0,99}$'
     and normal not in ('application/pdf', 'text/plain', 'application/json', 'application/zip',
                        'application/octet-stream') then
    perform internal.fail(400, 'MIME_NOT_ALLOWED',
                          'Files of this type are not stored: images, audio, video, PDF, plain text, JSON, ZIP and '
                          'octet streams are.',
                          '{"field": "mime_type", "reason": "is no type that is stored"}');
  end if;
  return normal || coalesce(';charset=' || charset, '');
end $$;
comment on function internal.media_type is
  'A media type in lower case; a text keeps its charset. Refuses 400 MIME_NOT_ALLOWED.';

create or replace function internal.media_safe_name(filename text) returns text
language sql immutable parallel safe as $$
  select coalesce(nullif(left(regexp_replace(regexp_replace(media_safe_name.filename, '^.*[/\\]', ''),
                                             '[^A-Za-z0-9._-]', '_', 'g'), 200), ''), 'file')
$$;
comment on function internal.media_safe_name is
  'The last component of a path with each character other than ASCII letters, digits, ".", "_" and "-" replaced by "_",
   as keys of uploads have it.';

create or replace function internal.media_insert(owner uuid, filename text, mime_type text, size_bytes bigint,
                                                 is_free boolean, seconds int, is_public boolean)
returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  type constant text := internal.media_type(media_insert.mime_type);
  id constant uuid := internal.new_id();
  version constant text := internal.media_new_version();
  made app.media_assets;
begin
  if media_insert.is_free and media_insert.size_bytes is null then
    perform internal.fail(400, 'SIZE_REQUIRED', 'Free projects register the exact size of a file: send size_bytes.',
                          '{"field": "size_bytes", "reason": "is required on free projects"}');
  end if;
  if media_insert.owner is not null and internal.lock_users(array[media_insert.owner]) is null then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  if media_insert.is_free then
    perform internal.media_budget_check(media_insert.size_bytes);
  end if;
  insert into app.media_assets as a
    (id, key, filename, mime_type, source, size_bytes, object_version, upload_version, upload_mime_type,
     upload_expires_at, uploaded_by,
     is_public)
  values (
    id,
    concat(coalesce('user/' || media_insert.owner, 'project'), '/',
           floor(extract(epoch from internal.now()) * 1000)::bigint, '_', id, '_',
           internal.media_safe_name(media_insert.filename)),
    media_insert.filename, type, 'upload', media_insert.size_bytes, version, version, type,
    internal.now() + make_interval(secs => media_insert.seconds), media_insert.owner, media_insert.is_public)
  returning a.* into made;
  return made;
end $$;
comment on function internal.media_insert is
  'Registers an upload: a pending asset of a user, or of the project. Refuses 400 MIME_NOT_ALLOWED, SIZE_REQUIRED, 402
   FREE_TIER_LIMIT_REACHED, 404 USER_NOT_FOUND. Locks the user, and in a free project the budget. Granted to nobody.';

create or replace function internal.media_register(filename text, mime_type text, size_bytes bigint, is_free boolean,
                                                   seconds int, is_public boolean)
returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.user_id() is null and internal.caller() <> 'developer' then
    raise exception 'uploads are registered by users and administrators, not by %', internal.caller();
  end if;
  return internal.media_insert(internal.user_id(), media_register.filename, media_register.mime_type,
                               media_register.size_bytes, media_register.is_free,
                               media_register.seconds, media_register.is_public);
end $$;
comment on function internal.media_register is
  'internal.media_insert for the caller: an asset of the user, or of the project for an administrator.';

create or replace function api.media_upload(filename text, mime_type text, nonce text, is_free boolean, seconds int,
                                            size_bytes bigint default null, is_public boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  made app.media_assets;
begin
  perform internal.media_links_begin(media_upload.nonce);
  made := internal.media_register(media_upload.filename, media_upload.mime_type, media_upload.size_bytes,
                                  media_upload.is_free, media_upload.seconds,
                                  media_upload.is_public);
  return internal.reply(201, json_build_object(
    'asset', json_build_object('id', made.id, 'filename', made.filename,
                               'storage_url', internal.media_link(made, made.object_version, made.mime_type),
                               'uploaded_by', made.uploaded_by),
    'upload', internal.media_upload_json(made)));
end $$;
comment on function api.media_upload is
  'Registers an upload, {asset, upload} for the server. Refuses as internal.media_insert.';

create or replace function internal.media_found(asset_id uuid) returns app.media_assets
language plpgsql stable security definer set search_path = '' as $$
declare
  a app.media_assets;
begin
  select m.* into a from app.media_assets m where m.id = media_found.asset_id and m.status <> 'deleted';
  perform internal.check_found(a.id is not null and internal.media_is_mine(a), 'asset');
  return a;
end $$;
comment on function internal.media_found is 'An asset of the caller, pending or committed. Refuses 404 NOT_FOUND.';

create or replace function api.media_lookup(asset_id uuid, nonce text, with_upload boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  a constant app.media_assets := internal.media_found(media_lookup.asset_id);
begin
  perform internal.media_links_begin(media_lookup.nonce);
  if a.upload_version is not null and (a.status = 'pending' or media_lookup.with_upload) then
    return internal.reply(202, internal.media_upload_json(a));
  end if;
  return internal.reply(200, internal.media_asset_json(a));
end $$;
comment on function api.media_lookup is
  'An asset of the caller: 200 with the asset; 202, for the server, with its open upload when the asset is pending, or
   with_upload. Refuses 404 NOT_FOUND.';

create or replace function internal.media_commit(asset_id uuid, version text, size_bytes bigint, keeps_window boolean,
                                                 is_free boolean default false, metadata jsonb default null)
returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  a app.media_assets;
begin
  if internal.caller() not in ('user', 'server_key_user', 'server_key', 'developer', 'worker') then
    raise exception 'assets are committed by their owners and by the server, not by %', internal.caller();
  end if;
  select m.* into a from app.media_assets m where m.id = media_commit.asset_id and m.status <> 'deleted' for update;
  perform internal.check_found(a.id is not null and (internal.media_is_mine(a) or internal.caller() = 'worker'),
                               'asset');
  -- the bytes may have come by a URL that is older than the ban, and a GET commits them too
  if internal.caller() not in ('server_key', 'developer') then
    perform internal.check_not_banned(a.uploaded_by);
  end if;
  -- another commit of the same upload was faster
  if a.upload_version is distinct from media_commit.version then
    return a;
  end if;
  -- whatever was said of it before it came
  perform internal.media_bucket_fits(b, a.upload_mime_type, media_commit.size_bytes)
     from app.media_buckets b where b.name = a.bucket;
  if media_commit.is_free and media_commit.size_bytes > coalesce(internal.media_counted(a), 0) then
    perform internal.media_budget_check(media_commit.size_bytes - coalesce(internal.media_counted(a), 0));
  end if;
  update app.media_assets m
     set status = 'committed', size_bytes = media_commit.size_bytes, object_version = m.upload_version,
       mime_type = m.upload_mime_type, metadata = coalesce(media_commit.metadata, m.metadata),
         upload_version = null, upload_mime_type = null, upload_size_bytes = null,
         upload_expires_at = case when media_commit.keeps_window then m.upload_expires_at end,
         committed_at = coalesce(m.committed_at, internal.now()), updated_at = internal.now()
   where m.id = a.id
  returning m.* into a;
  return a;
end $$;
comment on function internal.media_commit is
  'Notes that the bytes of an upload are stored under its version: the asset is committed. keeps_window: upload URLs
   that are out cannot be ended, so they count until they expire. is_free: what is more than was counted when the upload
   began must fit the budget. metadata: those of the new bytes; without, they stay. Does nothing where another commit
   was faster. Refuses 402 FREE_TIER_LIMIT_REACHED, 403 USER_BANNED, 404 NOT_FOUND, and what its bucket does not take as
   internal.media_bucket_fits. Locks the asset.';

create or replace function api.media_commit(asset_id uuid, version text, size_bytes bigint, keeps_window boolean,
                                            nonce text, is_free boolean default false, metadata jsonb default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_links_begin(media_commit.nonce);
  return internal.reply(200, internal.media_asset_json(
    internal.media_commit(media_commit.asset_id, media_commit.version, media_commit.size_bytes,
                          media_commit.keeps_window, media_commit.is_free, media_commit.metadata)));
end $$;
comment on function api.media_commit is
  'Commits an upload that the server has verified. Refuses as internal.media_commit.';

create or replace function api.media_upload_open(asset_id uuid, version text, mime_type text) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, to_json(exists (
    select from app.media_assets m
     where m.id = media_upload_open.asset_id and m.status <> 'deleted' and m.upload_version = media_upload_open.version
       and m.upload_mime_type = media_upload_open.mime_type)))
$$;
comment on function api.media_upload_open is
  'For the server, before it takes the bytes of a signed upload URL: whether bytes of this type may be uploaded as this
   version of an asset: it is neither committed nor deleted.';
