-- The clock: what becomes true of a streak while nothing happens to it. Status is worked out on read and needs none of this; the clock only tells,
-- as events, that a streak is at risk, used a freeze, or broke. Each row of app.user_streaks knows when it next has something to tell.
--
-- What the clock has to tell until now is told before anything changes a streak, in the same transaction and under the same lock (streaks_clock is
-- called by whatever locks a row). So what is told, and with what time, does not depend on when, or how often, a worker looks.

create or replace function internal.streak_outlook(
  definition app.streak_definitions, zone text, moves app.streak_timezones[], paused int[], last int, covered int, freezes int,
  grants app.streak_freezes[], risk_told int, lapse_told int, until timestamptz,
  out news_kinds text[], out news_at timestamptz[], out news_numbers int[], out news_freezes int[], out news_deadlines timestamptz[],
  out next_check_at timestamptz)
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_outlook.definition;
  hours constant interval := make_interval(hours => internal.streak_at_risk_hours(d));
  grace constant interval := make_interval(hours => d.grace_hours);
  -- what a change of the rules, or of the zone, made true, became true then: until now all had been told
  changed_at constant timestamptz := greatest(d.updated_at, (select max(m.moved_at) from unnest(streak_outlook.moves) m));
  p int := streak_outlook.last;
  previous int := streak_outlook.last;
  starts_at timestamptz;
  ends_at timestamptz;
  deadline timestamptz;
  broken_at timestamptz := 'infinity';
  at timestamptz;
begin
  if p is null then
    return;
  end if;
  ends_at := internal.local_midnight(streak_outlook.zone, internal.period_date(d.period, d.week_starts_on, p + 1));
  -- 48 hours of grace leave three periods open; pauses and freezes lead further
  while p < streak_outlook.covered + 4 loop
    p := p + 1;
    starts_at := ends_at;
    exit when starts_at > streak_outlook.until and starts_at >= next_check_at;
    ends_at := internal.local_midnight(streak_outlook.zone, internal.period_date(d.period, d.week_starts_on, p + 1));
    -- a date that the calendar leaves out asks for nothing, and is no period before the next one either
    continue when d.period = 'day' and starts_at >= ends_at;
    if p = any (streak_outlook.paused) then
      previous := p;
      continue;
    end if;
    deadline := case when streak_outlook.moves is null then ends_at + grace
                     else internal.streak_passes(d, streak_outlook.zone, streak_outlook.moves, p) end;

    if p = streak_outlook.covered + 1 then
      broken_at := deadline;
    end if;
    if p > coalesce(streak_outlook.risk_told, p - 1) then
      -- near its deadline, if the period before was qualified; once it is over, in its grace, in any case
      at := case when previous = streak_outlook.last then greatest(starts_at, least(ends_at, deadline - hours)) else ends_at end;
      if at < deadline and at < broken_at then
        at := greatest(at, changed_at);
        if at <= streak_outlook.until and at < least(deadline, broken_at) then
          news_kinds := news_kinds || 'at_risk'::text;
          news_at := news_at || at;
          news_numbers := news_numbers || p;
          news_freezes := news_freezes || null::int;
          news_deadlines := news_deadlines || deadline;
        elsif at > streak_outlook.until then
          next_check_at := least(next_check_at, at);
        end if;
      end if;
    end if;
    if p <= streak_outlook.covered + 1 and p > coalesce(streak_outlook.lapse_told, p - 1) then
      at := greatest(deadline, changed_at);
      if at <= streak_outlook.until then
        news_kinds := news_kinds || case when p > streak_outlook.covered then 'broken' else 'frozen' end;
        news_at := news_at || at;
        news_numbers := news_numbers || p;
        news_freezes := news_freezes || case when p <= streak_outlook.covered then (internal.streak_walk(
          d, streak_outlook.zone, streak_outlook.last, streak_outlook.freezes, streak_outlook.paused, streak_outlook.grants, p)).freezes_left end;
        news_deadlines := news_deadlines || deadline;
      else
        next_check_at := least(next_check_at, at);
      end if;
    end if;
    previous := p;
  end loop;
end $$;
comment on function internal.streak_outlook is
  'What the clock tells of a chain after its last qualified period until a time (at_risk, frozen, broken: when, of which period, how many freezes are
   left then), and when to look again; null when there is nothing more. Periods are numbers. What was told already is left out.';

create or replace function internal.streak_passes(definition app.streak_definitions, zone text, moves app.streak_timezones[], number int)
returns timestamptz
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_passes.definition;
  passes timestamptz := 'infinity';
