-- What areas publish: one declaration for each table, see declare.sql. What is declared costs nothing in a project that nobody listens to.

select internal.source_declare(null::app.messages,
  'message.created, message.updated and message.deleted, to the conversation; the first two also to each participant. Nothing of a blocked pair, whoever writes there.',
  ops => 'insert or delete', changes => '{body,metadata,attachments}',
  also => 'if op = ''UPDATE'' and internal.is_hidden_by_its_write() then return; end if;', publishes => $q$
    select t.channel, case op when 'INSERT' then 'message.created' when 'UPDATE' then 'message.updated' else 'message.deleted' end, m.shown
      from (select case op when 'DELETE' then json_build_object('id', r.id, 'conversation_id', r.conversation_id) else internal.message_shown(r.id) end as shown offset 0) m
     cross join (select 'conversation:' || r.conversation_id as channel
                 union all
                 select 'user:' || p.app_user_id from app.conversation_participants p where p.conversation_id = r.conversation_id and op <> 'DELETE') t
     where not internal.conversation_is_blocked(r.conversation_id)$q$);

select internal.source_declare(null::app.message_reactions,
  'reaction.added and reaction.removed {message_id, emoji, user_id, count}, to the conversation.',
  ops => 'insert or delete', publishes => $q$
    select 'conversation:' || (select m.conversation_id from app.messages m where m.id = r.message_id),
           case op when 'DELETE' then 'reaction.removed' else 'reaction.added' end,
           json_build_object('message_id', r.message_id, 'emoji', r.emoji, 'user_id', r.app_user_id,
                             'count', (select count(*) from app.message_reactions k where (k.message_id, k.emoji) = (r.message_id, r.emoji)))$q$);

select internal.source_declare(null::app.conversation_participants,
  'participant.added, participant.removed {user_id} and read {user_id, last_read_at}, to the conversation. A removed participant gets nothing later.',
  ops => 'insert or delete', changes => '{last_read_at}',
  also => $q$if op = 'DELETE' then perform internal.recheck_users(array[r.app_user_id]); end if;$q$, publishes => $q$
    select 'conversation:' || r.conversation_id,
           case op when 'INSERT' then 'participant.added' when 'DELETE' then 'participant.removed' else 'read' end,
           case op when 'INSERT' then internal.participant_shown(r.conversation_id, r.app_user_id)
                   when 'DELETE' then json_build_object('user_id', r.app_user_id)
                   else json_build_object('user_id', r.app_user_id, 'last_read_at', internal.iso(r.last_read_at)) end$q$);

select internal.source_declare(null::app.blocks,
  'A block, or its end, changes what both users may hear.',
  ops => 'insert or delete', also => 'perform internal.recheck_users(array[r.blocker, r.blocked]);');

select internal.source_declare(null::app.role_assignments,
  'A role that is assigned or removed changes which channels its user may subscribe to.',
  ops => 'insert or update or delete', also => 'perform internal.recheck_users(array[r.app_user_id]);');

select internal.source_declare(null::app.group_members,
  'member.joined, member.role_changed (the member) and member.left {user_id}, to the group. A former member gets nothing later.',
  ops => 'insert or delete', changes => '{role}', also => 'perform internal.recheck_users(array[r.app_user_id]);', publishes => $q$
    select 'group:' || r.group_id,
           case op when 'INSERT' then 'member.joined' when 'UPDATE' then 'member.role_changed' else 'member.left' end,
           case op when 'DELETE' then json_build_object('user_id', r.app_user_id)
                   else (select internal.group_member_json(r, u) from app.users u where u.id = r.app_user_id) end$q$);

select internal.source_declare(null::app.feed_entries,
  'feed.created, the entry, to those of its group who see it: nothing of banned actors. Blocks and hidden actions are those of a listener when it is sent.',
  ops => 'insert', by_statement => '{id}', has_meta => true, publishes => $q$
    select 'group:' || r.group_id, 'feed.created', internal.feed_entry_json(e), json_build_object('actor', r.actor_id, 'action', r.action)
      from app.feed_entries e
     where e.id = r.id and e.group_id is not null
       and not exists (select from app.users u where u.id = e.actor_id and u.is_banned)$q$);

-- the requester gets no event when a request is declined
select internal.source_declare(null::app.friendships,
  'friend.requested, friend.accepted and friend.removed {user, status}, to both users; the end of a request only to who was asked.',
  ops => 'insert or delete', changes => '{status}', publishes => $q$
    select 'user:' || v.viewer,
           case when op = 'DELETE' then 'friend.removed' when r.status = 'accepted' then 'friend.accepted' else 'friend.requested' end,
           json_build_object(
             'user', coalesce(internal.friend_person(internal.friend_other(r, v.viewer)), json_build_object('id', internal.friend_other(r, v.viewer))),
             'status', case when op = 'DELETE' then 'none' else internal.friend_status(r, v.viewer) end)
      from unnest(case when op = 'DELETE' and r.status = 'pending' then array[r.asked] else array[r.user_a, r.user_b] end) v (viewer)$q$);

select internal.source_declare(null::app.entitlement_grants,
  'entitlement.updated, the entitlement, to its user.',
  ops => 'insert or update', publishes => $q$select 'user:' || r.app_user_id, 'entitlement.updated', internal.entitlement_json(r)$q$);

select internal.source_declare(null::app.currency_transactions,
  'currency.changed {currency_code, balance, amount, reason}, to the user.',
  ops => 'insert', by_statement => '{id}', publishes => $q$
    select 'user:' || r.app_user_id, 'currency.changed',
           json_build_object('currency_code', r.currency_code, 'balance', r.balance_after, 'amount', r.amount, 'reason', r.reason)$q$);

