-- Campaigns of push and mail: what administrators do with them. A campaign has a channel, and a function that names a campaign of another one finds none. What
-- differs for mail is in functions/tenant/email/campaigns.sql. Definer functions, because a campaign that starts queues tasks. Locks: the bucket "campaigns" of
-- a creation, then the campaign, then templates, then segments.
comment on constraint push_campaigns_workflow_id_unique on app.push_campaigns is
  '409 ALREADY_SCHEDULED workflow_id: A campaign with this workflow id exists.';

-- rows are deleted by workers, which the audit trail does not record
create or replace trigger tg_push_campaigns__audit
  after insert or update on app.push_campaigns
  for each row when (new.channel = 'push') execute function internal.tg_audit('push');
create or replace trigger tg_push_campaigns__audit_of_mail
  after insert or update on app.push_campaigns
  for each row when (new.channel = 'email') execute function internal.tg_audit('email');

create or replace function internal.push_developer_check() returns void
language plpgsql stable as $$
begin
  perform internal.check_caller('developer', 'messages are sent by administrators');
end $$;
comment on function internal.push_developer_check is 'Raises for callers who are no administrators.';

create or replace function internal.push_counts_json(source_id uuid, hour timestamptz default '-infinity', variant text default null,
                                                     is_mail boolean default false) returns json
language sql stable as $$
  select internal.json_merge(json_build_object(
    'targeted', coalesce(sum(n.targeted), 0), 'sent', coalesce(sum(n.sent), 0), 'failed', coalesce(sum(n.failed), 0),
    'skipped', coalesce(sum(n.skipped), 0), 'opened', coalesce(sum(n.opened), 0), 'converted', coalesce(sum(n.converted), 0)),
    case when push_counts_json.is_mail then json_build_object('clicked', coalesce(sum(n.clicked), 0)) else '{}' end)
    from app.push_counts n
   where n.source_id = push_counts_json.source_id and n.hour = push_counts_json.hour
     and (push_counts_json.variant is null or n.variant = push_counts_json.variant)
$$;
comment on function internal.push_counts_json is 'The counts of a campaign or an automation: of all hours by default, and of all variants; of mail with clicked.';

create or replace function internal.push_campaign_json(c app.push_campaigns) returns json
language sql stable as $$
  select internal.json_merge(json_build_object(
    'id', (push_campaign_json.c).id, 'workflow_id', (push_campaign_json.c).workflow_id, 'name', (push_campaign_json.c).name),
  internal.json_merge(case (push_campaign_json.c).channel
    when 'email' then internal.email_campaign_content((push_campaign_json.c).message, (push_campaign_json.c).variants)
    else json_build_object('message', (push_campaign_json.c).message, 'variants', (push_campaign_json.c).variants, 'inbox', (push_campaign_json.c).inbox) end,
  json_build_object(
    'audience', (push_campaign_json.c).audience, 'exclude_segment_id', (push_campaign_json.c).exclude_segment_id,
    'schedule', json_build_object('send_at', internal.iso((push_campaign_json.c).send_at), 'mode', (push_campaign_json.c).mode,
                                  'local_time', (push_campaign_json.c).local_time, 'weekdays', (push_campaign_json.c).weekdays),
    'throttle_per_minute', (push_campaign_json.c).throttle_per_minute, 'quiet_hours', (push_campaign_json.c).quiet_hours,
    'frequency_cap', (push_campaign_json.c).frequency_cap, 'goal_event', (push_campaign_json.c).goal_event,
    'status', (push_campaign_json.c).status, 'failure', (push_campaign_json.c).failure,
    'counts', internal.push_counts_json((push_campaign_json.c).id, is_mail => (push_campaign_json.c).channel = 'email'),
    'created_at', internal.iso((push_campaign_json.c).created_at), 'updated_at', internal.iso((push_campaign_json.c).updated_at),
    'scheduled_at', internal.iso((push_campaign_json.c).scheduled_at), 'started_at', internal.iso((push_campaign_json.c).started_at),
    'finished_at', internal.iso((push_campaign_json.c).finished_at))))
$$;
comment on function internal.push_campaign_json is 'A campaign as responses show it.';

create or replace function internal.push_campaign_locked(campaign_id uuid, channel text) returns app.push_campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  found_one app.push_campaigns;
begin
  perform internal.push_developer_check();
  select c.* into found_one from app.push_campaigns c where c.id = push_campaign_locked.campaign_id for no key update;
  perform internal.check_found(found_one.channel = push_campaign_locked.channel and not found_one.is_deleted, 'campaign');
  return found_one;
