-- Time-based changes of streaks. Status is computed on read and needs none of this; the schedule only reports, as
-- events, that a streak is at risk, used a freeze, or broke. app.user_streaks.next_check_at is when the next such event
-- of a row is due.
--
-- Before anything changes a streak, its time-based events until now are emitted, in the same transaction and under the
-- same lock (streaks_apply_time is called by every function that locks a row). So these events, and their times, do not
-- depend on when, or how often, a worker runs.

create or replace function internal.streak_forecast(definition app.streak_definitions, zone text,
                                                    moves app.streak_timezones[], paused int[], last int, covered int,
                                                    freezes int, grants app.streak_freezes[], risk_notified_through int,
                                                    lapse_notified_through int, until timestamptz,
                                                    out notice_kinds text[], out notice_at timestamptz[],
                                                    out notice_numbers int[], out notice_freezes int[],
                                                    out notice_deadlines timestamptz[], out next_check_at timestamptz)
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_forecast.definition;
  hours constant interval := make_interval(hours => internal.streak_at_risk_hours(d));
  grace constant interval := make_interval(hours => d.grace_hours);
  -- an event that results from a change of the rules or of the zone has the time of that change: all earlier events
  -- have been emitted
  changed_at constant timestamptz := greatest(d.updated_at,
                                              (select max(m.moved_at) from unnest(streak_forecast.moves) m));
  p int := streak_forecast.last;
  previous int := streak_forecast.last;
  starts_at timestamptz;
  ends_at timestamptz;
  deadline timestamptz;
  broken_at timestamptz := 'infinity';
  at timestamptz;
begin
  if p is null then
    return;
  end if;
  ends_at := internal.local_midnight(streak_forecast.zone, internal.period_date(d.period, d.week_starts_on, p + 1));
  -- 48 hours of grace leave three periods open; pauses and freezes continue the chain further
  while p < streak_forecast.covered + 4 loop
    p := p + 1;
    starts_at := ends_at;
    exit when starts_at > streak_forecast.until and starts_at >= next_check_at;
    ends_at := internal.local_midnight(streak_forecast.zone, internal.period_date(d.period, d.week_starts_on, p + 1));
    -- a date that the calendar omits needs no event, and does not count as the period before the next one
    continue when d.period = 'day' and starts_at >= ends_at;
    if p = any (streak_forecast.paused) then
      previous := p;
      continue;
    end if;
    deadline := case when streak_forecast.moves is null then ends_at + grace
                     else internal.streak_period_closes_at(d, streak_forecast.zone, streak_forecast.moves, p) end;

    if p = streak_forecast.covered + 1 then
      broken_at := deadline;
    end if;
    if p > coalesce(streak_forecast.risk_notified_through, p - 1) then
      -- near its deadline, if the period before was qualified; once it is over, in its grace, in any case
      at := case when previous = streak_forecast.last then greatest(starts_at, least(ends_at, deadline - hours))
                 else ends_at end;
      if at < deadline and at < broken_at then
        at := greatest(at, changed_at);
        if at <= streak_forecast.until and at < least(deadline, broken_at) then
          notice_kinds := notice_kinds || 'at_risk'::text;
          notice_at := notice_at || at;
          notice_numbers := notice_numbers || p;
          notice_freezes := notice_freezes || null::int;
          notice_deadlines := notice_deadlines || deadline;
        elsif at > streak_forecast.until then
          next_check_at := least(next_check_at, at);
        end if;
      end if;
    end if;
    if p <= streak_forecast.covered + 1 and p > coalesce(streak_forecast.lapse_notified_through, p - 1) then
      at := greatest(deadline, changed_at);
      if at <= streak_forecast.until then
        notice_kinds := notice_kinds || case when p > streak_forecast.covered then 'broken' else 'frozen' end;
        notice_at := notice_at || at;
        notice_numbers := notice_numbers || p;
        notice_freezes := notice_freezes || case when p <= streak_forecast.covered then (internal.streak_extent(
          d, streak_forecast.zone, streak_forecast.last, streak_forecast.freezes, streak_forecast.paused,
            streak_forecast.grants, p)).freezes_left end;
        notice_deadlines := notice_deadlines || deadline;
      else
        next_check_at := least(next_check_at, at);
      end if;
    end if;
    previous := p;
  end loop;
