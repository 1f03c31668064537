import { describe, expect, test } from 'vitest'
import { define, insertAll } from '#test/support/collection_rows.ts'
import { type Client, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const other = await project.user()

/** Every page, by cursor. */
const walk = async (client: Client, path: string, options: Record<string, unknown>): Promise<any[]> => {
  const rows: any[] = []
  let cursor: string | null | undefined
  do {
    const page = await client.post(`${path}/find`, { ...options, ...(cursor ? { cursor } : {}) })
    expect(page.error).toBeUndefined()
    rows.push(...page.data)
    cursor = page.body.next_cursor
  } while (cursor)
  expect(cursor).toBeNull()
  return rows
}

describe('pages', async () => {
  const path = await define(project, {
    name: 'tasks',
    columns: [
      { name: 'title', type: 'text' },
      { name: 'rank', type: 'integer' },
      { name: 'weight', type: 'numeric' },
      { name: 'due', type: 'timestamptz' },
      { name: 'done', type: 'boolean' },
    ],
  })
  const rows = Array.from({ length: 23 }, (_, n) => ({
    title: `t${String(n % 7)}`,
    rank: n % 5 === 0 ? null : n % 4,
    weight: n % 6 === 0 ? null : n / 8,
    due: n % 3 === 0 ? null : `2026-01-0${(n % 3) + 1}T00:00:00.123Z`,
    done: n % 2 === 0 ? null : n % 3 === 0,
  }))
  await user.post(`${path}/batch`, { rows })
  await other.post(path, { title: 'not yours', rank: 1 })

  test.each(['created_at', 'updated_at', 'id', 'title', 'rank', 'weight', 'due', 'done'])(
    'by cursor over %s, both ways, hold each row once, those without a value last',
    async (column) => {
      for (const direction of ['asc', 'desc']) {
        const order = [{ column, direction }]
        const walked = await walk(user, path, { order, limit: 4 })
        const whole = (await user.post(`${path}/find`, { order, limit: 1000 })).data
        expect(walked.map((row) => row.id)).toEqual(whole.map((row: any) => row.id))
        expect(new Set(walked.map((row) => row.id)).size).toBe(23)
        const values = walked.map((row) => row[column])
        const known = values.filter((value) => value !== null)
        expect(values.slice(known.length).every((value) => value === null)).toBe(true)
        const sign = direction === 'asc' ? 1 : -1
        const sorted = [...known].sort((a, b) => (a < b ? -sign : a > b ? sign : 0))
        expect(known).toEqual(sorted)
        // the same by offset, in another statement
        const offset = await user.post(`${path}/find`, { order, limit: 4, offset: 4 })
        expect(offset.data.map((row: any) => row[column])).toEqual(values.slice(4, 8))
        expect(offset.body).not.toHaveProperty('next_cursor')
      }
    },
  )

  test('are 50 by default, clamped at 1000; 0, fractions and words are 400', async () => {
    const big = await define(project, { name: 'big', columns: [{ name: 'n', type: 'integer' }] })
    for (let batch = 0; batch < 3; batch += 1) {
      await user.post(`${big}/batch`, { rows: Array.from({ length: 400 }, (_, n) => ({ n })) })
    }
    expect((await user.post(`${big}/find`)).data).toHaveLength(50)
    expect((await user.post(`${big}/find`, { limit: 5000 })).data).toHaveLength(1000)
    for (const limit of [1e16, 1e300])
      expect((await user.post(`${big}/find`, { limit })).data, `${limit}`).toHaveLength(1000)
    expect((await user.post(`${big}/find`, { offset: 1e300 })).data).toEqual([])
    for (const limit of ['5000', '99999999999999999999', '0005000'])
      expect((await user.get(`${big}?limit=${limit}`)).data, limit).toHaveLength(1000)
    expect(await walk(user, big, { limit: 500 })).toHaveLength(1200)
    for (const limit of [0, -1, 1.5, 'ten', '10']) {
      expect((await user.post(`${big}/find`, { limit })).error?.code).toBe('INVALID_BODY')
    }
    for (const limit of ['0', '-1', '1.5', 'ten', '']) {
      expect((await user.get(`${big}?limit=${limit}`)).error?.code, limit).toBe('INVALID_BODY')
    }
    for (const options of [
      { offset: -1 },
      { offset: 'x' },
      { order: 'n' },
      { order: [{ column: 'n', direction: 'up' }] },
      { select: 'n' },
      { cursor: 5 },
    ]) {
      expect((await user.post(`${big}/find`, options)).error?.code, JSON.stringify(options)).toBe('INVALID_BODY')
    }
  })

  test('stay whole while rows come in', async () => {
    const first = await user.post(`${path}/find`, { limit: 10 })
    await user.post(`${path}/batch`, { rows: [{ title: 'new' }, { title: 'newer' }] })
    const rest = await walk(user, path, { limit: 10, cursor: first.body.next_cursor })
    const ids = [...first.data, ...rest].map((row) => row.id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toHaveLength(23)
  })

  test('refuse a cursor that was changed, or is of another query', async () => {
    const options = { filter: { column: 'title', op: 'ne', value: 'x' }, limit: 5 }
    const { body } = await user.post(`${path}/find`, options)
    const cursor: string = body.next_cursor
    expect((await user.post(`${path}/find`, { ...options, cursor })).status).toBe(200)
    // another page size and another selection are the same query
    expect((await user.post(`${path}/find`, { ...options, limit: 7, select: ['title'], cursor })).status).toBe(200)
    const tampered = Buffer.from(cursor, 'base64url')
    tampered[tampered.length - 3] = (tampered[tampered.length - 3] ?? 0) ^ 1
    const refused: [string, object][] = [
      ['changed', { ...options, cursor: tampered.toString('base64url') }],
      ['cut', { ...options, cursor: cursor.slice(0, -4) }],
      ['longer', { ...options, cursor: `${cursor}AAAA` }],
      ['empty', { ...options, cursor: 'x' }],
      ['no base64', { ...options, cursor: `${cursor}!` }],
      ['another value', { ...options, filter: { column: 'title', op: 'ne', value: 'y' }, cursor }],
      ['no filter', { limit: 5, cursor }],
      ['another order', { ...options, order: [{ column: 'rank' }], cursor }],
      ['deleted too', { ...options, include_deleted: true, cursor }],
      ['two orders', { ...options, order: [{ column: 'created_at' }, { column: 'id' }], cursor }],
      ['an offset', { ...options, offset: 1, cursor }],
    ]
    for (const [name, wrong] of refused) {
      expect(await user.post(`${path}/find`, wrong), name).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY' },
      })
    }
    const elsewhere = await define(project, { name: 'tasks2', columns: [{ name: 'title', type: 'text' }] })
    expect((await user.post(`${elsewhere}/find`, { ...options, cursor })).error?.code).toBe('INVALID_BODY')
  })

  test('show the chosen columns, in any order of several columns', async () => {
    const chosen = await user.post(`${path}/find`, {
      select: ['rank', 'title'],
      order: [{ column: 'rank', direction: 'desc' }, { column: 'title' }],
      limit: 3,
    })
    expect(Object.keys(chosen.data[0]).sort()).toEqual(['rank', 'title'])
    expect(chosen.data.map((row: any) => row.rank)).toEqual([3, 3, 3])
    expect(chosen.body).not.toHaveProperty('next_cursor')
  })
})

