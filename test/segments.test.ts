import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const root = '/segments'

let made = 0
const segmentOf = async (body: Record<string, unknown>, own: Project = project) => {
  made += 1
  const answer = await own.admin.post(root, { key: `segment-${made}`, name: `Segment ${made}`, ...body })
  expect(answer.status, answer.text).toBe(201)
  return { ...answer.data, path: `${root}/${answer.data.key}` }
}
const userWith = async (properties: unknown, own: Project = project): Promise<string> => {
  const { id } = await own.user()
  await own.sql('update app.users set properties = $2 where id = $1', [id, JSON.stringify(properties)])
  return id
}
const send = (userId: string, event_name: string, more: Record<string, unknown> = {}, own: Project = project) =>
  own.admin.post('/events', { app_user_id: userId, event_name, ...more }).then((answer) => {
    expect(answer.status, answer.text).toBe(201)
  })
/** What the one asked about is in, by what is so now. */
const isIn = async (segment: { path: string }, userId: string, own: Project = project): Promise<boolean> =>
  (await own.admin.get(`${segment.path}/members/${userId}/explain`)).data.member
const stored = async (segment: { id: string }, own: Project = project): Promise<string[]> =>
  (await own.sql('select app_user_id from app.segment_members where segment_id = $1 order by 1', [segment.id])).map(
    ({ app_user_id }) => app_user_id,
  )
const told = async (userId: string) =>
  (
    await project.sql(
      `select event_name, properties ->> 'key' as key from app.engagement_events
        where app_user_id = $1 and event_name like 'svc.segment.%' order by received_at, id`,
      [userId],
    )
  ).map(({ event_name, key }) => `${event_name.replace('svc.segment.', '')} ${key}`)
const tier = (value: unknown) => ({ source: 'property', column: 'tier', op: 'eq', value })

