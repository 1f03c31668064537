import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { loadAreas } from '#server/http/areas.ts'
import type { Client, Project } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startStreaks } from '#test/support/streaks.ts'

const { harness, project, define, someone, event, see } = await startStreaks()

describe('lists', () => {
  test('of a user: those begun, or all', async () => {
    const own = await harness.project()
    for (const key of ['one', 'two']) await own.admin.post('/streaks', { key, name: key, qualifying_event: key })
    const user = await own.user()
    expect((await user.get('/client/streaks')).data).toEqual([])
    await user.post('/client/events', { event_name: 'one' })
    expect((await user.get('/client/streaks')).data).toMatchObject([{ key: 'one', status: 'active' }])
    expect((await user.get('/client/streaks?include=all')).data).toMatchObject([
      { key: 'one', status: 'active' },
      { key: 'two', status: 'none', current_count: 0, started_on: null, last_qualified_at: null },
    ])
    expect((await user.get('/client/streaks?include=some')).error?.code).toBe('INVALID_INPUT')
    expect((await user.get('/client/streaks/one?history=none')).error?.code).toBe('INVALID_INPUT')
    expect((await user.get('/client/streaks/three')).error?.code).toBe('STREAK_NOT_FOUND')
    const [streaks] = await own.sql('select internal.user_streaks_json($1) as json', [user.id])
    expect(streaks.json).toMatchObject([{ key: 'one', streak_definitions: { name: 'one', qualifying_event: 'one' } }])
  })

  test("of a streak's users by status, and its figures", async () => {
    const streak = await define({ freezes_initial: 1 })
    const feedOn = async (zone: string, ...dates: number[]) => {
      harness.setTime('2026-10-01T00:00:00Z')
      const user = await someone(zone)
      for (const date of dates) {
        harness.setTime(new Date(Date.UTC(2026, 9, date, 12)))
        await event(user, streak)
      }
      return user
    }
    const active = await feedOn('UTC', 5, 6, 7)
    const saved = await feedOn('UTC', 5, 7)
    const frozen = await feedOn('UTC', 4, 5)
    const risky = await feedOn('Asia/Tokyo', 6)
    const lost = await feedOn('UTC', 1, 2, 3)
    harness.setTime('2026-10-07T12:00:00Z')
    const ids = async (status: string) => {
      const list = await project.admin.get(`${streak.admin}/users?status=${status}`)
      expect(list.body.total).toBe(list.data.length)
      return list.data.map((row: { app_user_id: string; status: string }) => {
        expect(row.status).toBe(status)
        return row.app_user_id
      })
    }
    expect((await ids('active')).sort()).toEqual([active.id, saved.id].sort())
    expect(await ids('frozen')).toEqual([frozen.id])
    expect(await ids('broken')).toEqual([lost.id])
    expect(await ids('at_risk')).toEqual([risky.id])
    const page = await project.admin.get(`${streak.admin}/users?limit=2&offset=1`)
    expect(page.body).toMatchObject({ total: 5, limit: 2, offset: 1 })
    expect(page.data.map((row: { app_user_id: string }) => row.app_user_id)).toEqual([saved.id, active.id])
    expect(page.data[0].app_users).toMatchObject({ id: saved.id })
    expect((await project.admin.get(`${streak.admin}/users?status=none`)).error?.code).toBe('INVALID_INPUT')

    expect((await project.admin.get(`${streak.admin}/stats`)).data).toMatchObject({
      ...{ active: 2, at_risk: 1, frozen: 1, broken_7d: 1, saved_by_freeze: 2 },
    })
    const { data } = await project.admin.get(`${streak.admin}/stats`)
    expect(data.freezes_used_7d).toBe(3)
    expect(data.distribution.find(({ bucket }: { bucket: string }) => bucket === '2-6')).toEqual({
      bucket: '2-6',
      users: 3,
    })
  })

  test('other rules are tried on real events without writing', async () => {
    const streak = await define()
    const user = await someone()
    const other = await someone()
    for (const date of [1, 2, 3, 5, 6]) {
      harness.setTime(new Date(Date.UTC(2026, 9, date, 12)))
      await event(user, streak)
      if (date < 3) await event(other, streak)
    }
    const before = await project.sql('select * from app.streak_periods order by 1, 3')
    const simulate = (body: object) => project.admin.post(`${streak.admin}/simulate`, body)
    expect((await simulate({ definition: { freezes_initial: 1 } })).data).toEqual({
      ...{
        users: 2,
        is_estimate: false,
        margin: 0,
        broken_before: 1,
        broken_after: 1,
        median_length_before: 2.5,
        median_length_after: 3.5,
      },
    })
    expect((await simulate({ definition: { min_count: 2 } })).data).toMatchObject({
      users: 2,
      broken_after: 0,
      median_length_after: null,
    })
    expect((await simulate({})).data).toMatchObject({ users: 2, broken_before: 1, broken_after: 1 })
    for (const since of ['2020-01-01T00:00:00Z', '0000-01-01T00:00:00Z', '2026-11-01T00:00:00+23:00'])
      expectRefusal(await simulate({ since }), 400, 'VALIDATION_ERROR', 'since')
    expect((await simulate({ definition: { grace_hours: 99 } })).error?.code).toBe('VALIDATION_ERROR')
    for (const [definition, field] of [
      [{ timezone_mode: 'fixed' }, 'timezone'],
      [{ timezone: 'Europe/Berlin' }, 'timezone'],
      [{ freezes_initial: 3 }, 'freezes_initial'],
    ] as const)
      expect(await simulate({ definition }), JSON.stringify(definition)).toMatchObject({
        status: 400,
        error: { code: 'VALIDATION_ERROR', details: { field } },
      })
    expect(await project.sql('select * from app.streak_periods order by 1, 3')).toEqual(before)
  })
})

