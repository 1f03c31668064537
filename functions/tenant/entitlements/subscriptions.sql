-- Subscriptions of stores. Events of the provider are folded in the order of their own times into one row for each
-- original transaction, and its grants follow from that row. Events are ingested in ingest.sql, and the provider is
-- asked in restore.sql. Lock order: users, then the subscription.

create or replace function internal.ms_time(value jsonb) returns timestamptz
language sql immutable parallel safe as $$
  -- from 1973: fewer are seconds, or no time at all
  select case when n.ms between 100000000000 and 253402300799999 then to_timestamp(n.ms / 1000) end
    from (select internal.number_in(ms_time.value) as ms) n
$$;
comment on function internal.ms_time is
  'Converts milliseconds since 1970 to a time, also where they are written as a text; null for anything else, and for
   seconds.';

create or replace function internal.number_in(value jsonb) returns numeric
language sql immutable parallel safe as $$
  select case when jsonb_typeof(number_in.value) = 'number'
              or jsonb_typeof(number_in.value) = 'string'
              and number_in.value #>> '{}' ~ '^-?[0-9]{1,30}(\.[0-9]{1,30})?$'
              then (number_in.value #>> '{}')::numeric end
$$;
comment on function internal.number_in is
  'A number of a provider, also where it is written as a text of digits; null for anything else.';

create or replace function internal.text_in(event jsonb, field text) returns text
language sql immutable parallel safe as $$
  select case when jsonb_typeof(text_in.event -> text_in.field) in ('string',
                                                                    'number') then nullif(
                                                                      left(text_in.event ->> text_in.field, 255),
                                                                        '') end
$$;
comment on function internal.text_in is
  'A text or a number in an event of a provider, at most 255 characters of it; null for an empty text and for anything
   else.';

create or replace function internal.is_said(value jsonb) returns boolean
language sql immutable parallel safe as $$
  select coalesce(jsonb_typeof(is_said.value) <> 'null', false)
$$;
comment on function internal.is_said is 'Whether an event of a provider has a field at all, with whatever in it.';

create or replace function internal.subscription_end(s app.subscriptions) returns timestamptz
language sql immutable as $$
  select case when (subscription_end.s).refunded_at is not null then least((subscription_end.s).refunded_at,
                                        (subscription_end.s).expiration_date)
              when (subscription_end.s).expiration_date is null then 'infinity'
              else greatest((subscription_end.s).expiration_date, (subscription_end.s).grace_until) end
$$;
comment on function internal.subscription_end is
  'The time until which a subscription gives access; equal to internal.grant_end of its grants.';

create or replace function internal.subscription_status(s app.subscriptions) returns text
language sql stable as $$
  select case when (subscription_status.s).refunded_at is not null then 'refunded'
              when (subscription_status.s).paused_at is not null then 'paused'
              when internal.subscription_end(subscription_status.s) <= internal.now() then 'expired'
              when (subscription_status.s).billing_issue_at is not null then 'grace'
              when (subscription_status.s).cancelled_at is not null then 'cancelled'
              when (subscription_status.s).period_type = 'trial' then 'trial'
              else 'active' end
$$;
comment on function internal.subscription_status is
  'trial, active, grace (an unresolved billing issue), cancelled (it will not renew), paused, refunded or expired, by
   the clock.';

create or replace function internal.subscription_json(s app.subscriptions) returns json
language sql stable as $$
  select json_build_object(
    'id', (subscription_json.s).id, 'app_user_id', (subscription_json.s).app_user_id,
      'product_id', (subscription_json.s).product_id,
    'store', (subscription_json.s).store, 'status', internal.subscription_status(subscription_json.s),
    'period_type', (subscription_json.s).period_type,
    'purchase_date', internal.iso((subscription_json.s).purchase_date),
    'expiration_date', internal.iso((subscription_json.s).expiration_date),
    'auto_renew', (subscription_json.s).expiration_date is not null
      and internal.subscription_status(subscription_json.s) in ('trial', 'active', 'grace')
                  and (subscription_json.s).cancelled_at is null,
    'environment', (subscription_json.s).environment, 'updated_at', internal.iso((subscription_json.s).updated_at))
$$;
comment on function internal.subscription_json is 'A subscription as lists for administrators show it.';

create or replace function internal.subscription_paid_until(s app.subscriptions, e app.subscription_events)
returns timestamptz
language sql immutable as $$
  select case when internal.ms_time(p -> 'expiration_at_ms') is not null then internal.ms_time(p -> 'expiration_at_ms')
              -- only what is bought once, or given away, may be for life: and only where nothing else is said
              when not internal.is_said(p -> 'expiration_at_ms')
                   and ((subscription_paid_until.e).type = 'NON_RENEWING_PURCHASE'
                        or upper(internal.text_in(p, 'period_type')) = 'PROMOTIONAL') then 'infinity'
              -- while the store cannot confirm a purchase: a day at most
              when not internal.is_said(p -> 'expiration_at_ms')
                and (subscription_paid_until.e).type = 'TEMPORARY_ENTITLEMENT_GRANT'
                   then (subscription_paid_until.e).event_at + interval '1 day'
              else least((subscription_paid_until.s).expiration_date, (subscription_paid_until.s).refunded_at) end
    from (select (subscription_paid_until.e).payload as p) of_event
$$;
comment on function internal.subscription_paid_until is
  'Until when a purchase or renewal gives access: as the event says, infinity for life, or as long as was known before.
   Null when neither says it: then the event gives nothing.';

create or replace function internal.subscription_doubt(event jsonb) returns text
language sql immutable as $$
  select case when d.is_purchase and internal.subscription_paid_until(null, d.e) is null then 'expiration_at_ms'
              when internal.is_said(d.p -> 'expiration_at_ms')
                and internal.ms_time(d.p -> 'expiration_at_ms') is null then 'expiration_at_ms'
              when internal.is_said(d.p -> 'purchased_at_ms')
                and internal.ms_time(d.p -> 'purchased_at_ms') is null then 'purchased_at_ms'
              when internal.is_said(d.p -> 'grace_period_expiration_at_ms')
                and internal.ms_time(d.p -> 'grace_period_expiration_at_ms') is null
                   then 'grace_period_expiration_at_ms'
              when internal.is_said(d.p -> 'entitlement_ids')
                   and (jsonb_typeof(d.p -> 'entitlement_ids') <> 'array'
                        or jsonb_path_exists(d.p, '$.entitlement_ids[*] ? (@.type() != "string")'))
                   then 'entitlement_ids'
              when internal.is_said(d.p -> 'price') and internal.number_in(d.p -> 'price') is null then 'price'
              when internal.is_said(d.p -> 'cancel_reason')
                and jsonb_typeof(d.p -> 'cancel_reason') <> 'string' then 'cancel_reason'
              when internal.is_said(d.p -> 'period_type')
                and jsonb_typeof(d.p -> 'period_type') <> 'string' then 'period_type' end
    from (select subscription_doubt.event as p,
                 subscription_doubt.event ->> 'type' in ('INITIAL_PURCHASE', 'RENEWAL', 'NON_RENEWING_PURCHASE',
                                                         'TEMPORARY_ENTITLEMENT_GRANT') as is_purchase,
                 jsonb_populate_record(null::app.subscription_events,
                                       jsonb_build_object('type', subscription_doubt.event -> 'type', 'payload',
                                                          subscription_doubt.event,
                                                          'event_at', '2000-01-01T00:00:00Z')) as e) d
$$;
comment on function internal.subscription_doubt is
  'The first field of an event that decides about access and cannot be understood, or is missing; null for none.';

create or replace function internal.subscription_fold(s app.subscriptions, events app.subscription_events[])
returns app.subscriptions
language plpgsql stable as $$
declare
  now_is app.subscriptions := subscription_fold.s;
  e app.subscription_events;
  expires_at timestamptz;
  paid_until timestamptz;
begin
  foreach e in array subscription_fold.events loop
    expires_at := internal.ms_time(e.payload -> 'expiration_at_ms');
    if e.type in ('INITIAL_PURCHASE', 'RENEWAL', 'NON_RENEWING_PURCHASE', 'TEMPORARY_ENTITLEMENT_GRANT') then
      paid_until := internal.subscription_paid_until(now_is, e);
      continue when paid_until is null;
      -- a purchase after a refund begins the subscription again
      if upper(internal.text_in(e.payload, 'period_type')) = 'TRIAL' then
        now_is.trial_started_at := coalesce(now_is.trial_started_at, e.event_at);
      elsif now_is.period_type = 'trial' then
        now_is.trial_converted_at := coalesce(now_is.trial_converted_at, e.event_at);
      end if;
      now_is.source_ref := e.source_ref;
      now_is.product_id := coalesce(internal.text_in(e.payload, 'product_id'), now_is.product_id);
      now_is.store := lower(coalesce(internal.text_in(e.payload, 'store'), now_is.store, 'unknown'));
      now_is.environment := case upper(internal.text_in(e.payload, 'environment')) when 'SANDBOX' then 'sandbox'
                                 when 'PRODUCTION' then 'production'
                                                                                   else coalesce(now_is.environment,
                                                                                     'production') end;
      now_is.period_type := lower(coalesce(internal.text_in(e.payload, 'period_type'), 'normal'));
      now_is.entitlement_ids := internal.subscription_entitlements(e.payload);
      -- a renewal is told up to a day before it begins, and none years before
      now_is.purchase_date := case
                                   when internal.ms_time(e.payload -> 'purchased_at_ms') <= e.event_at + interval
                                     '7 days'
                                   then internal.ms_time(e.payload -> 'purchased_at_ms') else e.event_at end;
      now_is.expiration_date := nullif(paid_until, 'infinity');
      now_is.grace_until := null;
      now_is.billing_issue_at := null;
      now_is.cancelled_at := null;
      now_is.paused_at := null;
      now_is.refunded_at := null;
    elsif now_is.source_ref is null and e.type <> 'RESTORE' then
      -- an event before the purchase has no effect
      continue;
    elsif e.type = 'CANCELLATION' and (e.payload ->> 'cancel_reason' = 'CUSTOMER_SUPPORT'
                                       or internal.is_refund(e.payload)) then
      now_is.refunded_at := e.event_at;
      now_is.cancelled_at := coalesce(now_is.cancelled_at, e.event_at);
    elsif e.type = 'CANCELLATION' then
      now_is.cancelled_at := e.event_at;
      now_is.expiration_date := coalesce(expires_at, now_is.expiration_date);
    elsif e.type = 'UNCANCELLATION' then
      now_is.cancelled_at := null;
      now_is.paused_at := null;
      now_is.expiration_date := coalesce(expires_at, now_is.expiration_date);
    elsif e.type = 'BILLING_ISSUE' then
      now_is.billing_issue_at := e.event_at;
      now_is.grace_until := internal.ms_time(e.payload -> 'grace_period_expiration_at_ms');
    elsif e.type = 'SUBSCRIPTION_PAUSED' then
      now_is.paused_at := e.event_at;
    elsif e.type = 'SUBSCRIPTION_EXTENDED' then
      now_is.expiration_date := coalesce(expires_at, now_is.expiration_date);
    elsif e.type = 'REFUND_REVERSED' then
      now_is.refunded_at := null;
      now_is.cancelled_at := null;
      now_is.expiration_date := coalesce(expires_at, now_is.expiration_date);
    elsif e.type = 'EXPIRATION' then
      -- the provider's end is final, whatever was paid or granted as grace
      now_is.expiration_date := least(coalesce(expires_at, now_is.expiration_date), e.event_at);
      now_is.grace_until := null;
    elsif e.type = 'RESTORE' then
      now_is := internal.subscription_restored(now_is, e);
    else
      -- of a kind without effect
      continue;
    end if;
    now_is.last_event_at := greatest(now_is.last_event_at, e.event_at);
  end loop;
  return case when now_is.source_ref is not null then now_is end;
end $$;
comment on function internal.subscription_fold is
  'Folds events, in their order, into a subscription. s is null for a new one; returns null when no event is its
   purchase. What an event does not say, or says in a form that nobody understands, never gives access for longer: a
   purchase without an end is passed over where none is known. Reads neither the clock nor tables.';

create or replace function internal.subscription_restored(s app.subscriptions, e app.subscription_events)
returns app.subscriptions
language plpgsql stable as $$
declare
  now_is app.subscriptions := subscription_restored.s;
  p constant jsonb := (subscription_restored.e).payload;
  at constant timestamptz := (subscription_restored.e).event_at;
  state constant text := coalesce(p ->> 'status', '');
  ends timestamptz;
begin
  now_is.source_ref := (subscription_restored.e).source_ref;
  -- product_id is the provider's own id, which former versions showed for want of a better one
  now_is.product_id := coalesce(internal.text_in(p, 'store_product_id'), now_is.product_id,
                                case when not p ? 'store_product_id' then internal.text_in(p, 'product_id') end);
  now_is.store := coalesce(now_is.store, lower(p ->> 'store'), 'unknown');
  now_is.environment := coalesce(p ->> 'environment', now_is.environment, 'production');
  now_is.period_type := case when state = 'trialing' then 'trial'
                             else coalesce(nullif(now_is.period_type, 'trial'), 'normal') end;
  now_is.trial_started_at := case when state = 'trialing' then coalesce(now_is.trial_started_at, at)
                                  else now_is.trial_started_at end;
  if jsonb_typeof(p -> 'entitlement_ids') = 'array' then
    now_is.entitlement_ids := internal.subscription_entitlements(p);
  end if;
  now_is.purchase_date := coalesce(internal.ms_time(p -> 'purchased_at_ms'), now_is.purchase_date, at);
  now_is.paused_at := case when state = 'paused' then coalesce(now_is.paused_at, at) end;
  now_is.refunded_at := case when state = 'refunded' then coalesce(now_is.refunded_at, at) end;
  if coalesce((p -> 'gives_access')::boolean, false) then
    ends := coalesce(internal.ms_time(p -> 'expiration_at_ms'), internal.ms_time(p -> 'access_until_ms'),
                     -- what is bought once does not renew; of subscriptions only those that are given away have no end
                     case when not internal.is_said(p -> 'expiration_at_ms')
                          and (not internal.is_said(p -> 'will_renew') or lower(p ->> 'store') = 'promotional')
                          then 'infinity'::timestamptz end,
                     least(now_is.expiration_date, at), at);
    now_is.expiration_date := nullif(ends, 'infinity');
    now_is.billing_issue_at := case when state = 'in_grace_period' then coalesce(now_is.billing_issue_at, at) end;
    now_is.grace_until := case when state = 'in_grace_period' then internal.ms_time(p -> 'access_until_ms') end;
    now_is.cancelled_at := case when p -> 'will_renew' = 'false' then coalesce(now_is.cancelled_at, at) end;
  else
    now_is.expiration_date := least(coalesce(internal.ms_time(p -> 'expiration_at_ms'), now_is.expiration_date), at);
    now_is.grace_until := null;
  end if;
  return now_is;
end $$;
comment on function internal.subscription_restored is
  'A subscription in the state that the provider has answered to a restore, which counts whatever came before. Reads
   neither the clock nor tables.';

create or replace function internal.subscription_rank(kind text) returns int
language sql immutable parallel safe as $$
  select case when subscription_rank.kind in ('INITIAL_PURCHASE', 'NON_RENEWING_PURCHASE',
                                              'TEMPORARY_ENTITLEMENT_GRANT') then 0
              when subscription_rank.kind = 'RENEWAL' then 1 when subscription_rank.kind = 'RESTORE' then 3 else 2 end
$$;
comment on function internal.subscription_rank is
  'The order of events of the same time: purchases first, so that the order of arrival never counts.';

create or replace function internal.subscription_history(source_ref text) returns app.subscription_events[]
language sql stable as $$
  select coalesce(array_agg(e order by e.event_at, internal.subscription_rank(e.type), e.id), '{}')
    from app.subscription_events e
   where e.source_ref = subscription_history.source_ref
$$;
comment on function internal.subscription_history is
  'The events of a subscription in the order in which they are folded: that of their own times.';

create or replace function internal.subscription_entitlements(payload jsonb) returns text[]
language sql immutable as $$
  select coalesce((select array_agg(distinct i.id order by i.id)
                     from jsonb_array_elements_text(
                            case when jsonb_typeof(subscription_entitlements.payload -> 'entitlement_ids') = 'array'
                                 then jsonb_path_query_array(subscription_entitlements.payload,
                                                             '$.entitlement_ids[*] ? (@.type() == "string")')
                                 when jsonb_typeof(subscription_entitlements.payload -> 'entitlement_id') = 'string'
                                 then jsonb_build_array(subscription_entitlements.payload -> 'entitlement_id')
                                   else '[]' end) as i (id)
                    where char_length(i.id) between 1 and 128), '{}')
$$;
comment on function internal.subscription_entitlements is
  'The entitlements that an event of the provider names; older formats name a single one.';

create or replace function internal.is_refund(payload jsonb) returns boolean
language sql immutable as $$
  select coalesce(internal.number_in(is_refund.payload -> 'price') < 0, false)
$$;
comment on function internal.is_refund is 'Whether an event of the provider is a refund: its price is negative.';

create or replace function internal.subscription_grants(s app.subscriptions) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.entitlement_grants as g
    (app_user_id, entitlement_id, source, source_ref, product_id, store, period_type, purchase_date, expiration_date,
     grace_until, cancelled_at, refunded_at)
  select (subscription_grants.s).app_user_id, e.id, 'subscription_provider', (subscription_grants.s).source_ref,
         (subscription_grants.s).product_id,
         (subscription_grants.s).store, (subscription_grants.s).period_type, (subscription_grants.s).purchase_date,
         (subscription_grants.s).expiration_date, (subscription_grants.s).grace_until,
         (subscription_grants.s).cancelled_at,
         (subscription_grants.s).refunded_at
    from unnest((subscription_grants.s).entitlement_ids) as e (id)
   order by e.id
  on conflict on constraint entitlement_grants_once_per_source do update
     set product_id = excluded.product_id, store = excluded.store, period_type = excluded.period_type,
       purchase_date = excluded.purchase_date,
         expiration_date = excluded.expiration_date, grace_until = excluded.grace_until,
         cancelled_at = excluded.cancelled_at,
         refunded_at = excluded.refunded_at, updated_at = internal.now()
   where (g.product_id, g.store, g.period_type, g.purchase_date, g.expiration_date, g.grace_until, g.cancelled_at,
          g.refunded_at)
         is distinct from (excluded.product_id, excluded.store, excluded.period_type, excluded.purchase_date,
                           excluded.expiration_date,
                           excluded.grace_until, excluded.cancelled_at, excluded.refunded_at);
  -- entitlements that the present product does not include ended at its purchase
  update app.entitlement_grants g
     set expiration_date = (subscription_grants.s).purchase_date, grace_until = null, updated_at = internal.now()
   where g.source = 'subscription_provider' and g.source_ref = (subscription_grants.s).source_ref
     and g.app_user_id = (subscription_grants.s).app_user_id
     and not g.entitlement_id = any ((subscription_grants.s).entitlement_ids)
     and internal.grant_end(g) > (subscription_grants.s).purchase_date;
end $$;
comment on function internal.subscription_grants is
  'Writes the grants that follow from a subscription. The user must be locked. Granted to nobody.';

create or replace function internal.active_entitlements(app_user_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select coalesce(array_agg(distinct g.entitlement_id), '{}')
    from app.entitlement_grants g
   where g.app_user_id = active_entitlements.app_user_id and internal.grant_end(g) > internal.now()
$$;
comment on function internal.active_entitlements is 'The ids of a user''s active entitlements. Granted to nobody.';

create or replace function internal.entitlements_notify(app_user_id uuid, before text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  after constant text[] := internal.active_entitlements(entitlements_notify.app_user_id);
begin
  perform internal.emit_many(array_agg(entitlements_notify.app_user_id order by c.id),
                             array_agg(c.event_name order by c.id),
                             array_agg(jsonb_build_object('entitlement_id', c.id, 'source',
                                                          'subscription_provider') order by c.id))
     from (select a.id, 'svc.entitlement.granted' as event_name from unnest(after) as a (id)
            where a.id <> all (entitlements_notify.before)
           union all
           select b.id, 'svc.entitlement.revoked' from unnest(entitlements_notify.before) as b (id)
            where b.id <> all (after)) c
   -- no event when nothing changed
   having count(*) > 0;
end $$;
comment on function internal.entitlements_notify is
  'Emits svc.entitlement.granted and svc.entitlement.revoked for the entitlements that a user gained or lost since
   `before`. The user must be locked. Granted to nobody.';

create or replace function internal.subscription_store(s app.subscriptions) returns app.subscriptions
language plpgsql volatile security definer set search_path = '' as $$
declare
  w constant app.subscriptions := subscription_store.s;
  stored app.subscriptions;
begin
  insert into app.subscriptions as k
    (app_user_id, source_ref, product_id, store, environment, period_type, entitlement_ids, purchase_date,
     expiration_date, grace_until, billing_issue_at,
     cancelled_at, paused_at, refunded_at, trial_started_at, trial_converted_at, last_event_at)
  values (w.app_user_id, w.source_ref, w.product_id, w.store, w.environment, w.period_type, w.entitlement_ids,
          w.purchase_date, w.expiration_date,
          w.grace_until, w.billing_issue_at, w.cancelled_at, w.paused_at, w.refunded_at, w.trial_started_at,
          w.trial_converted_at, w.last_event_at)
  on conflict on constraint subscriptions_one_per_source_ref do update
     set product_id = excluded.product_id, store = excluded.store, environment = excluded.environment,
       period_type = excluded.period_type,
         entitlement_ids = excluded.entitlement_ids, purchase_date = excluded.purchase_date,
         expiration_date = excluded.expiration_date,
         grace_until = excluded.grace_until, billing_issue_at = excluded.billing_issue_at,
         cancelled_at = excluded.cancelled_at,
         paused_at = excluded.paused_at, refunded_at = excluded.refunded_at,
         trial_started_at = excluded.trial_started_at,
         trial_converted_at = excluded.trial_converted_at, last_event_at = excluded.last_event_at,
         updated_at = internal.now()
  returning k.* into stored;
  perform internal.subscription_grants(stored);
  return stored;
end $$;
comment on function internal.subscription_store is
  'Stores a subscription and its grants. The user must be locked. Granted to nobody.';

create or replace function internal.subscription_with_grants(s app.subscriptions) returns json
language sql stable as $$
  select internal.json_merge(internal.subscription_json(subscription_with_grants.s), json_build_object('grants', (
           select coalesce(json_agg(internal.json_merge(json_build_object('entitlement_id', g.entitlement_id),
                                                        internal.grant_json(g)) order by g.entitlement_id), '[]')
             from app.entitlement_grants g
            where g.source = 'subscription_provider' and g.source_ref = (subscription_with_grants.s).source_ref)))
$$;
comment on function internal.subscription_with_grants is 'A subscription with the grants that follow from it.';

create or replace function internal.subscription_replay(subscription_id uuid, dry_run boolean) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  s app.subscriptions;
  folded app.subscriptions;
  held text[];
  before json;
  after json;
begin
  perform internal.check_caller('developer', 'subscriptions are replayed by administrators');
  select k.* into s from app.subscriptions k where k.id = subscription_replay.subscription_id;
  perform internal.lock_users(array[s.app_user_id]);
  select k.* into s from app.subscriptions k where k.id = s.id for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The subscription was deleted with its user just now.');
  end if;
  before := internal.subscription_with_grants(s);
  after := before;
  held := internal.active_entitlements(s.app_user_id);
  folded := internal.subscription_fold(null, internal.subscription_history(s.source_ref));
  -- a subscription that an administrator made, or that was imported, may have no purchase among its events: then there
  -- is nothing to fold
  if folded.source_ref is not null then
    folded.app_user_id := s.app_user_id;
    begin
      -- two statements, so that the second sees the rows that the first wrote
      s := internal.subscription_store(folded);
      after := internal.subscription_with_grants(s);
      if subscription_replay.dry_run then
        raise exception using errcode = 'TR003';
      end if;
      update app.subscription_events e set outcome = 'applied'
        where e.source_ref = s.source_ref and e.outcome = 'older';
      perform internal.entitlements_notify(s.app_user_id, held);
    exception when sqlstate 'TR003' then
      null;
    end;
  end if;
  return json_build_object('before', before, 'after', after,
                           'changed', internal.without_times(before::jsonb) <> internal.without_times(after::jsonb));
end $$;
comment on function internal.subscription_replay is
  'Folds all stored events of a subscription again, including those that arrived too late to be applied: {before, after,
   changed}. A dry run writes nothing. For administrators. Refuses 404 NOT_FOUND. Locks the user, then the
   subscription.';

create or replace function internal.without_times(shown jsonb) returns jsonb
language sql immutable as $$
  select shown - 'updated_at' || jsonb_build_object('grants', (
           select coalesce(jsonb_agg(g.value - 'updated_at' - 'created_at' - 'id' order by g.n), '[]')
             from jsonb_array_elements(shown -> 'grants') with ordinality as g (value, n)))
$$;
comment on function internal.without_times is 'A subscription without the times of its writes, for comparison.';
