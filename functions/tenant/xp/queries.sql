-- Reads of XP: the caller's own, the ledger, statistics, and simulations of rules.

create or replace function internal.xp_my_boosts(app_user_id uuid) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  boost app.xp_boosts;
  is_member boolean;
  shown json[] := '{}';
begin
  if internal.caller() not in ('user', 'server_key_user') or xp_my_boosts.app_user_id <> internal.user_id() then
    raise exception 'boosts are shown to their own user, not to %', internal.caller();
  end if;
  for boost in
    select b.*
      from app.xp_boosts b
     where internal.xp_boost_is_on(b, internal.now())
     order by b.ends_at, b.id
  loop
    if boost.segment_id is not null then
      is_member := internal.segment_member(boost.segment_id, xp_my_boosts.app_user_id);
      continue when is_member is not true;
    end if;
    shown := shown || json_build_object('name', boost.name, 'multiplier', boost.multiplier,
                                        'ends_at', internal.iso(boost.ends_at));
  end loop;
  return array_to_json(shown);
end $$;
comment on function internal.xp_my_boosts is 'The boosts that apply to the caller now, ordered by their end.';

create or replace function api.xp_me() returns api.reply
language plpgsql stable as $$
declare
  mine app.xp_totals;
  own_level int;
  here app.xp_levels;
  next app.xp_levels;
  total bigint;
  today bigint;
begin
  select t.* into mine from app.xp_totals t where t.app_user_id = internal.user_id();
  total := coalesce(mine.total, 0);
  own_level := greatest(coalesce(mine.highest_level, 1), internal.xp_level_of(total));
  select l.* into here from app.xp_levels l where l.level = own_level;
  select l.* into next from app.xp_levels l where l.level = own_level + 1;
  select coalesce(sum(t.amount), 0) into today
    from app.xp_transactions t
   where t.app_user_id = internal.user_id() and t.source <> 'merge'
     and t.occurred_at >= date_trunc('day', internal.now() at time zone 'UTC') at time zone 'UTC'
     and t.id >= internal.xp_first_id(date_trunc('day', internal.now() at time zone 'UTC') at time zone 'UTC');
  return internal.reply(200, json_build_object(
    'total', total, 'level', own_level, 'level_name', here.name,
    'level_progress', case when next.level is null then 1
                           else round(greatest(0,
                                               total - here.xp_required)::numeric / (
                                                 next.xp_required - here.xp_required), 4) end,
    -- a level that was kept may require more XP than the total
    'xp_into_level', greatest(0, total - coalesce(here.xp_required, total)),
    'xp_to_next', next.xp_required - total, 'today', today,
    'active_boosts', internal.xp_my_boosts(internal.user_id())));
end $$;
comment on function api.xp_me is
  'The caller''s XP, level, progress to the next level, XP of today (UTC), and active boosts.';

-- by id alone: a transaction that waited for its user has an older time than the one before it, and a newer id
select internal.list_declare('xp_page', null::app.xp_transactions, 'xp_transaction_json', '{id}',
                             filters => '{app_user_id}', by_cursor => true);

