-- The audit trail: a trigger on each table that administrators change writes the row, so no route can forget it.
create or replace function internal.audit_hash(previous text, event app.audit_events) returns text
language sql stable as $$
  -- a list as JSON, so that no text can pass from one field into the next unseen
  select encode(sha256(convert_to(coalesce(audit_hash.previous, '') || json_build_array(
    (audit_hash.event).id, (audit_hash.event).scope, (audit_hash.event).position,
    to_char((audit_hash.event).occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), (audit_hash.event).actor,
    (audit_hash.event).action, (audit_hash.event).target_type, (audit_hash.event).target_id, (audit_hash.event).changes,
    (audit_hash.event).ip, (audit_hash.event).user_agent, (audit_hash.event).request_id, (audit_hash.event).status)::text,
    'UTF8')), 'hex')
$$;
comment on function internal.audit_hash is 'sha256(hash of the row before || the row), in hex: what the row''s own hash must be.';

create or replace function internal.audit(action text, target_type text, target_id text, changes json default '{}',
                                          status int default 200, scope uuid default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  actor constant json := coalesce(internal.actor(), '{"type": "system"}');
  head app.audit_chains;
  written app.audit_events;
begin
  written.scope := coalesce(audit.scope, internal.audit_scope());
  -- one writer at a time in each scope: each row's hash holds the one before it
  perform pg_advisory_xact_lock(73054410, hashtext(written.scope::text));
  select c.* into head from app.audit_chains c where c.scope = written.scope order by c.month desc limit 1;
  written.id := internal.new_id();
  written.position := coalesce(head.last_position, 0) + 1;
  -- a transaction that began before its predecessor must not be written into a month that is closed
  written.occurred_at := greatest(internal.now(), head.last_at);
  written.actor := json_build_object('type', actor ->> 'type', 'id', actor ->> 'id', 'label', actor ->> 'label');
  written.action := audit.action;
  written.target_type := audit.target_type;
  written.target_id := audit.target_id;
  written.changes := audit.changes;
  written.ip := actor ->> 'ip';
  written.user_agent := actor ->> 'user_agent';
  written.request_id := actor ->> 'request_id';
  written.status := audit.status;
  written.hash := internal.audit_hash(head.last_hash, written);
  insert into app.audit_events select written.*;
  insert into app.audit_chains as c (scope, month, opening_hash, opening_position, last_hash, last_position, last_at)
  values (written.scope, date_trunc('month', written.occurred_at at time zone 'UTC')::date, coalesce(head.last_hash, ''),
          coalesce(head.last_position, 0), written.hash, written.position, written.occurred_at)
  on conflict on constraint audit_chains_pkey do update
     set last_hash = excluded.last_hash, last_position = excluded.last_position, last_at = excluded.last_at;
end $$;
comment on function internal.audit is
  'Writes one audit row, chained to the one before of its scope by its hash. Who acted comes from the call''s claims; status is 201 where something was made, 202 where work was begun, else 200. Serialises the callers of a scope.';

create or replace function internal.audit_act(action text, target_type text, target_id text, changes json, status int) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() = 'developer' then
    perform internal.audit(audit_act.action, audit_act.target_type, audit_act.target_id, audit_act.changes, audit_act.status);
  end if;
end $$;
comment on function internal.audit_act is
  'internal.audit for what a developer did that no row of a table with a trigger tells; nothing for other callers.';

create or replace function internal.tg_audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- trigger arguments: the area, then columns whose values are never written out
  area constant text := tg_argv[0];
  secret constant text[] := tg_argv[1:];
  old_row constant jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) else '{}' end;
  new_row constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) else '{}' end;
  -- a row that is marked as deleted is gone for whoever looks
  verb constant text := case
    when tg_op = 'INSERT' then 'create'
    when tg_op = 'DELETE' or (old_row ->> 'deleted_at' is null and new_row ->> 'deleted_at' is not null) then 'delete'
    else 'update' end;
  changed json;
begin
  if internal.caller() <> 'developer' then
    return null;
  end if;
  -- beside what is named: whatever calls itself a secret, so that a column that is added later is not forgotten
  select json_object_agg(c.key, case when c.key = any (secret) or c.key ~ '(secret|password|token|private|sealed|_hash$)'
                                     then '["[redacted]", "[redacted]"]'::json
                                     else json_build_array(old_row -> c.key, new_row -> c.key) end order by c.key)
    into changed
    from jsonb_object_keys(old_row || new_row) as c (key)
   where c.key not in ('updated_at', 'created_at') and old_row -> c.key is distinct from new_row -> c.key;
  if tg_op = 'UPDATE' and changed is null then
    return null;
  end if;
  perform internal.audit(area || '.' || verb, area, coalesce(new_row ->> 'id', old_row ->> 'id'), coalesce(changed, '{}'),
                         case tg_op when 'INSERT' then 201 else 200 end, internal.audit_scope(area, old_row || new_row));
  return null;
