-- Periods and time zones. A period is a local day, week or month, known by its first date, or by a number, each one
-- more than the one before, so that a gap is a subtraction. docs/streaks.md describes changes of time zone. Functions
-- that read a table or a subquery are plpgsql here, which caches plans; a function of language sql would be planned
-- again.

create or replace function internal.period_number(period text, week_starts_on int, day date) returns int
language sql immutable parallel safe as $$
  -- 0001-01-01 was a Monday
  select case period_number.period
    when 'day' then period_number.day - date '0001-01-01'
    when 'week' then (period_number.day - date '0001-01-01' - (period_number.week_starts_on + 6) % 7) / 7
    else extract(year from period_number.day)::int * 12 + extract(month from period_number.day)::int - 1
  end
$$;
comment on function internal.period_number is
  'The number of the period that a local date is in. week_starts_on counts as ISO does, 1 is Monday; 0 and 7 are
   Sunday.';

create or replace function internal.period_date(period text, week_starts_on int, number int) returns date
language sql immutable parallel safe as $$
  select case period_date.period
    when 'day' then date '0001-01-01' + period_date.number
    when 'week' then date '0001-01-01' + period_date.number * 7 + (period_date.week_starts_on + 6) % 7
    else make_date(period_date.number / 12, period_date.number % 12 + 1, 1)
  end
$$;
comment on function internal.period_date is 'The first date of a period.';

create or replace function internal.period_key(period text, starts_on date) returns text
language sql stable parallel safe as $$
  select case period_key.period
    when 'day' then to_char(period_key.starts_on, 'YYYY-MM-DD')
    -- the ISO week that holds the fourth day, whichever day a week begins on
    when 'week' then to_char(period_key.starts_on + 3, 'IYYY"-W"IW')
    else to_char(period_key.starts_on, 'YYYY-MM')
  end
$$;
comment on function internal.period_key is '2026-10-03, 2026-W40 or 2026-10.';

create or replace function internal.period_of_key(period text, week_starts_on int, key text) returns date
language plpgsql stable parallel safe as $$
declare
  starts_on date;
begin
  if period_of_key.period = 'day' and period_of_key.key ~ '^\d{4}-\d{2}-\d{2}$' then
    starts_on := period_of_key.key::date;
  elsif period_of_key.period = 'week' and period_of_key.key ~ '^\d{4}-W\d{2}$' then
    -- the fourth day of that week is its key's Monday, or one of the six days after
    starts_on := internal.period_date('week', period_of_key.week_starts_on,
                   internal.period_number('week', period_of_key.week_starts_on,
                                          to_date(period_of_key.key, 'IYYY"-W"IW')));
    starts_on := starts_on + case internal.period_key('week', starts_on) when period_of_key.key then 0 else 7 end;
  elsif period_of_key.period = 'month' and period_of_key.key ~ '^\d{4}-\d{2}$' then
    starts_on := (period_of_key.key || '-01')::date;
  end if;
  return case when internal.period_key(period_of_key.period, starts_on) = period_of_key.key then starts_on end;
exception when data_exception then
  return null;
end $$;
comment on function internal.period_of_key is 'The first date of the period that a key names; null when it names none.';

create or replace function internal.local_midnight(zone text, day date) returns timestamptz
language plpgsql stable parallel safe as $$
declare
  midnight constant timestamptz := local_midnight.day::timestamp at time zone local_midnight.zone;
begin
  -- where clocks go back over midnight there are two: the first begins the date
  if ((midnight - interval '1 hour') at time zone local_midnight.zone)::date >= local_midnight.day then
    return midnight - interval '1 hour';
  end if;
  return midnight;
end $$;
comment on function internal.local_midnight is
  'When a date begins in a time zone. A date that a zone leaves out begins when the next one does.';

create or replace function internal.date_is_skipped(period text, zone text, number int) returns boolean
language sql stable parallel safe as $$
  -- Samoa went from 29 to 31 December 2011: nobody can be asked for the 30th
  select date_is_skipped.period = 'day'
     and internal.local_midnight(date_is_skipped.zone, internal.period_date('day', 1, date_is_skipped.number))
      >= internal.local_midnight(date_is_skipped.zone, internal.period_date('day', 1, date_is_skipped.number + 1))
$$;
comment on function internal.date_is_skipped is 'Whether a zone''s calendar has no such day.';

