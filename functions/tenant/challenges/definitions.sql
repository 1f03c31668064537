-- Checks of challenge definitions, recurring challenges, and recounts.
comment on constraint challenges_event_name_form on app.challenges is
  '400 VALIDATION_ERROR event_name: must have 1 to 255 characters, no white space at either end.';
comment on constraint challenges_end_after_start on app.challenges is
  '400 VALIDATION_ERROR end_at: must be after start_at.';
comment on constraint challenges_one_per_turn on app.challenges is
  '400 VALIDATION_ERROR start_at: another turn of this challenge starts then.';

create or replace function internal.challenge_status(c app.challenges) returns text
language sql stable as $$
  select case when not (challenge_status.c).is_active or internal.now() >= (challenge_status.c).end_at then 'ended'
              when internal.now() < (challenge_status.c).start_at then 'upcoming' else 'active' end
$$;
comment on function internal.challenge_status is
  'upcoming, active or ended, by the clock; ended also when it is switched off.';

create or replace function internal.challenge_json(c app.challenges) returns json
language sql stable as $$
  select json_build_object(
    'id', (challenge_json.c).id, 'name', (challenge_json.c).name, 'description', (challenge_json.c).description,
    'start_at', internal.iso((challenge_json.c).start_at), 'end_at', internal.iso((challenge_json.c).end_at),
    'goal_type', (challenge_json.c).goal_type,
    'goal_value', (challenge_json.c).goal_value, 'event_name', (challenge_json.c).event_name,
    'reward_xp', (challenge_json.c).reward_xp,
    'reward_achievement_id', (challenge_json.c).reward_achievement_id, 'reward', (challenge_json.c).reward,
    'segment_id', (challenge_json.c).segment_id,
    'recurrence', (challenge_json.c).recurrence, 'team_mode', (challenge_json.c).team_mode,
    'parent_id', (challenge_json.c).parent_id,
    'is_active', (challenge_json.c).is_active, 'status', internal.challenge_status(challenge_json.c),
    'created_at', internal.iso((challenge_json.c).created_at),
    'updated_at', internal.iso((challenge_json.c).updated_at))
$$;
comment on function internal.challenge_json is 'A definition as every answer shows it.';

create or replace function internal.challenge_find(challenge_id uuid) returns app.challenges
language plpgsql stable as $$
declare
  found_one app.challenges;
begin
  select c.* into found_one from app.challenges c where c.id = challenge_find.challenge_id;
  perform internal.check_found(found_one.id is not null, 'challenge');
  return found_one;
end $$;
comment on function internal.challenge_find is 'A definition by its id. Refuses 404 NOT_FOUND.';

create or replace function internal.challenge_limit_check(except_id uuid) returns void
language plpgsql volatile as $$
begin
  perform internal.advisory_lock('challenges');
  perform internal.check_limit((select count(*) from app.challenges c
                                 where c.is_active and c.end_at > internal.now() and c.id is distinct
                                   from challenge_limit_check.except_id),
                               100, 'A project has at most 100 challenges that are active or to come.');
end $$;
comment on function internal.challenge_limit_check is
  'Refuses 409 LIMIT_REACHED beyond 100 active or upcoming challenges. Takes a lock, so that concurrent requests cannot
   exceed the limit.';

create or replace function internal.challenge_check(requested app.challenges, was app.challenges, sent jsonb)
returns app.challenges
language plpgsql volatile as $$
declare
  c app.challenges := challenge_check.requested;
  o constant app.challenges := challenge_check.was;
begin
  if c.segment_id is not null and not internal.segment_lock_shared(c.segment_id) then
    perform internal.invalid('segment_id', 'must be the id of a segment');
  elsif c.reward_achievement_id is not null and not exists (select from app.achievements a
                                                             where a.id = c.reward_achievement_id) then
    perform internal.invalid('reward_achievement_id', 'must be the id of an achievement');
  elsif c.reward is not null and jsonb_typeof(c.reward) <> 'object' then
    perform internal.invalid('reward', 'must be an object');
  end if;
  if c.goal_type <> 'event_count' then
    if challenge_check.sent ->> 'event_name' is not null then
      perform internal.invalid('event_name', 'goes with goal_type event_count only');
    end if;
    c.event_name := null;
  elsif c.event_name is null
        -- a legacy challenge may be edited, and stays one until it gets a name
        and (o.goal_type is distinct from 'event_count' or o.event_name is not null
             or challenge_check.sent ? 'event_name') then
    perform internal.invalid('event_name',
                             'is required for goal_type event_count; to stop a challenge set is_active to false');
  end if;
  if o.id is null or c.is_active and c.end_at > internal.now() and not (o.is_active and o.end_at > internal.now()) then
    perform internal.challenge_limit_check(o.id);
  end if;
  return c;
end $$;
comment on function internal.challenge_check is
  'A challenge as it would be, with the rules of event names applied: what the checks of app.challenges cannot say.
   Refuses 400 VALIDATION_ERROR, 409 LIMIT_REACHED (100 living).';

