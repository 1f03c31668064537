-- Commands of administrators. A campaign has a channel, and a function that names a campaign of another one finds none.
-- Definer functions, because a campaign that starts queues tasks. Locks: the bucket "campaigns" of a creation, then the
-- campaign, then what its channel locks, then segments.
comment on constraint campaigns_workflow_id_unique on app.campaigns is
  '409 ALREADY_SCHEDULED workflow_id: A campaign with this workflow id exists.';

create or replace function internal.tg_campaigns__audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() = 'developer' then
    perform internal.audit(a.action, new.channel, a.target_id, a.changes, a.status, a.scope)
       from internal.audit_change(new.channel, '{}', case when tg_op = 'UPDATE' then to_jsonb(old) else '{}' end,
                                  to_jsonb(new)) a;
  end if;
  return null;
end $$;
comment on function internal.tg_campaigns__audit is
  'Records what administrators do with campaigns, under the name of the channel.';
-- rows are deleted by workers, which the audit trail does not record
create or replace trigger tg_campaigns__audit
  after insert or update on app.campaigns
  for each row execute function internal.tg_campaigns__audit();

create or replace function internal.campaign_counts_json(source_id uuid, hour timestamptz default '-infinity',
                                                         variant text default null, has_clicks boolean default false)
returns json
language sql stable as $$
  select internal.json_merge(json_build_object(
    'targeted', coalesce(sum(n.targeted), 0), 'sent', coalesce(sum(n.sent), 0), 'failed', coalesce(sum(n.failed), 0),
    'skipped', coalesce(sum(n.skipped), 0), 'opened', coalesce(sum(n.opened), 0),
    'converted', coalesce(sum(n.converted), 0)),
    case when campaign_counts_json.has_clicks then json_build_object('clicked', coalesce(sum(n.clicked), 0))
         else '{}' end)
    from app.campaign_counts n
   where n.source_id = campaign_counts_json.source_id and n.hour = campaign_counts_json.hour
     and (campaign_counts_json.variant is null or n.variant = campaign_counts_json.variant)
$$;
comment on function internal.campaign_counts_json is
  'The counts of a campaign or an automation: of all hours by default, and of all variants; with clicked where its
   channel has clicks.';

create or replace function internal.campaign_has_clicks(channel text) returns boolean
language sql stable security definer set search_path = '' as $$
  select k.has_clicks from internal.campaign_channels k where k.channel = campaign_has_clicks.channel
$$;
comment on function internal.campaign_has_clicks is
  'Whether messages of a channel have links whose clicks are counted.';

create or replace function internal.campaign_json(c app.campaigns) returns json
language sql stable as $$
  select internal.json_merge(json_build_object(
    'id', (campaign_json.c).id, 'workflow_id', (campaign_json.c).workflow_id, 'name', (campaign_json.c).name),
  internal.json_merge(internal.campaign_content(campaign_json.c),
  json_build_object(
    'audience', (campaign_json.c).audience, 'exclude_segment_id', (campaign_json.c).exclude_segment_id,
    'schedule', json_build_object('send_at', internal.iso((campaign_json.c).send_at), 'mode', (campaign_json.c).mode,
                                  'local_time', (campaign_json.c).local_time, 'weekdays', (campaign_json.c).weekdays),
    'throttle_per_minute', (campaign_json.c).throttle_per_minute, 'quiet_hours', (campaign_json.c).quiet_hours,
    'frequency_cap', (campaign_json.c).frequency_cap, 'goal_event', (campaign_json.c).goal_event,
    'status', (campaign_json.c).status, 'failure', (campaign_json.c).failure,
    'counts', internal.campaign_counts_json((campaign_json.c).id,
                                            has_clicks => internal.campaign_has_clicks((campaign_json.c).channel)),
    'created_at', internal.iso((campaign_json.c).created_at), 'updated_at', internal.iso((campaign_json.c).updated_at),
    'scheduled_at', internal.iso((campaign_json.c).scheduled_at),
    'started_at', internal.iso((campaign_json.c).started_at),
    'finished_at', internal.iso((campaign_json.c).finished_at))))
$$;
comment on function internal.campaign_json is 'A campaign as responses show it.';

create or replace function internal.campaign_locked(campaign_id uuid, channel text) returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  found_one app.campaigns;
begin
  perform internal.check_caller('developer', 'campaigns are for administrators');
  select c.* into found_one from app.campaigns c where c.id = campaign_locked.campaign_id for no key update;
  perform internal.check_found(found_one.channel = campaign_locked.channel and not found_one.is_deleted, 'campaign');
  return found_one;
