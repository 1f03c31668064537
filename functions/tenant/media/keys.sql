-- Files under keys that callers choose: where a key is, who may write there, and what its bucket takes.
create or replace function internal.media_key(bucket text, key text, out path text, out owner text) returns record
language plpgsql volatile security definer set search_path = '' as $$
declare
  reason text;
begin
  if not exists (select from app.media_buckets b where b.name = media_key.bucket) then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  elsif media_key.bucket = 'media' then
    path := case when media_key.key ^@ (internal.project_id() || '/')
                 then substr(media_key.key, length(internal.project_id()::text) + 2) else media_key.key end;
    owner := split_part(path, '/', 2);
  else
    path := concat('bucket/', media_key.bucket, '/', media_key.key);
    owner := case when position('/' in media_key.key) > 0 then split_part(media_key.key, '/', 1) end;
  end if;
  reason := case
    when octet_length(path) > 1024 then 'must have at most 1024 bytes'
    when path ~ '[?#%\\]' or path ~ '[[:cntrl:]]' then 'must have no ?, #, %, \ and no control characters'
    when media_key.bucket = 'media' and not path ^@ 'user/' then 'must begin with user/<user id>/'
    when path ~ '(^|/)(\.{0,2})(/|$)' then 'must have no empty, . and .. segments, and name a file'
    when media_key.bucket = 'media' and path !~ '^user/[^/]+/[^/]' then 'must name a file under user/<user id>/'
    when path ~ '[^/]{255}[^/]' then 'must have segments of at most 255 characters'
  end;
  if reason is not null then
    perform internal.invalid('key', reason, 'INVALID_INPUT');
  end if;
end $$;
comment on function internal.media_key is
  'The path of a key without the id of the project, and the id that its owner''s folder is named by: the first folder in
   a bucket, the second one in media. Refuses 400 INVALID_INPUT for a key that is no path of a file, 404
   BUCKET_NOT_FOUND. Granted to nobody.';

create or replace function internal.media_place(bucket text, key text, out path text, out owner uuid) returns record
language plpgsql volatile security definer set search_path = '' as $$
declare
  k constant record := internal.media_key(media_place.bucket, media_place.key);
  named constant uuid := internal.as_uuid(k.owner);
  is_server constant boolean := internal.caller() = 'server_key';
begin
  path := k.path;
  if internal.caller() not in ('user', 'server_key_user', 'server_key') then
    raise exception 'keys are chosen by users and server keys, not by %', internal.caller();
  elsif not is_server and k.owner is distinct from internal.user_id()::text then
    perform internal.fail(403, 'FORBIDDEN', 'The key is in the folder of another user.');
  end if;
  if named::text = k.owner then
    owner := (internal.lock_users(array[named]))[1];
  end if;
  if owner is null and (not is_server or media_place.bucket = 'media') then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  elsif not is_server then
    perform internal.check_not_banned(owner);
  elsif owner is null then
    -- where no user is locked, writers of one key come one after the other by this
    perform internal.advisory_lock('media_key', path);
  end if;
end $$;
comment on function internal.media_place is
  'Where the caller may write: the path of a key, and the user whose file is there. Users write in the folder of their
   id, server keys everywhere; in a bucket of its own a file in no folder of a user belongs to the project. Refuses 400
   INVALID_INPUT, 403 FORBIDDEN, USER_BANNED, 404 USER_NOT_FOUND. Locks the user, or the key. Granted to nobody.';

create or replace function internal.media_bucket_fits(bucket app.media_buckets, type text, size_bytes bigint)
returns void
language plpgsql volatile as $$
declare
  plain constant text := split_part(media_bucket_fits.type, ';', 1);