describe('the query string', async () => {
  const goods = await define(project, {
    name: 'wares',
    columns: [
      { name: 'name', type: 'text' },
      { name: 'price', type: 'numeric' },
      { name: 'q', type: 'integer' },
      { name: 'tags', type: 'text[]' },
      { name: 'sold', type: 'boolean' },
      { name: 'at', type: 'timestamptz' },
    ],
  })
  await insertAll(user, goods, [
    { name: 'apple', price: 1.5, q: 1, tags: ['red', 'fruit'], sold: true, at: '2026-01-01T00:00:00Z' },
    { name: 'pear', price: 10, q: 2, tags: ['fruit'], sold: false, at: '2026-02-01T00:00:00Z' },
    { name: '100% juice_x', price: 20.25, q: 3, tags: [], sold: null, at: null },
  ])
  const names = async (query: string) => {
    const answer = await user.get(`${goods}?${query}`)
    expect(answer.error, query).toBeUndefined()
    return answer.data.map((row: any) => row.name)
  }

  test('filters by columns, typed by them', async () => {
    expect(await names('name=pear')).toEqual(['pear'])
    expect(await names('price=10.0')).toEqual(['pear'])
    expect(await names('price[gte]=10&price[lt]=20.25')).toEqual(['pear'])
    expect(await names('name[in]=apple,pear&order=name.desc')).toEqual(['pear', 'apple'])
    expect(await names('tags[contains]=red')).toEqual(['apple'])
    expect(await names('tags[overlaps]=red,blue')).toEqual(['apple'])
    expect(await names('sold=false')).toEqual(['pear'])
    expect(await names('at[is_null]=')).toEqual(['100% juice_x'])
    expect(await names('at[gt]=2026-01-15')).toEqual(['pear'])
    expect(await names('at=2026-01-01T00:00:00.000Z')).toEqual(['apple'])
    expect(await names('filter[q]=2')).toEqual(['pear'])
    expect(await names('filter[q][gt]=1&order=price.asc')).toEqual(['pear', '100% juice_x'])
    expect(await names('q=JUICE_&q_columns=name')).toEqual(['100% juice_x'])
    expect(await names('q=%25&q_columns=name')).toEqual(['100% juice_x'])
    expect((await user.get(`${goods}?select=name&limit=1&order=name.asc`)).data).toEqual([{ name: '100% juice_x' }])
    expect((await user.get(`${goods}/count?price[gte]=10`)).data).toEqual({ count: 2 })
    expect((await user.get(`${goods}/count`)).data).toEqual({ count: 3 })
  })

  test('takes the whole query as JSON, which wins', async () => {
    const query = encodeURIComponent(JSON.stringify({ filter: { column: 'name', op: 'eq', value: 'pear' }, limit: 5 }))
    expect(await names(`query=${query}&name=apple`)).toEqual(['pear'])
  })

  test('pages by cursor', async () => {
    const first = await user.get(`${goods}?limit=2&order=name.asc`)
    expect(first.data.map((row: any) => row.name)).toEqual(['100% juice_x', 'apple'])
    const second = await user.get(`${goods}?limit=2&order=name.asc&cursor=${first.body.next_cursor}`)
    expect(second.data.map((row: any) => row.name)).toEqual(['pear'])
    expect(second.body.next_cursor).toBeNull()
    const offset = await user.get(`${goods}?limit=2&offset=2&order=name.asc`)
    expect(offset.data.map((row: any) => row.name)).toEqual(['pear'])
  })

  test('is refused by name where it is wrong', async () => {
    const wrong: [string, string][] = [
      ['nope=1', 'INVALID_COLUMN'],
      ['price=abc', 'INVALID_BODY'],
      ['price[gte]=', 'INVALID_BODY'],
      ['sold=yes', 'INVALID_BODY'],
      ['at=now', 'INVALID_BODY'],
      ['price[near]=1', 'INVALID_BODY'],
      ['price[gte][x]=1', 'INVALID_BODY'],
      ['order=name.up', 'INVALID_BODY'],
      ['order=nope', 'INVALID_COLUMN'],
      ['include_deleted=maybe', 'INVALID_BODY'],
      ['limit=5&limit=6', 'INVALID_BODY'],
      ['name=%00', 'INVALID_BODY'],
      ['query={', 'INVALID_JSON'],
      ['query=[]', 'INVALID_BODY'],
      [`query=${encodeURIComponent('{"limit": 0}')}`, 'INVALID_BODY'],
    ]
    for (const [query, code] of wrong) {
      expect(await user.get(`${goods}?${query}`), query).toMatchObject({ status: 400, error: { code } })
      // twice: by a kept statement of the same shape
      expect(await user.get(`${goods}?${query}`), query).toMatchObject({ status: 400, error: { code } })
    }
    expect((await user.get(`${goods}/count?nope=1`)).error?.code).toBe('INVALID_COLUMN')
    expect((await user.get(`${goods}/count?filter={`)).error?.code).toBe('INVALID_JSON')
    expect((await user.get(`${goods}/count?include_deleted=x`)).error?.code).toBe('INVALID_BODY')
  })
})

