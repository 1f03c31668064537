-- Audiences: the users whom a campaign is for, compiled by the compiler of segments to a query of all users, or of a range of ids.
create or replace function internal.push_filter_rules(filter jsonb) returns jsonb
language sql immutable as $$
  select case
    when push_filter_rules.filter ? 'not' then jsonb_build_object('not', internal.push_filter_rules(push_filter_rules.filter -> 'not'))
    when push_filter_rules.filter ? 'and' then jsonb_build_object('and', (
      select coalesce(jsonb_agg(internal.push_filter_rules(p) order by n), '[]')
        from jsonb_array_elements(push_filter_rules.filter -> 'and') with ordinality as e (p, n)))
    when push_filter_rules.filter ? 'or' then jsonb_build_object('or', (
      select coalesce(jsonb_agg(internal.push_filter_rules(p) order by n), '[]')
        from jsonb_array_elements(push_filter_rules.filter -> 'or') with ordinality as e (p, n)))
    else push_filter_rules.filter || jsonb_build_object('source', case
      when push_filter_rules.filter ->> 'column' in ('email', 'email_verified', 'external_id', 'is_anonymous', 'timezone', 'first_seen_at', 'last_seen_at',
                                                     'created_at', 'platform', 'app_version') then 'user' else 'property' end) end
$$;
comment on function internal.push_filter_rules is
  'A well-formed filter as rules of a segment: a leaf is on a column of the user, where it names one of these, else on a property by its path.';

