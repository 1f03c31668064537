-- Rules of moderation: their configuration is compiled when it is written, so that checking a text reads few and short
-- rows.

select internal.audit_declare('app.moderation_rules', 'moderation_rules');

create or replace function internal.moderation_text_kinds() returns text[]
language sql immutable parallel safe
return array['message', 'review', 'feed_entry', 'collection_row', 'content', 'display_name', 'group_name', 'ai_input',
             'ai_output'];
comment on function internal.moderation_text_kinds is
  'The kinds of texts that rules read. Files have none that others write to: administrators set what catalogs show.';

create or replace function internal.moderation_subject_types() returns text[]
language sql immutable parallel safe
return array['user', 'message', 'review', 'media', 'feed_entry', 'group', 'collection_row', 'content'];
comment on function internal.moderation_subject_types is 'The types of subjects that users can report.';

create or replace function internal.moderation_visible(value text) returns text
language sql immutable parallel safe
-- Default_Ignorable_Code_Point of Unicode, annotation characters, and control characters that are no white space
return regexp_replace(moderation_visible.value,
  '[\u0001-\u0008\u000E-\u001F\u007F-\u0084\u0086-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u202A-\u202E\u2060-\u206F'
  '\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A\U000E0000-\U000E0FFF]+', '',
    'g');
comment on function internal.moderation_visible is 'A text without the characters that leave no trace on a screen.';

create or replace function internal.moderation_normal(value text) returns text
language sql immutable parallel safe
return lower(normalize(internal.moderation_visible(moderation_normal.value), nfkc));
comment on function internal.moderation_normal is
  'A text without invisible characters, in lower case; compatibility forms become the letters that they resemble.';

create or replace function internal.moderation_unmarked(value text) returns text
language sql immutable parallel safe
-- diacritics of any letter, and points of Hebrew and Arabic, which readers do without; the vowels of other scripts are
-- letters to their readers
return regexp_replace(internal.moderation_visible(moderation_unmarked.value),
  '[\u0300-\u036F\u0483-\u0489\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7\u0610-\u061A\u064B-\u065F\u0670\u06D6-\u06DC\u06DF-\u06E4\u06E7\u06E8\u06EA-\u06ED'
  '\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF\uFE20-\uFE2F]+', '', 'g');
comment on function internal.moderation_unmarked is
  'A text without invisible characters and without the marks that follow a letter as characters of their own. A letter
   that has a mark in itself keeps it.';

create or replace function internal.moderation_word_list(normal text) returns text
language sql immutable parallel safe
-- every character except letters and digits separates words
return ' ' || btrim(regexp_replace(moderation_word_list.normal, '[^[:alnum:]]+', ' ', 'g')) || ' ';
comment on function internal.moderation_word_list is 'The words of a normal text, each surrounded by one space.';

create or replace function internal.moderation_words(value text) returns text
language sql immutable parallel safe
return internal.moderation_word_list(internal.moderation_normal(moderation_words.value));
comment on function internal.moderation_words is
  'The words of a rule in lower case, each surrounded by one space, so that a word or phrase is found as a substring.';

create or replace function internal.moderation_readings(value text) returns text[]
language plpgsql immutable parallel safe as $$
declare
  normal constant text := internal.moderation_normal(moderation_readings.value);
  unmarked constant text := internal.moderation_normal(internal.moderation_unmarked(moderation_readings.value));
begin
  return array[normal, internal.moderation_word_list(normal)]
         || case when unmarked <> normal then array[unmarked, internal.moderation_word_list(unmarked)] end;
end $$;
comment on function internal.moderation_readings is
  'A text as keywords are compared with it, and its words: with the marks that its letters have; then, where there are
   some, without those that are characters of their own. A match in either counts.';

create or replace function internal.moderation_list(config jsonb, name text, most int, longest int) returns text[]
language plpgsql volatile as $$
declare
  sent constant jsonb := moderation_list.config -> moderation_list.name;
