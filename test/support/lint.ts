import { bodies, definerRule } from '#fleet/checks/definers.ts'
import { policyRules } from '#fleet/checks/policies.ts'

/** One rule of the house's SQL: a query that finds offenders, and a statement that makes one, so that the rule is seen to catch it. */
export type Rule = {
  readonly name: string
  /** Answers rows with one column, offender. */
  readonly find: string
  readonly bad: string
  /** Only tenants, or only control, have what the rule is about. */
  readonly only?: 'tenant' | 'control'
}

const ours = `('app', 'api', 'internal', 'collections')`
const code = `('api', 'internal')`

export const rules: readonly Rule[] = [
  {
    name: 'every table is under row-level security',
    find: `select c.oid::regclass::text as offender from pg_class c
            where c.relnamespace::regnamespace::text in ${ours} and c.relkind in ('r', 'p') and not c.relrowsecurity`,
    bad: 'create table app.lint_bad (id int)',
  },
  {
    ...policyRules.settings,
    bad: `create table app.lint_bad (id uuid); alter table app.lint_bad enable row level security;
          create policy "bad" on app.lint_bad for select using (id = internal.user_id())`,
  },
  {
    ...policyRules.permissive,
    bad: `create table app.lint_bad (id uuid); alter table app.lint_bad enable row level security;
          create policy "one" on app.lint_bad for select to login_lint using (true);
          create policy "two" on app.lint_bad for all to login_lint using (true)`,
  },
  {
    name: 'security definer pins its search_path to nothing',
    find: `select p.oid::regprocedure::text as offender from pg_proc p
            where p.pronamespace::regnamespace::text in ${code} and p.prosecdef and not coalesce(p.proconfig @> array['search_path=""'], false)`,
    bad: `create function internal.lint_bad() returns int language sql security definer as 'select 1'; revoke execute on function internal.lint_bad from public`,
  },
  {
    ...definerRule,
    bad: `create function api.lint_bad(app_user_id uuid) returns uuid language plpgsql security definer set search_path = '' as
          'begin perform from app.audit_events; return internal.developer_id(); end'; revoke execute on function api.lint_bad from public;
          grant execute on function api.lint_bad to login_lint`,
  },
  {
    name: 'no function may be executed by public',
    find: `select p.oid::regprocedure::text as offender from pg_proc p
            where p.pronamespace::regnamespace::text in ${code}
              and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)`,
    bad: `create function api.lint_bad() returns int language sql as 'select 1'; grant execute on function api.lint_bad to public`,
  },
  {
    name: 'every foreign key has an index that begins with its columns',
    find: `select k.conrelid::regclass || ' ' || k.conname as offender from pg_constraint k
            where k.contype = 'f' and k.conparentid = 0 and k.connamespace::regnamespace::text in ${ours}
              and not exists (select from pg_index i
                               where i.indrelid = k.conrelid
                                 -- one without the rows whose column is null has all that a key refers to
                                 and (i.indpred is null
                                      or pg_get_expr(i.indpred, i.indrelid)
                                         = (select format('(%I IS NOT NULL)', a.attname) from pg_attribute a where a.attrelid = k.conrelid and a.attnum = k.conkey[1]))
                                 and (string_to_array(i.indkey::text, ' ')::int2[])[1:cardinality(k.conkey)] @> k.conkey
                                 and k.conkey @> (string_to_array(i.indkey::text, ' ')::int2[])[1:cardinality(k.conkey)])`,
    bad: `create table app.lint_a (id int primary key); create table app.lint_bad (a int references app.lint_a on delete cascade)`,
  },
  {
    name: 'every foreign key says what happens on delete',
    find: `select k.conrelid::regclass || ' ' || k.conname as offender from pg_constraint k
            where k.contype = 'f' and k.conparentid = 0 and k.connamespace::regnamespace::text in ${ours} and k.confdeltype = 'a'`,
    bad: `create table app.lint_a (id int primary key); create table app.lint_bad (a int references app.lint_a)`,
  },
  {
    name: 'every check is named as the rule that it holds',
    find: `select k.conrelid::regclass || ' ' || k.conname as offender from pg_constraint k
            where k.contype = 'c' and k.connamespace::regnamespace::text in ${ours} and k.conname ~ '_check\\d*$'`,
    bad: 'create table app.lint_bad (a int check (a > 0))',
  },
  {
    name: 'times have zones and numbers are exact',
    find: `select a.attrelid::regclass || '.' || a.attname as offender from pg_attribute a
             join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p')
            where c.relnamespace::regnamespace::text in ('app', 'internal') and a.attnum > 0 and not a.attisdropped
              and a.atttypid::regtype::text in ('timestamp without time zone', 'time with time zone', 'real', 'double precision', 'money', 'citext')`,
    bad: 'create table app.lint_bad (at timestamp)',
  },
  {
    name: 'the clock is internal.now(), which tests can pass',
    find: `select b.name as offender from (${bodies}) b
            where b.name not like 'internal.now(%'
              and b.body ~ '(?<![a-z_.])(now\\(\\)|current_timestamp|current_date|localtimestamp|transaction_timestamp\\(|statement_timestamp\\()'`,
    bad: `create function api.lint_bad() returns timestamptz language sql as 'select now()'; revoke execute on function api.lint_bad from public`,
  },
  {
    name: 'a parameter on the right of a comparison is qualified by its function',
    find: `select b.name || ' ' || a.name as offender
             from (${bodies}) b
            cross join lateral unnest(b.proargnames) with ordinality as a (name, n)
            where a.name <> '' and (b.proargmodes is null or b.proargmodes[a.n] in ('i', 'b', 'v'))
              and b.body ~ ('(?<![:<>!=])(=|<>|<|>|<=|>=|is distinct from|@>)\\s+' || a.name || '(?![a-z0-9_.(])')`,
    bad: `create function api.lint_bad(app_user_id uuid) returns bigint language sql as
          'select count(*) from app.audit_events where id = app_user_id'; revoke execute on function api.lint_bad from public`,
  },
  {
    name: 'every function says in a comment what it does',
    find: `select p.oid::regprocedure::text as offender from pg_proc p
            where p.pronamespace::regnamespace::text in ${code} and obj_description(p.oid, 'pg_proc') is null`,
    bad: `create function api.lint_bad() returns int language sql as 'select 1'; revoke execute on function api.lint_bad from public`,
  },
  {
    name: 'every table says in a comment, or by its columns alone, what it holds: partitions and lists of words aside, names are plural',
    find: `select c.oid::regclass::text as offender from pg_class c
            where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
              and c.relname !~ 's$' and c.relname not in ('outbox', 'installation')`,
    bad: 'create table app.lint_bad (id int)',
  },
  {
    name: 'serving roles have no powers of their own, and each login may become one role (PostgREST: app_rest, a member of app_user, app_server or app_anon)',
    find: `select r.rolname as offender from pg_roles r
            where r.rolname ~ '^(login_)?(app|control)_'
              and (r.rolsuper or r.rolbypassrls or r.rolcreatedb or r.rolcreaterole or (r.rolinherit and r.rolname <> 'app_rest')
                   or (r.rolname like 'login\\_%' and (select array_agg(m.roleid::regrole::text order by m.roleid::regrole::text) from pg_auth_members m where m.member = r.oid)
                       is distinct from case r.rolname when 'login_app_rest' then '{app_anon,app_rest,app_server}' else array[substr(r.rolname, 7)] end)
                   or (r.rolname not like 'login\\_%' and (r.rolcanlogin or exists (select from pg_auth_members m where m.member = r.oid
                                                                                        and (r.rolname, m.roleid::regrole::text) <> ('app_rest', 'app_user')))))`,
    bad: 'create role app_lint_bad createdb',
  },
  {
    name: 'nobody but the owner reaches ops and the job queue',
    find: `select n.nspname || ' ' || a.grantee::regrole as offender from pg_namespace n
            cross join lateral aclexplode(n.nspacl) a
            where n.nspname in ('ops', 'graphile_worker') and a.grantee <> n.nspowner`,
    bad: 'grant usage on schema ops to login_lint',
  },
  {
    name: 'what moves value or queues work is granted to nobody',
    only: 'tenant',
    find: `select p.oid::regprocedure || ' ' || a.grantee::regrole as offender from pg_proc p
            cross join lateral aclexplode(p.proacl) a
            where p.proname in ('enqueue', 'wake', 'grant_reward', 'emit', 'emit_many', 'add_effect', 'add_effects', 'lock_users', 'set_setting', 'audit', 'add_job')
              and p.pronamespace = 'internal'::regnamespace and a.grantee <> p.proowner`,
    bad: 'grant execute on function internal.grant_reward to login_lint',
  },
  {
    name: 'a table that names a user is registered for export, reset, merge and delete, or exempt with a reason',
    only: 'tenant',
    find: `select a.attrelid::regclass || '.' || a.attname as offender
             from pg_attribute a
             join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') and not c.relispartition
            where c.relnamespace::regnamespace::text in ('app', 'collections') and not a.attisdropped
              and (a.attname in ('app_user_id', 'user_id')
                   or exists (select from pg_constraint k where k.contype = 'f' and k.conrelid = a.attrelid
                                and k.confrelid = 'app.users'::regclass and a.attnum = any (k.conkey)))
              and not exists (select from internal.user_data d
                               where d.table_name = a.attrelid::regclass::text and d.user_column = a.attname
                                 and (d.export_columns is not null or d.exempt_reason is not null))`,
    bad: 'create table app.lint_bads (app_user_id uuid references app.users on delete cascade)',
  },
  {
    name: 'each column of a registered table is exported or named as secret',
    only: 'tenant',
    find: `select d.table_name || '.' || a.attname as offender
             from internal.user_data d
             join pg_attribute a on a.attrelid = to_regclass(d.table_name) and a.attnum > 0 and not a.attisdropped
            where d.export_columns is not null and not a.attname = any (d.export_columns || d.secret_columns)
           union all
           select d.table_name || '.' || x.name from internal.user_data d
            cross join lateral unnest(d.export_columns || d.secret_columns) as x (name)
            where not exists (select from pg_attribute a where a.attrelid = to_regclass(d.table_name) and a.attname = x.name and not a.attisdropped)`,
    bad: 'alter table app.user_identities add column lint_bad text',
  },
  {
    name: 'a table that administrators change of themselves writes the audit trail',
    // rows that are made with another that is in the trail
    find: `select distinct t.id::regclass::text as offender
             from (select c.oid as id, c.relacl as acl from pg_class c
                    where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
                   union all
                   select a.attrelid, a.attacl from pg_attribute a
                     join pg_class c on c.oid = a.attrelid and c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')) t
            cross join lateral aclexplode(t.acl) a
            where a.grantee in (select r.oid from pg_roles r where r.rolname in ('app_admin', 'control_developer', 'login_lint'))
              and a.privilege_type in ('INSERT', 'UPDATE', 'DELETE')
              and t.id::regclass::text not in ('app.webhook_secrets', 'app.project_signing_keys', 'app.developer_token_secrets', 'app.collection_keys')
              -- deliveries are changed by what is asked of them, and that is in the trail
              and t.id::regclass::text <> 'app.webhook_deliveries'
              and not exists (select from pg_trigger g join pg_proc f on f.oid = g.tgfoid
                               where g.tgrelid = t.id and f.proname ~ '^tg_(.*__)?audit$')`,
    bad: `create table app.lint_bads (id int); grant insert (id) on app.lint_bads to login_lint`,
  },
  {
    name: 'the registry of user data says what is: resets and merges are known, deletes are those of the foreign keys',
    only: 'tenant',
    find: `select d.table_name || '.' || d.user_column || ': ' || p.problem as offender
             from internal.user_data d
            cross join lateral (
              select exists (select from pg_constraint k
                               join pg_attribute a on a.attrelid = k.conrelid and a.attname = d.user_column and a.attnum = any (k.conkey)
                              where k.contype = 'f' and k.conrelid = to_regclass(d.table_name)
                                and (d.on_delete not in ('cascade', 'set null')
                                     or k.confdeltype = case d.on_delete when 'cascade' then 'c' else 'n' end)) as has_key) f
            cross join lateral (values
              (to_regclass(d.table_name) is null, 'there is no such table'),
              (d.reset_section is not null and d.reset_section <> all (internal.reset_sections()),
               'reset_section is none of internal.reset_sections()'),
              (d.on_delete not in ('delete', 'cascade', 'set null'), 'on_delete is delete, cascade or set null'),
              (d.on_delete = 'delete' and f.has_key, 'on_delete is delete, and there is a foreign key'),
              (d.on_delete in ('cascade', 'set null') and not f.has_key, 'no foreign key does what on_delete says'),
              (d.table_name <> 'app.users' and d.on_merge not in ('move', 'union by source', 'keep survivor', 'end')
               and d.on_merge not like 'with %' and to_regprocedure(format('internal.%I(uuid,uuid)', 'merge__' || d.section)) is null,
               'on_merge wants a function internal.merge__' || d.section)
            ) as p (is_broken, problem)
            where p.is_broken`,
    bad: `update internal.user_data set reset_section = 'nothing' where table_name = 'app.user_identities'`,
  },
  {
    name: 'a registered table has the key by which its rows are read in batches',
    only: 'tenant',
    find: `select d.table_name as offender
             from internal.user_data d
            where d.export_columns is not null and d.export_order is null
              and not exists (select from pg_index i where i.indrelid = to_regclass(d.table_name) and i.indisprimary)`,
    bad: `create table app.lint_bads (app_user_id uuid);
          insert into internal.user_data (table_name, user_column, section, export_columns, on_merge, on_delete, declared_in)
          values ('app.lint_bads', 'app_user_id', 'lint_bads', array['app_user_id'], 'move', 'delete', 'lint')`,
  },
  {
    name: 'the registry of definitions says what is: tables, columns, references, and rights to what can be changed',
    only: 'tenant',
    find: `select d.kind || ': ' || p.problem as offender
             from internal.definitions d
            cross join lateral (
              select case when d.table_name !~ '^app\\.[a-z_]+$' or to_regclass(d.table_name) is null then 'there is no table ' || d.table_name end as problem
              union all
              select 'there is no column ' || c.name
                from unnest(d.fixed_columns || d.state_columns || d.order_by || d.key_column || '{id,created_at,updated_at}') c (name)
               where c.name is not null
                 and not exists (select from pg_attribute a where a.attrelid = to_regclass(d.table_name) and a.attname = c.name and not a.attisdropped)
              union all
              select 'administrators may not change ' || c.name
                from internal.definition_columns(d) c
               where c.is_field and not has_column_privilege('app_admin', d.table_name, c.name, 'update')
              union all
              select 'administrators may change ' || c.name || ', which is fixed'
                from internal.definition_columns(d) c
               where c.is_settable and not c.is_field and has_column_privilege('app_admin', d.table_name, c.name, 'update')
              union all
              select 'refs: ' || r.value::text
                from jsonb_array_elements(d.refs) r
               where not coalesce(r.value ->> 'path' like '$.%' and r.value ->> 'by' in ('id', 'key')
                                  and exists (select from internal.definitions o
                                               where o.kind = r.value ->> 'kind' and o.create_order <= d.create_order), false)
              union all
              select h.name || ' is not a hook by its arguments, or administrators may not execute it'
                from (select distinct on (f.proname) format('internal.%I', f.proname) as name, f.oid,
                             internal.definition_hook(d, substr(f.proname, char_length(d.kind) + 2)) is not null as is_hook
                        from pg_proc f
                       where f.pronamespace = 'internal'::regnamespace
                         and f.proname in (select d.kind || '_' || x from unnest('{check,listed,before_write,before_update,before_delete,after_write}'::text[]) x)) h
               where not h.is_hook or not has_function_privilege('app_admin', h.oid, 'execute')
              union all
              select 'internal.' || h.name || ' is not called by the compiled functions: define it in a file of the area of the declaration'
                from (select d.kind || '_' || x as name
                        from unnest('{find,json,check,listed,before_write,before_update,before_delete,after_write}'::text[]) x
                       where internal.definition_hook(d, x) is not null) h
               where not exists (select from pg_proc f
                                  where f.pronamespace = 'internal'::regnamespace and f.proname like replace(d.kind, '_', '\\_') || '\\_\\_%'
                                    and f.prosrc like '%internal.' || replace(h.name, '_', '\\_') || '(%')
            ) as p (problem)
            where p.problem is not null`,
    bad: `update internal.definitions set refs = '[{"path": "$.segment_id", "kind": "nothing", "by": "id"}]' where kind = 'xp_boost'`,
  },
  {
    name: 'the comment of a constraint that begins with a status is a whole refusal',
    find: `select d.description as offender from pg_description d
            where d.classoid in ('pg_constraint'::regclass, 'pg_class'::regclass) and d.description ~ '^\\d{3}\\M'
              and d.description !~ '^\\d{3} [A-Z_]+( [a-z0-9_.]+)?: .+\\.$'`,
    bad: `create table app.lint_bad (id int constraint lint_rule check (id > 0)); comment on constraint lint_rule on app.lint_bad is '400 oops'`,
  },
  {
    // names of events are compared, not shown; the others are made by the program or by a template that is checked itself
    name: 'a name, title, subject or label is one line of text, or has a form',
    find: `select c.oid::regclass || '.' || a.attname as offender
             from pg_class c
             join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.atttypid = 'text'::regtype
            where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and a.attname ~ '(^|_)(name|title|subject|label)$'
              and a.attname not in ('event_name', 'database_name', 'table_name', 'index_name')
              and c.relname || '.' || a.attname not in (
                'clusters.name', 'timezones.name', 'graphql_names.name', 'row_counters.name', 'row_counts.name', 'merged_names.name', 'campaign_buckets.name',
                'collection_indexes.name', 'email_messages.subject', 'push_inbox_items.title')
              and not exists (
                select from pg_constraint k
                 where k.conrelid = c.oid and k.contype = 'c' and a.attnum = any (k.conkey)
                   and pg_get_constraintdef(k.oid) ~ ('is_line\\(' || a.attname || '\\)|' || a.attname || ' (~ ''\\^\\[|= ANY)'))`,
    bad: `create table app.lint_bad (id int, title text)`,
  },
]
