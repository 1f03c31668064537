-- Lists of assets: of a user, and of all.
select internal.list_declare('media_mine_page', null::app.media_assets, 'media_asset_json', '{created_at,id}', required => '{uploaded_by}',
                             filters => '{folder_id}', condition => 'media_is_shown');
select internal.list_declare('media_assets_page', null::app.media_assets, 'media_asset_json', '{created_at,id}',
                             filters => '{uploaded_by,mime_type,folder_id}', condition => 'media_is_committed', is_skewed => true, is_counted => true,
                             condition_reads => '{status}', counted_filters => '{mime_type}');
select internal.list_declare('media_pending_page', null::app.media_assets, 'media_asset_json', '{created_at,id}',
                             filters => '{uploaded_by,mime_type,folder_id}', condition => 'media_is_pending', is_skewed => true);

create or replace function api.media_list(nonce text, folder_id uuid default null, page_offset bigint default 0, page_limit bigint default 50) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_links_begin(media_list.nonce);
  if internal.user_id() is null then
    return internal.media_assets_page(null, null, media_list.folder_id, media_list.page_offset, media_list.page_limit);
  end if;
  return internal.media_mine_page(internal.user_id(), media_list.folder_id, media_list.page_offset, media_list.page_limit);
end $$;
comment on function api.media_list is 'A page of committed assets, newest first: the caller''s own, or all of them for a server key without a user.';
