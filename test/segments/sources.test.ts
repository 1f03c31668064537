import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Answer, type Project, startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()

const made = async (answer: Promise<Answer>) => {
  const { status, text, data } = await answer
  expect(status, text).toBeLessThan(300)
  return data
}
/** One of each kind of value, and a segment to ask with. */
const world = async () => {
  const project = await harness.project()
  const { admin } = project
  await made(
    admin.put('/xp/levels', { levels: [0, 100, 250].map((xp_required, n) => ({ level: n + 1, xp_required })) }),
  )
  await made(admin.post('/currencies', { code: 'COINS', name: 'Coins', initial_grant: 5 }))
  await made(admin.post('/catalog', { key: 'potion', name: 'Potion', item_type: 'consumable' }))
  const achievement = await made(
    admin.post('/achievements', {
      ...{ key: 'hero', name: 'Hero' },
      criteria: { type: 'event_count', event_name: 'saved the day', target_value: 99 },
    }),
  )
  const challenge = await made(
    admin.post('/challenges', {
      ...{ name: 'Ten', start_at: '2020-01-01T00:00:00Z', end_at: '2099-01-01T00:00:00Z' },
      ...{ goal_type: 'event_count', event_name: 'ran', goal_value: 3 },
    }),
  )
  const segment = await made(admin.post('/segments', { key: 'asked', name: 'Asked', rules: { and: [] } }))
  const give = {
    xp: (userId: string, amount: number) =>
      made(admin.post('/xp/grant', { app_user_id: userId, amount, reason: 'test' })),
    coins: (userId: string, amount: number) =>
      made(
        admin.post('/currencies/transactions', {
          ...{ app_user_id: userId, reason: 'test' },
          adjustments: [{ currency_code: 'COINS', amount }],
        }),
      ),
    potions: (userId: string, quantity: number, more: object = {}) =>
      made(
        admin.post('/inventory/grant', {
          ...{ app_user_id: userId, catalog_item_key: 'potion', quantity, reason: 'test' },
          ...more,
        }),
      ),
    achievement: (userId: string) => made(admin.post(`/achievements/${achievement.id}/grant`, { app_user_id: userId })),
    runs: async (userId: string, count: number) => {
      for (let n = 0; n < count; n += 1) await made(admin.post('/events', { app_user_id: userId, event_name: 'ran' }))
    },
    pro: (userId: string, more: object = {}) =>
      made(admin.post(`/users/${userId}/entitlements`, { entitlement_id: 'pro', ...more })),
  }
  const leaf = {
    xp: (op: string, value: unknown) => ({ source: 'xp', op, value }),
    level: (op: string, value: unknown) => ({ source: 'level', op, value }),
    coins: (op: string, value: unknown) => ({ source: 'currency', key: 'COINS', op, value }),
    potions: (op: string, value: unknown) => ({ source: 'inventory', key: 'potion', op, value }),
    hero: (op: string, value: unknown) => ({ source: 'achievement', key: 'hero', op, value }),
    ten: (op: string, value: unknown) => ({ source: 'challenge', key: challenge.id, op, value }),
    pro: (op: string) => ({ source: 'entitlement', entitlement_id: 'pro', op }),
  }
  const ask = async (rules: unknown, userId: string) => {
    await made(admin.patch('/segments/asked', { rules }))
    return made(admin.get(`/segments/asked/members/${userId}/explain`))
  }
  return { project, admin, achievement, challenge, segment, give, leaf, ask }
}
type World = Awaited<ReturnType<typeof world>>

/** All of these hold, and none of those. */
const expectAll = async (
  { ask }: World,
  userId: string,
  actual: unknown,
  holding: readonly Record<string, unknown>[],
  failing: readonly Record<string, unknown>[],
) => {
  for (const [leaves, member] of [
    [holding, true],
    [failing, false],
  ] as const)
    for (const leaf of leaves)
      expect(await ask(leaf, userId), JSON.stringify(leaf)).toEqual({
        member,
        leaves: [{ path: 'rules', matched: member, actual }],
      })
}

