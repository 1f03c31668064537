import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startAchievements } from '#test/support/achievements.ts'
import { expectInvalid } from '#test/support/refusals.ts'

const { harness, project, admin, someone, emitted, me, ledger, define, send, see, grant, revoke } =
  await startAchievements()

describe('definitions', () => {
  test('have defaults, are listed by sort_order, changed, deleted', async () => {
    const other = await harness.project()
    const body = { key: 'first', name: 'First', criteria: { type: 'xp_threshold', target_value: 5 } }
    const { data } = await other.admin.post('/achievements', body)
    expect(data).toEqual({
      id: expect.any(String),
      ...body,
      description: null,
      icon_url: null,
      xp_reward: 0,
      is_hidden: false,
      sort_order: 0,
      is_active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    await other.admin.post('/achievements', { ...body, key: 'before', sort_order: -1 })
    await other.admin.post('/achievements', { ...body, key: 'after', sort_order: 1 })
    const listed = await other.admin.get('/achievements')
    expect(listed.data.map(({ key }: { key: string }) => key)).toEqual(['before', 'first', 'after'])
    expect([listed.body.total, listed.body.limit, listed.body.offset]).toEqual([3, 50, 0])
    expect((await other.admin.get('/achievements?limit=none')).error?.code).toBe('VALIDATION_ERROR')
    expect((await other.admin.get(`/achievements/${data.id}`)).data).toEqual(data)
    expect((await other.admin.patch(`/achievements/${data.id}`, {})).data).toEqual(data)
    const changed = await other.admin.patch(`/achievements/${data.id}`, { name: 'New', key: 'new', sort_order: 9 })
    expect(changed.data).toMatchObject({ name: 'New', key: 'first', sort_order: 9 })
    expect((await other.admin.delete(`/achievements/${data.id}`)).data).toEqual({ deleted: true })
    expect((await other.admin.post('/achievements', { ...body, key: 'after' })).error).toMatchObject({
      code: 'CONFLICT',
      details: { field: 'key' },
    })
    await other.sql(`insert into app.achievements (key, name, criteria)
      select 'k' || n, 'n', '{"type": "xp_threshold", "target_value": 5}' from generate_series(1, 498) n`)
    expect((await other.admin.post('/achievements', body)).error?.code).toBe('LIMIT_REACHED')
  })

  test('refuse ids that are none, what is not there, and criteria that cannot be measured', async () => {
    const paths: [string, string, object?][] = [
      ['GET', ''],
      ['PATCH', '', {}],
      ['DELETE', ''],
      ['POST', '/grant', { app_user_id: randomUUID() }],
      ['POST', '/revoke', { app_user_id: randomUUID() }],
      ['POST', '/dry-run', {}],
      ['POST', '/backfill', {}],
      ['GET', '/users'],
    ]
    for (const [method, path, body] of paths) {
      const bad = await admin.request(method, `/achievements/nothing${path}`, body)
      expect([bad.status, bad.error?.code], `${method} ${path}`).toEqual([400, 'INVALID_ID'])
      const missing = await admin.request(method, `/achievements/${randomUUID()}${path}`, body)
      expect([missing.status, missing.error?.code], `${method} ${path}`).toEqual([404, 'NOT_FOUND'])
    }
    const post = (criteria: unknown, more: object = {}) =>
      admin.post('/achievements', { key: 'k', name: 'n', criteria, ...more })
    const count = { type: 'event_count', target_value: 1, event_name: 'e' }
    expectInvalid(await post(undefined), 'criteria')
    expectInvalid(await post({}), 'criteria.type')
    expectInvalid(await post({ ...count, type: 'other' }), 'criteria.type')
    expectInvalid(await post({ ...count, target_value: '1' }), 'criteria.target_value')
    expectInvalid(await post({ ...count, target_value: 0 }), 'criteria.target_value')
    expectInvalid(await post({ ...count, event_name: undefined }), 'criteria.event_name')
    expectInvalid(await post({ ...count, event_name: 'e ' }), 'criteria.event_name')
    expectInvalid(
      await post({ ...count, event_filter: { column: 'a', op: 'quack', value: 1 } }),
      'criteria.event_filter',
    )
    expectInvalid(
      await post({ type: 'xp_threshold', target_value: 1, event_filter: { and: [] } }),
      'criteria.event_filter',
    )
    expectInvalid(await post({ ...count, since: 'yesterday' }), 'criteria.since')
    expectInvalid(
      await post({ type: 'streak_length', target_value: 1, streak_definition_id: randomUUID() }),
      'criteria.streak_definition_id',
    )
    expectInvalid(await post({ type: 'property_value', target_value: 1 }), 'criteria.property_key')
    expectInvalid(await post(count, { key: 'No' }), 'key')
    expectInvalid(await post(count, { name: '' }), 'name')
    expectInvalid(await post(count, { xp_reward: -1 }), 'xp_reward')
    expect((await admin.post('/achievements', '{' as never)).error?.code).toBe('VALIDATION_ERROR')
    const { id } = await define()
    expectInvalid(
      await admin.patch(`/achievements/${id}`, { criteria: { ...count, target_value: -1 } }),
      'criteria.target_value',
    )
    expectInvalid(await admin.patch(`/achievements/${id}`, { name: null }), 'name')
    expectInvalid(await grant(id, 'nobody'), 'app_user_id')
    expectInvalid(await revoke(id, 'nobody'), 'app_user_id')
    expect((await admin.post('/achievements/dry-run', '{' as never)).error?.code).toBe('INVALID_BODY')
    expectInvalid(await admin.post('/achievements/dry-run', {}), 'criteria')
    expectInvalid(await admin.post(`/achievements/${id}/dry-run`, { criteria: {} }), 'criteria.type')
    expect((await admin.post(`/achievements/${id}/dry-run`, '{' as never)).error?.code).toBe('INVALID_BODY')
    expect((await admin.post(`/achievements/${id}/backfill`, '{' as never)).error?.code).toBe('INVALID_BODY')
    expectInvalid(await admin.post(`/achievements/${id}/backfill`, { notify: 'yes' }), 'notify')
    expect((await admin.get(`/achievements/${id}/users?limit=0`)).error?.code).toBe('INVALID_INPUT')
  })
})

describe('unlocks', () => {
  test('are unlocked once, by the event that reaches the goal, with XP and an event', async () => {
    const { key, id, event } = await define({}, { xp_reward: 50, icon_url: 'https://x.y/i.png' })
    const user = await someone()
    expect(await send(user, event)).toBeUndefined()
    expect(await see(user, key)).toMatchObject({
      unlocked: false,
      unlocked_at: null,
      progress: { current: 1, target: 3, ratio: 0.3333 },
    })
    await send(user, event)
    const third = await user.post('/client/events', { event_name: event })
    expect(third.data.effects).toEqual({
      achievements: [{ key, name: key, xp_reward: 50 }],
      xp: { awarded: 50, total: 50, level: 1, level_up: false },
    })
    expect(await send(user, event)).toBeUndefined()
    expect(await see(user, id)).toMatchObject({ unlocked: true, progress: { current: 4, target: 3, ratio: 1 } })
    const emittedEvents = await emitted(user.id, 'svc.achievement.%')
    expect(emittedEvents.map(({ event_name, properties }) => [event_name, properties])).toEqual([
      [
        'svc.achievement.unlocked',
        { achievement_id: id, key, name: key, icon_url: 'https://x.y/i.png', xp_reward: 50, source: 'criteria' },
      ],
    ])
    expect(await ledger(user.id)).toMatchObject([{ amount: 50, source: 'achievement', source_id: id }])
  })

  test('are one, and paid once, when fifty posts each reach', async () => {
    const { id, event } = await define({ target_value: 1 }, { xp_reward: 10 })
    const user = await someone()
    const effects = await Promise.all(Array.from({ length: 50 }, () => send(user, event)))
    expect(effects.filter(Boolean)).toHaveLength(1)
    expect((await me(user)).total).toBe(10)
    expect((await admin.get(`/achievements/${id}/users`)).body).toMatchObject({
      total: 1,
      data: [{ app_user_id: user.id, source: 'criteria' }],
    })
  })

  test('of many users in one batch, also when batches cross', async () => {
    const { id, event } = await define({ target_value: 4 }, { xp_reward: 7 })
    const users = await Promise.all(Array.from({ length: 6 }, someone))
    const events = users
      .flatMap((user) => [user, user])
      .map(({ id: app_user_id }) => ({ app_user_id, event_name: event }))
    const answers = await Promise.all(
      [events, events.toReversed(), events].map((some) => project.server.post('/client/events', { events: some })),
    )
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect((await admin.get(`/achievements/${id}/users`)).body.total).toBe(6)
    for (const user of users) expect((await me(user)).total).toBe(7)
  })

  test('count what the filter lets through, since a time', async () => {
    const filtered = await define({ event_filter: { column: 'score', op: 'gte', value: 5 }, target_value: 2 })
    const user = await someone()
    for (const score of [5, 4, 3]) expect(await send(user, filtered.event, { properties: { score } })).toBeUndefined()
    expect(await send(user, filtered.event, { properties: { score: 9 } })).toHaveLength(1)

    harness.setTime('2026-11-21T12:00:00Z')
    const since = await define({ since: '2026-11-20T06:00:00Z', target_value: 3 })
    const at = (occurred_at: string) => send(user, since.event, { occurred_at })
    for (const early of ['2026-11-19T12:00:00Z', '2026-11-20T05:59:59Z']) expect(await at(early)).toBeUndefined()
    expect(await at('2026-11-20T06:00:00Z')).toBeUndefined()
    expect(await at('2026-11-21T00:00:00Z')).toBeUndefined()
    expect((await see(user, since.key)).progress.current).toBe(2)
    expect(await at('2026-11-21T01:00:00Z')).toHaveLength(1)
  })

  test('by XP: one that gives XP reaches the next, and the next, in one answer', async () => {
    const other = await harness.project()
    const reward = (target_value: number, xp_reward: number) =>
      define({ type: 'xp_threshold', target_value, event_name: undefined }, { xp_reward }, other)
    const chain = [await reward(10, 10), await reward(20, 10), await reward(30, 10)]
    await reward(1000, 10)
    await other.admin.post('/xp/rules', { key: 'r', name: 'r', event_name: 'go', amount: 10 })
    const { id } = await other.user()
    const { data } = await other.onBehalfOf(id).post('/client/events', { event_name: 'go' })
    expect(data.effects.achievements.map(({ key }: { key: string }) => key)).toEqual(chain.map(({ key }) => key))
    expect(data.effects.xp).toMatchObject({ awarded: 40, total: 40 })
  })

  test('by streaks, of one definition or any, by events, by hand, and by imported history', async () => {
    await admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
    const { data: streak } = await admin.get('/streaks/daily')
    const any = await define({ type: 'streak_length', target_value: 2 })
    const one = await define({ type: 'streak_length', target_value: 3, streak_definition_id: streak.id })
    const user = await someone()
    const day = (n: number) => new Date(Date.now() - n * 86_400_000).toISOString()
    await send(user, 'practised', { occurred_at: day(2) })
    expect(await send(user, 'practised', { occurred_at: day(1) })).toMatchObject([{ key: any.key }])
    expect((await user.post('/client/streaks/daily/qualify')).status).toBe(200)
    expect((await see(user, one.key)).unlocked).toBe(true)
    const old = await someone()
    const events = ['01', '02', '03'].map((date) => ({
      app_user_id: old.id,
      event_name: 'practised',
      occurred_at: `2020-01-${date}`,
    }))
    await project.server.post('/client/events', { events, historical: true })
    expect((await see(old, one.key)).unlocked).toBe(true)
    expect((await emitted(old.id, 'svc.achievement.%')).every(({ is_historical }) => is_historical)).toBe(true)
  })

  test('by a number among the properties of the user', async () => {
    const { key } = await define(
      { type: 'property_value', property_key: 'stats.wins', target_value: 5 },
      { xp_reward: 3 },
    )
    const user = await someone()
    const set = (wins: unknown) =>
      project.sql('update app.users set properties = $1 where id = $2', [{ stats: { wins } }, user.id])
    for (const wins of [4, '9', null, [9]]) await set(wins)
    expect((await see(user, key)).unlocked).toBe(false)
    await set(5)
    expect(await see(user, key)).toMatchObject({ unlocked: true, progress: { current: 5, target: 5, ratio: 1 } })
    await set(0)
    await set(6)
    expect((await me(user)).total).toBe(3)
    // whoever is made with it has it from the start
    const made = async (wins: number) =>
      project.onBehalfOf((await admin.post('/users', { properties: { stats: { wins } } })).data.id)
    const [winner, loser] = [await made(5), await made(4)]
    expect([(await see(winner, key)).unlocked, (await see(loser, key)).unlocked]).toEqual([true, false])
    expect((await me(winner)).total).toBe(3)
  })

  test('as a reward, by key; an unknown one is recorded and fails nothing', async () => {
    const { key } = await define({ target_value: 99 }, { xp_reward: 4 })
    const user = await someone()
    const give = (part: unknown, source: string) =>
      project.sql('select internal.grant_reward($1, $2, $3, $4) as outcome', [
        user.id,
        { achievement_key: part },
        'test',
        source,
      ])
    expect((await give(key, 'a'))[0]?.outcome).toEqual({ achievement_key: { given: true } })
    expect((await give(key, 'b'))[0]?.outcome).toEqual({ achievement_key: { given: false } })
    expect((await give('nothing', 'c'))[0]?.outcome.achievement_key.given).toBe(false)
    expect((await give({ key }, 'd'))[0]?.outcome.achievement_key.given).toBe(false)
    expect(await see(user, key)).toMatchObject({ unlocked: true })
    expect((await me(user)).total).toBe(4)
  })

  test('of one that is not active do not come', async () => {
    const { id, event, key } = await define({ target_value: 1 }, { is_active: false })
    const user = await someone()
    expect(await send(user, event)).toBeUndefined()
    expect((await user.get(`/client/achievements/${key}`)).status).toBe(404)
    await grant(id, user.id)
    expect((await see(user, key)).unlocked).toBe(true)
  })
})

describe('by hand', () => {
  test('a grant pays nothing, keeps its time, and what is reached later does not pay either', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const { id, event } = await define({ target_value: 1 }, { xp_reward: 50 })
    const user = await someone()
    const first = await grant(id, user.id)
    expect([first.status, first.data]).toEqual([
      201,
      { app_user_id: user.id, achievement_id: id, unlocked_at: '2026-11-21T12:00:00.000Z', source: 'grant' },
    ])
    harness.advance(60)
    const again = await grant(id, user.id)
    expect([again.status, again.data]).toEqual([201, first.data])
    expect(await send(user, event)).toBeUndefined()
    expect((await me(user)).total).toBe(0)
    expect((await grant(id, randomUUID())).error?.code).toBe('NOT_FOUND')
    expect((await revoke(id, randomUUID())).error?.code).toBe('NOT_FOUND')
  })

  test('a revocation takes the unlock and keeps the XP; the next event that reaches unlocks again and does not pay again', async () => {
    const { id, event, key } = await define({ target_value: 1 }, { xp_reward: 50 })
    const user = await someone()
    const none = await revoke(id, user.id)
    expect([none.status, none.error?.code]).toEqual([404, 'USER_ACHIEVEMENT_NOT_FOUND'])
    await send(user, event)
    const taken = await revoke(id, user.id)
    expect([taken.status, taken.data]).toEqual([200, { app_user_id: user.id, achievement_id: id, revoked: true }])
    expect((await revoke(id, user.id)).error?.code).toBe('USER_ACHIEVEMENT_NOT_FOUND')
    expect((await see(user, key)).unlocked).toBe(false)
    expect((await me(user)).total).toBe(50)
    expect((await admin.get(`/achievements/${id}/users`)).body.total).toBe(0)
    expect(await send(user, event)).toHaveLength(1)
    expect((await me(user)).total).toBe(50)
    const emittedEvents = await emitted(user.id, 'svc.achievement.%')
    expect(emittedEvents.map(({ event_name }) => event_name)).toEqual(
      ['unlocked', 'revoked', 'unlocked'].map((verb) => `svc.achievement.${verb}`),
    )
    const trail = await project.sql(`select action from app.audit_events where target_id = $1`, [user.id])
    expect(trail).toEqual([{ action: 'achievements.revoke' }])
  })

  test('nobody but an administrator, and no role by SQL', async () => {
    const { id } = await define()
    const user = await project.user()
    const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
    for (const role of ['app_user', 'app_server'] as const)
      for (const statement of [
        `insert into app.user_achievements (app_user_id, achievement_id, source) values ('${user.id}', '${id}', 'grant')`,
        `update app.user_achievements set seen_at = null`,
        `delete from app.user_achievements`,
        `update app.achievements set xp_reward = 1000`,
        `select internal.achievement_adjust('${id}', '${user.id}', true)`,
        `select internal.achievements_unlock(array['${user.id}'::uuid], array['${id}'::uuid], 'criteria')`,
      ])
        await expect(project.as(role, claims, statement), `${role} ${statement}`).rejects.toThrow(/permission denied/)
    for (const role of ['app_admin', 'app_worker'] as const)
      await expect(
        project.as(role, {}, `select internal.achievements_measure(null, null, 'criteria')`),
      ).rejects.toThrow(/permission denied/)
    await expect(
      project.as(
        'app_admin',
        { 'app.caller': 'none' },
        `select internal.achievement_adjust('${id}', '${user.id}', true)`,
      ),
    ).rejects.toThrow(/administrators/)
  })
})