begin
  -- a period that passes takes those before it along, whatever zones they were lived in
  for later in streak_passes.number .. streak_passes.number + 2 loop
    passes := least(passes, greatest(
      internal.streak_deadline(d, streak_passes.zone, streak_passes.moves, later, 'infinity'),
      internal.local_midnight(streak_passes.zone, internal.period_date(d.period, d.week_starts_on, later + 1))));
  end loop;
  return passes;
end $$;
comment on function internal.streak_passes is 'When a period cannot be saved any more, for a user who moved: as internal.streak_clock finds it, from the other side.';

create or replace function internal.streaks_clock(app_user_ids uuid[], definition_ids uuid[], zone_before text default null) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  told_to uuid[];
  told_names text[];
  told_properties jsonb[];
  told_at timestamptz[];
begin
  if streaks_clock.app_user_ids is null then
    return;
  end if;
  with due as materialized (
    select s.*, d,
           case when d.timezone_mode = 'fixed' then d.timezone else coalesce(streaks_clock.zone_before, t.name, 'UTC') end as zone,
           case when d.timezone_mode = 'user'
                then (select array_agg(m order by m.moved_at) from app.streak_timezones m where m.app_user_id = s.app_user_id) end as moves,
           internal.paused_periods(d, (select array_agg(p) from app.streak_pauses p
                                        where (p.app_user_id, p.streak_definition_id) = (s.app_user_id, d.id) and p.ends_on >= s.last_period)) as paused,
           (select array_agg(g) from app.streak_freezes g
             where (g.app_user_id, g.streak_definition_id) = (s.app_user_id, d.id) and g.applies_from > s.last_period) as grants
      from unnest(streaks_clock.app_user_ids, streaks_clock.definition_ids) as w (app_user_id, definition_id)
      join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (w.app_user_id, w.definition_id)
      join app.streak_definitions d on d.id = s.streak_definition_id
      join app.users u on u.id = s.app_user_id
      left join app.timezones t on t.name = u.timezone
     where s.next_check_at <= internal.now()
  ), looked as materialized (
    select u.app_user_id, u.streak_definition_id, u.d, u.current_count, u.longest_count, o.*
      from due u
     cross join lateral internal.streak_outlook(
       u.d, u.zone, u.moves, u.paused,
       internal.period_number((u.d).period, (u.d).week_starts_on, u.last_period),
       internal.period_number((u.d).period, (u.d).week_starts_on, u.covered_through), u.freezes, u.grants,
       internal.period_number((u.d).period, (u.d).week_starts_on, u.risk_told),
       internal.period_number((u.d).period, (u.d).week_starts_on, u.lapse_told), internal.now()) o
  ), marked as (
    update app.user_streaks s
       set next_check_at = case when (l.d).is_active then l.next_check_at end,
           risk_told = greatest(s.risk_told, internal.told_through(l.d, l.news_kinds, l.news_numbers, true)),
           lapse_told = greatest(s.lapse_told, internal.told_through(l.d, l.news_kinds, l.news_numbers, false))
      from looked l
     where (s.app_user_id, s.streak_definition_id) = (l.app_user_id, l.streak_definition_id)
  )
  select array_agg(l.app_user_id order by l.app_user_id, n.at, l.streak_definition_id, n.nth),
         array_agg('svc.streak.' || n.kind order by l.app_user_id, n.at, l.streak_definition_id, n.nth),
         array_agg(jsonb_build_object(
           'streak_definition_id', l.streak_definition_id, 'key', (l.d).key, 'name', (l.d).name,
           'period', internal.period_key((l.d).period, internal.period_date((l.d).period, (l.d).week_starts_on, n.number)),
           'deadline', internal.iso(n.deadline), 'current_count', case when n.kind = 'broken' then 0 else l.current_count end, 'longest_count', l.longest_count)
           || case n.kind when 'broken' then jsonb_build_object('lost_count', l.current_count)
                          when 'frozen' then jsonb_build_object('freezes_remaining', n.freezes) else '{}' end
           order by l.app_user_id, n.at, l.streak_definition_id, n.nth),
         array_agg(n.at order by l.app_user_id, n.at, l.streak_definition_id, n.nth)
    into told_to, told_names, told_properties, told_at
    from looked l
   cross join lateral unnest(l.news_kinds, l.news_at, l.news_numbers, l.news_freezes, l.news_deadlines) with ordinality
         as n (kind, at, number, freezes, deadline, nth)
   where (l.d).is_active;
  -- marked before they are told: what hooks do to these streaks finds them told
  perform internal.emit_many(told_to, told_names, told_properties, told_at, false);
end $$;
comment on function internal.streaks_clock is
  'Tells what the clock has to tell of these streaks until now, each once: svc.streak.at_risk, frozen and broken, with the time at which it became
   true. The rows, and their users, must be locked. zone_before: the zone of the user until this moment. Granted to nobody.';

