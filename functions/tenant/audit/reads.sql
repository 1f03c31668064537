-- Reads that leave a row: what a machine takes out of a project, or reads of one person.
create or replace function api.audit_read(area text, operation text, target_id text default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' or internal.actor() ->> 'type' is distinct from 'operator_token' then
    raise exception 'reads of operator tokens are recorded, not of %',
      coalesce(internal.actor() ->> 'type', internal.caller());
  end if;
  perform internal.audit(audit_read.area || '.read', audit_read.area, audit_read.target_id,
                         json_build_object('operation', json_build_array(null, audit_read.operation)));
  return internal.reply(200, 'true');
end $$;
comment on function api.audit_read is
  'For the server: records that an operator token reads an export or one user''s record, by the operation that it
   called. What cannot be recorded is not sent.';
