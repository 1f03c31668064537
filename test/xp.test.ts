import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { startXp } from '#test/support/xp.ts'

const { harness, project, rule, someone, send, me, ledger, emitted } = await startXp()
const { admin } = project

const refused = (answer: Answer, field: string, reason?: RegExp | string) => {
  expect([answer.status, answer.error?.code], answer.text).toEqual([400, 'VALIDATION_ERROR'])
  expect(answer.error?.details.field).toBe(field)
  if (reason) expect(answer.error?.details.reason).toMatch(reason)
}
const levels = async (wished: unknown) => {
  const answer = await admin.put('/xp/levels', wished as object)
  expect(answer.status, answer.text).toBe(200)
  return answer.data
}
const grant = (userId: string, amount: number, key?: string, more: object = {}) =>
  admin.post('/xp/grant', { app_user_id: userId, amount, ...more }, key ? { 'idempotency-key': key } : undefined)

describe('rules', () => {
  test('are made with defaults, read by id and key, listed, changed, deleted', async () => {
    const { data } = await admin.post('/xp/rules', { key: 'whole', name: 'Whole', event_name: 'whole', amount: 5 })
    expect(data).toEqual({
      id: expect.any(String),
      key: 'whole',
      name: 'Whole',
      event_name: 'whole',
      event_filter: null,
      amount: 5,
      amount_property: null,
      multiplier: 1,
      max_per_event: null,
      max_per_day: null,
      cooldown_seconds: null,
      max_total: null,
      starts_at: null,
      ends_at: null,
      is_active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await admin.get('/xp/rules/whole')).data).toEqual(data)
    expect((await admin.get(`/xp/rules/${data.id}`)).data).toEqual(data)
    const listed = await admin.get('/xp/rules?limit=1')
    expect([listed.data[0].key, listed.body.limit, listed.body.offset]).toEqual(['whole', 1, 0])
    expect((await admin.patch('/xp/rules/whole', {})).data).toEqual(data)
    const changed = await admin.patch('/xp/rules/whole', { amount_property: 'cart.total', key: 'other', max_total: 9 })
    expect(changed.data).toMatchObject({ key: 'whole', amount: null, amount_property: 'cart.total', max_total: 9 })
    expect((await admin.patch('/xp/rules/whole', { amount: 7 })).data).toMatchObject({
      amount: 7,
      amount_property: null,
    })
    expect((await admin.delete('/xp/rules/whole')).data).toEqual({ deleted: true })
    for (const answer of [
      await admin.get('/xp/rules/whole'),
      await admin.patch('/xp/rules/whole', { amount: 1 }),
      await admin.delete('/xp/rules/whole'),
      await admin.post(`/xp/rules/${data.id}/simulate`),
    ])
      expect([answer.status, answer.error?.code]).toEqual([404, 'NOT_FOUND'])
  })

  test('refuse what cannot be', async () => {
    const good = { key: 'good', name: 'Good', event_name: 'good', amount: 5 }
    const wrong: [object, string][] = [
      [{ key: 'Bad Key' }, 'key'],
      [{ name: '' }, 'name'],
      [{ event_name: ' good' }, 'event_name'],
      [{ event_name: 'svc.xp.awarded' }, 'event_name'],
      [{ amount: 0 }, 'amount'],
      [{ amount: 1_000_000_001 }, 'amount'],
      [{ amount: 1.5 }, 'amount'],
      [{ amount: undefined }, 'amount'],
      [{ amount_property: 'a' }, 'amount'],
      [{ multiplier: 0 }, 'multiplier'],
      [{ max_per_day: 0 }, 'max_per_day'],
      [{ cooldown_seconds: -1 }, 'cooldown_seconds'],
      [{ event_filter: { column: 'a', op: 'like a duck', value: 1 } }, 'event_filter'],
      [{ starts_at: '2026-01-02T00:00:00Z', ends_at: '2026-01-02T00:00:00Z' }, 'ends_at'],
    ]
    for (const [change, field] of wrong) refused(await admin.post('/xp/rules', { ...good, ...change }), field)
    expect((await admin.post('/xp/rules', good)).status).toBe(201)
    const twice = await admin.post('/xp/rules', good)
    expect([twice.status, twice.error?.code, twice.error?.details.field]).toEqual([409, 'CONFLICT', 'key'])
    refused(await admin.patch('/xp/rules/good', { name: null }), 'name')
    refused(await admin.patch('/xp/rules/good', { amount: null }), 'amount')
    refused(await admin.patch('/xp/rules/good', { event_filter: { or: 1 } }), 'event_filter')
    expect((await admin.post('/xp/rules', '[]' as never)).error?.code).toBe('INVALID_BODY')
  })

  test('at most 200, also when many are made at once', async () => {
    const other = await harness.project()
    await other.sql(
      `insert into app.xp_rules (key, name, event_name, amount) select 'k' || n, 'n', 'e', 1 from generate_series(1, 198) n`,
    )
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        other.admin.post('/xp/rules', { key: `more-${n}`, name: 'n', event_name: 'e', amount: 1 }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(2)
    expect(answers.find(({ status }) => status !== 201)?.error?.code).toBe('LIMIT_REACHED')
  })

  test('give for each event, several on one, once for one id, in the answer and the ledger', async () => {
    const first = await rule({ amount: 10 })
    const second = await rule({ amount: 3, event_name: first.event_name })
    const user = await someone()
    const id = randomUUID()
    expect(await send(user, first.event_name, { id })).toEqual({ awarded: 13, total: 13, level: 1, level_up: false })
    const again = await user.post('/client/events', { event_name: first.event_name, id })
    expect([again.status, again.data.effects]).toEqual([200, {}])
    expect(await send(user, first.event_name)).toMatchObject({ awarded: 13, total: 26 })
    expect((await ledger(user.id)).slice(0, 2)).toEqual([
      { amount: 10, total_after: 10, source: 'event', source_id: id, rule_key: first.key, clipped_by: null },
      { amount: 3, total_after: 13, source: 'event', source_id: id, rule_key: second.key, clipped_by: null },
    ])
    expect((await emitted(user.id)).map(({ event_name, properties }) => [event_name, properties.amount])).toEqual([
      ['svc.xp.awarded', 13],
      ['svc.xp.awarded', 13],
    ])
    const links = (await admin.get(`/events/${id}`)).data.effects.xp
    expect(links.map(({ amount }: { amount: number }) => amount)).toEqual([10, 3])
    await admin.patch(`/xp/rules/${first.key}`, { is_active: false })
    await admin.delete(`/xp/rules/${second.key}`)
    expect(await send(user, first.event_name)).toBeUndefined()
    expect((await me(user)).total).toBe(26)
  })

  test('pay once for an event that a device sends again when its id is forgotten, and for what else comes with it', async () => {
    const { event_name } = await rule()
    const second = await rule({ amount: 5, event_name })
    const user = await someone()
    const known = { event_name, id: randomUUID() }
    await user.post('/client/events', known)
    await project.sql('delete from app.event_ids where id = $1', [known.id])
    const answer = await user.post('/client/events', { events: [{ event_name }, known, { event_name }] })
    expect(answer.data.accepted).toBe(3)
    expect((await me(user)).total).toBe(45)
    const rows = await ledger(user.id)
    expect(rows.map(({ total_after }) => total_after).sort((a, b) => a - b)).toEqual([10, 15, 25, 30, 40, 45])
    expect(rows.filter(({ rule_key }) => rule_key === second.key)).toHaveLength(3)
  })

  test('take the amount from a property, times the multiplier, rounded down; nonsense is worth nothing', async () => {
    const shop = await rule({ amount_property: 'cart.total', multiplier: 0.5, max_per_event: 100 })
    const user = await someone()
    const pay = (total: unknown) => send(user, shop.event_name, { properties: { cart: { total } } })
    expect(await pay(9.9)).toMatchObject({ awarded: 4, total: 4 })
    expect(await pay(1000)).toMatchObject({ awarded: 100, total: 104, clipped_by: 'max_per_event' })
    for (const nothing of [-5, 'many', null, true, 1, [5], { n: 5 }]) expect(await pay(nothing)).toBeUndefined()
    expect(await send(user, shop.event_name)).toBeUndefined()
    const huge = await project.server.post(
      '/client/events',
      `{"app_user_id": "${user.id}", "event_name": "${shop.event_name}", "properties": {"cart": {"total": 1e300}}}` as never,
    )
    expect([huge.status, huge.data.effects.xp.awarded]).toEqual([201, 100])
    expect((await me(user)).total).toBe(204)
  })

  test('fire within their filter and their time only; the time of a device is that of receipt', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const filtered = await rule({ amount: 1, event_filter: { column: 'level', op: 'gte', value: 3 } })
    const user = await someone()
    expect(await send(user, filtered.event_name, { properties: { level: 2 } })).toBeUndefined()
    expect(await send(user, filtered.event_name, { properties: { level: 3 } })).toMatchObject({ awarded: 1 })
    const past = await rule({ amount: 5, starts_at: '2026-11-10T00:00:00Z', ends_at: '2026-11-20T00:00:00Z' })
    harness.setTime(null)
    const device = await project.user()
    // a device that sets its clock back into last week's rule
    await admin.patch(`/xp/rules/${past.key}`, {
      starts_at: new Date(Date.now() - 10 * 86_400_000).toISOString(),
      ends_at: new Date(Date.now() - 86_400_000).toISOString(),
    })
    const occurred_at = new Date(Date.now() - 5 * 86_400_000).toISOString()
    expect(await send(device, past.event_name, { occurred_at })).toBeUndefined()
    expect(await send(project.onBehalfOf(device.id), past.event_name, { occurred_at })).toMatchObject({ awarded: 5 })
  })
})