describe('who may', () => {
  const tables = [
    'streak_definitions',
    'user_streaks',
    'streak_periods',
    'streak_pauses',
    'streak_freezes',
    'streak_milestones',
    'streak_timezones',
  ]
  /** Rows that a role sees, or the error that it gets, for each table. */
  const seen = async (
    own: Project,
    role: 'app_user' | 'app_admin' | 'app_anon' | 'app_server',
    userId: string,
    table: string,
  ) =>
    own
      .as(
        role,
        { 'app.user_id': userId, 'app.caller': role === 'app_admin' ? 'developer' : 'user' },
        `select * from app.${table}`,
      )
      .then((rows) => rows.length)
      .catch((error: { code: string }) => error.code)

  test('see which rows: own ones, all of them, or none', async () => {
    const own = await harness.project()
    for (const key of ['on', 'off'])
      await own.admin.post('/streaks', { key, name: key, qualifying_event: 'x', freezes_max: 5 })
    const users = [await own.user(), await own.user()]
    for (const { id } of users) {
      await own.onBehalfOf(id).post('/client/events', { event_name: 'x' })
      await own.admin.post(`/streaks/on/users/${id}/freezes`, { amount: 1 })
      await own.sql(`update app.users set timezone = 'Asia/Tokyo' where id = $1`, [id])
      await own.sql(
        `insert into app.streak_milestones select internal.new_id(), app_user_id, streak_definition_id, 1, current_date, now() from app.user_streaks where app_user_id = $1 limit 1`,
        [id],
      )
      const tomorrow = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10)
      await own.onBehalfOf(id).put('/client/streaks/on/pause', { start: tomorrow, end: tomorrow })
    }
    await own.admin.patch('/streaks/off', { is_active: false })
    const matrix: Record<string, unknown[]> = {}
    for (const table of tables) {
      matrix[table] = await Promise.all(
        (['app_user', 'app_admin', 'app_anon', 'app_server'] as const).map((role) =>
          seen(own, role, users[0]!.id, table),
        ),
      )
    }
    expect(matrix).toEqual({
      streak_definitions: [1, 2, '42501', '42501'],
      user_streaks: [2, 4, '42501', '42501'],
      streak_periods: [2, 4, '42501', '42501'],
      streak_pauses: [1, 2, '42501', '42501'],
      streak_freezes: [1, 2, '42501', '42501'],
      streak_milestones: ['42501', 2, '42501', '42501'],
      streak_timezones: [1, 2, '42501', '42501'],
    })
  })

  test('write nothing but definitions, and those only as administrators', async () => {
    const user = await project.user()
    for (const role of ['app_user', 'app_admin', 'app_server', 'app_worker'] as const) {
      for (const table of tables.slice(1)) {
        for (const statement of [
          `delete from app.${table}`,
          `update app.${table} set app_user_id = app_user_id`,
          `insert into app.${table} default values`,
        ]) {
          await expect(project.as(role, { 'app.user_id': user.id }, statement)).rejects.toMatchObject({ code: '42501' })
        }
      }
      if (role !== 'app_admin') {
        await expect(project.as(role, {}, 'delete from app.streak_definitions')).rejects.toMatchObject({
          code: '42501',
        })
      }
    }
    for (const call of [
      `internal.streaks_count(null)`,
      `internal.reward__freezes(null, null, null, null)`,
      `internal.streak_refold(null, null)`,
    ]) {
      await expect(project.as('app_user', { 'app.user_id': user.id }, `select ${call}`)).rejects.toMatchObject({
        code: '42501',
      })
    }
  })

  test('move which streaks: their own', async () => {
    const streak = await define()
    const [user, other] = [await project.user(), await project.user()]
    await event(user, streak)
    expect((await see(other, streak)).status).toBe('none')
    // what the route would never pass, tried past it
    const call = (claims: Record<string, string>) =>
      project.as('app_user', claims, `select internal.streak_pause_set($1, $2, '2099-01-01', '2099-01-02')`, [
        user.id,
        streak.id,
      ])
    await expect(call({ 'app.user_id': other.id, 'app.caller': 'user' })).rejects.toThrow('not by user')
    await expect(call({ 'app.user_id': user.id, 'app.caller': 'client_key' })).rejects.toThrow('not by client_key')
  })

  test('each route refuses who must not call it', async () => {
    const routes = (await loadAreas()).find(({ stem }) => stem === 'streaks')!.routes
    const stranger = await harness.developer()
    const user = await project.user()
    for (const { method, path, example = {} } of routes) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : example
      const at = (id: string, userId: string = randomUUID()) =>
        path.replace(':projectId', id).replace(':idOrKey', 'unknown').replace(':userId', userId)
      const codes = async (client: Client, where: string) => (await client.request(method, where, body)).error?.code
      if (path.startsWith('/client')) {
        expect(await codes(harness.anyone, at(''))).toBe('UNAUTHORIZED')
        expect(await codes(project.app, at(''))).toBe('UNAUTHORIZED')
        expect(await codes(project.onBehalfOf(randomUUID()), at(''))).toBe('USER_NOT_FOUND')
        if (path.includes(':idOrKey')) expect(await codes(user, at(''))).toBe('STREAK_NOT_FOUND')
      } else {
        expect(await codes(harness.anyone, at(project.id))).toBe('INVALID_DEVELOPER_TOKEN')
        expect(await codes(stranger, at(project.id))).toBe('PROJECT_FORBIDDEN')
        expect(await codes(stranger, at(randomUUID()))).toBe('NOT_FOUND')
        if (path.includes(':idOrKey')) expect(await codes(project.developer, at(project.id))).toBe('STREAK_NOT_FOUND')
        if (path.includes(':userId'))
          expect(await codes(project.developer, at(project.id, 'nobody'))).toBe('INVALID_ID')
        if (body)
          expect((await project.developer.request(method, at(project.id), '[]')).error?.code).toBe('INVALID_BODY')
      }
    }
    const streak = await define()
    for (const [what, body] of Object.entries({
      qualify: {},
      freezes: { amount: 1 },
      restore: {},
      pause: { start: '2099-01-01', end: '2099-01-01' },
    })) {
      const answer = await project.admin.post(`${streak.admin}/users/${randomUUID()}/${what}`, body)
      expect([what, answer.status, answer.error?.code]).toEqual([what, 404, 'NOT_FOUND'])
    }
  })
})
