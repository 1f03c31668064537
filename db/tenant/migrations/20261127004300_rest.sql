-- migrate:up
create schema rest;
comment on schema rest is
  'What PostgREST serves: a view of each collection. Views and functions that a DBA adds here, granted to app_rest,
   app_server or app_anon, are served too.';

create table app.rest_access (
  id          boolean primary key default true constraint rest_access_one_row check (id),
  generator   int not null,
  prepared_at timestamptz not null default internal.now()
);
comment on table app.rest_access is
  'One row once the REST access of this project has been used: from then on the views in schema rest follow the
   collections. generator is the version of internal.rest_view_sql that made them.';

create schema rest_answers;
comment on schema rest_answers is
  'What PostgREST collects its answers with, by names without a schema: json_agg and string_agg of at most 8 MB, because
   PostgREST holds an answer in memory several times, and what exceeds its memory ends it for every user of the project;
   sum and avg of doubles that do not fail.';

-- Postgres copies the state of an aggregate for each row, unless it is one of its own: so the state is a short text,
-- and what is full stands in settings of the transaction, rest_answers.of_<number>_1, _2 ... The state begins with a
-- line of its number, how many parts were put away, and their bytes. It is cut by right(), which counts letters no
-- further than it cuts.
create function rest_answers.put_away(state text) returns text
language plpgsql volatile as $$
declare
  most constant int := 8388608;
  head constant text := split_part(put_away.state, E'\n', 1);
  part constant text := pg_catalog.right(put_away.state, -pg_catalog.length(head) - 1);
  number text := split_part(head, ' ', 1);
  count constant int := split_part(head, ' ', 2)::int + 1;
  bytes constant int := split_part(head, ' ', 3)::int + pg_catalog.octet_length(part);
begin
  if bytes > most then
    perform internal.fail(400, 'RESPONSE_TOO_LARGE',
                          'The response would have more than 8 MB: ask for fewer rows (limit) or columns (select).');
  end if;
  if count = 1 then
    number := coalesce(nullif(current_setting('rest_answers.last', true), ''), '0')::int + 1;
    perform set_config('rest_answers.last', number, true);
  end if;
  perform set_config('rest_answers.of_' || number || '_' || count, part, true);
  return number || ' ' || count || ' ' || bytes || E'\n';
end $$;
comment on function rest_answers.put_away is
  'Puts what a state holds away. Refuses 400 RESPONSE_TOO_LARGE above 8 MB in all.';

create function rest_answers.add(state text, r anyelement) returns text
language plpgsql volatile as $$
begin
  if pg_catalog.octet_length(add.state) > 32768 then
    state := rest_answers.put_away(add.state);
  end if;
  return add.state || ', ' || coalesce(pg_catalog.to_json(add.r)::text, 'null');
end $$;
comment on function rest_answers.add is 'Adds a row to an answer. Refuses 400 RESPONSE_TOO_LARGE above 8 MB.';

create function rest_answers.add_nothing(state text, r anyelement) returns text
language sql volatile as $$
  select add_nothing.state || ', null'
$$;
comment on function rest_answers.add_nothing is
  'Adds what a function without a result returns to an answer. PL/pgSQL takes no argument of type void.';

create function rest_answers.add_line(state text, line text, delimiter text) returns text
language plpgsql volatile as $$
begin
  if add_line.line is null then
    return add_line.state;
  elsif add_line.state is null then
    return E'0 0 0\n' || add_line.line;
  elsif pg_catalog.octet_length(add_line.state) > 32768 then
    state := rest_answers.put_away(add_line.state);
  end if;
  return add_line.state || coalesce(add_line.delimiter, '') || add_line.line;
end $$;
comment on function rest_answers.add_line is 'Adds a line to an answer. Refuses 400 RESPONSE_TOO_LARGE above 8 MB.';

create function rest_answers.as_text(state text) returns text
language plpgsql volatile strict as $$
begin
  -- most answers have put nothing away
  if pg_catalog.octet_length(as_text.state) <= 32768 and pg_catalog.starts_with(as_text.state, E'0 0 0\n') then
    return pg_catalog.right(as_text.state, -6);
  end if;
  state := rest_answers.put_away(as_text.state);
  return (select pg_catalog.string_agg(current_setting('rest_answers.of_' || split_part(as_text.state, ' ', 1)
                                                       || '_' || n), '' order by n)
            from pg_catalog.generate_series(1, split_part(as_text.state, ' ', 2)::int) as n);