end $$;
comment on function internal.tg_audit is
  'After-row trigger: create trigger ... execute function internal.tg_audit(''streaks'', ''a_secret_column''). Acts only for administrators.';

create or replace function internal.audit_json(e app.audit_events) returns json
language sql stable as $$
  select json_build_object(
    'id', (audit_json.e).id, 'occurred_at', internal.iso((audit_json.e).occurred_at), 'actor', (audit_json.e).actor,
    'action', (audit_json.e).action,
    'target', json_build_object('type', (audit_json.e).target_type, 'id', (audit_json.e).target_id),
    'changes', (audit_json.e).changes, 'ip', (audit_json.e).ip, 'user_agent', (audit_json.e).user_agent,
    'request_id', (audit_json.e).request_id, 'status', (audit_json.e).status)
$$;
comment on function internal.audit_json is 'A change as answers show it. Supplement A5.';

create or replace function internal.audit_key(e app.audit_events) returns text
language sql stable as $$
  select to_char((audit_key.e).occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' '
         || lpad((audit_key.e).position::text, 19, '0') || ' ' || (audit_key.e).id
$$;
comment on function internal.audit_key is 'The place of a change in its list, as text that sorts the same in control and in the project''s own database.';

create or replace function api.audit_rows(
  page_limit int, after text default null, since timestamptz default null, until timestamptz default null, actor_id text default null,
  action text default null, target_type text default null, target_id text default null)
returns api.reply
language plpgsql stable as $$
declare
  own_scope constant uuid := internal.audit_scope();
  after_at constant timestamptz := split_part(audit_rows.after, ' ', 1)::timestamptz;
  after_position constant bigint := split_part(audit_rows.after, ' ', 2)::bigint;
  after_id constant uuid := split_part(audit_rows.after, ' ', 3)::uuid;
begin
  return internal.reply(200, (
    select coalesce(json_agg(json_build_object('key', internal.audit_key(e), 'event', internal.audit_json(e)::text)
                             order by e.occurred_at desc, e.position desc, e.id desc), '[]')
      from (select l.*
              from app.audit_events l
             where l.scope = own_scope
               and (audit_rows.since is null or l.occurred_at >= audit_rows.since)
               and (audit_rows.until is null or l.occurred_at < audit_rows.until)
               and (after_at is null or (l.occurred_at <= after_at and (l.occurred_at, l.position, l.id) < (after_at, after_position, after_id)))
               and (audit_rows.actor_id is null or l.actor ->> 'id' = audit_rows.actor_id)
               and (audit_rows.action is null or starts_with(l.action, audit_rows.action))
               and (audit_rows.target_type is null or l.target_type = audit_rows.target_type)
               and (audit_rows.target_id is null or l.target_id = audit_rows.target_id)
             order by l.occurred_at desc, l.position desc, l.id desc
             limit audit_rows.page_limit) e));
end $$;
comment on function api.audit_rows is
  'One database''s part of a project''s trail, newest first, as texts: the server puts it together with the other''s. Supplement A5.';

create or replace function api.audit_row(event_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select internal.audit_json(e) from app.audit_events e where e.id = audit_row.event_id and e.scope = internal.audit_scope()))
$$;
comment on function api.audit_row is 'One change, or null when it is not in this database''s part of the trail.';

create or replace function api.audit_verify(since timestamptz default null, until timestamptz default null, after_position bigint default 0,
                                            page_limit int default 2000)
returns api.reply
language plpgsql stable as $$
declare
  own_scope constant uuid := internal.audit_scope();
  counted bigint;
  last_seen bigint;
  broken json;
  is_over boolean;
