import type { Client } from 'pg'
import { run } from '#fleet/load/apply.ts'
import type { SqlFile } from '#fleet/load/files.ts'

/** A privilege that a file gave, as ops.grants notes it. */
type Grant = {
  readonly kind: string
  readonly identity: string
  readonly columns: string
  readonly grantee: string
  readonly privilege: string
}

const asRows = `json_to_recordset($1) as m (kind text, identity text, columns text, grantee text, privilege text)`

/**
 * Grants that this file gives and that are noted as given by files which change or go in the same version: most often they moved from one file to
 * another. Whether a privilege that a role holds already was given once more does not show, so the file runs, and all that it did is undone.
 */
export const findMovedGrants = async (client: Client, file: SqlFile, leaving: readonly string[]): Promise<Grant[]> => {
  const { rows: noted } = await client.query(
    `select from ops.grants g
      where g.path = any ($1) and strpos($2, regexp_replace(g.identity, '^[^.]*[.]|[(].*$', '', 'g')) > 0
      limit 1`,
    [leaving, file.text],
  )
  // most files name nothing that one of those grants
  if (noted.length === 0) return []
  await client.query('savepoint trial')
  // the number of the subtransaction is on this row, as on all that the file writes
  await client.query(
    `insert into ops.files (path, hash) values ($1, '') on conflict (path) do update set hash = excluded.hash`,
    [file.path],
  )
  await run(client, file)
  const { rows } = await client.query<Grant>(
    `select g.kind, g.identity, g.columns, g.grantee, g.privilege
       from ops.acl_written w
       join ops.grants g using (kind, identity, columns, grantee, privilege)
      where w.written_by = (select f.xmin from ops.files f where f.path = $1) and g.path = any ($2)`,
    [file.path, leaving],
  )
  await client.query('rollback to savepoint trial; release savepoint trial')
  return rows
}

const execute = async (client: Client, query: string, grants: readonly Grant[]): Promise<void> => {
  const { rows } = await client.query<{ statement: string }>(query, [JSON.stringify(grants)])
  for (const { statement } of rows) await client.query(statement)
}

const target = `case when m.columns <> '' then '(' || m.columns || ')' end, m.kind, m.identity, m.grantee`

/** Revokes them, so that those which the file gives show as given by it. */
export const takeGrants = async (client: Client, moved: readonly Grant[]): Promise<void> => {
  await execute(
    client,
    `select format('revoke %s %s on %s %s from %I', m.privilege, ${target}) as statement from ${asRows}`,
    moved,
  )
  await client.query(
    `delete from pg_temp.acl_before b using ${asRows}
      where (b.kind, b.identity, b.columns, b.grantee, b.privilege) = (m.kind, m.identity, m.columns, m.grantee, m.privilege)`,
    [JSON.stringify(moved)],
  )
}

/** Those that the file gave are its own from here on; the others are given back. */
export const keepGrants = async (client: Client, file: SqlFile, moved: readonly Grant[]): Promise<void> => {
  await client.query(
    `delete from ops.grants g
      using ${asRows}
       join ops.grants o using (kind, identity, columns, grantee, privilege)
      where o.path = $2 and g.path <> $2
        and (g.kind, g.identity, g.columns, g.grantee, g.privilege) = (m.kind, m.identity, m.columns, m.grantee, m.privilege)`,
    [JSON.stringify(moved), file.path],
  )
  // with them go the privileges on columns that a privilege on their table took along
  await execute(
    client,
    `select format('grant %s %s on %s %s to %I', m.privilege, ${target}) as statement
       from (select m.* from ${asRows}
             union
             select b.kind, b.identity, b.columns, b.grantee, b.privilege
               from pg_temp.acl_before b
              where b.columns <> '' and b.identity in (select m.identity from ${asRows})) m
      where not exists (select from ops.acl a
                         where (a.kind, a.identity, a.columns, a.grantee, a.privilege) = (m.kind, m.identity, m.columns, m.grantee, m.privilege))`,
    moved,
  )
}
