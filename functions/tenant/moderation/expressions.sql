-- Regular expressions that developers write. Postgres matches expressions without captures and back-references by a
-- DFA, which it builds lazily: the time is linear in the text, times the size of the automaton. So the syntax is a
-- subset of RE2's, which has no back-references and no lookaround, and the size of the automaton is limited before it
-- is built. The limits are proved by test/moderation/expressions.test.ts, which attacks them.

create or replace function internal.moderation_class(pattern text, inout place int, out translated text,
                                                     out items text[])
language plpgsql immutable as $$
declare
  c text;
  escaped text;
  is_first boolean := true;
begin
  translated := '[';
  items := '{}';
  place := moderation_class.place + 1;
  if substr(moderation_class.pattern, place, 1) = '^' then
    translated := '[^';
    place := place + 1;
  end if;
  loop
    c := substr(moderation_class.pattern, place, 1);
    if c = '' then
      items := null;
      return;
    end if;
    exit when c = ']' and not is_first;
    is_first := false;
    if c = '[' and substr(moderation_class.pattern,
                          place) ~ '^\[:(alpha|digit|alnum|upper|lower|space|punct|xdigit):\]' then
      escaped := substring(substr(moderation_class.pattern, place) from '^\[:[a-z]+:\]');
      place := place + char_length(escaped);
    elsif c = '\' then
      escaped := internal.moderation_escape(moderation_class.pattern, place, true);
      if escaped is null then
        items := null;
        return;
      end if;
      place := place + internal.moderation_escape_length(moderation_class.pattern, place);
    elsif c = '-' then
      -- a range between two characters, or a hyphen
      if translated ~ '^\[\^?$' or substr(moderation_class.pattern, place + 1, 1) in (']', '')
        or translated ~ '\\[dswDSW]$|:\]$|[^\\]-.$' then
        escaped := '\-';
      else
        escaped := '-';
      end if;
      place := place + 1;
    else
      escaped := case when c ~ '[[:alnum:]]' or ascii(c) > 126 then c else '\' || c end;
      if c ~ '\s' and ascii(c) <= 126 then
        escaped := c;
      end if;
      place := place + 1;
    end if;
    translated := translated || escaped;
    items := items || escaped;
  end loop;
  translated := translated || ']';
  place := place + 1;
end $$;
comment on function internal.moderation_class is
  'A bracket expression that begins at place, in the syntax of Postgres, with the number of its items; items is null
   when it is invalid. place then follows it.';

