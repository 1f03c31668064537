-- How reports are grouped, and how versions compare. Every expression is linear in the length of its text: stacks are
-- sent by strangers.
create or replace function internal.diagnostics_frame(line text) returns text
language sql immutable parallel safe
return (
  select coalesce(string_agg(regexp_replace(split_part(split_part(t.token, '?', 1), '/', -1), ':\d+', '', 'g'), ' '
                             order by t.n), '')
    from string_to_table(
           translate(regexp_replace(regexp_replace(diagnostics_frame.line, '0x[0-9a-fA-F]+', '', 'g'),
                                    '\s\+ \d+', '', 'g'),
                     E'\\()@\t\r,[]', '/        '), ' ') with ordinality t (token, n)
   where regexp_replace(split_part(split_part(t.token, '?', 1), '/', -1), ':\d+', '', 'g') <> '');
comment on function internal.diagnostics_frame is
  'A frame of a stack without addresses, line and column numbers, query strings, and of each path all but its last
   part.';

create or replace function internal.diagnostics_fingerprint(kind text, message text, stack text) returns text
language sql immutable parallel safe
return (
  select encode(sha256(convert_to(
           concat_ws(E'\n', diagnostics_fingerprint.kind, coalesce(
             string_agg(internal.diagnostics_frame(f.line), E'\n' order by f.n),
             regexp_replace(regexp_replace(regexp_replace(
               diagnostics_fingerprint.message,
               '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', '#', 'g'),
               '(0x)?[0-9a-fA-F]{8,}', '#', 'g'), '\d+(\.\d+)?', '#', 'g'))), 'UTF8')), 'hex')
    from (select l.line, l.n
            from string_to_table(diagnostics_fingerprint.stack, E'\n') with ordinality l (line, n)
           where strpos(l.line, '@') > 0 or l.line ~ '^\s*(at |\d+\s)'
           order by l.n limit 5) f);
comment on function internal.diagnostics_fingerprint is
  'The default fingerprint: SHA-256 of the kind and the first five frames, without a frame of the kind and the message,
   in which numbers, UUIDs and hexadecimal strings count as the same.';

create or replace function internal.diagnostics_version_number(digits text) returns text
language sql immutable parallel safe
return (
  select lpad(length(d.digits)::text, 2, '0') || d.digits
    from ltrim(diagnostics_version_number.digits, '0') d (digits));
comment on function internal.diagnostics_version_number is 'Digits as a text that sorts as their number.';

create or replace function internal.diagnostics_version_key(version text) returns text
language sql immutable parallel safe
return case
  when diagnostics_version_key.version !~ '^[0-9]' then 'x' || diagnostics_version_key.version
  else (
    select 'v' || coalesce((select string_agg('.' || internal.diagnostics_version_number(p.digits), '' order by p.n)
                              from regexp_split_to_table(
                                     regexp_replace(c.core, '(\.0+)+$', ''), '\.') with ordinality p (digits, n)), '')
           || ' '
           || case when c.rest ~ '^-'
                   then '0' || (select string_agg(case when p.part ~ '^[0-9]+$'
                                                       then '0' || internal.diagnostics_version_number(p.part)
                                                       else '1' || p.part end, E'\x01' order by p.n)
                                  from string_to_table(split_part(substr(c.rest, 2), '+', 1), '.')
                                         with ordinality p (part, n))
                   else '1' end
           || E'\x01' || coalesce(internal.diagnostics_version_number(substring(c.rest from '\+([0-9]+)')), '00')
      from (select m.core, substr(diagnostics_version_key.version, length(m.core) + 1) as rest
              from (select substring(diagnostics_version_key.version from '^[0-9]+(?:\.[0-9]+)*') as core) m) c)
end;
comment on function internal.diagnostics_version_key is
  'A text that sorts, in collation C, as versions compare: by their numbers, a part after - is older than none, a number
   after + breaks a tie. What does not begin with a number comes after the versions, by its text: x. Null for null.';

create or replace function internal.diagnostics_sums(a jsonb, b jsonb, most int) returns jsonb
language sql immutable parallel safe
return (
  select coalesce(jsonb_object_agg(s.key, s.n), '{}')
    from (select k.key, sum(k.n) as n
            from (select key, value::bigint as n, true as is_old from jsonb_each_text(diagnostics_sums.a)
                  union all
                  select key, value::bigint, false from jsonb_each_text(diagnostics_sums.b)) k
           group by k.key
           order by bool_or(k.is_old) desc, k.key
           limit diagnostics_sums.most) s);
comment on function internal.diagnostics_sums is
  'The counts of both by their keys; at most so many keys, the former ones first, so that nobody makes a row grow.';

create or replace function internal.diagnostics_recent(days jsonb, today date) returns jsonb
language sql immutable parallel safe
return (select coalesce(jsonb_object_agg(d.key, d.value), '{}') from jsonb_each(diagnostics_recent.days) d
         where d.key > to_char(diagnostics_recent.today - 30, 'YYYY-MM-DD'));
comment on function internal.diagnostics_recent is 'The counts of the last 30 days.';
