-- Commands of a user, or of an administrator for a user: qualify, pause, restore, give freezes. The api functions
-- find the streak and build the response; definer functions check the caller and write. The response is a statement
-- of its own: within the statement that writes, stable functions would read the state before it.

create or replace function internal.streak_may_act(app_user_id uuid) returns void
language plpgsql volatile as $$
begin
  if internal.caller() = 'developer' then
    perform internal.check_found(exists (select from app.users u where u.id = streak_may_act.app_user_id), 'user');
  elsif internal.caller() not in ('user', 'server_key_user') or streak_may_act.app_user_id is distinct
    from internal.user_id() then
    raise exception 'a streak is moved by its user or an administrator, not by %', internal.caller();
  end if;
end $$;
comment on function internal.streak_may_act is
  'Permits users to act on their own streaks, and administrators on any user''s. Refuses 404 NOT_FOUND for a user that
   does not exist.';

create or replace function internal.streak_may_administer(app_user_id uuid) returns void
language plpgsql volatile as $$
begin
  perform internal.check_caller('developer', 'this is done to a streak by administrators');
  perform internal.streak_may_act(streak_may_administer.app_user_id);
end $$;
comment on function internal.streak_may_administer is
  'Permits only administrators to act on any user''s streak. Refuses 404 NOT_FOUND for a user that does not exist.';

create or replace function internal.streak_audit(verb text, app_user_id uuid, definition app.streak_definitions,
                                                 changes json, status int default 200)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() = 'developer' then
    perform internal.audit('streaks.' || streak_audit.verb, 'users', streak_audit.app_user_id::text,
                           internal.json_merge(
      json_build_object('streak', json_build_array((streak_audit.definition).key, (streak_audit.definition).key)),
        streak_audit.changes),
      streak_audit.status);
  end if;
end $$;
comment on function internal.streak_audit is
  'Records an administrator''s change of a user''s streak in the audit trail: administrators do not write these tables
   directly. Granted to nobody.';

create or replace function internal.streak_definition(id uuid) returns app.streak_definitions
language plpgsql stable security definer set search_path = '' as $$
declare
  found_one app.streak_definitions;
begin
  select d.* into found_one from app.streak_definitions d where d.id = streak_definition.id;
  return found_one;
end $$;
comment on function internal.streak_definition is
  'A stored definition: functions that change streaks take its id and never accept rules from their caller. Granted to
   nobody.';

create or replace function internal.streak_started(app_user_id uuid, definition_id uuid) returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  streak app.user_streaks;
begin
  perform internal.streak_may_act(streak_started.app_user_id);
  perform internal.lock_users(array[streak_started.app_user_id]);
  select s.* into streak
    from app.user_streaks s
   where (s.app_user_id, s.streak_definition_id) = (streak_started.app_user_id, streak_started.definition_id)
     and s.first_qualified_at is not null
     for no key update;
  if not found then
    perform internal.streak_not_found('This user has not started the streak yet.');
  end if;
  return internal.streak_brought_up_to_date(streak);
end $$;
comment on function internal.streak_started is
  'A user''s row of a streak, locked. Refuses 404 STREAK_NOT_FOUND before its first qualification.';

create or replace function internal.streak_joined(app_user_id uuid, definition app.streak_definitions)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  streak constant app.user_streaks := internal.streak_join(streak_joined.app_user_id, streak_joined.definition);
begin
  if streak.app_user_id is null then
    perform internal.streak_not_found('The streak, or its user, was deleted just now.');
  end if;
  return streak;
end $$;
comment on function internal.streak_joined is
  'Calls internal.streak_join. Refuses 404 STREAK_NOT_FOUND when the streak or the user was deleted concurrently.
   Granted to nobody.';

