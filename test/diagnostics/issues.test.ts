import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { diagnosticsOf } from '#test/support/diagnostics.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startWebhooks } from '#test/support/webhooks.ts'

const { start, harness, project, receiver, watch } = await startWebhooks()
const { send, issues, only, reportsOf, set, clear } = diagnosticsOf(project)
afterEach(clear)

const groups = async (...stacks: readonly string[]) => {
  await send(stacks.map((stack) => ({ stack, message: Math.random().toString() })))
  const found = (await issues()).length
  await clear()
  return found
}

describe('grouping', () => {
  const v8 = (build: string, line: number, fifth = 'e') =>
    ['Error: x', ...['a', 'b', 'c', 'd', fifth, `${line}`].map((f) => `    at ${f} (${build}/main.js:${line}:7)`)].join(
      '\n',
    )
  const swift = (address: string, offset: number) =>
    [1, 2, 3, 4, 5].map((n) => `${n}   App   0x${address}${n} $s3App4view + ${offset}`).join('\n')
  const gecko = (folder: string, line: number) => `f@https://x.io/${folder}/a.js?v=${line}:${line}:1\ng@b.js:${line}`

  test('takes the same code in another build, folder and line for one', async () => {
    expect(await groups(v8('https://x.io/1', 1), v8('https://y.io/a/b', 22), v8('C:\\app', 3))).toBe(1)
    expect(await groups(swift('00af', 12), swift('ffff', 7))).toBe(1)
    expect(await groups(gecko('v1', 1), gecko('v2/x', 20))).toBe(1)
    expect(await groups('at a.b.C.d(C.kt:12)', '\tat a.b.C.d(C.kt:99)')).toBe(1)
  })

  test('takes another function, file or order for another; the sixth frame and the message do not count', async () => {
    expect(await groups(v8('/', 1), v8('/', 1, 'other'))).toBe(2)
    expect(await groups('at f (/a.js:1)', 'at f (/b.js:1)')).toBe(2)
    expect(await groups('at f (a)\nat g (a)', 'at g (a)\nat f (a)')).toBe(2)
    expect(await groups(`${v8('/', 1)}\n at sixth`, `${v8('/', 9)}\n at another`)).toBe(1)
    expect(await groups('at f1 (a)', 'at f2 (a)')).toBe(2)
  })

  test('without a frame is by the message, without its numbers, ids and hexadecimal texts', async () => {
    const message = (n: number) => `User ${n} of ${randomUUID()} at 0x${n}deadbeef took ${n}.5 s`
    await send([{ message: message(1) }, { message: message(22), stack: 'no frame' }])
    expect((await only()).count).toBe(2)
    await send([{ message: 'Another' }, { message: message(3), kind: 'crash' }])
    expect(await issues()).toHaveLength(3)
  })

  test('by a sent fingerprint is across kinds', async () => {
    await send([
      { fingerprint: 'mine', stack: 'at a (b)' },
      { fingerprint: 'mine', kind: 'crash', message: 'Other' },
    ])
    expect(await only()).toMatchObject({ fingerprint: 'mine', count: 2 })
  })

  test('of stacks made to be slow takes no time', async () => {
    const slow = [
      `at ${'/'.repeat(32_000)}`,
      `at ${':1'.repeat(16_000)}`,
      `@${'0x'.repeat(16_000)}`,
      ' + 1'.repeat(8000),
    ]
    const more = [' '.repeat(32_700), `at ${'a'.repeat(32_000)}`, '@\n'.repeat(16_000), '0'.repeat(32_000)]
    const before = performance.now()
    await send([...slow, ...more].map((stack) => ({ stack, message: 'a'.repeat(4000) })))
    await send({ message: '0-'.repeat(2000) })
    expect(performance.now() - before).toBeLessThan(2000)
  })
})

