-- migrate:up
create schema rest;
comment on schema rest is
  'What PostgREST serves: a view of each collection. Views that a DBA adds here, granted to app_rest or app_server, are
   served too.';

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
  'What PostgREST collects its answers with: json_agg and string_agg, which its statements name without a schema, of at
   most 8 MB. PostgREST holds an answer in memory several times, and what exceeds its memory ends it for every user of
   the project.';

-- Postgres copies the state of an aggregate for each row, unless it is one of its own: so the state is short, and what
-- is full stands in settings of the transaction, <name>_1, <name>_2 ...
create type rest_answers.collected as (name text, count int, bytes int, tail text);
comment on type rest_answers.collected is
  'The state of an answer: the last part, and the name, number and size of the parts before it.';

create function rest_answers.add_part(state rest_answers.collected, part text, first text, delimiter text)
returns rest_answers.collected
language plpgsql volatile as $$
declare
  most constant int := 8388608;
begin
  if state.tail is null then
    state := row(null, 0, 0, add_part.first);
  elsif pg_catalog.octet_length(state.tail) < 16384 then
    state.tail := state.tail || add_part.delimiter;
  else
    if state.name is null then
      state.name := 'rest_answers.of_' || (coalesce(nullif(current_setting('rest_answers.last', true), ''),
                                                    '0')::int + 1);
      perform set_config('rest_answers.last', pg_catalog.substr(state.name, 17), true);
    end if;
    state.count := state.count + 1;
    state.bytes := state.bytes + pg_catalog.octet_length(state.tail);
    perform set_config(state.name || '_' || state.count, state.tail, true);
    state.tail := add_part.delimiter;
  end if;
  if state.bytes + pg_catalog.octet_length(state.tail) + pg_catalog.octet_length(add_part.part) > most then
    perform internal.fail(400, 'RESPONSE_TOO_LARGE',
                          'The response would have more than 8 MB: ask for fewer rows (limit) or columns (select).');
  end if;
  state.tail := state.tail || add_part.part;
  return state;
end $$;
comment on function rest_answers.add_part is 'Adds a part to an answer. Refuses 400 RESPONSE_TOO_LARGE above 8 MB.';

create function rest_answers.add(state rest_answers.collected, r anyelement) returns rest_answers.collected
language plpgsql volatile as $$
begin
  return rest_answers.add_part(add.state, coalesce(pg_catalog.to_json(add.r)::text, 'null'), '[', ', ');
end $$;
comment on function rest_answers.add is 'Adds a row to an answer. Refuses 400 RESPONSE_TOO_LARGE above 8 MB.';

create function rest_answers.add_line(state rest_answers.collected, line text, delimiter text)
returns rest_answers.collected
language plpgsql volatile as $$
begin
  return case when add_line.line is null then add_line.state
              else rest_answers.add_part(add_line.state, add_line.line, '', coalesce(add_line.delimiter, '')) end;
end $$;
comment on function rest_answers.add_line is 'Adds a line to an answer. Refuses 400 RESPONSE_TOO_LARGE above 8 MB.';

create function rest_answers.as_text(state rest_answers.collected) returns text
language sql volatile
return case when (as_text.state).tail is not null
            then (select coalesce(pg_catalog.string_agg(current_setting((as_text.state).name || '_' || n),
                                                        '' order by n), '')
                    from pg_catalog.generate_series(1, (as_text.state).count) as n) || (as_text.state).tail end;
comment on function rest_answers.as_text is 'The collected lines with their delimiter; null of none.';

create function rest_answers.as_json(state rest_answers.collected) returns json
language sql volatile
return (rest_answers.as_text(as_json.state) || ']')::json;
comment on function rest_answers.as_json is 'The list of the collected rows, as json_agg makes it; null of none.';

create aggregate rest_answers.json_agg(anyelement) (sfunc = rest_answers.add, stype = rest_answers.collected,
                                                    finalfunc = rest_answers.as_json);
comment on aggregate rest_answers.json_agg(anyelement) is 'As json_agg, of at most 8 MB.';

create aggregate rest_answers.string_agg(text, text) (sfunc = rest_answers.add_line, stype = rest_answers.collected,
                                                      finalfunc = rest_answers.as_text);
comment on aggregate rest_answers.string_agg(text, text) is 'As string_agg, of at most 8 MB.';

revoke execute on all functions in schema rest_answers from public;

-- migrate:down
drop aggregate rest_answers.string_agg(text, text);
drop aggregate rest_answers.json_agg(anyelement);
drop function rest_answers.as_json(rest_answers.collected);
drop function rest_answers.as_text(rest_answers.collected);
drop function rest_answers.add_line(rest_answers.collected, text, text);
drop function rest_answers.add(rest_answers.collected, anyelement);
drop function rest_answers.add_part(rest_answers.collected, text, text, text);
drop type rest_answers.collected;
drop schema rest_answers;
drop table app.rest_access;
drop schema rest;