describe('segments', () => {
  test('are made, read by id and key, listed, changed and deleted, and the trail says so', async () => {
    const own = await harness.project()
    const made = await own.admin.post(root, { key: 'pro', name: 'Pro', description: 'Who pays', rules: tier('pro') })
    expect(made).toMatchObject({
      status: 201,
      data: {
        ...{ key: 'pro', name: 'Pro', description: 'Who pays', kind: 'dynamic', rules: tier('pro'), member_count: 0 },
        ...{ last_evaluated_at: null, is_active: true },
      },
    })
    const { id } = made.data
    expect((await own.admin.get(`${root}/pro`)).data).toEqual(made.data)
    expect((await own.admin.get(`${root}/${id}`)).data).toEqual(made.data)
    await segmentOf({ kind: 'static' }, own)
    expect((await own.admin.get(`${root}?limit=1`)).body).toMatchObject({
      total: 2,
      limit: 1,
      offset: 0,
      data: [{ kind: 'static', rules: null }],
    })
    const changes = { name: 'P', description: null, rules: tier('gold'), is_active: false }
    const patched = await own.admin.patch(`${root}/pro`, { ...changes, key: 'x', kind: 'static', member_count: 5 })
    expect(patched.data).toMatchObject({ ...changes, key: 'pro', kind: 'dynamic', member_count: 0 })
    expect((await own.admin.patch(`${root}/pro`, {})).data).toEqual(patched.data)
    expect((await own.admin.delete(`${root}/pro`)).data).toEqual({ deleted: true })
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/refresh'],
      ['GET', '/history'],
      ['GET', '/members'],
      ['POST', '/members'],
      ['DELETE', `/members/${randomUUID()}`],
      ['GET', `/members/${randomUUID()}/explain`],
    ] as const)
      for (const name of ['pro', id, randomUUID()])
        expect(
          await own.admin.request(
            method,
            `${root}/${name}${path}`,
            method === 'POST' ? { user_ids: [randomUUID()] } : undefined,
          ),
          `${method} ${path}`,
        ).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const trail = await own.sql(`select action from app.audit_events where target_id = $1 order by position`, [id])
    expect(trail.map(({ action }) => action)).toEqual([
      'segments.create',
      'segments.update',
      'segments.update',
      'segments.delete',
    ])
  })

  const leaf = (more: Record<string, unknown>) => ({
    rules: { source: 'user', column: 'email', op: 'eq', value: 'a', ...more },
  })
  const event = (more: Record<string, unknown>) => ({
    rules: { source: 'event', event_name: 'e', measure: 'count', op: 'gte', value: 1, ...more },
  })
  const nested = (depth: number): unknown => (depth === 0 ? tier('a') : { not: nested(depth - 1) })
  const many = (count: number) => ({ and: Array.from({ length: count }, () => tier('a')) })
  test.each([
    ['key', { key: 'Pro' }],
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(201) }],
    ['description', { description: 'x'.repeat(2001) }],
    ['kind', { kind: 'magic' }],
    ['rules', { rules: null }],
    ['rules', { kind: 'static', rules: tier('a') }],
    ['rules', { rules: {} }],
    ['rules', { rules: { and: [], or: [] } }],
    ['rules.and', { rules: { and: {} } }],
    ['rules.and[1]', { rules: { and: [tier('a'), 3] } }],
    ['rules.not.or[0].source', { rules: { not: { or: [{ source: 'stars', op: 'eq', value: 1 }] } } }],
    ['rules.source', { rules: { source: 'role', key: 'moderator', op: 'eq', value: true } }],
    ['rules.source', { rules: { source: "user'; drop table app.users; --" } }],
    ['rules.source', { rules: { source: 3 } }],
    ['rules.column', leaf({ column: 'password' })],
    ['rules.column', leaf({ column: "email' or true or '" })],
    ['rules.column', leaf({ column: undefined })],
    ['rules.op', leaf({ op: 'near' })],
    ['rules.op', leaf({ op: undefined })],
    ['rules.value', leaf({ value: undefined })],
    ['rules.value', leaf({ op: 'in' })],
    ['rules.value', leaf({ column: 'app_version', value: 3 })],
    ['rules.value', leaf({ column: 'created_at', value: 'yesterday' })],
    ['rules.value', leaf({ column: 'created_at', value: '2026-13-40T00:00:00Z' })],
    ['rules.value', leaf({ column: 'created_at', value: { days_ago: -1 } })],
    ['rules.value', leaf({ column: 'created_at', value: { days_ago: 'x' } })],
    ['rules.op', leaf({ column: 'created_at', op: 'like' })],
    ['rules.column', { rules: { source: 'property', op: 'eq', value: 1 } }],
    ['rules.column', { rules: { source: 'property', column: '', op: 'eq', value: 1 } }],
    ['rules.event_name', event({ event_name: '' })],
    ['rules.event_name', event({ event_name: 'svc.segment.entered' })],
    ['rules.measure', event({ measure: 'median' })],
    ['rules.column', event({ measure: 'sum' })],
    ['rules.column', event({ column: 'x' })],
    ['rules.within_days', event({ within_days: 0 })],
    ['rules.within_days', event({ within_days: 7, since: '2026-01-01' })],
    ['rules.since', event({ since: 'then' })],
    ['rules.until', event({ until: 5 })],
    ['rules.where', event({ where: { column: 'a', op: 'near', value: 1 } })],
    ['rules.value', event({ measure: 'first_at', value: 3 })],
    ['rules.key', { rules: { source: 'streak', key: 'none', op: 'gte', value: 3 } }],
    ['rules.op', { rules: { source: 'segment', segment_id: randomUUID(), op: 'eq' } }],
    ['rules.segment_id', { rules: { source: 'segment', segment_id: randomUUID(), op: 'in' } }],
    ['rules', { rules: { ...tier('x'.repeat(65_536)) } }],
    ['rules.not.not.not.not.not.not.not.not.not', { rules: nested(9) }],
    ['rules.and[50]', { rules: many(51) }],
  ])('with a bad %s are refused: %j', async (field, change) => {
    const answer = await project.admin.post(root, { key: 'refused', name: 'Refused', rules: tier('a'), ...change })
    expect(answer, answer.text).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR' } })
    // the deepest node that is looked at names a tree that is too deep
    expect(answer.error?.details.field).toBe(
      field.endsWith('not.not.not') ? 'rules.not.not.not.not.not.not.not.not' : field,
    )
    expect((await project.admin.get(`${root}/refused`)).status).toBe(404)
    const isRules = 'rules' in change && !('kind' in change)
    const preview = isRules ? await project.admin.post(`${root}/preview`, change) : null
    if (preview) expect(preview).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR' } })
  })

  test('eight levels and fifty conditions are taken, keys are unique, two hundred are the most', async () => {
    await segmentOf({ rules: nested(8) })
    await segmentOf({ rules: many(50) })
    expect(await project.admin.post(root, '[]')).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect(await project.admin.get(`${root}?limit=0`)).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT' } })
    const own = await harness.project()
    await segmentOf({ key: 'one', kind: 'static' }, own)
    const again = await own.admin.post(root, { key: 'one', name: 'One', kind: 'static' })
    expect(again).toMatchObject({ status: 409, error: { code: 'CONFLICT', details: { field: 'key' } } })
    await own.sql(
      `insert into app.segments (key, name, kind) select 'n' || n, 'N', 'static' from generate_series(1, 197) n`,
    )
    const last = await Promise.all(
      ['a', 'b', 'c', 'd', 'e'].map((key) => own.admin.post(root, { key, name: key, kind: 'static' })),
    )
    expect(last.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409])
    expect(last.find(({ status }) => status === 409)?.error?.code).toBe('LIMIT_REACHED')
  })

  test('circles are refused, also when two changes at once would close one', async () => {
    const of = (segment: { id: string }, op = 'in') => ({ source: 'segment', segment_id: segment.id, op })
    const a = await segmentOf({ rules: tier('a') })
    expect(await project.admin.patch(a.path, { rules: of(a) })).toMatchObject({
      status: 400,
      error: { code: 'SEGMENT_CYCLE' },
    })
    const b = await segmentOf({ rules: of(a) })
    const c = await segmentOf({ rules: { not: of(b, 'not_in') } })
    expect(await project.admin.patch(a.path, { rules: { or: [tier('a'), of(c)] } })).toMatchObject({
      status: 400,
      error: { code: 'SEGMENT_CYCLE' },
    })
    for (let round = 0; round < 5; round += 1) {
      const [x, y] = [await segmentOf({ rules: tier('x') }), await segmentOf({ rules: tier('y') })]
      const both = await Promise.all([
        project.admin.patch(x.path, { rules: of(y) }),
        project.admin.patch(y.path, { rules: of(x) }),
      ])
      expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
    }
  })

  test('one that is named elsewhere is not deleted, and says where', async () => {
    const used = await segmentOf({ kind: 'static' })
    const user = await segmentOf({ rules: { source: 'segment', segment_id: used.id, op: 'in' } })
    await project.admin.post('/config', { key: 'greeting', value: 1, conditions: [{ segment_id: used.id, value: 2 }] })
    const flow = await project.admin.post('/onboarding/flows', {
      name: 'Flow',
      steps: [{ segment_id: used.id.toUpperCase() }],
    })
    const refused = await project.admin.delete(used.path)
    expect(refused).toMatchObject({ status: 409, error: { code: 'SEGMENT_IN_USE' } })
    expect(refused.error?.details.used_by).toEqual(['config greeting', 'onboarding Flow', `segment ${user.key}`])
    await project.admin.delete('/config/greeting')
    await project.admin.delete(`/onboarding/flows/${flow.data.id}`)
    await project.admin.delete(user.path)
    expect((await project.admin.delete(used.path)).status).toBe(200)
    // raced: either it is deleted, or it is named
    for (let round = 0; round < 5; round += 1) {
      const segment = await segmentOf({ kind: 'static' })
      const [deleted, named] = await Promise.all([
        project.admin.delete(segment.path),
        project.admin.post('/config', {
          key: `race${round}`,
          value: 1,
          conditions: [{ segment_id: segment.id, value: 2 }],
        }),
      ])
      expect([deleted.status, named.status]).toSatisfy((s: number[]) => (s[0] === 200) !== (s[1] === 201))
    }
  })
})