create or replace function internal.push_audience_check(audience jsonb, exclude_segment_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if push_audience_check.audience ? 'segment_id'
     and not internal.segment_lock_shared(internal.as_uuid(push_audience_check.audience ->> 'segment_id')) then
    perform internal.invalid('audience.segment_id', 'must be a segment of the project');
  elsif push_audience_check.exclude_segment_id is not null and not internal.segment_lock_shared(push_audience_check.exclude_segment_id) then
    perform internal.invalid('exclude_segment_id', 'must be a segment of the project');
  elsif push_audience_check.audience ? 'filter' then
    perform internal.push_filter_check('audience.filter', push_audience_check.audience -> 'filter');
  end if;
  -- refuses a comparison that a column does not know
  perform internal.push_audience_compile(push_audience_check.audience, push_audience_check.exclude_segment_id);
end $$;
comment on function internal.push_audience_check is
  'Refuses 400 VALIDATION_ERROR: a segment that does not exist, an invalid filter. Locks the segments against deletion. Granted to nobody.';

create or replace function internal.push_audience_rules(audience jsonb, exclude_segment_id uuid, out condition text, out state jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  a constant jsonb := push_audience_rules.audience;
  nobody constant uuid[] := array[null::uuid];
  excluded text := '';
begin
  state := '{"values": [], "sets": [], "leaves": [], "events": [], "uses": []}';
  select c.state, c.condition into state, condition
    from internal.segment_compile_node(
           case when a ? 'segment_id' then jsonb_build_object('source', 'segment', 'op', 'in', 'segment_id', a ->> 'segment_id')
                when a ? 'filter' then internal.push_filter_rules(a -> 'filter')
                else '{"and": []}' end,
           case when a ? 'filter' then 'audience.filter' else 'audience' end, nobody, 1, 0, true, state) c;
  if push_audience_rules.exclude_segment_id is not null then
    select c.state, ' and ' || c.condition into state, excluded
      from internal.segment_compile_node(
             jsonb_build_object('source', 'segment', 'op', 'not_in', 'segment_id', push_audience_rules.exclude_segment_id),
             'exclude_segment_id', nobody, 1, 0, true, state) c;
  end if;
  condition := 'not u.is_banned and ' || condition || excluded || case when a ? 'user_ids' then ' and u.id = any ($4)' else '' end;
end $$;
comment on function internal.push_audience_rules is
  'An audience as a condition on one user u, with the sets and parameters of internal.segment_compile_node in state; $4 are the listed users. Banned users are in no
   audience. Granted to nobody.';

create or replace function internal.push_audience_compile(audience jsonb, exclude_segment_id uuid, out query text, out ranged text, out parameters jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  rules record;
begin
  select r.* into rules from internal.push_audience_rules(push_audience_compile.audience, push_audience_compile.exclude_segment_id) r;
  query := internal.segment_query(rules.condition, rules.state -> 'sets', false);
  ranged := internal.segment_query(rules.condition, rules.state -> 'sets', true);
  parameters := rules.state -> 'values';
end $$;
comment on function internal.push_audience_compile is
  'An audience as a query of the ids of all its users, and of those with ids over $2 and up to $3; $1 is internal.segment_bind of the parameters, $4 the
   listed users. Granted to nobody.';

create or replace function internal.push_audience_sample(audience jsonb, exclude_segment_id uuid, population bigint, out ids uuid[], out scale numeric, out margin bigint)
language plpgsql volatile security definer set search_path = '' set jit = off as $$
declare
  -- so many users are read with their devices and preferences in some tenths of a second
  size constant int := 5000;
  rules record;
  sample record;
  are_in boolean[];
begin
  select r.* into rules from internal.push_audience_rules(push_audience_sample.audience, push_audience_sample.exclude_segment_id) r;
  select s.ids, s.pages into sample from internal.users_sampled(push_audience_sample.population, 1, size) s;
  execute format('select array(select coalesce(%s, false) from app.users u where u.id = any ($2) order by u.id)',
                 internal.segment_condition(rules.condition, rules.state -> 'sets'))
     into are_in using internal.segment_bind(rules.state -> 'values'), sample.ids;
  ids := array(select w.id from unnest(sample.ids, are_in) as w (id, is_in) where w.is_in);
  scale := push_audience_sample.population::numeric / greatest(cardinality(sample.ids), 1);
  margin := internal.sample_margin(push_audience_sample.population, sample.pages, are_in);
end $$;
comment on function internal.push_audience_sample is
  'Those of about 5,000 users, chosen by pages, who are in an audience that lists none; how many users each stands for; and the margin of their number. Granted to nobody.';

create or replace function internal.push_audience_user_ids(audience jsonb) returns uuid[]
language sql immutable parallel safe as $$
  select array(select distinct i::uuid from jsonb_array_elements_text(push_audience_user_ids.audience -> 'user_ids') i)
   where push_audience_user_ids.audience ? 'user_ids'
$$;
comment on function internal.push_audience_user_ids is 'The listed users of an audience, null where it is another one.';

create or replace function internal.push_audience_is_empty(audience jsonb, exclude_segment_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  compiled record;
  is_empty boolean;
begin
  select c.* into compiled
    from internal.push_audience_compile(push_audience_is_empty.audience, push_audience_is_empty.exclude_segment_id) c;
  execute 'select not exists (' || compiled.query || ')' into is_empty
    using internal.segment_bind(compiled.parameters), null::uuid, null::uuid, internal.push_audience_user_ids(push_audience_is_empty.audience);
  return is_empty;
end $$;
comment on function internal.push_audience_is_empty is 'Whether nobody is in an audience now. Granted to nobody.';

create or replace function internal.push_preview(c app.push_campaigns, user_id uuid, affordable bigint default 20000) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign constant app.push_campaigns := push_preview.c;
  compiled record;
  plan jsonb;
  is_estimate boolean := false;
  sample record;
  counted json;
  shown app.users;
begin
  select a.* into compiled from internal.push_audience_compile(campaign.audience, campaign.exclude_segment_id) a;
  if not campaign.audience ? 'user_ids' then
    plan := internal.plan_of(compiled.query, internal.segment_bind(compiled.parameters));
    is_estimate := (plan ->> 'rows')::numeric > push_preview.affordable or (plan ->> 'cost')::numeric > push_preview.affordable;
  end if;
  if is_estimate then
    select s.* into sample from internal.push_audience_sample(campaign.audience, campaign.exclude_segment_id, internal.users_estimate()) s;
    compiled.query := 'select i.id from unnest($9) i (id)';
  else
    select null::uuid[] as ids, 1::numeric as scale, 0::bigint as margin into sample;
  end if;
  execute format($query$
    with audience as materialized (%s
    ), known as (
      select i.id, coalesce(u.properties ->> 'locale', 'default') as locale, d.ios, d.android,
             case when not coalesce(p.enabled, true) or p.categories -> $6 = 'false' then 'opted_out'
                  when internal.push_is_quiet(coalesce($7, p.quiet_hours), l.at) or internal.push_is_quiet(p.quiet_hours, l.at) then 'quiet'
                  when $8 is not null and (select count(*) from app.push_deliveries o
                                            where o.app_user_id = i.id and o.channel = 'push' and o.sent_at > $5 - make_interval(hours => ($8 ->> 'hours')::int)) >= ($8 ->> 'max')::int
                  then 'capped'
                  when d.ios + d.android = 0 then 'no_token' end as reason
        from audience i
        join app.users u on u.id = i.id
        left join app.timezones z on z.name = u.timezone
        left join app.push_preferences p on p.app_user_id = i.id
       cross join lateral (select ($5 at time zone coalesce(z.name, 'UTC'))::time as at) l
       cross join lateral (select count(*) filter (where t.platform = 'ios') as ios, count(*) filter (where t.platform = 'android') as android
                             from app.push_tokens t where t.app_user_id = i.id and t.is_active) d
    )
    select json_build_object(
      'audience_count', round($10 * count(*)), 'is_estimate', $9 is not null, 'margin', $11, 'devices', round($10 * coalesce(sum(k.ios + k.android), 0)),
      'by_platform', json_build_object('ios', round($10 * coalesce(sum(k.ios), 0)), 'android', round($10 * coalesce(sum(k.android), 0))),
      'by_locale', (select coalesce(json_object_agg(l.locale, round($10 * l.n)), '{}')
                      from (select left(g.locale, 35) as locale, count(*) as n from known g group by 1 order by 2 desc, 1 limit 50) l),
      'skipped', json_build_object('no_token', round($10 * count(*) filter (where k.reason = 'no_token')),
                                   'opted_out', round($10 * count(*) filter (where k.reason = 'opted_out')),
                                   'quiet', round($10 * count(*) filter (where k.reason = 'quiet')),
                                   'capped', round($10 * count(*) filter (where k.reason = 'capped'))))
      from known k
  $query$, compiled.query)
     into counted
    using internal.segment_bind(compiled.parameters), null::uuid, null::uuid, internal.push_audience_user_ids(campaign.audience), internal.now(),
          campaign.message ->> 'category', campaign.quiet_hours, campaign.frequency_cap, sample.ids, sample.scale, sample.margin;
  if push_preview.user_id is not null then
    select u.* into shown from app.users u where u.id = push_preview.user_id;
    perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
  end if;
  return internal.json_merge(counted, json_build_object('rendered',
    internal.push_rendered(campaign.message, coalesce(shown.properties, '{}'), shown.display_name, null)));
end $$;
comment on function internal.push_preview is
  'Whom a campaign would reach now: {audience_count, is_estimate, margin, devices, by_platform, by_locale (50), skipped, rendered}. Exact while the planner expects
   at most affordable users, at no higher cost; otherwise an estimate from about 5,000 users, whose audience_count is within margin in 95 of 100 samples. rendered is the
   message for a user, or for one without properties. Refuses 404 USER_NOT_FOUND. Granted to nobody.';
