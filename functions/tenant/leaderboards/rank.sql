-- Exact ranks in a run of any size. Each change of an entry inserts a row into app.leaderboard_changes, by trigger and
-- in the same transaction; folding deletes these rows and adds them to the counts of buckets, in one transaction too.
-- So in every snapshot
-- entries below a bound = the counts of the buckets below it + the sum of the changes that are not folded yet, and a
-- rank is that sum up to its own bucket, plus a count within it. Writers share no row and never wait for each other.
-- Plans are generic: custom plans for known bounds would cost ten times what they save. Index scans are forced:
-- a plan that was cached while a table was empty would scan it sequentially for the rest of the connection's life.

create or replace function internal.leaderboard_before(run_id uuid, place numeric, reached_at timestamptz,
                                                       app_user_id uuid)
returns setof bigint
language sql stable as $$
  select s.n
  from (select) one
  left join lateral (
    select k.from_place, k.from_at, k.from_id
      from app.leaderboard_bucket_groups k
     where k.run_id = leaderboard_before.run_id
       and (k.from_place, k.from_at, k.from_id) <= (leaderboard_before.place, leaderboard_before.reached_at,
                                                    leaderboard_before.app_user_id)
     order by k.from_place desc, k.from_at desc, k.from_id desc
     limit 1) bucket_group on true
  left join lateral (
    select k.from_place, k.from_at, k.from_id
      from app.leaderboard_buckets k
     where k.run_id = leaderboard_before.run_id
       and (k.from_place, k.from_at, k.from_id) <= (leaderboard_before.place, leaderboard_before.reached_at,
                                                    leaderboard_before.app_user_id)
     order by k.from_place desc, k.from_at desc, k.from_id desc
     limit 1) bucket on true
 cross join lateral (
   select k.entries as n
     from app.leaderboard_bucket_groups k
    where k.run_id = leaderboard_before.run_id
      and (k.from_place, k.from_at, k.from_id) < (bucket_group.from_place, bucket_group.from_at, bucket_group.from_id)
   union all
   select k.entries
     from app.leaderboard_buckets k
    where k.run_id = leaderboard_before.run_id
      and (k.from_place, k.from_at, k.from_id) >= (bucket_group.from_place, bucket_group.from_at, bucket_group.from_id)
      and (k.from_place, k.from_at, k.from_id) < (bucket.from_place, bucket.from_at, bucket.from_id)
   union all
   select c.n::bigint
     from app.leaderboard_changes c
    where c.run_id = leaderboard_before.run_id
      and c.made >= (select f.folded_to from app.leaderboard_folds f where f.run_id = leaderboard_before.run_id)
      and (c.place, c.at, c.whose) < (bucket.from_place, bucket.from_at, bucket.from_id)
      -- nothing precedes the first bucket: no changes are read for a small run or for the best entries of a large one
      and bucket.from_place > '-Infinity'
   union all
   -- before the first fold, all changes
   select 1::bigint
     from app.leaderboard_entries e
    where e.run_id = leaderboard_before.run_id and not e.is_hidden
      and (e.place, e.reached_at, e.app_user_id)
          >= (coalesce(bucket.from_place, '-Infinity'), coalesce(bucket.from_at, '-infinity'),
              coalesce(bucket.from_id, '00000000-0000-0000-0000-000000000000'))
      and (e.place, e.reached_at, e.app_user_id) < (leaderboard_before.place, leaderboard_before.reached_at,
                                                    leaderboard_before.app_user_id)) s
$$;
comment on function internal.leaderboard_before is
  'Counts whose sum is the number of visible entries of a run before a key (place, reached_at, user). Neither security
   definer nor with settings, so that Postgres inlines it into the calling statement: starting another statement costs
   as much as the sum. Granted to nobody.';

create or replace function internal.leaderboard_rank(run_id uuid, place numeric, reached_at timestamptz,
                                                     app_user_id uuid)
returns bigint
language plpgsql stable security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off
  set enable_bitmapscan = off as $$
begin
  return (select 1 + coalesce(sum(b.n), 0)
            from internal.leaderboard_before(leaderboard_rank.run_id, leaderboard_rank.place,
                                             leaderboard_rank.reached_at,
                                             leaderboard_rank.app_user_id) as b (n));
end $$;
comment on function internal.leaderboard_rank is
  'The rank that a key (place, reached_at, user) has in a run: one more than the visible entries before it. Exact in its
   snapshot, however large the run. Granted to nobody.';

