-- What apps send. A batch is stored by one statement: issues in the order of their fingerprints, so that two batches
-- cannot deadlock, each locked once however many of its reports there are.
create or replace function internal.diagnostics_places(key text, wanted int, most int, seconds int) returns int
language plpgsql volatile as $$
declare
  held app.rate_limits;
  taken int;
begin
  insert into app.rate_limits (key, started_at, count) values (diagnostics_places.key, internal.now(), 0)
  on conflict do nothing;
  select r.* into held from app.rate_limits r where r.key = diagnostics_places.key for update;
  if held.started_at + make_interval(secs => diagnostics_places.seconds) <= internal.now() then
    held.started_at := internal.now();
    held.count := 0;
  end if;
  taken := least(diagnostics_places.wanted, greatest(diagnostics_places.most - held.count, 0));
  if taken > 0 then
    update app.rate_limits r set started_at = held.started_at, count = held.count + taken
     where r.key = diagnostics_places.key;
  end if;
  return taken;
end $$;
comment on function internal.diagnostics_places is
  'Takes up to so many places of a limit and answers how many: exact, whoever asks at once. Granted to nobody.';

create or replace function internal.diagnostics_told(issue_id uuid, verb text, app_user_id uuid, at timestamptz,
                                                     properties jsonb)
returns void
language sql volatile as $$
  select internal.on_events__90_webhooks(array[jsonb_populate_record(null::app.engagement_events, jsonb_build_object(
    'id', internal.new_id(), 'app_user_id', diagnostics_told.app_user_id,
    'event_name', 'svc.diagnostics.' || diagnostics_told.verb, 'occurred_at', diagnostics_told.at,
    'received_at', internal.now(), 'source', 'system', 'is_historical', false,
    'properties', jsonb_build_object('issue_id', diagnostics_told.issue_id) || diagnostics_told.properties))])
$$;
comment on function internal.diagnostics_told is
  'Sends svc.diagnostics.* to webhooks alone: it is no event of the users'' own, which streaks would count.';

create or replace function internal.diagnostics_store(reports jsonb, me uuid) returns void
language plpgsql volatile as $$
declare
  batch constant uuid := internal.new_id();
  today constant date := (internal.now() at time zone 'UTC')::date;
  issue record;
