-- Content, as promotion copies it: entries by their keys with the newest fields of each language, and the schemas of
-- types as type/<type>, which no key of an entry can be. Versions, authors and schedules stay in their project.
create or replace function internal.promotion_rows__content() returns table (key text, configuration jsonb)
language sql stable as $$
  select e.key, jsonb_build_object(
           'content_type', e.content_type, 'default_locale', e.default_locale, 'tags', to_jsonb(e.tags),
           'segment_id', (select s.key from app.segments s where s.id = e.segment_id),
           'starts_at', internal.iso(e.starts_at), 'ends_at', internal.iso(e.ends_at), 'sort_order', e.sort_order,
           'locales', (
             select coalesce(jsonb_object_agg(l.locale, jsonb_build_object(
                      'fields', v.fields,
                      'status', case when s.live_version is null then 'draft' else 'published' end)), '{}')
               from app.content_locales l
              cross join lateral internal.content_state(l) s
               join app.content_versions v on v.entry_id = l.entry_id and v.locale = l.locale and v.version = l.version
              where l.entry_id = e.id))
    from app.content_entries e
   union all
  select 'type/' || t.type, jsonb_build_object('fields', t.fields)
    from app.content_types t
$$;
comment on function internal.promotion_rows__content is 'Entries and schemas of types, as they are copied.';

create or replace function internal.promotion_merged__content(was jsonb, wanted jsonb) returns jsonb
language sql immutable as $$
  select promotion_merged__content.was || promotion_merged__content.wanted
         || case when jsonb_typeof(promotion_merged__content.was -> 'locales') = 'object'
                   and jsonb_typeof(promotion_merged__content.wanted -> 'locales') = 'object'
                 then jsonb_build_object('locales', (promotion_merged__content.was -> 'locales')
                                                    || (promotion_merged__content.wanted -> 'locales'))
                 else '{}' end
$$;
comment on function internal.promotion_merged__content is
  'What an entry is to be: a language that the document leaves out stays.';

create or replace function internal.content_locale_write(entry app.content_entries, locale text, wanted jsonb)
returns app.content_entries
language plpgsql volatile as $$
declare
  tag constant text := internal.locale_checked(content_locale_write.locale, 'locales');
  fields constant jsonb := internal.content_fields((content_locale_write.wanted -> 'fields')::json);
  stored app.content_entries := content_locale_write.entry;
  place app.content_locales;
begin
  if not coalesce(content_locale_write.wanted ->> 'status' in ('draft', 'published'), false) then
    perform internal.invalid('locales', 'must have the status draft or published');
  end if;
  if fields is distinct from (
       select v.fields from app.content_locales l
         join app.content_versions v on v.entry_id = l.entry_id and v.locale = l.locale and v.version = l.version
        where l.entry_id = stored.id and l.locale = tag) then
    perform internal.content_save(stored, tag, fields);
    stored := internal.content_touch(stored);
  end if;
  place := internal.content_place(stored, tag);
  if content_locale_write.wanted ->> 'status' = 'published' then
    return internal.content_publish(stored, place, place.version, null);
  elsif place.published_version is not null then
    return internal.content_unpublish(stored, place);
  end if;
  return stored;
end $$;
comment on function internal.content_locale_write is
  'Saves a language of an entry as promotion copies it, and publishes it where it is published in the source. What the
   source has stored needs no second check by the schema. Refuses 400 VALIDATION_ERROR, 409 LIMIT_REACHED.';

create or replace function internal.promotion_write__content(op text, key text, wanted jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  of_type constant text := substring(promotion_write__content.key from '^type/(.*)$');
  segment_id constant uuid := (select s.id from app.segments s
                                where s.key = promotion_write__content.wanted ->> 'segment_id');
  sent jsonb := promotion_write__content.wanted;
  entry app.content_entries;
  place record;
begin
  perform internal.check_caller('developer', 'content is promoted by administrators');
  if of_type is not null then
    if promotion_write__content.op = 'delete' then
      delete from app.content_types t where t.type = of_type;
    else
      perform internal.content_type_write(of_type, coalesce(sent -> 'fields', '[]')::json);
    end if;
    perform internal.audit_act('content.type', 'content_types', of_type,
                               json_build_object('type', of_type, 'fields', sent -> 'fields'), 200);
    return;
  elsif promotion_write__content.op = 'delete' then
    entry := internal.content_lock(promotion_write__content.key);
    perform internal.content_delete(entry);
    perform internal.audit_act('content.delete', 'content', entry.id::text, json_build_object('key', entry.key), 200);
    return;
  end if;
  if sent ->> 'segment_id' is not null then
    sent := sent || jsonb_build_object('segment_id', coalesce(segment_id::text, sent ->> 'segment_id'));
  end if;
  if promotion_write__content.op = 'create' then
    entry := internal.content_insert((sent || jsonb_build_object('key', promotion_write__content.key))::json);
  else
    entry := internal.content_lock(promotion_write__content.key);
  end if;
  for place in
    select l.key as locale, l.value as wanted from jsonb_each(coalesce(sent -> 'locales', '{}')) l order by l.key
  loop
    entry := internal.content_locale_write(entry, place.locale, place.wanted);
  end loop;
  if not exists (select from app.content_locales l where l.entry_id = entry.id and l.locale = entry.default_locale) then
    perform internal.content_save(entry, entry.default_locale, '{}');
  end if;
  if promotion_write__content.op = 'update' then
    perform internal.content_change(entry, (sent - 'locales')::json);
  end if;
  perform internal.audit_act(case promotion_write__content.op when 'create' then 'content.create'
                             else 'content.update' end, 'content', entry.id::text,
                             json_build_object('key', entry.key),
                             case promotion_write__content.op when 'create' then 201 else 200 end);
end $$;
comment on function internal.promotion_write__content is
  'Adds, changes or deletes an entry, or the schema of a type. Refuses as their routes do.';

create or replace function internal.promotion_lock__content(keys text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'content is promoted by administrators');
  perform internal.advisory_lock('content');
  perform from app.content_entries e where e.key = any (promotion_lock__content.keys) order by e.id for no key update;
end $$;
comment on function internal.promotion_lock__content is 'Locks entries, and the creation of entries and types.';
