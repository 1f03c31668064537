-- Lists of friends and requests, and suggestions.

create or replace function internal.friendships_listed(app_user_id uuid, status text, page_offset bigint,
                                                       page_limit bigint)
returns setof app.friendships
language plpgsql stable as $$
begin
  if friendships_listed.status = 'accepted' then
    -- reads each side by its own index, and no more rows of either than the page may show
    return query
    select (o.f).*
      from ((select f from app.friendships f
              where f.user_a = friendships_listed.app_user_id and f.status = 'accepted'
              order by f.responded_at desc, f.user_b desc
                limit friendships_listed.page_offset + friendships_listed.page_limit)
            union all
            (select f from app.friendships f
              where f.user_b = friendships_listed.app_user_id and f.status = 'accepted'
              order by f.responded_at desc, f.user_a desc
                limit friendships_listed.page_offset + friendships_listed.page_limit)) o
     order by (o.f).responded_at desc, internal.friend_other(o.f, friendships_listed.app_user_id) desc
     limit friendships_listed.page_limit offset friendships_listed.page_offset;
  elsif friendships_listed.status = 'pending_incoming' then
    return query
    select f.* from app.friendships f
     where f.asked = friendships_listed.app_user_id and f.status = 'pending'
     order by f.requested_at desc, f.requested_by desc
     limit friendships_listed.page_limit offset friendships_listed.page_offset;
  else
    return query
    select f.* from app.friendships f
     where f.requested_by = friendships_listed.app_user_id and f.status = 'pending'
     order by f.requested_at desc, f.asked desc
     limit friendships_listed.page_limit offset friendships_listed.page_offset;
  end if;
end $$;
comment on function internal.friendships_listed is
  'A page of a user''s friends, or of their requests in one direction, newest first, each from its own index. Granted to
   nobody.';

create or replace function internal.friendships_count(app_user_id uuid, status text) returns bigint
language plpgsql stable as $$
begin
  return case friendships_count.status
    when 'accepted' then (select count(*) from internal.friends_of(friendships_count.app_user_id))
    when 'pending_incoming' then (select count(*) from app.friendships f
                                   where f.asked = friendships_count.app_user_id and f.status = 'pending')
    else (select count(*) from app.friendships f
           where f.requested_by = friendships_count.app_user_id and f.status = 'pending') end;
end $$;
comment on function internal.friendships_count is
  'The number of a user''s friends, or of requests in one direction. Granted to nobody.';

create or replace function internal.friends_mine(status text, page_offset bigint, page_limit bigint,
                                                 online boolean default null)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  -- a user has at most 1,000 friends
  here constant uuid[] := case when friends_mine.status = 'accepted'
                               then array(select o from internal.online_ids(array(select f
                                        from internal.friends_of(me) f)) o) end;
begin
  if friends_mine.status = 'accepted' then
    return (
      select internal.reply_page(
               (select json_agg(internal.json_merge(internal.friend_json(p.listed, me),
                                                    json_build_object('online', p.is_online)) order by p.n)
                  from (select l as listed, internal.friend_other(l, me) = any (here) as is_online,
                        row_number() over () as n
                          from internal.friendships_listed(me, 'accepted',
                                                           case when friends_mine.online is null
                                                                  then friends_mine.page_offset else 0 end,
                                                           case when friends_mine.online is null
                                                                  then friends_mine.page_limit else 1000 end) l
                         where friends_mine.online is null or (internal.friend_other(l,
                                        me) = any (here)) = friends_mine.online
                        offset case when friends_mine.online is null then 0 else friends_mine.page_offset end
                         limit friends_mine.page_limit) p),
               case when friends_mine.online is null then t.n when friends_mine.online then cardinality(here)
                    else t.n - cardinality(here) end,
               friends_mine.page_offset, friends_mine.page_limit)
        from (select internal.friendships_count(me, 'accepted') as n) t);
  end if;
  return internal.reply_page(
    (select json_agg(internal.friend_json(f.listed, me) order by f.n)
       from (select l as listed, row_number() over () as n
               from internal.friendships_listed(me, friends_mine.status, friends_mine.page_offset,
                                                friends_mine.page_limit) l) f),
    internal.friendships_count(me, friends_mine.status), friends_mine.page_offset, friends_mine.page_limit);
end $$;
comment on function internal.friends_mine is
  'A page of the caller''s friends or requests, newest first, with the caller''s notes; of friends whether they are
   online, or only those who are, or are not.';

create or replace function api.friends_list(status text default 'accepted', page_offset bigint default 0,
                                            page_limit bigint default 50, online boolean default null)
returns api.reply
language sql stable as $$
  select internal.friends_mine(friends_list.status, friends_list.page_offset, friends_list.page_limit,
                               friends_list.online)
$$;
comment on function api.friends_list is
  'The caller''s friends, or requests: status accepted, pending_incoming or pending_outgoing. online: only friends who
   are, or are not. Newest first.';

create or replace function api.friend_requests(direction text default 'incoming', page_offset bigint default 0,
                                               page_limit bigint default 50)
returns api.reply
language sql stable as $$
  select internal.friends_mine('pending_' || friend_requests.direction, friend_requests.page_offset,
                               friend_requests.page_limit)
$$;
comment on function api.friend_requests is
  'The requests that the caller received (incoming) or sent (outgoing), newest first.';

create or replace function api.friend_suggestions() returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.friend_caller();
  suggested json;
begin
  with mine as materialized (
    select o.id from internal.friends_of(me) o (id)
  ), candidates as (
    -- cost bound: the newest 200 friends, and of each the newest 200 on either side of the row
    select o.id, count(*) as common
      from internal.friendships_listed(me, 'accepted', 0, 200) f
     cross join lateral (
       (select g.user_b as id from app.friendships g
         where g.user_a = internal.friend_other(f, me) and g.status = 'accepted' order by g.responded_at desc,
           g.user_b desc limit 200)
       union all
       (select g.user_a from app.friendships g
         where g.user_b = internal.friend_other(f, me) and g.status = 'accepted' order by g.responded_at desc,
           g.user_a desc limit 200)) o
     where o.id <> me
     group by o.id
     order by common desc, o.id
    -- the other conditions are evaluated only for the first candidates, until there are twenty
    offset 0
  ), found_ones as materialized (
    select c.id
      from candidates c
     where c.id not in (select b from internal.blocked_ids() b)
       and not exists (select from app.friendships k where (k.user_a, k.user_b) = (least(me, c.id), greatest(me, c.id)))
       and not exists (select from app.users u where u.id = c.id and u.is_banned)
     limit 20
  )
  select json_agg(json_build_object('user', internal.friend_person(s.id),
                                    'common_count', s.common) order by s.common desc, s.id) into suggested
    from (select c.id, (select count(*) from internal.friends_of(c.id) t (id) join mine m on m.id = t.id) as common
            from found_ones c) s;
  return internal.reply(200, coalesce(suggested, '[]'));
end $$;
comment on function api.friend_suggestions is
  'At most 20 friends of friends, most mutual friends first: [{user, common_count}], from the newest 200 friends and the
   newest 400 of each; common_count counts all. Excludes friends, users with a request in either direction, blocked in
   either direction, or banned.';
