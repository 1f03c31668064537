// A server is asked to stop while a segment of 100,000 users is refreshed, 100,000 rows are imported, 100,000 events are replayed,
// all users are exported to a slow client, and others post events. It must be gone in time, leave no statement behind, and
// lose nothing: the next server ends all of it with exactly the right result.
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ask, createTestProject, type ServerProcess, startServer } from '#test/support/process.ts'
import { address, install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { type Claim, report } from './support/page.ts'

const many = 100_000
/** Users whose streaks the replay makes: each of them has the same share of the events. */
const streakers = 20_000
const shutdownSeconds = 5
const patienceMs = 20 * 60_000

const installation = await install()
const { cluster } = installation
const environment = {
  DATABASE_URL: cluster.dsn,
  SECRETS_KEY: installation.secretsKey,
  DATA_DIR: installation.dataDir,
  SHUTDOWN_SECONDS: String(shutdownSeconds),
  LOG_LEVEL: 'error',
}
const start = () => startServer(environment)
let server: ServerProcess = await start()
const scenario = await createTestProject(server.url)
const project = `/v1/admin/projects/${scenario.projectId}`
const admin = async (method: string, path: string, body?: unknown) => {
  const answer = await ask(server.url, method, project + path, body, scenario.developer)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const url = new URL(cluster.dsn)
url.pathname = `/trellis_${scenario.projectId.replaceAll('-', '')}`
const end = async () => {
  server.child.kill('SIGTERM')
  await server.ended
  await Promise.all([tenant.end(), control.end()])
  await installation.end()
}
// nothing that was started outlives a proof that fails
process.once('uncaughtException', (error) => {
  say(String(error.stack))
  void end().finally(() => process.exit(1))
})
const tenant = new pg.Client({ connectionString: url.href })
await tenant.connect()
url.pathname = '/trellis_control'
const control = new pg.Client({ connectionString: url.href })
await control.connect()
const count = async (sql: string, on = tenant) =>
  Number((await on.query<{ n: string }>(`select (${sql}) as n`)).rows[0]?.n)

say('filling')
await tenant.query(
  `insert into app.users (display_name, properties)
   select 'user ' || n, jsonb_build_object('n', n, 'text', repeat('x', 500)) from generate_series(1, ${many}) n`,
)
// the streak comes afterwards, so that only the replay counts for it: five days running for each
await tenant.query(
  `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
   select internal.new_id(), u.id, 'practised', d.at, now(), 'server'
     from (select id from app.users where display_name like 'user %' order by id limit ${streakers}) u
    cross join (select date_trunc('day', now()) - n * interval '1 day' + interval '1 hour' as at from generate_series(1, ${many / streakers}) n) d`,
)
await tenant.query('analyze')
await admin('POST', '/collections', { name: 'imported', columns: [{ name: 'n', type: 'integer' }] })

say('beginning the work')
await admin('POST', '/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
const segment = await admin('POST', '/segments', {
  key: 'half',
  name: 'Half',
  rules: { source: 'property', column: 'n', op: 'lte', value: many / 2 },
})
const file = Array.from({ length: many }, (_, n) => `{"user_id":"${scenario.userId}","n":${n}}`).join('\n')
const upload = await fetch(`${server.url}${project}/collections/imported/import?format=ndjson`, {
  method: 'POST',
  headers: { ...scenario.developer, 'content-type': 'application/x-ndjson' },
  body: file,
})
const importing = ((await upload.json()) as { data: { operation_id: string } }).data.operation_id
const replay = await admin('POST', '/events/replay', {
  since: new Date(Date.now() - 30 * 86_400_000).toISOString(),
  targets: ['streaks'],
  dry_run: false,
})

const members = () => count(`select count(*) from app.segment_members where segment_id = '${segment.id}'`)
const imported = () => count('select count(*) from collections.imported')
const streaks = () => count('select count(*) from app.user_streaks')
const doneOf = async () => [await members(), await imported(), await streaks()]

/** Posts events until it is told to stop, and remembers those that were answered. */
const answered: string[] = []
const post = () => {
  let isOver = false
  const done = (async () => {
    while (!isOver) {
      const id = randomUUID()
      const event = { event_name: 'precious', id }
      const sent = ask(server.url, 'POST', '/v1/client/events', event, { ...scenario.user, ...address() })
      const answer = await sent.catch(() => null)
      if (answer && answer.status < 300) answered.push(id)
      else await sleep(50)
    }
  })()
  return async () => {
    isOver = true
    await done
  }
}

type Export = { readonly ended: Promise<'reset' | 'whole' | 'short'>; read(): void; readonly socket: Socket }
/** An export that its client reads no further than the first bytes, until told to. HTTP/1.0: only a reset shows that it is not whole. */
const exportSlowly = async (): Promise<Export> => {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  const path = `${project}/users/export?format=ndjson`
  socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: ${scenario.developer.authorization}\r\n\r\n`)
  const seen: { lines: number } = { lines: 0 }
  const ended = new Promise<'reset' | 'whole' | 'short'>((resolve) => {
    socket.on('error', () => resolve('reset'))
    socket.on('end', () => resolve(seen.lines >= many ? 'whole' : 'short'))
  })
  await new Promise<void>((resolve) => {
    socket.once('data', () => {
      socket.pause()
      resolve()
    })
  })
  const read = () => {
    socket.on('data', (chunk: Buffer) => {
      seen.lines += chunk.toString('latin1').split('\n').length - 1
    })
    socket.resume()
  }
  return { ended, read, socket }
}

/** What a server that is gone left behind. */
const leftBehind = async () => ({
  statements: await count(
    `select count(*) from pg_stat_activity where application_name like 'trellis%' and state <> 'idle'`,
    control,
  ),
  jobs: await count('select count(*) from graphile_worker._private_jobs where locked_by is not null', control),
  leases: await count('select count(*) from app.outbox where locked_until > now()'),
  attempts: await count('select coalesce(max(attempts), 0) from app.outbox'),
})

const moves = async (before: number[]) => {
  for (let tries = 0; tries < 600; tries += 1) {
    const now = await doneOf()
    // each goes on, or is at its end
    if (now.every((each, n) => each > (before[n] ?? 0) || each >= [many / 2, many, streakers][n]!)) return now
    await sleep(100)
  }
  throw new Error(`nothing moves: ${await doneOf()} after ${before}`)
}

const claims: Claim[] = []
const round = async (name: string, limitMs: number, options: { slowExport: boolean; twice: boolean }) => {
  const stopPosting = post()
  const before = await moves(await doneOf())
  const slow = options.slowExport ? await exportSlowly() : null
  const began = performance.now()
  server.child.kill('SIGTERM')
  if (options.twice) {
    await sleep(700)
    server.child.kill('SIGTERM')
  }
  const asked = options.twice ? performance.now() : began
  const code = await server.ended
  const milliseconds = Math.round(performance.now() - asked)
  const left = await leftBehind()
  await stopPosting()
  slow?.read()
  const half = slow ? await slow.ended : 'reset'
  say(`${name}: ${milliseconds} ms, code ${code}, ${JSON.stringify(left)}, ${half}; ${before} -> ${await doneOf()}`)
  claims.push({
    text: `${name}: gone ${(milliseconds / 1000).toFixed(1)} s after the ${options.twice ? 'second ' : ''}signal (at most ${limitMs / 1000}); ${before[0]} of ${many / 2} members, ${before[1]} of ${many} rows and ${before[2]} of ${streakers} streaks were made by then`,
    holds: milliseconds <= limitMs,
  })
  claims.push({
    text: `${name}: ${left.statements} statements, ${left.jobs} locked jobs and ${left.leases} leases stay behind${slow ? `, and the export that was cut off ended with a ${half}` : ''}`,
    holds: left.statements + left.jobs + (options.twice ? 0 : left.leases) === 0 && half === 'reset',
  })
  server = await start()
}

await round('with an export to a client that takes nothing', (shutdownSeconds + 4) * 1000, {
  slowExport: true,
  twice: false,
})
await round('without it', (shutdownSeconds + 2) * 1000, { slowExport: false, twice: false })
await round('told twice', 2500, { slowExport: true, twice: true })

say('waiting for the end of the work')
const until = Date.now() + patienceMs
const isOver = async () => {
  const operations = await Promise.all([importing, replay.operation_id].map((id) => admin('GET', `/operations/${id}`)))
  return operations.every(({ status }) => !['queued', 'running'].includes(status)) && (await members()) >= many / 2
}
while (!(await isOver()) && Date.now() < until) await sleep(500)
const imports = await admin('GET', `/operations/${importing}`)
const replayed = await admin('GET', `/operations/${replay.operation_id}`)
const right = await count(`select count(*) from app.segment_members m join app.users u on u.id = m.app_user_id
   where m.segment_id = '${segment.id}' and (u.properties ->> 'n')::int <= ${many / 2}`)
const distinct = await count('select count(distinct n) from collections.imported')
const fives = await count(`select count(*) from app.user_streaks where longest_count = ${many / streakers}`)
const kept = (
  await tenant.query(
    `select count(*)::int as n from app.engagement_events where event_name = 'precious' and id = any($1)`,
    [answered],
  )
).rows[0].n
const failed = await count('select count(*) from app.outbox where failed_at is not null')
claims.push(
  {
    text: `the refresh ended with ${await members()} members, ${right} of them right (${many / 2})`,
    holds: right === many / 2 && (await members()) === right,
  },
  {
    text: `the import ${imports.status} with ${imports.result?.inserted} rows inserted and ${imports.result?.failed} failed; the collection has ${await imported()}, ${distinct} of them different`,
    holds:
      imports.status === 'succeeded' &&
      imports.result.inserted === many &&
      (await imported()) === many &&
      distinct === many,
  },
  {
    text: `the replay ${replayed.status}; ${fives} users of ${streakers} have the streak that their events make, and ${await streaks()} have one`,
    holds: replayed.status === 'succeeded' && fives === streakers && (await streaks()) === streakers,
  },
  {
    text: `${kept} of ${answered.length} events that were answered meanwhile are there; ${failed} tasks were given up`,
    holds: kept === answered.length && failed === 0,
  },
)

await end()
await report('proof:stop', { Postgres: installation.postgresVersion }, claims)
process.exit()
