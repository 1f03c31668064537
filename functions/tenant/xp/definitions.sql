-- Checks of rules and boosts, and the table of levels.
comment on constraint xp_rules_key_unique on app.xp_rules is '409 CONFLICT key: A rule with this key exists.';
comment on constraint xp_rules_event_name_form on app.xp_rules is
  '400 VALIDATION_ERROR event_name: must have 1 to 255 characters, no white space at either end.';
comment on constraint xp_rules_not_of_xp on app.xp_rules is
  '400 VALIDATION_ERROR event_name: XP for the award of XP would feed itself.';
comment on constraint xp_rules_one_amount on app.xp_rules is
  '400 VALIDATION_ERROR amount: give either amount or amount_property.';
comment on constraint xp_rules_multiplier_above_0 on app.xp_rules is
  '400 VALIDATION_ERROR multiplier: must be above 0 and at most 1000000.';
comment on constraint xp_rules_end_after_start on app.xp_rules is
  '400 VALIDATION_ERROR ends_at: must be after starts_at.';
comment on constraint xp_boosts_name_unique on app.xp_boosts is '409 CONFLICT name: A boost with this name exists.';
comment on constraint xp_boosts_multiplier_from_a_tenth_to_100 on app.xp_boosts is
  '400 VALIDATION_ERROR multiplier: must be 0.1 to 100.';
comment on constraint xp_boosts_end_after_start on app.xp_boosts is
  '400 VALIDATION_ERROR ends_at: must be after starts_at.';

create or replace function internal.xp_rule_check(requested app.xp_rules, was app.xp_rules, sent jsonb)
returns app.xp_rules
language plpgsql stable as $$
declare
  rule app.xp_rules := xp_rule_check.requested;
  problem constant text := case when rule.event_filter is not null
                                  then internal.filter_problem(rule.event_filter::json) end;
begin
  if problem is not null then
    perform internal.invalid('event_filter', problem);
  end if;
  -- setting one of amount and amount_property clears the other
  if (xp_rule_check.was).id is null or xp_rule_check.sent ?& array['amount', 'amount_property'] then
    return rule;
  elsif xp_rule_check.sent ->> 'amount' is not null then
    rule.amount_property := null;
  elsif xp_rule_check.sent ->> 'amount_property' is not null then
    rule.amount := null;
  end if;
  return rule;
end $$;
comment on function internal.xp_rule_check is
  'Checks what the constraints of app.xp_rules cannot express. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.xp_boost_check(requested app.xp_boosts, was app.xp_boosts, sent jsonb)
returns app.xp_boosts
language plpgsql volatile as $$
begin
  if (xp_boost_check.requested).segment_id is not null
    and not internal.segment_lock_shared((xp_boost_check.requested).segment_id) then
    perform internal.invalid('segment_id', 'must be the id of a segment');
  end if;
  return xp_boost_check.requested;
end $$;
comment on function internal.xp_boost_check is
  'Checks that the segment of a boost exists, and locks it against deletion. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.segment_used__xp(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'boost ' || b.name from app.xp_boosts b where b.segment_id = segment_used__xp.segment_id
                order by b.name)
$$;
comment on function internal.segment_used__xp is 'The boosts that name a segment.';


create or replace function internal.xp_levels_json() returns json
language sql stable as $$
  select json_agg(json_build_object('level', l.level, 'xp_required', l.xp_required, 'name', l.name,
                                    'icon_url', l.icon_url, 'reward', l.reward)
                  order by l.level)
    from app.xp_levels l
$$;
comment on function internal.xp_levels_json is 'The table of levels, from the first.';

create or replace function api.xp_levels_get() returns api.reply
language sql stable as $$
  select internal.reply(200, internal.xp_levels_json())
$$;
comment on function api.xp_levels_get is 'The table of levels, from the first, whole.';

create or replace function internal.xp_levels_requested(levels json, generate json) returns app.xp_levels[]
language plpgsql stable as $$
declare
  requested app.xp_levels[];
