-- Background work over all users: backfills in steps, hourly rarity, dry runs and statistics.

create or replace function api.achievements_backfill_step(run_id uuid, achievement_id uuid, is_silent boolean,
                                                          batch int)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  achievement app.achievements;
  run app.achievement_backfills;
  wanted uuid[];
  reached uuid[];
  fresh int := 0;
begin
  perform internal.check_caller('worker', 'backfills are run by a worker');
  -- the lock waits for a concurrent deletion, and prevents a deletion until this step ends
  select a.* into achievement from app.achievements a
   where a.id = achievements_backfill_step.achievement_id for key share;
  if achievement.id is null then
    return internal.reply(200, json_build_object('done', 0, 'unlocked', 0, 'is_over', true));
  end if;
  insert into app.achievement_backfills (operation_id, achievement_id)
    values (achievements_backfill_step.run_id, achievement.id)
  on conflict on constraint achievement_backfills_pkey do nothing;
  select r.* into run from app.achievement_backfills r
   where r.operation_id = achievements_backfill_step.run_id for update;
  if not run.is_over then
    wanted := array(select u.id from app.users u where run.cursor_id is null or u.id > run.cursor_id order by u.id
                     limit achievements_backfill_step.batch);
    -- few of many qualify: only they are locked, and measured once more when they are
    reached := internal.lock_users(array(
      select v.app_user_id
        from internal.achievement_values(achievement.criteria, wanted) v
       where v.value >= (achievement.criteria ->> 'target_value')::numeric
         and not exists (select from app.user_achievements u
                          where (u.app_user_id, u.achievement_id) = (v.app_user_id, achievement.id)
                            and u.revoked_at is null)));
    if reached is not null then
      if achievements_backfill_step.is_silent then
        perform set_config('app.is_history', 'true', true);
      end if;
      fresh := jsonb_array_length(internal.achievements_measure(reached,
                                                                array(select achievement.id from unnest(reached)),
                                                                  'backfill'));
    end if;
    update app.achievement_backfills r
       set cursor_id = coalesce(wanted[cardinality(wanted)], r.cursor_id), done = r.done + cardinality(wanted),
         unlocked = r.unlocked + fresh,
           is_over = cardinality(wanted) < achievements_backfill_step.batch
     where r.operation_id = run.operation_id
    returning r.* into run;
  end if;
  return internal.reply(200, json_build_object('done', run.done, 'unlocked', run.unlocked, 'is_over', run.is_over));
end $$;
comment on function api.achievements_backfill_step is
  'For the worker: processes the next users of a backfill; is_over for an achievement that was deleted. One transaction:
   after a crash, the next step continues after the last committed one. Silent is history: no webhooks, no push. Locks
   the achievement against its deletion, then users.';

create or replace function api.achievements_users_total() returns api.reply
language sql stable as $$
  select internal.reply(200, to_json(internal.users_number()))
$$;
comment on function api.achievements_users_total is 'For the worker: how many users a backfill will process.';

create or replace function internal.users_number() returns bigint
language sql stable security definer set search_path = '' as $$
  select coalesce(internal.counted('users_page'), (select count(*) from app.users))
$$;
comment on function internal.users_number is 'How many users there are, by their counter.';

create or replace function api.achievement_backfill_check(achievement_id text, notify boolean default false)
returns api.reply
language plpgsql stable as $$
begin
  return internal.reply(200,
                        json_build_object('achievement_id', (
                          internal.achievement_find(achievement_backfill_check.achievement_id)).id,
                                          'notify', achievement_backfill_check.notify));
end $$;
comment on function api.achievement_backfill_check is 'What a backfill will do. Refuses 400 INVALID_ID, 404 NOT_FOUND.';

create or replace function api.achievements_count() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  everybody constant bigint := internal.users_number();
begin
  perform internal.check_caller('worker', 'rarity is counted by a worker');
  update app.achievements a
     set unlocks = coalesce(c.count, 0), users = everybody, counted_at = internal.now()
    from app.achievements own
    left join (select u.achievement_id, count(*) as count from app.user_achievements u where u.revoked_at is null
                group by 1) c on c.achievement_id = own.id
   where a.id = own.id;
  return internal.reply(200, to_json(found));
end $$;
comment on function api.achievements_count is
  'For the worker: counts how many users have each achievement; false when there are none.';

create or replace function internal.achievement_reads(criteria jsonb) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant jsonb := achievement_reads.criteria;
  plan json;
