-- Feeds: what users did, and what their friends and groups see of it. A home feed is merged when it is read: nothing is copied to followers. The entries of an
-- actor are counted by action and group, and these counts are summed up in one row of each actor, so a total is a sum over the actors, and a page reads only the
-- actors that can have an entry on it.
comment on constraint feed_entries_action_form on app.feed_entries is '400 VALIDATION_ERROR action: must match ^[a-z][a-z0-9_.]{0,63}$.';
comment on constraint feed_entries_target_id_1_to_255 on app.feed_entries is '400 VALIDATION_ERROR target_id: must have 1 to 255 characters.';
comment on constraint feed_entries_metadata_is_object on app.feed_entries is '400 VALIDATION_ERROR metadata: must be an object.';

create or replace function internal.feed_nobody() returns uuid
language sql immutable parallel safe
return uuid '00000000-0000-0000-0000-000000000000';
comment on function internal.feed_nobody is 'The key of app.feed_counts for entries of the system, and for entries of no group.';

create or replace function internal.feed_key(id uuid) returns uuid
language sql immutable parallel safe
return coalesce(feed_key.id, internal.feed_nobody());
comment on function internal.feed_key is 'The key of an actor or a group in app.feed_counts.';

create or replace function internal.feed_totals_refresh(actors uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- locks each row, also one that was there: who sums up in a later statement sees the counts of all that held the lock before
  insert into app.feed_totals (actor_key, entries, has_groups)
  select k, 0, false from unnest(feed_totals_refresh.actors) k order by k
  on conflict (actor_key) do update set entries = excluded.entries where false;
  update app.feed_totals t
     set (entries, last_at, has_groups) = (
           select coalesce(sum(c.entries), 0)::bigint, max(c.last_at),
                  exists (select from app.feed_counts g where g.actor_key = t.actor_key and g.is_home and g.group_key > internal.feed_nobody())
             from app.feed_counts c
            where c.actor_key = t.actor_key and c.is_home and c.group_key = internal.feed_nobody())
   where t.actor_key = any (feed_totals_refresh.actors);
  delete from app.feed_totals t where t.actor_key = any (feed_totals_refresh.actors) and t.entries = 0 and not t.has_groups;
end $$;
comment on function internal.feed_totals_refresh is
  'Sums up the counts of actors whose entries a writer has taken away in this transaction. Locks their totals, in the order of the actors. Granted to nobody.';

create or replace function internal.feed_totals_begin() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- nobody is half way
  lock table app.feed_entries in share row exclusive mode;
  delete from app.feed_totals t where not exists (select from app.feed_counts c where c.actor_key = t.actor_key and c.is_home);
  insert into app.feed_totals as t (actor_key, entries, last_at, has_groups)
  select c.actor_key, coalesce(sum(c.entries) filter (where c.group_key = internal.feed_nobody()), 0)::bigint,
         max(c.last_at) filter (where c.group_key = internal.feed_nobody()), bool_or(c.group_key <> internal.feed_nobody())
    from app.feed_counts c
   where c.is_home and c.actor_key <> internal.feed_nobody()
   group by c.actor_key
  on conflict (actor_key) do update
     set entries = excluded.entries, last_at = excluded.last_at, has_groups = excluded.has_groups
   where (t.entries, t.last_at, t.has_groups) is distinct from (excluded.entries, excluded.last_at, excluded.has_groups);
end $$;
comment on function internal.feed_totals_begin is
  'Sums up the counts of all actors: for the seed, as entries may be older than the totals, and for who has loaded counts with triggers switched off. Locks entries against
   writers. Granted to nobody.';

create or replace function internal.tg_feed_entries__count_in() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- sorted, so that two writers of the same counts cannot deadlock
  insert into app.feed_counts as c (actor_key, is_home, group_key, action, entries, last_at)
  select internal.feed_key(n.actor_id), n.is_home, internal.feed_key(n.group_id), n.action, count(*), max(n.created_at)
    from came n
   group by 1, 2, 3, 4
   order by 1, 2, 3, 4
  on conflict (actor_key, is_home, group_key, action) do update
     set entries = c.entries + excluded.entries, last_at = greatest(c.last_at, excluded.last_at);
  insert into app.feed_totals as t (actor_key, entries, last_at, has_groups)
  select n.actor_id, count(*) filter (where n.group_id is null), max(n.created_at) filter (where n.group_id is null), bool_or(n.group_id is not null)
    from came n
   where n.is_home and n.actor_id is not null
   group by 1
   order by 1
  on conflict (actor_key) do update
     set entries = t.entries + excluded.entries, last_at = greatest(t.last_at, excluded.last_at), has_groups = t.has_groups or excluded.has_groups;
  return null;
end $$;
comment on function internal.tg_feed_entries__count_in is 'Counts new entries, and those that a merge of users gave another actor. Locks the counts, then the totals.';

create or replace function internal.tg_feed_entries__count_out() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a separate statement locks the counts, so that the next one sees what the former holders of the locks committed
  perform from app.feed_counts c
    where (c.actor_key, c.is_home, c.group_key, c.action) in
          (select internal.feed_key(o.actor_id), o.is_home, internal.feed_key(o.group_id), o.action from gone o)
    order by c.actor_key, c.is_home, c.group_key, c.action
      for no key update;
  update app.feed_counts c
     set entries = c.entries - o.entries,
         last_at = case when o.last_at < c.last_at or c.entries = o.entries then c.last_at
                        else (select max(e.created_at)
                                from app.feed_entries e
                               where e.actor_id is not distinct from o.actor_id and e.is_home = c.is_home and e.action = c.action
                                 and e.group_id is not distinct from o.group_id) end
    from (select g.actor_id, g.is_home, g.group_id, g.action, count(*) as entries, max(g.created_at) as last_at from gone g group by 1, 2, 3, 4) o
   where (c.actor_key, c.is_home, c.group_key, c.action) = (internal.feed_key(o.actor_id), o.is_home, internal.feed_key(o.group_id), o.action);
  delete from app.feed_counts c
   where c.entries = 0
     and (c.actor_key, c.is_home, c.group_key, c.action) in
         (select internal.feed_key(o.actor_id), o.is_home, internal.feed_key(o.group_id), o.action from gone o);
  perform internal.feed_totals_refresh(array(select distinct o.actor_id from gone o where o.is_home and o.actor_id is not null));
  return null;
end $$;
comment on function internal.tg_feed_entries__count_out is
  'Counts entries out that were deleted, with their actor or group too, or that a merge took from an actor. Locks the counts, then the totals.';

create or replace trigger tg_feed_entries__count_in
  after insert on app.feed_entries
  referencing new table as came
  for each statement execute function internal.tg_feed_entries__count_in();
create or replace trigger tg_feed_entries__count_out
  after delete on app.feed_entries
  referencing old table as gone
  for each statement execute function internal.tg_feed_entries__count_out();
-- a merge of users moves entries to the survivor
create or replace trigger tg_feed_entries__recount_out
  after update on app.feed_entries
  referencing old table as gone
  for each statement execute function internal.tg_feed_entries__count_out();
create or replace trigger tg_feed_entries__recount_in
  after update on app.feed_entries
  referencing new table as came
  for each statement execute function internal.tg_feed_entries__count_in();

create or replace function internal.feed_entry_of(e app.feed_entries, actor app.users) returns json
language sql stable as $$
  -- without a subquery, so that Postgres inlines it
  select json_build_object(
    'id', (feed_entry_of.e).id, 'actor_id', (feed_entry_of.e).actor_id, 'action', (feed_entry_of.e).action,
    'target_id', (feed_entry_of.e).target_id, 'group_id', (feed_entry_of.e).group_id, 'metadata', (feed_entry_of.e).metadata,
    'created_at', internal.iso((feed_entry_of.e).created_at),
    'actor', case when (feed_entry_of.actor).id is not null then json_build_object(
      'id', (feed_entry_of.actor).id, 'display_name', (feed_entry_of.actor).display_name, 'avatar_url', (feed_entry_of.actor).avatar_url) end)
$$;
comment on function internal.feed_entry_of is 'An entry and its actor as responses show them; the actor is null for an entry of the system.';

create or replace function internal.feed_entry_json(e app.feed_entries) returns json
language sql stable as $$
  select internal.feed_entry_of(feed_entry_json.e, u) from (values (1)) one left join app.users u on u.id = (feed_entry_json.e).actor_id
$$;
comment on function internal.feed_entry_json is 'An entry as responses show it; actor is null for an entry of the system.';

create or replace function internal.feed_hidden_actions() returns text[]
language sql stable security definer set search_path = '' as $$
  select coalesce((
    select array(select jsonb_array_elements_text(u.properties -> 'feed_hidden_actions'))
      from app.users u
     where u.id = internal.user_id() and jsonb_typeof(u.properties -> 'feed_hidden_actions') = 'array'), '{}')
$$;
comment on function internal.feed_hidden_actions is
  'The actions that the caller does not want to see in the feeds of others: the property feed_hidden_actions, where it is an array. Supplement D11.';

create or replace function internal.feed_home(since timestamptz, page_offset bigint, page_limit bigint) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  hidden constant text[] := internal.feed_hidden_actions();
  newest constant bigint := feed_home.page_offset + feed_home.page_limit;
  after constant timestamptz := coalesce(feed_home.since, '-infinity');
  feed record;
begin
  -- the first n entries are of the n actors whose newest entries are the newest: each of those has one that is newer than all of any other.
  -- The actors are arrays, which an index is read by in one scan.
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
     where c.actor_key = any (array(select s.actor_key from summed s where s.has_groups)) and c.is_home and c.group_key > internal.feed_nobody()
       and c.action <> all (hidden)
    union all
    select c.actor_key, c.entries, c.last_at, g.id
      from app.feed_counts c
      left join app.groups g on g.id = c.group_key and g.is_public
     where c.actor_key = any (array(select unnest(w.keys) from who w except select s.actor_key from summed s)) and c.is_home
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
                where c.last_at >= coalesce((select l.last_at from counted l order by l.last_at desc limit 1 offset newest - 1), '-infinity')) as candidates,
         array(select distinct x.group_id from apart x where x.group_id is not null) as groups
    into feed;
  if feed_home.since is not null then
    select count(*) into feed.entries
      from app.feed_entries e
     where (e.actor_id = any (feed.actors) or e.actor_id is null and internal.feed_nobody() = any (feed.actors))
       and e.is_home and e.created_at >= after and e.action <> all (hidden) and (e.group_id is null or e.group_id = any (feed.groups));
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
                         and (x.group_id is null or x.group_id = any (feed.groups)) and internal.feed_nobody() = any (feed.candidates)
                       order by x.created_at desc, x.id desc
                       limit newest)) k
              order by k.created_at desc, k.id desc
              limit feed_home.page_limit offset feed_home.page_offset) p
       join app.feed_entries e on e.id = p.id
       left join app.users u on u.id = e.actor_id),
    coalesce(feed.entries, 0), feed_home.page_offset, feed_home.page_limit);
