-- internal.message_write is the only function that writes and edits messages: every text passes through it.

create or replace function internal.message_attachments(sent jsonb) returns jsonb
language plpgsql stable as $$
declare
  place bigint;
  reason text;
begin
  if jsonb_typeof(message_attachments.sent) <> 'array' then
    perform internal.invalid('attachments', 'must be a list', 'INVALID_ATTACHMENTS');
  elsif jsonb_array_length(message_attachments.sent) > 10 then
    perform internal.invalid('attachments', 'must have at most 10 items', 'INVALID_ATTACHMENTS');
  end if;
  select s.n - 1, c.reason into place, reason
    from jsonb_array_elements(message_attachments.sent) with ordinality s (a, n)
   cross join lateral (select case
     when jsonb_typeof(s.a) <> 'object' then ': must be an object'
     when jsonb_typeof(s.a -> 'url') is distinct from 'string' or char_length(s.a ->> 'url') not between 1 and 2000
       then '.url: must have 1 to 2000 characters'
     when coalesce(jsonb_typeof(s.a -> 'content_type'), 'null') not in ('string', 'null')
       or char_length(s.a ->> 'content_type') > 255
       then '.content_type: must have at most 255 characters'
     when coalesce(jsonb_typeof(s.a -> 'size_bytes'), 'null') not in ('number', 'null')
       or jsonb_typeof(s.a -> 'size_bytes') = 'number'
          and ((s.a ->> 'size_bytes')::numeric not between 0 and 9007199254740991
               or (s.a ->> 'size_bytes')::numeric % 1 <> 0)
       then '.size_bytes: must be a whole number of 0 to 9007199254740991'
     when coalesce(jsonb_typeof(s.a -> 'metadata'), 'null') not in ('object', 'null')
       or char_length((s.a -> 'metadata')::text) > 2048
       then '.metadata: must be an object of at most 2048 characters as JSON'
   end) c (reason)
   where c.reason is not null
   order by s.n
   limit 1;
  if reason is not null then
    perform internal.invalid('attachments.' || place || split_part(reason, ': ', 1), split_part(reason, ': ', 2),
                             'INVALID_ATTACHMENTS');
  end if;
  return coalesce((
    select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('url', s.a -> 'url', 'content_type', s.a -> 'content_type',
                                                          'size_bytes', s.a -> 'size_bytes'))
                     || case when jsonb_typeof(s.a -> 'metadata') = 'object' then jsonb_build_object('metadata',
                                        s.a -> 'metadata') else '{}' end order by s.n)
      from jsonb_array_elements(message_attachments.sent) with ordinality s (a, n)), '[]');
end $$;
comment on function internal.message_attachments is
  'Attachments with their fields url, content_type, size_bytes and metadata; null and unknown fields are removed.
   Refuses 400 INVALID_ATTACHMENTS. Granted to nobody.';

create or replace function internal.message_write(message app.messages) returns app.messages
language plpgsql volatile security definer set search_path = '' as $$
declare
  named constant jsonb := case when jsonb_typeof((message_write.message).metadata -> 'mentions') = 'array'
                               then lower(((message_write.message).metadata -> 'mentions')::text)::jsonb else '[]' end;
  present timestamptz;
  kept app.messages;
