-- What administrators do with assets and with storage.
create or replace function internal.media_search(search text, status text, user_id uuid, mime_type text, folder_id uuid,
                                                 page_offset bigint, page_limit bigint)
returns api.reply
language plpgsql stable set plan_cache_mode = 'force_custom_plan' as $$
declare
  pattern constant text := '%' || regexp_replace(media_search.search, '([\\%_])', '\\\1', 'g') || '%';
begin
  -- all that are found, for their number, and then the page: the planner, who does not know how many contain a text,
  -- would rather read the newest until the page is full
  return (
    with found as materialized (
      select a.id, a.created_at
        from app.media_assets a
       where a.filename ilike pattern and a.status = media_search.status
         and (media_search.user_id is null or a.uploaded_by = media_search.user_id)
         and (media_search.mime_type is null or a.mime_type = media_search.mime_type)
         and (media_search.folder_id is null or a.folder_id = media_search.folder_id)
    ), page as materialized (
      select f.id from found f order by f.created_at desc, f.id desc limit media_search.page_limit
      offset media_search.page_offset
    )
    select internal.reply_page(
             (select json_agg(internal.media_asset_json(p) order by p.created_at desc, p.id desc)
                from page g
               cross join lateral (select a.* from app.media_assets a where a.id = g.id limit 1) p),
             (select count(*) from found), media_search.page_offset, media_search.page_limit));
end $$;
comment on function internal.media_search is
  'A page of the assets whose filename contains a text, whatever the case, by media_assets_names; newest first.';

create or replace function api.media_list_admin(nonce text, status text default 'committed', user_id uuid default null,
                                                mime_type text default null, folder_id uuid default null,
                                                search text default null, page_offset bigint default 0,
                                                page_limit bigint default 50)
returns api.reply
language plpgsql volatile as $$
declare
  type constant text := lower(media_list_admin.mime_type);
begin
  perform internal.media_links_begin(media_list_admin.nonce);
  if media_list_admin.search <> '' then
    return internal.media_search(media_list_admin.search, media_list_admin.status, media_list_admin.user_id, type,
                                 media_list_admin.folder_id,
                                 media_list_admin.page_offset, media_list_admin.page_limit);
  elsif media_list_admin.status = 'pending' then
    return internal.media_pending_page(media_list_admin.user_id, type, media_list_admin.folder_id,
                                       media_list_admin.page_offset, media_list_admin.page_limit);
  end if;
  return internal.media_assets_page(media_list_admin.user_id, type, media_list_admin.folder_id,
                                    media_list_admin.page_offset, media_list_admin.page_limit);
end $$;
comment on function api.media_list_admin is
  'A page of committed or pending assets, newest first, filtered by user, type, folder and a text in the filename.';

create or replace function internal.media_update(asset_id uuid, patch jsonb) returns app.media_assets
language plpgsql volatile security definer set search_path = '' as $$
declare
  a app.media_assets;
  folder constant uuid := (media_update.patch ->> 'folder_id')::uuid;
begin
  perform internal.check_caller('developer', 'assets are described by administrators');
  perform from app.media_folders f where f.id = folder for key share;
  if folder is not null and not found then
    perform internal.invalid('folder_id', 'must be the id of a folder');
  end if;
  select m.* into a from app.media_assets m where m.id = media_update.asset_id
     and m.status = 'committed' for no key update;
  perform internal.check_found(a.id is not null, 'asset');
  update app.media_assets m
     set alt_text = case when media_update.patch ? 'alt_text' then media_update.patch ->> 'alt_text'
                         else m.alt_text end,
         metadata = coalesce(media_update.patch -> 'metadata', m.metadata),
         folder_id = case when media_update.patch ? 'folder_id' then folder else m.folder_id end,
         is_public = coalesce((media_update.patch ->> 'is_public')::boolean, m.is_public), updated_at = internal.now()
   where m.id = a.id
     and (media_update.patch ? 'alt_text' and m.alt_text is distinct from media_update.patch ->> 'alt_text'
          or media_update.patch ? 'metadata' and m.metadata <> media_update.patch -> 'metadata'
          or media_update.patch ? 'folder_id' and m.folder_id is distinct from folder
          or (media_update.patch ->> 'is_public')::boolean <> m.is_public)
  returning m.* into a;
  if not found then
    select m.* into a from app.media_assets m where m.id = media_update.asset_id;
  end if;
  return a;
end $$;
comment on function internal.media_update is
  'Changes alt_text, metadata, the folder and is_public of a committed asset, those that were sent. Refuses 404
   NOT_FOUND, 400 VALIDATION_ERROR. Locks the folder and the asset.';

create or replace function api.media_update(asset_id uuid, patch jsonb, nonce text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_links_begin(media_update.nonce);
  return internal.reply(200, internal.media_asset_json(internal.media_update(media_update.asset_id,
                                        media_update.patch)));
end $$;
comment on function api.media_update is 'Describes an asset. Refuses as internal.media_update.';

create or replace function internal.storage_buckets() returns text[]
language sql immutable parallel safe
return array['media', 'functions', 'sites', 'exports'];
comment on function internal.storage_buckets is 'The buckets of a project. Only media has objects in this version.';

create or replace function internal.storage_bucket_check(bucket text) returns void
language plpgsql volatile as $$
begin
  if storage_bucket_check.bucket <> all (internal.storage_buckets()) then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  end if;
end $$;
comment on function internal.storage_bucket_check is 'Refuses 404 BUCKET_NOT_FOUND.';

create or replace function api.storage_buckets() returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_agg(json_build_object('name', b.name,
                                      'max_object_bytes', case when b.name = 'media'
                                                                 then internal.media_most_bytes() end) order by b.n)
      from unnest(internal.storage_buckets()) with ordinality b (name, n)))
