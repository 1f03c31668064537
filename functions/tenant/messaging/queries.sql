-- Reads of conversations and messages. Definer functions, because participants see each other's names, and users have
-- no rights to other users' rows.

create or replace function internal.conversation_participant_json(p app.conversation_participants, u app.users)
returns json
language sql stable as $$
  select json_build_object(
    'user_id', (conversation_participant_json.p).app_user_id,
      'display_name', (conversation_participant_json.u).display_name,
    'avatar_url', (conversation_participant_json.u).avatar_url,
    'last_read_at', internal.iso((conversation_participant_json.p).last_read_at),
    'joined_at', internal.iso((conversation_participant_json.p).joined_at))
$$;
comment on function internal.conversation_participant_json is 'A participant as conversations show it.';

create or replace function internal.participant_shown(conversation_id uuid, app_user_id uuid) returns json
language sql stable security definer set search_path = '' as $$
  select internal.conversation_participant_json(p, u)
    from app.conversation_participants p
    join app.users u on u.id = p.app_user_id
   where (p.conversation_id, p.app_user_id) = (participant_shown.conversation_id, participant_shown.app_user_id)
$$;
comment on function internal.participant_shown is 'A participant of a conversation, or null. Granted to nobody.';

create or replace function internal.conversations_json(ids uuid[], viewer uuid default null) returns json
language sql stable security definer set search_path = '' as $$
  select json_agg(case when p.app_user_id is null then s.shown else internal.json_merge(s.shown, json_build_object(
                    'unread', p.unread_count, 'mentions', p.mention_count, 'muted_until', internal.iso(p.muted_until),
                      'archived', p.is_archived)) end
                  order by i.n)
    from unnest(conversations_json.ids) with ordinality i (id, n)
    join app.conversations c on c.id = i.id
    left join app.conversation_participants p on (p.conversation_id, p.app_user_id) = (c.id, conversations_json.viewer)
    left join lateral (
      select json_agg(internal.conversation_participant_json(q, u) order by q.joined_at, q.app_user_id) as list,
             min(q.app_user_id::text) filter (where q.is_owner) as owner_id
        from app.conversation_participants q
        join app.users u on u.id = q.app_user_id
       where q.conversation_id = c.id) o on true
    left join lateral (
      select json_build_object('id', m.id, 'sender_id', m.sender_id, 'body', left(m.body, 200),
                               'message_type', m.message_type,
                               'created_at', internal.iso(m.created_at)) as shown
        from app.messages m
       where m.conversation_id = c.id
       order by m.created_at desc
       limit 1) l on true
   cross join lateral (
      select json_build_object(
        'id', c.id, 'type', c.type, 'name', c.name, 'owner_id', o.owner_id,
          'conversation_participants', coalesce(o.list, '[]'),
        'last_message', l.shown, 'message_count', c.message_count, 'last_activity_at', internal.iso(c.last_activity_at),
        'created_at', internal.iso(c.created_at), 'updated_at', internal.iso(c.updated_at)) as shown) s
$$;
comment on function internal.conversations_json is
  'Conversations in the order of their ids, each with its participants, longest participation first, and the beginning
   of its last message; for a participating viewer also with the viewer''s unread, mentions, muted_until and archived.
   Null for no ids. Granted to nobody.';

create or replace function internal.message_json(m app.messages, sender app.users, reactions json) returns json
language sql stable as $$
  select json_build_object(
    'id', (message_json.m).id, 'conversation_id', (message_json.m).conversation_id,
      'sender_id', (message_json.m).sender_id,
    'sender', case when (message_json.m).sender_id is not null then json_build_object(
      'id', (message_json.sender).id, 'display_name', (message_json.sender).display_name,
        'avatar_url', (message_json.sender).avatar_url) end,
    'body', (message_json.m).body, 'message_type', (message_json.m).message_type, 'metadata', (message_json.m).metadata,
    'parent_message_id', (message_json.m).parent_message_id, 'attachments', (message_json.m).attachments,
    'reactions', coalesce(message_json.reactions, '[]'), 'reply_count', (message_json.m).reply_count,
    'created_at', internal.iso((message_json.m).created_at), 'edited_at', internal.iso((message_json.m).edited_at))
$$;
comment on function internal.message_json is
  'A message with its sender (null for the system) and its reactions (null for none).';

