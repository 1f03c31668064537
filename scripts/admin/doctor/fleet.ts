import type { FleetStatus } from '#fleet/rollout.ts'
import type { Run } from '../arguments.ts'
import { inBusiest } from './busiest.ts'
import { type Finding, fail, graded, ok, span, warn } from './findings.ts'

const list = (names: readonly string[]) =>
  names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')

const versions = ({ control, template, tenants, queued }: FleetStatus): Finding[] => {
  const isBehind = control.pending + control.changed > 0 || template?.isCurrent !== true
  return [
    isBehind
      ? fail(
          'migrations',
          `control lacks ${control.pending} migrations and ${control.changed} files, the template is ${template?.isCurrent ? 'current' : 'not'}`,
          'npm run db:migrate, or start the server.',
        )
      : tenants.behind > 0
        ? warn('migrations', `${tenants.behind} projects are behind, ${queued} of them queued`, 'npm run db:migrate')
        : ok('migrations', `control, the template and ${tenants.ready} projects are at this version`),
    tenants.failed.length > 0
      ? fail(
          'failed migrations',
          list(
            tenants.failed.map(({ database, error }) => `${database} (${error.replaceAll(/\s+/g, ' ').slice(0, 100)})`),
          ),
          'Mend what the message says, then npm run db:migrate.',
        )
      : ok('failed migrations', 'none'),
    tenants.not_made > 0
      ? fail(
          'projects',
          `${tenants.not_made} databases could not be made`,
          'The log says why; POST .../reprovision tries again.',
        )
      : ok('projects', `${tenants.ready} ready, ${tenants.provisioning} being made`),
  ]
}

const databases = ({ clusters, tenants, isLockedDown }: FleetStatus): Finding[] => {
  const away = clusters.filter(({ error }) => error)
  const gone = new Set([...tenants.gone, ...clusters.flatMap(({ missing }) => missing)].map(({ database }) => database))
  const wrong = clusters.flatMap((cluster) => cluster.wrong)
  return [
    away.length > 0
      ? fail(
          'servers',
          list(away.map(({ name, error }) => `${name}: ${error}`)),
          'Bring them back: their projects answer 503.',
        )
      : ok('servers', `${clusters.length} reachable`),
    gone.size > 0
      ? fail(
          'lost databases',
          list([...gone]),
          'npm run restore -- --from PLACE --project ID, or POST .../reprovision for an empty one.',
        )
      : ok('lost databases', 'none'),
    wrong.length > 0
      ? fail(
          'privileges',
          list(wrong.map(({ database, problems }) => `${database}: ${problems.join(', ')}`)),
          wrong.find(({ canRepair }) => !canRepair)?.remedy ?? 'npm run db:migrate repairs them.',
        )
      : ok('privileges', 'each login may connect only to the databases of its kind'),
    isLockedDown
      ? ok('built-in functions', 'those with which one login could harm another are closed')
      : warn(
          'built-in functions',
          'large objects and sessions of one login are open',
          'Only a superuser can close them: see docs/self-hosting.md.',
        ),
  ]
}

type Queue = {
  readonly workers: number
  readonly heartbeat: string | null
  readonly dead: number
  readonly dead_task: string | null
  readonly oldest: string | null
  readonly oldest_task: string | null
}

/** The queue by the real clock: a heartbeat concerns processes. */
const queueQuery = `
  with due as (
    select j.task_identifier, j.run_at from graphile_worker.jobs j
     where j.locked_at is null and j.run_at <= now() and j.attempts < j.max_attempts
  )
  select (select count(*)::int from app.workers w where w.heartbeat_at > clock_timestamp() - interval '20 seconds') as workers,
         (select extract(epoch from clock_timestamp() - max(w.heartbeat_at)) from app.workers w) as heartbeat,
         (select count(*)::int from graphile_worker.jobs j where j.attempts >= j.max_attempts and j.locked_at is null) as dead,
         (select j.task_identifier from graphile_worker.jobs j where j.attempts >= j.max_attempts and j.locked_at is null
           group by 1 order by count(*) desc limit 1) as dead_task,
         (select extract(epoch from now() - min(d.run_at)) from due d) as oldest,
         (select d.task_identifier from due d order by d.run_at limit 1) as oldest_task`

