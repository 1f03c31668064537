-- What becomes of a user's leagues: bans, and two users who become one.

create or replace function internal.tg_users__leagues() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.league_entries e set is_hidden = new.is_banned
    where e.app_user_id = new.id and e.is_hidden <> new.is_banned;
  return null;
end $$;
comment on function internal.tg_users__leagues is
  'Hides entries of banned users, so that ranks close up, and shows them again at their former place after the ban.';

create or replace trigger tg_users__leagues
  after update of is_banned on app.users
  for each row when (old.is_banned is distinct from new.is_banned)
  execute function internal.tg_users__leagues();

create or replace function internal.merge__leagues(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  theirs record;
  mine app.league_entries;
  moved int := 0;
  joining boolean;
begin
  -- what an administrator set for the other counts where nothing else is known of the survivor
  insert into app.league_tiers (league_id, app_user_id, ladder)
  select t.league_id, merge__leagues.survivor, t.ladder
    from app.league_tiers t
   where t.app_user_id = merge__leagues.other
     and not exists (select from app.league_entries e
                      where e.league_id = t.league_id and e.app_user_id = merge__leagues.survivor
                        and e.cohort_id is not null)
  on conflict do nothing;
  for theirs in
    select e as entry, r as run
      from app.league_entries e
      join app.league_runs r on r.id = e.run_id
     where e.app_user_id = merge__leagues.other
     order by r.league_id, r.id
  loop
    select e.* into mine
      from app.league_entries e
     where (e.app_user_id, e.run_id) = (merge__leagues.survivor, (theirs.run).id);
    joining := false;
    if mine.run_id is null then
      null;
    elsif mine.cohort_id is null and (theirs.entry).cohort_id is not null then
      delete from app.league_entries e where (e.app_user_id, e.run_id) = (mine.app_user_id, mine.run_id);
    else
      delete from app.league_entries e where (e.app_user_id, e.run_id) = (merge__leagues.other, mine.run_id);
    end if;
    if mine.run_id is null or mine.cohort_id is null and (theirs.entry).cohort_id is not null then
      update app.league_entries e
         set app_user_id = merge__leagues.survivor,
             is_hidden = (select u.is_banned from app.users u where u.id = merge__leagues.survivor)
       where (e.app_user_id, e.run_id) = (merge__leagues.other, (theirs.run).id);
    end if;
    if mine.run_id is not null and internal.league_is_open(theirs.run) then
      update app.league_entries e
         set points = mine.points + (theirs.entry).points,
             reached_at = greatest(mine.reached_at, (theirs.entry).reached_at)
       where (e.app_user_id, e.run_id) = (merge__leagues.survivor, (theirs.run).id)
      returning e.cohort_id is null and e.points >= (theirs.run).min_points_to_join into joining;
    end if;
    if joining then
      update app.league_entries e
         set cohort_id = s.cohorts[1], tier = s.tiers[1]
        from internal.league_seats(theirs.run, array[merge__leagues.survivor]) s
       where (e.app_user_id, e.run_id) = (merge__leagues.survivor, (theirs.run).id);
    end if;
    moved := moved + 1;
  end loop;
  return moved;
end $$;
comment on function internal.merge__leagues is
  'Unites two users'' runs: where both have entered, the survivor''s place stays and gets the other''s points while the
   run is open; else the place of the one who has moves. Granted to nobody.';
