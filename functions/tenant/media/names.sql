-- Keys of files read as paths: what a bucket has under a prefix, as storage-js lists it.
create or replace function internal.media_names_range(bucket text, starts text, out base text, out part text)
returns record
language plpgsql volatile security definer set search_path = '' as $$
declare
  own text;
begin
  if internal.caller() not in ('user', 'server_key_user', 'server_key') then
    raise exception 'names of files are listed for users and server keys, not for %', internal.caller();
  elsif not exists (select from app.media_buckets b where b.name = media_names_range.bucket) then
    perform internal.fail(404, 'BUCKET_NOT_FOUND', 'There is no such bucket.');
  end if;
  base := case when media_names_range.bucket = 'media' then ''
               else concat('bucket/', media_names_range.bucket, '/') end;
  own := case when internal.caller() = 'server_key' then base || case when base = '' then 'user/' else '' end
              else concat(case when base = '' then 'user/' else base end, internal.user_id(), '/') end;
  part := base || media_names_range.starts;
  part := case when own ^@ part then own when part ^@ own then part end;
end $$;
comment on function internal.media_names_range is
  'What keys begin with that are listed: base is what a bucket adds to them, part the prefix within what the caller
   sees, null where that is nothing. Users see their own folder, server keys all of a bucket, in media what is of users.
   Refuses 404 BUCKET_NOT_FOUND. Granted to nobody.';

create or replace function internal.media_name_json(a app.media_assets, path text, is_folder boolean) returns json
language sql stable as $$
  select case when media_name_json.is_folder then json_build_object('path', media_name_json.path)
              else json_build_object(
                'path', media_name_json.path, 'id', (media_name_json.a).id,
                'version', (media_name_json.a).object_version, 'mime_type', (media_name_json.a).mime_type,
                'size_bytes', (media_name_json.a).size_bytes,
                'created_at', internal.iso((media_name_json.a).created_at),
                'updated_at', internal.iso((media_name_json.a).updated_at)) end
$$;
comment on function internal.media_name_json is 'A file or a folder of a list. Granted to nobody.';

create or replace function api.media_names(bucket text, starts text, is_delimited boolean, is_descending boolean,
                                           page_offset int, page_limit int, after text default null,
                                           after_folder boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  range constant record := internal.media_names_range(media_names.bucket, media_names.starts);
  is_all constant boolean := internal.caller() = 'server_key';
  low text := range.part;
  -- no key has this character after the part, and none is above it
  high text := range.part || chr(1114111);
  passed_key constant text := range.base || media_names.after;
  found_asset app.media_assets;
  folder text;
  rest_at int;
  passed int := 0;
  entries json[] := '{}';
begin
  -- keys have no control characters: nothing is between a key and the next character; 0 follows /
  if media_names.after is not null and media_names.is_descending then
    high := least(high collate "C", passed_key || case when media_names.after_folder then '/' else '' end);
  elsif media_names.after is not null then
    low := greatest(low collate "C", passed_key || case when media_names.after_folder then '0' else chr(1) end);
  end if;
  -- one step of the index for each name, however many files a folder has
  while range.part is not null and cardinality(entries) < media_names.page_limit loop
    if media_names.is_descending then
      select m.* into found_asset from app.media_assets m
       where m.key collate "C" >= low and m.key collate "C" < high and m.status <> 'deleted' and m.status = 'committed'
         and (is_all or m.blocked_at is null)
       order by m.key collate "C" desc limit 1;
    else
      select m.* into found_asset from app.media_assets m
       where m.key collate "C" >= low and m.key collate "C" < high and m.status <> 'deleted' and m.status = 'committed'
         and (is_all or m.blocked_at is null)
       order by m.key collate "C" limit 1;
    end if;
    exit when not found;
    rest_at := length(range.base || media_names.starts) + 1;
    rest_at := case when media_names.is_delimited
                    then nullif(position('/' in substr(found_asset.key, rest_at)), 0) + rest_at - 2 end;
    folder := left(found_asset.key, rest_at);
    if folder is null then
      low := case when media_names.is_descending then low else found_asset.key || chr(1) end;
      high := case when media_names.is_descending then found_asset.key else high end;
    else
      low := case when media_names.is_descending then low else folder || '0' end;
      high := case when media_names.is_descending then folder || '/' else high end;
    end if;
    passed := passed + 1;
    if passed > media_names.page_offset then
      entries := entries || internal.media_name_json(
        found_asset, substr(coalesce(folder, found_asset.key), length(range.base) + 1), folder is not null);
    end if;
  end loop;
  return internal.reply(200, to_json(entries));
end $$;
comment on function api.media_names is
  'Files whose paths in a bucket begin so, of those that the caller reads, by name: [{path, id, version, mime_type,
   size_bytes, created_at, updated_at}]; is_delimited: those with a further / are one folder, {path}. after: the path of
   the last one that was shown. Refuses 404 BUCKET_NOT_FOUND.';

