-- The audit trail: a trigger on each table that administrators change writes the row, so no route can omit it. Writers
-- do not wait for the hash chain: see seal.sql.
create or replace function internal.audit_canonical(event app.audit_events) returns text
language sql stable as $$
  -- a JSON array, so that moving text from one field into the next changes the result
  select json_build_array(
    (audit_canonical.event).id, (audit_canonical.event).scope, (audit_canonical.event).position,
    to_char((audit_canonical.event).occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    (audit_canonical.event).actor,
    (audit_canonical.event).action, (audit_canonical.event).target_type, (audit_canonical.event).target_id,
    (audit_canonical.event).changes,
    (audit_canonical.event).ip, (audit_canonical.event).user_agent, (audit_canonical.event).request_id,
    (audit_canonical.event).status)::text
$$;
comment on function internal.audit_canonical is 'The canonical text of an audit row, which is hashed.';

create or replace function internal.audit_digest(event app.audit_events) returns bytea
language sql stable as $$
  select sha256(convert_to(internal.audit_canonical(audit_digest.event), 'UTF8'))
$$;
comment on function internal.audit_digest is 'The SHA-256 of an audit row as it was written, which its seal contains.';

create or replace function internal.audit_many(actions text[], target_type text, target_ids text[], changes json[],
                                               statuses int[], scopes uuid[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  actor constant json := coalesce(internal.actor(), '{"type": "system"}');
  due_at constant text := internal.iso(internal.now());
begin
  with written as (
    insert into app.audit_events as e
      (id, scope, position, occurred_at, actor, action, target_type, target_id, changes, ip, user_agent, request_id,
       status)
    select internal.new_id(), w.scope, nextval('app.audit_positions'), internal.now(),
           json_build_object('type', actor ->> 'type', 'id', actor ->> 'id', 'label', actor ->> 'label'), w.action,
           audit_many.target_type, w.target_id,
           w.changes, actor ->> 'ip', actor ->> 'user_agent', actor ->> 'request_id', w.status
      from unnest(audit_many.actions, audit_many.target_ids, audit_many.changes, audit_many.statuses, audit_many.scopes)
        as w (action, target_id, changes, status, scope)
    returning e as event
  )
  insert into app.audit_digests (position, event_id, scope, occurred_at, digest)
  select (w.event).position, (w.event).id, (w.event).scope, (w.event).occurred_at, internal.audit_digest(w.event)
    from written w;
  -- wakes the sealer without a row of the outbox: all writers would wait for that one row
  if current_setting('app.due_at', true) is distinct from due_at then
    perform internal.return_setting('app.due_at', due_at);
  end if;
end $$;
comment on function internal.audit_many is
  'Writes audit rows, in the order of the arrays, each with its digest, which the sealer picks up. The actor comes from
   the call''s claims. Locks nothing. Granted to nobody.';

create or replace function internal.audit(action text, target_type text, target_id text, changes json default '{}',
                                          status int default 200, scope uuid default null)
returns void
language sql volatile security definer set search_path = '' as $$
  select internal.audit_many(array[audit.action], audit.target_type, array[audit.target_id], array[audit.changes],
                             array[audit.status],
                             array[coalesce(audit.scope, internal.audit_scope())])
$$;
comment on function internal.audit is
  'Writes one audit row; status is 201 for a creation, 202 for work that was started, else 200. Locks nothing. Granted
   to nobody.';

create or replace function internal.audit_act(action text, target_type text, target_id text, changes json, status int)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() = 'developer' then
    perform internal.audit(audit_act.action, audit_act.target_type, audit_act.target_id, audit_act.changes,
                           audit_act.status);
  end if;
end $$;
comment on function internal.audit_act is
  'internal.audit for a developer''s action that no audit trigger of a table records; does nothing for other callers.';

create or replace function internal.audit_change(area text, secret text[], old_row jsonb, new_row jsonb)
returns table (action text, target_id text, changes json, status int, scope uuid)
language sql stable as $$
  select audit_change.area || case
           when audit_change.old_row = '{}' then '.create'
           -- a row that is marked as deleted counts as deleted
           when audit_change.new_row = '{}'
             or audit_change.old_row ->> 'deleted_at' is null
             and audit_change.new_row ->> 'deleted_at' is not null then '.delete'
           else '.update' end,
         coalesce(audit_change.new_row ->> 'id', audit_change.old_row ->> 'id'), coalesce(d.changes, '{}'),
         case when audit_change.old_row = '{}' then 201 else 200 end,
         internal.audit_scope(audit_change.area, audit_change.old_row || audit_change.new_row)
    from (
      -- in addition to the declared columns: every column with the name of a secret, so that a column that is added
      -- later is redacted too
      select (select json_object_agg(c.key, case when c.key = any (audit_change.secret)
                                                 or c.key ~ '(secret|password|token|private|sealed|_hash$)'
                                                 then '["[redacted]", "[redacted]"]'::json
                                                 else json_build_array(audit_change.old_row -> c.key,
                                                                       audit_change.new_row -> c.key) end
                                                                         order by c.key)
                -- two rows of one table, which have the same columns, or one and none
                from jsonb_each(case when audit_change.new_row = '{}' then audit_change.old_row
                                     else audit_change.new_row end) as c (key, value)
               where audit_change.old_row -> c.key is distinct
                 from case when audit_change.new_row <> '{}' then c.value end
                 and c.key not in ('updated_at', 'created_at', 'last_seen_at')) as changes
      ) d
   where d.changes is not null or audit_change.old_row = '{}' or audit_change.new_row = '{}'
$$;
comment on function internal.audit_change is
  'The action, target and changes of an audit row for a changed row; no row when nothing changed. old_row is {} for an
   insert, new_row is {} for a delete. Values of the columns in secret are redacted.';

create or replace function internal.tg_audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' then
    return null;
  end if;
  -- trigger arguments: the area, then columns whose values are redacted
  perform internal.audit(a.action, tg_argv[0], a.target_id, a.changes, a.status, a.scope)
     from internal.audit_change(tg_argv[0], tg_argv[1:], case when tg_op <> 'INSERT' then to_jsonb(old) else '{}' end,
                                case when tg_op <> 'DELETE' then to_jsonb(new) else '{}' end) a;
  return null;
end $$;
comment on function internal.tg_audit is
  'After-row trigger: create trigger ... execute function internal.tg_audit(''streaks'', ''a_secret_column''). Acts only
   for administrators.';

create or replace function internal.audit_declare(audited regclass, area text, variadic secret text[] default '{}')
returns void
language plpgsql volatile as $$
begin
  execute format('create or replace trigger %I after insert or update or delete on %s for each row execute function '
                 'internal.tg_audit(%s)',
                 'tg_' || (select c.relname from pg_catalog.pg_class c
                            where c.oid = audit_declare.audited) || '__audit', audit_declare.audited,
                 (select string_agg(quote_literal(a.name), ', ' order by a.n)
                    from unnest(audit_declare.area || audit_declare.secret) with ordinality a (name, n)));
end $$;
comment on function internal.audit_declare is
  'For files of functions: puts the trigger internal.tg_audit on a table, for inserts, updates and deletions; values of
   the columns in secret are redacted. Granted to nobody.';

create or replace function internal.tg_statement__audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  actions text[];
  target_ids text[];
  changes json[];
  statuses int[];
  scopes uuid[];
begin
  if internal.caller() <> 'developer' then
    return null;
  end if;
  if tg_op = 'INSERT' then
    select array_agg(a.action), array_agg(a.target_id), array_agg(a.changes), array_agg(a.status), array_agg(a.scope)
      into actions, target_ids, changes, statuses, scopes
      from (select '{}'::jsonb as old_row, to_jsonb(n) as new_row from new_rows n offset 0) r
     cross join lateral internal.audit_change(tg_argv[0], tg_argv[1:], r.old_row, r.new_row) a;
  elsif tg_op = 'DELETE' then
    select array_agg(a.action), array_agg(a.target_id), array_agg(a.changes), array_agg(a.status), array_agg(a.scope)
      into actions, target_ids, changes, statuses, scopes
      from (select to_jsonb(o) as old_row, '{}'::jsonb as new_row from old_rows o offset 0) r
     cross join lateral internal.audit_change(tg_argv[0], tg_argv[1:], r.old_row, r.new_row) a;
  else
    select array_agg(a.action), array_agg(a.target_id), array_agg(a.changes), array_agg(a.status), array_agg(a.scope)
      into actions, target_ids, changes, statuses, scopes
      from (select to_jsonb(o) as old_row, to_jsonb(n) as new_row from old_rows o join new_rows n on n.id = o.id
            offset 0) r
     cross join lateral internal.audit_change(tg_argv[0], tg_argv[1:], r.old_row, r.new_row) a;
  end if;
  if actions is not null then
    perform internal.audit_many(actions, tg_argv[0], target_ids, changes, statuses, scopes);
  end if;
  return null;
end $$;
comment on function internal.tg_statement__audit is
  'As tg_audit, for tables where one statement changes many rows: an after-statement trigger for each of insert, update
   and delete, with the transition tables old_rows and new_rows. The table must have a column id that never changes.';
