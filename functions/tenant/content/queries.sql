-- What administrators read.
create or replace function internal.content_searched(text text) returns text
language sql immutable as $$
  -- the character stands between two texts of an entry, so that no search finds the end of one and the start of another
  select lower(translate(content_searched.text, chr(1), ' '))
$$;
comment on function internal.content_searched is 'A text, or a part of one, as a search compares it.';

create or replace function internal.tg_content_versions__texts() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.content_texts as t (entry_id, locale, text)
  select new.entry_id, new.locale, coalesce(string_agg(internal.content_searched(p.value #>> '{}'), chr(1)), '')
    from jsonb_path_query(new.fields, 'strict $.** ? (@.type() == "string")') as p (value)
  on conflict on constraint content_texts_pkey do update set text = excluded.text;
  return null;
end $$;
comment on function internal.tg_content_versions__texts is
  'Keeps the texts of the newest save for the search: those anywhere within the fields, without the names of these.';

create or replace trigger tg_content_versions__texts
  after insert on app.content_versions
  for each row execute function internal.tg_content_versions__texts();

create or replace function api.content_list(content_type text default null, tag text default null,
                                            status text default null, locale text default null,
                                            search text default null, page_offset int default 0,
                                            page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  place constant text := case when content_list.locale is not null
                              then internal.locale_checked(content_list.locale, 'locale') end;
  part constant text := internal.content_searched(nullif(content_list.search, ''));
  rows_json json;
  total bigint;
begin
  with found as materialized (
    select e.id, e.sort_order, e.created_at
      from app.content_entries e
     where (content_list.content_type is null or e.content_type = content_list.content_type)
       and (content_list.tag is null or content_list.tag = any (e.tags))
       and (content_list.status is null and place is null
            or exists (select from app.content_locales l
                        cross join lateral internal.content_state(l) s
                        where l.entry_id = e.id and (place is null or l.locale = place)
                          and (content_list.status is null or s.status = content_list.status)))
       and (part is null or strpos(lower(e.key), part) > 0
            or e.id in (select t.entry_id from app.content_texts t where strpos(t.text, part) > 0))
  ), page as (
    select f.id, f.sort_order, f.created_at
      from found f
     order by f.sort_order, f.created_at desc, f.id desc
     limit content_list.page_limit offset content_list.page_offset
  )
  select (select json_agg(internal.content_json(e) order by p.sort_order, p.created_at desc, p.id desc)
            from page p join app.content_entries e on e.id = p.id),
         (select count(*) from found)
    into rows_json, total;
  return internal.reply_page(rows_json, total, content_list.page_offset, content_list.page_limit);
end $$;
comment on function api.content_list is
  'Entries by sort_order, then newest first. status: one of its languages has it, with locale that one. search: a part
   of the key or of any text in the newest fields. Refuses 400 VALIDATION_ERROR.';

create or replace function api.content_get(id_or_key text) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.content_json(internal.content_find(content_get.id_or_key)))
$$;
comment on function api.content_get is 'An entry with the newest save of each language. Refuses 404 NOT_FOUND.';

create or replace function api.content_versions(id_or_key text, locale text default null, page_offset int default 0,
                                                page_limit int default 50)
returns api.reply
language plpgsql volatile as $$
declare
  entry constant app.content_entries := internal.content_find(content_versions.id_or_key);
  place constant app.content_locales := internal.content_place(entry, coalesce(content_versions.locale,
                                                                                entry.default_locale));
  rows_json json;
begin
  select json_agg(internal.content_version_json(v) order by v.version desc) into rows_json
    from (select w.* from app.content_versions w
           where w.entry_id = place.entry_id and w.locale = place.locale
           order by w.version desc
           limit content_versions.page_limit offset content_versions.page_offset) v;
  return internal.reply_page(rows_json, (select count(*) from app.content_versions w
                                          where w.entry_id = place.entry_id and w.locale = place.locale),
                             content_versions.page_offset, content_versions.page_limit);
end $$;
comment on function api.content_versions is
  'The versions of a language that are kept, newest first; of the default locale where none is named. Refuses 404
   NOT_FOUND, 400 VALIDATION_ERROR.';

create or replace function api.content_preview_token(id_or_key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  entry constant app.content_entries := internal.content_lock(content_preview_token.id_or_key);
  token constant text := 'preview_' || encode(extensions.gen_random_bytes(32), 'hex');
begin
  insert into app.content_previews (digest, entry_id, expires_at)
  values (sha256(convert_to(token, 'UTF8')), entry.id, internal.now() + interval '1 hour');
  perform internal.audit_act('content.preview', 'content', entry.id::text, '{}', 201);
  return internal.reply(201, json_build_object('token', token, 'expires_in', 3600));
end $$;
comment on function api.content_preview_token is
  'A token with which apps read the newest versions of one entry for an hour. Refuses 404 NOT_FOUND.';

create or replace function internal.purge__content(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.content_previews', 't.expires_at < internal.now()', purge__content.most)
$$;
comment on function internal.purge__content is 'Daily: tokens of previews that are over.';
