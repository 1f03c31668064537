-- Files by bucket and key: whether one may be written, what a public address leads to, and moving.
create or replace function api.media_admit(bucket text, key text, replaces boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  place constant record := internal.media_place(media_admit.bucket, media_admit.key);
begin
  perform internal.media_bucket_open(media_admit.bucket, null, null);
  if not media_admit.replaces and exists (
      select from app.media_assets m where m.key = place.path collate "C" and m.status = 'committed') then
    perform internal.fail(409, 'KEY_IN_USE',
                          'Another file has this key: choose another key, or delete that file.', '{"field": "key"}');
  end if;
  return internal.reply(200, to_json(true));
end $$;
comment on function api.media_admit is
  'Whether the caller may write a file there, before it comes. Refuses 409 KEY_IN_USE, and as internal.media_place and
   internal.media_bucket_open.';

create or replace function api.media_public_at(bucket text, key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  k constant record := internal.media_key(media_public_at.bucket, media_public_at.key);
  a app.media_assets;
begin
  select m.* into a from app.media_assets m where m.key = k.path collate "C" and m.status = 'committed';
  perform internal.check_found(a.id is not null and (internal.media_is_public(a) or internal.media_is_open(a)), 'file');
  return internal.reply(200, json_build_object('asset_id', a.id, 'key', a.key, 'object', a.object_version,
                                               'mime_type', a.mime_type, 'filename', a.filename));
end $$;
comment on function api.media_public_at is
  'For the server, at each request without credentials: what the key of a public file leads to. Refuses 400
   INVALID_INPUT, 404 BUCKET_NOT_FOUND, NOT_FOUND for a file that is not public, pending, deleted or hidden.';

create or replace function internal.media_move(bucket text, key text, to_bucket text, to_key text)
returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  from_path constant text := (internal.media_key(media_move.bucket, media_move.key)).path;
  place record;
  a app.media_assets;
  into_bucket text;
begin
  -- who may not read it is told so before anything else
  a := internal.media_presign_get(media_move.bucket, media_move.key);
  perform internal.check_found(internal.media_is_mine(a), 'file');
  -- in the order of their ids, with the one that the file comes to
  perform internal.lock_users(array_remove(
    array[a.uploaded_by,
          internal.as_uuid((internal.media_key(media_move.to_bucket, media_move.to_key)).owner)], null));
  place := internal.media_place(media_move.to_bucket, media_move.to_key);
  select m.* into a from app.media_assets m where m.key = from_path collate "C" and m.status = 'committed' for update;
  perform internal.check_found(a.id is not null and internal.media_is_mine(a), 'file');
  into_bucket := internal.media_bucket_open(media_move.to_bucket, a.mime_type, a.size_bytes);
  if place.path = from_path then
    return a;
  end if;
  perform from app.media_assets m where m.key = place.path collate "C" and m.status <> 'deleted' for update;
  if found then
    perform internal.fail(409, 'KEY_IN_USE',
                          'Another file has this key: choose another key, or delete that file.', '{"field": "key"}');
  end if;
  update app.media_assets m
     set key = place.path, filename = regexp_replace(place.path, '^.*/', ''), bucket = into_bucket,
         uploaded_by = place.owner, source = 'presign', updated_at = internal.now(),
         -- an upload that is under way was admitted for the former place
         upload_version = null, upload_mime_type = null, upload_size_bytes = null
   where m.id = a.id
  returning m.* into a;
  return a;
end $$;
comment on function internal.media_move is
  'Gives a file of the caller another key, in its bucket or another one; its user is the one of the new folder. Refuses
   409 KEY_IN_USE, and as internal.media_presign_get, internal.media_place and internal.media_bucket_open. Locks the
   users, the key, the bucket and the asset.';

create or replace function api.media_move(bucket text, key text, to_bucket text, to_key text) returns api.reply
language sql volatile as $$
  select internal.reply(200, json_build_object(
    'asset_id', (internal.media_move(media_move.bucket, media_move.key, media_move.to_bucket, media_move.to_key)).id))
$$;
comment on function api.media_move is 'Moves a file. Refuses as internal.media_move.';
