-- Creating, changing and deleting entries, and saving their languages. Every write locks the entry first. These
-- functions run with the owner's rights and are granted to administrators alone, who write no table directly: so the
-- numbers of versions, the audit trail and what apps are told cannot be passed by.
comment on constraint content_entries_key_unique on app.content_entries is
  '409 CONFLICT key: An entry with this key exists.';
comment on constraint content_entries_end_after_start on app.content_entries is
  '400 VALIDATION_ERROR ends_at: must be after starts_at.';

create or replace function internal.content_lock(id_or_key text) returns app.content_entries
language plpgsql volatile as $$
declare
  entry app.content_entries := internal.content_find(content_lock.id_or_key);
begin
  select e.* into entry from app.content_entries e where e.id = entry.id for no key update;
  perform internal.check_found(found, 'entry');
  perform internal.content_settle(entry);
  return entry;
end $$;
comment on function internal.content_lock is
  'An entry by its id or key, locked, with what is due published. Refuses 404 NOT_FOUND.';

create or replace function internal.content_touch(entry app.content_entries) returns app.content_entries
language sql volatile as $$
  update app.content_entries e
     set version = e.version + 1, updated_at = internal.now()
   where e.id = (content_touch.entry).id
  returning e.*
$$;
comment on function internal.content_touch is 'Counts a change of an entry.';

create or replace function internal.content_author() returns jsonb
language sql stable as $$
  select jsonb_build_object('type', coalesce(internal.actor() ->> 'type', 'system'), 'id', internal.actor() ->> 'id')
$$;
comment on function internal.content_author is 'Who saves, {type, id} as in the audit trail.';

create or replace function internal.content_save(entry app.content_entries, locale text, fields jsonb)
returns app.content_versions
language plpgsql volatile as $$
declare
  stored app.content_versions;
begin
  if not exists (select from app.content_locales l
                  where l.entry_id = (content_save.entry).id and l.locale = content_save.locale) then
    perform internal.check_limit((select count(*) from app.content_locales l
                                   where l.entry_id = (content_save.entry).id), 50,
                                 'An entry has at most 50 locales.');
  end if;
  with counted as (
    insert into app.content_locales as l (entry_id, locale)
    values ((content_save.entry).id, content_save.locale)
    on conflict on constraint content_locales_pkey do update set version = l.version + 1
    returning l.version
  )
  insert into app.content_versions as v (entry_id, locale, version, fields, author)
  select (content_save.entry).id, content_save.locale, c.version, content_save.fields, internal.content_author()
    from counted c
  returning v.* into stored;
  delete from app.content_versions v
   using app.content_locales l
   where l.entry_id = stored.entry_id and l.locale = stored.locale
     and v.entry_id = stored.entry_id and v.locale = stored.locale and v.version <= stored.version - 50
     and v.version is distinct from l.published_version and v.version is distinct from l.scheduled_version;
  return stored;
end $$;
comment on function internal.content_save is
  'Stores a version of a language, which it makes where it is missing. Keeps the newest 50 versions and those that are
   published or scheduled. Refuses 409 LIMIT_REACHED. The entry is locked.';

create or replace function internal.content_requested(was app.content_entries, patch json)
returns app.content_entries
language plpgsql volatile as $$
declare
  wanted app.content_entries := content_requested.was;
  field text;
