-- The audit trail: a trigger on each table that administrators change writes the row, so no route can forget it.
create or replace function internal.audit_hash(previous text, event app.audit_events) returns text
language sql stable as $$
  -- a list as JSON, so that no text can pass from one field into the next unseen
  select encode(sha256(convert_to(coalesce(audit_hash.previous, '') || json_build_array(
    (audit_hash.event).id, internal.iso((audit_hash.event).occurred_at), (audit_hash.event).actor, (audit_hash.event).action,
    (audit_hash.event).target_type, (audit_hash.event).target_id, (audit_hash.event).changes, (audit_hash.event).ip,
    (audit_hash.event).user_agent, (audit_hash.event).request_id)::text, 'UTF8')), 'hex')
$$;
comment on function internal.audit_hash is 'sha256(hash of the row before || the row), in hex: what the row''s own hash must be.';

create or replace function internal.audit(action text, target_type text, target_id text, changes json default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  actor constant json := coalesce(internal.actor(), '{"type": "system"}');
  written app.audit_events;
begin
  -- one writer at a time: each row's hash holds the one before it
  perform pg_advisory_xact_lock(7305441003);
  written.id := internal.new_id();
  written.occurred_at := internal.now();
  written.actor := json_build_object('type', actor ->> 'type', 'id', actor ->> 'id', 'label', actor ->> 'label');
  written.action := audit.action;
  written.target_type := audit.target_type;
  written.target_id := audit.target_id;
  written.changes := audit.changes;
  written.ip := actor ->> 'ip';
  written.user_agent := actor ->> 'user_agent';
  written.request_id := actor ->> 'request_id';
  written.hash := internal.audit_hash((select e.hash from app.audit_events e order by e.position desc limit 1), written);
  insert into app.audit_events (id, occurred_at, actor, action, target_type, target_id, changes, ip, user_agent, request_id, hash)
  values (written.id, written.occurred_at, written.actor, written.action, written.target_type, written.target_id, written.changes,
          written.ip, written.user_agent, written.request_id, written.hash);
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
