import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { sealControl } from '#workers/seal.ts'

/** A pooler keeps its connections to a database that takes no new ones, so none goes away behind it. */
const isPooled = process.env['DATABASE_STATEMENTS'] === 'unnamed'
const harness = await startHarness()
const project = await harness.project()
const path = '/audit-events'
afterEach(() => harness.setTime(null))

const claims = { 'app.caller': 'developer', 'app.developer_id': project.developer.id }
const list = async (query = '', of: Project = project) => {
  const answer = await of.admin.get(`${path}?${query}`)
  expect(answer.status, answer.text).toBe(200)
  return answer.body as { data: any[]; pagination: { next_cursor: string | null; total: null } }
}
/** Every page of a list. */
const all = async (query = '', limit = 200) => {
  const found: any[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await list(`${query}&limit=${limit}${cursor ? `&cursor=${cursor}` : ''}`)
    found.push(...page.data)
    cursor = page.pagination.next_cursor
  }
  return found
}
/** Whole hours from now on: a trail never goes back in time. */
const began = new Date(Math.ceil(Date.now() / 1000) * 1000)
const hour = (n: number) => new Date(began.getTime() + n * 3600_000).toISOString()
/** Nothing connects to a project's database any more. */
const shut = async (of: Project) => {
  const { control, database } = harness.running.services
  await harness.control(`alter database "${of.database}" with allow_connections false`)
  await database.pools.forget(`${control.cluster.id}/${of.database}`)
}
/** Seals what waits in both places. */
const seal = async (of: Project) => {
  await of.drain()
  await sealControl(harness.running.services)
}
const webhook = (event_name: string, of: Project = project) =>
  of.admin.post('/webhooks', { event_name, target_url: 'https://1.1.1.1/' })