create or replace function internal.leaderboard_waiting_from(run_id uuid) returns xid8
language plpgsql stable security definer set search_path = '' as $$
begin
  return coalesce((select f.folded_to from app.leaderboard_folds f where f.run_id = leaderboard_waiting_from.run_id),
                  '0');
end $$;
comment on function internal.leaderboard_waiting_from is
  'The oldest transaction whose changes of a run may not be folded yet. Granted to nobody.';

create or replace function internal.leaderboard_total(run_id uuid) returns bigint
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'force_generic_plan'
  set enable_seqscan = off as $$
begin
  return (select (select coalesce(sum(k.entries), 0) from app.leaderboard_bucket_groups k
                   where k.run_id = leaderboard_total.run_id)
               + (select coalesce(sum(c.n), 0)
                    from app.leaderboard_changes c
                   where c.run_id = leaderboard_total.run_id
                     and c.made >= coalesce((select f.folded_to from app.leaderboard_folds f
                                              where f.run_id = leaderboard_total.run_id), '0')));
end $$;
comment on function internal.leaderboard_total is 'How many visible entries a run has. Granted to nobody.';

create or replace function internal.leaderboard_seek(run_id uuid, ahead bigint, out bound internal.leaderboard_bound,
                                                     out before bigint)
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'force_generic_plan'
  set enable_seqscan = off as $$
declare
  target bigint := leaderboard_seek.ahead;
  bucket_group record;
begin
  bound := ('-Infinity', '-infinity', '00000000-0000-0000-0000-000000000000');
  before := 0;
  if target > 0 then
    -- the counts of buckets may differ by that many, in either direction
    target := target - (select count(*)
                          from app.leaderboard_changes c
                         where c.run_id = leaderboard_seek.run_id
                           and c.made >= coalesce((select f.folded_to from app.leaderboard_folds f
                                                    where f.run_id = leaderboard_seek.run_id), '0'));
  end if;
  if target <= 0 then
    return;
  end if;
  -- the counts of one run fit an int; sum(bigint) would compute in numeric
  select s.* into bucket_group
    from (select k.from_place, k.from_at, k.from_id, k.buckets, sum(k.entries::int) over w - k.entries as before_it
            from app.leaderboard_bucket_groups k
           where k.run_id = leaderboard_seek.run_id
          window w as (order by k.from_place, k.from_at, k.from_id rows unbounded preceding)) s
   where s.before_it <= target
   order by s.from_place desc, s.from_at desc, s.from_id desc
   limit 1;
  if not found then
    return;
  end if;
  select b.from_place, b.from_at, b.from_id into bound
    from (select k.from_place, k.from_at, k.from_id, row_number() over w as n,
          sum(k.entries::int) over w - k.entries as before_it
            from (select l.*
                    from app.leaderboard_buckets l
                   where l.run_id = leaderboard_seek.run_id
                     and (l.from_place, l.from_at, l.from_id)
                         >= (bucket_group.from_place, bucket_group.from_at, bucket_group.from_id)
                   order by l.from_place, l.from_at, l.from_id
                   limit bucket_group.buckets) k
          window w as (order by k.from_place, k.from_at, k.from_id rows unbounded preceding)) b
   where bucket_group.before_it + b.before_it <= target
   order by b.n desc
   limit 1;
  before := internal.leaderboard_rank(leaderboard_seek.run_id, (bound).from_place, (bound).from_at,
                                      (bound).from_id) - 1;
end $$;
comment on function internal.leaderboard_seek is
  'A bound with at most `ahead` entries before it, and their exact number: reading of a page starts there, so that every
   page costs the same. Granted to nobody.';

create or replace function internal.leaderboard_fold(run_id uuid) returns void
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  waiting_from xid8;
  touched internal.leaderboard_bound[];
  bound internal.leaderboard_bound;
