-- Run in each of our databases. Takes from PUBLIC the built-in functions with which one login could harm another: large
-- objects belong to no table and no policy, sessions of the same login in other databases could be ended, an advisory
-- lock of a session outlives its request. Ours to take only where the session's user is a superuser; elsewhere
-- db:status says so.
do $$
declare
  harmful regprocedure;
begin
  if not (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = session_user) then
    return;
  end if;
  set local role none;
  for harmful in
    select p.oid::regprocedure
      from pg_catalog.pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace
       and (p.proname like 'lo\_%'
            or p.proname in ('loread', 'lowrite', 'pg_terminate_backend', 'pg_cancel_backend',
                             'pg_logical_emit_message',
                             'pg_advisory_lock', 'pg_advisory_lock_shared', 'pg_try_advisory_lock',
                             'pg_try_advisory_lock_shared'))
       and has_function_privilege('public', p.oid, 'execute')
  loop
    execute format('revoke execute on function %s from public', harmful);
    execute format('grant execute on function %s to trellis_owner', harmful);
  end loop;
end $$;