begin
  -- lock order: participants, then messages. A concurrent read mark waits for this message, or is set before it
  select max(internal.read_until(p)) into present
    from (select q.* from app.conversation_participants q
           where q.conversation_id = (message_write.message).conversation_id
             order by q.app_user_id for no key update) p;
  if (message_write.message).id is not null then
    select m.* into kept from app.messages m where m.id = (message_write.message).id for no key update;
  end if;
  message_write.message.mentions := case when named = '[]' then '{}' else array(
    select p.app_user_id from app.conversation_participants p
     where p.conversation_id = (message_write.message).conversation_id and p.app_user_id is distinct
       from (message_write.message).sender_id
       and named ? p.app_user_id::text
     order by p.app_user_id) end;
  if kept.id is not null then
    update app.conversation_participants p
       set mention_count = p.mention_count + (p.app_user_id = any ((message_write.message).mentions))::int
         - (p.app_user_id = any (kept.mentions))::int
     where p.conversation_id = kept.conversation_id and kept.created_at > internal.read_until(p)
       and (p.app_user_id = any ((message_write.message).mentions)) <> (p.app_user_id = any (kept.mentions));
    update app.messages m
       set body = (message_write.message).body, metadata = (message_write.message).metadata,
         mentions = (message_write.message).mentions,
           edited_at = internal.now()
     where m.id = kept.id
    returning m.* into kept;
    return kept;
  end if;
  insert into app.messages as m
    (conversation_id, sender_id, body, message_type, metadata, mentions, attachments, parent_message_id, created_at)
  select (message_write.message).conversation_id, (message_write.message).sender_id, (message_write.message).body,
         (message_write.message).message_type,
         (message_write.message).metadata, (message_write.message).mentions, (message_write.message).attachments,
         (message_write.message).parent_message_id,
         -- later than every read mark, so that a new message is never read already, and never sorted before an earlier
         -- one
         greatest(internal.now(), c.last_activity_at + interval '1 microsecond', present + interval '1 microsecond')
    from app.conversations c
   where c.id = (message_write.message).conversation_id
  returning m.* into kept;
  return kept;
end $$;
comment on function internal.message_write is
  'Inserts a message when its id is null, otherwise updates body and metadata; returns the row. The caller has locked
   the conversation. Locks its participants. Granted to nobody.';

create or replace function internal.message_post(conversation_id uuid, sender_id uuid, body text, message_type text,
                                                 metadata jsonb, parent_message_id uuid, attachments jsonb)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation constant app.conversations := internal.conversation_lock(message_post.conversation_id);
  message app.messages;
  parent_in uuid;
  replies int;
begin
  if message_post.parent_message_id is not null then
    select m.conversation_id, m.reply_count into parent_in, replies from app.messages m
     where m.id = message_post.parent_message_id;
    -- a parent in a conversation that the sender cannot see is reported as not found
    perform internal.check_found(parent_in = conversation.id or exists (
      select from app.conversation_participants p
       where (p.conversation_id, p.app_user_id) = (parent_in, message_post.sender_id)),
      'parent message', 'PARENT_NOT_FOUND');
    if parent_in <> conversation.id then
      perform internal.invalid('parent_message_id', 'must be a message of this conversation', 'INVALID_PARENT');
    end if;
    -- deleting a message updates each of its replies, which bounds their number
    perform internal.check_limit(replies, 10000, 'A message has at most 10000 replies.');
  end if;
  message.conversation_id := conversation.id;
  message.sender_id := message_post.sender_id;
  message.body := message_post.body;
  message.message_type := message_post.message_type;
  message.metadata := message_post.metadata;
  message.attachments := internal.message_attachments(message_post.attachments);
  message.parent_message_id := message_post.parent_message_id;
  message := internal.message_write(message);
  perform internal.message_push_queue(message);
  if message.sender_id is not null then
    perform internal.emit(message.sender_id, 'svc.message.sent', jsonb_build_object(
      'conversation_id', conversation.id, 'conversation_type', conversation.type, 'message_id', message.id,
        'message_type', message.message_type,
      'is_reply', message.parent_message_id is not null));
  end if;
  return internal.message_shown(message.id, message.sender_id);
end $$;
comment on function internal.message_post is
  'Creates a message of a user who has been checked and locked, or of the system (null). Refuses 400
   INVALID_ATTACHMENTS, INVALID_PARENT, 404 PARENT_NOT_FOUND, CONVERSATION_NOT_FOUND, 409 LIMIT_REACHED (10000 replies).
   Locks the conversation and its participants. Emits svc.message.sent, and queues the push. Granted to nobody.';

