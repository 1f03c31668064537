-- What is the same for every subscription: its signing secret, and what becomes of its deliveries when it is deleted.
create or replace function internal.webhook_not_found() returns void
language sql volatile
return internal.fail(404, 'NOT_FOUND', 'There is no such webhook.');
comment on function internal.webhook_not_found is 'Refuses 404 NOT_FOUND.';

create or replace function api.webhook_rotate_secret(webhook_id uuid, secret_sealed text) returns api.reply
language plpgsql volatile as $$
declare
  hook app.webhooks;
begin
  update app.webhooks w
     set secret_id = internal.new_id(), updated_at = internal.now()
   where w.id = webhook_rotate_secret.webhook_id
  returning w.* into hook;
  if hook.id is null then
    perform internal.webhook_not_found();
  end if;
  insert into app.webhook_secrets (id, webhook_id, secret_sealed)
  values (hook.secret_id, hook.id, webhook_rotate_secret.secret_sealed);
  return internal.reply(200, '{}');
end $$;
comment on function api.webhook_rotate_secret is
  'Replaces the signing secret for deliveries that are queued from now on; the server shows it in this response only.
   Deliveries that are queued already keep the secret that they were queued with. Refuses 404 NOT_FOUND. Locks the
   subscription.';

create or replace function internal.tg_webhooks__secret() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.webhook_secrets s set replaced_at = internal.now() where s.id = old.secret_id;
  return null;
end $$;
comment on function internal.tg_webhooks__secret is
  'Records when a secret was replaced, so that the daily purge can delete it once no delivery needs it.';

create or replace trigger tg_webhooks__secret
  after update of secret_id on app.webhooks
  for each row when (old.secret_id is distinct from new.secret_id)
  execute function internal.tg_webhooks__secret();

create or replace function internal.tg_webhooks__purge() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from app.webhook_deliveries d where d.webhook_id = old.id) then
    perform internal.enqueue('webhooks__purge', old.id::text);
  end if;
  return null;
end $$;
comment on function internal.tg_webhooks__purge is
  'Queues the deletion of a deleted subscription''s deliveries as a background task.';

create or replace trigger tg_webhooks__purge
  after delete on app.webhooks
  for each row execute function internal.tg_webhooks__purge();

create or replace function api.webhook_purge(webhook_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  removed int;
begin
  delete from app.webhook_deliveries d
   where d.id in (select c.id from app.webhook_deliveries c where c.webhook_id = webhook_purge.webhook_id limit 1000)
     and not exists (select from app.webhooks w where w.id = webhook_purge.webhook_id);
  get diagnostics removed = row_count;
  return internal.reply(200, to_json(removed = 1000));
end $$;
comment on function api.webhook_purge is
  'Deletes up to 1,000 deliveries of a deleted subscription with their attempts. Answers whether more may be left.';
