import { beforeAll, describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

const { project, define, tried } = await startCollections()
const user = await project.user()
const rows = 100_000
const columns = [
  { name: 'n', type: 'integer' },
  { name: 'meta', type: 'jsonb' },
]

type Compiled = {
  readonly text: string
  readonly params: readonly { readonly path: readonly string[]; readonly type: string }[]
}

/** A find as it is compiled for an end user, with its values. */
const compiled = async (name: string, request: Record<string, unknown>) => {
  const [row] = (await tried('app_user', user.id, `select internal.collection_compile($1, $2, $3, 'raw') as compiled`, [
    'find',
    name,
    JSON.stringify(request),
  ])) as [{ compiled: Compiled }]
  const values = row.compiled.params.map(({ path, type }) => {
    const value = path.reduce<any>((at, part) => at[part], request)
    return type === 'jsonb' ? JSON.stringify(value) : value
  })
  return { text: row.compiled.text, values }
}

/** What Postgres makes of it. */
const planned = async (name: string, filter: object) => {
  const { text, values } = await compiled(name, { limit: 50, filter })
  const plan = (await tried('app_user', user.id, `explain (costs off) ${text}`, values)) as {
    'QUERY PLAN': string
  }[]
  return { text, plan: plan.map((line) => line['QUERY PLAN']).join('\n') }
}

const fill = async (name: string) => {
  await project.sql(
    `insert into collections.${name} (user_id, created_at, n, meta)
     select $1, '2026-01-01T00:00:00Z'::timestamptz + n * interval '10 seconds', n, jsonb_build_object('k', n % 5000, 'one', 1)
       from generate_series(1, ${rows}) as n`,
    [user.id],
  )
  await project.sql(`vacuum (analyze) collections.${name}`)
}

describe('JSON that contains', () => {
  let indexed: string
  let bare: string
  beforeAll(async () => {
    indexed = await define({
      read_policy: 'public',
      columns,
      indexes: [{ columns: ['meta'], method: 'gin' }],
    })
    bare = await define({ read_policy: 'public', columns })
    await Promise.all([fill(indexed), fill(bare)])
  }, 180_000)
  const contains = { column: 'meta', op: 'contains', value: { k: 17 } }
  const times = (text: string) => text.match(/@>/g)?.length ?? 0

  test('is found by its index under row-level security, newest first', async () => {
    const { text, plan } = await planned(indexed, contains)
    expect(plan).toContain(`Bitmap Index Scan on ${indexed}_meta_gin`)
    expect(plan).not.toContain('newest_idx')
    expect(times(text)).toBe(2)
  })

  test('without an index that serves it, the condition stands once', async () => {
    const { text, plan } = await planned(bare, contains)
    expect(times(text)).toBe(1)
    expect(plan).toContain('newest_idx')
  })

  test('answers the same with the index and without', async () => {
    const found = async (name: string) =>
      (await user.post(`/client/collections/${name}/find`, { filter: contains, limit: 100 })).data.map(
        ({ n }: { n: number }) => n,
      )
    const wanted = Array.from({ length: rows / 5000 }, (_, turn) => 17 + (rows / 5000 - 1 - turn) * 5000)
    expect(await found(indexed)).toEqual(wanted)
    expect(await found(bare)).toEqual(wanted)
  })
})

describe('a page far behind', () => {
  const order = [
    { column: 'kind', direction: 'desc' },
    { column: 'body', direction: 'asc' },
  ]
  let shared: string
  let own: string
  const fillWide = async (name: string) => {
    await project.sql(
      `insert into collections.${name} (user_id, kind, body)
       select $1, nullif(n % 7, 0), md5(n::text) || repeat(' wide', 20) from generate_series(1, 5000) as n`,
      [user.id],
    )
    await project.sql(`vacuum (analyze) collections.${name}`)
  }
  beforeAll(async () => {
    const wide = [
      { name: 'kind', type: 'integer' },
      { name: 'body', type: 'text' },
      { name: 'meta', type: 'jsonb' },
    ]
    shared = await define({ read_policy: 'public', columns: wide })
    own = await define({ read_policy: 'owner', columns: wide })
    await Promise.all([fillWide(shared), fillWide(own)])
  }, 180_000)

  type Node = { 'Sort Key'?: string[]; Output?: string[]; 'Index Name'?: string; Plans?: Node[] }
  const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
  const planOf = async (name: string, offset: number) => {
    const { text, values } = await compiled(name, { order, offset, limit: 50 })
    const [row] = (await tried('app_user', user.id, `explain (verbose, format json) ${text}`, values)) as [
      { 'QUERY PLAN': { Plan: Node }[] },
    ]
    return nodesOf((row['QUERY PLAN'][0] as { Plan: Node }).Plan)
  }

  test.each(['public', 'owner'])(
    'sorts no whole rows, and reads those of the page by their ids (%s)',
    async (policy) => {
      const name = policy === 'public' ? shared : own
      const nodes = await planOf(name, 4000)
      const sorted = nodes.filter((node) => node['Sort Key']?.some((key) => key.includes('body')))
      expect(sorted).toHaveLength(1)
      expect(sorted[0]?.Output?.some((of) => /meta|created_at/.test(of))).toBe(false)
      expect(nodes.filter((node) => node['Index Name'] === `${name}_pkey`)).toHaveLength(1)
    },
  )

  test('has no part in a page that is near', async () => {
    expect((await planOf(shared, 999)).some((node) => node['Index Name'] === `${shared}_pkey`)).toBe(false)
  })

  test('goes on where the one before it ended, in one order', async () => {
    for (const name of [shared, own]) {
      const page = async (offset: number, limit: number) =>
        (await user.post(`/client/collections/${name}/find`, { order, offset, limit })).data.map(
          ({ id }: { id: string }) => id,
        )
      const wanted = (
        await project.sql(
          `select id from collections.${name} order by kind desc nulls last, body collate "C", id limit 1010 offset 490`,
        )
      ).map(({ id }) => id)
      const pages = [await page(490, 509), await page(999, 1), await page(1000, 1), await page(1001, 499)]
      expect(pages.flat()).toEqual(wanted)
      expect(await page(4990, 50)).toHaveLength(10)
      expect(await page(5000, 50)).toEqual([])
    }
  })

  test("shows no row that is not the caller's", async () => {
    const stranger = await project.user()
    const { data } = await stranger.post(`/client/collections/${own}/find`, { order, offset: 1000, limit: 50 })
    expect(data).toEqual([])
  })
})
