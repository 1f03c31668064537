-- Streaks as a target of the replay of events (functions/tenant/events/replay.sql).
create or replace function internal.replay__streaks(app_user_ids uuid[], since timestamptz, until timestamptz)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  one record;
  before app.user_streaks;
  after app.user_streaks;
  figures jsonb;
  differences jsonb := '[]';
begin
  for one in
    select a.app_user_id, d, p.periods
      from unnest(replay__streaks.app_user_ids) as a (app_user_id)
     cross join app.streak_definitions d
     cross join lateral (
       select array_agg(l) as periods
         from internal.streak_periods_from_events(d, a.app_user_id, replay__streaks.since, replay__streaks.until) l) p
     where d.is_active and p.periods is not null
     order by a.app_user_id, d.id
  loop
    before := internal.streak_join(one.app_user_id, one.d);
    -- deleted meanwhile
    continue when before.app_user_id is null;
    figures := internal.streak_summary(one.d, before);
    after := internal.streak_raise_counts(before, one.d, one.periods);
    continue when after is null;
    perform internal.streak_notify_change(one.d, before, after, true);
    -- a milestone may have given freezes
    select s.* into after
      from app.user_streaks s
     where (s.app_user_id, s.streak_definition_id) = (one.app_user_id, (one.d).id);
    differences := differences || jsonb_build_object(
      'app_user_id', one.app_user_id, 'streak_definition_id', (one.d).id, 'key', (one.d).key,
      'before', figures, 'after', internal.streak_summary(one.d, after));
  end loop;
  return differences;
end $$;
comment on function internal.replay__streaks is
  'Adds stored events of users that the periods of their streaks have not counted, and folds. Counts only increase:
   periods are also qualified by hand, so counts above the number of events stay. Pays newly reached milestones, each
   once, and emits no events. Locks the rows of app.user_streaks.';

create or replace function internal.streak_periods_from_events(definition app.streak_definitions, app_user_id uuid,
                                                               since timestamptz, until timestamptz)
returns setof app.streak_periods
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_periods_from_events.definition;
  zone constant text := internal.streak_zone_of(d, streak_periods_from_events.app_user_id);
  moves constant app.streak_timezones[] := internal.streak_zone_changes(d, streak_periods_from_events.app_user_id);
begin
  return query
  select streak_periods_from_events.app_user_id, d.id, internal.period_date(d.period, d.week_starts_on, p.number),
         null::text, count(*)::int,
         (count(*) filter (where p.reach >= 1))::int, (count(*) filter (where p.reach >= 2))::int,
         (count(*) filter (where p.reach >= 3))::int,
         0, d.min_count, d.freeze_earn_every, d.freezes_max, max(e.occurred_at)
    from app.engagement_events e
   cross join lateral internal.streak_place(d, zone, moves, e.occurred_at) p
   where e.app_user_id = streak_periods_from_events.app_user_id and e.event_name = d.qualifying_event
     and e.occurred_at >= streak_periods_from_events.since and e.occurred_at < streak_periods_from_events.until
     and (d.event_filter is null or internal.filter_truth(d.event_filter, e.properties))
   group by p.number;
end $$;
comment on function internal.streak_periods_from_events is
  'The periods that stored events of a user count for under a definition.';

create or replace function internal.streak_raise_counts(streak app.user_streaks, definition app.streak_definitions,
                                                        periods app.streak_periods[])
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  raised bigint;
  after app.user_streaks;
begin
  insert into app.streak_periods as r
    (app_user_id, streak_definition_id, starts_on, count, open_1, open_2, open_3, needed, earn_every, freezes_max,
     qualified_at)
  select p.app_user_id, p.streak_definition_id, p.starts_on, p.count, p.open_1, p.open_2, p.open_3, p.needed,
         p.earn_every, p.freezes_max, p.qualified_at
    from unnest(streak_raise_counts.periods) p
   order by p.starts_on
  on conflict on constraint streak_periods_pkey do update
     set count = greatest(r.count, excluded.count),
         open_1 = greatest(r.open_1, excluded.open_1),
         open_2 = greatest(r.open_2, excluded.open_2),
         open_3 = greatest(r.open_3, excluded.open_3),
         -- rules may change under a period until it has reached them
         needed = case when r.count >= r.needed then r.needed else excluded.needed end,
         earn_every = case when r.count >= r.needed then r.earn_every else excluded.earn_every end,
         freezes_max = case when r.count >= r.needed then r.freezes_max else excluded.freezes_max end,
         qualified_at = case when r.source in ('event', 'manual', 'restore') then r.qualified_at
                             else excluded.qualified_at end
   where r.count < excluded.count or r.open_1 < excluded.open_1 or r.open_2 < excluded.open_2
      or r.open_3 < excluded.open_3
      or r.count < r.needed and r.needed <> excluded.needed;
  get diagnostics raised = row_count;
  if raised = 0 then
    return null;
  end if;
  after := internal.streak_refold((streak_raise_counts.streak).app_user_id, streak_raise_counts.definition);
  return after;
end $$;
comment on function internal.streak_raise_counts is
  'Raises the counts of periods to at least these, and folds; null when no count changes. The row must be locked.
   Granted to nobody.';

create or replace function internal.streak_summary(definition app.streak_definitions, streak app.user_streaks)
returns jsonb
language plpgsql stable as $$
declare
  state constant internal.streak_state := internal.streak_now(streak_summary.definition, streak_summary.streak);
begin
  return jsonb_build_object(
    'status', state.status,
    'current_count', case when state.status in ('none', 'broken') then 0 else (streak_summary.streak).current_count end,
    'longest_count', (streak_summary.streak).longest_count, 'freezes_remaining', state.freezes_remaining);
end $$;
comment on function internal.streak_summary is 'A streak in four figures, for a list of differences.';
