-- Replay: adds effects of stored events that are missing. An area that can be replayed has a function
-- internal.replay__<target>(app_user_ids uuid[], since timestamptz, until timestamptz) returns jsonb which updates its
-- state of these users to include their stored events, and returns a list of its changes, an object for each, with
-- app_user_id. The caller has locked the users. A dry run calls the same function and rolls it back, so that both
-- always agree.

create or replace function internal.replay_targets() returns text[]
language sql stable as $$
  select coalesce(array_agg(substr(p.proname, length('replay__') + 1) order by p.proname), '{}')
    from pg_catalog.pg_proc p
   where p.pronamespace = 'internal'::regnamespace and p.proname like 'replay\_\_%'
$$;
comment on function internal.replay_targets is 'What can be replayed: the areas that have a function for it.';

create or replace function api.events_replay_check(since text, until text default null, targets json default null,
                                                   user_ids json default null, dry_run boolean default true)
returns api.reply
language plpgsql stable as $$
declare
  since_at constant timestamptz := internal.as_time(events_replay_check.since);
  until_at constant timestamptz := case when events_replay_check.until is null then internal.now()
                                        else internal.as_time(events_replay_check.until) end;
  known constant text[] := internal.replay_targets();
  unknown text;
begin
  if since_at is null then
    perform internal.invalid('since', 'must be an ISO 8601 time');
  elsif until_at is null then
    perform internal.invalid('until', 'must be an ISO 8601 time');
  elsif until_at <= since_at then
    perform internal.invalid('until', 'must be after since');
  end if;
  select t.name into unknown
    from json_array_elements_text(events_replay_check.targets) with ordinality as t (name, n)
   where t.name <> all (known)
   order by t.n limit 1;
  if unknown is not null then
    perform internal.invalid('targets', 'cannot hold ' || unknown || ' here, only ' || array_to_string(known, ', '));
  end if;
  return internal.reply(200, json_build_object(
    'since', since_at, 'until', until_at, 'dry_run', events_replay_check.dry_run,
    'targets', (select json_agg(k.name order by k.n)
                  from unnest(known) with ordinality as k (name, n)
                 where events_replay_check.targets is null
                    or k.name in (select t.value from json_array_elements_text(events_replay_check.targets) t)),
    'user_ids', (select json_agg(distinct lower(u.value) order by lower(u.value))
                   from json_array_elements_text(events_replay_check.user_ids) u)));
end $$;
comment on function api.events_replay_check is
  'What a replay will do, checked: times, targets that there are (all by default), users in order. Refuses 400
   VALIDATION_ERROR.';

create or replace function internal.replay_run(target text, app_user_ids uuid[], since timestamptz, until timestamptz,
                                               is_dry_run boolean)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  differences jsonb;
begin
  begin
    -- history: devices and webhooks must not receive these effects as new
    perform set_config('app.is_history', 'true', true);
    execute format('select internal.%I($1, $2, $3)', 'replay__' || replay_run.target)
       into differences using replay_run.app_user_ids, replay_run.since, replay_run.until;
    if replay_run.is_dry_run then
      raise exception using errcode = 'TR003', message = 'a dry run';
    end if;
  exception when sqlstate 'TR003' then
    -- everything but the list is as it was
    null;
  end;
  return coalesce(differences, '[]');
end $$;
comment on function internal.replay_run is
  'Replays one target for users, who are locked; a dry run is rolled back. Answers the differences. Granted to nobody.';

create or replace function api.events_replay_step(operation_id uuid, target text, input jsonb, batch int)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_dry_run constant boolean := (events_replay_step.input ->> 'dry_run')::boolean;
  since constant timestamptz := (events_replay_step.input ->> 'since')::timestamptz;
  until constant timestamptz := (events_replay_step.input ->> 'until')::timestamptz;
  replay app.event_replays;
  wanted uuid[];
  active uuid[];
  found_ones jsonb;
begin
  perform internal.check_caller('worker', 'replays are run by a worker');
  insert into app.event_replays (operation_id, target, is_dry_run)
    values (events_replay_step.operation_id, events_replay_step.target, is_dry_run)
  on conflict on constraint event_replays_pkey do nothing;
  select r.* into replay
    from app.event_replays r
   where (r.operation_id, r.target) = (events_replay_step.operation_id, events_replay_step.target)
     for update;
  if not replay.is_over then
    -- by id, so that a replay knows where it is whatever users come and go
    wanted := array(
      select u.id from app.users u
       where (replay.cursor_id is null or u.id > replay.cursor_id)
         and (jsonb_typeof(events_replay_step.input -> 'user_ids') is distinct from 'array'
              or events_replay_step.input -> 'user_ids' ? u.id::text)
       order by u.id limit events_replay_step.batch);
    active := internal.lock_users(array(
      select w.id from unnest(wanted) as w (id)
       where exists (select from app.engagement_events e
                      where e.app_user_id = w.id and e.occurred_at >= since and e.occurred_at < until)));
    found_ones := case when active is null then '[]'
                       else internal.replay_run(events_replay_step.target, active, since, until, is_dry_run) end;
    update app.event_replays r
       set cursor_id = coalesce(wanted[cardinality(wanted)], r.cursor_id),
           is_over = cardinality(wanted) < events_replay_step.batch,
           done = r.done + cardinality(wanted),
           users = r.users + (select count(distinct f.value ->> 'app_user_id') from jsonb_array_elements(found_ones) f),
           changes = r.changes + jsonb_array_length(found_ones),
           -- enough to judge by; the counts are of all
           differences = r.differences || coalesce((
             select jsonb_agg(f.value order by f.n)
               from jsonb_array_elements(found_ones) with ordinality as f (value, n)
              where f.n <= 1000 - jsonb_array_length(r.differences)), '[]')
     where (r.operation_id, r.target) = (replay.operation_id, replay.target)
    returning r.* into replay;
  end if;
  return internal.reply(200, json_build_object('done', replay.done, 'is_over', replay.is_over));
end $$;
comment on function api.events_replay_step is
  'For the job: replays the next users and stores the progress in the same transaction: after a crash, the next step
   continues after the last committed one. Locks the users.';

create or replace function api.events_replay_total(input jsonb) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, to_json(case when jsonb_typeof(events_replay_total.input -> 'user_ids') = 'array'
                                          then (select count(*)
                                                  from app.users u
                                                 where u.id in (select i.value::uuid
                                                                  from jsonb_array_elements_text(
                                                                    events_replay_total.input -> 'user_ids') i))
                                          else (select count(*) from app.users) end
                                   * jsonb_array_length(events_replay_total.input -> 'targets')))
$$;
comment on function api.events_replay_total is
  'For the job: how many users a replay will look at: users times targets.';

create or replace function api.events_replay_result(operation_id uuid) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, json_build_object(
    'dry_run', bool_and(r.is_dry_run),
    'targets', json_object_agg(r.target, json_build_object(
      'users', r.users, 'changes', r.changes, 'differences', r.differences,
        'truncated', r.changes > jsonb_array_length(r.differences)))))
    from app.event_replays r
   where r.operation_id = events_replay_result.operation_id
$$;
comment on function api.events_replay_result is
  'For the job: the result of a replay, by target: how many users differ, in how many ways, and the first thousand
   differences; truncated when there are more.';
