// npm run proof:soak -- --minutes 60 --projects 50: users of many projects do what users do, while every process of the installation is killed or replaced in turn, Postgres too.
// No answer may break its declaration, memory must stay where it is, and in the end everything that was answered must be true.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startHttpsReceiver } from '#test/support/https.ts'
import {
  createTestProject,
  endPrograms,
  endServer,
  freePort,
  startServer,
  startWorker,
  type WorkerProcess,
} from '#test/support/process.ts'
import { install } from '../bench/support/installation.ts'
import { figure, table } from '../bench/support/numbers.ts'
import { say } from '../bench/support/results.ts'
import { percentile, report } from './support/page.ts'
import { createCaller } from './support/soak/caller.ts'
import { fillLibrary, type Library, readSomething } from './support/soak/library.ts'
import { act, define, type SoakProject, signUp } from './support/soak/project.ts'
import { checkProject, createTruths } from './support/soak/truths.ts'

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, projects: { type: 'string', default: '50' } },
})
const minutes = Number(options.minutes)
const projectCount = Number(options.projects)
const runMs = minutes * 60_000
const disturbMs = Math.min(90_000, runMs / 12)
/** How long after a disturbance a request may get 503, or no answer. */
const recoveryMs = 20_000
const actors = 12
const pauseMs = 25

const installation = await install()
const receiver = await startHttpsReceiver()
const environment = {
  DATABASE_URL: installation.cluster.dsn,
  SECRETS_KEY: installation.secretsKey,
  DATA_DIR: installation.dataDir,
  WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
  WEBHOOK_CA_FILE: receiver.caFile,
  LOG_LEVEL: 'error',
}

/** A program that is started again whenever it ends, until it is told to stop. */
const keep = async (name: string, start: () => Promise<WorkerProcess>) => {
  let current = await start()
  let isStopping = false
  const samples: { readonly at: number; readonly mb: number; readonly life: number }[] = []
  let life = 0
  const watch = async () => {
    while (!isStopping) {
      await current.ended
      if (isStopping) return
      life += 1
      current = await start()
    }
  }
  const watching = watch()
  return {
    name,
    samples,
    output: () => current.output(),
    end(signal: 'SIGKILL' | 'SIGTERM') {
      if (current.child.exitCode === null && current.child.signalCode === null) current.child.kill(signal)
    },
    /** Resident memory, as the kernel counts it. */
    async sample() {
      const status = await readFile(`/proc/${current.child.pid}/status`, 'utf8').catch(() => '')
      const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0)
      if (kilobytes > 0) samples.push({ at: Date.now(), mb: kilobytes / 1024, life })
    },
    async stop() {
      isStopping = true
      await endServer(current)
      await watching
    },
  }
}

const ports = [String(await freePort()), String(await freePort())]
const serve = (PORT: string) => () => startServer({ ...environment, WORKER: 'off', PORT })
const steady = await keep('the server that is killed once', serve(ports[0] ?? ''))
const other = await keep('the other server', serve(ports[1] ?? ''))
const worker = await keep('the worker', () => startWorker(environment))
const programs = [steady, other, worker]
// nothing that was started outlives a proof that fails
process.once('uncaughtException', (error) => {
  say(String(error.stack))
  void endPrograms()
    .then(() => installation.end())
    .finally(() => process.exit(1))
})

const urls = ports.map((port) => `http://127.0.0.1:${port}`)
const caller = await createCaller(urls)
const projects: SoakProject[] = []
for (let n = 0; n < projectCount; n += 1) {
  const project = await define(caller, await createTestProject(urls[0] ?? ''), receiver.url)
  for (let people = 0; people < 4; people += 1) await signUp(caller, project)
  projects.push(project)
}
const libraries: Library[] = []
for (let n = 0; n < 2; n += 1)
  libraries.push(await fillLibrary(installation.cluster, caller, await createTestProject(urls[0] ?? '')))
