-- Rules, boosts and levels, as administrators write them.
comment on constraint xp_rules_key_unique on app.xp_rules is '409 CONFLICT key: A rule with this key exists.';
comment on constraint xp_rules_key_form on app.xp_rules is '400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.';
comment on constraint xp_rules_name_1_to_200 on app.xp_rules is '400 VALIDATION_ERROR name: must have 1 to 200 characters.';
comment on constraint xp_rules_event_name_form on app.xp_rules is
  '400 VALIDATION_ERROR event_name: must have 1 to 255 characters, no white space at either end.';
comment on constraint xp_rules_not_of_xp on app.xp_rules is '400 VALIDATION_ERROR event_name: XP for the award of XP would feed itself.';
comment on constraint xp_rules_one_amount on app.xp_rules is '400 VALIDATION_ERROR amount: give either amount or amount_property.';
comment on constraint xp_rules_amount_1_to_1000000000 on app.xp_rules is '400 VALIDATION_ERROR amount: must be 1 to 1000000000.';
comment on constraint xp_rules_amount_property_1_to_255 on app.xp_rules is '400 VALIDATION_ERROR amount_property: must have 1 to 255 characters.';
comment on constraint xp_rules_multiplier_above_0 on app.xp_rules is '400 VALIDATION_ERROR multiplier: must be above 0 and at most 1000000.';
comment on constraint xp_rules_max_per_event_1_to_1000000000 on app.xp_rules is '400 VALIDATION_ERROR max_per_event: must be 1 to 1000000000.';
comment on constraint xp_rules_max_per_day_1_to_1000000000 on app.xp_rules is '400 VALIDATION_ERROR max_per_day: must be 1 to 1000000000.';
comment on constraint xp_rules_cooldown_seconds_0_to_31536000 on app.xp_rules is '400 VALIDATION_ERROR cooldown_seconds: must be 0 to 31536000.';
comment on constraint xp_rules_max_total_1_to_1000000000000 on app.xp_rules is '400 VALIDATION_ERROR max_total: must be 1 to 1000000000000.';
comment on constraint xp_rules_end_after_start on app.xp_rules is '400 VALIDATION_ERROR ends_at: must be after starts_at.';
comment on constraint xp_boosts_name_unique on app.xp_boosts is '409 CONFLICT name: A boost with this name exists.';
comment on constraint xp_boosts_name_1_to_200 on app.xp_boosts is '400 VALIDATION_ERROR name: must have 1 to 200 characters.';
comment on constraint xp_boosts_multiplier_from_a_tenth_to_100 on app.xp_boosts is '400 VALIDATION_ERROR multiplier: must be 0.1 to 100.';
comment on constraint xp_boosts_end_after_start on app.xp_boosts is '400 VALIDATION_ERROR ends_at: must be after starts_at.';

create or replace function internal.xp_rule_json(r app.xp_rules) returns json
language sql stable as $$
  select json_build_object(
    'id', (xp_rule_json.r).id, 'key', (xp_rule_json.r).key, 'name', (xp_rule_json.r).name, 'event_name', (xp_rule_json.r).event_name,
    'event_filter', (xp_rule_json.r).event_filter, 'amount', (xp_rule_json.r).amount, 'amount_property', (xp_rule_json.r).amount_property,
    'multiplier', (xp_rule_json.r).multiplier, 'max_per_event', (xp_rule_json.r).max_per_event, 'max_per_day', (xp_rule_json.r).max_per_day,
    'cooldown_seconds', (xp_rule_json.r).cooldown_seconds, 'max_total', (xp_rule_json.r).max_total,
    'starts_at', internal.iso((xp_rule_json.r).starts_at), 'ends_at', internal.iso((xp_rule_json.r).ends_at),
    'is_active', (xp_rule_json.r).is_active,
    'created_at', internal.iso((xp_rule_json.r).created_at), 'updated_at', internal.iso((xp_rule_json.r).updated_at))
$$;
comment on function internal.xp_rule_json is 'A rule as every answer shows it.';

