-- The filter grammar: leaves {column, op, value} in nodes {and: [..]}, {or: [..]}, {not: ..}. This file validates
-- filters, and evaluates them on one row; docs/filters.md is the guide for app developers. Unknown is null, as in SQL.
-- No input of a caller may raise an error: validation refuses an invalid filter, and evaluation treats it as no match.

create or replace function internal.is_storable_json(value json) returns boolean
language plpgsql immutable parallel safe as $$
declare
  text constant text := is_storable_json.value::text;
  escapes text;
  bare text;
begin
  -- fast path for nearly every value: no escaped character, no long number, too few brackets to nest deeply. A number
  -- follows a bracket, a comma, a colon or a space; without this condition every second uuid would look like one.
  if text is null
     or text !~ '\\u|[0-9]{255}|(^|[[:space:]:,[])-?[0-9.]+[eE][+-]?[0-9]{4}'
        and (length(text) <= 2000 or length(text) - length(translate(text, '[{', '')) <= 1000) then
    return true;
  end if;

  -- removes escaped backslashes, then whole surrogate pairs: the rest must not contain half a pair
  escapes := replace(text, '\\', '/');
  if escapes ~ '\\u0000'
     or regexp_replace(escapes, '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', ' ',
                       'g') ~ '\\u[dD][89a-fA-F]' then
    return false;
  end if;

  bare := regexp_replace(text, '"([^"\\]|\\.)*"', '', 'g');
  if exists (
    -- numeric has room for 131072 digits before the point and 16383 after it
    select from regexp_matches(bare, '([0-9]+)\.?([0-9]*)[eE]?([+-]?)0*([0-9]*)', 'g') as number (part)
     where length(part[4]) > 6
        or length(part[1]) + (part[3] || '0' || part[4])::int > 131072
        or length(part[2]) - (part[3] || '0' || part[4])::int > 16383
  ) then
    return false;
  end if;

  bare := regexp_replace(bare, '[^][{}]+', '', 'g');
  return length(bare) <= 2000
      or 1000 >= (
           select max(nesting.depth)
             from (select sum(case when bracket.symbol in ('[', '{') then 1
                                   else -1 end) over (order by bracket.n) as depth
                     from string_to_table(bare, null) with ordinality as bracket (symbol, n)) as nesting
         );
end $$;
comment on function internal.is_storable_json is
  'Whether a cast to jsonb succeeds, which does not accept U+0000, half a surrogate pair or a number beyond numeric.
   Nesting deeper than 1000 is false too. For json that has not been cast yet; the cast itself would raise.';

create or replace function internal.json_gain(value text) returns int
language sql immutable parallel safe as $$
  select coalesce(sum(greatest(0, octet_length(n.part[1]::numeric::text) - octet_length(n.part[1]))), 0)::int
    from regexp_matches(regexp_replace(json_gain.value, '"([^"\\]|\\.)*"', '""', 'g'), '(-?[0-9.]+[eE][+-]?[0-9]+)',
                        'g') as n (part)
$$;
comment on function internal.json_gain is
  'The bytes by which the numbers of JSON text grow when jsonb writes them without exponents.';

-- without a subquery, so that Postgres inlines it
create or replace function internal.json_size(value text) returns int
language sql immutable parallel safe
return case
  -- only an exponent makes a number longer; a text of 96 bytes cannot grow beyond any limit
  when octet_length(json_size.value) <= 96 or json_size.value !~ '[0-9][eE]' then octet_length(json_size.value)
  else octet_length(json_size.value) + internal.json_gain(json_size.value)
end;
comment on function internal.json_size is
  'The bytes of JSON text with its numbers as jsonb writes them, 1e999 with a thousand digits: the size that limits of
   stored JSON count. Raises for a number that numeric cannot hold: call is_storable_json first.';

create or replace function internal.filter_compare(actual jsonb, op text, value jsonb) returns boolean
language plpgsql immutable parallel safe as $$
declare
  kind constant text := coalesce(jsonb_typeof(filter_compare.actual), 'null');
  value_kind constant text := jsonb_typeof(filter_compare.value);
  actual_text text;
  value_text text;
