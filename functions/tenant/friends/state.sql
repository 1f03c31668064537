-- The state between two users. Functions that change it lock both users first (internal.friend_pair_lock), which
-- serialises concurrent requests, acceptances and blocks of the two.

create or replace function internal.friend_caller() returns uuid
language plpgsql stable as $$
begin
  if internal.caller() not in ('user', 'server_key_user') or internal.user_id() is null then
    raise exception 'friends are of users, not of %', internal.caller();
  end if;
  return internal.user_id();
end $$;
comment on function internal.friend_caller is 'The calling user. Raises for other callers. Granted to nobody.';

create or replace function internal.friend_pair_lock(one uuid, two uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if friend_pair_lock.one = friend_pair_lock.two then
    perform internal.fail(400, 'SELF_FRIEND', 'A user cannot be their own friend: send another id.',
                          '{"field": "user_id", "reason": "is the same user"}');
  elsif coalesce(cardinality(internal.lock_users(array[friend_pair_lock.one, friend_pair_lock.two])), 0) < 2 then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
end $$;
comment on function internal.friend_pair_lock is
  'Locks two users. Refuses 400 SELF_FRIEND, 404 USER_NOT_FOUND. Granted to nobody.';

create or replace function internal.friendship(one uuid, two uuid) returns app.friendships
language sql stable as $$
  select f from app.friendships f where (f.user_a, f.user_b) = (least(friendship.one, friendship.two),
                                                                greatest(friendship.one, friendship.two))
$$;
comment on function internal.friendship is 'The row of a pair of users, or null. Granted to nobody.';

create or replace function internal.friend_status(f app.friendships, viewer uuid) returns text
language sql immutable parallel safe as $$
  select case when (friend_status.f).status = 'accepted' then 'accepted'
              when (friend_status.f).requested_by = friend_status.viewer then 'pending_outgoing'
                else 'pending_incoming' end
$$;
comment on function internal.friend_status is 'accepted, pending_outgoing or pending_incoming, as the viewer sees it.';

create or replace function internal.friend_other(f app.friendships, viewer uuid) returns uuid
language sql immutable parallel safe as $$
  select case when (friend_other.f).user_a = friend_other.viewer then (friend_other.f).user_b
              else (friend_other.f).user_a end
$$;
comment on function internal.friend_other is 'The other user of a pair.';

create or replace function internal.friend_person(app_user_id uuid) returns json
language sql stable as $$
  select json_build_object('id', u.id, 'display_name', u.display_name, 'avatar_url', u.avatar_url) from app.users u
   where u.id = friend_person.app_user_id
$$;
comment on function internal.friend_person is 'The part of a profile that users see of each other. Granted to nobody.';

create or replace function internal.friend_json(f app.friendships, viewer uuid) returns json
language sql stable as $$
  select json_build_object(
    'user', internal.friend_person(internal.friend_other(friend_json.f, friend_json.viewer)),
    'status', internal.friend_status(friend_json.f, friend_json.viewer),
    'since', internal.iso(coalesce((friend_json.f).responded_at, (friend_json.f).requested_at)),
    'metadata', case when (friend_json.f).user_a = friend_json.viewer then (friend_json.f).metadata_a
                     else (friend_json.f).metadata_b end)
$$;
comment on function internal.friend_json is
  'A friend or a request as the viewer sees it, with the viewer''s own note and never the other user''s. Granted to
   nobody.';

create or replace function internal.friend_admin_json(f app.friendships, viewer uuid) returns json
language sql stable as $$
  select json_build_object(
    'user_id', friend_admin_json.viewer, 'friend_id', internal.friend_other(friend_admin_json.f,
                                        friend_admin_json.viewer),
    'friend', internal.friend_person(internal.friend_other(friend_admin_json.f, friend_admin_json.viewer)),
    'status', internal.friend_status(friend_admin_json.f, friend_admin_json.viewer),
    'since', internal.iso(coalesce((friend_admin_json.f).responded_at, (friend_admin_json.f).requested_at)))
$$;
comment on function internal.friend_admin_json is
  'A friendship or request of a user as administrators see it: without the users'' private notes. Granted to nobody.';

create or replace function internal.friend_emit(f app.friendships, event_name text, done_by uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.emit_many(
    array[(friend_emit.f).user_a, (friend_emit.f).user_b], array[friend_emit.event_name, friend_emit.event_name],
    array[jsonb_build_object('user_id', (friend_emit.f).user_b, 'initiated',
                             (friend_emit.f).user_a is not distinct from friend_emit.done_by),
          jsonb_build_object('user_id', (friend_emit.f).user_a, 'initiated',
                             (friend_emit.f).user_b is not distinct from friend_emit.done_by)])
$$;
comment on function internal.friend_emit is
  'Emits an event for each of the two users: {user_id, initiated}, the other user, and whether the event''s user acted;
   for an administrator''s act both are false. Both users are locked. Granted to nobody.';

create or replace function internal.friends_full(one uuid, two uuid) returns api.reply
language sql stable as $$
  select internal.refuse(409, 'FRIEND_LIMIT_REACHED', 'A user has at most 1000 friends.', '{"limit": 1000}')
   where (select count(*) from internal.friends_of(friends_full.one)) >= 1000
      or (select count(*) from internal.friends_of(friends_full.two)) >= 1000
$$;
comment on function internal.friends_full is
  'The refusal 409 FRIEND_LIMIT_REACHED when either of two locked users has the maximum number of friends, else null.
   Granted to nobody.';

create or replace function internal.friend_accept(f app.friendships, done_by uuid) returns app.friendships
language plpgsql volatile security definer set search_path = '' as $$
declare
  accepted app.friendships;
begin
  update app.friendships k
     set status = 'accepted', responded_at = internal.now()
   where (k.user_a, k.user_b) = ((friend_accept.f).user_a, (friend_accept.f).user_b)
  returning k.* into accepted;
  perform internal.friend_emit(accepted, 'svc.friend.accepted', friend_accept.done_by);
  return accepted;
end $$;
comment on function internal.friend_accept is
  'Accepts the request between two locked users. Emits svc.friend.accepted. Granted to nobody.';

create or replace function internal.friend_end(one uuid, two uuid, done_by uuid) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended app.friendships;
begin
  delete from app.friendships f
   where (f.user_a, f.user_b) = (least(friend_end.one, friend_end.two), greatest(friend_end.one, friend_end.two))
  returning f.* into ended;
  if ended.status = 'accepted' then
    perform internal.friend_emit(ended, 'svc.friend.removed', friend_end.done_by);
  end if;
  return ended.status;
end $$;
comment on function internal.friend_end is
  'Ends the friendship or request of two locked users; returns its status, or null. Emits svc.friend.removed for a
   friendship. Granted to nobody.';