end $$;
comment on function rest_answers.as_text is 'The collected lines with their delimiter; null of none.';

create function rest_answers.as_json(state text) returns json
language plpgsql volatile as $$
begin
  -- without the comma before the first row
  return case when as_json.state <> E'0 0 0\n'
              then ('[' || pg_catalog.right(rest_answers.as_text(as_json.state), -2) || ']')::json end;
end $$;
comment on function rest_answers.as_json is 'The list of the collected rows, as json_agg makes it; null of none.';

create aggregate rest_answers.json_agg(anyelement) (sfunc = rest_answers.add, stype = text, initcond = E'0 0 0\n',
                                                    finalfunc = rest_answers.as_json);
comment on aggregate rest_answers.json_agg(anyelement) is 'As json_agg, of at most 8 MB.';

create aggregate rest_answers.json_agg(void) (sfunc = rest_answers.add_nothing, stype = text, initcond = E'0 0 0\n',
                                              finalfunc = rest_answers.as_json);
comment on aggregate rest_answers.json_agg(void) is 'As json_agg, of calls that return void: a null for each.';

create aggregate rest_answers.string_agg(text, text) (sfunc = rest_answers.add_line, stype = text,
                                                      finalfunc = rest_answers.as_text);
comment on aggregate rest_answers.string_agg(text, text) is 'As string_agg, of at most 8 MB.';

-- The sum and the average of Postgres raise when they overflow: the row of one user would fail them for all. Sums are
-- kept divided by 2^64, which changes no digit, so that no number of rows overflows them.
create function rest_answers.add_double(state float8, x float8) returns float8
language plpgsql immutable as $$
begin
  return case when add_double.x is null then add_double.state
              else coalesce(add_double.state, 0) + add_double.x * 5.421010862427522e-20 end;
end $$;
comment on function rest_answers.add_double is 'Adds a double to a sum that is kept divided by 2^64.';

create function rest_answers.undivided(state float8) returns float8
language plpgsql immutable as $$
begin
  return case when pg_catalog.abs(undivided.state) < 9.745314011399998e+288 then undivided.state * 18446744073709551616
              else pg_catalog.sign(undivided.state) * 'Infinity'::float8 end;
end $$;
comment on function rest_answers.undivided is 'The sum itself: Infinity, of its sign, beyond what a double holds.';

create function rest_answers.count_double(state float8[], x float8) returns float8[]
language plpgsql immutable as $$
begin
  return case when count_double.x is null then count_double.state
              else array[rest_answers.add_double(count_double.state[1], count_double.x), count_double.state[2] + 1] end;
end $$;
comment on function rest_answers.count_double is 'Adds a double to a sum that is kept divided by 2^64, and counts it.';

create function rest_answers.mean(state float8[]) returns float8
language plpgsql immutable as $$
begin
  return case when mean.state[2] > 0 then rest_answers.undivided(mean.state[1] / mean.state[2]) end;
end $$;
comment on function rest_answers.mean is 'The average of the counted doubles; null of none.';

create aggregate rest_answers.sum(float8) (sfunc = rest_answers.add_double, stype = float8,
                                           finalfunc = rest_answers.undivided);
comment on aggregate rest_answers.sum(float8) is 'As sum of doubles; Infinity in place of an error.';

create aggregate rest_answers.avg(float8) (sfunc = rest_answers.count_double, stype = float8[], initcond = '{0,0}',
                                           finalfunc = rest_answers.mean);
comment on aggregate rest_answers.avg(float8) is 'As avg of doubles, of any size.';

revoke execute on all functions in schema rest_answers from public;

-- migrate:down
drop aggregate rest_answers.avg(float8);
drop aggregate rest_answers.sum(float8);
drop function rest_answers.mean(float8[]);
drop function rest_answers.count_double(float8[], float8);
drop function rest_answers.undivided(float8);
drop function rest_answers.add_double(float8, float8);
drop aggregate rest_answers.string_agg(text, text);
drop aggregate rest_answers.json_agg(void);
drop aggregate rest_answers.json_agg(anyelement);
drop function rest_answers.as_json(text);
drop function rest_answers.as_text(text);
drop function rest_answers.add_line(text, text, text);
drop function rest_answers.add_nothing(text, anyelement);
drop function rest_answers.add(text, anyelement);
drop function rest_answers.put_away(text);
drop schema rest_answers;
drop table app.rest_access;
drop schema rest;