describe('caps', () => {
  test('of a day, of all, and cooldowns clip, and say so', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const day = await rule({ amount: 10, max_per_day: 25, max_total: 40 })
    const user = await someone()
    expect(await send(user, day.event_name)).toMatchObject({ awarded: 10 })
    const batch = await user.post('/client/events', {
      events: [{ event_name: day.event_name }, { event_name: day.event_name }, { event_name: day.event_name }],
      include_effects: true,
    })
    expect(batch.data.effects.xp).toEqual({
      awarded: 15,
      total: 25,
      level: 1,
      level_up: false,
      clipped_by: 'max_per_day',
    })
    expect((await ledger(user.id)).map(({ amount, clipped_by }) => [amount, clipped_by])).toEqual([
      [10, null],
      [10, null],
      [5, 'max_per_day'],
    ])
    expect(await send(user, day.event_name)).toEqual({
      awarded: 0,
      total: 25,
      level: 1,
      level_up: false,
      clipped_by: 'max_per_day',
    })
    harness.setTime('2026-11-22T00:00:00Z')
    expect(await send(user, day.event_name)).toMatchObject({ awarded: 10, total: 35 })
    expect(await send(user, day.event_name)).toMatchObject({ awarded: 5, total: 40, clipped_by: 'max_total' })
    expect(await send(user, day.event_name)).toMatchObject({ awarded: 0, clipped_by: 'max_total' })

    const slow = await rule({ amount: 1, cooldown_seconds: 60 })
    expect(await send(user, slow.event_name)).toMatchObject({ awarded: 1 })
    harness.advance(59)
    expect(await send(user, slow.event_name)).toMatchObject({ awarded: 0, clipped_by: 'cooldown' })
    harness.advance(1)
    expect(await send(user, slow.event_name)).toMatchObject({ awarded: 1, total: 42 })
  })

  test('cannot be got round by a device that spreads its events over days that it invents', async () => {
    const day = await rule({ amount: 10, max_per_day: 10 })
    const device = await project.user()
    const events = Array.from({ length: 20 }, (_, n) => ({
      event_name: day.event_name,
      occurred_at: new Date(Date.now() - n * 86_400_000).toISOString(),
    }))
    const { data } = await device.post('/client/events', { events, include_effects: true })
    expect(data.effects.xp).toMatchObject({ awarded: 10, total: 10 })
  })

  test('hold when fifty posts come at once, and when batches of many users come in any order', async () => {
    const capped = await rule({ amount: 10, max_total: 100 })
    const users = await Promise.all([someone(), someone(), someone()])
    const [first] = users
    await Promise.all(Array.from({ length: 50 }, () => first && send(first, capped.event_name)))
    expect((await me(users[0])).total).toBe(100)
    const events = Array.from({ length: 30 }, (_, n) => ({
      app_user_id: users[n % 3]?.id,
      event_name: capped.event_name,
    }))
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        project.server.post('/client/events', { events: n % 2 ? events : events.toReversed() }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(201))
    for (const user of users) {
      const rows = await ledger(user.id)
      expect(rows.reduce((sum, { amount }) => sum + amount, 0)).toBe(100)
      expect(rows.at(-1)?.total_after).toBe(100)
    }
  })
})

