-- Promotional grants, by an administrator or as a reward. Purchases from stores are stored in subscriptions.sql.

create or replace function internal.entitlement_give(app_user_id uuid, entitlement_id text, source text,
                                                     source_ref text, expiration_date timestamptz,
                                                     product_id text default null, reason text default null)
returns app.entitlement_grants
language plpgsql volatile security definer set search_path = '' as $$
declare
  held app.entitlement_grants;
begin
  select g.* into held
    from app.entitlement_grants g
   where (g.app_user_id, g.entitlement_id, g.source, g.source_ref)
           = (entitlement_give.app_user_id, entitlement_give.entitlement_id, entitlement_give.source,
              entitlement_give.source_ref);
  if held.id is null then
    insert into app.entitlement_grants as g (app_user_id, entitlement_id, source, source_ref, product_id, store,
                                             period_type, purchase_date, expiration_date, reason)
    values (entitlement_give.app_user_id, entitlement_give.entitlement_id, entitlement_give.source,
            entitlement_give.source_ref,
            entitlement_give.product_id, 'promotional', 'promotional', internal.now(), entitlement_give.expiration_date,
            entitlement_give.reason)
    returning g.* into held;
  else
    update app.entitlement_grants g
       -- an active grant is never shortened
       set expiration_date = case when internal.grant_end(held) <= internal.now() then entitlement_give.expiration_date
                                  else nullif(greatest(internal.grant_end(held),
                                                       coalesce(entitlement_give.expiration_date, 'infinity')),
                                                         'infinity') end,
           purchase_date = case when internal.grant_end(held) <= internal.now() then internal.now()
                                else held.purchase_date end,
           product_id = coalesce(entitlement_give.product_id, held.product_id),
           reason = coalesce(entitlement_give.reason, held.reason), updated_at = internal.now()
     where g.id = held.id
    returning g.* into held;
  end if;
  perform internal.emit(held.app_user_id, 'svc.entitlement.granted', jsonb_build_object(
    'entitlement_id', held.entitlement_id, 'source', held.source, 'product_id', held.product_id,
      'expiration_date', internal.iso(held.expiration_date)));
  return held;
end $$;
comment on function internal.entitlement_give is
  'Grants an entitlement from one source, or extends that source''s grant; emits svc.entitlement.granted. The user must
   be locked. Granted to nobody.';

