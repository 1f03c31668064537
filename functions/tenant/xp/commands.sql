-- XP by hand: administrators and server keys give and take it. The idempotency key is stored in the ledger itself, so
-- it never expires.

create or replace function internal.xp_transaction_json(t app.xp_transactions) returns json
language sql stable as $$
  select json_build_object(
    'id', (xp_transaction_json.t).id, 'app_user_id', (xp_transaction_json.t).app_user_id,
      'amount', (xp_transaction_json.t).amount,
    'total_after', (xp_transaction_json.t).total_after, 'source', (xp_transaction_json.t).source,
    -- the source id of an administrator's row may be an idempotency key, which nobody else should know
    'source_id', case when (xp_transaction_json.t).source <> 'admin' then (xp_transaction_json.t).source_id end,
    'rule_key', (xp_transaction_json.t).rule_key, 'reason', (xp_transaction_json.t).reason,
    'clipped_by', (xp_transaction_json.t).clipped_by,
    'created_at', internal.iso((xp_transaction_json.t).created_at))
$$;
comment on function internal.xp_transaction_json is 'The JSON of a row of the ledger in responses.';

create or replace function internal.xp_adjust(app_user_id uuid, amount bigint, reason text, route text,
                                              idempotency_key text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  entry constant text := case when xp_adjust.idempotency_key is null then 'id ' || internal.new_id()
                              else 'key ' || xp_adjust.route || ' ' || xp_adjust.idempotency_key end;
  booked app.xp_transactions;
begin
  if internal.caller() not in ('developer', 'server_key', 'server_key_user') then
    perform internal.fail(403, 'SERVER_KEY_REQUIRED', 'XP is given with a server key only.');
  elsif internal.caller() = 'server_key_user' and xp_adjust.app_user_id is distinct from internal.user_id() then
    raise exception 'a server key that acts for a user gives XP to that user only';
  end if;
  if xp_adjust.amount is null or xp_adjust.amount = 0 or abs(xp_adjust.amount) > 1000000000 then
    perform internal.invalid('amount', 'must be a whole number, not 0, of -1000000000 to 1000000000');
  elsif xp_adjust.idempotency_key !~ '^[ -~]{1,255}$' then
    perform internal.invalid('Idempotency-Key', 'must be 1 to 255 printable ASCII characters');
  elsif internal.lock_users(array[xp_adjust.app_user_id]) is null then
    perform internal.fail(404, case when internal.caller() = 'developer' then 'NOT_FOUND' else 'USER_NOT_FOUND' end,
                          'There is no such user.');
  end if;
  -- this request waited for the user's lock, so an earlier request with this key has committed
  select t.* into booked
    from app.xp_transactions t
   where (t.app_user_id, t.source, t.source_id) = (xp_adjust.app_user_id, 'admin', entry);
  if booked.id is not null then
    return internal.idempotency_replayed((booked.requested, booked.reason) is not distinct from (xp_adjust.amount,
                                        xp_adjust.reason),
                                         (internal.reply(200, internal.xp_transaction_json(booked))).body);
  end if;
  perform internal.xp_apply(array[(xp_adjust.app_user_id, xp_adjust.amount, 'admin', entry, null, xp_adjust.reason,
                                   xp_adjust.amount, null,
                                   internal.now(), internal.now())::internal.xp_move]);
  select t.* into booked
    from app.xp_transactions t
   where (t.app_user_id, t.source, t.source_id) = (xp_adjust.app_user_id, 'admin', entry);
  if booked.amount < 0 then
    perform internal.challenges_of_xp(xp_adjust.app_user_id);
  end if;
  if internal.caller() = 'developer' then
    perform internal.audit('xp.grant', 'users', xp_adjust.app_user_id::text, json_build_object(
      'amount', json_build_array(null, booked.amount), 'reason', json_build_array(null, booked.reason)), 201);
  end if;
  return internal.reply(201, internal.xp_transaction_json(booked));
end $$;
comment on function internal.xp_adjust is
  'Gives or takes XP by hand, never below 0: returns the row of the ledger, 201, or for a repeated idempotency key the
   same row, 200. Permits only administrators and server keys. Refuses 403 SERVER_KEY_REQUIRED, 400 VALIDATION_ERROR,
   404, 409 IDEMPOTENCY_CONFLICT. Locks the user.';

create or replace function api.xp_grant(app_user_id uuid, amount bigint, reason text default null,
                                        idempotency_key text default null)
returns api.reply
language sql volatile as $$
  select internal.xp_adjust(xp_grant.app_user_id, xp_grant.amount, xp_grant.reason, 'grant', xp_grant.idempotency_key)
$$;
comment on function api.xp_grant is
  'An administrator gives or takes XP, 201. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, 409 IDEMPOTENCY_CONFLICT.';

create or replace function api.xp_award(amount bigint, reason text default null, app_user_id uuid default null,
                                        idempotency_key text default null)
returns api.reply
language plpgsql volatile as $$
begin
  if internal.caller() = 'user' then
    perform internal.fail(403, 'SERVER_KEY_REQUIRED', 'XP is given with a server key only.');
  elsif xp_award.app_user_id is null and internal.user_id() is null then
    perform internal.invalid('app_user_id', 'is required without X-On-Behalf-Of');
  elsif xp_award.app_user_id <> internal.user_id() then
    perform internal.invalid('app_user_id', 'must be the user of X-On-Behalf-Of');
  end if;
  return internal.xp_adjust(coalesce(xp_award.app_user_id, internal.user_id()), xp_award.amount, xp_award.reason,
                            'award', xp_award.idempotency_key);
end $$;
comment on function api.xp_award is
  'A server key gives or takes XP, 201. Refuses 403 SERVER_KEY_REQUIRED, 404 USER_NOT_FOUND, 400 VALIDATION_ERROR, 409
   IDEMPOTENCY_CONFLICT.';
