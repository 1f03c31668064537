// What one caller sends, others do not feel: administrators who wait for a lock beside users of the same project, and one user's
// heaviest requests, twelve at once, beside the users of another project. Each is measured alone and beside, in turns.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, createTestProject } from '#test/support/process.ts'
import { startChild } from '../bench/support/child.ts'
import { address, createScenario, install, signIn, type User } from '../bench/support/installation.ts'
import { fillNotes } from '../bench/support/notes.ts'
import { figure, median, percentile, table } from '../bench/support/numbers.ts'
import { say } from '../bench/support/results.ts'
import type { Steady, SteadyCommand } from '../bench/support/steady.ts'
import { connectAdmin } from '../server/database/cluster.ts'
import { report } from './support/page.ts'
import { graphqlBeside, imagesBeside } from './support/shared_pools.ts'

const isShort = process.argv.includes('--short')
const [rounds, seconds] = isShort ? [3, 5] : [5, 6]
const rows = 200_000
const atOnce = 12

const installation = await install()
const scenario = await createScenario(installation, 20)
const { url } = scenario.server
await fillNotes(installation, scenario, rows, 2000)
const other = await createTestProject(url)
const others: User[] = []
for (let n = 0; n < 20; n += 1) others.push(await signIn(url, other.key))
say('two projects are ready')

const steady = startChild('steady.ts')
/** Reads of these users, so many a second, while `beside` goes on; answers what they saw. */
const read = async (users: readonly User[], perSecond: number, beside?: () => Promise<void>): Promise<Steady> => {
  const targets = users.map(({ headers }) => ({ url: `${url}/v1/client/users/me`, method: 'GET' as const, headers }))
  let isOver = false
  const working = beside ? untilOver(beside, () => isOver) : undefined
  if (beside) await sleep(1000)
  await steady.ask({ kind: 'begin', targets, perSecond } satisfies SteadyCommand)
  await sleep(seconds * 1000)
  const seen = await steady.ask<Steady>({ kind: 'end' } satisfies SteadyCommand)
  isOver = true
  await working
  return seen
}

const untilOver = async (work: () => Promise<void>, isOver: () => boolean) => {
  while (!isOver()) await work()
}

type Measured = { readonly alone: number; readonly beside: number; readonly refused: number }

/** One round: the reads alone, then beside. */
const compare = async (
  users: readonly User[],
  perSecond: number,
  share: number,
  beside: () => Promise<void>,
): Promise<Measured> => {
  const alone = await read(users, perSecond)
  const loaded = await read(users, perSecond, beside)
  const refused = Object.entries(loaded.statuses).reduce((sum, [status, n]) => sum + (status === '200' ? 0 : n), 0)
  return { alone: percentile(alone.latencies, share), beside: percentile(loaded.latencies, share), refused }
}

const medianOf = (measured: readonly Measured[]) => {
  const ratio = median(measured.map(({ alone, beside }) => beside / alone))
  const refused = measured.reduce((sum, each) => sum + each.refused, 0)
  return { ratio, refused, alone: median(measured.map((m) => m.alone)), beside: median(measured.map((m) => m.beside)) }
}

// administrators who wait for a lock that an open transaction holds
const made = await ask(
  url,
  'POST',
  `/v1/admin/projects/${other.projectId}/segments`,
  { key: 'held', name: 'Held', kind: 'static' },
  other.developer,
)
const holder = await connectAdmin(
  installation.cluster,
  scenario.database.replace(/[^_]*$/, other.projectId.replaceAll('-', '')),
)
const administrate = async () => {
  await holder.query('begin')
  await holder.query('select from app.segments where id = $1 for update', [made.body.data.id])
  const path = `/v1/admin/projects/${other.projectId}/segments/${made.body.data.id}`
  const writes = Array.from({ length: 50 }, (_, n) =>
    ask(url, 'PATCH', path, { name: `Held ${n}` }, { ...other.developer, ...address() }).catch(() => null),
  )
  await sleep(2500)
  await holder.query('rollback')
  await Promise.all(writes)
}
const lockRounds: Measured[] = []
for (let round = 0; round < rounds; round += 1) {
  lockRounds.push(await compare(others, 200, 0.99, administrate))
  say(`administrators: round ${round + 1} of ${rounds}`)
}
const locks = medianOf(lockRounds)