describe('boosts', () => {
  test('are made, read by id and name, listed, changed, deleted, refused', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const { data } = await admin.post('/xp/boosts', { name: 'Weekend', multiplier: 2, is_active: false })
    expect(data).toEqual({
      id: expect.any(String),
      name: 'Weekend',
      multiplier: 2,
      starts_at: '2026-11-21T12:00:00.000Z',
      ends_at: null,
      segment_id: null,
      rule_keys: null,
      is_active: false,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await admin.get('/xp/boosts/Weekend')).data).toEqual(data)
    expect((await admin.get(`/xp/boosts/${data.id}`)).data).toEqual(data)
    expect((await admin.get('/xp/boosts')).body).toMatchObject({ data: [data], total: 1 })
    expect((await admin.patch('/xp/boosts/Weekend', { rule_keys: ['a'] })).data.rule_keys).toEqual(['a'])
    const twice = await admin.post('/xp/boosts', { name: 'Weekend', multiplier: 2 })
    expect([twice.status, twice.error?.code, twice.error?.details.field]).toEqual([409, 'CONFLICT', 'name'])
    await admin.post('/xp/boosts', { name: 'Other', multiplier: 2, is_active: false })
    expect((await admin.patch('/xp/boosts/Other', { name: 'Weekend' })).error?.code).toBe('CONFLICT')
    refused(await admin.post('/xp/boosts', { name: 'x', multiplier: 0.09 }), 'multiplier')
    refused(await admin.post('/xp/boosts', { name: 'x', multiplier: 100.1 }), 'multiplier')
    refused(await admin.post('/xp/boosts', { name: 'x', multiplier: 1, ends_at: '2026-11-21T12:00:00Z' }), 'ends_at')
    refused(await admin.patch('/xp/boosts/Other', { multiplier: null }), 'multiplier')
    refused(await admin.post('/xp/boosts', { name: 'x', multiplier: 1, rule_keys: [] }), 'rule_keys')
    expect((await admin.delete('/xp/boosts/Weekend')).data).toEqual({ deleted: true })
    await admin.delete('/xp/boosts/Other')
    for (const answer of [
      await admin.get('/xp/boosts/Weekend'),
      await admin.patch('/xp/boosts/Weekend', {}),
      await admin.delete('/xp/boosts/Weekend'),
    ])
      expect([answer.status, answer.error?.code]).toEqual([404, 'NOT_FOUND'])
  })

  test('at most 50', async () => {
    const other = await harness.project()
    await other.sql(`insert into app.xp_boosts (name, multiplier) select 'b' || n, 1 from generate_series(1, 50) n`)
    const answer = await other.admin.post('/xp/boosts', { name: 'one more', multiplier: 2 })
    expect([answer.status, answer.error?.code]).toEqual([409, 'LIMIT_REACHED'])
  })

  test('multiply what rules give while they hold, rounded down, and are shown; caps cap what is boosted', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const one = await rule({ amount: 5 })
    const other = await rule({ amount: 5, max_per_event: 6 })
    const user = await someone()
    const times = { starts_at: '2026-11-21T12:00:00Z', ends_at: '2026-11-21T13:00:00Z' }
    await admin.post('/xp/boosts', { name: 'half more', multiplier: 1.5, ...times })
    await admin.post('/xp/boosts', {
      name: 'that one',
      multiplier: 1.1,
      rule_keys: [one.key],
      starts_at: times.starts_at,
    })
    // 5 * 1.5 * 1.1 = 8.25
    expect(await send(user, one.event_name)).toMatchObject({ awarded: 8 })
    expect(await send(user, other.event_name)).toMatchObject({ awarded: 6, clipped_by: 'max_per_event' })
    expect((await me(user)).active_boosts).toEqual([
      { name: 'half more', multiplier: 1.5, ends_at: '2026-11-21T13:00:00.000Z' },
      { name: 'that one', multiplier: 1.1, ends_at: null },
    ])
    harness.setTime('2026-11-21T13:00:00Z')
    expect(await send(user, other.event_name)).toMatchObject({ awarded: 5 })
    await admin.patch('/xp/boosts/that one', { is_active: false })
    expect((await me(user)).active_boosts).toEqual([])
    // what is granted by hand is granted as it is said
    expect((await grant(user.id, 10)).data.amount).toBe(10)
  })

  test('for a segment hold for its members, and must name one', async () => {
    const boost = { name: 'vip', multiplier: 3 }
    refused(await admin.post('/xp/boosts', { ...boost, segment_id: randomUUID() }), 'segment_id', /a segment/)
    const { id: segment_id } = (await admin.post('/segments', { key: 'vips', name: 'VIPs', kind: 'static' })).data
    const member = await someone()
    const stranger = await someone()
    await admin.post(`/segments/${segment_id}/members`, { user_ids: [member.id] })
    expect((await admin.post('/xp/boosts', { ...boost, segment_id })).status).toBe(201)
    const some = await rule({ amount: 5 })
    expect(await send(member, some.event_name)).toMatchObject({ awarded: 15 })
    expect(await send(stranger, some.event_name)).toMatchObject({ awarded: 5 })
    expect([(await me(member)).active_boosts.length, (await me(stranger)).active_boosts.length]).toEqual([1, 0])
    expect((await admin.delete(`/segments/${segment_id}`)).error?.code).toBe('SEGMENT_IN_USE')
    await admin.delete(`/segments/${segment_id}/members/${member.id}`)
    expect(await send(member, some.event_name)).toMatchObject({ awarded: 5 })
    expect((await me(member)).active_boosts).toEqual([])
    await admin.delete('/xp/boosts/vip')
    expect((await admin.delete(`/segments/${segment_id}`)).status).toBe(200)
  })
})

