-- Seats: who enters a run is put into a cohort. Who takes seats locks the row of the newest cohort that nobody else is
-- filling; who begins a cohort holds the lock of one of eight lanes until the transaction ends. So users who join at
-- once neither wait for each other, unless eight cohorts are being filled, nor begin more than eight. Who leaves a seat
-- never waits: so nobody who waits for a seat can be waited for.

create or replace function internal.league_filling_since(run app.league_runs) returns timestamptz
language sql stable as $$
  select case when internal.now() >= o.third then o.third else '-infinity' end
    from (select (league_filling_since.run).starts_at
                 + ((league_filling_since.run).ends_at - (league_filling_since.run).starts_at) / 3 as third) o
$$;
comment on function internal.league_filling_since is
  'Cohorts that were made before it fill no more: a third of the run after its start, those from before. Granted to
   nobody.';

create or replace function internal.league_seats_free(run app.league_runs, tier int, wanted int, out cohort_id uuid,
                                                      out taken int)
language sql volatile security definer set search_path = '' as $$
  update app.league_cohorts c
     set members = c.members + f.taken
    from (select x.id, least(x.size - x.members, league_seats_free.wanted) as taken
            from app.league_cohorts x
           where x.run_id = (league_seats_free.run).id and x.tier = league_seats_free.tier and not x.is_full
             and x.created_at >= internal.league_filling_since(league_seats_free.run)
           order by x.id desc
           limit 1
             for no key update skip locked) f
   where c.id = f.id
  returning c.id, f.taken
$$;
comment on function internal.league_seats_free is
  'Takes up to so many seats in the newest cohort of a tier that has room and that no other transaction is filling. Null
   where there is none. Never waits. Granted to nobody.';

create or replace function internal.league_cohort_begin(run app.league_runs, tier int, wanted int, out cohort_id uuid,
                                                        out taken int)
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.league_runs := league_cohort_begin.run;
  item constant text := r.id || ' ' || league_cohort_begin.tier || ' ';
  since constant timestamptz := internal.league_filling_since(r);
  filling int[];
begin
  filling := array(
    select distinct c.lane
      from app.league_cohorts c
     where c.run_id = r.id and c.tier = league_cohort_begin.tier and not c.is_full and c.created_at >= since);
  for place in 0 .. 7 loop
    if place <> all (filling) and internal.try_advisory_lock('league_lane', item || place) then
      -- a statement of its own: it sees what was begun in the lane meanwhile, which has room
      if not exists (select from app.league_cohorts c
                      where c.run_id = r.id and c.tier = league_cohort_begin.tier and not c.is_full
                        and c.created_at >= since and c.lane = place) then
        insert into app.league_cohorts as c (run_id, tier, lane, size, members)
        values (r.id, league_cohort_begin.tier, place, r.cohort_size, least(r.cohort_size, league_cohort_begin.wanted))
        returning c.id, c.members into cohort_id, taken;
      end if;
      return;
    end if;
  end loop;
  -- eight are being filled or begun: whichever is committed next has room, or leaves it to a new one
  perform from app.league_cohorts c
    where c.id = (select x.id
                    from app.league_cohorts x
                   where x.run_id = r.id and x.tier = league_cohort_begin.tier and not x.is_full
                     and x.created_at >= since
                   order by random()
                   limit 1)
      for no key update;
  if not found then
    perform internal.advisory_lock('league_lane', item || floor(random() * 8)::int);
  end if;
end $$;
comment on function internal.league_cohort_begin is
  'Begins a cohort of a tier in a lane in which none has room, and takes up to so many of its seats. Null, for another
   try, where one was begun meanwhile, and after waiting where all eight lanes are taken. Granted to nobody.';

create or replace function internal.league_seats(run app.league_runs, app_user_ids uuid[], out users uuid[],
                                                 out tiers int[], out cohorts uuid[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.league_runs := league_seats.run;
  joining record;
  seats record;
  done int;
begin
  -- by tier, so that transactions that fill several take them in one order
  for joining in
    select t.tier, array_agg(t.app_user_id order by t.app_user_id) as ids
      from internal.league_begin_at(r, league_seats.app_user_ids) t
     group by t.tier
     order by t.tier
  loop
    done := 0;
    while done < cardinality(joining.ids) loop
      select f.* into seats from internal.league_seats_free(r, joining.tier, cardinality(joining.ids) - done) f;
      if seats.cohort_id is null then
        select b.* into seats from internal.league_cohort_begin(r, joining.tier, cardinality(joining.ids) - done) b;
      end if;
      if seats.cohort_id is not null then
        users := users || joining.ids[done + 1 : done + seats.taken];
        tiers := tiers || array_fill(joining.tier, array[seats.taken]);
        cohorts := cohorts || array_fill(seats.cohort_id, array[seats.taken]);
        done := done + seats.taken;
      end if;
    end loop;
  end loop;
  delete from app.league_tiers t where t.league_id = r.league_id and t.app_user_id = any (users);
end $$;
comment on function internal.league_seats is
  'Seats in cohorts for users who enter a run, by the tier of each; the arrays are parallel. What an administrator set
   is used up by it. The users must be locked. Granted to nobody.';

create or replace function internal.league_seats_leave(cohort_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  left_over uuid[];
begin
  with due as (
    select x.id, count(*) as seats from unnest(league_seats_leave.cohort_ids) as x (id) group by x.id
  ), free as materialized (
    select c.id from app.league_cohorts c join due d on d.id = c.id for no key update of c skip locked
  ), counted as (
    update app.league_cohorts c
       set members = c.members - d.seats
      from due d
      join free f on f.id = d.id
     where c.id = d.id
  )
  select array_agg(d.id) into left_over from due d where d.id not in (select f.id from free f);
  for i in 1 .. coalesce(cardinality(left_over), 0) loop
    perform internal.enqueue('leagues__recount', left_over[i]::text);
  end loop;
end $$;
comment on function internal.league_seats_leave is
  'Counts down in the cohorts of those who leave, once for each. A cohort that somebody is filling is counted anew by a
   job: nobody waits here. Granted to nobody.';

create or replace function api.league_recount(cohort_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'cohorts are counted by a worker');
  perform from app.league_cohorts c where c.id = league_recount.cohort_id for no key update;
  -- in a statement of its own, which sees who has joined before the lock
  update app.league_cohorts c
     set members = (select count(*) from app.league_entries e
                     where e.run_id = c.run_id and e.cohort_id = c.id)
   where c.id = league_recount.cohort_id;
  return internal.reply(200, 'true');
end $$;
comment on function api.league_recount is 'For the worker: counts the members of a cohort. Locks its row.';

create or replace function internal.tg_league_entries__leave() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.league_seats_leave(array(
    select g.cohort_id
      from gone g
     -- with a league its cohorts go too
     where g.cohort_id is not null and exists (select from app.leagues l where l.id = g.league_id)));
  return null;
end $$;
comment on function internal.tg_league_entries__leave is 'Counts down in the cohorts of entries that are deleted.';

create or replace trigger tg_league_entries__leave
  after delete on app.league_entries
  referencing old table as gone
  for each statement execute function internal.tg_league_entries__leave();
