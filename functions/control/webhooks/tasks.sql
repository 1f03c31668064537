-- What functions/shared/webhooks asks of its database: tasks, here jobs of graphile-worker. Of the jobs of a queue one
-- runs at a time. The webhooks of one owner share a few queues, and all that are unproven share a few more: receivers
-- that are silent occupy as many slots of the workers, whatever the number of webhooks, organizations and accounts.

create or replace function internal.webhook_lane(webhook_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  select case when exists (select from app.webhook_breakers b where b.webhook_id = w.id and b.failed_in_row > 0)
                   or not exists (select from app.webhook_deliveries v
                                   where v.webhook_id = w.id and v.status = 'delivered')
              then 'webhooks unproven ' || case s.share when 'sandbox' then 'sandbox'
                                                else (hashtext(s.share) & 3)::text end
              when s.share = 'sandbox' then 'webhooks sandbox'
              else 'webhooks ' || s.share || ' ' || (hashtext(w.id::text) & 1) end
    from app.webhooks w
    cross join lateral (select internal.owner_share(w.organization_id) as share) s
   where w.id = webhook_lane.webhook_id
$$;
comment on function internal.webhook_lane is
  'The queue of a webhook''s deliveries: one of two of whoever owns its organization. A webhook that fails, or whose
   receiver has never answered, has one of the four that all owners share instead, the same for all of an owner. So
   silent receivers hold at most five of the twelve slots of a worker, whoever they belong to and however new they are.
   Those of all accounts in the sandbox share two queues, one of them for what is unproven. Granted to nobody.';

create or replace function internal.enqueue(task text, key text, payload jsonb default '{}',
                                            due_at timestamptz default null, lane text default null)
returns void
language sql volatile security definer set search_path = '' as $$
  select graphile_worker.add_job('control_' || enqueue.task,
                                 payload := (enqueue.payload || jsonb_build_object('key', enqueue.key))::json,
                                 queue_name := case
                                   when enqueue.task = 'webhooks__probe' then internal.webhook_lane(enqueue.key::uuid)
                                   when enqueue.lane like 'webhook %' then internal.webhook_lane(
                                     split_part(enqueue.lane, ' ', 2)::uuid)
                                   else enqueue.lane end,
                                 run_at := coalesce(enqueue.due_at, internal.now()), max_attempts := 25,
                                 -- in the queue of what is unproven a new receiver goes before those that have failed,
                                 -- whatever these have waiting
                                 priority := case when enqueue.lane like 'webhook %'
                                                   and not exists (select from app.webhook_breakers b
                                                                    where b.webhook_id = split_part(enqueue.lane, ' ',
                                                                      2)::uuid and b.failed_in_row > 0)
                                                  then -1 else 0 end,
                                 -- of a task that is running another job is made, and the running one is not tried
                                 -- again
                                 job_key := enqueue.task || ' ' || enqueue.key)
$$;
comment on function internal.enqueue is
  'Queues the job control_<task> in this transaction, with deduplication by task and key: the last due_at counts.
   Granted to nobody.';

create or replace function internal.webhook_schedule(delivery_id uuid, due_at timestamptz) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'deliveries are scheduled by workers');
  perform internal.enqueue('webhooks__deliver', d.id::text, due_at => webhook_schedule.due_at,
                           lane => 'webhook ' || d.webhook_id)
     from app.webhook_deliveries d
    where d.id = webhook_schedule.delivery_id;
end $$;
comment on function internal.webhook_schedule is 'Queues the next attempt of a delivery.';

create or replace function api.webhook_attempt_record(
  delivery_id uuid, status_code int, error text, duration_ms int, response_excerpt text, retry_after int default null,
  is_refused boolean default false, is_probe boolean default false, target_url text default null)
returns api.reply
language plpgsql volatile as $$
declare
  again constant timestamptz := internal.webhook_attempt(
    webhook_attempt_record.delivery_id, webhook_attempt_record.status_code, webhook_attempt_record.error,
    webhook_attempt_record.duration_ms, webhook_attempt_record.response_excerpt, webhook_attempt_record.retry_after,
    webhook_attempt_record.is_refused, webhook_attempt_record.is_probe, webhook_attempt_record.target_url);
begin
  perform internal.webhook_schedule(webhook_attempt_record.delivery_id, again) where again is not null;
  return internal.reply(200, null);
end $$;
comment on function api.webhook_attempt_record is
  'internal.webhook_attempt, and the job of the next attempt in the same transaction.';

create or replace function internal.tg_webhook_breakers__lane() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.enqueue('webhooks__deliver', d.id::text, due_at => d.next_attempt_at,
                           lane => 'webhook ' || new.webhook_id)
     from (select d.id, d.next_attempt_at from app.webhook_deliveries d
            where d.webhook_id = new.webhook_id and d.status = 'pending' and d.held_until is null
            order by d.next_attempt_at, d.id limit 1000) d;
  return null;
end $$;
comment on function internal.tg_webhook_breakers__lane is
  'With its first failure a webhook''s deliveries that wait go to the queue of what is unproven: the receiver keeps no
   slot from webhooks that are well.';

create or replace trigger tg_webhook_breakers__lane
  after insert or update of failed_in_row on app.webhook_breakers
  for each row when (new.failed_in_row = 1)
  execute function internal.tg_webhook_breakers__lane();

create or replace function api.webhook_task_repeat(task text, key text, due_at timestamptz) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'worker' or webhook_task_repeat.task not in ('webhooks__probe', 'webhooks__release',
                                                                       'webhooks__purge') then
    raise exception 'workers repeat tasks of webhooks, and no other';
  end if;
  perform internal.enqueue(webhook_task_repeat.task, webhook_task_repeat.key, due_at => webhook_task_repeat.due_at);
  return internal.reply(200, 'true');
end $$;
comment on function api.webhook_task_repeat is 'For jobs: queues a probe, a release or a purge that is due again.';

create or replace function api.control_webhook_owner(webhook_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'receivers of mails are read by workers');
  return internal.reply(200, (
    select json_build_object('email', d.email, 'organization', o.name)
      from app.webhooks w
      join app.organizations o on o.id = w.organization_id
      join app.organization_members m on m.organization_id = o.id
      join app.developers d on d.id = m.developer_id
     where w.id = control_webhook_owner.webhook_id
     order by internal.role_rank(m.role) desc, m.joined_at, d.id
     limit 1));
end $$;
comment on function api.control_webhook_owner is
  'For workers: who is notified about a degraded webhook of the control plane, the first owner of its organization:
   {email, organization}; null when it is deleted.';

create or replace function internal.purge_webhooks() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'forgetting is done by the daily job');
  delete from app.webhook_deliveries d where d.created_at < internal.now() - interval '30 days';
  -- a day after the last delivery that was queued with it
  delete from app.webhook_secrets s where s.replaced_at < internal.now() - interval '31 days';
end $$;
comment on function internal.purge_webhooks is
  'Daily: forgets deliveries with their attempts after 30 days, and signing secrets 31 days after they were replaced.';
