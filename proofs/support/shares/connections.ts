// Connections to one project's database and to all: administrators who wait for a lock, and one user's heaviest requests.
import { setTimeout as sleep } from 'node:timers/promises'
import { connectAdmin } from '#server/database/cluster.ts'
import { startChild } from '../../../bench/support/child.ts'
import { signIn, type User } from '../../../bench/support/installation.ts'
import { fillNotes } from '../../../bench/support/notes.ts'
import { figure, median, percentile, table } from '../../../bench/support/numbers.ts'
import { say } from '../../../bench/support/results.ts'
import type { Steady, SteadyCommand } from '../../../bench/support/steady.ts'
import { databaseOf, type Part, type Tenant, type World } from './part.ts'

const rows = 200_000
const atOnce = 12

const roundsOf = ({ isShort }: World) => (isShort ? { rounds: 3, seconds: 5 } : { rounds: 5, seconds: 6 })

type Measured = { readonly alone: number; readonly beside: number; readonly refused: number }
type Load = { readonly users: readonly User[]; readonly perSecond: number; readonly share: number }

/** Reads of these users, so many a second, first alone and then while `beside` goes on, round by round: what they took at that share. */
const compare = async (world: World, { users, perSecond, share }: Load, beside: () => Promise<void>) => {
  const { rounds, seconds } = roundsOf(world)
  const targets = users.map(({ headers }) => ({
    url: `${world.url}/v1/client/users/me`,
    method: 'GET' as const,
    headers,
  }))
  const steady = startChild('steady.ts')
  const read = async (besides?: () => Promise<void>): Promise<Steady> => {
    let isOver = false
    const work = async () => {
      while (besides && !isOver) await besides()
    }
    const working = work()
    if (besides) await sleep(1000)
    await steady.ask({ kind: 'begin', targets, perSecond } satisfies SteadyCommand)
    await sleep(seconds * 1000)
    const seen = await steady.ask<Steady>({ kind: 'end' } satisfies SteadyCommand)
    isOver = true
    await working
    return seen
  }
  const measured: Measured[] = []
  for (let round = 0; round < rounds; round += 1) {
    const alone = await read()
    const loaded = await read(beside)
    const refused = Object.entries(loaded.statuses).reduce((sum, [status, n]) => sum + (status === '200' ? 0 : n), 0)
    measured.push({ alone: percentile(alone.latencies, share), beside: percentile(loaded.latencies, share), refused })
    say(`round ${round + 1} of ${rounds}`)
  }
  await steady.end()
  return {
    ratio: median(measured.map((each) => each.beside / each.alone)),
    refused: measured.reduce((sum, each) => sum + each.refused, 0),
    alone: median(measured.map((each) => each.alone)),
    beside: median(measured.map((each) => each.beside)),
  }
}

const usersOf = async ({ url }: World, { key }: Tenant): Promise<User[]> => {
  const users: User[] = []
  for (let n = 0; n < 20; n += 1) users.push(await signIn(url, key))
  return users
}

/** Administrators who wait for a lock that an open transaction holds. */
export const locks: Part = {
  name: 'locks',
  bound: 'twice what it takes alone',
  async run(world) {
    const tenant = await world.tenant()
    const path = `/v1/admin/projects/${tenant.projectId}/segments`
    const segment = { key: 'held', name: 'Held', kind: 'static' }
    const { id } = (await world.call(tenant.developer, 'POST', path, segment)).body.data
    const holder = await connectAdmin(world.installation.cluster, databaseOf(tenant.projectId))
    const administrate = async () => {
      await holder.query('begin')
      await holder.query('select from app.segments where id = $1 for update', [id])
      const writes = Array.from({ length: 50 }, (_, n) =>
        world.call(tenant.developer, 'PATCH', `${path}/${id}`, { name: `Held ${n}` }),
      )
      await sleep(2500)
      await holder.query('rollback')
      await Promise.all(writes)
    }
    const load = { users: await usersOf(world, tenant), perSecond: 200, share: 0.99 }
    const seen = await compare(world, load, administrate)
    await holder.end()
    const text = `50 administrators' writes wait for a lock: 200 reads a second by users of that project take ${figure(seen.beside)} ms at the 99th percentile, alone ${figure(seen.alone)} (${figure(seen.ratio)} times, less than 2), and ${seen.refused} were refused`
    return { claims: [{ text, holds: seen.ratio < 2 && seen.refused === 0 }] }
  },
}

/** The dearest that one user may ask, over and over. */
const heaviest: Readonly<Record<string, { path: string; body: object }>> = {
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
      filter: { or: Array.from({ length: 40 }, (_, n) => ({ column: 'body', op: 'ilike', value: `%${n}zz%` })) },
      limit: 1000,
    },
  },
}

export const heavy: Part = {
  name: 'heavy',
  bound: 'three times what it takes alone',
  async run(world) {
    await fillNotes(world.installation, world.scenario, rows, 2000)
    const greedy = world.scenario.users[0] as User
    const users = await usersOf(world, await world.tenant())
    const answers: Record<string, number> = {}
    const lines: string[][] = []
    const ratios: number[] = []
    for (const [name, { path, body }] of Object.entries(heaviest)) {
      const one = async () => {
        const { status } = await world.call(greedy.headers, 'POST', `/v1/client/collections/board/${path}`, body)
        answers[status] = (answers[status] ?? 0) + 1
      }
      const demand = async () => {
        await Promise.all(Array.from({ length: atOnce }, one))
      }
      const seen = await compare(world, { users, perSecond: 100, share: 0.95 }, demand)
      ratios.push(seen.ratio)
      lines.push([name, figure(seen.alone), figure(seen.beside), figure(seen.ratio), String(seen.refused)])
      say(`${name}: ${figure(seen.ratio)}`)
    }
    const worst = Math.max(...ratios)
    return {
      claims: [
        {
          text: `${atOnce} of the dearest requests of one user at once, over and over: reads by users of another project take at the 95th percentile at most ${figure(worst)} times what they take alone (less than 3)`,
          holds: worst < 3 && lines.every((line) => line[4] === '0'),
        },
      ],
      more: [
        table(['over a collection of 200,000 rows', 'p95 ms alone', 'beside', 'times', 'refused'], lines),
        '',
        `The greedy user was answered: ${Object.entries(answers)
          .map(([status, n]) => `${n} times ${status}`)
          .join(', ')}.`,
      ].join('\n'),
    }
  },
}
