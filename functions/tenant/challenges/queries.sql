-- Users' routes: challenges, joining and leaving, the leaderboard; administrators' list of participants.

create or replace function internal.participant_json(p app.challenge_participants, c app.challenges, rank bigint)
returns json
language sql stable as $$
  select internal.json_merge(json_build_object(
    'challenge_id', (participant_json.p).challenge_id, 'app_user_id', (participant_json.p).app_user_id,
    'joined_at', internal.iso((participant_json.p).joined_at), 'progress', (participant_json.p).progress,
    'goal_value', (participant_json.c).goal_value,
    'status', internal.participant_status(participant_json.p, participant_json.c),
    'completed_at', internal.iso((participant_json.p).completed_at),
    'rank', participant_json.rank), case when (participant_json.c).team_mode = 'group'
                                         then json_build_object('group_id', (participant_json.p).group_id)
                                           else '{}' end)
$$;
comment on function internal.participant_json is
  'A participant as every answer shows it; group_id, the team, in challenges of teams only.';

create or replace function internal.participant_status(p app.challenge_participants, c app.challenges) returns text
language sql stable as $$
  select case when (participant_status.p).status = 'in_progress'
              and internal.challenge_status(participant_status.c) = 'ended' then 'expired'
              else (participant_status.p).status end
$$;
comment on function internal.participant_status is 'in_progress, completed, left, or by the clock expired.';

create or replace function internal.is_taking_part(p app.challenge_participants) returns boolean
language sql immutable as $$
  select (is_taking_part.p).status <> 'left'
$$;
comment on function internal.is_taking_part is 'Whether a participant has not left the challenge.';

select internal.count_declare('challenge_participants', 'app.challenge_participants', key => 'challenge_id');
select internal.count_declare('challenge_participants_active', 'app.challenge_participants', key => 'challenge_id',
                              condition => 'is_taking_part',
                              condition_reads => '{status}');

create or replace function internal.challenge_for_me(c app.challenges) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  p app.challenge_participants;
  team json;
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'challenges are shown to their users so, not to %', internal.caller();
  end if;
  select m.* into p
    from app.challenge_participants m
   where (m.app_user_id, m.challenge_id) = (internal.user_id(), (challenge_for_me.c).id);
  team := internal.challenge_team_json(challenge_for_me.c, p.group_id);
  return internal.json_merge(internal.challenge_json(challenge_for_me.c), json_build_object(
    'my', case when p.app_user_id is not null then internal.json_merge(json_build_object(
      'status', internal.participant_status(p, challenge_for_me.c), 'progress', p.progress,
      -- of what is measured against the goal
      'ratio', least(1, round(case (challenge_for_me.c).team_mode when 'none' then p.progress
                                   else coalesce((team ->> 'progress')::bigint, 0) end::numeric
                              / (challenge_for_me.c).goal_value, 4)),
      'completed_at', internal.iso(p.completed_at)),
      case when (challenge_for_me.c).team_mode = 'group' then json_build_object('team', team) else '{}' end) end,
    'participants_count', coalesce(
      internal.counted('challenge_participants_active', (challenge_for_me.c).id),
      (select count(*) from app.challenge_participants o
        where o.challenge_id = (challenge_for_me.c).id and internal.is_taking_part(o)))));
end $$;
comment on function internal.challenge_for_me is 'A challenge with the caller''s progress and team.';

create or replace function internal.challenges_for_me(status text) returns setof app.challenges
language plpgsql stable security definer set search_path = '' rows 20 as $$
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'challenges are shown to their users so, not to %', internal.caller();
  end if;
  return query
  select c.* from app.challenges c
   where (challenges_for_me.status is null or internal.challenge_status(c) = challenges_for_me.status)
     and internal.is_in_segment(c.segment_id, internal.user_id());
end $$;
comment on function internal.challenges_for_me is
  'Challenges that the caller may see: those of no segment, or of one that the caller is in.';