begin
  for issue in
    -- without messages and stacks, which each read of these rows would copy
    with known as materialized (
      select s.n, s.item ->> 'kind' as kind, s.item ->> 'level' as level,
             internal.as_line(left(rtrim(split_part(s.item ->> 'message', E'\n', 1), E'\r'), 200)) as title,
             case when (s.item ->> 'occurred_at')::timestamptz <= internal.now() + interval '5 minutes'
                  then (s.item ->> 'occurred_at')::timestamptz else internal.now() end as occurred_at,
             s.item ->> 'app_version' as app_version, coalesce((s.item ->> 'id')::uuid, internal.new_id()) as id,
             coalesce(s.item ->> 'fingerprint', internal.diagnostics_fingerprint(
               s.item ->> 'kind', s.item ->> 'message', s.item ->> 'stack')) as fingerprint
        from (select e.item, e.n,
                     row_number() over (partition by coalesce(e.item ->> 'id', e.n::text) order by e.n) as nth
                from jsonb_array_elements(diagnostics_store.reports) with ordinality e (item, n)) s
       where s.nth = 1
         -- one whose answer was lost comes again: the counter of the device is locked, so that the former one is seen
         and not exists (select from app.diagnostic_reports r where r.id = (s.item ->> 'id')::uuid)
    ), sent as materialized (
      select k.*, o.version_key
        from known k
        left join (select v.app_version, internal.diagnostics_version_key(v.app_version) collate "C" as version_key
                     from (select distinct w.app_version from known w) v) o using (app_version)
    ), versions as (
      select s.fingerprint, jsonb_object_agg(s.app_version, s.n) as counts,
             max(s.version_key) filter (where s.app_version ~ '^[0-9]') as newest
        from (select v.fingerprint, v.app_version, v.version_key, count(*) as n
                from sent v where v.app_version is not null group by 1, 2, 3) s
       group by 1
    ), days as (
      select s.fingerprint, jsonb_object_agg(s.day, s.n) as counts
        from (select d.fingerprint, to_char(d.occurred_at at time zone 'UTC', 'YYYY-MM-DD') as day, count(*) as n
                from sent d group by 1, 2) s
       group by 1
    ), grouped as (
      select s.fingerprint, internal.new_id() as id, count(*) as n, min(s.occurred_at) as first_seen,
             max(s.occurred_at) as last_seen,
             (array_agg(s.level order by array_position('{fatal,error,warn,info,debug}', s.level)))[1] as level,
             (array_agg(s.title order by s.n))[1] as title,
             -- the report that opens it: of the newest version
             (array_agg(s.n order by s.app_version ~ '^[0-9]' desc nulls last, s.version_key desc, s.n))[1] as opener
        from sent s
       group by s.fingerprint
    ), kept as (
      insert into app.diagnostic_issues as i
             (id, fingerprint, title, level, first_seen, last_seen, count, version_counts, day_counts,
              resolved_version_key, opened_by)
      select g.id, g.fingerprint, g.title, g.level, g.first_seen, g.last_seen, g.n, coalesce(v.counts, '{}'),
             internal.diagnostics_recent(d.counts, today), v.newest, batch
        from grouped g
        join days d using (fingerprint)
        left join versions v using (fingerprint)
       order by g.fingerprint
      on conflict (fingerprint) do update
         set level = case when array_position('{fatal,error,warn,info,debug}', excluded.level)
                               < array_position('{fatal,error,warn,info,debug}', i.level) then excluded.level
                          else i.level end,
             first_seen = least(i.first_seen, excluded.first_seen),
             last_seen = greatest(i.last_seen, excluded.last_seen),
             count = i.count + excluded.count,
             version_counts = internal.diagnostics_sums(i.version_counts, excluded.version_counts, 200),
             day_counts = internal.diagnostics_sums(internal.diagnostics_recent(i.day_counts, today),
                                                    excluded.day_counts, 60),
             status = case when i.status = 'resolved'
                                and excluded.resolved_version_key > coalesce(i.resolved_version_key, '')
                           then 'open' else i.status end,
             opened_by = case when i.status = 'resolved'
                                   and excluded.resolved_version_key > coalesce(i.resolved_version_key, '')
                              then excluded.opened_by else i.opened_by end
      returning i.id, i.fingerprint, i.title, i.level, i.opened_by, i.version_counts
    ), versioned as (
      -- those alone that the issue counts
      insert into app.diagnostic_issue_versions (app_version, issue_id)
      select s.app_version, k.id
        from kept k join versions v using (fingerprint)
       cross join lateral jsonb_object_keys(v.counts) s (app_version)
       where k.version_counts ? s.app_version
      on conflict do nothing
    ), stored as (
      insert into app.diagnostic_reports (id, issue_id, app_user_id, kind, level, message, stack, context, occurred_at,
                                          received_at, app_version, os_version, device_model)
      select s.id, k.id, diagnostics_store.me, s.kind, s.level, e.item ->> 'message', e.item ->> 'stack',
             nullif(e.item -> 'context', 'null'), s.occurred_at, internal.now(), s.app_version,
             e.item ->> 'os_version', e.item ->> 'device_model'
        from jsonb_array_elements(diagnostics_store.reports) with ordinality e (item, n)
        join sent s using (n)
        join kept k using (fingerprint)
      on conflict (id) do nothing
    )
    select k.id, k.fingerprint, k.title, k.level, g.id = k.id as is_new, k.opened_by = batch as is_opened, c.kind,
           c.app_version, c.occurred_at
      from kept k
      join grouped g using (fingerprint)
      join sent c on c.n = g.opener
     order by k.fingerprint
  loop
    if diagnostics_store.me is not null then
      insert into app.diagnostic_issue_users (issue_id, app_user_id) values (issue.id, diagnostics_store.me)
      on conflict do nothing;
      if found then
        update app.diagnostic_issues i set users = i.users + 1 where i.id = issue.id;
      end if;
    end if;
    if issue.is_opened then
      perform internal.diagnostics_told(
        issue.id, case when issue.is_new then 'issue_opened' else 'issue_regressed' end, diagnostics_store.me,
        issue.occurred_at, jsonb_build_object('fingerprint', issue.fingerprint, 'title', issue.title,
          'level', issue.level, 'kind', issue.kind, 'app_version', issue.app_version));
    end if;
  end loop;