describe('levels', () => {
  afterAll(() => levels({ levels: [{ level: 1, xp_required: 0 }] }))

  test('are generated, listed, refused', async () => {
    expect(await levels({ generate: { count: 4, base: 100, exponent: 1.5 } })).toEqual(
      [0, 100, 283, 520].map((xp_required, n) => ({
        level: n + 1,
        xp_required,
        name: null,
        icon_url: null,
        reward: null,
      })),
    )
    const listed = [
      { level: 1, xp_required: 0, name: 'Seed' },
      { level: 2, xp_required: 50, name: 'Sprout', icon_url: 'https://x.y/2.png', reward: { xp: 5 } },
    ]
    const table = await levels({ levels: listed })
    expect(table[1]).toEqual({ icon_url: null, reward: null, ...listed[1] })
    expect((await admin.get('/xp/levels')).data).toEqual(table)
    expect((await (await someone()).get('/client/xp/levels')).data).toEqual(table)
    const put = (body: object) => admin.put('/xp/levels', body)
    refused(await put({}), 'levels')
    refused(await put({ levels: listed, generate: { count: 1, base: 1, exponent: 1 } }), 'levels')
    refused(await put({ levels: [{ level: 1, xp_required: 1 }] }), 'levels', /0 XP/)
    refused(await put({ levels: [listed[0], { level: 3, xp_required: 9 }] }), 'levels', /numbered/)
    refused(
      await put({ levels: [listed[0], { level: 2, xp_required: 9 }, { level: 3, xp_required: 9 }] }),
      'levels',
      /rising/,
    )
    refused(await put({ generate: { count: 3, base: 0.1, exponent: 1 } }), 'levels', /rising/)
    refused(await put({ generate: { count: 1000, base: 1_000_000_000, exponent: 10 } }), 'generate')
    refused(await put({ generate: { count: 1001, base: 1, exponent: 1 } }), 'generate.count')
    refused(await put({ levels: Array.from({ length: 1001 }, (_, n) => ({ level: n + 1, xp_required: n })) }), 'levels')
    expect((await admin.get('/xp/levels')).data).toEqual(table)
    expect(await levels({ generate: { count: 1000, base: 1, exponent: 1 } })).toHaveLength(1000)
  })

  test('are reached, told, rewarded once each, and kept when the table changes or XP is taken', async () => {
    const table = (...required: number[]) => ({
      levels: required.map((xp_required, n) => ({
        level: n + 1,
        xp_required,
        name: `L${n + 1}`,
        ...(n ? { reward: { xp: n } } : {}),
      })),
    })
    await levels(table(0, 100, 200, 400))
    const step = await rule({ amount: 150 })
    const user = await someone()
    expect(await me(user)).toEqual({
      total: 0,
      level: 1,
      level_name: 'L1',
      level_progress: 0,
      xp_into_level: 0,
      xp_to_next: 100,
      today: 0,
      active_boosts: [],
    })
    expect(await send(user, step.event_name)).toEqual({ awarded: 151, total: 151, level: 2, level_up: true })
    expect(await me(user)).toMatchObject({
      total: 151,
      level: 2,
      level_name: 'L2',
      level_progress: 0.51,
      xp_into_level: 51,
      xp_to_next: 49,
      today: 151,
    })
    expect((await emitted(user.id, 'svc.level.reached')).map(({ properties }) => properties)).toEqual([
      { level: 2, name: 'L2', total: 150 },
    ])
    // taken away: the level stays, and is not paid once more
    expect((await grant(user.id, -100)).data).toMatchObject({ amount: -100, total_after: 51 })
    expect(await me(user)).toMatchObject({ total: 51, level: 2, xp_into_level: 0, level_progress: 0, xp_to_next: 149 })
    await grant(user.id, 100)
    expect((await ledger(user.id)).filter(({ source }) => source === 'reward')).toHaveLength(1)
    // an easier table raises at once; a harder one after it takes nothing back; rewards come with the next XP
    await levels(table(0, 10, 20, 30))
    expect((await me(user)).level).toBe(4)
    await levels(table(0, 1000, 2000, 3000, 4000))
    expect(await me(user)).toMatchObject({ level: 4, level_name: 'L4', xp_to_next: 4000 - 151 })
    await grant(user.id, 1)
    expect(
      (await ledger(user.id)).filter(({ source }) => source === 'reward').map(({ source_id }) => source_id),
    ).toEqual(['xp_level 2', 'xp_level 3', 'xp_level 4'])
    await levels(table(0, 10))
    expect(await me(user)).toMatchObject({ level: 4, level_name: null, level_progress: 1, xp_to_next: null })
    expect(
      (await admin.get('/xp/stats')).data.level_distribution.find(({ level }: any) => level === 4).users,
    ).toBeGreaterThan(0)
  })

  test('a reward that cannot be given fails nothing', async () => {
    await levels({
      levels: [
        { level: 1, xp_required: 0 },
        { level: 2, xp_required: 5, reward: { xp: 'lots', gold: 1 } },
      ],
    })
    const user = await someone()
    expect((await grant(user.id, 5)).status).toBe(201)
    const [kept] = await project.sql(`select outcome from app.reward_grants where app_user_id = $1`, [user.id])
    expect([kept?.outcome.xp.given, kept?.outcome.gold.given]).toEqual([false, false])
    expect((await me(user)).total).toBe(5)
  })

  test('fifty posts that each reach the level: it is told once, and paid once', async () => {
    await levels({
      levels: [
        { level: 1, xp_required: 0 },
        { level: 2, xp_required: 20, reward: { xp: 1000 } },
      ],
    })
    const step = await rule({ amount: 20 })
    const user = await someone()
    const effects = await Promise.all(Array.from({ length: 50 }, () => send(user, step.event_name)))
    expect(effects.filter(({ level_up }) => level_up)).toHaveLength(1)
    expect(await emitted(user.id, 'svc.level.reached')).toHaveLength(1)
    expect((await me(user)).total).toBe(50 * 20 + 1000)
  })
})

