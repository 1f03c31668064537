import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const unique = () => randomUUID().slice(0, 8)

const make = async (fields: object = {}) => (await admin.post('/users', fields)).data
const update = (updates: unknown) => admin.post('/users/bulk-update', { updates })
const rowOf = async (id: string) => (await project.sql('select * from app.users where id = $1', [id]))[0]
const countUsers = async () => (await project.sql('select count(*)::int as n from app.users'))[0].n

let segments = 0
const segment = async (body: object) => {
  segments += 1
  const answer = await admin.post('/segments', { key: `segment-${segments}`, name: 'Segment', ...body })
  expect(answer.status, answer.text).toBe(201)
  return answer.data as { id: string; key: string }
}
const membersOf = async (id: string): Promise<string[]> =>
  (await admin.get(`/segments/${id}/members`)).data.map((row: { app_user_id: string }) => row.app_user_id)

describe('a bulk update', () => {
  test('names users in three ways, merges properties, removes some, and sets fields', async () => {
    const [one, two, three] = [
      await make({ properties: { keep: 1, drop: 2, gone: 3 } }),
      await make({ external_id: unique() }),
      await make(),
    ]
    const { status, data } = await update([
      { user_id: one.id, properties: { added: true, drop: null }, unset_properties: ['gone', 'never'] },
      {
        external_id: two.external_id,
        set: { display_name: 'Two', email: 'TWO@Example.org', timezone: 'Europe/Berlin', avatar_url: null },
      },
      { anonymous_id: three.anonymous_id, properties: { a: { b: 1 } }, set: { external_id: `x-${three.id}` } },
      { user_id: two.id },
    ])
    expect(status).toBe(200)
    expect(data).toEqual({
      updated: 4,
      failed: 0,
      results: [one, two, three, two].map(({ id }, index) => ({ index, user_id: id, status: 'updated' })),
    })
    expect((await rowOf(one.id)).properties).toEqual({ keep: 1, added: true })
    expect(await rowOf(two.id)).toMatchObject({
      display_name: 'Two',
      email: 'two@example.org',
      timezone: 'Europe/Berlin',
    })
    expect(await rowOf(three.id)).toMatchObject({ external_id: `x-${three.id}`, properties: { a: { b: 1 } } })
  })

  test('stores the good items, and says of each other one what was wrong, changing nothing of it', async () => {
    const [good, taken, other] = [
      await make(),
      await make({ email: `${unique()}@example.org` }),
      await make({ properties: { a: 1 } }),
    ]
    const before = await rowOf(other.id)
    const nobody = randomUUID()
    const { data } = await update([
      { user_id: good.id, properties: { first: 1 } },
      { user_id: nobody, properties: {} },
      { user_id: other.id, properties: { a: 2 }, set: { email: taken.email } },
      { user_id: other.id, set: { email: 'nonsense' } },
      { user_id: other.id, set: { display_name: null } },
      { user_id: other.id, external_id: 'x' },
      {},
      'text',
      { user_id: 'x' },
      { user_id: other.id, properties: [] },
      { user_id: other.id, set: 'x' },
      { user_id: other.id, unset_properties: ['a', 1] },
      { user_id: other.id, properties: { big: 'x'.repeat(65_536) } },
      { user_id: good.id, properties: { last: 1 } },
    ])
    const codes = data.results.map(({ code }: { code?: string }) => code)
    expect(codes).toEqual([
      undefined,
      'NOT_FOUND',
      'USER_ALREADY_EXISTS',
      ...Array(5).fill('INVALID_BODY'),
      'NOT_FOUND',
      ...Array(4).fill('INVALID_BODY'),
      undefined,
    ])
    expect(data).toMatchObject({ updated: 2, failed: 12 })
    expect(data.results[2]).toMatchObject({
      index: 2,
      user_id: other.id,
      status: 'failed',
      message: expect.stringContaining('email'),
    })
    expect(data.results[1].user_id).toBeNull()
    expect(await rowOf(other.id)).toEqual(before)
    expect((await rowOf(good.id)).properties).toEqual({ first: 1, last: 1 })
  })

  test('never takes a number for the external id that it spells', async () => {
    const number = String(Math.floor(Math.random() * 1e9))
    const [them, other] = [await make({ external_id: number, display_name: 'Seventeen' }), await make()]
    const { data } = await update([
      { user_id: randomUUID(), external_id: Number(number), set: { display_name: 'x' } },
      { user_id: other.id, external_id: Number(number), set: { display_name: 'x' } },
      { external_id: Number(number), set: { display_name: 'x' } },
      { user_id: other.id, external_id: null, anonymous_id: null, set: { display_name: 'Other' } },
    ])
    const codes = data.results.map(({ code }: { code?: string }) => code)
    expect(codes).toEqual(['INVALID_BODY', 'INVALID_BODY', 'INVALID_BODY', undefined])
    expect(data.results.map((result: { user_id: string | null }) => result.user_id)).not.toContain(them.id)
    expect([(await rowOf(them.id)).display_name, (await rowOf(other.id)).display_name]).toEqual(['Seventeen', 'Other'])
  })

  test('clears the verified flag with the address', async () => {
    const user = await make({ email: `${unique()}@example.org` })
    await project.sql('update app.users set email_verified = true where id = $1', [user.id])
    await update([{ user_id: user.id, set: { email: `${unique()}@example.org` } }])
    expect((await rowOf(user.id)).email_verified).toBe(false)
  })

  test('takes 1000 items and no more, and not none', { timeout: 180_000 }, async () => {
    const user = await make()
    const items = (count: number) => Array.from({ length: count }, (_, n) => ({ user_id: user.id, properties: { n } }))
    expect((await update(items(1000))).data).toMatchObject({ updated: 1000, failed: 0 })
    expect((await rowOf(user.id)).properties).toEqual({ n: 999 })
    expectRefusal(
      await update([...items(1000), { user_id: user.id, properties: { n: 'more' } }]),
      400,
      'BATCH_TOO_LARGE',
      'updates',
    )
    expect((await rowOf(user.id)).properties).toEqual({ n: 999 })
    for (const wrong of [[], undefined, 'x', {}]) expectRefusal(await update(wrong), 400, 'INVALID_BODY', 'updates')
  })

  test('of two that want each other’s addresses fails an item, never a request', { timeout: 180_000 }, async () => {
    const [a, b, c, d] = [await make(), await make(), await make(), await make()]
    const filler = (id: string) => Array.from({ length: 50 }, (_, n) => ({ user_id: id, properties: { n } }))
    for (let round = 0; round < 3; round += 1) {
      const [x, y] = [`x${round}-${unique()}@example.org`, `y${round}-${unique()}@example.org`]
      const crossed = (one: string, first: string, two: string, second: string) =>
        update([{ user_id: one, set: { email: first } }, ...filler(one), { user_id: two, set: { email: second } }])
      const answers = await Promise.all([crossed(a.id, x, b.id, y), crossed(c.id, y, d.id, x)])
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      const owners = await project.sql('select email from app.users where email = any ($1) order by email', [[x, y]])
      expect(owners.map(({ email }) => email)).toEqual([x, y])
      const failed = answers.flatMap(({ data }) => data.results).filter(({ status }) => status === 'failed')
      expect(failed.map(({ code }) => code)).toEqual(['USER_ALREADY_EXISTS', 'USER_ALREADY_EXISTS'])
    }
  })

  test('keeps the order of items that pass on what is unique, or name a user anew', async () => {
    const mail = () => `${unique()}@example.org`
    const [first, second] = [await make({ email: mail() }), await make({ email: mail() })]
    const fresh = mail()
    const statuses = async (items: object[]) =>
      (await update(items)).data.results.map(({ status, code }: { status: string; code?: string }) => code ?? status)
    // the second takes what the first gives up, but not before
    expect(
      await statuses([
        { user_id: second.id, set: { email: first.email }, properties: { early: 1 } },
        { user_id: first.id, set: { email: fresh }, properties: { a: 1 } },
        { user_id: second.id, set: { email: first.email }, properties: { late: 1 } },
        { user_id: first.id, set: { email: fresh }, properties: { b: 1 } },
      ]),
    ).toEqual(['USER_ALREADY_EXISTS', 'updated', 'updated', 'updated'])
    expect(await rowOf(first.id)).toMatchObject({ email: fresh, properties: { a: 1, b: 1 } })
    expect(await rowOf(second.id)).toMatchObject({ email: first.email, properties: { late: 1 } })
    // a name of a user may be given by an item before
    const [one, other] = [`one-${unique()}`, `other-${unique()}`]
    expect(
      await statuses([
        { external_id: one, properties: { none: 1 } },
        { user_id: first.id, set: { external_id: one } },
        { external_id: one, properties: { c: 1 } },
        { external_id: one, set: { external_id: other } },
        { external_id: one, properties: { none: 1 } },
        { external_id: other, properties: { d: 1 } },
      ]),
    ).toEqual(['NOT_FOUND', 'updated', 'updated', 'updated', 'NOT_FOUND', 'updated'])
    expect(await rowOf(first.id)).toMatchObject({ external_id: other, properties: { a: 1, b: 1, c: 1, d: 1 } })
    // two that want the same: the first has it
    const wanted = mail()
    expect(
      await statuses([first, second].map(({ id }) => ({ user_id: id, set: { email: wanted }, properties: { e: 1 } }))),
    ).toEqual(['updated', 'USER_ALREADY_EXISTS'])
    expect((await rowOf(second.id)).properties).toEqual({ late: 1 })
  })

  test('fails the item alone whose address another transaction takes meanwhile', async () => {
    const [one, two] = [await make(), await make()]
    const taken = `${unique()}@example.org`
    const other = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await other.query('select api.user_create($1)', [JSON.stringify({ email: taken })])
    const updating = update([
      { user_id: one.id, properties: { a: 1 } },
      { user_id: two.id, set: { email: taken }, properties: { a: 1 } },
      { user_id: two.id, properties: { b: 1 } },
    ])
    await untilBlocked(project)
    await other.commit()
    const { data } = await updating
    expect(data).toMatchObject({ updated: 2, failed: 1 })
    expect(data.results[1]).toMatchObject({ index: 1, code: 'USER_ALREADY_EXISTS', user_id: two.id })
    expect((await rowOf(one.id)).properties).toEqual({ a: 1 })
    expect(await rowOf(two.id)).toMatchObject({ email: null, properties: { b: 1 } })
  })

  test('writes each user once, with one row of the audit trail, however many items name them', async () => {
    const [one, two] = [await make(), await make()]
    await update([one, two, one, two, one].map(({ id }, n) => ({ user_id: id, properties: { [`k${n}`]: n } })))
    expect((await rowOf(one.id)).properties).toEqual({ k0: 0, k2: 2, k4: 4 })
    const trail = await project.sql(
      `select target_id, changes, status from app.audit_events where target_id in ($1, $2) and action = 'users.update' order by position`,
      [one.id, two.id],
    )
    const changes = { properties: ['[redacted]', '[redacted]'] }
    expect(trail).toEqual([one, two].map(({ id }) => ({ target_id: id, changes, status: 200 })))
  })

  test('puts users into static segments and takes them out; any other segment fails its item alone', async () => {
    const [one, two] = [await make(), await make()]
    const list = await segment({ kind: 'static' })
    const rules = { source: 'property', column: 'touched', op: 'eq', value: 1 }
    const dynamic = await segment({ rules })
    const { status, data } = await update([
      { user_id: one.id, add_segments: [list.id, list.key] },
      { user_id: two.id, add_segments: [list.key], properties: { touched: 1 } },
      { user_id: two.id, add_segments: [dynamic.id], properties: { touched: 2 } },
      { user_id: two.id, remove_segments: [randomUUID()], properties: { touched: 2 } },
      { user_id: two.id, add_segments: 'all', properties: { touched: 2 } },
      { user_id: one.id, remove_segments: [list.id] },
      { user_id: one.id, add_segments: [], remove_segments: [] },
    ])
    expect(status).toBe(200)
    const codes = data.results.map(({ code }: { code?: string }) => code)
    expect(codes).toEqual([
      undefined,
      undefined,
      'SEGMENT_NOT_STATIC',
      'NOT_FOUND',
      'INVALID_BODY',
      undefined,
      undefined,
    ])
    expect((await rowOf(two.id)).properties).toEqual({ touched: 1 })
    expect(await membersOf(list.id)).toEqual([two.id])
    await update([{ user_id: two.id, remove_segments: [list.key] }])
    expect(await membersOf(list.id)).toEqual([])
    // who was touched is looked at soon
    await project.drain()
    expect(await membersOf(dynamic.id)).toEqual([two.id])
    await update([{ user_id: two.id, properties: { touched: 5 } }])
    await project.drain()
    expect(await membersOf(dynamic.id)).toEqual([])
  })

  test('names at most 200 segments in a list, each once whatever it is called, in bounded time', {
    timeout: 180_000,
  }, async () => {
    const user = await make()
    const list = await segment({ kind: 'static' })
    const { data } = await update([
      { user_id: user.id, add_segments: Array(201).fill(list.key) },
      { user_id: user.id, remove_segments: Array(201).fill(list.key) },
      { user_id: user.id, add_segments: Array(200).fill(list.key) },
    ])
    expect(data.results.map(({ code }: { code?: string }) => code)).toEqual(['INVALID_BODY', 'INVALID_BODY', undefined])
    expect(await membersOf(list.id)).toEqual([user.id])
    // the whole body full of names: a database call has five seconds unless it asks for more
    const [row] = await project.as(
      'app_admin',
      { 'app.caller': 'developer', statement_timeout: '5s' },
      'select r.body from api.users_bulk_update($1) r',
      [JSON.stringify([{ user_id: user.id, add_segments: Array(200_000).fill(list.key) }])],
    )
    expect(row.body.data.failed).toBe(1)
  })

  test('of segments in other orders, many at once, never locks itself', { timeout: 180_000 }, async () => {
    const lists = await Promise.all(Array.from({ length: 4 }, () => segment({ kind: 'static' })))
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const order = n % 2 ? [...lists].reverse() : lists
        const users = await Promise.all(order.map(() => make()))
        return update(users.map(({ id }, index) => ({ user_id: id, add_segments: [order[index]?.id] })))
      }),
    )
    for (const { status, data } of answers) expect([status, data.updated]).toEqual([200, 4])
    for (const { id } of lists) expect(await membersOf(id)).toHaveLength(8)
  })

  test('of the same users in other orders, many at once, never locks itself', { timeout: 180_000 }, async () => {
    const users = await Promise.all(Array.from({ length: 20 }, () => make()))
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => {
        const order = n % 2 ? [...users].reverse() : users
        return update(order.map(({ id }) => ({ user_id: id, properties: { [`k${n}`]: n } })))
      }),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
    for (const { id } of users) expect(Object.keys((await rowOf(id)).properties)).toHaveLength(12)
  })
})

