// A primary with a synchronous standby loses its power under load, and the standby is promoted, again and again. What was answered must be on the standby, once; the
// server and the worker, which nobody restarts, must come back within ten seconds of the promotion.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseOf, startLoad } from '#test/support/moving.ts'
import { createTestProject, endPrograms, endServer, startServer, startWorker } from '#test/support/process.ts'
import { addressOf, makeSynchronous, startPrimary, startStandby } from '#test/support/standby.ts'
import { say } from '../bench/support/results.ts'
import { report } from './support/page.ts'

const rounds = 5
const mostSeconds = 10
const found = {
  accepted: 0,
  missing: 0,
  twice: 0,
  refused: 0,
  others: [] as string[],
  back: [] as number[],
  worker: [] as number[],
}

const round = async (number: number): Promise<void> => {
  const primary = await startPrimary()
  const env = { DATABASE_URL: primary.url, SECRETS_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'warn' }
  await endServer(await startServer(env))
  const standby = await startStandby(primary, `round_${number}`)
  await makeSynchronous(primary)
  const both = { ...env, DATABASE_URL: addressOf(primary, standby) }
  const server = await startServer({ ...both, WORKER: 'off' })
  const worker = await startWorker(both)
  const project = await createTestProject(server.url)
  const load = startLoad(server.url, project, 8)
  await sleep(3000)
  await primary.kill()
  // as long as those that watch Postgres take to be sure
  await sleep(1000)
  const before = load.accepted.length
  const promoted = performance.now()
  await standby.sql('select pg_promote()')
  while (load.accepted.length === before) await sleep(5)
  found.back.push((performance.now() - promoted) / 1000)
  // a project is provisioned by the worker
  await createTestProject(server.url)
  found.worker.push((performance.now() - promoted) / 1000)
  await sleep(2000)
  await load.stop()
  const rows = await standby.sql<{ id: string }>(
    `select e.id from app.engagement_events e where e.event_name = 'moved'`,
    [],
    databaseOf(project),
  )
  const there = new Set(rows.map(({ id }) => id))
  found.accepted += load.accepted.length
  found.missing += load.accepted.filter((id) => !there.has(id)).length
  found.twice += rows.length - there.size
  found.refused += load.refusals.length
  // 200: it was committed, its answer was lost with the connection, and it was sent again
  for (const [status] of load.statuses) if (!['200', '201', '503'].includes(status)) found.others.push(status)
  await Promise.all([endServer(server), endServer(worker)])
  await standby.stop()
  say(`round ${number} of ${rounds}: ${JSON.stringify(found)}`)
}

const list = (values: readonly number[]) => values.map((value) => value.toFixed(1)).join(', ')

try {
  for (let number = 1; number <= rounds; number += 1) await round(number)
  await report('proof:failover', {}, [
    {
      text: `${found.accepted} events were answered in ${rounds} rounds, ${found.missing} of them are not on the promoted standby, and ${found.twice} are there twice`,
      holds: found.missing === 0 && found.twice === 0 && found.accepted > 0,
    },
    {
      text: `requests are answered again ${list(found.back)} s after the promotion (at most ${mostSeconds}), and a project is provisioned by the worker after ${list(found.worker)} s`,
      holds: Math.max(...found.back, ...found.worker) < mostSeconds,
    },
    {
      text: `meanwhile ${found.refused} requests were answered 503, and ${found.others.length} with anything else`,
      holds: found.others.length === 0,
    },
  ])
} finally {
  await endPrograms()
}
