-- Administration of conversations: reading them, posting and deleting messages, statistics.

select internal.count_declare('conversations', 'app.conversations');

create or replace function api.conversations_admin(user_id uuid default null, page_limit int default 50,
                                                   page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'all conversations are read by administrators');
  if conversations_admin.user_id is null then
    return internal.reply_page(
      internal.conversations_json(array(select c.id from app.conversations c order by c.created_at desc, c.id desc
                                         limit conversations_admin.page_limit offset conversations_admin.page_offset)),
      coalesce(internal.counted('conversations'), (select count(*) from app.conversations c)),
      conversations_admin.page_offset, conversations_admin.page_limit);
  end if;
  return internal.reply_page(
    internal.conversations_json(array(
      select c.id
        from app.conversation_participants p
        join app.conversations c on c.id = p.conversation_id
       where p.app_user_id = conversations_admin.user_id
       order by c.created_at desc, c.id desc
       limit conversations_admin.page_limit offset conversations_admin.page_offset)),
    (select count(*) from app.conversation_participants p where p.app_user_id = conversations_admin.user_id),
    conversations_admin.page_offset, conversations_admin.page_limit);
end $$;
comment on function api.conversations_admin is
  'For administrators: a page of all conversations, or of those of a user, newest first.';

create or replace function api.messages_admin(conversation_id uuid, page_limit int default 50,
                                              page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  total bigint;
begin
  perform internal.check_caller('developer', 'messages of others are read by administrators');
  select c.message_count into total from app.conversations c where c.id = messages_admin.conversation_id;
  perform internal.check_found(total is not null, 'conversation', 'CONVERSATION_NOT_FOUND');
  return internal.reply_page(
    internal.messages_json(array(select m.id from app.messages m
                                  where m.conversation_id = messages_admin.conversation_id
                                  order by m.created_at desc limit messages_admin.page_limit
                                    offset messages_admin.page_offset)),
    total, messages_admin.page_offset, messages_admin.page_limit);
end $$;
comment on function api.messages_admin is
  'For administrators: a page of the messages of a conversation with replies, newest first, by messages_in_order.
   Refuses 404 CONVERSATION_NOT_FOUND.';

create or replace function api.message_post(conversation_id uuid, body text, as_user_id uuid default null,
                                            system boolean default null, message_type text default null,
                                            metadata jsonb default '{}', parent_message_id uuid default null,
                                            attachments jsonb default '[]')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  posted json;
begin
  perform internal.check_caller('developer', 'messages are posted as another by administrators');
  if (message_post.as_user_id is null) <> coalesce(message_post.system, false) then
    perform internal.invalid('as_user_id', 'send as_user_id, or system: true');
  elsif message_post.as_user_id is not null then
    perform internal.check_found(internal.lock_users(array[message_post.as_user_id]) is not null, 'user',
                                 'USER_NOT_FOUND');
  end if;
  perform internal.conversation_lock(message_post.conversation_id);
  if message_post.as_user_id is not null and not exists (
    select from app.conversation_participants p
     where (p.conversation_id, p.app_user_id) = (message_post.conversation_id, message_post.as_user_id)) then
    perform internal.fail(403, 'NOT_A_PARTICIPANT', 'The user is not a participant of this conversation.');
  end if;
  posted := internal.message_post(message_post.conversation_id, message_post.as_user_id, message_post.body,
                                  coalesce(message_post.message_type,
                                           case when message_post.as_user_id is null then 'system' else 'text' end),
                                  message_post.metadata, message_post.parent_message_id, message_post.attachments);
  perform internal.audit('messaging.message_post', 'conversations', message_post.conversation_id::text,
                         json_build_object(
    'message_id', json_build_array(null, posted ->> 'id'),
      'sender_id', json_build_array(null, message_post.as_user_id)), 201);
  return internal.reply(201, posted);
end $$;
comment on function api.message_post is
  'An administrator posts a message as a participant, or as the system. Refuses 400 VALIDATION_ERROR (neither, or both),
   404 USER_NOT_FOUND, 403 NOT_A_PARTICIPANT, and as internal.message_post. Audited as messaging.message_post. Locks the
   user, the conversation and its participants.';

create or replace function api.message_delete_admin(conversation_id uuid, message_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  message app.messages;
begin
  perform internal.check_caller('developer', 'messages of others are deleted by administrators');
  perform internal.conversation_lock(message_delete_admin.conversation_id);
  message := internal.message_in(message_delete_admin.conversation_id, message_delete_admin.message_id);
  delete from app.messages m where m.id = message.id;
  perform internal.audit('messaging.message_delete', 'conversations', message.conversation_id::text, json_build_object(
    'message_id', json_build_array(message.id, null), 'sender_id', json_build_array(message.sender_id, null)));
  return internal.reply_deleted();
end $$;
comment on function api.message_delete_admin is
  'An administrator deletes a message. Refuses 404 CONVERSATION_NOT_FOUND, MESSAGE_NOT_FOUND. Audited as
   messaging.message_delete, without its text. Locks the conversation.';

create or replace function api.messaging_stats() returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'statistics are read by administrators');
  return internal.reply(200, (
    select json_build_object(
             'conversations', json_build_object('total', c.direct + c.group, 'direct', c.direct, 'group', c.group),
             'messages', json_build_object('total', c.messages, 'last_24h', m.day, 'last_7d', m.week),
             'active_senders', json_build_object('last_24h', m.senders_day, 'last_7d', m.senders_week))
      from (select count(*) filter (where k.type = 'direct') as direct, count(*) filter (where k.type = 'group') as
             group,
                   coalesce(sum(k.message_count), 0) as messages
              from app.conversations k) c
     cross join (select count(*) as week, count(*) filter (where is_of_day) as day,
                        count(distinct w.sender_id) as senders_week,
                        count(distinct w.sender_id) filter (where is_of_day) as senders_day
                   from (select k.sender_id, k.created_at > internal.now() - interval '24 hours' as is_of_day
                           from app.messages k where k.created_at > internal.now() - interval '7 days') w) m));
end $$;
comment on function api.messaging_stats is
  'For administrators: conversations by type, and messages and senders of the last day and week, by messages_by_time.';