begin
  with chosen as materialized (
    select e as event, e.position as at
      from app.audit_events e
     where e.scope = own_scope and e.position > audit_verify.after_position
       and (audit_verify.since is null or e.occurred_at >= audit_verify.since)
       and (audit_verify.until is null or e.occurred_at < audit_verify.until)
     order by e.position
     limit audit_verify.page_limit
  ), neighbours as (
    select c.event, c.at, lag((c.event).hash) over by_position as hash_before, lag(c.at) over by_position as position_before
      from chosen c
    window by_position as (order by c.at)
  ), expected as (
    select n.event, n.at, m.opening_hash,
           case when n.position_before = n.at - 1 then n.hash_before
                else (select p.hash from app.audit_events p where p.scope = own_scope and p.position = n.at - 1) end as hash_before
      from neighbours n
      -- the first of a month leans on what the month before ended with, and that is kept when the month is not
      left join app.audit_chains m on m.scope = own_scope and m.opening_position = n.at - 1
  ), judged as (
    select x.event, x.at,
           coalesce(x.hash_before, x.opening_hash) is not null
           and (x.hash_before is null or x.opening_hash is null or x.hash_before = x.opening_hash)
           and (x.event).hash = internal.audit_hash(coalesce(x.opening_hash, x.hash_before), x.event) as is_whole
      from expected x
  )
  select count(*), max(j.at), (array_agg(json_build_object('id', (j.event).id, 'key', internal.audit_key(j.event)) order by j.at) filter (where not j.is_whole))[1]
    into counted, last_seen, broken
    from judged j;
  is_over := counted < audit_verify.page_limit;
  return internal.reply(200, json_build_object(
    'checked', counted, 'last_position', last_seen, 'is_over', is_over,
    'first_broken', broken,
    -- rows that were taken off the end leave nothing behind that could be broken
    'is_cut', is_over and exists (
      select from app.audit_chains m
       where m.scope = own_scope
         and (audit_verify.since is null or m.last_at >= audit_verify.since)
         and (audit_verify.until is null or m.last_at < audit_verify.until)
         and m.month >= internal.audit_oldest_month()
         and not exists (select from app.audit_events e
                          where e.scope = own_scope and e.position = m.last_position and e.occurred_at = m.last_at
                            and e.hash = m.last_hash))));
end $$;
comment on function api.audit_verify is
  'Counts the hashes of one database''s part of a trail again, some rows at a time: what was altered, taken out or cut off shows. Supplement A5.';

create or replace function internal.audit_oldest_month() returns date
language sql stable as $$
  select date_trunc('month', (internal.now() - interval '400 days') at time zone 'UTC')::date
$$;
comment on function internal.audit_oldest_month is 'The oldest month that still has a day of the last 400: older ones are dropped.';

create or replace function internal.make_audit_partition(month date) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  first constant timestamptz := date_trunc('month', make_audit_partition.month)::timestamp at time zone 'UTC';
  next constant timestamptz := (date_trunc('month', make_audit_partition.month) + interval '1 month') at time zone 'UTC';
  partition constant text := 'audit_events_' || to_char(make_audit_partition.month, 'YYYYMM');
begin
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  -- given up before Postgres looks for deadlocks (after a second), so that no request is ever the one that is broken off
  perform set_config('lock_timeout', '500ms', true);
  lock table app.audit_events in share update exclusive mode;
  lock table app.audit_events_default in access exclusive mode;
  -- another may have made it while this one waited
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  execute format('create table app.%I (like app.audit_events including all)', partition);
  execute format('alter table app.%I enable row level security', partition);
  execute format('with moved as (delete from app.audit_events_default e where e.occurred_at >= $1 and e.occurred_at < $2 returning e.*)
                  insert into app.%I select m.* from moved m', partition) using first, next;
  execute format('alter table app.audit_events attach partition app.%I for values from (%L) to (%L)', partition, first, next);
end $$;
comment on function internal.make_audit_partition is
  'Makes the partition of a month, and moves into it what came before it was made. Locks the trail against writers for a moment.';

create or replace function internal.forget_audit() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  oldest constant date := internal.audit_oldest_month();
  partition text;
begin
  perform set_config('lock_timeout', '500ms', true);
  for partition in
    select c.relname
      from pg_catalog.pg_inherits i
      join pg_catalog.pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'app.audit_events'::regclass and c.relname ~ '^audit_events_\d{6}$'
       and to_date(right(c.relname, 6), 'YYYYMM') < oldest
     order by c.relname
  loop
    execute format('drop table app.%I', partition);
  end loop;
  delete from app.audit_events_default e where e.occurred_at < oldest::timestamp at time zone 'UTC';
  -- the newest of each trail stays, however old: the next change leans on it
  delete from app.audit_chains m
   where m.month < oldest
     and exists (select from app.audit_chains later where later.scope = m.scope and later.month > m.month);
end $$;
comment on function internal.forget_audit is 'Drops the months that have no day of the last 400.';

create or replace function api.audit_maintain() returns api.reply
language plpgsql volatile as $$
begin
  for months in 0..2 loop
    perform internal.make_audit_partition((date_trunc('month', internal.now() at time zone 'UTC') + make_interval(months => months))::date);
  end loop;
  perform internal.forget_audit();
  return internal.reply(200, 'true');
end $$;
comment on function api.audit_maintain is
  'Daily, and when a project is made: partitions for this month and the next two; those older than 400 days are dropped.';