describe('what has a number', () => {
  /** Every operator of filters that numbers know, at the number and beside it. */
  const numbers = (leaf: (op: string, value: unknown) => Record<string, unknown>, n: number) =>
    [
      [
        ...[leaf('eq', n), leaf('ne', n + 1), leaf('gt', n - 1), leaf('gte', n), leaf('lt', n + 1), leaf('lte', n)],
        ...[leaf('in', [n, n + 1]), leaf('not_in', [n + 1])],
        ...[{ ...leaf('is_not_null', null), value: undefined }],
      ],
      [
        ...[leaf('eq', n + 1), leaf('ne', n), leaf('gt', n), leaf('gte', n + 1), leaf('lt', n), leaf('lte', n - 1)],
        ...[leaf('in', [n + 1]), leaf('not_in', [n]), leaf('eq', String(n)), leaf('gt', 'a')],
        ...[{ ...leaf('is_null', null), value: undefined }],
      ],
    ] as const

  test('is asked by XP, level, currency and inventory, for who has some and who has none', {
    timeout: 180_000,
  }, async () => {
    const w = await world()
    const [some, none] = [(await w.project.user()).id, (await w.project.user()).id]
    await w.give.xp(some, 120)
    await w.give.coins(some, 7)
    await w.give.potions(some, 2)
    await w.give.potions(some, 1, { expires_at: '2099-01-01T00:00:00Z' })
    for (const [leaf, ofSome, ofNone] of [
      [w.leaf.xp, 120, 0],
      [w.leaf.level, 2, 1],
      [w.leaf.coins, 12, 5],
      [w.leaf.potions, 3, 0],
    ] as const) {
      await expectAll(w, some, ofSome, ...numbers(leaf, ofSome))
      await expectAll(w, none, ofNone, ...numbers(leaf, ofNone))
    }
  })

  test('goes by the clock: balances grow, items expire', async () => {
    harness.setTime('2030-01-01T00:00:00Z')
    try {
      const w = await world()
      await made(
        w.admin.post('/currencies', {
          ...{ code: 'ENERGY', name: 'Energy', initial_grant: 1 },
          regen: { amount: 2, every_seconds: 600, cap: 9 },
        }),
      )
      const { id } = await w.project.user()
      await w.give.potions(id, 4, { expires_at: '2030-01-01T00:30:00Z' })
      const energy = { source: 'currency', key: 'ENERGY', op: 'gte', value: 5 }
      expect((await w.ask(energy, id)).leaves[0]).toMatchObject({ matched: false, actual: 1 })
      expect((await w.ask(w.leaf.potions('gte', 1), id)).leaves[0]).toMatchObject({ matched: true, actual: 4 })
      harness.advance(1799)
      expect((await w.ask(energy, id)).leaves[0]).toMatchObject({ matched: true, actual: 5 })
      expect((await w.ask(w.leaf.potions('gte', 1), id)).leaves[0]).toMatchObject({ matched: true, actual: 4 })
      harness.advance(1)
      expect((await w.ask(energy, id)).leaves[0]).toMatchObject({ matched: true, actual: 7 })
      expect((await w.ask(w.leaf.potions('gte', 1), id)).leaves[0]).toMatchObject({ matched: false, actual: 0 })
    } finally {
      harness.setTime(null)
    }
  })

  test('a level that was reached once is kept when the table grows dearer', async () => {
    const w = await world()
    const { id } = await w.project.user()
    await w.give.xp(id, 120)
    await made(
      w.admin.put('/xp/levels', { levels: [0, 1000].map((xp_required, n) => ({ level: n + 1, xp_required })) }),
    )
    expect((await w.ask(w.leaf.level('eq', 2), id)).leaves[0]).toMatchObject({ matched: true, actual: 2 })
  })
})

