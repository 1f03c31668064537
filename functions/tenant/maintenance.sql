-- What has outlived its use, forgotten once a day. Whatever still counts is kept: a day late is never wrong.
create or replace function api.tenant_forget() returns api.reply
language plpgsql volatile as $$
begin
  delete from app.event_ids i where i.received_at < internal.now() - interval '90 days';
  delete from app.idempotency_keys k where k.created_at < internal.now() - interval '24 hours';
  delete from app.rate_limits r where r.started_at < internal.now() - interval '2 days';
  delete from app.webhook_deliveries d where d.created_at < internal.now() - interval '30 days';
  perform internal.collections_purge();
  return internal.reply(200, 'true');
end $$;
comment on function api.tenant_forget is
  'Forgets ids that clients chose after 90 days, answers under an Idempotency-Key after 24 hours, limits'' windows after two days, and deliveries with
   their attempts after 30 days; removes rows of collections 30 days after their deletion.';