describe('rules', () => {
  test('ask for users, properties, events, streaks and other segments', async () => {
    harness.setTime('2026-12-10T12:00:00Z')
    const own = await harness.project()
    const id = await userWith({ plan: { tier: 'pro' }, joined: '2026-12-05T00:00:00.000Z', n: 5 }, own)
    const other = await userWith({}, own)
    await own.sql(
      `update app.users set email = 'ada@example.com', email_verified = true, timezone = 'Europe/Berlin', external_id = 'x1',
                              created_at = '2026-12-01T00:00:00Z', first_seen_at = '2026-12-01', last_seen_at = '2026-12-09T00:00:00Z' where id = $1`,
      [id],
    )
    await own.sql(`update app.user_sessions set platform = 'ios', app_version = '1.10.0' where app_user_id = $1`, [id])
    for (const [days, amount] of [
      [1, 10],
      [5, 2.5],
      [20, 100],
    ])
      await send(
        id,
        'bought',
        {
          occurred_at: new Date(harness.now().getTime() - (days ?? 0) * 86_400_000).toISOString(),
          properties: { amount, shop: { name: days === 5 ? 'b' : 'a' } },
        },
        own,
      )
    await own.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
    await send(id, 'practised', {}, own)
    const list = await segmentOf({ kind: 'static' }, own)
    await own.admin.post(`${list.path}/members`, { user_ids: [id] })
    const user = (column: string, op: string, value?: unknown) => ({
      source: 'user',
      column,
      op,
      ...(value === undefined ? {} : { value }),
    })
    const event = (more: Record<string, unknown>) => ({
      source: 'event',
      event_name: 'bought',
      measure: 'count',
      ...more,
    })
    // each is true of the first user, and of the second where the second says so
    const cases: [Record<string, unknown>, boolean, boolean, unknown?][] = [
      [user('email', 'like', '%@example.com'), true, false, 'ada@example.com'],
      [user('email', 'is_null'), false, true],
      [user('email_verified', 'eq', true), true, false, true],
      [user('external_id', 'in', ['x1', 'x2']), true, false, 'x1'],
      [user('is_anonymous', 'eq', false), true, false, false],
      [user('timezone', 'ne', 'UTC'), true, false, 'Europe/Berlin'],
      [user('platform', 'eq', 'ios'), true, false, 'ios'],
      [user('app_version', 'gt', '1.9'), true, false, '1.10.0'],
      [user('app_version', 'eq', '1.10'), true, false],
      [user('app_version', 'lt', '1.9.9'), false, false],
      [user('created_at', 'lt', '2026-12-02'), true, false, '2026-12-01T00:00:00.000Z'],
      [user('created_at', 'gte', { days_ago: 5 }), false, true],
      [user('last_seen_at', 'gte', { days_ago: 2 }), true, true],
      [user('first_seen_at', 'is_not_null'), true, true],
      [{ source: 'property', column: 'plan.tier', op: 'eq', value: 'pro' }, true, false, 'pro'],
      [{ source: 'property', column: 'n', op: 'gt', value: 4 }, true, false, 5],
      [{ source: 'property', column: 'joined', op: 'gte', value: { days_ago: 7 } }, true, false],
      [{ source: 'property', column: 'n', op: 'ne', value: 4 }, true, false],
      [event({ op: 'eq', value: 3 }), true, false, 3],
      [event({ op: 'eq', value: 0 }), false, true, 3],
      [event({ op: 'eq', value: 2, within_days: 7 }), true, false, 2],
      [event({ op: 'eq', value: 1, since: '2026-12-05', until: '2026-12-09T00:00:00Z' }), true, false, 1],
      [event({ op: 'eq', value: 2, where: { column: 'shop.name', op: 'eq', value: 'a' } }), true, false, 2],
      [event({ measure: 'sum', column: 'amount', op: 'eq', value: 112.5 }), true, false, 112.5],
      [event({ measure: 'min', column: 'amount', op: 'lt', value: 3 }), true, false, 2.5],
      [event({ measure: 'max', column: 'amount', op: 'gte', value: 100 }), true, false, 100],
      [event({ measure: 'max', column: 'shop', op: 'gte', value: 0 }), false, false, null],
      [event({ measure: 'last_at', op: 'gte', value: { days_ago: 2 } }), true, false, '2026-12-09T12:00:00.000Z'],
      [event({ measure: 'first_at', op: 'lt', value: '2026-12-01T00:00:00Z' }), true, false],
      [{ source: 'streak', key: 'daily', op: 'gte', value: 1 }, true, false, 1],
      [{ source: 'segment', segment_id: list.id, op: 'in' }, true, false, true],
      [{ source: 'segment', segment_id: list.id, op: 'not_in' }, false, true, false],
    ]
    const segment = await segmentOf({ rules: { and: [] } }, own)
    for (const [rules, first, second, actual] of cases) {
      expect((await own.admin.patch(segment.path, { rules })).status, JSON.stringify(rules)).toBe(200)
      const explained = await own.admin.get(`${segment.path}/members/${id}/explain`)
      expect(explained.data, JSON.stringify(rules)).toMatchObject({
        member: first,
        leaves: [{ path: 'rules', matched: first }],
      })
      if (actual !== undefined) expect(explained.data.leaves[0].actual, JSON.stringify(rules)).toEqual(actual)
      expect(await isIn(segment, other, own), JSON.stringify(rules)).toBe(second)
    }
    // an idea of today is another one in a week
    await own.admin.patch(segment.path, { rules: event({ op: 'gte', value: 1, within_days: 7 }) })
    const later = { 'app.caller': 'worker', 'app.clock': '2026-12-20T12:00:00Z' }
    const asked = 'select internal.segment_member($1, $2) as is_in'
    expect(await own.as('app_worker', later, asked, [segment.id, id])).toEqual([{ is_in: false }])
    expect(await isIn(segment, id, own)).toBe(true)
    // and a streak ends by itself
    await own.admin.patch(segment.path, { rules: { source: 'streak', key: 'daily', op: 'eq', value: 1 } })
    expect(await isIn(segment, id, own)).toBe(true)
    expect(await own.as('app_worker', later, asked, [segment.id, id])).toEqual([{ is_in: false }])
  })

  test('a segment that is switched off has nobody, also where another names it', async () => {
    const id = await userWith({ tier: 'a' })
    const inner = await segmentOf({ rules: tier('a') })
    const outer = await segmentOf({ rules: { source: 'segment', segment_id: inner.id, op: 'in' } })
    expect([await isIn(inner, id), await isIn(outer, id)]).toEqual([true, true])
    await project.admin.patch(inner.path, { is_active: false })
    expect([await isIn(inner, id), await isIn(outer, id)]).toEqual([false, false])
    await project.admin.patch(inner.path, { is_active: true, rules: tier('b') })
    expect(await isIn(outer, id)).toBe(false)
    await project.admin.patch(inner.path, { rules: tier('a') })
    expect(await isIn(outer, id)).toBe(true)
  })

  test('random trees hold for whom an oracle says, one by one and all at once', { timeout: 120_000 }, async () => {
    const own = await harness.project()
    const people = [{}, { tier: 'a' }, { tier: 'b', n: 1 }, { n: 2 }, { tier: null, n: 3 }, { tier: 'a', n: '2' }]
    const ids = await Promise.all(people.map((properties) => userWith(properties, own)))
    type Tree =
      | { and: Tree[] }
      | { or: Tree[] }
      | { not: Tree }
      | { source: string; column: string; op: string; value: unknown }
    const leaves: fc.Arbitrary<Tree> = fc.oneof(
      fc.record({
        source: fc.constant('property'),
        column: fc.constant('tier'),
        op: fc.constantFrom('eq', 'ne', 'gt', 'lte'),
        value: fc.constantFrom('a', 'b'),
      }),
      fc.record({
        source: fc.constant('property'),
        column: fc.constant('n'),
        op: fc.constantFrom('eq', 'ne', 'gt', 'lte'),
        value: fc.constantFrom(1, 2, 3),
      }),
    )
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small', maxDepth: 5 },
        leaves,
        fc.record({ and: fc.array(tie('tree'), { maxLength: 3 }) }),
        fc.record({ or: fc.array(tie('tree'), { maxLength: 3 }) }),
        fc.record({ not: tie('tree') }),
      ),
    }))
    const truth = (node: Tree, who: Record<string, unknown>): boolean | null => {
      if ('and' in node || 'or' in node) {
        const isAnd = 'and' in node
        const found = (isAnd ? node.and : (node as { or: Tree[] }).or).map((part) => truth(part, who))
        return found.includes(!isAnd) ? !isAnd : found.includes(null) ? null : isAnd
      }
      if ('not' in node) {
        const inner = truth(node.not, who)
        return inner === null ? null : !inner
      }
      const actual = who[node.column]
      if (actual === undefined || actual === null) return null
      if (node.op === 'eq') return actual === node.value
      if (node.op === 'ne') return actual !== node.value
      if (typeof actual !== typeof node.value) return null
      return node.op === 'gt' ? actual > (node.value as string) : actual <= (node.value as string)
    }
    const count = (node: Tree): number =>
      ('and' in node ? node.and : 'or' in node ? node.or : 'not' in node ? [node.not] : []).reduce(
        (sum, part) => sum + count(part),
        'source' in node ? 1 : 0,
      )
    const segment = await segmentOf({ rules: { and: [] } }, own)
    const property = fc.asyncProperty(
      tree.filter((node) => count(node) <= 50),
      async (rules) => {
        const expected = ids.filter((_, n) => truth(rules, people[n] ?? {}) === true).sort()
        const preview = await own.admin.post(`${root}/preview`, { rules })
        expect(preview.data.count).toBe(expected.length)
        expect(preview.data.sample.map(({ id }: { id: string }) => id)).toEqual(expected)
        expect((await own.admin.patch(segment.path, { rules })).status).toBe(200)
        for (const id of ids) {
          const [row] = await own.sql('select internal.segment_member($1, $2) as is_in', [segment.id, id])
          expect(row.is_in).toBe(expected.includes(id))
        }
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })
})

