-- Friends and blocks, for other areas. They are sets, not functions of a row: a policy evaluates a set once for a
-- statement.

create or replace function internal.friend_ids() returns setof uuid
language sql stable security definer set search_path = '' rows 50 as $$
  select f.user_b from app.friendships f where f.user_a = internal.user_id() and f.status = 'accepted'
  union all
  select f.user_a from app.friendships f where f.user_b = internal.user_id() and f.status = 'accepted'
$$;
comment on function internal.friend_ids is
  'The caller''s accepted friends. In policies always as id in (select internal.friend_ids()).';

create or replace function internal.friends_of(app_user_id uuid) returns setof uuid
language sql stable rows 50 as $$
  -- no security definer and no settings, so that Postgres inlines it
  select f.user_b from app.friendships f where f.user_a = friends_of.app_user_id and f.status = 'accepted'
  union all
  select f.user_a from app.friendships f where f.user_b = friends_of.app_user_id and f.status = 'accepted'
$$;
comment on function internal.friends_of is
  'The accepted friends of any user, for background work on their behalf. Granted to nobody.';

create or replace function internal.blocked_ids() returns setof uuid
language sql stable security definer set search_path = '' rows 20 as $$
  select b.blocked from app.blocks b where b.blocker = internal.user_id()
  union
  select b.blocker from app.blocks b where b.blocked = internal.user_id()
$$;
comment on function internal.blocked_ids is
  'The users whom the caller has blocked, and those who have blocked the caller.';

create or replace function internal.is_blocked(user_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.blocks b where (b.blocker, b.blocked) = (internal.user_id(), is_blocked.user_id))
      or exists (select from app.blocks b where (b.blocker, b.blocked) = (is_blocked.user_id, internal.user_id()))
$$;
comment on function internal.is_blocked is
  'Whether the caller and a user have blocked each other, in either direction. For many users use
   internal.blocked_ids().';

create or replace function internal.merge__friendships(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- room beside the survivor's friends, and beside the other user's friends with whom the survivor has a pending
  -- request
  friend_room constant bigint := 1000 - (select count(*) from internal.friends_of(merge__friendships.survivor) f (id)
                                          where f.id <> merge__friendships.other)
                                      - (select count(*) from app.friendships f
                                          where f.status = 'pending' and merge__friendships.survivor in (f.user_a,
                                            f.user_b)
                                            and internal.friend_other(f, merge__friendships.survivor)
                                                in (select o from internal.friends_of(merge__friendships.other) o));
  request_room constant bigint := 100 - (select count(*) from app.friendships f
                                          where f.requested_by = merge__friendships.survivor and f.status = 'pending'
                                            and f.asked <> merge__friendships.other);
  moved int;
begin
  with gone as (
    delete from app.friendships f where merge__friendships.other in (f.user_a, f.user_b) returning f.*
  ), theirs as (
    select case when g.user_a = merge__friendships.other then g.user_b else g.user_a end as friend,
           case when g.user_a = merge__friendships.other then g.metadata_a else g.metadata_b end as own_note,
           case when g.user_a = merge__friendships.other then g.metadata_b else g.metadata_a end as friends_note,
           g.status, g.requested_by = merge__friendships.other as was_asked_by_other, g.requested_at, g.responded_at
      from gone g
  ), placed as (
    -- users whom the survivor is connected with need no room; of the others the oldest come first, up to the limits of
    -- a user
    select t.*, k.user_a is not null as is_known,
           row_number() over (partition by k.user_a is not null, t.status, t.was_asked_by_other and t.status = 'pending'
                              order by t.requested_at, t.friend) as n
      from theirs t
      left join app.friendships k
        on (k.user_a, k.user_b) = (least(merge__friendships.survivor, t.friend),
                                   greatest(merge__friendships.survivor, t.friend))
     where t.friend <> merge__friendships.survivor
  )
  insert into app.friendships as kept (user_a, user_b, status, requested_by, requested_at, responded_at, metadata_a,
                                       metadata_b)
  select least(merge__friendships.survivor, t.friend), greatest(merge__friendships.survivor, t.friend), t.status,
         case when t.was_asked_by_other then merge__friendships.survivor else t.friend end, t.requested_at,
         t.responded_at,
         case when merge__friendships.survivor < t.friend then t.own_note else t.friends_note end,
         case when merge__friendships.survivor < t.friend then t.friends_note else t.own_note end
    from placed t
   where t.is_known
      or t.n <= case when t.status = 'accepted' then friend_room when t.was_asked_by_other then request_room
                     else 2147483647 end
   order by t.friend
  -- when one has a request and the other a friendship, the friendship is kept
  on conflict (user_a, user_b) do update set status = excluded.status, responded_at = excluded.responded_at
     where kept.status = 'pending' and excluded.status = 'accepted';
  get diagnostics moved = row_count;
  -- blocks have been merged before (internal.users_merge orders by table name): a block of either user ends the other's
  -- friendship
  delete from app.friendships f
   where merge__friendships.survivor in (f.user_a, f.user_b)
     and exists (select from app.blocks b where (b.blocker, b.blocked) in ((f.user_a, f.user_b), (f.user_b, f.user_a)));
  return moved;
end $$;
comment on function internal.merge__friendships is
  'Merges the friendships of one user into another''s, the oldest first, up to 1000 friends and 100 open requests. When
   both are connected with the same user, the survivor''s row is kept, accepted when either is. Blocks in either
   direction exclude a friendship. Returns how many moved. Called by sign-in. Granted to nobody.';
