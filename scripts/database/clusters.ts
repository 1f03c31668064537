import type pg from 'pg'
import { type Program, readProgram } from '#fleet/load/files.ts'
import { withClusterLock } from '#fleet/locks.ts'
import { type Moved, moveProject } from '#fleet/move/move.ts'
import type { Foundation } from '#fleet/postgres.ts'
import { addCluster, type ClusterRow, listClusters } from '#fleet/rollout.ts'
import { buildTemplate } from '#fleet/templates.ts'
import { columns } from '#server/columns.ts'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { withHosts } from '#server/database/hosts.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { callOn } from '../admin/call.ts'

type Print = (line: string) => void
export type Known = Cluster & { readonly name: string; readonly content_hash: string | null }

const rowOf = ({ name, tenants, capacity, is_open }: ClusterRow) => [
  name,
  `${tenants} ${tenants === 1 ? 'project' : 'projects'} of ${capacity}${is_open ? '' : ', closed'}`,
]

/** Every server that control knows, the one of control itself by the address that this command uses. */
export const knownClusters = async ({ secrets }: Foundation, own: Cluster, control: pg.Client): Promise<Known[]> => {
  const { rows } = await control.query<{
    id: string
    name: string
    dsn_sealed: string | null
    content_hash: string | null
  }>(
    `select c.id, c.name, c.dsn_sealed, t.content_hash from app.clusters c left join app.templates t on t.cluster_id = c.id
      order by c.created_at, c.id`,
  )
  return rows.map(({ dsn_sealed, ...row }) =>
    dsn_sealed ? { ...row, dsn: secrets.decrypt('cluster dsn', dsn_sealed) } : { ...own, ...row },
  )
}

/** The other server needs the template that this server has. */
export const ensureTemplate = async (control: pg.Client, to: Known, name: string, program: Program): Promise<void> => {
  if (to.content_hash === program.contentHash) return
  await withClusterLock(to, (admin) => buildTemplate(to, admin, name, program))
  await control.query('select from api.template_built($1, $2, $3)', [to.id, program.schemaVersion, program.contentHash])
}

type Placed = {
  readonly database: string
  readonly cluster_id: string
  readonly content_hash: string
  readonly hold: string | null
  readonly status: string
  readonly is_left: boolean
}

/** What is known of the move of one project, without anything that is asked of its servers. */
const placed = async (control: pg.Client, projectId: string): Promise<Placed> => {
  const { rows } = await control.query<Placed>(
    `select t.database_name as database, coalesce(m.from_cluster_id, t.cluster_id) as cluster_id, t.content_hash, t.hold, t.status,
            coalesce(m.state = 'switched', false) as is_left
       from app.tenants t
       join app.projects p on p.id = t.project_id and p.deleted_at is null
       left join app.tenant_moves m on m.project_id = t.project_id
      where t.project_id = $1`,
    [projectId],
  )
  const [row] = rows
  if (row?.status !== 'ready') throw new StartError(`There is no project ${projectId} with a database that is ready.`)
  if (row.hold === 'paused') throw new StartError(`Project ${projectId} is paused: end that first.`)
  return row
}

export const moveTo = async (
  foundation: Foundation,
  own: Cluster,
  control: pg.Client,
  projectId: string,
  name: string,
  print: Print,
): Promise<Moved> => {
  const { DATABASE_PREFIX: prefix } = foundation.config
  const [program, known, row] = await Promise.all([
    readProgram('tenant'),
    knownClusters(foundation, own, control),
    placed(control, projectId),
  ])
  const to = known.find((cluster) => cluster.name === name)
  const from = known.find(({ id }) => id === row.cluster_id)
  if (!to || !from) throw new StartError(`There is no server "${name}": npm run db:cluster lists them.`)
  if (to.id === from.id && !row.is_left) throw new StartError(`Project ${projectId} is on "${name}" already.`)
  if (row.content_hash !== program.contentHash)
    throw new StartError(`Project ${projectId} is not at this version: run npm run db:migrate first.`)
  await ensureTemplate(control, to, templateName(prefix), program)
  return moveProject({
    projectId,
    database: row.database,
    template: templateName(prefix),
    from,
    to,
    control,
    ask: callOn(control),
    say: (line) => print(`${projectId}  ${line}`),
  })
}

