-- What feeds publish, to the channels of groups.

select internal.source_declare(null::app.feed_entries,
  'feed.created, the entry, to those of its group who see it: nothing of banned actors. Blocks and hidden actions are '
  'those of a listener when it is sent.',
  ops => 'insert', by_statement => '{id}', has_meta => true, publishes => $q$
    select 'group:' || r.group_id, 'feed.created', internal.feed_entry_json(e),
           json_build_object('actor', r.actor_id, 'action', r.action)
      from app.feed_entries e
     where e.id = r.id and e.group_id is not null
       and not exists (select from app.users u where u.id = e.actor_id and u.is_banned)$q$);
