-- Tags of languages (BCP 47, RFC 5646), and the order in which languages stand in for each other (RFC 4647, 3.4).
create or replace function internal.locale_tag(value text) returns text
language sql immutable as $$
  select string_agg(
           case when p.n = 1 or p.n > s.singleton then p.part
                when char_length(p.part) = 2 then upper(p.part collate "C")
                when char_length(p.part) = 4 and p.part ~ '^[a-z]' then initcap(p.part collate "C")
                else p.part end, '-' order by p.n)
    from (select lower(locale_tag.value collate "C") as tag) t
   cross join lateral string_to_table(t.tag, '-') with ordinality as p (part, n)
   cross join lateral (select coalesce(min(o.n), 1000) as singleton
                         from string_to_table(t.tag, '-') with ordinality as o (part, n)
                        where char_length(o.part) = 1) s
   where char_length(t.tag) <= 64
     and t.tag ~ ('^(([a-z]{2,3}(-[a-z]{3}){0,3}|[a-z]{4,8})(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?'
                  || '(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(-[a-wyz0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?'
                  || '|x(-[a-z0-9]{1,8})+)$')
$$;
comment on function internal.locale_tag is
  'A well-formed language tag of at most 64 characters in its canonical case (pt-BR, zh-Hant-TW), or null. After a
   singleton (u, x) every part is in lower case.';

create or replace function internal.locale_checked(value text, field text, code text default 'VALIDATION_ERROR')
returns text
language plpgsql volatile as $$
declare
  tag constant text := internal.locale_tag(locale_checked.value);
begin
  if tag is null then
    perform internal.invalid(locale_checked.field, 'must be a language tag such as pt-BR', locale_checked.code);
  end if;
  return tag;
end $$;
comment on function internal.locale_checked is
  'A language tag in its canonical case. Refuses 400 with the code that is given, about the field.';

create or replace function internal.locale_chain(asked text[]) returns text[]
language plpgsql immutable as $$
declare
  chain text[] := '{}';
  tag text;
begin
  foreach tag in array locale_chain.asked loop
    loop
      if tag <> all (chain) then
        chain := chain || tag;
      end if;
      exit when strpos(tag, '-') = 0;
      -- a single letter at the end says nothing without what it introduces
      tag := regexp_replace(tag, '(-[^-])?-[^-]+$', '');
    end loop;
  end loop;
  return chain;
end $$;
comment on function internal.locale_chain is
  'The languages that are asked for, each followed by its parents by cutting from the right, each language once.';

create or replace function internal.accepted_locales(header text) returns text[]
language sql immutable as $$
  select array(
    select a.tag
      from (select internal.locale_tag(m.parts[1]) as tag, coalesce(m.parts[2]::numeric, 1) as q, p.n
              from string_to_table(accepted_locales.header, ',') with ordinality as p (part, n)
             cross join lateral regexp_match(
               p.part, '^[ \t]*([A-Za-z0-9-]+)[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$')
               as m (parts)
             where p.n <= 100 and m.parts is not null) a
     where a.tag is not null and a.q > 0
     order by a.q desc, a.n)
$$;
comment on function internal.accepted_locales is
  'The languages of an Accept-Language header by preference (RFC 9110, 12.5.4), of the first hundred that it names. *,
   q=0 and what is malformed are passed over.';

create or replace function internal.content_chain(locale text, accept_language text) returns text[]
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  asked text;
begin
  -- most tags are their own canonical form, and their chain is seen at once
  if content_chain.locale ~ '^[a-z]{2}(-[A-Z]{2})?$' then
    return case when length(content_chain.locale) = 2 then array[content_chain.locale]
                else array[content_chain.locale, left(content_chain.locale, 2)] end;
  end if;
  if content_chain.locale is not null then
    asked := internal.locale_checked(content_chain.locale, 'locale', 'INVALID_INPUT');
  elsif me is not null then
    select internal.locale_tag(u.properties ->> 'locale') into asked
      from app.users u
     where u.id = me and jsonb_typeof(u.properties -> 'locale') = 'string';
  end if;
  return internal.locale_chain(case when asked is not null then array[asked]
                                    when content_chain.accept_language is null then '{}'
                                    else internal.accepted_locales(content_chain.accept_language) end);
end $$;
comment on function internal.content_chain is
  'The languages that the caller asks for, with their parents: the parameter, else the user''s property locale, else
   those of Accept-Language. Refuses 400 INVALID_INPUT for a parameter that is no tag.';
