-- Pushes of new messages. The transaction that writes a message queues one task, and only where somebody could be
-- pushed it; the task decides who is, by what is true then: who is muted, present, blocked, or has left or read
-- meanwhile is not. See docs/push.md.

create or replace function internal.message_push_automation() returns app.push_automations
language sql stable security definer set search_path = '' as $$
  select a.* from app.push_automations a where a.key = 'message' and a.trigger ->> 'event_name' = 'svc.message.received'
$$;
comment on function internal.message_push_automation is
  'The project''s own automation for new messages, by its key message and its trigger; null where the project has none,
   and the message of Trellis is sent. Granted to nobody.';

create or replace function internal.message_push_queue(message app.messages) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  m constant app.messages := message_push_queue.message;
  automation constant app.push_automations := internal.message_push_automation();
begin
  if automation.is_active is not false and exists (
       select from app.conversation_participants p
        where p.conversation_id = m.conversation_id and p.app_user_id is distinct from m.sender_id
          and (automation.inbox or exists (select from app.push_tokens t
                                            where t.app_user_id = p.app_user_id and t.is_active))) then
    perform internal.enqueue('messaging__push', m.id::text,
                             due_at => internal.now() + make_interval(secs => coalesce(automation.delay_seconds, 0)));
  end if;
end $$;
comment on function internal.message_push_queue is
  'Queues the push of a message where a participant other than its sender has a device, or an inbox takes it. Granted to
   nobody.';

create or replace function internal.message_push_context(m app.messages, c app.conversations, sender_name text,
                                                         app_user_id uuid)
returns jsonb
language sql stable
return jsonb_build_object(
  'title', case when (message_push_context.c).type = 'group' then coalesce((message_push_context.c).name,
                                        message_push_context.sender_name)
                else message_push_context.sender_name end,
  'text', concat(case when (message_push_context.c).type = 'group'
                      and (message_push_context.c).name is not null then message_push_context.sender_name || ': ' end,
                 left((message_push_context.m).body, 500)),
  'sender_id', (message_push_context.m).sender_id, 'sender_name', message_push_context.sender_name,
  'body', left((message_push_context.m).body, 500),
  'conversation_id', (message_push_context.c).id, 'conversation_type', (message_push_context.c).type,
  'conversation_name', (message_push_context.c).name,
  'message_id', (message_push_context.m).id, 'message_type', (message_push_context.m).message_type,
  'is_reply', (message_push_context.m).parent_message_id is not null,
  'is_mention', message_push_context.app_user_id = any ((message_push_context.m).mentions));
comment on function internal.message_push_context is
  'What placeholders and filters see as event.* of a message for one recipient. Granted to nobody.';

create or replace function internal.message_push_reaches(m app.messages, p app.conversation_participants)
returns boolean
language plpgsql stable as $$
begin
  return (message_push_reaches.p).app_user_id is distinct from (message_push_reaches.m).sender_id
     and ((message_push_reaches.p).muted_until is null or (message_push_reaches.p).muted_until <= internal.now())
     and internal.read_until(message_push_reaches.p) < (message_push_reaches.m).created_at
     and not exists (select from app.blocks b
                      -- of a pair nothing is sent to either, whoever has written it
                      where b.blocker = (message_push_reaches.p).app_user_id
                        and b.blocked in ((message_push_reaches.m).sender_id, (message_push_reaches.p).peer_id)
                         or b.blocked = (message_push_reaches.p).app_user_id
                         and b.blocker in ((message_push_reaches.m).sender_id, (message_push_reaches.p).peer_id))
     and not exists (select from internal.readers_of('conversation:' || (message_push_reaches.p).conversation_id) r (id)
                      where r.id = (message_push_reaches.p).app_user_id);
end $$;
comment on function internal.message_push_reaches is
  'Whether a message is pushed to a participant: not to its sender, nor to who has muted the conversation, read the
   message, listens now, or is in a blocked pair with the sender or the other one of a direct conversation. Granted to
   nobody.';