end $$;
comment on function internal.feed_home is
  'A page of the caller''s home feed, newest first: entries of the caller, of accepted friends who are not banned, and of the system; of groups only what was posted
   while the group was public, and is public now. Without the hidden actions of the caller. since: entries from that time on. The total is exact.';

create or replace function internal.feed_own(page_offset bigint, page_limit bigint) returns api.reply
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
                         limit feed_own.page_offset + feed_own.page_limit) own) k
              order by k.created_at desc, k.id desc
              limit feed_own.page_limit offset feed_own.page_offset) p
       join app.feed_entries e on e.id = p.id
       left join app.users u on u.id = e.actor_id),
    (select coalesce(sum(c.entries), 0)::bigint from app.feed_counts c where c.actor_key = internal.user_id()),
    feed_own.page_offset, feed_own.page_limit)
$$;
comment on function internal.feed_own is 'A page of the caller''s own entries, newest first, those in private groups too.';

create or replace function internal.feed_of_group(group_id uuid, page_offset bigint, page_limit bigint) returns api.reply
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
       and u.id in (select c.actor_key from app.feed_counts c where c.group_key = g.id and c.group_key <> internal.feed_nobody())
    union
    select b from internal.blocked_ids() b);
  return internal.reply_page(
    (select json_agg(internal.feed_entry_of(e.entry, u) order by (e.entry).created_at desc, (e.entry).id desc)
       from (select x as entry
               from app.feed_entries x
              where x.group_id = g.id and x.action <> all (hidden) and (x.actor_id is null or x.actor_id <> all (unseen))
              order by x.created_at desc, x.id desc
              limit feed_of_group.page_limit offset feed_of_group.page_offset) e
       left join app.users u on u.id = (e.entry).actor_id),
    (select coalesce(sum(c.entries), 0)::bigint
       from app.feed_counts c
      where c.group_key = g.id and c.group_key <> internal.feed_nobody() and c.action <> all (hidden) and c.actor_key <> all (unseen)),
    feed_of_group.page_offset, feed_of_group.page_limit);
