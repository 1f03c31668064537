// npm run bench:collections: rows of collections over HTTP, beside others on the very same table and Postgres.
import { randomBytes } from 'node:crypto'
import { type Child, startChild } from './support/child.ts'
import { postgresCpu, processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import type { Load, Loaded } from './support/loader.ts'
import {
  type Notes,
  type Peer,
  type Request,
  shareNotes,
  startPostgraphileOnNotes,
  startPostgrestOnNotes,
} from './support/note_peers.ts'
import { fillNotes } from './support/notes.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { startParseOnNotes } from './support/parse_notes.ts'
import { type Plans, readPlans } from './support/plans.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [rounds, seconds, rows, owners] = isShort ? [1, 2, 20_000, 200] : [5, 2, 1_000_000, 10_000]
/** Requests of each operation before any is measured: until compilers and caches have nothing more to gain. */
const warmUp = (operation: string) => (isShort ? 400 : 4000) / (operation === 'batch' ? 10 : 1)
const connections = 8
const operations = ['get', 'list', 'filtered', 'insert', 'batch', 'aggregate'] as const
const names: Readonly<Record<string, string>> = {
  get: 'one row by its id',
  list: '50 rows by keyset',
  filtered: '50 rows of a filter',
  insert: 'insert',
  batch: 'insert of 500',
  aggregate: 'count and sum by group',
}

type Round = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly server: number
  readonly postgres: number
}
type Contestant = {
  readonly name: string
  readonly operation: string
  readonly pid: number
  readonly request: Request
  tidy(): Promise<unknown>
}
type Figures = Map<string, Round[]>

const notesOf = async ({ cluster }: Installation, scenario: Scenario): Promise<Notes> => {
  const [found] = await asAdmin<{ id: string; before: Date }>(
    cluster,
    scenario.database,
    `select id, created_at as before from collections.notes where user_id = $1 order by created_at desc offset 10 limit 1`,
    [scenario.users[0]?.userId],
  )
  const row = { title: 'a new note', body: 'of some words', rank: 7, done: false, tags: ['x', 'y'], meta: { k: 1 } }
  return {
    id: found?.id ?? '',
    before: found?.before.toISOString() ?? '',
    row,
    rows: Array.from({ length: 500 }, () => row),
  }
}

