-- The dispatcher of events. An area takes part in the pipeline by functions whose names follow a convention; after each
-- change of functions the dispatcher is compiled from what is there, in the same transaction. docs/events.md shows how
-- an area registers its part.
--
-- internal.on_events__<NN>_<area>(events app.engagement_events[]) required: handles any number of events, of many users
-- internal.on_event__<NN>_<area>(event app.engagement_events[, plan <type>]) optional: handles one event, when it is
-- neither historical nor too deep
-- internal.event_plan__<area>() returns table (event_name text, plan <type>) optional: which events the area handles,
-- stored in the column
-- app.event_plans.<area>; without it every event is passed on
create or replace function ops.event_parts()
returns table (place text, area text, batch text, single text, takes_plan boolean, plan text)
language sql stable as $$
  select m.parts[1], m.parts[2], format('internal.%I', b.proname), 'internal.' || quote_ident(s.proname),
         s.pronargs > 1,
         'internal.' || quote_ident(p.proname)
    from pg_catalog.pg_proc b
   cross join lateral regexp_match(b.proname, '^on_events__(\d\d)_(\w+)$') as m (parts)
    left join pg_catalog.pg_proc s on s.pronamespace = b.pronamespace
      and s.proname = format('on_event__%s_%s', m.parts[1], m.parts[2])
    left join pg_catalog.pg_proc p on p.pronamespace = b.pronamespace and p.proname = 'event_plan__' || m.parts[2]
   where b.pronamespace = 'internal'::regnamespace and m.parts is not null
$$;
comment on function ops.event_parts is
  'The areas that handle events, from the names of functions: handlers of many events and of one, and the plan. single
   and plan are null where there is none.';

create or replace function ops.event_dispatcher_source() returns text
language sql stable as $$
  select format($source$
declare
  uses_sets constant boolean := internal.runs_sets();
  events app.engagement_events[];
  event app.engagement_events;
  plan app.event_plans;
  wanted record;
begin
  -- with its type: a row of a transition table is a record, and plpgsql would write each out as text and read it again
  select array_agg(i::app.engagement_events) into events from inserted i;
  if cardinality(events) = 1 and not uses_sets then
    event := events[1];
    select p.* into plan from app.event_plans p where p.event_name = event.event_name;
    if not event.is_historical and pg_trigger_depth() <= 5 then%s
      return null;
    end if;
  end if;
  select %s
    into wanted
    from app.event_plans p
   where p.event_name in (select e.event_name from unnest(events) e);
  if events is not null then%s
  end if;
  return null;
end $source$,
    -- a call in a condition is a simple expression: perform would start the executor for each
    string_agg(case when p.plan is null then format($part$
      if %s is null then
      end if;$part$, p.call_single)
    else format($part$
      if plan.%I is distinct from null then
        if %s is null then
        end if;
      end if;$part$, p.area, p.call_single) end, '' order by p.place, p.area),
    coalesce(string_agg(format('bool_or(p.%1$I is distinct from null) as %1$I', p.area), ', ' order by p.place,
                        p.area) filter (where p.plan is not null), 'true as anything'),
    string_agg(case when p.plan is null then format($part$
    perform %s(events);$part$, p.batch)
    else format($part$
    if uses_sets or wanted.%I then
      perform %s(events);
    end if;$part$, p.area, p.batch) end, '' order by p.place, p.area))
    from (select e.*, case when e.single is null then e.batch || '(events)'
                           when e.takes_plan then format('%s(event, plan.%I)', e.single, e.area)
                           else e.single || '(event)' end as call_single
            from ops.event_parts() e) p
$$;
comment on function ops.event_dispatcher_source is
  'The body of the dispatcher for the handlers that are there, or null when there is none.';

create or replace function ops.event_plans_source() returns text
language sql stable as $$
  select case when count(*) = 0 then 'begin end' else format($source$
begin
  insert into app.event_plans as p (event_name, %1$s)
  select n.event_name, %2$s
    from (%3$s) n%4$s
   order by n.event_name
  on conflict (event_name) do update set (%1$s) = row(%5$s)
   where row(%6$s) is distinct from row(%5$s);
  delete from app.event_plans p where p.event_name not in (%3$s);
end $source$,
    string_agg(format('%I', e.area), ', ' order by e.place, e.area),
    string_agg(format('%I.plan', e.area), ', ' order by e.place, e.area),
    string_agg(format('select f.event_name from %s() f', e.plan), ' union ' order by e.place, e.area),
    string_agg(format($join$
    left join %s() %I on %2$I.event_name = n.event_name$join$, e.plan, e.area), '' order by e.place, e.area),
    string_agg(format('excluded.%I', e.area), ', ' order by e.place, e.area),
    string_agg(format('p.%I', e.area), ', ' order by e.place, e.area)) end
    from ops.event_parts() e
   where e.plan is not null
$$;
comment on function ops.event_plans_source is
  'The body of internal.event_plans_compute for the plans that areas declare.';

create or replace function internal.runs_sets() returns boolean
language sql stable as $$
  select coalesce(current_setting('app.event_path', true), '') = 'set'
$$;
comment on function internal.runs_sets is
  'Whether one event takes the path of many, and no plan is asked: for tests, which compare both, and for operators. The
   setting app.event_path is short or set.';
