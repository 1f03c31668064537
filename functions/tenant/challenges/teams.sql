-- Challenges of teams. A user's own progress counts for one group at a time; a job, which may lock all members, checks
-- whether a team has reached the goal and completes its members. So an event of one member waits for no other member.

create or replace function internal.challenge_team(c app.challenges, app_user_id uuid, current_one uuid) returns uuid
language sql stable security definer set search_path = '' as $$
  select case
    when (challenge_team.c).team_mode = 'none' then null
    -- with the end teams stay as they are
    when challenge_team.current_one is not null
         and ((challenge_team.c).end_at <= internal.now()
              or exists (select from app.group_members m
                          where (m.group_id, m.app_user_id) = (challenge_team.current_one,
                                                               challenge_team.app_user_id)))
                                                               then challenge_team.current_one
    else (select m.group_id
            from app.group_members m
           where m.app_user_id = challenge_team.app_user_id and m.joined_at < (challenge_team.c).end_at
           order by m.joined_at, m.group_id
           limit 1) end
$$;
comment on function internal.challenge_team is
  'The group that a user''s progress counts for: the one so far while the user is in it, else the one that the user is
   in longest; null for none. Granted to nobody.';

create or replace function internal.challenge_team_progress(challenge_id uuid, group_id uuid, out progress bigint,
                                                            out members bigint)
language sql stable security definer set search_path = '' as $$
  select coalesce(sum(p.progress), 0)::bigint, count(*)
    from app.challenge_participants p
   where (p.challenge_id, p.group_id) = (challenge_team_progress.challenge_id, challenge_team_progress.group_id)
     and p.status <> 'left'
$$;
comment on function internal.challenge_team_progress is
  'What the participants of a team have together, and how many they are; who left the challenge is none. Granted to
   nobody.';

create or replace function internal.challenge_team_json(c app.challenges, group_id uuid) returns json
language sql stable security definer set search_path = '' as $$
  select json_build_object(
           'group_id', challenge_team_json.group_id, 'progress', t.progress, 'members', t.members,
           'reached_at', (select internal.iso(r.reached_at) from app.challenge_teams r
                           where (r.challenge_id, r.group_id) = ((challenge_team_json.c).id,
                                                                 challenge_team_json.group_id)))
    from internal.challenge_team_progress((challenge_team_json.c).id, challenge_team_json.group_id) t
   where challenge_team_json.group_id is not null
$$;
comment on function internal.challenge_team_json is 'A team as its own members see it, or null. Granted to nobody.';