end $$;
comment on function internal.push_campaign_locked is 'A campaign, locked. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.push_campaign_refuse(message text) returns void
language sql volatile
return internal.fail(409, 'CAMPAIGN_LOCKED', push_campaign_refuse.message);
comment on function internal.push_campaign_refuse is 'Refuses 409 CAMPAIGN_LOCKED: the state of the campaign does not allow it.';

create or replace function internal.push_campaign_patched(c app.push_campaigns, patch jsonb) returns app.push_campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  p constant jsonb := push_campaign_patched.patch;
  s constant jsonb := coalesce(nullif(p -> 'schedule', 'null'), '{}');
begin
  c.name := case when p ? 'name' then p ->> 'name' else c.name end;
  if c.channel = 'email' then
    c := internal.email_campaign_patched(c, p);
  else
    c.message := coalesce(p -> 'message', c.message);
    c.variants := coalesce(p -> 'variants', c.variants, '[]');
  end if;
  c.audience := coalesce(p -> 'audience', c.audience);
  c.exclude_segment_id := case when p ? 'exclude_segment_id' then (p ->> 'exclude_segment_id')::uuid else c.exclude_segment_id end;
  c.send_at := case when p ? 'send_at' then (p ->> 'send_at')::timestamptz when s ? 'send_at' then (s ->> 'send_at')::timestamptz else c.send_at end;
  c.mode := coalesce(s ->> 'mode', c.mode, 'absolute');
  c.local_time := case when s ? 'local_time' then s ->> 'local_time' else c.local_time end;
  c.weekdays := case when jsonb_typeof(s -> 'weekdays') = 'array' then array(select distinct d::int from jsonb_array_elements_text(s -> 'weekdays') d order by 1)
                     when s ? 'weekdays' then null else c.weekdays end;
  c.throttle_per_minute := case when p ? 'throttle_per_minute' then (p ->> 'throttle_per_minute')::int else c.throttle_per_minute end;
  c.quiet_hours := case when p ? 'quiet_hours' then nullif(p -> 'quiet_hours', 'null') else c.quiet_hours end;
  c.frequency_cap := case when p ? 'frequency_cap' then nullif(p -> 'frequency_cap', 'null') else c.frequency_cap end;
  c.goal_event := case when p ? 'goal_event' then p ->> 'goal_event' else c.goal_event end;
  c.inbox := coalesce((p ->> 'inbox')::boolean, c.inbox, true);
  c.updated_at := internal.now();
  if c.mode = 'user_local' and c.local_time is null then
    perform internal.invalid('schedule.local_time', 'is required with the mode user_local');
  elsif (select count(distinct v ->> 'key') <> count(*) from jsonb_array_elements(c.variants) v) then
    perform internal.invalid('variants', 'must have different keys');
  elsif (select sum((v ->> 'weight')::int) from jsonb_array_elements(c.variants) v) > 100 then
    perform internal.invalid('variants', 'must have weights of at most 100 together');
  end if;
  if p ? 'audience' or p ? 'exclude_segment_id' then
    perform internal.push_audience_check(c.audience, c.exclude_segment_id);
  end if;
  if c.channel = 'push' then
    perform internal.push_categories_note(array[c.message] || array(select v -> 'message' from jsonb_array_elements(c.variants) v));
  end if;
  return c;
end $$;
comment on function internal.push_campaign_patched is 'A campaign with the fields of a request. Refuses 400 VALIDATION_ERROR. Granted to nobody.';

