-- Reads of subscriptions by administrators.
create or replace function internal.subscription_find(subscription_id uuid) returns app.subscriptions
language plpgsql stable as $$
declare
  found_one app.subscriptions;
begin
  select s.* into found_one from app.subscriptions s where s.id = subscription_find.subscription_id;
  perform internal.check_found(found_one.id is not null, 'subscription');
  return found_one;
end $$;
comment on function internal.subscription_find is 'A subscription by its id. Refuses 404 NOT_FOUND.';

select internal.list_declare('subscriptions_page', null::app.subscriptions, 'subscription_json', '{created_at,id}',
                             filters => '{product_id,store,app_user_id}',
                             is_counted => true);

create or replace function api.subscriptions_list(page_limit int default 50, page_offset bigint default 0,
                                                  status text default null, product_id text default null,
                                                  store text default null, user_id uuid default null,
                                                  expiring_before text default null,
                                                  include text default null)
returns api.reply
language plpgsql stable as $$
declare
  until constant timestamptz := internal.as_time(subscriptions_list.expiring_before);
begin
  if subscriptions_list.expiring_before is not null and until is null then
    perform internal.fail(400, 'INVALID_INPUT', 'expiring_before: must be an ISO 8601 time',
                          '{"parameter": "expiring_before"}');
  end if;
  -- what follows from the clock no index knows
  if subscriptions_list.status is null and until is null then
    return internal.reply_with_users(
      internal.subscriptions_page(subscriptions_list.product_id, lower(subscriptions_list.store),
                                  subscriptions_list.user_id, subscriptions_list.page_offset,
                                  subscriptions_list.page_limit),
      subscriptions_list.include);
  end if;
  return internal.reply_with_users((
    with chosen as materialized (
      select s.id, s.created_at
        from app.subscriptions s
       where (subscriptions_list.status is null or internal.subscription_status(s) = subscriptions_list.status)
         and (subscriptions_list.product_id is null or s.product_id = subscriptions_list.product_id)
         and (subscriptions_list.store is null or s.store = lower(subscriptions_list.store))
         and (subscriptions_list.user_id is null or s.app_user_id = subscriptions_list.user_id)
         -- only active subscriptions: an ended one no longer expires
         and (until is null or s.expiration_date < until and internal.subscription_end(s) > internal.now())
    )
    select internal.reply_page(
             (select json_agg(internal.subscription_json(p.s) order by (p.s).created_at desc, (p.s).id desc)
                from (select s
                        from chosen c
                        join app.subscriptions s on s.id = c.id
                       order by c.created_at desc, c.id desc
                       limit subscriptions_list.page_limit offset subscriptions_list.page_offset) p),
             (select count(*) from chosen), subscriptions_list.page_offset, subscriptions_list.page_limit)),
    subscriptions_list.include);
end $$;
comment on function api.subscriptions_list is
  'Subscriptions, newest first; filters: status, product, store, user, and active subscriptions that end before a time.
   Refuses 400 INVALID_INPUT.';

create or replace function api.subscription_get(subscription_id uuid) returns api.reply
language plpgsql stable as $$
declare
  s constant app.subscriptions := internal.subscription_find(subscription_get.subscription_id);
begin
  return internal.reply(200, internal.json_merge(internal.subscription_with_grants(s),
                                                 json_build_object('source_ref', s.source_ref, 'events', coalesce((
    select json_agg(json_build_object('id', e.id, 'type', e.type, 'event_at', internal.iso(e.event_at),
                                      'received_at', internal.iso(e.received_at),
                                      'outcome', e.outcome, 'product_id', internal.text_in(e.payload,
                                        case e.type when 'RESTORE' then 'store_product_id' else 'product_id' end),
                                      'period_type', lower(internal.text_in(e.payload, 'period_type')),
                                      'expiration_date', internal.iso(
                                        internal.ms_time(e.payload -> 'expiration_at_ms')))
                    order by e.event_at, internal.subscription_rank(e.type), e.id)
      from app.subscription_events e
     where e.source_ref = s.source_ref), '[]'))));
end $$;
comment on function api.subscription_get is
  'A subscription with its grants, and its events in the order of their own times. Refuses 404 NOT_FOUND.';

create or replace function api.subscriptions_summary() returns api.reply
language sql stable as $$
  with standing as materialized (
    select internal.subscription_status(s) as status, s.product_id, s.store,
           internal.subscription_end(s) > internal.now() as has_access
      from app.subscriptions s
  )
  select internal.reply(200, json_build_object(
    'statuses', (select json_object_agg(k.status,
                                        (select count(*) from standing s where s.status = k.status) order by k.n)
                   from unnest(array['trial', 'active', 'grace', 'cancelled', 'paused', 'refunded',
                                     'expired']) with ordinality as k (status, n)),
    'trials_30d', json_build_object(
      'started', (select count(*) from app.subscriptions s
                   where s.trial_started_at > internal.now() - interval '30 days'),
      'converted', (select count(*) from app.subscriptions s
                     where s.trial_converted_at > internal.now() - interval '30 days')),
    'active_by_product', coalesce((
      select json_agg(json_build_object('product_id', p.product_id, 'store', p.store,
                                        'active', p.active) order by p.active desc, p.product_id, p.store)
        from (select s.product_id, s.store, count(*) as active from standing s where s.has_access group by 1, 2) p),
          '[]')))
$$;
comment on function api.subscriptions_summary is
  'The number of subscriptions in each status, of trials started and converted in 30 days, and of active subscriptions
   by product.';

create or replace function api.subscription_replay(subscription_id uuid, dry_run boolean default true) returns api.reply
language plpgsql volatile as $$
declare
  s constant app.subscriptions := internal.subscription_find(subscription_replay.subscription_id);
  outcome constant json := internal.subscription_replay(s.id, subscription_replay.dry_run);
begin
  if not subscription_replay.dry_run then
    perform internal.audit_act('subscriptions.replay', 'subscriptions', s.id::text, json_build_object(
      'status', json_build_array(outcome -> 'before' -> 'status', outcome -> 'after' -> 'status'),
      'expiration_date', json_build_array(outcome -> 'before' -> 'expiration_date',
                                          outcome -> 'after' -> 'expiration_date')), 200);
  end if;
  return internal.reply(200, outcome);
end $$;
comment on function api.subscription_replay is
  'Folds the stored events again: {before, after, changed}; writes only with dry_run false, audited as
   subscriptions.replay. Refuses 404 NOT_FOUND.';
