-- Deletion. An asset is marked as deleted and its bytes are queued for removal in one transaction; the server removes
-- them before it answers, and a task removes those that a crash has left. The record stays for seven days.
create or replace function internal.media_delete(asset_id uuid, is_free boolean) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  a app.media_assets;
  wait int;
begin
  if internal.caller() not in ('user', 'server_key_user', 'server_key', 'developer') then
    raise exception 'assets are deleted by their owners, not by %', internal.caller();
  end if;
  select m.* into a from app.media_assets m where m.id = media_delete.asset_id for update;
  perform internal.check_found(
    a.id is not null and internal.media_is_mine(a)
    -- a deletion whose bytes could not be removed may be repeated
    and (a.status <> 'deleted' or exists (select from app.media_removals r where r.asset_id = a.id)), 'asset');
  if a.status = 'deleted' then
    return a.id;
  end if;
  wait := ceil(extract(epoch from a.upload_expires_at - internal.now()));
  if media_delete.is_free and wait > 0 then
    perform internal.fail(409, 'UPLOAD_WINDOW_OPEN',
                          'The upload URL of this file is still valid: delete the file when it has expired.',
                          json_build_object('retry_after_seconds', wait),
                          json_build_object('Retry-After', wait::text));
  elsif exists (select from app.media_catalogs c where c.asset_ids @> array[a.id]) then
    perform internal.fail(409, 'ASSET_IN_USE', 'A catalog shows this file: take it out first.');
  end if;
  update app.media_assets m
     set status = 'deleted', deleted_at = internal.now(), updated_at = internal.now(), folder_id = null, bucket = null,
       upload_version = null, upload_mime_type = null, upload_size_bytes = null,
         upload_expires_at = null
   where m.id = a.id;
  insert into app.media_removals (asset_id) values (a.id) on conflict on constraint media_removals_pkey do nothing;
  -- for what a crash leaves: the server removes the bytes at once
  perform internal.enqueue('media__remove', due_at => internal.now() + interval '1 minute');
  return a.id;
end $$;
comment on function internal.media_delete is
  'Deletes an asset of the caller and queues the removal of its bytes. Refuses 404 NOT_FOUND, 409 UPLOAD_WINDOW_OPEN
   {retry_after_seconds} in a free project, ASSET_IN_USE. Locks the asset.';

create or replace function api.media_delete(asset_id uuid, is_free boolean) returns api.reply
language sql volatile as $$
  select internal.reply(200, json_build_object('id', internal.media_delete(media_delete.asset_id, media_delete.is_free),
                                               'deleted', true))
$$;
comment on function api.media_delete is 'Deletes an asset. Refuses as internal.media_delete.';

create or replace function internal.media_removed(asset_ids uuid[]) returns void
language sql volatile security definer set search_path = '' as $$
  delete from app.media_removals r where r.asset_id = any (media_removed.asset_ids)
$$;
comment on function internal.media_removed is 'Notes that the bytes of assets are gone.';

create or replace function api.media_removed(asset_ids json) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_removed(array(select json_array_elements_text(media_removed.asset_ids)::uuid));
  return internal.reply(200, 'true');
end $$;
comment on function api.media_removed is 'For the server: the bytes of these assets have been removed.';

create or replace function api.media_removals_next(most int) returns api.reply
-- in plpgsql, whose plan a session keeps: in SQL it is three times as slow
language plpgsql stable security definer set search_path = '' as $$
begin
  return internal.reply(200, (
    select coalesce(json_agg(r.asset_id), '[]')
      from (select d.asset_id from app.media_removals d order by d.requested_at, d.asset_id
             limit media_removals_next.most) r));
end $$;
comment on function api.media_removals_next is
  'For the task media__remove: the assets whose bytes have waited longest for their removal.';

create or replace function internal.tg_media_assets__remove() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.media_removals (asset_id) select g.id from gone g
    where g.status <> 'deleted' on conflict on constraint media_removals_pkey do nothing;
  if found then
    perform internal.enqueue('media__remove');
  end if;
  update app.media_catalogs c
     set asset_ids = array(select u.id from unnest(c.asset_ids) with ordinality u (id, n)
                            where u.id not in (select g.id from gone g) order by u.n),
         updated_at = internal.now()
   where c.asset_ids && array(select g.id from gone g);
  return null;