say(`${projectCount} projects are defined, ${caller.requests()} requests`)

/** Resolves when Postgres takes connections: until its crash recovery is over, nobody can be answered. */
const recovered = async (): Promise<void> => {
  const client = new pg.Client({ connectionString: installation.cluster.dsn, connectionTimeoutMillis: 2000 })
  client.on('error', () => undefined)
  const isThere = await client.connect().then(
    () => true,
    () => false,
  )
  await client.end().catch(() => undefined)
  if (isThere) return
  await sleep(100)
  return recovered()
}
const postmaster = async () => {
  const file = await readFile(join(installation.dataDir, 'cluster/postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(file.split('\n')[0])
  if (pid > 0) process.kill(pid, 'SIGKILL')
  await sleep(500)
  await recovered()
}
const rotation: readonly (readonly [name: string, work: () => unknown])[] = [
  ['the other server is killed', () => other.end('SIGKILL')],
  ['the worker is replaced', () => worker.end('SIGTERM')],
  ['Postgres is killed', postmaster],
  ['the other server is replaced', () => other.end('SIGTERM')],
  ['the worker is killed', () => worker.end('SIGKILL')],
]

const began = Date.now()
const disturbances: { readonly at: number; readonly what: string; until: number }[] = []
let isOver = false
const disturb = async () => {
  for (let turn = 0; !isOver; turn += 1) {
    await sleep(disturbMs)
    // the last part is undisturbed
    if (isOver || Date.now() > began + runMs - recoveryMs) return
    const isHalf = !disturbances.some(({ what }) => what.startsWith(steady.name)) && Date.now() > began + runMs / 2
    const [what, work] = isHalf
      ? [`${steady.name} is killed`, () => steady.end('SIGKILL')]
      : (rotation[turn % rotation.length] ?? ['', () => undefined])
    const disturbance = { at: Date.now(), what, until: Number.POSITIVE_INFINITY }
    disturbances.push(disturbance)
    await work()
    disturbance.until = Date.now()
  }
}
const measure = async () => {
  let told = 0
  while (!isOver) {
    for (const program of programs) await program.sample()
    await sleep(Math.min(5000, runMs / 60))
    if (Date.now() - told < 60_000) continue
    told = Date.now()
    const memory = programs.map(({ samples }) => figure(samples.at(-1)?.mb ?? 0)).join(', ')
    say(
      `${Math.round((told - began) / 60_000)} min: ${caller.requests()} requests, ${memory} MB; ${caller.undeclared.size} undeclared`,
    )
  }
}
let broken: unknown
const actor = async (number: number) => {
  for (let turn = number; Date.now() < began + runMs && !broken; turn += actors) {
    if (turn % 5 === 0) await readSomething(caller, libraries[turn % 2] as Library)
    else await act(caller, projects[turn % projects.length] as SoakProject)
    await sleep(pauseMs)
  }
}
const beside = [disturb(), measure()]
await Promise.all(
  Array.from({ length: actors }, (_, number) =>
    actor(number).catch((error: unknown) => {
      broken ??= error
    }),
  ),
)
isOver = true
if (broken) throw broken
await Promise.all(beside)
const requests = caller.requests()
const people = projects.reduce((sum, project) => sum + project.people.length, 0)
say(`${requests} requests of ${people} users are over; waiting for what they queued`)

const tenantOf = async ({ made }: SoakProject) => {
  const url = new URL(installation.cluster.dsn)
  url.pathname = `/trellis_${made.projectId.replaceAll('-', '')}`
  const client = new pg.Client({ connectionString: url.href })
  client.on('error', () => undefined)
  await client.connect()
  return client
}
const drained = async (tenant: pg.Client) => {
  const until = Date.now() + 180_000
  while (Date.now() < until) {
    const { rows } = await tenant.query<{ n: number }>(
      'select count(*)::int as n from app.outbox o where o.failed_at is null and o.due_at <= now()',
    )
    if (rows[0]?.n === 0) return
    await sleep(250)
  }
}
const truths = createTruths()
const keysOf = (projectId: string) =>
  new Set(
    receiver.requests
      .filter(({ path }) => path.includes(projectId))
      .map(({ headers }) => String(headers['x-service-idempotency-key'])),
  )
for (const project of projects) {
  const tenant = await tenantOf(project)
  await drained(tenant)
  const until = Date.now() + 60_000
  while (keysOf(project.made.projectId).size < project.precious.length && Date.now() < until) await sleep(250)
  await checkProject(caller, truths, project, tenant, keysOf(project.made.projectId))
  await tenant.end()
}

const isExplained = (at: number) => disturbances.some((one) => at >= one.at && at < one.until + recoveryMs)
const recoveries = disturbances
  .filter(({ what }) => what === 'Postgres is killed')
  .map(({ at, until }) => (until - at) / 1000)
const unexplained = caller.unavailable.filter((at) => at < began + runMs && !isExplained(at))
const internal = [...caller.statuses].filter(([status]) => status.startsWith('500'))
const quarter = (from: number) =>
  caller.took.filter(({ at }) => at >= began + runMs * from && at < began + runMs * (from + 0.25)).map(({ ms }) => ms)
const [early, late] = [quarter(0), quarter(0.75)]
// what a life of the steady server holds once its caches and its pool are warm
const livesOf = ({ samples }: typeof steady) =>
  [...Map.groupBy(samples, ({ life }) => life).values()].filter((life) => life.length >= 9)
const mean = (list: readonly { readonly mb: number }[]) => list.reduce((sum, { mb }) => sum + mb, 0) / list.length
const growths = livesOf(steady).map((life) => {
  const third = Math.floor(life.length / 3)
  return { middle: mean(life.slice(third, 2 * third)), end: mean(life.slice(-third)) }
})
const checked = [...truths.checked].map(([kind, count]) => `${count} ${kind}`).join(', ')

for (const wrong of truths.wrong) say(wrong)
for (const [problem, at] of caller.undeclared) say(`${at} ${problem}`)
await report(
  'proof:soak',
  { Postgres: installation.postgresVersion },
  [
    {
      text: `${minutes} minutes, ${projectCount} projects, ${people} users, ${requests} requests to ${caller.used.size} routes; ${disturbances.length} times a process was killed or replaced`,
      holds: disturbances.length > 0,
    },
    {
      text: `no answer breaks the declaration of its route (${caller.undeclared.size} did), and none is a 500`,
      holds: caller.undeclared.size === 0 && internal.length === 0,
    },
    {
      text: `later than ${recoveryMs / 1000} s after a disturbance every request was answered, and none with 503 (${unexplained.length} were)`,
      holds: unexplained.length === 0,
    },
    {
      text: `everything that was answered is true: ${checked} (${truths.wrong.length} wrong)`,
      holds: truths.wrong.length === 0,
    },
    {
      text: `memory stays where it is: of each life of the steady server the last third holds ${growths.map(({ middle, end }) => `${figure(end)} MB (the one before ${figure(middle)})`).join(', ')}`,
      holds: growths.every(({ middle, end }) => end < middle * 1.1),
    },
    {
      text: `so do the times: p95 ${percentile(early, 0.95)} ms in the first quarter, ${percentile(late, 0.95)} ms in the last`,
      holds: percentile(late, 0.95) < 2 * percentile(early, 0.95),
    },
  ],
  `Postgres itself took ${recoveries.map((value) => value.toFixed(1)).join(', ')} s for its crash recovery, which counts as the disturbance.\n\n${table(
    ['answer', 'times'],
    [...caller.statuses].sort((a, b) => b[1] - a[1]).map(([status, count]) => [status, String(count)]),
  )}`,
  minutes >= 60 ? 'proof:soak' : 'proof:soak-short',
)
for (const program of programs) await program.stop()
await receiver.close()
await installation.end()
