-- Buckets of files, which server keys and administrators make and change. Their names are for ever: a bucket is deleted
-- and made anew.
select internal.audit_declare('app.media_buckets', 'media');

create or replace function internal.media_bucket_json(b app.media_buckets) returns json
language sql stable as $$
  select json_build_object(
    'id', (media_bucket_json.b).name, 'name', (media_bucket_json.b).name, 'owner', '', 'type', 'STANDARD',
    'public', (media_bucket_json.b).is_public, 'file_size_limit', (media_bucket_json.b).file_size_limit,
    'allowed_mime_types', (media_bucket_json.b).allowed_mime_types,
    'created_at', internal.iso((media_bucket_json.b).created_at),
    'updated_at', internal.iso((media_bucket_json.b).updated_at))
$$;
comment on function internal.media_bucket_json is 'A bucket as storage-js shows one.';

create or replace function internal.media_bucket_owned(name text default null) returns void
language plpgsql volatile as $$
begin
  if internal.caller() not in ('server_key', 'developer') then
    perform internal.fail(403, 'FORBIDDEN', 'Buckets are made and changed with a server key.');
  elsif media_bucket_owned.name = any (internal.storage_buckets()) then
    perform internal.fail(403, 'FORBIDDEN', format('The bucket %s stays as it is.', media_bucket_owned.name));
  end if;
end $$;
comment on function internal.media_bucket_owned is
  'Refuses 403 FORBIDDEN to everybody but server keys and administrators, and for the buckets that each project has.';

create or replace function internal.media_bucket_types(types json) returns text[]
language plpgsql volatile as $$
declare
  given constant text[] := case when json_typeof(media_bucket_types.types) = 'array'
                                then array(select lower(btrim(json_array_elements_text(media_bucket_types.types)))) end;
begin
  if cardinality(given) > 100
     or exists (select from unnest(given) t (type)
                 where type !~ '^([a-z0-9][a-z0-9.+-]{0,99}/([a-z0-9][a-z0-9.+-]{0,99}|\*)|\*/\*)$') then
    perform internal.invalid('allowed_mime_types', 'must be at most 100 types such as image/png or image/*',
                             'INVALID_INPUT');
  end if;
  return nullif(given, '{}');
end $$;
comment on function internal.media_bucket_types is
  'The types that a bucket takes; null for none or an empty list: all. Refuses 400 INVALID_INPUT.';

create or replace function internal.bucket_make(name text, is_public boolean, file_size_limit bigint,
                                                allowed_mime_types json)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.media_bucket_owned();
  if bucket_make.name !~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$' then
    perform internal.fail(400, 'INVALID_BUCKET_NAME',
                          'A bucket is named by 1 to 100 letters, digits, "_", "." and "-", and begins with none of '
                          'the last two.', '{"field": "name"}');
  elsif bucket_make.name = any (internal.storage_buckets()) or bucket_make.name = any (
      array['authenticated', 'copy', 'info', 'list', 'list-v2', 'move', 'public', 'sign', 'upload']) then
    perform internal.fail(409, 'BUCKET_EXISTS', 'There is a bucket of this name, or it is kept for the program.',
                          '{"field": "name"}');
  end if;
  perform internal.advisory_lock('media buckets');
  if exists (select from app.media_buckets b where b.name = bucket_make.name) then
    perform internal.fail(409, 'BUCKET_EXISTS', 'There is a bucket of this name.', '{"field": "name"}');
  elsif (select count(*) from app.media_buckets) > 200 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A project has at most 200 buckets.', '{"limit": 200}');
  end if;
  insert into app.media_buckets (name, is_public, file_size_limit, allowed_mime_types)
  values (bucket_make.name, bucket_make.is_public, bucket_make.file_size_limit,
          internal.media_bucket_types(bucket_make.allowed_mime_types));
end $$;
comment on function internal.bucket_make is
  'Makes a bucket. Refuses 400 INVALID_BUCKET_NAME, INVALID_INPUT, 403 FORBIDDEN, 409 BUCKET_EXISTS, LIMIT_REACHED.';

create or replace function api.bucket_create(name text, is_public boolean, file_size_limit bigint default null,
                                             allowed_mime_types json default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.bucket_make(bucket_create.name, bucket_create.is_public, bucket_create.file_size_limit,
                               bucket_create.allowed_mime_types);
  return internal.reply(200, json_build_object('name', bucket_create.name));
end $$;
comment on function api.bucket_create is
  'Makes a bucket: 200 {name}. Refuses 400 INVALID_BUCKET_NAME, INVALID_INPUT, 403 FORBIDDEN, 409 BUCKET_EXISTS,
   LIMIT_REACHED.';

create or replace function api.bucket_get(name text) returns api.reply
language plpgsql stable as $$
declare
  shown json;
begin
  select internal.media_bucket_json(b) into shown from app.media_buckets b where b.name = bucket_get.name;
  if shown is null then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  end if;
  return internal.reply(200, shown);
end $$;
comment on function api.bucket_get is 'A bucket that the caller sees. Refuses 404 BUCKET_NOT_FOUND.';

create or replace function api.bucket_list(search text, sort_column text, is_descending boolean, page_offset int,
                                           page_limit int)
returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(page.shown order by page.n), '[]'))
    from (
      select internal.media_bucket_json(b) as shown,
             row_number() over (
               order by case when bucket_list.is_descending then null else sorted.by end,
                        case when bucket_list.is_descending then sorted.by end desc, b.name) as n
        from app.media_buckets b
       cross join lateral (
         select case when bucket_list.sort_column in ('created_at', 'updated_at')
                     then to_char(case bucket_list.sort_column when 'created_at' then b.created_at
                                                               else b.updated_at end at time zone 'UTC',
                                  'YYYYMMDDHH24MISSUS')
                     else b.name end collate "C" as by) sorted
       where bucket_list.search = '' or position(lower(bucket_list.search) in lower(b.name)) > 0
       order by n
       limit bucket_list.page_limit offset bucket_list.page_offset) page
