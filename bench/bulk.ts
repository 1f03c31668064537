// npm run bench:bulk: bulk updates of 1,000 items over HTTP, and what other administrators wait meanwhile.

import { tenantName } from '#server/database/names.ts'
import { ask, createTestProject } from '#test/support/process.ts'
import { asAdmin, install } from './support/installation.ts'
import { figure, medianOf, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const rounds = isShort ? 2 : 7
const users = 20_000
const items = 1000

type Update = Readonly<Record<string, unknown>>
type Way = {
  readonly name: string
  readonly most: number
  readonly updates: (ids: readonly string[], round: number) => Update[]
}
type Round = { readonly bulk: number; readonly beside: number }

const ways: readonly Way[] = [
  {
    name: `${items} users, properties`,
    most: 500,
    updates: (ids, round) => ids.map((user_id, n) => ({ user_id, properties: { plan: `plan ${round}`, n } })),
  },
  {
    name: `${items} users, email and display name`,
    most: 500,
    updates: (ids, round) =>
      ids.map((user_id, n) => ({
        user_id,
        set: { email: `user-${n}-${round}@example.org`, display_name: `User ${n} ${round}` },
      })),
  },
  {
    name: `${items} items of one user, properties`,
    most: 1000,
    updates: ([user_id], round) =>
      Array.from({ length: items }, (_, n) => ({ user_id, properties: { [`key${n % 10}`]: n + round } })),
  },
  {
    name: `${items} items of one user, email`,
    most: 1000,
    updates: ([user_id], round) =>
      Array.from({ length: items }, (_, n) => ({ user_id, set: { email: `one-${n}-${round}@example.org` } })),
  },
]

const measure = async (url: string, developer: Record<string, string>, projectId: string, ids: readonly string[]) => {
  const admin = (method: string, path: string, body: unknown) =>
    ask(url, method, `/v1/admin/projects/${projectId}${path}`, body, developer)
  const timed = async (run: () => Promise<{ status: number }>): Promise<number> => {
    const began = performance.now()
    const { status } = await run()
    if (status >= 300) throw new Error(`answered ${status}`)
    return performance.now() - began
  }
  const figures = new Map<Way, Round[]>(ways.map((way) => [way, []]))
  for (let round = 0; round <= rounds; round += 1) {
    for (const way of ways) {
      const bulk = await timed(() => admin('POST', '/users/bulk-update', { updates: way.updates(ids, 2 * round) }))
      let isOver = false
      const running = timed(() =>
        admin('POST', '/users/bulk-update', { updates: way.updates(ids, 2 * round + 1) }),
      ).finally(() => {
        isOver = true
      })
      let beside = 0
      while (!isOver) {
        const small = await timed(() =>
          admin('POST', '/config', { key: 'bench', value: { round, at: performance.now() } }),
        )
        beside = Math.max(beside, small)
      }
      await running
      if (round > 0) figures.get(way)?.push({ bulk, beside })
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

const notes = `One developer, ${users} users. Each bulk update runs alone first; while a second one runs, another connection writes one config key after the other: each is a change with a row in the audit
trail. Milliseconds at the client, medians of the rounds; "longest write beside" is the longest of those small writes in a round.`

const main = async () => {
  const installation = await install()
  try {
    const server = await installation.serve({ GENERAL_RATE_LIMITS: 'off' })
    const { developer, projectId } = await createTestProject(server.url)
    const database = tenantName('trellis', projectId)
    await asAdmin(
      installation.cluster,
      database,
      `insert into app.users (display_name, anonymous_id) select 'User ' || n, 'anon_bench_' || n from generate_series(1, ${users}) n`,
    )
    await asAdmin(installation.cluster, database, 'analyze')
    const rows = await asAdmin<{ id: string }>(
      installation.cluster,
      database,
      `select id from app.users order by id limit ${items}`,
    )
    const figures = await measure(
      server.url,
      developer,
      projectId,
      rows.map(({ id }) => id),
    )
    const of = (way: Way) => figures.get(way) ?? []
    const aims = ways.map((way): Aim => {
      const taken = medianOf(of(way), ({ bulk }) => bulk)
      return { text: `${way.name}: ${figure(taken)} ms (aim: at most ${way.most})`, isMet: taken <= way.most }
    })
    const lines = ways.map((way) => [
      way.name,
      figure(medianOf(of(way), ({ bulk }) => bulk)),
      figure(medianOf(of(way), ({ beside }) => beside)),
    ])
    const parts = [
      '## bench:bulk',
      await circumstances('npm run bench:bulk', { Postgres: installation.postgresVersion }),
      notes,
      table(['bulk update of', 'ms', 'longest write beside, ms'], lines),
      aims.map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:bulk', isShort, text: parts.join('\n\n') })
  } finally {
    await installation.end()
  }
}

await main()
