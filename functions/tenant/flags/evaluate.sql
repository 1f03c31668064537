-- Evaluation of a flag for a user: the off value, the user's override, the first matching rule, or the default.
create or replace function internal.flag_context(app_user_id uuid, attributes jsonb, app_version text, platform text)
returns jsonb
language sql stable security definer set search_path = '' as $$
  -- stored columns take precedence over attributes from the app, which cannot change the user's identity
  select (coalesce(case when jsonb_typeof(flag_context.attributes -> 'custom') = 'object'
                          then flag_context.attributes -> 'custom' end, '{}')
          || coalesce(flag_context.attributes, '{}'))
           - array['email', 'email_verified', 'external_id', 'is_anonymous', 'timezone', 'first_seen_at',
                   'last_seen_at', 'created_at', 'properties']
           || coalesce(u.properties, '{}')
           || coalesce(to_jsonb(c), '{}')
           || jsonb_build_object(
                'properties', coalesce(u.properties, '{}'),
                'app_version', coalesce(
                  case when jsonb_typeof(flag_context.attributes -> 'app_version') = 'string'
                         then flag_context.attributes ->> 'app_version' end,
                  flag_context.app_version,
                  (select s.app_version from app.user_sessions s
                    where s.app_user_id = u.id and s.app_version is not null
                    order by s.last_used_at desc, s.id desc limit 1)),
                'platform', coalesce(
                  case when jsonb_typeof(flag_context.attributes -> 'platform') = 'string'
                         then flag_context.attributes ->> 'platform' end,
                  flag_context.platform,
                  (select s.platform from app.user_sessions s where s.app_user_id = u.id and s.platform is not null
                    order by s.last_used_at desc, s.id desc limit 1)))
    from (select) nothing
    left join app.users u on u.id = flag_context.app_user_id
    left join lateral (
      select u.email, u.email_verified, u.external_id, not internal.has_identity(u.id) as is_anonymous, u.timezone,
             internal.iso(u.first_seen_at) as first_seen_at, internal.iso(u.last_seen_at) as last_seen_at,
             internal.iso(u.created_at) as created_at
       where u.id is not null) c on true
$$;
comment on function internal.flag_context is
  'The values that filters of rules are evaluated on: the user''s columns; the user''s properties, by their own names
   and under properties; the version and platform of the app, from its attributes, its headers, or the last used
   session; and other attributes, where no property has that name. Granted to nobody.';

create or replace function internal.flag_rule_truth(rule jsonb, key text, app_user_id uuid, context jsonb,
                                                    segment_ids uuid[], out in_time boolean, out segment boolean,
                                                    out filter boolean, out min_app_version boolean,
                                                    out platforms boolean, out percentage boolean, out holds boolean)
language plpgsql stable as $$
declare
  r constant jsonb := flag_rule_truth.rule;
begin
  if r ?| array['starts_at', 'ends_at'] then
    in_time := coalesce((r ->> 'starts_at')::timestamptz <= internal.now(), true)
      and coalesce((r ->> 'ends_at')::timestamptz > internal.now(), true);
  end if;
  if r ? 'segment_id' then
    segment := coalesce((r ->> 'segment_id')::uuid = any (flag_rule_truth.segment_ids), false);
  end if;
  if r ? 'filter' then
    filter := coalesce(internal.filter_truth(r -> 'filter', flag_rule_truth.context), false);
  end if;
  if r ? 'min_app_version' then
    min_app_version := coalesce(internal.version_key(flag_rule_truth.context ->> 'app_version') >=
      internal.version_key(r ->> 'min_app_version') collate "C", false);
  end if;
  if r ? 'platforms' then
    platforms := coalesce(lower(flag_rule_truth.context ->> 'platform') in (select lower(p)
                                        from jsonb_array_elements_text(r -> 'platforms') p), false);
  end if;
  if r ? 'percentage' then
    -- 100 % matches every caller; a lower percentage is a share of users, and a caller without a user has no bucket
    percentage := case
      when (r ->> 'percentage')::numeric = 100 then true
      when flag_rule_truth.app_user_id is null then false
      else internal.bucket(flag_rule_truth.key, flag_rule_truth.app_user_id) < (r ->> 'percentage')::numeric * 100 end;
  end if;
  holds := coalesce(in_time, true) and coalesce(segment, true) and coalesce(filter, true)
    and coalesce(min_app_version, true)
           and coalesce(platforms, true) and coalesce(percentage, true);
end $$;
comment on function internal.flag_rule_truth is
  'The truth of each condition of a rule for a caller, null where the rule does not have the condition, and whether all
   are true.';

create or replace function internal.flag_rule_that_holds(f app.flags, app_user_id uuid, context jsonb,
                                                         segment_ids uuid[])