const oursOf = async (scenario: Scenario, notes: Notes): Promise<Record<string, Request>> => {
  const url = `${scenario.server.url}/v1/client/collections/notes`
  const headers = { ...scenario.users[0]?.headers, 'content-type': 'application/json' }
  const post = (path: string, body: object): Request => ({
    url: url + path,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  const first = await fetch(`${url}/find`, { method: 'POST', headers, body: JSON.stringify({ limit: 10 }) })
  const { next_cursor: cursor } = (await first.json()) as { next_cursor: string }
  const filter = {
    and: [
      { column: 'rank', op: 'gte', value: 500 },
      { column: 'done', op: 'eq', value: false },
    ],
  }
  return {
    get: { url: `${url}/${notes.id}`, method: 'GET', headers: { ...scenario.users[0]?.headers } },
    list: post('/find', { limit: 50, cursor }),
    filtered: post('/find', { limit: 50, filter }),
    insert: post('', notes.row),
    batch: post('/batch', { rows: notes.rows }),
    aggregate: post('/aggregate', {
      group_by: ['done'],
      aggregates: [
        { fn: 'count', as: 'n' },
        { fn: 'sum', column: 'rank', as: 'ranks' },
      ],
    }),
  }
}

const measure = async (contestants: readonly Contestant[], postmaster: number, loader: Child): Promise<Figures> => {
  const figures: Figures = new Map()
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, operation, pid, request, tidy } of contestants) {
      const { headers, parts = 1, ...rest } = request
      const before = { server: processCpu(pid), postgres: postgresCpu(postmaster) }
      const load: Load = { ...rest, headers: [headers], connections, seconds }
      const loaded = await loader.ask<Loaded>(round > 0 ? load : { ...load, amount: warmUp(operation) })
      const measured: Round = {
        perSecond: loaded.perSecond / parts,
        p50: loaded.p50 * parts,
        p99: loaded.p99 * parts,
        server: ((processCpu(pid) - before.server) * parts) / loaded.requests,
        postgres: ((postgresCpu(postmaster) - before.postgres) * parts) / loaded.requests,
      }
      const key = `${operation} ${name}`
      if (round > 0) figures.set(key, [...(figures.get(key) ?? []), measured])
      // each contestant meets the table as it was
      if (operation === 'insert' || operation === 'batch') await tidy()
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

const sum = (round: Round) => round.server + round.postgres

const tableOf = (contestants: readonly Contestant[], figures: Figures): string =>
  table(
    ['', 'who', 'a second', 'p50 ms', 'p99 ms', 'server us', 'Postgres us', 'both us', 'a CPU second'],
    contestants.map(({ name, operation }) => {
      const taken = figures.get(`${operation} ${name}`) ?? []
      const of = (part: (round: Round) => number) => figure(medianOf(taken, part))
      return [
        names[operation] ?? '',
        name,
        of((r) => r.perSecond),
        of((r) => r.p50),
        of((r) => r.p99),
        of((r) => r.server),
        of((r) => r.postgres),
        of(sum),
        of((r) => 1e6 / sum(r)),
      ]
    }),
  )

/** Requests of a CPU second that are wanted of each of a peer's, where that is not 1. */
const wantedOf: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  PostgREST: { get: 2, list: 1.5, batch: 1.05 },
  PostGraphile: { get: 2.5, list: 2.2 },
  'Parse Server': { get: 3, list: 3 },
}
const floors: Readonly<Record<string, string>> = {
  get: 'a third of what Node takes are its two writes, to Postgres and to the client',
  list: 'a third of what Node takes are its two writes, and each row is read, checked and written by either side',
  batch: 'the indexes and references of the table are nine tenths, and the same for both',
}
/** What operators may be used before the policy Postgres decides: contains and overlaps are not leakproof, so they come after it. */
const mostMoreMs = 1

const peerAims = (peers: readonly Peer[], figures: Figures): Aim[] =>
  operations.flatMap((operation) =>
    peers
      .filter(({ requests }) => requests[operation])
      .map(({ name }): Aim => {
        const ours = (figures.get(`${operation} Trellis`) ?? []).map((round) => 1 / sum(round))
        const theirs = (figures.get(`${operation} ${name}`) ?? []).map((round) => 1 / sum(round))
        const times = medianRatio(ours, theirs)
        const wanted = wantedOf[name]?.[operation] ?? 1
        const floor = name === 'PostgREST' ? floors[operation] : undefined
        return {
          text: `${names[operation]}: ${figure(times)} times the requests of a CPU second of ${name} (aim: ${wanted})`,
          isMet: times >= wanted,
          ...(floor && { floor }),
          ratios: [{ name: `${names[operation]} to ${name}`, value: times, better: 'higher' }],
        }
      }),
  )

const leaf = (column: string, op: string, value: unknown) => ({ column, op, value })
const filters: readonly (readonly [string, object])[] = [
  ['eq', leaf('rank', 'eq', 17)],
  // few of all, so that walking the newest would not be the better plan
  ['in', leaf('title', 'in', ['note 4711', 'note 17'])],
  ['gt', leaf('due', 'gt', '2026-04-27T17:40:00.000Z')],
  ['lt', leaf('due', 'lt', '2026-01-02T00:10:00.000Z')],
  ['eq of text', leaf('title', 'eq', 'note 4711')],
  ['like', leaf('body', 'like', '%c4ca4238a0b92%')],
  ['ilike', leaf('body', 'ilike', '%C4CA4238A0B92%')],
  ['contains', leaf('tags', 'contains', ['t17'])],
  ['overlaps', leaf('tags', 'overlaps', ['t17', 't18'])],
  ['contains of jsonb', leaf('meta', 'contains', { k: 17 })],
]

const planAims = async (plans: Plans): Promise<{ text: string; aims: Aim[] }> => {
  const aims: Aim[] = []
  const lines: string[][] = []
  for (const [op, filter] of filters) {
    const shared = await plans.indexesOf('board', filter)
    const own = await plans.indexesOf('notes', filter)
    const costs = [await plans.policyCost('board', filter), await plans.policyCost('notes', filter)]
    lines.push([op, shared.join(', ') || 'none', own.join(', ') || 'none', ...costs.map(({ times }) => figure(times))])
    aims.push({
      text: `${op}: an index serves it on the public collection (${shared.join(', ') || 'none'}), and an index on one's own rows (${own.join(', ') || 'none'})`,
      isMet: shared.length > 0 && own.length > 0,
    })
    const told = costs.map(({ times, more }) => `${figure(times)} times (${figure(more * 1000)} us more)`)
    aims.push({
      text: `${op}: with the policy the query takes ${told[0]} on the public collection, ${told[1]} on own rows (aim: at most 1.15 times, or ${mostMoreMs} ms more)`,
      isMet: costs.every(({ times, more }) => times <= 1.15 || more <= mostMoreMs),
    })
  }
  const depth = await plans.depthCost('board', rows - 100)
  aims.push({
    text: `a page at row ${rows - 100} by cursor takes ${figure(depth)} times the first (aim: 0.8 to 1.2)`,
    isMet: depth >= 0.8 && depth <= 1.2,
  })
  return { text: table(['', 'index, public', 'index, own', 'policy, public', 'policy, own'], lines), aims }
}

const notes = `${rows.toLocaleString('en')} rows of ${owners.toLocaleString('en')} owners, ${connections} connections, one user; Trellis and PostgREST read and write the very same table, with the same policy on it.
"Server" is the process of Trellis or of the other; the load generator is in no figure but the requests a second. The rows that a turn inserted are removed after it.
Parse Server has as many rows of as many owners in a database of its own on the same Postgres, each for its owner alone by ACL, with an index on owner and time; it
answers an insert with id and time alone, takes 50 inserts in a batch, so that ten count as one here, and aggregates for its master key alone, so not for a user.
Before the first round each operation has run ${warmUp('get').toLocaleString('en')} times, batches ${warmUp('batch')} times.
A peer that is not installed (\`npm install\` in bench/peers) is left out. PostGraphile's list begins at the first page, as its cursor holds the same order.`

const main = async () => {
  requireProc()
  const installation = await install()
  const ends: (() => Promise<unknown>)[] = []
  try {
    const scenario = await createScenario(installation, 1)
    say('filling')
    await fillNotes(installation, scenario, rows, owners)
    const known = await notesOf(installation, scenario)
    const password = randomBytes(24).toString('base64url')
    await shareNotes(installation, scenario, password)
    const postgrest = await startPostgrestOnNotes(scenario, known, password)
    const postgraphile = await startPostgraphileOnNotes(scenario, known, password).catch((error: Error) => {
      say(`PostGraphile does not run: ${error.message}`)
      return null
    })
    const parse = await startParseOnNotes(installation, scenario, known, { rows, owners, password }).catch(
      (error: Error) => {
        say(`Parse Server does not run: ${error.message}`)
        return null
      },
    )
    const peers = [postgrest, postgraphile, parse].filter((peer) => peer !== null)
    for (const peer of peers) ends.push(() => peer.end())
    const loader = startChild('loader.ts')
    ends.push(() => loader.end())
    const ours = await oursOf(scenario, known)
    const tidy = async () => {
      await asAdmin(installation.cluster, scenario.database, `delete from collections.notes where title = 'a new note'`)
      // dead rows are of the one user who reads: every list after them would pass over a hundred thousand
      await asAdmin(installation.cluster, scenario.database, 'vacuum collections.notes')
    }
    const contestants = operations.flatMap((operation): Contestant[] => [
      { name: 'Trellis', operation, pid: scenario.server.child.pid ?? 0, request: ours[operation] as Request, tidy },
      ...peers.flatMap((peer) => {
        const request = peer.requests[operation]
        return request
          ? [{ name: peer.name, operation, pid: peer.pid, request, tidy: () => peer.tidy?.() ?? tidy() }]
          : []
      }),
    ])
    const figures = await measure(contestants, installation.postmaster, loader)
    say('plans')
    const plans = await readPlans(installation, scenario)
    ends.push(() => plans.end())
    const planned = await planAims(plans)
    const versions = {
      Postgres: installation.postgresVersion,
      ...Object.fromEntries(peers.map(({ name, version }) => [name, version])),
      autocannon: await versionOf('autocannon'),
    }
    const aims = [...peerAims(peers, figures), ...planned.aims]
    const parts = [
      '## bench:collections',
      await circumstances('npm run bench:collections', versions),
      notes,
      tableOf(contestants, figures),
      planned.text,
      aims.map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:collections', isShort, text: parts.join('\n\n'), aims })
  } finally {
    for (const end of ends.reverse()) await end()
    await installation.end()
  }
}

await main()