describe('the list', () => {
  test('has a change of the project itself and one inside it, newest first, in full', async () => {
    const other = await harness.project()
    const headers = { 'x-request-id': 'list-1', 'user-agent': 'console/2', 'x-forwarded-for': '10.9.8.7' }
    await other.developer.patch(`/admin/projects/${other.id}`, { name: 'renamed' }, headers)
    const made = await webhook('paid', other)
    const { data, pagination } = await list('', other)
    expect(pagination).toEqual({ next_cursor: null, total: null })
    const actor = { type: 'developer', id: other.developer.id, label: null }
    expect(data[0]).toMatchObject({
      actor,
      action: 'webhooks.create',
      target: { type: 'webhooks', id: made.data.id },
      status: 201,
    })
    expect(data[1]).toEqual({
      id: expect.any(String),
      occurred_at: expect.any(String),
      actor,
      action: 'projects.update',
      target: { type: 'projects', id: other.id },
      changes: { name: ['test', 'renamed'] },
      ip: '10.9.8.7',
      user_agent: 'console/2',
      request_id: 'list-1',
      status: 200,
    })
    expect(data.slice(2).map(({ action }) => action)).toEqual(['api_keys.create', 'api_keys.create', 'projects.create'])
    expect(JSON.stringify(data)).not.toMatch(new RegExp(other.serverKey))
  })

  test('pages through both places in one order, each row once, while more is written', async () => {
    for (let n = 0; n < 6; n += 1) {
      await webhook(`paged_${n}`)
      await project.developer.patch(`/admin/projects/${project.id}`, { name: `name ${n}` })
    }
    const whole = await all()
    const found: any[] = []
    for (let cursor: string | null = '', n = 0; cursor !== null; n += 1) {
      const page = await list(`limit=3${cursor ? `&cursor=${cursor}` : ''}`)
      expect(page.data.length).toBeLessThanOrEqual(3)
      found.push(...page.data)
      cursor = page.pagination.next_cursor
      await webhook(`meanwhile_${n}`)
    }
    expect(found).toEqual(whole)
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length)
    const times = found.map(({ occurred_at }) => occurred_at)
    expect(times).toEqual([...times].sort().reverse())
  })

  test('says no next page when the last row is the last', async () => {
    const count = (await all()).length
    expect((await list(`limit=${count}`)).pagination.next_cursor).toBeNull()
    expect((await list(`limit=${count - 1}`)).pagination.next_cursor).toEqual(expect.any(String))
  })

  test('has 50 unless asked, 200 at most', async () => {
    const many = await harness.project()
    await many.sql(
      `select internal.audit('test.many', 'tests', n::text) from generate_series(1, 230) n,
              set_config('app.actor', $1, true)`,
      [JSON.stringify({ type: 'pat', id: 'p', label: 'my token' })],
    )
    expect((await list('', many)).data).toHaveLength(50)
    expect((await list('limit=200', many)).data).toHaveLength(200)
    expect((await list('limit=5000', many)).data).toHaveLength(200)
    expect((await list('action=test.', many)).data[0]).toMatchObject({
      actor: { type: 'pat', id: 'p', label: 'my token' },
      target: { type: 'tests', id: '230' },
    })
  })

  test('is narrowed by actor, beginning of action, target and time, and by all of them together', async () => {
    const own = await harness.project()
    harness.setTime(hour(1))
    const { data: first } = await webhook('first', own)
    harness.setTime(hour(2))
    const { data: second } = await webhook('second', own)
    await own.admin.delete(`/webhooks/${first.id}`)
    harness.setTime(hour(3))
    await own.developer.patch(`/admin/projects/${own.id}`, { name: 'x' })
    const actions = async (query: string) => (await list(query, own)).data.map(({ action }) => action)
    expect(await actions('action=webhooks')).toEqual(['webhooks.delete', 'webhooks.create', 'webhooks.create'])
    expect(await actions('action=webhooks.d')).toEqual(['webhooks.delete'])
    expect(await actions('action=ebhooks')).toEqual([])
    expect(await actions('action=webhooks%25')).toEqual([])
    expect(await actions('target_type=projects')).toEqual(['projects.update', 'projects.create'])
    expect(await actions(`target_id=${first.id}`)).toEqual(['webhooks.delete', 'webhooks.create'])
    expect(await actions(`target_id=${second.id}&action=webhooks.delete`)).toEqual([])
    expect(await actions(`actor_id=${own.developer.id}&target_id=${second.id}`)).toEqual(['webhooks.create'])
    expect(await actions(`actor_id=${randomUUID()}`)).toEqual([])
    // from since on, up to and without until
    expect(await actions(`since=${hour(3)}`)).toEqual(['projects.update'])
    expect(await actions(`since=${hour(2)}&until=${hour(3)}`)).toEqual(['webhooks.delete', 'webhooks.create'])
    const elsewhere = `${new Date(Date.parse(hour(3)) + 3600_000).toISOString().slice(0, 19)}+01:00`
    expect(await actions(`since=${encodeURIComponent(elsewhere)}`)).toEqual(['projects.update'])
    expect(await actions(`since=${hour(3)}&until=${hour(2)}`)).toEqual([])
  })

  test.each<[query: string, field: string]>([
    ['limit=0', 'limit'],
    ['limit=x', 'limit'],
    ['cursor=x', 'cursor'],
    ...[
      '2026-13-45T99:99:99.000000Z 0000000000000000001 00000000-0000-4000-8000-000000000000',
      '2026-02-30T00:00:00.000000Z 0000000000000000001 00000000-0000-4000-8000-000000000000',
      '0000-01-01T00:00:00.000000Z 0000000000000000001 00000000-0000-4000-8000-000000000000',
      '2026-10-10T00:00:00.000000Z 9223372036854775808 00000000-0000-4000-8000-000000000000',
      `2026-10-10T00:00:00.000000Z 0000000000000000001 ${'-'.repeat(36)}`,
    ].map((key) => [`cursor=${Buffer.from(key).toString('base64url')}`, 'cursor'] as [string, string]),
    ['since=yesterday', 'since'],
    ['until=2026-02-30T00:00:00Z', 'until'],
    ['since=0000-01-01T00:00:00Z', 'since'],
    ['until=2026-10-03T00:00:00%2B23:00', 'until'],
    ['action=%00', 'action'],
    [`actor_id=${'x'.repeat(201)}`, 'actor_id'],
    [`target_id=${'x'.repeat(201)}`, 'target_id'],
  ])('refuses %s', async (query, field) => {
    const answer = await project.admin.get(`${path}?${query}`)
    expect(answer).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT', details: { field } } })
  })

  test('is of one project: what its developer did elsewhere, and what others did, is not in it', async () => {
    const twin = await harness.project({ developer: project.developer })
    await webhook('twin', twin)
    await twin.developer.patch(`/admin/projects/${twin.id}`, { name: 'twin' })
    const mine = JSON.stringify(await all())
    expect(mine).not.toContain(twin.id)
    expect(mine).not.toContain('"twin"')
    const other = await harness.project()
    const refused = await other.developer.get(`/admin/projects/${project.id}${path}`)
    expect(refused).toMatchObject({ status: 403, error: { code: 'PROJECT_FORBIDDEN' } })
  })

  test.skipIf(isPooled)(
    'has what control knows before there is a database, and is 503 when the database is away',
    async () => {
      const developer = await harness.developer()
      const { data } = await developer.post('/admin/projects', { name: 'young' })
      const young = await developer.get(`/admin/projects/${data.project.id}${path}`)
      expect(young.data.map(({ action }: any) => action)).toContain('projects.create')

      const away = await harness.project()
      await away.admin.get(path)
      await shut(away)
      for (const of of ['', '/export', '/verify', `/${randomUUID()}`])
        expect(await away.admin.get(path + of)).toMatchObject({ status: 503, error: { code: 'TENANT_UNAVAILABLE' } })
    },
  )
})