create or replace function internal.xp_boost_json(b app.xp_boosts) returns json
language sql stable as $$
  select json_build_object(
    'id', (xp_boost_json.b).id, 'name', (xp_boost_json.b).name, 'multiplier', (xp_boost_json.b).multiplier,
    'starts_at', internal.iso((xp_boost_json.b).starts_at), 'ends_at', internal.iso((xp_boost_json.b).ends_at),
    'segment_id', (xp_boost_json.b).segment_id, 'rule_keys', (xp_boost_json.b).rule_keys, 'is_active', (xp_boost_json.b).is_active,
    'created_at', internal.iso((xp_boost_json.b).created_at), 'updated_at', internal.iso((xp_boost_json.b).updated_at))
$$;
comment on function internal.xp_boost_json is 'A boost as every answer shows it.';

create or replace function internal.xp_rule_find(id_or_key text) returns app.xp_rules
language plpgsql stable as $$
declare
  as_id constant uuid := internal.as_uuid(xp_rule_find.id_or_key);
  found_one app.xp_rules;
begin
  select r.* into found_one from app.xp_rules r where r.id = as_id or as_id is null and r.key = xp_rule_find.id_or_key;
  if found_one.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such rule.');
  end if;
  return found_one;
end $$;
comment on function internal.xp_rule_find is 'A rule by its id, when the value looks like a uuid, else by its key. Refuses 404 NOT_FOUND.';

create or replace function internal.xp_boost_find(id_or_key text) returns app.xp_boosts
language plpgsql stable as $$
declare
  as_id constant uuid := internal.as_uuid(xp_boost_find.id_or_key);
  found_one app.xp_boosts;
begin
  -- a boost has no key; its name is as unique
  select b.* into found_one from app.xp_boosts b where b.id = as_id or as_id is null and b.name = xp_boost_find.id_or_key;
  if found_one.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such boost.');
  end if;
  return found_one;
end $$;
comment on function internal.xp_boost_find is 'A boost by its id, when the value looks like a uuid, else by its name. Refuses 404 NOT_FOUND.';

create or replace function internal.xp_rule_check(r app.xp_rules) returns void
language plpgsql stable as $$
declare
  problem constant text := case when (xp_rule_check.r).event_filter is not null then internal.filter_problem((xp_rule_check.r).event_filter::json) end;
  missing text;
begin
  select c.field into missing
    from jsonb_each(to_jsonb(xp_rule_check.r)) as c (field, value)
   where c.value = 'null' and c.field in ('name', 'event_name', 'multiplier', 'is_active')
   limit 1;
  if missing is not null then
    perform internal.invalid(missing, 'must not be null');
  elsif problem is not null then
    perform internal.invalid('event_filter', problem);
  end if;
end $$;
comment on function internal.xp_rule_check is 'What the checks of app.xp_rules cannot say. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.xp_boost_check(b app.xp_boosts) returns void
language plpgsql volatile as $$
declare
  missing text;
begin
  select c.field into missing
    from jsonb_each(to_jsonb(xp_boost_check.b)) as c (field, value)
   where c.value = 'null' and c.field in ('name', 'multiplier', 'starts_at', 'is_active')
   limit 1;
  if missing is not null then
    perform internal.invalid(missing, 'must not be null');
  elsif (xp_boost_check.b).segment_id is not null and not internal.segment_hold((xp_boost_check.b).segment_id) then
    perform internal.invalid('segment_id', 'must be the id of a segment');
  end if;
end $$;
comment on function internal.xp_boost_check is 'What the checks of app.xp_boosts cannot say: a segment that is named must be there, and is held. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.segment_used__xp(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'boost ' || b.name from app.xp_boosts b where b.segment_id = segment_used__xp.segment_id order by b.name)
$$;
comment on function internal.segment_used__xp is 'The boosts that name a segment.';

