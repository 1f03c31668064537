-- Reads of streaks: the status is computed from a row of app.user_streaks and the clock. No job has to run for a
-- response to be right.

create or replace function internal.streak_status(last_period int, covered_through int, current int, previous int,
                                                  passed int, is_waiting boolean, is_paused boolean,
                                                  risky_from timestamptz)
returns text
language sql stable parallel safe as $$
  select case
    when streak_status.last_period is null then 'none'
    when streak_status.covered_through < streak_status.passed then 'broken'
    when streak_status.last_period >= streak_status.current then 'active'
    when streak_status.is_waiting then 'at_risk'
    when streak_status.is_paused or streak_status.last_period < streak_status.previous then 'frozen'
    when internal.now() > streak_status.risky_from then 'at_risk'
    else 'active'
  end
$$;
comment on function internal.streak_status is
  'none, active, at_risk, frozen or broken, from the outcome of the fold and the clock of the user''s zone, both in
   numbers of periods. is_waiting: a period is over and uncovered, and can still be saved; is_paused: the one under way
   is.';

create or replace function internal.streak_has_open_period(last_period int, passed int, previous int, paused int[])
returns boolean
language plpgsql immutable parallel safe as $$
begin
  return exists (
    select from generate_series(greatest(streak_has_open_period.last_period, streak_has_open_period.passed) + 1,
                                streak_has_open_period.previous) as open (number)
     where open.number <> all (coalesce(streak_has_open_period.paused, '{}')));
end $$;
comment on function internal.streak_has_open_period is
  'Whether a period after the newest qualified one is over, not paused, and can still be saved.';

create or replace function internal.streak_at_risk_hours(definition app.streak_definitions) returns int
language sql immutable parallel safe as $$
  select coalesce((streak_at_risk_hours.definition).at_risk_hours,
                  case (streak_at_risk_hours.definition).period when 'day' then 6 when 'week' then 24 else 72 end)
$$;
comment on function internal.streak_at_risk_hours is
  'How many hours before its deadline a period counts as at risk: the configured number, or the default for its
   length.';

create or replace function internal.streak_now(definition app.streak_definitions, streak app.user_streaks)
returns internal.streak_state
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_now.definition;
  s constant app.user_streaks := streak_now.streak;
  zone constant text := internal.streak_zone_of(d, s.app_user_id);
  last constant int := internal.period_number(d.period, d.week_starts_on, s.last_period);
  state internal.streak_state;
begin
  select c.current, c.previous, c.passed, c.starts_at, c.ends_at, c.deadline
    into state.current, state.previous, state.passed, state.starts_at, state.ends_at, state.deadline
    from internal.streak_period_at(d, zone, internal.streak_zone_changes(d, s.app_user_id), internal.now()) c;
  state.paused := internal.paused_periods(d, (
    select array_agg(p)
      from app.streak_pauses p
     where (p.app_user_id, p.streak_definition_id) = (s.app_user_id, d.id) and p.ends_on >= s.last_period));
  state.is_qualified := exists (
    select from app.streak_periods r
     where (r.app_user_id, r.streak_definition_id) = (s.app_user_id, d.id)
       and r.starts_on = internal.period_date(d.period, d.week_starts_on, state.current)
       and r.source in ('event', 'manual', 'restore'));
  select w.freezes_left, w.frozen
    into state.freezes_remaining, state.frozen
    from internal.streak_extent(
           d, zone, coalesce(last, -1), s.freezes, state.paused,
           (select array_agg(g) from app.streak_freezes g
             where (g.app_user_id, g.streak_definition_id) = (s.app_user_id, d.id)
               and (g.applies_from > s.last_period or s.last_period is null)),
           case when last is null then -1 else greatest(state.passed, last) end) w;
  state.status := internal.streak_status(
    last, internal.period_number(d.period, d.week_starts_on, s.covered_through), state.current, state.previous,
      state.passed,
    internal.streak_has_open_period(last, state.passed, state.previous, state.paused),
    coalesce(state.current = any (state.paused), false),
    state.deadline - make_interval(hours => internal.streak_at_risk_hours(d)));
  return state;
end $$;
comment on function internal.streak_now is
  'The present state of a user''s streak: its status, the current period, and the freezes left.';

create or replace function internal.streak_json(definition app.streak_definitions, streak app.user_streaks) returns json
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_json.definition;
  s constant app.user_streaks := streak_json.streak;
  state constant internal.streak_state := internal.streak_now(d, s);