begin
  if plain <> all ((media_bucket_fits.bucket).allowed_mime_types)
     and split_part(plain, '/', 1) || '/*' <> all ((media_bucket_fits.bucket).allowed_mime_types)
     and '*/*' <> all ((media_bucket_fits.bucket).allowed_mime_types) then
    perform internal.fail(400, 'MIME_NOT_ALLOWED', format('The bucket takes no files of type %s.', plain),
                          json_build_object('field', 'mime_type', 'reason', 'is no type that the bucket takes',
                                            'type', plain));
  elsif media_bucket_fits.size_bytes > (media_bucket_fits.bucket).file_size_limit then
    perform internal.fail(413, 'PAYLOAD_TOO_LARGE', format('A file of this bucket has at most %s bytes.',
                                                          (media_bucket_fits.bucket).file_size_limit),
                          json_build_object('limit', (media_bucket_fits.bucket).file_size_limit));
  end if;
end $$;
comment on function internal.media_bucket_fits is
  'Refuses what a bucket does not take: 400 MIME_NOT_ALLOWED, 413 PAYLOAD_TOO_LARGE {limit}. Without a size, any size.';

create or replace function internal.media_bucket_open(bucket text, type text, size_bytes bigint) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  b app.media_buckets;
begin
  -- waits for a deletion of the bucket
  select m.* into b from app.media_buckets m where m.name = media_bucket_open.bucket for key share;
  if b.name is null then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  end if;
  perform internal.media_bucket_fits(b, media_bucket_open.type, media_bucket_open.size_bytes);
  return nullif(b.name, 'media');
end $$;
comment on function internal.media_bucket_open is
  'The bucket of a file that is to be written, null for media. Refuses 404 BUCKET_NOT_FOUND, and as
   internal.media_bucket_fits. Locks the bucket. Granted to nobody.';

create or replace function internal.media_presign_put(bucket text, key text, content_type text, is_free boolean,
                                                      seconds int, size_bytes bigint default null,
                                                      replaces boolean default true, renews boolean default false)
returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  place record;
  type text;
  into_bucket text;
  a app.media_assets;
begin
  type := internal.media_type(media_presign_put.content_type);
  place := internal.media_place(media_presign_put.bucket, media_presign_put.key);
  if media_presign_put.is_free and media_presign_put.size_bytes is null then
    perform internal.fail(400, 'PRESIGN_PUT_NOT_AVAILABLE',
                          'Free projects register uploads with POST /v1/client/media/upload.');
  end if;
  into_bucket := internal.media_bucket_open(media_presign_put.bucket, type, media_presign_put.size_bytes);
  select m.* into a from app.media_assets m
   where m.key = place.path collate "C" and m.status <> 'deleted' for update;
  if media_presign_put.is_free and media_presign_put.size_bytes > coalesce(internal.media_counted(a), 0) then
    perform internal.media_budget_check(media_presign_put.size_bytes - coalesce(internal.media_counted(a), 0));
  end if;
  if a.id is null then
    insert into app.media_assets as m
      (key, filename, mime_type, source, size_bytes, object_version, upload_version, upload_mime_type,
       upload_size_bytes, upload_expires_at, uploaded_by, bucket)
    select place.path, regexp_replace(place.path, '^.*/', ''), type, 'presign', media_presign_put.size_bytes,
           v.version, v.version, type, media_presign_put.size_bytes,
           internal.now() + make_interval(secs => media_presign_put.seconds), place.owner, into_bucket
      from (select internal.media_new_version() as version) v
    returning m.* into a;
  elsif a.source <> 'presign' or a.uploaded_by is distinct from place.owner or a.blocked_at is not null
        or a.status = 'committed' and not media_presign_put.replaces then
    perform internal.fail(409, 'KEY_IN_USE',
                          'Another file has this key: choose another key, or delete that file.', '{"field": "key"}');
  else
    update app.media_assets m
       -- bytes that came as another type, or for an upload that began before, are no upload of this one
       set upload_version = case when m.upload_mime_type = type and not media_presign_put.renews
                                 then coalesce(m.upload_version, internal.media_new_version())
                                 else internal.media_new_version() end,
           upload_mime_type = type, upload_size_bytes = media_presign_put.size_bytes,
           size_bytes = case when m.status = 'pending' then media_presign_put.size_bytes else m.size_bytes end,
           mime_type = case when m.status = 'pending' then type else m.mime_type end,
           upload_expires_at = greatest(m.upload_expires_at,
                                        internal.now() + make_interval(secs => media_presign_put.seconds)),
           updated_at = case when m.status = 'pending' then internal.now() else m.updated_at end
     where m.id = a.id
    returning m.* into a;
  end if;
  return a;