describe('an issue', () => {
  test('has a title of one line, whatever was sent', async () => {
    await send({ message: '\u202eab\tc\r\nmore', fingerprint: 'line' })
    expect(await only()).toMatchObject({ title: ' ab c' })
  })

  test('has the title of its first report, the highest level, and the times and versions of all', async () => {
    await send({
      message: `${'t'.repeat(201)}\nmore`,
      fingerprint: 'a',
      level: 'warn',
      occurred_at: '2026-11-30T10:00:00Z',
      app_version: '1.10',
    })
    await send([
      { message: 'second', fingerprint: 'a', level: 'fatal', occurred_at: '2026-11-29T10:00:00Z', app_version: '1.9' },
      { message: 'third', fingerprint: 'a', level: 'info', app_version: 'nightly' },
      { message: 'fourth', fingerprint: 'a', app_version: '1.10-beta' },
      { message: 'fifth', fingerprint: 'a', app_version: '1.10+7' },
    ])
    const issue = await only()
    expect(issue).toEqual({
      id: issue.id,
      fingerprint: 'a',
      title: 't'.repeat(200),
      level: 'fatal',
      first_seen: '2026-11-29T10:00:00.000Z',
      last_seen: start,
      count: 5,
      users: 0,
      status: 'open',
      app_versions: ['1.9', '1.10-beta', '1.10', '1.10+7', 'nightly'],
      version_counts: { '1.9': 1, '1.10-beta': 1, '1.10': 1, '1.10+7': 1, nightly: 1 },
      day_counts: { '2026-11-29': 1, '2026-11-30': 1, '2026-12-01': 3 },
    })
    const one = await project.admin.get(`/diagnostics/issues/${issue.id}`)
    expect(one.data).toEqual(issue)
    expectRefusal(await project.admin.get(`/diagnostics/issues/${randomUUID()}`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.get('/diagnostics/issues/x'), 400, 'INVALID_ID')
  })

  test('counts at most 200 versions, and days of 30', async () => {
    for (let n = 0; n < 5; n += 1) {
      await send(Array.from({ length: 50 }, (_, k) => ({ app_version: `${n}.${k}` })))
      await project.sql('delete from app.rate_limits')
    }
    await send({ app_version: '0.0', occurred_at: '2026-10-01T00:00:00Z' })
    const issue = await only()
    expect(issue).toMatchObject({ count: 251, version_counts: { '0.0': 2 } })
    expect(issue.app_versions).toHaveLength(200)
    expect(Object.keys(issue.day_counts)).toEqual(['2026-12-01'])
  })

  test.each([
    ['1.9', '1.10', true],
    ['388.0.8', '388.0.6', false],
    ['1.0', '1.0.0', false],
    ['1', '1.0.0.1', true],
    ['3.25.47', '3.25.47.22', true],
    ['2.0-beta', '2.0', true],
    ['2.0', '2.0-beta', false],
    ['2.0-beta.2', '2.0-beta.10', true],
    ['2.0+9', '2.0+10', true],
    ['2.0+10', '2.0+9', false],
    ['2.0', 'nightly', false],
    ['2.0', null, false],
    [null, '0.1', true],
    ['nightly', '0.1', true],
    [null, null, false],
    [null, 'nightly', false],
  ])('resolved with %s opens by %s: %s', async (had, app_version, opens) => {
    await send({ app_version: had })
    const { id } = await only()
    expect(await set(id, 'resolved')).toMatchObject({ status: 'resolved', count: 1 })
    await send({ app_version })
    expect(await only()).toMatchObject({ status: opens ? 'open' : 'resolved', count: 2 })
  })

  test('has any status after any other; an ignored one only counts', async () => {
    await send({ app_version: '1' })
    const { id } = await only()
    for (const status of ['ignored', 'resolved', 'open', 'open', 'resolved', 'resolved', 'ignored'])
      expect((await set(id, status)).status).toBe(status)
    await send({ app_version: '2' })
    expect(await only()).toMatchObject({ status: 'ignored', count: 2 })
    const bad = await project.admin.patch(`/diagnostics/issues/${id}`, { status: 'closed' })
    expectRefusal(bad, 400, 'VALIDATION_ERROR')
    expect(bad.error?.details.field).toBe('status')
    const other = await project.admin.patch(`/diagnostics/issues/${id}`, { status: 'open', title: 'Mine', count: 0 })
    expect(other.data).toMatchObject({ status: 'open', title: 'Broken', count: 2 })
    expectRefusal(
      await project.admin.patch(`/diagnostics/issues/${randomUUID()}`, { status: 'open' }),
      404,
      'NOT_FOUND',
    )
    const [{ n }] = await project.sql(`select count(*)::int as n from app.audit_events where target_id = $1`, [id])
    expect(n).toBe(6)
  })

  test('is listed by last seen, and by status, level and version', async () => {
    await send({ fingerprint: 'a', level: 'fatal', app_version: '1', occurred_at: '2026-11-01T00:00:00Z' })
    await send({ fingerprint: 'b', level: 'warn', app_version: '1', occurred_at: '2026-11-03T00:00:00Z' })
    await send({ fingerprint: 'c', level: 'warn', app_version: '2', occurred_at: '2026-11-02T00:00:00Z' })
    const names = async (query = '') => (await issues(query)).map(({ fingerprint }) => fingerprint).join('')
    expect(await names()).toBe('bca')
    expect(await names('?level=warn')).toBe('bc')
    expect(await names('?app_version=1')).toBe('ba')
    expect(await names('?app_version=1&level=warn')).toBe('b')
    expect(await names('?app_version=3')).toBe('')
    const versions = 'select app_version, count(*)::int as n from app.diagnostic_issue_versions group by 1 order by 1'
    expect(await project.sql(versions)).toEqual([
      { app_version: '1', n: 2 },
      { app_version: '2', n: 1 },
    ])
    expect(await names('?status=open&limit=1&offset=1')).toBe('c')
    await set((await issues('?app_version=2'))[0].id, 'resolved')
    expect(await names('?status=resolved')).toBe('c')
    const page = await project.admin.get('/diagnostics/issues?level=warn&limit=1')
    expect(page.body).toMatchObject({ total: 2, offset: 0, limit: 1 })
    for (const query of ['status=closed', 'level=bad'])
      expectRefusal(await project.admin.get(`/diagnostics/issues?${query}`), 400, 'INVALID_INPUT')
  })

  test('has its reports by their time, newest first, in pages', async () => {
    await send([3, 1, 2].map((day) => ({ occurred_at: `2026-11-0${day}T00:00:00.000Z`, context: { day } })))
    const { id } = await only()
    expect((await reportsOf(id)).map(({ context }) => context.day)).toEqual([3, 2, 1])
    const first = await project.admin.get(`/diagnostics/issues/${id}/reports?limit=2`)
    const { next_cursor } = first.body.pagination
    const rest = await project.admin.get(`/diagnostics/issues/${id}/reports?limit=2&cursor=${next_cursor}`)
    expect(rest.data.map(({ context }: any) => context.day)).toEqual([1])
    expectRefusal(await project.admin.get(`/diagnostics/issues/${id}/reports?cursor=x`), 400, 'INVALID_INPUT')
    expectRefusal(await project.admin.get(`/diagnostics/issues/${randomUUID()}/reports`), 404, 'NOT_FOUND')
  })

  test('is of its project alone', async () => {
    await send({})
    const { id } = await only()
    const other = await harness.project()
    expectRefusal(await other.admin.get(`/diagnostics/issues/${id}`), 404, 'NOT_FOUND')
    const { developer } = other
    const path = `/admin/projects/${project.id}/diagnostics/issues`
    expectRefusal(await developer.get(path), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await project.server.get(path), 401, 'INVALID_DEVELOPER_TOKEN')
    for (const role of ['app_user', 'app_anon', 'app_server'] as const)
      await expect(project.as(role, {}, 'select from app.diagnostic_issues')).rejects.toThrow(/permission denied/)
  })
})

describe('many at once', () => {
  test('make one issue, one event, and write the row of the issue once a batch', async () => {
    await watch({ event_name: 'svc.diagnostics.issue_opened' })
    const users = await Promise.all(Array.from({ length: 20 }, () => project.user()))
    await Promise.all(users.flatMap((user) => [1, 2, 3].map(() => send(Array(10).fill({ app_version: '1' }), user))))
    expect(await only()).toMatchObject({ count: 600, users: 20, version_counts: { '1': 600 } })
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    const { id } = await only()
    const updates = async () => {
      const [{ n }] = await project.sql('select count(*)::int as n from app.times_written')
      return n
    }
    await project.sql('create table app.times_written (id uuid)')
    await project.sql(`create function app.note_write() returns trigger language plpgsql security definer as
      'begin insert into app.times_written values (new.id); return null; end'`)
    await project.sql(
      'create trigger note_write after update on app.diagnostic_issues for each row execute function app.note_write()',
    )
    await send(Array(40).fill({ app_version: '1' }), users[0])
    expect(await updates()).toBe(1)
    await project.sql('drop trigger note_write on app.diagnostic_issues')
    await project.sql('drop function app.note_write; drop table app.times_written')
    expect((await project.admin.get(`/diagnostics/issues/${id}`)).data.count).toBe(640)
  })

  test('with several issues in any order never deadlock', async () => {
    const names = Array.from({ length: 10 }, (_, n) => `f${n}`)
    const users = await Promise.all(Array.from({ length: 10 }, () => project.user()))
    await Promise.all(
      users.flatMap((user, n) =>
        [0, 1].map((turn) =>
          send(
            (n + turn) % 2
              ? names.map((fingerprint) => ({ fingerprint }))
              : names.toReversed().map((fingerprint) => ({ fingerprint })),
            user,
          ),
        ),
      ),
    )
    expect((await issues()).map(({ count, users: met }) => [count, met])).toEqual(Array(10).fill([20, 10]))
  })
})

describe('webhooks', () => {
  const told = async () => {
    await project.drain()
    return receiver.requests.splice(0).map(({ body }) => JSON.parse(String(body)))
  }

  test('hear when an issue is made and when it opens again by itself, never of PATCH', async () => {
    await watch({ event_name: 'svc.diagnostics.issue_opened' })
    await watch({ event_name: 'svc.diagnostics.issue_regressed' })
    const user = await project.user()
    await send([{ app_version: '1.0', fingerprint: 'f', kind: 'crash' }, { fingerprint: 'f' }], user)
    await send({ fingerprint: 'f' })
    const { id } = await only()
    const [opened, ...more] = await told()
    expect(more).toEqual([])
    expect(opened.data).toMatchObject({
      user: { id: user.id },
      event: {
        event_name: 'svc.diagnostics.issue_opened',
        properties: {
          issue_id: id,
          fingerprint: 'f',
          title: 'Broken',
          level: 'error',
          kind: 'crash',
          app_version: '1.0',
        },
      },
    })
    await set(id, 'resolved')
    await set(id, 'open')
    await set(id, 'resolved')
    await send({ fingerprint: 'f', app_version: '1.0' })
    expect(await told()).toEqual([])
    await Promise.all(Array.from({ length: 8 }, () => send({ fingerprint: 'f', app_version: '1.1' })))
    const regressed = await told()
    expect(regressed).toHaveLength(1)
    expect(regressed[0].data).toMatchObject({
      user: null,
      event: { event_name: 'svc.diagnostics.issue_regressed', properties: { issue_id: id, app_version: '1.1' } },
    })
    // streaks and counters of the user see nothing of it
    expect(await project.sql(`select from app.engagement_events where event_name like 'svc.diagnostics%'`)).toEqual([])
    await set(id, 'resolved')
    await send({ fingerprint: 'f', app_version: '1.2' })
    expect(await told()).toHaveLength(1)
  })
})

describe('health', () => {
  test('has numbers', async () => {
    const { status, data } = await project.admin.get('/diagnostics/health')
    expect(status).toBe(200)
    expect(data).toMatchObject({
      database: { ok: true, latency_ms: expect.any(Number), schema_version: expect.stringMatching(/^\d+$/) },
      storage_ok: true,
      realtime_connections: 0,
    })
    await project.sql(`insert into app.outbox (task, due_at) values ('webhooks__deliver', '2026-12-01T09:00:00Z')`)
    const later = (await project.admin.get('/diagnostics/health')).data
    expect(later.queue_lag_seconds).toBe(3600)
    expect(later.outbox_pending).toBe(data.outbox_pending + 1)
  })
})
