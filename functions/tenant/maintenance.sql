-- What has outlived its use, forgotten once a day. Whatever still counts is kept: a day late is never wrong.
create or replace function api.tenant_forget() returns api.reply
language plpgsql volatile as $$
declare
  forget regproc;
begin
  delete from app.idempotency_keys k where k.created_at < internal.now() - interval '24 hours';
  delete from app.rate_limits r where r.started_at < internal.now() - interval '2 days';
  for forget in
    select p.oid from pg_catalog.pg_proc p
     where p.pronamespace = 'internal'::regnamespace and p.pronargs = 0 and p.proname like 'forget\_\_%'
     order by p.proname
  loop
    execute format('select %s()', forget);
  end loop;
  return internal.reply(200, 'true');
end $$;
comment on function api.tenant_forget is
  'Forgets answers under an Idempotency-Key after 24 hours and limits'' windows after two days, and lets every area forget what is its own: it
   runs each function internal.forget__<area>() that there is.';
