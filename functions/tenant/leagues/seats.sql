-- Seats: who enters a run is put into a cohort. A transaction holds the lock of a lane to its end, and changes the
-- cohorts of that lane alone: so users who join at once neither wait for each other nor begin more than eight cohorts.

create or replace function internal.league_filling_since(run app.league_runs) returns timestamptz
language sql stable as $$
  select case when internal.now() >= o.third then o.third else '-infinity' end
    from (select (league_filling_since.run).starts_at
                 + ((league_filling_since.run).ends_at - (league_filling_since.run).starts_at) / 3 as third) o
$$;
comment on function internal.league_filling_since is
  'Cohorts that were made before it fill no more: a third of the run after its start, those from before. Granted to
   nobody.';

create or replace function internal.league_cohort_in(run app.league_runs, tier int, lane int) returns app.league_cohorts
language plpgsql volatile security definer set search_path = '' as $$
declare
  cohort app.league_cohorts;
begin
  select c.* into cohort
    from app.league_cohorts c
   where c.run_id = (league_cohort_in.run).id and c.tier = league_cohort_in.tier and not c.is_full
     and c.lane = league_cohort_in.lane and c.created_at >= internal.league_filling_since(league_cohort_in.run)
   order by c.id desc
   limit 1;
  if not found then
    insert into app.league_cohorts (run_id, tier, lane, size)
    values ((league_cohort_in.run).id, league_cohort_in.tier, league_cohort_in.lane,
            (league_cohort_in.run).cohort_size)
    returning * into cohort;
  end if;
  return cohort;
end $$;
comment on function internal.league_cohort_in is
  'The cohort of a lane that has room, or a new one. The lane must be locked. Granted to nobody.';

create or replace function internal.league_cohort_open(run app.league_runs, tier int) returns app.league_cohorts
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.league_runs := league_cohort_open.run;
  item constant text := r.id || ' ' || league_cohort_open.tier || ' ';
  lanes int[];
  lane int;
begin
  -- the newest with room; then lanes without one
  lanes := array(
    select c.lane
      from app.league_cohorts c
     where c.run_id = r.id and c.tier = league_cohort_open.tier and not c.is_full
       and c.created_at >= internal.league_filling_since(r)
     order by c.id desc);
  foreach lane in array lanes || array(select n from generate_series(0, 7) n where n <> all (lanes) order by n) loop
    if internal.try_advisory_lock('league_lane', item || lane) then
      return internal.league_cohort_in(r, league_cohort_open.tier, lane);
    end if;
  end loop;
  lane := floor(random() * 8);
  perform internal.advisory_lock('league_lane', item || lane);
  return internal.league_cohort_in(r, league_cohort_open.tier, lane);
end $$;
comment on function internal.league_cohort_open is
  'A cohort of a tier with room, its lane locked: the newest, else a new one. Waits only while all eight lanes are
   taken. Granted to nobody.';

create or replace function internal.league_seats(run app.league_runs, app_user_ids uuid[], out users uuid[],
                                                 out tiers int[], out cohorts uuid[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.league_runs := league_seats.run;
  joining record;
  cohort app.league_cohorts;
  done int;
  taken int;
begin
  -- by tier, so that transactions that fill several take their lanes in one order
  for joining in
    select t.tier, array_agg(t.id order by t.id) as ids
      from (select u.id, internal.league_fit(internal.league_ladder_of(r.league_id, u.id, r), r.tiers) as tier
              from unnest(league_seats.app_user_ids) as u (id)) t
     group by t.tier
     order by t.tier
  loop
    done := 0;
    while done < cardinality(joining.ids) loop
      cohort := internal.league_cohort_open(r, joining.tier);
      taken := least(cohort.size - cohort.members, cardinality(joining.ids) - done);
      update app.league_cohorts c set members = c.members + taken where c.id = cohort.id;
      users := users || joining.ids[done + 1 : done + taken];
      tiers := tiers || array_fill(joining.tier, array[taken]);
      cohorts := cohorts || array_fill(cohort.id, array[taken]);
      done := done + taken;
    end loop;
  end loop;
  delete from app.league_tiers t where t.league_id = r.league_id and t.app_user_id = any (users);
end $$;
comment on function internal.league_seats is
  'Seats in cohorts for users who enter a run, by the tier of each; the arrays are parallel. What an administrator set
   is used up by it. The users must be locked. Granted to nobody.';

create or replace function internal.tg_league_entries__leave() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.league_cohorts c
    where c.id in (select g.cohort_id from gone g where g.cohort_id is not null) order by c.id for no key update;
  update app.league_cohorts c
     set members = c.members - n.left_it
    from (select g.cohort_id, count(*) as left_it from gone g where g.cohort_id is not null group by 1) n
   where c.id = n.cohort_id;
  return null;
end $$;
comment on function internal.tg_league_entries__leave is 'Counts down in the cohorts of entries that are deleted.';

create or replace trigger tg_league_entries__leave
  after delete on app.league_entries
  referencing old table as gone
  for each statement execute function internal.tg_league_entries__leave();
