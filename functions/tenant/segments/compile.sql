-- The compiler of segment rules. A tree becomes one SQL condition on u, a row of app.users. Its text contains no input: each leaf is a parameter, the element
-- of $1 with its number, and the text reads the leaf's fields from there. A leaf is compiled by
--
--   internal.segment_source__<source>(leaf jsonb, place text, parameter text, out condition text, out actual text)
--
-- which refuses what it does not know, and answers a condition that is true, false or null (unknown), and an expression that shows what was compared. An
-- area adds a source by adding such a function.

create or replace function internal.segment_value(value jsonb) returns jsonb
language sql stable as $$
  select case when jsonb_typeof(segment_value.value -> 'days_ago') = 'number'
              then to_jsonb(internal.iso(internal.now() - make_interval(secs => ((segment_value.value ->> 'days_ago')::numeric * 86400)::double precision)))
              else segment_value.value end
$$;
comment on function internal.segment_value is 'A value to compare with: {"days_ago": n} is that time, as text. Everything else is itself.';

create or replace function internal.segment_date(value jsonb) returns timestamptz
language sql stable as $$
  select (t.text || case when t.text ~ ':' then '' else 'T00:00Z' end)::timestamptz
    from (select internal.segment_value(segment_date.value) #>> '{}' as text) t
$$;
comment on function internal.segment_date is 'A time to compare with. For values that segment_date_check has let through.';

create or replace function internal.segment_value_check(value jsonb, place text) returns void
language plpgsql volatile as $$
begin
  if jsonb_typeof(segment_value_check.value) = 'object' and segment_value_check.value ? 'days_ago'
     and (jsonb_typeof(segment_value_check.value -> 'days_ago') <> 'number'
          or not (segment_value_check.value -> 'days_ago')::numeric between 0 and 36500) then
    perform internal.invalid(segment_value_check.place || '.value', 'must have days_ago of 0 to 36500');
  end if;
end $$;
comment on function internal.segment_value_check is 'Refuses {"days_ago": ...} that is no number of 0 to 36500.';

create or replace function internal.segment_date_check(leaf jsonb, place text) returns void
language plpgsql volatile as $$
declare
  value constant jsonb := segment_date_check.leaf -> 'value';
begin
  if not coalesce(segment_date_check.leaf ->> 'op' in ('eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'is_null', 'is_not_null'), false) then
    perform internal.invalid(segment_date_check.place || '.op', 'must be eq, ne, gt, gte, lt, lte, is_null or is_not_null');
  elsif segment_date_check.leaf ->> 'op' in ('is_null', 'is_not_null') then
    return;
  end if;
  perform internal.segment_value_check(value, segment_date_check.place);
  if coalesce(jsonb_typeof(value), '') = 'object' and value ? 'days_ago' then
    return;
  elsif coalesce(jsonb_typeof(value), '') <> 'string' or not internal.segment_is_time(value #>> '{}') then
    perform internal.invalid(segment_date_check.place || '.value', 'must be a time such as 2026-10-03T09:00:00Z, or {"days_ago": 7}');
  end if;
end $$;
comment on function internal.segment_date_check is 'Refuses a leaf on times whose op or value does not suit them.';

create or replace function internal.segment_is_time(value text) returns boolean
language plpgsql immutable as $$
begin
  if segment_is_time.value !~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?$' then
    return false;
  end if;
  return (segment_is_time.value || case when segment_is_time.value ~ ':' then '' else 'T00:00Z' end)::timestamptz is not null;
exception when data_exception then
  return false;
end $$;
comment on function internal.segment_is_time is 'Whether a text is a date, or a time with its zone.';

create or replace function internal.segment_on_date(leaf jsonb, place text, parameter text, expression text, out condition text, out actual text)
language plpgsql volatile as $$
declare
  comparison constant text := case segment_on_date.leaf ->> 'op'
    when 'eq' then '=' when 'ne' then '<>' when 'gt' then '>' when 'gte' then '>=' when 'lt' then '<' when 'lte' then '<=' end;
begin
  perform internal.segment_date_check(segment_on_date.leaf, segment_on_date.place);
  condition := case segment_on_date.leaf ->> 'op'
    when 'is_null' then format('(%s is null)', segment_on_date.expression)
    when 'is_not_null' then format('(%s is not null)', segment_on_date.expression)
    else format('(%s %s internal.segment_date(%s -> ''value''))', segment_on_date.expression, comparison, segment_on_date.parameter) end;
  actual := format('to_jsonb(internal.iso(%s))', segment_on_date.expression);
end $$;
comment on function internal.segment_on_date is 'A leaf on an expression that is a time.';

create or replace function internal.segment_on_json(leaf jsonb, place text, parameter text, expression text, out condition text, out actual text)
language plpgsql volatile as $$
declare
  problem record;
begin
  perform internal.segment_value_check(segment_on_json.leaf -> 'value', segment_on_json.place);
  select p.path, p.reason into problem
    from internal.filter_leaf_problem(jsonb_strip_nulls(jsonb_build_object('column', 'x', 'op', segment_on_json.leaf -> 'op'))
      || case when segment_on_json.leaf ? 'value' then jsonb_build_object('value', internal.segment_value(segment_on_json.leaf -> 'value')) else '{}' end) p;
  -- all segments are compiled when one changes: a leaf that was accepted under a former limit must not refuse that
  if problem.reason is not null
     and not exists (select from app.segment_states t where t.parameters @> jsonb_build_array(segment_on_json.leaf)) then
    perform internal.invalid(segment_on_json.place || '.' || problem.path, problem.reason);
  end if;
  condition := format('internal.filter_compare(%s, %s ->> ''op'', internal.segment_value(%s -> ''value''))',
                      segment_on_json.expression, segment_on_json.parameter, segment_on_json.parameter);
  actual := segment_on_json.expression;
end $$;
comment on function internal.segment_on_json is 'A leaf on an expression that is jsonb, compared as filters do.';

create or replace function internal.version_key(version text) returns text
language sql immutable as $$
  select string_agg(lpad(left(p.part[1], 12), 12, '0'), '.' order by p.n)
    from regexp_matches(regexp_replace(regexp_replace(version_key.version, '[-+].*$', ''), '(\.0+)+$', ''), '(\d+)', 'g') with ordinality as p (part, n)
$$;
comment on function internal.version_key is 'A version as text that sorts as versions do: 1.10 after 1.9, 1.0 the same as 1. Null when there is no number in it.';

create or replace function internal.segment_key_check(leaf jsonb, place text, is_there boolean, reason text) returns void
language plpgsql volatile as $$
begin
  -- a leaf that was right when it was written stays: what it names may be deleted, and must not bar every other segment from changing
  if not coalesce(segment_key_check.is_there, false)
     and not exists (select from app.segment_states t where t.parameters @> jsonb_build_array(segment_key_check.leaf)) then
    perform internal.invalid(segment_key_check.place || '.key', segment_key_check.reason);
  end if;
end $$;
comment on function internal.segment_key_check is 'Refuses a new leaf whose key names nothing: 400 VALIDATION_ERROR.';

create or replace function internal.segment_source__user(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
declare
  col constant text := segment_source__user.leaf ->> 'column';
  expression text;
begin
  if col in ('first_seen_at', 'last_seen_at', 'created_at') then
    select c.condition, c.actual into condition, actual
      from internal.segment_on_date(segment_source__user.leaf, segment_source__user.place, segment_source__user.parameter, 'u.' || col) c;
    return;
  end if;
  expression := case col
    when 'email' then 'to_jsonb(u.email)'
    when 'email_verified' then 'to_jsonb(u.email_verified)'
    when 'external_id' then 'to_jsonb(u.external_id)'
    when 'timezone' then 'to_jsonb(u.timezone)'
    when 'is_anonymous' then 'to_jsonb(not internal.has_identity(u.id))'
    when 'platform' then
      '(select to_jsonb(s.platform) from app.user_sessions s where s.app_user_id = u.id and s.platform is not null order by s.last_used_at desc, s.id desc limit 1)'
    when 'app_version' then
      '(select to_jsonb(s.app_version) from app.user_sessions s where s.app_user_id = u.id and s.app_version is not null order by s.last_used_at desc, s.id desc limit 1)'
  end;
  if expression is null then
    perform internal.invalid(segment_source__user.place || '.column', 'must be email, email_verified, external_id, is_anonymous, timezone, '
                             || 'first_seen_at, last_seen_at, created_at, platform or app_version');
  end if;
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__user.leaf, segment_source__user.place, segment_source__user.parameter, expression) c;
  if col = 'app_version' and segment_source__user.leaf ->> 'op' in ('eq', 'ne', 'gt', 'gte', 'lt', 'lte') then
    if jsonb_typeof(segment_source__user.leaf -> 'value') <> 'string' then
      perform internal.invalid(segment_source__user.place || '.value', 'must be a version, a string');
    end if;
    condition := format('internal.filter_compare(to_jsonb(internal.version_key(%s #>> ''{}'')), %s ->> ''op'', to_jsonb(internal.version_key(%s ->> ''value'')))',
                        expression, segment_source__user.parameter, segment_source__user.parameter);
  end if;
end $$;
comment on function internal.segment_source__user is 'Leaves on a user''s own columns; platform and app_version are those of the session that was used last.';

create or replace function internal.segment_source__property(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  if coalesce(jsonb_typeof(segment_source__property.leaf -> 'column'), '') <> 'string'
     or char_length(segment_source__property.leaf ->> 'column') not between 1 and 255 then
    perform internal.invalid(segment_source__property.place || '.column', 'must be the path of a property, of 1 to 255 characters');
  end if;
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__property.leaf, segment_source__property.place, segment_source__property.parameter,
           format('coalesce(u.properties -> (%1$s ->> ''column''), u.properties #> string_to_array(%1$s ->> ''column'', ''.''))',
                  segment_source__property.parameter)) c;
end $$;
comment on function internal.segment_source__property is 'Leaves on a user''s properties, by path.';

create or replace function internal.segment_number(properties jsonb, path text) returns numeric
language sql immutable parallel safe as $$
  select case when jsonb_typeof(v.value) = 'number' then v.value::numeric end
    from (select coalesce(segment_number.properties -> segment_number.path,
                          segment_number.properties #> string_to_array(segment_number.path, '.')) as value) v
$$;
comment on function internal.segment_number is 'The number at a path of an event''s properties, or null.';

create or replace function internal.segment_event_check(leaf jsonb, place text) returns void
language plpgsql volatile as $$
declare
  measure constant text := segment_event_check.leaf ->> 'measure';
  field text;
  problem text;
begin
  if coalesce(jsonb_typeof(segment_event_check.leaf -> 'event_name'), '') <> 'string'
     or char_length(segment_event_check.leaf ->> 'event_name') not between 1 and 255 then
    perform internal.invalid(segment_event_check.place || '.event_name', 'must have 1 to 255 characters');
  elsif segment_event_check.leaf ->> 'event_name' like 'svc.segment.%' then
    -- a segment of those who never entered it would not come to rest
    perform internal.invalid(segment_event_check.place || '.event_name', 'must not be of segments themselves: name the segment');
  elsif not coalesce(measure in ('count', 'sum', 'min', 'max', 'first_at', 'last_at'), false) then
    perform internal.invalid(segment_event_check.place || '.measure', 'must be count, sum, min, max, first_at or last_at');
  elsif (measure in ('sum', 'min', 'max')) <> coalesce(jsonb_typeof(segment_event_check.leaf -> 'column') = 'string', false) then
    perform internal.invalid(segment_event_check.place || '.column', case when measure in ('sum', 'min', 'max')
                             then 'is required: the path of a property' else 'must be left out with this measure' end);
  elsif segment_event_check.leaf ? 'within_days' and (jsonb_typeof(segment_event_check.leaf -> 'within_days') <> 'number'
        or not (segment_event_check.leaf -> 'within_days')::numeric between 0.001 and 36500) then
    perform internal.invalid(segment_event_check.place || '.within_days', 'must be a number of days, up to 36500');
  elsif segment_event_check.leaf ? 'within_days' and segment_event_check.leaf ?| array['since', 'until'] then
    perform internal.invalid(segment_event_check.place || '.within_days', 'must not stand beside since or until');
  end if;
  foreach field in array array['since', 'until'] loop
    if segment_event_check.leaf ? field and not coalesce(case jsonb_typeof(segment_event_check.leaf -> field)
         when 'string' then internal.segment_is_time(segment_event_check.leaf ->> field)
         when 'object' then jsonb_typeof(segment_event_check.leaf #> array[field, 'days_ago']) = 'number'
                            and (segment_event_check.leaf #> array[field, 'days_ago'])::numeric between 0 and 36500 end, false) then
      perform internal.invalid(segment_event_check.place || '.' || field, 'must be a time such as 2026-10-03T09:00:00Z, or {"days_ago": 7}');
    end if;
  end loop;
  problem := case when segment_event_check.leaf ? 'where' then internal.filter_problem((segment_event_check.leaf -> 'where')::json) end;
  if problem is not null then
    perform internal.invalid(segment_event_check.place || '.where', problem);
  end if;
end $$;
comment on function internal.segment_event_check is 'Refuses a leaf on events that is not as it must be: 400 VALIDATION_ERROR.';

create or replace function internal.segment_source__event(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
declare
  l constant jsonb := segment_source__event.leaf;
  p constant text := segment_source__event.parameter;
  measured text;
  source text;
begin
  perform internal.segment_event_check(l, segment_source__event.place);
  if l ->> 'measure' = 'count' and not l ?| array['within_days', 'since', 'until', 'where'] then
    -- the counters hold each event that ever came, also those that sample_rate took from the log
    measured := format('to_jsonb((select coalesce(sum(c.count), 0) from app.user_event_counters c where c.app_user_id = u.id and c.event_name = %s ->> ''event_name''))', p);
  else
    measured := case l ->> 'measure'
      when 'count' then 'to_jsonb(count(*))'
      when 'sum' then format('to_jsonb(coalesce(sum(internal.segment_number(e.properties, %s ->> ''column'')), 0))', p)
      when 'min' then format('to_jsonb(min(internal.segment_number(e.properties, %s ->> ''column'')))', p)
      when 'max' then format('to_jsonb(max(internal.segment_number(e.properties, %s ->> ''column'')))', p)
      when 'first_at' then 'min(e.occurred_at)'
      else 'max(e.occurred_at)' end;
    source := format('from app.engagement_events e where e.app_user_id = u.id and e.event_name = %s ->> ''event_name''', p)
      || case when l ? 'within_days' then format(
           ' and e.occurred_at > internal.now() - make_interval(secs => ((%s ->> ''within_days'')::numeric * 86400)::double precision)', p) else '' end
      || case when l ? 'since' then format(' and e.occurred_at >= internal.segment_date(%s -> ''since'')', p) else '' end
      || case when l ? 'until' then format(' and e.occurred_at < internal.segment_date(%s -> ''until'')', p) else '' end
      || case when l ? 'where' then format(' and internal.filter_truth(%s -> ''where'', e.properties)', p) else '' end;
    measured := format('(select %s %s)', measured, source);
  end if;
  if l ->> 'measure' in ('first_at', 'last_at') then
    select c.condition, c.actual into condition, actual
      from internal.segment_on_date(l, segment_source__event.place, p, measured) c;
  else
    select c.condition, c.actual into condition, actual
      from internal.segment_on_json(l, segment_source__event.place, p, measured) c;
  end if;
end $$;
comment on function internal.segment_source__event is
  'Leaves on what a user did: how often, sums and extremes of a property, when first and last; within some days or between two times, under a filter.';

create or replace function internal.segment_source__streak(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__streak.leaf, segment_source__streak.place,
    exists (select from app.streak_definitions d where d.key = segment_source__streak.leaf ->> 'key'), 'must be the key of a streak');
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__streak.leaf, segment_source__streak.place, segment_source__streak.parameter, format(
      'to_jsonb(coalesce((select case when (internal.streak_now(d, s)).status in (''none'', ''broken'') then 0 else s.current_count end from app.streak_definitions d join app.user_streaks s on s.streak_definition_id = d.id where d.key = %s ->> ''key'' and s.app_user_id = u.id), 0))',
      segment_source__streak.parameter)) c;
end $$;
comment on function internal.segment_source__streak is 'Leaves on the length of a streak as it is now; 0 for who has none.';