begin
  return json_build_object(
    'id', d.id, 'streak_definition_id', d.id, 'key', d.key, 'name', d.name, 'qualifying_event', d.qualifying_event,
    'status', state.status,
    'current_count', case when state.status in ('none', 'broken') then 0 else s.current_count end,
    'longest_count', s.longest_count,
    'started_on', case when state.status not in ('none', 'broken') then s.started_on end,
    'last_qualified_at', internal.iso(s.last_qualified_at),
    'freezes_remaining', state.freezes_remaining,
    'period', json_build_object(
      'key', internal.period_key(d.period, internal.period_date(d.period, d.week_starts_on, state.current)),
      'start', internal.iso(state.starts_at), 'end', internal.iso(state.ends_at),
      'deadline', internal.iso(state.deadline),
      'qualified', state.is_qualified),
    'pauses', coalesce((
      select json_agg(json_build_object('start', p.starts_on, 'end', p.ends_on) order by p.starts_on)
        from app.streak_pauses p
       where (p.app_user_id, p.streak_definition_id) = (s.app_user_id, d.id)
         and p.ends_on >= internal.streak_today(d, s.app_user_id)), '[]'),
    'updated_at', internal.iso(s.updated_at));
end $$;
comment on function internal.streak_json is
  'The JSON of a user''s streak in responses. id is that of the definition: the user''s row has none. Past pauses are
   omitted.';

create or replace function internal.streak_unstarted(definition app.streak_definitions, app_user_id uuid)
returns app.user_streaks
language plpgsql stable as $$
declare
  streak app.user_streaks;
begin
  streak.app_user_id := streak_unstarted.app_user_id;
  streak.streak_definition_id := (streak_unstarted.definition).id;
  streak.freezes_initial := (streak_unstarted.definition).freezes_initial;
  streak.current_count := 0;
  streak.longest_count := 0;
  streak.freezes := (streak_unstarted.definition).freezes_initial;
  streak.created_at := (streak_unstarted.definition).created_at;
  streak.updated_at := (streak_unstarted.definition).updated_at;
  return streak;
end $$;
comment on function internal.streak_unstarted is 'The row of a streak that a user never started, for responses.';

create or replace function internal.streak_today(definition app.streak_definitions, app_user_id uuid) returns date
language sql stable as $$
  select (internal.now() at time zone internal.streak_zone_of(streak_today.definition, streak_today.app_user_id))::date
$$;
comment on function internal.streak_today is 'The present date in the time zone of a user''s streak.';

create or replace function internal.streak_history(definition app.streak_definitions, streak app.user_streaks,
                                                   periods int)
returns json
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_history.definition;
  s constant app.user_streaks := streak_history.streak;
  state constant internal.streak_state := internal.streak_now(d, s);
  zone constant text := internal.streak_zone_of(d, s.app_user_id);
  began constant date := (select min(r.starts_on)
                            from app.streak_periods r
                           where (r.app_user_id, r.streak_definition_id) = (s.app_user_id, d.id)
                             and r.source is not null);
  history json;
begin
  with shown as (
    select n.number, internal.period_date(d.period, d.week_starts_on, n.number) as starts_on
      from generate_series(greatest(internal.period_number(d.period, d.week_starts_on, began),
                                    state.current - streak_history.periods + 1),
                           greatest(state.current, internal.period_number(d.period, d.week_starts_on,
                                                                          s.last_period))) as n (number)
  ), evaluated as (
    select h.number, h.starts_on, coalesce(r.count, 0) as count,
           case
             when r.source in ('event', 'manual', 'restore') then 'qualified'
             when r.source = 'freeze' or h.number = any (state.frozen) then 'frozen'
             when r.source = 'pause' or h.starts_on > s.last_period and h.number <= state.passed
               and h.number = any (state.paused) then 'paused'
             when h.number <= state.passed and not internal.date_is_skipped(d.period, zone, h.number) then 'missed'
           end as status
      from shown h
      left join app.streak_periods r on (r.app_user_id, r.streak_definition_id, r.starts_on) = (s.app_user_id, d.id,
                                        h.starts_on)
  )
  select json_agg(json_build_object(
           'period_key', internal.period_key(d.period, j.starts_on),
           'start', internal.iso(internal.local_midnight(zone, j.starts_on)),
           'end', internal.iso(internal.local_midnight(zone,
                                                       internal.period_date(d.period, d.week_starts_on, j.number + 1))),
           'status', j.status, 'count', j.count) order by j.number desc)
    into history
    from evaluated j
   where j.status is not null;
  return coalesce(history, '[]');
