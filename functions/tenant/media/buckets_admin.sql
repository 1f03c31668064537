-- Buckets of files, as administrators make and change them. The rules are those of server keys.

create or replace function internal.media_own_bucket_json(b app.media_buckets) returns json
language sql stable as $$
  select json_build_object(
    'name', (media_own_bucket_json.b).name, 'is_public', (media_own_bucket_json.b).is_public,
    'file_size_limit', (media_own_bucket_json.b).file_size_limit,
    'allowed_mime_types', (media_own_bucket_json.b).allowed_mime_types,
    'created_at', internal.iso((media_own_bucket_json.b).created_at),
    'updated_at', internal.iso((media_own_bucket_json.b).updated_at))
$$;
comment on function internal.media_own_bucket_json is 'A bucket as administrators see it.';

create or replace function internal.media_bucket_answer(status int, name text) returns api.reply
language plpgsql stable as $$
declare
  shown json;
begin
  select internal.media_own_bucket_json(b) into shown
    from app.media_buckets b
   where b.name = media_bucket_answer.name and b.name <> all (internal.storage_buckets());
  perform internal.check_found(shown is not null, 'bucket');
  return internal.reply(media_bucket_answer.status, shown);
end $$;
comment on function internal.media_bucket_answer is
  'A bucket of the project''s own under a status. Refuses 404 NOT_FOUND, also for the buckets that each project has.';

create or replace function api.media_bucket_create(name text, is_public boolean default false,
                                                   file_size_limit bigint default null,
                                                   allowed_mime_types json default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.bucket_make(media_bucket_create.name, media_bucket_create.is_public,
                               media_bucket_create.file_size_limit, media_bucket_create.allowed_mime_types);
  return internal.media_bucket_answer(201, media_bucket_create.name);
end $$;
comment on function api.media_bucket_create is
  'Makes a bucket, 201. Refuses 400 INVALID_BUCKET_NAME, INVALID_INPUT, 409 BUCKET_EXISTS, LIMIT_REACHED.';

create or replace function api.media_bucket_list(page_limit bigint, page_offset bigint) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(page.shown order by page.name)
       from (select b.name, internal.media_own_bucket_json(b) as shown
               from app.media_buckets b
              where b.name <> all (internal.storage_buckets())
              order by b.name
              limit media_bucket_list.page_limit offset media_bucket_list.page_offset) page),
    -- at most 200
    (select count(*) from app.media_buckets b where b.name <> all (internal.storage_buckets())),
    media_bucket_list.page_offset, media_bucket_list.page_limit)
$$;
comment on function api.media_bucket_list is 'The buckets that the project has made, by name.';

create or replace function api.media_bucket_get(name text) returns api.reply
language sql stable as $$
  select internal.media_bucket_answer(200, media_bucket_get.name)
$$;
comment on function api.media_bucket_get is 'A bucket. Refuses 404 NOT_FOUND.';

create or replace function api.media_bucket_update(name text, patch json) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_bucket_answer(200, media_bucket_update.name);
  perform internal.bucket_change(media_bucket_update.name, media_bucket_update.patch);
  return internal.media_bucket_answer(200, media_bucket_update.name);
end $$;
comment on function api.media_bucket_update is
  'Changes what was sent of is_public, file_size_limit and allowed_mime_types; files that are there stay. Refuses 400
   INVALID_INPUT, 404 NOT_FOUND.';

create or replace function api.media_bucket_delete(name text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_bucket_answer(200, media_bucket_delete.name);
  perform internal.bucket_drop(media_bucket_delete.name);
  return internal.reply_deleted();
end $$;
comment on function api.media_bucket_delete is
  'Deletes an empty bucket. Refuses 404 NOT_FOUND, 409 BUCKET_NOT_EMPTY.';

create or replace function api.media_bucket_empty(name text, is_free boolean) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_bucket_answer(200, media_bucket_empty.name);
  return internal.reply(202, json_build_object(
    'accepted', internal.bucket_clear(media_bucket_empty.name, media_bucket_empty.is_free)));
end $$;
comment on function api.media_bucket_empty is
  'Deletes at most 500 files of a bucket: 202 {accepted}, how many they were; the bytes are removed in the background.
   Refuses 404 NOT_FOUND, and as internal.media_delete.';
