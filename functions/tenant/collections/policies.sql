-- Policies and grants of generated tables. They belong to the tenant: no policy file contains them, the loader does not
-- manage them, and internal.collections_regenerate replaces those of an older generator.

create or replace function internal.collection_generator() returns int
language sql immutable parallel safe
return 6;
comment on function internal.collection_generator is
  'The version of internal.collection_policies_sql, internal.collection_size_sql, internal.collection_trigger_sql and
   internal.collection_publish_sql. If you change their output, increase it here and in
   sql/seeds/tenant/collections.sql.';

create or replace function internal.collection_condition(policy text, owner_scope text) returns text
language sql immutable parallel safe as $$
  select case
    when collection_condition.policy in ('public', 'authenticated') then 'true'
    when collection_condition.policy like 'role:%' and collection_condition.owner_scope = 'user'
    then format('(select internal.has_role(%L))', substr(collection_condition.policy, 6))
    when collection_condition.policy like 'role:%'
    then format('group_id in (select internal.my_role_group_ids(%L))', substr(collection_condition.policy, 6))
    when collection_condition.policy = 'owner'
      and collection_condition.owner_scope = 'user' then 'user_id = (select internal.user_id())'
    when collection_condition.policy = 'owner'
    then 'user_id = (select internal.user_id()) and group_id in (select internal.my_group_ids(''viewer''))'
    else format('group_id in (select internal.my_group_ids(%L))',
                coalesce(nullif(split_part(collection_condition.policy, ':', 2), ''), 'viewer'))
  end
$$;
comment on function internal.collection_condition is
  'The condition of a read or write policy on a row. Membership is evaluated once a statement.';

create or replace function internal.collection_write_condition(c app.collections) returns text
language sql immutable parallel safe as $$
  select case
    -- the author of a group's row may change it while they are a member; viewers can only read
    when (collection_write_condition.c).owner_scope = 'group' and (collection_write_condition.c).write_policy = 'owner'
    then 'user_id = (select internal.user_id()) and group_id in (select internal.my_group_ids(''member''))'
    else internal.collection_condition((collection_write_condition.c).write_policy,
                                       (collection_write_condition.c).owner_scope)
  end
$$;
comment on function internal.collection_write_condition is 'The condition of the write policy on a row.';

create or replace function internal.collection_policies_sql(c app.collections, column_names text[]) returns setof text
language sql stable as $$
  with conditions as (
    select internal.collection_condition((collection_policies_sql.c).read_policy,
                                         (collection_policies_sql.c).owner_scope) as may_read,
           internal.collection_write_condition(collection_policies_sql.c) as may_write
  ), wanted as (
    select 1 as n, 'users read what the read policy shows them' as name, 'select' as command, 'app_user' as role,
           may_read as shown, null as kept from conditions
    union all
    select 2, 'users add rows of their own', 'insert', 'app_user', null,
           case when (collection_policies_sql.c).owner_scope = 'user'
                and (collection_policies_sql.c).write_policy not like 'role:%' then
                  'user_id = (select internal.user_id())'
                when (collection_policies_sql.c).write_policy = 'owner' then may_write
                else 'user_id = (select internal.user_id()) and ' || may_write end from conditions
    union all
    -- a write never reaches a row that the read policy hides
    select 3, 'users change what the write policy lets them', 'update', 'app_user',
           case when may_write = may_read or may_read = 'true' then may_write
                when may_write = 'true' then may_read
                else may_read || ' and ' || may_write end, null from conditions
    union all
    select 4, 'server keys read every row', 'select', 'app_server', 'true', null
    union all
    select 5, 'server keys add rows', 'insert', 'app_server', null, 'true'
    union all
    select 6, 'server keys change every row', 'update', 'app_server', 'true', null
    union all
    select 7, 'administrators read every row', 'select', 'app_admin', 'true', null
    union all
    select 8, 'administrators add rows', 'insert', 'app_admin', null, 'true'
    union all
    select 9, 'administrators change every row', 'update', 'app_admin', 'true', null
    union all
    select 10, 'administrators delete rows', 'delete', 'app_admin', 'true', null
    union all
    select 11, 'dashboards read every row', 'select', 'app_dashboard', 'true', null
    union all
    select 12, 'callers without a session read what everybody may', 'select', 'app_anon', 'deleted_at is null', null
     where (collection_policies_sql.c).read_policy = 'public'
  )
  select s.statement
    from (
      select 0 as n, 0 as part, format('drop policy %I on collections.%I', p.polname,
                                       (collection_policies_sql.c).name) as statement
        from pg_catalog.pg_policy p
       where p.polrelid = to_regclass(format('collections.%I', (collection_policies_sql.c).name))
         and obj_description(p.oid, 'pg_policy') = 'Made by collections'
      union all
      select w.n, 1, format('create policy %I on collections.%I for %s to %s%s%s', w.name,
                            (collection_policies_sql.c).name, w.command, w.role,
                            ' using (' || w.shown || ')', ' with check (' || w.kept || ')')
        from wanted w
      union all
      select w.n, 2, format('comment on policy %I on collections.%I is ''Made by collections''', w.name,
                            (collection_policies_sql.c).name)
        from wanted w
      union all
      select 20, g.n, g.statement
        from internal.collection_grants_sql(collection_policies_sql.c,
                                            collection_policies_sql.column_names) with ordinality as g (statement, n)
    ) as s
   order by s.n, s.part
