-- Run in each of our databases. Takes from PUBLIC the built-in functions with which one login could harm another: large
-- objects belong to no table and no policy, sessions of the same login in other databases could be ended, an advisory
-- lock of a session outlives its request. The role of dashboards, whose statements people write, takes no advisory lock
-- at all: a query that takes one for each of many numbers fills the table of locks, which all databases of a server
-- share, and then nobody's transaction can write. Ours to take only where the session's user is a superuser; elsewhere
-- db:status says so.
do $$
declare
  harmful regprocedure;
  is_for_requests boolean;
  serving constant text := (
    select string_agg(quote_ident(r.rolname), ', ')
      from pg_catalog.pg_roles r
     where r.rolname in ('app_anon', 'app_user', 'app_server', 'app_admin', 'app_auth', 'app_worker', 'app_rest',
                         'control_anon', 'control_developer', 'control_auth', 'control_worker'));
begin
  if not (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = session_user) then
    return;
  end if;
  set local role none;
  for harmful, is_for_requests in
    select p.oid::regprocedure, p.proname ~ '^pg_(try_)?advisory_xact_'
      from pg_catalog.pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace
       and (p.proname like 'lo\_%'
            or p.proname in ('loread', 'lowrite', 'pg_terminate_backend', 'pg_cancel_backend',
                             'pg_logical_emit_message', 'pg_export_snapshot',
                             'pg_advisory_lock', 'pg_advisory_lock_shared', 'pg_try_advisory_lock',
                             'pg_try_advisory_lock_shared', 'pg_advisory_xact_lock', 'pg_advisory_xact_lock_shared',
                             'pg_try_advisory_xact_lock', 'pg_try_advisory_xact_lock_shared'))
       and has_function_privilege('public', p.oid, 'execute')
  loop
    execute format('revoke execute on function %s from public', harmful);
    execute format('grant execute on function %s to %s', harmful,
                   concat_ws(', ', 'trellis_owner', case when is_for_requests then serving end));
  end loop;
end $$;