begin
  -- a concurrent second fold returns at once
  if not internal.try_advisory_lock('leaderboard_fold', leaderboard_fold.run_id::text) then
    return;
  end if;
  waiting_from := internal.leaderboard_waiting_from(leaderboard_fold.run_id);
  if waiting_from = '0' then
    insert into app.leaderboard_bucket_groups (run_id, from_place, from_at, from_id, entries, buckets)
    values (leaderboard_fold.run_id, '-Infinity', '-infinity', '00000000-0000-0000-0000-000000000000', 0, 1);
    insert into app.leaderboard_buckets (run_id, from_place, from_at, from_id, entries)
    values (leaderboard_fold.run_id, '-Infinity', '-infinity', '00000000-0000-0000-0000-000000000000', 0);
    insert into app.leaderboard_folds (run_id, folded_to) values (leaderboard_fold.run_id, '0');
  end if;
  with moves as (
    delete from app.leaderboard_changes c where c.run_id = leaderboard_fold.run_id and c.made >= waiting_from
      returning c.place, c.at, c.whose, c.n
  ), netted as materialized (
    -- one who moved twenty times since the last fold comes from one place and is at another: two lookups, not forty
    select m.place, m.at, m.whose, sum(m.n)::int as n from moves m group by 1, 2, 3 having sum(m.n) <> 0
  ), placed as (
    select b.from_place, b.from_at, b.from_id, s.from_place as group_place, s.from_at as group_at,
           s.from_id as group_id, sum(m.n) as n
      from netted m
     cross join lateral (
       select k.from_place, k.from_at, k.from_id
         from app.leaderboard_buckets k
        where k.run_id = leaderboard_fold.run_id and (k.from_place, k.from_at, k.from_id) <= (m.place, m.at, m.whose)
        order by k.from_place desc, k.from_at desc, k.from_id desc
        limit 1) b
     cross join lateral (
       select k.from_place, k.from_at, k.from_id
         from app.leaderboard_bucket_groups k
        where k.run_id = leaderboard_fold.run_id and (k.from_place, k.from_at, k.from_id) <= (m.place, m.at, m.whose)
        order by k.from_place desc, k.from_at desc, k.from_id desc
        limit 1) s
     group by 1, 2, 3, 4, 5, 6
  ), noted as (
    -- changes older than every running transaction were seen by this statement, and are deleted
    update app.leaderboard_folds f set folded_to = pg_snapshot_xmin(pg_current_snapshot())
      where f.run_id = leaderboard_fold.run_id
  ), shelved as (
    update app.leaderboard_bucket_groups k
       set entries = k.entries + p.n
      from (select l.group_place, l.group_at, l.group_id, sum(l.n) as n from placed l group by 1, 2, 3) p
     where k.run_id = leaderboard_fold.run_id and (k.from_place, k.from_at, k.from_id) = (p.group_place, p.group_at,
                                        p.group_id) and p.n <> 0
  ), counted as (
    update app.leaderboard_buckets k
       set entries = k.entries + p.n
      from placed p
     where k.run_id = leaderboard_fold.run_id and (k.from_place, k.from_at, k.from_id) = (p.from_place, p.from_at,
                                        p.from_id) and p.n <> 0
    returning k.from_place, k.from_at, k.from_id, k.entries
  )
  select array_agg((c.from_place, c.from_at, c.from_id)::internal.leaderboard_bound order by c.from_place, c.from_at,
                   c.from_id) into touched
    from counted c
   where c.entries > 256 or c.entries < 32;
  foreach bound in array coalesce(touched, '{}') loop
    perform internal.leaderboard_shape(leaderboard_fold.run_id, bound);
  end loop;
end $$;
comment on function internal.leaderboard_fold is
  'Adds the changes of a run that are committed, or this transaction''s own, to the counts of its buckets, and keeps
   each at about 32 to 256 entries. One fold at a time for each run; a concurrent one returns at once. Granted to
   nobody.';

create or replace function internal.leaderboard_fold_chance() returns double precision
language sql immutable parallel safe
return 0.0125;
comment on function internal.leaderboard_fold_chance is
  'The probability that a move of an entry requests a fold: a fold costs as much as some twenty moves, and each rank
   sums the changes that are not folded.';

