import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { adminConfig, type Cluster } from '#server/database/cluster.ts'

/** A table whose rows are copied, with the columns that are stored and not computed. */
export type MovedTable = { readonly name: string; readonly columns: string; readonly hasIdentity: boolean }

/** Logged tables; what is unlogged is worth nothing after a crash either. */
const tablesQuery = `
  select c.oid::regclass::text as name,
         (select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
            from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
         c.relreplident <> 'd' or exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary) as "hasIdentity"
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where c.relkind = 'r' and c.relpersistence = 'p' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
     and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
   order by pg_relation_size(c.oid) desc, 1`

export const movedTables = async (client: pg.Client): Promise<MovedTable[]> => {
  await client.query(`set search_path = ''`)
  const { rows } = await client.query<MovedTable>(tablesQuery)
  return rows
}

/** Takes away the rows that the template has brought: the source has its own. `owner` owns the tables, which have no triggers and foreign keys at the moment. */
export const emptyTables = async (owner: pg.Client): Promise<void> => {
  await owner.query(`set search_path = ''`)
  const { rows } = await owner.query<{ names: string | null }>(
    `select string_agg(c.oid::regclass::text, ', ') as names
       from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and not c.relispartition and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`,
  )
  if (rows[0]?.names) await owner.query(`truncate ${rows[0].names}`)
}

/** Names are fully qualified everywhere. Rows that a policy hides are an error, and not left out. */
export const plainSession = `set search_path = ''; set row_security = off; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0`

const connect = async (cluster: Cluster, database: string, asOwner: boolean): Promise<pg.Client> => {
  const client = new pg.Client(adminConfig(cluster, database, asOwner))
  client.on('error', () => undefined)
  await client.connect()
  return client
}

type Side = { readonly cluster: Cluster; readonly database: string }

/** Copies all rows of one snapshot, some tables at a time; the largest begin first. The target has no triggers and foreign keys meanwhile. */
export const copyRows = async (
  source: Side,
  target: Side,
  tables: readonly MovedTable[],
  snapshot: string,
  parallel = 3,
): Promise<void> => {
  const waiting = tables.values()
  const work = async () => {
    const from = await connect(source.cluster, source.database, false)
    const to = await connect(target.cluster, target.database, true)
    try {
      await from.query(plainSession)
      await from.query('begin isolation level repeatable read read only')
      await from.query(`set transaction snapshot ${pg.escapeLiteral(snapshot)}`)
      await to.query(`${plainSession}; set synchronous_commit = off`)
      for (const { name, columns } of waiting) {
        if ((await from.query(`select from only ${name} limit 1`)).rowCount === 0) continue
        await pipeline(
          from.query(copyTo(`copy (select ${columns} from only ${name}) to stdout (format binary)`)),
          to.query(copyFrom(`copy ${name} (${columns}) from stdin (format binary)`)),
        )
      }
      await from.query('commit')
    } finally {
      await Promise.all([from.end(), to.end()].map((end) => end.catch(() => undefined)))
    }
  }
  const results = await Promise.allSettled(Array.from({ length: parallel }, work))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** Of each table, how many rows it has and a sum over their text: the same in two databases that hold the same rows. */
export const sumsOf = async (client: pg.Client, tables: readonly MovedTable[]): Promise<Map<string, string>> => {
  await client.query(
    `set search_path = ''; set row_security = off; set datestyle = 'ISO'; set timezone = 'UTC'; set extra_float_digits = 1; set bytea_output = 'hex'; set jit = off`,
  )
  const parts = tables.map(
    ({ name, columns }) =>
      `select ${pg.escapeLiteral(name)} as name, count(*) || ' rows, sum ' || coalesce(sum(pg_catalog.hashtextextended((row(${columns}))::text, 0)), 0) as sum from only ${name}`,
  )
  const sums = new Map<string, string>()
  // one statement, so that its timeout bounds all of them
  const { rows } = await client.query<{ name: string; sum: string }>(parts.join('\nunion all\n'))
  for (const { name, sum } of rows) sums.set(name, sum)
  return sums
}

export const unequal = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] =>
  [...a].filter(([name, sum]) => b.get(name) !== sum).map(([name, sum]) => `${name}: ${sum}, there ${b.get(name)}`)
