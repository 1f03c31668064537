-- Folders and catalogs: definitions of administrators.
comment on constraint media_catalogs_slug_unique on app.media_catalogs is
  '409 CONFLICT slug: A catalog with this slug exists.';

select internal.audit_declare('app.media_folders', 'media_folders');
select internal.audit_declare('app.media_catalogs', 'media_catalogs');

create or replace function internal.media_assets_hold(asset_ids uuid[]) returns bigint
language sql volatile security definer set search_path = '' as $$
  with held as (
    select a.id from app.media_assets a where a.id = any (media_assets_hold.asset_ids) and a.status = 'committed'
     order by a.id for key share
  )
  select count(*) from held
$$;
comment on function internal.media_assets_hold is
  'Locks committed assets against their deletion, in the order of their ids, and answers how many there are.';

create or replace function internal.media_catalog_check(requested app.media_catalogs, was app.media_catalogs,
                                                        sent jsonb)
returns app.media_catalogs
language plpgsql volatile as $$
declare
  ids constant uuid[] := (media_catalog_check.requested).asset_ids;
  -- what is in the catalog already may stay
  added constant uuid[] := array(select i from unnest(ids) i where (media_catalog_check.was).id is null
                                     or i <> all ((media_catalog_check.was).asset_ids));
begin
  if cardinality(ids) <> (select count(distinct i) from unnest(ids) i) then
    perform internal.invalid('asset_ids', 'must name each asset once');
  elsif cardinality(added) > 0 and internal.media_assets_hold(added) < cardinality(added) then
    perform internal.invalid('asset_ids', 'must be ids of committed assets');
  end if;
  return media_catalog_check.requested;
end $$;
comment on function internal.media_catalog_check is
  'Refuses 400 VALIDATION_ERROR for assets that are named twice or do not exist. Locks the assets that are new in the
   catalog.';

create or replace function internal.media_catalog_public(slug text) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  c app.media_catalogs;
begin
  select k.* into c from app.media_catalogs k where k.slug = media_catalog_public.slug and k.is_public;
  perform internal.check_found(c.id is not null, 'catalog');
  return json_build_object(
    'slug', c.slug, 'name', c.name, 'updated_at', internal.iso(c.updated_at),
    'assets', coalesce((
      select json_agg(json_build_object(
               'id', s.shown -> 'id', 'filename', s.shown -> 'filename', 'mime_type', s.shown -> 'mime_type',
                 'url', s.shown -> 'storage_url',
               'thumbnail_url', s.shown -> 'thumbnail_url', 'alt_text', s.shown -> 'alt_text',
               'metadata', s.shown -> 'metadata', 'position', s.position)
             order by s.position)
        from (select internal.media_asset_json(a) as shown, row_number() over (order by i.n) - 1 as position
                from unnest(c.asset_ids) with ordinality i (id, n)
                join app.media_assets a on a.id = i.id and a.status = 'committed' and a.blocked_at is null) s), '[]'));
end $$;
comment on function internal.media_catalog_public is
  'A public catalog with its assets in their order, for apps without a session. Refuses 404 NOT_FOUND.';

create or replace function api.media_catalog_get(slug text, nonce text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.media_links_begin(media_catalog_get.nonce);
  return internal.reply(200, internal.media_catalog_public(media_catalog_get.slug));
end $$;
comment on function api.media_catalog_get is 'A public catalog. Refuses as internal.media_catalog_public.';
