-- Conversations of users who are deleted, reset or merged.

create or replace function internal.tg_users__leave_conversations() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- lock order: conversations, participants, messages; the cascade of the foreign keys alone would begin with the rows
  locked constant uuid[] := internal.conversations_lock_of(array[old.id]);
begin
  if locked <> '{}' then
    update app.conversation_participants p set peer_id = null
      where p.conversation_id = any (locked) and p.peer_id = old.id;
    delete from app.messages m where m.sender_id = old.id;
    delete from app.conversation_participants p where p.app_user_id = old.id;
  end if;
  return old;
end $$;
comment on function internal.tg_users__leave_conversations is
  'Before a user is deleted, deletes their messages and participations; replies to these messages stay, without a
   parent. Locks the conversations in the order of their ids.';

create or replace trigger tg_users__leave_conversations
  before delete on app.users
  for each row execute function internal.tg_users__leave_conversations();

create or replace function internal.user_reset__messages(user_id uuid) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.conversations_lock_of(array[user_reset__messages.user_id]);
  return 0;
end $$;
comment on function internal.user_reset__messages is
  'Locks the conversations of a user''s messages before a reset deletes the messages; the user stays a participant. Part
   of internal.user_reset.';

create or replace function internal.merge__conversation_participants(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  locked constant uuid[] := internal.conversations_lock_of(array[merge__conversation_participants.survivor,
                                                                 merge__conversation_participants.other]);
  theirs constant uuid[] := array(
    select p.conversation_id from app.conversation_participants p
     where p.app_user_id = merge__conversation_participants.other order by p.conversation_id);
  part app.conversation_participants;
begin
  perform from app.conversation_participants p where p.conversation_id = any (locked) order by p.conversation_id,
    p.app_user_id for no key update;
  update app.messages m set sender_id = merge__conversation_participants.survivor
    where m.sender_id = merge__conversation_participants.other;
  -- in a conversation of both, the survivor's row is kept, with the values of both
  for part in
    select p.* from app.conversation_participants p
     where p.app_user_id = merge__conversation_participants.other
       and exists (select from app.conversation_participants s
                    where (s.conversation_id, s.app_user_id) = (p.conversation_id,
                                                                merge__conversation_participants.survivor))
     order by p.conversation_id
  loop
    -- ownership is removed first, so that the deletion does not trigger a succession
    update app.conversation_participants p set is_owner = false
     where (p.conversation_id, p.app_user_id) = (part.conversation_id, part.app_user_id) and p.is_owner;
    delete from app.conversation_participants p
      where (p.conversation_id, p.app_user_id) = (part.conversation_id, part.app_user_id);
    update app.conversation_participants p
       set is_owner = p.is_owner or part.is_owner, joined_at = least(p.joined_at, part.joined_at),
         last_read_at = greatest(p.last_read_at, part.last_read_at),
           peer_id = null
     where (p.conversation_id, p.app_user_id) = (part.conversation_id, merge__conversation_participants.survivor);
  end loop;
  update app.conversation_participants p set app_user_id = merge__conversation_participants.survivor
   where p.app_user_id = merge__conversation_participants.other;
  update app.conversation_participants p set peer_id = merge__conversation_participants.survivor
   where p.conversation_id = any (theirs) and p.peer_id = merge__conversation_participants.other;
  -- direct conversations have new participants: if the survivor has one with the same participants, that one is found
  -- from now on
  update app.conversations c set direct_key = null where c.id = any (theirs) and c.direct_key is not null;
  update app.conversations c
     set direct_key = k.key
    from (select distinct on (n.key) n.id, n.key
            from (select p.conversation_id as id, sha256(convert_to(string_agg(p.app_user_id::text,
                                        ',' order by p.app_user_id), 'UTF8')) as key
                    from app.conversation_participants p
                    join app.conversations d on d.id = p.conversation_id and d.type = 'direct'
                   where p.conversation_id = any (theirs)
                   group by p.conversation_id) n
           where not exists (select from app.conversations e where e.direct_key = n.key)
           order by n.key, n.id) k
   where c.id = k.id;
  update app.messages m
     set mentions = array_replace(m.mentions, merge__conversation_participants.other,
                                  merge__conversation_participants.survivor)
    from app.conversation_participants p
   where p.conversation_id = any (locked) and p.app_user_id = merge__conversation_participants.survivor
     and m.conversation_id = p.conversation_id
     and m.created_at > internal.read_until(p) and merge__conversation_participants.other = any (m.mentions);
  -- counted again: the other user's messages are the survivor's own now
  update app.conversation_participants p
     set unread_count = n.unread, mention_count = n.mentions
    from (select q.conversation_id, count(m.id) as unread,
          count(m.id) filter (where q.app_user_id = any (m.mentions)) as mentions
            from app.conversation_participants q
            left join app.messages m on m.conversation_id = q.conversation_id and m.created_at > internal.read_until(q)
                                    and m.sender_id is distinct from q.app_user_id
           where q.conversation_id = any (locked) and q.app_user_id = merge__conversation_participants.survivor
           group by q.conversation_id) n
   where (p.conversation_id, p.app_user_id) = (n.conversation_id, merge__conversation_participants.survivor);
  return cardinality(theirs);
end $$;
comment on function internal.merge__conversation_participants is
  'Merges the conversations and messages of one user into another''s; in a conversation of both, the later read mark and
   the ownership of either are kept. A direct conversation with the same participants as one of the survivor''s is kept
   beside it, and appears only in lists. Returns the number of conversations. Locks them and their participants. Granted
   to nobody.';