begin
  if jsonb_typeof(sent) is distinct from 'array' or jsonb_array_length(sent) not between 1 and moderation_list.most
     or exists (select from jsonb_array_elements(sent) e
                 where jsonb_typeof(e) <> 'string'
                    or char_length(btrim(e #>> '{}')) not between 1 and moderation_list.longest) then
    perform internal.invalid('config.' || moderation_list.name,
                             format('must be 1 to %s strings of 1 to %s characters', moderation_list.most,
                                    moderation_list.longest), 'INVALID_INPUT');
  end if;
  return array(select btrim(e) from jsonb_array_elements_text(sent) e);
end $$;
comment on function internal.moderation_list is
  'A list of strings in a rule''s configuration. Refuses 400 INVALID_INPUT.';

create or replace function internal.moderation_number(config jsonb, name text, most int) returns int
language plpgsql volatile as $$
declare
  sent constant jsonb := moderation_number.config -> moderation_number.name;
begin
  if jsonb_typeof(sent) is distinct from 'number' or (sent #>> '{}')::numeric <> trunc((sent #>> '{}')::numeric)
     or (sent #>> '{}')::numeric not between 1 and moderation_number.most then
    perform internal.invalid('config.' || moderation_number.name,
                             format('must be a whole number from 1 to %s', moderation_number.most), 'INVALID_INPUT');
  end if;
  return (sent #>> '{}')::numeric::int;
end $$;
comment on function internal.moderation_number is
  'A whole number in a rule''s configuration. Refuses 400 INVALID_INPUT.';

create or replace function internal.tg_moderation_rules__compile() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  known constant text[] := internal.moderation_text_kinds() || internal.moderation_subject_types();
  words text[];
  compiled record;
begin
  if octet_length(new.config::text) > 65536 then
    perform internal.invalid('config', 'must have at most 64 KB', 'INVALID_INPUT');
  end if;
  new.words := null;
  new.expression := null;
  case new.rule_type
    when 'keyword' then
      words := internal.moderation_list(new.config, 'words', 1000, 100);
      if coalesce(new.config ->> 'match', 'word') not in ('word', 'substring') then
        perform internal.invalid('config.match', 'must be word or substring', 'INVALID_INPUT');
      elsif new.config ->> 'match' = 'substring' then
        new.words := array(select internal.moderation_normal(w) from unnest(words) w);
        if '' = any (new.words) then
          perform internal.invalid('config.words', 'must each have a visible character', 'INVALID_INPUT');
        end if;
      else
        new.words := array(select internal.moderation_words(w) from unnest(words) w);
        if '  ' = any (new.words) then
          perform internal.invalid('config.words', 'must each have a letter or a digit; match substring finds others',
                                   'INVALID_INPUT');
        end if;
      end if;
    when 'regex' then
      if jsonb_typeof(new.config -> 'pattern') is distinct from 'string' then
        perform internal.invalid('config.pattern', 'must be a regular expression', 'INVALID_INPUT');
      end if;
      compiled := internal.moderation_expression(new.config ->> 'pattern');
      if compiled.expression is null then
        perform internal.invalid('config.pattern', compiled.refusal, 'INVALID_INPUT');
      end if;
      new.expression := compiled.expression;
    when 'report_threshold' then
      perform internal.moderation_number(new.config, 'count', 10000),
        internal.moderation_number(new.config, 'window_hours', 8760);
    when 'rate' then
      perform internal.moderation_number(new.config, 'max', 100000),
        internal.moderation_number(new.config, 'window_seconds', 2592000);
    when 'link' then
      if new.config ? 'allow_domains' and new.config -> 'allow_domains' <> '[]' then
        new.words := array(select lower(regexp_replace(d, '^\.+|\.+$', '', 'g'))
                             from unnest(internal.moderation_list(new.config, 'allow_domains', 1000, 253)) d);
      else
        new.words := '{}';
      end if;
    when 'new_account' then
      perform internal.moderation_number(new.config, 'max_age_hours', 87600);
    else
      -- the table's check constraint refuses it
      return new;
  end case;
  if new.config ? 'applies_to' then
    new.applies_to := internal.moderation_list(new.config, 'applies_to', 20, 50);
    if not new.applies_to <@ known then
      perform internal.invalid('config.applies_to',
                               'must be of ' || array_to_string(array(select distinct k from unnest(known) k
                                                                       order by k), ', '),
                               'INVALID_INPUT');
    end if;
  else
    new.applies_to := case new.rule_type when 'report_threshold' then internal.moderation_subject_types()
                           else internal.moderation_text_kinds() end;
  end if;
  new.action := coalesce(new.config ->> 'action',
                         case new.rule_type when 'report_threshold' then 'hide' else 'queue' end);
  if new.action not in ('queue', 'hide', 'block') or new.action = 'block' and new.rule_type = 'report_threshold' then
    perform internal.invalid('config.action',
                             case new.rule_type when 'report_threshold' then 'must be hide or queue'
                                  else 'must be queue, hide or block' end,
                             'INVALID_INPUT');
  end if;
  return new;
end $$;
comment on function internal.tg_moderation_rules__compile is
  'Validates and compiles the configuration of a rule before it is written. applies_to defaults to every kind, action to
   queue (report_threshold: hide). Refuses 400 INVALID_INPUT with details.field.';

create or replace trigger tg_moderation_rules__compile
  before insert or update of rule_type, config on app.moderation_rules
  for each row execute function internal.tg_moderation_rules__compile();

create or replace function internal.moderation_hosts(body text) returns setof text
language plpgsql immutable parallel safe as $$
declare
  -- browsers take the dots of other scripts for dots
  normal constant text := translate(internal.moderation_normal(moderation_hosts.body), '。｡', '..');
begin
  return query
    -- the text before an @ is a user name, and browsers treat a backslash as a slash
    select btrim(regexp_replace(regexp_replace(m[1], '^.*@', ''), ':\d*$', ''), '.')
      from regexp_matches(normal,
                          -- schemes that browsers follow whatever the number of slashes, and the usual disguise of http
                          '(?:(?:h(?:tt|xx)ps?|ftps?|wss?):[/\\]*'
                          '|[a-z][a-z0-9+.-]*:[/\\]{2,}'
                          '|(?:^|[^[:alnum:]:/\\])[/\\]{2,}(?=[^\s/\\?#<>"'')]*\.[^\s/\\?#<>"'')])'
                          '|(?:^|[^[:alnum:]@.])(?=www\.))([^\s/\\?#<>"'')]+)', 'g') m
    union
    -- of all addresses that a mail would go to
    select btrim(a[1], '.')
      from regexp_matches(normal, 'mailto:([^\s<>"'')]+)', 'g') m, regexp_matches(m[1], '(?:@|%40)([^@,;?&#%]+)', 'g') a
    union
    -- a host without a scheme: words with dots before a slash, or with a common top-level domain
    select m[1] || m[2]
      from regexp_matches(normal,
                          '(?:^|[^[:alnum:]@./\\-])((?:[[:alnum:]-]{1,63}\.){1,8})([a-z]{2,24}(?=/)|'
                          '(?:com|net|org|info|io|co|ru|cn|xyz|top|shop|site|online|app|dev|me|ly|gg|tk)(?![[:alnum:]-]))',
                            'g') m;
end $$;
comment on function internal.moderation_hosts is
  'The hosts of the links in a text, in lower case: of URLs with any scheme, of //host, of mailto addresses, and of what
   looks like a host.';

create or replace function internal.moderation_longest() returns int
language sql immutable parallel safe
return 10240;
comment on function internal.moderation_longest is 'The number of characters of a text that a rule evaluates.';

create or replace function internal.moderation_found(r app.moderation_rules, body text, readings text[] default null)
returns text[]
language plpgsql stable as $$
declare
  read text[];
  k constant int := case when (moderation_found.r).config ->> 'match' = 'substring' then 1 else 2 end;
begin
  case (moderation_found.r).rule_type
    when 'keyword' then
      read := coalesce(moderation_found.readings, internal.moderation_readings(moderation_found.body));
      return array(select btrim(w) from unnest((moderation_found.r).words) with ordinality as x (w, n)
                    where strpos(read[k], w) > 0 or strpos(read[k + 2], w) > 0 order by n limit 20);
    when 'link' then
      return array(select h from internal.moderation_hosts(moderation_found.body) h
                    where not exists (select from unnest((moderation_found.r).words) d where h = d or
                                       right(h, char_length(d) + 1) = '.' || d)
                    order by h limit 20);
    when 'regex' then
      return case when moderation_found.body ~ (moderation_found.r).expression
                    or internal.moderation_visible(moderation_found.body) ~ (moderation_found.r).expression
                  then array[(moderation_found.r).config ->> 'pattern'] else '{}' end;
    else
      return '{}';
  end case;
end $$;
comment on function internal.moderation_found is
  'The matches of a rule in a text of at most internal.moderation_longest() characters: words, hosts of links, or its
   pattern; at most 20. None for rules that evaluate no text. readings is internal.moderation_readings(body), if the
   caller has computed it.';

select internal.row_declare('moderation_rule_json', null::app.moderation_rules,
                            '{id,name,rule_type,config,is_active,created_at,updated_at}');
comment on function internal.moderation_rule_json is
  'A rule as responses show it, with its configuration as it was sent.';

create or replace function api.moderation_rule_test(rule_id uuid, text text) returns api.reply
language plpgsql stable as $$
declare
  r constant app.moderation_rules := internal.definition_find(null::app.moderation_rules,
                                                              moderation_rule_test.rule_id::text);
  found_in constant text[] := internal.moderation_found(r, moderation_rule_test.text);
begin
  return internal.reply(200, json_build_object('matches', cardinality(found_in) > 0, 'found', found_in,
                                               'action', r.action, 'is_active', r.is_active));
end $$;
comment on function api.moderation_rule_test is
  'Whether a text matches a rule, active or not, and the matches. Rules that evaluate no text never match. Refuses 404
   NOT_FOUND.';

create or replace function internal.moderation_texts(kind text, since timestamptz, most bigint)
returns table (id uuid, user_id uuid, body text, written_at timestamptz)
language plpgsql stable security definer set search_path = '' as $$
declare
  t internal.moderated_texts;
begin
  select m.* into t from internal.moderated_texts m where m.kind = moderation_texts.kind;
  if t.texts_function is not null then
    return query execute format('select f.id, f.user_id, f.body, f.written_at from internal.%I($1, $2) f',
                                t.texts_function)
      using moderation_texts.since, moderation_texts.most;
  elsif t.table_name is not null then
    return query execute format(
      'select t.%I, %s, concat_ws(e''\n'', %s), t.%I from %s t where t.%4$I >= $1 order by t.%4$I desc limit $2',
      t.id_column, case when t.user_column is null then 'null::uuid' else format('t.%I', t.user_column) end,
      (select string_agg(format('t.%I', c), ', ') from unnest(t.text_columns) c), t.at_column, t.table_name::regclass)
      using moderation_texts.since, moderation_texts.most;
  end if;
end $$;
comment on function internal.moderation_texts is
  'The newest texts of a kind since a time, with their authors. Granted to nobody.';

create or replace function internal.moderation_simulate(rule_id uuid, days int) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  r app.moderation_rules;
  since constant timestamptz := internal.now() - make_interval(days => moderation_simulate.days);
  -- real time, not internal.now(), because it limits the work
  until constant timestamptz := clock_timestamp() + interval '2 seconds';
  most constant bigint := 20000;
  simulated text;
  t record;
  checked bigint := 0;
  caught bigint := 0;
  of_kind bigint;
  by_kind jsonb := '{}';
  is_caught boolean;
  is_complete boolean := true;
begin
  perform internal.check_caller('developer', 'rules are simulated by administrators');
  select m.* into r from app.moderation_rules m where m.id = moderation_simulate.rule_id;
  if r.rule_type = 'report_threshold' then
    select count(*), count(distinct (s.subject_type, s.subject_id)) filter (where s.n >= (r.config ->> 'count')::int)
      into checked, caught
      from (select p.subject_type, p.subject_id,
                   count(*) over (partition by p.subject_type, p.subject_id order by p.created_at
                                  range between make_interval(hours => (
                                    r.config ->> 'window_hours')::int) preceding and current row) as n
              from (select m.* from app.moderation_reports m
                     where m.created_at >= since and m.subject_type = any (r.applies_to)
                     order by m.created_at desc limit most) p) s;
    return json_build_object('days', moderation_simulate.days, 'checked', checked, 'caught', caught, 'by_kind', by_kind,
                             'is_complete', checked < most);
  end if;
  foreach simulated in array array(select distinct k from unnest(r.applies_to) k order by k) loop
    of_kind := 0;
    if r.rule_type = 'rate' then
      select count(*) as texts, count(*) filter (where s.n > (r.config ->> 'max')::int) as beyond into t
        from (select count(*) over (partition by m.user_id order by m.written_at
                                    range between make_interval(secs => (
                                      r.config ->> 'window_seconds')::int) preceding and current row) as n
                from internal.moderation_texts(simulated, since, most) m where m.user_id is not null) s;
      checked := checked + t.texts;
      is_complete := is_complete and t.texts < most;
      of_kind := t.beyond;
    else
      for t in
        select m.body, m.written_at, u.created_at as user_since, row_number() over () as n
          from internal.moderation_texts(simulated, since, most) m
          left join app.users u on u.id = m.user_id
      loop
        if clock_timestamp() > until then
          is_complete := false;
          exit;
        end if;
        checked := checked + 1;
        is_complete := is_complete and t.n < most;
        is_caught := case r.rule_type
          when 'new_account' then t.written_at < t.user_since
            + make_interval(hours => (r.config ->> 'max_age_hours')::int)
          else cardinality(internal.moderation_found(r, left(t.body, internal.moderation_longest()))) > 0 end;
        if is_caught then
          of_kind := of_kind + 1;
        end if;
      end loop;
    end if;
    if exists (select from internal.moderated_texts m where m.kind = simulated) then
      by_kind := by_kind || jsonb_build_object(simulated, of_kind);
    end if;
    caught := caught + of_kind;
  end loop;
  return json_build_object('days', moderation_simulate.days, 'checked', checked, 'caught', caught, 'by_kind', by_kind,
                           'is_complete', is_complete);
end $$;
comment on function internal.moderation_simulate is
  'How many texts of the last days a rule would have matched, by kind: the newest 20,000 of each kind, for at most two
   seconds; is_complete is whether all were evaluated. For report_threshold: how many subjects. Writes nothing.';

create or replace function api.moderation_rule_simulate(rule_id uuid, days int default 7) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.moderation_simulate(
    (internal.definition_find(null::app.moderation_rules, moderation_rule_simulate.rule_id::text)).id,
      moderation_rule_simulate.days))
$$;
comment on function api.moderation_rule_simulate is
  'Simulates a rule on past texts: internal.moderation_simulate. Refuses 404 NOT_FOUND.';