create or replace function internal.reactions_json(message_id uuid, viewer uuid) returns json
language sql stable security definer set search_path = '' as $$
  select coalesce(json_agg(json_build_object('emoji', e.emoji, 'count', e.count, 'reacted', e.reacted) order by e.first,
                           e.emoji), '[]')
    from (select r.emoji, count(*) as count, coalesce(bool_or(r.app_user_id = reactions_json.viewer), false) as reacted,
          min(r.created_at) as first
            from app.message_reactions r
           where r.message_id = reactions_json.message_id
           group by r.emoji) e
$$;
comment on function internal.reactions_json is
  'The reactions to a message, [{emoji, count, reacted}], the oldest first; reacted is the viewer''s. Granted to
   nobody.';

create or replace function internal.messages_json(ids uuid[], viewer uuid default null) returns json
language sql stable security definer set search_path = '' as $$
  select json_agg(internal.message_json(m, u, r.reactions) order by m.created_at desc, m.id desc)
    from app.messages m
    left join app.users u on u.id = m.sender_id
    left join (
      select e.message_id, json_agg(json_build_object('emoji', e.emoji, 'count', e.count,
                                                      'reacted', e.reacted) order by e.first, e.emoji) as reactions
        from (select r.message_id, r.emoji, count(*) as count,
              coalesce(bool_or(r.app_user_id = messages_json.viewer), false) as reacted,
                     min(r.created_at) as first
                from app.message_reactions r
               where r.message_id = any (messages_json.ids)
               group by r.message_id, r.emoji) e
       group by e.message_id) r on r.message_id = m.id
   where m.id = any (messages_json.ids)
$$;
comment on function internal.messages_json is
  'Messages by their ids, newest first; reacted is the viewer''s. Null for no ids. Granted to nobody.';

create or replace function internal.message_shown(message_id uuid, viewer uuid default null) returns json
language sql stable
return internal.messages_json(array[message_shown.message_id], message_shown.viewer) -> 0;
comment on function internal.message_shown is
  'One message, as internal.messages_json shows it, or null. Granted to nobody.';

