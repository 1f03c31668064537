-- Counters of conversations, participants and messages, maintained by triggers for every statement that writes
-- messages: a page and the number of unread messages cost the same among a hundred messages as among a hundred
-- thousand. Writers of messages lock their conversations first (internal.conversation_lock). A session keeps the plan
-- of its first call: hash joins and sequential scans are off, so that the plan of a large deletion also suits single
-- messages.

create or replace function internal.read_until(p app.conversation_participants) returns timestamptz
language sql immutable parallel safe
return coalesce((read_until.p).last_read_at, (read_until.p).joined_at);
comment on function internal.read_until is
  'The time after which messages are unread: never before the participant joined.';

create or replace function internal.tg_messages__count_in() returns trigger
language plpgsql volatile security definer set search_path = '' set enable_hashjoin = off set enable_mergejoin = off
  set enable_seqscan = off as $$
begin
  update app.conversations c
     set message_count = c.message_count + n.messages, top_level_count = c.top_level_count + n.top_level,
         last_activity_at = greatest(c.last_activity_at, n.newest)
    from (select i.conversation_id, count(*) as messages,
          count(*) filter (where i.parent_message_id is null) as top_level, max(i.created_at) as newest
            from changed i group by i.conversation_id) n
   where c.id = n.conversation_id;
  update app.messages m
     set reply_count = m.reply_count + n.replies
    from (select i.parent_message_id, count(*) as replies from changed i where i.parent_message_id is not null
           group by i.parent_message_id) n
   where m.id = n.parent_message_id;
  update app.conversation_participants p
     set last_activity_at = greatest(p.last_activity_at, n.newest), unread_count = p.unread_count + n.unread,
       mention_count = p.mention_count + n.mentions
    from (select q.conversation_id, q.app_user_id, max(i.created_at) as newest,
                 count(*) filter (where u.is_unread) as unread,
                 count(*) filter (where u.is_unread and q.app_user_id = any (i.mentions)) as mentions
            from changed i
            join app.conversation_participants q on q.conversation_id = i.conversation_id
           cross join lateral (select i.created_at > internal.read_until(q) and i.sender_id is distinct
                                 from q.app_user_id as is_unread) u
           group by q.conversation_id, q.app_user_id) n
   where (p.conversation_id, p.app_user_id) = (n.conversation_id, n.app_user_id);
  return null;
end $$;
comment on function internal.tg_messages__count_in is
  'Adds new messages to the counters of their conversations, parents and participants.';

create or replace trigger tg_messages__count_in
  after insert on app.messages
  referencing new table as changed
  for each statement execute function internal.tg_messages__count_in();

create or replace function internal.tg_messages__count_out() returns trigger
language plpgsql volatile security definer set search_path = '' set enable_hashjoin = off set enable_mergejoin = off
  set enable_seqscan = off as $$
begin
  -- locks in a separate statement: the one below then sees read marks that were committed concurrently, and subtracts
  -- only what is still counted
  perform from app.conversation_participants p
    where p.conversation_id in (select d.conversation_id from changed d)
    order by p.conversation_id, p.app_user_id
      for no key update;
  -- replies to a deleted message become messages without a parent, except those that are deleted with it
  update app.conversations c
     set message_count = c.message_count - n.messages,
       top_level_count = c.top_level_count - n.top_level + n.orphaned - n.deleted_with_parent
    from (select d.conversation_id, count(*) as messages,
          count(*) filter (where d.parent_message_id is null) as top_level,
                 sum(d.reply_count) as orphaned,
                 count(*) filter (where d.parent_message_id is not null
                                    and not exists (select from app.messages p
                                                     where p.id = d.parent_message_id)) as deleted_with_parent
            from changed d
           group by d.conversation_id) n
   where c.id = n.conversation_id;
  update app.messages m
     set reply_count = m.reply_count - n.replies
    from (select d.parent_message_id, count(*) as replies from changed d where d.parent_message_id is not null
           group by d.parent_message_id) n
   where m.id = n.parent_message_id;
  update app.conversation_participants p
     set unread_count = p.unread_count - n.unread, mention_count = p.mention_count - n.mentions
    from (select q.conversation_id, q.app_user_id, count(*) as unread,
          count(*) filter (where q.app_user_id = any (d.mentions)) as mentions
            from changed d
            join app.conversation_participants q on q.conversation_id = d.conversation_id
           where d.created_at > internal.read_until(q) and d.sender_id is distinct from q.app_user_id
           group by q.conversation_id, q.app_user_id) n
   where (p.conversation_id, p.app_user_id) = (n.conversation_id, n.app_user_id);
  return null;
end $$;
comment on function internal.tg_messages__count_out is
  'Subtracts deleted messages from the counters of their conversations, parents and participants. Locks the
   participants.';

create or replace trigger tg_messages__count_out
  after delete on app.messages
  referencing old table as changed
  for each statement execute function internal.tg_messages__count_out();

create or replace function internal.tg_conversation_participants__succeed() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.conversations c
   where c.id in (select d.conversation_id from changed d)
     and not exists (select from app.conversation_participants p where p.conversation_id = c.id);
  update app.conversation_participants p
     set is_owner = true
    from (select distinct on (q.conversation_id) q.conversation_id, q.app_user_id
            from changed d
            join app.conversation_participants q on q.conversation_id = d.conversation_id
           where d.is_owner
           order by q.conversation_id, q.joined_at, q.app_user_id) n
   where (p.conversation_id, p.app_user_id) = (n.conversation_id, n.app_user_id);
  return null;
end $$;
comment on function internal.tg_conversation_participants__succeed is
  'Deletes a conversation after its last participant leaves; after its owner leaves, makes the participant who joined
   first the owner.';

create or replace trigger tg_conversation_participants__succeed
  after delete on app.conversation_participants
  referencing old table as changed
  for each statement execute function internal.tg_conversation_participants__succeed();