create or replace function api.challenges_list(status text default 'active', page_offset int default 0,
                                               page_limit int default 50)
returns api.reply
language sql stable as $$
  with mine as materialized (
    select c as challenge, c.start_at, c.id from internal.challenges_for_me(challenges_list.status) c
  )
  select internal.reply_page(
    (select json_agg(internal.challenge_for_me(p.challenge) order by p.start_at desc, p.id desc)
       from (select m.* from mine m order by m.start_at desc, m.id desc limit challenges_list.page_limit
             offset challenges_list.page_offset) p),
    (select count(*) from mine), challenges_list.page_offset, challenges_list.page_limit)
$$;
comment on function api.challenges_list is 'Challenges of a status that the caller may see, latest start first.';

create or replace function internal.my_challenge(challenge_id uuid) returns app.challenges
language plpgsql stable as $$
declare
  found_one app.challenges;
begin
  select c.* into found_one from internal.challenges_for_me(null) c where c.id = my_challenge.challenge_id;
  perform internal.check_found(found_one.id is not null, 'challenge');
  return found_one;
end $$;
comment on function internal.my_challenge is 'A challenge that the caller may see. Refuses 404 NOT_FOUND.';

create or replace function api.challenge_get(challenge_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.challenge_for_me(internal.my_challenge(challenge_get.challenge_id)))
$$;
comment on function api.challenge_get is 'A challenge with the caller''s progress. Refuses 404 NOT_FOUND.';

create or replace function internal.challenge_rank(p app.challenge_participants) returns bigint
language sql stable security definer set search_path = '' as $$
  select count(*) + 1
    from app.challenge_participants o
   where o.challenge_id = (challenge_rank.p).challenge_id and o.status <> 'left'
     and (o.progress > (challenge_rank.p).progress
          or o.progress = (challenge_rank.p).progress
             and (o.reached_at, o.app_user_id) < ((challenge_rank.p).reached_at, (challenge_rank.p).app_user_id))
$$;
comment on function internal.challenge_rank is
  'The place of a participant: by progress, then who was first. Granted to nobody.';

