-- Roles belong to the cluster, not to a database. Run in the maintenance database, under the bootstrap lock, by the
-- role of DATABASE_URL: a superuser, or one with CREATEDB and CREATEROLE. Safe to run again. The setting
-- trellis.verifiers holds {role: SCRAM verifier}: one login for each trust level, which may become exactly that role
-- (PostgREST's: one of three) and is powerless by itself.
do $$
declare
  role_name text;
  login_name text;
  verifier text;
  place text;
  is_16_or_newer constant boolean := current_setting('server_version_num')::int >= 160000;
begin
  if not exists (select from pg_roles where rolname = 'trellis_owner') then
    create role trellis_owner nologin noinherit;
  end if;
  -- the role that bootstraps must be able to own and drop what trellis_owner owns
  if not pg_has_role(current_user, 'trellis_owner', 'member')
     or (is_16_or_newer and not exists (
       select from pg_roles where rolname = current_user and rolsuper
     )) then
    execute format('grant trellis_owner to %I', current_user);
  end if;

  for role_name, verifier in
    select key, value from json_each_text(current_setting('trellis.verifiers')::json)
  loop
    login_name := 'login_' || role_name;
    if not exists (select from pg_roles where rolname = role_name) then
      execute format('create role %I nologin noinherit', role_name);
    end if;
    if not exists (select from pg_roles where rolname = login_name) then
      execute format('create role %I login noinherit', login_name);
    end if;
    execute format('alter role %I password %L', login_name, verifier);
    -- every login may change its own settings, which outlive its connection: a statement_timeout of 1 ms would stop all
    -- projects
    execute format('alter role %I reset all', login_name);
    for place in
      select d.datname
        from pg_db_role_setting s
        join pg_database d on d.oid = s.setdatabase
       where s.setrole = login_name::regrole
    loop
      execute format('alter role %I in database %I reset all', login_name, place);
    end loop;
    -- a time that is sent without a zone is UTC, whatever the server's own zone is
    execute format('alter role %I set timezone to %L', login_name, 'UTC');
    -- calls take milliseconds: compiling a plan that only looks dear takes longer than running it
    execute format('alter role %I set jit to off', login_name);
    -- one call has one core: with parallel workers the sort of one user would take those of all others
    execute format('alter role %I set max_parallel_workers_per_gather to 0', login_name);
    -- people write its SQL: pg_stat_activity shows a login the texts of its own sessions in the databases of other
    -- projects, and a sort could fill the disk. Both are a superuser's to set, and nobody else's to take back
    if login_name = 'login_app_dashboard' then
      begin
        execute format('alter role %I set track_activities to off', login_name);
        execute format('alter role %I set temp_file_limit to %L', login_name, '1GB');
      exception when insufficient_privilege then
        null;
      end;
    end if;
    if is_16_or_newer then
      execute format('grant %I to %I with inherit false, set true', role_name, login_name);
    else
      execute format('grant %I to %I', role_name, login_name);
    end if;
    -- the role that drops a database terminates the connections of these logins to it
    if not exists (select from pg_roles where rolname = current_user and rolsuper) then
      execute format(case when is_16_or_newer then 'grant %I to %I with inherit true, set false'
                          else 'grant %I to %I' end,
                     login_name, current_user);
    end if;
  end loop;

  -- PostgREST has one login and three kinds of callers: users, as app_rest, which has what app_user has and what the
  -- views of schema rest need, server keys, and client keys without a session
  if exists (select from json_each(current_setting('trellis.verifiers')::json) v where v.key = 'app_rest') then
    if is_16_or_newer then
      -- by execute: Postgres 15 would not read these words
      execute 'grant app_user to app_rest with inherit true, set false';
      execute 'grant app_server, app_anon to login_app_rest with inherit false, set true';
    else
      alter role app_rest inherit;
      grant app_user to app_rest;
      grant app_server, app_anon to login_app_rest;
    end if;
  end if;
end $$;
