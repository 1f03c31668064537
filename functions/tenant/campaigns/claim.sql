-- Claims: a worker takes the due deliveries of a campaign, some hundreds at a time. Who must not be sent a message now
-- is skipped; the channel sends the others, or queues them, in the same transaction. Claims of a channel come one after
-- the other, by the lock of its bucket, so caps are exact. Locks: the buckets, users, deliveries, then what the channel
-- locks.
create or replace function internal.campaign_bucket_lock(name text) returns app.campaign_buckets
language plpgsql volatile security definer set search_path = '' as $$
declare
  bucket app.campaign_buckets;
begin
  loop
    select b.* into bucket from app.campaign_buckets b where b.name = campaign_bucket_lock.name for no key update;
    exit when found;
    insert into app.campaign_buckets (name, tokens, filled_at)
      values (campaign_bucket_lock.name, 0, '-infinity') on conflict do nothing;
  end loop;
  return bucket;
end $$;
comment on function internal.campaign_bucket_lock is
  'A bucket, made if it is not there, and locked. Granted to nobody.';

create or replace function internal.campaign_bucket_fill(name text, per_second numeric) returns app.campaign_buckets
language plpgsql volatile security definer set search_path = '' as $$
declare
  bucket app.campaign_buckets := internal.campaign_bucket_lock(campaign_bucket_fill.name);
  -- what one second gives may come at once, and at least one message
  most constant numeric := greatest(1, campaign_bucket_fill.per_second);
begin
  bucket.tokens := least(most, case when bucket.filled_at = '-infinity' then most
    else bucket.tokens + greatest(0,
                                  extract(epoch from internal.now()
                                          - bucket.filled_at)) * campaign_bucket_fill.per_second end);
  bucket.filled_at := internal.now();
  return bucket;
end $$;
comment on function internal.campaign_bucket_fill is
  'A token bucket as it is now, locked; its caller stores what it takes. Granted to nobody.';

create or replace function internal.campaign_bucket_store(bucket app.campaign_buckets) returns void
language sql volatile security definer set search_path = '' as $$
  update app.campaign_buckets b
     set tokens = (campaign_bucket_store.bucket).tokens, filled_at = (campaign_bucket_store.bucket).filled_at
   where b.name = (campaign_bucket_store.bucket).name
$$;
comment on function internal.campaign_bucket_store is 'Stores a bucket after tokens were taken. Granted to nobody.';