$$;
comment on function internal.collection_policies_sql is
  'The statements that bring a table''s policies and grants to its definition. A DBA''s own policies are not changed:
   ours are marked by a comment.';

create or replace function internal.collection_grants_sql(c app.collections, column_names text[]) returns setof text
language sql stable as $$
  -- users write the developer's columns; of the server-managed ones only the initial values of a row and its deletion
  -- mark, whose value the stamp trigger sets
  select format('grant select on collections.%I to app_user, app_server, app_admin, app_dashboard',
                (collection_grants_sql.c).name)
  union all
  select format('grant insert (%s) on collections.%I to app_user', string_agg(quote_ident(w.name), ', ' order by w.n),
                (collection_grants_sql.c).name)
    from (select 'group_id' as name, 0 as n where (collection_grants_sql.c).owner_scope = 'group'
          union all
          select k.name, k.n from unnest(collection_grants_sql.column_names) with ordinality as k (name, n)) as w
  having count(*) > 0
  union all
  select format('grant update (%s) on collections.%I to app_user',
                (select string_agg(quote_ident(k.name), ', ' order by k.n)
                   from unnest(collection_grants_sql.column_names || array['deleted_at']) with ordinality as k (name,
                                        n)), (collection_grants_sql.c).name)
  union all
  select format('grant insert, update on collections.%I to app_server', (collection_grants_sql.c).name)
  union all
  select format('grant insert, update, delete on collections.%I to app_admin', (collection_grants_sql.c).name)
  union all
  -- the project's setting anonymous_reads decides whether anybody comes without a session
  select format('grant select on collections.%I to app_anon', (collection_grants_sql.c).name)
   where (collection_grants_sql.c).read_policy = 'public'
  union all
  select format('revoke select on collections.%I from app_anon', (collection_grants_sql.c).name)
   where (collection_grants_sql.c).read_policy <> 'public'
     and has_table_privilege('app_anon', to_regclass(format('collections.%I', (collection_grants_sql.c).name)),
                             'select')
$$;
comment on function internal.collection_grants_sql is
  'The grants on a collection''s table. Columns that nobody may write are in none.';

create or replace function internal.collections_regenerate(generator int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.collections;
  statement text;
  made int := 0;
begin
  if collections_regenerate.generator <> internal.collection_generator() then
    raise exception 'the seed asks for generator %, the functions are of %', collections_regenerate.generator,
      internal.collection_generator();
  end if;
  for c in select k.* from app.collections k where k.generator <> collections_regenerate.generator order by k.name loop
    for statement in
      select s from internal.collection_policies_sql(c, internal.collection_column_names(c.id)) as s
      union all
      select t from internal.collection_size_sql(c.name, internal.collection_columns_whole(c.id)) as t
      union all
      select internal.collection_publish_sql(c.name)
      union all
      select t from internal.collection_trigger_sql(c.name, internal.collection_reference_names(c.id)) as t
    loop
      execute statement;
    end loop;
    update app.collections k set generator = collections_regenerate.generator where k.id = c.id;
    made := made + 1;
  end loop;
  return made;
end $$;
comment on function internal.collections_regenerate is
  'Replaces the policies, grants and rules of every collection that an older generator created; returns how many. Locks
   their tables. Granted to nobody.';

create or replace function internal.collection_column_names(collection_id uuid) returns text[]
language sql stable as $$
  select coalesce(array_agg(k.name order by k.position), '{}') from app.collection_columns k
   where k.collection_id = collection_column_names.collection_id
$$;
comment on function internal.collection_column_names is 'The developer''s columns of a collection, in their order.';
