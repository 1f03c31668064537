// npm run bench:exports: how fast exports stream, and that the server's memory does not grow with them.
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { tenantName } from '#server/database/names.ts'
import { createTestProject, type ServerProcess } from '#test/support/process.ts'
import { requireProc } from './support/cpu.ts'
import { asAdmin, type Installation, install } from './support/installation.ts'
import { figure, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const stages = isShort ? [1_000, 10_000] : [2_000, 20_000, 200_000]
const events = isShort ? 10_000 : 200_000
/** Megabytes that ten times the rows may add. */
const allowedGrowth = 64

type Scenario = Awaited<ReturnType<typeof createTestProject>>
type World = { readonly installation: Installation; readonly server: ServerProcess; readonly scenario: Scenario }
type Read = {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly milliseconds: number
  readonly before: number
  readonly peak: number
}

const megabytes = (pid: number, field: 'VmRSS' | 'VmHWM'): number => {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) / 1024
}

/** From here on VmHWM is the peak since now. */
const forgetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5')

/** Reads a whole export, counting lines; a slow client takes its time after each piece. */
const readExport = async (world: World, name: string, path: string, pauseMs = 0): Promise<Read> => {
  const { server, scenario } = world
  const pid = server.child.pid ?? 0
  await sleep(1000)
  const before = megabytes(pid, 'VmRSS')
  forgetPeak(pid)
  const began = performance.now()
  const answer = await fetch(`${server.url}/v1/admin/projects/${scenario.projectId}${path}`, {
    headers: scenario.developer,
  })
  if (answer.status !== 200 || !answer.body) throw new Error(`${path} answered ${answer.status}`)
  let [bytes, rows] = [0, 0]
  for await (const piece of answer.body) {
    bytes += piece.length
    for (const byte of piece) if (byte === 10) rows += 1
    if (pauseMs > 0) await sleep(pauseMs)
  }
  const milliseconds = performance.now() - began
  return { name, rows, bytes, milliseconds, before, peak: megabytes(pid, 'VmHWM') }
}

const fillUsers = async ({ installation, scenario }: World, from: number, to: number) => {
  say(`${to} users`)
  await asAdmin(
    installation.cluster,
    tenantName('trellis', scenario.projectId),
    `insert into app.users (display_name, email, anonymous_id, properties, created_at)
     select 'User ' || n, 'user' || n || '@example.org', 'anon_' || md5(n::text) || md5((-n)::text),
            jsonb_build_object('plan', case n % 3 when 0 then 'pro' else 'free' end, 'level', n % 50, 'note', repeat('x', 100)),
            now() - interval '1 day' + n * interval '1 millisecond'
       from generate_series($1::int, $2::int) n`,
    [from + 1, to],
  )
}

const fillEvents = async ({ installation, scenario }: World) => {
  say(`${events} events`)
  await asAdmin(
    installation.cluster,
    tenantName('trellis', scenario.projectId),
    `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
     select internal.new_id(), $1, 'lesson_completed', jsonb_build_object('lesson', n, 'score', n % 100),
            now() - n * interval '1 second', now(), 'client'
       from generate_series(1, $2::int) n`,
    [scenario.userId, events],
  )
}

const measure = async (world: World): Promise<Read[]> => {
  const reads: Read[] = []
  // what a first export brings into memory, code and buffers, is no growth
  await readExport(world, 'warm', '/users/export')
  let filled = 0
  for (const count of stages) {
    await fillUsers(world, filled, count)
    filled = count
    for (const format of ['csv', 'ndjson']) {
      reads.push(await readExport(world, `${count} users, ${format}`, `/users/export?format=${format}`))
    }
  }
  await fillEvents(world)
  const { userId } = world.scenario
  reads.push(await readExport(world, `bundle, ${events} events`, `/users/${userId}/export`))
  reads.push(await readExport(world, `${filled} users, csv, slow client`, '/users/export', isShort ? 5 : 10))
  return reads
}

/** V8 lets garbage lie while it has room, so a peak is never that of one batch; but rows must not add to it. */
const aims = (reads: readonly Read[]): Aim[] => {
  const peakOf = (count: number | undefined, format: string) =>
    reads.find(({ name }) => name === `${count} users, ${format}`)?.peak ?? 0
  const [fewer, most] = stages.slice(-2)
  const added = Math.max(...['csv', 'ndjson'].map((format) => peakOf(most, format) - peakOf(fewer, format)))
  const highest = Math.max(...reads.map(({ peak }) => peak))
  return [
    {
      text: `${most} users instead of ${fewer} add ${Math.round(added)} MB to the peak of the server process (aim: at most ${allowedGrowth} MB); the highest of all exports is ${Math.round(highest)} MB`,
      isMet: added <= allowedGrowth,
    },
  ]
}

requireProc()
const installation = await install()
try {
  const server = await installation.serve()
  const world = { installation, server, scenario: await createTestProject(server.url) }
  const reads = await measure(world)
  const text = `## bench:exports

${await circumstances('npm run bench:exports', { Postgres: installation.postgresVersion })}

Each export is read whole by one client. Memory is that of the server process: what it had before, and its peak while the export ran.

${table(
  ['export', 'rows', 'MB', 'seconds', 'rows a second', 'memory before, MB', 'peak, MB'],
  reads.map(({ name, rows, bytes, milliseconds, before, peak }) => [
    name,
    String(rows),
    figure(bytes / 2 ** 20),
    figure(milliseconds / 1000),
    figure((rows / milliseconds) * 1000),
    figure(before),
    figure(peak),
  ]),
)}

${aims(reads).map(aimLine).join('\n')}`
  await publish({ name: 'bench:exports', isShort, text })
} finally {
  await installation.end()
}