create or replace function internal.message_push_is_wanted(message_id uuid, app_user_id uuid) returns boolean
language sql stable security definer set search_path = ''
return exists (select from app.messages m
                 join app.conversation_participants p on (p.conversation_id, p.app_user_id) = (m.conversation_id,
                                        message_push_is_wanted.app_user_id)
                where m.id = message_push_is_wanted.message_id and internal.message_push_reaches(m, p)
                  and not exists (select from app.moderation_items i
                                   where (i.subject_type, i.subject_id) = ('message', m.id) and i.is_hidden));
comment on function internal.message_push_is_wanted is
  'Whether the push of a message that could not be sent so far is still to be sent to a user: it is neither deleted,
   hidden nor read, and the user is still there. Granted to nobody.';

create or replace function api.message_push(message_id uuid, uses_log boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  m app.messages;
  c app.conversations;
  automation constant app.push_automations := internal.message_push_automation();
  base constant jsonb := coalesce(automation.message,
                                  (select t.message from app.push_templates t where t.key = automation.template_key),
    '{"title": "{{event.title|New message}}", "body": "{{event.text}}", "category": "message"}');
  inbox constant boolean := coalesce(automation.inbox, false);
  is_connected constant boolean := message_push.uses_log
    or exists (select from app.integrations i where i.provider in ('apns', 'fcm', 'log') and i.is_active);
  sender_name text;
  made bigint;
begin
  perform internal.check_caller('worker', 'messages are pushed by workers');
  select k.* into m from app.messages k where k.id = message_push.message_id;
  if m.id is null or automation.is_active is false or not (inbox or is_connected)
     or exists (select from app.moderation_items i
                 where (i.subject_type, i.subject_id) = ('message', m.id) and i.is_hidden) then
    return internal.reply(200, '{"pushed": 0}');
  end if;
  select k.* into c from app.conversations k where k.id = m.conversation_id;
  select u.display_name into sender_name from app.users u where u.id = m.sender_id;
  with recipients as materialized (
    select u.id, internal.message_push_context(m, c, sender_name, u.id) as context
      from app.conversation_participants p
      join app.users u on u.id = p.app_user_id and not u.is_banned
     where p.conversation_id = m.conversation_id and internal.message_push_reaches(m, p)
       and (inbox or exists (select from app.push_tokens t where t.app_user_id = p.app_user_id and t.is_active))
     order by u.id
       -- as the foreign key would lock them; who is just deleted is left out
       for key share of u
  ), sent as (
    insert into app.campaign_deliveries (id, queue_id, channel, automation_id, app_user_id, message, context, inbox,
                                         due_at)
    -- the same id whenever the task runs again: as the message's ordered by time, and of its own in the end
    select (left(m.id::text, 19) || '8' || right(k.hash, 3) || '-' || left(k.hash, 12))::uuid,
           '00000000-0000-0000-0000-000000000000',
           'push', automation.id, r.id,
           base || jsonb_build_object('data', coalesce(nullif(base -> 'data', 'null'),
                                                       '{}') || jsonb_build_object('conversation_id', c.id,
                                                         'message_id', m.id)),
           r.context, inbox, internal.now()
      from recipients r
     cross join lateral (select md5(m.id::text || r.id) as hash) k
     where coalesce(automation.trigger -> 'filter', 'null') = 'null'
        or internal.filter_truth(automation.trigger -> 'filter', r.context)
     order by r.id
    on conflict on constraint campaign_deliveries_pkey do nothing
    returning app_user_id
  )
  select count(*) into made from sent;
  if made > 0 then
    if not exists (select from app.push_categories k where k.key = base ->> 'category') then
      perform internal.push_categories_note(array[base]);
    end if;
    perform internal.enqueue('push__direct');
  end if;
  return internal.reply(200, json_build_object('pushed', made));
end $$;
comment on function api.message_push is
  'For the worker: sends a message to the devices of its participants, once however often it is called: {pushed}. Not to
   the sender, to who is banned, has muted the conversation, left it or read the message, listens to the conversation
   now, or is in a blocked pair with the sender or the other one of a direct conversation; nothing for a message that is
   deleted or hidden. Locks the keys of the users.';
