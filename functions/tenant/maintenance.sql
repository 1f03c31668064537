-- Retention: expired rows are deleted once a day. No function depends on the deletion: a day late is never wrong.
create or replace function api.tenant_purge() returns api.reply
language plpgsql volatile as $$
declare
  forget regproc;
begin
  delete from app.idempotency_keys k where k.created_at < internal.now() - interval '24 hours';
  delete from app.rate_limits r where r.started_at < internal.now() - interval '2 days';
  for forget in
    select p.oid from pg_catalog.pg_proc p
     where p.pronamespace = 'internal'::regnamespace and p.pronargs = 0 and p.proname like 'purge\_\_%'
     order by p.proname
  loop
    execute format('select %s()', forget);
  end loop;
  return internal.reply(200, 'true');
end $$;
comment on function api.tenant_purge is
  'Deletes stored responses of Idempotency-Keys after 24 hours and windows of rate limits after two days, and expired rows of every area: it
   runs each function internal.purge__<area>() that there is.';