create or replace function api.message_send(conversation_id text, body text, message_type text default 'text',
                                            metadata jsonb default '{}', parent_message_id text default null,
                                            attachments jsonb default '[]')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  conversation_uuid constant uuid := internal.messaging_id(message_send.conversation_id, 'conversationId',
                                                           'INVALID_CONVERSATION_ID');
  parent_uuid constant uuid := internal.messaging_id(message_send.parent_message_id, 'parent_message_id',
                                                     'INVALID_PARENT');
  me constant uuid := internal.user_id();
begin
  perform internal.lock_users(array[me]);
  perform internal.conversation_lock(conversation_uuid);
  perform internal.conversation_enter(conversation_uuid);
  perform internal.check_may_write();
  perform internal.check_rate('messages sent ' || me, 60, 60, 'A user sends at most 60 messages a minute.');
  return internal.reply(201, internal.message_post(conversation_uuid, me, message_send.body, message_send.message_type,
                                                   message_send.metadata,
                                                   parent_uuid, message_send.attachments));
end $$;
comment on function api.message_send is
  'The caller sends a message. Refuses as internal.conversation_enter and internal.message_post, and 400
   INVALID_CONVERSATION_ID, CONTENT_REJECTED, 403 USER_MUTED, 429 RATE_LIMITED (60 a minute; refused messages do not
   count). Locks the caller, the conversation and its participants.';

create or replace function api.message_edit(conversation_id uuid, message_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  message app.messages;
begin
  perform internal.conversation_lock(message_edit.conversation_id);
  perform internal.conversation_enter(message_edit.conversation_id);
  message := internal.message_in(message_edit.conversation_id, message_edit.message_id);
  if message.sender_id is distinct from me then
    perform internal.fail(403, 'FORBIDDEN', 'Only the sender can edit a message.');
  elsif message_edit.patch ?| array['body', 'metadata'] then
    perform internal.check_may_write();
    if message.created_at <= internal.now() - interval '15 minutes' then
      perform internal.fail(409, 'EDIT_WINDOW_CLOSED', 'A message can be edited for 15 minutes.');
    end if;
    -- an edit would show a hidden message again
    perform internal.moderation_restore_check('message', message.id);
    message.body := coalesce(message_edit.patch ->> 'body', message.body);
    message.metadata := coalesce(message_edit.patch -> 'metadata', message.metadata);
    message := internal.message_write(message);
  end if;
  return internal.reply(200, internal.message_shown(message.id, me));
end $$;
comment on function api.message_edit is
  'The sender changes body or metadata of a message that is less than 15 minutes old. Refuses 404
   CONVERSATION_NOT_FOUND, MESSAGE_NOT_FOUND, USER_NOT_FOUND, 403 NOT_A_PARTICIPANT, FORBIDDEN, USER_MUTED, 409
   EDIT_WINDOW_CLOSED, 400 CONTENT_REJECTED where a rule blocks the text, or hides the message. Locks the conversation
   and its participants.';

create or replace function api.message_delete(conversation_id uuid, message_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  mine app.conversation_participants;
  message app.messages;
begin
  perform internal.conversation_lock(message_delete.conversation_id);
  mine := internal.conversation_enter(message_delete.conversation_id);
  message := internal.message_in(message_delete.conversation_id, message_delete.message_id);
  if message.sender_id is distinct from mine.app_user_id and not mine.is_owner then
    perform internal.fail(403, 'FORBIDDEN', 'Only the sender or the owner of the conversation can delete a message.');
  end if;
  delete from app.messages m where m.id = message.id;
  return internal.reply_deleted();
end $$;
comment on function api.message_delete is
  'Deletes a message of the caller, or any message if the caller owns the conversation; its replies become messages
   without a parent. Refuses 404 CONVERSATION_NOT_FOUND, MESSAGE_NOT_FOUND, USER_NOT_FOUND, 403 NOT_A_PARTICIPANT,
   FORBIDDEN. Locks the conversation.';
