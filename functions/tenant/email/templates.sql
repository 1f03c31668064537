-- Templates of mail. A mark is {{name}} or {{name|fallback}}, and a name may be a path, {{order.total}}. There is no
-- logic in templates: no loops, no conditions, no partials, so that a template can be checked when it is saved and none
-- of its variables is missing when it is sent.
comment on constraint email_templates_key_unique on app.email_templates is
  '409 CONFLICT key: A template with this key exists.';

select internal.audit_declare('app.email_templates', 'email');

create or replace function internal.tg_email_templates__version() returns trigger
language plpgsql volatile as $$
begin
  if (new.subject, new.html, new.text, new.locales) is distinct from (old.subject, old.html, old.text, old.locales) then
    new.version := old.version + 1;
  end if;
  return new;
end $$;
comment on function internal.tg_email_templates__version is
  'version counts changes of subject, html, text and locales.';
create or replace trigger tg_email_templates__version
  before update on app.email_templates
  for each row execute function internal.tg_email_templates__version();

create or replace function internal.email_mark() returns text
language sql immutable parallel safe
return '\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*(\|[^{}]*)?\}\}';
comment on function internal.email_mark is
  'The regular expression of a mark in a template: its name, and its fallback behind a bar.';

create or replace function internal.email_escape(value text) returns text
language sql immutable parallel safe
return replace(replace(replace(replace(replace(email_escape.value, '&', '&#38;'), '<', '&#60;'), '>', '&#62;'), '"',
                       '&#34;'), '''', '&#39;');
comment on function internal.email_escape is 'A text as HTML shows it, in elements and in quoted attributes.';

create or replace function internal.email_scalar(variables jsonb, name text) returns text
language sql immutable parallel safe
return case when jsonb_typeof(email_scalar.variables #> string_to_array(email_scalar.name, '.')) in ('string', 'number',
                                        'boolean')
            then email_scalar.variables #>> string_to_array(email_scalar.name, '.') end;
comment on function internal.email_scalar is
  'A variable by its path, as text; null for what is absent, null, an object or a list.';

create or replace function internal.email_render(source text, variables jsonb, form text, late jsonb default '{}',
                                                 out rendered text, out missing text[])
language plpgsql stable as $$
declare
  literals constant text[] := regexp_split_to_array(email_render.source, internal.email_mark());
  values_of jsonb;
  bytes bigint;
begin
  if email_render.source is null then
    return;
  end if;
  -- each variable is read once, however often it stands in the template
  select coalesce(jsonb_object_agg(n.name, case
           when email_render.late ? n.name then email_render.late -> n.name
           when n.value is null then null
           when email_render.form = 'html' then to_jsonb(internal.email_escape(n.value))
           when email_render.form = 'header' then to_jsonb(btrim(internal.as_line(n.value)))
           else to_jsonb(n.value) end), '{}')
    into values_of
    from (select d.name, internal.email_scalar(email_render.variables, d.name) as value
            from (select distinct m[1] as name from regexp_matches(email_render.source, internal.email_mark(), 'g') m) d
              offset 0) n;
  select coalesce(sum(octet_length(values_of ->> m[1])), 0) into bytes
    from regexp_matches(email_render.source, internal.email_mark(), 'g') m;
  -- before the text is put together: a few marks of a long value would be a large message
  if octet_length(email_render.source) + bytes > 1048576 then
    perform internal.invalid('variables', 'must make a message of at most 1 MB');
  end if;
  select coalesce(string_agg(literals[m.n] || coalesce(values_of ->> m.found[1],
                    case email_render.form when 'html' then internal.email_escape(btrim(substr(m.found[2], 2)))
                         else btrim(substr(m.found[2], 2)) end, ''),
                    '' order by m.n), '') || literals[cardinality(literals)],
         array_agg(distinct m.found[1] order by m.found[1]) filter (where values_of ->> m.found[1] is null
                                                                      and m.found[2] is null)
    into email_render.rendered, email_render.missing
    from regexp_matches(email_render.source, internal.email_mark(), 'g') with ordinality m (found, n);
end $$;
comment on function internal.email_render is
  'A part of a template with its variables: form is html (escaped), text, or header (one line). A name in late stays a
   mark, as late says, which the server fills in when it sends: one that a value cannot contain. missing are the names
   without a value and without a fallback. Refuses 400 VALIDATION_ERROR over 1 MB.';

create or replace function internal.email_part_check(place text, source text, refused text[] default '{}') returns void
language plpgsql stable as $$
declare
  name text;
begin
  if (select count(*) from regexp_matches(email_part_check.source, internal.email_mark(), 'g')) > 500 then
    perform internal.invalid(email_part_check.place, 'must have at most 500 marks');
  elsif regexp_replace(email_part_check.source, internal.email_mark(), '', 'g') ~ '\{\{' then
    perform internal.invalid(email_part_check.place, 'must have marks of the form {{name}} or {{name|fallback}}');
  end if;
  select m[1] into name from regexp_matches(email_part_check.source, internal.email_mark(), 'g') m
   where m[1] = any (email_part_check.refused) limit 1;
  if found then
    perform internal.invalid(email_part_check.place, format('must not contain {{%s}}: subjects are logged', name));
  end if;
end $$;
comment on function internal.email_part_check is
  'Refuses a part of a template whose marks are not well formed, more than 500, or among the refused names.';

create or replace function internal.email_sign_in_check(place text, source text, key text) returns void
language plpgsql stable as $$
declare
  secret constant text := case when email_sign_in_check.key like 'auth.magic\_%' then 'link' else 'code' end;
  name text;
begin
  select m[1] into name
    from regexp_matches(email_sign_in_check.source, internal.email_mark(), 'g') m
   where m[1] not in ('brand', secret) and m[2] is null
   limit 1;
  if found then
    perform internal.invalid(email_sign_in_check.place,
                             format('must not need {{%s}}: a message of sign-in has brand and %s', name, secret));
  elsif not exists (select from regexp_matches(email_sign_in_check.source, internal.email_mark(), 'g') m
                     where m[1] = secret) then
    perform internal.invalid(email_sign_in_check.place, format('must contain {{%s}}', secret));
  end if;
end $$;
comment on function internal.email_sign_in_check is
  'Refuses the content of a message of sign-in that lacks its code or link, or needs what such a message does not have:
   it would sign nobody in.';

create or replace function internal.email_template_check(requested app.email_templates, was app.email_templates,
                                                         sent jsonb)
returns app.email_templates
language plpgsql stable as $$
declare
  t constant app.email_templates := email_template_check.requested;
  secrets constant text[] := case when starts_with(t.key, 'auth.') then '{code,link}'::text[]
                                  else '{unsubscribe_url}' end;
  part record;
begin
  if t.html is null and t.text is null then
    perform internal.invalid('html', 'is required, or text is');
  end if;
  if octet_length(t.locales::text) > 800000 then
    perform internal.invalid('locales', 'must have at most 800000 bytes');
  elsif (select count(*) from jsonb_object_keys(t.locales)) > 50 then
    perform internal.invalid('locales', 'must have at most 50 locales');
  end if;
  for part in
    select l.key, l.value, p.key as name, p.value as content
      from jsonb_each(t.locales) l
      left join lateral jsonb_each(case jsonb_typeof(l.value) when 'object' then l.value else '{}' end) p on true
  loop
    if part.key !~ '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$' then
      perform internal.invalid('locales', 'must have locales such as de or pt-BR as keys');
    elsif jsonb_typeof(part.value) <> 'object' then
      perform internal.invalid('locales.' || part.key, 'must be an object');
    elsif part.name not in ('subject', 'html', 'text') or jsonb_typeof(part.content) <> 'string' then
      perform internal.invalid('locales.' || part.key, 'must have subject, html and text, which are strings');
    elsif part.name = 'subject' and char_length(part.content #>> '{}') not between 1 and 300 then
      perform internal.invalid('locales.' || part.key || '.subject', 'must have 1 to 300 characters');
    elsif part.name = 'subject' and not internal.is_line(part.content #>> '{}') then
      perform internal.invalid('locales.' || part.key || '.subject', 'must be one line of text');
    end if;
    perform internal.email_part_check('locales.' || part.key || '.' || part.name, part.content #>> '{}',
                                      case part.name when 'subject' then secrets else '{}' end);
    if starts_with(t.key, 'auth.') and part.name <> 'subject' then
      perform internal.email_sign_in_check('locales.' || part.key || '.' || part.name, part.content #>> '{}', t.key);
    end if;
  end loop;
  if starts_with(t.key, 'auth.') then
    perform internal.email_sign_in_check('html', t.html, t.key) where t.html is not null;
    perform internal.email_sign_in_check('text', t.text, t.key) where t.text is not null;
  end if;
  perform internal.email_part_check('subject', t.subject, secrets);
  perform internal.email_part_check('html', coalesce(t.html, ''));
  perform internal.email_part_check('text', coalesce(t.text, ''));
  return t;
end $$;
comment on function internal.email_template_check is
  'A template needs html or text, and well-formed marks in every part. The subject of a message of sign-in has no
   secret. Refuses 400 VALIDATION_ERROR.';

select internal.row_declare('email_template_json', null::app.email_templates,
                            '{id,key,name,subject,html,text,locales,category,version,created_at,updated_at}');
comment on function internal.email_template_json is 'A template as responses show it.';

create or replace function internal.email_locales(wanted text[]) returns setof text
language sql immutable as $$
  select l.locale
    from (select w.n, p.n as part, case p.n when 1 then lower(w.locale)
                                        else split_part(lower(w.locale), '-', 1) end as locale
            from unnest(email_locales.wanted) with ordinality w (locale, n) cross join (values (1), (2)) p (n)
           where w.locale is not null and w.n <= 20) l
   group by l.locale
   order by min(l.n * 2 + l.part)
$$;
comment on function internal.email_locales is
  'Locales in the order in which they are tried, lower case: each one and then its language, de-ch before de.';

create or replace function internal.email_template_pick(key text, wanted text[])
returns table (subject text, html text, text text, category text, version int, locale text)
language plpgsql stable security definer set search_path = '' as $$
declare
  stored app.email_templates;
  part jsonb;
  tried text;
begin
  select t.* into stored from app.email_templates t where t.key = email_template_pick.key;
  foreach tried in array array(select l from internal.email_locales(email_template_pick.wanted) l) loop
    select e.value into part from jsonb_each(stored.locales) e where lower(e.key) = tried;
    if found then
      return query select coalesce(part ->> 'subject', stored.subject), coalesce(part ->> 'html', stored.html),
                          coalesce(part ->> 'text', stored.text), stored.category, stored.version, tried;
      return;
    end if;
    -- the default of a template is in the language of a project's choice: for a built-in one, English
    exit when tried = 'en' and stored.id is not null;
    -- the built-in ones take a few milliseconds to read
    continue when email_template_pick.key !~ '^(auth\.|developer\.)';
    return query select b.subject, b.html, b.text, 'transactional'::text, 0, tried
                   from internal.email_builtin(email_template_pick.key, tried) b where b.subject is not null;
    if found then
      return;
    end if;
  end loop;
  if stored.id is not null then
    return query select stored.subject, stored.html, stored.text, stored.category, stored.version, null::text;
  else
    return query select b.subject, b.html, b.text, 'transactional'::text, 0, 'en'::text
                   from internal.email_builtin(email_template_pick.key, 'en') b where b.subject is not null;
  end if;
end $$;
comment on function internal.email_template_pick is
  'The content of a template in the first of the wanted locales that it has: the project''s, then the built-in one, then
   the project''s default. No row where there is no such template. version is 0 for a built-in one.';

create or replace function internal.email_sample_url() returns text
language sql immutable parallel safe
return 'https://example.com/u/preview';
comment on function internal.email_sample_url is 'What stands for unsubscribe_url in a preview.';

create or replace function internal.email_missing_check(missing text[]) returns void
language plpgsql volatile as $$
begin
  if cardinality(email_missing_check.missing) > 0 then
    perform internal.fail(400, 'TEMPLATE_VARIABLE_MISSING',
                          'The template needs ' || array_to_string(email_missing_check.missing, ', ') || '.',
                          json_build_object('variables', email_missing_check.missing));
  end if;
end $$;
comment on function internal.email_missing_check is 'Refuses 400 TEMPLATE_VARIABLE_MISSING with the names.';

create or replace function api.email_template_preview(key text, variables jsonb default '{}', locale text default null,
                                                      accepted text[] default '{}')
returns api.reply
language plpgsql stable as $$
declare
  picked record;
  subject record;
  html record;
  body record;
  given constant jsonb := case when email_template_preview.variables ? 'unsubscribe_url'
                                 then email_template_preview.variables
                               else email_template_preview.variables || jsonb_build_object('unsubscribe_url',
                                        internal.email_sample_url()) end;
begin
  select * into picked
    from internal.email_template_pick(email_template_preview.key,
                                      case when email_template_preview.locale is null
                                             then email_template_preview.accepted
                                           else array[email_template_preview.locale] end);
  perform internal.check_found(found, 'template');
  subject := internal.email_render(picked.subject, given, 'header');
  html := internal.email_render(picked.html, given, 'html');
  body := internal.email_render(picked.text, given, 'text');
  perform internal.email_missing_check(array(select distinct m
                                               from unnest(subject.missing || html.missing || body.missing) m
                                                 order by m));
  return internal.reply(200, json_build_object('subject', subject.rendered, 'html', html.rendered,
                                               'text', body.rendered, 'locale', picked.locale,
                                               'version', picked.version));
end $$;
comment on function api.email_template_preview is
  'A template, the project''s or a built-in one, with variables: {subject, html, text, locale, version}. Refuses 404
   NOT_FOUND, 400 TEMPLATE_VARIABLE_MISSING, VALIDATION_ERROR.';
