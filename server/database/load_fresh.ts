import type { Client } from 'pg'
import type { Program, SqlFile } from '#server/database/files.ts'
import { functionsLoaded, inTransaction } from '#server/database/load.ts'

/**
 * Loads every file into a database that has none yet, in one transaction. Each file runs in a subtransaction, whose number is on the rows of the
 * catalog that it wrote and on its own row in ops.files: so one query afterwards tells which file made which object.
 */
export const loadFresh = (client: Client, program: Program): Promise<string[]> =>
  inTransaction(client, async () => {
    for (const file of program.functions) await client.query(inSubtransaction(file))
    await client.query(recordObjects)
    await functionsLoaded(client)
    await client.query(rememberPrivileges)
    for (const file of program.policies) {
      await client.query(inSubtransaction(file))
      await client.query(recordGrants, [file.path])
    }
    await client.query(markPolicies)
    for (const file of program.seeds) await client.query(inSubtransaction(file))
    return [...program.functions, ...program.policies, ...program.seeds].map((file) => file.path)
  })

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

const inSubtransaction = ({ path, hash, text }: SqlFile) => `savepoint file;
insert into ops.files (path, hash) values (${literal(path)}, ${literal(hash)});
set local trellis.file = ${literal(path)};
${text}
;release savepoint file`

const recordObjects = `
  insert into ops.objects (path, kind, identity)
  select f.path, 'function', p.oid::regprocedure::text
    from ops.files f
    join pg_catalog.pg_proc p on p.xmin = f.xmin and p.pronamespace in ('api'::regnamespace, 'internal'::regnamespace)
   where f.path like 'functions/%'
  union all
  select f.path, 'trigger', format('%I on %s', t.tgname, t.tgrelid::regclass)
    from ops.files f
    join pg_catalog.pg_trigger t on t.xmin = f.xmin and not t.tgisinternal and t.tgparentid = 0
   where f.path like 'functions/%'`

/** All privileges before the first policy file. */
const rememberPrivileges = `
  create temporary table acl_known on commit drop as select * from ops.acl`

/** What this file granted is on rows of the catalog that it wrote; what was there before, it did not grant. */
const recordGrants = `
  with granted as (
    select w.kind, w.identity, w.columns, w.grantee, w.privilege
      from ops.acl_written w
     where w.written_by = (select f.xmin from ops.files f where f.path = $1)
    except
    select k.kind, k.identity, k.columns, k.grantee, k.privilege from pg_temp.acl_known k
  ), known as (
    insert into pg_temp.acl_known (kind, identity, columns, grantee, privilege) select g.* from granted g
  )
  insert into ops.grants (path, kind, identity, columns, grantee, privilege) select $1, g.* from granted g`

const markPolicies = `
  do $mark$
  declare made record;
  begin
    for made in
      select p.polname, p.polrelid::regclass as relation, f.path
        from pg_catalog.pg_policy p
        join ops.files f on f.xmin = p.xmin
       where f.path like 'policies/%' and obj_description(p.oid, 'pg_policy') is null
    loop
      execute format('comment on policy %I on %s is %L', made.polname, made.relation, 'Made by ' || made.path);
    end loop;
  end $mark$`
