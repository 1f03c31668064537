-- The Idempotency-Key header: the first answer is kept for 24 hours and given again.
create or replace function internal.idempotency_caller() returns text
language sql stable as $$
  select coalesce('user ' || internal.user_id(), internal.caller())
$$;
comment on function internal.idempotency_caller is 'Whose keys these are: each user''s own, or those of server keys and administrators.';

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
  -- a second request while the first runs waits here until that one is committed or gone
  insert into app.idempotency_keys (caller, route, key, body_hash)
  values (internal.idempotency_caller(), idempotency_begin.route, idempotency_begin.key, idempotency_begin.body_hash)
  on conflict on constraint idempotency_keys_pkey do nothing;
  if found then
    return null;
  end if;
  select k.* into stored
    from app.idempotency_keys k
   where (k.caller, k.route, k.key) = (internal.idempotency_caller(), idempotency_begin.route, idempotency_begin.key);
  if stored.body_hash is distinct from idempotency_begin.body_hash then
    perform internal.fail(409, 'IDEMPOTENCY_CONFLICT', 'This Idempotency-Key was used with another body.');
  end if;
  return row(200, stored.body, '{"Idempotency-Replayed": "true"}')::api.reply;
end $$;
comment on function internal.idempotency_begin is
  'Null when this is the first request under the key (or there is none); else the stored answer with 200. Refuses 409 IDEMPOTENCY_CONFLICT. Holds the key''s row until the end.';

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
comment on function internal.idempotency_end is 'Keeps the answer under the key. A refusal does not use the key up.';