end $$;
comment on function internal.streak_forecast is
  'The time-based events of a chain after its last qualified period until a time (at_risk, frozen, broken: their time,
   period, and the freezes left), and when to check again; null when no more are due. Periods are numbers. Events that
   were emitted already are omitted.';

create or replace function internal.streak_period_closes_at(definition app.streak_definitions, zone text,
                                                            moves app.streak_timezones[], number int)
returns timestamptz
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_period_closes_at.definition;
  passes timestamptz := 'infinity';
begin
  -- a period that passes takes those before it along, whatever zones they were lived in
  for later in streak_period_closes_at.number .. streak_period_closes_at.number + 2 loop
    passes := least(passes, greatest(
      internal.streak_deadline(d, streak_period_closes_at.zone, streak_period_closes_at.moves, later, 'infinity'),
      internal.local_midnight(streak_period_closes_at.zone,
                              internal.period_date(d.period, d.week_starts_on, later + 1))));
  end loop;
  return passes;
end $$;
comment on function internal.streak_period_closes_at is
  'The time from which a period cannot be saved any more, for a user who changed zone: the inverse of
   internal.streak_period_at.';

create or replace function internal.streaks_mark(app_user_ids uuid[], definition_ids uuid[], zone_before text,
                                                 out notified_to uuid[], out notified_names text[],
                                                 out notified_properties jsonb[], out notified_at timestamptz[])
-- index scans are forced: a plan that was made while the tables were small compares each of a batch with each row,
-- until they are analyzed
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off set jit = off as $$
begin
  with due as materialized (
    select s.*, d,
           case when d.timezone_mode = 'fixed' then d.timezone
                else coalesce(streaks_mark.zone_before, t.name, 'UTC') end as zone,
           case when d.timezone_mode = 'user'
                then (select array_agg(m order by m.moved_at) from app.streak_timezones m
                       where m.app_user_id = s.app_user_id) end as moves,
           internal.paused_periods(d, (select array_agg(p) from app.streak_pauses p
                                        where (p.app_user_id, p.streak_definition_id) = (s.app_user_id, d.id)
                                          and p.ends_on >= s.last_period)) as paused,
           (select array_agg(g) from app.streak_freezes g
             where (g.app_user_id, g.streak_definition_id) = (s.app_user_id, d.id)
               and g.applies_from > s.last_period) as grants
      from unnest(streaks_mark.app_user_ids, streaks_mark.definition_ids) as w (app_user_id, definition_id)
      join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (w.app_user_id, w.definition_id)
      join app.streak_definitions d on d.id = s.streak_definition_id
      join app.users u on u.id = s.app_user_id
      left join app.timezones t on t.name = u.timezone
     -- an expression, so that no plan reads all due streaks by the index of next_check_at for each of these
     where s.next_check_at + interval '0' <= internal.now()
  ), looked as materialized (
    select u.app_user_id, u.streak_definition_id, u.d, u.current_count, u.longest_count, o.*
      from due u
     cross join lateral internal.streak_forecast(
       u.d, u.zone, u.moves, u.paused,
       internal.period_number((u.d).period, (u.d).week_starts_on, u.last_period),
       internal.period_number((u.d).period, (u.d).week_starts_on, u.covered_through), u.freezes, u.grants,
       internal.period_number((u.d).period, (u.d).week_starts_on, u.risk_notified_through),
       internal.period_number((u.d).period, (u.d).week_starts_on, u.lapse_notified_through), internal.now()) o
  ), marked as (
    update app.user_streaks s
       set next_check_at = case when (l.d).is_active then l.next_check_at end,
           risk_notified_through = greatest(s.risk_notified_through,
                                            internal.notified_through(l.d, l.notice_kinds, l.notice_numbers, true)),
           lapse_notified_through = greatest(s.lapse_notified_through,
                                             internal.notified_through(l.d, l.notice_kinds, l.notice_numbers, false))
      from looked l
     where (s.app_user_id, s.streak_definition_id) = (l.app_user_id, l.streak_definition_id)
  )
  select array_agg(l.app_user_id order by l.app_user_id, n.at, l.streak_definition_id, n.nth),
         array_agg('svc.streak.' || n.kind order by l.app_user_id, n.at, l.streak_definition_id, n.nth),
         array_agg(jsonb_build_object(
           'streak_definition_id', l.streak_definition_id, 'key', (l.d).key, 'name', (l.d).name,
           'period', internal.period_key((l.d).period,
                                         internal.period_date((l.d).period, (l.d).week_starts_on, n.number)),
           'deadline', internal.iso(n.deadline), 'current_count', case when n.kind = 'broken' then 0
                                                                       else l.current_count end,
                                                                         'longest_count', l.longest_count)
           || case n.kind when 'broken' then jsonb_build_object('lost_count', l.current_count)
                          when 'frozen' then jsonb_build_object('freezes_remaining', n.freezes) else '{}' end
           order by l.app_user_id, n.at, l.streak_definition_id, n.nth),
         array_agg(n.at order by l.app_user_id, n.at, l.streak_definition_id, n.nth)
    into notified_to, notified_names, notified_properties, notified_at
    from looked l
   cross join lateral unnest(l.notice_kinds, l.notice_at, l.notice_numbers, l.notice_freezes,
                             l.notice_deadlines) with ordinality
         as n (kind, at, number, freezes, deadline, nth)
   where (l.d).is_active;
