-- Values of days: a file of functions declares what an area counts by day, internal.days_declare compiles it into one
-- function of static SQL, and internal.days_reply answers a request for days with what such functions say. The column
-- of the time has an index of blocks (BRIN), which costs a writer nearly nothing: rows of a day were written at about
-- the same time, so the days that are asked for are what is read. A change of internal.days_declare reaches a database
-- with the files that declare.
create or replace function internal.days_declare(name text, source regclass, at text, series text[],
                                                 condition text default 'true')
returns void
language plpgsql volatile as $$
declare
  compiled constant text := format('internal.%I(first date, last date, zone text, of text)', days_declare.name);
begin
  perform internal.list_columns(days_declare.source, array[days_declare.at]);
  execute format('create or replace function %s returns json language plpgsql stable as %L', compiled, format($body$
begin
  return (
    select json_build_object(%5$s)
      from (select g::date as day from generate_series(%1$I.first::timestamp, %1$I.last::timestamp, '1 day') g) d
      left join (
        select (r.%3$I at time zone %1$I.zone)::date as day, %4$s
          from %2$s r
         -- where a day has two midnights, this time is that of the second one: the hours before are left out by day
         where r.%3$I >= (%1$I.first::timestamp - interval '3 hours') at time zone %1$I.zone
           and r.%3$I < (%1$I.last + 1)::timestamp at time zone %1$I.zone
           and %6$s
         group by 1) c on c.day = d.day);
end$body$, days_declare.name, days_declare.source, days_declare.at,
    (select string_agg(format('%s as %I', s.pair[2], s.pair[1]), ', ' order by s.n)
       from (select n, days_declare.series[n : n] as pairs from generate_subscripts(days_declare.series, 1) n) p
      cross join lateral (select p.n, array(select unnest(p.pairs)) as pair) s),
    (select string_agg(format('%L, json_agg(json_build_object(''date'', d.day, ''value'', coalesce(c.%I, 0)) '
                              'order by d.day)', days_declare.series[n][1], days_declare.series[n][1]), ', ' order by n)
       from generate_subscripts(days_declare.series, 1) n),
    replace(days_declare.condition, '{of}', format('%I.of', days_declare.name))));
  execute format('comment on function %s is %L', compiled,
                 format('Values of %s for each day of a time zone, both ends included, {series: [{date, value}]}. Made '
                        'by internal.days_declare.', days_declare.source));
end $$;
comment on function internal.days_declare is
  'For files of functions: compiles internal.<name>(first, last, zone, of), the values of each day of rows r of a table,
   by the time in column at. series are pairs of a name and an aggregate over r; condition is SQL over r, in which {of}
   is the text that says whose rows. It runs with the rights of its caller. Granted to nobody.';

create or replace function internal.days_check(first date, last date) returns void
language plpgsql immutable as $$
begin
  if days_check.first > days_check.last then
    perform internal.invalid('from', 'must not be after to', 'INVALID_INPUT');
  elsif days_check.last - days_check.first >= 400 then
    perform internal.invalid('from', 'must be at most 400 days before the end', 'INVALID_INPUT');
  end if;
end $$;
comment on function internal.days_check is
  'The days of a request, both ends included: at most 400. Refuses 400 INVALID_INPUT.';

create or replace function internal.days_reply(names text[], "from" date, "to" date, timezone text,
                                               of text default null)
returns api.reply
language plpgsql stable as $$
declare
  zone constant text := coalesce(days_reply.timezone, 'UTC');
  last date := days_reply."to";
  first date;
  series json := '{}';
  part json;
  name text;
begin
  if not internal.is_timezone(zone) then
    perform internal.invalid('timezone', 'must be an IANA time zone', 'INVALID_INPUT');
  end if;
  last := coalesce(last, (internal.now() at time zone zone)::date);
  first := coalesce(days_reply."from", last - 29);
  perform internal.days_check(first, last);
  foreach name in array days_reply.names loop
    execute format('select internal.%I($1, $2, $3, $4)', name) into part using first, last, zone, days_reply.of;
    series := internal.json_merge(series, part);
  end loop;
  return internal.reply(200, json_build_object('from', first, 'to', last, 'timezone', zone, 'series', series));
end $$;
comment on function internal.days_reply is
  'The values of each day of a time zone, UTC by default, both ends included and the last 30 days by default, from
   functions that internal.days_declare compiled: {from, to, timezone, series: {name: [{date, value}]}}. Refuses 400
   INVALID_INPUT.';
