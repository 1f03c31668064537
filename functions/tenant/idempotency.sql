-- Idempotency: the header Idempotency-Key. The response to the first request is stored and returned to repeated
-- requests: for 24 hours by internal.idempotency_begin and _end; for ever by internal.ledger_stored_reply and
-- ledger_store_reply, for requests that move value. The ledger of XP and the rows of collections store their keys
-- themselves.
create or replace function internal.idempotency_caller() returns text
language sql stable as $$
  select coalesce('user ' || internal.user_id(), internal.caller())
$$;
comment on function internal.idempotency_caller is
  'The namespace of the caller''s keys: the user, else the kind of caller, which server keys or administrators share.';

create or replace function internal.idempotency_replayed(is_same boolean, body json) returns api.reply
language plpgsql volatile as $$
begin
  if not idempotency_replayed.is_same then
    perform internal.fail(409, 'IDEMPOTENCY_CONFLICT',
                          'This Idempotency-Key was used with another body: use a new key.');
  end if;
  return row(200, idempotency_replayed.body, '{"Idempotency-Replayed": "true"}')::api.reply;
end $$;
comment on function internal.idempotency_replayed is
  'The response to a repeated request: the stored body with 200. Refuses 409 IDEMPOTENCY_CONFLICT when the stored
   request had another body.';

create or replace function internal.idempotency_begin(route text, key text, body_hash text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  stored app.idempotency_keys;
begin
  if idempotency_begin.key is null then
    return null;
  end if;
  delete from app.idempotency_keys k
   where (k.caller, k.route, k.key) = (internal.idempotency_caller(), idempotency_begin.route, idempotency_begin.key)
     and k.created_at < internal.now() - interval '24 hours';
  -- a second request under the key waits here until the first has committed or rolled back
  insert into app.idempotency_keys (caller, route, key, body_hash)
  values (internal.idempotency_caller(), idempotency_begin.route, idempotency_begin.key, idempotency_begin.body_hash)
  on conflict on constraint idempotency_keys_pkey do nothing;
  if found then
    return null;
  end if;
  select k.* into stored
    from app.idempotency_keys k
   where (k.caller, k.route, k.key) = (internal.idempotency_caller(), idempotency_begin.route, idempotency_begin.key);
  return internal.idempotency_replayed(stored.body_hash is not distinct from idempotency_begin.body_hash, stored.body);
end $$;
comment on function internal.idempotency_begin is
  'Null for the first request with the key, or without a key; else the stored response with 200. Refuses 409
   IDEMPOTENCY_CONFLICT. Locks the key''s row until the transaction ends.';

create or replace function internal.idempotency_end(route text, key text, answer api.reply) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if idempotency_end.key is null then
    return;
  end if;
  if (idempotency_end.answer).status >= 400 then
    delete from app.idempotency_keys k
     where (k.caller, k.route, k.key) = (internal.idempotency_caller(), idempotency_end.route, idempotency_end.key);
    return;
  end if;
  update app.idempotency_keys k
     set status = (idempotency_end.answer).status, body = (idempotency_end.answer).body
   where (k.caller, k.route, k.key) = (internal.idempotency_caller(), idempotency_end.route, idempotency_end.key);
end $$;
comment on function internal.idempotency_end is 'Stores the response under the key. A refusal releases the key.';

create or replace function internal.ledger_stored_reply(app_user_id uuid, route text, key text, body_hash text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  stored app.ledger_requests;
begin
  if ledger_stored_reply.key is null then
    return null;
  end if;
  select r.* into stored
    from app.ledger_requests r
   where (r.app_user_id, r.route, r.key) = (ledger_stored_reply.app_user_id, ledger_stored_reply.route,
                                            ledger_stored_reply.key);
  if not found then
    return null;
  end if;
  return internal.idempotency_replayed(stored.body_hash = ledger_stored_reply.body_hash, stored.answer);
end $$;
comment on function internal.ledger_stored_reply is
  'The stored response to a request that moved value, by user, route and key, with 200; or null. Kept for ever. Refuses
   409 IDEMPOTENCY_CONFLICT. The caller must hold the user''s lock, so that a repeated request waits for the first.
   Granted to nobody.';

create or replace function internal.ledger_store_reply(app_user_id uuid, route text, key text, body_hash text,
                                                       answer api.reply)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  if ledger_store_reply.key is not null then
    insert into app.ledger_requests (app_user_id, route, key, body_hash, answer)
    values (ledger_store_reply.app_user_id, ledger_store_reply.route, ledger_store_reply.key,
            ledger_store_reply.body_hash, (ledger_store_reply.answer).body);
  end if;
  return ledger_store_reply.answer;
end $$;
comment on function internal.ledger_store_reply is
  'Stores a response under its key and returns it. Refusals are raised before this call, so they do not use the key.
   Granted to nobody.';
