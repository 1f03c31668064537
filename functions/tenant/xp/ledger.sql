-- The ledger of XP, and what depends on it: totals, levels and their rewards, effects, events. All XP is given or taken
-- by internal.xp_apply, with its users locked; so a total is the sum of its ledger, and a source pays once.

create or replace function internal.xp_level_of(total bigint) returns int
language sql stable as $$
  select coalesce((select l.level from app.xp_levels l where l.xp_required <= xp_level_of.total
                    order by l.xp_required desc limit 1), 1)
$$;
comment on function internal.xp_level_of is 'The level that a total reaches in the present table of levels.';

create or replace function internal.xp_first_id(since timestamptz) returns uuid
language sql stable as $$
  -- ids begin with the time of the machine's clock, which may differ from the time of the transaction
  select internal.first_id_at(greatest(
    least(xp_first_id.since, clock_timestamp() - (internal.now() - xp_first_id.since)) - interval '1 hour',
    timestamptz '1970-01-01 00:00+00'))
$$;
comment on function internal.xp_first_id is
  'The least id that a row of the ledger can have which was earned since a time: it is written then or later, but for
   the five minutes that a device''s clock may be ahead.';

create or replace function internal.xp_record(moves internal.xp_move[], is_checked boolean, out users uuid[],
                                              out amounts bigint[], out totals bigint[], out levels_before int[],
                                              out announced int[], out levels int[], out sources text[],
                                              out clips text[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  ceiling constant bigint := 1000000000000000;
  at constant timestamptz := internal.now();
  -- a sequence number replaces the last random bits of an id: random bits for each row would cost as much as two of its
  -- index entries
  id_stem constant text := left(internal.new_id()::text, 28);
begin
  with requested as materialized (
    select m.*
      from unnest(xp_record.moves) with ordinality
             as m (app_user_id, amount, source, source_id, rule_key, reason, requested, clipped_by, occurred_at,
                   counted_at, n)
  ), known as materialized (
    -- one index lookup for each source, however many rules it has
    select t.app_user_id, t.source, t.source_id, t.rule_key
      from (select distinct w.app_user_id, w.source, w.source_id from requested w) s
      join app.xp_transactions t on (t.app_user_id, t.source, t.source_id) = (s.app_user_id, s.source, s.source_id)
     where xp_record.is_checked
  ), fresh as (
    select w.*
      from requested w
     where not exists (select from known k
                        where (k.app_user_id, k.source, k.source_id) = (w.app_user_id, w.source, w.source_id)
                          and k.rule_key is not distinct from w.rule_key)
  ), summed as (
    -- a debit is always a single move, credits come in any number: so bounding the sum bounds each step
    select f.*, coalesce(t.total, 0) as total,
           least(ceiling, greatest(0, coalesce(t.total, 0) + (sum(f.amount) over by_user)::bigint)) as after,
           least(ceiling, greatest(0, coalesce(t.total, 0) + (sum(f.amount) over by_user)::bigint - f.amount)) as before
      from fresh f
      left join app.xp_totals t on t.app_user_id = f.app_user_id
    window by_user as (partition by f.app_user_id order by f.n)
  ), booked as (
    insert into app.xp_transactions (id, app_user_id, amount, total_after, source, source_id, rule_key, reason,
                                     requested, clipped_by, occurred_at, counted_at, created_at)
    select (id_stem || lpad(to_hex(s.n), 8, '0'))::uuid, s.app_user_id, s.after - s.before, s.after, s.source,
           s.source_id, s.rule_key, s.reason, s.requested,
           case when s.after - s.before <> s.amount then 'total' else s.clipped_by end, s.occurred_at, s.counted_at, at
      from summed s
     where s.after <> s.before or s.source in ('admin', 'merge')
     order by s.app_user_id, s.n
    returning app_user_id, amount, source, rule_key, counted_at, clipped_by
  ), days as (
    insert into app.xp_rule_days as d (app_user_id, rule_key, day, amount)
    select b.app_user_id, b.rule_key, (b.counted_at at time zone 'UTC')::date, sum(b.amount)
      from booked b
     where b.rule_key is not null
     group by 1, 2, 3
     order by 1, 2, 3
    on conflict on constraint xp_rule_days_pkey do update set amount = d.amount + excluded.amount
  ), moved as (
    select m.app_user_id, m.amount, coalesce(t.total, 0) as total, coalesce(t.highest_level, 1) as level,
           coalesce(t.announced_level, 1) as announced,
           m.source, m.clipped_by
      from (select b.app_user_id, sum(b.amount)::bigint as amount,
            case when min(b.source) = max(b.source) then min(b.source) end as source,
                   string_agg(distinct b.clipped_by, ',') filter (where b.clipped_by is not null) as clipped_by
              from booked b
             group by b.app_user_id) m
      left join app.xp_totals t on t.app_user_id = m.app_user_id
  ), levelled as (
    -- the table of levels as subselects: a function would be called for each user, three times
    select m.*, greatest(m.level, before.level, after.level) as level_after,
           greatest(m.level, before.level) as level_before
      from moved m
     cross join lateral (select max(l.level) as level from app.xp_levels l where l.xp_required <= m.total) before
     cross join lateral (select max(l.level) as level from app.xp_levels l
                          where l.xp_required <= m.total + m.amount) after
  ), stored as (
    insert into app.xp_totals as t (app_user_id, total, highest_level, announced_level)
    select l.app_user_id, l.total + l.amount, l.level_after, l.level_after
      from levelled l
     order by l.app_user_id
    on conflict on constraint xp_totals_pkey do update
       set total = excluded.total, highest_level = excluded.highest_level,
         announced_level = greatest(t.announced_level, excluded.announced_level),
           updated_at = at
    returning t.app_user_id
  )
  select array_agg(l.app_user_id order by l.app_user_id) as users,
         array_agg(l.amount order by l.app_user_id) as amounts,
         array_agg(l.total + l.amount order by l.app_user_id) as totals,
         array_agg(l.level_before order by l.app_user_id) as levels_before,
         array_agg(l.announced order by l.app_user_id) as announced,
         array_agg(l.level_after order by l.app_user_id) as levels,
         array_agg(l.source order by l.app_user_id) as sources,
         array_agg(l.clipped_by order by l.app_user_id) as clips
    into users, amounts, totals, levels_before, announced, levels, sources, clips
    from levelled l
   where exists (select from stored);
end $$;
comment on function internal.xp_record is
  'Writes moves into the ledger and updates days and totals, for internal.xp_apply; returns the users whose XP changed,
   in the order of their ids. A source that has already paid is skipped when is_checked, and otherwise raises
   unique_violation. Granted to nobody.';

create or replace function internal.xp_apply(moves internal.xp_move[], is_of_new_events boolean default false)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  changed record;
  reached record;
  noted jsonb;
begin
  if not xp_apply.is_of_new_events then
    changed := internal.xp_record(xp_apply.moves, true);
  else
    -- an event's id is new, except when a device sends it again after the 90 days of deduplication: only then is the
    -- ledger read first
    begin
      changed := internal.xp_record(xp_apply.moves, false);
    exception when unique_violation then
      changed := internal.xp_record(xp_apply.moves, true);
    end;
  end if;
  if changed.users is null then
    return;
  end if;
  perform internal.xp_notify(changed.users, changed.amounts, changed.totals, changed.levels_before, changed.levels,
                             changed.clips);

  select array_agg(e.app_user_id order by e.app_user_id, e.n) as users,
         array_agg(e.event_name order by e.app_user_id, e.n) as names,
         array_agg(e.properties order by e.app_user_id, e.n) as properties
    into reached
    from (select c.app_user_id, 0 as n, 'svc.xp.awarded' as event_name,
                 jsonb_build_object('amount', c.amount, 'total', c.total, 'level', c.level, 'source',
                                    c.source) as properties
            from unnest(changed.users, changed.amounts, changed.totals, changed.levels,
                        changed.sources) as c (app_user_id, amount, total, level, source)
           where c.amount > 0
          union all
          select c.app_user_id, l.level, 'svc.level.reached',
                 jsonb_build_object('level', l.level, 'name', l.name, 'total', c.total)
            from unnest(changed.users, changed.totals, changed.announced, changed.levels) as c (app_user_id, total,
                                        announced, level)
            join app.xp_levels l on l.level > c.announced and l.level <= c.level) e;
  perform internal.emit_many(reached.users, reached.names, reached.properties);

  for reached in
    select c.app_user_id, l.level, l.reward
      from unnest(changed.users, changed.announced, changed.levels) as c (app_user_id, announced, level)
      join app.xp_levels l on l.level > c.announced and l.level <= c.level and l.reward is not null
     order by c.app_user_id, l.level
  loop
    perform internal.grant_reward(reached.app_user_id, reached.reward, 'xp_level', reached.level::text);
  end loop;
end $$;
comment on function internal.xp_apply is
  'Writes XP to the ledger, each source once, with totals, days and levels; then collects effects, emits events, and
   rewards new levels. Totals stay between 0 and 10^15: a row records when its amount was reduced. The users must be
   locked. Granted to nobody.';

create or replace function internal.xp_give_event(event app.engagement_events, at timestamptz, keys text[],
                                                  amounts bigint[], requested bigint[], clips text[])
returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := xp_give_event.event;
  moment constant timestamptz := internal.now();
  given bigint := 0;
  totals bigint[] := '{}';
  before record;
begin
  select t.total, t.highest_level, t.announced_level,
         (select min(l.xp_required) from app.xp_levels l where l.level > t.highest_level) as next_level_at,
         -- an id that a device sends again after the 90 days of deduplication
         exists (select from app.xp_transactions x
                  where (x.app_user_id, x.source, x.source_id) = (e.app_user_id, 'event', e.id::text)) as is_paid
    into before
    from app.xp_totals t
   where t.app_user_id = e.app_user_id;
  for i in 1 .. cardinality(xp_give_event.amounts) loop
    given := given + xp_give_event.amounts[i];
    totals := totals || before.total + given;
  end loop;
  -- the first XP, a level, the ceiling, or an event that paid before
  if before.total is null or before.total + given > 1000000000000000 or before.announced_level < before.highest_level
     or before.next_level_at <= before.total + given or before.is_paid then
    perform internal.xp_apply(array(
      select (e.app_user_id, w.amount, 'event', e.id::text, w.key, null, w.requested, w.clip, e.occurred_at,
              xp_give_event.at)::internal.xp_move
        from unnest(xp_give_event.keys, xp_give_event.amounts, xp_give_event.requested, xp_give_event.clips) as w (key,
                                        amount, requested, clip)
       order by w.key), before.is_paid is not true);
    return;
  end if;
  insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, rule_key, requested, clipped_by,
                                   occurred_at, counted_at, created_at)
  select e.app_user_id, w.amount, w.total, 'event', e.id::text, w.key, w.requested, w.clip, e.occurred_at,
         xp_give_event.at, moment
    from unnest(xp_give_event.keys, xp_give_event.amounts, totals, xp_give_event.requested, xp_give_event.clips)
           as w (key, amount, total, requested, clip);
  insert into app.xp_rule_days as d (app_user_id, rule_key, day, amount)
  select e.app_user_id, w.key, (xp_give_event.at at time zone 'UTC')::date, w.amount
    from unnest(xp_give_event.keys, xp_give_event.amounts) as w (key, amount)
  on conflict on constraint xp_rule_days_pkey do update set amount = d.amount + excluded.amount;
  update app.xp_totals t set total = before.total + given, updated_at = moment where t.app_user_id = e.app_user_id;
  if internal.collects_effects() then
    perform internal.xp_notify(array[e.app_user_id], array[given], array[before.total + given],
                               array[before.highest_level], array[before.highest_level],
                               array[(select string_agg(distinct c.clip, ',')
                                        from unnest(xp_give_event.clips) as c (clip) where c.clip is not null)]);
  end if;
  perform internal.emit(e.app_user_id, 'svc.xp.awarded', jsonb_build_object(
    'amount', given, 'total', before.total + given, 'level', before.highest_level, 'source', 'event'));
end $$;
comment on function internal.xp_give_event is
  'Writes the XP that rules give for one new event, in the order of their keys, when only rows of the ledger and a total
   change; other cases go through internal.xp_apply. The user must be locked. Granted to nobody.';

create or replace function internal.xp_give_events(events app.engagement_events[]) returns boolean
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  ceiling constant bigint := 1000000000000000;
  at constant timestamptz := internal.now();
  id_stem constant text := left(internal.new_id()::text, 28);
  given record;
begin
  -- for all users or for none: what follows from the ledger, such as a board of XP, is told for one statement
  if not (
    select coalesce(bool_and(t.app_user_id is not null and t.total + g.amount <= ceiling
                             and t.announced_level >= t.highest_level
                             and not exists (select from app.xp_levels l
                                              where l.level > t.highest_level
                                                and l.xp_required <= t.total + g.amount)), false)
      from (select n.app_user_id, sum(n.count * x.amount)::bigint as amount
              from (select e.app_user_id, e.event_name, count(*) as count
                      from unnest(xp_give_events.events) e group by 1, 2) n
              join app.event_plans p on p.event_name = n.event_name and p.xp is distinct from null
             cross join lateral (select sum(a.amount) as amount from unnest((p.xp).amounts) as a (amount)) x
             group by 1) g
      left join app.xp_totals t on t.app_user_id = g.app_user_id) then
    return false;
  end if;
  begin
    with rules as materialized (
      select p.event_name, r.n, r.key, r.amount, r.requested, r.clip,
             sum(r.amount) over (partition by p.event_name order by r.n) as up_to
        from app.event_plans p
       cross join lateral unnest((p.xp).keys, (p.xp).amounts, (p.xp).requested, (p.xp).clips)
                            with ordinality as r (key, amount, requested, clip, n)
       where p.xp is distinct from null
         and p.event_name in (select e.event_name from unnest(xp_give_events.events) e)
    ), sums as materialized (
      select r.event_name, sum(r.amount) as amount, count(*) as rules,
             string_agg(distinct r.clip, ',') as clips from rules r group by 1
    ), happened as materialized (
      -- running sums by event, not by event and rule: of ten rules that is a tenth
      select e.app_user_id, e.event_name, e.id, e.occurred_at, c.at as counted_at, s.amount, s.clips,
             t.total as total_before, t.highest_level as level,
             t.total + sum(s.amount) over w - s.amount as before, row_number() over o as place
        from unnest(xp_give_events.events) e
        join sums s on s.event_name = e.event_name
        join app.xp_totals t on t.app_user_id = e.app_user_id
       cross join lateral (select internal.xp_counted_at(e.source, e.occurred_at, e.received_at) as at offset 0) c
      window w as (partition by e.app_user_id order by c.at, e.occurred_at, e.id rows unbounded preceding),
             o as (order by e.app_user_id, c.at, e.occurred_at, e.id)
    ), booked as (
      -- ids in the order of users, events and rules, whatever the order of the rows
      insert into app.xp_transactions (id, app_user_id, amount, total_after, source, source_id, rule_key, requested,
                                       clipped_by, occurred_at, counted_at, created_at)
      select (id_stem || lpad(to_hex(h.place * 100000 + r.n), 8, '0'))::uuid, h.app_user_id, r.amount,
             (h.before + r.up_to)::bigint, 'event', h.id::text, r.key, r.requested, r.clip, h.occurred_at,
             h.counted_at, at
        from happened h
        join rules r on r.event_name = h.event_name
    ), days as (
      insert into app.xp_rule_days as d (app_user_id, rule_key, day, amount)
      select h.app_user_id, r.key, h.day, sum(h.count * r.amount)
        from (select w.app_user_id, w.event_name, (w.counted_at at time zone 'UTC')::date as day, count(*) as count
                from happened w group by 1, 2, 3) h
        join rules r on r.event_name = h.event_name
       group by 1, 2, 3
       order by 1, 2, 3
      on conflict on constraint xp_rule_days_pkey do update set amount = d.amount + excluded.amount
    ), moved as materialized (
      select h.app_user_id, sum(h.amount)::bigint as amount, min(h.total_before) + sum(h.amount)::bigint as total,
             min(h.level) as level, string_agg(distinct h.clips, ',') as clips
        from happened h
       group by 1
    ), stored as (
      update app.xp_totals t
         set total = m.total, updated_at = at
        from moved m
       where t.app_user_id = m.app_user_id
    )
    select array_agg(m.app_user_id) as users, array_agg(m.amount) as amounts, array_agg(m.total) as totals,
           array_agg(m.level) as levels, array_agg(m.clips) as clips,
           array_agg('svc.xp.awarded'::text) as names,
           array_agg(jsonb_build_object('amount', m.amount, 'total', m.total, 'level', m.level,
                                        'source', 'event')) as properties
      into given
      from (select m.* from moved m order by m.app_user_id) m;
  exception when unique_violation then
    -- a device sent an id again after the 90 days of deduplication
    return false;
  end;
  perform internal.xp_notify(given.users, given.amounts, given.totals, given.levels, given.levels, given.clips);
  perform internal.emit_many(given.users, given.names, given.properties);
  return true;
end $$;
comment on function internal.xp_give_events is
  'Writes the XP that rules of fixed amounts give for new events, when for every user only rows of the ledger and a
   total change, and returns true. Where somebody''s first XP, a level, the ceiling or an event that paid before is
   among them, writes nothing and returns false: internal.xp_apply. The users must be locked. Granted to nobody.';

create or replace function internal.xp_notify(app_user_ids uuid[], amounts bigint[], totals bigint[],
                                              levels_before int[], levels int[], clips text[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- the sum of this transaction so far: an award may cause another, and the effect shows their sum
  known constant jsonb := coalesce(nullif(current_setting('app.xp_notified', true), '')::jsonb, '{}');
  told jsonb;
begin
  if not internal.collects_effects() then
    return;
  end if;
  if cardinality(xp_notify.app_user_ids) = 1 then
    told := jsonb_build_object(
      'awarded', coalesce((known -> xp_notify.app_user_ids[1]::text ->> 'awarded')::bigint, 0) + xp_notify.amounts[1],
      'from', coalesce((known -> xp_notify.app_user_ids[1]::text ->> 'from')::int, xp_notify.levels_before[1]),
      'clipped_by', coalesce(xp_notify.clips[1], known -> xp_notify.app_user_ids[1]::text ->> 'clipped_by'));
    if set_config('app.xp_notified', (known || jsonb_build_object(xp_notify.app_user_ids[1]::text, told))::text,
                  true) is null then
    end if;
    if internal.add_effects('xp', array[json_strip_nulls(json_build_object(
         'app_user_id', xp_notify.app_user_ids[1], 'awarded', told -> 'awarded', 'total', xp_notify.totals[1],
           'level', xp_notify.levels[1],
         'level_up', xp_notify.levels[1] > (told ->> 'from')::int, 'clipped_by', told ->> 'clipped_by'))]) is null then
    end if;
    return;
  end if;
  select jsonb_object_agg(c.app_user_id::text, jsonb_build_object(
           'awarded', coalesce((known -> c.app_user_id::text ->> 'awarded')::bigint, 0) + c.amount,
           'from', coalesce((known -> c.app_user_id::text ->> 'from')::int, c.level_before),
           'clipped_by', coalesce(c.clip, known -> c.app_user_id::text ->> 'clipped_by')))
    into told
    from unnest(xp_notify.app_user_ids, xp_notify.amounts, xp_notify.levels_before, xp_notify.clips) as c (app_user_id,
                                        amount, level_before, clip);
  perform set_config('app.xp_notified', (known || told)::text, true);
  perform internal.add_effects('xp', array(
    select json_strip_nulls(json_build_object(
             'app_user_id', c.app_user_id, 'awarded', (told -> c.app_user_id::text -> 'awarded'), 'total', c.total,
               'level', c.level,
             'level_up', c.level > (told -> c.app_user_id::text ->> 'from')::int,
             'clipped_by', told -> c.app_user_id::text ->> 'clipped_by'))
      from unnest(xp_notify.app_user_ids, xp_notify.totals, xp_notify.levels) with ordinality as c (app_user_id, total,
                                        level, n)
     order by c.n));
end $$;
comment on function internal.xp_notify is
  'Collects the XP effect: the sum of this transaction for each user. Granted to nobody.';

create or replace function internal.rewards__xp(app_user_ids uuid[], parts jsonb[], source_type text, source_ids text[])
returns jsonb[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_named constant boolean := rewards__xp.source_type in ('achievement', 'challenge', 'league');
  of_kind constant text := case when is_named then rewards__xp.source_type else 'reward' end;
  of_source constant text := case when is_named then '' else rewards__xp.source_type || ' ' end;
begin
  perform internal.lock_users(rewards__xp.app_user_ids);
  perform internal.xp_apply(array(
    select (w.id, a.amount, of_kind, of_source || w.source_id, null, null, a.amount, null, internal.now(),
            internal.now())::internal.xp_move
      from unnest(rewards__xp.app_user_ids, rewards__xp.parts, rewards__xp.source_ids) with ordinality
             as w (id, part, source_id, n)
     cross join lateral (select internal.xp_rewarded(w.part) as amount) a
     where a.amount is not null
     order by w.n));
  return array(
    select case when a.amount is null
                  then '{"given": false, "reason": "xp must be a whole number of 1 to 1000000000"}'::jsonb
                -- a lookup for each: as a join it could begin with the whole ledger
                else jsonb_build_object('given', coalesce((
                  select t.amount from app.xp_transactions t
                   where (t.app_user_id, t.source, t.source_id) = (w.id, of_kind, of_source || w.source_id)
                     and t.rule_key is null
                   limit 1), 0)) end
      from unnest(rewards__xp.app_user_ids, rewards__xp.parts, rewards__xp.source_ids) with ordinality
             as w (id, part, source_id, n)
     cross join lateral (select internal.xp_rewarded(w.part) as amount) a
     order by w.n);
end $$;
comment on function internal.rewards__xp is
  'XP as part of rewards of many, each a whole number: one write of the ledger. Achievements, challenges and leagues are
   sources of their own in it. Granted to nobody.';

create or replace function internal.xp_rewarded(part jsonb) returns numeric
language sql immutable as $$
  select case when jsonb_typeof(xp_rewarded.part) = 'number'
               and (xp_rewarded.part #>> '{}')::numeric between 1 and 1000000000
               and (xp_rewarded.part #>> '{}')::numeric = floor((xp_rewarded.part #>> '{}')::numeric)
              then (xp_rewarded.part #>> '{}')::numeric end
$$;
comment on function internal.xp_rewarded is
  'The XP of a part of a reward, or null where it is none: a whole number of 1 to 1000000000.';

create or replace function internal.reward__xp(app_user_id uuid, part jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
begin
  return (internal.rewards__xp(array[reward__xp.app_user_id], array[reward__xp.part], reward__xp.source_type,
                               array[reward__xp.source_id]))[1];
end $$;
comment on function internal.reward__xp is 'XP as part of a reward, a whole number. Granted to nobody.';

create or replace function internal.merge__xp(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  theirs app.xp_totals;
  twice bigint;
  over bigint;
  kept bigint;
begin
  select t.* into theirs from app.xp_totals t where t.app_user_id = merge__xp.other;
  if theirs.app_user_id is null then
    return 0;
  end if;
  -- a source that paid both users counts once
  select coalesce(sum(case when t.reason = 'merged' and t.amount = 0 then t.requested else t.amount end), 0) into twice
    from app.xp_transactions t
   where t.app_user_id = merge__xp.other and t.source in ('achievement', 'challenge', 'league', 'reward')
     and exists (select from app.xp_transactions mine
                  where (mine.app_user_id, mine.source, mine.source_id) = (merge__xp.survivor, t.source, t.source_id));
  -- also when it paid in items that have been used since
  twice := twice + coalesce((
    select sum((e.effect -> 'xp')::numeric * e.times)
      from internal.effects_in_both(merge__xp.survivor, merge__xp.other) e
     where jsonb_typeof(e.effect -> 'xp') = 'number'), 0);
  -- the sum of both users' XP from a rule stays within the rule's caps for one user
  with days as (
    select o.rule_key, o.day, o.amount,
           case when r.max_per_day is null then o.amount
                else least(o.amount, greatest(0, r.max_per_day - coalesce(m.amount, 0))) end as allowed, r.max_total
      from app.xp_rule_days o
      join app.xp_rules r on r.key = o.rule_key
      left join app.xp_rule_days m on (m.app_user_id, m.rule_key, m.day) = (merge__xp.survivor, o.rule_key, o.day)
     where o.app_user_id = merge__xp.other
  ), rules as (
    select d.rule_key, sum(d.amount) as amount,
           case when d.max_total is null then sum(d.allowed)
                else least(sum(d.allowed), greatest(0, d.max_total - coalesce((
                       select sum(m.amount) from app.xp_rule_days m
                        where (m.app_user_id, m.rule_key) = (merge__xp.survivor, d.rule_key)), 0))) end as allowed
      from days d
     group by d.rule_key, d.max_total
  )
  select coalesce(sum(r.amount - r.allowed), 0) into over from rules r;
  kept := greatest(0, theirs.total - twice - over);
  insert into app.xp_rule_days as mine (app_user_id, rule_key, day, amount)
  select merge__xp.survivor, o.rule_key, o.day, o.amount
    from app.xp_rule_days o
   where o.app_user_id = merge__xp.other
   order by o.rule_key, o.day
  on conflict on constraint xp_rule_days_pkey do update set amount = mine.amount + excluded.amount;
  perform internal.xp_apply(array[(merge__xp.survivor, kept, 'merge', merge__xp.other::text, null, null, theirs.total,
                                   null,
                                   internal.now(), internal.now())::internal.xp_move]);
  -- the higher level is kept; its rewards were merged by their sources
  update app.xp_totals t
     set highest_level = greatest(t.highest_level, theirs.highest_level),
       announced_level = greatest(t.announced_level, theirs.announced_level)
   where t.app_user_id = merge__xp.survivor;
  -- rows of 0 XP keep a source that paid the other user from paying the survivor again
  insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, rule_key, reason, requested,
                                   occurred_at, counted_at)
  select merge__xp.survivor, 0, m.total, t.source, t.source_id, t.rule_key, 'merged',
         -- the amount paid, because the survivor may be merged again
         case when t.reason = 'merged' and t.amount = 0 then t.requested else t.amount end, t.occurred_at, t.counted_at
    from app.xp_transactions t
   cross join (select x.total from app.xp_totals x where x.app_user_id = merge__xp.survivor) m
   where t.app_user_id = merge__xp.other and t.source in ('achievement', 'challenge', 'league', 'reward')
  on conflict on constraint xp_transactions_once_per_source do nothing;
  return 1;
end $$;
comment on function internal.merge__xp is
  'Adds one user''s XP to another''s as a row of the ledger, without XP that both received from one source, and within
   the caps of rules. Granted to nobody.';

create or replace function internal.tg_xp_totals__forget_rewards() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.reward_grants g where g.app_user_id = old.app_user_id and g.source_type = 'xp_level';
  return null;
end $$;
comment on function internal.tg_xp_totals__forget_rewards is
  'When a reset deletes a user''s XP, lets the user earn levels and their rewards again.';

create or replace trigger tg_xp_totals__forget_rewards
  after delete on app.xp_totals
  for each row execute function internal.tg_xp_totals__forget_rewards();

create or replace function internal.tg_users__xp() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.xp_transactions t where t.app_user_id = old.id;
  delete from app.xp_rule_days d where d.app_user_id = old.id;
  return null;
end $$;
comment on function internal.tg_users__xp is
  'Deletes a user''s ledger with the user. A foreign key would do it too, but would also check the user for each row
   that an event writes.';

create or replace trigger tg_users__xp
  after delete on app.users
  for each row execute function internal.tg_users__xp();