end $$;
comment on function internal.diagnostics_store is
  'Stores reports, and makes, counts and reopens their issues. A report with an id that is stored counts no second time.
   Locks each issue once, in the order of fingerprints. Granted to nobody.';

create or replace function api.diagnostics_report(reports jsonb, device text, is_free boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me uuid;
  sent constant int := jsonb_array_length(diagnostics_report.reports);
  accepted int;
begin
  if internal.caller() not in ('client_key', 'server_key', 'user', 'server_key_user') then
    raise exception 'apps report, not %', internal.caller();
  end if;
  -- a user who is deleted meanwhile reports as nobody
  select u.id into me from app.users u where u.id = internal.user_id() for key share;
  accepted := internal.diagnostics_places('diagnostics ' || coalesce(me::text, diagnostics_report.device), sent, 100,
                                          60);
  if diagnostics_report.is_free and accepted > 0 then
    accepted := internal.diagnostics_places(
      'diagnostics day ' || (internal.now() at time zone 'UTC')::date, accepted, 10000, 86400);
  end if;
  if accepted > 0 then
    perform internal.diagnostics_store(case when accepted = sent then diagnostics_report.reports else (
      select jsonb_agg(s.item order by s.n)
        from jsonb_array_elements(diagnostics_report.reports) with ordinality s (item, n)
       where s.n <= accepted) end, me);
  end if;
  return internal.reply(202, json_build_object('accepted', accepted, 'dropped', sent - accepted));
end $$;
comment on function api.diagnostics_report is
  'Stores reports that the server has checked: 100 a minute for a device, which is the user, or else the address, and
   10,000 a day for a free project. The rest is counted in dropped. Locks the counters, then the issues.';

create or replace function api.diagnostics_ping() returns api.reply
language plpgsql stable as $$
declare
  me constant uuid := internal.user_id();
  at_least jsonb;
begin
  select internal.config_value(k, me, case when me is not null then internal.segment_ids_of(me) end) into at_least
    from app.config_keys k where k.key = 'min_app_version' and me is not null;
  if me is null then
    select k.value into at_least from app.config_keys k where k.key = 'min_app_version';
  end if;
  return internal.reply(200, json_build_object(
    'server_time', internal.iso(internal.now()),
    'min_app_version', case when jsonb_typeof(at_least) = 'string' then at_least #>> '{}' end));
end $$;
comment on function api.diagnostics_ping is 'The time, and the value of the config key min_app_version for the caller.';

create or replace function internal.purge__diagnostics(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.diagnostic_reports', 't.received_at < internal.now() - interval ''30 days''',
                             purge__diagnostics.most)
$$;
comment on function internal.purge__diagnostics is 'Daily: reports after 30 days. Issues stay.';

create or replace function internal.merge__diagnostic_issue_users(survivor uuid, other uuid) returns int
language plpgsql volatile as $$
declare
  moved int;
begin
  -- in the order in which reports lock them
  perform from app.diagnostic_issues i
    where i.id in (select u.issue_id from app.diagnostic_issue_users u
                    where u.app_user_id = merge__diagnostic_issue_users.other)
    order by i.fingerprint
      for no key update;
  -- an issue that has met both has met one user
  update app.diagnostic_issues i set users = i.users - 1
   where i.id in (select u.issue_id from app.diagnostic_issue_users u
                    join app.diagnostic_issue_users o on o.issue_id = u.issue_id
                                                     and o.app_user_id = merge__diagnostic_issue_users.other
                   where u.app_user_id = merge__diagnostic_issue_users.survivor);
  insert into app.diagnostic_issue_users (issue_id, app_user_id)
  select u.issue_id, merge__diagnostic_issue_users.survivor
    from app.diagnostic_issue_users u
   where u.app_user_id = merge__diagnostic_issue_users.other
  on conflict do nothing;
  get diagnostics moved = row_count;
  delete from app.diagnostic_issue_users u where u.app_user_id = merge__diagnostic_issue_users.other;
  return moved;
end $$;
comment on function internal.merge__diagnostic_issue_users is
  'Of a merge: issues of the other user become the survivor''s; one that had met both has one user less.';