create or replace function internal.streak_zone_of(definition app.streak_definitions, app_user_id uuid) returns text
language plpgsql stable as $$
begin
  if (streak_zone_of.definition).timezone_mode = 'fixed' then
    return (streak_zone_of.definition).timezone;
  end if;
  return coalesce((select t.name
                     from app.users u
                     join app.timezones t on t.name = u.timezone
                    where u.id = streak_zone_of.app_user_id), 'UTC');
end $$;
comment on function internal.streak_zone_of is
  'The zone whose dates count: the definition''s, or the user''s, UTC when that is null.';

create or replace function internal.streak_zone_changes(definition app.streak_definitions, app_user_id uuid)
returns app.streak_timezones[]
language plpgsql stable as $$
begin
  if (streak_zone_changes.definition).timezone_mode = 'fixed' then
    return null;
  end if;
  return (select array_agg(m order by m.moved_at) from app.streak_timezones m
           where m.app_user_id = streak_zone_changes.app_user_id);
end $$;
comment on function internal.streak_zone_changes is
  'A user''s changes of zone, oldest first; null when there are none that count.';

create or replace function internal.zone_at(zone text, moves app.streak_timezones[], at timestamptz) returns text
language plpgsql immutable parallel safe as $$
begin
  if zone_at.moves is null then
    return zone_at.zone;
  end if;
  return coalesce((select m.from_zone from unnest(zone_at.moves) m where m.moved_at > zone_at.at order by m.moved_at
                    limit 1),
                  zone_at.zone);
end $$;
comment on function internal.zone_at is
  'The zone that a user had at a time: the zone before the first change after it, else the present one.';

create or replace function internal.recent_zone_changes(period text, moves app.streak_timezones[], at timestamptz)
returns app.streak_timezones[]
language plpgsql immutable parallel safe as $$
begin
  if recent_zone_changes.moves is null then
    return null;
  end if;
  return (select array_agg(m order by m.moved_at)
            from unnest(recent_zone_changes.moves) m
           where m.moved_at <= recent_zone_changes.at
             and m.moved_at > recent_zone_changes.at - case recent_zone_changes.period when 'day' then interval '9 days'
                                                            when 'week' then interval '23 days'
                                                                         else interval '95 days' end);
end $$;
comment on function internal.recent_zone_changes is
  'The changes of zone that affect a period which may be open at a time; null when there are none, which is nearly
   always.';

create or replace function internal.streak_deadline(definition app.streak_definitions, zone text,
                                                    moves app.streak_timezones[], number int, as_of timestamptz)
returns timestamptz
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_deadline.definition;
  first_day constant date := internal.period_date(d.period, d.week_starts_on, streak_deadline.number);
  next_day constant date := internal.period_date(d.period, d.week_starts_on, streak_deadline.number + 1);
  grace constant interval := make_interval(hours => d.grace_hours);
  deadline timestamptz;
begin
  if streak_deadline.moves is null then
    return internal.local_midnight(streak_deadline.zone, next_day) + grace;
  end if;
  with made as (
    select m.moved_at, m.from_zone, m.to_zone
      from unnest(streak_deadline.moves) m
     where m.moved_at <= streak_deadline.as_of
  ), stays as (
    -- where the user was when; a period is lived in every zone where some of it was
    select lag(m.moved_at, 1, '-infinity') over w as since, m.moved_at as until, m.from_zone as zone
      from made m
    window w as (order by m.moved_at)
     union all
    select coalesce(max(m.moved_at), '-infinity'), 'infinity',
           internal.zone_at(streak_deadline.zone, streak_deadline.moves, streak_deadline.as_of)
      from made m
  ), lived_in as (
    select s.zone
      from stays s
     where internal.local_midnight(s.zone, first_day) < s.until
       and internal.local_midnight(s.zone, next_day) + grace > s.since
     union
    -- a move while a period is under way in either zone leaves it the later of both ends
    select moved.zone
      from made m
     cross join lateral (values (m.from_zone), (m.to_zone)) as moved (zone)
     where least(internal.local_midnight(m.from_zone, first_day),
                 internal.local_midnight(m.to_zone, first_day)) <= m.moved_at
       and greatest(internal.local_midnight(m.from_zone, next_day),
                    internal.local_midnight(m.to_zone, next_day)) + grace > m.moved_at
  )
  select max(internal.local_midnight(l.zone, next_day)) + grace into deadline from lived_in l;
  return deadline;
