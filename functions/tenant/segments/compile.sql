-- The compiler of segment rules, by leaf. A leaf is an operand and a comparison with it. An area adds a source with one
-- function,
--
--   internal.segment_source__<source>(leaf jsonb, place text, parameter text) returns internal.segment_operand
--
-- which refuses what it does not know. An operand is an expression on u, a row of app.users, or a set: a query of
-- app_user_id and value with one row for each user that has a value, and what stands for users without a row.
-- compile_tree.sql makes two forms of one tree: a condition on one user, which looks the user up in each set, and a
-- query of all users, which computes each set once and joins it. No text of the input becomes part of the SQL:
-- parameter gives the leaf when the statement runs, as internal.segment_bind made it.

create or replace function internal.segment_operand(kind text, expression text default null, members text default null,
                                                    missing text default null, condition text default null,
                                                    positive text default null)
returns internal.segment_operand
language sql immutable as $$
  select (segment_operand.kind, segment_operand.expression, segment_operand.members, segment_operand.missing,
          segment_operand.condition,
          segment_operand.positive)::internal.segment_operand
$$;
comment on function internal.segment_operand is
  'What a leaf compares. kind is text, numeric, boolean, jsonb or timestamptz. Either expression, SQL on u, or members,
   a query of app_user_id and value, with missing, SQL for a user without a row. condition, where the source compares by
   itself, holds {value} for the value; positive is a condition that may be false instead of unknown, for places under
   no not.';

create or replace function internal.segment_value(value jsonb) returns jsonb
language sql stable as $$
  select case when jsonb_typeof(segment_value.value -> 'days_ago') = 'number'
              then to_jsonb(internal.iso(internal.now()
                                         - make_interval(secs => ((segment_value.value
                                                                   ->> 'days_ago')::numeric * 86400)::double
                                                                     precision)))
              else segment_value.value end
$$;
comment on function internal.segment_value is
  'A value to compare with: {"days_ago": n} is that time, as text. Everything else is itself.';

create or replace function internal.segment_bind(leaves jsonb) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(
           l.leaf || jsonb_build_object('now', t.at)
           || case when l.leaf -> 'value' ? 'days_ago' then jsonb_build_object('value',
                                        internal.segment_value(l.leaf -> 'value')) else '{}' end
           || case when l.leaf ? 'since' then jsonb_build_object('since', internal.segment_value(l.leaf -> 'since'))
                   else '{}' end
           || case when l.leaf ? 'until' then jsonb_build_object('until', internal.segment_value(l.leaf -> 'until'))
                   else '{}' end
           || case when l.leaf ? 'within_days'
                   then jsonb_build_object('after',
                                           t.at - make_interval(secs => (
                                             (l.leaf ->> 'within_days')::numeric * 86400)::double precision))
                   else '{}' end
           order by l.n), '[]')
    from jsonb_array_elements(segment_bind.leaves) with ordinality as l (leaf, n)
   cross join (select internal.now() as at) t
$$;
comment on function internal.segment_bind is
  'The parameter of a compiled segment at this moment: its leaves, with times in the place of days, and now. So
   conditions are immutable, and the planner knows what they compare with.';

create or replace function internal.segment_time(value text) returns timestamptz
language plpgsql immutable strict parallel safe as $$
begin
  return (segment_time.value || case when segment_time.value ~ ':' then '' else 'T00:00Z' end)::timestamptz;
end $$;
comment on function internal.segment_time is
  'A time to compare with: a date, or a time with its zone. For values that segment_date_check has let through.';

