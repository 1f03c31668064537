-- The trail of a project's own database, for the webhooks of the control plane.
create or replace function api.audit_sealed_since(since timestamptz, after bigint, most int) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  own_scope constant uuid := internal.audit_scope();
  -- positions have no gaps, and the times of seals never go back
  former constant bigint := coalesce(audit_sealed_since.after, (
    select s.position from app.audit_seals s
     where s.scope = own_scope and s.sealed_at < audit_sealed_since.since
     order by s.position desc limit 1), 0);
begin
  perform internal.check_caller('worker', 'trails are reported by workers');
  return internal.reply(200, (
    select json_build_object('events', coalesce(
      json_agg(t.event order by t.position) filter (where t.event is not null), '[]'),
                             'last', coalesce(max(t.position), former), 'is_over', count(*) < audit_sealed_since.most)
      from (select s.position, case when e.id is not null then internal.audit_json(e) end as event
              from app.audit_seals s
              left join app.audit_events e on e.id = s.event_id and e.occurred_at = s.occurred_at
             where s.scope = own_scope and s.position > former
             order by s.position
             limit audit_sealed_since.most) t));
end $$;
comment on function api.audit_sealed_since is
  'For workers: sealed rows of the trail after a position, or since a time where that is null: {events, last, is_over};
   last is the position of the last one.';
