-- Keys of files read as paths: what a folder of a key's path holds, as storage-js lists it.
create or replace function api.media_names(folder text, beginning text, is_descending boolean, page_offset int,
                                           page_limit int)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  base constant text := case when media_names.folder = '' then '' else media_names.folder || '/' end;
  wanted constant text := base || media_names.beginning;
  own constant text := case when internal.caller() = 'server_key' then ''
                            else concat('user/', internal.user_id(), '/') end;
  part constant text := case when own ^@ wanted then own when wanted ^@ own then wanted end;
  low text := part;
  -- no key has this character after the part, and none is above it
  high text := part || chr(1114111);
  found_asset app.media_assets;
  tail text;
  entry text;
  passed int := 0;
  entries json[] := '{}';
begin
  if internal.caller() not in ('user', 'server_key_user', 'server_key') then
    raise exception 'names of files are listed for users and server keys, not for %', internal.caller();
  end if;
  -- one step of the index for each name, however many files a folder has
  while part is not null and cardinality(entries) < media_names.page_limit loop
    if media_names.is_descending then
      select m.* into found_asset from app.media_assets m
       where m.key collate "C" >= low and m.key collate "C" < high and m.status <> 'deleted' and m.status = 'committed'
         and (own = '' or m.blocked_at is null)
       order by m.key collate "C" desc limit 1;
    else
      select m.* into found_asset from app.media_assets m
       where m.key collate "C" >= low and m.key collate "C" < high and m.status <> 'deleted' and m.status = 'committed'
         and (own = '' or m.blocked_at is null)
       order by m.key collate "C" limit 1;
    end if;
    exit when not found;
    tail := substr(found_asset.key, length(base) + 1);
    entry := split_part(tail, '/', 1);
    if entry = tail then
      -- keys have no control characters: nothing is between
      low := case when media_names.is_descending then low else found_asset.key || chr(1) end;
      high := case when media_names.is_descending then found_asset.key else high end;
    else
      -- 0 follows /
      low := case when media_names.is_descending then low else base || entry || '0' end;
      high := case when media_names.is_descending then base || entry || '/' else high end;
    end if;
    passed := passed + 1;
    if passed > media_names.page_offset then
      entries := entries || case
        when entry <> tail then json_build_object('name', entry)
        else json_build_object(
          'name', entry, 'id', found_asset.id, 'version', found_asset.object_version,
            'mime_type', found_asset.mime_type, 'size_bytes', found_asset.size_bytes,
          'created_at', internal.iso(found_asset.created_at), 'updated_at', internal.iso(found_asset.updated_at)) end;
    end if;
  end loop;
  return internal.reply(200, to_json(entries));
end $$;
comment on function api.media_names is
  'What is in a folder of keys, of those that the caller reads: [{name, id, version, mime_type, size_bytes, created_at,
   updated_at}] for files, [{name}] for folders, by name. beginning: only names that begin so.';