end $$;
comment on function internal.streak_history is
  'The newest periods of a streak since it began, newest first; an open period is included only once it has qualified.';

create or replace function internal.streak_find(id_or_key text, only_active boolean default false)
returns app.streak_definitions
language plpgsql stable as $$
declare
  found_one app.streak_definitions;
begin
  select d.* into found_one
    from app.streak_definitions d
   where internal.is_id_or_key(d.id, d.key, streak_find.id_or_key) and (d.is_active or not streak_find.only_active);
  if found_one.id is null then
    perform internal.streak_not_found(case when internal.as_uuid(streak_find.id_or_key) is null
      then 'The value was read as a key, because it is not a uuid. The list of streaks shows every key.'
      else 'The value was read as an id, because it is a uuid. The list of streaks shows every id.' end);
  end if;
  return found_one;
end $$;
comment on function internal.streak_find is
  'A definition by its id, when the value looks like a uuid, else by its key. Refuses 404 STREAK_NOT_FOUND with
   details.hint.';

create or replace function internal.streak_not_found(hint text) returns void
language sql volatile as $$
  select internal.fail(404, 'STREAK_NOT_FOUND', 'There is no such streak.',
                       json_build_object('hint', streak_not_found.hint))
$$;
comment on function internal.streak_not_found is 'Refuses 404 STREAK_NOT_FOUND with details.hint.';

create or replace function internal.user_streaks_json(app_user_id uuid) returns json
language sql stable as $$
  select coalesce(json_agg(internal.json_with(
           internal.streak_json(d, s),
           'streak_definitions', json_build_object('name', d.name, 'qualifying_event', d.qualifying_event))
           order by s.created_at desc, d.id desc), '[]')
    from app.user_streaks s
    join app.streak_definitions d on d.id = s.streak_definition_id
   where s.app_user_id = user_streaks_json.app_user_id and s.first_qualified_at is not null
$$;
comment on function internal.user_streaks_json is
  'A user''s streaks as the administrator''s view of the user shows them. For the users area.';

create or replace function internal.json_with(object json, key text, value json) returns json
language sql immutable parallel safe as $$
  select (left(json_with.object::text, -1) || ', ' || to_json(json_with.key) || ' : ' || json_with.value || '}')::json
$$;
comment on function internal.json_with is 'A non-empty object with one more key.';

create or replace function api.streaks_list("include" text default null) returns api.reply
language plpgsql stable as $$
declare
  me constant uuid := internal.user_id();
  streaks json;
begin
  if streaks_list."include" is not null and streaks_list."include" <> 'all' then
    perform internal.invalid('include', 'must be all', 'INVALID_INPUT');
  end if;
  select json_agg(internal.streak_json(d, case when s.app_user_id is not null then s
                                               else internal.streak_unstarted(d, me) end)
                  order by s.created_at desc nulls last, d.created_at desc, d.id desc)
    into streaks
    from app.streak_definitions d
    left join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (me, d.id)
   where d.is_active and (s.first_qualified_at is not null or streaks_list."include" = 'all');
  return internal.reply(200, coalesce(streaks, '[]'));
end $$;
comment on function api.streaks_list is
  'The caller''s streaks, newest first; include=all adds those never started, with status none. Refuses 400
   INVALID_INPUT.';

create or replace function api.streak_get(id_or_key text, history int default 30) returns api.reply
language plpgsql stable as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_get.id_or_key, true);
  s app.user_streaks;
begin
  select m.* into s from app.user_streaks m where (m.app_user_id, m.streak_definition_id) = (internal.user_id(), d.id);
  if s.app_user_id is null then
    s := internal.streak_unstarted(d, internal.user_id());
  end if;
  return internal.reply(200, internal.json_with(
    internal.streak_json(d, s), 'history', internal.streak_history(d, s, least(streak_get.history, 366))));
end $$;
comment on function api.streak_get is
  'One of the caller''s streaks, also one never started, with its newest periods (at most 366). Refuses 404
   STREAK_NOT_FOUND.';
