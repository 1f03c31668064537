-- Conversations, participants, reactions and reading. Users have no privilege to write the tables. Lock order: users,
-- conversations, participants, messages.
comment on constraint messages_body_1_to_10240_bytes on app.messages is
  '400 INVALID_PAYLOAD body: must have 1 to 10240 bytes.';

create or replace function internal.participants_keep(user_ids uuid[]) returns uuid[]
language sql volatile security definer set search_path = '' as $$
  select coalesce(array_agg(k.id order by k.id), '{}')
    from (select u.id, u.is_banned
            from app.users u
           where u.id = any (participants_keep.user_ids)
           order by u.id
             for key share) k
   where not k.is_banned or k.id = internal.user_id()
$$;
comment on function internal.participants_keep is
  'Returns those of the users who exist and are not banned, and prevents their deletion until the transaction ends.
   Locks them in the order of their ids. Granted to nobody.';

create or replace function api.conversation_create(participant_ids jsonb, type text default 'direct',
                                                   name text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  participant_ids_given constant uuid[] := array(select k::uuid
                                                   from jsonb_array_elements_text(
                                                     conversation_create.participant_ids) k);
  me constant uuid := internal.user_id();
  everybody constant uuid[] := array(select distinct k from unnest(me || participant_ids_given) k order by k);
  key constant bytea := case when conversation_create.type = 'direct' then sha256(convert_to(array_to_string(everybody,
                                        ','), 'UTF8')) end;
  conversation app.conversations;
begin
  if cardinality(participant_ids_given) = 0 then
    perform internal.invalid('participant_ids', 'must name at least one user', 'INVALID_PAYLOAD');
  elsif cardinality(everybody) > 100 then
    perform internal.invalid('participant_ids', 'a conversation has at most 100 participants', 'INVALID_PAYLOAD');
  elsif internal.participants_keep(everybody) <> everybody or everybody && array(select internal.blocked_ids()) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'At least one of the users does not exist or is not available.');
  elsif conversation_create.name is not null then
    perform internal.check_may_write();
  end if;
  loop
    insert into app.conversations as c (type, name, direct_key)
    values (conversation_create.type, conversation_create.name, key)
    on conflict on constraint conversations_one_direct do nothing
    returning c.* into conversation;
    if found then
      perform internal.check_rate('conversations created ' || me, 100, 3600,
                                  'A user creates at most 100 conversations an hour.');
      insert into app.conversation_participants (conversation_id, app_user_id, peer_id, is_owner, joined_at,
                                                 last_activity_at)
      select conversation.id, k,
             case when key is not null and cardinality(everybody) = 2 then case k when everybody[1] then everybody[2]
                                        else everybody[1] end end,
             key is null and k = me, conversation.created_at, conversation.last_activity_at
        from unnest(everybody) k
       order by k;
      return internal.reply(201, internal.conversations_json(array[conversation.id], me) -> 0);
    end if;
    -- created by a concurrent transaction or earlier, or deleted again just now
    select c.* into conversation from app.conversations c where c.direct_key = key;
    if found then
      return internal.reply(200, internal.conversations_json(array[conversation.id], me) -> 0);
    end if;
  end loop;
end $$;
comment on function api.conversation_create is
  'Creates a conversation of the caller and other users: 201, or 200 with the direct conversation of the same
   participants. Refuses 400 INVALID_PAYLOAD, 404 USER_NOT_FOUND for a user who does not exist, is banned, or is blocked
   in either direction, 403 USER_MUTED for a name, 429 RATE_LIMITED (100 new conversations an hour). Locks the users''
   keys.';

