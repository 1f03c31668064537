-- The synthetic delivery of a project's subscription.
create or replace function api.webhook_test(webhook_id uuid) returns api.reply
language plpgsql stable as $$
declare
  hook app.webhooks;
  sealed text;
  event_id constant uuid := internal.new_id();
  delivery_id constant uuid := internal.new_id();
begin
  select w.* into hook from app.webhooks w where w.id = webhook_test.webhook_id;
  if hook.id is null then
    perform internal.webhook_not_found();
  end if;
  select s.secret_sealed into sealed from app.webhook_secrets s where s.id = hook.secret_id;
  return internal.reply(200, json_build_object(
    'id', delivery_id, 'event_id', event_id, 'event_name', 'svc.webhook.test',
    'payload', internal.webhook_body(
      delivery_id, 'svc.webhook.test', internal.setting('project_id') #>> '{}',
      internal.webhook_event_json(event_id, 'svc.webhook.test', '{}', internal.now(), 'system', null), null),
    'attempt', 1, 'target_url', hook.target_url, 'secret_sealed', sealed,
    'idempotency_key', internal.uuid5(hook.id, event_id::text),
    'sent_at', floor(extract(epoch from internal.now()))::bigint));
end $$;
comment on function api.webhook_test is
  'A synthetic delivery for the server to send. It is not stored, so neither the circuit breaker nor the stats count it.
   Refuses 404 NOT_FOUND.';
