-- What areas publish, by triggers on their tables. Each has internal.is_heard() as its condition, spelled out: a function would be
-- inlined anew in every statement, which costs more than the insert. So none runs in a project that nobody listens to.
-- The tables that events move ask in the function instead: plpgsql keeps the plan of the question, and Postgres prepares a condition in every statement.

create or replace function internal.tg_messages__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  shown json;
begin
  if tg_op = 'DELETE' then
    perform internal.publish('conversation:' || old.conversation_id, 'message.deleted', json_build_object('id', old.id, 'conversation_id', old.conversation_id));
    return null;
  end if;
  shown := internal.message_shown(new.id);
  perform internal.publish_many(
    array(select 'user:' || p.app_user_id from app.conversation_participants p where p.conversation_id = new.conversation_id)
      || ('conversation:' || new.conversation_id),
    case tg_op when 'INSERT' then 'message.created' else 'message.updated' end, shown);
  return null;
end $$;
comment on function internal.tg_messages__publish is 'message.created, message.updated and message.deleted, to the conversation; the first two also to each participant.';
create or replace trigger tg_messages__publish after insert or delete on app.messages
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_messages__publish();
create or replace trigger tg_messages__publish_change after update of body, metadata, attachments on app.messages
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp()) and (old.body, old.metadata, old.attachments) is distinct from (new.body, new.metadata, new.attachments))
  execute function internal.tg_messages__publish();

create or replace function internal.tg_message_reactions__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  reaction constant app.message_reactions := case when tg_op = 'DELETE' then old else new end;
begin
  perform internal.publish(
    'conversation:' || (select m.conversation_id from app.messages m where m.id = reaction.message_id),
    case tg_op when 'DELETE' then 'reaction.removed' else 'reaction.added' end,
    json_build_object('message_id', reaction.message_id, 'emoji', reaction.emoji, 'user_id', reaction.app_user_id,
                      'count', (select count(*) from app.message_reactions r where (r.message_id, r.emoji) = (reaction.message_id, reaction.emoji))));
  return null;
end $$;
comment on function internal.tg_message_reactions__publish is 'reaction.added and reaction.removed {message_id, emoji, user_id, count}, to the conversation.';
create or replace trigger tg_message_reactions__publish after insert or delete on app.message_reactions
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_message_reactions__publish();

create or replace function internal.tg_conversation_participants__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if tg_op = 'INSERT' then
    perform internal.publish('conversation:' || new.conversation_id, 'participant.added',
                             internal.participant_shown(new.conversation_id, new.app_user_id));
  elsif tg_op = 'DELETE' then
    perform internal.recheck_users(array[old.app_user_id]);
    perform internal.publish('conversation:' || old.conversation_id, 'participant.removed', json_build_object('user_id', old.app_user_id));
  else
    perform internal.publish('conversation:' || new.conversation_id, 'read',
                             json_build_object('user_id', new.app_user_id, 'last_read_at', internal.iso(new.last_read_at)));
  end if;
  return null;
end $$;
comment on function internal.tg_conversation_participants__publish is
  'participant.added, participant.removed {user_id} and read {user_id, last_read_at}, to the conversation. Who is removed hears nothing later.';
create or replace trigger tg_conversation_participants__publish after insert or delete on app.conversation_participants
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_conversation_participants__publish();
create or replace trigger tg_conversation_participants__publish_read after update of last_read_at on app.conversation_participants
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp()) and old.last_read_at is distinct from new.last_read_at)
  execute function internal.tg_conversation_participants__publish();

create or replace trigger tg_blocks__recheck after insert on app.blocks
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_realtime__recheck('blocker', 'blocked');
create or replace trigger tg_role_assignments__recheck after insert or update or delete on app.role_assignments
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_realtime__recheck('app_user_id');

