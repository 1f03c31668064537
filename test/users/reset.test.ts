import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { countRows, fillEveryTable } from '#test/support/user_rows.ts'

/** Resetting sections of a user’s data. */
const harness = await startHarness()
const project = await harness.project()

describe('a reset', () => {
  const all = [
    'events',
    'streaks',
    'xp',
    'achievements',
    'challenges',
    'leaderboards',
    'leagues',
    'currencies',
    'inventory',
    'onboarding',
    'entitlements',
    'experiments',
    'properties',
    'collections',
    'media',
    'messages',
    'feeds',
    'friends',
    'groups',
    'push',
    'sessions',
    'sync',
  ]

  test('empties every table of its sections, says how many rows, and leaves the rest', {
    timeout: 180_000,
  }, async () => {
    const own = await harness.project()
    const user = await own.user()
    const places = await fillEveryTable(own, user.id)
    await own.sql(`update app.users set properties = '{"a": 1}' where id = $1`, [user.id])
    const before = await countRows(own, user.id)
    const { status, data } = await own.admin.delete(`/users/${user.id}/reset?sections=${all.join(',')}`)
    expect([status, data.user_id, data.user_deleted, [...data.reset].sort()]).toEqual([
      200,
      user.id,
      false,
      [...all].sort(),
    ])
    const after = await countRows(own, user.id)
    const wanted = new Map<string, number>(all.map((name) => [name, 0]))
    wanted.set('properties', 1)
    for (const { table_name, user_column, reset_section } of places) {
      const place = `${table_name}.${user_column}`
      expect([place, after.get(place)]).toEqual([place, reset_section ? 0 : before.get(place)])
      if (reset_section) wanted.set(reset_section, (wanted.get(reset_section) ?? 0) + (before.get(place) ?? 0))
    }
    expect(data.rows_deleted).toEqual(Object.fromEntries(wanted))
    expect(await own.sql('select properties from app.users where id = $1', [user.id])).toEqual([{ properties: {} }])
  })

  test('without sections leaves entitlements, push and sessions', async () => {
    const user = await project.user()
    await user.post('/client/users/me/push-token', { token: `t${user.id}`, platform: 'ios' })
    await user.post('/client/events', { event_name: 'ran' })
    await user.patch('/client/users/me', { properties: { a: 1 } })
    const { data } = await project.admin.delete(`/users/${user.id}/reset`)
    expect(data.reset).toEqual(all.filter((name) => !['entitlements', 'push', 'sessions'].includes(name)))
    expect(data.rows_deleted.events).toBeGreaterThan(0)
    expect(await project.sql('select from app.push_tokens where app_user_id = $1', [user.id])).toHaveLength(1)
    expect((await user.get('/client/users/me')).data).toMatchObject({ id: user.id, properties: {} })
    expect(await project.sql('select from app.engagement_events where app_user_id = $1', [user.id])).toHaveLength(0)
  })

  test('of collections leaves what the user wrote in groups, which is the groups’', async () => {
    const own = await harness.project()
    const [user, owner] = [await own.user(), await own.user()]
    const columns = [{ name: 'body', type: 'text' }]
    for (const [name, owner_scope] of [
      ['diaries', 'user'],
      ['boards', 'group'],
    ])
      expect((await own.admin.post('/collections', { name, owner_scope, columns })).status).toBe(201)
    const group = (await owner.post('/client/groups', { name: 'g', is_public: false })).data.id
    await own.admin.post(`/groups/${group}/members`, { app_user_id: user.id, role: 'member' })
    expect((await user.post('/client/collections/diaries', { body: 'mine' })).status).toBe(201)
    const posted = await user.post('/client/collections/boards', { body: 'ours' }, { 'x-group-context': group })
    expect(posted.status).toBe(201)
    const { data } = await own.admin.delete(`/users/${user.id}/reset?delete_user=false`)
    expect(data.rows_deleted).toMatchObject({ collections: 1, groups: 1 })
    expect(await own.sql('select user_id from collections.boards')).toEqual([{ user_id: user.id }])
    expect(await own.sql('select from collections.diaries')).toEqual([])
    await own.admin.delete(`/users/${user.id}`)
    expect(await own.sql('select user_id from collections.boards')).toEqual([{ user_id: null }])
  })

  test('of sessions signs the user out at once', async () => {
    const user = await project.user()
    expect((await user.get('/client/users/me')).status).toBe(200)
    const { data } = await project.admin.delete(`/users/${user.id}/reset?sections=sessions`)
    expect(data).toEqual({ user_id: user.id, reset: ['sessions'], rows_deleted: { sessions: 1 }, user_deleted: false })
    expectRefusal(await user.get('/client/users/me'), 401, 'UNAUTHORIZED')
  })

  test('lets a streak be earned, and paid, again', async () => {
    const user = await project.user()
    const key = `s${randomUUID().slice(0, 8)}`
    await project.admin.post('/streaks', {
      key,
      name: 'x',
      qualifying_event: key,
      freezes_max: 5,
      milestones: [{ count: 1, reward: { freezes: [{ streak_key: key, amount: 1 }] } }],
    })
    const earn = async () => {
      await user.post('/client/events', { event_name: key })
      return (await user.get(`/client/streaks/${key}`)).data
    }
    expect(await earn()).toMatchObject({ current_count: 1, freezes_remaining: 1 })
    expect((await project.admin.delete(`/users/${user.id}/reset?sections=streaks,events`)).status).toBe(200)
    expect((await user.get(`/client/streaks/${key}`)).data).toMatchObject({
      status: 'none',
      current_count: 0,
      freezes_remaining: 0,
    })
    expect(await earn()).toMatchObject({ current_count: 1, freezes_remaining: 1 })
  })

  test('is audited with its sections', async () => {
    const user = await project.user()
    await project.admin.delete(`/users/${user.id}/reset?sections=events`)
    const rows = await project.sql('select action, changes from app.audit_events where target_id = $1', [user.id])
    expect(rows).toEqual([{ action: 'users.reset', changes: { sections: [null, ['events']] } }])
  })

  test.each([
    ['sections=events,nonsense', 'INVALID_INPUT'],
    ['sections=', 'INVALID_INPUT'],
    ['sections=,', 'INVALID_INPUT'],
    ['delete_user=maybe', 'INVALID_INPUT'],
  ])('refuses %s and changes nothing', async (query, code) => {
    const user = await project.user()
    await user.post('/client/events', { event_name: 'ran' })
    expectRefusal(await project.admin.delete(`/users/${user.id}/reset?${query}`), 400, code)
    expect(
      await project.sql(`select from app.engagement_events where app_user_id = $1 and source = 'client'`, [user.id]),
    ).toHaveLength(1)
  })

  test('of nobody is refused', async () => {
    expectRefusal(await project.admin.delete(`/users/${randomUUID()}/reset`), 404, 'NOT_FOUND')
    for (const id of ['x', '%00'])
      expectRefusal(await project.admin.delete(`/users/${id}/reset`), 400, 'INVALID_USER_ID')
  })
})
