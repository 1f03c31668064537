-- Feeds: what users did, and what their friends and groups see of it. A home feed is merged when it is read: nothing is
-- copied to followers. The entries of an actor are counted by action and group, and these counts are summed up in one
-- row of each actor, so a total is a sum over the actors, and a page reads only the actors that can have an entry on
-- it.

create or replace function internal.feed_entry_of(e app.feed_entries, actor app.users) returns json
language sql stable as $$
  -- without a subquery, so that Postgres inlines it
  select json_build_object(
    'id', (feed_entry_of.e).id, 'actor_id', (feed_entry_of.e).actor_id, 'action', (feed_entry_of.e).action,
    'target_id', (feed_entry_of.e).target_id, 'group_id', (feed_entry_of.e).group_id,
    'metadata', (feed_entry_of.e).metadata,
    'created_at', internal.iso((feed_entry_of.e).created_at),
    'actor', case when (feed_entry_of.actor).id is not null then json_build_object(
      'id', (feed_entry_of.actor).id, 'display_name', (feed_entry_of.actor).display_name,
        'avatar_url', (feed_entry_of.actor).avatar_url) end)
$$;
comment on function internal.feed_entry_of is
  'An entry and its actor as responses show them; the actor is null for an entry of the system.';

create or replace function internal.feed_entry_json(e app.feed_entries) returns json
language sql stable as $$
  select internal.feed_entry_of(feed_entry_json.e, u) from (values (1)) one left
    join app.users u on u.id = (feed_entry_json.e).actor_id
$$;
comment on function internal.feed_entry_json is
  'An entry as responses show it; actor is null for an entry of the system.';

create or replace function internal.feed_hidden_actions() returns text[]
language sql stable security definer set search_path = '' as $$
  select coalesce((
    select array(select jsonb_array_elements_text(u.properties -> 'feed_hidden_actions'))
      from app.users u
     where u.id = internal.user_id() and jsonb_typeof(u.properties -> 'feed_hidden_actions') = 'array'), '{}')
$$;
comment on function internal.feed_hidden_actions is
  'The actions that the caller does not want to see in the feeds of others: the property feed_hidden_actions, where it
   is an array.';

create or replace function internal.feed_scope(group_id uuid) returns json
language sql stable security definer set search_path = '' as $$
  select json_build_object(
    'hidden', internal.feed_hidden_actions(),
    'unseen', array(select b
                      from internal.blocked_ids() b
                     where exists (select from app.group_members m
                                    where (m.group_id, m.app_user_id) = (feed_scope.group_id, b))
                        or exists (select from app.feed_counts c
                                    where (c.actor_key, c.group_key) = (b, feed_scope.group_id))))
$$;
comment on function internal.feed_scope is
  'What a listener to a group is not told of its feed: {hidden, actions that the caller does not want to see; unseen,
   members and former actors who block the caller or are blocked}. At most as many as the group has, whomever the caller
   blocks.';

create or replace function internal.feed_write(actor_id uuid, action text, target_id text, group_id uuid,
                                               metadata jsonb)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  e app.feed_entries;
  is_public boolean;
begin
  select g.is_public into is_public from app.groups g where g.id = feed_write.group_id for key share;
  if not found and feed_write.group_id is not null then
    perform internal.group_not_found();
  end if;
  insert into app.feed_entries as made (actor_id, action, target_id, group_id, is_home, metadata)
  values (feed_write.actor_id, feed_write.action, feed_write.target_id, feed_write.group_id,
          feed_write.group_id is null or is_public and feed_write.actor_id is not null,
          coalesce(feed_write.metadata, '{}'))
  returning made.* into e;
  -- as it is now: a rule of moderation may have hidden its metadata
  return (select internal.feed_entry_json(k) from app.feed_entries k where k.id = e.id);
end $$;
comment on function internal.feed_write is
  'Writes an entry. What the system posts to a group appears there only. Refuses 404 NOT_FOUND for a group that does not
   exist. Locks the group against deletion. Granted to nobody.';