describe('by hand', () => {
  test('an administrator gives and takes, never below nothing; what took effect is recorded, and audited', async () => {
    const user = await someone()
    const { status, data } = await grant(user.id, 30, undefined, { reason: 'sorry' })
    expect(status).toBe(201)
    expect(data).toEqual({
      id: expect.any(String),
      app_user_id: user.id,
      amount: 30,
      total_after: 30,
      source: 'admin',
      source_id: null,
      rule_key: null,
      reason: 'sorry',
      clipped_by: null,
      created_at: expect.any(String),
    })
    expect((await grant(user.id, -50)).data).toMatchObject({ amount: -30, total_after: 0, clipped_by: 'total' })
    expect((await grant(user.id, -1)).data).toMatchObject({ amount: 0, total_after: 0 })
    refused(await grant(user.id, 0), 'amount')
    refused(await grant(user.id, 1.5), 'amount')
    refused(await grant(user.id, 1_000_000_001), 'amount')
    expect((await grant(randomUUID(), 1)).error?.code).toBe('NOT_FOUND')
    const trail = await project.sql(
      `select changes from app.audit_events where action = 'xp.grant' and target_id = $1 order by position`,
      [user.id],
    )
    expect(trail.map(({ changes }) => changes.amount[1])).toEqual([30, -30, 0])
  })

  test('once for each key, for ever, also when twenty come at once; another body is refused', async () => {
    const user = await someone()
    const other = await someone()
    const answers = await Promise.all(Array.from({ length: 20 }, () => grant(user.id, 7, 'order 1')))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    const replayed = answers.filter(({ status }) => status === 200)
    expect(replayed).toHaveLength(19)
    expect(replayed.every(({ headers }) => headers.get('idempotency-replayed') === 'true')).toBe(true)
    expect(new Set(answers.map(({ data }) => JSON.stringify(data))).size).toBe(1)
    harness.advance(400 * 86_400)
    expect((await project.onBehalfOf(user.id).get('/client/xp')).data.total).toBe(7)
    await project.sql(`delete from app.idempotency_keys`)
    harness.setTime(null)
    expect((await grant(user.id, 7, 'order 1')).status).toBe(200)
    const conflict = await grant(user.id, 8, 'order 1')
    expect([conflict.status, conflict.error?.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT'])
    // keys are each user's own
    expect((await grant(other.id, 7, 'order 1')).status).toBe(201)
    refused(await grant(user.id, 7, 'é'), 'Idempotency-Key')
    // what failed did not use its key up
    expect((await grant(user.id, 0, 'order 2')).status).toBe(400)
    expect((await grant(user.id, 2, 'order 2')).status).toBe(201)
  })

  test('a server key gives on behalf of a user, or to the one it names; an app never', async () => {
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    expect((await server.post('/client/xp/award', { amount: 5 })).data).toMatchObject({
      amount: 5,
      app_user_id: user.id,
    })
    expect((await project.server.post('/client/xp/award', { amount: 5, app_user_id: user.id })).data.total_after).toBe(
      10,
    )
    const key = { 'idempotency-key': 'k' }
    expect((await server.post('/client/xp/award', { amount: 1 }, key)).status).toBe(201)
    expect((await server.post('/client/xp/award', { amount: 1 }, key)).status).toBe(200)
    expect((await server.post('/client/xp/award', { amount: 2 }, key)).error?.code).toBe('IDEMPOTENCY_CONFLICT')
    refused(await server.post('/client/xp/award', { amount: 0 }), 'amount')
    refused(await project.server.post('/client/xp/award', { amount: 5 }), 'app_user_id')
    refused(await server.post('/client/xp/award', { amount: 5, app_user_id: randomUUID() }), 'app_user_id')
    expect((await project.server.post('/client/xp/award', { amount: 5, app_user_id: randomUUID() })).error?.code).toBe(
      'USER_NOT_FOUND',
    )
    const own = await user.post('/client/xp/award', { amount: 5 })
    expect([own.status, own.error?.code]).toEqual([403, 'SERVER_KEY_REQUIRED'])
    expect((await me(user)).total).toBe(11)
    // and not through SQL either
    const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
    await expect(
      project.as('app_user', claims, `select internal.xp_by_hand('${user.id}', 5, null, 'award', null)`),
    ).rejects.toThrow(/server key/)
    const other = await project.user()
    await expect(
      project.as(
        'app_user',
        { ...claims, 'app.caller': 'server_key_user' },
        `select internal.xp_by_hand('${other.id}', 5, null, 'award', null)`,
      ),
    ).rejects.toThrow(/that user only/)
    for (const table of ['xp_totals', 'xp_transactions', 'xp_rule_days', 'xp_levels', 'xp_rules'])
      for (const statement of [
        `insert into app.${table} default values`,
        `update app.${table} set created_at = null`,
        `delete from app.${table}`,
      ])
        for (const role of ['app_user', 'app_server'] as const)
          await expect(project.as(role, claims, statement), `${role} ${statement}`).rejects.toThrow(
            /permission denied|does not exist/,
          )
    for (const role of ['app_user', 'app_server', 'app_admin', 'app_worker'] as const)
      for (const call of [
        'internal.xp_apply(null)',
        'internal.xp_give(null)',
        `internal.reward__xp('${user.id}', '5', 'x', 'y')`,
        'internal.xp_judge(null)',
      ])
        await expect(project.as(role, claims, `select ${call}`), `${role} ${call}`).rejects.toThrow(/permission denied/)
  })

  test('the total has a ceiling, and what is cut there is recorded', async () => {
    const user = await someone()
    await project.sql(`insert into app.xp_totals (app_user_id, total) values ($1, 999999999999995)`, [user.id])
    expect((await grant(user.id, 50)).data).toMatchObject({
      amount: 5,
      total_after: 1_000_000_000_000_000,
      clipped_by: 'total',
    })
  })
})

describe('the ledger', () => {
  test("pages newest first without gaps or doubles, one's own only", async () => {
    const user = await someone()
    const other = await someone()
    for (const n of [1, 2, 3, 4, 5]) await grant(user.id, n)
    await grant(other.id, 9)
    const seen: number[] = []
    let cursor = ''
    for (;;) {
      const { body } = await user.get(`/client/xp/history?limit=2${cursor}`)
      seen.push(...body.data.map(({ amount }: any) => amount))
      expect(body.pagination.total).toBeNull()
      if (!body.pagination.next_cursor) break
      cursor = `&cursor=${body.pagination.next_cursor}`
    }
    expect(seen).toEqual([5, 4, 3, 2, 1])
    const all = await admin.get(`/xp/transactions?user_id=${user.id}&limit=500`)
    expect(all.data).toHaveLength(5)
    expect((await admin.get('/xp/transactions?limit=1')).data[0].app_user_id).toBe(other.id)
    for (const bad of ['/client/xp/history?cursor=x', '/client/xp/history?limit=0'])
      expect((await user.get(bad)).error?.code).toBe('INVALID_INPUT')
    expect((await admin.get('/xp/transactions?user_id=x')).error?.code).toBe('INVALID_INPUT')
  })

  test('is summed up in figures of the week', async () => {
    const other = await harness.project()
    const users = [await other.user(), await other.user()]
    await other.admin.post('/xp/rules', { key: 'a', name: 'a', event_name: 'a', amount: 10 })
    for (const { id } of users) await other.onBehalfOf(id).post('/client/events', { event_name: 'a' })
    await other.admin.post('/xp/grant', { app_user_id: users[0]?.id, amount: -3 })
    expect((await other.admin.get('/xp/stats')).data).toEqual({
      total_awarded_7d: 20,
      by_rule: [{ rule_key: 'a', awards: 2, users: 2, total: 20 }],
      level_distribution: [{ level: 1, users: 2 }],
    })
    await other.sql(`update app.xp_transactions set created_at = created_at - interval '7 days 1 second'`)
    expect((await other.admin.get('/xp/stats')).data).toMatchObject({ total_awarded_7d: 0, by_rule: [] })
  })
})

describe('stored events', () => {
  test('are simulated under a rule, and nothing is written', async () => {
    const other = await harness.project()
    const users = [await other.user(), await other.user(), await other.user()]
    for (const [n, { id }] of users.entries())
      for (let times = 0; times <= n; times += 1) await other.onBehalfOf(id).post('/client/events', { event_name: 'a' })
    await other.admin.post('/xp/rules', {
      key: 'a',
      name: 'a',
      event_name: 'a',
      amount: 10,
      max_per_day: 20,
      is_active: false,
    })
    const simulated = await other.admin.post('/xp/rules/a/simulate', {
      since: new Date(Date.now() - 60_000).toISOString(),
    })
    expect(simulated.data).toEqual({ awards: 5, users: 3, total: 50, per_user: { median: 20, p90: 20, max: 20 } })
    expect(await other.sql('select from app.xp_transactions')).toEqual([])
    expect(
      (await other.admin.post('/xp/rules/a/simulate', { since: '2020-01-01T00:00:00Z' })).error?.details.field,
    ).toBe('since')
    await other.admin.patch('/xp/rules/a', { event_name: 'nobody' })
    expect((await other.admin.post('/xp/rules/a/simulate')).data).toEqual({
      awards: 0,
      users: 0,
      total: 0,
      per_user: { median: null, p90: null, max: null },
    })
  })

  test('are replayed: what was not given is given once, within caps; a dry run writes nothing', async () => {
    const other = await harness.project()
    const { id } = await other.user()
    const who = other.onBehalfOf(id)
    for (let n = 0; n < 4; n += 1) await who.post('/client/events', { event_name: 'a' })
    await other.admin.post('/xp/rules', { key: 'a', name: 'a', event_name: 'a', amount: 10, max_total: 35 })
    await who.post('/client/events', { event_name: 'a' })
    const replay = async (dry_run: boolean) => {
      const { data } = await other.admin.post('/events/replay', {
        since: new Date(Date.now() - 3_600_000).toISOString(),
        until: new Date(Date.now() + 3_600_000).toISOString(),
        targets: ['xp'],
        dry_run,
      })
      return (await runOperationJob(harness, other, 'events__replay', data.operation_id)).result.targets.xp
    }
    const difference = { app_user_id: id, before: 10, after: 35 }
    expect((await replay(true)).differences).toEqual([difference])
    expect((await who.get('/client/xp')).data.total).toBe(10)
    expect((await replay(false)).differences).toEqual([difference])
    expect((await replay(false)).differences).toEqual([])
    expect((await who.get('/client/xp')).data.total).toBe(35)
    const told = await other.sql(
      `select is_historical from app.engagement_events where event_name = 'svc.xp.awarded' order by received_at`,
    )
    expect(told.map(({ is_historical }) => is_historical)).toEqual([false, true])
  })
})

describe('users', () => {
  test('of one batch each learn their own, and batches say whose', async () => {
    const some = await rule({ amount: 5 })
    const users = [await someone(), await someone()]
    const { data } = await project.server.post('/client/events', {
      events: [...users, ...users, users[0]].map((user) => ({ app_user_id: user?.id, event_name: some.event_name })),
      include_effects: true,
    })
    expect(data.effects.xp).toHaveLength(2)
    expect(data.effects.xp).toEqual(
      expect.arrayContaining(
        users.map(({ id }, n) => expect.objectContaining({ app_user_id: id, awarded: n ? 10 : 15 })),
      ),
    )
  })

  test('that become one have the sum, as a row of the ledger; what both had of one source, once; caps hold together', async () => {
    const free = await rule({ amount: 10 })
    const capped = await rule({ amount: 10, max_total: 15 })
    const made = await project.app.post('/client/auth/email/signup', {
      email: `${randomUUID()}@example.org`,
      password: 'a long passphrase',
    })
    const survivor = project.app.with({ authorization: `Bearer ${made.data.session_token}` })
    const survivorId = made.data.user.id
    const other = await project.user()
    for (const who of [survivor, other]) {
      await send(who, free.event_name)
      await send(who, capped.event_name)
    }
    for (const id of [survivorId, other.id])
      await project.sql(`select internal.grant_reward($1, '{"xp": 100}', 'challenge', 'both')`, [id])
    await project.sql(`select internal.grant_reward($1, '{"xp": 7}', 'challenge', 'theirs')`, [other.id])
    const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    // 120 of its own; 10 + 5 of events, 7 of what only the other had
    expect(await me(survivor)).toMatchObject({ total: 142 })
    const row = (await ledger(survivorId)).find(({ source }) => source === 'merge')
    expect(row).toMatchObject({ amount: 22, total_after: 142, source_id: other.id })
    expect(await send(survivor, capped.event_name)).toMatchObject({ awarded: 0, clipped_by: 'max_total' })
    // the source that paid the other pays no more
    await project.sql(`select internal.grant_reward($1, '{"xp": 7}', 'challenge', 'theirs')`, [survivorId])
    expect((await me(survivor)).total).toBe(142)
  })

  test('whose XP is reset earn levels and their rewards again', async () => {
    await levels({
      levels: [
        { level: 1, xp_required: 0 },
        { level: 2, xp_required: 5, reward: { xp: 1 } },
      ],
    })
    const user = await someone()
    await grant(user.id, 5)
    for (const table of ['xp_transactions', 'xp_rule_days', 'xp_totals'])
      await project.sql(`delete from app.${table} where app_user_id = $1`, [user.id])
    await grant(user.id, 5)
    expect((await me(user)).total).toBe(6)
    await levels({ levels: [{ level: 1, xp_required: 0 }] })
  })
})
