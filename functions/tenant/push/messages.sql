-- Messages: placeholders and locales.
create or replace function internal.push_placeholder(words text, properties jsonb, display_name text, context jsonb)
returns text
language plpgsql immutable parallel safe as $$
declare
  name constant text := btrim(split_part(push_placeholder.words, '|', 1));
  fallback constant text := btrim(substr(push_placeholder.words,
                                         length(split_part(push_placeholder.words, '|', 1)) + 2));
  found jsonb;
begin
  if name like 'event.%' then
    found := push_placeholder.context #> string_to_array(substr(name, 7), '.');
  else
    found := coalesce(push_placeholder.properties -> name, push_placeholder.properties #> string_to_array(name, '.'),
                      case when name = 'display_name' then to_jsonb(push_placeholder.display_name) end);
  end if;
  return case when jsonb_typeof(found) in ('string', 'number', 'boolean') and found #>> '{}' <> ''
              then left(internal.as_line(found #>> '{}'), 500) else fallback end;
end $$;
comment on function internal.push_placeholder is
  'The text of {{path|fallback}}: a property of the user, display_name, or event.path of the event that caused the
   message; on one line, and at most 500 characters.';

create or replace function internal.url_encoded(value text) returns text
language sql immutable parallel safe as $$
  select coalesce(string_agg(
           case when b between 48 and 57 or b between 65 and 90 or b between 97 and 122
                or b in (45, 46, 95, 126) then chr(b)
                else '%' || upper(lpad(to_hex(b), 2, '0')) end, '' order by n), '')
    from (select get_byte(convert_to(url_encoded.value, 'UTF8'), n) as b, n
            from generate_series(0, octet_length(convert_to(url_encoded.value, 'UTF8')) - 1) n) bytes
$$;
comment on function internal.url_encoded is 'A text as a component of a URL, percent-encoded (RFC 3986).';

create or replace function internal.push_filled(template text, properties jsonb, display_name text, context jsonb,
                                                is_url boolean default false)
returns text
language plpgsql immutable parallel safe as $$
declare
  rest text := push_filled.template;
  made text := '';
  opening int;
  closing int;
  value text;
begin
  -- one pass: what is put in is never read for placeholders again
  loop
    opening := position('{{' in rest);
    closing := case when opening > 0 then position('}}' in substr(rest, opening + 2)) else 0 end;
    exit when coalesce(closing, 0) = 0;
    value := internal.push_placeholder(substr(rest, opening + 2, closing - 1), push_filled.properties,
                                       push_filled.display_name, push_filled.context);
    made := made || left(rest, opening - 1) || case when push_filled.is_url then internal.url_encoded(value)
                                                    else value end;
    rest := substr(rest, opening + closing + 3);
  end loop;
  return made || rest;
end $$;
comment on function internal.push_filled is
  'A text with its placeholders filled in, percent-encoded in a URL. Values are not read for placeholders.';

create or replace function internal.push_rendered(message jsonb, properties jsonb, display_name text, context jsonb)
returns jsonb
language plpgsql immutable parallel safe as $$
declare
  m constant jsonb := push_rendered.message;
  locale constant text := replace(coalesce(push_rendered.properties ->> 'locale', ''), '_', '-');
  words constant jsonb := coalesce(m -> 'localized' -> locale, m -> 'localized' -> split_part(locale, '-', 1));
  title constant text := coalesce(words ->> 'title', m ->> 'title');
  body constant text := coalesce(words ->> 'body', m ->> 'body');
begin
  if position('{{' in concat(title, body, m ->> 'deep_link', m ->> 'image_url')) = 0 then
    return case when words is null then m - 'localized'
                else (m - 'localized') || jsonb_build_object('title', title, 'body', body) end;
  end if;
  return (m - 'localized') || jsonb_build_object(
    'title', internal.push_filled(title, push_rendered.properties, push_rendered.display_name, push_rendered.context),
    'body', internal.push_filled(body, push_rendered.properties, push_rendered.display_name, push_rendered.context),
    'deep_link', internal.push_filled(m ->> 'deep_link', push_rendered.properties, push_rendered.display_name,
                                      push_rendered.context, true),
    'image_url', internal.push_filled(m ->> 'image_url', push_rendered.properties, push_rendered.display_name,
                                      push_rendered.context, true));
end $$;
comment on function internal.push_rendered is
  'A message for one user: title and body in the locale of the property locale, else in its language, else as they are;
   placeholders filled in.';
