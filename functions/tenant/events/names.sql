-- The names of events in the log, at a cost bounded by the number of names, not of events: a loose index scan finds the
-- names, and each is counted on its newest 10,000 events; beyond that, counts are the planner's estimates.

create or replace function internal.event_names(include_system boolean) returns setof text
language plpgsql stable as $$
declare
  latest text := '';
  names int := 0;
begin
  loop
    select e.event_name into latest from app.engagement_events e where e.event_name > latest order by e.event_name
     limit 1;
    exit when latest is null or names = 5000;
    if event_names.include_system or latest not like 'svc.%' then
      names := names + 1;
      return next latest;
    end if;
  end loop;
end $$;
comment on function internal.event_names is 'The names in the log, sorted, at most 5000: one index lookup for each.';

create or replace function internal.estimated_rows(event_name text, since timestamptz) returns bigint
language plpgsql volatile as $$
declare
  plan json;
begin
  execute format('explain (format json) select from app.engagement_events e where e.event_name = %L and e.occurred_at '
                 '>= %L',
                 estimated_rows.event_name, estimated_rows.since) into plan;
  return (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric::bigint;
end $$;
comment on function internal.estimated_rows is
  'How many events of a name since a time the planner expects, from its statistics; reads none of them.';

create or replace function internal.property_paths(samples jsonb[]) returns json
language sql stable as $$
  with recursive path as (
    select e.key as path, e.value, s.n, 1 as depth
      from unnest(property_paths.samples) with ordinality as s (properties, n)
     cross join lateral jsonb_each(s.properties) e
    union all
    select p.path || '.' || e.key, e.value, p.n, p.depth + 1
      from path p
     cross join lateral jsonb_each(case when jsonb_typeof(p.value) = 'object' then p.value else '{}' end) e
     where p.depth < 8
  ), described as (
    select p.path, array_agg(distinct jsonb_typeof(p.value) order by jsonb_typeof(p.value)) as types,
           -- the newest that says something
           (array_agg(p.value order by p.n) filter (where jsonb_typeof(p.value) not in ('null', 'object')
                                                      and octet_length(p.value::text) <= 200))[1] as sample
      from path p
     group by p.path
     order by p.path
     limit 100
  )
  select coalesce(json_agg(json_build_object('path', d.path, 'types', d.types, 'sample', d.sample) order by d.path),
                  '[]') from described d
$$;
comment on function internal.property_paths is
  'The paths of some properties, newest first, as filters spell them, with the types that were seen there and a short
   sample. 100 paths at most.';

create or replace function internal.event_name_json(event_name text) returns json
language plpgsql stable as $$
declare
  most constant int := 10000;
  month_ago constant timestamptz := internal.now() - interval '30 days';
  day_ago constant timestamptz := internal.now() - interval '24 hours';
  counted record;
  is_estimated boolean;
  count_24h bigint;
  count_30d bigint;
begin
  -- an equal name would leave the planner the index by time alone, where a name that has become rare is found behind
  -- all newer events; a range, in the order of names, is served by the index of names alone
  select count(*) as events, count(*) filter (where n.occurred_at >= day_ago) as today,
         count(distinct n.app_user_id) as users,
         min(n.occurred_at) as oldest
    into counted
    from (select e.occurred_at, e.app_user_id
            from app.engagement_events e
           where e.event_name >= event_name_json.event_name and e.event_name <= event_name_json.event_name
           order by e.event_name, e.occurred_at desc
           limit most) n
   where n.occurred_at >= month_ago;
  is_estimated := counted.events = most;
  count_30d := case when is_estimated then greatest(counted.events,
                                                    internal.estimated_rows(event_name_json.event_name,
                                                      month_ago)) else counted.events end;
  -- where ten thousand events reach further back than a day, the day is counted
  count_24h := case when is_estimated and counted.oldest >= day_ago
                    then least(count_30d, greatest(counted.today,
                                                   internal.estimated_rows(event_name_json.event_name, day_ago)))
                    else counted.today end;
  return json_build_object(
    'event_name', event_name_json.event_name,
    'count_24h', count_24h, 'count_30d', count_30d, 'users_30d', counted.users, 'is_estimated', is_estimated,
    'first_seen', internal.iso((select e.occurred_at from app.engagement_events e
                                 where e.event_name >= event_name_json.event_name
                                   and e.event_name <= event_name_json.event_name
                                 order by e.event_name desc, e.occurred_at limit 1)),
    'last_seen', internal.iso((select e.occurred_at from app.engagement_events e
                                where e.event_name >= event_name_json.event_name
                                  and e.event_name <= event_name_json.event_name
                                order by e.event_name, e.occurred_at desc limit 1)),
    'status', coalesce((select d.status from app.event_definitions d where d.event_name = event_name_json.event_name),
                       'active'),
    'properties', internal.property_paths(array(
      select e.properties from app.engagement_events e
       where e.event_name >= event_name_json.event_name and e.event_name <= event_name_json.event_name
       order by e.event_name, e.occurred_at desc limit 200)));
end $$;
comment on function internal.event_name_json is
  'One name: how often and by how many users it was seen, and its property paths, from its newest 200 events. Counted on
   its newest 10,000 of 30 days; when there are more, is_estimated is true: counts are the planner''s, users_30d those
   of the 10,000.';

create or replace function api.event_names(include_system boolean default false, page_offset int default 0,
                                           page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  names constant text[] := array(select internal.event_names(event_names.include_system));
begin
  return internal.reply_page(
    (select json_agg(internal.event_name_json(n.name) order by n.n)
       from (select u.name, u.n from unnest(names) with ordinality as u (name, n)
              order by u.n limit event_names.page_limit offset event_names.page_offset) n),
    cardinality(names), event_names.page_offset, event_names.page_limit);
end $$;
comment on function api.event_names is
  'The names of events in the log, in their order, with counts and property paths. At most 10,200 events are read for
   each name of the page.';