describe('what is there or not', () => {
  test('an achievement is unlocked or not, and not when it was revoked', async () => {
    const w = await world()
    const { id } = await w.project.user()
    const { hero } = w.leaf
    const yes = [hero('eq', true), hero('ne', false), hero('in', [true])]
    const no = [hero('eq', false), hero('ne', true), hero('not_in', [true]), hero('gt', 0)]
    await expectAll(w, id, false, [hero('eq', false), hero('ne', true)], yes)
    await w.give.achievement(id)
    await expectAll(w, id, true, yes, no)
    await made(w.admin.post(`/achievements/${w.achievement.id}/revoke`, { app_user_id: id }))
    await expectAll(w, id, false, [hero('eq', false)], yes)
  })

  test('a challenge has a status and a progress', async () => {
    const w = await world()
    const user = await w.project.user()
    const { ten } = w.leaf
    const at = async (status: string, progress: number) => {
      const others = ['none', 'in_progress', 'completed', 'left', 'expired'].filter((other) => other !== status)
      await expectAll(
        w,
        user.id,
        status,
        [ten('eq', status), ten('in', [status]), ten('not_in', others)],
        [ten('ne', status), ...others.map((other) => ten('eq', other))],
      )
      await expectAll(
        w,
        user.id,
        progress,
        [ten('eq', progress), ten('gte', progress), ten('lt', progress + 1), ten('in', [progress])],
        [ten('gt', progress), ten('ne', progress), ten('not_in', [progress])],
      )
    }
    await at('none', 0)
    await w.give.runs(user.id, 2)
    await at('in_progress', 2)
    await made(user.post(`/client/challenges/${w.challenge.id}/leave`))
    await at('left', 2)
    await made(user.post(`/client/challenges/${w.challenge.id}/join`))
    await made(w.admin.patch(`/challenges/${w.challenge.id}`, { is_active: false }))
    await at('expired', 2)
    await made(w.admin.patch(`/challenges/${w.challenge.id}`, { is_active: true }))
    await w.give.runs(user.id, 1)
    await at('completed', 3)
  })

  test('an entitlement is active while one of its grants is', async () => {
    harness.setTime('2030-01-01T00:00:00Z')
    try {
      const w = await world()
      const { id } = await w.project.user()
      const { pro } = w.leaf
      await expectAll(w, id, 'inactive', [pro('inactive')], [pro('active')])
      await w.give.pro(id, { expiration_date: '2030-01-01T00:10:00Z' })
      await expectAll(w, id, 'active', [pro('active')], [pro('inactive')])
      harness.advance(600)
      await expectAll(w, id, 'inactive', [pro('inactive')], [pro('active')])
      await w.give.pro(id, { expiration_date: null })
      await expectAll(w, id, 'active', [pro('active')], [pro('inactive')])
      // another one says nothing
      expect((await w.ask({ ...pro('active'), entitlement_id: 'gold' }, id)).member).toBe(false)
    } finally {
      harness.setTime(null)
    }
  })
})

test('what names nothing, and operators that there are not, are refused with their place', async () => {
  const w = await world()
  for (const [field, leaf] of [
    ['key', { source: 'currency', op: 'gte', value: 1 }],
    ['key', { source: 'currency', key: 'coins', op: 'gte', value: 1 }],
    ['key', { source: 'currency', key: 5, op: 'gte', value: 1 }],
    ['key', { source: 'inventory', key: 'sword', op: 'gte', value: 1 }],
    ['key', { source: 'achievement', key: 'villain', op: 'eq', value: true }],
    ['key', { source: 'achievement', key: null, op: 'eq', value: true }],
    ['key', { source: 'challenge', key: randomUUID(), op: 'eq', value: 'completed' }],
    ['key', { source: 'challenge', key: 'Ten', op: 'eq', value: 'completed' }],
    ['entitlement_id', { source: 'entitlement', op: 'active' }],
    ['entitlement_id', { source: 'entitlement', entitlement_id: '', op: 'active' }],
    ['entitlement_id', { source: 'entitlement', entitlement_id: 'x'.repeat(129), op: 'active' }],
    ['op', { source: 'entitlement', entitlement_id: 'pro', op: 'eq', value: true }],
    ['op', { source: 'entitlement', entitlement_id: 'pro' }],
    ['op', w.leaf.xp('near', 1)],
    ['op', { source: 'level', value: 3 }],
    ['value', { source: 'xp', op: 'gte' }],
    ['value', w.leaf.level('in', 3)],
    ['value', w.leaf.coins('gt', true)],
    ['value', w.leaf.potions('gte', { days_ago: -1 })],
  ] as const) {
    const refused = { status: 400, error: { code: 'VALIDATION_ERROR', details: { field: `rules.not.or[1].${field}` } } }
    const rules = { not: { or: [w.leaf.xp('gt', 0), leaf] } }
    for (const answer of [
      await w.admin.post('/segments', { key: 'refused', name: 'Refused', rules }),
      await w.admin.post('/segments/preview', { rules }),
      await w.admin.patch('/segments/asked', { rules }),
    ])
      expect(answer, JSON.stringify(leaf)).toMatchObject(refused)
  }
  expect((await w.admin.get('/segments')).body.total).toBe(1)
  expect(
    await w.admin.post('/segments', {
      key: 'r',
      name: 'R',
      rules: { source: 'experiment', key: 'mod', op: 'eq', value: 1 },
    }),
  ).toMatchObject({ status: 400, error: { details: { field: 'rules.source' } } })
})