create or replace function internal.streak_qualify_now(definition_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := internal.streak_definition(streak_qualify_now.definition_id);
  me constant uuid := internal.user_id();
  before app.user_streaks;
  after app.user_streaks;
  state internal.streak_state;
begin
  perform internal.streak_may_act(me);
  if not d.allow_client_qualify and internal.caller() = 'user' then
    perform internal.fail(403, 'QUALIFY_NOT_ALLOWED', 'This streak is qualified by events only.');
  end if;
  before := internal.streak_joined(me, d);
  state := internal.streak_now(d, before);
  -- there is nothing to count when the current period is qualified and the gap before it cannot be filled any more
  if not state.is_qualified
     or coalesce(internal.period_number(d.period, d.week_starts_on, before.lapsed_through) >= state.passed, false) then
    perform internal.streaks_count(array[(me, d.id, internal.now(), false)::internal.streak_act]);
  end if;
  select s.* into after from app.user_streaks s where (s.app_user_id, s.streak_definition_id) = (me, d.id);
  return internal.reply(case when before.first_qualified_at is null and after.first_qualified_at is not null then 201
                             else 200 end,
                        internal.streak_json(d, after));
end $$;
comment on function internal.streak_qualify_now is
  'Counts one act for the caller''s streak now: 201 for its first qualification ever, otherwise 200, also when nothing
   changed.';

create or replace function api.streak_qualify(id_or_key text) returns api.reply
language sql volatile as $$
  select internal.streak_qualify_now((internal.streak_find(streak_qualify.id_or_key, true)).id)
$$;
comment on function api.streak_qualify is
  'Counts one act for one of the caller''s streaks, as an event would: the streak, with 201 when it qualified for the
   first time ever, else 200. Refuses 404 STREAK_NOT_FOUND, 403 QUALIFY_NOT_ALLOWED. Locks the user''s row of the
   streak.';

create or replace function internal.streak_pause_set(app_user_id uuid, definition_id uuid, starts_on date, ends_on date)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := internal.streak_definition(streak_pause_set.definition_id);
  streak constant app.user_streaks := internal.streak_started(streak_pause_set.app_user_id, d.id);
begin
  if streak_pause_set.starts_on is null or streak_pause_set.ends_on is null then
    perform internal.invalid(case when streak_pause_set.starts_on is null then 'start' else 'end' end, 'is required');
  end if;
  -- the same pause again
  if exists (select from app.streak_pauses p
              where (p.app_user_id, p.streak_definition_id, p.starts_on, p.ends_on)
                  = (streak.app_user_id, d.id, streak_pause_set.starts_on, streak_pause_set.ends_on)) then
    return streak;
  end if;
  if streak_pause_set.starts_on < internal.streak_today(d, streak.app_user_id) then
    perform internal.invalid('start', 'must not be in the past');
  elsif streak_pause_set.ends_on < streak_pause_set.starts_on then
    perform internal.invalid('end', 'must not be before start');
  elsif streak_pause_set.ends_on - streak_pause_set.starts_on >= 30 then
    perform internal.invalid('end', 'must be at most 30 days from start, both included');
  elsif streak_pause_set.starts_on > internal.streak_today(d, streak.app_user_id) + 366 then
    perform internal.invalid('start', 'must be within a year');
  end if;
  if exists (select from app.streak_pauses p
              where (p.app_user_id, p.streak_definition_id) = (streak.app_user_id, d.id)
                and p.starts_on <= streak_pause_set.ends_on and p.ends_on >= streak_pause_set.starts_on) then
    perform internal.fail(409, 'PAUSE_OVERLAP',
                          'Pauses of a streak may not overlap: another one has some of these dates.');
  end if;
  insert into app.streak_pauses (app_user_id, streak_definition_id, starts_on, ends_on)
  values (streak.app_user_id, d.id, streak_pause_set.starts_on, streak_pause_set.ends_on);
  if exists (
    select from app.streak_pauses p
     cross join generate_series(p.starts_on, p.ends_on, interval '1 day') as day
     where (p.app_user_id, p.streak_definition_id) = (streak.app_user_id, d.id)
       and extract(year from day) in (extract(year from streak_pause_set.starts_on),
                                      extract(year from streak_pause_set.ends_on))
     group by extract(year from day)
    having count(*) > 60) then
    perform internal.invalid('end', 'would make more than 60 paused days in a calendar year');
  end if;
  perform internal.streak_audit('pause', streak.app_user_id, d, json_build_object(
    'start', json_build_array(null, streak_pause_set.starts_on),
      'end', json_build_array(null, streak_pause_set.ends_on)));
  return internal.streak_refold(streak.app_user_id, d);
end $$;
comment on function internal.streak_pause_set is
  'Pauses a user''s streak on two dates and all between. Refuses 404 STREAK_NOT_FOUND (not started), 400
   VALIDATION_ERROR (in the past, over 30 days, over 60 a calendar year), 409 PAUSE_OVERLAP; the same pause again
   changes nothing. Locks the row of the streak.';

create or replace function internal.streak_pause_clear(definition_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := internal.streak_definition(streak_pause_clear.definition_id);
  streak constant app.user_streaks := internal.streak_started(internal.user_id(), d.id);
  today constant date := internal.streak_today(d, streak.app_user_id);
begin
  delete from app.streak_pauses p
   where (p.app_user_id, p.streak_definition_id) = (streak.app_user_id, d.id) and p.starts_on >= today;
  if not found and not exists (select from app.streak_pauses p
                                where (p.app_user_id, p.streak_definition_id) = (streak.app_user_id, d.id)
                                  and p.ends_on >= today) then
    perform internal.fail(404, 'NOT_FOUND', 'This streak has no pause.');
  end if;
  -- paused days stay paused: the current pause is shortened to end yesterday
  update app.streak_pauses p
     set ends_on = today - 1
   where (p.app_user_id, p.streak_definition_id) = (streak.app_user_id, d.id) and p.ends_on >= today;
  perform internal.streak_refold(streak.app_user_id, d);
end $$;
comment on function internal.streak_pause_clear is
  'Ends the caller''s current pause and deletes future ones. Refuses 404 NOT_FOUND when there is none. Locks the row of
   the streak.';

create or replace function api.streak_pause(id_or_key text, start date, "end" date) returns api.reply
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_pause.id_or_key, true);
  streak app.user_streaks;
begin
  streak := internal.streak_pause_set(internal.user_id(), d.id, streak_pause.start, streak_pause."end");
  return internal.reply(200, internal.streak_json(d, streak));
end $$;
comment on function api.streak_pause is
  'Pauses the caller''s streak; answers it. Refuses 404 STREAK_NOT_FOUND, 400 VALIDATION_ERROR, 409 PAUSE_OVERLAP.';

create or replace function api.streak_resume(id_or_key text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.streak_pause_clear((internal.streak_find(streak_resume.id_or_key, true)).id);
  return internal.reply_deleted();
end $$;
comment on function api.streak_resume is
  'Ends the caller''s pause. Refuses 404 STREAK_NOT_FOUND, 404 NOT_FOUND when nothing is paused.';

create or replace function internal.streak_cover_periods(streak app.user_streaks, definition app.streak_definitions,
                                                         numbers int[], source text)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := streak_cover_periods.definition;
begin
  insert into app.streak_periods as r
    (app_user_id, streak_definition_id, starts_on, source, needed, earn_every, freezes_max, qualified_at)
  select (streak_cover_periods.streak).app_user_id, d.id, internal.period_date(d.period, d.week_starts_on, n.number),
         streak_cover_periods.source,
         d.min_count, d.freeze_earn_every, d.freezes_max, internal.now()
    from unnest(streak_cover_periods.numbers) as n (number)
  on conflict on constraint streak_periods_pkey do update
     set source = excluded.source, qualified_at = excluded.qualified_at
   where r.source is null or r.source in ('freeze', 'pause');
  return internal.streak_refold((streak_cover_periods.streak).app_user_id, d);
end $$;
comment on function internal.streak_cover_periods is
  'Marks periods that are not qualified as covered, with the source manual or restore, and folds. The row must be
   locked. Granted to nobody.';

create or replace function internal.streak_qualify_for(app_user_id uuid, definition_id uuid, period_key text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := internal.streak_definition(streak_qualify_for.definition_id);
  before app.user_streaks;
  after app.user_streaks;
  state internal.streak_state;
  number int;
begin
  perform internal.streak_may_administer(streak_qualify_for.app_user_id);
  before := internal.streak_joined(streak_qualify_for.app_user_id, d);
  state := internal.streak_now(d, before);
  number := state.current;
  if streak_qualify_for.period_key is not null then
    number := internal.period_number(d.period, d.week_starts_on,
                                     internal.period_of_key(d.period, d.week_starts_on, streak_qualify_for.period_key));
    if number is null then
      perform internal.invalid('period_key', case d.period when 'day' then 'must be a date such as 2026-10-03'
                                                           when 'week' then 'must be an ISO week such as 2026-W40'
                                                           else 'must be a month such as 2026-10' end);
    elsif number > state.current then
      perform internal.invalid('period_key', 'must not be in the future');
    end if;
  end if;
  after := internal.streak_cover_periods(before, d, array[number], 'manual');
  perform internal.streak_notify_change(d, before, after, false);
  select s.* into after
    from app.user_streaks s
   where (s.app_user_id, s.streak_definition_id) = (before.app_user_id, d.id);
  perform internal.streak_audit('qualify', before.app_user_id, d, json_build_object(
    'current_count', json_build_array(before.current_count, after.current_count)),
    case when before.first_qualified_at is null then 201 else 200 end);
  return internal.reply(case when before.first_qualified_at is null then 201 else 200 end,
                        internal.streak_json(d, after));
end $$;
comment on function internal.streak_qualify_for is
  'Qualifies a period of a user''s streak by hand, the one under way if none is named: 201 when it is the first ever,
   else 200. Refuses 400 VALIDATION_ERROR, 404 NOT_FOUND (user). Locks the user''s row of the streak.';

create or replace function internal.streak_restore(app_user_id uuid, definition_id uuid, count int)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := internal.streak_definition(streak_restore.definition_id);
  before app.user_streaks;
  after app.user_streaks;
  state internal.streak_state;
  zone text;
  gap_begins int;
  gap_ends int;
  longer int;
begin
  perform internal.streak_may_administer(streak_restore.app_user_id);
  perform internal.lock_users(array[streak_restore.app_user_id]);
  select s.* into before
    from app.user_streaks s
   where (s.app_user_id, s.streak_definition_id) = (streak_restore.app_user_id, d.id)
     for no key update;
  before := internal.streak_brought_up_to_date(before);
  state := internal.streak_now(d, before);
  zone := internal.streak_zone_of(d, before.app_user_id);
  if state.status = 'broken' then
    gap_begins := internal.period_number(d.period, d.week_starts_on, before.covered_through) + 1;
    gap_ends := state.passed;
  elsif before.lapsed_through is not null then
    gap_begins := internal.period_number(d.period, d.week_starts_on, before.lapsed_through) + 1;
    gap_ends := internal.period_number(d.period, d.week_starts_on, before.started_on) - 1;
  end if;
  if gap_begins is null
     or internal.streak_deadline(d, zone, internal.streak_zone_changes(d, before.app_user_id), gap_begins,
                                 internal.now())
        + make_interval(hours => d.restore_window_hours) < internal.now() then
    perform internal.fail(409, 'NOTHING_TO_RESTORE', 'No chain of this streak ended within its restore window.');
  end if;

  after := internal.streak_cover_periods(before, d, array(
    select n.number
      from generate_series(gap_begins, gap_ends) as n (number)
     where not internal.date_is_skipped(d.period, zone, n.number)
       and n.number <> all (coalesce(internal.paused_periods(d, (
             select array_agg(p) from app.streak_pauses p
              where (p.app_user_id, p.streak_definition_id) = (before.app_user_id, d.id))), '{}'))), 'restore');
  longer := streak_restore.count - after.current_count;
  if longer < 0 then
    perform internal.invalid('count', 'must be at least ' || after.current_count || ', which the whole streak counts');
  elsif longer > 0 then
    -- periods before the chain began, which make up a higher count; their milestones are not paid
    after := internal.streak_cover_periods(after, d, array(
      select internal.period_number(d.period, d.week_starts_on, after.started_on) - n
        from generate_series(1, longer) as n), 'restore');
    before.current_count := before.current_count + longer;
  end if;
  perform internal.streak_notify_change(d, before, after, false);
  select s.* into after
    from app.user_streaks s
   where (s.app_user_id, s.streak_definition_id) = (before.app_user_id, d.id);
  perform internal.streak_audit('restore', before.app_user_id, d, json_build_object(
    'current_count', json_build_array(before.current_count, after.current_count)));
  return after;
end $$;
comment on function internal.streak_restore is
  'Covers the gap after the chain that ended last, if that was within restore_window_hours; a higher count is made up by
   periods before the chain. Refuses 409 NOTHING_TO_RESTORE, 400 VALIDATION_ERROR, 404 NOT_FOUND (user). Locks the
   user''s row of the streak.';

create or replace function api.streak_user_freezes(id_or_key text, user_id uuid, amount int) returns api.reply
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_user_freezes.id_or_key);
  streak app.user_streaks;
begin
  if streak_user_freezes.amount is null or streak_user_freezes.amount not between 1 and 100 then
    perform internal.invalid('amount', 'must be 1 to 100');
  end if;
  streak := internal.streak_gift(streak_user_freezes.user_id, d.id, streak_user_freezes.amount);
  return internal.reply(200, internal.streak_json(d, streak));
end $$;
comment on function api.streak_user_freezes is
  'Gives a user freezes, up to the streak''s freezes_max; answers the user''s streak. Refuses 404 STREAK_NOT_FOUND,
   404 NOT_FOUND (user), 400 VALIDATION_ERROR.';

create or replace function internal.streak_gift(app_user_id uuid, definition_id uuid, amount int)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := internal.streak_definition(streak_gift.definition_id);
begin
  perform internal.streak_may_administer(streak_gift.app_user_id);
  perform internal.streak_give_freezes(streak_gift.app_user_id, d, streak_gift.amount, 'admin', null);
  perform internal.streak_audit('give_freezes', streak_gift.app_user_id, d,
                                json_build_object('freezes', json_build_array(null, streak_gift.amount)));
  return internal.streak_joined(streak_gift.app_user_id, d);
end $$;
comment on function internal.streak_gift is
  'An administrator''s gift of freezes; answers the user''s row of the streak, locked. Refuses 404 NOT_FOUND (user).';

create or replace function api.streak_user_pause(id_or_key text, user_id uuid, start date, "end" date) returns api.reply
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_user_pause.id_or_key);
  streak app.user_streaks;
begin
  streak := internal.streak_pause_set(streak_user_pause.user_id, d.id, streak_user_pause.start,
                                      streak_user_pause."end");
  return internal.reply(200, internal.streak_json(d, streak));
end $$;
comment on function api.streak_user_pause is
  'Pauses a user''s streak, under the rules that hold for users; answers it. Refuses 404 STREAK_NOT_FOUND, 404 NOT_FOUND
   (user), 400 VALIDATION_ERROR, 409 PAUSE_OVERLAP.';

create or replace function api.streak_user_restore(id_or_key text, user_id uuid, count int default null)
returns api.reply
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_user_restore.id_or_key);
  streak app.user_streaks;
