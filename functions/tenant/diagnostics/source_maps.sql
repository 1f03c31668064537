-- Source maps of releases: the server reads them where a report is shown. They never change how reports are grouped.
select internal.row_declare('source_map_json', null::app.source_maps,
                            '{id,release,bundle,sha256,size,packed_size,created_at,updated_at}');
comment on function internal.source_map_json is 'A source map without its content.';

select internal.list_declare('source_maps_page', null::app.source_maps, 'source_map_json', '{updated_at,id}',
                             filters => '{release}');

create or replace function api.source_maps(release text default null, page_offset int default 0,
                                           page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.source_maps_page(source_maps.release, source_maps.page_offset, source_maps.page_limit)
$$;
comment on function api.source_maps is 'Source maps, newest upload first.';

create or replace function internal.source_maps_evict(release text, releases int, bytes bigint) returns void
language sql volatile as $$
  -- the release of the upload is the newest, whatever the clock says
  with ranked as (
    select r.release, row_number() over w as n, sum(r.bytes) over w as total
      from (select m.release, max(m.updated_at) as at, sum(m.packed_size) as bytes
              from app.source_maps m
             group by 1) r
    window w as (order by r.release = source_maps_evict.release desc, r.at desc, r.release)
  )
  delete from app.source_maps m using ranked r
   where r.release = m.release and m.release <> source_maps_evict.release
     and (r.n > source_maps_evict.releases or r.total > source_maps_evict.bytes)
$$;
comment on function internal.source_maps_evict is
  'Removes the maps of the oldest releases, until so many releases and bytes are left. Granted to nobody.';

create or replace function internal.source_map_room(release text, bundle text) returns void
language plpgsql volatile as $$
begin
  if not exists (select from app.source_maps m
                  where m.release = source_map_room.release and m.bundle = source_map_room.bundle) then
    perform internal.check_limit((select count(*) from app.source_maps m where m.release = source_map_room.release),
                                 100, 'A release has at most 100 source maps.');
  end if;
end $$;
comment on function internal.source_map_room is
  'Refuses 409 LIMIT_REACHED for one map more than a release has. The caller holds the lock of the table, or asks
   early.';

create or replace function api.source_map_begin(release text, bundle text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.source_map_room(source_map_begin.release, source_map_begin.bundle);
  return internal.reply(200, 'null');
end $$;
comment on function api.source_map_begin is
  'Asked before an upload is read and its map opened. Refuses as internal.source_map_room.';

create or replace function api.source_map_put(release text, bundle text, content text, sha256 text, size int,
                                              is_free boolean)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  most_bytes constant bigint := case when source_map_put.is_free then 52428800 else 524288000 end;
  packed constant bytea := decode(source_map_put.content, 'base64');
  known app.source_maps;
  stored app.source_maps;
begin
  perform internal.check_caller('developer', 'source maps are uploaded by developers');
  -- limits count what is there
  lock table app.source_maps in share row exclusive mode;
  select m.* into known from app.source_maps m
   where m.release = source_map_put.release and m.bundle = source_map_put.bundle;
  perform internal.source_map_room(source_map_put.release, source_map_put.bundle);
  if (select coalesce(sum(m.packed_size), 0) from app.source_maps m
       where m.release = source_map_put.release and m.bundle <> source_map_put.bundle) + octet_length(packed)
     > most_bytes then
    perform internal.fail(409, 'LIMIT_REACHED', 'The source maps of a release are too large.',
                          json_build_object('limit', most_bytes));
  end if;
  insert into app.source_maps as m (release, bundle, sha256, size, packed_size)
  values (source_map_put.release, source_map_put.bundle, source_map_put.sha256, source_map_put.size,
          octet_length(packed))
  on conflict on constraint source_maps_one_of_bundle do update
     set sha256 = excluded.sha256, size = excluded.size, packed_size = excluded.packed_size,
         updated_at = internal.now()
  returning m.* into stored;
  insert into app.source_map_contents as c (source_map_id, content) values (stored.id, packed)
  on conflict (source_map_id) do update set content = excluded.content;
  perform internal.source_maps_evict(stored.release, 20, most_bytes);
  perform internal.audit_act('diagnostics.source_map', 'source_map', stored.id::text,
                             json_build_object('release', stored.release, 'bundle', stored.bundle,
                                               'sha256', stored.sha256),
                             case when known.id is null then 201 else 200 end);
  return internal.reply(case when known.id is null then 201 else 200 end, internal.source_map_json(stored));
end $$;
comment on function api.source_map_put is
  'Stores the map of a bundle of a release, in place of the former one; content is gzip as base64, which the server has
   checked. Of more than 20 releases, or 500 MB (50 MB of a free project), the oldest releases go. Refuses 409
   LIMIT_REACHED, and as internal.source_map_room. Locks the table against other uploads.';

create or replace function api.source_map_delete(source_map_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  gone app.source_maps;
begin
  perform internal.check_caller('developer', 'source maps are deleted by developers');
  delete from app.source_maps m where m.id = source_map_delete.source_map_id returning m.* into gone;
  perform internal.check_found(found, 'source map');
  perform internal.audit_act('diagnostics.source_map_delete', 'source_map', gone.id::text,
                             json_build_object('release', gone.release, 'bundle', gone.bundle), 200);
  return internal.reply_deleted();
end $$;
comment on function api.source_map_delete is 'Deletes a source map. Refuses 404 NOT_FOUND.';

create or replace function api.source_maps_delete(release text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  gone int;
begin
  perform internal.check_caller('developer', 'source maps are deleted by developers');
  delete from app.source_maps m where m.release = source_maps_delete.release;
  get diagnostics gone = row_count;
  if gone > 0 then
    perform internal.audit_act('diagnostics.source_map_delete', 'source_map', null,
                               json_build_object('release', source_maps_delete.release, 'count', gone), 200);
  end if;
  return internal.reply(200, json_build_object('deleted', gone));
end $$;
comment on function api.source_maps_delete is 'Deletes the source maps of a release, and answers how many.';

create or replace function api.diagnostics_issue_report(issue_id uuid, report_id uuid) returns api.reply
language plpgsql stable as $$
declare
  report app.diagnostic_reports;
begin
  select r.* into report from app.diagnostic_reports r
   where r.id = diagnostics_issue_report.report_id and r.issue_id = diagnostics_issue_report.issue_id;
  perform internal.check_found(found, 'report');
  return internal.reply(200, internal.diagnostics_report_json(report));
end $$;
comment on function api.diagnostics_issue_report is
  'A report of an issue, to which the server adds the frames of its stack. Refuses 404 NOT_FOUND.';

create or replace function api.source_maps_of(release text, bundles json) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select coalesce(json_agg(json_build_object('id', m.id, 'bundle', m.bundle, 'sha256', m.sha256)), '[]')
      from app.source_maps m
     where m.release = source_maps_of.release
       and m.bundle in (select b.value from json_array_elements_text(source_maps_of.bundles) as b (value))))
$$;
comment on function api.source_maps_of is 'Which of these bundles have a map in a release: [{id, bundle, sha256}].';

create or replace function api.source_map_content(source_map_id uuid, sha256 text) returns api.reply
language plpgsql stable as $$
declare
  content text;
begin
  select translate(encode(c.content, 'base64'), E'\n', '') into content
    from app.source_maps m
    join app.source_map_contents c on c.source_map_id = m.id
   where m.id = source_map_content.source_map_id and m.sha256 = source_map_content.sha256;
  return internal.reply(200, json_build_object('content', content));
end $$;
comment on function api.source_map_content is
  'The map as gzip in base64; null when it was deleted or replaced meanwhile.';