create or replace function api.xp_rule_define(
  key text, name text, event_name text, event_filter json default null, amount bigint default null, amount_property text default null,
  multiplier numeric default 1, max_per_event bigint default null, max_per_day bigint default null, cooldown_seconds int default null,
  max_total bigint default null, starts_at timestamptz default null, ends_at timestamptz default null, is_active boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  made app.xp_rules;
begin
  made := (internal.new_id(), xp_rule_define.key, xp_rule_define.name, xp_rule_define.event_name, xp_rule_define.event_filter, xp_rule_define.amount,
           xp_rule_define.amount_property, xp_rule_define.multiplier, xp_rule_define.max_per_event, xp_rule_define.max_per_day,
           xp_rule_define.cooldown_seconds, xp_rule_define.max_total, xp_rule_define.starts_at, xp_rule_define.ends_at, xp_rule_define.is_active,
           internal.now(), internal.now());
  perform internal.xp_rule_check(made);
  -- taken before the count, so that two at once cannot pass the limit together
  perform pg_advisory_xact_lock(7305441101);
  if (select count(*) from app.xp_rules) >= 200 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A project has at most 200 rules.', '{"limit": 200}');
  end if;
  insert into app.xp_rules select made.*;
  return internal.reply(201, internal.xp_rule_json(made));
end $$;
comment on function api.xp_rule_define is
  'A new rule, 201. Refuses 400 VALIDATION_ERROR, 409 CONFLICT (the key is taken), 409 LIMIT_REACHED (200). Supplement D2.';

create or replace function api.xp_rules(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(internal.xp_rule_json(r) order by r.created_at desc, r.id desc)
       from (select l.* from app.xp_rules l order by l.created_at desc, l.id desc limit xp_rules.page_limit offset xp_rules.page_offset) r),
    (select count(*) from app.xp_rules), xp_rules.page_offset, xp_rules.page_limit)
$$;
comment on function api.xp_rules is 'Rules, newest first. At most 200 exist, so the list needs no index.';

create or replace function api.xp_rule_get(id_or_key text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.xp_rule_json(internal.xp_rule_find(xp_rule_get.id_or_key)))
$$;
comment on function api.xp_rule_get is 'A rule. Refuses 404 NOT_FOUND.';