begin
  select p.key into field
    from json_each(content_requested.patch) p
   where p.key in ('tags', 'sort_order', 'default_locale') and json_typeof(p.value) = 'null';
  if found then
    perform internal.invalid(field, 'must not be null');
  end if;
  if content_requested.patch -> 'tags' is not null then
    if json_typeof(content_requested.patch -> 'tags') <> 'array'
      or not internal.is_storable_json(content_requested.patch -> 'tags') then
      perform internal.invalid('tags', 'must be a list of texts');
    end if;
    wanted.tags := array(select t.value from json_array_elements_text(content_requested.patch -> 'tags')
                                             with ordinality as t (value, n) order by t.n);
    if cardinality(wanted.tags) > 50
      or exists (select from json_array_elements(content_requested.patch -> 'tags') t
                  where json_typeof(t.value) <> 'string')
      or exists (select from unnest(wanted.tags) t where char_length(t) not between 1 and 64)
      or (select count(distinct t) from unnest(wanted.tags) t) < cardinality(wanted.tags) then
      perform internal.invalid('tags', 'must be at most 50 different texts of 1 to 64 characters');
    end if;
  end if;
  if content_requested.patch -> 'segment_id' is not null then
    wanted.segment_id := internal.as_uuid(content_requested.patch ->> 'segment_id');
    if content_requested.patch ->> 'segment_id' is not null
      and not internal.segment_lock_shared(wanted.segment_id) then
      perform internal.invalid('segment_id', 'must be a segment of the project');
    end if;
  end if;
  if content_requested.patch -> 'starts_at' is not null then
    wanted.starts_at := (content_requested.patch ->> 'starts_at')::timestamptz;
  end if;
  if content_requested.patch -> 'ends_at' is not null then
    wanted.ends_at := (content_requested.patch ->> 'ends_at')::timestamptz;
  end if;
  if wanted.ends_at <= wanted.starts_at then
    perform internal.invalid('ends_at', 'must be after starts_at');
  end if;
  wanted.sort_order := coalesce((content_requested.patch ->> 'sort_order')::int, wanted.sort_order);
  if content_requested.patch -> 'default_locale' is not null then
    wanted.default_locale := internal.locale_checked(content_requested.patch ->> 'default_locale', 'default_locale');
  end if;
  return wanted;
end $$;
comment on function internal.content_requested is
  'An entry with the fields of a request over those that it has. Refuses 400 VALIDATION_ERROR. Locks the segment against
   deletion.';

create or replace function internal.content_insert(sent json) returns app.content_entries
language plpgsql volatile as $$
declare
  entry app.content_entries;
begin
  entry.key := content_insert.sent ->> 'key';
  entry.content_type := content_insert.sent ->> 'content_type';
  entry.default_locale := 'en';
  entry.tags := '{}';
  entry.sort_order := 0;
  entry := internal.content_requested(entry, content_insert.sent);
  perform internal.advisory_lock('content');
  perform internal.check_limit((select count(*) from app.content_entries), 10000,
                               'A project has at most 10000 entries of content.');
  insert into app.content_entries as e (key, content_type, default_locale, tags, segment_id, starts_at, ends_at,
                                        sort_order)
  values (entry.key, entry.content_type, entry.default_locale, entry.tags, entry.segment_id, entry.starts_at,
          entry.ends_at, entry.sort_order)
  returning e.* into entry;
  return entry;
end $$;
comment on function internal.content_insert is
  'Adds an entry without languages. Refuses 400 VALIDATION_ERROR, 409 CONFLICT, LIMIT_REACHED. Serialises creations.';

