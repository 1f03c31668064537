// npm run bench:sync: pulls and pushes of devices beside the requests that bring or write the same rows, pokes, and what a client holds.
import { randomUUID } from 'node:crypto'
import { ask } from '#test/support/process.ts'
import { startChild } from './support/child.ts'
import { postgresCpu, processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import type { Counted, ListenCommand } from './support/listeners.ts'
import { figure, median, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'
import { bytesOfClients, fillSynced } from './support/synced.ts'

const isShort = process.argv.includes('--short')
const sizes = isShort
  ? { rows: 20_000, owners: 200, whole: 2000, devices: 10, rounds: 2, sockets: 200, clients: 1000 }
  : { rows: 1_000_000, owners: 10_000, whole: 10_000, devices: 40, rounds: 5, sockets: 2000, clients: 10_000 }
/** Of each device between two times that its limit is lifted: a user pulls at most ten times a second. */
const mostPulls = 8
const perUser = 5
const pokes = 10

type Device = { readonly headers: Record<string, string>; readonly client_id: string; checkpoint: string | null }
/** A kind of request: `prepare` is not measured, `amount` is how many come in a round. */
type Contestant = {
  readonly name: string
  readonly amount: number
  prepare?(device: Device): Promise<unknown>
  run(device: Device): Promise<unknown>
}
type Round = { readonly p50: number; readonly server: number; readonly postgres: number }
type Figures = ReadonlyMap<string, readonly Round[]>

const row = {
  title: 'a new note',
  body: 'of some words',
  rank: 7,
  done: false,
  tags: ['x', 'y'],
  meta: { k: 1 },
  due: '2026-03-01T00:00:00.000Z',
}
const rowsOf = (count: number) => Array.from({ length: count }, () => row)
const putsOf = (count: number) =>
  Array.from({ length: count }, () => ({
    id: randomUUID(),
    op: 'put',
    collection: 'notes',
    row_id: randomUUID(),
    data: row,
  }))

const requestsOf = (url: string) => {
  const send = async (method: string, path: string, headers: Record<string, string>, body?: object) => {
    const answer = await ask(url, method, path, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const pull = async (device: Device, body: object = {}): Promise<{ entries: number; isOver: boolean }> => {
    const { client_id, checkpoint, headers } = device
    const pulled = await send('POST', '/v1/client/sync/pull', headers, { client_id, checkpoint, limit: 5000, ...body })
    device.checkpoint = pulled.checkpoint
    const lists = Object.values(pulled.changes as Record<string, Record<string, unknown[]>>).flatMap(Object.values)
    return { entries: lists.reduce((sum: number, list) => sum + list.length, 0), isOver: !pulled.has_more }
  }
  const rest = (path: string, body: object) => (device: Device) =>
    send('POST', `/v1/client/collections/${path}`, device.headers, body)
  return {
    pull,
    async pullAll(device: Device, body: object = {}): Promise<number> {
      for (let sum = 0; ; ) {
        const { entries, isOver } = await pull(device, body)
        sum += entries
        if (isOver) return sum
      }
    },
    push: (device: Device, count: number) =>
      send('POST', '/v1/client/sync/push', device.headers, { client_id: device.client_id, mutations: putsOf(count) }),
    insert: (collection: string) => rest(collection, row),
    batch: (collection: string, count: number) => rest(`${collection}/batch`, { rows: rowsOf(count) }),
    /** Gives places to what was written, as the next pull of anybody would. */
    number: ({ client_id, headers }: Device) => send('GET', `/v1/client/sync/status?client_id=${client_id}`, headers),
    me: (device: Device) => send('GET', '/v1/client/users/me', device.headers),
  }
}

const names = {
  me: 'GET me',
  nothing: 'pull, nothing new',
  changes: 'pull, 100 changes',
  insert: 'insert, not synced',
  synced: 'insert, synced',
  batch: 'batch of 500, not synced',
  syncedBatch: 'batch of 500, synced',
  push: 'push of 500 puts',
} as const

const contestantsOf = (requests: ReturnType<typeof requestsOf>): Contestant[] => {
  const { devices } = sizes
  const light = devices * mostPulls
  return [
    { name: names.me, amount: light, run: requests.me },
    { name: names.nothing, amount: light, run: (device) => requests.pull(device) },
    {
      name: names.changes,
      amount: devices,
      prepare: requests.batch('notes', 100),
      async run(device) {
        const { entries } = await requests.pull(device)
        if (entries !== 100) throw new Error(`a pull of 100 changes brought ${entries}`)
      },
    },
    { name: names.insert, amount: light, run: requests.insert('plain') },
    { name: names.synced, amount: light, run: requests.insert('notes') },
    { name: names.batch, amount: 10, run: requests.batch('plain', 500) },
    { name: names.syncedBatch, amount: 10, run: requests.batch('notes', 500) },
    { name: names.push, amount: 10, run: (device) => requests.push(device, 500) },
  ]
}

const measure = async (
  { cluster, postmaster }: Installation,
  { server, database }: Scenario,
  devices: readonly Device[],
): Promise<Figures> => {
  const requests = requestsOf(server.url)
  const figures = new Map<string, Round[]>()
  const pid = server.child.pid ?? 0
  const at = (n: number) => devices[n % devices.length] as Device
  const lift = () => asAdmin(cluster, database, 'delete from app.rate_limits')
  for (let round = 0; round <= sizes.rounds; round += 1) {
    for (const { name, amount, prepare, run } of contestantsOf(requests)) {
      // what the contestants before have written is no new change of this one
      await lift()
      for (const device of devices) await requests.pullAll(device)
      for (let n = 0; prepare && n < amount; n += 1) await prepare(at(n))
      await lift()
      await requests.number(at(0))
      const before = { server: processCpu(pid), postgres: postgresCpu(postmaster) }
      const latencies: number[] = []
      for (let n = 0; n < amount; n += 1) {
        const began = performance.now()
        await run(at(n))
        latencies.push(performance.now() - began)
      }
      const taken = {
        p50: median(latencies),
        server: (processCpu(pid) - before.server) / amount,
        postgres: (postgresCpu(postmaster) - before.postgres) / amount,
      }
      if (round > 0) figures.set(name, [...(figures.get(name) ?? []), taken])
    }
    say(`round ${round} of ${sizes.rounds}`)
  }
  return figures
}

/** Rows a second of a whole pull and of the export of the same rows, in turn. */
const measureWhole = async (scenario: Scenario, developer: Readonly<Record<string, string>>) => {
  const { url } = scenario.server
  const { pullAll } = requestsOf(url)
  const path = `/v1/admin/projects/${scenario.projectId}/collections/whole/export?format=ndjson`
  const pulls: number[] = []
  const exports: number[] = []
  for (let round = 0; round <= sizes.rounds; round += 1) {
    const headers = { ...scenario.users[0]?.headers }
    let began = performance.now()
    const brought = await pullAll({ headers, client_id: randomUUID(), checkpoint: null }, { collections: ['whole'] })
    const pulled = (brought * 1000) / (performance.now() - began)
    began = performance.now()
    const text = await (await fetch(url + path, { headers: developer })).text()
    const exported = (sizes.whole * 1000) / (performance.now() - began)
    const lines = text.split('\n').filter(Boolean).length
    if (brought !== sizes.whole || lines !== sizes.whole) throw new Error(`${brought} pulled, ${lines} exported`)
    if (round > 0) {
      pulls.push(pulled)
      exports.push(exported)
    }
  }
  return { pulls, exports }
}

/** Milliseconds from the request that writes a row which everybody reads, until the pokes have come. */
const measurePokes = async ({ server, users }: Scenario): Promise<{ p50: number; p99: number }[]> => {
  const listeners = startChild('listeners.ts')
  try {
    const headers = Array.from({ length: sizes.sockets }, (_, n) => ({
      ...users[Math.floor(n / perUser) % users.length]?.headers,
    }))
    const url = `${server.url.replace('http', 'ws')}/v1/client/realtime`
    await listeners.ask({ kind: 'trellis', url, headers, channel: 'sync' } satisfies ListenCommand)
    const insert = requestsOf(server.url).insert('news')
    const writer = { headers: { ...users[0]?.headers }, client_id: randomUUID(), checkpoint: null }
    const rounds: { p50: number; p99: number }[] = []
    for (let n = 0; n <= pokes; n += 1) {
      await listeners.ask({ kind: 'begin' } satisfies ListenCommand)
      await insert(writer)
      const counted = await listeners.ask<Counted>({ kind: 'count', wanted: sizes.sockets } satisfies ListenCommand)
      if (counted.deliveries < sizes.sockets) throw new Error(`${counted.deliveries} of ${sizes.sockets} pokes came`)
      if (n > 0) rounds.push(counted)
    }
    return rounds
  } finally {
    await listeners.end()
  }
}

const both = ({ server, postgres }: Round) => server + postgres

const aimsOf = (
  figures: Figures,
  whole: Awaited<ReturnType<typeof measureWhole>>,
  poked: readonly { p99: number }[],
  bytes: number,
): Aim[] => {
  const of = (name: string) => figures.get(name) ?? []
  const times = (name: string, to: string, most: number, floor?: string): Aim => {
    const value = medianRatio(of(name).map(both), of(to).map(both))
    const text = `${name}: ${figure(value)} times the CPU of ${to} (aim: at most ${most})`
    const ratios = [{ name: `${name} to ${to}`, value, better: 'lower' as const }]
    return { text, isMet: value <= most, ratios, ...(floor && { floor }) }
  }
  const changes = medianOf(of(names.changes), ({ p50 }) => p50)
  const share = medianRatio(whole.pulls, whole.exports)
  const late = medianOf(poked, ({ p99 }) => p99)
  return [
    times(names.nothing, names.me, 1.5),
    { text: `${names.changes}: ${figure(changes)} ms (aim: under 10)`, isMet: changes < 10 },
    {
      text: `${sizes.whole} rows whole: ${figure(share)} times the rows a second of the NDJSON export (aim: at least 0.5)`,
      isMet: share >= 0.5,
    },
    times(
      names.push,
      names.batch,
      2,
      'beside its rows a push checks every value in SQL, which the server does for a batch, looks up 500 rows and 500 ids of mutations, remembers 500 results, and gives places to its changes',
    ),
    times(names.synced, names.insert, 1.3),
    times(names.syncedBatch, names.batch, 1.5),
    { text: `pokes at ${sizes.sockets} sockets: p99 ${figure(late)} ms (aim: under 200)`, isMet: late < 200 },
    { text: `a client holds ${figure(bytes)} bytes (aim: under 1024)`, isMet: bytes < 1024 },
  ]
}

const main = async () => {
  requireProc()
  const installation = await install()
  try {
    const users = Math.max(sizes.devices, sizes.sockets / perUser)
    const scenario = await createScenario(installation, users)
    const developer = await scenario.switchOn({ rest_enabled: true })
    say('filling')
    await fillSynced(installation, scenario, developer, sizes)
    const devices = scenario.users
      .slice(0, sizes.devices)
      .map(({ headers }): Device => ({ headers: { ...headers }, client_id: randomUUID(), checkpoint: null }))
    const whole = await measureWhole(scenario, developer)
    const figures = await measure(installation, scenario, devices)
    say('pokes')
    const poked = await measurePokes(scenario)
    say('clients')
    const bytes = await bytesOfClients(installation, scenario, sizes.clients)
    const aims = aimsOf(figures, whole, poked, bytes)
    const lines = [...figures].map(([name, rounds]) => [
      name,
      ...[(r: Round) => r.p50, (r: Round) => r.server, (r: Round) => r.postgres, both].map((part) =>
        figure(medianOf(rounds, part)),
      ),
    ])
    const notes = `${sizes.rows.toLocaleString('en')} rows of ${sizes.owners.toLocaleString('en')} users, half of them of groups, 20 groups each; one request after the other, of ${sizes.devices} devices.
CPU is that of the server process and of Postgres, for each request; a push also gives places to its changes, those of inserts and batches get theirs by the next pull. Pokes are
counted from the request that writes the row, ${perUser} sockets a user. What a client holds is its share of the tables and indexes of ${sizes.clients.toLocaleString('en')} clients that have pulled, 20 of a user.`
    const parts = [
      '## bench:sync',
      await circumstances('npm run bench:sync', {
        Postgres: installation.postgresVersion,
        ws: await versionOf('ws'),
      }),
      notes,
      table(['', 'p50 ms', 'server us', 'Postgres us', 'both us'], lines),
      aims.map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:sync', isShort, text: parts.join('\n\n'), aims })
  } finally {
    await installation.end()
  }
}

await main()
