-- Webhooks of the control plane: administration, for admins of the organization that a webhook belongs to. Attempts,
-- retries and the circuit breaker are in functions/shared/webhooks, as for webhooks of projects. Every change locks the
-- organization first, so that changes come one after the other.
create or replace function internal.control_event_types() returns text[]
language sql immutable parallel safe
return array['project.created', 'project.deleted', 'project.provisioned', 'project.provisioning_failed',
             'api_key.created', 'api_key.revoked', 'member.joined',
             'member.removed', 'deployment.ready', 'deployment.failed', 'quota.warning', 'quota.exceeded',
             'webhook.degraded', 'domain.verified', 'audit.event'];
comment on function internal.control_event_types is 'The types that a webhook may name beside *.';

select internal.row_declare('webhook_json', null::app.webhooks,
                            '{id,organization_id,event_types,target_url,status,created_at,updated_at}');
comment on function internal.webhook_json is
  'A webhook as every response shows it. Its secret is shown once, by the server that generated it.';

create or replace function internal.webhook_watched(w app.webhooks) returns text
language sql stable as $$
  select array_to_string((webhook_watched.w).event_types, ', ')
$$;
comment on function internal.webhook_watched is 'What a webhook watches, for the notification of its owner.';

create or replace function internal.control_webhook_types(event_types json) returns text[]
language plpgsql stable as $$
declare
  wanted constant text[] := array(select distinct t from json_array_elements_text(control_webhook_types.event_types) t
                                   order by 1);
begin
  if wanted <> '{*}' and not wanted <@ internal.control_event_types() then
    perform internal.invalid('event_types', 'must be ["*"], or name known types');
  end if;
  return wanted;
end $$;
comment on function internal.control_webhook_types is
  'Types as they are stored: each once, sorted. Refuses 400 VALIDATION_ERROR.';