create or replace function api.content_create(patch json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  fields constant jsonb := internal.content_fields(coalesce(content_create.patch -> 'fields', '{}'));
  entry app.content_entries;
begin
  entry := internal.content_insert(content_create.patch);
  perform internal.content_check(entry, entry.default_locale, fields);
  perform internal.content_save(entry, entry.default_locale, fields);
  perform internal.audit_act('content.create', 'content', entry.id::text,
                             json_build_object('key', entry.key, 'content_type', entry.content_type), 201);
  return internal.reply(201, internal.content_json(entry));
end $$;
comment on function api.content_create is
  'Adds an entry, with the fields as version 1 of the default locale, a draft. Refuses as internal.content_insert, and
   400 VALIDATION_ERROR as internal.content_check.';

create or replace function internal.content_change(entry app.content_entries, patch json) returns app.content_entries
language plpgsql volatile as $$
declare
  wanted constant app.content_entries := internal.content_requested(content_change.entry, content_change.patch);
  stored app.content_entries;
begin
  if wanted.default_locale <> (content_change.entry).default_locale
    and not exists (select from app.content_locales l
                     where l.entry_id = wanted.id and l.locale = wanted.default_locale) then
    perform internal.invalid('default_locale', 'must be a locale of the entry');
  elsif wanted is not distinct from content_change.entry then
    return content_change.entry;
  end if;
  update app.content_entries e
     set tags = wanted.tags, segment_id = wanted.segment_id, starts_at = wanted.starts_at, ends_at = wanted.ends_at,
         sort_order = wanted.sort_order, default_locale = wanted.default_locale, version = e.version + 1,
         updated_at = internal.now()
   where e.id = wanted.id
  returning e.* into stored;
  if internal.content_is_live(stored) then
    perform internal.content_changed(stored, null);
  end if;
  return stored;
end $$;
comment on function internal.content_change is
  'Applies the fields of a PATCH to a locked entry; where nothing differs it is no change. Refuses 400
   VALIDATION_ERROR.';

create or replace function api.content_update(id_or_key text, patch json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant app.content_entries := internal.content_lock(content_update.id_or_key);
  entry app.content_entries;
begin
  entry := internal.content_change(was, content_update.patch);
  if entry.version > was.version then
    perform internal.audit_act(c.action, 'content', c.target_id, c.changes, c.status)
       from internal.audit_change('content', '{}', to_jsonb(was), to_jsonb(entry)) c;
  end if;
  return internal.reply(200, internal.content_json(entry));
end $$;
comment on function api.content_update is
  'Changes tags, segment_id, starts_at, ends_at, sort_order and default_locale. Refuses 404 NOT_FOUND, 400
   VALIDATION_ERROR. Locks the entry.';

create or replace function internal.content_base_check(entry app.content_entries, locale text, base_version int)
returns void
language plpgsql stable as $$
declare
  newest constant int := coalesce((select l.version from app.content_locales l
                                    where l.entry_id = (content_base_check.entry).id
                                      and l.locale = content_base_check.locale), 0);
begin
  if newest <> content_base_check.base_version then
    perform internal.fail(409, 'CONFLICT',
                          format('This language has been saved meanwhile: its version is %s.', newest),
                          json_build_object('field', 'base_version', 'version', newest));
  end if;
end $$;
comment on function internal.content_base_check is
  'Refuses 409 CONFLICT where the newest version of a language is another one; 0 is that of a language that is not
   there, null any.';

create or replace function api.content_locale_put(id_or_key text, locale text, fields json,
                                                  base_version int default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  place constant text := internal.locale_checked(content_locale_put.locale, 'locale');
  sent constant jsonb := internal.content_fields(content_locale_put.fields);
  entry app.content_entries;
  stored app.content_versions;
begin
  entry := internal.content_lock(content_locale_put.id_or_key);
  perform internal.content_base_check(entry, place, content_locale_put.base_version);
  perform internal.content_check(entry, place, sent);
  stored := internal.content_save(entry, place, sent);
  entry := internal.content_touch(entry);
  perform internal.audit_act('content.save', 'content', entry.id::text,
                             json_build_object('locale', place, 'version', stored.version), 200);
  return internal.reply(200, internal.content_version_json(stored));
end $$;
comment on function api.content_locale_put is
  'Saves a language of an entry as a new version, a draft until it is published. Refuses 404 NOT_FOUND, 400
   VALIDATION_ERROR, 409 CONFLICT where base_version is not the newest, LIMIT_REACHED. Locks the entry.';

create or replace function internal.content_delete(entry app.content_entries) returns void
language plpgsql volatile as $$
declare
  was_live constant boolean := internal.content_is_live(content_delete.entry);
begin
  delete from app.content_entries e where e.id = (content_delete.entry).id;
  if was_live then
    perform internal.content_changed(content_delete.entry, null);
  end if;
end $$;
comment on function internal.content_delete is 'Deletes a locked entry with its languages and versions.';

create or replace function api.content_delete(id_or_key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  entry constant app.content_entries := internal.content_lock(content_delete.id_or_key);
begin
  perform internal.content_delete(entry);
  perform internal.audit_act('content.delete', 'content', entry.id::text, json_build_object('key', entry.key), 200);
  return internal.reply_deleted();
end $$;
comment on function api.content_delete is
  'Deletes an entry with its languages and versions; the key is free again. Refuses 404 NOT_FOUND.';

create or replace function internal.segment_used__content(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'content ' || e.key
                 from app.content_entries e
                where e.segment_id = segment_used__content.segment_id
                order by e.key)
$$;
comment on function internal.segment_used__content is 'The entries that only users of a segment see.';
