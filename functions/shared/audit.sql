-- The audit trail: a trigger on each table that administrators change writes the row, so no route can forget it.
create or replace function internal.audit(action text, target_type text, target_id text, changes json default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  actor json := coalesce(internal.actor(), '{"type": "system"}');
  previous text;
  written app.audit_events;
begin
  -- one writer at a time: each row's hash holds the one before it
  perform pg_advisory_xact_lock(7305441003);
  select e.hash into previous from app.audit_events e order by e.position desc limit 1;
  written.id := internal.new_id();
  written.occurred_at := internal.now();
  written.actor := json_build_object('type', actor ->> 'type', 'id', actor ->> 'id', 'label', actor ->> 'label');
  written.hash := encode(sha256(convert_to(
    concat_ws('|', coalesce(previous, ''), written.id, internal.iso(written.occurred_at), written.actor::text, audit.action,
              audit.target_type, audit.target_id, audit.changes::text), 'UTF8')), 'hex');
  insert into app.audit_events (id, occurred_at, actor, action, target_type, target_id, changes, ip, user_agent, request_id, hash)
  values (written.id, written.occurred_at, written.actor, audit.action, audit.target_type, audit.target_id, audit.changes,
          actor ->> 'ip', actor ->> 'user_agent', actor ->> 'request_id', written.hash);
end $$;
comment on function internal.audit is
  'Writes one audit row, chained to the one before by its hash. Who acted comes from the call''s claims. Serialises its callers.';

create or replace function internal.tg_audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- trigger arguments: the area, then columns whose values are never written out
  area constant text := tg_argv[0];
  secret constant text[] := tg_argv[1:];
  old_row constant jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) else '{}' end;
  new_row constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) else '{}' end;
  changed json;
begin
  if internal.caller() <> 'developer' then
    return null;
  end if;
  select json_object_agg(c.key, case when c.key = any (secret) then '["[redacted]", "[redacted]"]'::json
                                     else json_build_array(old_row -> c.key, new_row -> c.key) end order by c.key)
    into changed
    from jsonb_object_keys(old_row || new_row) as c (key)
   where c.key not in ('updated_at', 'created_at') and old_row -> c.key is distinct from new_row -> c.key;
  if tg_op = 'UPDATE' and changed is null then
    return null;
  end if;
  perform internal.audit(
    area || case tg_op when 'INSERT' then '.create' when 'UPDATE' then '.update' else '.delete' end,
    area, coalesce(new_row ->> 'id', old_row ->> 'id'), coalesce(changed, '{}'));
  return null;
end $$;
comment on function internal.tg_audit is
  'After-row trigger: create trigger ... execute function internal.tg_audit(''streaks'', ''a_secret_column''). Acts only for administrators.';