revoke execute on function internal.runs_sets from public;

create or replace function ops.functions_loaded(is_replayed boolean default false) returns void
language plpgsql volatile as $$
declare
  made_from text;
  dispatcher text;
  plans text;
begin
  if to_regclass('app.row_counters') is not null then
    perform internal.counters_begin();
  end if;
  if functions_loaded.is_replayed then
    if to_regprocedure('internal.event_plans_compute()') is not null then
      perform internal.event_plans_refresh();
    end if;
    return;
  end if;
  -- by content: databases of one program have one dispatcher, with one comment
  select 'Passes events on to the areas that handle them, in the order of their places. Made by ops.functions_loaded '
         'from '
         || md5(string_agg(p.oid::regprocedure || ' ' || p.prosrc, ',' order by p.oid::regprocedure::text)) || '.'
    into made_from
    from pg_catalog.pg_proc p
   -- by the index of names
   where p.pronamespace = 'internal'::regnamespace
     and (p.proname >= 'on_event' and p.proname < 'on_evenu'
          or p.proname >= 'event_plan__' and p.proname < 'event_plan_`');
  if to_regclass('app.event_plans') is null
     or made_from is not distinct from obj_description(to_regprocedure('internal.tg_engagement_events__10_dispatch()'),
                                                       'pg_proc') then
    return;
  end if;
  dispatcher := ops.event_dispatcher_source();
  plans := ops.event_plans_source();
  if dispatcher is null then
    return;
  end if;
  -- what has not changed is left alone: a new trigger locks the log
  if not exists (select from pg_catalog.pg_proc p
                  where p.pronamespace = 'internal'::regnamespace and p.proname = 'event_plans_compute'
                    and p.prosrc = plans) then
    execute format('create or replace function internal.event_plans_compute() returns void language plpgsql volatile '
                   'as %L', plans);
    comment on function internal.event_plans_compute is
  'Computes app.event_plans anew from the plans of all areas, and writes what changed. Made by ops.functions_loaded.
   Granted to nobody.';
    revoke execute on function internal.event_plans_compute from public;
  end if;
  if not exists (select from pg_catalog.pg_proc p
                  where p.pronamespace = 'internal'::regnamespace and p.proname = 'tg_engagement_events__10_dispatch'
                    and p.prosrc = dispatcher) then
    execute format('create or replace function internal.tg_engagement_events__10_dispatch() returns trigger language '
                   'plpgsql volatile security definer
                    set search_path = '''' set plan_cache_mode = ''force_generic_plan'' as %L', dispatcher);
    revoke execute on function internal.tg_engagement_events__10_dispatch from public;
  end if;
  execute format('comment on function internal.tg_engagement_events__10_dispatch is %L', made_from);
  if not exists (select from pg_catalog.pg_trigger t
                  where t.tgrelid = 'app.engagement_events'::regclass
                    and t.tgname = 'tg_engagement_events__10_dispatch') then
    create trigger tg_engagement_events__10_dispatch
      after insert on app.engagement_events
      referencing new table as inserted
      for each statement execute function internal.tg_engagement_events__10_dispatch();
  end if;
  -- with this file the dispatcher goes: where an earlier program is loaded again, whose areas have triggers of their
  -- own
  insert into ops.objects (path, kind, identity)
  select f.path, o.kind, o.identity
    from ops.files f
   cross join (values ('trigger', 'tg_engagement_events__10_dispatch on app.engagement_events'),
                      ('function', 'internal.tg_engagement_events__10_dispatch()'),
                      ('function', 'internal.event_plans_compute()')) as o (kind, identity)
   where f.path = 'sql/tenant/20_events.sql'
  except
  select o.path, o.kind, o.identity from ops.objects o;
  -- also when only what an area answers has changed
  perform internal.event_plans_refresh();
end $$;
comment on function ops.functions_loaded is
  'The loader calls it in each transaction that changed functions, before the commit: compiles the dispatcher of events,
   refreshes the plans and counts what new counters hold. is_replayed: functions came with their dispatcher from another
   database, and the plans are still those of the former ones.';

create or replace function internal.event_plans_refresh() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- who writes many definitions refreshes once, after them
  if coalesce(current_setting('app.event_plans_later', true) in ('on', 'changed'), false) then
    perform set_config('app.event_plans_later', 'changed', true);
    return;
  end if;
  -- one after the other, and each in a statement that begins when it is its turn: it sees what those before it
  -- committed
  perform internal.advisory_lock('event plans');
  perform internal.event_plans_compute();
end $$;
comment on function internal.event_plans_refresh is
  'Brings app.event_plans up to date with the definitions, also with those that another transaction is about to commit.
   Locks the plans against other refreshes until the transaction ends; events read them meanwhile. Between
   internal.promotion_plans_hold and internal.promotion_plans_release only noted. Granted to nobody.';
revoke execute on function internal.event_plans_refresh from public;

create or replace function internal.tg_event_plans() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.event_plans_refresh();
  return null;
end $$;
comment on function internal.tg_event_plans is 'For statement triggers on definitions that a plan is made of.';
revoke execute on function internal.tg_event_plans from public;
