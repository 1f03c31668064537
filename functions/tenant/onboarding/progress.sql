-- A user's progress through a flow. Only definer functions write it, for the caller alone; the user is locked first, as
-- everywhere, so concurrent requests are serialised.
select internal.row_declare('onboarding_progress_json', null::app.onboarding_progress,
                            '{app_user_id,flow_id,current_step,completed_steps,answers,status,
                             started_at,completed_at,updated_at}');
comment on function internal.onboarding_progress_json is 'A user''s progress as every response shows it.';

create or replace function internal.onboarding_next(steps jsonb, after text, done text[], app_user_id uuid) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- the position of the step if it is still in the flow: the steps may have changed
  place constant bigint := (select s.n from jsonb_array_elements(onboarding_next.steps) with ordinality as s (value, n)
                             where s.value ->> 'id' = onboarding_next.after);
  step record;
begin
  for step in
    select s.value ->> 'id' as id, (s.value ->> 'segment_id')::uuid as segment_id
      from jsonb_array_elements(onboarding_next.steps) with ordinality as s (value, n)
     where case when place is null then not s.value ->> 'id' = any (onboarding_next.done) else s.n > place end
     order by s.n
  loop
    if step.segment_id is null or internal.segment_member(step.segment_id, onboarding_next.app_user_id) then
      return step.id;
    end if;
  end loop;
  return null;
end $$;
comment on function internal.onboarding_next is
  'The next step after this one that applies to the user, or null. If this one is null or no longer in the flow: the
   first step that the user has not done. Granted to nobody.';