begin
  case filter_compare.op
    when 'is_null' then return kind = 'null';
    when 'is_not_null' then return kind <> 'null';
    when 'in' then return internal.filter_is_listed(filter_compare.actual, filter_compare.value);
    when 'not_in' then return not internal.filter_is_listed(filter_compare.actual, filter_compare.value);
    else null;
  end case;

  if value_kind = 'null' then
    return case filter_compare.op when 'eq' then kind = 'null' when 'ne' then kind <> 'null' end;
  end if;
  if kind = 'null' or value_kind is null then
    return null;
  end if;

  case
    -- jsonb compares numbers as numeric and strings byte by byte; values of two types are never equal
    when filter_compare.op = 'eq' then return filter_compare.actual = filter_compare.value;
    when filter_compare.op = 'ne' then return filter_compare.actual <> filter_compare.value;

    when filter_compare.op in ('gt', 'gte', 'lt', 'lte') and kind = 'number' and value_kind = 'number' then
      return case filter_compare.op
        when 'gt' then filter_compare.actual > filter_compare.value
        when 'gte' then filter_compare.actual >= filter_compare.value
        when 'lt' then filter_compare.actual < filter_compare.value
        else filter_compare.actual <= filter_compare.value
      end;

    when filter_compare.op in ('gt', 'gte', 'lt', 'lte', 'like', 'ilike') and kind = 'string'
      and value_kind = 'string' then
      actual_text := filter_compare.actual #>> '{}';
      value_text := filter_compare.value #>> '{}';
      -- jsonb orders strings by the database's collation; code points are the same everywhere
      return case filter_compare.op
        when 'gt' then actual_text collate "C" > value_text
        when 'gte' then actual_text collate "C" >= value_text
        when 'lt' then actual_text collate "C" < value_text
        when 'lte' then actual_text collate "C" <= value_text
        else internal.filter_is_like(actual_text, value_text, filter_compare.op = 'ilike')
      end;

    -- a null in an array equals nothing, as in SQL's arrays
    when filter_compare.op = 'contains' and kind in ('array', 'object') then
      return filter_compare.actual @> filter_compare.value
         and not (value_kind = 'array' and filter_compare.value @> 'null');
    when filter_compare.op in ('contained_by', 'containedBy') and kind = 'array' and value_kind = 'array' then
      return filter_compare.value @> filter_compare.actual
         and not filter_compare.actual @> 'null';
    when filter_compare.op = 'overlaps' and kind = 'array' and value_kind = 'array' then
      return exists (
        select from jsonb_array_elements(filter_compare.value) as wanted (element)
         where filter_compare.actual @> jsonb_build_array(wanted.element)
           and wanted.element <> 'null'
      );

    else return null;
  end case;
end $$;
comment on function internal.filter_compare is
  'Evaluates one leaf on a value: true, false, or null for unknown: a missing value, an order between two types, or an
   operator that does not exist or does not suit the value. actual is null when the property is missing.';

create or replace function internal.filter_is_listed(actual jsonb, list jsonb) returns boolean
language plpgsql immutable parallel safe as $$
declare
  kind constant text := coalesce(jsonb_typeof(filter_is_listed.actual), 'null');
  is_listed boolean;
begin
  if jsonb_typeof(filter_is_listed.list) is distinct from 'array' then
    return null;
  end if;
  if jsonb_array_length(filter_is_listed.list) = 0 then
    return false;
  end if;
  if kind = 'null' then
    return null;
  end if;
  if kind in ('array', 'object') then
    is_listed := exists (
      select from jsonb_array_elements(filter_is_listed.list) as listed (element)
       where listed.element = filter_is_listed.actual
    );
  else
    -- an array contains a scalar when it is one of its elements
    is_listed := filter_is_listed.list @> filter_is_listed.actual;
  end if;
  return case
    when is_listed then true
    when filter_is_listed.list @> 'null' then null
    else false
  end;
end $$;
comment on function internal.filter_is_listed is
  'SQL''s in: false for an empty list, null for a missing value, and null instead of false when the list holds a null.';

create or replace function internal.filter_is_like(value text, pattern text, ignore_case boolean) returns boolean
language plpgsql immutable parallel safe as $$
declare
  sound_pattern text := filter_is_like.pattern;