end $$;
comment on function internal.streaks_mark is
  'Stores that the time-based events of these streaks are emitted until now, and returns these events. Granted to
   nobody.';

create or replace function internal.streaks_apply_time(app_user_ids uuid[], definition_ids uuid[],
                                                       zone_before text default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  marked record;
begin
  if streaks_apply_time.app_user_ids is null then
    return;
  end if;
  -- marked before the events are emitted: hooks that change these streaks find them marked
  select m.* into marked from internal.streaks_mark(streaks_apply_time.app_user_ids, streaks_apply_time.definition_ids,
                                                    streaks_apply_time.zone_before) m;
  perform internal.emit_many(marked.notified_to, marked.notified_names, marked.notified_properties, marked.notified_at,
                             false);
end $$;
comment on function internal.streaks_apply_time is
  'Emits the time-based events of these streaks until now, each once: svc.streak.at_risk, frozen and broken, with the
   time at which it became true. The rows, and their users, must be locked. zone_before: the zone of the user until this
   moment. Granted to nobody.';

create or replace function internal.notified_through(definition app.streak_definitions, kinds text[], numbers int[],
                                                     is_risk boolean)
returns date
language sql immutable parallel safe as $$
  select internal.period_date((notified_through.definition).period, (notified_through.definition).week_starts_on,
                              max(n.number))
    from unnest(notified_through.kinds, notified_through.numbers) as n (kind, number)
   where (n.kind = 'at_risk') = notified_through.is_risk
$$;
comment on function internal.notified_through is 'The first date of the newest period among the events of one kind.';

create or replace function internal.streak_reschedule(streak app.user_streaks, definition app.streak_definitions)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := streak_reschedule.definition;
  s app.user_streaks := streak_reschedule.streak;
  outlook record;
begin
  select o.* into outlook
    from internal.streak_forecast(
           d, internal.streak_zone_of(d, s.app_user_id), internal.streak_zone_changes(d, s.app_user_id),
           internal.paused_periods(d, (select array_agg(p) from app.streak_pauses p
                                        where (p.app_user_id, p.streak_definition_id) = (s.app_user_id, d.id)
                                          and p.ends_on >= s.last_period)),
           internal.period_number(d.period, d.week_starts_on, s.last_period),
           internal.period_number(d.period, d.week_starts_on, s.covered_through), s.freezes,
           (select array_agg(g) from app.streak_freezes g
             where (g.app_user_id, g.streak_definition_id) = (s.app_user_id, d.id) and g.applies_from > s.last_period),
           internal.period_number(d.period, d.week_starts_on, s.risk_notified_through),
           internal.period_number(d.period, d.week_starts_on, s.lapse_notified_through), internal.now()) o;
  update app.user_streaks u
     set next_check_at = case when d.is_active then outlook.next_check_at end,
         risk_notified_through = greatest(u.risk_notified_through,
                                          internal.notified_through(d, outlook.notice_kinds, outlook.notice_numbers,
                                                                    true)),
         lapse_notified_through = greatest(u.lapse_notified_through,
                                           internal.notified_through(d, outlook.notice_kinds, outlook.notice_numbers,
                                                                     false))
   where (u.app_user_id, u.streak_definition_id) = (s.app_user_id, d.id)
  returning u.* into s;
  perform internal.streaks_enqueue_tick(s.next_check_at);
  return s;
end $$;
comment on function internal.streak_reschedule is
  'After a streak was changed: stores when its next time-based event is due. Past periods that the change itself
   affected emit no event, and are marked as emitted. The row must be locked. Granted to nobody.';

create or replace function internal.streaks_enqueue_tick(due_at timestamptz) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- one row for all streaks of a project, rarely written: its next check is due within the hour in any case
  if streaks_enqueue_tick.due_at is not null
     and not exists (select from app.outbox o
                      where (o.task, o.key) = ('streaks__tick', 'clock') and o.failed_at is null
                        and o.due_at <= streaks_enqueue_tick.due_at) then
    perform internal.enqueue('streaks__tick', 'clock', '{}', streaks_enqueue_tick.due_at);
  end if;
end $$;
comment on function internal.streaks_enqueue_tick is 'Queues the task streaks__tick by that time. Granted to nobody.';

create or replace function api.streaks_tick(batch int default 500) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  due_users uuid[];
  due_definitions uuid[];
  locked_users uuid[];
begin
  perform internal.check_caller('worker', 'the clock of streaks is advanced by a worker');
  locked_users := internal.lock_users(array(
    select distinct s.app_user_id
      from (select l.app_user_id from app.user_streaks l where l.next_check_at <= internal.now()
             order by l.next_check_at limit streaks_tick.batch) s));
  -- read again after locking: the transaction that held the user's lock may have emitted the event
  select array_agg(s.app_user_id), array_agg(s.streak_definition_id)
    into due_users, due_definitions
    from (select l.app_user_id, l.streak_definition_id
            from app.user_streaks l
           where l.app_user_id = any (locked_users) and l.next_check_at <= internal.now()
           order by l.app_user_id, l.streak_definition_id
             for no key update) s;
  perform internal.streaks_apply_time(due_users, due_definitions);
  return internal.reply(200, json_build_object(
    'streaks', coalesce(cardinality(due_users), 0),
    'is_over', not exists (select from app.user_streaks s where s.next_check_at <= internal.now()),
    -- a transaction that is still under way may have a streak that is due before all of these: hence at least every
    -- hour
    'next_at', internal.iso((select least(min(s.next_check_at), internal.now() + interval '1 hour')
                               from app.user_streaks s
                              where s.next_check_at is not null having count(*) > 0))));
end $$;
comment on function api.streaks_tick is
  'For the task streaks__tick: emits the due events of a batch of users. Locks the users in the order of their ids, then
   their streaks. Returns how many streaks were due, whether all due streaks were processed, and when to check again:
   null when no streak has a future event.';