returns int
language plpgsql stable as $$
begin
  for i in 0 .. jsonb_array_length((flag_rule_that_holds.f).rules) - 1 loop
    if (internal.flag_rule_truth((flag_rule_that_holds.f).rules -> i, (flag_rule_that_holds.f).key,
                                 flag_rule_that_holds.app_user_id,
                                 flag_rule_that_holds.context, flag_rule_that_holds.segment_ids)).holds then
      return i;
    end if;
  end loop;
  return null;
end $$;
comment on function internal.flag_rule_that_holds is 'The index of the first rule that matches a caller, or null.';

create or replace function internal.flag_answer(f app.flags, override jsonb, rule_index int) returns json
language sql immutable as $$
  select json_build_object(
    'value', case when not (flag_answer.f).is_enabled then (flag_answer.f).off_value
                  when flag_answer.override is not null then flag_answer.override
                  when flag_answer.rule_index is not null then (flag_answer.f).rules -> flag_answer.rule_index ->
                    'value'
                  else (flag_answer.f).default_value end,
    'variant', null,
    'reason', case when not (flag_answer.f).is_enabled then 'off'
                   when flag_answer.override is not null then 'override'
                   when flag_answer.rule_index is null then 'default'
                   when (flag_answer.f).rules -> flag_answer.rule_index ? 'percentage' then 'rollout'
                   else 'rule' end,
    'rule_index', case when (flag_answer.f).is_enabled and flag_answer.override is null then flag_answer.rule_index end,
    'version', (flag_answer.f).version)
$$;
comment on function internal.flag_answer is 'A flag''s value with its reason.';

create or replace function internal.flags_evaluated(app_user_id uuid, keys text[] default null,
                                                    attributes jsonb default null, app_version text default null,
                                                    platform text default null, segment_ids uuid[] default null)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  flag app.flags;
  override jsonb;
  context jsonb;
  segments uuid[] := flags_evaluated.segment_ids;
  place int;
  answer json;
  parts text[] := '{}';
  notes jsonb[] := '{}';
begin
  if flags_evaluated.app_user_id is distinct from internal.user_id() then
    raise exception 'users evaluate flags for themselves only';
  end if;
  for flag in
    select f.* from app.flags f where flags_evaluated.keys is null or f.key = any (flags_evaluated.keys) order by f.key
  loop
    if flag.next_at <= internal.now() then
      flag := internal.flag_current(flag);
    end if;
    select o.value into override from app.flag_overrides o
     where o.flag_id = flag.id and o.app_user_id = flags_evaluated.app_user_id;
    place := null;
    if flag.is_enabled and override is null and flag.rules <> '[]' then
      -- evaluated once, and only if a rule needs it
      if context is null
        and flag.rules @? '$[*] ? (exists(@.filter) || exists(@.min_app_version) || exists(@.platforms))' then
        context := internal.flag_context(flags_evaluated.app_user_id, flags_evaluated.attributes,
                                         flags_evaluated.app_version, flags_evaluated.platform);
      end if;
      if segments is null and flags_evaluated.app_user_id is not null and flag.rules @? '$[*].segment_id' then
        segments := internal.segment_ids_of(flags_evaluated.app_user_id);
      end if;
      place := internal.flag_rule_that_holds(flag, flags_evaluated.app_user_id, context, segments);
    end if;
    answer := internal.flag_answer(flag, override, place);
    parts := parts || (to_json(flag.key) || ': ' || answer);
    notes := notes || jsonb_build_array(flag.id, (answer -> 'value')::jsonb, place);
  end loop;
  if cardinality(notes) > 0 then
    perform internal.flags_record_evaluations(flags_evaluated.app_user_id, to_jsonb(notes));
  end if;
  return ('{' || array_to_string(parts, ', ') || '}')::json;
end $$;
comment on function internal.flags_evaluated is
  'The values of all flags, or of those with these keys, by key, for the user of the call, if any. Records the
   evaluations for the statistics. Rules never leave the server.';

create or replace function internal.flags_tag() returns text
language sql stable security definer set search_path = '' as $$
  select s.version_hash from app.flag_sets s
$$;
comment on function internal.flags_tag is 'The hash of the project''s flags.';

create or replace function internal.flags_reply(if_none_match text, keys text[], key text, app_version text,
                                                platform text)
returns api.reply
language plpgsql volatile as $$
declare
  me constant uuid := internal.user_id();
  segments uuid[];
  answers json;
  tag text;
  headers json;
begin
  -- segments are evaluated only for a signed-in user
  if me is not null then
    segments := internal.segment_ids_of(me);
  end if;
  answers := internal.flags_evaluated(me, flags_reply.keys, null, flags_reply.app_version, flags_reply.platform,
                                      segments);
  if flags_reply.key is not null and answers -> flags_reply.key is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such flag.');
  end if;
  -- the hash changes with the definitions; the values with time, properties and the headers
  tag := concat_ws(':', internal.flags_tag(), me, array_to_string(segments, ','), md5(answers::text));
  headers := json_build_object(
    'ETag', '"' || tag || '"', 'Cache-Control', 'private, max-age=' || case when me is null then 300 else 60 end,
    'Vary', 'Authorization, X-On-Behalf-Of, X-App-Version, X-Platform');
  if internal.etag_matches(flags_reply.if_none_match, tag) then
    return row(304, 'null', headers)::api.reply;
  end if;
  return internal.reply(200, case when flags_reply.key is null then answers else answers -> flags_reply.key end,
                        headers);
