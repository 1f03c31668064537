// npm run bench:sync: pulls and pushes of devices beside PostgREST and requests that bring or write the same rows, pokes, what a client holds.
import { postgresCpu, processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import { figure, median, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'
import { type Reader, startReader } from './support/sync_peers.ts'
import { measurePokes } from './support/sync_pokes.ts'
import { type Device, deviceOf, requestsOf } from './support/sync_requests.ts'
import { bytesOfClients, fillSynced } from './support/synced.ts'

const isShort = process.argv.includes('--short')
const sizes = isShort
  ? { rows: 20_000, owners: 200, whole: 2000, devices: 10, rounds: 2, sockets: 200, clients: 1000 }
  : { rows: 1_000_000, owners: 10_000, whole: 10_000, devices: 40, rounds: 5, sockets: 2000, clients: 10_000 }
/** Of each device between two times that its limit is lifted: a user pulls at most ten times a second. */
const mostPulls = 8
const perUser = 5
const pokes = 10

/** A kind of request: `prepare` is not measured, `amount` is how many come in a round. */
type Contestant = {
  readonly name: string
  readonly amount: number
  /** The process that answers, where it is not ours. */
  readonly pid?: number
  prepare?(device: Device): Promise<unknown>
  run(device: Device): Promise<unknown>
}
type Round = { readonly p50: number; readonly server: number; readonly postgres: number }
type Figures = ReadonlyMap<string, readonly Round[]>

const names = {
  me: 'GET me',
  nothing: 'pull, nothing new',
  restNothing: 'PostgREST, nothing newer',
  changes: 'pull, 100 changes',
  restChanges: 'PostgREST, 100 newer rows',
  insert: 'insert, not synced',
  synced: 'insert, synced',
  batch: 'batch of 500, not synced',
  syncedBatch: 'batch of 500, synced',
  push: 'push of 500 puts',
} as const

const contestantsOf = (requests: ReturnType<typeof requestsOf>, reader: Reader | null): Contestant[] => {
  const { devices } = sizes
  const light = devices * mostPulls
  const write = requests.batch('notes', 100)
  const expected = (entries: number) => {
    if (entries !== 100) throw new Error(`${entries} of 100 changes came`)
  }
  const ofReader: Contestant[] = reader
    ? [
        {
          name: names.restNothing,
          amount: light,
          pid: reader.pid,
          run: (device) => reader.newer(device, new Date().toISOString()),
        },
        {
          name: names.restChanges,
          amount: devices,
          pid: reader.pid,
          async prepare(device) {
            device.since = new Date().toISOString()
            await write(device)
          },
          run: async (device) => expected(await reader.newer(device)),
        },
      ]
    : []
  return [
    { name: names.me, amount: light, run: requests.me },
    { name: names.nothing, amount: light, run: (device) => requests.pull(device) },
    {
      name: names.changes,
      amount: devices,
      prepare: write,
      run: async (device) => expected((await requests.pull(device)).entries),
    },
    ...ofReader,
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
  reader: Reader | null,
): Promise<Figures> => {
  const requests = requestsOf(server.url)
  const figures = new Map<string, Round[]>()
  const at = (n: number) => devices[n % devices.length] as Device
  const lift = () => asAdmin(cluster, database, 'delete from app.rate_limits')
  for (let round = 0; round <= sizes.rounds; round += 1) {
    for (const { name, amount, prepare, run, pid = server.child.pid ?? 0 } of contestantsOf(requests, reader)) {
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

/** Rows a second of a whole pull, of the export of the same rows, and of PostgREST, in turn. */
const measureWhole = async (scenario: Scenario, developer: Readonly<Record<string, string>>, reader: Reader | null) => {
  const { url } = scenario.server
  const { pullAll } = requestsOf(url)
  const path = `/v1/admin/projects/${scenario.projectId}/collections/whole/export?format=ndjson`
  const pulls: number[] = []
  const exports: number[] = []
  const rest: number[] = []
  for (let round = 0; round <= sizes.rounds; round += 1) {
    const device = deviceOf(scenario.users[0])
    let began = performance.now()
    const brought = await pullAll(device, { collections: ['whole'] })
    const pulled = (brought * 1000) / (performance.now() - began)
    began = performance.now()
    const text = await (await fetch(url + path, { headers: developer })).text()
    const exported = (sizes.whole * 1000) / (performance.now() - began)
    const lines = text.split('\n').filter(Boolean).length
    began = performance.now()
    const read = (await reader?.whole(device)) ?? sizes.whole
    if (reader && round > 0) rest.push((read * 1000) / (performance.now() - began))
    if (brought !== sizes.whole || lines !== sizes.whole || read !== sizes.whole)
      throw new Error(`${brought} pulled, ${lines} exported, ${read} by PostgREST`)
    if (round > 0) {
      pulls.push(pulled)
      exports.push(exported)
    }
  }
  return { pulls, exports, rest }
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
      'beside its rows, whose ids are in no order, a push writes 500 entries of the log and remembers 500 results with their rows',
    ),
    times(names.synced, names.insert, 1.3),
    times(names.syncedBatch, names.batch, 1.5),
    { text: `pokes at ${sizes.sockets} sockets: p99 ${figure(late)} ms (aim: under 200)`, isMet: late < 200 },
    { text: `a client holds ${figure(bytes)} bytes (aim: under 1024)`, isMet: bytes < 1024 },
  ]
}

/** What has no aim: the same reads of PostgREST, which knows no deletions, no groups that were left, and no transactions that are open. */
const besideOf = (figures: Figures, { pulls, rest }: Awaited<ReturnType<typeof measureWhole>>): string => {
  const of = (name: string) => (figures.get(name) ?? []).map(both)
  const times = (name: string, to: string) => figure(medianRatio(of(name), of(to)))
  return rest.length === 0
    ? 'PostgREST is not installed here.'
    : `Beside PostgREST: a pull with nothing new takes ${times(names.nothing, names.restNothing)} times its CPU, one of 100 changes ${times(names.changes, names.restChanges)} times; a whole pull brings ${figure(medianRatio(pulls, rest))} times its rows a second.`
}

const main = async () => {
  requireProc()
  const installation = await install()
  let reader: Reader | null = null
  try {
    const users = Math.max(sizes.devices, sizes.sockets / perUser)
    const scenario = await createScenario(installation, users)
    const developer = await scenario.switchOn({ rest_enabled: true })
    say('filling')
    await fillSynced(installation, scenario, developer, sizes)
    reader = await startReader(installation, scenario)
    const devices = scenario.users.slice(0, sizes.devices).map(deviceOf)
    const whole = await measureWhole(scenario, developer, reader)
    const figures = await measure(installation, scenario, devices, reader)
    say('pokes')
    const poked = await measurePokes(scenario, { sockets: sizes.sockets, perUser, pokes })
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
CPU is that of the server process, ours or PostgREST, and of Postgres, for each request. What is written gets its places in the log by the next pull, whose cost that is. PostgREST reads
the rows that were made after a time, under the same policy, by the same index. Pokes are counted from the request that writes the row, ${perUser} sockets a user. What a client holds
is its share of the tables and indexes of ${sizes.clients.toLocaleString('en')} clients that have pulled, 20 of a user.`
    const parts = [
      '## bench:sync',
      await circumstances('npm run bench:sync', {
        Postgres: installation.postgresVersion,
        ws: await versionOf('ws'),
        ...(reader && { PostgREST: reader.version }),
      }),
      notes,
      table(['', 'p50 ms', 'server us', 'Postgres us', 'both us'], lines),
      aims.map(aimLine).join('\n'),
      besideOf(figures, whole),
    ]
    await publish({ name: 'bench:sync', isShort, text: parts.join('\n\n'), aims })
  } finally {
    await reader?.end()
    await installation.end()
  }
}

await main()