begin
  -- like recurses at each %, and would exhaust the stack on thousands of them
  if length(sound_pattern) - length(replace(sound_pattern, '%', '')) > 100 then
    return null;
  end if;
  -- a backslash that escapes nothing would raise an error: it is taken literally
  if (length(sound_pattern) - length(rtrim(sound_pattern, '\'))) % 2 = 1 then
    sound_pattern := sound_pattern || '\';
  end if;
  if filter_is_like.ignore_case then
    return filter_is_like.value ilike sound_pattern;
  end if;
  return filter_is_like.value like sound_pattern;
end $$;
comment on function internal.filter_is_like is
  'like and ilike with %, _ and backslash, which never raise; null for a pattern of more than 100 %. Case folding is the
   database''s.';

create or replace function internal.filter_truth(filter jsonb, "row" jsonb, depth int default 1) returns boolean
language plpgsql immutable parallel safe as $$
declare
  col constant text := filter_truth.filter ->> 'column';
  parts jsonb;
  is_and boolean;
  truth boolean;
  outcome boolean;
begin
  if col <> '' then
    return internal.filter_compare(
      -- a property whose name contains dots takes precedence over the path
      coalesce(filter_truth."row" -> col, filter_truth."row" #> string_to_array(col, '.')),
      filter_truth.filter ->> 'op',
      filter_truth.filter -> 'value');
  end if;

  if filter_truth.depth > 8 then
    return null;
  end if;
  if filter_truth.filter ? 'not' then
    return not internal.filter_truth(filter_truth.filter -> 'not', filter_truth."row", filter_truth.depth + 1);
  end if;

  is_and := filter_truth.filter ? 'and';
  parts := coalesce(filter_truth.filter -> 'and', filter_truth.filter -> 'or');
  if jsonb_typeof(parts) is distinct from 'array' then
    return null;
  end if;
  outcome := is_and;
  for i in 0 .. jsonb_array_length(parts) - 1 loop
    truth := internal.filter_truth(parts -> i, filter_truth."row", filter_truth.depth + 1);
    if truth is null then
      outcome := null;
    elsif truth <> is_and then
      -- short circuit: one false decides an and, one true decides an or
      return truth;
    end if;
  end loop;
  return outcome;
end $$;
comment on function internal.filter_truth is
  'Evaluates a filter on one row in three values: true, false, null for unknown. For stored jsonb, where unknown counts
   as no match: where internal.filter_truth(w.filter, e.properties). depth is for its own recursion, at most 8 levels.';

create or replace function internal.filter_matches(filter json, "row" json) returns boolean
language plpgsql immutable parallel safe as $$
begin
  if not internal.is_storable_json(filter_matches.filter) or not internal.is_storable_json(filter_matches."row") then
    return false;
  end if;
  return coalesce(internal.filter_truth(filter_matches.filter::jsonb, filter_matches."row"::jsonb), false);
end $$;
comment on function internal.filter_matches is
  'Whether a row matches a filter; false for unknown, an invalid filter and no filter. Never raises. For jsonb,
   internal.filter_truth saves the casts.';

create or replace function internal.json_elements_exceed(value jsonb, most int) returns boolean
language sql immutable parallel safe
-- not by jsonb_path_query, whose time is quadratic in its result; the root does not count as an element
return (
  with recursive node as (
    select json_elements_exceed.value as value
    union all
    select e.value
      from node n
     cross join lateral (
       select a.value from jsonb_array_elements(case jsonb_typeof(n.value) when 'array' then n.value else '[]' end) a
       union all
       select o.value from jsonb_each(case jsonb_typeof(n.value) when 'object' then n.value else '{}' end) o) e
  )
  select count(*) > json_elements_exceed.most + 1 from (select from node limit json_elements_exceed.most + 2) counted);
comment on function internal.json_elements_exceed is
  'Whether a list or an object has more than this number of elements, including nested ones. Containment costs the
   product of both sides'' elements at each row.';

create or replace function internal.filter_leaf_problem(leaf jsonb, out path text, out reason text)
language plpgsql immutable parallel safe as $$
declare
  op constant text := filter_leaf_problem.leaf ->> 'op';
  value constant jsonb := filter_leaf_problem.leaf -> 'value';
  kind constant text := jsonb_typeof(value);
begin
  path := 'column';
  if coalesce(jsonb_typeof(filter_leaf_problem.leaf -> 'column'), '') <> 'string' then
    reason := 'must be a string';
  elsif char_length(filter_leaf_problem.leaf ->> 'column') not between 1 and 255 then
    reason := 'must have 1 to 255 characters';
  end if;
  if reason is not null then
    return;
  end if;

  path := 'op';
  if op is null
     or op not in ('eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in', 'like', 'ilike', 'is_null', 'is_not_null',
                   'contains',
                   'contained_by', 'containedBy', 'overlaps') then
    reason := 'must be one of eq, ne, gt, gte, lt, lte, in, not_in, like, ilike, is_null, is_not_null, contains, '
           || 'contained_by, overlaps';
    return;
  end if;

  path := 'value';
  reason := case
    when op in ('is_null', 'is_not_null') then case when kind <> 'null' then 'must be left out' end
    when kind is null then 'is required'
    when op in ('in', 'not_in', 'contained_by', 'containedBy', 'overlaps') and kind <> 'array' then 'must be an array'
    when op in ('gt', 'gte', 'lt', 'lte') and kind not in ('string', 'number') then 'must be a string or a number'
    when op = 'contains' and kind = 'null' then 'must not be null'
    when op in ('like', 'ilike') and kind <> 'string' then 'must be a string'
    when kind in ('array', 'object') and internal.json_elements_exceed(value, 1000)
      then 'must have at most 1000 elements, those of nested lists and objects included'
    when op in ('like', 'ilike') and length(value #>> '{}') - length(replace(value #>> '{}', '%', '')) > 100
      then 'must have at most 100 %'
    -- ilike folds the case of its pattern at every row
    when op in ('like', 'ilike') and char_length(value #>> '{}') > 1000 then 'must have at most 1000 characters'
  end;
  if reason is null then
    path := null;
  end if;
end $$;
comment on function internal.filter_leaf_problem is
  'The problem of {column, op, value}, and the field that has it; nulls when it is valid. Other keys are ignored.';

create or replace function internal.filter_node_problem(
  node jsonb, place text, depth int, inout leaves int, out path text, out reason text)
language plpgsql immutable parallel safe as $$
declare
  shape text;
  parts jsonb;
  stray text;
begin
  path := filter_node_problem.place;
  if coalesce(jsonb_typeof(filter_node_problem.node), '') <> 'object' then
    reason := 'must be an object';
    return;
  end if;

  shape := case
    when filter_node_problem.node ? 'and' then 'and'
    when filter_node_problem.node ? 'or' then 'or'
    when filter_node_problem.node ? 'not' then 'not'
    when filter_node_problem.node ?| array['column', 'op', 'value'] then 'leaf'
  end;
  if shape is null then
    reason := 'must be {column, op, value}, {and: [..]}, {or: [..]} or {not: ..}';
    return;
  end if;
  select e.key into stray
    from jsonb_object_keys(filter_node_problem.node) as e (key)
   where e.key <> shape
     and not (shape = 'leaf' and e.key in ('column', 'op', 'value'))
   limit 1;
  if stray is not null then
    reason := case when shape = 'leaf' then 'must have no keys but column, op and value'
                   else 'must have no key beside ' || shape end;
    return;
  end if;

  if shape = 'leaf' then
    leaves := filter_node_problem.leaves + 1;
    if leaves > 50 then
      reason := 'is the 51st condition, at most 50 are allowed';
      return;
    end if;
    select concat_ws('.', nullif(filter_node_problem.place, ''), p.path), p.reason into path, reason
      from internal.filter_leaf_problem(filter_node_problem.node) p;
    return;
  end if;

  if filter_node_problem.depth > 8 then
    reason := 'nests too deeply, at most 8 levels are allowed';
    return;
  end if;
  path := concat_ws('.', nullif(filter_node_problem.place, ''), shape);
  parts := filter_node_problem.node -> shape;
  if shape = 'not' then
    select p.leaves, p.path, p.reason into leaves, path, reason
      from internal.filter_node_problem(parts, path, filter_node_problem.depth + 1, leaves) p;
    return;
  end if;
  if jsonb_typeof(parts) <> 'array' then
    reason := 'must be an array';
    return;
  end if;
  shape := path;
  for i in 0 .. jsonb_array_length(parts) - 1 loop
    select p.leaves, p.path, p.reason into leaves, path, reason
      from internal.filter_node_problem(parts -> i, shape || '[' || i || ']', filter_node_problem.depth + 1, leaves) p;
    exit when reason is not null;
  end loop;
end $$;
comment on function internal.filter_node_problem is
  'The first problem of a filter''s node in document order. place is the path of the node, depth counts the enclosing
   nodes from 1, leaves the conditions so far. Part of internal.filter_check.';

create or replace function internal.filter_check(filter json, out path text, out reason text)
language plpgsql immutable parallel safe as $$
begin
  if not internal.is_storable_json(filter_check.filter) then
    path := '';
    reason := 'holds a character or a number that cannot be stored, or nests too deeply';
    return;
  end if;
  select p.path, p.reason into path, reason
    from internal.filter_node_problem(filter_check.filter::jsonb, '', 1, 0) p;
  if reason is null then
    -- limits the work at every row: fifty lists of a thousand would be searched
    if octet_length(filter_check.filter::text) > 10000
      and internal.json_elements_exceed(filter_check.filter::jsonb, 5000) then
      path := '';
      reason := 'must have at most 5000 elements in all, those of its values included';
    else
      path := null;
    end if;
  end if;
end $$;
comment on function internal.filter_check is
  'The first problem of a filter: path such as and[1].value, empty for the filter itself, and a short reason. Both are
   null when it is valid. At most 8 levels of and, or and not, 50 conditions, 1,000 elements in a value, and 5,000 in
   all. Null is not a filter.';

create or replace function internal.filter_problem(filter json) returns text
language sql immutable parallel safe as $$
  select case when octet_length(filter_problem.filter::text) > 65536 then 'must have at most 64 KB'
              else (select concat_ws(': ', nullif(c.path, ''), c.reason)
                      from internal.filter_check(filter_problem.filter) c
                     where c.reason is not null) end
$$;
comment on function internal.filter_problem is
  'The problem of a filter, for internal.invalid: "and[1].value: must be an array". Null when it is valid. A stored
   filter has at most 64 KB, so that lists of entities with filters stay readable.';
