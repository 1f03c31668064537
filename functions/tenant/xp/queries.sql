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
    shown := shown || json_build_object('name', boost.name, 'multiplier', boost.multiplier, 'ends_at', internal.iso(boost.ends_at));
  end loop;
  return array_to_json(shown);
end $$;
comment on function internal.xp_my_boosts is 'The boosts that hold for the caller now, those that end first in front.';

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
     -- by the index: a device's clock may be five minutes ahead of ours
     and t.counted_at >= date_trunc('day', internal.now() at time zone 'UTC') at time zone 'UTC' - interval '5 minutes';
  return internal.reply(200, json_build_object(
    'total', total, 'level', own_level, 'level_name', here.name,
    'level_progress', case when next.level is null then 1
                           else round(greatest(0, total - here.xp_required)::numeric / (next.xp_required - here.xp_required), 4) end,
    -- a level that was kept may need more than there is
    'xp_into_level', greatest(0, total - coalesce(here.xp_required, total)),
    'xp_to_next', next.xp_required - total, 'today', today,
    'active_boosts', internal.xp_my_boosts(internal.user_id())));
end $$;
comment on function api.xp_me is 'The caller''s XP, level, way to the next, what today (UTC) brought, and the boosts that hold. Supplement D2.';

-- by id alone: a transaction that waited for its user has an older time than the one before it, and a newer id
select internal.list_declare('xp_page', null::app.xp_transactions, 'xp_transaction_json', '{id}', filters => '{app_user_id}', by_cursor => true);

create or replace function api.xp_history(cursor text default null, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.xp_page(internal.user_id(), xp_history.cursor, xp_history.page_limit)
$$;
comment on function api.xp_history is 'The caller''s ledger, newest first. Refuses 400 INVALID_INPUT for a bad cursor.';

create or replace function api.xp_transactions(user_id uuid default null, cursor text default null, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.xp_page(xp_transactions.user_id, xp_transactions.cursor, xp_transactions.page_limit)
$$;
comment on function api.xp_transactions is 'The ledger of everybody or of one user, newest first. Refuses 400 INVALID_INPUT for a bad cursor.';

create or replace function api.xp_stats() returns api.reply
language sql stable as $$
  with week as materialized (
    select t.app_user_id, t.source, t.rule_key, t.amount
      from app.xp_transactions t
     where t.created_at > internal.now() - interval '7 days' and t.source <> 'merge'
  ), rules as (
    select w.rule_key, count(*) as awards, count(distinct w.app_user_id) as users, sum(w.amount) as total
      from week w
     where w.rule_key is not null
     group by w.rule_key
  ), levels as (
    -- the newest level at or below the total, by a binary search for each user
    select greatest(t.highest_level, l.levels[width_bucket(t.total, l.bounds)]) as level, count(*) as users
      from app.xp_totals t
     cross join (select array_agg(v.level order by v.xp_required) as levels, array_agg(v.xp_required order by v.xp_required) as bounds
                   from app.xp_levels v) l
     group by 1
  )
  select internal.reply(200, json_build_object(
    'total_awarded_7d', (select coalesce(sum(w.amount) filter (where w.amount > 0), 0) from week w),
    'by_rule', (select coalesce(json_agg(json_build_object('rule_key', r.rule_key, 'awards', r.awards, 'users', r.users, 'total', r.total)
                                         order by r.total desc, r.rule_key), '[]') from rules r),
    'level_distribution', (select coalesce(json_agg(json_build_object('level', l.level, 'users', l.users) order by l.level), '[]') from levels l)))
$$;
comment on function api.xp_stats is
  'XP of the last seven days, by rule too, and how many users are on each level. Reads the ledger of the week and every total.';

create or replace function internal.xp_simulation(rule_id uuid, since timestamptz) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  judged internal.xp_act[];
begin
  if internal.caller() <> 'developer' then
    raise exception 'only administrators simulate rules, not %', internal.caller();
  end if;
  judged := internal.xp_apply_caps(coalesce(internal.xp_acts(null, xp_simulation.rule_id, xp_simulation.since, internal.now(), true), '{}'), false);
  return (
    with users as (
      select a.app_user_id, sum(a.amount) as total, count(*) as awards from unnest(judged) a where a.amount > 0 group by a.app_user_id
    )
    select json_build_object(
      'awards', coalesce(sum(u.awards), 0), 'users', count(*), 'total', coalesce(sum(u.total), 0),
      'per_user', json_build_object('median', percentile_cont(0.5) within group (order by u.total),
                                    'p90', percentile_cont(0.9) within group (order by u.total), 'max', max(u.total)))
      from users u);
end $$;
comment on function internal.xp_simulation is 'What a rule would have given for stored events since a time, as if nobody had had any of it.';

create or replace function api.xp_rule_simulate(id_or_key text, since timestamptz default null) returns api.reply
language plpgsql stable as $$
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
  'What a rule, active or not, would have given for stored events since a time: {awards, users, total, per_user}; writes nothing. Refuses 404 NOT_FOUND,
   400 VALIDATION_ERROR.';
