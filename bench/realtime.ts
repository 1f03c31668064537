// npm run bench:realtime: rows that one writes and many hear of, through one server process, beside Parse Server's LiveQuery with the same rows and readers.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '#server/root.ts'
import { ask, createTestProject, endPrograms, freePort } from '#test/support/process.ts'
import { type Child, startChild } from './support/child.ts'
import { postgresCpu, processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, type Installation, install, signIn } from './support/installation.ts'
import type { Counted, ListenCommand } from './support/listeners.ts'
import { figure, medianOf, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const counts = isShort ? [2000] : [1, 100, 2000, 5000]
const rounds = isShort ? 1 : 3
/** One row after the other has reached everybody: what is measured is the path, not a queue. */
const rowsPerRound = (sockets: number) => (sockets >= 2000 ? 20 : 50)
/** With so many sockets also rows that are written at once, as a busy channel has them: the next ones come when all have got these. */
const busySockets = 2000
const rowsAtOnce = 10
const perConnection = 5
const peers = join(root, 'bench/peers')

type Round = {
  readonly p50: number
  readonly p99: number
  readonly perSecond: number
  /** Deliveries for each second of CPU of the server process, and of the server and Postgres together. */
  readonly perCpuSecond: number
  readonly perCpuSecondOfBoth: number
}
type Side = {
  readonly name: string
  readonly pid: number
  listen(listeners: Child, sockets: number): Promise<void>
  write(text: string): Promise<void>
  end(): Promise<void>
}

const now = () => performance.timeOrigin + performance.now()
const rowOf = () => ({ text: 'x'.repeat(200), sent: now() })

const memoryOf = (pid: number): number => {
  const [, kilobytes] = /^Rss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
  return Number(kilobytes ?? 0) * 1024
}

const send = async (url: string, headers: Record<string, string>, text: string): Promise<void> => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

const startTrellis = async (installation: Installation): Promise<Side> => {
  const server = await installation.serve()
  const { developer, projectId, key, user } = await createTestProject(server.url)
  const made = await ask(
    server.url,
    'POST',
    `/v1/admin/projects/${projectId}/collections`,
    {
      name: 'notices',
      read_policy: 'public',
      columns: [
        { name: 'text', type: 'text' },
        { name: 'sent', type: 'double' },
      ],
    },
    developer,
  )
  if (made.status !== 201) throw new Error(`the collection was not made: ${JSON.stringify(made.body)}`)
  const users: Record<string, string>[] = []
  return {
    name: 'Trellis',
    pid: server.child.pid ?? 0,
    async listen(listeners, sockets) {
      while (users.length < Math.ceil(sockets / perConnection))
        users.push({ ...(await signIn(server.url, key)).headers })
      const headers = Array.from({ length: sockets }, (_, n) => users[Math.floor(n / perConnection)] ?? {})
      const url = `${server.url.replace('http', 'ws')}/v1/client/realtime`
      await listeners.ask({ kind: 'trellis', url, headers, channel: 'collection:notices' } satisfies ListenCommand)
    },
    write: (text) => send(`${server.url}/v1/client/collections/notices`, user, text),
    end: async () => undefined,
  }
}

const untilHealthy = async (url: string, child: ChildProcess): Promise<void> => {
  for (let tries = 0; ; tries += 1) {
    const response = await fetch(`${url}/health`).catch(() => null)
    if (response?.ok && ((await response.json()) as { status: string }).status === 'ok') return
    if (tries > 300 || child.exitCode !== null) throw new Error('Parse Server does not answer')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const startParse = async ({ cluster }: Installation): Promise<Side | null> => {
  if (!existsSync(join(peers, 'node_modules/parse-server'))) return null
  const password = randomBytes(16).toString('hex')
  await asAdmin(cluster, 'postgres', `create role bench_parse login password '${password}'`)
  await asAdmin(cluster, 'postgres', 'create database bench_parse owner bench_parse')
  const dsn = new URL(cluster.dsn)
  const port = await freePort()
  const appId = 'bench'
  const child = spawn(process.execPath, [join(peers, 'parse_live.mjs')], {
    cwd: peers,
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      PORT: String(port),
      PARSE_SERVER_LOGS_FOLDER: 'null',
      DATABASE_HOST: dsn.hostname,
      DATABASE_PORT: dsn.port,
      DATABASE: 'bench_parse',
      DATABASE_USER: 'bench_parse',
      DATABASE_PASSWORD: password,
      APP_ID: appId,
      MASTER_KEY: randomBytes(24).toString('hex'),
    },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const url = `http://127.0.0.1:${port}/parse`
  await untilHealthy(url, child).catch((error) => {
    child.kill('SIGTERM')
    throw error
  })
  return {
    name: 'Parse Server LiveQuery',
    pid: child.pid ?? 0,
    async listen(listeners, sockets) {
      const command = { kind: 'parse', url: `ws://127.0.0.1:${port}`, appId, className: 'Notice', sockets } as const
      await listeners.ask(command satisfies ListenCommand)
    },
    write: (text) => send(`${url}/classes/Notice`, { 'x-parse-application-id': appId }, text),
    async end() {
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
    },
  }
}

const round = async (
  side: Side,
  listeners: Child,
  sockets: number,
  postmaster: number,
  atOnce: number,
): Promise<Round> => {
  const rows = rowsPerRound(sockets)
  await listeners.ask({ kind: 'begin' } satisfies ListenCommand)
  const before = { server: processCpu(side.pid), postgres: postgresCpu(postmaster) }
  const began = now()
  let counted: Counted | undefined
  for (let n = atOnce; n <= rows; n += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, () => side.write(JSON.stringify(rowOf()))))
    counted = await listeners.ask<Counted>({ kind: 'count', wanted: n * sockets } satisfies ListenCommand)
  }
  const server = (processCpu(side.pid) - before.server) / 1e6
  const postgres = (postgresCpu(postmaster) - before.postgres) / 1e6
  const deliveries = rows * sockets
  if (counted?.deliveries !== deliveries)
    throw new Error(`${side.name}: ${counted?.deliveries} of ${deliveries} deliveries arrived`)
  return {
    p50: counted.p50,
    p99: counted.p99,
    perSecond: (deliveries / (counted.last - began)) * 1000,
    perCpuSecond: deliveries / server,
    perCpuSecondOfBoth: deliveries / (server + postgres),
  }
}

type Measured = {
  readonly sockets: number
  readonly atOnce: number
  readonly side: string
  readonly rounds: Round[]
  readonly bytes: number
}

const measure = async (installation: Installation, sides: readonly Side[]): Promise<Measured[]> => {
  const measured: Measured[] = []
  for (const sockets of counts) {
    const listeners = await Promise.all(
      sides.map(async (side) => {
        const child = startChild('listeners.ts')
        const before = memoryOf(side.pid)
        say(`${side.name}: ${sockets} sockets`)
        await side.listen(child, sockets)
        // the first rows warm what compiles itself
        for (let n = 0; n < 3; n += 1) await side.write(JSON.stringify(rowOf()))
        await new Promise((resolve) => setTimeout(resolve, 1000))
        const bytes = (memoryOf(side.pid) - before) / sockets
        return { side, child, bytes, done: [] as Round[], busy: [] as Round[] }
      }),
    )
    for (let n = 0; n < rounds; n += 1)
      for (const { side, child, done, busy } of listeners) {
        done.push(await round(side, child, sockets, installation.postmaster, 1))
        if (sockets === busySockets) busy.push(await round(side, child, sockets, installation.postmaster, rowsAtOnce))
      }
    for (const { side, child, bytes, done, busy } of listeners) {
      measured.push({ sockets, atOnce: 1, side: side.name, rounds: done, bytes })
      if (busy.length > 0) measured.push({ sockets, atOnce: rowsAtOnce, side: side.name, rounds: busy, bytes })
      await child.ask({ kind: 'close' } satisfies ListenCommand)
      await child.end()
    }
  }
  return measured
}

const of = (measured: readonly Measured[], name: string, sockets: number, atOnce = 1) =>
  measured.find((one) => one.side === name && one.sockets === sockets && one.atOnce === atOnce)
const perCpuSecond = (one: Measured) => medianOf(one.rounds, (round) => round.perCpuSecond)
const ratioOf = (measured: readonly Measured[], atOnce: number): number | undefined => {
  const ours = of(measured, 'Trellis', busySockets, atOnce)
  const theirs = of(measured, 'Parse Server LiveQuery', busySockets, atOnce)
  return ours && theirs && perCpuSecond(ours) / perCpuSecond(theirs)
}

const aimsOf = (measured: readonly Measured[]): Aim[] => {
  const most = counts.at(-1) ?? 0
  const ours = of(measured, 'Trellis', 2000)
  const p99 = ours && medianOf(ours.rounds, (one) => one.p99)
  const ratio = ratioOf(measured, 1)
  const busy = ratioOf(measured, rowsAtOnce)
  const bytes = of(measured, 'Trellis', most)?.bytes
  return [
    {
      text: `p99 from request to delivery at 2,000 sockets ${figure(p99 ?? Number.NaN)} ms; wanted under 100`,
      isMet: p99 === undefined ? null : p99 < 100,
    },
    {
      text: `deliveries a CPU second ${figure(ratio ?? Number.NaN)} times LiveQuery's at 2,000 sockets; wanted 2`,
      isMet: ratio === undefined ? null : ratio >= 2,
      floor: 'a write to a socket alone, without anything before it, is half of what a delivery costs',
    },
    {
      text: `deliveries a CPU second ${figure(busy ?? Number.NaN)} times LiveQuery's at 2,000 sockets with ${rowsAtOnce} rows at once; wanted 5`,
      isMet: busy === undefined ? null : busy >= 5,
    },
    {
      text: `${figure((bytes ?? 0) / 1024)} KB a socket at ${most}; wanted under 60`,
      isMet: isShort || bytes === undefined ? null : bytes < 60 * 1024,
    },
  ]
}

const report = async (installation: Installation, measured: readonly Measured[]): Promise<string> => {
  const rows = measured.map(({ sockets, atOnce, side, rounds: done, bytes }) => [
    `${side}, ${sockets}${atOnce > 1 ? `, ${atOnce} rows at once` : ''}`,
    figure(medianOf(done, (one) => one.p50)),
    figure(medianOf(done, (one) => one.p99)),
    figure(medianOf(done, (one) => one.perSecond)),
    figure(medianOf(done, (one) => one.perCpuSecond)),
    figure(medianOf(done, (one) => one.perCpuSecondOfBoth)),
    sockets >= 100 ? figure(bytes / 1024) : '-',
  ])
  return `## Realtime: a row that many hear of

One user inserts a row over HTTP; everybody who listens to the collection, or with LiveQuery to the class, gets it over a WebSocket. The next row is written when all have got the one
before, so each delivery is a write to a socket, of which one costs some 10 us of CPU in the kernel alone; rows that are written at once reach a socket in one write. One server process
on each side, the sockets in another process.

${table(['side, sockets', 'p50 ms', 'p99 ms', 'deliveries/s', 'per CPU s of the server', 'with Postgres', 'KB a socket'], rows)}

${aimsOf(measured).map(aimLine).join('\n')}

${await circumstances('npm run bench:realtime', { PostgreSQL: installation.postgresVersion, ws: await versionOf('ws'), 'Parse Server': '9.10.0' })}`
}

requireProc()
const installation = await install()
const sides: Side[] = []
try {
  sides.push(await startTrellis(installation))
  const parse = await startParse(installation)
  if (parse) sides.push(parse)
  else say('Parse Server is not installed: npm ci in bench/peers brings it')
  const measured = await measure(installation, sides)
  await publish({ name: 'realtime', isShort, text: await report(installation, measured) })
} finally {
  for (const side of sides) await side.end()
  await installation.end()
  await endPrograms()
}
