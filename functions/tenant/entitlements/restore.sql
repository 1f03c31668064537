-- Restoring purchases: the server asks the provider what a user owns, and the provider's answer becomes the state.
create or replace function api.restore_begin(app_user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  them app.users;
  sealed text;
begin
  perform internal.check_caller('worker', 'purchases are restored by the server');
  select u.* into them from app.users u where u.id = restore_begin.app_user_id;
  perform internal.check_found(them.id is not null, 'user', 'USER_NOT_FOUND');
  select i.config_sealed into sealed from app.integrations i where i.provider = 'revenuecat' and i.is_active;
  if sealed is null then
    perform internal.fail(409, 'RESTORE_UNAVAILABLE', 'This project has no active subscription integration.');
  end if;
  perform internal.check_rate('restore ' || them.id, 10, 60, 'Purchases are restored at most ten times a minute.');
  return internal.reply(200, json_build_object('config_sealed', sealed,
                                               'names', array(select n.name from internal.provider_names(them.id, 5) n),
                                               'asked_at', internal.iso(internal.now())));
end $$;
comment on function api.restore_begin is
  'For the server: what a restore needs: {config_sealed, names, asked_at}, the names by which the provider may know the
   user, with those of five merged users at most, and the time of which its answer is. Its refusals are those of the
   route: 404 USER_NOT_FOUND, 409 RESTORE_UNAVAILABLE, 429 RATE_LIMITED.';

create or replace function internal.subscriptions_restored_as(purchase jsonb) returns setof text
language sql stable security definer set search_path = '' as $$
  select e.source_ref
    from app.subscription_events e
   where e.type = 'RESTORE' and left(e.payload ->> 'provider_id', 255) =
     left(subscriptions_restored_as.purchase ->> 'provider_id', 255)
   group by e.source_ref
   order by max(e.event_at) desc
$$;
comment on function internal.subscriptions_restored_as is
  'The subscriptions that were restored as the same object of the provider, whose id stays when the identifier in the
   store changes with a renewal. Granted to nobody.';

create or replace function internal.subscription_matching(app_user_id uuid, purchase jsonb) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce(
    (select s.source_ref
       from app.subscriptions s
      -- the order of a renewal on Google Play is that of the purchase with a number behind it
      where s.source_ref in (subscription_matching.purchase ->> 'ref',
                             split_part(subscription_matching.purchase ->> 'ref', '..', 1))
      order by s.source_ref = subscription_matching.purchase ->> 'ref' desc
      limit 1),
    (select e.source_ref
       from app.subscription_events e
       join app.subscriptions s on s.source_ref = e.source_ref
      where left(e.payload ->> 'transaction_id', 255) =
        left(subscription_matching.purchase ->> 'ref', 255) and e.source_ref is not null
      order by e.event_at desc
      limit 1),
    -- renewed since the last restore
    (select r.ref
       from internal.subscriptions_restored_as(subscription_matching.purchase) as r (ref)
       join app.subscriptions s on s.source_ref = r.ref
      limit 1),
    -- renewed since the last event: known by the time of its first purchase; so are restores that did not store the
    -- provider's id yet
    (select s.source_ref
       from app.subscriptions s
       join app.subscription_events e on e.source_ref = s.source_ref
      where s.app_user_id = subscription_matching.app_user_id
        and s.store = lower(subscription_matching.purchase ->> 'store')
        and (e.type in ('INITIAL_PURCHASE', 'NON_RENEWING_PURCHASE')
             or e.type = 'RESTORE' and e.payload ->> 'provider_id' is null
             and e.payload ->> 'product_id' = subscription_matching.purchase ->> 'product_id')
        and abs(extract(epoch from internal.ms_time(case when e.type = 'RESTORE' then e.payload -> 'starts_at_ms'
                                                         else e.payload -> 'purchased_at_ms' end)
                                   - internal.ms_time(subscription_matching.purchase -> 'starts_at_ms'))) < 1
      order by e.event_at desc
      limit 1),
    left(subscription_matching.purchase ->> 'ref', 255))
$$;
comment on function internal.subscription_matching is
  'The subscription that is a purchase of the provider''s answer: by its identifier in the store, by a transaction of
   its events, by the provider''s own id, or by its beginning; the identifier itself for a new one. Granted to nobody.';

create or replace function internal.subscription_confirm(app_user_id uuid, source_ref text, purchase jsonb,
                                                         names text[], asked_at timestamptz)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  s app.subscriptions;
  folded app.subscriptions;
  e app.subscription_events;
  is_late boolean;
begin
  select k.* into s from app.subscriptions k where k.source_ref = subscription_confirm.source_ref for no key update;
  e.id := 'restore:' || internal.new_id();
  e.source_ref := subscription_confirm.source_ref;
  e.app_user_id := subscription_confirm.app_user_id;
  e.type := 'RESTORE';
  e.event_at := subscription_confirm.asked_at;
  e.payload := subscription_confirm.purchase;
  e.outcome := 'applied';
  e.received_at := internal.now();
  e.names := subscription_confirm.names;
  -- something has happened since the provider was asked: its answer is folded before that
  is_late := coalesce(s.last_event_at > e.event_at, false);
  folded := internal.subscription_fold(s, array[e]);
  folded.app_user_id := e.app_user_id;
  if not is_late and s.id is not null and to_jsonb(folded) - 'last_event_at' = to_jsonb(s) - 'last_event_at' then
    -- as it is known: only the grants are checked
    perform internal.subscription_grants(s);
    return;
  end if;
  insert into app.subscription_events (id, source_ref, app_user_id, type, event_at, payload, outcome, received_at,
                                       names) values (e.*);
  if is_late then
    folded := internal.subscription_fold(null, internal.subscription_history(e.source_ref));
    folded.app_user_id := case when internal.subscription_owner(e.source_ref) = e.app_user_id then e.app_user_id
                               else s.app_user_id end;
    if to_jsonb(folded) - '{id,created_at,updated_at}'::text[] = to_jsonb(s) - '{id,created_at,updated_at}'::text[] then
      delete from app.subscription_events k where k.id = e.id;
      perform internal.subscription_grants(s);
      return;
    end if;
  end if;
  if s.app_user_id <> folded.app_user_id then
    delete from app.entitlement_grants g
     where g.app_user_id = s.app_user_id and g.source = 'subscription_provider' and g.source_ref = s.source_ref;
    update app.subscriptions k set app_user_id = folded.app_user_id where k.id = s.id;
  end if;
  perform internal.subscription_store(folded);
end $$;
comment on function internal.subscription_confirm is
  'Brings one subscription to the state of the provider''s answer, which is stored as an event of type RESTORE when it
   changes anything. Its time is that of the question: events of a later time count more. Users must be locked. Granted
   to nobody.';

create or replace function api.subscriptions_restore(app_user_id uuid, names jsonb, purchases jsonb, is_known boolean,
                                                     asked_at timestamptz)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  names_given constant text[] := internal.subscription_texts(subscriptions_restore.names);
  them constant uuid := subscriptions_restore.app_user_id;
  matched jsonb;
  users uuid[];
  locked uuid[];
  held jsonb;
  item record;
begin
  perform internal.check_caller('worker', 'purchases are restored by the server');
  -- restores of one purchase by several users go one after the other: each finds the owner whom the one before it has
  -- made
  perform internal.advisory_lock('restore', l.ref)
     from (select distinct coalesce(p.value ->> 'provider_id', p.value ->> 'ref') as ref
             from jsonb_array_elements(subscriptions_restore.purchases) p
            order by 1
            limit 200) l;
  select coalesce(jsonb_agg(p.value || jsonb_build_object('source_ref', internal.subscription_matching(them, p.value))),
                  '[]') into matched
    from jsonb_array_elements(subscriptions_restore.purchases) p;
  users := array(select distinct s.app_user_id
                   from jsonb_array_elements(matched) m
                   join app.subscriptions s on s.source_ref = any (array[m.value ->> 'source_ref']
                                                                   || array(select internal.subscriptions_restored_as(
                                                                     m.value)))) || them;
  locked := internal.lock_users(users);
  if them = any (coalesce(locked, '{}')) is not true then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  elsif exists (select from jsonb_array_elements(matched) m
                  join app.subscriptions s on s.source_ref = m.value ->> 'source_ref'
                 where s.app_user_id <> all (locked)) then
    raise exception 'a subscription has moved to another user' using errcode = '40001';
  end if;
  select jsonb_object_agg(u, internal.active_entitlements(u)) into held from unnest(locked) u;
  -- restored before its events came, and again after a renewal: one subscription
  perform internal.subscription_absorb(m.value ->> 'source_ref', r.ref)
     from jsonb_array_elements(matched) m
    cross join lateral internal.subscriptions_restored_as(m.value) as r (ref);
  -- the answer of now counts more than those, which are stored as folded
  update app.subscription_events e
     set outcome = 'applied'
   where e.type = 'RESTORE' and e.outcome = 'waiting'
     and e.source_ref in (select m.value ->> 'source_ref' from jsonb_array_elements(matched) m);
  for item in
    select m.value as purchase, m.value ->> 'source_ref' as ref
      from jsonb_array_elements(matched) m
     -- of two that are one here, the one that gives access for longer counts
     order by m.value ->> 'source_ref', (m.value -> 'gives_access')::boolean,
       internal.ms_time(m.value -> 'expiration_at_ms') nulls last
  loop
    perform internal.subscription_confirm(them, item.ref, item.purchase - 'source_ref', names_given,
                                          subscriptions_restore.asked_at);
  end loop;
  -- what the provider no longer has under these names ended there
  if subscriptions_restore.is_known then
    for item in
      select s.source_ref as ref
        from app.subscriptions s
       where s.app_user_id = them and internal.subscription_end(s) > internal.now()
         and not exists (select from jsonb_array_elements(matched) m where m.value ->> 'source_ref' = s.source_ref)
         and exists (select from app.subscription_events e where e.source_ref = s.source_ref and e.names && names_given)
         -- what arrived since the provider was asked may be missing in its answer
         and not exists (select from app.subscription_events e
                          where e.source_ref = s.source_ref and e.received_at > subscriptions_restore.asked_at)
       order by s.id
    loop
      perform internal.subscription_confirm(them, item.ref, '{"gives_access": false, "status": "absent"}', names_given,
                                            subscriptions_restore.asked_at);
    end loop;
  end if;
  perform internal.entitlements_notify(u, array(select jsonb_array_elements_text(held -> u::text)))
    from unnest(locked) u order by u;
  return internal.reply(200, json_build_object(
    'restored_count', (select count(distinct i.id)
                         from jsonb_array_elements(matched) m
                        cross join lateral unnest(internal.subscription_entitlements(m.value)) as i (id)
                        where (m.value -> 'gives_access')::boolean
                          and exists (select from internal.best_grants(them, i.id) g
                                       where internal.grant_end(g) > internal.now())),
    'entitlements', (select coalesce(json_agg(internal.entitlement_json(g) order by g.entitlement_id), '[]')
                       from internal.best_grants(them) g)));
end $$;
comment on function api.subscriptions_restore is
  'For the server: brings the user''s subscriptions to the provider''s answer: {restored_count, entitlements}. A
   purchase that another user has here moves; one that the answer lacks ends, unless the provider does not know the user
   at all, or it was reported since the provider was asked. A user who is gone is 404 USER_NOT_FOUND. Locks the users,
   then the subscriptions.';
