import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Answer, Client, Project } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { startXp } from '#test/support/xp.ts'

const { harness, project, someone, emitted, me, ledger } = await startXp()
const { admin } = project

let made = 0
/** An achievement, and an event, of its own for each test. */
const define = async (criteria: Record<string, unknown> = {}, more: object = {}, on: Project = project) => {
  made += 1
  const key = `achievement-${made}`
  const answer = await on.admin.post('/achievements', {
    key,
    name: key,
    criteria: { type: 'event_count', event_name: `did ${made}`, target_value: 3, ...criteria },
    ...more,
  })
  expect(answer.status, answer.text).toBe(201)
  return { ...answer.data, event: answer.data.criteria.event_name } as { id: string; key: string; event: string }
}
const send = async (who: Client, event_name: string, more: object = {}) => {
  const answer = await who.post('/client/events', { event_name, ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.data.effects.achievements
}
const see = async (who: Client, key: string) => (await who.get(`/client/achievements/${key}`)).data
const refused = (answer: Answer, field: string) => {
  expect([answer.status, answer.error?.code], answer.text).toEqual([400, 'VALIDATION_ERROR'])
  expect(answer.error?.details.field).toBe(field)
}
const grant = (id: string, userId: string) => admin.post(`/achievements/${id}/grant`, { app_user_id: userId })
const revoke = (id: string, userId: string) => admin.post(`/achievements/${id}/revoke`, { app_user_id: userId })

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
    refused(await post(undefined), 'criteria')
    refused(await post({}), 'criteria.type')
    refused(await post({ ...count, type: 'other' }), 'criteria.type')
    refused(await post({ ...count, target_value: '1' }), 'criteria.target_value')
    refused(await post({ ...count, target_value: 0 }), 'criteria.target_value')
    refused(await post({ ...count, event_name: undefined }), 'criteria.event_name')
    refused(await post({ ...count, event_name: 'e ' }), 'criteria.event_name')
    refused(await post({ ...count, event_filter: { column: 'a', op: 'quack', value: 1 } }), 'criteria.event_filter')
    refused(await post({ type: 'xp_threshold', target_value: 1, event_filter: { and: [] } }), 'criteria.event_filter')
    refused(await post({ ...count, since: 'yesterday' }), 'criteria.since')
    refused(
      await post({ type: 'streak_length', target_value: 1, streak_definition_id: randomUUID() }),
      'criteria.streak_definition_id',
    )
    refused(await post({ type: 'property_value', target_value: 1 }), 'criteria.property_key')
    refused(await post(count, { key: 'No' }), 'key')
    refused(await post(count, { name: '' }), 'name')
    refused(await post(count, { xp_reward: -1 }), 'xp_reward')
    expect((await admin.post('/achievements', '{' as never)).error?.code).toBe('VALIDATION_ERROR')
    const { id } = await define()
    refused(
      await admin.patch(`/achievements/${id}`, { criteria: { ...count, target_value: -1 } }),
      'criteria.target_value',
    )
    refused(await admin.patch(`/achievements/${id}`, { name: null }), 'name')
    refused(await grant(id, 'nobody'), 'app_user_id')
    refused(await revoke(id, 'nobody'), 'app_user_id')
    expect((await admin.post('/achievements/dry-run', '{' as never)).error?.code).toBe('INVALID_BODY')
    refused(await admin.post('/achievements/dry-run', {}), 'criteria')
    refused(await admin.post(`/achievements/${id}/dry-run`, { criteria: {} }), 'criteria.type')
    expect((await admin.post(`/achievements/${id}/dry-run`, '{' as never)).error?.code).toBe('INVALID_BODY')
    expect((await admin.post(`/achievements/${id}/backfill`, '{' as never)).error?.code).toBe('INVALID_BODY')
    refused(await admin.post(`/achievements/${id}/backfill`, { notify: 'yes' }), 'notify')
    expect((await admin.get(`/achievements/${id}/users?limit=0`)).error?.code).toBe('INVALID_INPUT')
  })
})