create or replace function api.xp_rule_update(id_or_key text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  was app.xp_rules := internal.xp_rule_find(xp_rule_update.id_or_key);
  wished app.xp_rules;
begin
  select r.* into was from app.xp_rules r where r.id = was.id for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The rule was deleted just now.');
  end if;
  begin
    wished := jsonb_populate_record(was, (
      select coalesce(jsonb_object_agg(c.key, c.value), '{}')
        from jsonb_each(xp_rule_update.patch) c
       where c.key in ('name', 'event_name', 'event_filter', 'amount', 'amount_property', 'multiplier', 'max_per_event', 'max_per_day',
                       'cooldown_seconds', 'max_total', 'starts_at', 'ends_at', 'is_active')));
  exception when data_exception then
    perform internal.invalid('body', 'has a value of the wrong type');
  end;
  -- one way to say how much takes the place of the other
  if wished.amount is not null and not xp_rule_update.patch ? 'amount_property' then
    wished.amount_property := case when xp_rule_update.patch ? 'amount' then null else wished.amount_property end;
  elsif wished.amount_property is not null and not xp_rule_update.patch ? 'amount' then
    wished.amount := null;
  end if;
  perform internal.xp_rule_check(wished);
  if wished is distinct from was then
    update app.xp_rules r
       set name = wished.name, event_name = wished.event_name, event_filter = wished.event_filter, amount = wished.amount,
           amount_property = wished.amount_property, multiplier = wished.multiplier, max_per_event = wished.max_per_event,
           max_per_day = wished.max_per_day, cooldown_seconds = wished.cooldown_seconds, max_total = wished.max_total,
           starts_at = wished.starts_at, ends_at = wished.ends_at, is_active = wished.is_active, updated_at = internal.now()
     where r.id = was.id
    returning r.* into wished;
  end if;
  return internal.reply(200, internal.xp_rule_json(wished));
end $$;
comment on function api.xp_rule_update is 'Changes a rule; what it gave stays. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR. Locks the rule.';

create or replace function api.xp_rule_delete(id_or_key text) returns api.reply
language plpgsql volatile as $$
declare
  doomed constant app.xp_rules := internal.xp_rule_find(xp_rule_delete.id_or_key);
begin
  delete from app.xp_rules r where r.id = doomed.id;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The rule was deleted just now.');
  end if;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.xp_rule_delete is 'Deletes a rule; what it gave stays, and a rule of the same key goes on with its caps. Refuses 404 NOT_FOUND.';

create or replace function api.xp_boost_define(name text, multiplier numeric, starts_at timestamptz default null, ends_at timestamptz default null,
                                               segment_id uuid default null, rule_keys json default null, is_active boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  made app.xp_boosts;
begin
  made := (internal.new_id(), xp_boost_define.name, xp_boost_define.multiplier, coalesce(xp_boost_define.starts_at, internal.now()), xp_boost_define.ends_at,
           xp_boost_define.segment_id,
           case when xp_boost_define.rule_keys is not null then array(select k from json_array_elements_text(xp_boost_define.rule_keys) k) end,
           xp_boost_define.is_active, internal.now(), internal.now());
  perform internal.xp_boost_check(made);
  perform pg_advisory_xact_lock(7305441101);
  if (select count(*) from app.xp_boosts) >= 50 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A project has at most 50 boosts.', '{"limit": 50}');
  end if;
  insert into app.xp_boosts select made.*;
  return internal.reply(201, internal.xp_boost_json(made));
end $$;
comment on function api.xp_boost_define is
  'A new boost, 201. Refuses 400 VALIDATION_ERROR (also a segment that is not there), 409 CONFLICT (the name is taken), 409 LIMIT_REACHED (50).';

create or replace function api.xp_boosts(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(internal.xp_boost_json(b) order by b.created_at desc, b.id desc)
       from (select l.* from app.xp_boosts l order by l.created_at desc, l.id desc limit xp_boosts.page_limit offset xp_boosts.page_offset) b),
    (select count(*) from app.xp_boosts), xp_boosts.page_offset, xp_boosts.page_limit)
$$;
comment on function api.xp_boosts is 'Boosts, newest first. At most 50 exist, so the list needs no index.';

create or replace function api.xp_boost_get(id_or_key text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.xp_boost_json(internal.xp_boost_find(xp_boost_get.id_or_key)))
$$;
comment on function api.xp_boost_get is 'A boost. Refuses 404 NOT_FOUND.';

create or replace function api.xp_boost_update(id_or_key text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  was app.xp_boosts := internal.xp_boost_find(xp_boost_update.id_or_key);
  wished app.xp_boosts;
begin
  select b.* into was from app.xp_boosts b where b.id = was.id for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The boost was deleted just now.');
  end if;
  begin
    wished := jsonb_populate_record(was, (
      select coalesce(jsonb_object_agg(c.key, c.value), '{}')
        from jsonb_each(xp_boost_update.patch) c
       where c.key in ('name', 'multiplier', 'starts_at', 'ends_at', 'segment_id', 'rule_keys', 'is_active')));
  exception when data_exception then
    perform internal.invalid('body', 'has a value of the wrong type');
  end;
  perform internal.xp_boost_check(wished);
  if wished is distinct from was then
    update app.xp_boosts b
       set name = wished.name, multiplier = wished.multiplier, starts_at = wished.starts_at, ends_at = wished.ends_at,
           segment_id = wished.segment_id, rule_keys = wished.rule_keys, is_active = wished.is_active, updated_at = internal.now()
     where b.id = was.id
    returning b.* into wished;
  end if;
  return internal.reply(200, internal.xp_boost_json(wished));
end $$;
comment on function api.xp_boost_update is 'Changes a boost. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, 409 CONFLICT (the name is taken). Locks the boost.';

create or replace function api.xp_boost_delete(id_or_key text) returns api.reply
language plpgsql volatile as $$
declare
  doomed constant app.xp_boosts := internal.xp_boost_find(xp_boost_delete.id_or_key);
begin
  delete from app.xp_boosts b where b.id = doomed.id;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The boost was deleted just now.');
  end if;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.xp_boost_delete is 'Deletes a boost. Refuses 404 NOT_FOUND.';

create or replace function internal.xp_levels_json() returns json
language sql stable as $$
  select json_agg(json_build_object('level', l.level, 'xp_required', l.xp_required, 'name', l.name, 'icon_url', l.icon_url, 'reward', l.reward)
                  order by l.level)
    from app.xp_levels l
$$;
comment on function internal.xp_levels_json is 'The table of levels, from the first.';

create or replace function api.xp_levels_get() returns api.reply
language sql stable as $$
  select internal.reply(200, internal.xp_levels_json())
$$;
comment on function api.xp_levels_get is 'The table of levels, from the first, whole.';

create or replace function internal.xp_levels_wished(levels json, generate json) returns app.xp_levels[]
language plpgsql stable as $$
declare
  wished app.xp_levels[];
begin
  if (xp_levels_wished.levels is null) = (xp_levels_wished.generate is null) then
    perform internal.invalid('levels', 'give either levels or generate');
  end if;
  begin
    if xp_levels_wished.generate is not null then
      select array_agg((n, round((xp_levels_wished.generate ->> 'base')::numeric
                                 * (n - 1)::numeric ^ (xp_levels_wished.generate ->> 'exponent')::numeric)::bigint, null, null, null)::app.xp_levels order by n)
        into wished
        from generate_series(1, (xp_levels_wished.generate ->> 'count')::int) n;
    else
      select array_agg(((l.value ->> 'level')::int, (l.value ->> 'xp_required')::bigint, l.value ->> 'name', l.value ->> 'icon_url',
                        nullif(l.value -> 'reward', 'null'))::app.xp_levels order by l.n)
        into wished
        from jsonb_array_elements(xp_levels_wished.levels::jsonb) with ordinality as l (value, n);
    end if;
  exception when data_exception then
    perform internal.invalid(case when xp_levels_wished.generate is null then 'levels' else 'generate' end, 'has a value out of bounds');
  end;
  if exists (select from unnest(wished) with ordinality as l (level, xp_required, name, icon_url, reward, n) where l.level is distinct from l.n::int) then
    perform internal.invalid('levels', 'must be numbered 1, 2, 3 and so on, in order');
  elsif wished[1].xp_required <> 0 then
    perform internal.invalid('levels', 'must begin with level 1 at 0 XP');
  elsif exists (select from (select l.xp_required <= lag(l.xp_required) over (order by l.level) as falls from unnest(wished) l) r where r.falls) then
    perform internal.invalid('levels', 'must be strictly rising in xp_required');
  elsif exists (select from unnest(wished) l where l.xp_required > 1000000000000000) then
    perform internal.invalid('levels', 'must need at most 1000000000000000 XP');
  end if;
  return wished;
end $$;
comment on function internal.xp_levels_wished is
  'The table that a request asks for, listed or generated: 1, 2, 3, ... from 0 XP, strictly rising. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.xp_levels_replace(wished app.xp_levels[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  was jsonb;
  ahead uuid[];
begin
  if internal.caller() <> 'developer' then
    raise exception 'only administrators write the table of levels, not %', internal.caller();
  end if;
  perform pg_advisory_xact_lock(7305441102);
  -- whom the table of today puts higher than what is stored keeps that: users first, as everybody locks them
  ahead := internal.lock_users(array(select t.app_user_id from app.xp_totals t where t.highest_level < internal.xp_level_of(t.total)));
  update app.xp_totals t
     set highest_level = greatest(t.highest_level, internal.xp_level_of(t.total))
   where t.app_user_id = any (ahead);
  was := internal.xp_levels_json()::jsonb;
  delete from app.xp_levels;
  insert into app.xp_levels select l.* from unnest(xp_levels_replace.wished) l;
  if internal.xp_levels_json()::jsonb is distinct from was then
    perform internal.audit('xp.update', 'xp_levels', 'levels', json_build_object('levels', json_build_array(was, internal.xp_levels_json())));
  end if;
end $$;
comment on function internal.xp_levels_replace is
  'Replaces the table of levels. What levels users have, they keep; rewards of levels that the new table gives them come with their next XP.
   Locks users whose level the former table of itself had raised.';

create or replace function api.xp_levels_put(levels json default null, generate json default null) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.xp_levels_replace(internal.xp_levels_wished(xp_levels_put.levels, xp_levels_put.generate));
  return internal.reply(200, internal.xp_levels_json());
end $$;
comment on function api.xp_levels_put is 'Replaces the table of levels, listed or generated, and answers it. Refuses 400 VALIDATION_ERROR (not rising). Supplement D2.';

create or replace trigger tg_xp_rules__audit
  after insert or update or delete on app.xp_rules
  for each row execute function internal.tg_audit('xp');
create or replace trigger tg_xp_boosts__audit
  after insert or update or delete on app.xp_boosts
  for each row execute function internal.tg_audit('xp');