create or replace function internal.leaderboard_fold_later(run_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  queued_at constant timestamptz := (
    select o.created_at from app.outbox o where o.task = 'leaderboards__fold'
       and o.key = leaderboard_fold_later.run_id::text and o.failed_at is null);
begin
  -- without a worker, or with one that is far behind, a few writers fold, so that the number of unfolded changes stays
  -- bounded
  if queued_at < internal.now() - interval '10 seconds' then
    if random() < 0.1 then
      perform internal.leaderboard_fold(leaderboard_fold_later.run_id);
    end if;
  -- concurrent callers leave it to the first, so that none waits for the lock of the outbox row
  elsif queued_at is null and internal.try_advisory_lock('leaderboard_fold_later',
                                                         leaderboard_fold_later.run_id::text) then
    perform internal.enqueue('leaderboards__fold', leaderboard_fold_later.run_id::text);
  end if;
end $$;
comment on function internal.leaderboard_fold_later is
  'Queues the fold of a run; when it has been queued for ten seconds, one in ten callers folds the run itself. Granted
   to nobody.';

create or replace function internal.leaderboard_fold_by_chance(run_id uuid, moves bigint) returns void
language plpgsql volatile as $$
begin
  -- by chance, because a counter would be a row that all writers lock
  if random() < leaderboard_fold_by_chance.moves * internal.leaderboard_fold_chance() then
    perform internal.leaderboard_fold_later(leaderboard_fold_by_chance.run_id);
  end if;
end $$;
comment on function internal.leaderboard_fold_by_chance is
  'Requests the fold of a run with a probability that depends on the number of moves. Granted to nobody.';

create or replace function api.leaderboard_fold(run_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.leaderboard_fold(leaderboard_fold.run_id);
  return internal.reply(200, 'true');
end $$;
comment on function api.leaderboard_fold is
  'For the task: folds the changes of a run, where it still exists, into its counts.';

create or replace function internal.leaderboard_shape(run_id uuid, bound internal.leaderboard_bound) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  here app.leaderboard_buckets;
  other app.leaderboard_buckets;
  bucket_group app.leaderboard_bucket_groups;
  made int;
begin
  select k.* into here
    from app.leaderboard_buckets k
   where k.run_id = leaderboard_shape.run_id
     and (k.from_place, k.from_at, k.from_id)
       = ((leaderboard_shape.bound).from_place, (leaderboard_shape.bound).from_at, (leaderboard_shape.bound).from_id);
  select k.* into bucket_group
    from app.leaderboard_bucket_groups k
   where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) <= (here.from_place, here.from_at,
                                        here.from_id)
   order by k.from_place desc, k.from_at desc, k.from_id desc
   limit 1;
  if here.entries > 256 then
    select k.* into other
      from app.leaderboard_buckets k
     where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) > (here.from_place, here.from_at,
                                        here.from_id)
     order by k.from_place, k.from_at, k.from_id
     limit 1;
    -- entries and unfolded changes are read in one statement, hence in one snapshot; their difference is what has been
    -- folded
    with numbered as (
      select e.place, e.reached_at, e.app_user_id,
             row_number() over (order by e.place, e.reached_at, e.app_user_id) as n
        from app.leaderboard_entries e
       where e.run_id = here.run_id and not e.is_hidden
         and (e.place, e.reached_at, e.app_user_id) >= (here.from_place, here.from_at, here.from_id)
         and (other.run_id is null or (e.place, e.reached_at, e.app_user_id) < (other.from_place, other.from_at,
                                        other.from_id))
    ), moves as materialized (
      select c.place, c.at, c.whose, c.n from app.leaderboard_changes c
       where c.run_id = here.run_id and c.made >= internal.leaderboard_waiting_from(here.run_id)
    ), cuts as (
      select here.from_place as place, here.from_at as reached_at, here.from_id as id, 0::bigint as before
      union all
      select c.place, c.reached_at, c.app_user_id,
             c.n - 1 - coalesce((select sum(m.n) from moves m
                                  where (m.place, m.at, m.whose) >= (here.from_place, here.from_at, here.from_id)
                                    and (m.place, m.at, m.whose) < (c.place, c.reached_at, c.app_user_id)), 0)
        from numbered c
       where c.n > 1 and (c.n - 1) % 128 = 0
    )
    insert into app.leaderboard_buckets as k (run_id, from_place, from_at, from_id, entries)
    select here.run_id, c.place, c.reached_at, c.id,
           lead(c.before, 1, here.entries) over (order by c.place, c.reached_at, c.id) - c.before
      from cuts c
    on conflict on constraint leaderboard_buckets_pkey do update set entries = excluded.entries;
    get diagnostics made = row_count;
    update app.leaderboard_bucket_groups k
       set buckets = k.buckets + made - 1
     where k.run_id = here.run_id
       and (k.from_place, k.from_at, k.from_id)
           = (bucket_group.from_place, bucket_group.from_at, bucket_group.from_id)
    returning k.* into bucket_group;
    while bucket_group.buckets > 256 loop
      bucket_group := internal.leaderboard_bucket_group_split(bucket_group);
    end loop;
  elsif here.entries < 32
    and (here.from_place, here.from_at, here.from_id)
        > (bucket_group.from_place, bucket_group.from_at, bucket_group.from_id) then
    select k.* into other
      from app.leaderboard_buckets k
     where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) < (here.from_place, here.from_at,
                                        here.from_id)
     order by k.from_place desc, k.from_at desc, k.from_id desc
     limit 1;
    if other.entries + here.entries <= 192 then
      delete from app.leaderboard_buckets k
       where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) = (here.from_place, here.from_at,
                                        here.from_id);
      update app.leaderboard_buckets k
         set entries = k.entries + here.entries
       where k.run_id = other.run_id and (k.from_place, k.from_at, k.from_id) = (other.from_place, other.from_at,
                                        other.from_id);
      update app.leaderboard_bucket_groups k
         set buckets = k.buckets - 1
       where k.run_id = here.run_id
         and (k.from_place, k.from_at, k.from_id)
             = (bucket_group.from_place, bucket_group.from_at, bucket_group.from_id)
      returning k.* into bucket_group;
    end if;
  end if;
  if bucket_group.buckets < 64 then
    perform internal.leaderboard_bucket_group_join(bucket_group);
  end if;
