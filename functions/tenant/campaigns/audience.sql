-- Audiences: the users whom a campaign is for, compiled by the compiler of segments to a query of all users, or of a
-- range of ids.
create or replace function internal.campaign_filter_check(field text, filter jsonb) returns void
language plpgsql volatile as $$
declare
  problem constant text := internal.filter_problem(campaign_filter_check.filter::json);
begin
  if problem is not null then
    perform internal.invalid(campaign_filter_check.field, problem);
  end if;
end $$;
comment on function internal.campaign_filter_check is 'Refuses 400 VALIDATION_ERROR for an invalid filter.';

create or replace function internal.campaign_filter_rules(filter jsonb) returns jsonb
language sql immutable as $$
  select case
    when campaign_filter_rules.filter ? 'not' then jsonb_build_object('not',
                                                                      internal.campaign_filter_rules(
                                                                        campaign_filter_rules.filter -> 'not'))
    when campaign_filter_rules.filter ? 'and' then jsonb_build_object('and', (
      select coalesce(jsonb_agg(internal.campaign_filter_rules(p) order by n), '[]')
        from jsonb_array_elements(campaign_filter_rules.filter -> 'and') with ordinality as e (p, n)))
    when campaign_filter_rules.filter ? 'or' then jsonb_build_object('or', (
      select coalesce(jsonb_agg(internal.campaign_filter_rules(p) order by n), '[]')
        from jsonb_array_elements(campaign_filter_rules.filter -> 'or') with ordinality as e (p, n)))
    else campaign_filter_rules.filter || jsonb_build_object('source', case
      when campaign_filter_rules.filter ->> 'column' in ('email', 'email_verified', 'external_id', 'is_anonymous',
                                                         'timezone', 'first_seen_at', 'last_seen_at',
                                                     'created_at', 'platform',
                                                     'app_version') then 'user' else 'property' end) end
$$;
comment on function internal.campaign_filter_rules is
  'A well-formed filter as rules of a segment: a leaf is on a column of the user, where it names one of these, else on a
   property by its path.';

