import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { StartError } from '#server/errors.ts'
import { plain } from '#server/plain.ts'
import { type AdminCommand, limitOf, type Run } from './arguments.ts'
import { show, table } from './output.ts'

type Slow = {
  readonly database: string
  readonly project_id: string | null
  readonly project: string | null
  readonly function: string
  readonly calls: number
  readonly total_ms: number
  readonly mean_ms: number
  readonly max_ms: number
  readonly rows: number
  readonly read_blocks: number
}

const isMissing = `The extension pg_stat_statements is missing, so Postgres does not count what statements cost. To have it:
  1. shared_preload_libraries = 'pg_stat_statements' (alter system set ..., with what is there already), then restart Postgres;
  2. create extension pg_stat_statements in the database of DATABASE_URL (embedded: postgres).`

/** The statements of one function are shapes of its arguments; what is not a call goes by its first words. */
const statements = (schema: string) => `
  select d.datname as database,
         coalesce('api.' || substring(s.query from 'from api\\."?([a-z_0-9]+)'),
                  left(regexp_replace(s.query, '\\s+', ' ', 'g'), 60)) as function,
         sum(s.calls)::float8 as calls, sum(s.total_exec_time) as total_ms, sum(s.total_exec_time) / greatest(sum(s.calls), 1) as mean_ms,
         max(s.max_exec_time) as max_ms, sum(s.rows)::float8 as rows, sum(s.shared_blks_read)::float8 as read_blocks
    from ${schema}.pg_stat_statements s
    join pg_catalog.pg_database d on d.oid = s.dbid
   where starts_with(d.datname, $1)
   group by 1, 2
   order by 4 desc
   limit $2`

const read = async ({ cluster, foundation, control }: Run, limit: number): Promise<Slow[]> => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    const { rows: found } = await admin.query<{ schema: string }>(
      `select quote_ident(n.nspname) as schema from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
        where e.extname = 'pg_stat_statements'`,
    )
    const [extension] = found
    if (!extension) throw new StartError(isMissing)
    const prefix = `${foundation.config.DATABASE_PREFIX}_`
    const { rows } = await admin
      .query<Omit<Slow, 'project' | 'project_id'>>(statements(extension.schema), [prefix, limit])
      .catch((error: Error & { code?: string }) => {
        // made, but the library is not loaded
        throw error.code === '55000' ? new StartError(isMissing) : error
      })
    const { rows: projects } = await control.query<{ database: string; id: string; name: string }>(
      `select t.database_name as database, p.id, p.name from app.tenants t join app.projects p on p.id = t.project_id
        where t.database_name = any ($1)`,
      [rows.map(({ database }) => database)],
    )
    const byDatabase = new Map(projects.map((project) => [project.database, project]))
    return rows.map((row) => {
      const project = byDatabase.get(row.database)
      return { ...row, project_id: project?.id ?? null, project: project?.name ?? null }
    })
  } finally {
    await admin.end()
  }
}

const list: AdminCommand = (_rest, flags) => {
  const limit = limitOf(flags, 20)
  return async (run) =>
    show(flags, await read(run, limit), (rows) =>
      table([
        ['total ms', 'calls', 'mean ms', 'longest ms', 'function', 'project', 'database'],
        ...rows.map((row) => [
          row.total_ms.toFixed(0),
          String(row.calls),
          row.mean_ms.toFixed(2),
          row.max_ms.toFixed(0),
          plain(row.function),
          plain(row.project),
          row.database,
        ]),
      ]),
    )
}

export const slowCommands: Readonly<Record<string, AdminCommand>> = { 'slow list': list }