describe('members', () => {
  test('are materialised every five minutes, told once, counted by day', async () => {
    harness.setTime('2026-12-10T23:50:00Z')
    const own = await harness.project()
    const [a, b] = [await userWith({ tier: 'pro' }, own), await userWith({ tier: 'free' }, own)]
    const segment = await segmentOf({ rules: tier('pro') }, own)
    await own.drain()
    expect(await stored(segment, own)).toEqual([a])
    expect((await own.admin.get(segment.path)).data).toMatchObject({
      member_count: 1,
      last_evaluated_at: '2026-12-10T23:50:00.000Z',
    })
    await own.sql(`update app.users set properties = '{"tier": "pro"}' where id = $1`, [b])
    await own.sql(`update app.users set properties = '{}' where id = $1`, [a])
    harness.advance(299)
    await own.drain()
    expect(await stored(segment, own)).toEqual([a])
    harness.advance(1)
    await own.drain()
    expect(await stored(segment, own)).toEqual([b])
    const list = await own.admin.get(`${segment.path}/members`)
    expect(list.body).toMatchObject({
      total: 1,
      data: [{ app_user_id: b, app_users: { id: b }, entered_at: '2026-12-10T23:55:00.000Z' }],
    })
    const told = await own.sql(
      `select event_name, app_user_id, properties from app.engagement_events where event_name like 'svc.segment.%' order by received_at, event_name`,
    )
    const properties = { segment_id: segment.id, key: segment.key, name: segment.name }
    expect(told).toEqual([
      { event_name: 'svc.segment.entered', app_user_id: a, properties },
      { event_name: 'svc.segment.entered', app_user_id: b, properties },
      { event_name: 'svc.segment.exited', app_user_id: a, properties },
    ])
    harness.setTime('2026-12-11T00:05:00Z')
    await own.sql(`update app.users set properties = '{"tier": "pro"}'`)
    expect(await own.admin.post(`${segment.path}/refresh`)).toMatchObject({
      status: 202,
      data: { segment_id: segment.id, status: 'queued' },
    })
    await own.drain()
    expect((await own.admin.get(`${segment.path}/history`)).data).toEqual([
      { day: '2026-12-10', member_count: 1 },
      { day: '2026-12-11', member_count: 2 },
    ])
    expect((await own.admin.get(`${segment.path}/history?days=1`)).data).toEqual([
      { day: '2026-12-11', member_count: 2 },
    ])
    expect((await own.admin.get(`${segment.path}/history?days=x`)).error?.code).toBe('INVALID_INPUT')
    // more than one batch
    await own.sql(
      `insert into app.users (display_name, properties) select 'U', '{"tier": "pro"}' from generate_series(1, 2100)`,
    )
    await own.admin.post(`${segment.path}/refresh`)
    await own.drain()
    expect(await stored(segment, own)).toHaveLength(2102)
    expect((await own.admin.get(segment.path)).data.member_count).toBe(2102)
  }, 60_000)

  test('enter at once when they do what a rule asks for, and only they are looked at', async () => {
    const [a, b] = [await userWith({}), await userWith({})]
    const name = `did ${randomUUID()}`
    const inner = await segmentOf({
      rules: { source: 'event', event_name: name, measure: 'count', op: 'gte', value: 2 },
    })
    const outer = await segmentOf({ rules: { source: 'segment', segment_id: inner.id, op: 'in' } })
    const rest = await segmentOf({
      rules: { and: [tier('x'), { not: { source: 'event', event_name: name, measure: 'count', op: 'eq', value: 0 } }] },
    })
    await send(a, name)
    expect(await told(a)).toEqual([])
    await send(a, name)
    expect(await told(a)).toEqual([`entered ${inner.key}`, `entered ${outer.key}`].sort())
    expect([await stored(inner), await stored(outer), await stored(rest)]).toEqual([[a], [a], []])
    await send(a, name)
    await send(b, 'something else')
    expect(await told(a)).toHaveLength(2)
    // who does something else is not looked at, whatever else is true by now
    await project.sql(`update app.users set properties = '{"tier": "x"}' where id in ($1, $2)`, [a, b])
    await send(b, 'something else')
    expect(await stored(rest)).toEqual([])
    // twenty at once enter once
    const c = await userWith({})
    await Promise.all(Array.from({ length: 20 }, () => send(c, name)))
    expect(await told(c)).toEqual([`entered ${inner.key}`, `entered ${outer.key}`].sort())
  })

  test('are never older than the user’s own last event, for configuration too', async () => {
    const user = await project.user()
    const name = `seen ${randomUUID()}`
    const segment = await segmentOf({
      rules: { source: 'event', event_name: name, measure: 'count', op: 'gte', value: 1 },
    })
    await project.admin.post('/config', {
      key: 'seen',
      value: 'no',
      conditions: [{ segment_id: segment.id, value: 'yes' }],
    })
    expect((await user.get('/client/config')).data.seen).toBe('no')
    await user.post('/client/events', { event_name: name })
    const now = await user.get('/client/config')
    expect(now.data.seen).toBe('yes')
    expect(now.headers.get('etag')).toContain(segment.id)
  })

  test('of a static segment are put in and taken out by hand', async () => {
    const segment = await segmentOf({ kind: 'static' })
    const [a, b] = [await userWith({}), await userWith({})]
    const nobody = randomUUID()
    const added = await project.admin.post(`${segment.path}/members`, { user_ids: [b, a, a, nobody] })
    expect(added).toMatchObject({ status: 200, data: { added: 2, unknown: [nobody] } })
    expect((await project.admin.post(`${segment.path}/members`, { user_ids: [a] })).data).toEqual({
      added: 0,
      unknown: [],
    })
    expect((await project.admin.get(segment.path)).data.member_count).toBe(2)
    expect(await isIn(segment, a)).toBe(true)
    expect((await project.admin.delete(`${segment.path}/members/${a}`)).data).toEqual({ deleted: true })
    expect((await project.admin.delete(`${segment.path}/members/${a}`)).error?.code).toBe('NOT_FOUND')
    expect(await told(a)).toEqual([`entered ${segment.key}`, `exited ${segment.key}`])
    expect((await project.admin.get(segment.path)).data.member_count).toBe(1)
    expect((await project.admin.get(`${segment.path}/members/${b}/explain`)).data).toEqual({ member: true, leaves: [] })
    for (const user_ids of [[], ['x'], Array.from({ length: 1001 }, () => a), 'all'])
      expect(await project.admin.post(`${segment.path}/members`, { user_ids })).toMatchObject({
        status: 400,
        error: { code: 'VALIDATION_ERROR' },
      })
    expect(
      (await project.admin.post(`${segment.path}/members`, { user_ids: Array.from({ length: 1000 }, () => b) })).status,
    ).toBe(200)
    expect((await project.admin.post(`${segment.path}/members`, '[]')).error?.code).toBe('INVALID_BODY')
    for (const path of [`/members/x`, `/members/x/explain`])
      expect(await project.admin.request(path.endsWith('x') ? 'DELETE' : 'GET', segment.path + path)).toMatchObject({
        status: 400,
        error: { code: 'INVALID_ID' },
      })
    // many at once: each is counted once
    const crowd = await Promise.all(Array.from({ length: 8 }, () => userWith({})))
    await Promise.all(
      crowd.flatMap((id) => [id, id]).map((id) => project.admin.post(`${segment.path}/members`, { user_ids: [id] })),
    )
    expect((await project.admin.get(segment.path)).data.member_count).toBe(9)
    const dynamic = await segmentOf({ rules: tier('a') })
    for (const answer of [
      await project.admin.post(`${dynamic.path}/members`, { user_ids: [a] }),
      await project.admin.delete(`${dynamic.path}/members/${a}`),
    ])
      expect(answer).toMatchObject({ status: 400, error: { code: 'SEGMENT_NOT_STATIC' } })
    const trail = await project.sql(
      `select action from app.audit_events where target_id = $1 order by position limit 3`,
      [segment.id],
    )
    expect(trail.map(({ action }) => action)).toEqual([
      'segments.create',
      'segments.add_members',
      'segments.remove_members',
    ])
  })

  test('are asked for by the user alone, and written by nobody else', async () => {
    const user = await userWith({})
    const segment = await segmentOf({ kind: 'static' })
    const claims = { 'app.user_id': user, 'app.caller': 'user' }
    const [row] = await project.as('app_user', claims, 'select internal.segment_ids_of($1) as ids', [user])
    expect(row.ids).toEqual([])
    for (const [role, caller, sql] of [
      ['app_user', 'user', `select internal.segment_change('${segment.id}', array['${user}'::uuid], true)`],
      [
        'app_user',
        'user',
        `insert into app.segment_members (segment_id, app_user_id) values ('${segment.id}', '${user}')`,
      ],
      ['app_admin', 'developer', `update app.segment_states set condition = 'true'`],
      [
        'app_admin',
        'developer',
        `insert into app.segment_members (segment_id, app_user_id) values ('${segment.id}', '${user}')`,
      ],
      ['app_server', 'server_key', 'select internal.segment_settle(null, null)'],
    ] as const)
      await expect(project.as(role, { ...claims, 'app.caller': caller }, sql), sql).rejects.toMatchObject({
        code: '42501',
      })
    await expect(
      project.as('app_admin', { 'app.caller': 'user' }, 'select internal.segment_change($1, $2, true)', [
        segment.id,
        [user],
      ]),
    ).rejects.toThrow('administrators')
  })
})

describe('a preview', () => {
  test('counts, shows ten, and its SQL has no value of the rules in it', async () => {
    const own = await harness.project()
    await own.sql(
      `insert into app.users (display_name, properties) select 'U', '{"tier": "it''s"}' from generate_series(1, 12)`,
    )
    const { data } = await own.admin.post(`${root}/preview`, { rules: tier("it's") })
    expect(data.count).toBe(12)
    expect(data.sample).toHaveLength(10)
    expect(data.sql).toContain('$1 -> 0')
    expect(data.sql).not.toContain('tier')
    expect(data.sql).not.toContain("it's")
    expect(data.explain.cost).toBeGreaterThan(0)
    expect(data.explain.rows).toBeGreaterThan(0)
    expect(await own.admin.post(`${root}/preview`, {})).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR' },
    })
    expect(await own.admin.post(`${root}/preview`, '[]')).toMatchObject({
      status: 400,
      error: { code: 'INVALID_BODY' },
    })
    expect(await own.sql('select from app.segments')).toHaveLength(0)
  })
})
