import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startStreaks } from '#test/support/streaks.ts'

const { harness, project, define, someone, event, see } = await startStreaks()

describe('definitions', () => {
  test('a change that no definition may have is refused and changes nothing', async () => {
    const streak = await define()
    const before = (await project.admin.get(streak.admin)).data
    for (const [field, value] of Object.entries({
      min_count: 0,
      grace_hours: 49,
      freezes_max: 101,
      timezone: 'Nowhere/At_All',
      name: '',
      event_filter: { column: 'a' },
    })) {
      const answer = await project.admin.patch(streak.admin, { [field]: value })
      expect(answer, field).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR', details: { field } } })
    }
    expect((await project.admin.get(streak.admin)).data).toEqual(before)
  })

  test('are made with defaults, read by key and id, changed, listed and deleted', async () => {
    const body = { key: 'reading', name: 'Reading', qualifying_event: 'page_read' }
    const created = await project.admin.post('/streaks', body)
    expect(created.status).toBe(201)
    expect(created.data).toMatchObject({
      ...body,
      ...{
        description: null,
        event_filter: null,
        period: 'day',
        min_count: 1,
        week_starts_on: 1,
        timezone_mode: 'user',
      },
      ...{ timezone: null, grace_hours: 0, freezes_initial: 0, freezes_max: 2, freeze_earn_every: 0, at_risk_hours: 6 },
      ...{ restore_window_hours: 48, milestones: [], allow_client_qualify: true, is_active: true },
    })
    const { id } = created.data
    expect((await project.admin.get('/streaks/reading')).data.id).toBe(id)
    expect((await project.admin.get(`/streaks/${id}`)).data.key).toBe('reading')

    const filter = { column: 'minutes', op: 'gte', value: 5 }
    const patched = await project.admin.patch('/streaks/reading', {
      min_count: 3,
      event_filter: filter,
      key: 'other',
      nonsense: 1,
    })
    expect(patched.data).toMatchObject({ key: 'reading', min_count: 3, event_filter: filter })
    expect((await project.admin.patch('/streaks/reading', {})).data).toEqual(patched.data)
    expect((await project.admin.patch('/streaks/reading', { event_filter: null, period: 'month' })).data).toMatchObject(
      {
        event_filter: null,
        at_risk_hours: 72,
      },
    )

    const list = await project.admin.get('/streaks?limit=1')
    expect(list.body).toMatchObject({ data: [{ id }], limit: 1, offset: 0 })
    expect((await project.admin.delete('/streaks/reading')).data).toEqual({ deleted: true })
    expect((await project.admin.delete('/streaks/reading')).error?.code).toBe('STREAK_NOT_FOUND')
    const audit = await project.sql(
      `select action, changes from app.audit_events where target_id = $1 order by position`,
      [id],
    )
    expect(audit.map(({ action }) => action)).toEqual([
      'streaks.create',
      'streaks.update',
      'streaks.update',
      'streaks.delete',
    ])
    expect(audit[1].changes).toMatchObject({ min_count: [1, 3] })
  })

  test.each([
    ['key', { key: 'Daily' }],
    ['key', { key: `a${'b'.repeat(128)}` }],
    ['name', { name: '' }],
    ['qualifying_event', { qualifying_event: ' padded' }],
    ['qualifying_event', { qualifying_event: '' }],
    ['period', { period: 'year' }],
    ['min_count', { min_count: 0 }],
    ['min_count', { min_count: 1.5 }],
    ['week_starts_on', { week_starts_on: 8 }],
    ['timezone_mode', { timezone_mode: 'server' }],
    ['timezone', { timezone_mode: 'fixed' }],
    ['timezone', { timezone_mode: 'fixed', timezone: 'Europe/Atlantis' }],
    ['timezone', { timezone: 'Europe/Berlin' }],
    ['grace_hours', { grace_hours: 49 }],
    ['freezes_initial', { freezes_initial: 3 }],
    ['freezes_max', { freezes_max: 101 }],
    ['freeze_earn_every', { freeze_earn_every: -1 }],
    ['at_risk_hours', { at_risk_hours: 1001 }],
    ['restore_window_hours', { restore_window_hours: -1 }],
    ['event_filter', { event_filter: { column: 'a', op: 'near', value: 1 } }],
    [
      'milestones',
      {
        milestones: [
          { count: 3, reward: {} },
          { count: 3, reward: {} },
        ],
      },
    ],
    ['milestones.0.count', { milestones: [{ count: 0, reward: {} }] }],
    ['milestones.0.reward', { milestones: [{ count: 3 }] }],
  ])('with a bad %s are refused', async (field, change) => {
    const body = { key: 'refused', name: 'Refused', qualifying_event: 'refused', ...change }
    const answer = await project.admin.post('/streaks', body)
    expect(answer.status, answer.text).toBe(400)
    expect(answer.error).toMatchObject({ code: 'VALIDATION_ERROR', details: { field } })
  })

  test('SQL refuses by itself what the server would let through', async () => {
    const streak = await define()
    const bad: [string, string][] = [
      ['{"min_count": "many"}', 'body'],
      ['{"name": null}', 'name'],
      ['{"milestones": {}}', 'milestones'],
      ['{"milestones": [{"count": "x", "reward": {}}]}', 'milestones'],
      ['{"milestones": [{"count": 2, "reward": 1}]}', 'milestones'],
    ]
    for (const [patch, field] of bad) {
      const call = project.as(
        'app_admin',
        { 'app.caller': 'developer' },
        "select r.status from api.definition_update('streak_definition', $1, $2) r",
        [streak.key, patch],
      )
      await expect(call).rejects.toMatchObject({
        code: 'TR000',
        detail: expect.stringContaining(`"field" : "${field}"`),
      })
    }
    const tooFew = project.as(
      'app_admin',
      { 'app.caller': 'developer' },
      "select r.status from api.definition_update('streak_definition', $1, $2) r",
      [streak.key, '{"min_count": 0}'],
    )
    await expect(tooFew).rejects.toMatchObject({ code: '23514', constraint: 'streak_definitions_min_count_1_to_10000' })
  })

  test('keys are unique, unknown ones are 404 with a hint, and a project has 50 at most', async () => {
    const own = await harness.project()
    const body = (key: string) => ({ key, name: key, qualifying_event: key })
    expect((await own.admin.post('/streaks', body('one'))).status).toBe(201)
    expect(await own.admin.post('/streaks', body('one'))).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', details: { field: 'key' } },
    })
    for (const value of ['two', randomUUID()]) {
      const missing = await own.admin.get(`/streaks/${value}`)
      expect(missing).toMatchObject({ status: 404, error: { code: 'STREAK_NOT_FOUND' } })
      expect(missing.error?.details.hint).toContain(value === 'two' ? 'as a key' : 'as an id')
    }
    const rest = await Promise.all(Array.from({ length: 55 }, (_, n) => own.admin.post('/streaks', body(`more-${n}`))))
    expect(rest.filter(({ status }) => status === 201)).toHaveLength(49)
    expect(rest.find(({ status }) => status === 409)?.error?.code).toBe('LIMIT_REACHED')
  })

  test('the period stays once users have the streak', async () => {
    const streak = await define({ period: 'week' })
    expect((await project.admin.patch(streak.admin, { week_starts_on: 7 })).status).toBe(200)
    await event(await someone(), streak)
    expect(await project.admin.patch(streak.admin, { period: 'day' })).toMatchObject({
      status: 409,
      error: { code: 'PERIOD_IMMUTABLE' },
    })
    expect((await project.admin.patch(streak.admin, { week_starts_on: 1 })).error?.code).toBe('PERIOD_IMMUTABLE')
    expect((await project.admin.patch(streak.admin, { period: 'week', min_count: 2 })).status).toBe(200)
  })

  test('changed rules do not rewrite what was counted', async () => {
    const streak = await define()
    const user = await someone()
    harness.setTime('2026-10-05T12:00:00Z')
    await event(user, streak)
    await project.admin.patch(streak.admin, { min_count: 2 })
    expect(await event(user, streak, '2026-10-04T12:00:00Z')).toBeUndefined()
    expect(await see(user, streak)).toMatchObject({ current_count: 1, period: { qualified: true } })
    expect(await event(user, streak, '2026-10-04T13:00:00Z')).toMatchObject({ change: 'extended', current_count: 2 })
  })

  test('what is switched off is not there for apps, and counts nothing', async () => {
    const streak = await define()
    const user = await someone()
    await event(user, streak)
    await project.admin.patch(streak.admin, { is_active: false })
    expect((await user.post(`${streak.client}/qualify`)).error?.code).toBe('STREAK_NOT_FOUND')
    expect((await user.get('/client/streaks?include=all')).data.map(({ key }: { key: string }) => key)).not.toContain(
      streak.key,
    )
    expect(await event(user, streak)).toBeUndefined()
  })
})