create or replace function api.control_webhook_create(event_types json, target_url text, secret_sealed text,
                                                      organization_id uuid default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  home constant uuid := coalesce(control_webhook_create.organization_id,
                                 (select o.id from app.organizations o where o.developer_id = internal.developer_id()));
  wanted constant text[] := internal.control_webhook_types(control_webhook_create.event_types);
  made app.webhooks;
begin
  perform internal.organization_lock(home, 'admin');
  perform internal.lock_own_account();
  perform internal.check_limit((select count(*) from app.webhooks w where w.organization_id = home), 10,
                               'An organization has at most 10 webhooks.');
  insert into app.webhooks (organization_id, event_types, target_url, secret_id)
  values (home, wanted, control_webhook_create.target_url, internal.new_id())
  returning * into made;
  insert into app.webhook_secrets (id, webhook_id, secret_sealed)
    values (made.secret_id, made.id, control_webhook_create.secret_sealed);
  return internal.reply(201, internal.webhook_json(made));
end $$;
comment on function api.control_webhook_create is
  'Creates a webhook of an organization, or of the caller''s personal one: 201; the server adds the secret to this
   response only. Refuses 400 VALIDATION_ERROR, 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 401 INVALID_DEVELOPER_TOKEN, 409
   LIMIT_REACHED. Locks the organization, then the account of the caller.';

create or replace function api.control_webhook_list(page_limit int, page_offset bigint,
                                                    organization_id uuid default null)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  own_ids uuid[];
begin
  if control_webhook_list.organization_id is not null then
    perform internal.organization_check(control_webhook_list.organization_id, 'admin');
    own_ids := array[control_webhook_list.organization_id];
  else
    own_ids := internal.organization_ids('admin');
  end if;
  return internal.reply_page(
    (select json_agg(internal.webhook_json(p.hook) order by (p.hook).created_at desc, (p.hook).id desc)
       from (select w as hook from app.webhooks w
              where w.organization_id = any (own_ids)
              order by w.created_at desc, w.id desc
              limit control_webhook_list.page_limit offset control_webhook_list.page_offset) p),
    (select count(*) from app.webhooks w where w.organization_id = any (own_ids)),
    control_webhook_list.page_offset, control_webhook_list.page_limit);
end $$;
comment on function api.control_webhook_list is
  'Webhooks of the organizations that the caller administrates, or of one of them, newest first. Refuses 404 NOT_FOUND,
   403 ROLE_FORBIDDEN.';

create or replace function internal.control_webhook_own(webhook_id uuid) returns app.webhooks
language plpgsql stable security definer set search_path = '' as $$
declare
  hook app.webhooks;
begin
  select w.* into hook from app.webhooks w
   where w.id = control_webhook_own.webhook_id and w.organization_id = any (internal.organization_ids());
  -- to a stranger to the organization the webhook does not exist
  if hook.id is null then
    perform internal.webhook_not_found();
  end if;
  perform internal.organization_check(hook.organization_id, 'admin');
  return hook;
end $$;
comment on function internal.control_webhook_own is
  'A webhook whose organization the caller administrates. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN. Granted to
   nobody.';

create or replace function internal.control_webhook_lock(webhook_id uuid, with_account boolean default false)
returns app.webhooks
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook app.webhooks := internal.control_webhook_own(control_webhook_lock.webhook_id);
begin
  -- the organization first: two changes whose audit events go to each other's webhooks would wait in a circle
  perform internal.organization_lock(hook.organization_id, 'admin');
  if control_webhook_lock.with_account then
    perform internal.lock_own_account();
  end if;
  select w.* into hook from app.webhooks w where w.id = control_webhook_lock.webhook_id for no key update;
  if hook.id is null then
    perform internal.webhook_not_found();
  end if;
  return hook;
end $$;
comment on function internal.control_webhook_lock is
  'internal.control_webhook_own, locked until the transaction ends. Refuses as it does. Locks the organization first,
   then the account of the caller where that is asked for. Granted to nobody.';

create or replace function api.control_webhook_get(webhook_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  return internal.reply(200, internal.webhook_json(internal.control_webhook_own(control_webhook_get.webhook_id)));
end $$;
comment on function api.control_webhook_get is
  'A webhook, for admins of its organization. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN.';

create or replace function api.control_webhook_patch(webhook_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook app.webhooks := internal.control_webhook_lock(control_webhook_patch.webhook_id);
begin
  if (select count(*) from jsonb_object_keys(control_webhook_patch.patch)) > 0 then
    update app.webhooks w
       set event_types = case when control_webhook_patch.patch ? 'event_types'
                              then internal.control_webhook_types((control_webhook_patch.patch -> 'event_types')::json)
                                else w.event_types end,
           target_url = coalesce(control_webhook_patch.patch ->> 'target_url', w.target_url),
           status = coalesce(control_webhook_patch.patch ->> 'status', w.status),
           updated_at = internal.now()
     where w.id = hook.id
    returning w.* into hook;
  end if;
  return internal.reply(200, internal.webhook_json(hook));
end $$;
comment on function api.control_webhook_patch is
  'Changes the fields that are present. status active closes the circuit breaker. Refuses 404 NOT_FOUND, 403
   ROLE_FORBIDDEN, 400 VALIDATION_ERROR. Locks the organization, then the webhook.';

create or replace function api.control_webhook_delete(webhook_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook constant app.webhooks := internal.control_webhook_lock(control_webhook_delete.webhook_id);
begin
  delete from app.webhooks w where w.id = hook.id;
  return internal.reply_deleted();
end $$;
comment on function api.control_webhook_delete is
  'Deletes a webhook; a worker deletes its deliveries. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN. Locks the
   organization, then the webhook.';

create or replace function api.control_webhook_rotate_secret(webhook_id uuid, secret_sealed text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook constant app.webhooks := internal.control_webhook_lock(control_webhook_rotate_secret.webhook_id, true);
begin
  return api.webhook_rotate_secret(hook.id, control_webhook_rotate_secret.secret_sealed);
end $$;
comment on function api.control_webhook_rotate_secret is
  'Replaces the signing secret as api.webhook_rotate_secret does, for admins of the organization: 200. Refuses 404
   NOT_FOUND, 403 ROLE_FORBIDDEN, 401 INVALID_DEVELOPER_TOKEN. Locks the organization, the account of the caller, then
   the webhook.';

create or replace function api.control_webhook_test(webhook_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  hook constant app.webhooks := internal.control_webhook_own(control_webhook_test.webhook_id);
  event_id constant uuid := internal.new_id();
begin
  return internal.reply(200, json_build_object(
    'id', internal.new_id(), 'event_id', event_id, 'event_name', 'webhook.test',
    'payload', internal.control_event_body(event_id, 'webhook.test', hook.organization_id, null,
                                           internal.webhook_json(hook)),
    'attempt', 1, 'target_url', hook.target_url,
    'secret_sealed', (select s.secret_sealed from app.webhook_secrets s where s.id = hook.secret_id),
    'idempotency_key', internal.uuid5(hook.id, event_id::text),
    'sent_at', floor(extract(epoch from internal.now()))::bigint));
end $$;
comment on function api.control_webhook_test is
  'A synthetic delivery for the server to send, with the encrypted secret. It is not stored, so the circuit breaker does
   not count it. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN.';

create or replace function internal.control_webhook_delivery_json(d app.webhook_deliveries) returns json
language sql stable as $$
  -- no route shows one delivery alone: the list has what its receiver answered
  select internal.webhook_delivery_json(control_webhook_delivery_json.d, true)
$$;
comment on function internal.control_webhook_delivery_json is
  'A delivery as responses show it, with the start of each answer.';

select internal.list_declare('control_webhook_deliveries_page', null::app.webhook_deliveries,
                             'control_webhook_delivery_json', '{created_at,id}',
                             required => '{webhook_id}', filters => '{status}', by_cursor => true, has_since => true);

create or replace function api.control_webhook_delivery_list(webhook_id uuid, status text default null,
                                                             since text default null, cursor text default null,
                                                             page_limit int default 50)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  hook constant app.webhooks := internal.control_webhook_own(control_webhook_delivery_list.webhook_id);
begin
  return internal.control_webhook_deliveries_page(hook.id, control_webhook_delivery_list.status,
                                                  internal.time_parameter('since', control_webhook_delivery_list.since),
                                                  control_webhook_delivery_list.cursor,
                                                  control_webhook_delivery_list.page_limit);
end $$;
comment on function api.control_webhook_delivery_list is
  'Deliveries of a webhook, newest first, for admins of the organization. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 400
   INVALID_INPUT.';

create or replace function api.control_webhook_delivery_replay(delivery_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  watched constant uuid := (select d.webhook_id from app.webhook_deliveries d
                             where d.id = control_webhook_delivery_replay.delivery_id);
  hook app.webhooks;
  delivery app.webhook_deliveries;
begin
  if not exists (select from app.webhooks w where w.id = watched
                    and w.organization_id = any (internal.organization_ids())) then
    perform internal.webhook_delivery_not_found();
  end if;
  hook := internal.control_webhook_lock(watched);
  select r.* into delivery from internal.webhook_requeue(array[control_webhook_delivery_replay.delivery_id]) r;
  if delivery.id is null then
    perform internal.fail(409, 'DELIVERY_NOT_REPLAYABLE', 'Only a delivery that is failed or dlq can be replayed.');
  end if;
  perform internal.audit('control_webhooks.replay', 'webhook_deliveries', delivery.id::text, '{}', 202,
                         hook.organization_id);
  return internal.reply(202, internal.control_webhook_delivery_json(delivery));
end $$;
comment on function api.control_webhook_delivery_replay is
  'Queues a delivery that is failed or dlq again: 202. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 409
   DELIVERY_NOT_REPLAYABLE. Locks the organization, the webhook, then the delivery.';

select internal.audit_declare('app.webhooks', 'control_webhooks', 'secret_id');