create or replace function api.media_names_by_time(bucket text, starts text, is_delimited boolean, sort_column text,
                                                   is_descending boolean, page_offset int, page_limit int,
                                                   after text default null, after_folder boolean default false,
                                                   after_at timestamptz default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  range constant record := internal.media_names_range(media_names_by_time.bucket, media_names_by_time.starts);
  is_all constant boolean := internal.caller() = 'server_key';
  most constant int := 10000;
  rest_at constant int := length(range.base || media_names_by_time.starts) + 1;
  sign constant int := case when media_names_by_time.is_descending then -1 else 1 end;
  ids uuid[];
begin
  ids := array(
    select m.id from app.media_assets m
     where m.key collate "C" >= range.part and m.key collate "C" < range.part || chr(1114111)
       and m.status <> 'deleted' and m.status = 'committed' and (is_all or m.blocked_at is null)
     limit most + 1);
  if cardinality(ids) > most then
    perform internal.invalid('sortBy', format('must be name where there are more than %s files', most),
                             'INVALID_INPUT');
  end if;
  return internal.reply(200, (
    with found as materialized (
      select a, substr(a.key, length(range.base) + 1) as path,
             case when media_names_by_time.is_delimited
                  then nullif(position('/' in substr(a.key, rest_at)), 0) end as cut,
             -- as responses show it, from which the next page begins
             date_trunc('milliseconds', case when media_names_by_time.sort_column = 'created_at' then a.created_at
                                             else a.updated_at end) as at
        from app.media_assets a where a.id = any (ids)
    ), entries as (
      select distinct on (f.folder) true as is_folder, f.folder as path, 0::numeric as place,
             null::app.media_assets as a
        from (select left(g.path, g.cut + rest_at - length(range.base) - 2) as folder from found g
               where g.cut is not null) f
      union all
      select false, f.path, sign * extract(epoch from f.at), f.a from found f where f.cut is null
    ), page as (
      select e.*, row_number() over (
               order by not e.is_folder, e.place,
                        case when media_names_by_time.is_descending then null else e.path end collate "C",
                        case when media_names_by_time.is_descending then e.path end collate "C" desc) as n
        from entries e
       where media_names_by_time.after is null
          or (not e.is_folder)::int > (not media_names_by_time.after_folder)::int
          or e.is_folder = media_names_by_time.after_folder
             and (e.place > coalesce(sign * extract(epoch from media_names_by_time.after_at), 0)
                  or e.place = coalesce(sign * extract(epoch from media_names_by_time.after_at), 0)
                     and case when media_names_by_time.is_descending
                              then e.path collate "C" < media_names_by_time.after
                              else e.path collate "C" > media_names_by_time.after end)
    )
    select coalesce(json_agg(internal.media_name_json(p.a, p.path, p.is_folder) order by p.n), '[]')
      from page p
     where p.n > media_names_by_time.page_offset
       and p.n <= media_names_by_time.page_offset + media_names_by_time.page_limit));
end $$;
comment on function api.media_names_by_time is
  'As api.media_names, folders first, then files by created_at or updated_at, of at most 10,000 files. after_at: the
   time of the last one that was shown. Refuses 400 INVALID_INPUT, 404 BUCKET_NOT_FOUND.';