end $$;
comment on function internal.feed_of_group is
  'A page of what was posted to a group, newest first, for its members; without the entries of banned users, of users who block the caller or are blocked, and of hidden
   actions. Refuses 404 NOT_FOUND for a group that the caller does not see, 403 NOT_A_MEMBER.';

create or replace function internal.feed_scope(group_id uuid) returns json
language sql stable security definer set search_path = '' as $$
  select json_build_object(
    'hidden', internal.feed_hidden_actions(),
    'unseen', array(select b
                      from internal.blocked_ids() b
                     where exists (select from app.group_members m where (m.group_id, m.app_user_id) = (feed_scope.group_id, b))
                        or exists (select from app.feed_counts c where (c.actor_key, c.group_key) = (b, feed_scope.group_id))))
$$;
comment on function internal.feed_scope is
  'What a listener to a group is not told of its feed: {hidden, actions that the caller does not want to see; unseen, members and former actors who block the caller or
   are blocked}. At most as many as the group has, whomever the caller blocks.';

create or replace function internal.feed_write(actor_id uuid, action text, target_id text, group_id uuid, metadata jsonb) returns json
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
          feed_write.group_id is null or is_public and feed_write.actor_id is not null, coalesce(feed_write.metadata, '{}'))
  returning made.* into e;
  -- as it is now: a rule of moderation may have hidden its metadata
  return (select internal.feed_entry_json(k) from app.feed_entries k where k.id = e.id);