test('what a rule names may be deleted: it then holds for nobody, and bars no other segment from changing', async () => {
  const w = await world()
  const { id } = await w.project.user()
  const rules = {
    or: [w.leaf.coins('gte', 1), w.leaf.hero('eq', true), w.leaf.ten('ne', 'none'), w.leaf.potions('gte', 1)],
  }
  expect((await w.ask(rules, id)).member).toBe(true)
  await made(w.admin.delete('/currencies/COINS'))
  await made(w.admin.delete(`/achievements/${w.achievement.id}`))
  await made(w.admin.delete(`/challenges/${w.challenge.id}`))
  await made(w.admin.delete('/catalog/potion'))
  await made(w.admin.post('/segments', { key: 'other', name: 'Other', rules: w.leaf.xp('gte', 0) }))
  // the same rules again are taken; new ones that name what is gone are not
  const still = await w.ask(rules, id)
  expect(still.member).toBe(false)
  expect(still.leaves.map(({ actual }: { actual: unknown }) => actual)).toEqual([0, false, 'none', 0])
  expect((await w.admin.patch('/segments/asked', { rules: w.leaf.coins('gte', 2) })).error?.details.field).toBe(
    'rules.key',
  )
})

describe('members', () => {
  test('random trees hold for whom an oracle says, one by one and all at once', { timeout: 180_000 }, async () => {
    const w = await world()
    const people = await Promise.all(
      [
        { xp: 0, coins: 5, potions: 0, hero: false, ten: 0, pro: false },
        { xp: 120, coins: 12, potions: 3, hero: true, ten: 1, pro: false },
        { xp: 99, coins: 5, potions: 1, hero: false, ten: 3, pro: true },
        { xp: 300, coins: 8, potions: 0, hero: true, ten: 0, pro: true },
      ].map(async (person) => {
        const { id } = await w.project.user()
        if (person.xp) await w.give.xp(id, person.xp)
        if (person.coins > 5) await w.give.coins(id, person.coins - 5)
        if (person.potions) await w.give.potions(id, person.potions)
        if (person.hero) await w.give.achievement(id)
        await w.give.runs(id, person.ten)
        if (person.pro) await w.give.pro(id, { expiration_date: null })
        return { ...person, id, level: person.xp >= 250 ? 3 : person.xp >= 100 ? 2 : 1 }
      }),
    )
    type Person = (typeof people)[number]
    type Leaf = { rules: object; holds: (person: Person) => boolean }
    type Tree = Leaf | { and: Tree[] } | { or: Tree[] } | { not: Tree }
    const compare: Record<string, (a: number, b: number) => boolean> = {
      eq: (a, b) => a === b,
      ne: (a, b) => a !== b,
      gt: (a, b) => a > b,
      gte: (a, b) => a >= b,
      lt: (a, b) => a < b,
      lte: (a, b) => a <= b,
    }
    const op = fc.constantFrom(...Object.keys(compare))
    const number = (name: 'xp' | 'level' | 'coins' | 'potions' | 'ten', values: number[]) =>
      fc.record({ op, value: fc.constantFrom(...values) }).map(
        ({ op, value }): Leaf => ({
          rules: w.leaf[name](op, value),
          holds: (person) => compare[op]?.(person[name], value) ?? false,
        }),
      )
    const leaves: fc.Arbitrary<Tree> = fc.oneof(
      number('xp', [0, 99, 120, 300]),
      number('level', [1, 2, 3]),
      number('coins', [5, 8, 12]),
      number('potions', [0, 1, 3]),
      number('ten', [0, 1, 3]),
      fc.boolean().map((value): Leaf => ({ rules: w.leaf.hero('eq', value), holds: ({ hero }) => hero === value })),
      fc.constantFrom('none', 'in_progress', 'completed').map(
        (status): Leaf => ({
          rules: w.leaf.ten('eq', status),
          holds: ({ ten }) => status === (ten === 0 ? 'none' : ten < 3 ? 'in_progress' : 'completed'),
        }),
      ),
      fc
        .constantFrom('active', 'inactive')
        .map((state): Leaf => ({ rules: w.leaf.pro(state), holds: ({ pro }) => pro === (state === 'active') })),
    )
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small', maxDepth: 4 },
        leaves,
        fc.record({ and: fc.array(tie('tree'), { maxLength: 3 }) }),
        fc.record({ or: fc.array(tie('tree'), { maxLength: 3 }) }),
        fc.record({ not: tie('tree') }),
      ),
    }))
    const rulesOf = (node: Tree): unknown =>
      'rules' in node
        ? node.rules
        : 'not' in node
          ? { not: rulesOf(node.not) }
          : 'and' in node
            ? { and: node.and.map(rulesOf) }
            : { or: node.or.map(rulesOf) }
    const holds = (node: Tree, person: Person): boolean =>
      'rules' in node
        ? node.holds(person)
        : 'not' in node
          ? !holds(node.not, person)
          : 'and' in node
            ? node.and.every((part) => holds(part, person))
            : node.or.some((part) => holds(part, person))
    const property = fc.asyncProperty(tree, async (node) => {
      const rules = rulesOf(node)
      const expected = people.filter((person) => holds(node, person)).map(({ id }) => id)
      const preview = await w.admin.post('/segments/preview', { rules })
      expect(preview.status, preview.text).toBe(200)
      expect(preview.data.sample.map(({ id }: { id: string }) => id).sort()).toEqual([...expected].sort())
      await made(w.admin.patch('/segments/asked', { rules }))
      for (const { id } of people) {
        const [row] = await w.project.sql('select internal.segment_member($1, $2) as is_in', [w.segment.id, id])
        expect(row.is_in).toBe(expected.includes(id))
      }
    })
    await fc.assert(property, { numRuns: sized(20, 60) })
  })

  test('are stored at the next full evaluation, which emits their events', async () => {
    const w = await world()
    const [rich, poor] = [(await w.project.user()).id, (await w.project.user()).id]
    await made(w.admin.patch('/segments/asked', { rules: { and: [w.leaf.coins('gte', 100), w.leaf.pro('active')] } }))
    await w.give.coins(rich, 100)
    await w.give.pro(rich, { expiration_date: null })
    await w.give.coins(poor, 10)
    await w.project.drain()
    const members = (await w.admin.get('/segments/asked/members')).data
    expect(members.map(({ app_user_id }: { app_user_id: string }) => app_user_id)).toEqual([rich])
    const emittedEvents = await w.project.sql(
      `select app_user_id from app.engagement_events where event_name = 'svc.segment.entered'`,
    )
    expect(emittedEvents).toEqual([{ app_user_id: rich }])
  })

  test('one user is found by indexes, whatever a rule asks', async () => {
    const w = await world()
    const project: Project = w.project
    await project.sql(`
      with people as (
        insert into app.users (display_name) select 'U' from generate_series(1, 3000) returning id
      ), xp as (
        insert into app.xp_totals (app_user_id, total) select id, 10 from people
      ), coins as (
        insert into app.currency_balances (app_user_id, currency_code, balance) select id, 'COINS', 1 from people
      ), potions as (
        insert into app.inventory_stacks (app_user_id, catalog_item_id, quantity, source_type, source_id)
        select p.id, i.id, 1, 'admin', 'x' from people p, app.catalog_items i
      ), heroes as (
        insert into app.user_achievements (app_user_id, achievement_id, source) select p.id, a.id, 'grant' from people p, app.achievements a
      ), runners as (
        insert into app.challenge_participants (app_user_id, challenge_id) select p.id, c.id from people p, app.challenges c
      )
      insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, store, period_type, purchase_date)
      select id, 'pro', 'promotional', 'x', 'promotional', 'normal', now() from people`)
    await project.sql('analyze')
    const large = [
      'xp_totals',
      'currency_balances',
      'inventory_stacks',
      'user_achievements',
      'challenge_participants',
      'entitlement_grants',
    ]
    const { id } = await project.user()
    for (const leaf of [
      ...[w.leaf.xp('gte', 5), w.leaf.level('gte', 1), w.leaf.coins('gte', 1), w.leaf.potions('gte', 1)],
      ...[w.leaf.hero('eq', true), w.leaf.ten('eq', 'completed'), w.leaf.ten('gte', 1), w.leaf.pro('active')],
    ]) {
      await made(w.admin.patch('/segments/asked', { rules: leaf }))
      const [state] = await project.sql('select condition, parameters from app.segment_states where segment_id = $1', [
        w.segment.id,
      ])
      const query = `select exists (select from app.users u where u.id = $2 and ${state.condition.replaceAll('$1', 'internal.segment_bind($1::jsonb)')})`
      // what functions read inside shows in the counts of scans alone
      const rows = await project.sql(`explain (format json) ${query}`, [JSON.stringify(state.parameters), id])
      const plan = JSON.stringify(rows[0]?.['QUERY PLAN'])
      for (const table of large)
        expect(plan, JSON.stringify(leaf)).not.toMatch(new RegExp(`"Seq Scan"[^{}]*"Relation Name": ?"${table}"`))
      const [scans] = await project.sql(
        `with asked as materialized (select internal.segment_member($1, $2) as is_in)
         select is_in, (select sum(pg_stat_get_xact_tuples_returned(c.oid)) from pg_class c where c.relname = any ($3) and c.relkind = 'r')::int as read
           from asked`,
        [w.segment.id, id, large],
      )
      expect(scans.read, JSON.stringify(leaf)).toBeLessThan(100)
    }
  })
})
