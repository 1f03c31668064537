-- How reports are grouped, and how versions compare. Every expression is linear in the length of its text: stacks are
-- sent by strangers. They are plpgsql, whose plans a session keeps: a function of SQL with a query of its own is begun
-- anew at each call, which takes twenty times as long.
create or replace function internal.diagnostics_frames(lines text) returns text
language plpgsql immutable parallel safe as $$
declare
  -- all frames at once: a call of a regular expression costs more than what it reads
  text constant text := regexp_replace(
    replace(regexp_replace(regexp_replace(diagnostics_frames.lines, '0x[0-9a-fA-F]+', '', 'g'),
                           '\s\+ \d+', '', 'g'), '\', '/'),
    '[()@\t\r,\[\] ]+', ' ', 'g');
  short constant text := regexp_replace(regexp_replace(regexp_replace(
    text, '\?[^ \x01]*', '', 'g'), '[^ \x01]*/', '', 'g'), ':\d+', '', 'g');
begin
  return btrim(regexp_replace(
    case when strpos(short, '  ') > 0 then regexp_replace(short, ' +', ' ', 'g') else short end,
    ' ?\x01 ?', E'\n', 'g'));
end $$;
comment on function internal.diagnostics_frames is
  'Frames of a stack, \x01 between them, as one a line: without addresses, line and column numbers, query strings, and
   of each path all but its last part.';

create or replace function internal.diagnostics_fingerprint(kind text, message text, stack text) returns text
language plpgsql immutable parallel safe as $$
declare
  frames text;
  found int := 0;
  line text;
begin
  foreach line in array coalesce(string_to_array(diagnostics_fingerprint.stack, E'\n'), '{}') loop
    if strpos(line, '@') > 0 or line ~ '^\s*(at |\d+\s)' then
      frames := concat(frames || E'\x01', line);
      found := found + 1;
      exit when found = 5;
    end if;
  end loop;
  return encode(sha256(convert_to(diagnostics_fingerprint.kind || E'\n' || case
    when found > 0 then internal.diagnostics_frames(frames)
    else regexp_replace(regexp_replace(regexp_replace(
      diagnostics_fingerprint.message,
      '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', '#', 'g'),
      '(0x)?[0-9a-fA-F]{8,}', '#', 'g'), '\d+(\.\d+)?', '#', 'g') end, 'UTF8')), 'hex');
end $$;
comment on function internal.diagnostics_fingerprint is
  'The default fingerprint: SHA-256 of the kind and the first five frames, without a frame of the kind and the message,
   in which numbers, UUIDs and hexadecimal strings count as the same.';

create or replace function internal.diagnostics_version_key(version text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  core constant text := substring(diagnostics_version_key.version from '^[0-9]+(?:\.[0-9]+)*');
  rest constant text := substr(diagnostics_version_key.version, length(core) + 1);
  key text := 'v';
  between_parts text := '';
  digits text;
  part text;
begin
  if core is null then
    return 'x' || diagnostics_version_key.version;
  end if;
  foreach part in array string_to_array(regexp_replace(core, '(\.0+)+$', ''), '.') loop
    digits := ltrim(part, '0');
    key := key || '.' || lpad(length(digits)::text, 2, '0') || digits;
  end loop;
  if rest like '-%' then
    key := key || ' 0';
    foreach part in array string_to_array(split_part(substr(rest, 2), '+', 1), '.') loop
      digits := ltrim(part, '0');
      key := key || between_parts
             || case when part ~ '^[0-9]+$' then '0' || lpad(length(digits)::text, 2, '0') || digits
                     else '1' || part end;
      between_parts := E'\x01';
    end loop;
  else
    key := key || ' 1';
  end if;
  digits := ltrim(coalesce(substring(rest from '\+([0-9]+)'), ''), '0');
  return key || E'\x01' || lpad(length(digits)::text, 2, '0') || digits;
end $$;
comment on function internal.diagnostics_version_key is
  'A text that sorts, in collation C, as versions compare: by their numbers, a part after - is older than none, a number
   after + breaks a tie. What does not begin with a number comes after the versions, by its text: x. Null for null.';

create or replace function internal.diagnostics_sums(a jsonb, b jsonb, most int) returns jsonb
language plpgsql immutable parallel safe as $$
declare
  key constant text := jsonb_path_query_first(diagnostics_sums.b, '$.keyvalue().key') #>> '{}';
begin
  -- most batches have one day and one version, which the issue knows: expressions alone, since a query costs more
  if diagnostics_sums.b - key = '{}' and diagnostics_sums.a ? key then
    return diagnostics_sums.a || jsonb_build_object(
      key, (diagnostics_sums.a ->> key)::bigint + (diagnostics_sums.b ->> key)::bigint);
  end if;
  return (
    select coalesce(jsonb_object_agg(s.key, s.n), '{}')
      from (select k.key, sum(k.n) as n
              from (select o.key, o.value::bigint as n, true as is_old from jsonb_each_text(diagnostics_sums.a) o
                    union all
                    select o.key, o.value::bigint, false from jsonb_each_text(diagnostics_sums.b) o) k
             group by k.key
             order by bool_or(k.is_old) desc, k.key
             limit diagnostics_sums.most) s);
end $$;
comment on function internal.diagnostics_sums is
  'The counts of both by their keys; at most so many keys, the former ones first, so that nobody makes a row grow.';

create or replace function internal.diagnostics_recent(days jsonb, today date) returns jsonb
language plpgsql immutable parallel safe as $$
declare
  last constant text := to_char(diagnostics_recent.today - 30, 'YYYY-MM-DD');
begin
  if not jsonb_path_exists(diagnostics_recent.days, '$.keyvalue() ? (@.key <= $last)',
                           jsonb_build_object('last', last)) then
    return diagnostics_recent.days;
  end if;
  return (select coalesce(jsonb_object_agg(d.key, d.value), '{}') from jsonb_each(diagnostics_recent.days) d
           where d.key > last);
end $$;
comment on function internal.diagnostics_recent is 'The counts of the last 30 days.';
