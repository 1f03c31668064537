-- The event pipeline: each event is a row of app.engagement_events. A dispatching trigger hands it to the areas' hooks,
-- functions named internal.on_events__<NN>_<area>, in the order of their numbers ("Hooks" in docs/events.md).

-- In the order in which events lock them: dropping a function drops its trigger and recreates the policies of the area,
-- which locks these tables one by one; another order could deadlock with requests.
lock table app.event_definitions, app.event_ids, app.engagement_events,
  app.user_event_counters in access exclusive mode;

create or replace function internal.make_event_partition(month date) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  first constant timestamptz := date_trunc('month', make_event_partition.month)::timestamp at time zone 'UTC';
  next constant timestamptz := (date_trunc('month',
                                           make_event_partition.month) + interval '1 month') at time zone 'UTC';
  partition constant text := 'engagement_events_' || to_char(make_event_partition.month, 'YYYYMM');
begin
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  -- times out before Postgres checks for deadlocks (after a second), so that a deadlock never aborts a request
  perform set_config('lock_timeout', '500ms', true);
  lock table app.users in share row exclusive mode;
  lock table app.engagement_events_default in access exclusive mode;
  -- a concurrent transaction may have created it while this one waited
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  execute format('create table app.%I (like app.engagement_events including all)', partition);
  execute format('alter table app.%I enable row level security', partition);
  execute format('with moved as (delete from app.engagement_events_default e where e.received_at >= $1 and '
                 'e.received_at < $2 returning e.*)
                  insert into app.%I select m.* from moved m', partition) using first, next;
  execute format('alter table app.engagement_events attach partition app.%I for values from (%L) to (%L)', partition,
                 first, next);
end $$;
comment on function internal.make_event_partition is
  'Creates the partition of a month of receipt, and moves the month''s events from the default partition into it.
   Briefly locks app.users against writers.';

create or replace function api.events_maintain() returns api.reply
language plpgsql volatile as $$
begin
  for months in 0..2 loop
    perform internal.make_event_partition(((internal.now() at time zone 'UTC')
                                           + make_interval(months => months))::date);
  end loop;
  perform internal.events_purge_replays();
  return internal.reply(200, 'true');
end $$;
comment on function api.events_maintain is
  'Daily, and when a tenant is created: creates partitions for this month and the next two, and deletes old replays.';

create or replace function internal.events_purge_replays() returns void
language sql volatile security definer set search_path = '' as $$
  delete from app.event_replays r where r.created_at < internal.now() - interval '90 days'
$$;
comment on function internal.events_purge_replays is 'Deletes replays after 90 days, as their operations are.';

create or replace function internal.collect_effects() returns void
language sql volatile as $$
  select set_config('app.collects_effects', 'true', true)
$$;
comment on function internal.collect_effects is
  'Collects the effects of this transaction from now on, for its response.';

create or replace function internal.collects_effects() returns boolean
language sql stable as $$
  select coalesce(current_setting('app.collects_effects', true), '') = 'true'
$$;
comment on function internal.collects_effects is
  'Whether the response of this transaction shows effects. Jobs, and batches that did not request effects, skip their
   computation.';

create or replace function internal.add_effect(part text, effect json) returns void
language plpgsql volatile as $$
begin
  perform internal.add_effects(add_effect.part, array[add_effect.effect]);
end $$;
comment on function internal.add_effect is
  'Adds an effect of an event to the response: part is streaks, xp, achievements, ..., effect one entry of it with
   app_user_id. An event without effects has no entry.';

create or replace function internal.add_effects(part text, effects json[]) returns void
language plpgsql volatile as $$
begin
  if coalesce(cardinality(add_effects.effects), 0) > 0 and internal.collects_effects() then
    -- a condition is a simple expression: a statement would start the executor
    if set_config('app.effects', concat_ws(',', nullif(current_setting('app.effects', true), ''),
                                           json_build_object('part', add_effects.part,
                                                             'effects', array_to_json(add_effects.effects))::text),
                                                               true) is null then
    end if;
  end if;
end $$;
comment on function internal.add_effects is 'Adds several effects of one part, in order, each on a different object.';

create or replace function internal.effects_noted() returns jsonb
language sql stable as $$
  select ('[' || coalesce(current_setting('app.effects', true), '') || ']')::jsonb
$$;
comment on function internal.effects_noted is
  'What internal.add_effects noted in this transaction: an array of {part, effects}, in its order.';

create or replace function internal.effects_json(app_user_id uuid default null) returns json
language plpgsql stable as $$
declare
  answer json;
begin
  -- most events move nothing
  if coalesce(current_setting('app.effects', true), '') = '' then
    return '{}';
  elsif effects_json.app_user_id is not null and length(current_setting('app.effects')) < 10000 then
    answer := internal.effects_of(effects_json.app_user_id, internal.effects_noted());
    if answer is not null then
      return answer;
    end if;
  end if;
  -- a later effect on the same thing replaces the earlier: the last word of the transaction is shown
  return (
    with noted as (
      select l.n, e.m, l.line ->> 'part' as part, e.effect
        from jsonb_array_elements(internal.effects_noted()) with ordinality as l (line, n)
       cross join lateral jsonb_array_elements(l.line -> 'effects') with ordinality as e (effect, m)
    ), latest as (
      select distinct on (n.part, n.effect -> 'app_user_id',
                          coalesce(n.effect ->> 'key', n.effect ->> 'id', n.effect ->> 'code'))
             n.n, n.m, n.part, n.effect
        from noted n
       where effects_json.app_user_id is null or n.effect ->> 'app_user_id' = effects_json.app_user_id::text
       order by n.part, n.effect -> 'app_user_id', coalesce(n.effect ->> 'key', n.effect ->> 'id', n.effect ->> 'code'),
         n.n desc, n.m desc
    ), parts as (
      select l.part,
             jsonb_agg(case when effects_json.app_user_id is null then l.effect
                            else l.effect - 'app_user_id' end order by l.n, l.m) as entries,
             -- xp and league of one user are single objects, the other parts lists
             (array_agg(l.effect - 'app_user_id' order by l.n desc, l.m desc))[1] as single
        from latest l
       group by l.part
    )
    select coalesce(jsonb_object_agg(p.part, case
                                                  when p.part in ('xp', 'league')
                                                    and effects_json.app_user_id is not null then p.single
                                                      else p.entries end), '{}')::json
      from parts p);
end $$;
comment on function internal.effects_json is
  'The effects noted in this transaction: of one user without app_user_id in the entries, or of all with it.';

create or replace function internal.effects_of(app_user_id uuid, noted jsonb) returns json
language plpgsql immutable as $$
declare
  answer jsonb := '{}';
  part text;
  effects jsonb;
  effect jsonb;
  entries jsonb;
begin
  for i in 0 .. jsonb_array_length(effects_of.noted) - 1 loop
    part := effects_of.noted -> i ->> 'part';
    effects := effects_of.noted -> i -> 'effects';
    entries := '[]';
    for j in 0 .. jsonb_array_length(effects) - 1 loop
      effect := effects -> j;
      if effect ->> 'app_user_id' = effects_of.app_user_id::text then
        entries := entries || (effect - 'app_user_id');
      end if;
    end loop;
    if answer ? part then
      return null;
    elsif entries <> '[]' then
      answer := answer || jsonb_build_object(part,
                                             case when part in ('xp', 'league') then entries -> -1 else entries end);
    end if;
  end loop;
  return answer;
end $$;
comment on function internal.effects_of is
  'internal.effects_json for one user when each part was added once, as after most single events; otherwise null.
   Executes no statement, because starting one would cost more than the rest.';

select internal.row_declare('event_json', null::app.engagement_events,
                            '{id,app_user_id,event_name,properties,occurred_at,source,session_id}');
comment on function internal.event_json is 'The JSON of an event in responses.';

create or replace function internal.is_history() returns boolean
language sql stable as $$
  select coalesce(current_setting('app.is_history', true), '') = 'true'
$$;
comment on function internal.is_history is
  'Whether this transaction imports history: the effects of its events are history too, and are not delivered to
   webhooks or devices.';

create or replace function internal.emit_many(app_user_ids uuid[], event_names text[], properties jsonb[],
                                              occurred_at timestamptz[] default null,
                                              is_historical boolean default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  at constant timestamptz := internal.now();
  historical constant boolean := coalesce(emit_many.is_historical, internal.is_history());
begin
  if emit_many.app_user_ids is null then
    return;
  end if;
  -- in one statement: its hooks run once for all, and take users in their order
  insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source,
                                     is_historical)
  select internal.new_id(), e.app_user_id, e.event_name, coalesce(e.properties, '{}'), coalesce(e.occurred_at, at), at,
         'system', historical
    from unnest(emit_many.app_user_ids, emit_many.event_names, emit_many.properties,
                emit_many.occurred_at) with ordinality
           as e (app_user_id, event_name, properties, occurred_at, n)
   order by e.app_user_id, e.occurred_at, e.n;
end $$;
comment on function internal.emit_many is
  'Emits system events, svc.<area>.<verb>, in the transaction that causes them. They have effects like any event, in one
   run of the hooks. The arrays are parallel; occurred_at defaults to now. The users must be locked. Granted to
   nobody.';

create or replace function internal.emit(app_user_id uuid, event_name text, properties jsonb default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  at constant timestamptz := internal.now();
begin
  insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source,
                                     is_historical)
  values (internal.new_id(), emit.app_user_id, emit.event_name, coalesce(emit.properties, '{}'), at, at, 'system',
          internal.is_history());
end $$;
comment on function internal.emit is
  'Emits one system event. Use internal.emit_many for several: each call runs the whole pipeline. Granted to nobody.';

create or replace function internal.lock_users(app_user_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  known uuid[];
begin
  select array_agg(u.id) into known
    from (select l.id
            from app.users l
           where l.id = any (lock_users.app_user_ids)
           order by l.id
             for no key update) u;
  return known;
end $$;
comment on function internal.lock_users is
  'Locks users in the order of their ids and returns those that exist, or null. Every transaction that changes rows of
   users calls it first, so that such transactions wait for each other only here and cannot deadlock. Granted to
   nobody.';

create or replace function internal.event_hooks_may_run() returns boolean
language sql stable as $$
  -- events may cause further events: hooks run for five levels; events beyond that are stored without effects
  select pg_trigger_depth() <= 5
$$;
comment on function internal.event_hooks_may_run is
  'Whether hooks may run for the present events: bounds the recursion of events that cause events.';

create or replace function internal.on_events__10_counters(events app.engagement_events[]) returns void
language plpgsql volatile as $$
begin
  -- sorted, so that two writers of the same counters cannot deadlock
  insert into app.user_event_counters as counter (app_user_id, event_name, day, count)
  select i.app_user_id, i.event_name, (i.occurred_at at time zone 'UTC')::date, count(*)
    from unnest(on_events__10_counters.events) i
   group by 1, 2, 3
   order by 1, 2, 3
  on conflict (app_user_id, event_name, day) do update set count = counter.count + excluded.count;
end $$;
comment on function internal.on_events__10_counters is 'Counts events by user, name and UTC day.';

create or replace function internal.on_event__10_counters(event app.engagement_events) returns void
language plpgsql volatile as $$
begin
  insert into app.user_event_counters as counter (app_user_id, event_name, day, count)
  values ((on_event__10_counters.event).app_user_id, (on_event__10_counters.event).event_name,
          ((on_event__10_counters.event).occurred_at at time zone 'UTC')::date, 1)
  on conflict (app_user_id, event_name, day) do update set count = counter.count + 1;
end $$;
comment on function internal.on_event__10_counters is 'Counts one event.';

create or replace function internal.tg_users__events() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.engagement_events e where e.app_user_id = old.id;
  delete from app.user_event_counters c where c.app_user_id = old.id;
  return null;
end $$;
comment on function internal.tg_users__events is
  'Deletes a user''s events and their counters with the user. A foreign key would do the same, but would also check the
   user for each row.';

create or replace trigger tg_users__events
  after delete on app.users
  for each row execute function internal.tg_users__events();

create or replace function internal.purge__events(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.event_ids', 't.received_at < internal.now() - interval ''90 days''',
                             purge__events.most)
$$;
comment on function internal.purge__events is 'Daily: deletes client-chosen ids 90 days after their events.';
