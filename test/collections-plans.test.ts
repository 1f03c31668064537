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

/** A find as it is compiled for an end user, and what Postgres makes of it. */
const planned = async (name: string, filter: object) => {
  const request = { limit: 50, filter }
  const [{ compiled }] = (await tried(
    'app_user',
    user.id,
    `select internal.collection_compile($1, $2, $3, 'raw') as compiled`,
    ['find', name, JSON.stringify(request)],
  )) as [{ compiled: Compiled }]
  const values = compiled.params.map(({ path, type }) => {
    const value = path.reduce<any>((at, part) => at[part], request)
    return type === 'jsonb' ? JSON.stringify(value) : value
  })
  const plan = (await tried('app_user', user.id, `explain (costs off) ${compiled.text}`, values)) as {
    'QUERY PLAN': string
  }[]
  return { text: compiled.text, plan: plan.map((line) => line['QUERY PLAN']).join('\n') }
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