describe('one event', () => {
  test('is found in either place, by its own project alone', async () => {
    await webhook('single')
    await project.developer.patch(`/admin/projects/${project.id}`, { name: 'single' })
    const other = await harness.project()
    for (const event of (await list('limit=2')).data) {
      expect((await project.admin.get(`${path}/${event.id}`)).data).toEqual(event)
      expect(await other.admin.get(`${path}/${event.id}`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    }
    expect(await project.admin.get(`${path}/${randomUUID()}`)).toMatchObject({ status: 404 })
    expect(await project.admin.get(`${path}/x`)).toMatchObject({ status: 400, error: { code: 'INVALID_ID' } })
  })
})

describe('the export', () => {
  let large: Project
  beforeAll(async () => {
    large = await harness.project()
    await large.sql(
      `select internal.audit('test.many', '=tests', n::text, json_build_object('n', json_build_array(null, -n), 'text', json_build_array(null, '=1+1, "x"')))
         from generate_series(1, 1203) n`,
    )
  })
  const get = (query: string) => large.admin.get(`${path}/export?${query}`)

  test('of NDJSON has a line for every change, over many batches, as the list has them', async () => {
    const answer = await get('')
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="project-${large.id}-audit.ndjson"`)
    const rows = answer.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows).toHaveLength(1203 + 3)
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
    expect(rows.slice(0, 200)).toEqual((await list('limit=200', large)).data)
    expect((await get('format=ndjson')).text).toBe(answer.text)
  })

  test('of CSV has a column for each part, and nothing that a spreadsheet would run', async () => {
    const answer = await get('format=csv')
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv/)
    const [head, first] = answer.text.split('\r\n')
    expect(head).toBe(
      'id,occurred_at,actor_type,actor_id,actor_label,action,target_type,target_id,changes,ip,user_agent,request_id,status',
    )
    expect(first).toMatch(
      /^[0-9a-f-]{36},\d{4}-\S+Z,system,,,test\.many,'=tests,1203,"\{""n"":\[null,-1203\],""text"":\[null,""=1\+1, \\""x\\""""\]\}",,,,200$/,
    )
    expect(answer.text.split('\r\n')).toHaveLength(1203 + 3 + 2)
  })

  test('stands in the document with its types', async () => {
    const document: any = await (await fetch(`${harness.url}/openapi.json`)).json()
    const { get: operation } = document.paths['/v1/admin/projects/{projectId}/audit-events/export']
    expect(Object.keys(operation.responses['200'].content)).toEqual(['application/x-ndjson', 'text/csv'])
  })

  test('takes bounds, and is empty outside of them', async () => {
    const answer = await get('since=2100-01-01T00:00:00Z')
    expect([answer.status, answer.text]).toEqual([200, ''])
    expect((await get('format=csv&until=2000-01-01T00:00:00Z')).text.split('\r\n')).toHaveLength(2)
    expect(await get('format=xml')).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT', details: { field: 'format' } },
    })
    expect(await get('since=x')).toMatchObject({ status: 400 })
  })

  test.skipIf(isPooled)('that loses its database on the way never looks complete', async () => {
    const lost = await harness.project()
    await lost.sql(
      `select internal.audit('test.many', 'tests', n::text, json_build_object('text', json_build_array(null, repeat('x', 10000))))
         from generate_series(1, 4000) n`,
    )
    const url = new URL(harness.url)
    const socket = connect(Number(url.port), url.hostname)
    const began = new Promise((resolve) => socket.once('data', resolve)).then(() => socket.pause())
    socket.write(
      `GET /v1/admin/projects/${lost.id}${path}/export HTTP/1.0\r\nauthorization: ${lost.developer.headers['authorization']}\r\n\r\n`,
    )
    await began
    await shut(lost)
    const ended = new Promise((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      socket.on('end', () => resolve('end'))
    })
    socket.resume()
    expect(await ended).toBe('ECONNRESET')
  })
})

describe('verifying', () => {
  const verify = async (of: Project, query = '') => (await of.admin.get(`${path}/verify?${query}`)).data

  test('counts every row of both places, in as many steps as it takes', async () => {
    const own = await harness.project()
    await webhook('a', own)
    await own.developer.patch(`/admin/projects/${own.id}`, { name: 'b' })
    const newest = (await list('limit=1', own)).data[0].id
    const sealed = { first_broken_id: null, unsealed: 0 }
    await seal(own)
    expect(await verify(own)).toEqual({ verified: true, checked: 5, ...sealed, sealed_through_id: newest })
    await own.sql(`select internal.audit('test.many', 'tests', n::text) from generate_series(1, 4100) n`)
    const waiting = { first_broken_id: null, unsealed: 4100, sealed_through_id: newest }
    expect(await verify(own)).toEqual({ verified: true, checked: 4105, ...waiting })
    await seal(own)
    expect(await verify(own)).toMatchObject({ verified: true, checked: 4105, ...sealed })
  })

  test.each([
    ['before it is sealed', false],
    ['after it was sealed', true],
  ])('finds what was changed, removed, put in or moved %s, in either place, and where first', async (_, isSealed) => {
    const own = await harness.project()
    await own.sql(`select internal.audit('test.many', 'tests', n::text) from generate_series(1, 10) n`)
    if (isSealed) await seal(own)
    const row = async (n: number) =>
      (await own.sql(`select id from app.audit_events where target_id = $1`, [String(n)]))[0].id
    const fifth = await row(5)
    const stranger = randomUUID()
    const columns = 'scope, position, occurred_at, actor, action, target_type, target_id, changes, status'
    await own.sql('create table app.test_copies as select * from app.audit_events')
    const changes: [string, string | null][] = [
      [`update app.audit_events set changes = '{"n": [1, 2]}' where target_id = '5'`, fifth],
      [`update app.audit_events set status = 500 where target_id = '5'`, fifth],
      [`update app.audit_events set actor = '{"type": "system"}' where target_id = '5'`, fifth],
      [`update app.audit_events set occurred_at = occurred_at - interval '1 second' where target_id = '5'`, fifth],
      [`update app.audit_events set scope = gen_random_uuid() where target_id = '5'`, fifth],
      [`update app.audit_events set id = '${stranger}' where target_id = '5'`, isSealed ? fifth : stranger],
      [`update app.audit_events set target_id = '55' where target_id = '5'`, fifth],
      [`update app.audit_events set position = 1000000 where target_id = '5'`, fifth],
      [`delete from app.audit_events where target_id = '5'`, fifth],
      [`delete from app.audit_events where target_id::int <= 5`, await row(1)],
      [`delete from app.audit_events where target_id = '10'`, await row(10)],
      [`delete from app.audit_events`, await row(1)],
      [
        `insert into app.audit_events (id, ${columns}) select '${stranger}', scope, position + 1000, occurred_at, actor, action, target_type, target_id, changes, status from app.audit_events where target_id = '5'`,
        stranger,
      ],
      // the id of a row that is there
      [
        `insert into app.audit_events (id, ${columns}) select id, scope, position + 1000, occurred_at + interval '1 us', actor, action, target_type, target_id, changes, status from app.audit_events where target_id = '5'`,
        fifth,
      ],
    ]
    for (const [change, broken] of changes) {
      await own.sql(change)
      const found = await verify(own)
      expect([change, found.verified, found.first_broken_id]).toEqual([change, false, broken])
      await own.sql('delete from app.audit_events; insert into app.audit_events select * from app.test_copies')
      expect(await verify(own)).toMatchObject({ verified: true })
    }
    const [{ id }] = await harness.control(
      `update app.audit_events set ip = '9.9.9.9' where target_id = $1 returning id`,
      [own.id],
    )
    expect(await verify(own)).toMatchObject({ verified: false, first_broken_id: id })
    // the elder of two
    await own.sql(changes[0]?.[0] ?? '')
    expect(await verify(own)).toMatchObject({ verified: false, first_broken_id: id })
  })

  test('within bounds looks at what is in them, and at what the first leans on', async () => {
    const own = await harness.project()
    for (const n of [1, 2, 3]) {
      harness.setTime(hour(n))
      await webhook(`bound_${n}`, own)
    }
    const since = (n: number) => `since=${hour(n)}`
    expect(await verify(own, since(2))).toMatchObject({ verified: true, checked: 2, first_broken_id: null })
    await own.drain()
    expect(await verify(own, since(2))).toMatchObject({ verified: true, checked: 2, first_broken_id: null })
    await own.sql(`update app.audit_events set ip = 'x' where changes ->> 'event_name' like '%bound_1%'`)
    expect(await verify(own, since(2))).toMatchObject({ verified: true })
    expect(await verify(own, `${since(1)}&until=${hour(2)}`)).toMatchObject({
      verified: false,
      checked: 1,
    })
    await own.sql(`delete from app.audit_seals where position = 1`)
    expect(await verify(own, since(2))).toMatchObject({ verified: false })
    expect(await verify(own, since(3))).toMatchObject({ verified: true, checked: 1 })
    expect(await own.admin.get(`${path}/verify?since=x`)).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT' },
    })
  })
})

test('what an administrator does to a user is in the trail under the user', async () => {
  const user = await project.user()
  await project.admin.post('/streaks', {
    key: 'audited',
    name: 'Audited',
    qualifying_event: 'ran',
    freezes_max: 5,
    restore_window_hours: 48,
  })
  const of = (verb: string, body: object) => project.admin.post(`/streaks/audited/users/${user.id}/${verb}`, body)
  await of('qualify', {})
  await of('freezes', { amount: 2 })
  const day = (n: number) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10)
  await of('pause', { start: day(1), end: day(2) })
  const rows = (await list(`target_id=${user.id}`)).data
  expect(rows.map(({ action }) => action)).toEqual(['streaks.pause', 'streaks.give_freezes', 'streaks.qualify'])
  expect(rows[1].changes).toEqual({ streak: ['audited', 'audited'], freezes: [null, 2] })
  // and when the user does it, it is not
  await user.put('/client/streaks/audited/pause', { start: day(5), end: day(6) })
  expect((await list(`target_id=${user.id}`)).data).toHaveLength(3)
})

test('a column that calls itself a secret is redacted, whether somebody thought of it or not', async () => {
  const own = await harness.project()
  await own.sql(`
    create table app.test_things (id int, api_token text, client_secret text, password text, sealed text, key_hash text, named text, plain text);
    create trigger tg_test_things__audit after insert or update on app.test_things
      for each row execute function internal.tg_audit('tests', 'named');
    grant insert, update, select on app.test_things to app_admin`)
  await own.as(
    'app_admin',
    claims,
    `insert into app.test_things values (1, 'aaa', 'bbb', 'ccc', 'ddd', 'eee', 'fff', 'ggg')`,
  )
  const [row] = (await list('action=tests.', own)).data
  const hidden = ['[redacted]', '[redacted]']
  expect(row.changes).toEqual({
    id: [null, 1],
    api_token: hidden,
    client_secret: hidden,
    password: hidden,
    sealed: hidden,
    key_hash: hidden,
    named: hidden,
    plain: [null, 'ggg'],
  })
})