end $$;
comment on function internal.campaign_locked is 'A campaign, locked. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.campaign_refuse(message text) returns void
language sql volatile
return internal.fail(409, 'CAMPAIGN_LOCKED', campaign_refuse.message);
comment on function internal.campaign_refuse is
  'Refuses 409 CAMPAIGN_LOCKED: the state of the campaign does not allow it.';

create or replace function internal.campaign_patched(c app.campaigns, patch jsonb) returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  p constant jsonb := campaign_patched.patch;
  s constant jsonb := coalesce(nullif(p -> 'schedule', 'null'), '{}');
begin
  c.name := case when p ? 'name' then p ->> 'name' else c.name end;
  execute format('select r.* from internal.%I($1, $2) r', 'campaign_patched__' || c.channel) into c using c, p;
  c.variants := coalesce(c.variants, '[]');
  c.inbox := coalesce(c.inbox, false);
  c.audience := coalesce(p -> 'audience', c.audience);
  c.exclude_segment_id := case when p ? 'exclude_segment_id' then (p ->> 'exclude_segment_id')::uuid
                               else c.exclude_segment_id end;
  c.send_at := case when p ? 'send_at' then (p ->> 'send_at')::timestamptz
                    when s ? 'send_at' then (s ->> 'send_at')::timestamptz else c.send_at end;
  c.mode := coalesce(s ->> 'mode', c.mode, 'absolute');
  c.local_time := case when s ? 'local_time' then s ->> 'local_time' else c.local_time end;
  c.weekdays := case when jsonb_typeof(s -> 'weekdays') = 'array' then array(select distinct d::int
                                        from jsonb_array_elements_text(s -> 'weekdays') d order by 1)
                     when s ? 'weekdays' then null else c.weekdays end;
  c.throttle_per_minute := case when p ? 'throttle_per_minute' then (p ->> 'throttle_per_minute')::int
                                else c.throttle_per_minute end;
  c.quiet_hours := case when p ? 'quiet_hours' then nullif(p -> 'quiet_hours', 'null') else c.quiet_hours end;
  c.frequency_cap := case when p ? 'frequency_cap' then nullif(p -> 'frequency_cap', 'null') else c.frequency_cap end;
  c.goal_event := case when p ? 'goal_event' then p ->> 'goal_event' else c.goal_event end;
  c.updated_at := internal.now();
  if c.mode = 'user_local' and c.local_time is null then
    perform internal.invalid('schedule.local_time', 'is required with the mode user_local');
  elsif (select count(distinct v ->> 'key') <> count(*) from jsonb_array_elements(c.variants) v) then
    perform internal.invalid('variants', 'must have different keys');
  elsif (select sum((v ->> 'weight')::int) from jsonb_array_elements(c.variants) v) > 100 then
    perform internal.invalid('variants', 'must have weights of at most 100 together');
  end if;
  if p ? 'audience' or p ? 'exclude_segment_id' then
    perform internal.campaign_audience_check(c.audience, c.exclude_segment_id);
  end if;
  return c;
end $$;
comment on function internal.campaign_patched is
  'A campaign with the fields of a request, of which its channel takes the content. Refuses 400 VALIDATION_ERROR.
   Granted to nobody.';

create or replace function internal.campaign_start(c app.campaigns, at timestamptz, is_production boolean)
returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  check_name constant text := internal.campaign_hook('check', c.channel);
begin
  if check_name is not null then
    execute format('select internal.%I($1, $2)', check_name) using c, campaign_start.is_production;
  end if;
  -- what a campaign names may have changed since, or be gone
  execute format('select r.* from internal.%I($1, $2) r', 'campaign_patched__' || c.channel) into c using c,
    '{}'::jsonb;
  if internal.campaign_audience_is_empty(c.audience, c.exclude_segment_id) then
    perform internal.fail(400, 'AUDIENCE_EMPTY', 'Nobody is in this audience.',
                          '{"field": "audience", "reason": "has nobody"}');
  end if;
  c.status := 'scheduled';
  c.send_at := campaign_start.at;
  c.scheduled_at := greatest(campaign_start.at, internal.now());
  perform internal.enqueue('campaigns__plan', c.id::text, due_at => c.scheduled_at);
  return c;
