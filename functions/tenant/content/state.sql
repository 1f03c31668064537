-- What is published, and what a read shows: each said once, for every read, filter, tag and write.
create or replace function internal.content_state(l app.content_locales)
returns table (status text, live_version int, live_at timestamptz, next_version int, next_at timestamptz)
language sql stable as $$
  select case when (content_state.l).publish_at is not null and not d.is_due then 'scheduled'
              when d.is_due or (content_state.l).published_version is not null then 'published'
              else 'draft' end,
         case when d.is_due then (content_state.l).scheduled_version else (content_state.l).published_version end,
         case when d.is_due then (content_state.l).publish_at else (content_state.l).published_at end,
         case when not d.is_due then (content_state.l).scheduled_version end,
         case when not d.is_due then (content_state.l).publish_at end
    from (select coalesce((content_state.l).publish_at <= internal.now(), false) as is_due) d
$$;
comment on function internal.content_state is
  'A language at this moment: its status, the published version and since when, the scheduled version and its time.
   A schedule takes effect by the clock, not by a worker.';

create or replace function internal.content_unlocalized(content_type text) returns text[]
language sql stable as $$
  select array(select f.value ->> 'name'
                 from app.content_types t
                cross join lateral jsonb_array_elements(t.fields) f
                where t.type = content_unlocalized.content_type and f.value -> 'localized' = 'false')
$$;
comment on function internal.content_unlocalized is
  'The fields of a type that are the same in every language: the default locale has them.';

create or replace function internal.content_resolved(e app.content_entries, chain text[], is_preview boolean)
returns table (locale text, fallback boolean, fields jsonb, version int, published_at timestamptz)
language plpgsql stable as $$
declare
  home constant text := (content_resolved.e).default_locale;
  same_everywhere jsonb := '{}';
  has_null boolean;
  filling jsonb;
  place record;
begin
  for place in
    select l.locale, v.version, s.live_at, v.fields,
           internal.content_unlocalized((content_resolved.e).content_type) as shared
      from unnest(case when home = any (content_resolved.chain) then content_resolved.chain
                       else content_resolved.chain || home end) with ordinality as c (locale, n)
      join app.content_locales l on l.entry_id = (content_resolved.e).id and l.locale = c.locale
     cross join lateral internal.content_state(l) s
      join app.content_versions v on v.entry_id = l.entry_id and v.locale = l.locale
       and v.version = case when content_resolved.is_preview then l.version else s.live_version end
     order by c.n
  loop
    if place.locale = home and place.shared <> '{}' then
      select coalesce(jsonb_object_agg(f.key, f.value), '{}') into same_everywhere
        from jsonb_each(place.fields) f
       where f.key = any (place.shared);
    end if;
    if content_resolved.locale is null then
      content_resolved.locale := place.locale;
      content_resolved.version := place.version;
      content_resolved.published_at := place.live_at;
      content_resolved.fields := place.fields - place.shared;
      content_resolved.fallback := coalesce(place.locale <> content_resolved.chain[1], false);
      has_null := jsonb_path_exists(content_resolved.fields, 'strict $.* ? (@ == null)');
    -- expressions alone, where nothing is lacking: a statement costs as much as all of this
    elsif has_null or (place.fields - place.shared) || content_resolved.fields <> content_resolved.fields then
      select jsonb_object_agg(f.key, f.value) into filling
        from jsonb_each(place.fields - place.shared) f
       where f.value <> 'null' and coalesce(content_resolved.fields -> f.key, 'null') = 'null';
      if filling is not null then
        content_resolved.fields := content_resolved.fields || filling;
        content_resolved.fallback := true;
      end if;
    end if;
  end loop;
  if content_resolved.locale is not null then
    content_resolved.fields := content_resolved.fields || same_everywhere;
    return next;
  end if;
end $$;
comment on function internal.content_resolved is
  'What an app is shown of an entry by a chain of languages: the first that is published, its missing fields from the
   next ones, last from the default locale; no row where none is published. fallback: another language than the first
   that was asked for, or a field was filled. A preview reads the newest versions in place of the published ones.';

create or replace function internal.content_shown(e app.content_entries, chain text[], is_preview boolean) returns json
language sql stable as $$
  select json_build_object(
           'id', (content_shown.e).id, 'key', (content_shown.e).key, 'content_type', (content_shown.e).content_type,
           'locale', r.locale, 'fallback', r.fallback, 'fields', r.fields, 'tags', (content_shown.e).tags,
           'published_at', internal.iso(r.published_at), 'version', r.version)
    from internal.content_resolved(content_shown.e, content_shown.chain, content_shown.is_preview) r
$$;
comment on function internal.content_shown is 'An entry as apps read it; null where no language of the chain has it.';

create or replace function internal.content_json(e app.content_entries) returns json
language sql stable as $$
  select json_build_object(
    'id', (content_json.e).id, 'key', (content_json.e).key, 'content_type', (content_json.e).content_type,
    'default_locale', (content_json.e).default_locale,
    'locales', (
      select coalesce(json_object_agg(l.locale, json_build_object(
               'status', s.status, 'fields', v.fields, 'version', l.version, 'published_version', s.live_version,
               'published_at', internal.iso(s.live_at), 'publish_at', internal.iso(s.next_at)) order by l.locale), '{}')
        from app.content_locales l
       cross join lateral internal.content_state(l) s
        join app.content_versions v on v.entry_id = l.entry_id and v.locale = l.locale and v.version = l.version
       where l.entry_id = (content_json.e).id),
    'tags', (content_json.e).tags, 'segment_id', (content_json.e).segment_id,
    'starts_at', internal.iso((content_json.e).starts_at), 'ends_at', internal.iso((content_json.e).ends_at),
    'sort_order', (content_json.e).sort_order, 'version', (content_json.e).version,
    'created_at', internal.iso((content_json.e).created_at), 'updated_at', internal.iso((content_json.e).updated_at))
$$;
comment on function internal.content_json is 'An entry with the newest save of each language, for administrators.';

select internal.row_declare('content_version_json', null::app.content_versions,
                            '{locale,version,fields,author,created_at}');
comment on function internal.content_version_json is 'A version as responses show it.';

create or replace function internal.content_at(id_or_key text) returns app.content_entries
language plpgsql stable as $$
declare
  as_id constant uuid := internal.as_uuid(content_at.id_or_key);
  entry app.content_entries;
begin
  if as_id is not null then
    select e.* into entry from app.content_entries e where e.id = as_id;
  end if;
  if entry.id is null then
    select e.* into entry from app.content_entries e where e.key = content_at.id_or_key;
  end if;
  return entry;
end $$;
comment on function internal.content_at is 'An entry by its id, else by its key; null where there is none.';

create or replace function internal.content_find(id_or_key text) returns app.content_entries
language plpgsql stable as $$
declare
  entry constant app.content_entries := internal.content_at(content_find.id_or_key);
begin
  perform internal.check_found(entry.id is not null, 'entry');
  return entry;
end $$;
comment on function internal.content_find is 'An entry by its id, else by its key. Refuses 404 NOT_FOUND.';