end $$;
comment on function internal.leaderboard_shape is
  'Splits a bucket that has grown into pieces of 128 entries, or joins one that has shrunk to the one before; groups of
   buckets likewise. The caller holds the run''s fold. Granted to nobody.';

create or replace function internal.leaderboard_bucket_group_split(bucket_group app.leaderboard_bucket_groups)
returns app.leaderboard_bucket_groups
language plpgsql volatile security definer set search_path = '' as $$
declare
  here app.leaderboard_bucket_groups := leaderboard_bucket_group_split.bucket_group;
  rest app.leaderboard_bucket_groups;
begin
  with first_ones as (
    select k.entries, k.from_place, k.from_at, k.from_id,
           row_number() over (order by k.from_place, k.from_at, k.from_id) as n
      from (select b.* from app.leaderboard_buckets b
             where b.run_id = here.run_id and (b.from_place, b.from_at, b.from_id) >= (here.from_place, here.from_at,
                                        here.from_id)
             order by b.from_place, b.from_at, b.from_id
             limit 129) k
  )
  insert into app.leaderboard_bucket_groups (run_id, from_place, from_at, from_id, entries, buckets)
  select here.run_id, f.from_place, f.from_at, f.from_id,
         here.entries - (select sum(o.entries) from first_ones o where o.n <= 128), here.buckets - 128
    from first_ones f
   where f.n = 129
  returning * into rest;
  update app.leaderboard_bucket_groups k
     set entries = here.entries - rest.entries, buckets = 128
   where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) = (here.from_place, here.from_at,
                                        here.from_id);
  return rest;
end $$;
comment on function internal.leaderboard_bucket_group_split is
  'Cuts a bucket_group behind its first 128 buckets and answers the rest. The caller holds the run''s fold. Granted to
   nobody.';

create or replace function internal.leaderboard_bucket_group_join(bucket_group app.leaderboard_bucket_groups)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  here constant app.leaderboard_bucket_groups := leaderboard_bucket_group_join.bucket_group;
  other app.leaderboard_bucket_groups;
begin
  select k.* into other
    from app.leaderboard_bucket_groups k
   where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) < (here.from_place, here.from_at, here.from_id)
   order by k.from_place desc, k.from_at desc, k.from_id desc
   limit 1;
  if other.run_id is null or other.buckets + here.buckets > 192 then
    return;
  end if;
  delete from app.leaderboard_bucket_groups k
   where k.run_id = here.run_id and (k.from_place, k.from_at, k.from_id) = (here.from_place, here.from_at,
                                        here.from_id);
  update app.leaderboard_bucket_groups k
     set entries = k.entries + here.entries, buckets = k.buckets + here.buckets
   where k.run_id = other.run_id and (k.from_place, k.from_at, k.from_id) = (other.from_place, other.from_at,
                                        other.from_id);
end $$;
comment on function internal.leaderboard_bucket_group_join is
  'Adds a bucket_group that has shrunk to the one before, where both fit. The caller holds the run''s fold. Granted to
   nobody.';