begin
  if streak_user_restore.count not between 1 and 10000 then
    perform internal.invalid('count', 'must be 1 to 10000');
  end if;
  streak := internal.streak_restore(streak_user_restore.user_id, d.id, streak_user_restore.count);
  return internal.reply(200, internal.streak_json(d, streak));
end $$;
comment on function api.streak_user_restore is
  'Restores a user''s broken streak and returns it. Refuses 404 STREAK_NOT_FOUND, 404 NOT_FOUND (user), 409
   NOTHING_TO_RESTORE, 400 VALIDATION_ERROR.';

create or replace function api.streak_user_qualify(id_or_key text, user_id uuid, period_key text default null)
returns api.reply
language sql volatile as $$
  select internal.streak_qualify_for(streak_user_qualify.user_id,
                                     (internal.streak_find(streak_user_qualify.id_or_key)).id,
                                     streak_user_qualify.period_key)
$$;
comment on function api.streak_user_qualify is
  'Qualifies a period of a user''s streak, whatever min_count is: 201 when it is the first ever, else 200.
   Refuses 404 STREAK_NOT_FOUND, 404 NOT_FOUND (user), 400 VALIDATION_ERROR.';

create or replace function internal.streaks_merge(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  d app.streak_definitions;
  mine app.user_streaks;
  theirs app.user_streaks;
  moved int := 0;
begin
  perform internal.lock_users(array[streaks_merge.survivor, streaks_merge.other]);
  perform from app.user_streaks s
    where s.app_user_id in (streaks_merge.survivor, streaks_merge.other)
    order by s.app_user_id, s.streak_definition_id
      for update;
  perform internal.streaks_apply_time(array_agg(s.app_user_id), array_agg(s.streak_definition_id))
     from app.user_streaks s
    where s.app_user_id in (streaks_merge.survivor, streaks_merge.other);
  for theirs in
    select s.*
      from app.user_streaks s
     where s.app_user_id in (streaks_merge.survivor, streaks_merge.other)
     order by s.app_user_id, s.streak_definition_id
  loop
    continue when theirs.app_user_id <> streaks_merge.other;
    d := internal.streak_definition(theirs.streak_definition_id);
    select s.* into mine
      from app.user_streaks s
     where (s.app_user_id, s.streak_definition_id) = (streaks_merge.survivor, d.id);
    -- compares current lengths first, then the longest ever
    continue when mine.app_user_id is not null
              and (internal.streak_length(d, theirs), theirs.longest_count) <= (internal.streak_length(d, mine),
                                        mine.longest_count);
    perform set_config('app.merges_streaks', 'true', true);
    delete from app.user_streaks s where (s.app_user_id, s.streak_definition_id) = (streaks_merge.survivor, d.id);
    perform set_config('app.merges_streaks', '', true);
    update app.user_streaks s
       set app_user_id = streaks_merge.survivor
     where (s.app_user_id, s.streak_definition_id) = (streaks_merge.other, d.id)
    returning s.* into mine;
    -- the survivor's zone may differ
    perform internal.streak_reschedule(mine, d);
    moved := moved + 1;
  end loop;
  return moved;
end $$;
comment on function internal.streaks_merge is
  'Merges the streaks of two users: keeps the longer one of each, unchanged. Returns how many the survivor took over.
   Granted to nobody.';

create or replace function internal.streak_length(definition app.streak_definitions, streak app.user_streaks)
returns int
language plpgsql stable security definer set search_path = '' as $$
begin
  return case when (internal.streak_now(streak_length.definition, streak_length.streak)).status in ('none',
                                        'broken') then 0
              else (streak_length.streak).current_count end;
end $$;
comment on function internal.streak_length is 'What a streak counts now: 0 when it is broken.';