create or replace function internal.campaign_send(c app.campaigns, content jsonb, delivery_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  outcome record;
begin
  execute format('select array_agg(s.delivery_id) as ids, array_agg(s.status) as statuses, array_agg(s.detail) as '
                 'details from internal.%I($1, $2, $3) s',
                 'campaign_send__' || (campaign_send.c).channel)
     into outcome using campaign_send.c, campaign_send.content, campaign_send.delivery_ids;
  perform internal.campaign_move_deliveries(outcome.ids, outcome.statuses, outcome.details);
end $$;
comment on function internal.campaign_send is
  'Sends a message to the users of deliveries that the caller has locked, by internal.campaign_send__<channel>, and
   writes the outcomes. Granted to nobody.';

create or replace function internal.campaign_claim_rows(c app.campaigns, allowed int, most_waiting int, out picked int,
                                                        out taken int)
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign constant app.campaigns := campaign_claim_rows.c;
  -- of what waits for its outcome there are only so many: nothing more is rendered meanwhile
  places constant int := least(campaign_claim_rows.allowed, campaign_claim_rows.most_waiting - (
    select count(*) from (select from app.campaign_deliveries d
                           where d.campaign_id = campaign.id and d.status = 'sending'
                             limit campaign_claim_rows.most_waiting) w));
  ids uuid[];
  variant record;
  decided record;
begin
  picked := 0;
  taken := 0;
  if places <= 0 then
    return;
  end if;
  -- users are locked as merges lock them: one that is just merged or deleted is passed over
  ids := array(
    select d.id
      from app.campaign_deliveries d
      join app.users u on u.id = d.app_user_id
     where d.queue_id = campaign.id and d.status = 'pending' and d.due_at <= internal.now()
     order by d.due_at, d.id
     limit 200
       for update of d skip locked for no key update of u skip locked);
  for variant in
    select d.variant as key, internal.campaign_content_of(campaign, d.variant) as content, array_agg(d.id) as ids
      from app.campaign_deliveries d
     where d.id = any (ids)
     group by 1, 2
     order by min(d.due_at), 1
  loop
    execute format($query$
      with reasons as materialized (
        select d.id, d.due_at, case when u.is_banned then 'opted_out'
                                    else coalesce(r.refused, h.reason, r.unreachable) end as reason
          from app.campaign_deliveries d
          join app.users u on u.id = d.app_user_id
          left join app.timezones z on z.name = u.timezone
          join internal.%I($2, array(select o.app_user_id from app.campaign_deliveries o where o.id = any ($1))) r
            on r.app_user_id = d.app_user_id
         cross join lateral internal.campaign_held_back($3, $4, r.own_quiet_hours,
                                                        ($5 at time zone coalesce(z.name, 'UTC'))::time, $6,
                                                          d.app_user_id, d.id, $5) h
         where d.id = any ($1)
      )
      select array(select w.id from reasons w where w.reason is not null order by w.id) as skipped,
             array(select w.reason from reasons w where w.reason is not null order by w.id) as reasons,
             array(select w.id from reasons w where w.reason is null order by w.due_at, w.id limit $7) as fitting
    $query$, 'campaign_reached__' || campaign.channel)
       into decided
      using variant.ids, variant.content, campaign.channel, campaign.quiet_hours, internal.now(),
        campaign.frequency_cap, places - taken;
    if decided.skipped <> '{}' then
      perform internal.campaign_move_deliveries(decided.skipped,
                                                array_fill('skipped'::text, array[cardinality(decided.skipped)]),
                                                  decided.reasons);
    end if;
    if decided.fitting <> '{}' then
      perform internal.campaign_send(campaign, variant.content, decided.fitting);
    end if;
    picked := picked + cardinality(decided.skipped) + cardinality(decided.fitting);
    taken := taken + cardinality(decided.fitting);
  end loop;
end $$;
comment on function internal.campaign_claim_rows is
  'Sends up to so many due deliveries of a campaign, and skips those that must not be sent, 200 of both at most: picked
   counts both, taken those that were sent. With most_waiting no more than so many of the campaign wait for their
   outcome. Granted to nobody.';

create or replace function internal.campaign_next_at(queue uuid, channel internal.campaign_channels) returns timestamptz
language plpgsql stable security definer set search_path = '' as $$
begin
  if (campaign_next_at.channel).lease is not null then
    -- what another turn is sending is over in seconds, long before its lease is
    return (select case d.status when 'sending' then least(d.due_at, internal.now() + interval '5 seconds')
                        else d.due_at end
              from app.campaign_deliveries d
             where d.queue_id = campaign_next_at.queue and d.status in ('pending', 'sending')
             order by d.due_at limit 1);
  end if;
  return (select case when w.n >= (campaign_next_at.channel).most_waiting or p.due_at is null and w.n > 0
                      then greatest(p.due_at, internal.now() + interval '10 seconds') else p.due_at end
            from (select count(*) as n
                    from (select from app.campaign_deliveries d
                           where d.campaign_id = campaign_next_at.queue and d.status = 'sending'
                           limit coalesce((campaign_next_at.channel).most_waiting, 1)) s) w
            left join lateral (
              select d.due_at from app.campaign_deliveries d
               where d.queue_id = campaign_next_at.queue and d.status = 'pending'
               order by d.due_at limit 1) p on true);
end $$;
comment on function internal.campaign_next_at is
  'When a queue has more to do: when the next delivery is due, or its lease ends; in ten seconds while messages wait for
   an outcome that the channel will write; null when nothing is left. Granted to nobody.';

create or replace function api.campaign_claim(queue uuid, most int, is_production boolean, channel text default null)
returns api.reply
language plpgsql volatile security definer set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
declare
  direct constant uuid := '00000000-0000-0000-0000-000000000000';
  -- of a campaign that is gone nothing is left
  nothing constant json := '{"deliveries": [], "picked": 0, "next_at": null}';
  of_channel internal.campaign_channels;
  own text;
  per_second numeric;
  c app.campaigns;
  all_of_it app.campaign_buckets;
  throttle app.campaign_buckets;
  allowed int;
  claimed record;
  next_at timestamptz;
begin
  perform internal.check_caller('worker', 'messages are sent by workers');
  select k.* into of_channel
    from internal.campaign_channels k
   where k.channel = coalesce(campaign_claim.channel,
                              (select o.channel from app.campaigns o where o.id = campaign_claim.queue));
  if not found then
    return internal.reply(200, nothing);
  end if;
  own := internal.campaign_hook('claim', of_channel.channel);
  per_second := coalesce((internal.setting(of_channel.channel || '.sends_per_second') #>> '{}')::numeric,
                         of_channel.sends_per_second);
  all_of_it := internal.campaign_bucket_fill('channel ' || of_channel.channel, per_second);
  if campaign_claim.queue <> direct then
    -- read after the lock: what an administrator has stopped before is not sent
    select k.* into c from app.campaigns k where k.id = campaign_claim.queue and not k.is_deleted;
    if c.status is distinct from 'sending' then
      return internal.reply(200, nothing);
    end if;
  end if;
  allowed := least(campaign_claim.most, floor(all_of_it.tokens));
  if c.throttle_per_minute is not null then
    throttle := internal.campaign_bucket_fill(c.id::text, c.throttle_per_minute / 60.0);
    allowed := least(allowed, floor(throttle.tokens));
  end if;
  -- as columns: to read one from the JSON of hundreds of deliveries means to read all of it
  if allowed <= 0 then
    select '[]'::json as deliveries, 0 as picked, 0 as taken, null::timestamptz as held_until into claimed;
  elsif own is null then
    select '[]'::json as deliveries, r.picked, r.taken, null::timestamptz as held_until into claimed
      from internal.campaign_claim_rows(c, allowed, of_channel.most_waiting) r;
  else
    execute format('select r.deliveries, r.picked, r.taken, r.held_until from internal.%I($1, $2, $3) r',
                   own) into claimed using campaign_claim.queue, allowed, campaign_claim.is_production;
  end if;
  if claimed.held_until is not null then
    return internal.reply(200, json_build_object('deliveries', '[]'::json, 'picked', 0,
                                                 'next_at', internal.iso(claimed.held_until)));
  end if;
  all_of_it.tokens := all_of_it.tokens - claimed.taken;
  perform internal.campaign_bucket_store(all_of_it);
  if c.throttle_per_minute is not null then
    throttle.tokens := throttle.tokens - claimed.taken;
    perform internal.campaign_bucket_store(throttle);
  end if;
  next_at := internal.campaign_next_at(campaign_claim.queue, of_channel);
  if next_at is null and c.id is not null then
    update app.campaigns k
       set status = 'sent', finished_at = internal.now()
     where k.id = c.id and k.status = 'sending'
       and exists (select from app.campaign_plans p where p.campaign_id = k.id and p.planned_at is not null)
       and not exists (select from app.campaign_deliveries d
                        where d.queue_id = k.id and d.status in ('pending', 'sending'));
  end if;
  -- not before there are tokens; greatest passes over nulls, and nothing left is null
  next_at := case when next_at is not null then greatest(next_at, internal.now() + make_interval(secs => greatest(
    case when all_of_it.tokens < 1 then (1 - all_of_it.tokens) / per_second end,
    case when throttle.tokens < 1 then (1 - throttle.tokens) * 60.0 / c.throttle_per_minute end,
    0)::double precision)) end;
  return internal.reply(200, json_build_object('deliveries', claimed.deliveries, 'picked', claimed.picked,
                                               'next_at', internal.iso(next_at)));
end $$;
comment on function api.campaign_claim is
  'For the worker: claims due deliveries of a campaign, or of the queue of a channel''s direct sends (the nil uuid, with
   channel): {deliveries, picked, next_at}. deliveries are those that the worker has to send, none where the channel has
   sent or queued them. next_at is when more may be due, null when nothing is left; a campaign whose last delivery is
   over is sent then. Serialises the claims of a channel.';