create or replace function api.challenge_join(challenge_id uuid, group_id uuid default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.challenges := internal.challenge_find(challenge_join.challenge_id);
  me constant uuid := internal.user_id();
  p app.challenge_participants;
  is_new boolean;
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'a challenge is joined by its user, not by %', internal.caller();
  elsif not internal.is_in_segment(c.segment_id, me) then
    perform internal.fail(403, 'NOT_ELIGIBLE',
                          'This challenge is for the members of its segment, and the user is none of them.');
  end if;
  perform internal.lock_users(array[me]);
  if challenge_join.group_id is not null and c.team_mode = 'none' then
    perform internal.invalid('group_id', 'goes with challenges of teams only');
  -- a group of others, and one that is not there, get the same answer
  elsif challenge_join.group_id is not null
        and not exists (select from app.group_members m
                         where (m.group_id, m.app_user_id) = (challenge_join.group_id, me)) then
    perform internal.invalid('group_id', 'must be the id of a group that you are in');
  end if;
  select m.* into p from app.challenge_participants m where (m.app_user_id, m.challenge_id) = (me, c.id);
  is_new := p.app_user_id is null or p.status = 'left';
  if is_new and internal.challenge_status(c) = 'ended' then
    perform internal.fail(409, 'CHALLENGE_NOT_ACTIVE', 'This challenge has ended.');
  end if;
  if is_new then
    perform from app.challenges x where x.id = c.id for key share;
    if not found then
      -- deleted meanwhile: refused as any that is not there
      perform internal.challenge_find(challenge_join.challenge_id);
    end if;
    insert into app.challenge_participants as m (app_user_id, challenge_id, group_id)
    values (me, c.id, internal.challenge_team(c, me, challenge_join.group_id))
    on conflict on constraint challenge_participants_pkey do update
       set status = 'in_progress', completed_at = null,
           group_id = internal.challenge_team(c, me, coalesce(challenge_join.group_id, m.group_id));
    if p.app_user_id is null then
      perform internal.emit(me, 'svc.challenge.joined', jsonb_build_object(
        'challenge_id', c.id, 'name', c.name, 'goal_type', c.goal_type, 'goal_value', c.goal_value));
    end if;
  elsif challenge_join.group_id is not null and p.group_id is distinct
    from challenge_join.group_id and p.status = 'in_progress'
        and internal.challenge_status(c) <> 'ended' then
    -- whom an event joined counts for their oldest group until they choose another
    update app.challenge_participants m set group_id = challenge_join.group_id
      where (m.app_user_id, m.challenge_id) = (me, c.id);
  else
    return internal.reply(200, internal.participant_json(p, c, internal.challenge_rank(p)));
  end if;
  -- what was done before joining counts
  if internal.challenge_status(c) = 'active' then
    perform internal.challenges_measure(array[me], array[c.id]);
  end if;
  select m.* into p from app.challenge_participants m where (m.app_user_id, m.challenge_id) = (me, c.id);
  return internal.reply(case when is_new then 201 else 200 end,
                        internal.participant_json(p, c, internal.challenge_rank(p)));
end $$;
comment on function api.challenge_join is
  'Joins the caller, also before the challenge starts: 201, or 200 when the caller is in already; in a challenge of
   teams for a group of theirs, which may be another one later. Refuses 404 NOT_FOUND, 403 NOT_ELIGIBLE, 409
   CHALLENGE_NOT_ACTIVE, 400 VALIDATION_ERROR (group_id). Locks the user.';

create or replace function api.challenge_leave(challenge_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.challenges := internal.challenge_find(challenge_leave.challenge_id);
  p app.challenge_participants;
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'a challenge is left by its user, not by %', internal.caller();
  end if;
  perform internal.lock_users(array[internal.user_id()]);
  update app.challenge_participants m
     set status = 'left'
   where (m.app_user_id, m.challenge_id) = (internal.user_id(), c.id) and m.status = 'in_progress';
  select m.* into p from app.challenge_participants m
   where (m.app_user_id, m.challenge_id) = (internal.user_id(), c.id);
  if p.app_user_id is null then
    perform internal.fail(404, 'NOT_FOUND', 'You are not in this challenge.');
  end if;
  return internal.reply(200, internal.participant_json(p, c, null));
end $$;
comment on function api.challenge_leave is
  'Takes the caller out: counting stops. What is completed stays completed. Refuses 404 NOT_FOUND for a challenge that
   the caller is not in. Locks the user.';

create or replace function internal.challenge_leaderboard_page(challenge_id uuid, scope text, page_limit int)
returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  nameless constant uuid[] := array(select internal.blocked_ids());
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'the board is shown to users, not to %', internal.caller();
  end if;
  return (
    select coalesce(json_agg(json_build_object('rank', b.n, 'progress', b.progress, 'status', b.status,
                                               'completed_at', internal.iso(b.completed_at),
                                               'user', json_build_object(
                                                 'id', u.id, 'display_name', case
                                                   when u.id <> all (nameless) then u.display_name end,
                                                 'avatar_url', case when u.id <> all (nameless) then u.avatar_url end))
                             order by b.n), '[]')
      from (select row_number() over () as n, l.*
              from (select p.app_user_id, p.progress, internal.participant_status(p, c) as status, p.completed_at
                      from app.challenge_participants p
                      join app.challenges c on c.id = p.challenge_id
                     where p.challenge_id = challenge_leaderboard_page.challenge_id and p.status <> 'left'
                       and (challenge_leaderboard_page.scope = 'global' or p.app_user_id = internal.user_id()
                            or p.app_user_id in (select internal.friend_ids()))
                     order by p.progress desc, p.reached_at, p.app_user_id
                     limit challenge_leaderboard_page.page_limit) l) b
      join app.users u on u.id = b.app_user_id);
end $$;
comment on function internal.challenge_leaderboard_page is
  'The first of a challenge, of all or of the caller and their friends: by progress, then who was first. Who is blocked,
   either way, has no name.';

create or replace function api.challenge_leaderboard(challenge_id uuid, scope text default 'global',
                                                     page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  c constant app.challenges := internal.my_challenge(challenge_leaderboard.challenge_id);
begin
  return internal.reply(200, internal.challenge_leaderboard_page(c.id, challenge_leaderboard.scope,
                                                                 challenge_leaderboard.page_limit));
end $$;
comment on function api.challenge_leaderboard is
  'The first of a challenge: of all (global), or of the caller and their friends. Refuses 404 NOT_FOUND.';

create or replace function api.challenge_participants(challenge_id uuid, page_offset int default 0,
                                                      page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  c constant app.challenges := internal.challenge_find(challenge_participants.challenge_id);
begin
  return internal.reply_page(
    (select json_agg(internal.json_merge(
              internal.participant_json((select m from app.challenge_participants m
                                          where (m.app_user_id, m.challenge_id) = (l.app_user_id, c.id)), c, l.n),
              json_build_object('app_users', json_build_object('id', u.id, 'display_name', u.display_name,
                                                               'avatar_url', u.avatar_url))) order by l.n)
       from (select o.app_user_id, challenge_participants.page_offset + row_number() over () as n
               from (select p.app_user_id
                       from app.challenge_participants p
                      where p.challenge_id = c.id
                      order by p.progress desc, p.reached_at, p.app_user_id
                      limit challenge_participants.page_limit offset challenge_participants.page_offset) o) l
       join app.users u on u.id = l.app_user_id),
    coalesce(internal.list_counted('challenge_participants', 'app.challenge_participants', c.id),
             (select count(*) from app.challenge_participants p where p.challenge_id = c.id)),
    challenge_participants.page_offset, challenge_participants.page_limit);
end $$;
comment on function api.challenge_participants is
  'Participants by progress, those who left too; rank is the place in this list. Refuses 404 NOT_FOUND.';

create or replace function internal.challenge_outcomes(challenge app.challenges, app_user_ids uuid[])
returns table (app_user_id uuid, completes boolean)
language plpgsql stable security definer set search_path = '' as $$
declare
  c constant app.challenges := challenge_outcomes.challenge;
  measured uuid[] := challenge_outcomes.app_user_ids;
begin
  if measured is not null and c.team_mode <> 'none' then
    -- a team's progress is that of all its members
    measured := array(
      with teams as materialized (
        select distinct internal.challenge_team(c, u.id, p.group_id) as id
          from unnest(challenge_outcomes.app_user_ids) as u (id)
          left join app.challenge_participants p on (p.app_user_id, p.challenge_id) = (u.id, c.id)
      )
      select u.id from unnest(challenge_outcomes.app_user_ids) as u (id)
      union
      select p.app_user_id from teams t join app.challenge_participants p on (p.challenge_id, p.group_id) = (c.id, t.id)
      union
      select m.app_user_id from teams t join app.group_members m on m.group_id = t.id);
  end if;
  return query
  with active as (
    select v.app_user_id as id, v.value, internal.challenge_team(c, v.app_user_id, p.group_id) as team
      from internal.challenge_values(c, measured, c.end_at - c.start_at) v
      left join app.challenge_participants p on (p.app_user_id, p.challenge_id) = (v.app_user_id, c.id)
     where v.value > 0 and internal.is_in_segment(c.segment_id, v.app_user_id)
  ), scored as (
    select a.id, coalesce(case when c.team_mode = 'none' then a.value
                               when a.team is not null then sum(a.value) over (partition by a.team) end >= c.goal_value,
                                 false) as completes
      from active a
  )
  select s.id, s.completes
    from scored s
   where challenge_outcomes.app_user_ids is null or s.id in (select unnest(challenge_outcomes.app_user_ids));
end $$;
comment on function internal.challenge_outcomes is
  'Of some users, or of all (null), those who did anything for a challenge in the window of the same length right
   before, and whether they would have completed it; teams as they are today. Granted to nobody.';

create or replace function internal.challenge_simulation(challenge_id uuid, affordable int default 50000) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.challenges;
  starts timestamptz;
  ends timestamptz;
  population constant bigint := internal.users_estimate();
  reads bigint;
  is_estimate boolean;
  -- null for everybody
  sampled uuid[];
  pages int[];
  scale numeric := 1;
begin
  perform internal.check_caller('developer', 'challenges are simulated by administrators');
  select l.* into c from app.challenges l where l.id = challenge_simulation.challenge_id;
  starts := c.start_at - (c.end_at - c.start_at);
  ends := c.start_at;
  reads := internal.planned_rows(case c.goal_type
    when 'event_count' then format('select from app.engagement_events e where e.event_name = %L and e.occurred_at >= '
                                   '%L and e.occurred_at < %L',
                                   c.event_name, starts, ends)
    when 'xp_earned' then format('select from app.xp_transactions t where t.occurred_at >= %L and t.occurred_at < %L',
                                 starts, ends)
    else format('select from app.streak_periods p where p.starts_on >= %L and p.starts_on <= %L', starts::date,
                ends::date) end);
  is_estimate := reads > challenge_simulation.affordable;
  if is_estimate then
    select s.ids, s.pages into sampled, pages
      from internal.users_sampled(population, 1, internal.users_afforded(
             population, greatest(reads, case c.goal_type
                                              when 'xp_earned' then internal.planned_rows(
                                                'select from app.xp_transactions') end),
             -- teams add their members
             case c.team_mode when 'none' then 50000 else 5000 end)) s;
    scale := population::numeric / greatest(cardinality(sampled), 1);
  end if;
  return (
    with outcomes as materialized (select o.app_user_id, o.completes from internal.challenge_outcomes(c, sampled) o)
    select json_build_object(
      'expected_completions', round(scale * count(*) filter (where o.completes)),
      'rate', round(count(*) filter (where o.completes)::numeric / nullif(count(*), 0), 4),
      'is_estimate', is_estimate,
      'margin', case when is_estimate then internal.sample_margin(population, pages, array(
                  select exists (select from outcomes w where w.app_user_id = i.id and w.completes)
                    from unnest(sampled) with ordinality as i (id, n)
                   order by i.n)) else 0 end)
      from outcomes o);
end $$;
comment on function internal.challenge_simulation is
  'Who would have completed it in the window of the same length right before, and their share of those who did anything;
   teams as they are today. Exact while the planner expects at most affordable rows; otherwise an estimate from 200 to
   10,000 users, whose expected_completions is within margin in 95 of 100 samples.';

create or replace function api.challenge_simulate(challenge_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(200,
                        internal.challenge_simulation((internal.challenge_find(challenge_simulate.challenge_id)).id))
$$;
comment on function api.challenge_simulate is
  'The result that a challenge would have had one period earlier: {expected_completions, rate, is_estimate, margin};
   writes nothing. Refuses 404 NOT_FOUND.';

select internal.days_declare('challenge_days_joined', 'app.challenge_participants', 'joined_at',
  array[['joined', 'count(*)']], 'r.challenge_id = {of}::uuid');
select internal.days_declare('challenge_days_completed', 'app.challenge_participants', 'completed_at',
  array[['completed', 'count(*)']], 'r.challenge_id = {of}::uuid');

create or replace function api.challenge_daily(challenge_id uuid, "from" date default null, "to" date default null,
                                               timezone text default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{challenge_days_joined,challenge_days_completed}', challenge_daily."from",
                             challenge_daily."to", challenge_daily.timezone,
                             (internal.challenge_find(challenge_daily.challenge_id)).id::text)
$$;
comment on function api.challenge_daily is
  'Users who joined a challenge, and who completed it, on each day. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';