begin
  execute 'explain (format json) ' || case c ->> 'type'
    when 'event_count' then
      case when coalesce(c -> 'event_filter', 'null') = 'null'
             then 'select from app.user_event_counters k where k.event_name = $1'
           else 'select from app.engagement_events e where e.event_name = $1' end
    when 'xp_threshold' then 'select from app.xp_transactions'
    when 'streak_length' then 'select from app.user_streaks'
    else 'select from app.users' end
    into plan using c ->> 'event_name';
  return (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric::bigint;
end $$;
comment on function internal.achievement_reads is
  'The planner''s estimate of the rows that a criterion reads to measure all users. Granted to nobody.';

create or replace function internal.achievement_dry_run(criteria jsonb, affordable int default 200000) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  rounds constant int := 20;
  patience constant interval := interval '300 milliseconds';
  began constant timestamptz := clock_timestamp();
  target constant numeric := (achievement_dry_run.criteria ->> 'target_value')::numeric;
  -- a property has no past
  before constant timestamptz := case when achievement_dry_run.criteria ->> 'type' <> 'property_value'
                                        then internal.now() - interval '30 days' end;
  population bigint := internal.users_estimate();
  is_estimate constant boolean := greatest(population,
                                           internal.achievement_reads(achievement_dry_run.criteria))
                                             > achievement_dry_run.affordable;
  sample record;
  measured uuid[] := '{}';
  amounts numeric[] := '{}';
  pages int[] := '{}';
  seen bigint := 0;
  reached_before bigint := 0;
  scale numeric := 1;
  outcome json;
begin
  perform internal.check_caller('developer', 'criteria are tried out by administrators');
  if is_estimate then
    for n in 1 .. rounds loop
      select s.ids, s.pages into sample from internal.users_sampled(population, n) s;
      select measured || coalesce(array_agg(w.id order by w.n), '{}'),
             amounts || coalesce(array_agg(v.value order by w.n), '{}') into measured, amounts
        from unnest(sample.ids) with ordinality as w (id, n)
        left join internal.achievement_values(achievement_dry_run.criteria, sample.ids) v on v.app_user_id = w.id;
      pages := pages || sample.pages;
      if before is not null then
        reached_before := reached_before + (
          select count(*) from internal.achievement_values(achievement_dry_run.criteria, sample.ids, before) v
           where v.value >= target);
      end if;
      exit when clock_timestamp() > began + patience;
    end loop;
    seen := cardinality(measured);
    scale := population::numeric / greatest(seen, 1);
  else
    population := internal.users_number();
    seen := population;
    select coalesce(array_agg(v.app_user_id), '{}'), coalesce(array_agg(v.value), '{}') into measured, amounts
      from internal.achievement_values(achievement_dry_run.criteria, null) v;
    if before is not null then
      reached_before := (select count(*) from internal.achievement_values(achievement_dry_run.criteria, null, before) v
                          where v.value >= target);
    end if;
  end if;
  with measured_users as materialized (
    select m.app_user_id, m.value from unnest(measured, amounts) as m (app_user_id, value) where m.value is not null
  ), placed as (
    select case when m.value >= target then 4 when target <= 0 then 0
                else greatest(0, least(3, floor(m.value / target * 4)))::int end as n, count(*) as users
      from measured_users m
     group by 1
  )
  select json_build_object(
    'users_now', round(scale * (select count(*) from measured_users m where m.value >= target)),
    'users_30d_ago_estimate', case when before is not null then round(scale * reached_before) end,
    'is_estimate', is_estimate,
    'margin', case when is_estimate then internal.sample_margin(population, pages, array(
                select coalesce(m.value >= target, false) from unnest(amounts) with ordinality as m (value, n)
                 order by m.n)) else 0 end,
    'sample', (select coalesce(json_agg(json_build_object('user_id', s.app_user_id,
                                                          'value', s.value) order by s.value desc, s.app_user_id), '[]')
                 from (select distinct m.app_user_id, m.value from measured_users m where m.value >= target
                        order by m.value desc, m.app_user_id limit 10) s),
    'distribution', (select json_agg(json_build_object('bucket', b.label, 'users', round(scale * (coalesce(p.users, 0)
                                       + case when b.n = 0 then seen - (select count(*) from measured_users)
                                              else 0 end))) order by b.n)
                       from (values (0, '0-24%'), (1, '25-49%'), (2, '50-74%'), (3, '75-99%'), (4, '100%+')) as b (n,
                                        label)
                       left join placed p on p.n = b.n))
    into outcome;
  return outcome;
end $$;
comment on function internal.achievement_dry_run is
  'The users who would have the achievement now, about how many had it 30 days ago, the highest ten, and the progress of
   all users. Exact while the planner expects at most affordable rows; otherwise an estimate from up to 20,000 users,
   whose users_now is within margin in 95 of 100 samples, and the highest ten of those users.';

create or replace function api.achievement_dry_run(achievement_id text default null, criteria json default null)
returns api.reply
language plpgsql volatile as $$
declare
  stored app.achievements;
begin
  if achievement_dry_run.achievement_id is not null then
    stored := internal.achievement_find(achievement_dry_run.achievement_id);
  elsif achievement_dry_run.criteria is null then
    perform internal.invalid('criteria', 'is required');
  end if;
  return internal.reply(200, internal.achievement_dry_run(
    case when achievement_dry_run.criteria is null then stored.criteria
         else internal.achievement_criteria(achievement_dry_run.criteria::jsonb) end));
end $$;
comment on function api.achievement_dry_run is
  'A preview of the users who would unlock under the stored or other criteria; writes nothing. Refuses 400
   VALIDATION_ERROR, 404 NOT_FOUND.';

create or replace function internal.achievement_holder_json(u app.user_achievements) returns json
language sql stable as $$
  select internal.json_merge(internal.user_achievement_json(achievement_holder_json.u), json_build_object('app_users', (
    select json_build_object('id', s.id, 'display_name', s.display_name, 'avatar_url', s.avatar_url)
      from app.users s
     where s.id = (achievement_holder_json.u).app_user_id)))
$$;
comment on function internal.achievement_holder_json is 'An unlocked achievement with its user.';

create or replace function internal.is_achievement_held(u app.user_achievements) returns boolean
language sql immutable as $$
  select (is_achievement_held.u).revoked_at is null
$$;
comment on function internal.is_achievement_held is 'Whether an unlock was not revoked.';

select internal.list_declare('achievement_users_page', null::app.user_achievements, 'achievement_holder_json',
                             '{unlocked_at,app_user_id}',
                             required => '{achievement_id}', condition => 'is_achievement_held', is_counted => true,
                             condition_reads => '{revoked_at}');

create or replace function api.achievement_users(achievement_id text, page_offset int default 0,
                                                 page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.achievement_users_page((internal.achievement_find(achievement_users.achievement_id)).id,
                                         achievement_users.page_offset,
                                         achievement_users.page_limit)
$$;
comment on function api.achievement_users is
  'Users who have an achievement, newest first. Refuses 400 INVALID_ID, 404 NOT_FOUND.';

create or replace function api.achievement_stats() returns api.reply
language plpgsql stable as $$
declare
  week_ago constant timestamptz := internal.now() - interval '7 days';
  has_counters constant boolean := internal.reads_every_row('app.user_achievements');
  users constant bigint := coalesce(internal.list_counted('users_page', 'app.users'), (select count(*) from app.users));
  stats json;
begin
  with counted as materialized (
    select a.id, a.key, a.name, a.sort_order,
           coalesce(case when has_counters then internal.counted('achievement_users_page', a.id) end,
                    (select count(*) from app.user_achievements u
                      where u.achievement_id = a.id and internal.is_achievement_held(u))) as unlocks,
           (select count(*) from app.user_achievements u
             where u.achievement_id = a.id and internal.is_achievement_held(u)
               and u.unlocked_at > week_ago) as unlocks_7d
      from app.achievements a
  )
  select json_build_object(
           'total_unlocks', coalesce(sum(c.unlocks), 0), 'unlocks_7d', coalesce(sum(c.unlocks_7d), 0),
           'achievements', coalesce(json_agg(json_build_object('id', c.id, 'key', c.key, 'name', c.name,
                                                               'unlocks', c.unlocks, 'unlocks_7d', c.unlocks_7d,
                                                               'rate', case when users > 0
                                                                 then round(c.unlocks::numeric / users, 4) else 0 end)
                                             order by c.sort_order, c.id), '[]'))
    into stats
    from counted c;
  return internal.reply(200, stats);
end $$;
comment on function api.achievement_stats is
  'Unlocks of all time and of the last seven days, and the share of users, for each achievement. Reads counters, and the
   unlocks of the seven days in their index.';

select internal.days_declare('achievement_days', 'app.user_achievements', 'unlocked_at',
  array[['unlocked', 'count(*)'], ['users', 'count(distinct r.app_user_id)']],
  'r.revoked_at is null and ({of} is null or r.achievement_id = {of}::uuid)');

create or replace function api.achievements_daily("from" date default null, "to" date default null,
                                                  timezone text default null, achievement_id uuid default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{achievement_days}', achievements_daily."from", achievements_daily."to",
                             achievements_daily.timezone, achievements_daily.achievement_id::text)
$$;
comment on function api.achievements_daily is
  'Unlocks of each day that were not revoked, of all achievements or of one, and users who had one. Refuses 400
   INVALID_INPUT.';