create or replace function api.feed_home(since timestamptz default null, page_limit int default 20,
                                         page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  hidden constant text[] := internal.feed_hidden_actions();
  newest constant bigint := feed_home.page_offset::bigint + feed_home.page_limit;
  after constant timestamptz := coalesce(feed_home.since, '-infinity');
  feed record;
begin
  -- the first n entries are of the n actors whose newest entries are the newest: each of those has one that is newer
  -- than all of any other. The actors are arrays, which an index is read by in one scan.
  with who as materialized (
    select array(
      select internal.user_id()
      union all
      select internal.feed_nobody()
      union all
      select f.id from internal.friends_of(internal.user_id()) f (id)
       where not exists (select from app.users u where u.id = f.id and u.is_banned)) as keys
  ), summed as materialized (
    -- of all actions, so it serves who hides none
    select t.actor_key, t.entries, t.last_at, t.has_groups
      from app.feed_totals t
     where t.actor_key = any ((select w.keys from who w)::uuid[]) and cardinality(hidden) = 0
  ), apart as materialized (
    -- of groups, and of actors whose totals do not serve or are not there
    select c.actor_key, c.entries, c.last_at, g.id as group_id
      from app.feed_counts c
      join app.groups g on g.id = c.group_key and g.is_public
     where c.actor_key = any (array(select s.actor_key from summed s where s.has_groups)) and c.is_home
       and c.group_key > internal.feed_nobody()
       and c.action <> all (hidden)
    union all
    select c.actor_key, c.entries, c.last_at, g.id
      from app.feed_counts c
      left join app.groups g on g.id = c.group_key and g.is_public
     where c.actor_key = any (array(select unnest(w.keys) from who w except select s.actor_key from summed s))
       and c.is_home
       and c.action <> all (hidden) and (g.id is not null or c.group_key = internal.feed_nobody())
  ), counted as materialized (
    select k.actor_key, sum(k.entries)::bigint as entries, max(k.last_at) as last_at
      from (select s.actor_key, s.entries, s.last_at from summed s where s.entries > 0 and s.last_at >= after
            union all
            select x.actor_key, x.entries, x.last_at from apart x where x.last_at >= after) k
     group by k.actor_key
  )
  select (select sum(c.entries)::bigint from counted c) as entries,
         array(select c.actor_key from counted c) as actors,
         array(select c.actor_key from counted c
                where c.last_at >= coalesce((select l.last_at from counted l order by l.last_at desc limit 1
                                             offset newest - 1), '-infinity')) as candidates,
         array(select distinct x.group_id from apart x where x.group_id is not null) as groups
    into feed;
  if feed_home.since is not null then
    -- users and the system apart: under one condition no index would serve, and each entry since then would be compared
    -- with each actor
    feed.entries := (
      select count(*)
        from app.feed_entries e
       where e.actor_id = any (feed.actors) and e.is_home and e.created_at >= after and e.action <> all (hidden)
         and (e.group_id is null or e.group_id = any (feed.groups)))
      + case when internal.feed_nobody() = any (feed.actors) then (
          select count(*)
            from app.feed_entries e
           where e.actor_id is null and e.is_home and e.created_at >= after and e.action <> all (hidden)
             and (e.group_id is null or e.group_id = any (feed.groups))) else 0 end;
  end if;
  return internal.reply_page(
    (select json_agg(internal.feed_entry_of(e, u) order by e.created_at desc, e.id desc)
       from (select k.id
               from (select own.id, own.created_at
                       from unnest(feed.candidates) a (key)
                      cross join lateral (
                        select x.id, x.created_at
                          from app.feed_entries x
                         where x.actor_id = a.key and x.is_home and x.created_at >= after and x.action <> all (hidden)
                           and (x.group_id is null or x.group_id = any (feed.groups))
                         order by x.created_at desc, x.id desc
                         limit newest) own
                     union all
                     (select x.id, x.created_at
                        from app.feed_entries x
                       where x.actor_id is null and x.is_home and x.created_at >= after and x.action <> all (hidden)
                         and (x.group_id is null or x.group_id = any (feed.groups))
                         and internal.feed_nobody() = any (feed.candidates)
                       order by x.created_at desc, x.id desc
                       limit newest)) k
              order by k.created_at desc, k.id desc
              limit feed_home.page_limit offset feed_home.page_offset) p
       join app.feed_entries e on e.id = p.id
       left join app.users u on u.id = e.actor_id),
    coalesce(feed.entries, 0), feed_home.page_offset, feed_home.page_limit);
end $$;
comment on function api.feed_home is
  'A page of the caller''s home feed, newest first: entries of the caller, of accepted friends who are not banned, and
   of the system; of groups only what was posted while the group was public, and is public now. Without the hidden
   actions of the caller. since: entries from that time on. The total is exact.';

create or replace function api.feed_own(page_limit int default 20, page_offset int default 0) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply_page(
    (select json_agg(internal.feed_entry_of(e, u) order by e.created_at desc, e.id desc)
       from (select k.id
               from (select own.id, own.created_at
                       from (values (true), (false)) h (is_home)
                      cross join lateral (
                        select x.id, x.created_at
                          from app.feed_entries x
                         where x.actor_id = internal.user_id() and x.is_home = h.is_home
                         order by x.created_at desc, x.id desc
                         limit feed_own.page_offset::bigint + feed_own.page_limit) own) k
              order by k.created_at desc, k.id desc
              limit feed_own.page_limit offset feed_own.page_offset) p
       join app.feed_entries e on e.id = p.id
       left join app.users u on u.id = e.actor_id),
    (select coalesce(sum(c.entries), 0)::bigint from app.feed_counts c where c.actor_key = internal.user_id()),
    feed_own.page_offset, feed_own.page_limit)
$$;
comment on function api.feed_own is 'A page of the caller''s own entries, newest first, those in private groups too.';

create or replace function api.feed_of_group(group_id uuid, page_limit int default 20, page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  g app.groups;
  own constant uuid[] := array(select internal.my_group_ids());
  hidden constant text[] := internal.feed_hidden_actions();
  unseen uuid[];
begin
  select k.* into g from app.groups k where k.id = feed_of_group.group_id;
  if g.id is null or not internal.group_is_visible(g, own) then
    perform internal.group_not_found();
  elsif g.id <> all (own) then
    perform internal.fail(403, 'NOT_A_MEMBER', 'Only members read the feed of a group.');
  end if;
  unseen := array(
    select u.id from app.users u
     where u.is_banned and u.id <> internal.user_id()
       and u.id in (select c.actor_key from app.feed_counts c
                     where c.group_key = g.id and c.group_key <> internal.feed_nobody())
    union
    select b from internal.blocked_ids() b);
  return internal.reply_page(
    (select json_agg(internal.feed_entry_of(e.entry, u) order by (e.entry).created_at desc, (e.entry).id desc)
       from (select x as entry
               from app.feed_entries x
              where x.group_id = g.id and x.action <> all (hidden)
                and (x.actor_id is null or x.actor_id <> all (unseen))
              order by x.created_at desc, x.id desc
              limit feed_of_group.page_limit offset feed_of_group.page_offset) e
       left join app.users u on u.id = (e.entry).actor_id),
    (select coalesce(sum(c.entries), 0)::bigint
       from app.feed_counts c
      where c.group_key = g.id and c.group_key <> internal.feed_nobody() and c.action <> all (hidden)
        and c.actor_key <> all (unseen)),
    feed_of_group.page_offset, feed_of_group.page_limit);
end $$;
comment on function api.feed_of_group is
  'A page of what was posted to a group, newest first, for its members; without the entries of banned users, of users
   who block the caller or are blocked, and of hidden actions. Refuses 404 NOT_FOUND for a group that the caller does
   not see, 403 NOT_A_MEMBER.';

create or replace function api.feed_post(action text, target_id text default null, group_id uuid default null,
                                         metadata jsonb default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  role text;
begin
  perform internal.lock_users(array[me]);
  perform internal.check_may_write();
  if exists (select from internal.feed_events f where f.action = feed_post.action) then
    perform internal.invalid('action', 'is made by events only');
  end if;
  if feed_post.group_id is not null then
    select m.role into role from app.group_members m where (m.group_id, m.app_user_id) = (feed_post.group_id, me);
    if role is null and not exists (select from app.groups g where g.id = feed_post.group_id and g.is_public) then
      perform internal.group_not_found();
    elsif role is null then
      perform internal.fail(403, 'NOT_A_MEMBER', 'Only members post to a group.');
    elsif internal.group_rank(role) < internal.group_rank('member') then
      perform internal.fail(403, 'GROUP_ROLE_FORBIDDEN', 'Viewers do not post to a group.');
    end if;
  end if;
  perform internal.check_rate('feed posts ' || me, 30, 3600, 'A user posts at most 30 entries an hour.');
  return internal.reply(201, internal.feed_write(me, feed_post.action, feed_post.target_id, feed_post.group_id,
                                                 feed_post.metadata));
end $$;
comment on function api.feed_post is
  'Posts an entry of the caller, at most 30 an hour. Refuses 400 VALIDATION_ERROR (an action that events make), 404
   NOT_FOUND (group), 403 NOT_A_MEMBER, GROUP_ROLE_FORBIDDEN (viewers), USER_MUTED, 400 CONTENT_REJECTED where a rule
   blocks a text in the metadata, 429 RATE_LIMITED. Locks the user.';

create or replace function api.feed_delete(entry_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.lock_users(array[internal.user_id()]);
  delete from app.feed_entries e where (e.id, e.actor_id) = (feed_delete.entry_id, internal.user_id());
  perform internal.check_found(found, 'entry');
  return internal.reply_deleted();
end $$;
comment on function api.feed_delete is
  'Deletes an entry of the caller. Refuses 404 NOT_FOUND, for entries of others too. Locks the user.';

select internal.list_declare('feed_entries_page', null::app.feed_entries, 'feed_entry_json', '{created_at,id}',
                             filters => '{actor_id,group_id,action}', is_counted => true,
                             counted_filters => '{action}');

create or replace function api.feed_entries(user_id uuid default null, group_id uuid default null,
                                            action text default null, page_offset int default 0,
                                            page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.feed_entries_page(feed_entries.user_id, feed_entries.group_id, feed_entries.action,
                                    feed_entries.page_offset, feed_entries.page_limit)
$$;
comment on function api.feed_entries is 'Entries of the project, newest first, by actor, group and action.';

create or replace function api.feed_post_as(action text, as_user_id uuid default null, system boolean default null,
                                            target_id text default null, group_id uuid default null,
                                            metadata jsonb default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  made json;
begin
  perform internal.check_caller('developer', 'entries of others are posted by administrators');
  if (feed_post_as.as_user_id is null) <> coalesce(feed_post_as.system, false) then
    perform internal.invalid('as_user_id', 'send as_user_id, or system: true');
  elsif feed_post_as.as_user_id is not null and internal.lock_users(array[feed_post_as.as_user_id]) is null then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  made := internal.feed_write(feed_post_as.as_user_id, feed_post_as.action, feed_post_as.target_id,
                              feed_post_as.group_id, feed_post_as.metadata);
  perform internal.audit('feeds.post', 'feed_entries', made ->> 'id', json_build_object(
    'actor_id', json_build_array(null, feed_post_as.as_user_id), 'action', json_build_array(null, feed_post_as.action)),
      201);
  return internal.reply(201, made);
end $$;
comment on function api.feed_post_as is
  'Posts an entry of a user, or of the system where system is true. Refuses 400 VALIDATION_ERROR unless one of the two
   is sent, 404 USER_NOT_FOUND, NOT_FOUND (group). Locks the user.';

create or replace function api.feed_remove(entry_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  doomed app.feed_entries;
begin
  perform internal.check_caller('developer', 'entries of others are deleted by administrators');
  select e.* into doomed from app.feed_entries e where e.id = feed_remove.entry_id;
  -- the actor first, as everywhere
  perform internal.lock_users(array[doomed.actor_id]);
  delete from app.feed_entries e where e.id = feed_remove.entry_id;
  perform internal.check_found(found, 'entry');
  perform internal.audit('feeds.delete', 'feed_entries', doomed.id::text, json_build_object(
    'actor_id', json_build_array(doomed.actor_id, null), 'action', json_build_array(doomed.action, null)));
  return internal.reply_deleted();
end $$;
comment on function api.feed_remove is
  'Deletes an entry of any user or of the system. Refuses 404 NOT_FOUND. Locks the actor.';