const told = (moved: Moved, projectId: string, print: Print): number => {
  if (moved.wrong.length > 0) {
    print(`${projectId}  is served by the other server, but not all rows are the same; what it left behind is kept:`)
    for (const line of moved.wrong) print(`  ${line}`)
    return 1
  }
  const when = moved.isCheckedBefore ? '' : ', compared afterwards'
  print(
    `${projectId}  moved in ${moved.seconds.toFixed(1)} s, ${(moved.pauseMs / 1000).toFixed(2)} s of it not served; ${moved.tables} tables are the same${when}`,
  )
  return 0
}

/** Moves every project of a server to the open ones, one after the other; no new project is placed there any more. */
const drain = async (
  foundation: Foundation,
  own: Cluster,
  control: pg.Client,
  name: string,
  print: Print,
): Promise<number> => {
  const { rowCount } = await control.query('update app.clusters set is_open = false where name = $1', [name])
  if (rowCount === 0) throw new StartError(`There is no server "${name}": npm run db:cluster lists them.`)
  const { rows } = await control.query<{ id: string }>(
    `select t.project_id as id from app.tenants t
       join app.projects p on p.id = t.project_id and p.deleted_at is null
       left join app.tenant_moves m on m.project_id = t.project_id
       join app.clusters c on c.id in (t.cluster_id, m.from_cluster_id)
      where c.name = $1 and t.status = 'ready' order by t.last_written_at, t.project_id`,
    [name],
  )
  let failed = 0
  for (const { id } of rows) {
    const { rows: open } = await control.query<{ name: string }>(
      `select c.name from app.clusters c
        where c.is_open and c.name <> $1 and c.capacity > (select count(*) from app.tenants t where t.cluster_id = c.id)
        order by c.capacity - (select count(*) from app.tenants t where t.cluster_id = c.id) desc, c.created_at limit 1`,
      [name],
    )
    if (!open[0])
      throw new StartError('There is no other open server with room: add one with npm run db:cluster -- add.')
    try {
      failed += told(await moveTo(foundation, own, control, id, open[0].name, print), id, print)
    } catch (error) {
      failed += 1
      print(`${id}  stays: ${(error as Error).message}`)
    }
  }
  print(`${rows.length - failed} of ${rows.length} projects have left "${name}"`)
  return failed > 0 ? 1 : 0
}

const usage =
  'Say what to do: npm run db:cluster -- list, add NAME CAPACITY, capacity NAME NUMBER, move PROJECT NAME, drain NAME, open NAME.'

/** The address of a server that is added comes from the environment: arguments can be read by every user of the machine. */
export const clusterCommand = async (
  foundation: Foundation,
  own: Cluster,
  [action = 'list', name = '', ...rest]: readonly string[],
  print: Print,
): Promise<number> => {
  const prefix = foundation.config.DATABASE_PREFIX
  const control = await connectAdmin(own, controlName(prefix))
  try {
    if (action === 'move') {
      const [to = ''] = rest
      if (!uuidPattern.test(name) || !to) throw new StartError(usage)
      return told(await moveTo(foundation, own, control, name, to, print), name, print)
    }
    if (action === 'drain') return await drain(foundation, own, control, name, print)
    if (action === 'add') await add(foundation, own, name, rest[0] ?? '500')
    else if (action === 'capacity') await resize(control, name, rest[0] ?? '')
    else if (action === 'open') await control.query('update app.clusters set is_open = true where name = $1', [name])
    else if (action !== 'list') throw new StartError(usage)
    for (const line of columns((await listClusters(own, prefix)).map(rowOf))) print(line)
    return 0
  } finally {
    await control.end()
  }
}

/** How many databases a server takes: it is full with so many, whatever it has room for. */
const resize = async (control: pg.Client, name: string, capacity: string): Promise<void> => {
  if (!/^[1-9]\d{0,5}$/.test(capacity)) throw new StartError(usage)
  const { rowCount } = await control.query('update app.clusters set capacity = $2 where name = $1', [
    name,
    Number(capacity),
  ])
  if (rowCount === 0) throw new StartError(`There is no server "${name}": npm run db:cluster lists them.`)
}

const add = async ({ config, secrets }: Foundation, own: Cluster, name: string, capacity: string): Promise<void> => {
  const dsn = process.env['CLUSTER_URL']
  if (!dsn || !/^[a-z][a-z0-9_-]{0,62}$/.test(name) || !/^[1-9]\d{0,5}$/.test(capacity))
    throw new StartError(
      'Say its name, and its address: CLUSTER_URL=postgres://... npm run db:cluster -- add second 500',
    )
  await addCluster(own, config.DATABASE_PREFIX, secrets, {
    name,
    dsn: withHosts(dsn, 'CLUSTER_URL'),
    capacity: Number(capacity),
  })
}