create or replace function api.conversations_list(archived boolean default false, page_limit int default 20,
                                                  page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  blocked constant uuid[] := array(select internal.blocked_ids());
begin
  return internal.reply_page(
    internal.conversations_json(array(
      select p.conversation_id
        from app.conversation_participants p
       where p.app_user_id = me and p.is_archived = conversations_list.archived
         and (p.peer_id is null or p.peer_id <> all (blocked))
       order by p.last_activity_at desc, p.conversation_id desc
       limit conversations_list.page_limit offset conversations_list.page_offset), me),
    (select count(*) from app.conversation_participants p
      where p.app_user_id = me and p.is_archived = conversations_list.archived
        and (p.peer_id is null or p.peer_id <> all (blocked))),
    conversations_list.page_offset, conversations_list.page_limit);
end $$;
comment on function api.conversations_list is
  'A page of the caller''s conversations, newest activity first, by conversation_participants_newest; without direct
   ones with a block in either direction.';

create or replace function api.conversation_get(conversation_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.conversation_enter(conversation_get.conversation_id);
  return internal.reply(200, internal.conversations_json(array[conversation_get.conversation_id],
                                                         internal.user_id()) -> 0);
end $$;
comment on function api.conversation_get is
  'A conversation of the caller. Refuses 404 CONVERSATION_NOT_FOUND, USER_NOT_FOUND, 403 NOT_A_PARTICIPANT.';

create or replace function api.messages_list(conversation_id text, parent_message_id text default null,
                                             page_limit int default 50, page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(messages_list.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  parent_uuid constant uuid := internal.messaging_id(messages_list.parent_message_id, 'parent_message_id',
                                                     'INVALID_PARENT');
  ids uuid[];
  total bigint;
begin
  perform internal.conversation_enter(conversation_uuid);
  -- totals are stored counters: a page counts no rows
  if parent_uuid is null then
    select c.top_level_count into total from app.conversations c where c.id = conversation_uuid;
    ids := array(select m.id from app.messages m
                  where m.conversation_id = conversation_uuid and m.parent_message_id is null
                  -- null for all of them, in the order of the index
                  order by m.parent_message_id, m.created_at desc limit messages_list.page_limit
                    offset messages_list.page_offset);
  else
    select m.reply_count into total from app.messages m
     where (m.id, m.conversation_id) = (parent_uuid, conversation_uuid);
    perform internal.check_found(total is not null, 'parent message', 'PARENT_NOT_FOUND');
    ids := array(select m.id from app.messages m
                  where m.conversation_id = conversation_uuid and m.parent_message_id = parent_uuid
                  order by m.created_at desc limit messages_list.page_limit offset messages_list.page_offset);
  end if;
  return internal.reply_page(internal.messages_json(ids, internal.user_id()), total, messages_list.page_offset,
                             messages_list.page_limit);
end $$;
comment on function api.messages_list is
  'A page of the messages of a conversation that are not replies, or of the replies to one, by messages_by_parent;
   newest first. Refuses 400 INVALID_CONVERSATION_ID, INVALID_PARENT, 404 CONVERSATION_NOT_FOUND, PARENT_NOT_FOUND,
   USER_NOT_FOUND, 403 NOT_A_PARTICIPANT.';

create or replace function api.reactions_list(conversation_id text, message_id text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(reactions_list.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  message_uuid constant uuid := internal.messaging_id(reactions_list.message_id, 'messageId', 'INVALID_ID');
begin
  perform internal.conversation_enter(conversation_uuid);
  perform internal.message_in(conversation_uuid, message_uuid);
  return internal.reply(200, internal.reactions_json(message_uuid, internal.user_id()));
end $$;
comment on function api.reactions_list is
  'The reactions to a message by emoji, for participants. Refuses 400 INVALID_CONVERSATION_ID, INVALID_ID, 404
   CONVERSATION_NOT_FOUND, MESSAGE_NOT_FOUND, USER_NOT_FOUND, 403 NOT_A_PARTICIPANT.';

create or replace function api.receipts_get(conversation_id text, message_id text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(receipts_get.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  message_uuid constant uuid := internal.messaging_id(receipts_get.message_id, 'messageId', 'INVALID_ID');
  message app.messages;
begin
  perform internal.conversation_enter(conversation_uuid);
  message := internal.message_in(conversation_uuid, message_uuid);
  return internal.reply(200, (
    select json_build_object(
             'read_by', coalesce(json_agg(json_build_object('user_id', p.app_user_id, 'display_name', u.display_name,
                                                            'read_at', internal.iso(p.last_read_at))
                                          order by p.last_read_at,
                                            p.app_user_id) filter (where p.last_read_at >= message.created_at), '[]'),
             'read_count', count(*) filter (where p.last_read_at >= message.created_at), 'total_recipients', count(*))
      from app.conversation_participants p
      join app.users u on u.id = p.app_user_id
     where p.conversation_id = conversation_uuid and p.app_user_id is distinct from message.sender_id));
end $$;
comment on function api.receipts_get is
  'Read receipts of a message, earliest first: participants other than its sender, whose last_read_at is at or after the
   message. Refuses as api.reactions_list.';

create or replace function api.unread_get(page_limit int default 200) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  blocked constant uuid[] := array(select internal.blocked_ids());
begin
  return internal.reply(200, json_build_object(
    'total', (select coalesce(sum(p.unread_count), 0) from app.conversation_participants p
               where p.app_user_id = me and p.unread_count > 0 and (p.peer_id is null or p.peer_id <> all (blocked))),
    'conversations', (
      select coalesce(json_agg(json_build_object('id', n.conversation_id, 'unread', n.unread_count,
                                                 'mentions', n.mention_count)
                               order by n.last_activity_at desc, n.conversation_id desc), '[]')
        from (select p.conversation_id, p.unread_count, p.mention_count, p.last_activity_at
                from app.conversation_participants p
               where p.app_user_id = me and p.unread_count > 0 and (p.peer_id is null or p.peer_id <> all (blocked))
               order by p.last_activity_at desc, p.conversation_id desc
               limit unread_get.page_limit) n)));
end $$;
comment on function api.unread_get is
  'The caller''s unread messages: the total over all conversations, and the conversations with unread messages, newest
   activity first, by conversation_participants_unread.';

create or replace function api.messages_search(q text, page_limit int default 50, page_offset int default 0)
returns api.reply
-- planned for each text: its frequency decides between the trigram index and the messages of the caller's conversations
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'force_custom_plan' as $$
declare
  pattern constant text := '%' || replace(replace(replace(messages_search.q, '\', '\\'), '%', '\%'), '_', '\_') || '%';
  ids uuid[];
  total bigint;
begin
  with found as materialized (
    select m.id, m.created_at
      from app.messages m
     where m.conversation_id in (select internal.my_conversation_ids()) and m.body ilike pattern
  )
  select (select count(*) from found),
         array(select f.id from found f order by f.created_at desc, f.id desc limit messages_search.page_limit
               offset messages_search.page_offset)
    into total, ids;
  return internal.reply_page(internal.messages_json(ids, internal.user_id()), total, messages_search.page_offset,
                             messages_search.page_limit);
end $$;
comment on function api.messages_search is
  'A page of the messages in the caller''s conversations whose body contains a text, ignoring case; newest first, with
   the total. % and _ are literal.';