describe('unlocks', () => {
  test('come with the event that reaches, once, with XP, and are told', async () => {
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
    const told = await emitted(user.id, 'svc.achievement.%')
    expect(told.map(({ event_name, properties }) => [event_name, properties])).toEqual([
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
    const told = await emitted(user.id, 'svc.achievement.%')
    expect(told.map(({ event_name }) => event_name)).toEqual(
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
        `select internal.achievement_by_hand('${id}', '${user.id}', true)`,
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
        `select internal.achievement_by_hand('${id}', '${user.id}', true)`,
      ),
    ).rejects.toThrow(/administrators/)
  })
})

describe('what users see', () => {
  test('hidden ones show nothing until they are unlocked; others are in order, paged', async () => {
    const other = await harness.project()
    const secret = await define({ target_value: 1 }, { is_hidden: true, sort_order: 2 }, other)
    const plain = await define({}, { sort_order: 1 }, other)
    const { id } = await other.user()
    const who = other.onBehalfOf(id)
    const listed = await who.get('/client/achievements')
    expect(listed.data[0]).toEqual({
      id: plain.id,
      key: plain.key,
      name: plain.key,
      description: null,
      icon_url: null,
      xp_reward: 0,
      is_hidden: false,
      sort_order: 1,
      unlocked: false,
      unlocked_at: null,
      progress: { current: 0, target: 3, ratio: 0 },
      rarity: 0,
    })
    expect(listed.data[1]).toEqual({ id: secret.id, key: secret.key, is_hidden: true, unlocked: false })
    expect((await who.get(`/client/achievements/${secret.key}`)).data).toEqual(listed.data[1])
    expect((await who.get('/client/achievements?limit=1&offset=1')).body).toMatchObject({
      total: 2,
      offset: 1,
      limit: 1,
      data: [{ id: secret.id }],
    })
    await who.post('/client/events', { event_name: secret.event })
    expect((await who.get(`/client/achievements/${secret.key}`)).data).toMatchObject({
      name: secret.key,
      unlocked: true,
      is_hidden: true,
    })
    expect((await who.get('/client/achievements?limit=0')).error?.code).toBe('INVALID_INPUT')
    expect((await who.get('/client/achievements/nothing')).error?.code).toBe('NOT_FOUND')
  })

  test('what is unlocked is unseen until it is seen, once for all devices, by its own user', async () => {
    const { id, event } = await define({ target_value: 1 })
    const user = await someone()
    const other = await someone()
    await send(user, event)
    const unseen = async (who: Client) =>
      (await who.get('/client/achievements/unseen')).data.map((a: { id: string }) => a.id)
    expect(await unseen(user)).toEqual([id])
    expect((await other.post('/client/achievements/seen', { ids: [id] })).data).toEqual({ seen: 0 })
    expect(await unseen(user)).toEqual([id])
    expect((await user.post('/client/achievements/seen', { ids: [id, randomUUID()] })).data).toEqual({ seen: 1 })
    expect((await user.post('/client/achievements/seen', { ids: [id] })).data).toEqual({ seen: 0 })
    expect(await unseen(user)).toEqual([])
    refused(await user.post('/client/achievements/seen', { ids: [] }), 'ids')
    refused(await user.post('/client/achievements/seen', { ids: ['x'] }), 'ids.0')
    expect((await user.post('/client/achievements/seen', '[]' as never)).error?.code).toBe('INVALID_BODY')
  })

  test("another's unlocks, unless they are hidden", async () => {
    const { id, event } = await define({ target_value: 1 })
    await define()
    const user = await someone()
    const other = await someone()
    await send(user, event)
    const seen = await other.get(`/client/users/${user.id}/achievements`)
    expect(seen.body).toMatchObject({ total: 1, offset: 0, limit: 50 })
    expect(seen.data.map((a: { id: string }) => a.id)).toEqual([id])
    expect((await other.get(`/client/users/${user.id}/achievements?offset=1`)).data).toEqual([])
    await project.sql(`update app.users set properties = '{"hide_achievements": true}' where id = $1`, [user.id])
    expect((await other.get(`/client/users/${user.id}/achievements`)).error?.code).toBe('NOT_FOUND')
    expect((await user.get(`/client/users/${user.id}/achievements`)).data).toHaveLength(1)
    expect((await other.get(`/client/users/${randomUUID()}/achievements`)).error?.code).toBe('NOT_FOUND')
    expect((await other.get('/client/users/x/achievements')).error?.code).toBe('INVALID_ID')
    expect((await other.get(`/client/users/${user.id}/achievements?limit=x`)).error?.code).toBe('INVALID_INPUT')
  })

  test("another's unlocks are not there when either has blocked the other", async () => {
    const { event } = await define({ target_value: 1 })
    const [user, other, third] = [await someone(), await someone(), await someone()]
    await send(user, event)
    const path = `/client/users/${user.id}/achievements`
    for (const [blocker, blocked] of [
      [user, other],
      [other, user],
    ] as const) {
      expect((await other.get(path)).data).toHaveLength(1)
      await project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [blocker.id, blocked.id])
      expect(await other.get(path)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
      expect((await third.get(path)).data).toHaveLength(1)
      expect((await user.get(path)).data).toHaveLength(1)
      await project.sql('delete from app.blocks')
    }
  })

  test('rarity is counted by the hour', async () => {
    const other = await harness.project()
    const { event, key } = await define({ target_value: 1 }, {}, other)
    const users = [await other.user(), await other.user(), await other.user(), await other.user()]
    const who = other.onBehalfOf(users[0]?.id ?? '')
    await who.post('/client/events', { event_name: event })
    harness.advance(1)
    await other.drain()
    expect((await who.get(`/client/achievements/${key}`)).data.rarity).toBe(0.25)
    await other.onBehalfOf(users[1]?.id ?? '').post('/client/events', { event_name: event })
    harness.advance(3590)
    await other.drain()
    expect((await who.get(`/client/achievements/${key}`)).data.rarity).toBe(0.25)
    harness.advance(11)
    await other.drain()
    expect((await who.get(`/client/achievements/${key}`)).data.rarity).toBe(0.5)
  })
})

describe('all users', () => {
  test('who qualifies already is unlocked in the background, paid, and nobody is told', async () => {
    const other = await harness.project()
    const users = [await other.user(), await other.user()]
    for (const { id } of users)
      for (let n = 0; n < 2; n += 1) await other.onBehalfOf(id).post('/client/events', { event_name: 'old' })
    await other.onBehalfOf(users[0]?.id ?? '').post('/client/events', { event_name: 'old' })
    const { id } = await define({ event_name: 'old' }, { xp_reward: 5 }, other)
    const holders = async () =>
      (await other.admin.get(`/achievements/${id}/users`)).data.map(({ app_user_id, source }: any) => [
        app_user_id,
        source,
      ])
    expect(await holders()).toEqual([])
    await other.drain()
    expect(await holders()).toEqual([[users[0]?.id, 'backfill']])
    const told = await other.sql(
      `select event_name, is_historical from app.engagement_events where source = 'system' and event_name ~ 'xp|achievement'`,
    )
    expect(told).toHaveLength(2)
    expect(told.every(({ is_historical }) => is_historical)).toBe(true)
    expect((await other.onBehalfOf(users[0]?.id ?? '').get('/client/xp')).data.total).toBe(5)
    // a target that is lowered owes it to the others too; other changes look at nobody
    await other.admin.patch(`/achievements/${id}`, { name: 'Renamed' })
    expect(await other.sql(`select from app.outbox where task = 'achievements__catch_up'`)).toEqual([])
    await other.admin.patch(`/achievements/${id}`, {
      criteria: { type: 'event_count', event_name: 'old', target_value: 2 },
    })
    await other.drain()
    expect(await holders()).toHaveLength(2)
  })

  test('a backfill by hand is an operation with progress, in steps, silent or not', async () => {
    const other = await harness.project()
    const { id } = await define({ event_name: 'old', target_value: 1 }, { is_active: false }, other)
    await other.sql(`with made as (insert into app.users (display_name) select 'u' from generate_series(1, 1200) returning id)
      insert into app.user_event_counters (app_user_id, event_name, day, count) select m.id, 'old', '2026-01-01', 1 from made m`)
    const start = async (body: object) => {
      const answer = await other.admin.post(`/achievements/${id}/backfill`, body)
      expect([answer.status, answer.data.status], answer.text).toEqual([202, 'queued'])
      return runOperationJob(harness, other, 'achievements__backfill', answer.data.operation_id)
    }
    const ended = await start({})
    expect(ended).toMatchObject({
      type: 'achievements.backfill',
      status: 'succeeded',
      progress: { done: 1200, total: 1200 },
      result: { users: 1200, unlocked: 1200 },
    })
    expect((await start({ notify: true })).result).toEqual({ users: 1200, unlocked: 0 })
    const [one] = await other.sql('select app_user_id from app.user_achievements limit 1')
    await other.admin.post(`/achievements/${id}/revoke`, { app_user_id: one?.app_user_id })
    expect((await start({ notify: true })).result).toEqual({ users: 1200, unlocked: 1 })
    const told = await other.sql(
      `select is_historical, count(*)::int from app.engagement_events where event_name = 'svc.achievement.unlocked' group by 1 order by 1`,
    )
    expect(told).toEqual([
      { is_historical: false, count: 1 },
      { is_historical: true, count: 1200 },
    ])
  })

  test('a dry run says who would, stored or not; figures say who did', async () => {
    const other = await harness.project()
    const users = await Promise.all(Array.from({ length: 4 }, () => other.user()))
    const post = (id: string, occurred_at?: string) =>
      other.server.post('/client/events', {
        events: [{ app_user_id: id, event_name: 'e', ...(occurred_at ? { occurred_at } : {}) }],
        historical: true,
      })
    for (const [n, { id }] of users.entries()) for (let times = 0; times < n; times += 1) await post(id)
    for (let times = 0; times < 3; times += 1) await post(users[3]?.id ?? '', '2026-01-01T00:00:00Z')
    const criteria = { type: 'event_count', event_name: 'e', target_value: 2 }
    const dry = await other.admin.post('/achievements/dry-run', { criteria })
    expect(dry.data).toEqual({
      users_now: 2,
      users_30d_ago_estimate: 1,
      sample: [
        { user_id: users[3]?.id, value: 6 },
        { user_id: users[2]?.id, value: 2 },
      ],
      distribution: [
        { bucket: '0-24%', users: 1 },
        { bucket: '25-49%', users: 0 },
        { bucket: '50-74%', users: 1 },
        { bucket: '75-99%', users: 0 },
        { bucket: '100%+', users: 2 },
      ],
    })
    expect(await other.sql('select from app.user_achievements')).toEqual([])
    const { id } = await define({ event_name: 'e', target_value: 6 }, {}, other)
    expect((await other.admin.post(`/achievements/${id}/dry-run`)).data.users_now).toBe(1)
    expect((await other.admin.post(`/achievements/${id}/dry-run`, { criteria })).data).toEqual(dry.data)
    for (const type of ['xp_threshold', 'streak_length'])
      expect(
        (await other.admin.post('/achievements/dry-run', { criteria: { type, target_value: 1 } })).data,
      ).toMatchObject({ users_now: 0, users_30d_ago_estimate: 0 })
    expect(
      (
        await other.admin.post('/achievements/dry-run', {
          criteria: { type: 'property_value', property_key: 'a', target_value: 1 },
        })
      ).data,
    ).toMatchObject({ users_30d_ago_estimate: null })
    await other.drain()
    const stats = (await other.admin.get('/achievements/stats')).data
    expect(stats).toMatchObject({
      total_unlocks: 1,
      unlocks_7d: 1,
      achievements: [{ id, unlocks: 1, unlocks_7d: 1, rate: 0.25 }],
    })
  })

  test('replay unlocks what stored events reach', async () => {
    const { id, event } = await define({ target_value: 1 }, { is_active: false })
    const user = await someone()
    await send(user, event)
    await project.sql('update app.achievements set is_active = true where id = $1', [id])
    const replay = async (dry_run: boolean) => {
      const { data } = await admin.post('/events/replay', {
        since: new Date(Date.now() - 3_600_000).toISOString(),
        targets: ['achievements'],
        user_ids: [user.id],
        dry_run,
      })
      return (await runOperationJob(harness, project, 'events__replay', data.operation_id)).result.targets.achievements
        .differences
    }
    const difference = expect.objectContaining({
      app_user_id: user.id,
      achievement_id: id,
      before: { unlocked: false },
      after: { unlocked: true },
    })
    expect(await replay(true)).toEqual([difference])
    expect((await admin.get(`/achievements/${id}/users`)).body.total).toBe(0)
    expect(await replay(false)).toEqual([difference])
    expect(await replay(false)).toEqual([])
  })
})

test('two users who become one have the union, each with the earlier time, and what both were paid counts once', async () => {
  const both = await define({ target_value: 1 }, { xp_reward: 10 })
  const theirs = await define({ target_value: 1 }, { xp_reward: 20 })
  const summed = await define({ target_value: 4 }, { xp_reward: 40 })
  const made = await project.app.post('/client/auth/email/signup', {
    email: `${randomUUID()}@example.org`,
    password: 'a long passphrase',
  })
  const survivor = project.app.with({ authorization: `Bearer ${made.data.session_token}` })
  const other = await project.user()
  await send(other, both.event)
  await send(other, theirs.event)
  await send(survivor, both.event)
  for (const who of [survivor, other]) for (let n = 0; n < 2; n += 1) await send(who, summed.event)
  const earlier = (await see(other, both.key)).unlocked_at
  expect((await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })).status).toBe(200)
  expect(await see(survivor, both.key)).toMatchObject({ unlocked: true, unlocked_at: earlier })
  expect((await see(survivor, theirs.key)).unlocked).toBe(true)
  expect((await see(survivor, summed.key)).unlocked).toBe(true)
  expect((await me(survivor)).total).toBe(70)
})

test('a reset user earns again, and is paid again', async () => {
  const { event } = await define({ target_value: 1 }, { xp_reward: 10 })
  const user = await someone()
  await send(user, event)
  await project.sql('delete from app.user_achievements where app_user_id = $1', [user.id])
  expect(await send(user, event)).toHaveLength(1)
  expect((await me(user)).total).toBe(20)
})