end $$;
comment on function internal.campaign_start is
  'A campaign as it is when it is scheduled, null is now; queues its plan. Refuses 400 AUDIENCE_EMPTY, and what its
   channel refuses. Granted to nobody.';

create or replace function internal.campaign_store(c app.campaigns) returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.campaigns s
     set (name, message, audience, exclude_segment_id, send_at, mode, local_time, weekdays, throttle_per_minute,
          quiet_hours, frequency_cap, variants,
          goal_event, inbox, status, is_deleted, updated_at, scheduled_at, finished_at)
       = (c.name, c.message, c.audience, c.exclude_segment_id, c.send_at, c.mode, c.local_time, c.weekdays,
          c.throttle_per_minute, c.quiet_hours,
          c.frequency_cap, c.variants, c.goal_event, c.inbox, c.status, c.is_deleted, c.updated_at, c.scheduled_at,
          c.finished_at)
   where s.id = c.id;
  return c;
end $$;
comment on function internal.campaign_store is 'Writes a campaign that its caller has locked. Granted to nobody.';

create or replace function internal.campaign_create(patch jsonb, is_production boolean, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  made app.campaigns;
  starts constant boolean := coalesce((campaign_create.patch ->> 'send_now')::boolean, false)
                             or campaign_create.patch ->> 'send_at' is not null;
begin
  perform internal.check_caller('developer', 'campaigns are for administrators');
  perform internal.campaign_bucket_lock('campaigns');
  -- before the limit: whoever repeats a request learns that it was done
  if exists (select from app.campaigns c
              where c.channel = campaign_create.channel
                and c.workflow_id = campaign_create.patch ->> 'workflow_id') then
    perform internal.fail(409, 'ALREADY_SCHEDULED', 'workflow_id: A campaign with this workflow id exists.',
                          '{"field": "workflow_id"}');
  end if;
  perform internal.check_limit((select count(*) from app.campaigns c
                                 where c.channel = campaign_create.channel
                                   and c.created_at > internal.now() - interval '24 hours'), 100,
                               'A project makes at most 100 campaigns in 24 hours.');
  made.channel := campaign_create.channel;
  made := internal.campaign_patched(made, campaign_create.patch);
  made.id := internal.new_id();
  made.status := 'draft';
  if starts then
    made := internal.campaign_start(made, case
                                               when not coalesce((campaign_create.patch ->> 'send_now')::boolean,
                                                                 false) then made.send_at end,
                                         campaign_create.is_production);
  end if;
  insert into app.campaigns (id, channel, workflow_id, name, message, audience, exclude_segment_id, send_at, mode,
                             local_time, weekdays, throttle_per_minute,
                                  quiet_hours, frequency_cap, variants, goal_event, inbox, status, scheduled_at)
  values (made.id, made.channel, campaign_create.patch ->> 'workflow_id', made.name, made.message, made.audience,
          made.exclude_segment_id, made.send_at, made.mode,
          made.local_time, made.weekdays, made.throttle_per_minute, made.quiet_hours, made.frequency_cap, made.variants,
          made.goal_event, made.inbox,
          made.status, made.scheduled_at)
  returning * into made;
  return internal.reply(case when starts then 202 else 201 end, case
    when starts then json_build_object('id', made.id, 'workflow_id', made.workflow_id, 'status', made.status)
    else internal.campaign_json(made) end);
end $$;
comment on function internal.campaign_create is
  'A campaign: 201 with a draft, or 202 with {id, workflow_id, status} when send_at or send_now schedules it. Refuses
   400 VALIDATION_ERROR, AUDIENCE_EMPTY, 409 ALREADY_SCHEDULED (the workflow id is taken), LIMIT_REACHED (100 a day),
   and what its channel refuses.';

create or replace function api.campaign_create(patch jsonb, is_production boolean, channel text) returns api.reply
language sql volatile as $$
  select internal.campaign_create(campaign_create.patch, campaign_create.is_production, campaign_create.channel)
$$;
comment on function api.campaign_create is 'Makes a campaign. Refuses as internal.campaign_create.';

create or replace function api.campaign_update(campaign_id uuid, patch jsonb, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.campaigns := internal.campaign_locked(campaign_update.campaign_id, campaign_update.channel);
  was constant timestamptz := campaign.send_at;
begin
  if campaign_update.patch = '{}' then
    return internal.reply(200, internal.campaign_json(campaign));
  elsif campaign.status not in ('draft', 'scheduled') then
    perform internal.campaign_refuse('A campaign changes only before it is sent.');
  end if;
  campaign := internal.campaign_patched(campaign, campaign_update.patch);
  if campaign.status = 'scheduled' then
    if campaign.send_at is distinct from was then
      -- at null a campaign starts: whoever takes the time away does not mean to send it to everybody at once
      if campaign.send_at is null then
        perform internal.invalid('send_at', 'must be a time: the campaign is scheduled');
      end if;
      campaign.scheduled_at := greatest(campaign.send_at, internal.now());
      perform internal.enqueue('campaigns__plan', campaign.id::text, due_at => campaign.scheduled_at);
    end if;
    if internal.campaign_audience_is_empty(campaign.audience, campaign.exclude_segment_id) then
      perform internal.fail(400, 'AUDIENCE_EMPTY', 'Nobody is in this audience.',
                            '{"field": "audience", "reason": "has nobody"}');
    end if;
  end if;
  return internal.reply(200, internal.campaign_json(internal.campaign_store(campaign)));
end $$;
comment on function api.campaign_update is
  'Changes a campaign before it is sent. Refuses 404 NOT_FOUND, 409 CAMPAIGN_LOCKED, 400 VALIDATION_ERROR,
   AUDIENCE_EMPTY. Locks the campaign.';

create or replace function api.campaign_schedule(campaign_id uuid, channel text, is_production boolean,
                                                 send_at timestamptz default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.campaigns := internal.campaign_locked(campaign_schedule.campaign_id, campaign_schedule.channel);
begin
  if campaign.status <> 'draft' then
    perform internal.fail(409, 'ALREADY_SCHEDULED', 'This campaign was scheduled before.');
  end if;
  campaign.updated_at := internal.now();
  campaign := internal.campaign_store(
    internal.campaign_start(campaign, coalesce(campaign_schedule.send_at, campaign.send_at),
                            campaign_schedule.is_production));
  return internal.reply(202, json_build_object('id', campaign.id, 'workflow_id', campaign.workflow_id,
                                               'status', campaign.status));
end $$;
comment on function api.campaign_schedule is
  'Schedules a draft, at its own send_at or now by default: 202. Refuses 404 NOT_FOUND, 409 ALREADY_SCHEDULED, 400
   AUDIENCE_EMPTY, and what its channel refuses. Locks the campaign.';

create or replace function api.campaign_move(campaign_id uuid, verb text, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.campaigns := internal.campaign_locked(campaign_move.campaign_id, campaign_move.channel);
begin
  if campaign_move.verb = 'pause' and campaign.status = 'sending' then
    campaign.status := 'paused';
  elsif campaign_move.verb = 'resume' and campaign.status = 'paused' then
    campaign.status := 'sending';
    perform internal.campaign_wake(campaign);
  elsif campaign_move.verb = 'cancel' and campaign.status in ('scheduled', 'sending', 'paused') then
    campaign.status := 'cancelled';
    campaign.finished_at := internal.now();
    perform internal.enqueue('campaigns__plan', campaign.id::text);
  else
    perform internal.campaign_refuse(format('A campaign that is %s cannot be %s.', campaign.status,
                                                 case campaign_move.verb when 'pause' then 'paused'
                                                      when 'resume' then 'resumed' else 'cancelled' end));
  end if;
  campaign.updated_at := internal.now();
  return internal.reply(200, internal.campaign_json(internal.campaign_store(campaign)));
end $$;
comment on function api.campaign_move is
  'Pauses, resumes or cancels a campaign. Messages that are being sent at this moment still go out. Refuses 404
   NOT_FOUND, 409 CAMPAIGN_LOCKED. Locks the campaign.';

create or replace function api.campaign_duplicate(campaign_id uuid, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.campaigns := internal.campaign_locked(campaign_duplicate.campaign_id, campaign_duplicate.channel);
begin
  return internal.reply(201, (internal.campaign_create(jsonb_build_object(
    'name', left('Copy of ' || campaign.name, 200), 'audience', campaign.audience,
    'exclude_segment_id', campaign.exclude_segment_id,
    'schedule', jsonb_build_object('mode', campaign.mode, 'local_time', campaign.local_time, 'weekdays',
                                   campaign.weekdays),
    'throttle_per_minute', campaign.throttle_per_minute, 'quiet_hours', campaign.quiet_hours,
    'frequency_cap', campaign.frequency_cap,
    'goal_event', campaign.goal_event)
    || internal.campaign_content(campaign)::jsonb,
    false, campaign.channel)).body -> 'data');
end $$;
comment on function api.campaign_duplicate is
  'A draft with the content of a campaign, without its workflow id and time: 201. Refuses 404 NOT_FOUND, 409
   LIMIT_REACHED, 400 VALIDATION_ERROR (a segment that is gone).';

create or replace function api.campaign_delete(campaign_id uuid, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.campaigns := internal.campaign_locked(campaign_delete.campaign_id, campaign_delete.channel);
begin
  if campaign.status in ('sending', 'paused') then
    perform internal.campaign_refuse('A campaign is not deleted while it is sent: cancel it first.');
  end if;
  campaign.is_deleted := true;
  campaign.updated_at := internal.now();
  perform internal.campaign_store(campaign);
  perform internal.enqueue('campaigns__plan', campaign.id::text);
  return internal.reply_deleted();
end $$;
comment on function api.campaign_delete is
  'Deletes a campaign; a worker deletes its deliveries in steps. Refuses 404 NOT_FOUND, 409 CAMPAIGN_LOCKED. Locks the
   campaign.';

create or replace function api.campaign_preview(campaign_id uuid, channel text, user_id uuid default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.campaigns;
begin
  perform internal.check_caller('developer', 'campaigns are for administrators');
  select c.* into campaign
    from app.campaigns c
   where c.id = campaign_preview.campaign_id and c.channel = campaign_preview.channel and not c.is_deleted;
  perform internal.check_found(campaign.id is not null, 'campaign');
  return internal.reply(200, internal.campaign_preview(campaign, campaign_preview.user_id));
end $$;
comment on function api.campaign_preview is
  'Whom a campaign would reach now: internal.campaign_preview of it. Refuses 404 NOT_FOUND, USER_NOT_FOUND.';

create or replace function internal.campaign_test(c app.campaigns, user_ids uuid[]) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign constant app.campaigns := campaign_test.c;
  ids uuid[];
begin
  perform internal.lock_users(campaign_test.user_ids);
  if (select count(distinct i) from unnest(campaign_test.user_ids) i) > (select count(*) from app.users u
                                                                          where u.id = any (
                                                                            campaign_test.user_ids)) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  with tested as (
    -- queues of their own: no worker claims them
    insert into app.campaign_deliveries (queue_id, channel, app_user_id, is_test, inbox, status, due_at)
    select internal.new_id(), campaign.channel, i.id, true, false, 'sending', internal.now()
      from (select w.id, min(w.n) as n from unnest(campaign_test.user_ids) with ordinality w (id, n) group by 1) i
     order by i.n
    returning id
  )
  select array_agg(t.id order by t.id) into ids from tested t;
  perform internal.campaign_send(campaign, campaign.message, ids);
  perform internal.audit(campaign.channel || '.send', campaign.channel, campaign.id::text,
                         json_build_object('users', json_build_array(null, cardinality(ids))), 202);
  return json_build_object('delivery_ids', ids);
end $$;
comment on function internal.campaign_test is
  'Sends the message of a campaign to some users now, whatever speaks against it: {delivery_ids}, in the order of the
   users. What becomes of it is written to the deliveries. Refuses 404 USER_NOT_FOUND. Locks the users. Granted to
   nobody.';

create or replace function api.campaign_test(campaign_id uuid, channel text, user_ids json, is_production boolean)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  user_ids_given constant uuid[] := array(select u::uuid from json_array_elements_text(campaign_test.user_ids) u);
  own constant text := internal.campaign_hook('test', campaign_test.channel);
  campaign app.campaigns;
  made json;
begin
  perform internal.check_caller('developer', 'campaigns are for administrators');
  select c.* into campaign
    from app.campaigns c
   where c.id = campaign_test.campaign_id and c.channel = campaign_test.channel and not c.is_deleted;
  perform internal.check_found(campaign.id is not null, 'campaign');
  if own is null then
    made := internal.campaign_test(campaign, user_ids_given);
  else
    execute format('select internal.%I($1, $2, $3)', own) into made using campaign, user_ids_given,
      campaign_test.is_production;
  end if;
  return internal.reply(202, made);
end $$;
comment on function api.campaign_test is
  'Sends the message of a campaign to some users now, by internal.campaign_test or as its channel does: 202
   {delivery_ids}. Refuses 404 NOT_FOUND and what the channel refuses.';