end $$;
comment on function internal.media_presign_put is
  'The asset of a key with an open upload: a new one, or the one of the key, whose bytes the next commit replaces.
   size_bytes is the exact size, where it is known. renews: no parts of an upload that began before belong to this one.
   Refuses 400 MIME_NOT_ALLOWED, PRESIGN_PUT_NOT_AVAILABLE (a free
   project, without a size), 402 FREE_TIER_LIMIT_REACHED, 409 KEY_IN_USE (a file that was uploaded in another way, of
   another user, or blocked; without replaces any file that is there), and as internal.media_place and
   internal.media_bucket_open. Locks the user or the key, the bucket, the asset, and in a free project the budget.';

create or replace function internal.media_is_open(a app.media_assets) returns boolean
language sql stable security definer set search_path = '' as $$
  select (media_is_open.a).blocked_at is null
         and exists (select from app.media_buckets b where b.name = (media_is_open.a).bucket and b.is_public)
$$;
comment on function internal.media_is_open is 'Whether anybody reads a committed file, because its bucket is public.';

create or replace function internal.media_presign_get(bucket text, key text) returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  k record;
  a app.media_assets;
begin
  k := internal.media_key(media_presign_get.bucket, media_presign_get.key);
  select m.* into a from app.media_assets m where m.key = k.path collate "C" and m.status = 'committed';
  if a.id is not null and (internal.media_is_mine(a) or internal.media_is_open(a)) then
    return a;
  elsif media_presign_get.bucket = 'media' and internal.caller() <> 'server_key'
        and k.owner is distinct from internal.user_id()::text then
    -- whether there is a file is not said
    perform internal.fail(403, 'FORBIDDEN', 'The key is in the folder of another user.');
  end if;
  perform internal.check_found(false, 'file');
end $$;
comment on function internal.media_presign_get is
  'The committed asset of a key, for those who read it: its user, server keys, and in a public bucket everybody. Refuses
   400 INVALID_INPUT, 403 FORBIDDEN, 404 NOT_FOUND, BUCKET_NOT_FOUND.';

create or replace function api.media_presign(bucket text, key text, method text, is_free boolean, seconds int,
                                             content_type text default null, size_bytes bigint default null,
                                             replaces boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  a app.media_assets;
begin
  if media_presign.method not in ('GET', 'PUT') then
    perform internal.fail(400, 'INVALID_METHOD', 'method must be GET or PUT.',
                          '{"field": "method", "reason": "must be GET or PUT"}');
  elsif media_presign.method = 'GET' then
    a := internal.media_presign_get(media_presign.bucket, media_presign.key);
    return internal.reply(200, json_build_object(
      'asset_id', a.id, 'key', a.key, 'object', a.object_version, 'mime_type', a.mime_type, 'filename', a.filename,
      'size_bytes', a.size_bytes, 'metadata', a.metadata, 'created_at', internal.iso(a.created_at),
      'updated_at', internal.iso(a.updated_at),
      'expires_at', internal.iso(internal.now() + make_interval(secs => media_presign.seconds))));
  elsif media_presign.content_type is null then
    perform internal.invalid('content_type', 'is required for PUT', 'INVALID_INPUT');
  end if;
  a := internal.media_presign_put(media_presign.bucket, media_presign.key, media_presign.content_type,
                                  media_presign.is_free, media_presign.seconds, media_presign.size_bytes,
                                  media_presign.replaces);
  return internal.reply(200, internal.json_merge(internal.media_upload_json(a), json_build_object(
    'expires_at', internal.iso(internal.now() + make_interval(secs => media_presign.seconds)))));
end $$;
comment on function api.media_presign is
  'What a signed URL for a key leads to, for the server: an object for GET, an upload for PUT. Refuses 400
   INVALID_METHOD, INVALID_INPUT, and as internal.media_presign_get and internal.media_presign_put do.';
