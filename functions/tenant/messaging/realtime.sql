-- What conversations publish, and the channel of each.

create or replace function internal.channel__conversation(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
declare
  conversation_id constant uuid := internal.as_uuid(channel__conversation.item);
begin
  perform internal.check_found(conversation_id is not null, 'conversation', 'CONVERSATION_NOT_FOUND');
  perform internal.conversation_enter(conversation_id);
  name := 'conversation:' || conversation_id;
  scope := '{"presence": true}';
end $$;
comment on function internal.channel__conversation is
  'conversation:<id>: its participants, while none of a pair has blocked the other. Refuses as
   internal.conversation_enter.';

select internal.source_declare(null::app.messages,
  'message.created, message.updated and message.deleted, to the conversation; the first two also to each participant. '
  'Nothing of a blocked pair, whoever writes there.',
  ops => 'insert or delete', changes => '{body,metadata,attachments}',
  also => 'if op = ''UPDATE'' and internal.is_hidden_by_its_write() then return; end if;', publishes => $q$
    select t.channel, case op when 'INSERT' then 'message.created' when 'UPDATE' then 'message.updated'
                           else 'message.deleted' end, m.shown
      from (select case op when 'DELETE' then json_build_object('id', r.id, 'conversation_id', r.conversation_id)
                        else internal.message_shown(r.id) end as shown offset 0) m
     cross join (select 'conversation:' || r.conversation_id as channel
                 union all
                 select 'user:' || p.app_user_id from app.conversation_participants p
                  where p.conversation_id = r.conversation_id and op <> 'DELETE') t
     where not internal.conversation_is_blocked(r.conversation_id)$q$);

select internal.source_declare(null::app.message_reactions,
  'reaction.added and reaction.removed {message_id, emoji, user_id, count}, to the conversation.',
  ops => 'insert or delete', publishes => $q$
    select 'conversation:' || (select m.conversation_id from app.messages m where m.id = r.message_id),
           case op when 'DELETE' then 'reaction.removed' else 'reaction.added' end,
           json_build_object('message_id', r.message_id, 'emoji', r.emoji, 'user_id', r.app_user_id,
                             'count', (select count(*) from app.message_reactions k
                                        where (k.message_id, k.emoji) = (r.message_id, r.emoji)))$q$);

select internal.source_declare(null::app.conversation_participants,
  'participant.added, participant.removed {user_id} and read {user_id, last_read_at}, to the conversation. A removed '
  'participant gets nothing later.',
  ops => 'insert or delete', changes => '{last_read_at}',
  also => $q$if op = 'DELETE' then perform internal.recheck_users(array[r.app_user_id]); end if;$q$, publishes => $q$
    select 'conversation:' || r.conversation_id,
           case op when 'INSERT' then 'participant.added' when 'DELETE' then 'participant.removed' else 'read' end,
           case op when 'INSERT' then internal.participant_shown(r.conversation_id, r.app_user_id)
                   when 'DELETE' then json_build_object('user_id', r.app_user_id)
                   else json_build_object('user_id', r.app_user_id,
                                          'last_read_at', internal.iso(r.last_read_at)) end$q$);
