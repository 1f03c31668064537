-- The list of the audit trail: the part in one database, which the server merges with the part in the other.
create or replace function internal.audit_json(e app.audit_events) returns json
language sql stable as $$
  select json_build_object(
    'id', (audit_json.e).id, 'occurred_at', internal.iso((audit_json.e).occurred_at), 'actor', (audit_json.e).actor,
    'action', (audit_json.e).action,
    'target', json_build_object('type', (audit_json.e).target_type, 'id', (audit_json.e).target_id),
    'changes', (audit_json.e).changes, 'ip', (audit_json.e).ip, 'user_agent', (audit_json.e).user_agent,
    'request_id', (audit_json.e).request_id, 'status', (audit_json.e).status)
$$;
comment on function internal.audit_json is 'An audit row as responses show it.';

create or replace function internal.audit_key(e app.audit_events) returns text
language sql stable as $$
  select to_char((audit_key.e).occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' '
         || lpad((audit_key.e).position::text, 19, '0') || ' ' || (audit_key.e).id
$$;
comment on function internal.audit_key is
  'The sort key of an audit row in the list, as text that sorts the same in control and in the project''s own
   database.';

create or replace function api.audit_rows(page_limit int, after text default null, since timestamptz default null,
                                          until timestamptz default null, actor_id text default null,
                                          action text default null, target_type text default null,
                                          target_id text default null)
returns api.reply
language plpgsql stable as $$
declare
  own_scope constant uuid := internal.audit_scope();
  after_at constant timestamptz := split_part(audit_rows.after, ' ', 1)::timestamptz;
  after_position constant bigint := split_part(audit_rows.after, ' ', 2)::bigint;
  after_id constant uuid := split_part(audit_rows.after, ' ', 3)::uuid;
  e app.audit_events;
  line text;
  bytes bigint := 0;
  is_cut boolean := false;
  keys text[] := '{}';
  lines text[] := '{}';
begin
  for e in
    select l.*
      from app.audit_events l
     where l.scope = own_scope
       and (audit_rows.since is null or l.occurred_at >= audit_rows.since)
       and (audit_rows.until is null or l.occurred_at < audit_rows.until)
       and (after_at is null or (l.occurred_at <= after_at
                                 and (l.occurred_at, l.position, l.id) < (after_at, after_position, after_id)))
       and (audit_rows.actor_id is null or l.actor ->> 'id' = audit_rows.actor_id)
       and (audit_rows.action is null or starts_with(l.action, audit_rows.action))
       and (audit_rows.target_type is null or l.target_type = audit_rows.target_type)
       and (audit_rows.target_id is null or l.target_id = audit_rows.target_id)
     order by l.occurred_at desc, l.position desc, l.id desc
     limit audit_rows.page_limit
  loop
    -- one row at a time, so that a page of large changes is never built completely
    line := internal.audit_json(e)::text;
    bytes := bytes + octet_length(line);
    is_cut := bytes > internal.page_bytes() and cardinality(keys) > 0;
    exit when is_cut;
    keys := keys || internal.audit_key(e);
    lines := lines || line;
  end loop;
  return internal.reply(200, (
    select coalesce(json_agg(json_build_object('key', r.key, 'event', r.event,
                                               'is_cut', is_cut and r.n = cardinality(keys)) order by r.n), '[]')
      from unnest(keys, lines) with ordinality as r (key, event, n)));
end $$;
comment on function api.audit_rows is
  'One database''s part of a project''s trail, newest first, as texts, which the server merges with that of the other
   database. Of more than 8 MB it returns the first rows that fit, with is_cut on the last of them.';

create or replace function api.audit_row(event_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select internal.audit_json(e) from app.audit_events e
     where e.id = audit_row.event_id and e.scope = internal.audit_scope()))
$$;
comment on function api.audit_row is 'One audit row, or null when it is not in this database''s part of the trail.';