create or replace function internal.entitlement_grant(app_user_id uuid, entitlement_id text,
                                                      expiration_date timestamptz, product_id text, reason text,
                                                      idempotency_key text, body_hash text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  route constant text := 'POST users/entitlements';
  is_new boolean;
  given app.entitlement_grants;
  answer api.reply;
begin
  perform internal.check_caller('developer', 'entitlements are granted by administrators');
  perform internal.ledger_lock_user(entitlement_grant.app_user_id);
  answer := internal.ledger_stored_reply(entitlement_grant.app_user_id, route, entitlement_grant.idempotency_key,
                                         entitlement_grant.body_hash);
  if answer is not null then
    return answer;
  end if;
  -- checked after the stored reply, because a request may be repeated after the end of its grant
  if entitlement_grant.expiration_date <= internal.now() then
    perform internal.invalid('expiration_date', 'must be a time to come, or null for life', 'INVALID_BODY');
  end if;
  is_new := not exists (select from app.entitlement_grants g
                         where (g.app_user_id, g.entitlement_id, g.source, g.source_ref)
                                 = (entitlement_grant.app_user_id, entitlement_grant.entitlement_id, 'promotional',
                                    'admin'));
  given := internal.entitlement_give(entitlement_grant.app_user_id, entitlement_grant.entitlement_id, 'promotional',
                                     'admin',
                                     entitlement_grant.expiration_date, entitlement_grant.product_id,
                                     entitlement_grant.reason);
  perform internal.audit('entitlements.grant', 'users', given.app_user_id::text, json_build_object(
    'entitlement_id', json_build_array(null, given.entitlement_id),
      'expiration_date', json_build_array(null, internal.iso(given.expiration_date)),
    'reason', json_build_array(null, given.reason)), case when is_new then 201 else 200 end);
  return internal.ledger_store_reply(given.app_user_id, route, entitlement_grant.idempotency_key,
                                     entitlement_grant.body_hash,
                                     internal.reply(case when is_new then 201 else 200 end,
                                                    internal.entitlement_json(given)));
end $$;
comment on function internal.entitlement_grant is
  'A grant by an administrator, audited as entitlements.grant. Locks the user.';

create or replace function api.user_entitlement_grant(user_id text, patch jsonb, idempotency_key text default null,
                                                      body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  them constant uuid := internal.entitled_user(user_entitlement_grant.user_id);
  expiration_date timestamptz := internal.as_time(user_entitlement_grant.patch ->> 'expiration_date');
begin
  if user_entitlement_grant.patch ->> 'expiration_date' is not null
    and user_entitlement_grant.patch ->> 'duration_days' is not null then
    perform internal.invalid('duration_days', 'must not be sent beside expiration_date', 'INVALID_BODY');
  elsif user_entitlement_grant.patch ->> 'expiration_date' is not null and expiration_date is null then
    perform internal.invalid('expiration_date', 'must be a time to come, or null for life', 'INVALID_BODY');
  end if;
  expiration_date := coalesce(expiration_date,
                              internal.now() + make_interval(days => (
                                user_entitlement_grant.patch ->> 'duration_days')::int));
  return internal.entitlement_grant(them, user_entitlement_grant.patch ->> 'entitlement_id', expiration_date,
                                    user_entitlement_grant.patch ->> 'product_id',
                                    user_entitlement_grant.patch ->> 'reason', user_entitlement_grant.idempotency_key,
                                    user_entitlement_grant.body_hash);
end $$;
comment on function api.user_entitlement_grant is
  'Grants an entitlement, 201, or extends an earlier promotional grant, 200; for life when no end is sent. Never
   shortens a grant, never changes a purchase. Refuses 400 INVALID_USER_ID, INVALID_BODY, 404 NOT_FOUND, 409
   IDEMPOTENCY_CONFLICT.';

create or replace function internal.entitlement_withdraw(app_user_id uuid, entitlement_id text) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  still_active boolean;
begin
  perform internal.check_caller('developer', 'entitlements are withdrawn by administrators');
  perform internal.ledger_lock_user(entitlement_withdraw.app_user_id);
  delete from app.entitlement_grants g
   where (g.app_user_id, g.entitlement_id, g.source) = (entitlement_withdraw.app_user_id,
                                                        entitlement_withdraw.entitlement_id, 'promotional');
  if not found then
    perform internal.fail(404, 'NOT_FOUND',
                          'The user has no promotional grant of this entitlement; purchases cannot be removed.');
  end if;
  still_active := exists (select from internal.best_grants(entitlement_withdraw.app_user_id,
                                                           entitlement_withdraw.entitlement_id) g
                           where internal.grant_end(g) > internal.now());
  perform internal.emit(entitlement_withdraw.app_user_id, 'svc.entitlement.revoked', jsonb_build_object(
    'entitlement_id', entitlement_withdraw.entitlement_id, 'source', 'promotional', 'still_active', still_active));
  perform internal.audit('entitlements.revoke', 'users', entitlement_withdraw.app_user_id::text,
                         json_build_object('entitlement_id', json_build_array(entitlement_withdraw.entitlement_id,
                                        null)));
  return json_build_object('deleted', true, 'still_active', still_active);
end $$;
comment on function internal.entitlement_withdraw is
  'Removes promotional grants of an entitlement; emits svc.entitlement.revoked, audited as entitlements.revoke. Refuses
   404 NOT_FOUND. Locks the user.';

create or replace function api.user_entitlement_delete(user_id text, entitlement_id text) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.entitlement_withdraw(internal.entitled_user(user_entitlement_delete.user_id),
                                                           user_entitlement_delete.entitlement_id))
$$;
comment on function api.user_entitlement_delete is
  'Removes promotional grants only: {deleted, still_active}. Refuses 404 NOT_FOUND.';

create or replace function internal.reward__entitlements(app_user_id uuid, part jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  item record;
  given app.entitlement_grants;
  outcome jsonb := '[]';
begin
  perform internal.lock_users(array[reward__entitlements.app_user_id]);
  for item in
    select p.value ->> 'entitlement_id' as id, p.value -> 'duration_days' as days
      from jsonb_array_elements(reward__entitlements.part) with ordinality as p (value, n)
     order by p.value ->> 'entitlement_id' collate "C", p.n
  loop
    begin
      if coalesce(item.days, 'null') <> 'null'
        and not (jsonb_typeof(item.days) = 'number' and item.days #>> '{}' ~ '^[1-9][0-9]{0,4}$'
                 and (item.days)::int <= 36500) then
        raise exception 'duration_days must be a whole number of 1 to 36500, or null for life';
      end if;
      given := internal.entitlement_give(
        reward__entitlements.app_user_id, item.id,
          case when reward__entitlements.source_type like 'referral%' then 'referral' else 'reward' end,
        reward__entitlements.source_type || ':' || reward__entitlements.source_id,
        internal.now() + make_interval(days => (nullif(item.days, 'null'))::int));
      outcome := outcome || jsonb_build_object('entitlement_id', item.id, 'given', true, 'expiration_date',
                                               internal.iso(given.expiration_date));
    exception when others then
      if internal.is_passing(sqlstate) then
        raise;
      end if;
      outcome := outcome || jsonb_build_object('entitlement_id', item.id, 'given', false, 'reason', sqlerrm);
    end;
  end loop;
  return jsonb_build_object('given', jsonb_path_exists(outcome, '$[*] ? (@.given == true)'), 'entitlements', outcome);
end $$;
comment on function internal.reward__entitlements is
  'Grants the entitlements of a reward, [{entitlement_id, duration_days or null for life}], independently; an
   entitlement that cannot be granted is recorded with the reason. Granted to nobody.';
