-- Administration of friendships. Administrators never see users' notes.

create or replace function internal.friend_admin_check() returns void
language plpgsql stable as $$
begin
  perform internal.check_caller('developer', 'friends are administered by administrators');
end $$;
comment on function internal.friend_admin_check is 'Raises unless the caller is an administrator. Granted to nobody.';

create or replace function api.friends_of_user(user_id uuid, status text default 'accepted',
                                               page_offset bigint default 0, page_limit bigint default 50)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.friend_admin_check();
  perform internal.check_found(exists (select from app.users u where u.id = friends_of_user.user_id), 'user',
                               'USER_NOT_FOUND');
  return internal.reply_page(
    (select json_agg(internal.friend_admin_json(f.listed, friends_of_user.user_id) order by f.n)
       from (select l as listed, row_number() over () as n
               from internal.friendships_listed(friends_of_user.user_id, friends_of_user.status,
                                                friends_of_user.page_offset, friends_of_user.page_limit) l) f),
    internal.friendships_count(friends_of_user.user_id, friends_of_user.status), friends_of_user.page_offset,
    friends_of_user.page_limit);
end $$;
comment on function api.friends_of_user is
  'A page of a user''s friends or requests, newest first, for administrators. Refuses 404 USER_NOT_FOUND.';

create or replace function api.friend_add(user_id uuid, friend_id uuid, status text default 'accepted')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_wanted constant boolean := friend_add.status = 'accepted';
  f app.friendships;
  is_known boolean;
  refusal api.reply;
begin
  perform internal.friend_admin_check();
  perform internal.friend_pair_lock(friend_add.user_id, friend_add.friend_id);
  f := internal.friendship(friend_add.user_id, friend_add.friend_id);
  is_known := f.user_a is not null;
  if is_known and (f.status = 'accepted' or not is_wanted) then
    return internal.reply(200, internal.friend_admin_json(f, friend_add.user_id));
  elsif exists (select from app.blocks b where (b.blocker, b.blocked) in ((friend_add.user_id, friend_add.friend_id),
                                                                          (friend_add.friend_id,
                                                                           friend_add.user_id))) then
    perform internal.fail(409, 'CONFLICT', 'One of the users has blocked the other.', '{"field": "friend_id"}');
  end if;
  refusal := case when is_wanted then internal.friends_full(friend_add.user_id, friend_add.friend_id)
                  else internal.friends_full(friend_add.user_id, friend_add.user_id) end;
  if refusal.status is not null then
    return refusal;
  elsif not is_wanted then
    perform internal.check_limit((select count(*) from app.friendships o
                                   where o.requested_by = friend_add.user_id and o.status = 'pending'), 100,
                                 'A user has at most 100 open requests.', 'FRIEND_LIMIT_REACHED');
  end if;
  if not is_known then
    insert into app.friendships as made (user_a, user_b, status, requested_by)
    values (least(friend_add.user_id, friend_add.friend_id), greatest(friend_add.user_id, friend_add.friend_id),
            'pending', friend_add.user_id)
    returning made.* into f;
  end if;
  if is_wanted then
    f := internal.friend_accept(f, null);
  else
    perform internal.friend_emit(f, 'svc.friend.requested', friend_add.user_id);
  end if;
  perform internal.audit('friends.add', 'users', friend_add.user_id::text,
                         json_build_object('friend_id', json_build_array(null, friend_add.friend_id),
                                           'status', json_build_array(null, f.status)),
                         case when is_known then 200 else 201 end);
  return internal.reply(case when is_known then 200 else 201 end, internal.friend_admin_json(f, friend_add.user_id));
end $$;
comment on function api.friend_add is
  'An administrator makes two users friends, or sends a request from one to the other: 201, or 200 when there is a
   request or friendship already. Refuses 400 SELF_FRIEND, 404 USER_NOT_FOUND, 409 CONFLICT (a block),
   FRIEND_LIMIT_REACHED. Locks both users. Audited as friends.add.';

create or replace function api.friend_delete(user_id uuid, friend_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was text;
begin
  perform internal.friend_admin_check();
  perform internal.lock_users(array[friend_delete.user_id, friend_delete.friend_id]);
  was := internal.friend_end(friend_delete.user_id, friend_delete.friend_id, null);
  perform internal.check_found(was is not null, 'friend');
  perform internal.audit('friends.remove', 'users', friend_delete.user_id::text,
                         json_build_object('friend_id', json_build_array(friend_delete.friend_id, null),
                                           'status', json_build_array(was, null)));
  return internal.reply_deleted();
end $$;
comment on function api.friend_delete is
  'An administrator ends a friendship or a request of two users. Refuses 404 NOT_FOUND. Locks both users. Audited as
   friends.remove.';
