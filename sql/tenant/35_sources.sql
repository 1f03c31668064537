-- What a table publishes to realtime: a file of functions declares it (functions/tenant/<area>/realtime.sql),
-- internal.source_declare compiles each declaration into one function, which publishes a row of the table, and the
-- triggers that call it. A declaration costs nothing in a project that nobody listens to. It is compiled when its file
-- is applied: a change of internal.source_declare reaches a database with those files only.
create or replace function internal.has_subscribers_sql() returns text
language sql immutable parallel safe
return 'pg_catalog.pg_sequence_last_value(''app.realtime_subscribed'') > extract(epoch from clock_timestamp())';
comment on function internal.has_subscribers_sql is
  'internal.has_subscribers() spelled out, for conditions: the function would be inlined anew in every statement, which
   costs more than an insert. Granted to nobody.';

create or replace function internal.source_trigger_sql(source regclass, name text, ops text, changes text[])
returns text
language sql stable
return format('create or replace trigger %I after %s on %s for each row when (%s%s) execute function internal.%I()',
              source_trigger_sql.name, source_trigger_sql.ops, source_trigger_sql.source,
              internal.has_subscribers_sql(),
              (select format(' and (%s) is distinct from (%s)', string_agg(format('old.%I', c), ', '),
                             string_agg(format('new.%I', c), ', '))
                 from unnest(source_trigger_sql.changes) c having count(*) > 0),
              split_part(source_trigger_sql.name, '__', 1) || '__publish');
comment on function internal.source_trigger_sql is
  'A trigger for each row that calls tg_<table>__publish where somebody listens, and on updates where a column has
   changed. Granted to nobody.';

create or replace function internal.source_declare(shape anyelement, summary text, ops text default null,
                                                   changes text[] default '{}', publishes text default null,
                                                   also text default '', by_statement text[] default null,
                                                   has_meta boolean default false)
returns void
language plpgsql volatile as $$
declare
  source constant regclass := (select y.typrelid from pg_catalog.pg_type y
                                where y.oid = pg_typeof(source_declare.shape));
  tab constant text := (select c.relname from pg_catalog.pg_class c where c.oid = source);
  trigger_name constant text := format('tg_%s__publish', tab);
  publisher constant text := 'publish_' || tab;
  keys constant text := (select string_agg(format('n.%1$I = o.%1$I', k), ' and ')
                           from unnest(source_declare.by_statement) k);
  changed constant text := (
    select format('(%s) is distinct from (%s)', string_agg(format('o.%I', c), ', '),
                  string_agg(format('n.%I', c), ', ')) from unnest(source_declare.changes) c);
  event text;