create or replace function internal.challenge_listed(c app.challenges, filter jsonb) returns boolean
language sql stable as $$
  select coalesce(internal.challenge_status(challenge_listed.c) = challenge_listed.filter ->> 'status', true)
$$;
comment on function internal.challenge_listed is
  'Whether a list of challenges shows this one: all, or those of one status.';

create or replace function internal.tg_challenges__plan() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if new.is_active and (tg_op = 'INSERT' or (new.start_at, new.end_at, new.goal_type, new.goal_value, new.event_name,
                                             new.is_active, new.team_mode)
       is distinct from (old.start_at, old.end_at, old.goal_type, old.goal_value, old.event_name, old.is_active,
                         old.team_mode)) then
    -- what happened in the window before anybody defined it counts too
    delete from app.challenge_recounts r where r.operation_id = new.id;
    perform internal.enqueue('challenges__recount', new.id::text, '{}', greatest(new.start_at, internal.now()));
  end if;
  if new.is_active and new.recurrence <> 'none' then
    perform internal.enqueue('challenges__recur', new.id::text, '{}', new.end_at);
  end if;
  return null;
end $$;
comment on function internal.tg_challenges__plan is
  'Queues the count of earlier events within the window, and the next occurrence of a recurring challenge.';

create or replace trigger tg_challenges__plan
  after insert or update on app.challenges
  for each row execute function internal.tg_challenges__plan();
select internal.audit_declare('app.challenges', 'challenges');

create or replace function internal.months_later(at timestamptz, months int, is_end boolean) returns timestamptz
language sql immutable parallel safe as $$
  select (case when months_later.is_end and l.local::time >= '23:59'
               and date_trunc('month', l.local) < date_trunc('month', l.local + interval '1 day')
               -- the last minute of a month, however long
               then date_trunc('month', l.local) + make_interval(months => months_later.months + 1) - interval '1 day'
                 + (l.local - date_trunc('day', l.local))
               else l.local + make_interval(months => months_later.months) end) at time zone 'UTC'
    from (select months_later.at at time zone 'UTC' as local) l
$$;
comment on function internal.months_later is
  'The same time of day so many months later, in UTC: on the same day, or on the last one of a month that is shorter. An
   end in the last minute of a month stays one.';

create or replace function internal.challenge_window(first_start_at timestamptz, first_end_at timestamptz, turn int,
                                                     out start_at timestamptz, out end_at timestamptz)
language sql immutable parallel safe as $$
  select w.start_at,
         -- both on the last day of a short month
         case when w.end_at > w.start_at then w.end_at
              else w.start_at + (challenge_window.first_end_at - challenge_window.first_start_at) end
    from (select internal.months_later(challenge_window.first_start_at, challenge_window.turn, false) as start_at,
                 internal.months_later(challenge_window.first_end_at, challenge_window.turn, true) as end_at) w
$$;
comment on function internal.challenge_window is
  'The window of a turn of a monthly challenge, counted from its first one, which is turn 0.';

create or replace function internal.challenge_counted(c app.challenges) returns app.challenges
language plpgsql stable as $$
declare
  counted app.challenges := challenge_counted.c;
  parent app.challenges;
  w record;
begin
  if counted.first_start_at is null and counted.parent_id is not null then
    -- made before turns were counted from the first: a short month may have shortened it for good
    select p.* into parent from app.challenges p where p.id = counted.parent_id;
    counted.turn := (extract(year from counted.start_at at time zone 'UTC')
                     - extract(year from parent.start_at at time zone 'UTC')) * 12
                    + extract(month from counted.start_at at time zone 'UTC')
                      - extract(month from parent.start_at at time zone 'UTC');
    w := internal.challenge_window(parent.start_at, parent.end_at, counted.turn);
    if w.start_at - counted.start_at in ('0 days', '1 day', '2 days', '3 days')
      and w.end_at - counted.end_at in ('0 days', '1 day', '2 days', '3 days')
       and (w.start_at = counted.start_at or extract(day from counted.start_at at time zone 'UTC') >= 28)
       and (w.end_at = counted.end_at or extract(day from counted.end_at at time zone 'UTC') >= 28) then
      counted.first_start_at := parent.start_at;
      counted.first_end_at := parent.end_at;
      return counted;
    end if;
  end if;
  w := internal.challenge_window(counted.first_start_at, counted.first_end_at, counted.turn);
  -- the first one, or somebody has moved this turn: those to come are counted from it
  if (counted.start_at, counted.end_at) is distinct from (w.start_at, w.end_at) then
    counted.first_start_at := counted.start_at;
    counted.first_end_at := counted.end_at;
    counted.turn := 0;
  end if;
  return counted;
end $$;
comment on function internal.challenge_counted is
  'A turn of a monthly challenge with the window that it is counted from, and its number.';

create or replace function internal.challenge_turn(c app.challenges, turns int) returns app.challenges
language plpgsql stable as $$
declare
  later app.challenges := challenge_turn.c;
  step constant interval := case (challenge_turn.c).recurrence when 'daily' then interval '1 day'
                                 else interval '7 days' end;