create or replace function internal.told_through(definition app.streak_definitions, kinds text[], numbers int[], is_risk boolean) returns date
language sql immutable parallel safe as $$
  select internal.period_date((told_through.definition).period, (told_through.definition).week_starts_on, max(n.number))
    from unnest(told_through.kinds, told_through.numbers) as n (kind, number)
   where (n.kind = 'at_risk') = told_through.is_risk
$$;
comment on function internal.told_through is 'The first date of the newest period among what is told of one kind.';

create or replace function internal.streak_wind(streak app.user_streaks, definition app.streak_definitions) returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := streak_wind.definition;
  s app.user_streaks := streak_wind.streak;
  outlook record;
begin
  select o.* into outlook
    from internal.streak_outlook(
           d, internal.streak_zone_of(d, s.app_user_id), internal.streak_moves_of(d, s.app_user_id),
           internal.paused_periods(d, (select array_agg(p) from app.streak_pauses p
                                        where (p.app_user_id, p.streak_definition_id) = (s.app_user_id, d.id) and p.ends_on >= s.last_period)),
           internal.period_number(d.period, d.week_starts_on, s.last_period),
           internal.period_number(d.period, d.week_starts_on, s.covered_through), s.freezes,
           (select array_agg(g) from app.streak_freezes g
             where (g.app_user_id, g.streak_definition_id) = (s.app_user_id, d.id) and g.applies_from > s.last_period),
           internal.period_number(d.period, d.week_starts_on, s.risk_told),
           internal.period_number(d.period, d.week_starts_on, s.lapse_told), internal.now()) o;
  update app.user_streaks u
     set next_check_at = case when d.is_active then outlook.next_check_at end,
         risk_told = greatest(u.risk_told, internal.told_through(d, outlook.news_kinds, outlook.news_numbers, true)),
         lapse_told = greatest(u.lapse_told, internal.told_through(d, outlook.news_kinds, outlook.news_numbers, false))
   where (u.app_user_id, u.streak_definition_id) = (s.app_user_id, d.id)
  returning u.* into s;
  perform internal.streaks_wake(s.next_check_at);
  return s;
end $$;
comment on function internal.streak_wind is
  'After a streak was changed: when its clock next has something to tell. What the change itself made of the past is no news of the clock, and is
   marked as told. The row must be locked. Granted to nobody.';

create or replace function internal.streaks_wake(due_at timestamptz) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- one row for all streaks of a project, and hardly ever written: its look is due within the hour in any case
  if streaks_wake.due_at is not null
     and not exists (select from app.outbox o
                      where (o.task, o.key) = ('streaks__tick', 'clock') and o.failed_at is null and o.due_at <= streaks_wake.due_at) then
    perform internal.enqueue('streaks__tick', 'clock', '{}', streaks_wake.due_at);
  end if;
end $$;
comment on function internal.streaks_wake is 'Sees to it that the clock is looked at by then. Granted to nobody.';

create or replace function internal.streaks_tick(batch int) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  due_users uuid[];
  due_definitions uuid[];
  locked_users uuid[];
begin
  if internal.caller() <> 'worker' then
    raise exception 'the clock is wound by a worker, not by %', internal.caller();
  end if;
  locked_users := internal.lock_users(array(
    select distinct s.app_user_id
      from (select l.app_user_id from app.user_streaks l where l.next_check_at <= internal.now() order by l.next_check_at limit streaks_tick.batch) s));
  -- another look: whoever held the user may have told it meanwhile
  select array_agg(s.app_user_id), array_agg(s.streak_definition_id)
    into due_users, due_definitions
    from (select l.app_user_id, l.streak_definition_id
            from app.user_streaks l
           where l.app_user_id = any (locked_users) and l.next_check_at <= internal.now()
           order by l.app_user_id, l.streak_definition_id
             for no key update) s;
  perform internal.streaks_clock(due_users, due_definitions);
  return json_build_object(
    'streaks', coalesce(cardinality(due_users), 0),
    'is_over', not exists (select from app.user_streaks s where s.next_check_at <= internal.now()),
    -- a transaction that is still under way may have a streak that is due before all of these: hence at least every hour
    'next_at', internal.iso((select least(min(s.next_check_at), internal.now() + interval '1 hour') from app.user_streaks s
                              where s.next_check_at is not null having count(*) > 0)));
end $$;
comment on function internal.streaks_tick is
  'Tells what is due of the streaks of some users. Locks the users in their order, then their streaks. Answers how many streaks were due, whether that
   was all, and when to look again: null when no streak has anything to tell any more.';

create or replace function api.streaks_tick(batch int default 500) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.streaks_tick(streaks_tick.batch))
$$;
comment on function api.streaks_tick is 'For the task streaks__tick. Safe to run twice, or by two at once: each streak is told by one.';
