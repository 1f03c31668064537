// What Postgres makes of compiled statements: which index serves, and what policies cost.
import pg from 'pg'
import { adminConfig } from '#server/database/cluster.ts'
import type { Installation, Scenario } from './installation.ts'
import { median } from './numbers.ts'

/** How many times the milliseconds of the other statement, and how many more. */
export type Cost = { readonly times: number; readonly more: number }

export type Plans = {
  /**
   * Names of the indexes that find the rows of a filter, as an end user, newest first. One that only brings all rows in some
   * order finds none: it would walk them all where few fit.
   */
  indexesOf(collection: string, filter: object): Promise<readonly string[]>
  /** A find as an end user, beside the same without row-level security and with the owner named. */
  policyCost(collection: string, filter: object): Promise<Cost>
  /** Milliseconds of a page far behind over those of the first. */
  depthCost(collection: string, depth: number): Promise<number>
  end(): Promise<void>
}

type Compiled = {
  readonly text: string
  readonly params: readonly { readonly path: readonly string[]; readonly type: string; readonly is_array?: boolean }[]
}

const valueAt = (request: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, part) => (value as Record<string, unknown> | undefined)?.[part], request)

const bind = ({ params }: Compiled, request: object) =>
  params.map(({ path, type, is_array }) => {
    const value = valueAt(request, path)
    if (type === 'jsonb' || type === 'json') return JSON.stringify(value)
    return is_array ? (Array.isArray(value) ? value : [value]) : value
  })

const milliseconds = async (work: () => Promise<unknown>) => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** Turns about, so that both meet the same minute of the machine. */
const compared = async (one: () => Promise<unknown>, other: () => Promise<unknown>, turns: number): Promise<Cost> => {
  const times: [number[], number[]] = [[], []]
  for (let turn = 0; turn < turns; turn += 1) {
    times[0].push(await milliseconds(one))
    times[1].push(await milliseconds(other))
  }
  const [first, second] = [median(times[0].slice(10)), median(times[1].slice(10))]
  return { times: first / second, more: first - second }
}

export const readPlans = async ({ cluster }: Installation, scenario: Scenario): Promise<Plans> => {
  const { host, port, user, password } = scenario.target
  const asUser = new pg.Client({ host, port, user, password, database: scenario.database })
  const asOwner = new pg.Client({ ...adminConfig(cluster, scenario.database, false) })
  await Promise.all([asUser.connect(), asOwner.connect()])
  const userId = scenario.users[0]?.userId ?? ''
  await asUser.query('set role app_user')
  await asUser.query('select set_config($1, $2, false)', ['app.user_id', userId])
  let named = 0
  const compile = async (collection: string, request: object): Promise<Compiled> => {
    const { rows } = await asUser.query('select internal.collection_compile($1, $2, $3, $4) as compiled', [
      'find',
      collection,
      JSON.stringify(request),
      'raw',
    ])
    return rows[0].compiled
  }
  const runner = (client: pg.Client, text: string, values: unknown[]) => {
    named += 1
    const name = `plan${named}`
    return () => client.query({ name, text, values })
  }
  return {
    async indexesOf(collection, filter) {
      const request = { filter, limit: 50 }
      const compiled = await compile(collection, request)
      const { rows } = await asUser.query(`explain (costs off) ${compiled.text}`, bind(compiled, request))
      const text = rows.map((row) => row['QUERY PLAN']).join('\n')
      return [...text.matchAll(/(?:using|Index Scan on) (\w+)/g)]
        .map(([, name = '']) => name)
        .filter((name) => !name.startsWith('collections_') && !/_(pkey|newest_idx)$/.test(name))
    },
    async policyCost(collection, filter) {
      const request = { filter, limit: 50, offset: 0 }
      const compiled = await compile(collection, request)
      const own = collection === 'notes' ? ` t.user_id = '${userId}' and ` : ' '
      const bare = compiled.text.replace(
        `from collections.${collection} t where `,
        `from collections.${collection} t where${own}`,
      )
      return compared(
        runner(asUser, compiled.text, bind(compiled, request)),
        runner(asOwner, bare, bind(compiled, request)),
        210,
      )
    },
    async depthCost(collection, depth) {
      const { rows } = await asOwner.query(
        `select to_json(created_at) #>> '{}' as key, id from collections.${collection} order by created_at desc, id desc limit 1 offset ${depth}`,
      )
      const first = { limit: 50 }
      const deep = { limit: 50, after: { key: rows[0].key, id: rows[0].id } }
      const [one, other] = [await compile(collection, deep), await compile(collection, first)]
      return (
        await compared(runner(asUser, one.text, bind(one, deep)), runner(asUser, other.text, bind(other, first)), 410)
      ).times
    },
    async end() {
      await Promise.all([asUser.end(), asOwner.end()])
    },
  }
}