create or replace function internal.segment_date(value jsonb) returns timestamptz
language sql stable as $$
  select internal.segment_time(internal.segment_value(segment_date.value) #>> '{}')
$$;
comment on function internal.segment_date is
  'A time, or {"days_ago": n}, as a time. For values that segment_date_check has let through.';

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
  if not coalesce(segment_date_check.leaf ->> 'op' in ('eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'is_null', 'is_not_null'),
                  false) then
    perform internal.invalid(segment_date_check.place || '.op',
                             'must be eq, ne, gt, gte, lt, lte, is_null or is_not_null');
  elsif segment_date_check.leaf ->> 'op' in ('is_null', 'is_not_null') then
    return;
  end if;
  perform internal.segment_value_check(value, segment_date_check.place);
  if coalesce(jsonb_typeof(value), '') = 'object' and value ? 'days_ago' then
    return;
  elsif coalesce(jsonb_typeof(value), '') <> 'string' or not internal.segment_is_time(value #>> '{}') then
    perform internal.invalid(segment_date_check.place || '.value',
                             'must be a time such as 2026-10-03T09:00:00Z, or {"days_ago": 7}');
  end if;
end $$;
comment on function internal.segment_date_check is 'Refuses a leaf on times whose op or value does not suit them.';

create or replace function internal.segment_is_time(value text) returns boolean
language plpgsql immutable as $$
begin
  if segment_is_time.value !~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?$' then
    return false;
  end if;
  return (segment_is_time.value || case when segment_is_time.value ~ ':' then ''
                                        else 'T00:00Z' end)::timestamptz is not null;
exception when data_exception then
  return false;
end $$;
comment on function internal.segment_is_time is 'Whether a text is a date, or a time with its zone.';

create or replace function internal.segment_json_check(leaf jsonb, place text) returns void
language plpgsql volatile as $$
declare
  problem record;
begin
  perform internal.segment_value_check(segment_json_check.leaf -> 'value', segment_json_check.place);
  select p.path, p.reason into problem
    from internal.filter_leaf_problem(jsonb_strip_nulls(jsonb_build_object('column', 'x', 'op',
                                        segment_json_check.leaf -> 'op'))
      || case when segment_json_check.leaf ? 'value' then jsonb_build_object('value',
                                        internal.segment_value(segment_json_check.leaf -> 'value')) else '{}' end) p;
  -- a change of one segment recompiles all of them, so a leaf that was accepted under a former limit must not be
  -- refused now
  if problem.reason is not null
     and not exists (select from app.segment_states t
                      where t.parameters @> jsonb_build_array(segment_json_check.leaf)) then
    perform internal.invalid(segment_json_check.place || '.' || problem.path, problem.reason);
  end if;
end $$;
comment on function internal.segment_json_check is 'Refuses a leaf whose op or value is none of a filter.';

create or replace function internal.segment_compare(leaf jsonb, place text, parameter text, kind text, expression text)
returns text
language plpgsql volatile as $$
declare
  comparison text;
begin
  if segment_compare.kind <> 'timestamptz' then
    perform internal.segment_json_check(segment_compare.leaf, segment_compare.place);
    return internal.filter_compare_sql(segment_compare.expression, segment_compare.kind, segment_compare.leaf ->> 'op',
                                       internal.segment_value(segment_compare.leaf -> 'value'),
                                       format('(%s -> ''value'')', segment_compare.parameter));
  end if;
  perform internal.segment_date_check(segment_compare.leaf, segment_compare.place);
  comparison := case segment_compare.leaf ->> 'op'
    when 'eq' then '=' when 'ne' then '<>' when 'gt' then '>' when 'gte' then '>=' when 'lt' then '<'
      when 'lte' then '<=' end;
  return case segment_compare.leaf ->> 'op'
    when 'is_null' then format('(%s is null)', segment_compare.expression)
    when 'is_not_null' then format('(%s is not null)', segment_compare.expression)
    else format('(%s %s internal.segment_time(%s ->> ''value''))', segment_compare.expression, comparison,
                segment_compare.parameter) end;
end $$;
comment on function internal.segment_compare is
  'The comparison of a leaf with an expression of the type kind, as SQL: times as times, everything else as filters do.
   Refuses 400 VALIDATION_ERROR.';

create or replace function internal.version_key(version text) returns text
language sql immutable as $$
  select string_agg(lpad(left(p.part[1], 12), 12, '0'), '.' order by p.n)
    from regexp_matches(regexp_replace(regexp_replace(version_key.version, '[-+].*$', ''), '(\.0+)+$', ''), '(\d+)',
                        'g') with ordinality as p (part, n)
$$;
comment on function internal.version_key is
  'A version as text that sorts as versions do: 1.10 after 1.9, 1.0 the same as 1. Null when there is no number in it.';

create or replace function internal.segment_key_check(leaf jsonb, place text, is_there boolean, reason text)
returns void
language plpgsql volatile as $$
begin
  -- a leaf stays valid after what it names is deleted: otherwise no other segment could be changed any more
  if not coalesce(segment_key_check.is_there, false)
     and not exists (select from app.segment_states t
                      where t.parameters @> jsonb_build_array(segment_key_check.leaf)) then
    perform internal.invalid(segment_key_check.place || '.key', segment_key_check.reason);
  end if;
end $$;
comment on function internal.segment_key_check is 'Refuses a new leaf whose key names nothing: 400 VALIDATION_ERROR.';

create or replace function internal.segment_source__user(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
declare
  col constant text := segment_source__user.leaf ->> 'column';
  op constant text := segment_source__user.leaf ->> 'op';
  of_session constant text := 'select distinct on (s.app_user_id) s.app_user_id, s.%1$s as value from '
                              'app.user_sessions s where s.%1$s is not null order by s.app_user_id, s.last_used_at '
                              'desc, s.id desc';
begin
  case
    when col in ('first_seen_at', 'last_seen_at', 'created_at') then
      return internal.segment_operand('timestamptz', 'u.' || col);
    when col in ('email', 'external_id', 'timezone') then
      return internal.segment_operand('text', 'u.' || col);
    when col = 'email_verified' then
      return internal.segment_operand('boolean', 'u.email_verified');
    when col = 'is_anonymous' then
      -- the same condition as internal.has_identity
      return internal.segment_operand('boolean',
                                      '(u.email is null and u.phone is null and not exists (select from '
                                      'app.user_passwords w where w.app_user_id = u.id)'
                                                 || ' and not exists (select from app.user_identities i where '
                                                    'i.app_user_id = u.id))');
    when col = 'platform' or col = 'app_version'
      and coalesce(op not in ('eq', 'ne', 'gt', 'gte', 'lt', 'lte'), true) then
      return internal.segment_operand('text', members => format(of_session, col));
    when col = 'app_version' then
      perform internal.segment_json_check(segment_source__user.leaf, segment_source__user.place);
      if jsonb_typeof(segment_source__user.leaf -> 'value') <> 'string' then
        perform internal.invalid(segment_source__user.place || '.value', 'must be a version, a string');
      end if;
      return internal.segment_operand('text', members => format(of_session, col), condition =>
        format('(internal.version_key({value}) collate "C" %s internal.version_key(%s ->> ''value''))',
               case op when 'eq' then '=' when 'ne' then '<>' when 'gt' then '>' when 'gte' then '>=' when 'lt' then '<'
                    else '<=' end,
               segment_source__user.parameter));
    else
      perform internal.invalid(segment_source__user.place || '.column',
                               'must be email, email_verified, external_id, is_anonymous, timezone, '
                               || 'first_seen_at, last_seen_at, created_at, platform or app_version');
  end case;
end $$;
comment on function internal.segment_source__user is
  'Leaves on a user''s own columns; platform and app_version are those of the session that was used last.';

create or replace function internal.segment_source__property(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
declare
  l constant jsonb := segment_source__property.leaf;
begin
  if coalesce(jsonb_typeof(l -> 'column'), '') <> 'string' or char_length(l ->> 'column') not between 1 and 255 then
    perform internal.invalid(segment_source__property.place || '.column',
                             'must be the path of a property, of 1 to 255 characters');
  end if;
  return internal.segment_operand(
    'jsonb', internal.filter_property_sql('u.properties', l ->> 'column', segment_source__property.parameter),
    positive => internal.filter_contains_sql('u.properties',
                                             l || jsonb_build_object('value', internal.segment_value(l -> 'value')),
                                             segment_source__property.parameter));
end $$;
comment on function internal.segment_source__property is 'Leaves on a user''s properties, by path.';

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
    -- a segment of the users who never entered it would change at each refresh
    perform internal.invalid(segment_event_check.place || '.event_name',
                             'must not be of segments themselves: name the segment');
  elsif not coalesce(measure in ('count', 'sum', 'min', 'max', 'first_at', 'last_at'), false) then
    perform internal.invalid(segment_event_check.place || '.measure',
                             'must be count, sum, min, max, first_at or last_at');
  elsif (measure in ('sum', 'min', 'max')) <> coalesce(jsonb_typeof(segment_event_check.leaf -> 'column') = 'string',
                                                       false) then
    perform internal.invalid(segment_event_check.place || '.column', case when measure in ('sum', 'min', 'max')
                             then 'is required: the path of a property' else 'must be left out with this measure' end);
  elsif segment_event_check.leaf ? 'within_days'
    and (jsonb_typeof(segment_event_check.leaf -> 'within_days') <> 'number'
        or not (segment_event_check.leaf -> 'within_days')::numeric between 0.001 and 36500) then
    perform internal.invalid(segment_event_check.place || '.within_days', 'must be a number of days, up to 36500');
  elsif segment_event_check.leaf ? 'within_days' and segment_event_check.leaf ?| array['since', 'until'] then
    perform internal.invalid(segment_event_check.place || '.within_days', 'must not stand beside since or until');
  end if;
  foreach field in array array['since', 'until'] loop
    if segment_event_check.leaf ? field and not coalesce(case jsonb_typeof(segment_event_check.leaf -> field)
         when 'string' then internal.segment_is_time(segment_event_check.leaf ->> field)
         when 'object' then jsonb_typeof(segment_event_check.leaf #> array[field, 'days_ago']) = 'number'
                            and (segment_event_check.leaf #> array[field, 'days_ago'])::numeric between 0 and 36500 end,
                              false) then
      perform internal.invalid(segment_event_check.place || '.' || field,
                               'must be a time such as 2026-10-03T09:00:00Z, or {"days_ago": 7}');
    end if;
  end loop;
  problem := case when segment_event_check.leaf ? 'where'
                    then internal.filter_problem((segment_event_check.leaf -> 'where')::json) end;
  if problem is not null then
    perform internal.invalid(segment_event_check.place || '.where', problem);
  end if;
end $$;
comment on function internal.segment_event_check is
  'Refuses a leaf on events that is not as it must be: 400 VALIDATION_ERROR.';

create or replace function internal.segment_source__event(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
declare
  l constant jsonb := segment_source__event.leaf;
  p constant text := segment_source__event.parameter;
  measure constant text := l ->> 'measure';
  property text;
  source text;
begin
  perform internal.segment_event_check(l, segment_source__event.place);
  if measure = 'count' and not l ?| array['within_days', 'since', 'until', 'where'] then
    -- the counters include the events that sampling (sample_rate) left out of the log
    return internal.segment_operand('numeric', missing => '0', members => format(
      'select c.app_user_id, sum(c.count) as value from app.user_event_counters c where c.event_name = (%s ->> '
      '''event_name'') group by c.app_user_id', p));
  end if;
  source := format(' as value from app.engagement_events e where e.event_name = (%s ->> ''event_name'')', p)
    || case when l ? 'within_days' then format(' and e.occurred_at > internal.segment_time(%s ->> ''after'')', p)
            else '' end
    || case when l ? 'since' then format(' and e.occurred_at >= internal.segment_time(%s ->> ''since'')', p) else '' end
    || case when l ? 'until' then format(' and e.occurred_at < internal.segment_time(%s ->> ''until'')', p) else '' end
    || case when l ? 'where' then ' and ' || internal.filter_sql(l -> 'where', 'e.properties',
                                                                 format('(%s -> ''where'')', p)) else '' end
    || ' group by e.app_user_id';
  if measure in ('sum', 'min', 'max') then
    property := internal.filter_property_sql('e.properties', l ->> 'column', p);
    property := format('%1$s(case when jsonb_typeof(%2$s) = ''number'' then (%2$s)::numeric end)', measure, property);
  end if;
  return case measure
    when 'count' then internal.segment_operand('numeric', missing => '0',
                                               members => 'select e.app_user_id, count(*)' || source)
    when 'sum' then internal.segment_operand('numeric', missing => '0',
                                             members => 'select e.app_user_id, coalesce(' || property || ', 0)'
                                               || source)
    when 'first_at' then internal.segment_operand('timestamptz',
                                                  members => 'select e.app_user_id, min(e.occurred_at)' || source)
    when 'last_at' then internal.segment_operand('timestamptz',
                                                 members => 'select e.app_user_id, max(e.occurred_at)' || source)
    else internal.segment_operand('numeric', members => 'select e.app_user_id, ' || property || source) end;
end $$;
comment on function internal.segment_source__event is
  'Leaves on what a user did: how often, sums and extremes of a property, when first and last; within some days or
   between two times, under a filter.';

create or replace function internal.segment_source__streak(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__streak.leaf, segment_source__streak.place,
    exists (select from app.streak_definitions d where d.key = segment_source__streak.leaf ->> 'key'),
    'must be the key of a streak');
  return internal.segment_operand('numeric', missing => '0', members => format(
    'select s.app_user_id, case when s.current_count = 0 or (internal.streak_now(d, s)).status in (''none'', '
    '''broken'') then 0 else s.current_count end as value from app.streak_definitions d join app.user_streaks s on '
    's.streak_definition_id = d.id where d.key = (%s ->> ''key'')',
    segment_source__streak.parameter));
end $$;
comment on function internal.segment_source__streak is
  'Leaves on the length of a streak as it is now; 0 for who has none.';
