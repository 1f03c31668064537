import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { diagnosticsOf } from '#test/support/diagnostics.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const start = '2026-12-01T10:00:00.000Z'
const harness = await startHarness()
harness.setTime(start)
const project = await harness.project()
const { send, issues, only, reportsOf, set, clear } = diagnosticsOf(project)
afterEach(async () => {
  harness.setTime(start)
  await clear()
})
const post = (body: unknown, client = project.app) => client.post('/client/diagnostics/reports', body as object)
const good = { kind: 'error', level: 'error', message: 'Broken' }

describe('a ping', () => {
  test('tells what the server makes of the key, and is kept nowhere', async () => {
    const answer = await project.app.get('/client/diagnostics/ping')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.data).toEqual({
      server_time: start,
      api_version: '1.0.0',
      project_id: project.id,
      key_type: 'client',
      environment: 'production',
      user_id: null,
      session_expires_at: null,
      request_id: answer.headers.get('x-request-id'),
      min_app_version: null,
    })
  })

  test('knows the session, a server key and its user, and refuses a bad session', async () => {
    const user = await project.user()
    const mine = await user.get('/client/diagnostics/ping')
    const claims = JSON.parse(Buffer.from(user.sessionToken.split('.')[1] ?? '', 'base64url').toString())
    expect(mine.data).toMatchObject({
      user_id: user.id,
      session_expires_at: new Date(claims.exp * 1000).toISOString(),
      key_type: 'client',
    })
    expect((await project.onBehalfOf(user.id).get('/client/diagnostics/ping')).data).toMatchObject({
      user_id: user.id,
      session_expires_at: null,
      key_type: 'server',
    })
    expect((await project.server.get('/client/diagnostics/ping')).data).toMatchObject({ user_id: null })
    const bad = project.app.with({ authorization: 'Bearer nonsense' })
    expectRefusal(await bad.get('/client/diagnostics/ping'), 401, 'UNAUTHORIZED')
    expectRefusal(await post({ reports: [good] }, bad), 401, 'UNAUTHORIZED')
  })

  test('tells min_app_version where it is a text', async () => {
    const user = await project.user()
    const seen = async () => [
      (await project.app.get('/client/diagnostics/ping')).data.min_app_version,
      (await user.get('/client/diagnostics/ping')).data.min_app_version,
    ]
    const put = (value: unknown, value_type: string, more = {}) =>
      project.admin.post('/config', { key: 'min_app_version', value, value_type, ...more })
    await put('2.1', 'string')
    expect(await seen()).toEqual(['2.1', '2.1'])
    await put('2.1', 'string', { conditions: [{ percentage: 100, value: '3.0' }] })
    expect(await seen()).toEqual(['2.1', '3.0'])
    await put(7, 'number')
    expect(await seen()).toEqual([null, null])
  })
})

