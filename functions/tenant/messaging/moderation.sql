-- Messages as subjects of moderation: rules evaluate their bodies in the transaction that writes them, and participants
-- report them. See docs/moderation.md.

create or replace trigger tg_messages__moderated
  after insert on app.messages
  for each row execute function internal.tg_moderated_text('message');
create or replace trigger tg_messages__moderated_change
  after update of body on app.messages
  for each row when (old.body is distinct from new.body)
  execute function internal.tg_moderated_text('message');

create or replace function internal.moderation_subject__message(id uuid, out user_id uuid, out snapshot jsonb)
language sql stable security definer set search_path = '' as $$
  select m.sender_id, jsonb_build_object('conversation_id', m.conversation_id, 'body', m.body, 'attachments',
                                         m.attachments)
    from app.messages m
   where m.id = moderation_subject__message.id and m.conversation_id in (select internal.my_conversation_ids())
$$;
comment on function internal.moderation_subject__message is
  'A message in a conversation of the caller; its author is its sender.';

create or replace function internal.moderation_lock__message(id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select from app.conversations c
    where c.id = (select m.conversation_id from app.messages m where m.id = moderation_lock__message.id)
      for no key update
$$;
comment on function internal.moderation_lock__message is
  'Locks the conversation of a message before its moderation item: writing a message locks them in this order. Granted
   to nobody.';

create or replace function internal.moderation_apply__message(id uuid, act text, snapshot jsonb, kept jsonb)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  message app.messages;
begin
  select m.* into message from app.messages m where m.id = moderation_apply__message.id for no key update;
  if moderation_apply__message.act = 'remove' then
    delete from app.messages m where m.id = message.id;
    return null;
  elsif moderation_apply__message.act = 'show' then
    update app.messages m
       set body = moderation_apply__message.kept ->> 'body', metadata = moderation_apply__message.kept -> 'metadata',
           attachments = moderation_apply__message.kept -> 'attachments'
     where m.id = message.id and moderation_apply__message.kept is not null;
    return null;
  end if;
  update app.messages m set body = '…', metadata = '{}', attachments = '[]' where m.id = message.id;
  return jsonb_build_object('body', message.body, 'metadata', message.metadata, 'attachments', message.attachments);
end $$;
comment on function internal.moderation_apply__message is
  'Hides a message: its body becomes an ellipsis, metadata and attachments become empty. show restores them; remove
   deletes the message, and its replies become messages without a parent. Locks the message. Granted to nobody.';