describe('search', async () => {
  const path = await define(project, {
    name: 'articles',
    columns: [
      { name: 'title', type: 'text' },
      { name: 'body', type: 'text' },
    ],
    indexes: [{ columns: ['title'], method: 'trgm' }],
  })
  await insertAll(user, path, [
    { title: 'Postgres replication', body: 'about 50% of it' },
    { title: 'Cooking pasta', body: 'with_tomatoes' },
    { title: null, body: 'a back\\slash' },
  ])
  const found = async (search: object) => {
    const answer = await user.post(`${path}/find`, { search, order: [{ column: 'body' }] })
    expect(answer.error).toBeUndefined()
    return answer.data.map((row: any) => row.body)
  }

  test('finds a substring without regard to case; wildcards are letters', async () => {
    expect(await found({ q: 'POSTGRES', columns: ['title'] })).toEqual(['about 50% of it'])
    expect(await found({ q: '%', columns: ['title', 'body'] })).toEqual(['about 50% of it'])
    expect(await found({ q: '_', columns: ['body'] })).toEqual(['with_tomatoes'])
    expect(await found({ q: '\\', columns: ['body'] })).toEqual(['a back\\slash'])
    expect(await found({ q: '', columns: ['title'] })).toHaveLength(2)
  })

  test('finds what is written almost so, from a threshold on', async () => {
    expect(await found({ q: 'replicaton', columns: ['title'], fuzzy: true })).toEqual(['about 50% of it'])
    expect(await found({ q: 'replicaton', columns: ['title'], fuzzy: true, threshold: 1 })).toEqual([])
    expect(await found({ q: 'zzz', columns: ['title'], fuzzy: true, threshold: 0 })).toHaveLength(2)
    expect(await found({ q: 'replicaton', columns: ['title'] })).toEqual([])
    for (const search of [
      { q: 'x', columns: [] },
      { q: 'x' },
      { columns: ['title'] },
      { q: 'x', columns: ['title'], threshold: 1.1 },
      { q: 'x', columns: ['title'], threshold: -0.1 },
    ]) {
      expect((await user.post(`${path}/find`, { search })).error?.code, JSON.stringify(search)).toBe('INVALID_BODY')
    }
  })
})