describe('a cohort', () => {
  const cohort = (body: object, key?: string) =>
    admin.post('/users/cohort', body, key ? { 'idempotency-key': key } : {})

  test('is that many anonymous users with shared properties, numbered and labelled', async () => {
    const { status, data } = await cohort({
      count: 3,
      properties: { name: 'Tester {{index}}', list: ['{{index}}', 7], '{{index}}': true },
      label: 'smoke',
    })
    expect(status).toBe(201)
    expect(data.count).toBe(3)
    expect(data.users.map(({ id }: { id: string }) => id)).toEqual(data.user_ids)
    expect(new Set(data.user_ids).size).toBe(3)
    const rows = await project.sql('select * from app.users where id = any ($1) order by properties ->> $2', [
      data.user_ids,
      'name',
    ])
    expect(rows.map(({ properties }) => properties)).toEqual(
      [0, 1, 2].map((n) => ({ name: `Tester ${n}`, list: [String(n), 7], '{{index}}': true, _cohort: 'smoke' })),
    )
    for (const { anonymous_id, display_name, email } of rows) {
      expect([/^anon_[0-9a-f]{64}$/.test(anonymous_id), display_name.length > 2, email]).toEqual([true, true, null])
    }
    const signedIn = await project.app.post('/client/auth/anonymous', { anonymous_id: data.users[1].anonymous_id })
    expect(signedIn.data.user.id).toBe(data.user_ids[1])
    const events = await project.sql(
      `select app_user_id from app.engagement_events where event_name = 'svc.user.created' and app_user_id = any ($1)`,
      [data.user_ids],
    )
    expect(events).toHaveLength(3)
  })

  test('takes 1 and 1000, and nothing outside', { timeout: 180_000 }, async () => {
    expect((await cohort({ count: 1 })).data.users).toHaveLength(1)
    expect((await cohort({ count: 1000 })).data.user_ids).toHaveLength(1000)
    const before = await countUsers()
    for (const count of [0, 1001, -1, 1.5, '5', null, undefined])
      expectRefusal(await cohort({ count } as object), 400, 'INVALID_BODY', 'count')
    expect(await countUsers()).toBe(before)
  })

  test('under an Idempotency-Key is made once, also when it is asked for many times at once', async () => {
    const before = await countUsers()
    const key = randomUUID()
    const answers = await Promise.all(Array.from({ length: 6 }, () => cohort({ count: 4 }, key)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(5)
    expect(await countUsers()).toBe(before + 4)
    expectRefusal(await cohort({ count: 5 }, key), 409, 'IDEMPOTENCY_CONFLICT')
    for (const wrong of ['x'.repeat(256), 'ü'])
      expectRefusal(await cohort({ count: 1 }, wrong), 400, 'INVALID_BODY', 'Idempotency-Key')
    expect(await countUsers()).toBe(before + 4)
  })

  test('puts its users into static segments, all or nothing', async () => {
    const [one, two] = [await segment({ kind: 'static' }), await segment({ kind: 'static' })]
    const { data } = await cohort({ count: 3, segment_ids: [two.id, one.id] })
    for (const { id } of [one, two]) expect((await membersOf(id)).sort()).toEqual([...data.user_ids].sort())
    expect((await admin.get(`/users?segment_id=${one.id}`)).body).toMatchObject({ total: 3 })
    const before = await countUsers()
    const dynamic = await segment({ rules: { and: [] } })
    expectRefusal(await cohort({ count: 1, segment_ids: [one.id, dynamic.id] }), 400, 'SEGMENT_NOT_STATIC')
    expectRefusal(await cohort({ count: 1, segment_ids: [one.id, randomUUID()] }), 400, 'INVALID_BODY', 'segment_ids')
    expect(await countUsers()).toBe(before)
    expect(await membersOf(one.id)).toHaveLength(3)
  })

  test('refuses what is malformed, and segments that are not there', async () => {
    const before = await countUsers()
    expectRefusal(await cohort({ count: 1, segment_ids: [randomUUID()] }), 400, 'INVALID_BODY', 'segment_ids')
    expectRefusal(await cohort({ count: 1, properties: [] }), 400, 'INVALID_BODY', 'properties')
    expectRefusal(await cohort({ count: 1, properties: { x: 'x'.repeat(65_536) } }), 400, 'INVALID_BODY', 'properties')
    expectRefusal(await cohort({ count: 1, label: '' }), 400, 'INVALID_BODY', 'label')
    expect(await countUsers()).toBe(before)
    expect((await cohort({ count: 1, segment_ids: [] })).status).toBe(201)
  })
})