create or replace function internal.push_configured_check(is_production boolean, platforms text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if push_configured_check.is_production and not exists (
       select from app.integrations i where i.is_active and i.provider = 'log')
     and (case when push_configured_check.platforms is null
               then not exists (select from app.integrations i where i.is_active and i.provider in ('apns', 'fcm'))
               else exists (select from unnest(push_configured_check.platforms) p
                             where not exists (select from app.integrations i
                                                where i.is_active and i.provider = case p when 'ios' then 'apns' else 'fcm' end)) end) then
    perform internal.fail(400, 'PUSH_NOT_CONFIGURED', 'Connect a push provider first: POST .../integrations with apns or fcm.');
  end if;
end $$;
comment on function internal.push_configured_check is
  'Refuses 400 PUSH_NOT_CONFIGURED in a production project: when one of these platforms has no provider, or for null, when there is none at all. Granted to nobody.';

create or replace function internal.push_campaign_start(c app.push_campaigns, at timestamptz, is_production boolean) returns app.push_campaigns
language plpgsql volatile security definer set search_path = '' as $$
begin
  if c.channel = 'push' then
    perform internal.push_configured_check(push_campaign_start.is_production, null);
  else
    -- as the templates are now: one may have become transactional, or be gone
    c := internal.email_campaign_patched(c, '{}');
  end if;
  if internal.push_audience_is_empty(c.audience, c.exclude_segment_id) then
    perform internal.fail(400, 'AUDIENCE_EMPTY', 'Nobody is in this audience.', '{"field": "audience", "reason": "has nobody"}');
  end if;
  c.status := 'scheduled';
  c.send_at := push_campaign_start.at;
  c.scheduled_at := greatest(push_campaign_start.at, internal.now());
  perform internal.enqueue('push__plan', c.id::text, due_at => c.scheduled_at);
  return c;
end $$;
comment on function internal.push_campaign_start is
  'A campaign as it is when it is scheduled, null is now; queues its plan. Refuses 400 PUSH_NOT_CONFIGURED, AUDIENCE_EMPTY. Granted to nobody.';

create or replace function internal.push_campaign_store(c app.push_campaigns) returns app.push_campaigns
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.push_campaigns s
     set (name, message, audience, exclude_segment_id, send_at, mode, local_time, weekdays, throttle_per_minute, quiet_hours, frequency_cap, variants,
          goal_event, inbox, status, is_deleted, updated_at, scheduled_at, finished_at)
       = (c.name, c.message, c.audience, c.exclude_segment_id, c.send_at, c.mode, c.local_time, c.weekdays, c.throttle_per_minute, c.quiet_hours,
          c.frequency_cap, c.variants, c.goal_event, c.inbox, c.status, c.is_deleted, c.updated_at, c.scheduled_at, c.finished_at)
   where s.id = c.id;
  return c;
end $$;
comment on function internal.push_campaign_store is 'Writes a campaign that its caller has locked. Granted to nobody.';

create or replace function internal.push_bucket_lock(name text) returns app.push_buckets
language plpgsql volatile security definer set search_path = '' as $$
declare
  bucket app.push_buckets;
begin
  loop
    select b.* into bucket from app.push_buckets b where b.name = push_bucket_lock.name for no key update;
    exit when found;
    insert into app.push_buckets (name, tokens, filled_at) values (push_bucket_lock.name, 0, '-infinity') on conflict do nothing;
  end loop;
  return bucket;
end $$;
comment on function internal.push_bucket_lock is 'A bucket, made if it is not there, and locked. Granted to nobody.';

create or replace function internal.push_campaign_create(patch jsonb, is_production boolean, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  made app.push_campaigns;
  starts constant boolean := coalesce((push_campaign_create.patch ->> 'send_now')::boolean, false)
                             or push_campaign_create.patch ->> 'send_at' is not null;
begin
  perform internal.push_developer_check();
  perform internal.push_bucket_lock('campaigns');
  -- before the limit: whoever repeats a request learns that it was done
  if exists (select from app.push_campaigns c
              where c.channel = push_campaign_create.channel and c.workflow_id = push_campaign_create.patch ->> 'workflow_id') then
    perform internal.fail(409, 'ALREADY_SCHEDULED', 'workflow_id: A campaign with this workflow id exists.', '{"field": "workflow_id"}');
  end if;
  perform internal.check_limit((select count(*) from app.push_campaigns c
                                 where c.channel = push_campaign_create.channel and c.created_at > internal.now() - interval '24 hours'), 100,
                               'A project makes at most 100 campaigns in 24 hours.');
  made.channel := push_campaign_create.channel;
  made := internal.push_campaign_patched(made, push_campaign_create.patch);
  made.id := internal.new_id();
  made.status := 'draft';
  if starts then
    made := internal.push_campaign_start(made, case when not coalesce((push_campaign_create.patch ->> 'send_now')::boolean, false) then made.send_at end,
                                         push_campaign_create.is_production);
  end if;
  insert into app.push_campaigns (id, channel, workflow_id, name, message, audience, exclude_segment_id, send_at, mode, local_time, weekdays, throttle_per_minute,
                                  quiet_hours, frequency_cap, variants, goal_event, inbox, status, scheduled_at)
  values (made.id, made.channel, push_campaign_create.patch ->> 'workflow_id', made.name, made.message, made.audience, made.exclude_segment_id, made.send_at, made.mode,
          made.local_time, made.weekdays, made.throttle_per_minute, made.quiet_hours, made.frequency_cap, made.variants, made.goal_event, made.inbox,
          made.status, made.scheduled_at)
  returning * into made;
  return internal.reply(case when starts then 202 else 201 end, case
    when starts then json_build_object('id', made.id, 'workflow_id', made.workflow_id, 'status', made.status)
    else internal.push_campaign_json(made) end);
end $$;
comment on function internal.push_campaign_create is
  'A campaign: 201 with a draft, or 202 with {id, workflow_id, status} when send_at or send_now schedules it. Refuses 400 VALIDATION_ERROR, AUDIENCE_EMPTY,
   PUSH_NOT_CONFIGURED, 409 ALREADY_SCHEDULED (the workflow id is taken), LIMIT_REACHED (100 a day).';

create or replace function api.push_campaign_create(patch jsonb, is_production boolean, channel text default 'push') returns api.reply
language sql volatile as $$
  select internal.push_campaign_create(push_campaign_create.patch, push_campaign_create.is_production, push_campaign_create.channel)
$$;
comment on function api.push_campaign_create is 'Makes a campaign. Refuses as internal.push_campaign_create.';

create or replace function api.push_campaign_update(campaign_id uuid, patch jsonb, channel text default 'push') returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.push_campaigns := internal.push_campaign_locked(push_campaign_update.campaign_id, push_campaign_update.channel);
  was constant timestamptz := campaign.send_at;
begin
  if push_campaign_update.patch = '{}' then
    return internal.reply(200, internal.push_campaign_json(campaign));
  elsif campaign.status not in ('draft', 'scheduled') then
    perform internal.push_campaign_refuse('A campaign changes only before it is sent.');
  end if;
  campaign := internal.push_campaign_patched(campaign, push_campaign_update.patch);
  if campaign.status = 'scheduled' then
    if campaign.send_at is distinct from was then
      -- at null a campaign starts: whoever takes the time away does not mean to send it to everybody at once
      if campaign.send_at is null then
        perform internal.invalid('send_at', 'must be a time: the campaign is scheduled');
      end if;
      campaign.scheduled_at := greatest(campaign.send_at, internal.now());
      perform internal.enqueue('push__plan', campaign.id::text, due_at => campaign.scheduled_at);
    end if;
    if internal.push_audience_is_empty(campaign.audience, campaign.exclude_segment_id) then
      perform internal.fail(400, 'AUDIENCE_EMPTY', 'Nobody is in this audience.', '{"field": "audience", "reason": "has nobody"}');
    end if;
  end if;
  return internal.reply(200, internal.push_campaign_json(internal.push_campaign_store(campaign)));
end $$;
comment on function api.push_campaign_update is
  'Changes a campaign before it is sent. Refuses 404 NOT_FOUND, 409 CAMPAIGN_LOCKED, 400 VALIDATION_ERROR, AUDIENCE_EMPTY. Locks the campaign.';

create or replace function api.push_campaign_schedule(campaign_id uuid, is_production boolean, send_at timestamptz default null, channel text default 'push')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.push_campaigns := internal.push_campaign_locked(push_campaign_schedule.campaign_id, push_campaign_schedule.channel);
begin
  if campaign.status <> 'draft' then
    perform internal.fail(409, 'ALREADY_SCHEDULED', 'This campaign was scheduled before.');
  end if;
  campaign.updated_at := internal.now();
  campaign := internal.push_campaign_store(
    internal.push_campaign_start(campaign, coalesce(push_campaign_schedule.send_at, campaign.send_at), push_campaign_schedule.is_production));
  return internal.reply(202, json_build_object('id', campaign.id, 'workflow_id', campaign.workflow_id, 'status', campaign.status));
end $$;
comment on function api.push_campaign_schedule is
  'Schedules a draft, at its own send_at or now by default: 202. Refuses 404 NOT_FOUND, 409 ALREADY_SCHEDULED, 400 AUDIENCE_EMPTY. A push also needs
   a provider: 400 PUSH_NOT_CONFIGURED. Locks the campaign.';

create or replace function api.push_campaign_move(campaign_id uuid, verb text, channel text default 'push') returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.push_campaigns := internal.push_campaign_locked(push_campaign_move.campaign_id, push_campaign_move.channel);
begin
  if push_campaign_move.verb = 'pause' and campaign.status = 'sending' then
    campaign.status := 'paused';
  elsif push_campaign_move.verb = 'resume' and campaign.status = 'paused' then
    campaign.status := 'sending';
    perform internal.enqueue('push__send', campaign.id::text);
  elsif push_campaign_move.verb = 'cancel' and campaign.status in ('scheduled', 'sending', 'paused') then
    campaign.status := 'cancelled';
    campaign.finished_at := internal.now();
    perform internal.enqueue('push__plan', campaign.id::text);
  else
    perform internal.push_campaign_refuse(format('A campaign that is %s cannot be %s.', campaign.status,
                                                 case push_campaign_move.verb when 'pause' then 'paused' when 'resume' then 'resumed' else 'cancelled' end));
  end if;
  campaign.updated_at := internal.now();
  return internal.reply(200, internal.push_campaign_json(internal.push_campaign_store(campaign)));
end $$;
comment on function api.push_campaign_move is
  'Pauses, resumes or cancels a campaign. Messages that are being sent at this moment still go out. Refuses 404 NOT_FOUND, 409 CAMPAIGN_LOCKED. Locks
   the campaign.';

create or replace function api.push_campaign_duplicate(campaign_id uuid, channel text default 'push') returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.push_campaigns := internal.push_campaign_locked(push_campaign_duplicate.campaign_id, push_campaign_duplicate.channel);
begin
  return internal.reply(201, (internal.push_campaign_create(jsonb_build_object(
    'name', left('Copy of ' || campaign.name, 200), 'audience', campaign.audience,
    'exclude_segment_id', campaign.exclude_segment_id,
    'schedule', jsonb_build_object('mode', campaign.mode, 'local_time', campaign.local_time, 'weekdays', campaign.weekdays),
    'throttle_per_minute', campaign.throttle_per_minute, 'quiet_hours', campaign.quiet_hours, 'frequency_cap', campaign.frequency_cap,
    'goal_event', campaign.goal_event)
    || case campaign.channel when 'email' then internal.email_campaign_content(campaign.message, campaign.variants)::jsonb
       else jsonb_build_object('message', campaign.message, 'variants', campaign.variants, 'inbox', campaign.inbox) end,
    false, campaign.channel)).body -> 'data');
end $$;
comment on function api.push_campaign_duplicate is
  'A draft with the content of a campaign, without its workflow id and time: 201. Refuses 404 NOT_FOUND, 409 LIMIT_REACHED, 400 VALIDATION_ERROR (a
   segment that is gone).';

create or replace function api.push_campaign_delete(campaign_id uuid, channel text default 'push') returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.push_campaigns := internal.push_campaign_locked(push_campaign_delete.campaign_id, push_campaign_delete.channel);
begin
  if campaign.status in ('sending', 'paused') then
    perform internal.push_campaign_refuse('A campaign is not deleted while it is sent: cancel it first.');
  end if;
  campaign.is_deleted := true;
  campaign.updated_at := internal.now();
  perform internal.push_campaign_store(campaign);
  perform internal.enqueue('push__plan', campaign.id::text);
  return internal.reply_deleted();
end $$;
comment on function api.push_campaign_delete is
  'Deletes a campaign; a worker deletes its deliveries in steps. Refuses 404 NOT_FOUND, 409 CAMPAIGN_LOCKED. Locks the campaign.';

create or replace function api.push_campaign_preview(campaign_id uuid, user_id uuid default null, channel text default 'push') returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign app.push_campaigns;
begin
  perform internal.push_developer_check();
  select c.* into campaign
    from app.push_campaigns c
   where c.id = push_campaign_preview.campaign_id and c.channel = push_campaign_preview.channel and not c.is_deleted;
  perform internal.check_found(campaign.id is not null, 'campaign');
  if campaign.channel = 'email' then
    return internal.reply(200, internal.email_preview(campaign, push_campaign_preview.user_id));
  end if;
  return internal.reply(200, internal.push_preview(campaign, push_campaign_preview.user_id));
end $$;
comment on function api.push_campaign_preview is
  'Whom a campaign would reach now: internal.push_preview or internal.email_preview of it. Refuses 404 NOT_FOUND, USER_NOT_FOUND.';