describe('include', async () => {
  const authors = await define(project, {
    name: 'authors',
    read_policy: 'public',
    columns: [{ name: 'name', type: 'text' }],
  })
  const posts = await define(project, {
    name: 'posts',
    read_policy: 'public',
    columns: [
      { name: 'title', type: 'text' },
      { name: 'author_id', type: 'uuid', references: { collection: 'authors', on_delete: 'set_null' } },
    ],
  })
  const comments = await define(project, {
    name: 'comments',
    columns: [
      { name: 'body', type: 'text' },
      { name: 'post_id', type: 'uuid', references: { collection: 'posts', on_delete: 'cascade' } },
    ],
  })
  const [ada] = await insertAll(user, authors, [{ name: 'Ada' }])
  const [post, bare] = await insertAll(user, posts, [{ title: 'one', author_id: ada.id }, { title: 'two' }])
  await insertAll(user, comments, [{ body: 'mine', post_id: post.id }])
  await insertAll(other, comments, [{ body: 'theirs', post_id: post.id }])

  test('brings what is referred to and what refers here, nested, under the included policies', async () => {
    const { data, error } = await user.post(`${posts}/find`, {
      include: ['author', 'comments.post.author'],
      order: [{ column: 'title' }],
    })
    expect(error).toBeUndefined()
    expect(data[0]).toMatchObject({
      id: post.id,
      author_id: ada.id,
      author: { id: ada.id, name: 'Ada' },
      comments: [{ body: 'mine', post: { title: 'one', author: { name: 'Ada' } } }],
    })
    expect(data[1]).toMatchObject({ id: bare.id, author: null, comments: [] })
    expect(
      (
        await other.post(`${posts}/find`, {
          include: ['comments'],
          filter: { column: 'title', op: 'eq', value: 'one' },
        })
      ).data[0].comments,
    ).toMatchObject([{ body: 'theirs' }])
    expect((await user.get(`${posts}?include=author&title=one&select=title`)).data).toEqual([
      { title: 'one', author: expect.objectContaining({ name: 'Ada' }) },
    ])
  })

  test('caps lists at 100, levels at 3, and knows what is there', async () => {
    await user.post(`${comments}/batch`, {
      rows: Array.from({ length: 120 }, (_, n) => ({ body: `c${n}`, post_id: bare.id })),
    })
    const { data } = await user.post(`${posts}/find`, {
      include: ['comments'],
      filter: { column: 'title', op: 'eq', value: 'two' },
    })
    expect(data[0].comments).toHaveLength(100)
    expect((await user.post(`${posts}/find`, { include: ['comments.post.comments.post'] })).error?.code).toBe(
      'INVALID_BODY',
    )
    expect((await user.post(`${posts}/find`, { include: ['nothing'] })).error?.code).toBe('INVALID_COLUMN')
    expect((await user.post(`${posts}/find`, { include: ['title'] })).error?.code).toBe('INVALID_COLUMN')
  })
})
