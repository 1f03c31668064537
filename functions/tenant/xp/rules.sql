-- Rules: events give XP. A batch is evaluated as a set; only rules with caps or a cooldown are processed act by act, in
-- order.

create or replace function internal.xp_counted_at(source text, occurred_at timestamptz, received_at timestamptz)
returns timestamptz
language sql immutable parallel safe as $$
  select case when xp_counted_at.source = 'client' then xp_counted_at.received_at else xp_counted_at.occurred_at end
$$;
comment on function internal.xp_counted_at is
  'The time that windows, caps and boosts use: for events of devices the time of receipt, because users can set a
   device''s clock.';

create or replace function internal.xp_amount(amount bigint, multiplier numeric, value jsonb) returns numeric
language sql immutable parallel safe as $$
  select case when xp_amount.amount is not null then xp_amount.amount
              when jsonb_typeof(xp_amount.value) = 'number'
                -- far above any cap, and small enough that arithmetic cannot overflow
                then greatest(0, least((xp_amount.value #>> '{}')::numeric, 1000000000000)) * xp_amount.multiplier
              else 0 end
$$;
comment on function internal.xp_amount is
  'What an event is worth under a rule, before boosts and caps: a fixed amount, or a multiple of a property; never
   negative, 0 when the property is no number.';

create or replace function internal.xp_boost_is_on(boost app.xp_boosts, at timestamptz) returns boolean
language sql immutable parallel safe as $$
  select (xp_boost_is_on.boost).is_active and (xp_boost_is_on.boost).starts_at <= xp_boost_is_on.at
     and ((xp_boost_is_on.boost).ends_at is null or (xp_boost_is_on.boost).ends_at > xp_boost_is_on.at)
$$;
comment on function internal.xp_boost_is_on is
  'Whether a boost applies at a time, to users of its segment: used to multiply XP and to list boosts.';

create or replace function internal.xp_boost(rule_key text, app_user_id uuid, at timestamptz) returns numeric
language plpgsql stable security definer set search_path = '' as $$
declare
  boost record;
  factor numeric := 1;
begin
  for boost in
    select b.multiplier, b.segment_id
      from app.xp_boosts b
     where internal.xp_boost_is_on(b, xp_boost.at)
       and (b.rule_keys is null or xp_boost.rule_key = any (b.rule_keys))
  loop
    -- the user may not be the caller: one request can change the XP of several users
    continue when not internal.is_in_segment(boost.segment_id, xp_boost.app_user_id);
    factor := factor * boost.multiplier;
    -- every cap reduces a larger factor anyway
    exit when factor > 1000000000;
  end loop;
  return factor;
end $$;
comment on function internal.xp_boost is
  'The factor of boosts for a rule''s XP, for a user at a time: the product of all that match. Granted to nobody.';

create or replace function internal.xp_apply_caps(acts internal.xp_act[], knows_ledger boolean default true)
returns internal.xp_act[]
language plpgsql stable security definer set search_path = '' as $$
declare
  granted_acts internal.xp_act[];
  walked internal.xp_act[] := '{}';
  act internal.xp_act;
  before internal.xp_act;
  rule app.xp_rules;
  day date;
  of_day bigint;
  of_all bigint;
  last_at timestamptz;
  room bigint;
begin
  if not exists (select from app.xp_rules r
                  where (r.max_per_day is not null or r.max_total is not null or r.cooldown_seconds > 0)
                    and r.id in (select a.rule_id from unnest(xp_apply_caps.acts) a)) then
    return xp_apply_caps.acts;
  end if;
  select array_agg(a) into granted_acts
    from unnest(xp_apply_caps.acts) a
    join app.xp_rules r on r.id = a.rule_id
   where r.max_per_day is null and r.max_total is null and coalesce(r.cooldown_seconds, 0) = 0;
  for act in
    select a.*
      from unnest(xp_apply_caps.acts) a
      join app.xp_rules r on r.id = a.rule_id
     where r.max_per_day is not null or r.max_total is not null or r.cooldown_seconds > 0
     order by a.app_user_id, a.rule_key, a.counted_at, a.occurred_at, a.event_id
  loop
    if (act.app_user_id, act.rule_id) is distinct from (before.app_user_id, before.rule_id) then
      select r.* into rule from app.xp_rules r where r.id = act.rule_id;
      day := null;
      last_at := null;
      of_all := 0;
      if rule.max_total is not null and xp_apply_caps.knows_ledger then
        select coalesce(sum(d.amount), 0) into of_all from app.xp_rule_days d
         where (d.app_user_id, d.rule_key) = (act.app_user_id, act.rule_key);
      end if;
    end if;
    if day is distinct from (act.counted_at at time zone 'UTC')::date then
      day := (act.counted_at at time zone 'UTC')::date;
      of_day := 0;
      if rule.max_per_day is not null and xp_apply_caps.knows_ledger then
        select coalesce(sum(d.amount), 0) into of_day
          from app.xp_rule_days d
         where (d.app_user_id, d.rule_key, d.day) = (act.app_user_id, act.rule_key,
                                                     (act.counted_at at time zone 'UTC')::date);
      end if;
    end if;
    before := act;
    if rule.cooldown_seconds > 0
       and (act.counted_at < last_at + make_interval(secs => rule.cooldown_seconds)
            or xp_apply_caps.knows_ledger and exists (
              -- in both directions: what comes late lies before what was counted
              select from app.xp_transactions t
               where t.app_user_id = act.app_user_id and t.rule_key = act.rule_key
                 and t.id >= internal.xp_first_id(act.counted_at - make_interval(secs => rule.cooldown_seconds))
                 and t.counted_at > act.counted_at - make_interval(secs => rule.cooldown_seconds)
                 and t.counted_at < act.counted_at + make_interval(secs => rule.cooldown_seconds))) then
      act.amount := 0;
      act.clipped_by := 'cooldown';
    end if;
    room := rule.max_per_day - of_day;
    if act.amount > room then
      act.amount := greatest(0, room);
      act.clipped_by := 'max_per_day';
    end if;
    room := rule.max_total - of_all;
    if act.amount > room then
      act.amount := greatest(0, room);
      act.clipped_by := 'max_total';
    end if;
    if act.amount > 0 then
      of_day := of_day + act.amount;
      of_all := of_all + act.amount;
      last_at := act.counted_at;
    end if;
    walked := walked || act;
  end loop;
  return coalesce(granted_acts, '{}') || walked;
end $$;
comment on function internal.xp_apply_caps is
  'Reduces acts to the cooldowns and caps of their rules; an amount may become 0. The users must be locked. knows_ledger
   false: as if nothing had been given yet.';

create or replace function internal.xp_give(acts internal.xp_act[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  granted_acts internal.xp_act[];
begin
  if xp_give.acts is null then
    return;
  end if;
  granted_acts := internal.xp_apply_caps(xp_give.acts);
  -- an amount that a cap reduced to 0 is shown, unless the same event gives more
  if internal.collects_effects() and exists (select from unnest(granted_acts) a where a.clipped_by is not null) then
    perform internal.add_effects('xp', array(
      select json_build_object('app_user_id', c.app_user_id,
                               'awarded', coalesce((x.known -> c.app_user_id::text ->> 'awarded')::bigint, 0),
                               'total', coalesce(t.total, 0), 'level', greatest(coalesce(t.highest_level, 1),
                                        internal.xp_level_of(coalesce(t.total, 0))),
                               'level_up', false, 'clipped_by', c.clipped_by)
        from (select a.app_user_id, string_agg(distinct a.clipped_by, ',') as clipped_by
                from unnest(granted_acts) a
               group by a.app_user_id
              having bool_and(a.amount = 0) and bool_or(a.clipped_by is not null)) c
       cross join (select coalesce(nullif(current_setting('app.xp_notified', true), '')::jsonb, '{}') as known) x
        left join app.xp_totals t on t.app_user_id = c.app_user_id
       where not x.known ? c.app_user_id::text
       order by c.app_user_id));
  end if;
  perform internal.xp_apply(array(
    select (a.app_user_id, a.amount, 'event', a.event_id::text, a.rule_key, null, a.requested, a.clipped_by,
            a.occurred_at, a.counted_at)::internal.xp_move
      from unnest(granted_acts) a
     where a.amount > 0
     order by a.app_user_id, a.counted_at, a.occurred_at, a.event_id, a.rule_key));
end $$;
comment on function internal.xp_give is
  'Gives the XP of acts within the caps of their rules. The users must be locked. Granted to nobody.';

create or replace function internal.on_events__30_xp(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  has_rules boolean;
  has_caps boolean;
  has_boosts boolean;
  acts internal.xp_act[];
  moves internal.xp_move[];
begin
  if not internal.event_hooks_may_run() then
    return;
  end if;
  select count(*) > 0, coalesce(bool_or(r.max_per_day is not null or r.max_total is not null or r.cooldown_seconds > 0),
                                false)
    into has_rules, has_caps
    from app.xp_rules r
   where r.is_active and r.event_name in (select i.event_name from unnest(on_events__30_xp.events) i);
  if not has_rules
     or not internal.runs_sets()
     and (select bool_and((p.xp).is_fixed)
            from app.event_plans p
           where p.xp is distinct from null
             and p.event_name in (select i.event_name from unnest(on_events__30_xp.events) i))
     and internal.xp_give_events(on_events__30_xp.events) then
    return;
  end if;
  has_boosts := exists (select from app.xp_boosts b where b.is_active);
  if has_caps then
    select array_agg((i.app_user_id, r.id, r.key, i.id, i.occurred_at, c.at, w.requested,
                      least(w.requested, r.max_per_event),
                      case when w.requested > r.max_per_event then 'max_per_event' end)::internal.xp_act)
      into acts
      from unnest(on_events__30_xp.events) i
      join app.xp_rules r on r.event_name = i.event_name and r.is_active
     cross join lateral (select internal.xp_counted_at(i.source, i.occurred_at, i.received_at) as at) c
     cross join lateral (
       select floor(least(internal.xp_amount(r.amount, r.multiplier,
                                             i.properties #> string_to_array(r.amount_property, '.'))
                          * case when has_boosts then internal.xp_boost(r.key, i.app_user_id, c.at) else 1 end,
                            1000000000))::bigint as requested) w
     where (r.event_filter is null or internal.filter_truth(r.event_filter, i.properties))
       and (r.starts_at is null or r.starts_at <= c.at) and (r.ends_at is null or r.ends_at > c.at);
    perform internal.xp_give(acts);
    return;
  end if;
  -- no rule needs its acts in order: one query turns events into moves of the ledger
  select array_agg(m.move) into moves
    from (select (i.app_user_id, least(w.requested, r.max_per_event), 'event', i.id::text, r.key, null, w.requested,
                  case when w.requested > r.max_per_event then 'max_per_event' end, i.occurred_at,
                  c.at)::internal.xp_move as move
            from unnest(on_events__30_xp.events) i
            join app.xp_rules r on r.event_name = i.event_name and r.is_active
           cross join lateral (select internal.xp_counted_at(i.source, i.occurred_at, i.received_at) as at) c
           cross join lateral (
             select floor(least(internal.xp_amount(r.amount, r.multiplier,
                                                   i.properties #> string_to_array(r.amount_property, '.'))
                                * case when has_boosts then internal.xp_boost(r.key, i.app_user_id, c.at) else 1 end,
                                  1000000000))::bigint as requested) w
           where w.requested > 0
             and (r.event_filter is null or internal.filter_truth(r.event_filter, i.properties))
             and (r.starts_at is null or r.starts_at <= c.at) and (r.ends_at is null or r.ends_at > c.at)
           order by i.app_user_id, c.at, i.occurred_at, i.id, r.key) m;
  if moves is not null then
    perform internal.xp_apply(moves, true);
  end if;
end $$;
comment on function internal.on_events__30_xp is 'Gives the XP of the rules for the names of events.';

create or replace function internal.on_event__30_xp(event app.engagement_events, plan internal.xp_plan) returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := on_event__30_xp.event;
  p constant internal.xp_plan := on_event__30_xp.plan;
  at constant timestamptz := internal.xp_counted_at(e.source, e.occurred_at, e.received_at);
  due record;
begin
  if p.is_fixed then
    perform internal.xp_give_event(e, at, p.keys, p.amounts, p.requested, p.clips);
    return;
  end if;
  select coalesce(bool_or(r.max_per_day is not null or r.max_total is not null or r.cooldown_seconds > 0), false)
         or exists (select from app.xp_boosts b where b.is_active) as is_rare,
         array_agg(r.key) filter (where r.requested > 0) as keys,
         array_agg(r.requested) filter (where r.requested > 0) as requested,
         array_agg(least(r.requested, r.max_per_event)) filter (where r.requested > 0) as amounts,
         array_agg(case when r.requested > r.max_per_event then 'max_per_event' end)
           filter (where r.requested > 0) as clips
    into due
    from (select x.*, w.requested
            from app.xp_rules x
           cross join lateral (
             select floor(least(internal.xp_amount(x.amount, x.multiplier,
                                                   e.properties #> string_to_array(x.amount_property, '.')),
                                                     1000000000))::bigint as requested) w
           where x.id = any (p.ids) and x.is_active
             and (x.event_filter is null or internal.filter_truth(x.event_filter, e.properties))
             and (x.starts_at is null or x.starts_at <= at) and (x.ends_at is null or x.ends_at > at)
           order by x.key) r;
  if due.is_rare then
    perform internal.on_events__30_xp(array[e]);
  elsif due.keys is not null then
    perform internal.xp_give_event(e, at, due.keys, due.amounts, due.requested, due.clips);
  end if;
end $$;
comment on function internal.on_event__30_xp is
  'Gives the XP of the rules for an event''s name. internal.on_events__30_xp applies caps, cooldowns and boosts.';

create or replace function internal.event_plan__xp() returns table (event_name text, plan internal.xp_plan)
language sql stable as $$
  select r.event_name,
         (array_agg(r.id order by r.key),
          bool_and(r.amount is not null and r.event_filter is null and r.starts_at is null and r.ends_at is null
                   and r.max_per_day is null
                   and r.max_total is null and coalesce(r.cooldown_seconds, 0) = 0)
          and not exists (select from app.xp_boosts b where b.is_active),
          array_agg(r.key order by r.key), array_agg(least(r.amount, r.max_per_event) order by r.key),
          array_agg(r.amount order by r.key),
          array_agg(case when r.amount > r.max_per_event then 'max_per_event' end order by r.key))::internal.xp_plan
    from app.xp_rules r
   where r.is_active
   group by 1
$$;
comment on function internal.event_plan__xp is 'The active rules of an event. Granted to nobody.';

create or replace trigger tg_xp_rules__event_plans
  after insert or delete or update on app.xp_rules
  for each statement execute function internal.tg_event_plans();

create or replace trigger tg_xp_boosts__event_plans
  after insert or delete or update of is_active on app.xp_boosts
  for each statement execute function internal.tg_event_plans();

create or replace function internal.xp_acts(app_user_ids uuid[], rule_id uuid, since timestamptz, until timestamptz,
                                            with_boosts boolean)
returns internal.xp_act[]
language sql stable security definer set search_path = '' as $$
  select array_agg((e.app_user_id, r.id, r.key, e.id, e.occurred_at, c.at, w.requested,
                    least(w.requested, r.max_per_event),
                    case when w.requested > r.max_per_event then 'max_per_event' end)::internal.xp_act)
    from app.xp_rules r
    join app.engagement_events e on e.event_name = r.event_name
   cross join lateral (select internal.xp_counted_at(e.source, e.occurred_at, e.received_at) as at) c
   cross join lateral (
     select floor(least(internal.xp_amount(r.amount, r.multiplier,
                                           e.properties #> string_to_array(r.amount_property, '.'))
                        * case when xp_acts.with_boosts then internal.xp_boost(r.key, e.app_user_id, c.at) else 1 end,
                          1000000000))::bigint as requested) w
   where (r.is_active or xp_acts.rule_id is not null) and (xp_acts.rule_id is null or r.id = xp_acts.rule_id)
     and (xp_acts.app_user_ids is null or e.app_user_id in (select unnest(xp_acts.app_user_ids)))
     and e.occurred_at >= xp_acts.since and e.occurred_at < xp_acts.until
     and (r.event_filter is null or internal.filter_truth(r.event_filter, e.properties))
     and (r.starts_at is null or r.starts_at <= c.at) and (r.ends_at is null or r.ends_at > c.at)
     -- as if from nothing, or what was not given yet
     and (xp_acts.rule_id is not null or not exists (
       select from app.xp_transactions t
        where (t.app_user_id, t.source, t.source_id, t.rule_key) = (e.app_user_id, 'event', e.id::text, r.key)))
$$;
comment on function internal.xp_acts is
  'The acts of stored events in a range of time: those of some users under the active rules that were not given yet; or
   those of some or all (null) users under one rule, as if nothing had been given. Granted to nobody.';

create or replace function internal.replay__xp(app_user_ids uuid[], since timestamptz, until timestamptz) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  before jsonb;
begin
  before := (select coalesce(jsonb_object_agg(t.app_user_id, t.total), '{}') from app.xp_totals t
              where t.app_user_id = any (replay__xp.app_user_ids));
  perform internal.xp_give(internal.xp_acts(replay__xp.app_user_ids, null, replay__xp.since, replay__xp.until, true));
  return (select coalesce(jsonb_agg(jsonb_build_object('app_user_id', t.app_user_id, 'before',
                                                       coalesce((before ->> t.app_user_id::text)::bigint, 0),
                                                         'after', t.total)
                                    order by t.app_user_id), '[]')
            from app.xp_totals t
           where t.app_user_id = any (replay__xp.app_user_ids)
             and t.total <> coalesce((before ->> t.app_user_id::text)::bigint, 0));
end $$;
comment on function internal.replay__xp is
  'Gives users the XP of their stored events under the present rules that they were not given yet. Only adds XP; caps
   apply. The users must be locked.';

create or replace function internal.event_caused__xp(event app.engagement_events) returns json
language sql stable as $$
  select json_agg(json_build_object('transaction_id', t.id, 'amount', t.amount,
                                    'rule_key', t.rule_key) order by t.rule_key)
    from app.xp_transactions t
   where (t.app_user_id, t.source, t.source_id) = ((event_caused__xp.event).app_user_id, 'event',
                                                   (event_caused__xp.event).id::text)
$$;
comment on function internal.event_caused__xp is 'The rows of the ledger that an event caused, for its links.';