$$;
comment on function api.bucket_list is
  'The buckets that the caller sees, those whose names contain a text, by name, created_at or updated_at.';

create or replace function internal.bucket_change(name text, patch json) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.media_bucket_owned(bucket_change.name);
  update app.media_buckets b
     set is_public = coalesce((bucket_change.patch ->> 'is_public')::boolean, b.is_public),
         file_size_limit = case when bucket_change.patch::jsonb ? 'file_size_limit'
                                then (bucket_change.patch ->> 'file_size_limit')::bigint else b.file_size_limit end,
         allowed_mime_types = case when bucket_change.patch::jsonb ? 'allowed_mime_types'
                                   then internal.media_bucket_types(bucket_change.patch -> 'allowed_mime_types')
                                   else b.allowed_mime_types end,
         updated_at = internal.now()
   where b.name = bucket_change.name;
  if not found then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  end if;
end $$;
comment on function internal.bucket_change is
  'Changes what was sent of is_public, file_size_limit and allowed_mime_types of a bucket; files that are there stay.
   Refuses 400 INVALID_INPUT, 403 FORBIDDEN, 404 BUCKET_NOT_FOUND.';

create or replace function api.bucket_update(name text, patch json) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.bucket_change(bucket_update.name, bucket_update.patch);
  return internal.reply(200, json_build_object('message', 'Successfully updated'));
end $$;
comment on function api.bucket_update is
  'Changes what was sent of is_public, file_size_limit and allowed_mime_types of a bucket; files that are there stay.
   Refuses 400 INVALID_INPUT, 403 FORBIDDEN, 404 BUCKET_NOT_FOUND.';

create or replace function internal.bucket_drop(name text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.media_bucket_owned(bucket_drop.name);
  -- uploads that are being registered come before or after
  perform from app.media_buckets b where b.name = bucket_drop.name for update;
  if not found then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  elsif exists (select from app.media_assets a where a.bucket = bucket_drop.name) then
    perform internal.fail(409, 'BUCKET_NOT_EMPTY', 'The bucket has files: empty it first.');
  end if;
  delete from app.media_buckets b where b.name = bucket_drop.name;
end $$;
comment on function internal.bucket_drop is
  'Deletes an empty bucket. Refuses 403 FORBIDDEN, 404 BUCKET_NOT_FOUND, 409 BUCKET_NOT_EMPTY. Locks the bucket.';

create or replace function api.bucket_delete(name text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.bucket_drop(bucket_delete.name);
  return internal.reply(200, json_build_object('message', 'Successfully deleted'));
end $$;
comment on function api.bucket_delete is
  'Deletes an empty bucket. Refuses 403 FORBIDDEN, 404 BUCKET_NOT_FOUND, 409 BUCKET_NOT_EMPTY. Locks the bucket.';

create or replace function internal.bucket_clear(name text, is_free boolean, most int default 500) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  asset uuid;
  n int := 0;
begin
  perform internal.media_bucket_owned(bucket_clear.name);
  if not exists (select from app.media_buckets b where b.name = bucket_clear.name) then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  end if;
  for asset in
    select a.id from app.media_assets a where a.bucket = bucket_clear.name
     order by a.id limit bucket_clear.most for update of a
  loop
    perform internal.media_delete(asset, bucket_clear.is_free);
    n := n + 1;
  end loop;
  if n > 0 then
    perform internal.enqueue('media__remove');
  end if;
  return n;
end $$;
comment on function internal.bucket_clear is
  'Deletes files of a bucket, some hundreds at a time, and queues the removal of their bytes; returns how many they
   were. Refuses 403 FORBIDDEN, 404 BUCKET_NOT_FOUND, and as internal.media_delete. Locks the assets.';

create or replace function api.bucket_empty(name text, is_free boolean, most int default 500) returns api.reply
language sql volatile as $$
  select internal.reply(200, to_json(internal.bucket_clear(bucket_empty.name, bucket_empty.is_free,
                                                           bucket_empty.most)))
$$;
comment on function api.bucket_empty is
  'Deletes files of a bucket, some hundreds at a time, and queues the removal of their bytes; answers how many they
   were. Refuses 403 FORBIDDEN, 404 BUCKET_NOT_FOUND, and as internal.media_delete. Locks the assets.';
