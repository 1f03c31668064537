-- How often a flag is evaluated, with which values, for how many users. A request inserts one row, without contention;
-- those rows are counted every five minutes, and before statistics are returned.
create or replace function internal.flags_record_evaluations(app_user_id uuid, notes jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  today constant date := (internal.now() at time zone 'UTC')::date;
  is_drawn constant boolean := random() < 0.01;
  kept jsonb;
begin
  -- sampling: a flag with 10,000 evaluations today is counted in one of a hundred requests, a hundredfold
  select jsonb_agg(n.note || to_jsonb(case when s.sampled_on = today then 100 else 1 end))
    into kept
    from jsonb_array_elements(flags_record_evaluations.notes) n (note)
    left join app.flag_states s on s.flag_id = (n.note ->> 0)::uuid
   where is_drawn or s.sampled_on is distinct from today;
  if kept is null then
    return;
  end if;
  -- asynchronous commit: a crash may lose a fraction of a second of counts, and no response waits for the disk
  perform set_config('synchronous_commit', 'off', true);
  -- does not wait for the deletion of a user, who is then not counted
  perform from app.users u where u.id = flags_record_evaluations.app_user_id for key share skip locked;
  if flags_record_evaluations.app_user_id is not null and not found then
    return;
  end if;
  insert into app.flag_evaluations (app_user_id, notes) values (flags_record_evaluations.app_user_id, kept);
  if not exists (select from app.outbox o where o.task = 'flags__count' and o.failed_at is null) then
    perform internal.enqueue('flags__count', due_at => internal.now() + interval '5 minutes');
  end if;
end $$;
comment on function internal.flags_record_evaluations is
  'Records the evaluations of a request, [[flag id, value, rule index], ...], which are counted later. Granted to
   nobody.';

create or replace function internal.flags_count(batch int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  today date;
  noted_ids bigint[];
  live_ids uuid[];
  how_many int;
begin
  if internal.caller() not in ('developer', 'worker') then
    raise exception 'evaluations are counted by workers and administrators, not by %', internal.caller();
  end if;
  -- serialised, and one day at a time: the last day of a user never goes back
  perform internal.advisory_lock('flag evaluations');
  select (e.evaluated_at at time zone 'UTC')::date into today from app.flag_evaluations e order by e.id limit 1;
  if not found then
    return 0;
  end if;
  noted_ids := array(select l.id from app.flag_evaluations l order by l.id limit flags_count.batch);
  -- lock order: users before their rows, as a user's deletion locks them
  live_ids := array(
    select u.id
      from app.users u
     where u.id in (select e.app_user_id from app.flag_evaluations e where e.id = any (noted_ids))
     order by u.id
       for key share);
  with gone as (
    delete from app.flag_evaluations e
     where e.id = any (noted_ids) and (e.evaluated_at at time zone 'UTC')::date = today
    returning e.app_user_id, e.evaluated_at, e.notes
  ), live_flags as materialized (
    select f.id, case when internal.flag_guarded(f) then f.ramp end as ramp from app.flags f order by f.id for key share
  ), noted as materialized (
    select f.id as flag_id, f.ramp, n.note -> 1 as value, md5((n.note -> 1)::text) as value_key,
           (n.note ->> 2)::int as rule_index,
           (n.note ->> 3)::bigint as weight,
           case when g.app_user_id = any (live_ids) then g.app_user_id end as app_user_id, g.evaluated_at
      from gone g
     cross join jsonb_array_elements(g.notes) n (note)
      join live_flags f on f.id = (n.note ->> 0)::uuid
  ), values_met as (
    insert into app.flag_values (flag_id, value_key, value)
    select distinct on (n.flag_id, n.value_key) n.flag_id, n.value_key, n.value from noted n order by n.flag_id,
           n.value_key
    on conflict do nothing
  ), users_met as (
    insert into app.flag_users as t (flag_id, value_key, app_user_id, last_day)
    select distinct n.flag_id, n.value_key, n.app_user_id, today from noted n where n.app_user_id is not null
    on conflict on constraint flag_users_pkey do update set last_day = excluded.last_day
      where t.last_day < excluded.last_day
    returning t.flag_id, t.value_key
  ), exposures_met as (
    insert into app.flag_exposures (flag_id, app_user_id, first_at)
    select n.flag_id, n.app_user_id, min(n.evaluated_at)
      from noted n
     where n.app_user_id is not null and n.rule_index = (n.ramp ->> 'rule_index')::int
       and n.evaluated_at >= (n.ramp ->> 'started_at')::timestamptz
     group by n.flag_id, n.app_user_id
    on conflict do nothing
  ), times_met as (
    insert into app.flag_states as t (flag_id, last_evaluated_at)
    select n.flag_id, max(n.evaluated_at) from noted n group by n.flag_id
    on conflict on constraint flag_states_pkey do update set last_evaluated_at = greatest(t.last_evaluated_at,
                                        excluded.last_evaluated_at)
  ), counted as (
    insert into app.flag_counts as t (flag_id, value_key, day, evaluations, users)
    select n.flag_id, n.value_key, today, sum(n.weight),
           (select count(*) from users_met u where (u.flag_id, u.value_key) = (n.flag_id, n.value_key))
      from noted n
     group by n.flag_id, n.value_key
    on conflict on constraint flag_counts_pkey do update set evaluations = t.evaluations + excluded.evaluations,
      users = t.users + excluded.users
  )
  select count(*) into how_many from gone;
  update app.flag_states s
     set sampled_on = today
   where s.sampled_on is distinct from today
     and (select sum(c.evaluations) from app.flag_counts c where c.flag_id = s.flag_id and c.day = today) >= 10000;
  return how_many;
end $$;
comment on function internal.flags_count is
  'Counts at most batch recorded requests, all of one day; returns their number. A flag with 10,000 evaluations on a day
   is sampled for the rest of that day. Serialises its callers.';

create or replace function internal.flags_flush_counts() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- usually the evaluations of five minutes wait; without a worker there may be more, and a response does not wait for
  -- all of them
  for i in 1 .. 20 loop
    exit when internal.flags_count(1000) = 0;
  end loop;
end $$;
comment on function internal.flags_flush_counts is
  'Counts the recorded evaluations before statistics are returned; at most 20,000 requests.';

create or replace function api.flags_count(batch int) returns api.reply
language sql volatile as $$
  select internal.reply(200, to_json(internal.flags_count(flags_count.batch)))
$$;
comment on function api.flags_count is
  'For the worker: counts at most batch recorded requests; 0 when there were none.';

create or replace function internal.flag_is_stale(f app.flags) returns boolean
language sql stable as $$
  select coalesce((select s.last_evaluated_at from app.flag_states s where s.flag_id = (flag_is_stale.f).id),
                  (flag_is_stale.f).created_at)
           <= internal.now() - interval '30 days'
      or (flag_is_stale.f).created_at <= internal.now() - interval '60 days'
     and 1 = (select count(distinct c.value_key) from app.flag_counts c
               where c.flag_id = (flag_is_stale.f).id and c.day > (internal.now() at time zone 'UTC')::date - 60)
$$;
comment on function internal.flag_is_stale is
  'Whether a flag was not evaluated for 30 days, or gave all users one value for 60.';

create or replace function api.flag_stats(id_or_key text, days int default 30) returns api.reply
language plpgsql volatile as $$
declare
  flag constant app.flags := internal.flag_find(flag_stats.id_or_key);
  today constant date := (internal.now() at time zone 'UTC')::date;
  since constant date := today - flag_stats.days + 1;
begin
  perform internal.flags_flush_counts();
  return internal.reply(200, json_build_object(
    'days', flag_stats.days,
    'evaluations', (select coalesce(sum(c.evaluations), 0) from app.flag_counts c
                     where c.flag_id = flag.id and c.day >= since),
    'users', (select count(distinct u.app_user_id) from app.flag_users u
               where u.flag_id = flag.id and u.last_day >= since),
    'is_sampled', exists (select from app.flag_states s where s.flag_id = flag.id and s.sampled_on >= since),
    'values', (
      select coalesce(json_agg(json_build_object(
               'value', v.value, 'evaluations', c.evaluations,
               'users', (select count(*) from app.flag_users u
                          where (u.flag_id, u.value_key) = (v.flag_id, v.value_key) and u.last_day >= since))
             order by c.evaluations desc, v.value_key), '[]')
        from app.flag_values v
       cross join lateral (select sum(l.evaluations) as evaluations from app.flag_counts l
                            where l.flag_id = v.flag_id and l.value_key = v.value_key and l.day >= since) c
       where v.flag_id = flag.id and c.evaluations is not null),
    'by_day', (
      select coalesce(json_agg(json_build_object('day', c.day, 'value', v.value, 'evaluations', c.evaluations,
                                                 'users', c.users)
                               order by c.day, c.evaluations desc, c.value_key), '[]')
        from app.flag_counts c
        join app.flag_values v on (v.flag_id, v.value_key) = (c.flag_id, c.value_key)
       where c.flag_id = flag.id and c.day >= since)));
end $$;
comment on function api.flag_stats is
  'Evaluations and users per value over the last UTC days, including today, and by day. Refuses 404 NOT_FOUND.';

create or replace function internal.purge__flags(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(internal.purge_rows('app.flag_users',
                                      't.last_day <= (internal.now() at time zone ''UTC'')::date - 90',
                                        purge__flags.most),
                  internal.purge_rows('app.flag_counts', 't.day <= (internal.now() at time zone ''UTC'')::date - 90',
                                      purge__flags.most))
$$;
comment on function internal.purge__flags is 'Daily: deletes counts that are older than the 90 days of the statistics.';