end $$;
comment on function internal.streak_deadline is
  'Until when a period can be saved: its end in the user''s zone and the hours of grace; the later of two zones for a
   user who moved while it was under way. Moves after as_of are not known yet.';

create or replace function internal.streak_place(definition app.streak_definitions, zone text,
                                                 moves app.streak_timezones[], at timestamptz, out number int,
                                                 out reach int)
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_place.definition;
  here constant text := internal.zone_at(streak_place.zone, streak_place.moves, streak_place.at);
  recent constant app.streak_timezones[] := internal.recent_zone_changes(d.period, streak_place.moves, streak_place.at);
begin
  number := internal.period_number(d.period, d.week_starts_on, (streak_place.at at time zone here)::date);
  reach := 0;
  if d.grace_hours = 0 and recent is null then
    return;
  end if;
  while reach < 3
    and streak_place.at < internal.streak_deadline(d, here, recent, number - reach - 1, streak_place.at)
  loop
    reach := reach + 1;
  end loop;
end $$;
comment on function internal.streak_place is
  'The period that a time falls in, and how many periods before it could still be saved then (at most 3).';

create or replace function internal.streak_period_at(definition app.streak_definitions, zone text,
                                                     moves app.streak_timezones[], at timestamptz, out current int,
                                                     out previous int, out passed int, out starts_at timestamptz,
                                                     out ends_at timestamptz, out deadline timestamptz)
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_period_at.definition;
  here constant text := internal.zone_at(streak_period_at.zone, streak_period_at.moves, streak_period_at.at);
  recent constant app.streak_timezones[] := internal.recent_zone_changes(d.period, streak_period_at.moves,
                                                                         streak_period_at.at);
begin
  current := internal.period_number(d.period, d.week_starts_on, (streak_period_at.at at time zone here)::date);
  starts_at := internal.local_midnight(here, internal.period_date(d.period, d.week_starts_on, current));
  ends_at := internal.local_midnight(here, internal.period_date(d.period, d.week_starts_on, current + 1));
  deadline := internal.streak_deadline(d, here, recent, current, streak_period_at.at);
  passed := current - 1;
  previous := case when internal.date_is_skipped(d.period, here, passed) then passed - 1 else passed end;
  -- 48 hours of grace and 26 of travel keep at most four days open
  while (d.grace_hours > 0 or recent is not null) and passed > current - 6
    and streak_period_at.at < internal.streak_deadline(d, here, recent, passed, streak_period_at.at)
  loop
    passed := passed - 1;
  end loop;
end $$;
comment on function internal.streak_period_at is
  'The periods of a streak at a time: the current one with its start, end and deadline, the one before it (skipping
   dates that the calendar omits), and the newest one that cannot be saved any more.';

create or replace function internal.tg_users__streak_timezones() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not exists (select from app.user_streaks s where s.app_user_id = new.id) then
    return null;
  end if;
  perform from app.user_streaks s where s.app_user_id = new.id order by s.streak_definition_id for no key update;
  -- time-based changes until now are applied by the former zone
  perform internal.streaks_apply_time(array_agg(s.app_user_id), array_agg(s.streak_definition_id),
                                      coalesce((select t.name from app.timezones t where t.name = old.timezone), 'UTC'))
     from app.user_streaks s
    where s.app_user_id = new.id;
  insert into app.streak_timezones as moved (app_user_id, moved_at, from_zone, to_zone)
  select new.id, internal.now(), coalesce(f.name, 'UTC'), coalesce(t.name, 'UTC')
    from (values (1)) as one (x)
    left join app.timezones f on f.name = old.timezone
    left join app.timezones t on t.name = new.timezone
  on conflict (app_user_id, moved_at) do update set to_zone = excluded.to_zone;
  -- fifty are enough for a traveller, and bound a user who changes the setting all the time
  delete from app.streak_timezones m
   where m.app_user_id = new.id
     and m.moved_at < (select k.moved_at from app.streak_timezones k where k.app_user_id = new.id
                        order by k.moved_at desc offset 49 limit 1);
  update app.user_streaks s set next_check_at = internal.now()
   where s.app_user_id = new.id and s.last_period is not null;
  perform internal.streaks_enqueue_tick(internal.now());
  return null;
end $$;
comment on function internal.tg_users__streak_timezones is 'Records changes of zone by users who have streaks.';

create or replace trigger tg_users__streak_timezones
  after update of timezone on app.users
  for each row when (old.timezone is distinct from new.timezone)
  execute function internal.tg_users__streak_timezones();
