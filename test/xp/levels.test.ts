import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { expectInvalid } from '#test/support/refusals.ts'
import { startXp } from '#test/support/xp.ts'

const { harness, project, rule, someone, send, me, ledger, emitted, levels, grant } = await startXp()
const { admin } = project

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
    expectInvalid(await put({}), 'levels')
    expectInvalid(await put({ levels: listed, generate: { count: 1, base: 1, exponent: 1 } }), 'levels')
    expectInvalid(await put({ levels: [{ level: 1, xp_required: 1 }] }), 'levels', /0 XP/)
    expectInvalid(await put({ levels: [listed[0], { level: 3, xp_required: 9 }] }), 'levels', /numbered/)
    expectInvalid(
      await put({ levels: [listed[0], { level: 2, xp_required: 9 }, { level: 3, xp_required: 9 }] }),
      'levels',
      /rising/,
    )
    expectInvalid(await put({ generate: { count: 3, base: 0.1, exponent: 1 } }), 'levels', /rising/)
    expectInvalid(await put({ generate: { count: 1000, base: 1_000_000_000, exponent: 10 } }), 'generate')
    expectInvalid(await put({ generate: { count: 1001, base: 1, exponent: 1 } }), 'generate.count')
    expectInvalid(
      await put({ levels: Array.from({ length: 1001 }, (_, n) => ({ level: n + 1, xp_required: n })) }),
      'levels',
    )
    expect((await admin.get('/xp/levels')).data).toEqual(table)
    expect(await levels({ generate: { count: 1000, base: 1, exponent: 1 } })).toHaveLength(1000)
  })

  test('are reached, emitted and rewarded once each, and kept when the table changes or XP is taken', async () => {
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

  test('fifty posts that each reach the level: one event and one reward', async () => {
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
    expectInvalid(await grant(user.id, 0), 'amount')
    expectInvalid(await grant(user.id, 1.5), 'amount')
    expectInvalid(await grant(user.id, 1_000_000_001), 'amount')
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
    expectInvalid(await grant(user.id, 7, 'é'), 'Idempotency-Key')
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
    expectInvalid(await server.post('/client/xp/award', { amount: 0 }), 'amount')
    expectInvalid(await project.server.post('/client/xp/award', { amount: 5 }), 'app_user_id')
    expectInvalid(await server.post('/client/xp/award', { amount: 5, app_user_id: randomUUID() }), 'app_user_id')
    expect((await project.server.post('/client/xp/award', { amount: 5, app_user_id: randomUUID() })).error?.code).toBe(
      'USER_NOT_FOUND',
    )
    const own = await user.post('/client/xp/award', { amount: 5 })
    expect([own.status, own.error?.code]).toEqual([403, 'SERVER_KEY_REQUIRED'])
    expect((await me(user)).total).toBe(11)
    // and not through SQL either
    const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
    await expect(
      project.as('app_user', claims, `select internal.xp_adjust('${user.id}', 5, null, 'award', null)`),
    ).rejects.toThrow(/server key/)
    const other = await project.user()
    await expect(
      project.as(
        'app_user',
        { ...claims, 'app.caller': 'server_key_user' },
        `select internal.xp_adjust('${other.id}', 5, null, 'award', null)`,
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
        'internal.xp_apply_caps(null)',
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