// the dearest that one user may ask, over and over
const heavy: Readonly<Record<string, { path: string; body: object }>> = {
  'a fuzzy search in two columns': {
    path: 'find',
    body: { search: { q: 'a1b2c3d4e5f6', columns: ['body', 'title'], fuzzy: true, threshold: 0.1 }, limit: 1000 },
  },
  'a page far behind in an order without an index': {
    path: 'find',
    body: { order: [{ column: 'body', direction: 'asc' }], offset: rows - 1000, limit: 1000 },
  },
  'an aggregate of as many groups as rows': {
    path: 'aggregate',
    body: {
      group_by: ['title', 'body'],
      aggregates: [
        { fn: 'count_distinct', column: 'rank', as: 'ranks' },
        { fn: 'max', column: 'due', as: 'last' },
      ],
      order: [{ column: 'ranks', direction: 'desc' }],
    },
  },
  'a filter of forty patterns that no index serves': {
    path: 'find',
    body: {
      filter: {
        or: Array.from({ length: 40 }, (_, n) => ({ column: 'body', op: 'ilike', value: `%${n}zz%` })),
      },
      limit: 1000,
    },
  },
}
const greedy = scenario.users[0] as User
const answers: Record<string, number> = {}
const lines: string[][] = []
const ratios: number[] = []
for (const [name, { path, body }] of Object.entries(heavy)) {
  const demand = async () => {
    const one = async () => {
      const began = performance.now()
      const { status } = await ask(url, 'POST', `/v1/client/collections/board/${path}`, body, {
        ...greedy.headers,
        ...address(),
      }).catch(() => ({ status: 0 }))
      answers[status] = (answers[status] ?? 0) + 1
      return performance.now() - began
    }
    await Promise.all(Array.from({ length: atOnce }, one))
  }
  const measured: Measured[] = []
  for (let round = 0; round < rounds; round += 1) measured.push(await compare(others, 100, 0.95, demand))
  const { alone, beside, ratio, refused } = medianOf(measured)
  ratios.push(ratio)
  lines.push([name, figure(alone), figure(beside), figure(ratio), String(refused)])
  say(`${name}: ${figure(ratio)}`)
}

// processes that all projects share: those of GraphQL, and those that make images
const [greedyTenant, otherTenant] = [await createTestProject(url), other]
const greedyUser = await signIn(url, greedyTenant.key)
const schemas = await graphqlBeside(
  url,
  { ...greedyTenant, user: greedyUser },
  { ...otherTenant, user: others[0] as User },
  isShort ? 20 : 40,
)
say(`GraphQL: ${figure(schemas.longest)} ms at most`)
const images = await imagesBeside(url, greedyUser, others[0] as User, 60)
say(`images: ${figure(images.longest)} ms at most`)

await holder.end()
await steady.end()
await installation.end()
const worst = Math.max(...ratios)
await report(
  'proof:shares',
  { Postgres: installation.postgresVersion },
  [
    {
      text: `50 administrators' writes wait for a lock: 200 reads a second by users of that project take ${figure(locks.beside)} ms at the 99th percentile, alone ${figure(locks.alone)} (${figure(locks.ratio)} times, less than 2), and ${locks.refused} were refused`,
      holds: locks.ratio < 2 && locks.refused === 0,
    },
    {
      text: `${atOnce} of the dearest requests of one user at once, over and over: reads by users of another project take at the 95th percentile at most ${figure(worst)} times what they take alone (less than 3)`,
      holds: worst < 3 && lines.every((line) => line[4] === '0'),
    },
    {
      text: `a project changes its collections without end and has each schema made: another's ${schemas.answers} queries of GraphQL wait ${figure(schemas.longest)} ms at most (less than 10,000), and ${schemas.refused} were refused`,
      holds: schemas.longest < 10_000 && schemas.refused === 0,
    },
    {
      text: `one user has 60 of the dearest variants of an image made: ${images.answers} small ones of another project wait ${figure(images.longest)} ms at most (less than 30,000), and ${images.refused} were refused`,
      holds: images.longest < 30_000 && images.refused === 0,
    },
  ],
  [
    table(['over a collection of 200,000 rows', 'p95 ms alone', 'beside', 'times', 'refused'], lines),
    '',
    `The greedy user was answered: ${Object.entries(answers)
      .map(([status, n]) => `${n} times ${status}`)
      .join(', ')}.`,
  ].join('\n'),
)
process.exit()
