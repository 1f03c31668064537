import type { Client } from 'pg'
import { remember, run } from '#fleet/load/apply.ts'
import { dropPolicies } from '#fleet/load/dependents.ts'
import type { SqlFile } from '#fleet/load/files.ts'
import { findMovedGrants, keepGrants, takeGrants } from '#fleet/load/moved_grants.ts'
import { registries } from '#fleet/load/state.ts'

/** `leaving` are the files of which something may have moved into this one: they change or go with this version, and are applied later. */
export const applyPolicies = async (client: Client, file: SqlFile, leaving: readonly string[]): Promise<void> => {
  // what others gave, read before any lock is taken
  await client.query('create temporary table if not exists acl_before (like ops.acl) on commit drop')
  await client.query('truncate pg_temp.acl_before')
  await client.query(
    `insert into pg_temp.acl_before
     select * from ops.acl except select g.kind, g.identity, g.columns, g.grantee, g.privilege from ops.grants g where g.path = $1`,
    [file.path],
  )
  await lockTables(client, file.path)
  await withdraw(client, file.path)
  // one that moved here may be made before the file that made it is applied; which ones the file makes shows afterwards
  const aside = await dropPolicies(
    client,
    `obj_description(p.oid, 'pg_policy') in (select 'Made by ' || l from unnest($1::text[]) l) and strpos($2, p.polname) > 0`,
    [leaving, file.text],
  )
  const moved = await findMovedGrants(client, file, leaving)
  if (moved.length > 0) await takeGrants(client, moved)
  await run(client, file)
  await remember(client, file)
  await client.query(
    `insert into ops.grants (path, kind, identity, columns, grantee, privilege)
     select $1, a.*
       from (select w.kind, w.identity, w.columns, w.grantee, w.privilege from ops.acl_written w where w.written_by = pg_current_xact_id()::xid
             except select * from pg_temp.acl_before) a
     on conflict do nothing`,
    [file.path],
  )
  if (moved.length > 0) await keepGrants(client, file, moved)
  await markPolicies(client, file)
  for (const { restore } of aside) await client.query(restore)
}

/**
 * Notes on each policy that the file made which file that is, in the policy's comment. So a file must not comment on policies: one without the mark would
 * not be dropped when its file is applied again.
 */
const markPolicies = async (client: Client, file: SqlFile): Promise<void> => {
  const { rows } = await client.query<{ name: string; relation: string; mark: string; comment: string | null }>(
    `select p.polname as name, p.polrelid::regclass::text as relation, d.description as comment,
            format('comment on policy %I on %s is %L', p.polname, p.polrelid::regclass, 'Made by ' || $1) as mark
       from pg_catalog.pg_policy p
       left join pg_catalog.pg_description d on d.classoid = 'pg_catalog.pg_policy'::regclass and d.objoid = p.oid and d.objsubid = 0
      where p.xmin = pg_current_xact_id()::xid and d.description is null
         -- those of files that were applied before in this transaction have their mark
         or d.xmin = pg_current_xact_id()::xid and not exists (select from ops.files f where d.description = 'Made by ' || f.path)`,
    [file.path],
  )
  for (const { mark, comment, ...policy } of rows) {
    if (comment !== null) throw new CommentedPolicy(file, policy)
    await client.query(mark)
  }
}

type Policy = { readonly name: string; readonly relation: string }

/** Where the file comments on a policy of this name; undefined where it does not, or does so in words that only Postgres understands. */
export const commentOn = ({ text }: SqlFile, { name }: Policy): number | undefined => {
  const found = [...text.matchAll(/\bcomment\s+on\s+policy\s+("(?:[^"]|"")*"|\S+)/gi)]
  const bare = (written: string) => written.replaceAll('"', '')
  const place = found.find(([, written = '']) => bare(written) === bare(name))
  return place && text.slice(0, place.index).split('\n').length
}

export class CommentedPolicy extends Error {
  constructor(file: SqlFile, policy: Policy) {
    super(
      `${file.path}:${commentOn(file, policy) ?? '?'}: comment on policy "${policy.name}" on ${policy.relation}: the loader notes there which file made the policy. Write it as a comment of SQL (--) instead.`,
    )
  }
}

/**
 * All tables of a policy file at once, parents first, as requests reach them: locked one by one while the file runs, they would
 * meet requests that hold one and want another.
 */
const lockTables = async (client: Client, path: string): Promise<void> => {
  const { rows } = await client.query<{ names: string | null }>(
    `select string_agg(t.oid::regclass::text, ', ' order by t.oid) as names
       from pg_catalog.pg_class t
      where t.oid in (select p.polrelid from pg_catalog.pg_policy p where obj_description(p.oid, 'pg_policy') = 'Made by ' || $1)`,
    [path],
  )
  if (rows[0]?.names) await client.query(`lock table ${rows[0].names} in access exclusive mode`)
}

/** Takes back the policies, grants and registry rows that a policy file gave. */
export const withdraw = async (client: Client, path: string): Promise<void> => {
  const { rows } = await client.query<{ statement: string }>(
    `select format('drop policy %I on %s', p.polname, p.polrelid::regclass) as statement
       from pg_catalog.pg_policy p where obj_description(p.oid, 'pg_policy') = 'Made by ' || $1
     union all
     select format('revoke %s %s on %s %s from %I', g.privilege, case when g.columns <> '' then '(' || g.columns || ')' end,
                   g.kind, g.identity, g.grantee)
       from ops.grants g
      where g.path = $1
        and case g.kind when 'function' then to_regprocedure(g.identity) is not null else to_regclass(g.identity) is not null end
        -- a column that a migration has dropped
        and (g.columns = ''
             or exists (select from pg_catalog.pg_attribute a
                         where a.attrelid = to_regclass(g.identity) and quote_ident(a.attname) = g.columns and not a.attisdropped))`,
    [path],
  )
  for (const row of rows) await client.query(row.statement)
  await client.query('delete from ops.grants where path = $1', [path])
  for (const registry of registries) {
    await client.query(`
      do $registry$ begin
        if to_regclass(${literal(registry)}) is not null then
          delete from ${registry} where declared_in = ${literal(path)};
        end if;
      end $registry$`)
  }
}

/** Gives back the recorded grants of functions that were dropped and made again with the same signature. */
export const regrant = async (client: Client): Promise<void> => {
  const { rows } = await client.query<{ statement: string }>(`
    select format('grant %s on function %s to %I', g.privilege, g.identity, g.grantee) as statement
      from ops.grants g
     -- a case, because the conditions of an "and" may be tried in any order, and a table's name is no signature
     where case when g.kind = 'function' then to_regprocedure(g.identity) is not null else false end
       and not exists (select from ops.acl a where (a.kind, a.identity, a.grantee) = (g.kind, g.identity, g.grantee))`)
  for (const row of rows) await client.query(row.statement)
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