select internal.source_declare(null::app.xp_transactions,
  'xp.changed {total, amount, level}, to the user.',
  ops => 'insert', by_statement => '{id}', publishes => $q$
    select 'user:' || r.app_user_id, 'xp.changed',
           json_build_object('total', r.total_after, 'amount', r.amount, 'level',
                             greatest(internal.xp_level_of(r.total_after), (select t.highest_level from app.xp_totals t where t.app_user_id = r.app_user_id)))
     where r.amount <> 0$q$);

select internal.source_declare(null::app.user_achievements,
  'achievement.unlocked {key, name, icon_url, xp_reward}, to the user; also when one that was revoked is unlocked again.',
  ops => 'insert', changes => '{revoked_at}', by_statement => '{app_user_id,achievement_id}', publishes => $q$
    select 'user:' || r.app_user_id, 'achievement.unlocked',
           (select json_build_object('key', a.key, 'name', a.name, 'icon_url', a.icon_url, 'xp_reward', a.xp_reward) from app.achievements a where a.id = r.achievement_id)
     where r.revoked_at is null$q$);

select internal.source_declare(null::app.challenge_participants,
  'challenge.joined, challenge.progress, challenge.completed and challenge.left {id, progress, goal_value, status}, to the user.',
  ops => 'insert', changes => '{progress,status}', by_statement => '{challenge_id,app_user_id}', publishes => $q$
    select 'user:' || r.app_user_id,
           case when op = 'INSERT' or was.status = 'left' and r.status = 'in_progress' then 'challenge.joined'
                when r.status = 'left' then 'challenge.left'
                when r.status = 'completed' and was.status <> 'completed' then 'challenge.completed'
                else 'challenge.progress' end,
           (select json_build_object('id', c.id, 'progress', r.progress, 'goal_value', c.goal_value, 'status', r.status) from app.challenges c where c.id = r.challenge_id)$q$);

select internal.source_declare(null::app.push_inbox_items,
  'push.inbox, the item, to the user whose inbox it is in.',
  ops => 'insert', by_statement => '{id}', publishes => $q$select 'user:' || r.app_user_id, 'push.inbox', internal.push_inbox_json(r)$q$);

select internal.source_declare(null::app.config_versions,
  'config.changed {version_hash}.',
  ops => 'insert or update', publishes => $q$select 'config', 'config.changed', json_build_object('version_hash', r.version_hash)$q$);

select internal.source_declare(null::app.flags,
  'flags.changed {keys}.',
  ops => 'insert or update or delete', publishes => $q$select 'config', 'flags.changed', json_build_object('keys', json_build_array(r.key))$q$);

select internal.source_declare(null::app.user_sessions,
  'A session has ended: its connections are closed.',
  changes => '{ended_at}',
  also => $q$if was.ended_at is null then perform internal.notify_servers(array['~' || r.app_user_id], '~session'); end if;$q$);

select internal.source_declare(null::app.users,
  'A user was banned or is gone: the connections are closed. Who hides other actions of feeds hears of others.',
  ops => 'delete', changes => '{is_banned,properties}',
  also => $q$if op = 'DELETE' or r.is_banned then perform internal.notify_servers(array['~' || r.id], '~session');
  elsif (r.properties -> 'feed_hidden_actions') is distinct from (was.properties -> 'feed_hidden_actions') then perform internal.recheck_users(array[r.id]); end if;$q$);

create or replace function internal.event_plan__realtime() returns table (event_name text, plan boolean)
language sql stable as $$
  select 'svc.' || n, true
    from unnest(array['streak.started', 'streak.extended', 'streak.restored', 'streak.frozen', 'streak.at_risk', 'streak.broken', 'streak.milestone',
                      'segment.entered', 'segment.exited']) n
$$;
comment on function internal.event_plan__realtime is 'The system events of streaks and segments: nothing else in the log concerns realtime. Granted to nobody.';

create or replace function internal.on_events__92_realtime(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  event app.engagement_events;
begin
  if not internal.is_heard() then
    return;
  end if;
  for event in
    select e.* from unnest(on_events__92_realtime.events) e
     where not e.is_historical and e.event_name in (select p.event_name from internal.event_plan__realtime() p)
     order by e.app_user_id, e.occurred_at, e.id
  loop
    perform internal.on_event__92_realtime(event, true);
  end loop;
end $$;
comment on function internal.on_events__92_realtime is 'Publishes system events of streaks and segments to their users. Granted to nobody.';

create or replace function internal.on_event__92_realtime(event app.engagement_events, plan boolean) returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := on_event__92_realtime.event;
  shown json := e.properties;
begin
  if not internal.is_heard()
     or not exists (select from app.realtime_channels c where c.channel = 'user:' || e.app_user_id and c.heard_until > internal.now()) then
    return;
  end if;
  if e.event_name like 'svc.streak.%' then
    select json_build_object('key', s.shown ->> 'key', 'status', s.shown ->> 'status', 'current_count', s.shown -> 'current_count',
                             'freezes_remaining', s.shown -> 'freezes_remaining')
      into shown
      from (select internal.streak_json(d, u) as shown
              from app.streak_definitions d
              join app.user_streaks u on u.streak_definition_id = d.id and u.app_user_id = e.app_user_id
             where d.id = (e.properties ->> 'streak_definition_id')::uuid) s;
  end if;
  perform internal.publish('user:' || e.app_user_id, substr(e.event_name, 5), shown);
end $$;
comment on function internal.on_event__92_realtime is
  'streak.* {key, status, current_count, freezes_remaining} and segment.* {segment_id, key, name}, to the user. Granted to nobody.';
