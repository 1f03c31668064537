-- Access to conversations, and the lock order: users, conversations (by id), participants, messages.

create or replace function internal.my_conversation_ids() returns setof uuid
language sql stable parallel safe security definer rows 50 set search_path = '' as $$
  select p.conversation_id
    from app.conversation_participants p
   where p.app_user_id = internal.user_id()
     and (p.peer_id is null or p.peer_id <> all (array(select internal.blocked_ids())))
$$;
comment on function internal.my_conversation_ids is
  'The caller''s conversations, without direct ones in which either user has blocked the other. In policies always as
   conversation_id in (select internal.my_conversation_ids()).';

create or replace function internal.messaging_id(value text, field text, code text) returns uuid
language plpgsql stable as $$
declare
  id constant uuid := internal.as_uuid(messaging_id.value);
begin
  if id is null and messaging_id.value is not null then
    perform internal.invalid(messaging_id.field, 'must be a uuid', messaging_id.code);
  end if;
  return id;
end $$;
comment on function internal.messaging_id is
  'An id from a request; null for null. Refuses a malformed one with 400 and this code.';

create or replace function internal.conversation_enter(conversation_id uuid) returns app.conversation_participants
language plpgsql stable security definer set search_path = '' as $$
declare
  mine app.conversation_participants;
begin
  select p.* into mine
    from app.conversation_participants p
   where (p.conversation_id, p.app_user_id) = (conversation_enter.conversation_id, internal.user_id());
  if mine.app_user_id is null then
    perform internal.check_found(exists (select from app.conversations c
                                          where c.id = conversation_enter.conversation_id),
                                 'conversation', 'CONVERSATION_NOT_FOUND');
    perform internal.fail(403, 'NOT_A_PARTICIPANT', 'The user is not a participant of this conversation.');
  elsif mine.peer_id is not null and internal.is_blocked(mine.peer_id) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'The other user of this conversation is not available.');
  end if;
  return mine;
end $$;
comment on function internal.conversation_enter is
  'The caller''s participation in a conversation. Refuses 404 CONVERSATION_NOT_FOUND, 403 NOT_A_PARTICIPANT, and 404
   USER_NOT_FOUND for a direct conversation in which either user has blocked the other: blocking hides the conversation
   and keeps its messages. Granted to nobody.';

create or replace function internal.conversation_is_blocked(conversation_id uuid) returns boolean
language sql stable security definer set search_path = ''
return exists (select from app.conversation_participants p
                 join app.blocks b on (b.blocker, b.blocked) = (p.app_user_id, p.peer_id)
                where p.conversation_id = conversation_is_blocked.conversation_id);
comment on function internal.conversation_is_blocked is
  'Whether a conversation is hidden from both of its users, because one of them has blocked the other. Administrators
   may still write there. Granted to nobody.';

create or replace function internal.conversation_lock(conversation_id uuid) returns app.conversations
language plpgsql volatile security definer set search_path = '' as $$
declare
  locked app.conversations;
begin
  select c.* into locked from app.conversations c where c.id = conversation_lock.conversation_id for no key update;
  perform internal.check_found(locked.id is not null, 'conversation', 'CONVERSATION_NOT_FOUND');
  return locked;
end $$;
comment on function internal.conversation_lock is
  'Locks a conversation, as every write of its messages or participants does. Refuses 404 CONVERSATION_NOT_FOUND.
   Granted to nobody.';

create or replace function internal.conversations_lock_of(user_ids uuid[]) returns uuid[]
language sql volatile security definer set search_path = '' as $$
  with locked as (
    select c.id
      from app.conversations c
     where c.id in (select p.conversation_id from app.conversation_participants p
                     where p.app_user_id = any (conversations_lock_of.user_ids)
                    union
                    select m.conversation_id from app.messages m
                     where m.sender_id = any (conversations_lock_of.user_ids))
     order by c.id
       for no key update
  )
  select coalesce(array_agg(l.id), '{}') from locked l
$$;
comment on function internal.conversations_lock_of is
  'Locks, in the order of their ids, the conversations in which users participate or have written, and returns their
   ids. Granted to nobody.';

create or replace function internal.message_in(conversation_id uuid, message_id uuid) returns app.messages
language plpgsql stable security definer set search_path = '' as $$
declare
  message app.messages;
begin
  select m.* into message from app.messages m
   where (m.id, m.conversation_id) = (message_in.message_id, message_in.conversation_id);
  perform internal.check_found(message.id is not null, 'message', 'MESSAGE_NOT_FOUND');
  return message;
end $$;
comment on function internal.message_in is
  'A message of a conversation. Refuses 404 MESSAGE_NOT_FOUND. Granted to nobody.';