create or replace function api.conversation_update(conversation_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
begin
  if conversation_update.patch ? 'name' then
    perform internal.conversation_lock(conversation_update.conversation_id);
  end if;
  perform internal.conversation_enter(conversation_update.conversation_id);
  if conversation_update.patch ? 'name' then
    perform internal.check_may_write();
    update app.conversations c
       set name = conversation_update.patch ->> 'name', updated_at = internal.now()
     where c.id = conversation_update.conversation_id;
  end if;
  if conversation_update.patch ?| array['muted_until', 'archived'] then
    update app.conversation_participants p
       set muted_until = case when conversation_update.patch ? 'muted_until'
                                then (conversation_update.patch ->> 'muted_until')::timestamptz else p.muted_until end,
           is_archived = coalesce((conversation_update.patch ->> 'archived')::boolean, p.is_archived)
     where (p.conversation_id, p.app_user_id) = (conversation_update.conversation_id, me);
  end if;
  return internal.reply(200, internal.conversations_json(array[conversation_update.conversation_id], me) -> 0);
end $$;
comment on function api.conversation_update is
  'Changes the name of a conversation, and muted_until and archived for the caller only. Refuses as
   internal.conversation_enter, and 403 USER_MUTED for a name. Locks the conversation for its name.';

create or replace function api.participant_add(conversation_id text, user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(participant_add.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  is_there boolean;
  conversation app.conversations;
  known json;
begin
  -- lock order: the user, then the conversation
  is_there := internal.participants_keep(array[participant_add.user_id]) <> '{}';
  conversation := internal.conversation_lock(conversation_uuid);
  perform internal.conversation_enter(conversation.id);
  known := internal.participant_shown(conversation.id, participant_add.user_id);
  if known is not null then
    return internal.reply(200, internal.json_merge(known, '{"already_member": true}'));
  elsif conversation.type = 'direct' then
    perform internal.fail(409, 'CONVERSATION_IS_DIRECT',
                          'A direct conversation cannot get more participants: create a group conversation.');
  end if;
  perform internal.check_found(is_there and not internal.is_blocked(participant_add.user_id), 'user', 'USER_NOT_FOUND');
  perform internal.check_limit((select count(*) from app.conversation_participants p
                                 where p.conversation_id = conversation.id), 100,
                               'A conversation has at most 100 participants.');
  insert into app.conversation_participants (conversation_id, app_user_id, joined_at, last_activity_at)
  values (conversation.id, participant_add.user_id, greatest(internal.now(), conversation.last_activity_at),
          conversation.last_activity_at);
  return internal.reply(200, internal.participant_shown(conversation.id, participant_add.user_id));
end $$;
comment on function api.participant_add is
  'Adds a user to a group conversation of the caller and returns the participant, with already_member for an existing
   one. Refuses as internal.conversation_enter, and 400 INVALID_CONVERSATION_ID, 404 USER_NOT_FOUND (also banned or
   blocked), 409 CONVERSATION_IS_DIRECT, LIMIT_REACHED (100). Locks the user''s key and the conversation.';

create or replace function internal.participant_remove(conversation_id uuid, app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation constant app.conversations := internal.conversation_lock(participant_remove.conversation_id);
  mine constant app.conversation_participants := internal.conversation_enter(participant_remove.conversation_id);
begin
  if conversation.type = 'direct' then
    perform internal.fail(409, 'CONVERSATION_IS_DIRECT',
                          'Participants cannot be removed from a direct conversation: archive or mute it, or block '
                          'the user.');
  elsif participant_remove.app_user_id <> mine.app_user_id and not mine.is_owner then
    perform internal.fail(403, 'FORBIDDEN', 'Only the owner of a conversation can remove other participants.');
  end if;
  delete from app.conversation_participants p
   where (p.conversation_id, p.app_user_id) = (conversation.id, participant_remove.app_user_id);
  perform internal.check_found(found, 'participant', 'USER_NOT_FOUND');
end $$;
comment on function internal.participant_remove is
  'Removes a participant from a group conversation: the caller, or anybody if the caller owns it. The messages stay.
   Refuses as internal.conversation_enter, and 409 CONVERSATION_IS_DIRECT, 403 FORBIDDEN, 404 USER_NOT_FOUND. Locks the
   conversation.';

create or replace function api.participant_remove(conversation_id uuid, user_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.participant_remove(participant_remove.conversation_id, participant_remove.user_id);
  return internal.reply_deleted();
end $$;
comment on function api.participant_remove is 'Removes a participant. Refuses as internal.participant_remove.';

create or replace function api.conversation_leave(conversation_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.participant_remove(conversation_leave.conversation_id, internal.user_id());
  return internal.reply_deleted();
end $$;
comment on function api.conversation_leave is
  'The caller leaves a group conversation. Refuses as internal.conversation_enter, and 409 CONVERSATION_IS_DIRECT, 404
   USER_NOT_FOUND.';

create or replace function api.conversation_read(conversation_id text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(conversation_read.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  me constant uuid := internal.user_id();
begin
  -- sending a message locks this row: the read mark is set either before the message, or after it with a time at or
  -- after the message's
  update app.conversation_participants p
     set last_read_at = greatest(internal.now(), p.last_activity_at), unread_count = 0, mention_count = 0
   where (p.conversation_id, p.app_user_id) = (conversation_uuid, me)
     and (p.peer_id is null or not internal.is_blocked(p.peer_id));
  if not found then
    perform internal.check_found(exists (select from app.conversations c where c.id = conversation_uuid),
                                 'conversation', 'CONVERSATION_NOT_FOUND');
    if internal.participant_shown(conversation_uuid, me) is null then
      perform internal.fail(404, 'UPDATE_FAILED', 'The user is not a participant of this conversation.');
    end if;
    -- refuses when either of the two has blocked the other
    perform internal.conversation_enter(conversation_uuid);
  end if;
  return internal.reply(200, internal.participant_shown(conversation_uuid, me));
end $$;
comment on function api.conversation_read is
  'Marks a conversation as read by the caller: sets last_read_at and the count of unread messages to 0. Returns the
   participant. Refuses 400 INVALID_CONVERSATION_ID, 404 CONVERSATION_NOT_FOUND, UPDATE_FAILED (not a participant),
   USER_NOT_FOUND (a block in either direction). Locks the caller''s row.';

create or replace function api.conversation_typing(conversation_id text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(conversation_typing.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
begin
  perform internal.conversation_enter(conversation_uuid);
  perform internal.publish_many(array['conversation:' || conversation_uuid], 'typing',
                                json_build_object('user_id', internal.user_id()),
                                json_build_object('except', internal.user_id()));
  return internal.reply(202, json_build_object('accepted', true));
end $$;
comment on function api.conversation_typing is
  'Publishes to the other subscribers of a conversation that the caller is typing; stores nothing. Refuses as
   internal.conversation_enter, and 400 INVALID_CONVERSATION_ID.';

create or replace function api.reaction_add(conversation_id text, message_id text, emoji text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(reaction_add.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  message_uuid constant uuid := internal.messaging_id(reaction_add.message_id, 'messageId', 'INVALID_ID');
  me constant uuid := internal.user_id();
  is_new boolean;
begin
  perform internal.participants_keep(array[me]);
  perform internal.conversation_enter(conversation_uuid);
  perform internal.check_may_write();
  -- locks the message, so that concurrent new emojis are counted
  perform from app.messages m where (m.id, m.conversation_id) = (message_uuid, conversation_uuid) for no key update;
  perform internal.check_found(found, 'message', 'MESSAGE_NOT_FOUND');
  if not exists (select from app.message_reactions r
                  where (r.message_id, r.emoji) = (message_uuid, reaction_add.emoji)) then
    perform internal.check_limit((select count(distinct r.emoji) from app.message_reactions r
                                   where r.message_id = message_uuid), 20,
                                 'A message has at most 20 different reactions.');
  end if;
  insert into app.message_reactions (message_id, emoji, app_user_id)
  values (message_uuid, reaction_add.emoji, me)
  on conflict do nothing;
  is_new := found;
  return internal.reply(case when is_new then 201 else 200 end, internal.reactions_json(message_uuid, me));
end $$;
comment on function api.reaction_add is
  'The caller reacts to a message: 201, or 200 when the same reaction exists; returns the reactions. Refuses as
   api.reactions_list, and 403 USER_MUTED, 409 LIMIT_REACHED (20 different emojis). Locks the caller''s key and the
   message.';

create or replace function api.reaction_remove(conversation_id text, message_id text, emoji text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(reaction_remove.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  message_uuid constant uuid := internal.messaging_id(reaction_remove.message_id, 'messageId', 'INVALID_ID');
begin
  perform internal.conversation_enter(conversation_uuid);
  perform internal.message_in(conversation_uuid, message_uuid);
  delete from app.message_reactions r
   where (r.message_id, r.emoji, r.app_user_id) = (message_uuid, reaction_remove.emoji, internal.user_id());
  return internal.reply(200, internal.reactions_json(message_uuid, internal.user_id()));
end $$;
comment on function api.reaction_remove is
  'Removes the caller''s reaction, if there is one; returns the reactions. Refuses as api.reactions_list.';