end $$;
comment on function internal.flags_reply is
  'The response to an app: all flags or the one with key, with headers; 304 when the app''s ETag is current.';

create or replace function api.flags_values(if_none_match text default null, app_version text default null,
                                            platform text default null)
returns api.reply
language sql volatile as $$
  select internal.flags_reply(flags_values.if_none_match, null, null, flags_values.app_version, flags_values.platform)
$$;
comment on function api.flags_values is 'Every flag for the caller; 304 when the caller''s ETag is current.';

create or replace function api.flag_value(key text, if_none_match text default null, app_version text default null,
                                          platform text default null)
returns api.reply
language sql volatile as $$
  select internal.flags_reply(flag_value.if_none_match, array[flag_value.key], flag_value.key, flag_value.app_version,
                              flag_value.platform)
$$;
comment on function api.flag_value is
  'One flag for the caller; 304 when the caller''s ETag is current. Refuses 404 NOT_FOUND.';

create or replace function internal.flag_attributes(attributes json) returns jsonb
language plpgsql volatile as $$
begin
  if flag_attributes.attributes is not null and not internal.is_storable_json(flag_attributes.attributes) then
    perform internal.invalid('attributes', 'hold a character or a number that cannot be read, or nest too deeply');
  elsif internal.json_size(flag_attributes.attributes::text) > 16384 then
    perform internal.invalid('attributes', 'must have at most 16 KB');
  end if;
  return flag_attributes.attributes::jsonb;
end $$;
comment on function internal.flag_attributes is
  'Validates the attributes that an app sends about itself for filters. Refuses 400 VALIDATION_ERROR.';

create or replace function api.flags_evaluate(attributes json default null, keys json default null,
                                              app_version text default null, platform text default null)
returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.flags_evaluated(
    internal.user_id(),
      case when flags_evaluate.keys is not null then array(select json_array_elements_text(flags_evaluate.keys)) end,
    internal.flag_attributes(flags_evaluate.attributes), flags_evaluate.app_version, flags_evaluate.platform))
$$;
comment on function api.flags_evaluate is
  'Every flag for the caller, or those with these keys, evaluated with the attributes of the app. Refuses 400
   VALIDATION_ERROR.';

create or replace function internal.flag_explain(flag_id uuid, app_user_id uuid, attributes jsonb) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  flag app.flags;
  override jsonb;
  context jsonb;
  segments uuid[];
  place int;
begin
  perform internal.check_caller('developer', 'rules are read by administrators');
  select f.* into flag from app.flags f where f.id = flag_explain.flag_id;
  select o.value into override from app.flag_overrides o
   where o.flag_id = flag.id and o.app_user_id = flag_explain.app_user_id;
  context := internal.flag_context(flag_explain.app_user_id, flag_explain.attributes, null, null);
  segments := internal.segment_ids_of(flag_explain.app_user_id);
  place := internal.flag_rule_that_holds(flag, flag_explain.app_user_id, context, segments);
  return internal.json_merge(internal.flag_answer(flag, override, place), json_build_object(
    'bucket', internal.bucket(flag.key, flag_explain.app_user_id),
    'override', override,
    'trace', (
      select coalesce(json_agg(json_build_object(
               'rule_index', r.n - 1, 'holds', t.holds, 'value', r.rule -> 'value',
               'conditions', json_strip_nulls(json_build_object(
                 'time', t.in_time, 'segment_id', t.segment, 'filter', t.filter, 'min_app_version', t.min_app_version,
                   'platforms', t.platforms,
                 'percentage', t.percentage))) order by r.n), '[]')
        from jsonb_array_elements(flag.rules) with ordinality r (rule, n)
       cross join lateral internal.flag_rule_truth(r.rule, flag.key, flag_explain.app_user_id, context, segments) t)));
end $$;
comment on function internal.flag_explain is
  'The value of a flag for a user, with the truth of each condition of each rule, for administrators. Not counted.';

create or replace function api.flag_evaluate(id_or_key text, user_id uuid, attributes json default null)
returns api.reply
language plpgsql volatile as $$
declare
  flag constant app.flags := internal.flag_find(flag_evaluate.id_or_key);
begin
  if not exists (select from app.users u where u.id = flag_evaluate.user_id) then
    perform internal.invalid('user_id', 'must be the id of a user');
  end if;
  return internal.reply(200, internal.flag_explain(flag.id, flag_evaluate.user_id,
                                                   internal.flag_attributes(flag_evaluate.attributes)));
end $$;
comment on function api.flag_evaluate is
  'The value that a user gets and its reason: the override, the bucket, and every rule with its conditions. Refuses 404
   NOT_FOUND, 400 VALIDATION_ERROR.';
