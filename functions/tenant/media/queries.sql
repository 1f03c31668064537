-- Lists of assets: of a user, and of all.
select internal.list_declare('media_mine_page', null::app.media_assets, 'media_asset_json', '{created_at,id}',
                             required => '{uploaded_by}',
                             filters => '{folder_id}', condition => 'media_is_shown');
select internal.list_declare('media_assets_page', null::app.media_assets, 'media_asset_json', '{created_at,id}',
                             filters => '{uploaded_by,mime_type,folder_id}', condition => 'media_is_committed',
                             is_skewed => true, is_counted => true,
                             condition_reads => '{status}', counted_filters => '{mime_type}');
select internal.list_declare('media_pending_page', null::app.media_assets, 'media_asset_json', '{created_at,id}',
                             filters => '{uploaded_by,mime_type,folder_id}', condition => 'media_is_pending',
                             is_skewed => true);

create or replace function api.media_list(nonce text, folder_id uuid default null, page_offset bigint default 0,
                                          page_limit bigint default 50)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_links_begin(media_list.nonce);
  if internal.user_id() is null then
    return internal.media_assets_page(null, null, media_list.folder_id, media_list.page_offset, media_list.page_limit);
  end if;
  return internal.media_mine_page(internal.user_id(), media_list.folder_id, media_list.page_offset,
                                  media_list.page_limit);
end $$;
comment on function api.media_list is
  'A page of committed assets, newest first: the caller''s own, or all of them for a server key without a user.';

create or replace function api.media_public(asset_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  a app.media_assets;
begin
  select m.* into a from app.media_assets m where m.id = media_public.asset_id;
  perform internal.check_found(internal.media_is_public(a), 'file');
  return internal.reply(200, json_build_object('asset_id', a.id, 'key', a.key, 'object', a.object_version,
                                               'mime_type', a.mime_type, 'filename', a.filename));
end $$;
comment on function api.media_public is
  'For the server, at each request of a public address: what the public address of an asset leads to. Refuses 404
   NOT_FOUND for an asset that is not public, pending, deleted or hidden.';
