-- What entitlements publish.

select internal.source_declare(null::app.entitlement_grants,
  'entitlement.updated, the entitlement, to its user.',
  ops => 'insert or update', publishes => $q$select 'user:' || r.app_user_id, 'entitlement.updated',
  internal.entitlement_json(r)$q$);