$$;
comment on function api.storage_buckets is
  'The buckets of a project, each with the most bytes that an object may have.';

create or replace function internal.media_sums() returns app.media_totals
language sql stable security definer set search_path = '' as $$
  select 0::bigint, coalesce(sum(u.registered_bytes), 0)::bigint, coalesce(sum(u.stored_bytes), 0)::bigint,
         coalesce(sum(u.objects), 0)::bigint from app.media_totals u
$$;
comment on function internal.media_sums is 'The sums over all assets.';

create or replace function api.storage_usage(is_free boolean) returns api.reply
language plpgsql stable as $$
declare
  sums constant app.media_totals := internal.media_sums();
begin
  return internal.reply(200, json_build_object(
    'buckets', (select json_agg(json_build_object('bucket', b.name,
                                                  'bytes', case when b.name = 'media' then sums.stored_bytes else 0 end,
                                                  'objects', case when b.name = 'media' then sums.objects else 0 end)
                                                    order by b.n)
                  from unnest(internal.storage_buckets()) with ordinality b (name, n)),
    'registered_bytes', sums.registered_bytes,
    'limit_bytes', case when storage_usage.is_free then internal.media_budget() end));
end $$;
comment on function api.storage_usage is
  'Bytes and objects of each bucket; registered_bytes counts pending uploads too, which limit_bytes, the budget of a
   free project, is about.';

create or replace function api.storage_objects(bucket text, prefix text default '', cursor text default null,
                                               page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  place constant uuid := (internal.cursor_read(storage_objects.cursor, 'id', '{uuid}'))[1];
  shown json;
  n bigint;
  last uuid;
begin
  perform internal.storage_bucket_check(storage_objects.bucket);
  if storage_objects.bucket = 'media' and storage_objects.prefix = '' then
    select json_agg(o.object order by o.id desc), count(*), (array_agg(o.id order by o.id))[1] into shown, n, last
      from (select a.id, internal.storage_object_json(a) as object from app.media_assets a
             where a.status = 'committed' and a.id < coalesce(place, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
             order by a.id desc limit storage_objects.page_limit) o;
  elsif storage_objects.bucket = 'media' and (
    select count(*) <= 20000
      from (select from app.media_assets a
             where a.status <> 'deleted' and a.key collate "C" >= storage_objects.prefix
               and a.key collate "C" < storage_objects.prefix || chr(1114111)
             limit 20001) bounded) then
    -- few: found by their keys, then sorted; in one query the planner would read the newest objects until a page is
    -- full
    with found as materialized (
      select a.id
        from app.media_assets a
       where a.status = 'committed' and a.key collate "C" >= storage_objects.prefix
         and a.key collate "C" < storage_objects.prefix || chr(1114111)
         and a.key collate "C" ^@ storage_objects.prefix
         and a.id < coalesce(place, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    )
    select json_agg(internal.storage_object_json(a) order by a.id desc), count(*),
           (array_agg(a.id order by a.id))[1] into shown, n, last
      from (select f.id from found f order by f.id desc limit storage_objects.page_limit) page
      join app.media_assets a on a.id = page.id;
  elsif storage_objects.bucket = 'media' then
    -- many: soon met among the newest
    select json_agg(o.object order by o.id desc), count(*), (array_agg(o.id order by o.id))[1] into shown, n, last
      from (select a.id, internal.storage_object_json(a) as object from app.media_assets a
             where a.status = 'committed' and a.key collate "C" ^@ storage_objects.prefix
               and a.id < coalesce(place, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
             order by a.id desc limit storage_objects.page_limit) o;
  end if;
  return internal.reply_cursor(shown, case when n = storage_objects.page_limit then internal.cursor_write('id',
                                        last::text) end);
end $$;
comment on function api.storage_objects is
  'A page of the objects of a bucket whose keys begin with a prefix, newest first. Refuses 404 BUCKET_NOT_FOUND, 400
   INVALID_INPUT (cursor).';

select internal.row_declare('storage_object_json', null::app.media_assets,
                            '{key,asset_id:id,size_bytes,mime_type,created_at}');
comment on function internal.storage_object_json is 'An object of a bucket as responses show it.';

create or replace function internal.storage_delete(keys text[], is_free boolean) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  asset uuid;
  n int := 0;
begin
  perform internal.check_caller('developer', 'objects are deleted by administrators');
  for asset in
    select a.id from app.media_assets a
     where a.status <> 'deleted'
       and a.key collate "C" in (select case when k ^@ (internal.project_id() || '/') then substr(k, 38) else k end
                                   from unnest(storage_delete.keys) k)
     order by a.id
       -- one that goes at this moment is passed over, as one that has gone is
       for update of a
  loop
    perform internal.media_delete(asset, storage_delete.is_free);
    n := n + 1;
  end loop;
  if n > 0 then
    perform internal.enqueue('media__remove');
  end if;
  return n;
end $$;
comment on function internal.storage_delete is
  'Deletes the assets of these keys, all or none, and queues the removal of their bytes; answers how many they are. Keys
   of nothing are passed over. Refuses as internal.media_delete does. Locks the assets in the order of their ids.';

create or replace function api.storage_delete(bucket text, keys json, is_free boolean) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.storage_bucket_check(storage_delete.bucket);
  return internal.reply(202, json_build_object('accepted', case when storage_delete.bucket = 'media'
    then internal.storage_delete(array(select json_array_elements_text(storage_delete.keys)),
                                 storage_delete.is_free) else 0 end));
end $$;
comment on function api.storage_delete is
  'Deletes objects of a bucket: 202 {accepted}. Refuses 404 BUCKET_NOT_FOUND, and as internal.storage_delete does.';
