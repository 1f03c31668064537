-- Exports: each call returns a batch of at most 500 rows and 8 MB as the lines that the client gets, and the cursor of
-- the next batch. The server streams the lines without reading them (server/http/stream.ts).

create or replace function internal.export_time(value text, code text) returns timestamptz
language plpgsql stable as $$
begin
  if export_time.value is not null and internal.as_time(export_time.value) is null then
    perform internal.invalid(case export_time.code when 'INVALID_SINCE' then 'since' else 'until' end,
                             'must be an ISO 8601 time', export_time.code);
  end if;
  return internal.as_time(export_time.value);
end $$;
comment on function internal.export_time is 'A time bound of an export, or null. Refuses 400 with the given code.';

create or replace function internal.csv_quoted(value text) returns text
language sql immutable parallel safe
return case when csv_quoted.value ~ '[",\r\n]' then '"' || replace(csv_quoted.value, '"', '""') || '"'
            else csv_quoted.value end;
comment on function internal.csv_quoted is 'A cell of RFC 4180: in quotes where it has to be.';

create or replace function internal.csv_cell(value text) returns text
language sql immutable parallel safe
return case
  when csv_cell.value !~ '^''*[-=+@\t\r\uff1d\uff0b\uff0d\uff20]|[",\n\r]' then csv_cell.value
  when csv_cell.value ~ '^''*[-=+@\t\r\uff1d\uff0b\uff0d\uff20]' then internal.csv_quoted('''' || csv_cell.value)
  else internal.csv_quoted(csv_cell.value)
end;
comment on function internal.csv_cell is
  'A text as a cell; one that a spreadsheet would take for a formula, also in full-width letters or after quotes, gets a
   leading quote character, as in server/http/csv.ts.';

create or replace function internal.csv_object(value jsonb) returns text
language sql immutable parallel safe
return case
  when csv_object.value = '{}' then '{}'
  -- ten times faster than the expression, and the same where there is no null to lose
  when strpos(csv_object.value::text, 'null') = 0 then '"'
    || replace(json_strip_nulls(csv_object.value::text::json)::text, '"', '""') || '"'
  else '"' || replace(regexp_replace(csv_object.value::text, '("(?:[^"\\]|\\.)*")|\s', '\1', 'g'), '"', '""') || '"'
end;
comment on function internal.csv_object is 'A JSON object as a cell, without blanks between its tokens.';

create or replace function api.users_export("cursor" text default null, since text default null,
                                            format text default 'ndjson')
returns api.lines
-- batches follow an index: the remaining rows are never sorted for each batch, however old the statistics are
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  -- users created during the export are not part of it
  state constant jsonb := coalesce(users_export."cursor"::jsonb, jsonb_build_object('began', internal.now()));
  from_time constant timestamptz := coalesce(internal.export_time(users_export.since, 'INVALID_SINCE'), '-infinity');
  after_time constant timestamptz := coalesce((state ->> 'at')::timestamptz, from_time);
  after_id constant uuid := coalesce((state ->> 'id')::uuid, '00000000-0000-0000-0000-000000000000');
  began constant timestamptz := (state ->> 'began')::timestamptz;
  is_csv constant boolean := users_export.format = 'csv';
  lines text[] := '{}';
  read_rows int := 0;
  bytes bigint := 0;
  next_cursor text;
  read record;
begin
  if is_csv and users_export."cursor" is null then
    lines := array[E'id,email,anonymous_id,created_at,last_seen_at,properties,platform_strings,push_token_count\r\n'];
  end if;
  for read in
    with page as materialized (
      select n.id, n.email, n.anonymous_id, n.created_at, n.last_seen_at, n.properties
        from app.users n
       where (n.created_at, n.id) > (after_time, after_id)
         and n.created_at <= began
       order by n.created_at, n.id
       limit 500
    -- one read for the whole batch: a subquery for each user would cost as much as the JSON
    ), tokens as materialized (
      select p.app_user_id, array_agg(distinct p.platform order by p.platform) as platforms, count(*) as count
        from app.push_tokens p
       where p.app_user_id = any (array(select g.id from page g)) and p.is_active
       group by p.app_user_id
    )
    select u.created_at, u.id,
           case
             when is_csv then concat(u.id, ',', internal.csv_cell(u.email), ',', internal.csv_cell(u.anonymous_id), ',',
                                     internal.iso(u.created_at), ',',
                                     internal.iso(u.last_seen_at), ',', internal.csv_object(u.properties), ',',
                                     internal.csv_cell(array_to_string(t.platforms, '|')), ',', coalesce(t.count, 0),
                                     E'\r\n')
             else json_build_object(
                    'id', u.id, 'email', u.email, 'anonymous_id', u.anonymous_id,
                      'created_at', internal.iso(u.created_at),
                    'last_seen_at', internal.iso(u.last_seen_at), 'properties', u.properties,
                    'platform_strings', coalesce(t.platforms, '{}'),
                    'push_token_count', coalesce(t.count, 0))::text || E'\n'
           end as line
      from page u
      left join tokens t on t.app_user_id = u.id
     order by u.created_at, u.id
  loop
    lines := lines || read.line;
    read_rows := read_rows + 1;
    bytes := bytes + octet_length(read.line);
    if read_rows = 500 or bytes >= internal.page_bytes() then
      next_cursor := jsonb_build_object('began', began, 'at', read.created_at, 'id', read.id)::text;
      exit;
    end if;
  end loop;
  return (array_to_string(lines, ''), next_cursor);
end $$;
comment on function api.users_export is
  'A batch of the users'' export, oldest first, created at or after since, as lines of CSV or NDJSON; platforms and
   count are of active push tokens. Refuses 400 INVALID_SINCE.';

create or replace function api.user_events_export(user_id text, "cursor" text default null, since text default null,
                                                  until text default null, event_name text default null,
                                                  include_system boolean default false, format text default 'ndjson')
returns api.lines
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  them constant app.users := internal.user_found(user_events_export.user_id);
  state constant jsonb := coalesce(user_events_export."cursor"::jsonb, jsonb_build_object('began', internal.now()));
  from_time constant timestamptz := coalesce(internal.export_time(user_events_export.since, 'INVALID_SINCE'),
                                             '-infinity');
  to_time constant timestamptz := coalesce(internal.export_time(user_events_export.until, 'INVALID_UNTIL'), 'infinity');
  after_time constant timestamptz := coalesce((state ->> 'at')::timestamptz, from_time);
  after_id constant uuid := coalesce((state ->> 'id')::uuid, '00000000-0000-0000-0000-000000000000');
  began constant timestamptz := (state ->> 'began')::timestamptz;
  is_csv constant boolean := user_events_export.format = 'csv';
  lines text[] := '{}';
  read_rows int := 0;
  bytes bigint := 0;
  next_cursor text;
  read record;
begin
  if is_csv and user_events_export."cursor" is null then
    lines := array[E'id,app_user_id,event_name,properties,occurred_at\r\n'];
  end if;
  for read in
    select e.occurred_at, e.id,
           case
             when is_csv then concat(e.id, ',', e.app_user_id, ',', internal.csv_cell(e.event_name), ',',
                                     internal.csv_object(e.properties), ',',
                                     internal.iso(e.occurred_at), E'\r\n')
             else json_build_object('id', e.id, 'app_user_id', e.app_user_id, 'event_name', e.event_name,
                                    'properties', e.properties,
                                    'occurred_at', internal.iso(e.occurred_at))::text || E'\n'
           end as line
      from app.engagement_events e
     where e.app_user_id = them.id
       and (e.occurred_at, e.id) > (after_time, after_id)
       and e.occurred_at < to_time
       and e.received_at <= began
       and (user_events_export.event_name is null or e.event_name = user_events_export.event_name)
       and (user_events_export.include_system or e.source <> 'system')
     order by e.occurred_at, e.id
     limit 500
  loop
    lines := lines || read.line;
    read_rows := read_rows + 1;
    bytes := bytes + octet_length(read.line);
    if read_rows = 500 or bytes >= internal.page_bytes() then
      next_cursor := jsonb_build_object('began', began, 'at', read.occurred_at, 'id', read.id)::text;
      exit;
    end if;
  end loop;
  return (array_to_string(lines, ''), next_cursor);
end $$;
comment on function api.user_events_export is
  'A batch of a user''s events, oldest first, that occurred at or after since and before until, as lines of CSV or
   NDJSON; system events (svc.*) only with include_system. Refuses 400 INVALID_USER_ID, INVALID_SINCE, INVALID_UNTIL,
   404 NOT_FOUND.';

create or replace function internal.bundle_query(table_name text, user_column text, export_columns text[],
                                                 export_order text[])
returns text
language plpgsql stable security definer set search_path = '' as $$
declare
  place constant regclass := bundle_query.table_name::regclass;
  -- a section has the name of its table; the developer's own tables are one section
  is_collection constant boolean := split_part(bundle_query.table_name, '.', 1) = 'collections';
  fields text;
  keys text[];
  key_types text[];
begin
  select string_agg(case when a.atttypid = 'timestamptz'::regtype then format('internal.iso(t.%1$I) as %1$I', a.attname)
                         else format('t.%1$I', a.attname) end, ', '
                           order by coalesce(array_position(bundle_query.export_columns, a.attname::text), a.attnum))
    into fields
    from pg_catalog.pg_attribute a
   where a.attrelid = place and a.attnum > 0 and not a.attisdropped
     and (a.attname = any (bundle_query.export_columns) or bundle_query.export_columns = array['*']);
  select array_agg(quote_ident(a.attname) order by k.n),
         array_agg(pg_catalog.format_type(a.atttypid, a.atttypmod) order by k.n)
    into keys, key_types
    from (select o.name, o.n from unnest(bundle_query.export_order) with ordinality as o (name, n)
          union all
          select c.attname, p.n
            from pg_catalog.pg_index i
           cross join lateral unnest(i.indkey::int2[]) with ordinality as p (attnum, n)
            join pg_catalog.pg_attribute c on c.attrelid = place and c.attnum = p.attnum
           where i.indrelid = place and i.indisprimary and bundle_query.export_order is null) k
    join pg_catalog.pg_attribute a on a.attrelid = place and a.attname = k.name;
  return format(
    -- a column of type json may hold line breaks between its tokens
    'select translate(x.line, E''\r\n'', ''  '') || E''\n'' as line, x.keys from (
       select json_build_object(%s, ''data'', (select row_to_json("_row") from (select %s) "_row"))::text as line,
              jsonb_build_array(%s) as keys
         from %s t
        where t.%I = $1 and ($2 is null or (%s) > (%s))
        order by %s
        limit $3) x',
    format(case when is_collection then '''section'', ''collections'', ''collection'', %L::text'
                else '''section'', %L::text' end,
           split_part(bundle_query.table_name, '.', 2)),
    fields,
    (select string_agg(format('t.%s::text', k), ', ') from unnest(keys) as k),
    place, bundle_query.user_column,
    (select string_agg('t.' || k, ', ') from unnest(keys) as k),
    (select string_agg(format('($2->>%s)::%s', i - 1, key_types[i]), ', ') from generate_subscripts(keys, 1) as i),
    (select string_agg('t.' || k, ', ') from unnest(keys) as k));
end $$;
comment on function internal.bundle_query is
  'Builds the statement that reads at most $3 rows of a user ($1) of a table after a key ($2, a list of texts):
   {section, data} as a line, and the row''s key.';

create or replace function internal.user_bundle(user_id uuid, "cursor" text) returns api.lines
language plpgsql stable security definer set search_path = '' set enable_bitmapscan = off as $$
declare
  state constant jsonb := user_bundle."cursor"::jsonb;
  place record;
  row_read record;
  lines text[] := '{}';
  after_key jsonb;
  bytes bigint := 0;
  total bigint := coalesce((state ->> 'total')::bigint, 0);
begin
  if internal.caller() <> 'developer' and user_bundle.user_id is distinct from internal.user_id() then
    raise exception 'a bundle is for its user and for administrators, not for %', internal.caller();
  end if;
  -- also for a user who was deleted between two batches: the export must not look complete
  perform internal.check_found(exists (select from app.users u where u.id = user_bundle.user_id), 'user');
  for place in
    select d.*, d.table_name <> 'app.users' as is_later
      from internal.user_data d
     where d.export_columns is not null and to_regclass(d.table_name) is not null
       and (state is null or (d.table_name <> 'app.users', d.table_name, d.user_column)
                             >= (state ->> 'table' <> 'app.users', state ->> 'table', state ->> 'column'))
     order by is_later, d.table_name, d.user_column
  loop
    after_key := case when (place.table_name, place.user_column) = (state ->> 'table',
                                                                    state ->> 'column') then state -> 'after' end;
    for row_read in
      execute internal.bundle_query(place.table_name, place.user_column, place.export_columns, place.export_order)
        using user_bundle.user_id, after_key, 500 - cardinality(lines)
    loop
      lines := lines || row_read.line;
      bytes := bytes + octet_length(row_read.line);
      after_key := row_read.keys;
      exit when bytes >= internal.page_bytes();
    end loop;
    if cardinality(lines) = 500 or bytes >= internal.page_bytes() then
      return (array_to_string(lines, ''), jsonb_build_object(
        'table', place.table_name, 'column', place.user_column, 'after', after_key,
          'total', total + cardinality(lines))::text);
    end if;
  end loop;
  lines := lines || concat(json_build_object('section', 'export_complete', 'data', json_build_object(
    'user_id', user_bundle.user_id, 'rows', total + cardinality(lines), 'completed_at', internal.iso(internal.now()))),
      E'\n');
  return (array_to_string(lines, ''), null::text);
end $$;
comment on function internal.user_bundle is
  'A batch of all data of a user, one {section, data} a row and a section for each table, as internal.user_data
   declares; the last line is export_complete with the number of rows before it. For the user and for administrators.
   Refuses 404 NOT_FOUND.';

create or replace function api.user_export(user_id text, "cursor" text default null) returns api.lines
language plpgsql stable as $$
begin
  return internal.user_bundle((internal.user_found(user_export.user_id)).id, user_export."cursor");
end $$;
comment on function api.user_export is 'A batch of a user''s bundle. Refuses 400 INVALID_USER_ID, 404 NOT_FOUND.';

create or replace function api.me_export("cursor" text default null) returns api.lines
language sql stable as $$
  select internal.user_bundle(internal.user_id(), me_export."cursor")
$$;
comment on function api.me_export is 'A batch of the caller''s own bundle. Refuses 404 NOT_FOUND.';