create or replace function internal.tg_leaderboard_entries__tally() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  runs uuid[];
  run uuid;
  noted int;
begin
  if tg_op = 'INSERT' then
    insert into app.leaderboard_changes (run_id, place, at, whose, n)
    select i.run_id, i.place, i.reached_at, i.app_user_id, 1 from is_now i where not i.is_hidden;
  else
    -- the deletion of a run deletes its counts
    insert into app.leaderboard_changes (run_id, place, at, whose, n)
    select w.run_id, w.place, w.reached_at, w.app_user_id, -1
      from was w
     where not w.is_hidden and exists (select from app.leaderboard_runs r where r.id = w.run_id);
  end if;
  get diagnostics noted = row_count;
  -- see internal.leaderboard_fold_by_chance
  if random() < noted * internal.leaderboard_fold_chance() then
    if tg_op = 'DELETE' then
      runs := array(select distinct w.run_id from was w join app.leaderboard_runs r on r.id = w.run_id);
    else
      runs := array(select distinct i.run_id from is_now i);
    end if;
    foreach run in array runs loop
      perform internal.leaderboard_fold_later(run);
    end loop;
  end if;
  return null;
end $$;
comment on function internal.tg_leaderboard_entries__tally is
  'Records each inserted or deleted entry in app.leaderboard_changes, whichever role wrote it, so that ranks are exact
   after deletions of users and merges too.';

create or replace function internal.tg_leaderboard_entries__moved() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.leaderboard_changes (run_id, place, at, whose, n)
  select m.run_id, m.place, m.reached_at, m.app_user_id, m.n
    from (values (old.run_id, old.place, old.reached_at, old.app_user_id, -1, old.is_hidden),
                 (new.run_id, new.place, new.reached_at, new.app_user_id, 1, new.is_hidden)) as m (run_id, place,
                                        reached_at, app_user_id, n, is_hidden)
   where not m.is_hidden
     -- checked here instead of in the trigger's WHEN condition, which is parsed again for each statement
     and (old.place, old.reached_at, old.is_hidden, old.run_id, old.app_user_id)
         is distinct from (new.place, new.reached_at, new.is_hidden, new.run_id, new.app_user_id);
  return null;
end $$;
comment on function internal.tg_leaderboard_entries__moved is
  'Records each move of an entry in app.leaderboard_changes. It does not fold, because entries and changes are
   inconsistent between the rows of one statement: functions that move many entries fold afterwards.';

create or replace trigger tg_leaderboard_entries__tally_in
  after insert on app.leaderboard_entries
  referencing new table as is_now
  for each statement execute function internal.tg_leaderboard_entries__tally();
create or replace trigger tg_leaderboard_entries__tally_out
  after delete on app.leaderboard_entries
  referencing old table as was
  for each statement execute function internal.tg_leaderboard_entries__tally();
-- a row trigger, because most updates change one row, and transition tables would double their cost; statements that
-- note their changes themselves say so, and nothing is queued for their rows
create or replace trigger tg_leaderboard_entries__moved
  after update of run_id, app_user_id, place, reached_at, is_hidden on app.leaderboard_entries
  for each row when (current_setting('app.leaderboard_changes', true) is distinct from 'inserted')
  execute function internal.tg_leaderboard_entries__moved();

create or replace function internal.tg_leaderboard_runs__sweep() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.leaderboard_changes c where c.run_id = old.id;
  delete from app.leaderboard_folds f where f.run_id = old.id;
  delete from app.leaderboard_buckets k where k.run_id = old.id;
  delete from app.leaderboard_bucket_groups k where k.run_id = old.id;
  return null;
end $$;
comment on function internal.tg_leaderboard_runs__sweep is 'Deletes the counts of a deleted run.';

create or replace trigger tg_leaderboard_runs__sweep
  after delete on app.leaderboard_runs
  for each row execute function internal.tg_leaderboard_runs__sweep();

create or replace function internal.purge__leaderboards(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  -- left by writers that were running when their run was deleted
  select internal.purge_rows('app.leaderboard_changes',
                             'not exists (select from app.leaderboard_runs r where r.id = t.run_id)',
                               purge__leaderboards.most)
$$;
comment on function internal.purge__leaderboards is 'Daily: deletes changes of runs that no longer exist.';
