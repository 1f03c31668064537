import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { root, startSegments, tier } from '#test/support/segments.ts'
import { sized } from '#test/support/sized.ts'

const { harness, project, segmentOf, userWith, send, isIn } = await startSegments()

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
      [event({ op: 'eq', value: 1, since: { days_ago: 5 }, until: { days_ago: 1 } }), true, false, 1],
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

  test('random trees hold for whom an oracle says, one by one and all at once', { timeout: 180_000 }, async () => {
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
    await fc.assert(property, { numRuns: sized(20, 60) })
  })
})
