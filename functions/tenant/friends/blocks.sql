-- Blocks. A block ends the friendship or request of two users and hides them from each other. Their content stays.

create or replace function internal.block_json(b app.blocks) returns json
language sql stable as $$
  select json_build_object('user', internal.friend_person((block_json.b).blocked),
                           'created_at', internal.iso((block_json.b).created_at))
$$;
comment on function internal.block_json is 'A block as its user sees it. Granted to nobody.';

select internal.list_declare('blocks_page', null::app.blocks, 'block_json', '{created_at,blocked}',
                             required => '{blocker}');

create or replace function api.friend_block(user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  b app.blocks;
begin
  perform internal.friend_pair_lock(me, friend_block.user_id);
  select k.* into b from app.blocks k where (k.blocker, k.blocked) = (me, friend_block.user_id);
  if b.blocker is not null then
    return internal.reply(200, internal.block_json(b));
  end if;
  perform internal.check_limit((select count(*) from app.blocks k where k.blocker = me), 10000,
                               'A user blocks at most 10000 others.', 'FRIEND_LIMIT_REACHED');
  insert into app.blocks as made (blocker, blocked)
  values (me, friend_block.user_id)
  returning made.* into b;
  perform internal.friend_end(me, friend_block.user_id, me);
  return internal.reply(201, internal.block_json(b));
end $$;
comment on function api.friend_block is
  'The caller blocks a user, which ends their friendship or request: 201, or 200 when the user is blocked already. A
   user who has blocked the caller can be blocked too. Refuses 400 SELF_FRIEND, 404 USER_NOT_FOUND, 409
   FRIEND_LIMIT_REACHED (10,000 blocks). Locks both users.';

create or replace function api.friend_unblock(user_id uuid) returns api.reply
language sql volatile as $$
  select internal.friend_undo(friend_unblock.user_id, 'block')
$$;
comment on function api.friend_unblock is 'Unblocks a user. Refuses 404 NOT_FOUND.';

create or replace function api.friends_blocked(page_offset bigint default 0, page_limit bigint default 50)
returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.blocks_page(internal.friend_caller(), friends_blocked.page_offset, friends_blocked.page_limit)
$$;
comment on function api.friends_blocked is 'The users whom the caller has blocked, newest first, by blocks_newest.';