create or replace function internal.tg_group_members__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if tg_op = 'DELETE' then
    perform internal.recheck_users(array[old.app_user_id]);
    perform internal.publish('group:' || old.group_id, 'member.left', json_build_object('user_id', old.app_user_id));
    return null;
  end if;
  perform internal.recheck_users(array[new.app_user_id]);
  perform internal.publish('group:' || new.group_id, case tg_op when 'INSERT' then 'member.joined' else 'member.role_changed' end,
                           (select internal.group_member_json(new, u) from app.users u where u.id = new.app_user_id));
  return null;
end $$;
comment on function internal.tg_group_members__publish is
  'member.joined, member.role_changed (the member) and member.left {user_id}, to the group. Who left hears nothing later.';
create or replace trigger tg_group_members__publish after insert or delete on app.group_members
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_group_members__publish();
create or replace trigger tg_group_members__publish_role after update of role on app.group_members
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp()) and old.role is distinct from new.role) execute function internal.tg_group_members__publish();

create or replace function internal.tg_feed_entries__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.publish('group:' || new.group_id, 'feed.created', internal.feed_entry_json(new));
  return null;
end $$;
comment on function internal.tg_feed_entries__publish is 'feed.created, the entry, to its group.';
create or replace trigger tg_feed_entries__publish after insert on app.feed_entries
  for each row when (new.group_id is not null and pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_feed_entries__publish();

create or replace function internal.tg_friendships__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  f constant app.friendships := case when tg_op = 'DELETE' then old else new end;
  event constant text := case when tg_op = 'DELETE' then 'friend.removed' when f.status = 'accepted' then 'friend.accepted' else 'friend.requested' end;
  viewer uuid;
begin
  -- who asked hears nothing of a request that is declined
  foreach viewer in array case when event = 'friend.removed' and f.status = 'pending' then array[f.asked] else array[f.user_a, f.user_b] end loop
    perform internal.publish('user:' || viewer, event, json_build_object(
      'user', coalesce(internal.friend_person(internal.friend_other(f, viewer)), json_build_object('id', internal.friend_other(f, viewer))),
      'status', case when tg_op = 'DELETE' then 'none' else internal.friend_status(f, viewer) end));
  end loop;
  return null;
end $$;
comment on function internal.tg_friendships__publish is
  'friend.requested, friend.accepted and friend.removed {user, status}, to both users; the end of a request only to who was asked.';
create or replace trigger tg_friendships__publish after insert or delete on app.friendships
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_friendships__publish();
create or replace trigger tg_friendships__publish_change after update of status on app.friendships
  for each row when (old.status <> new.status and pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_friendships__publish();

create or replace function internal.tg_entitlement_grants__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.publish('user:' || new.app_user_id, 'entitlement.updated', internal.entitlement_json(new));
  return null;
end $$;
comment on function internal.tg_entitlement_grants__publish is 'entitlement.updated, the entitlement, to its user.';
create or replace trigger tg_entitlement_grants__publish after insert or update on app.entitlement_grants
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_entitlement_grants__publish();

create or replace function internal.tg_currency_transactions__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not internal.is_heard() then
    return null;
  end if;
  perform internal.publish('user:' || new.app_user_id, 'currency.changed', json_build_object(
    'currency_code', new.currency_code, 'balance', new.balance_after, 'amount', new.amount, 'reason', new.reason));
  return null;
end $$;
comment on function internal.tg_currency_transactions__publish is 'currency.changed {currency_code, balance, amount, reason}, to the user.';
create or replace trigger tg_currency_transactions__publish after insert on app.currency_transactions
  for each row execute function internal.tg_currency_transactions__publish();

create or replace function internal.tg_xp_transactions__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not internal.is_heard() then
    return null;
  end if;
  if new.amount = 0 then
    return null;
  end if;
  perform internal.publish('user:' || new.app_user_id, 'xp.changed', json_build_object(
    'total', new.total_after, 'amount', new.amount,
    'level', greatest(internal.xp_level_of(new.total_after), (select t.highest_level from app.xp_totals t where t.app_user_id = new.app_user_id))));
  return null;
end $$;
comment on function internal.tg_xp_transactions__publish is 'xp.changed {total, amount, level}, to the user.';
create or replace trigger tg_xp_transactions__publish after insert on app.xp_transactions
  for each row execute function internal.tg_xp_transactions__publish();

create or replace function internal.tg_user_achievements__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not internal.is_heard() then
    return null;
  end if;
  if new.revoked_at is not null then
    return null;
  end if;
  perform internal.publish('user:' || new.app_user_id, 'achievement.unlocked',
                           (select json_build_object('key', a.key, 'name', a.name, 'icon_url', a.icon_url, 'xp_reward', a.xp_reward)
                              from app.achievements a where a.id = new.achievement_id));
  return null;
end $$;
comment on function internal.tg_user_achievements__publish is 'achievement.unlocked {key, name, icon_url, xp_reward}, to the user.';
create or replace trigger tg_user_achievements__publish after insert on app.user_achievements
  for each row execute function internal.tg_user_achievements__publish();
create or replace trigger tg_user_achievements__publish_again after update of revoked_at on app.user_achievements
  for each row when (old.revoked_at is not null and new.revoked_at is null) execute function internal.tg_user_achievements__publish();

create or replace function internal.tg_challenge_participants__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not internal.is_heard() then
    return null;
  end if;
  perform internal.publish('user:' || new.app_user_id,
                           case when tg_op = 'INSERT' then 'challenge.joined'
                                when new.status = 'completed' and old.status <> 'completed' then 'challenge.completed'
                                else 'challenge.progress' end,
                           (select json_build_object('id', c.id, 'progress', new.progress, 'goal_value', c.goal_value, 'status', new.status)
                              from app.challenges c where c.id = new.challenge_id));
  return null;
end $$;
comment on function internal.tg_challenge_participants__publish is
  'challenge.joined, challenge.progress and challenge.completed {id, progress, goal_value, status}, to the user.';
create or replace trigger tg_challenge_participants__publish after insert on app.challenge_participants
  for each row execute function internal.tg_challenge_participants__publish();
create or replace trigger tg_challenge_participants__publish_change after update of progress, status on app.challenge_participants
  for each row when (old.progress <> new.progress or old.status <> new.status)
  execute function internal.tg_challenge_participants__publish();

create or replace function internal.tg_config_versions__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.publish('config', 'config.changed', json_build_object('version_hash', new.version_hash));
  return null;
end $$;
comment on function internal.tg_config_versions__publish is 'config.changed {version_hash}.';
create or replace trigger tg_config_versions__publish after insert or update on app.config_versions
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_config_versions__publish();

create or replace function internal.tg_flags__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.publish('config', 'flags.changed', json_build_object('keys', json_build_array(case when tg_op = 'DELETE' then old.key else new.key end)));
  return null;
end $$;
comment on function internal.tg_flags__publish is 'flags.changed {keys}.';
create or replace trigger tg_flags__publish after insert or update or delete on app.flags
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_flags__publish();

create or replace function internal.tg_user_sessions__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.notify_servers(array['~' || new.app_user_id], '~session');
  return null;
end $$;
comment on function internal.tg_user_sessions__publish is 'A session has ended: its connections are closed.';
create or replace trigger tg_user_sessions__publish after update of ended_at on app.user_sessions
  for each row when (old.ended_at is null and new.ended_at is not null and pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_user_sessions__publish();

create or replace function internal.tg_users__publish_ban() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.notify_servers(array['~' || old.id], '~session');
  return null;
end $$;
comment on function internal.tg_users__publish_ban is 'A user was banned or is gone: the connections are closed.';
create or replace trigger tg_users__publish_ban after update of is_banned on app.users
  for each row when (new.is_banned and not old.is_banned and pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_users__publish_ban();
create or replace trigger tg_users__publish_gone after delete on app.users
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_heard') > extract(epoch from clock_timestamp())) execute function internal.tg_users__publish_ban();

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
