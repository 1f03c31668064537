-- Friend requests, their answers, and the notes of friends.

create or replace function api.friend_request(user_id uuid default null, friend_code text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  other uuid := friend_request.user_id;
  known uuid[];
  f app.friendships;
  refusal api.reply;
begin
  if (friend_request.user_id is null) = (friend_request.friend_code is null) then
    perform internal.invalid('user_id', 'send either user_id or friend_code');
  elsif other is null then
    select c.app_user_id into other from app.friend_codes c
     where c.code = internal.code_normal(friend_request.friend_code);
  end if;
  if other = me then
    perform internal.fail(400, 'SELF_FRIEND', 'A user cannot be their own friend: send the id or code of another user.',
                          json_build_object(
      'field', case when friend_request.user_id is null then 'friend_code' else 'user_id' end,
        'reason', 'is the same user'));
  end if;
  known := coalesce(internal.lock_users(array[me, other]), '{}');
  if me <> all (known) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  f := internal.friendship(me, other);
  if f.status = 'accepted' or f.requested_by = me then
    return internal.reply(200, internal.friend_json(f, me));
  end if;
  refusal := internal.rate_refusal('friend requests ' || me, 30, 3600, 'A user sends at most 30 requests an hour.');
  if refusal.status is not null then
    return refusal;
  end if;
  -- from here on refusals are returned, so that the attempt stays counted: codes must not be found by guessing
  if other is null or other <> all (known) or internal.is_blocked(other)
    or exists (select from app.users u where u.id = other and u.is_banned) then
    return internal.refuse(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  if f.status = 'pending' then
    refusal := internal.friends_full(me, other);
    if refusal.status is not null then
      return refusal;
    end if;
    return internal.reply(200, internal.friend_json(internal.friend_accept(f, me), me));
  end if;
  -- the other user's limit is checked when they accept
  refusal := internal.friends_full(me, me);
  if refusal.status is not null then
    return refusal;
  elsif (select count(*) from app.friendships o where o.requested_by = me and o.status = 'pending') >= 100 then
    return internal.refuse(409, 'FRIEND_LIMIT_REACHED', 'A user has at most 100 open requests.', '{"limit": 100}');
  end if;
  insert into app.friendships as made (user_a, user_b, status, requested_by)
  values (least(me, other), greatest(me, other), 'pending', me)
  returning made.* into f;
  perform internal.friend_emit(f, 'svc.friend.requested', me);
  return internal.reply(201, internal.friend_json(f, me));
end $$;
comment on function api.friend_request is
  'The caller sends a friend request to a user, given by id or code: 201; 200 when there is a request or friendship
   already, or when the other user''s request is accepted thereby. Refuses 400 VALIDATION_ERROR, SELF_FRIEND; returns
   404 USER_NOT_FOUND (also for a user who is banned, or blocked in either direction), 409 FRIEND_LIMIT_REACHED, 429
   RATE_LIMITED, so that the attempt is counted. Locks both users, then the limit.';

create or replace function internal.friend_answer(user_id uuid, is_accepted boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  f app.friendships;
  refusal api.reply;
begin
  perform internal.lock_users(array[me, friend_answer.user_id]);
  f := internal.friendship(me, friend_answer.user_id);
  if f.status = 'accepted' and friend_answer.is_accepted then
    return internal.reply(200, internal.friend_json(f, me));
  elsif f.asked is distinct from me or f.status <> 'pending' then
    perform internal.fail(404, 'REQUEST_NOT_FOUND', 'There is no such request.');
  elsif not friend_answer.is_accepted then
    perform internal.friend_end(me, friend_answer.user_id, me);
    return internal.reply(200, '{"declined": true}');
  end if;
  refusal := internal.friends_full(me, friend_answer.user_id);
  if refusal.status is not null then
    return refusal;
  end if;
  return internal.reply(200, internal.friend_json(internal.friend_accept(f, me), me));
end $$;
comment on function internal.friend_answer is
  'The caller accepts or declines a user''s request; accepting twice is 200. Refuses 404 REQUEST_NOT_FOUND, 409
   FRIEND_LIMIT_REACHED when either user has the maximum number of friends. Locks both users.';

create or replace function api.friend_accept(user_id uuid) returns api.reply
language sql volatile as $$
  select internal.friend_answer(friend_accept.user_id, true)
$$;
comment on function api.friend_accept is 'Accepts a request and returns the friend. Refuses as internal.friend_answer.';

create or replace function api.friend_decline(user_id uuid) returns api.reply
language sql volatile as $$
  select internal.friend_answer(friend_decline.user_id, false)
$$;
comment on function api.friend_decline is
  'Declines a request, without notifying the other user: {declined: true}. Refuses 404 REQUEST_NOT_FOUND.';

create or replace function internal.friend_undo(user_id uuid, thing text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  f app.friendships;
begin
  perform internal.lock_users(array[me, friend_undo.user_id]);
  if friend_undo.thing = 'block' then
    delete from app.blocks b where (b.blocker, b.blocked) = (me, friend_undo.user_id);
    perform internal.check_found(found, friend_undo.thing);
    return internal.reply_deleted();
  end if;
  f := internal.friendship(me, friend_undo.user_id);
  if friend_undo.thing = 'request' then
    perform internal.check_found(f.status = 'pending' and f.requested_by = me, friend_undo.thing, 'REQUEST_NOT_FOUND');
  else
    perform internal.check_found(f.status = 'accepted', friend_undo.thing);
  end if;
  perform internal.friend_end(me, friend_undo.user_id, me);
  return internal.reply_deleted();
end $$;
comment on function internal.friend_undo is
  'The caller withdraws their request to a user, ends the friendship with a user, or unblocks a user: thing is request,
   friend or block. A friendship that a block ended is not restored. Refuses 404 REQUEST_NOT_FOUND (request), NOT_FOUND.
   Locks both users.';

create or replace function api.friend_withdraw(user_id uuid) returns api.reply
language sql volatile as $$
  select internal.friend_undo(friend_withdraw.user_id, 'request')
$$;
comment on function api.friend_withdraw is 'Withdraws a request. Refuses 404 REQUEST_NOT_FOUND.';

create or replace function api.friend_remove(user_id uuid) returns api.reply
language sql volatile as $$
  select internal.friend_undo(friend_remove.user_id, 'friend')
$$;
comment on function api.friend_remove is 'Ends a friendship. Refuses 404 NOT_FOUND.';

create or replace function api.friend_update(user_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  f app.friendships;
begin
  update app.friendships k
     set metadata_a = case when k.user_a = me and friend_update.patch ? 'metadata'
                             then friend_update.patch -> 'metadata' else k.metadata_a end,
         metadata_b = case when k.user_b = me and friend_update.patch ? 'metadata'
                             then friend_update.patch -> 'metadata' else k.metadata_b end
   where (k.user_a, k.user_b) = (least(me, friend_update.user_id), greatest(me, friend_update.user_id))
  returning k.* into f;
  perform internal.check_found(f.user_a is not null, 'friend');
  return internal.reply(200, internal.friend_json(f, me));
end $$;
comment on function api.friend_update is
  'Replaces the caller''s private note about a friend, or about the other user of a request. Refuses 404 NOT_FOUND.
   Locks the row of the pair.';

create or replace function internal.friend_code_mine(is_new boolean) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  mine text;
  made text;
begin
  select c.code into mine from app.friend_codes c where c.app_user_id = me;
  if mine is null or friend_code_mine.is_new then
    perform internal.check_found(internal.lock_users(array[me]) is not null, 'user', 'USER_NOT_FOUND');
    made := internal.random_code(8);
    insert into app.friend_codes as c (app_user_id, code)
    values (me, made)
    -- concurrent first calls get the same code
    on conflict on constraint friend_codes_pkey do update
       set code = case when friend_code_mine.is_new then excluded.code else c.code end,
           created_at = case when friend_code_mine.is_new then excluded.created_at else c.created_at end
    returning c.code into mine;
  end if;
  return json_build_object('code', mine);
end $$;
comment on function internal.friend_code_mine is
  'The caller''s code, generated at the first call; is_new replaces it, and the old one becomes invalid. Refuses 404
   USER_NOT_FOUND. Locks the caller if it writes.';

create or replace function api.friend_code() returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.friend_code_mine(false))
$$;
comment on function api.friend_code is 'The caller''s code: {code}.';

create or replace function api.friend_code_rotate() returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.friend_code_mine(true))
$$;
comment on function api.friend_code_rotate is
  'Replaces the caller''s code, so that the old one becomes invalid: {code}.';
