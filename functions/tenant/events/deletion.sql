-- Deletion of events, in steps, because there may be millions.
create or replace function api.events_delete_step(event_name text, user_id uuid, before timestamptz, batch int)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  deleted bigint;
begin
  if internal.caller() <> 'worker' or coalesce(events_delete_step.event_name, events_delete_step.user_id::text) is null
    or events_delete_step.before is null then
    raise exception 'events are deleted by a worker, of a name or a user, before a time';
  end if;
  with doomed as (
    select e.id, e.received_at
      from app.engagement_events e
     where (events_delete_step.event_name is null or e.event_name = events_delete_step.event_name)
       and (events_delete_step.user_id is null or e.app_user_id = events_delete_step.user_id)
       and e.occurred_at < events_delete_step.before
     limit events_delete_step.batch
  )
  delete from app.engagement_events e using doomed d where (e.id, e.received_at) = (d.id, d.received_at);
  get diagnostics deleted = row_count;
  return internal.reply(200, to_json(deleted));
end $$;
comment on function api.events_delete_step is
  'For the job: deletes a batch of events of a name, a user or both, before a time, and answers how many; fewer than the
   batch when it was the last. Their effects stay, such as counters and streaks, and their ids, for deduplication.';

create or replace function api.events_count(event_name text, user_id uuid, before timestamptz) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, to_json(count(*)))
    from app.engagement_events e
   where (events_count.event_name is null or e.event_name = events_count.event_name)
     and (events_count.user_id is null or e.app_user_id = events_count.user_id)
     and e.occurred_at < events_count.before
$$;
comment on function api.events_count is
  'For the job: how many events of a name, a user or both there are before a time.';

create or replace function api.events_delete_check(event_name text default null, user_id uuid default null,
                                                   before text default null)
returns api.reply
language plpgsql stable as $$
declare
  before_at timestamptz;
begin
  if events_delete_check.event_name is null and events_delete_check.user_id is null then
    perform internal.invalid('event_name', 'or user_id is required', 'INVALID_INPUT');
  elsif events_delete_check.before is null then
    perform internal.invalid('before', 'is required', 'INVALID_INPUT');
  end if;
  before_at := internal.time_parameter('before', events_delete_check.before);
  if before_at > internal.now() then
    perform internal.invalid('before', 'must not be in the future', 'INVALID_INPUT');
  end if;
  return internal.reply(200, json_build_object('event_name', events_delete_check.event_name,
                                               'user_id', events_delete_check.user_id,
                                               'before', before_at));
end $$;
comment on function api.events_delete_check is
  'What a deletion will delete, checked: a name or a user, and a time that is not in the future. Refuses 400
   INVALID_INPUT.';
