-- Reads of entitlements. An entitlement shows the grant that lasts longest: access lasts while any grant is active.
create or replace function internal.grant_end(g app.entitlement_grants) returns timestamptz
language sql immutable as $$
  -- a billing issue does not end access before the end of its grace period
  select case when (grant_end.g).refunded_at is not null then least((grant_end.g).refunded_at,
                                                                    (grant_end.g).expiration_date)
              when (grant_end.g).expiration_date is null then 'infinity'
              else greatest((grant_end.g).expiration_date, (grant_end.g).grace_until) end
$$;
comment on function internal.grant_end is
  'The time until which a grant gives access: infinity for life, the end of grace after a billing issue, the time of a
   refund.';

create or replace function internal.entitlement_json(g app.entitlement_grants) returns json
language sql stable as $$
  select json_build_object(
    'entitlement_id', (entitlement_json.g).entitlement_id,
      'is_active', internal.grant_end(entitlement_json.g) > internal.now(),
    'product_id', (entitlement_json.g).product_id, 'store', (entitlement_json.g).store,
    'purchase_date', internal.iso((entitlement_json.g).purchase_date),
    'expiration_date', internal.iso(nullif(internal.grant_end(entitlement_json.g), 'infinity')),
    'period_type', (entitlement_json.g).period_type)
$$;
comment on function internal.entitlement_json is 'An entitlement as the API shows it, from its best grant.';

create or replace function internal.grant_json(g app.entitlement_grants) returns json
language sql stable as $$
  select json_build_object(
    'id', (grant_json.g).id, 'source', (grant_json.g).source, 'source_ref', (grant_json.g).source_ref,
    'is_active', internal.grant_end(grant_json.g) > internal.now(), 'product_id', (grant_json.g).product_id,
    'store', (grant_json.g).store,
    'period_type', (grant_json.g).period_type, 'purchase_date', internal.iso((grant_json.g).purchase_date),
    'expiration_date', internal.iso((grant_json.g).expiration_date),
    'grace_until', internal.iso((grant_json.g).grace_until),
    'cancelled_at', internal.iso((grant_json.g).cancelled_at), 'refunded_at', internal.iso((grant_json.g).refunded_at),
    'reason', (grant_json.g).reason, 'created_at', internal.iso((grant_json.g).created_at),
    'updated_at', internal.iso((grant_json.g).updated_at))
$$;
comment on function internal.grant_json is 'A grant as administrators see it.';

create or replace function internal.best_grants(app_user_id uuid, entitlement_id text default null)
returns setof app.entitlement_grants
language sql stable as $$
  -- the grant that ends last, whether active or not; of those with the same end, the earliest purchase
  select distinct on (g.entitlement_id) g.*
    from app.entitlement_grants g
   where g.app_user_id = best_grants.app_user_id
     and (best_grants.entitlement_id is null or g.entitlement_id = best_grants.entitlement_id)
   order by g.entitlement_id, internal.grant_end(g) desc, g.purchase_date, g.id
$$;
comment on function internal.best_grants is
  'The shown grant of each of a user''s entitlements: the one that ends last.';

create or replace function api.entitlements_list(active_only boolean default false) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(internal.entitlement_json(g) order by g.entitlement_id), '[]'))
    from internal.best_grants(internal.user_id()) g
   where internal.grant_end(g) > internal.now() or not entitlements_list.active_only
$$;
comment on function api.entitlements_list is 'The caller''s entitlements by id, all or only the active ones.';

create or replace function api.entitlement_get(entitlement_id text) returns api.reply
language plpgsql stable as $$
declare
  shown json := (select internal.entitlement_json(g)
                   from internal.best_grants(internal.user_id(), entitlement_get.entitlement_id) g);
begin
  if shown is null then
    perform internal.fail(404, 'NOT_FOUND', 'The user was never granted this entitlement.');
  end if;
  return internal.reply(200, shown);
end $$;
comment on function api.entitlement_get is
  'One of the caller''s entitlements, which may have ended. Refuses 404 NOT_FOUND.';

create or replace function internal.entitlements_with_grants(app_user_id uuid) returns json
language sql stable as $$
  select coalesce(json_agg(internal.json_merge(internal.entitlement_json(g), json_build_object('grants', (
           select json_agg(internal.grant_json(o) order by internal.grant_end(o) desc, o.id)
             from app.entitlement_grants o
            where o.app_user_id = g.app_user_id and o.entitlement_id = g.entitlement_id))) order by g.entitlement_id),
              '[]')
    from internal.best_grants(entitlements_with_grants.app_user_id) g
$$;
comment on function internal.entitlements_with_grants is 'A user''s entitlements, each with all of its grants.';

create or replace function internal.user_section__entitlements(user_id uuid) returns json
language sql stable as $$
  select coalesce(json_agg(internal.entitlement_json(g) order by g.entitlement_id), '[]')
    from internal.best_grants(user_section__entitlements.user_id) g
$$;
comment on function internal.user_section__entitlements is 'The entitlements in an administrator''s view of a user.';

create or replace function internal.entitled_user(user_id text) returns uuid
language plpgsql stable as $$
declare
  id constant uuid := internal.as_uuid(entitled_user.user_id);
begin
  if id is null then
    perform internal.invalid('userId', 'must be a uuid', 'INVALID_USER_ID');
  elsif not exists (select from app.users u where u.id = internal.as_uuid(entitled_user.user_id)) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  return id;
end $$;
comment on function internal.entitled_user is
  'The user named in the path of an administrator''s request. Refuses 400 INVALID_USER_ID, 404 NOT_FOUND.';

create or replace function api.user_entitlements(user_id text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.entitlements_with_grants(internal.entitled_user(user_entitlements.user_id)))
$$;
comment on function api.user_entitlements is 'A user''s entitlements with their grants. Refuses 404 NOT_FOUND.';
