import { describe, expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const mostBytes = 8 * 1_048_576
/** Beside the rows: the names of the envelope and a cursor. */
const envelope = 1_000

const bytesOf = ({ text }: Answer) => Buffer.byteLength(text)
const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id)

describe('pages of a collection', async () => {
  const path = await define(project, {
    name: 'papers',
    read_policy: 'public',
    columns: [
      { name: 'n', type: 'integer' },
      { name: 'body', type: 'text' },
      { name: 'more', type: 'jsonb' },
    ],
  })
  const count = 24
  // half as text, half as JSON that compresses well: what is stored says little of what is answered
  await project.sql(
    `insert into collections.papers (user_id, n, body, more)
     select $1, n, case when n % 2 = 0 then repeat(md5(n::text), 28000) end,
            case when n % 2 = 1 then to_jsonb(array_fill(n, array[240000])) end
       from generate_series(1, $2) n`,
    [user.id, count],
  )
  const all = idsOf((await project.sql('select id from collections.papers order by n')) as { id: string }[])

  const walk = async (who: Client, first: object, next: (answer: Answer) => object | null) => {
    const seen: string[] = []
    const sizes: number[] = []
    for (let body: object | null = first; body; ) {
      const answer = await who.post(`${path}/find`, body)
      expect(answer.status, answer.text.slice(0, 300)).toBe(200)
      expect(bytesOf(answer)).toBeLessThanOrEqual(mostBytes + envelope)
      seen.push(...idsOf(answer.data))
      sizes.push(answer.data.length)
      body = next(answer)
    }
    return { seen, sizes }
  }

  test('by cursor: fewer rows, and the next page goes on behind them', async () => {
    for (const limit of [1000, 50]) {
      const options = { limit, order: [{ column: 'n' }] }
      const { seen, sizes } = await walk(user, options, ({ body }) =>
        body.next_cursor ? { ...options, cursor: body.next_cursor } : null,
      )
      expect(seen).toEqual(all)
      expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThan(5)
    }
  })

  test('by offset and by two columns: limit is the number of rows that fitted', async () => {
    const order = [{ column: 'n' }, { column: 'created_at' }]
    for (const first of [{ offset: 0 }, { order }]) {
      const options = { limit: 1000, order: [{ column: 'n' }], ...first }
      const { seen } = await walk(user, options, ({ body }) => {
        if (body.limit === undefined) return null
        expect(body.limit).toBe(body.data.length)
        return { ...options, offset: body.offset + body.limit }
      })
      expect(seen).toEqual(all)
    }
  })

  test('pages that are small enough say nothing of it, and go on at once', async () => {
    const { body } = await user.post(`${path}/find`, { limit: 3, offset: 2, order: [{ column: 'n' }], select: ['n'] })
    expect(body).toEqual({ data: [{ n: 3 }, { n: 4 }, { n: 5 }] })
    const selected = await user.post(`${path}/find`, { limit: 1000, order: [{ column: 'n' }], select: ['n'] })
    expect([selected.data.length, selected.body.next_cursor]).toEqual([count, null])
  })

  test('many at once, from other callers, while small reads go on: none is cancelled for another', async () => {
    const [other, small] = [await project.user(), await project.user()]
    const heavy = [user, other, project.server].flatMap((who) => [
      who.post(`${path}/find`, { limit: 1000 }),
      who.get(`${path}?limit=1000&order=n.desc`),
    ])
    // one after another: of one user, more at once are refused where the machine is slow
    const reads = async () => {
      const answers: Answer[] = []
      for (let offset = 0; offset < count; offset += 1)
        answers.push(await small.post(`${path}/find`, { limit: 1, offset, select: ['n'], order: [{ column: 'n' }] }))
      return answers
    }
    const [pages, smallOnes] = await Promise.all([Promise.all(heavy), reads()])
    for (const answer of [...pages, ...smallOnes]) expect(answer.status, answer.text.slice(0, 300)).toBe(200)
    expect(smallOnes.map(({ data }) => data[0]?.n)).toEqual(Array.from({ length: count }, (_, n) => n + 1))
    for (const answer of pages) expect(answer.body.next_cursor).toBeTruthy()
  })

  test('aggregates have no next page: too large ones are refused by name', async () => {
    const largest = { fn: 'max', column: 'body', as: 'body' }
    const body = { group_by: ['n'], aggregates: [largest] }
    const refused = await user.post(`${path}/aggregate`, { ...body, limit: 1000 })
    expect(refused).toMatchObject({ status: 400, error: { code: 'INVALID_BODY', details: { path: 'limit' } } })
    const few = await user.post(`${path}/aggregate`, { ...body, limit: 8 })
    expect([few.status, few.data?.length]).toEqual([200, 8])
  })

  test('an export has every row', async () => {
    const { status, text } = await project.admin.get('/collections/papers/export')
    expect(status).toBe(200)
    expect(
      idsOf(
        text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
      ),
    ).toEqual(all)
    const batches: number[] = []
    const claims = { 'app.caller': 'developer', 'app.developer_id': project.developer.id, 'app.project_id': project.id }
    let after: string | null = null
    do {
      const rows: any[] = await project.as('app_admin', claims, 'select body from api.collection_export($1, $2)', [
        'papers',
        after,
      ])
      batches.push(rows[0].body.data.rows.length)
      after = rows[0].body.data.next_cursor
    } while (after)
    expect(batches.reduce((sum, size) => sum + size, 0)).toBe(count)
    expect(Math.max(...batches)).toBeLessThan(12)
  })

  test("a user's bundle has every row too", async () => {
    const { text } = await project.admin.get(`/users/${user.id}/export`)
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.filter(({ collection }) => collection === 'papers')).toHaveLength(count)
    expect(lines.at(-1)).toMatchObject({ section: 'export_complete', data: { rows: lines.length - 1 } })
  })
})