create or replace function internal.onboarding_user_lock(code text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'users go through flows themselves, not %', internal.caller();
  end if;
  if internal.lock_users(array[internal.user_id()]) is null then
    perform internal.fail(404, onboarding_user_lock.code, 'There is no such user.');
  end if;
end $$;
comment on function internal.onboarding_user_lock is
  'Locks the calling user. Refuses 404 with this code when the user has been deleted. Granted to nobody.';

create or replace function internal.onboarding_mine(flow_id uuid, code text) returns app.onboarding_progress
language plpgsql volatile security definer set search_path = '' as $$
declare
  progress app.onboarding_progress;
begin
  perform internal.onboarding_user_lock(onboarding_mine.code);
  -- the progress is deleted with its flow: a concurrent deletion waits for this lock, or this finds no row
  select p.* into progress
    from app.onboarding_progress p
   where (p.app_user_id, p.flow_id) = (internal.user_id(), onboarding_mine.flow_id)
     for no key update;
  if not found then
    perform internal.fail(404, onboarding_mine.code, 'This flow has not been started.');
  end if;
  return progress;
end $$;
comment on function internal.onboarding_mine is
  'The caller''s progress. Refuses 404 with this code when there is none. Locks the user, then the progress. Granted to
   nobody.';

create or replace function internal.onboarding_notify(progress app.onboarding_progress, event text, properties jsonb)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.onboarding_progress p
     set told = p.told || onboarding_notify.event
   where (p.app_user_id, p.flow_id) = ((onboarding_notify.progress).app_user_id, (onboarding_notify.progress).flow_id)
     and not onboarding_notify.event = any (p.told);
  if found then
    perform internal.emit((onboarding_notify.progress).app_user_id, 'svc.onboarding.' || onboarding_notify.event,
                          jsonb_build_object('flow_id', (onboarding_notify.progress).flow_id)
                            || onboarding_notify.properties);
  end if;
end $$;
comment on function internal.onboarding_notify is
  'Emits svc.onboarding.started, completed or skipped, each once per user and flow: a user who repeats a flow earns
   nothing again. Granted to nobody.';

create or replace function internal.onboarding_start(flow_id uuid) returns app.onboarding_progress
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  flow app.onboarding_flows;
  progress app.onboarding_progress;
begin
  perform internal.onboarding_user_lock('NOT_FOUND');
  -- locked, so that the flow is not deleted before the progress is inserted
  select f.* into flow from app.onboarding_flows f where f.id = onboarding_start.flow_id and f.is_active for key share;
  perform internal.check_found(found, 'flow');
  insert into app.onboarding_progress as p (app_user_id, flow_id, current_step, status)
  values (me, flow.id, internal.onboarding_next(flow.steps, null, '{}', me), 'in_progress')
  on conflict on constraint onboarding_progress_pkey do update
     set current_step = excluded.current_step, completed_steps = '{}', answers = '{}', status = 'in_progress',
         started_at = excluded.started_at, completed_at = null, updated_at = internal.now()
  returning p.* into progress;
  perform internal.onboarding_notify(progress, 'started', jsonb_build_object('flow_name', flow.name));
  return progress;
end $$;
comment on function internal.onboarding_start is
  'Sets the caller''s progress to the first step that applies to them, also from another step. Refuses 404 NOT_FOUND.
   Emits svc.onboarding.started the first time.';

create or replace function internal.onboarding_finish(flow_id uuid, status text) returns app.onboarding_progress
language plpgsql volatile security definer set search_path = '' as $$
declare
  progress app.onboarding_progress := internal.onboarding_mine(onboarding_finish.flow_id, 'UPDATE_FAILED');
begin
  if progress.status = onboarding_finish.status then
    return progress;
  end if;
  update app.onboarding_progress p
     set status = onboarding_finish.status, completed_at = internal.now(), updated_at = internal.now()
   where (p.app_user_id, p.flow_id) = (progress.app_user_id, progress.flow_id)
  returning p.* into progress;
  perform internal.onboarding_notify(progress, progress.status,
                                     jsonb_build_object('completed_steps', to_jsonb(progress.completed_steps)));
  return progress;
end $$;
comment on function internal.onboarding_finish is
  'Sets the caller''s progress to completed or skipped, from any state; unchanged if it has that state already. Refuses
   404 UPDATE_FAILED before the start. Emits svc.onboarding.completed or skipped, each the first time.';

create or replace function internal.onboarding_advance(flow_id uuid, step_id text, answers json)
returns app.onboarding_progress
language plpgsql volatile security definer set search_path = '' as $$
declare
  progress app.onboarding_progress := internal.onboarding_mine(onboarding_advance.flow_id, 'NOT_FOUND');
  next_step text;
begin
  -- a repeated request for the same step, or a request after the end
  if progress.status <> 'in_progress' or onboarding_advance.step_id <> coalesce(progress.current_step, '') then
    return progress;
  end if;
  if json_typeof(onboarding_advance.answers) <> 'null' then
    if not internal.is_storable_json(onboarding_advance.answers) then
      perform internal.invalid('answers', 'holds a character or a number that cannot be stored, or nests too deeply',
                               'INVALID_INPUT');
    elsif internal.json_size(onboarding_advance.answers::text) > 32768 then
      perform internal.invalid('answers', 'must have at most 32 KB', 'INVALID_INPUT');
    end if;
  end if;
  if progress.current_step is not null then
    if json_typeof(onboarding_advance.answers) <> 'null' then
      progress.answers := progress.answers || jsonb_build_object(progress.current_step,
                                                                 onboarding_advance.answers::jsonb);
    end if;
    progress.completed_steps := array_remove(progress.completed_steps, progress.current_step) || progress.current_step;
  end if;
  select internal.onboarding_next(f.steps, progress.current_step, progress.completed_steps,
                                  progress.app_user_id) into next_step
    from app.onboarding_flows f
   where f.id = progress.flow_id;
  update app.onboarding_progress p
     set current_step = next_step, completed_steps = progress.completed_steps, answers = progress.answers,
       updated_at = internal.now(),
         status = case when next_step is null then 'completed' else 'in_progress' end,
         completed_at = case when next_step is null then internal.now() end
   where (p.app_user_id, p.flow_id) = (progress.app_user_id, progress.flow_id)
  returning p.* into progress;
  if next_step is null then
    perform internal.onboarding_notify(progress, 'completed',
                                       jsonb_build_object('completed_steps', to_jsonb(progress.completed_steps)));
  end if;
  return progress;
end $$;
comment on function internal.onboarding_advance is
  'Marks the caller''s current step as done and moves to the next step that applies to them, or completes the flow.
   Nothing changes if step_id is not the current step or the flow has ended. Refuses 404 NOT_FOUND before the start, 400
   INVALID_INPUT. Emits svc.onboarding.completed the first time.';

create or replace function api.onboarding_get() returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('flow', internal.onboarding_flow_json(f), 'progress', (
             select internal.onboarding_progress_json(p)
               from app.onboarding_progress p
              where (p.app_user_id, p.flow_id) = (internal.user_id(), f.id)))
      from app.onboarding_flows f
     where f.is_active
     order by f.created_at desc, f.id desc
     limit 1))
$$;
comment on function api.onboarding_get is
  'The newest active flow with the caller''s progress, which is null before the start; null when no flow is active.';

create or replace function api.onboarding_start(flow_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(201, internal.onboarding_progress_json(internal.onboarding_start(onboarding_start.flow_id)))
$$;
comment on function api.onboarding_start is
  'Starts a flow, or restarts it: 201. Refuses 404 NOT_FOUND. Locks the user.';

create or replace function api.onboarding_advance(flow_id uuid, step_id text default null, answers json default null)
returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.onboarding_progress_json(internal.onboarding_advance(
    onboarding_advance.flow_id, onboarding_advance.step_id, onboarding_advance.answers)))
$$;
comment on function api.onboarding_advance is
  'Advances by one step. Refuses 404 NOT_FOUND before the start, 400 INVALID_INPUT. Locks the user.';

create or replace function api.onboarding_skip(flow_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.onboarding_progress_json(internal.onboarding_finish(onboarding_skip.flow_id,
                                        'skipped')))
$$;
comment on function api.onboarding_skip is
  'Marks a flow as skipped. Refuses 404 UPDATE_FAILED before the start. Locks the user.';

create or replace function api.onboarding_complete(flow_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.onboarding_progress_json(internal.onboarding_finish(onboarding_complete.flow_id,
                                        'completed')))
$$;
comment on function api.onboarding_complete is
  'Marks a flow as completed. Refuses 404 UPDATE_FAILED before the start. Locks the user.';
