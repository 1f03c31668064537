import { whereIs } from '#fleet/rollout.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { plain } from '#server/plain.ts'
import { type AdminCommand, idOf, limitOf, type Run, wrong } from './arguments.ts'
import { print, show, table } from './output.ts'

type Failures = {
  readonly outbox: readonly {
    id: string
    task: string
    key: string | null
    attempts: number
    error: string | null
    failed_at: string
  }[]
  readonly deliveries: readonly {
    id: string
    event: string
    url: string
    attempts: number
    status: string
    reason: string | null
    error: string | null
    status_code: number | null
    settled_at: string
  }[]
}

/** Runs one of the operators' functions in a project's own database. */
const inProject = async <T>({ cluster, foundation }: Run, projectId: string, name: string, args: unknown[]) => {
  const { config, secrets } = foundation
  const place = await whereIs(cluster, config.DATABASE_PREFIX, projectId, secrets)
  const own = place.dsn === cluster.dsn ? cluster : { id: '', dsn: place.dsn }
  const client = await connectAdmin(own, place.database)
  try {
    const values = args.map((_, index) => `$${index + 1}`).join(', ')
    const { rows } = await client.query<{ answer: T }>(`select internal.${name}(${values}) as answer`, args)
    return rows[0]?.answer as T
  } finally {
    await client.end()
  }
}

const short = (text: string | null) => {
  const line = plain(text)
  return line.length > 100 ? `${line.slice(0, 99)}…` : line
}

const list: AdminCommand = ([id], flags) => {
  const projectId = idOf(id)
  const limit = limitOf(flags, 100)
  return async (run) => {
    const found = await inProject<Failures>(run, projectId, 'operator_failures', [limit])
    show(flags, found, ({ outbox, deliveries }) => {
      if (outbox.length + deliveries.length === 0) return print('Nothing was given up.')
      if (outbox.length > 0)
        table([
          ['outbox row', 'task', 'key', 'attempts', 'failed', 'error'],
          ...outbox.map((row) => [
            row.id,
            row.task,
            plain(row.key),
            String(row.attempts),
            row.failed_at,
            short(row.error),
          ]),
        ])
      if (deliveries.length > 0)
        table([
          ['delivery', 'event', 'url', 'attempts', 'ended', 'why'],
          ...deliveries.map((row) => [
            row.id,
            plain(row.event),
            plain(row.url),
            String(row.attempts),
            row.settled_at,
            short(row.error ?? row.reason ?? (row.status_code === null ? row.status : String(row.status_code))),
          ]),
        ])
    })
  }
}

const retry: AdminCommand = ([id, ...rows], flags) => {
  const projectId = idOf(id)
  const isAll = rows.length === 1 && rows[0] === 'all'
  if (!isAll && (rows.length === 0 || !rows.every((row) => uuidPattern.test(row))))
    throw wrong('Say which: ids that failed list shows, or all.')
  const limit = limitOf(flags, 1000)
  return async (run) => {
    const args = [isAll ? null : rows, limit]
    const again = await inProject<{ outbox: number; deliveries: number }>(run, projectId, 'operator_retry', args)
    if (again.outbox + again.deliveries > 0) await run('operator_wake', { project_id: projectId })
    show(flags, again, ({ outbox, deliveries }) =>
      print(`Tried again: ${outbox} outbox rows, ${deliveries} deliveries.`),
    )
    return isAll || again.outbox + again.deliveries === rows.length ? 0 : 1
  }
}

export const failedCommands: Readonly<Record<string, AdminCommand>> = { 'failed list': list, 'failed retry': retry }