create or replace function internal.moderation_escape_length(pattern text, place int) returns int
language sql immutable parallel safe as $$
  select char_length(coalesce(substring(substr(moderation_escape_length.pattern, moderation_escape_length.place)
                                        from '^\\(?:x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|.)'), '\'))
$$;
comment on function internal.moderation_escape_length is 'The number of characters of an escape.';

create or replace function internal.moderation_escape(pattern text, place int, is_in_class boolean) returns text
language sql immutable parallel safe as $$
  select case
    when e.sent ~ '^\\x' then (
      select case when h.hex is not null and ('x' || lpad(h.hex, 8, '0'))::bit(32)::int between 1 and 1114111
                   and ('x' || lpad(h.hex, 8, '0'))::bit(32)::int not between 55296 and 57343
                  then '\U' || lpad(h.hex, 8, '0') end
        from (select substring(e.sent from '^\\x\{?([0-9A-Fa-f]{1,6})\}?$') as hex) h)
    when e.sent ~ '^\\[dswDSWnrtfv]$' then e.sent
    when e.sent = '\b' and not moderation_escape.is_in_class then '\y'
    when e.sent = '\B' and not moderation_escape.is_in_class then '\Y'
    when e.sent = '\A' and not moderation_escape.is_in_class then '\A'
    when e.sent = '\z' and not moderation_escape.is_in_class then '\Z'
    when e.sent ~ '^\\[^[:alnum:]]$' and ascii(substr(e.sent, 2)) <= 126 then e.sent
  end
    from (select substr(moderation_escape.pattern, moderation_escape.place,
                        internal.moderation_escape_length(moderation_escape.pattern,
                                                          moderation_escape.place)) as sent) e
$$;
comment on function internal.moderation_escape is
  'An escape in the syntax of Postgres; null for one that is not supported, such as a back-reference.';

create or replace function internal.moderation_expression(pattern text, out expression text, out refusal text)
language plpgsql immutable as $$
declare
  -- size of the automaton: positions, parts that may be empty (each adds transitions across it), bracket expressions
  most_positions constant int := 150;
  most_empty constant int := 30;
  most_transitions constant int := 2000;
  most_depth constant int := 20;
  place int := 1;
  length constant int := char_length(moderation_expression.pattern);
  c text;
  made text := '';
  bounds text[];
  least int;
  most int;
  class record;
  escaped text;
  -- the sizes of each open group, and of the atom that a quantifier would repeat: positions, empty parts, classes
  depth int := 0;
  positions numeric[] := array[0];
  empties numeric[] := array[0];
  classes numeric[] := array[0];
  branch_is_empty boolean[] := array[true];
  atom numeric[];
  is_repeatable boolean := false;
  distinct_items text[] := '{}';
begin
  if length not between 1 and 500 then
    refusal := 'must have 1 to 500 characters';
    return;
  elsif moderation_expression.pattern ~ '^\(\?[is]+\)' then
    if moderation_expression.pattern ~ '^\(\?[is]*i' then
      made := '(?i)';
    end if;
    place := char_length(substring(moderation_expression.pattern from '^\(\?[is]+\)')) + 1;
  end if;
  while place <= length loop
    c := substr(moderation_expression.pattern, place, 1);
    bounds := case when c = '{' then regexp_match(substr(moderation_expression.pattern, place),
                                                  '^\{(\d{1,4})(,?)(\d{0,4})\}') end;
    if c in ('*', '+', '?') or bounds is not null then
      if not is_repeatable then
        refusal := 'has a quantifier without anything to repeat, or two at once';
        return;
      end if;
      least := case c when '*' then 0 when '+' then 1 when '?' then 0 else bounds[1]::int end;
      most := case c when '*' then null when '+' then null when '?' then 1
                     else case when bounds[2] = '' then bounds[1]::int when bounds[3] = '' then null
                               else bounds[3]::int end end;
      if least > 200 or most > 200 or most < least then
        refusal := 'repeats at most 200 times, the lower bound first';
        return;
      end if;
      made := made || case when bounds is null then c
                           else '{' || bounds[1] || bounds[2] || case when bounds[2] = '' then ''
                                                                      else bounds[3] end || '}' end;
      place := place + case when bounds is null then 1
                            else char_length(substring(substr(moderation_expression.pattern,
                                                              place) from '^\{[^}]*\}')) end;
      -- greediness does not matter: a text matches or not
      if substr(moderation_expression.pattern, place, 1) = '?' then
        place := place + 1;
      end if;
      atom := array(select a * greatest(coalesce(most, least + 1), 1) from unnest(atom) with ordinality as x (a, n)
                     order by n);
      atom[2] := atom[2] + coalesce(most - least, 1) + case when least = 0 then 1 else 0 end;
      positions[depth + 1] := positions[depth + 1] + atom[1];
      empties[depth + 1] := empties[depth + 1] + atom[2];
      classes[depth + 1] := classes[depth + 1] + atom[3];
      atom := null;
      is_repeatable := false;
    else
      -- the preceding atom is not repeated
      if atom is not null then
        positions[depth + 1] := positions[depth + 1] + atom[1];
        empties[depth + 1] := empties[depth + 1] + atom[2];
        classes[depth + 1] := classes[depth + 1] + atom[3];
        atom := null;
      end if;
      is_repeatable := c not in ('(', '|', '^', '$');
      if c = '(' then
        if substr(moderation_expression.pattern, place) ~ '^\(\?' then
          bounds := regexp_match(substr(moderation_expression.pattern, place),
                                 '^(\(\?:|\(\?P?<[A-Za-z_][A-Za-z0-9_]{0,31}>)');
          if bounds is null then
            refusal := 'has a group that is not supported: lookaround, or flags other than (?i) and (?s) at the '
                       'beginning';
            return;
          end if;
          place := place + char_length(bounds[1]);
        else
          place := place + 1;
        end if;
        depth := depth + 1;
        if depth > most_depth then
          refusal := 'has more than 20 groups in each other';
          return;
        end if;
        positions[depth + 1] := 0;
        empties[depth + 1] := 0;
        classes[depth + 1] := 0;
        branch_is_empty[depth + 1] := true;
        made := made || '(?:';
        continue;
      elsif c = ')' then
        if depth = 0 then
          refusal := 'has a ) without a (';
          return;
        end if;
        atom := array[positions[depth + 1], empties[depth + 1] + case when branch_is_empty[depth + 1] then 1 else 0 end,
                      classes[depth + 1]];
        depth := depth - 1;
        branch_is_empty[depth + 1] := false;
        made := made || ')';
        place := place + 1;
      elsif c = '|' then
        if branch_is_empty[depth + 1] then
          empties[depth + 1] := empties[depth + 1] + 1;
        end if;
        branch_is_empty[depth + 1] := true;
        made := made || '|';
        place := place + 1;
      elsif c = '[' then
        class := internal.moderation_class(moderation_expression.pattern, place);
        if class.items is null then
          refusal := 'has a bracket expression that does not end, or an escape in it that is not supported';
          return;
        end if;
        made := made || class.translated;
        place := class.place;
        atom := array[1, 0, 1];
        distinct_items := distinct_items || class.items;
        branch_is_empty[depth + 1] := false;
      elsif c = '\' then
        escaped := internal.moderation_escape(moderation_expression.pattern, place, false);
        if escaped is null then
          refusal := 'has an escape that is not supported, such as a back-reference';
          return;
        end if;
        place := place + internal.moderation_escape_length(moderation_expression.pattern, place);
        made := made || escaped;
        is_repeatable := escaped !~ '^\\[yYAZ]$';
        atom := case when escaped ~ '^\\[yYAZ]$' then array[0, 1, 0] when escaped ~ '^\\[dswDSW]$' then array[1, 0, 1]
                     else array[1, 0, 0] end;
        distinct_items := distinct_items || escaped;
        branch_is_empty[depth + 1] := false;
      elsif c in ('^', '$') then
        made := made || case c when '^' then '\A' else '\Z' end;
        place := place + 1;
        atom := array[0, 1, 0];
        branch_is_empty[depth + 1] := false;
      else
        made := made || case when c = '.' and moderation_expression.pattern ~ '^\(\?[is]*s' then '.'
                             when c = '.' then '[^\n]'
                             when c ~ '[[:alnum:]\s]' or ascii(c) > 126 then c
                             else '\' || c end;
        place := place + 1;
        atom := array[1, 0, case c when '.' then 1 else 0 end];
        if c <> '.' then
          distinct_items := distinct_items || c;
        end if;
        branch_is_empty[depth + 1] := false;
      end if;
    end if;
    if positions[depth + 1] > most_positions or empties[depth + 1] > most_empty then
      exit;
    end if;
  end loop;
  if atom is not null then
    positions[depth + 1] := positions[depth + 1] + atom[1];
    empties[depth + 1] := empties[depth + 1] + atom[2];
    classes[depth + 1] := classes[depth + 1] + atom[3];
  end if;
  if positions[depth + 1] > most_positions then
    refusal := 'must match at most 150 characters, each repetition counted';
  elsif empties[depth + 1] > most_empty then
    refusal := 'must have at most 30 optional parts and assertions, each repetition counted';
  elsif depth > 0 then
    refusal := 'has a ( without a )';
  elsif positions[1] + classes[1] * (2 + cardinality(array(select distinct d
                                                             from unnest(distinct_items) d))) > most_transitions then
    refusal := 'has too many bracket expressions for so many different characters';
  else
    -- the remaining invalid ranges: from a later character to an earlier one, or from a class
    begin
      perform '' ~ made;
      expression := made;
    exception when invalid_regular_expression then
      refusal := 'is not a regular expression';
    end;
  end if;
end $$;
comment on function internal.moderation_expression is
  'Translates a regular expression of RE2''s syntax (no back-references, no lookaround) to the syntax of Postgres,
   without captures; or returns the problem. The size of its automaton is limited: 150 positions, 30 parts that may be
   empty, 2,000 transitions, each repetition counted.';