begin
  if later.recurrence = 'monthly' then
    later := internal.challenge_counted(challenge_turn.c);
    later.turn := later.turn + challenge_turn.turns;
    select w.start_at, w.end_at into later.start_at, later.end_at
      from internal.challenge_window(later.first_start_at, later.first_end_at, later.turn) w;
  else
    later.start_at := (later.start_at at time zone 'UTC' + challenge_turn.turns * step) at time zone 'UTC';
    later.end_at := (later.end_at at time zone 'UTC' + challenge_turn.turns * step) at time zone 'UTC';
  end if;
  return later;
end $$;
comment on function internal.challenge_turn is 'A challenge with the window that it has so many turns later.';

create or replace function api.challenge_recur(challenge_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.challenges;
  later app.challenges;
  turns int := 0;
begin
  perform internal.check_caller('worker', 'challenges come again by a worker');
  select l.* into c from app.challenges l where l.id = challenge_recur.challenge_id for no key update;
  if c.id is null or not c.is_active or c.recurrence = 'none' then
    return internal.reply(200, null);
  elsif c.end_at > internal.now() then
    return internal.reply(200, to_json(internal.iso(c.end_at)));
  end if;
  -- occurrences that have ended before they are created are skipped
  loop
    turns := turns + 1;
    later := internal.challenge_turn(c, turns);
    exit when later.end_at > internal.now();
  end loop;
  insert into app.challenges (name, description, start_at, end_at, first_start_at, first_end_at, turn, goal_type,
                              goal_value, event_name, reward_xp, reward_achievement_id, reward,
                              segment_id, recurrence, team_mode, parent_id, is_active)
  values (c.name, c.description, later.start_at, later.end_at, later.first_start_at, later.first_end_at, later.turn,
          c.goal_type, c.goal_value, c.event_name, c.reward_xp, c.reward_achievement_id, c.reward, c.segment_id,
            c.recurrence, c.team_mode, coalesce(c.parent_id, c.id), true)
  on conflict on constraint challenges_one_per_turn do nothing;
  return internal.reply(200, null);
end $$;
comment on function api.challenge_recur is
  'For the worker: creates the next occurrence of an ended challenge, once; returns when to check again, or null. Locks
   the challenge.';

create or replace function api.challenges_recount_step(run_id uuid, challenge_id uuid, batch int) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  challenge app.challenges;
  run app.challenge_recounts;
  wanted uuid[];
  counted uuid[];
  slice uuid[];
  moved int := 0;
begin
  perform internal.check_caller('worker', 'challenges are recounted by a worker');
  -- one that is being deleted is waited for, and is counted no more; one that is there stays until this step ends
  select c.* into challenge from app.challenges c where c.id = challenges_recount_step.challenge_id for key share;
  if challenge.id is null then
    return internal.reply(200, json_build_object('done', 0, 'changed', 0, 'is_over', true));
  end if;
  insert into app.challenge_recounts (operation_id, challenge_id) values (challenges_recount_step.run_id, challenge.id)
  on conflict on constraint challenge_recounts_pkey do nothing;
  select r.* into run from app.challenge_recounts r where r.operation_id = challenges_recount_step.run_id for update;
  if not run.is_over then
    wanted := array(select u.id from app.users u where run.cursor_id is null or u.id > run.cursor_id order by u.id
                     limit challenges_recount_step.batch);
    counted := internal.lock_users(array(
      select v.app_user_id from internal.challenge_values(challenge, wanted) v
      union
      select p.app_user_id from app.challenge_participants p
       where p.challenge_id = challenge.id and p.app_user_id = any (wanted)));
    if counted is not null then
      perform set_config('app.is_history', 'true', true);
      -- a hundred at a time: what is measured for a user is planned for one or a few, and compares each with each
      for place in 1 .. cardinality(counted) by 100 loop
        slice := counted[place:place + 99];
        moved := moved + jsonb_array_length(internal.challenges_measure(slice,
                                                                        array_fill(challenge.id,
                                                                          array[cardinality(slice)])));
      end loop;
    end if;
    update app.challenge_recounts r
       set cursor_id = coalesce(wanted[cardinality(wanted)], r.cursor_id), done = r.done + cardinality(wanted),
           changed = r.changed + moved, is_over = cardinality(wanted) < challenges_recount_step.batch
     where r.operation_id = run.operation_id
    returning r.* into run;
  end if;
  return internal.reply(200, json_build_object('done', run.done, 'changed', run.changed, 'is_over', run.is_over));
end $$;
comment on function api.challenges_recount_step is
  'For the worker: recounts the next users; is_over for a challenge that was deleted. One transaction: after a crash,
   the next step continues after the last committed one. Emits no events. Locks the challenge against its deletion, then
   users.';

create or replace function internal.segment_used__challenges(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'challenge ' || c.name from app.challenges c
                where c.segment_id = segment_used__challenges.segment_id order by c.name, c.id)
$$;
comment on function internal.segment_used__challenges is 'The challenges that name a segment.';