const queue = async ({ control }: Run): Promise<Finding[]> => {
  const { rows } = await control.query<Queue>(queueQuery)
  const [found] = rows
  if (!found) return []
  return [
    found.workers > 0
      ? ok('workers', `${found.workers} alive`)
      : fail(
          'workers',
          found.heartbeat === null
            ? 'none has ever run, or all have stopped in order'
            : `the last was heard of ${span(Number(found.heartbeat))} ago`,
          'Start a server without WORKER=off, or npm run worker.',
        ),
    graded(
      'jobs that wait',
      Number(found.oldest ?? 0),
      { failed: 900, warning: 120 },
      {
        found: found.oldest === null ? 'none' : `the oldest, ${found.oldest_task}, for ${span(Number(found.oldest))}`,
        remedy: 'Start another npm run worker, and see what the busy ones do.',
      },
    ),
    found.dead > 0
      ? warn(
          'dead jobs',
          `${found.dead}, most of them ${found.dead_task}`,
          'The log says why; graphile_worker.reschedule_jobs(array[id], attempts := 0) in control tries them again.',
        )
      : ok('dead jobs', 'none'),
  ]
}

const outboxes = async (run: Run): Promise<Finding[]> => {
  let oldest = { seconds: 0, project: '' }
  let failed = { count: 0, project: '' }
  const count = await inBusiest(run, async (client, project) => {
    const { rows } = await client.query<{ seconds: string | null; failed: number }>(
      `select extract(epoch from now() - min(o.due_at) filter (where o.failed_at is null and o.locked_until is null and o.due_at <= now())) as seconds,
              count(*) filter (where o.failed_at is not null)::int as failed from app.outbox o`,
    )
    const seconds = Number(rows[0]?.seconds ?? 0)
    if (seconds > oldest.seconds) oldest = { seconds, project }
    if ((rows[0]?.failed ?? 0) > 0) failed = { count: failed.count + (rows[0]?.failed ?? 0), project }
  })
  return [
    graded(
      'outbox',
      oldest.seconds,
      { failed: 900, warning: 120 },
      {
        found:
          oldest.seconds > 0
            ? `a row of ${oldest.project} has been due for ${span(oldest.seconds)}`
            : `nothing waits in the ${count} projects that were written to last`,
        remedy: 'Do workers run? Start another npm run worker.',
      },
    ),
    failed.count > 0
      ? warn(
          'failed work',
          `${failed.count} rows were given up, some of ${failed.project}`,
          `npm run admin -- failed list ${failed.project}`,
        )
      : ok('failed work', 'none'),
  ]
}

const held = async ({ control }: Run): Promise<Finding> => {
  const { rows } = await control.query<{ project_id: string; hold: string; seconds: string }>(
    `select t.project_id, t.hold, extract(epoch from now() - t.held_since) as seconds from app.tenants t where t.hold is not null order by t.held_since`,
  )
  const moving = rows.find(({ hold, seconds }) => hold === 'moving' && Number(seconds) > 60)
  if (moving)
    return fail(
      'held projects',
      `${moving.project_id} has been moving for ${span(Number(moving.seconds))}`,
      'Run its npm run db:cluster -- move again: it goes on, or is undone.',
    )
  return rows.length > 0
    ? warn(
        'held projects',
        list(rows.map(({ project_id, hold }) => `${project_id} (${hold})`)),
        'npm run admin -- project unpause ID',
      )
    : ok('held projects', 'none')
}

export const fleetChecks = async (run: Run, status: FleetStatus): Promise<Finding[]> => [
  ...versions(status),
  ...databases(status),
  ...(await queue(run)),
  ...(await outboxes(run)),
  await held(run),
]
