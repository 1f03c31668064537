-- Friends and blocks as other areas ask for them. Sets, not functions of a row: a policy evaluates a set once for a statement.

create or replace function internal.friend_ids() returns setof uuid
language sql stable security definer set search_path = '' rows 50 as $$
  select f.user_b from app.friendships f where f.user_a = internal.user_id() and f.status = 'accepted'
  union all
  select f.user_a from app.friendships f where f.user_b = internal.user_id() and f.status = 'accepted'
$$;
comment on function internal.friend_ids is
  'The caller''s accepted friends. In policies always as id in (select internal.friend_ids()).';

create or replace function internal.blocked_ids() returns setof uuid
language sql stable security definer set search_path = '' rows 20 as $$
  select b.blocked from app.blocks b where b.blocker = internal.user_id()
  union
  select b.blocker from app.blocks b where b.blocked = internal.user_id()
$$;
comment on function internal.blocked_ids is 'Whom the caller has blocked, and who has blocked the caller.';

create or replace function internal.is_blocked(user_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.blocks b where (b.blocker, b.blocked) = (internal.user_id(), is_blocked.user_id))
      or exists (select from app.blocks b where (b.blocker, b.blocked) = (is_blocked.user_id, internal.user_id()))
$$;
comment on function internal.is_blocked is 'Whether the caller and a user have blocked each other, either way. For many users take internal.blocked_ids().';