create or replace function internal.campaign_audience_check(audience jsonb, exclude_segment_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if campaign_audience_check.audience ? 'segment_id'
     and not internal.segment_lock_shared(internal.as_uuid(campaign_audience_check.audience ->> 'segment_id')) then
    perform internal.invalid('audience.segment_id', 'must be a segment of the project');
  elsif campaign_audience_check.exclude_segment_id is not null
    and not internal.segment_lock_shared(campaign_audience_check.exclude_segment_id) then
    perform internal.invalid('exclude_segment_id', 'must be a segment of the project');
  elsif campaign_audience_check.audience ? 'filter' then
    perform internal.campaign_filter_check('audience.filter', campaign_audience_check.audience -> 'filter');
  end if;
  -- refuses a comparison that a column does not know
  perform internal.campaign_audience_compile(campaign_audience_check.audience,
                                             campaign_audience_check.exclude_segment_id);
end $$;
comment on function internal.campaign_audience_check is
  'Refuses 400 VALIDATION_ERROR: a segment that does not exist, an invalid filter. Locks the segments against deletion.
   Granted to nobody.';

create or replace function internal.campaign_audience_rules(audience jsonb, exclude_segment_id uuid, out condition text,
                                                            out state jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  a constant jsonb := campaign_audience_rules.audience;
  nobody constant uuid[] := array[null::uuid];
  excluded text := '';
begin
  state := '{"values": [], "sets": [], "leaves": [], "events": [], "uses": []}';
  select c.state, c.condition into state, condition
    from internal.segment_compile_node(
           case when a ? 'segment_id' then jsonb_build_object('source', 'segment', 'op', 'in', 'segment_id',
                                                              a ->> 'segment_id')
                when a ? 'filter' then internal.campaign_filter_rules(a -> 'filter')
                else '{"and": []}' end,
           case when a ? 'filter' then 'audience.filter' else 'audience' end, nobody, 1, 0, true, state) c;
  if campaign_audience_rules.exclude_segment_id is not null then
    select c.state, ' and ' || c.condition into state, excluded
      from internal.segment_compile_node(
             jsonb_build_object('source', 'segment', 'op', 'not_in', 'segment_id',
                                campaign_audience_rules.exclude_segment_id),
             'exclude_segment_id', nobody, 1, 0, true, state) c;
  end if;
  condition := 'not u.is_banned and ' || condition || excluded || case when a ? 'user_ids' then ' and u.id = any ($4)'
                                                                       else '' end;
end $$;
comment on function internal.campaign_audience_rules is
  'An audience as a condition on one user u, with the sets and parameters of internal.segment_compile_node in state; $4
   are the listed users. Banned users are in no audience. Granted to nobody.';

create or replace function internal.campaign_audience_compile(audience jsonb, exclude_segment_id uuid, out query text,
                                                              out ranged text, out parameters jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  rules record;
begin
  select r.* into rules from internal.campaign_audience_rules(campaign_audience_compile.audience,
                                                              campaign_audience_compile.exclude_segment_id) r;
  query := internal.segment_query(rules.condition, rules.state -> 'sets', false);
  ranged := internal.segment_query(rules.condition, rules.state -> 'sets', true);
  parameters := rules.state -> 'values';
end $$;
comment on function internal.campaign_audience_compile is
  'An audience as a query of the ids of all its users, and of those with ids over $2 and up to $3; $1 is
   internal.segment_bind of the parameters, $4 the listed users. Granted to nobody.';

create or replace function internal.campaign_audience_sample(audience jsonb, exclude_segment_id uuid, population bigint,
                                                             out ids uuid[], out scale numeric, out margin bigint)
language plpgsql volatile security definer set search_path = '' set jit = off as $$
declare
  -- so many users are read with their devices and preferences in some tenths of a second
  size constant int := 5000;
  rules record;
  sample record;
  are_in boolean[];
begin
  select r.* into rules from internal.campaign_audience_rules(campaign_audience_sample.audience,
                                                              campaign_audience_sample.exclude_segment_id) r;
  select s.ids, s.pages into sample from internal.users_sampled(campaign_audience_sample.population, 1, size) s;
  execute format('select array(select coalesce(%s, false) from app.users u where u.id = any ($2) order by u.id)',
                 internal.segment_condition(rules.condition, rules.state -> 'sets'))
     into are_in using internal.segment_bind(rules.state -> 'values'), sample.ids;
  ids := array(select w.id from unnest(sample.ids, are_in) as w (id, is_in) where w.is_in);
  scale := campaign_audience_sample.population::numeric / greatest(cardinality(sample.ids), 1);
  margin := internal.sample_margin(campaign_audience_sample.population, sample.pages, are_in);
end $$;
comment on function internal.campaign_audience_sample is
  'Those of about 5,000 users, chosen by pages, who are in an audience that lists none; how many users each stands for;
   and the margin of their number. Granted to nobody.';

create or replace function internal.campaign_audience_user_ids(audience jsonb) returns uuid[]
language sql immutable parallel safe as $$
  select array(select distinct i::uuid
                 from jsonb_array_elements_text(campaign_audience_user_ids.audience -> 'user_ids') i)
   where campaign_audience_user_ids.audience ? 'user_ids'
$$;
comment on function internal.campaign_audience_user_ids is
  'The listed users of an audience, null where it is another one.';

create or replace function internal.campaign_audience_is_empty(audience jsonb, exclude_segment_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  compiled record;
  is_empty boolean;
begin
  select c.* into compiled
    from internal.campaign_audience_compile(campaign_audience_is_empty.audience,
                                            campaign_audience_is_empty.exclude_segment_id) c;
  execute 'select not exists (' || compiled.query || ')' into is_empty
    using internal.segment_bind(compiled.parameters), null::uuid, null::uuid,
      internal.campaign_audience_user_ids(campaign_audience_is_empty.audience);
  return is_empty;
end $$;
comment on function internal.campaign_audience_is_empty is 'Whether nobody is in an audience now. Granted to nobody.';

create or replace function internal.segment_used__campaigns(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(
    select c.channel || ' campaign ' || c.id
      from app.campaigns c
     where not c.is_deleted and c.status in ('draft', 'scheduled', 'sending', 'paused')
       and (c.exclude_segment_id = segment_used__campaigns.segment_id
            or c.audience ->> 'segment_id' = segment_used__campaigns.segment_id::text)
     order by c.id)
$$;
comment on function internal.segment_used__campaigns is 'Campaigns that are not over and name a segment.';