end $$;
comment on function internal.feed_write is
  'Writes an entry. What the system posts to a group appears there only. Refuses 404 NOT_FOUND for a group that does not exist. Locks the group against deletion.
   Granted to nobody.';

create or replace function internal.feed_post(action text, target_id text, group_id uuid, metadata jsonb) returns json
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
  return internal.feed_write(me, feed_post.action, feed_post.target_id, feed_post.group_id, feed_post.metadata);
end $$;
comment on function internal.feed_post is
  'Posts an entry of the caller, at most 30 an hour. Refuses 400 VALIDATION_ERROR (an action that events make), 404 NOT_FOUND (group), 403 NOT_A_MEMBER,
   GROUP_ROLE_FORBIDDEN (viewers), USER_MUTED, 400 CONTENT_REJECTED where a rule blocks a text in the metadata, 429 RATE_LIMITED. Locks the user.';

create or replace function internal.feed_delete(entry_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.lock_users(array[internal.user_id()]);
  delete from app.feed_entries e where (e.id, e.actor_id) = (feed_delete.entry_id, internal.user_id());
  perform internal.check_found(found, 'entry');
end $$;
comment on function internal.feed_delete is 'Deletes an entry of the caller. Refuses 404 NOT_FOUND, for entries of others too. Locks the user.';

create or replace function api.feed_home(since timestamptz default null, page_limit int default 20, page_offset int default 0) returns api.reply
language sql stable as $$
  select internal.feed_home(feed_home.since, feed_home.page_offset, feed_home.page_limit)
$$;
comment on function api.feed_home is 'The home feed: internal.feed_home states what it shows.';

create or replace function api.feed_own(page_limit int default 20, page_offset int default 0) returns api.reply
language sql stable as $$
  select internal.feed_own(feed_own.page_offset, feed_own.page_limit)
$$;
comment on function api.feed_own is 'The caller''s own entries, newest first.';

create or replace function api.feed_of_group(group_id uuid, page_limit int default 20, page_offset int default 0) returns api.reply
language sql stable as $$
  select internal.feed_of_group(feed_of_group.group_id, feed_of_group.page_offset, feed_of_group.page_limit)
$$;
comment on function api.feed_of_group is 'The feed of a group: internal.feed_of_group states who reads it.';

create or replace function api.feed_post(action text, target_id text default null, group_id uuid default null, metadata jsonb default null) returns api.reply
language sql volatile as $$
  select internal.reply(201, internal.feed_post(feed_post.action, feed_post.target_id, feed_post.group_id, feed_post.metadata))
$$;
comment on function api.feed_post is 'Posts an entry: internal.feed_post states what is refused. Supplement D11.';

create or replace function api.feed_delete(entry_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.feed_delete(feed_delete.entry_id);
  return internal.reply_deleted();
end $$;
comment on function api.feed_delete is 'Deletes an entry of the caller. Refuses 404 NOT_FOUND. Supplement D11.';

select internal.list_declare('feed_entries_page', null::app.feed_entries, 'feed_entry_json', '{created_at,id}', filters => '{actor_id,group_id,action}', is_counted => true,
                             counted_filters => '{action}');

create or replace function api.feed_entries(user_id uuid default null, group_id uuid default null, action text default null, page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.feed_entries_page(feed_entries.user_id, feed_entries.group_id, feed_entries.action, feed_entries.page_offset, feed_entries.page_limit)
$$;
comment on function api.feed_entries is 'Entries of the project, newest first, by actor, group and action. Supplement D11.';

create or replace function internal.feed_post_as(as_user_id uuid, action text, target_id text, group_id uuid, metadata jsonb) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  made json;
begin
  if internal.caller() <> 'developer' then
    raise exception 'entries of others are posted by administrators, not by %', internal.caller();
  elsif feed_post_as.as_user_id is not null and internal.lock_users(array[feed_post_as.as_user_id]) is null then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  made := internal.feed_write(feed_post_as.as_user_id, feed_post_as.action, feed_post_as.target_id, feed_post_as.group_id, feed_post_as.metadata);
  perform internal.audit('feeds.post', 'feed_entries', made ->> 'id', json_build_object(
    'actor_id', json_build_array(null, feed_post_as.as_user_id), 'action', json_build_array(null, feed_post_as.action)), 201);
  return made;
end $$;
comment on function internal.feed_post_as is
  'Posts an entry of a user, or of the system where as_user_id is null. Refuses 404 USER_NOT_FOUND, NOT_FOUND (group). Locks the user.';

create or replace function api.feed_post_as(action text, as_user_id uuid default null, system boolean default null, target_id text default null,
                                            group_id uuid default null, metadata jsonb default null)
returns api.reply
language plpgsql volatile as $$
begin
  if (feed_post_as.as_user_id is null) <> coalesce(feed_post_as.system, false) then
    perform internal.invalid('as_user_id', 'send as_user_id, or system: true');
  end if;
  return internal.reply(201, internal.feed_post_as(feed_post_as.as_user_id, feed_post_as.action, feed_post_as.target_id, feed_post_as.group_id,
                                                   feed_post_as.metadata));
end $$;
comment on function api.feed_post_as is 'Posts an entry of any user or of the system. Refuses 400 VALIDATION_ERROR unless one of the two is sent; internal.feed_post_as states what else. Supplement D11.';

create or replace function internal.feed_remove(entry_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  doomed app.feed_entries;
begin
  if internal.caller() <> 'developer' then
    raise exception 'entries of others are deleted by administrators, not by %', internal.caller();
  end if;
  select e.* into doomed from app.feed_entries e where e.id = feed_remove.entry_id;
  -- the actor first, as everywhere
  perform internal.lock_users(array[doomed.actor_id]);
  delete from app.feed_entries e where e.id = feed_remove.entry_id;
  perform internal.check_found(found, 'entry');
  perform internal.audit('feeds.delete', 'feed_entries', doomed.id::text, json_build_object(
    'actor_id', json_build_array(doomed.actor_id, null), 'action', json_build_array(doomed.action, null)));
end $$;
comment on function internal.feed_remove is 'Deletes an entry of any user or of the system. Refuses 404 NOT_FOUND. Locks the actor.';

create or replace function api.feed_remove(entry_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.feed_remove(feed_remove.entry_id);
  return internal.reply_deleted();
end $$;
comment on function api.feed_remove is 'Deletes an entry of any user or of the system. Refuses 404 NOT_FOUND. Supplement D11.';

create or replace function internal.feed_silent_actions() returns text[]
language sql stable as $$
  select array(select jsonb_array_elements_text(coalesce(internal.setting('feeds.silent_actions'), '[]')))
$$;
comment on function internal.feed_silent_actions is 'The actions of system events that make no entries in this project.';

create or replace function internal.feed_settings_put(events text[]) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  unknown constant text := (select e from unnest(feed_settings_put.events) e where not exists (select from internal.feed_events f where f.action = e) limit 1);
  silent jsonb;
begin
  if internal.caller() <> 'developer' then
    raise exception 'settings are changed by administrators, not by %', internal.caller();
  elsif unknown is not null then
    perform internal.invalid('events', format('has an unknown action: %s', left(unknown, 64)));
  end if;
  -- what is switched off is stored: an event that a later version adds makes entries
  silent := to_jsonb(array(select f.action from internal.feed_events f where f.action <> all (feed_settings_put.events) order by f.action));
  if silent is distinct from coalesce(internal.setting('feeds.silent_actions'), '[]') then
    perform internal.audit('feeds.settings', 'settings', 'feeds', json_build_object('silent_actions', json_build_array(
      coalesce(internal.setting('feeds.silent_actions'), '[]'), silent)));
    perform internal.set_setting('feeds.silent_actions', silent);
    perform internal.event_plans_refresh();
  end if;
  return json_build_object('events', array(select f.action from internal.feed_events f where f.action = any (feed_settings_put.events) order by f.action));
end $$;
comment on function internal.feed_settings_put is
  'Sets which system events make entries, by their actions; answers {events}. Refuses 400 VALIDATION_ERROR for an action that no event makes.';

create or replace function api.feed_settings_put(events json) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.feed_settings_put(array(select json_array_elements_text(feed_settings_put.events))))
$$;
comment on function api.feed_settings_put is 'Sets which system events make entries. Supplement D11.';

create or replace function internal.on_events__70_feeds(events app.engagement_events[]) returns void
language plpgsql volatile as $$
begin
  -- imported history makes no entries
  if not internal.event_hooks_may_run() or internal.is_history() then
    return;
  end if;
  insert into app.feed_entries (actor_id, action, target_id, group_id, is_home, metadata)
  select i.app_user_id, f.action, i.properties ->> f.target_property, g.id, coalesce(g.is_public, true),
         coalesce((select jsonb_object_agg(k, i.properties -> k) from unnest(f.shown) k where i.properties ? k), '{}')
    from unnest(on_events__70_feeds.events) i
    join internal.feed_events f on f.event_name = i.event_name and f.action <> all (internal.feed_silent_actions())
    left join app.groups g on g.id = internal.as_uuid(i.properties ->> f.group_property);
end $$;
comment on function internal.on_events__70_feeds is 'System events that internal.feed_events names make entries of their users.';

create or replace function internal.event_plan__feeds() returns table (event_name text, plan boolean)
language sql stable as $$
  select f.event_name, true from internal.feed_events f where f.action <> all (internal.feed_silent_actions())
$$;
comment on function internal.event_plan__feeds is 'The system events that make entries in this project. Granted to nobody.';

create or replace function internal.tg_feed_events__plans() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- while a new database is loaded there is no dispatcher yet, and the loader refreshes the plans at the end
  if to_regprocedure('internal.event_plans_compute()') is not null then
    perform internal.event_plans_refresh();
  end if;
  return null;
end $$;
comment on function internal.tg_feed_events__plans is 'Updates the plans of events when an area declares its events.';

create or replace trigger tg_feed_events__plans
  after insert or update or delete on internal.feed_events
  for each statement execute function internal.tg_feed_events__plans();
