-- What the inbox publishes.

select internal.source_declare(null::app.push_inbox_items,
  'push.inbox, the item, to the user whose inbox it is in.',
  ops => 'insert', by_statement => '{id}', publishes => $q$select 'user:' || r.app_user_id, 'push.inbox',
  internal.push_inbox_json(r)$q$);
