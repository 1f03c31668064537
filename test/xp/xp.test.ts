import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { expectInvalid } from '#test/support/refusals.ts'
import { startXp } from '#test/support/xp.ts'

const { harness, project, rule, someone, send, me, ledger, emitted, grant } = await startXp()
const { admin } = project

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
    for (const [change, field] of wrong) expectInvalid(await admin.post('/xp/rules', { ...good, ...change }), field)
    expect((await admin.post('/xp/rules', good)).status).toBe(201)
    const twice = await admin.post('/xp/rules', good)
    expect([twice.status, twice.error?.code, twice.error?.details.field]).toEqual([409, 'CONFLICT', 'key'])
    expectInvalid(await admin.patch('/xp/rules/good', { name: null }), 'name')
    expectInvalid(await admin.patch('/xp/rules/good', { amount: null }), 'amount')
    expectInvalid(await admin.patch('/xp/rules/good', { event_filter: { or: 1 } }), 'event_filter')
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
    expectInvalid(await admin.post('/xp/boosts', { name: 'x', multiplier: 0.09 }), 'multiplier')
    expectInvalid(await admin.post('/xp/boosts', { name: 'x', multiplier: 100.1 }), 'multiplier')
    expectInvalid(
      await admin.post('/xp/boosts', { name: 'x', multiplier: 1, ends_at: '2026-11-21T12:00:00Z' }),
      'ends_at',
    )
    expectInvalid(await admin.patch('/xp/boosts/Other', { multiplier: null }), 'multiplier')
    expectInvalid(await admin.post('/xp/boosts', { name: 'x', multiplier: 1, rule_keys: [] }), 'rule_keys')
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
    expectInvalid(await admin.post('/xp/boosts', { ...boost, segment_id: randomUUID() }), 'segment_id', /a segment/)
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
