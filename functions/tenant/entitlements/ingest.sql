-- Events of the subscription provider: whom they are about, and what follows from them. The outcome does not depend on
-- the order in which events arrive.
create or replace function internal.subscription_holder(names text[], at timestamptz, event_id text) returns uuid
language plpgsql stable security definer set search_path = '' as $$
declare
  named text[] := subscription_holder.names;
  since timestamptz := subscription_holder.at;
  since_id text := subscription_holder.event_id;
  them uuid := internal.subscription_user(named);
  holder uuid := them;
  move record;
begin
  for hops in 1 .. 1000 loop
    -- a transfer may name the user by another of our names
    named := named || array(select n.name from internal.provider_names(them, 100) n);
    select e.id, e.event_at, internal.subscription_texts(e.payload -> 'transferred_to') as takers into move
      from app.subscription_events e
     where e.type = 'TRANSFER' and e.payload -> 'transferred_from' ?| named and (e.event_at, e.id) > (since, since_id)
     order by e.event_at, e.id
     limit 1;
    exit when not found;
    named := move.takers;
    since := move.event_at;
    since_id := move.id;
    them := internal.subscription_user(named);
    -- who is not known takes nothing yet
    holder := coalesce(them, holder);
  end loop;
  return holder;
end $$;
comment on function internal.subscription_holder is
  'Who holds a purchase today that an event gave to the bearer of these names at a time: follows the transfers since
   then. Granted to nobody.';

create or replace function internal.subscription_owner(source_ref text) returns uuid
language plpgsql stable security definer set search_path = '' as $$
declare
  history constant app.subscription_events[] := internal.subscription_history(subscription_owner.source_ref);
  e record;
  holder uuid;
begin
  for e in
    select h.id, h.names, h.event_at
      from unnest(history) with ordinality as h (id, source_ref, app_user_id, type, event_at, payload, outcome,
                                                 received_at, names, n)
     -- the provider's own word on who holds it, else the first event
     order by (h.type = 'RESTORE') desc, case when h.type = 'RESTORE' then -h.n else h.n end
  loop
    holder := internal.subscription_holder(e.names, e.event_at, e.id);
    exit when holder is not null;
  end loop;
  return holder;
end $$;
comment on function internal.subscription_owner is
  'The user to whom a purchase belongs by all events that are stored; null when none of their names is known. Granted to
   nobody.';

