-- Counts of entries, for totals and for pages that read few actors: the entries of an actor are counted by action and
-- group, and these counts are summed up in one row of each actor. Triggers maintain both in the transaction that writes
-- entries.
create or replace function internal.feed_nobody() returns uuid
language sql immutable parallel safe
return uuid '00000000-0000-0000-0000-000000000000';
comment on function internal.feed_nobody is
  'The key of app.feed_counts for entries of the system, and for entries of no group.';

create or replace function internal.feed_key(id uuid) returns uuid
language sql immutable parallel safe
return coalesce(feed_key.id, internal.feed_nobody());
comment on function internal.feed_key is 'The key of an actor or a group in app.feed_counts.';

create or replace function internal.feed_totals_refresh(actors uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- locks each row, also one that was there: who sums up in a later statement sees the counts of all that held the lock
  -- before
  insert into app.feed_totals (actor_key, entries, has_groups)
  select k, 0, false from unnest(feed_totals_refresh.actors) k order by k
  on conflict (actor_key) do update set entries = excluded.entries where false;
  update app.feed_totals t
     set (entries, last_at, has_groups) = (
           select coalesce(sum(c.entries), 0)::bigint, max(c.last_at),
                  exists (select from app.feed_counts g
                           where g.actor_key = t.actor_key and g.is_home and g.group_key > internal.feed_nobody())
             from app.feed_counts c
            where c.actor_key = t.actor_key and c.is_home and c.group_key = internal.feed_nobody())
   where t.actor_key = any (feed_totals_refresh.actors);
  delete from app.feed_totals t where t.actor_key = any (feed_totals_refresh.actors) and t.entries = 0
    and not t.has_groups;
end $$;
comment on function internal.feed_totals_refresh is
  'Sums up the counts of actors whose entries a writer has taken away in this transaction. Locks their totals, in the
   order of the actors. Granted to nobody.';

create or replace function internal.feed_totals_begin() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- nobody is half way
  lock table app.feed_entries in share row exclusive mode;
  delete from app.feed_totals t where not exists (select from app.feed_counts c
                                                   where c.actor_key = t.actor_key and c.is_home);
  insert into app.feed_totals as t (actor_key, entries, last_at, has_groups)
  select c.actor_key, coalesce(sum(c.entries) filter (where c.group_key = internal.feed_nobody()), 0)::bigint,
         max(c.last_at) filter (where c.group_key = internal.feed_nobody()),
         bool_or(c.group_key <> internal.feed_nobody())
    from app.feed_counts c
   where c.is_home and c.actor_key <> internal.feed_nobody()
   group by c.actor_key
  on conflict (actor_key) do update
     set entries = excluded.entries, last_at = excluded.last_at, has_groups = excluded.has_groups
   where (t.entries, t.last_at, t.has_groups) is distinct
     from (excluded.entries, excluded.last_at, excluded.has_groups);
end $$;
comment on function internal.feed_totals_begin is
  'Sums up the counts of all actors: for the seed, as entries may be older than the totals, and for who has loaded
   counts with triggers switched off. Locks entries against writers. Granted to nobody.';

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
  select n.actor_id, count(*) filter (where n.group_id is null), max(n.created_at) filter (where n.group_id is null),
         bool_or(n.group_id is not null)
    from came n
   where n.is_home and n.actor_id is not null
   group by 1
   order by 1
  on conflict (actor_key) do update
     set entries = t.entries + excluded.entries, last_at = greatest(t.last_at, excluded.last_at),
       has_groups = t.has_groups or excluded.has_groups;
  return null;
end $$;
comment on function internal.tg_feed_entries__count_in is
  'Counts new entries, and those that a merge of users gave another actor. Locks the counts, then the totals.';

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
                               where e.actor_id is not distinct
                                 from o.actor_id and e.is_home = c.is_home and e.action = c.action
                                 and e.group_id is not distinct from o.group_id) end
    from (select g.actor_id, g.is_home, g.group_id, g.action, count(*) as entries, max(g.created_at) as last_at
            from gone g group by 1, 2, 3, 4) o
   where (c.actor_key, c.is_home, c.group_key, c.action) = (internal.feed_key(o.actor_id), o.is_home,
                                                            internal.feed_key(o.group_id), o.action);
  delete from app.feed_counts c
   where c.entries = 0
     and (c.actor_key, c.is_home, c.group_key, c.action) in
         (select internal.feed_key(o.actor_id), o.is_home, internal.feed_key(o.group_id), o.action from gone o);
  perform internal.feed_totals_refresh(array(select distinct o.actor_id from gone o
                                              where o.is_home and o.actor_id is not null));
  return null;
end $$;
comment on function internal.tg_feed_entries__count_out is
  'Counts entries out that were deleted, with their actor or group too, or that a merge took from an actor. Locks the
   counts, then the totals.';

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