end $$;
comment on function internal.tg_media_assets__remove is
  'After assets went with their user or by a reset: queues the removal of their bytes, and takes them out of catalogs.';

create or replace trigger tg_media_assets__remove
  after delete on app.media_assets referencing old table as gone
  for each statement execute function internal.tg_media_assets__remove();

create or replace function internal.purge__media(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  purged bigint;
  sums record;
begin
  purged := internal.purge_rows('app.media_assets',
                                't.status = ''deleted'' and t.deleted_at < internal.now() - interval ''7 days''',
                                  purge__media.most);
  -- what is stored is compared with the rows once a day
  if exists (select from app.media_assets) or exists (select from app.media_removals) then
    perform internal.enqueue('media__clean');
  end if;
  with free as (
    delete from app.media_totals u
     where u.slot in (select f.slot from app.media_totals f for update skip locked)
    returning u.registered_bytes, u.stored_bytes, u.objects
  )
  select coalesce(sum(f.registered_bytes), 0)::bigint as registered, coalesce(sum(f.stored_bytes), 0)::bigint as stored,
         coalesce(sum(f.objects), 0)::bigint as objects, count(*) as slots
    into sums from free f;
  if sums.slots > 0 then
    insert into app.media_totals (registered_bytes, stored_bytes, objects)
      values (sums.registered, sums.stored, sums.objects);
  end if;
  return purged;
end $$;
comment on function internal.purge__media is
  'Daily: records of assets that were deleted more than seven days ago. Queues media__clean, which compares what is
   stored with the rows, and unites the slots of app.media_totals.';

create or replace function api.media_unused(stored json) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, coalesce(json_agg(s.path), '[]'))
    from json_to_recordset(media_unused.stored) as s (path text, asset_id text, version text, is_upload boolean)
    left join app.media_assets a on a.id = internal.as_uuid(s.asset_id) and a.status <> 'deleted'
   where a.id is null
      or case when s.is_upload then s.version is distinct from a.upload_version
              else s.version is distinct from a.object_version and s.version is distinct from a.upload_version end
$$;
comment on function api.media_unused is
  'For the task media__clean: of what is stored, [{path, asset_id, version, is_upload}], the paths that belong to no
   asset, or to a version that was replaced.';

create or replace function api.media_pending_old(after uuid default null, most int default 100) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, coalesce(json_agg(internal.media_upload_json(p.a) order by (p.a).id), '[]'))
    from (select m as a from app.media_assets m
           where m.status = 'pending' and m.created_at < internal.now() - interval '24 hours'
             and m.upload_expires_at < internal.now()
             and m.id > coalesce(media_pending_old.after, '00000000-0000-0000-0000-000000000000')
           order by m.id limit media_pending_old.most) p
$$;
comment on function api.media_pending_old is
  'For the task media__clean: uploads that are pending for more than 24 hours, in the order of their ids.';

create or replace function api.media_pending_drop(asset_ids json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  asset_ids_given constant uuid[] := array(select json_array_elements_text(media_pending_drop.asset_ids)::uuid);
  dropped bigint;
begin
  delete from app.media_assets m
   where m.id in (select l.id from app.media_assets l
                   where l.id = any (asset_ids_given) and l.status = 'pending' and l.upload_expires_at < internal.now()
                   order by l.id for update);
  get diagnostics dropped = row_count;
  return internal.reply(200, to_json(dropped));
end $$;
comment on function api.media_pending_drop is
  'For the task media__clean: deletes pending assets whose bytes never came. Locks them.';

create or replace function api.media_commit_late(asset_id uuid, version text, size_bytes bigint) returns api.reply
language sql volatile security definer set search_path = '' as $$
  select internal.reply(200, to_json(
    (internal.media_commit(media_commit_late.asset_id, media_commit_late.version, media_commit_late.size_bytes,
                           false)).status = 'committed'))
$$;
comment on function api.media_commit_late is
  'For the task media__clean: commits an upload that has arrived and that nobody committed within a day. Refuses 403
   USER_BANNED, 404 NOT_FOUND.';