create or replace function internal.subscription_emit(s app.subscriptions, events app.subscription_events[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  owner constant uuid := (subscription_emit.s).app_user_id;
begin
  perform internal.emit_many(array_agg(owner order by t.n), array_agg(t.event_name order by t.n),
                             array_agg(jsonb_build_object(
            'subscription_id', (subscription_emit.s).id, 'product_id', t.product_id,
              'store', (subscription_emit.s).store,
            'environment', (subscription_emit.s).environment, 'period_type', (subscription_emit.s).period_type,
            'expiration_date', internal.iso((subscription_emit.s).expiration_date)) order by t.n))
     from (select p.n, coalesce(internal.text_in(p.payload, 'product_id'),
                                (subscription_emit.s).product_id) as product_id, 'svc.subscription.' || case
                    when p.type in ('INITIAL_PURCHASE', 'NON_RENEWING_PURCHASE',
                                    'TEMPORARY_ENTITLEMENT_GRANT') then 'started'
                    when p.type = 'RENEWAL' then 'renewed'
                    when p.type = 'CANCELLATION' and (p.payload ->> 'cancel_reason' = 'CUSTOMER_SUPPORT'
                                                      or internal.is_refund(p.payload)) then 'refunded'
                    when p.type = 'CANCELLATION' then 'cancelled'
                    when p.type = 'BILLING_ISSUE' then 'billing_issue'
                    when p.type = 'EXPIRATION' then 'expired' end as event_name
             from unnest(subscription_emit.events) with ordinality
                    as p (id, source_ref, app_user_id, type, event_at, payload, outcome, received_at, names, n)) t
    where t.event_name is not null
   having count(*) > 0;
end $$;
comment on function internal.subscription_emit is
  'Emits svc.subscription.* for events that have just been folded. The user must be locked. Granted to nobody.';

create or replace function internal.subscription_walk(s app.subscriptions, owner uuid, events app.subscription_events[])
returns app.subscriptions
language plpgsql volatile security definer set search_path = '' as $$
declare
  now_is app.subscriptions := subscription_walk.s;
  many constant int := coalesce(cardinality(subscription_walk.events), 0);
begin
  for n in 1 .. many loop
    now_is := internal.subscription_fold(now_is, subscription_walk.events[n:n]);
    -- before another purchase may give other entitlements: what it ends stays visible as ended
    if now_is.source_ref is not null and n < many
      and internal.subscription_rank(subscription_walk.events[n + 1].type) <> 2 then
      now_is.app_user_id := subscription_walk.owner;
      perform internal.subscription_grants(now_is);
    end if;
  end loop;
  now_is.app_user_id := subscription_walk.owner;
  return now_is;
end $$;
comment on function internal.subscription_walk is
  'Folds events one after the other, and writes the grants of each purchase that another one follows; those of the last
   one are the caller''s to write. The user must be locked. Granted to nobody.';

create or replace function internal.subscription_settle(source_ref text, may_move boolean default false) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  ref constant text := subscription_settle.source_ref;
  s app.subscriptions;
  folded app.subscriptions;
  pending app.subscription_events[];
  owner uuid;
  locked uuid[];
  held text[];
  held_before text[];
  is_late boolean;
begin
  select k.* into s from app.subscriptions k where k.source_ref = ref;
  is_late := s.id is null or exists (select from app.subscription_events k
                                      where k.source_ref = ref and k.outcome in ('waiting', 'unknown_user')
                                        and k.event_at <= s.last_event_at);
  owner := case when is_late or subscription_settle.may_move then coalesce(internal.subscription_owner(ref),
                                        s.app_user_id) else s.app_user_id end;
  locked := internal.lock_users(array[owner, s.app_user_id]);
  -- nobody owns the purchase of a user who was deleted meanwhile
  if (is_late or subscription_settle.may_move)
    and coalesce(internal.subscription_owner(ref), s.app_user_id, owner) is distinct from owner then
    -- while this waited for the lock a transfer or another event was stored
    raise exception 'the purchase has another owner now' using errcode = '40001';
  elsif owner is not null and owner = any (coalesce(locked, '{}')) is not true then
    -- deleted meanwhile, with their subscriptions
    owner := null;
  end if;
  -- the first event of a subscription finds no row to lock: the lock on the user serialises two of them
  select k.* into s from app.subscriptions k where k.source_ref = ref for no key update;
  if s.id is not null and s.app_user_id = any (coalesce(locked, '{}')) is not true then
    raise exception 'the subscription has moved to another user' using errcode = '40001';
  end if;
  select array_agg(k order by k.event_at, internal.subscription_rank(k.type), k.id) into pending
    from app.subscription_events k
   where k.source_ref = ref and k.outcome in ('waiting', 'unknown_user');
  if owner is null then
    update app.subscription_events k set outcome = 'unknown_user' where k.source_ref = ref and k.outcome = 'waiting';
    return 'unknown_user';
  end if;

  held := internal.active_entitlements(owner);
  if s.app_user_id <> owner then
    held_before := internal.active_entitlements(s.app_user_id);
    delete from app.entitlement_grants g
     where g.app_user_id = s.app_user_id and g.source = 'subscription_provider' and g.source_ref = ref;
    update app.subscriptions k set app_user_id = owner where k.id = s.id;
    perform internal.entitlements_notify(s.app_user_id, held_before);
  end if;
  -- an event arrived late, or the owner is another: everything is folded again, in the order of time
  is_late := is_late or s.app_user_id <> owner
    or exists (select from unnest(pending) p where p.event_at <= s.last_event_at);
  folded := internal.subscription_walk(case when not is_late then s end, owner,
                                       case when is_late then internal.subscription_history(ref) else pending end);
  if folded.source_ref is null and s.id is not null then
    -- made by hand or imported: it has no purchase among its events
    folded := internal.subscription_walk(s, owner, pending);
  end if;
  update app.subscription_events k
     set outcome = case when folded.source_ref is null then 'waiting' else 'applied' end, app_user_id = owner
   where k.id in (select p.id from unnest(pending) p);
  if folded.source_ref is null then
    return 'waiting';
  end if;

  folded := internal.subscription_store(folded);
  perform internal.subscription_emit(folded, pending);
  perform internal.entitlements_notify(owner, held);
  return 'applied';
end $$;
comment on function internal.subscription_settle is
  'Brings a subscription, its owner and its grants to what follows from all its events: applied, waiting (for the
   purchase) or unknown_user. Emits svc.subscription.* for events that are folded for the first time, and the
   entitlements that users gained or lost. Locks the users, then the subscription. Granted to nobody.';

create or replace function internal.subscription_transfer(event_id text) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  e app.subscription_events;
  givers text[];
  takers text[];
  taker uuid;
  involved uuid[];
  locked uuid[];
  item record;
begin
  select k.* into e from app.subscription_events k where k.id = subscription_transfer.event_id;
  givers := internal.subscription_texts(e.payload -> 'transferred_from');
  takers := internal.subscription_texts(e.payload -> 'transferred_to');
  taker := internal.subscription_user(takers);
  involved := array(select distinct internal.subscription_user(array[g.name]) from unnest(givers) as g (name)) || taker;
  -- every purchase that a giver has ever held, whoever holds it now: transfers may arrive in any order
  select involved || array_agg(s.app_user_id) into involved from app.subscriptions s
   where s.source_ref in (select internal.subscription_refs(givers));
  locked := internal.lock_users(involved);
  if taker is null or taker = any (coalesce(locked, '{}')) is not true then
    update app.subscription_events k set outcome = 'unknown_user' where k.id = e.id;
    return 'unknown_user';
  end if;
  update app.subscription_events k set outcome = 'applied', app_user_id = taker where k.id = e.id;
  for item in select r.ref from internal.subscription_refs(givers) as r (ref) order by r.ref loop
    if exists (select from app.subscription_events k where k.source_ref = item.ref) then
      perform internal.subscription_settle(item.ref, true);
    else
      perform internal.subscription_move(item.ref, involved, taker);
    end if;
  end loop;
  return 'applied';
end $$;
comment on function internal.subscription_transfer is
  'Applies a transfer: settles each purchase that its givers have held, also those whose events wait for their user.
   Answers applied, or unknown_user while the taker is not known. Locks all users that are involved. Granted to
   nobody.';

create or replace function internal.subscription_refs(names text[]) returns setof text
language sql stable security definer set search_path = '' as $$
  select e.source_ref from app.subscription_events e
   where e.names && subscription_refs.names and e.source_ref is not null
  union
  select s.source_ref from app.subscriptions s
   where s.app_user_id in (select internal.subscription_user(array[n.name])
                             from unnest(subscription_refs.names) as n (name))
$$;
comment on function internal.subscription_refs is
  'The purchases whose events have one of these names, or that a user of such a name holds. Granted to nobody.';

create or replace function internal.subscription_move(source_ref text, givers uuid[], taker uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  s app.subscriptions;
  held text[];
begin
  select k.* into s from app.subscriptions k
   where k.source_ref = subscription_move.source_ref
     and k.app_user_id = any (subscription_move.givers) for no key update;
  if s.id is null or s.app_user_id = subscription_move.taker then
    return;
  end if;
  held := internal.active_entitlements(s.app_user_id);
  delete from app.entitlement_grants g
   where g.app_user_id = s.app_user_id and g.source = 'subscription_provider' and g.source_ref = s.source_ref;
  perform internal.entitlements_notify(s.app_user_id, held);
  held := internal.active_entitlements(subscription_move.taker);
  update app.subscriptions k set app_user_id = subscription_move.taker, updated_at = internal.now() where k.id = s.id
    returning k.* into s;
  perform internal.subscription_grants(s);
  perform internal.entitlements_notify(subscription_move.taker, held);
end $$;
comment on function internal.subscription_move is
  'Moves a subscription without stored events, made by hand or imported, from one of these users to another. They must
   be locked. Granted to nobody.';

create or replace function internal.subscription_absorb(source_ref text, transaction_id text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  restored app.subscriptions;
begin
  if subscription_absorb.transaction_id is null
    or subscription_absorb.transaction_id = subscription_absorb.source_ref then
    return;
  end if;
  select s.* into restored
    from app.subscriptions s
   where s.source_ref = any (array[subscription_absorb.transaction_id]
                             -- renewed since, and restored again: the newest answer knows it by another transaction
                             || array(select e.source_ref from app.subscription_events e
                                       where e.type = 'RESTORE' and left(e.payload ->> 'ref',
                                                                         255) = subscription_absorb.transaction_id))
     and s.source_ref <> subscription_absorb.source_ref
     and not exists (select from app.subscription_events e where e.source_ref = s.source_ref and e.type <> 'RESTORE')
   limit 1;
  if restored.id is null or internal.lock_users(array[restored.app_user_id]) is null then
    return;
  end if;
  update app.subscription_events e set source_ref = subscription_absorb.source_ref, outcome = 'waiting'
    where e.source_ref = restored.source_ref;
  if exists (select from app.subscriptions s where s.source_ref = subscription_absorb.source_ref) then
    delete from app.entitlement_grants g
     where g.app_user_id = restored.app_user_id and g.source = 'subscription_provider'
       and g.source_ref = restored.source_ref;
    delete from app.subscriptions s where s.id = restored.id;
  else
    update app.entitlement_grants g set source_ref = subscription_absorb.source_ref
     where g.app_user_id = restored.app_user_id and g.source = 'subscription_provider'
       and g.source_ref = restored.source_ref;
    update app.subscriptions s set source_ref = subscription_absorb.source_ref where s.id = restored.id;
  end if;
end $$;
comment on function internal.subscription_absorb is
  'A restore knows a purchase by its latest transaction, events by the first one: the first event of the purchase unites
   them. Granted to nobody.';

create or replace function internal.subscriptions_resume(names text[], due_at timestamptz default null) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.enqueue('entitlements__settle', w.item, due_at => subscriptions_resume.due_at)
    from (select distinct coalesce('purchase ' || e.source_ref, 'transfer ' || e.id) as item
            from app.subscription_events e
           where e.names && subscriptions_resume.names and e.outcome = 'unknown_user') w
$$;
comment on function internal.subscriptions_resume is
  'Queues what waits for a user of one of these names. Granted to nobody.';

create or replace function internal.tg_users__subscriptions() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from app.subscription_events e
              where e.names && array[new.external_id] and e.outcome = 'unknown_user') then
    perform internal.subscriptions_resume(array[new.external_id]);
  end if;
  return null;
end $$;
comment on function internal.tg_users__subscriptions is
  'Purchases of a customer whom nobody knew are applied when a user gets that name.';
create or replace trigger tg_users__subscriptions_of_new
  after insert on app.users
  for each row when (new.external_id is not null) execute function internal.tg_users__subscriptions();
create or replace trigger tg_users__subscriptions
  after update of external_id on app.users
  for each row when (new.external_id is distinct from old.external_id
                     and new.external_id is not null) execute function internal.tg_users__subscriptions();

create or replace function api.subscription_resume(item text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'events of the subscription provider are applied by workers');
  return internal.reply(200,
                        to_json(case when subscription_resume.item like 'transfer %'
                                       then internal.subscription_transfer(substr(subscription_resume.item, 10))
                                     else internal.subscription_settle(substr(subscription_resume.item, 10),
                                                                       true) end));
end $$;
comment on function api.subscription_resume is
  'For the task entitlements__settle: applies what waited for its user: "purchase <source_ref>" or "transfer <event
   id>". For workers.';

create or replace function internal.subscription_ingest(event jsonb) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  kind constant text := coalesce(subscription_ingest.event ->> 'type', '');
  ref constant text := coalesce(internal.text_in(subscription_ingest.event, 'original_transaction_id'),
                                internal.text_in(subscription_ingest.event, 'transaction_id'));
  said_at constant timestamptz := internal.ms_time(subscription_ingest.event -> 'event_timestamp_ms');
  -- events are folded in the order of their times: one of years to come would outlast a refund
  is_ahead constant boolean := coalesce(said_at > internal.now() + interval '100 days', false);
  at constant timestamptz := case when is_ahead then internal.now() else said_at end;
  is_transfer constant boolean := kind = 'TRANSFER';
  named constant text[] := case when is_transfer
                                  then internal.subscription_texts(subscription_ingest.event -> 'transferred_to')
                                else internal.subscription_names(subscription_ingest.event) end;
  has_effect constant boolean := ref is not null and kind in (
    'INITIAL_PURCHASE', 'RENEWAL', 'NON_RENEWING_PURCHASE', 'TEMPORARY_ENTITLEMENT_GRANT', 'CANCELLATION',
      'UNCANCELLATION', 'BILLING_ISSUE',
    'SUBSCRIPTION_PAUSED', 'SUBSCRIPTION_EXTENDED', 'REFUND_REVERSED', 'EXPIRATION');
  whose uuid;
  stored_id text;
  result text;
begin
  perform internal.check_caller('worker', 'events of the subscription provider are taken in by workers');
  if coalesce(char_length(subscription_ingest.event ->> 'id'), 0) not between 1 and 255 or at is null then
    return 'malformed';
  end if;
  insert into app.subscription_events as k (id, source_ref, type, event_at, payload, names, outcome)
  values (subscription_ingest.event ->> 'id', case when not is_transfer then ref end, left(kind, 255), at,
          subscription_ingest.event, named,
          case when has_effect and not is_transfer then 'waiting' else 'without_effect' end)
  on conflict do nothing
  returning k.id into stored_id;
  if stored_id is null then
    return 'duplicate';
  elsif is_transfer then
    result := internal.subscription_transfer(stored_id);
  elsif has_effect then
    perform internal.subscription_absorb(ref, internal.text_in(subscription_ingest.event, 'transaction_id'));
    result := internal.subscription_settle(ref);
  else
    result := 'without_effect';
    whose := coalesce((select s.app_user_id from app.subscriptions s where s.source_ref = ref),
                      internal.subscription_user(named));
    update app.subscription_events k set app_user_id = whose
      where k.id = stored_id and internal.lock_users(array[whose]) is not null;
  end if;
  if result = 'unknown_user' then
    -- the user may be appearing in a transaction that this one does not see
    perform internal.enqueue('entitlements__settle',
                             case when is_transfer then 'transfer ' || stored_id else 'purchase ' || ref end,
                             due_at => internal.now() + interval '1 minute');
  elsif not is_transfer and internal.subscription_user_named(named) is not null then
    -- this event may be the first to say who a customer is
    perform internal.subscriptions_resume(named);
  end if;
  return case when has_effect and result in ('applied', 'waiting')
              and (is_ahead or internal.subscription_doubt(subscription_ingest.event) is not null) then 'malformed'
              else result end;
end $$;
comment on function internal.subscription_ingest is
  'Ingests one event of the subscription provider: applied, waiting (for its purchase), unknown_user, without_effect;
   malformed when a field that decides about access cannot be understood, which then gives none. Duplicates, and events
   without an id or a time, are not stored. Events are folded in the order of their own times, in whatever order they
   arrive. For workers. Emits svc.subscription.*, and the entitlements that were gained or lost. Locks the users, then
   the subscription.';

create or replace function internal.purge__subscription_events(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  -- longer than a yearly subscription; events that belong to a user stay with the user, because a replay folds them
  -- again
  select internal.purge_rows('app.subscription_events',
                             't.app_user_id is null and t.received_at < internal.now() - interval ''400 days''',
                             purge__subscription_events.most)
$$;
comment on function internal.purge__subscription_events is
  'Daily: events of the subscription provider whose user has not appeared in 400 days.';
