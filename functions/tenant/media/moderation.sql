-- Assets as subjects of moderation. Files are shown to others by their URLs, which name the asset: whoever has such a
-- URL may report it.

create or replace function internal.moderation_subject__media(id uuid, out user_id uuid, out snapshot jsonb)
language sql stable security definer set search_path = '' as $$
  select a.uploaded_by,
         jsonb_build_object('key', a.key, 'filename', a.filename, 'mime_type', a.mime_type, 'size_bytes', a.size_bytes,
                            'alt_text', a.alt_text)
    from app.media_assets a
   where a.id = moderation_subject__media.id and a.status = 'committed' and a.blocked_at is null
$$;
comment on function internal.moderation_subject__media is
  'A committed asset that is not blocked; its author is its owner. Its id, which nobody can guess, stands in the URLs
   that lead to it.';

create or replace function internal.moderation_lock__media(id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select from app.media_assets a where a.id = moderation_lock__media.id for no key update
$$;
comment on function internal.moderation_lock__media is 'Locks an asset, before its item. Granted to nobody.';

create or replace function internal.moderation_apply__media(id uuid, act text, snapshot jsonb, kept jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  a app.media_assets;
begin
  select m.* into a from app.media_assets m where m.id = moderation_apply__media.id
     and m.status <> 'deleted' for no key update;
  if a.id is null then
    return null;
  elsif moderation_apply__media.act = 'remove' then
    update app.media_assets m
       set status = 'deleted', deleted_at = internal.now(), updated_at = internal.now(), folder_id = null,
         bucket = null,
         upload_version = null, upload_mime_type = null, upload_size_bytes = null,
           upload_expires_at = null
     where m.id = a.id;
    update app.media_catalogs c
       set asset_ids = array_remove(c.asset_ids, a.id), updated_at = internal.now()
     where c.asset_ids @> array[a.id];
    insert into app.media_removals (asset_id) values (a.id) on conflict on constraint media_removals_pkey do nothing;
    perform internal.enqueue('media__remove');
    return null;
  end if;
  update app.media_assets m
     set blocked_at = case when moderation_apply__media.act = 'hide' then internal.now() end,
       updated_at = internal.now()
   where m.id = a.id;
  return case when moderation_apply__media.act = 'hide' then '{}'::jsonb end;
end $$;
comment on function internal.moderation_apply__media is
  'Blocks an asset: its owner and catalogs do not see it any more; show ends that. remove deletes the asset, takes it
   out of catalogs and queues the removal of its bytes. Locks the asset. Granted to nobody.';
