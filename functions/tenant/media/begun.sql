-- Uploads of Supabase's clients that come in parts: begun, and ended without a file. Their bytes lie in the storage.
create or replace function internal.media_begin(bucket text, key text, content_type text, size_bytes bigint,
                                                replaces boolean, is_free boolean)
returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- no URL is given out that others could use: nobody waits until one has expired
  a constant app.media_assets := internal.media_presign_put(
    media_begin.bucket, media_begin.key, media_begin.content_type, media_begin.is_free, 0, media_begin.size_bytes,
    media_begin.replaces, true);
begin
  if a.uploaded_by is null then
    perform internal.check_limit(
      (select count(*) from (select from app.media_assets m
                              where m.uploaded_by is null and m.upload_size_bytes is not null and m.id <> a.id
                              limit 1000) n), 1000, 'A project has at most 1000 uploads of its own under way.');
  else
    perform internal.check_limit(
      (select count(*) from (select from app.media_assets m
                              where m.uploaded_by = a.uploaded_by and m.upload_size_bytes is not null and m.id <> a.id
                              limit 100) n), 100, 'A user has at most 100 uploads under way.');
  end if;
  return a;
end $$;
comment on function internal.media_begin is
  'Begins an upload that comes in parts, of which a user has 100 at once: what they have sent is in no budget of a
   project that pays. Refuses 409 LIMIT_REACHED, and as internal.media_presign_put.';

create or replace function api.media_begin(bucket text, key text, content_type text, size_bytes bigint,
                                           replaces boolean, is_free boolean)
returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.media_upload_json(internal.media_begin(
    media_begin.bucket, media_begin.key, media_begin.content_type, media_begin.size_bytes, media_begin.replaces,
    media_begin.is_free)))
$$;
comment on function api.media_begin is
  'For the server: an upload that comes in parts. Refuses as internal.media_begin.';

create or replace function internal.media_upload_end(asset_id uuid, version text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_server constant boolean := internal.caller() = 'server_key';
  a app.media_assets;
begin
  select m.* into a from app.media_assets m where m.id = media_upload_end.asset_id for update;
  if a.id is null or a.status = 'deleted' then
    return true;
  elsif not is_server and a.uploaded_by is distinct from internal.user_id()
        or a.status = 'committed' and a.object_version = media_upload_end.version then
    return false;
  elsif a.upload_version is distinct from media_upload_end.version then
    return true;
  elsif a.status = 'pending' then
    update app.media_assets m
       set status = 'deleted', deleted_at = internal.now(), updated_at = internal.now(), bucket = null,
           upload_version = null, upload_mime_type = null, upload_size_bytes = null, upload_expires_at = null
     where m.id = a.id;
  else
    update app.media_assets m set upload_version = null, upload_mime_type = null, upload_size_bytes = null
     where m.id = a.id;
  end if;
  return true;
end $$;
comment on function internal.media_upload_end is
  'Ends an upload of the caller that becomes no file: what it was to replace stays. Answers whether its bytes may go:
   false where they have become the file. Locks the asset.';

create or replace function api.media_upload_end(asset_id uuid, version text) returns api.reply
language sql volatile as $$
  select internal.reply(200, to_json(internal.media_upload_end(media_upload_end.asset_id, media_upload_end.version)))
$$;
comment on function api.media_upload_end is
  'For the server: ends an upload that comes in parts, and answers whether its bytes may go.';

create or replace function api.media_uploads_end_old(most int default 500) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended bigint;
begin
  update app.media_assets m set upload_version = null, upload_mime_type = null, upload_size_bytes = null
   where m.id in (select l.id from app.media_assets l
                   where l.upload_size_bytes is not null and l.status = 'committed'
                     and l.upload_expires_at < internal.now() - interval '24 hours'
                   order by l.id limit media_uploads_end_old.most for update);
  get diagnostics ended = row_count;
  return internal.reply(200, to_json(ended));
end $$;
comment on function api.media_uploads_end_old is
  'For the task media__clean: ends uploads that have not replaced their file within a day. Locks the assets.';