test('what is included is bounded: a list of 4 MB, a row of 8 MB', async () => {
  await define(project, { name: 'authors', columns: [{ name: 'name', type: 'text' }] })
  const path = await define(project, {
    name: 'books',
    columns: [
      { name: 'author_id', type: 'uuid', references: { collection: 'authors' } },
      { name: 'body', type: 'text' },
    ],
  })
  const [light, heavy] = (await project.sql(
    `insert into collections.authors (user_id, name) values ($1, 'light'), ($1, 'heavy') returning id`,
    [user.id],
  )) as [{ id: string }, { id: string }]
  for (const [author, size, books] of [
    [light.id, 1000, 100],
    [heavy.id, 500_000, 20],
  ])
    await project.sql(
      `insert into collections.books (user_id, author_id, body) select $1, $2, repeat('x', $3) from generate_series(1, $4)`,
      [user.id, author, size, books],
    )
  const authors = '/client/collections/authors/find'
  const of = (id: string) => ({ filter: { column: 'id', op: 'eq', value: id }, include: ['books'] })
  const found = await user.post(authors, of(light.id))
  expect([found.status, found.data[0].books.length]).toEqual([200, 100])
  const refused = await user.post(authors, of(heavy.id))
  expect(refused).toMatchObject({ status: 400, error: { code: 'INVALID_BODY', details: { path: 'include' } } })
  const books = await user.post(`${path}/find`, { limit: 1000, include: ['author'] })
  expect(books.body.next_cursor).toBeTruthy()
  expect(bytesOf(books)).toBeLessThanOrEqual(mostBytes + envelope)
})