begin
  if tab is null or source_declare.ops is null and source_declare.changes = '{}'
    or coalesce(source_declare.ops, 'insert') !~ '^(insert|update|delete)( or (insert|update|delete)){0,2}$'
     or source_declare.by_statement is not null and source_declare.ops is distinct from 'insert' then
    raise exception 'a source is a table with operations or columns; one by statement publishes inserts and changes '
                    'of columns';
  end if;
  perform internal.list_columns(source, source_declare.changes || coalesce(source_declare.by_statement, '{}'));
  execute format($sql$
create or replace function internal.%1$I(op text, r %2$s, was %2$s) returns void
language plpgsql volatile security definer set search_path = '' as $publishes$
begin
  %3$s%4$s
end $publishes$
$sql$, publisher, source, source_declare.also, case when source_declare.publishes is null then '' else format($sql$
  insert into app.realtime_publications (channel, event, payload, meta)
  select q.channel, q.event, q.payload::text, %s
    from (%s) q (channel, event, payload%s)
    join app.realtime_channels c on c.channel = q.channel and c.subscribed_until > internal.now()
   order by q.channel;
  if found then
    perform internal.realtime_wake();
  end if;
$sql$, case when source_declare.has_meta then 'q.meta::text' else 'null' end, source_declare.publishes,
  case when source_declare.has_meta then ', meta' else '' end) end);
  execute format('comment on function internal.%I is %L', publisher, source_declare.summary || ' Granted to nobody.');

  if source_declare.by_statement is null then
    execute format($sql$
create or replace function internal.%1$I() returns trigger
language plpgsql volatile security definer set search_path = '' as $publish$
begin
  perform internal.%2$I(tg_op, case when tg_op = 'DELETE' then old else new end,
                        case when tg_op <> 'INSERT' then old end);
  return null;
end $publish$
$sql$, trigger_name, publisher);
    execute format('comment on function internal.%I is %L', trigger_name, source_declare.summary);
    if source_declare.ops is not null then
      execute internal.source_trigger_sql(source, trigger_name, source_declare.ops, '{}');
    end if;
    if source_declare.changes <> '{}' then
      execute internal.source_trigger_sql(source, trigger_name || '_change',
        'update of ' || (select string_agg(format('%I', c), ', ') from unnest(source_declare.changes) c),
        source_declare.changes);
    end if;
    return;
  end if;

  foreach event in array case when source_declare.changes = '{}' then '{insert}'::text[] else '{insert,update}' end loop
    execute format($sql$
create or replace function internal.%1$I() returns trigger
language plpgsql volatile as $publish$
declare
  pair record;
begin
  if %2$s then
    for pair in select row(n.*)::%6$s as r, %3$s as was from inserted n%4$s loop
      perform internal.%5$I(tg_op, pair.r, pair.was);
    end loop;
  end if;
  return null;
end $publish$
$sql$, trigger_name || case event when 'insert' then '' else '_change' end, internal.has_subscribers_sql(),
      format(case event when 'insert' then 'null::%s' else 'row(o.*)::%s' end, source),
      case event when 'insert' then '' else format(' join replaced o on %s where %s', keys, changed) end, publisher,
      source);
    execute format('comment on function internal.%I is %L',
                   trigger_name || case event when 'insert' then '' else '_change' end,
                   source_declare.summary
                     || ' Called once for a statement, and not security definer: on a project that nobody listens to '
                        'it costs next to nothing.');
    execute format('create or replace trigger %1$I after %2$s on %3$s referencing new table as inserted%4$s for each '
                   'statement execute function internal.%1$I()',
                   trigger_name || case event when 'insert' then '' else '_change' end, event, source,
                   case event when 'insert' then '' else ' old table as replaced' end);
  end loop;
end $$;
comment on function internal.source_declare is
  'For files of functions: has a table publish, in the transaction that writes it and only where somebody listens. shape
   is null of its row type (null::app.groups). publishes is a query of channel, event and payload (json), which sees op
   (INSERT, UPDATE, DELETE), the row r, on DELETE the old one, and was, the row before, null on INSERT; a payload is
   made where somebody listens to its channel. ops: insert, update, delete, joined by or; changes: also updates of one
   of these columns to another value. also: statements of plpgsql that come first. by_statement, the columns of the
   primary key, is for tables that definer functions write all the time, many rows at once: their triggers run once for
   a statement. has_meta: the query has a fourth column, json for the servers that is never sent, null for an event that
   is for every subscriber; {"actor", "action"} is for those in whose scope neither is hidden. Granted to nobody.';

create or replace function internal.event_source_declare(subject text, verbs text[], summary text,
                                                         payload text default 'select e.properties')
returns void
language plpgsql volatile as $$
begin
  -- the name begins like those of plans: the plans are made anew when it changes
  execute format('create or replace function internal.%I() returns text[] language sql immutable return %L::text[]',
                 'event_plan__realtime__' || event_source_declare.subject, event_source_declare.verbs);
  execute format('comment on function internal.%I() is %L', 'event_plan__realtime__' || event_source_declare.subject,
                 'The verbs of system events of this subject that are published. Made by '
                 'internal.event_source_declare. Granted to nobody.');
  execute format('create or replace function internal.%I(e app.engagement_events) returns json language sql stable as '
                 '%L',
                 'published_event__' || event_source_declare.subject, event_source_declare.payload);
  execute format('comment on function internal.%I(app.engagement_events) is %L',
                 'published_event__' || event_source_declare.subject,
                 event_source_declare.summary || ' Made by internal.event_source_declare. Granted to nobody.');
end $$;
comment on function internal.event_source_declare is
  'For files of functions: has the system events svc.<subject>.<verb> published to the channels of their users as
   <subject>.<verb>. payload is a query of one json, which sees the event e; a payload is made where somebody listens.
   Granted to nobody.';