create or replace function internal.challenge_teams_enqueue(challenge_ids uuid[], group_ids uuid[], app_user_ids uuid[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.enqueue('challenges__team', t.challenge_id || ' ' || t.group_id || ' ' || t.app_user_id,
                           jsonb_build_object(
            'challenge_id', t.challenge_id, 'group_id', t.group_id, 'is_history', internal.is_history()))
     from (select distinct on (w.challenge_id, w.group_id) w.*
             from unnest(challenge_teams_enqueue.challenge_ids, challenge_teams_enqueue.group_ids,
                         challenge_teams_enqueue.app_user_ids)
                    as w (challenge_id, group_id, app_user_id)
            where w.group_id is not null
            order by w.challenge_id, w.group_id, w.app_user_id) t;
end $$;
comment on function internal.challenge_teams_enqueue is
  'Queues the recount of teams whose progress changed, with a user who changed each: the key names the user, who is
   locked, so that members of one team do not wait for each other at a row of the queue. Granted to nobody.';

create or replace function api.challenge_team_complete(challenge_id uuid, group_id uuid, is_history boolean, batch int)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  over constant json := json_build_object('completed', 0, 'is_over', true);
  c app.challenges;
  members uuid[];
  completers uuid[];
begin
  perform internal.check_caller('worker', 'teams are completed by a worker');
  select l.* into c from app.challenges l where l.id = challenge_team_complete.challenge_id;
  if c.id is null or c.team_mode = 'none' or not c.is_active then
    return internal.reply(200, over);
  elsif not exists (select from app.challenge_teams t
                     where (t.challenge_id, t.group_id) = (c.id, challenge_team_complete.group_id)) then
    if (internal.challenge_team_progress(c.id, challenge_team_complete.group_id)).progress < c.goal_value then
      return internal.reply(200, over);
    end if;
    insert into app.challenge_teams (challenge_id, group_id) values (c.id, challenge_team_complete.group_id)
    on conflict on constraint challenge_teams_pkey do nothing;
  end if;
  members := internal.lock_users(array(
    select p.app_user_id
      from app.challenge_participants p
     where (p.challenge_id, p.group_id) = (c.id, challenge_team_complete.group_id) and p.status = 'in_progress'
       and p.progress > 0
     order by p.app_user_id
     limit challenge_team_complete.batch));
  if members is null then
    return internal.reply(200, over);
  end if;
  if challenge_team_complete.is_history then
    perform set_config('app.is_history', 'true', true);
  end if;
  -- as they are now that they are locked
  with done as (
    update app.challenge_participants p
       set status = 'completed', completed_at = internal.now()
     where p.challenge_id = c.id and p.app_user_id = any (members) and p.group_id = challenge_team_complete.group_id
       and p.status = 'in_progress' and p.progress > 0
    returning p.app_user_id
  )
  select coalesce(array_agg(d.app_user_id order by d.app_user_id), '{}') into completers from done d;
  perform internal.challenges_pay(completers, array(select c.id from unnest(completers)));
  perform internal.emit_many(array_agg(d.id order by d.id), array_agg('svc.challenge.completed'::text),
                             array_agg(jsonb_build_object(
            'challenge_id', c.id, 'name', c.name, 'goal_type', c.goal_type, 'goal_value', c.goal_value)))
     from unnest(completers) as d (id);
  return internal.reply(200, json_build_object('completed', cardinality(completers),
                                               'is_over', cardinality(members) < challenge_team_complete.batch));
end $$;
comment on function api.challenge_team_complete is
  'For the worker: records that a team has reached the goal, if it has, and completes and rewards its next active
   members: each once, because completed is final. Idempotent: a second run finds no member. Locks the members.';

create or replace function internal.tg_group_members__challenges() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved record;
begin
  if not exists (select from app.challenges c where c.team_mode = 'group' and c.end_at > internal.now()) then
    return null;
  end if;
  with chosen as (
    select p.app_user_id, p.challenge_id, internal.challenge_team(c, p.app_user_id, p.group_id) as group_id
      from app.challenge_participants p
      join app.challenges c on c.id = p.challenge_id
     where p.app_user_id in (select x.app_user_id from changed x) and c.team_mode = 'group'
       and c.end_at > internal.now()
     order by p.app_user_id, p.challenge_id
       for no key update of p
  ), changed_teams as (
    update app.challenge_participants p
       set group_id = k.group_id
      from chosen k
     where (p.app_user_id, p.challenge_id) = (k.app_user_id, k.challenge_id) and p.group_id is distinct from k.group_id
    returning p.*
  )
  select array_agg(t.challenge_id) as challenge_ids, array_agg(t.group_id) as group_ids,
         array_agg(t.app_user_id) as app_user_ids
    into moved
    from changed_teams t
   where t.progress > 0 and t.status <> 'left';
  perform internal.challenge_teams_enqueue(moved.challenge_ids, moved.group_ids, moved.app_user_ids);
  return null;
end $$;
comment on function internal.tg_group_members__challenges is
  'When a user joins a first group, or leaves the group that they count for, assigns another group, or none, in
   challenges that are not over.';

create or replace trigger tg_group_members__challenges_in
  after insert on app.group_members
  referencing new table as changed
  for each statement execute function internal.tg_group_members__challenges();
create or replace trigger tg_group_members__challenges_out
  after delete on app.group_members
  referencing old table as changed
  for each statement execute function internal.tg_group_members__challenges();