describe('lists of other areas', () => {
  test('users with large properties: the next page begins at offset + limit', async () => {
    const { admin, sql } = await harness.project()
    await sql(
      `insert into app.users (display_name, properties, last_seen_at)
       select 'u' || n, jsonb_build_object('text', repeat('x', 65000)), now() - n * interval '1 minute' from generate_series(1, 170) n`,
    )
    const seen: string[] = []
    for (let offset = 0; offset < 170; ) {
      const answer = await admin.get(`/users?limit=200&offset=${offset}`)
      expect(bytesOf(answer)).toBeLessThanOrEqual(mostBytes + envelope)
      expect(answer.body).toMatchObject({ total: 170, offset, limit: expect.any(Number) })
      if (offset === 0) expect(answer.body.limit).toBe(answer.data.length)
      seen.push(...answer.data.map((row: { display_name: string }) => row.display_name))
      offset += answer.body.limit
    }
    expect(seen).toEqual(Array.from({ length: 170 }, (_, n) => `u${n + 1}`))
    const exported = await admin.get('/users/export?format=ndjson')
    expect(exported.text.trim().split('\n')).toHaveLength(170)
  })

  test('events: by cursor, by offset, and exported', async () => {
    const { admin, sql, user: signUp } = await harness.project()
    const { id } = await signUp()
    // as short as a number is sent, and one byte more for each in what Postgres writes
    await sql(
      `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
       select internal.new_id(), $1, 'heavy', jsonb_build_object('list', array_fill(1, array[16000])), now() - n * interval '1 second', now(), 'server'
         from generate_series(1, 200) n`,
      [id],
    )
    const seen: string[] = []
    let pages = 0
    for (let cursor: string | null = ''; cursor !== null; pages += 1) {
      const answer: Answer = await admin.get(`/events?limit=200&event_name=heavy${cursor ? `&cursor=${cursor}` : ''}`)
      expect(answer.status, answer.text.slice(0, 300)).toBe(200)
      expect(bytesOf(answer)).toBeLessThanOrEqual(mostBytes + envelope)
      seen.push(...idsOf(answer.data))
      cursor = answer.body.pagination.next_cursor
    }
    expect([pages > 1, new Set(seen).size, seen.length]).toEqual([true, 200, 200])
    const first = await admin.get(`/users/${id}/events?limit=200`)
    expect(first.body.limit).toBe(first.data.length)
    expect(first.body.limit).toBeLessThan(200)
    const exported = await admin.get(`/users/${id}/events/export?format=ndjson`)
    expect(exported.text.trim().split('\n')).toHaveLength(200)
  })

  test('internal.reply_page cuts at 8 MB and never below one row', async () => {
    const reply = async (rows: number, size: number) => {
      const [row] = await project.sql(
        `select (internal.reply_page((select json_agg(repeat('x', $2)) from generate_series(1, $1)), $1, 7, 200)).body`,
        [rows, size],
      )
      const { data, limit, offset, total } = row!['body']
      return [data.length, limit, offset, total]
    }
    expect(await reply(200, 100)).toEqual([200, 200, 7, 200])
    expect(await reply(10, 1_000_000)).toEqual([8, 8, 7, 10])
    expect(await reply(3, 9_000_000)).toEqual([1, 1, 7, 3])
    expect(await reply(0, 1)).toEqual([0, 200, 7, 0])
  })

  test('what makes rows large is bounded where it is written', async () => {
    const big = { column: 'a', op: 'in', value: Array.from({ length: 900 }, () => 'x'.repeat(100)) }
    const streak = { key: 'daily', name: 'Daily', qualifying_event: 'x', event_filter: big }
    const refused = await project.admin.post('/streaks', streak)
    expect(refused).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR', message: expect.stringContaining('64 KB') },
    })
    const group = await user.post('/client/groups', { name: 'g', metadata: { a: 'x'.repeat(9000) } })
    expect(group).toMatchObject({ status: 400, error: { details: { field: 'metadata' } } })
    const value = 'x'.repeat(1_000_000)
    const answers = []
    for (const key of ['a', 'b', 'c', 'd', 'e']) answers.push(await project.admin.post('/config', { key, value }))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 400])
    expect(answers[4]?.error?.details.field).toBe('value')
    expect((await project.admin.delete('/config/a')).status).toBe(200)
    expect((await user.get('/client/config')).status).toBe(200)
  })
})

describe('the audit trail of large changes', async () => {
  // in the project's own database, between changes that control knows
  const trail = await harness.project()
  const count = sized(16, 24)
  for (let n = 0; n < count; n += 1) {
    const value = Array.from({ length: 14_000 }, (_, at) => `${(n * 14_000 + at) * 7919}-${at}-${'x'.repeat(40)}`)
    const { status } = await trail.admin.post('/config', { key: 'large', value_type: 'json', value })
    expect(status).toBe(201)
    if (n % 8 === 0) await trail.admin.post('/api-keys', { key_type: 'client', environment: 'production' })
  }

  test('its list has every row once, its export all, and each is verified', async () => {
    const seen: string[] = []
    let pages = 0
    for (let cursor: string | null = ''; cursor !== null; pages += 1) {
      const answer: Answer = await trail.admin.get(`/audit-events?limit=200${cursor && `&cursor=${cursor}`}`)
      expect(answer.status, answer.text.slice(0, 300)).toBe(200)
      expect(bytesOf(answer)).toBeLessThanOrEqual(mostBytes + envelope)
      seen.push(...idsOf(answer.data))
      cursor = answer.body.pagination.next_cursor
    }
    expect(pages).toBeGreaterThan(3)
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.length).toBeGreaterThanOrEqual(count + 3)

    const { status, text } = await trail.admin.get('/audit-events/export')
    const exported = text.trim().split('\n')
    expect(status).toBe(200)
    expect(exported.map((line) => JSON.parse(line).id)).toEqual(seen)
    const verified = await trail.admin.get('/audit-events/verify')
    expect(verified.data).toMatchObject({ verified: true, checked: seen.length })
  })
})