describe('a batch', () => {
  test('needs only kind, level and message', async () => {
    expect(await send({})).toEqual({ accepted: 1, dropped: 0 })
    const { id } = await only()
    expect(await reportsOf(id)).toEqual([
      {
        ...good,
        id: expect.any(String),
        stack: null,
        context: null,
        occurred_at: start,
        received_at: start,
        app_version: null,
        os_version: null,
        device_model: null,
        app_user_id: null,
      },
    ])
  })

  test.each([
    ['reports[1].level', { level: 'bad' }],
    ['reports[1].level', { level: undefined }],
    ['reports[1].kind', { kind: 'panic' }],
    ['reports[1].message', { message: '' }],
    ['reports[1].message', { message: '\0' }],
    ['reports[1].message', { message: 7 }],
    ['reports[1].stack', { stack: [] }],
    ['reports[1].fingerprint', { fingerprint: '' }],
    ['reports[1].fingerprint', { fingerprint: 'x'.repeat(129) }],
    ['reports[1].context', { context: [] }],
    ['reports[1].context', { context: { a: 'x'.repeat(16_384 - 7) } }],
    ['reports[1].occurred_at', { occurred_at: 'now' }],
    ['reports[1].app_version', { app_version: 1 }],
    ['reports[1].os_version', { os_version: {} }],
    ['reports[1].device_model', { device_model: [] }],
  ])('with one bad item stores nothing: %s %j', async (field, more) => {
    const answer = await post({ reports: [good, { ...good, ...more }] })
    expectRefusal(answer, 400, 'VALIDATION_ERROR')
    expect(answer.error?.details.field).toBe(field)
    expect(await issues()).toEqual([])
  })

  test('has 1 to 50 reports', async () => {
    for (const reports of [undefined, null, {}, 'x', []]) {
      const answer = await post({ reports })
      expectRefusal(answer, 400, 'VALIDATION_ERROR')
      expect(answer.error?.details.field).toBe('reports')
    }
    for (const item of [null, 7, 'x', []])
      expect((await post({ reports: [item] })).error?.details.field).toBe('reports[0]')
    expectRefusal(await post({ reports: Array(51).fill(good) }), 400, 'BATCH_TOO_LARGE')
    expect(await send(Array(50).fill({}))).toEqual({ accepted: 50, dropped: 0 })
  })

  test('is cut where it is long, at a whole character', async () => {
    await send({
      message: `${'x'.repeat(4094)}äöü`,
      stack: `${'y'.repeat(32_767)}€`,
      app_version: '1'.repeat(65),
      os_version: '🙂'.repeat(65),
      device_model: 'a\0b\ud800',
      context: { 'k\0': ['\0v'], fits: 'x'.repeat(16_000) },
      fingerprint: 'f'.repeat(128),
    })
    const { id } = await only()
    const [report] = await reportsOf(id)
    expect(report.message).toBe(`${'x'.repeat(4094)}ä`)
    expect(report.stack).toBe('y'.repeat(32_767))
    expect(report.app_version).toBe('1'.repeat(64))
    expect([...report.os_version]).toHaveLength(64)
    expect(report.device_model).toBe('ab\ufffd')
    expect(report.context).toEqual({ k: ['v'], fits: 'x'.repeat(16_000) })
  })

  test('keeps its time unless it is more than five minutes ahead', async () => {
    const times = ['2026-11-30T10:00:00.000Z', '2026-12-01T10:05:00.000Z', '2026-12-01T10:05:00.001Z']
    await send(times.map((occurred_at) => ({ occurred_at })))
    const { id, first_seen, last_seen } = await only()
    expect((await reportsOf(id)).map((report) => report.occurred_at)).toEqual([times[1], start, times[0]])
    expect([first_seen, last_seen]).toEqual([times[0], times[1]])
  })

  test('of a device has a minute of 100, exactly, whoever asks at once', async () => {
    const [one, other] = await Promise.all([project.user(), project.user()])
    expect(await send(Array(50).fill({}), one)).toEqual({ accepted: 50, dropped: 0 })
    expect(await send(Array(40).fill({}), one)).toEqual({ accepted: 40, dropped: 0 })
    expect(await send(Array(50).fill({}), one)).toEqual({ accepted: 10, dropped: 40 })
    expect(await send({}, one)).toEqual({ accepted: 0, dropped: 1 })
    expect((await only()).count).toBe(100)
    const raced = await Promise.all(Array.from({ length: 20 }, () => send(Array(7).fill({}), other)))
    expect(raced.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(100)
    expect((await only()).count).toBe(200)
    // without a session the address counts, of all keys
    const at = { 'x-forwarded-for': '203.0.113.7' }
    await send(Array(50).fill({}), project.app.with(at))
    await send(Array(50).fill({}), project.server.with(at))
    expect(await send({}, project.app.with(at))).toEqual({ accepted: 0, dropped: 1 })
    expect(await send({})).toEqual({ accepted: 1, dropped: 0 })
    harness.advance(60)
    expect(await send({}, project.app.with(at))).toEqual({ accepted: 1, dropped: 0 })
    expect(await send({}, one)).toEqual({ accepted: 1, dropped: 0 })
  })

  test('of a free project has a day of 10,000', async () => {
    await send({})
    await project.sql(`update app.rate_limits set count = 9998 where key like 'diagnostics day%'`)
    expect(await send(Array(5).fill({}))).toEqual({ accepted: 2, dropped: 3 })
    harness.setTime('2026-12-02T10:00:00.000Z')
    expect(await send({})).toEqual({ accepted: 1, dropped: 0 })
  })

  test('refuses a missing key', async () => {
    expectRefusal(await harness.anyone.post('/client/diagnostics/reports', { reports: [good] }), 401, 'UNAUTHORIZED')
  })

  test('is purged after 30 days, the issue stays', async () => {
    await send({ occurred_at: '2020-01-01T00:00:00.000Z' })
    const purged = async (at: string) =>
      (await project.as('app_worker', { 'app.clock': at }, 'select internal.purge__diagnostics(100) as n'))[0].n
    expect(Number(await purged('2026-12-31T10:00:00.000Z'))).toBe(0)
    expect(Number(await purged('2026-12-31T10:00:00.001Z'))).toBe(1)
    const { id, count } = await only()
    expect(count).toBe(1)
    expect(await reportsOf(id)).toEqual([])
  })
})

describe('a user', () => {
  test('has their reports in the export; they stay without the user when the user goes', async () => {
    const [one, other] = await Promise.all([project.user(), project.user()])
    await send([{}, {}], one)
    await send({}, other)
    const { id, users } = await only()
    expect(users).toBe(2)
    const exported = await project.admin.get(`/users/${one.id}/export`)
    expect(exported.text).toContain('Broken')
    expect((await project.admin.delete(`/users/${one.id}`)).status).toBeLessThan(300)
    await project.drain()
    expect((await reportsOf(id)).map((report) => report.app_user_id).sort()).toEqual([other.id, null, null].sort())
    expect((await only()).count).toBe(3)
  })

  test('who is merged into another counts once', async () => {
    const [one, other] = await Promise.all([project.user(), project.user()])
    await send({ fingerprint: 'both' }, one)
    await send([{ fingerprint: 'both' }, { fingerprint: 'theirs' }], other)
    const [{ n }] = await project.sql('select internal.merge__diagnostic_issue_users($1, $2) as n', [one.id, other.id])
    expect(n).toBe(1)
    expect((await issues()).map((issue) => issue.users)).toEqual([1, 1])
    expect(await project.sql('select from app.diagnostic_issue_users where app_user_id = $1', [other.id])).toEqual([])
  })

  test('whose account is merged into another by the route counts once, and brings the reports along', async () => {
    const survivor = await project.user()
    const guest = await project.user()
    await send({ fingerprint: 'both' }, survivor)
    await send([{ fingerprint: 'both' }, { fingerprint: 'theirs' }], guest)
    const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    const found = await issues()
    expect(found.map((issue) => [issue.count, issue.users]).sort()).toEqual([
      [1, 1],
      [2, 1],
    ])
    for (const { id } of found)
      expect((await reportsOf(id)).every((report) => report.app_user_id === survivor.id)).toBe(true)
    // the merged user's next report is the survivor's
    await send({ fingerprint: 'theirs' }, survivor)
    expect((await issues()).map((issue) => issue.users)).toEqual([1, 1])
  })
})

describe('a report with an id', () => {
  const id = () => randomUUID()

  test('counts once, however often it comes', async () => {
    const user = await project.user()
    const [one, two] = [id(), id()]
    const first = [{ id: one }, { id: one.toUpperCase() }, { id: two, app_version: '2' }, {}]
    expect(await send(first, user)).toEqual({ accepted: 4, dropped: 0 })
    expect(await only()).toMatchObject({ count: 3, users: 1, version_counts: { 2: 1 } })
    expect(await send([{ id: two, app_version: '2' }, { id: one }], user)).toEqual({ accepted: 2, dropped: 0 })
    const issue = await only()
    expect(issue).toMatchObject({ count: 3, version_counts: { 2: 1 } })
    expect((await reportsOf(issue.id)).map((report) => report.id)).toEqual(expect.arrayContaining([one, two]))
  })

  test('that comes twice at once counts once, for a user and for an address', async () => {
    const user = await project.user()
    const app = project.app.with({ 'x-forwarded-for': '10.9.8.7' })
    for (const client of [user, app]) {
      const reports = Array.from({ length: 5 }, () => ({ id: id() }))
      const answers = await meetingBehind(project.database, 'lock table app.rate_limits in share mode', () =>
        Array.from({ length: 4 }, () => send(reports, client)),
      )
      expect(answers).toEqual(Array(4).fill({ accepted: 5, dropped: 0 }))
      expect((await only()).count).toBe(5)
      await clear()
    }
  })

  test('opens no resolved issue a second time', async () => {
    const user = await project.user()
    const report = { id: id(), app_version: '2' }
    await send({ app_version: '1' }, user)
    await set((await only()).id, 'resolved')
    await send(report, user)
    await set((await only()).id, 'resolved')
    await send(report, user)
    expect(await only()).toMatchObject({ status: 'resolved', count: 2 })
  })

  test('that is no uuid is a report without one', async () => {
    await send([{ id: 'mine' }, { id: 7 }, { id: null }])
    expect((await only()).count).toBe(3)
  })
})
