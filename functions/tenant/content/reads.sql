-- What apps read. With the owner's rights: apps have none on the tables, where drafts are.
create or replace function internal.content_headers(tag text) returns json
language sql stable as $$
  select json_build_object(
    'ETag', '"' || content_headers.tag || '"',
    'Cache-Control', case when internal.user_id() is null then 'public' else 'private' end || ', max-age=60',
    'Vary', 'Authorization, X-On-Behalf-Of, Accept-Language')
$$;
comment on function internal.content_headers is 'The headers of an answer that may be kept for a minute.';

create or replace function internal.content_is_open(entry app.content_entries) returns boolean
language sql volatile as $$
  select coalesce((content_is_open.entry).starts_at <= internal.now(), true)
     and coalesce((content_is_open.entry).ends_at > internal.now(), true)
     and case when (content_is_open.entry).segment_id is null then true
              when internal.user_id() is null then false
              else internal.segment_member((content_is_open.entry).segment_id, internal.user_id()) end
$$;
comment on function internal.content_is_open is
  'Whether the caller may see an entry now: within its time, and in its segment. api.content_entries says the same of
   many.';

-- in plpgsql, whose plan a session keeps: a 304 is little more than this
create or replace function internal.content_tag(entry app.content_entries, chain text[]) returns text
language plpgsql stable as $$
declare
  live text;
begin
  select string_agg(concat_ws(' ', l.locale, s.live_version, extract(epoch from s.live_at)), ',' order by l.locale)
    into live
    from app.content_locales l
   cross join lateral internal.content_state(l) s
   where l.entry_id = (content_tag.entry).id and s.live_version is not null;
  -- all that the answer is made of; texts of a version never change
  return encode(sha256(convert_to(concat_ws('|',
    (content_tag.entry).id, (content_tag.entry).default_locale, array_to_json((content_tag.entry).tags),
    internal.content_unlocalized((content_tag.entry).content_type), content_tag.chain, live), 'UTF8')), 'hex');
end $$;
comment on function internal.content_tag is 'The ETag of an entry as apps read it by a chain of languages.';

create or replace function api.content_entry(id_or_key text, locale text default null, preview_token text default null,
                                             accept_language text default null, if_none_match text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  chain constant text[] := internal.content_chain(content_entry.locale, content_entry.accept_language);
  entry constant app.content_entries := internal.content_at(content_entry.id_or_key);
  tag text;
  shown json;
begin
  if content_entry.preview_token is not null then
    if not exists (select from app.content_previews p
                    where p.digest = sha256(convert_to(content_entry.preview_token, 'UTF8'))
                      and p.entry_id = entry.id and p.expires_at > internal.now()) then
      perform internal.fail(401, 'INVALID_TOKEN', 'The preview token is unknown, expired or of another entry.');
    end if;
    return internal.reply(200, internal.content_shown(entry, chain, true), '{"Cache-Control": "no-store"}');
  end if;
  perform internal.check_found(entry.id is not null and internal.content_is_open(entry), 'entry');
  tag := internal.content_tag(entry, chain);
  -- who has this tag has seen the entry; * says nothing of it
  if internal.etag_matches(content_entry.if_none_match, tag) and btrim(content_entry.if_none_match) <> '*' then
    return row(304, 'null', internal.content_headers(tag))::api.reply;
  end if;
  shown := internal.content_shown(entry, chain, false);
  perform internal.check_found(shown is not null, 'entry');
  if internal.etag_matches(content_entry.if_none_match, tag) then
    return row(304, 'null', internal.content_headers(tag))::api.reply;
  end if;
  return internal.reply(200, shown, internal.content_headers(tag));
end $$;
comment on function api.content_entry is
  'An entry in the language of the caller, as it is published; 304 when the caller''s ETag is current. With a token of a
   preview its newest versions, whatever is published. Refuses 404 NOT_FOUND, 401 INVALID_TOKEN, 400 INVALID_INPUT.';

create or replace function api.content_entries(content_type text default null, tag text default null,
                                               locale text default null, accept_language text default null,
                                               if_none_match text default null, page_offset int default 0,
                                               page_limit int default 50)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  chain constant text[] := internal.content_chain(content_entries.locale, content_entries.accept_language);
  bound constant uuid[] := case when me is null then '{}'
                                else array(select distinct e.segment_id from app.content_entries e
                                            where e.segment_id is not null) end;
  mine constant uuid[] := case when bound = '{}' then '{}' else internal.segments_holding(bound, me) end;
  rows_json json;
  total bigint;
  answer api.reply;
  etag text;
begin
  with open as materialized (
    select e.id, e.sort_order, e.created_at, e.default_locale
      from app.content_entries e
     where (content_entries.content_type is null or e.content_type = content_entries.content_type)
       and (content_entries.tag is null or content_entries.tag = any (e.tags))
       and (e.starts_at is null or e.starts_at <= internal.now())
       and (e.ends_at is null or e.ends_at > internal.now())
       and (e.segment_id is null or e.segment_id = any (mine))
  ), shown as materialized (
    select o.id, o.sort_order, o.created_at
      from open o
     where exists (select from app.content_locales l
                    cross join lateral internal.content_state(l) s
                    where l.entry_id = o.id and s.live_version is not null
                      and (l.locale = o.default_locale or l.locale = any (chain)))
  ), page as (
    select s.id, s.sort_order, s.created_at
      from shown s
     order by s.sort_order, s.created_at desc, s.id desc
     limit content_entries.page_limit offset content_entries.page_offset
  )
  select (select json_agg(internal.content_shown(e, chain, false) order by p.sort_order, p.created_at desc, p.id desc)
            from page p join app.content_entries e on e.id = p.id),
         (select count(*) from shown)
    into rows_json, total;
  answer := internal.reply_page(rows_json, total, content_entries.page_offset, content_entries.page_limit);
  etag := encode(sha256(convert_to(answer.body::text, 'UTF8')), 'hex');
  answer.headers := internal.content_headers(etag);
  if internal.etag_matches(content_entries.if_none_match, etag) then
    return row(304, 'null', answer.headers)::api.reply;
  end if;
  return answer;
end $$;
comment on function api.content_entries is
  'The entries that the caller may see, each in their language, by sort_order, then newest first; 304 when the caller''s
   ETag is current. Refuses 400 INVALID_INPUT.';