begin
  if (xp_levels_requested.levels is null) = (xp_levels_requested.generate is null) then
    perform internal.invalid('levels', 'give either levels or generate');
  end if;
  begin
    if xp_levels_requested.generate is not null then
      select array_agg((n, round((xp_levels_requested.generate ->> 'base')::numeric
                                 * (n - 1)::numeric ^ (xp_levels_requested.generate ->> 'exponent')::numeric)::bigint,
                                   null, null, null)::app.xp_levels order by n)
        into requested
        from generate_series(1, (xp_levels_requested.generate ->> 'count')::int) n;
    else
      select array_agg(((l.value ->> 'level')::int, (l.value ->> 'xp_required')::bigint, l.value ->> 'name',
                        l.value ->> 'icon_url',
                        nullif(l.value -> 'reward', 'null'))::app.xp_levels order by l.n)
        into requested
        from jsonb_array_elements(xp_levels_requested.levels::jsonb) with ordinality as l (value, n);
    end if;
  exception when data_exception then
    perform internal.invalid(case when xp_levels_requested.generate is null then 'levels' else 'generate' end,
                             'has a value out of bounds');
  end;
  if requested is null or cardinality(requested) > 1000 then
    perform internal.invalid('levels', 'must have 1 to 1000 levels');
  elsif exists (select from unnest(requested) with ordinality as l (level, xp_required, name, icon_url, reward, n)
                 where l.level is distinct from l.n::int) then
    perform internal.invalid('levels', 'must be numbered 1, 2, 3 and so on, in order');
  elsif requested[1].xp_required <> 0 then
    perform internal.invalid('levels', 'must begin with level 1 at 0 XP');
  elsif exists (select from (select l.xp_required <= lag(l.xp_required) over (order by l.level) as falls
                               from unnest(requested) l) r where r.falls) then
    perform internal.invalid('levels', 'must be strictly rising in xp_required');
  elsif exists (select from unnest(requested) l where l.xp_required > 1000000000000000) then
    perform internal.invalid('levels', 'must need at most 1000000000000000 XP');
  end if;
  return requested;
end $$;
comment on function internal.xp_levels_requested is
  'The table that a request asks for, listed or generated: 1, 2, 3, ... from 0 XP, strictly rising. Refuses 400
   VALIDATION_ERROR.';

create or replace function internal.xp_levels_replace(requested app.xp_levels[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  was jsonb;
  ahead uuid[];
begin
  perform internal.check_caller('developer', 'the table of levels is written by administrators');
  perform internal.advisory_lock('xp levels');
  -- users whom the former table puts on a higher level than the stored one keep that level; users are locked first, as
  -- everywhere
  ahead := internal.lock_users(array(select t.app_user_id from app.xp_totals t
                                      where t.highest_level < internal.xp_level_of(t.total)));
  update app.xp_totals t
     set highest_level = greatest(t.highest_level, internal.xp_level_of(t.total))
   where t.app_user_id = any (ahead);
  was := internal.xp_levels_json()::jsonb;
  delete from app.xp_levels;
  insert into app.xp_levels select l.* from unnest(xp_levels_replace.requested) l;
  if internal.xp_levels_json()::jsonb is distinct from was then
    perform internal.audit('xp.update', 'xp_levels', 'levels',
                           json_build_object('levels', json_build_array(was, internal.xp_levels_json())));
  end if;
end $$;
comment on function internal.xp_levels_replace is
  'Replaces the table of levels. Users keep the levels that they have; rewards of levels that they reach by the new
   table are paid with their next XP. Locks the users whose stored level is below that of the former table.';

create or replace function api.xp_levels_put(levels json default null, generate json default null) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.xp_levels_replace(internal.xp_levels_requested(xp_levels_put.levels, xp_levels_put.generate));
  return internal.reply(200, internal.xp_levels_json());
end $$;
comment on function api.xp_levels_put is
  'Replaces the table of levels, listed or generated, and answers it. Refuses 400 VALIDATION_ERROR (not rising).';

select internal.audit_declare('app.xp_rules', 'xp');
select internal.audit_declare('app.xp_boosts', 'xp');