create or replace function api.xp_history(cursor text default null, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.xp_page(internal.user_id(), xp_history.cursor, xp_history.page_limit)
$$;
comment on function api.xp_history is 'The caller''s ledger, newest first. Refuses 400 INVALID_INPUT for a bad cursor.';

create or replace function api.xp_transactions(user_id uuid default null, cursor text default null,
                                               page_limit int default 50, include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.xp_page(xp_transactions.user_id, xp_transactions.cursor, xp_transactions.page_limit),
    xp_transactions.include)
$$;
comment on function api.xp_transactions is
  'The ledger of all users or of one, newest first. Refuses 400 INVALID_INPUT for a bad cursor.';

create or replace function internal.first_id_at(at timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(floor(extract(epoch from first_id_at.at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
comment on function internal.first_id_at is
  'The least id that internal.new_id can make from a time on: it begins with the milliseconds of its time.';

create or replace function internal.xp_figures(affordable int default 100000) returns json
language plpgsql volatile as $$
declare
  week_ago constant timestamptz := internal.now() - interval '7 days';
  -- by the index of ids, made by the clock of the machine, which may go back a little
  first_id constant uuid := internal.first_id_at(least(week_ago,
                                                       clock_timestamp() - interval '7 days') - interval '1 hour');
  population constant bigint := internal.users_estimate();
  is_estimate constant boolean := xp_figures.affordable < greatest(
    internal.planned_rows('select from app.xp_totals'),
    internal.planned_rows(format('select from app.xp_transactions t where t.created_at > %L', week_ago)));
  -- null for everybody
  sampled uuid[];
  pages int[];
  awarded numeric[];
  scale numeric := 1;
  figures json;
begin
  if is_estimate then
    select s.ids, s.pages into sampled, pages
      from internal.users_sampled(population, 1,
                                  internal.users_afforded(population,
                                                          internal.planned_rows('select from app.xp_transactions'),
                                                            50000)) s;
    scale := population::numeric / greatest(cardinality(sampled), 1);
    -- per user, in the order of the pages
    awarded := array(
      select coalesce((select sum(t.amount) from app.xp_transactions t
                        where t.app_user_id = i.id and t.id >= first_id and t.created_at > week_ago
                          and t.source <> 'merge' and t.amount > 0), 0)
        from unnest(sampled) with ordinality as i (id, n)
       order by i.n);
  end if;
  with week as (
    select t.app_user_id, t.source, t.rule_key, t.amount
      from app.xp_transactions t
     where not is_estimate and t.id >= first_id and t.created_at > week_ago and t.source <> 'merge'
    union all
    select t.app_user_id, t.source, t.rule_key, t.amount
      from unnest(sampled) as i (id)
      join app.xp_transactions t on t.app_user_id = i.id
     where is_estimate and t.id >= first_id and t.created_at > week_ago and t.source <> 'merge'
  ), by_user as materialized (
    select w.rule_key, w.app_user_id, count(*) as awards, sum(w.amount) as total,
           sum(w.amount) filter (where w.amount > 0) as awarded
      from week w
     group by w.rule_key, w.app_user_id
  ), rules as (
    select u.rule_key, round(scale * sum(u.awards)) as awards, round(scale * count(*)) as users,
           round(scale * sum(u.total)) as total
      from by_user u
     where u.rule_key is not null
     group by u.rule_key
  ), totals as (
    select t.total, t.highest_level from app.xp_totals t where not is_estimate
    union all
    select t.total, t.highest_level from unnest(sampled) as i (id) join app.xp_totals t on t.app_user_id = i.id
     where is_estimate
  ), levels as (
    -- the newest level at or below the total, by a binary search for each user
    select greatest(t.highest_level, l.levels[width_bucket(t.total, l.bounds)]) as level,
           round(scale * count(*)) as users
      from totals t
     cross join (select array_agg(v.level order by v.xp_required) as levels,
                 array_agg(v.xp_required order by v.xp_required) as bounds
                   from app.xp_levels v) l
     group by 1
  )
  select json_build_object(
    'total_awarded_7d', (select round(scale * coalesce(sum(u.awarded), 0)) from by_user u),
    'is_estimate', is_estimate,
    'margin', case when is_estimate then internal.sample_margin(population, pages, awarded) else 0 end,
    'by_rule', (select coalesce(json_agg(json_build_object('rule_key', r.rule_key, 'awards', r.awards, 'users', r.users,
                                                           'total', r.total)
                                         order by r.total desc, r.rule_key), '[]') from rules r),
    'level_distribution', (select coalesce(json_agg(json_build_object('level', l.level,
                                                                      'users', l.users) order by l.level), '[]')
                                                                        from levels l))
    into figures;
  return figures;
end $$;
comment on function internal.xp_figures is
  'XP of the last seven days, by rule too, and how many users are on each level. Exact while the planner expects at most
   affordable totals and awards of the week; otherwise an estimate from up to 10,000 users, whose total_awarded_7d is
   within margin in 95 of 100 samples.';

create or replace function api.xp_stats() returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.xp_figures())
$$;
comment on function api.xp_stats is
  'XP of the last seven days, by rule too, and how many users are on each level; in large projects an estimate: see
   internal.xp_figures.';

create or replace function internal.xp_simulation(rule_id uuid, since timestamptz, affordable int default 20000)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  population constant bigint := internal.users_estimate();
  reads bigint;
  is_estimate boolean;
  -- null for everybody
  sampled uuid[];
  pages int[];
  given internal.xp_act[];
  scale numeric := 1;
begin
  perform internal.check_caller('developer', 'rules are simulated by administrators');
  select internal.planned_rows(format('select from app.engagement_events e where e.event_name = %L and e.occurred_at '
                                      '>= %L', r.event_name, xp_simulation.since))
    into reads
    from app.xp_rules r
   where r.id = xp_simulation.rule_id;
  is_estimate := reads > xp_simulation.affordable;
  if is_estimate then
    select s.ids, s.pages into sampled, pages
      from internal.users_sampled(population, 1, internal.users_afforded(population, reads, 10000)) s;
    scale := population::numeric / greatest(cardinality(sampled), 1);
  end if;
  given := internal.xp_apply_caps(coalesce(internal.xp_acts(sampled, xp_simulation.rule_id, xp_simulation.since,
                                                            internal.now(), true), '{}'), false);
  return (
    with users as materialized (
      select a.app_user_id, sum(a.amount) as total, count(*) as awards from unnest(given) a where a.amount > 0
       group by a.app_user_id
    )
    select json_build_object(
      'awards', round(scale * coalesce(sum(u.awards), 0)), 'users', round(scale * count(*)),
        'total', round(scale * coalesce(sum(u.total), 0)),
      'is_estimate', is_estimate,
      'margin', case when is_estimate then internal.sample_margin(population, pages, array(
                  select exists (select from users g where g.app_user_id = i.id)
                    from unnest(sampled) with ordinality as i (id, n) order by i.n)) else 0 end,
      'per_user', json_build_object('median', percentile_cont(0.5) within group (order by u.total),
                                    'p90', percentile_cont(0.9) within group (order by u.total), 'max', max(u.total)))
      from users u);
end $$;
comment on function internal.xp_simulation is
  'The XP that a rule would have given for stored events since a time, as if it had given none before. Exact while the
   planner expects at most affordable events; otherwise an estimate from 200 to 10,000 users, whose users is within
   margin in 95 of 100 samples; per_user is of the sample.';

create or replace function api.xp_rule_simulate(id_or_key text, since timestamptz default null) returns api.reply
language plpgsql volatile as $$
declare
  rule constant app.xp_rules := internal.definition_find(null::app.xp_rules, xp_rule_simulate.id_or_key);
  since constant timestamptz := coalesce(xp_rule_simulate.since, internal.now() - interval '30 days');
begin
  if since > internal.now() or since < internal.now() - interval '366 days' then
    perform internal.invalid('since', 'must be within the last 366 days');
  end if;
  return internal.reply(200, internal.xp_simulation(rule.id, since));
end $$;
comment on function api.xp_rule_simulate is
  'The XP that a rule, active or not, would have given for stored events since a time: {awards, users, total,
   is_estimate, margin, per_user}; writes nothing. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR.';

-- what was given, by the time at which it was earned; a merge gives nothing
select internal.days_declare('xp_days', 'app.xp_transactions', 'occurred_at',
  array[['points', 'sum(r.amount)'], ['users', 'count(distinct r.app_user_id)']],
  'r.amount > 0 and r.source <> ''merge''');

create or replace function api.xp_daily("from" date default null, "to" date default null, timezone text default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{xp_days}', xp_daily."from", xp_daily."to", xp_daily.timezone)
$$;
comment on function api.xp_daily is
  'XP that was given on each day, and to how many users. Refuses 400 INVALID_INPUT.';
