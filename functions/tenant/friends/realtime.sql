-- What friendships and blocks publish.

-- the requester gets no event when a request is declined
select internal.source_declare(null::app.friendships,
  'friend.requested, friend.accepted and friend.removed {user, status}, to both users; the end of a request only to '
  'who was asked.',
  ops => 'insert or delete', changes => '{status}', publishes => $q$
    select 'user:' || v.viewer,
           case when op = 'DELETE' then 'friend.removed' when r.status = 'accepted' then 'friend.accepted'
                else 'friend.requested' end,
           json_build_object(
             'user', coalesce(internal.friend_person(internal.friend_other(r, v.viewer)),
                              json_build_object('id', internal.friend_other(r, v.viewer))),
             'status', case when op = 'DELETE' then 'none' else internal.friend_status(r, v.viewer) end)
      from unnest(case when op = 'DELETE' and r.status = 'pending' then array[r.asked]
                       else array[r.user_a, r.user_b] end) v (viewer)$q$);

select internal.source_declare(null::app.blocks,
  'A block, or its end, changes what both users may hear.',
  ops => 'insert or delete', also => 'perform internal.recheck_users(array[r.blocker, r.blocked]);');
