import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { sha256 } from '#server/secrets.ts'
import { meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'

const harness = await startHarness()
const { anyone } = harness
const second = await startSecond(harness)
const me = '/auth/developer/me'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const dead = async (client: Client) => expect(refusalOf(await client.get(me))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
const live = async (client: Client) => expect((await client.get(me)).status).toBe(200)
const list = async (owner: Client, query = '') => (await owner.get(`/admin/tokens${query}`)).body

describe('a personal access token', () => {
  test('is shown once; its row says the rest', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const { token, ...row } = await personalToken(developer, { name: '🌱'.repeat(80) })
    expect(token).toMatch(/^svc_dpat_[0-9A-Za-z]{40}$/)
    expect(row).toEqual({
      id: expect.stringMatching(uuid),
      name: '🌱'.repeat(80),
      token_prefix: token.slice(0, 16),
      scopes: ['*:write'],
      project_ids: null,
      expires_at: '2027-03-01T10:00:00.000Z',
      last_used_at: null,
      created_at: '2026-12-01T10:00:00.000Z',
      revoked_at: null,
    })
    expect(await list(developer)).toEqual({ data: [row], total: 1, offset: 0, limit: 50 })
  })

  test('acts as its developer, and says what it is', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const { token } = await personalToken(developer, {
      scopes: ['*:read', 'streaks:write', '*:read'],
      expires_in_days: 1,
    })
    const { data } = await withBearer(anyone, token).get(me)
    expect(data).toMatchObject({ id: developer.id, email: developer.email })
    expect(data.token).toEqual({
      type: 'pat',
      scopes: ['*:read', 'streaks:write'],
      expires_at: '2026-12-02T10:00:00.000Z',
    })
    const forever = await personalToken(developer, { expires_in_days: null })
    expect(forever.expires_at).toBeNull()
    expect((await withBearer(anyone, forever.token).get(me)).data.token.expires_at).toBeNull()
  })

  test('is stored as its SHA-256 and its first characters', async () => {
    const developer = await harness.developer()
    const { id, token } = await personalToken(developer)
    const rows = await harness.control(
      'select t.*, s.* from app.developer_tokens t join app.developer_token_secrets s on s.token_id = t.id where t.id = $1',
      [id],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0].token_hash).toBe(sha256(token))
    expect(JSON.stringify(rows)).not.toContain(token.slice(0, 17))
  })

  test('creates projects and works in them', async () => {
    const developer = await harness.developer()
    const { token } = await personalToken(developer)
    const pat = withBearer(anyone, token)
    const made = await pat.post('/admin/projects', { name: 'by token' })
    expect([made.status, made.data.project.developer_id]).toEqual([201, developer.id])
    const { id } = made.data.project
    await harness.running.services.fleet.provision(id)
    const streak = await pat.post(`/admin/projects/${id}/streaks`, {
      key: 'daily',
      name: 'Daily',
      qualifying_event: 'x',
    })
    expect(streak.status).toBe(201)
    expect((await pat.get('/admin/projects')).data.map((project: { id: string }) => project.id)).toEqual([id])
  })

  test.each([
    ['name', {}],
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(81) }],
    ['name', { name: 5 }],
    ['scopes', { name: 'x', scopes: [] }],
    ['scopes', { name: 'x', scopes: 'streaks:read' }],
    ['scopes', { name: 'x', scopes: null }],
    ['scopes.1', { name: 'x', scopes: ['*:read', 'nothing:read'] }],
    ['scopes.0', { name: 'x', scopes: ['streaks'] }],
    ['scopes.0', { name: 'x', scopes: ['streaks:admin'] }],
    ['scopes.0', { name: 'x', scopes: ['*'] }],
    ['scopes.0', { name: 'x', scopes: ['STREAKS:READ'] }],
    ['scopes.0', { name: 'x', scopes: ['streaks:read '] }],
    ['scopes.0', { name: 'x', scopes: [5] }],
    ['project_ids', { name: 'x', project_ids: [] }],
    ['project_ids.0', { name: 'x', project_ids: ['x'] }],
    ['project_ids', { name: 'x', project_ids: [randomUUID()] }],
    ['expires_in_days', { name: 'x', expires_in_days: 0 }],
    ['expires_in_days', { name: 'x', expires_in_days: 366 }],
    ['expires_in_days', { name: 'x', expires_in_days: 1.5 }],
    ['expires_in_days', { name: 'x', expires_in_days: '90' }],
  ])('refuses by %s: %j', async (field, body) => {
    const developer = await harness.developer()
    const answer = await developer.post('/admin/tokens', body)
    expect([...refusalOf(answer), answer.error?.details.field]).toEqual([400, 'VALIDATION_ERROR', field])
    expect((await list(developer)).total).toBe(0)
  })

  test('takes the ends of its ranges, and every scope that there is', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    expect((await personalToken(developer, { name: 'x', expires_in_days: 365 })).expires_at).toBe(
      '2027-12-01T10:00:00.000Z',
    )
    const named = ['users:read', 'deep_links:write', 'roles:write', 'push:read', 'projects:write', 'integrations:read']
    expect((await personalToken(developer, { scopes: [...named, 'account:read'] })).scopes).toEqual(
      [...named, 'account:read'].sort(),
    )
    expect(refusalOf(await developer.post('/admin/tokens', '['))).toEqual([400, 'INVALID_BODY'])
  })

  test("cannot name another developer's project", async () => {
    const project = await harness.project()
    const developer = await harness.developer()
    const answer = await developer.post('/admin/tokens', { name: 'x', project_ids: [project.id] })
    expect(refusalOf(answer)).toEqual([400, 'VALIDATION_ERROR'])
  })

  test('notes its use, at most once a minute', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const { token } = await personalToken(developer)
    const used = async () => (await list(developer)).data[0].last_used_at
    // servers that have not seen it yet ask anew
    const use = async (at: string, client: Client) => {
      harness.setTime(at)
      for (const server of [harness.running, second.running]) server.services.sessions.clear()
      await live(client)
      return used()
    }
    const [here, there] = [withBearer(anyone, token), second.as({ authorization: `Bearer ${token}` })]
    expect(await use('2026-12-01T10:00:10Z', here)).toBe('2026-12-01T10:00:10.000Z')
    expect(await use('2026-12-01T10:01:10Z', there)).toBe('2026-12-01T10:00:10.000Z')
    expect(await use('2026-12-01T10:01:11Z', here)).toBe('2026-12-01T10:01:11.000Z')
  })

  test('ends with its lifetime, also where it is remembered', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const { token } = await personalToken(await harness.developer(), { expires_in_days: 1 })
    const pat = withBearer(anyone, token)
    await live(pat)
    harness.setTime('2026-12-02T09:59:59Z')
    await live(pat)
    harness.setTime('2026-12-02T10:00:00Z')
    await dead(pat)
    harness.running.services.sessions.clear()
    await dead(pat)
  })

  test('ends with its account', async () => {
    const developer = await harness.developer()
    const { token } = await personalToken(developer)
    await harness.control('delete from app.developers where id = $1', [developer.id])
    await dead(withBearer(anyone, token))
  })

  test('is refused when it is altered, or no token at all', async () => {
    const { token } = await personalToken(await harness.developer())
    const other = token.endsWith('A') ? 'B' : 'A'
    for (const text of [
      `${token.slice(0, -1)}${other}`,
      token.toUpperCase(),
      token.slice(0, -1),
      `${token}x`,
      'svc_dpat_',
      'svc_dsvc_x',
    ])
      await dead(withBearer(anyone, text))
    await live(withBearer(anyone, token))
  })
})

describe('revoking', () => {
  test('ends a token at once here, in a moment elsewhere, and only that one', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const { id, token } = await personalToken(developer)
    const kept = await personalToken(developer)
    const there = second.as({ authorization: `Bearer ${token}` })
    await live(withBearer(anyone, token))
    await live(there)
    const fresh = await harness.developer()
    const signed = await developer.delete(`/admin/tokens/${id}`)
    expect([signed.status, signed.data]).toEqual([200, { deleted: true }])
    await dead(withBearer(anyone, token))
    await expect.poll(async () => (await there.get(me)).status, { timeout: 10_000 }).toBe(401)
    await live(withBearer(anyone, kept.token))
    await live(fresh)
    const rows = (await list(developer)).data
    expect(rows.find((row: { id: string }) => row.id === id).revoked_at).toBe('2026-12-01T10:00:00.000Z')
    expect(refusalOf(await developer.delete(`/admin/tokens/${id}`))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await developer.post(`/admin/tokens/${id}/rotate`))).toEqual([404, 'NOT_FOUND'])
  })

  test("another developer's, an unknown one, and what is no id", async () => {
    const { id, token } = await personalToken(await harness.developer())
    const stranger = await harness.developer()
    for (const wrong of [id, randomUUID()]) {
      expect(refusalOf(await stranger.delete(`/admin/tokens/${wrong}`))).toEqual([404, 'NOT_FOUND'])
      expect(refusalOf(await stranger.post(`/admin/tokens/${wrong}/rotate`))).toEqual([404, 'NOT_FOUND'])
    }
    expect(refusalOf(await stranger.delete('/admin/tokens/x'))).toEqual([400, 'INVALID_ID'])
    expect(refusalOf(await stranger.post('/admin/tokens/x/rotate'))).toEqual([400, 'INVALID_ID'])
    expect((await list(stranger)).total).toBe(0)
    await live(withBearer(anyone, token))
  })
})

describe('rotating', () => {
  test('gives another text to the same row; the former one lives an hour more', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const first = await personalToken(developer, { name: 'deploy', scopes: ['*:read'], expires_in_days: 30 })
    await live(withBearer(anyone, first.token))
    harness.setTime('2026-12-11T10:00:00Z')
    const signedIn = await anyone.post('/auth/developer/login', {
      email: developer.email,
      password: 'a long passphrase',
    })
    const owner = withBearer(anyone, signedIn.data.access_token)
    const { status, data } = await owner.post(`/admin/tokens/${first.id}/rotate`)
    expect(status).toBe(200)
    const { token, ...row } = data
    expect(token).toMatch(/^svc_dpat_[0-9A-Za-z]{40}$/)
    expect(token).not.toBe(first.token)
    expect(row).toEqual({
      ...first,
      token: undefined,
      token_prefix: token.slice(0, 16),
      last_used_at: '2026-12-01T10:00:00.000Z',
      // a whole lifetime again
      expires_at: '2027-01-10T10:00:00.000Z',
    })
    expect((await list(owner)).data).toEqual([row])
    const [old, now] = [withBearer(anyone, first.token), withBearer(anyone, token)]
    await live(now)
    expect((await old.get(me)).data.token.expires_at).toBe('2026-12-11T11:00:00.000Z')
    harness.setTime('2026-12-11T10:59:59Z')
    await live(old)
    harness.setTime('2026-12-11T11:00:00Z')
    await dead(old)
    await live(now)
  })

  test('a text that was to end sooner than in an hour still does', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const first = await personalToken(developer, { expires_in_days: 1 })
    harness.setTime('2026-12-02T09:30:00Z')
    const { data } = await developer.post(`/admin/tokens/${first.id}/rotate`)
    harness.setTime('2026-12-02T10:00:00Z')
    await dead(withBearer(anyone, first.token))
    await live(withBearer(anyone, data.token))
  })

  test('twice in an hour: each former text has its hour; revoking ends them all', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const first = await personalToken(developer, { expires_in_days: null })
    harness.setTime('2026-12-01T10:30:00Z')
    const next = (await developer.post(`/admin/tokens/${first.id}/rotate`)).data
    harness.setTime('2026-12-01T11:00:00Z')
    const last = (await developer.post(`/admin/tokens/${first.id}/rotate`)).data
    expect(last.expires_at).toBeNull()
    const clients = [first, next, last].map(({ token }) => withBearer(anyone, token))
    for (const client of clients) await live(client)
    harness.setTime('2026-12-01T11:30:00Z')
    await dead(clients[0] as Client)
    await live(clients[1] as Client)
    await developer.delete(`/admin/tokens/${first.id}`)
    for (const client of clients) await dead(client)
  })

  test('ten times at once: one text is current, the others live their hour', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const { id } = await personalToken(developer)
    const answers = await Promise.all(Array.from({ length: 10 }, () => developer.post(`/admin/tokens/${id}/rotate`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    harness.setTime('2026-12-01T11:00:00Z')
    const states = await Promise.all(answers.map(({ data }) => withBearer(anyone, data.token).get(me)))
    expect(states.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

describe('fifty live tokens', () => {
  const fill = (id: string, count: number, expires = `'2027-12-01'`) =>
    harness.control(
      `insert into app.developer_tokens (developer_id, name, token_prefix, scopes, lifetime_days, expires_at)
       select $1, 'n' || n, 'svc_dpat_', '{*:read}', 30, ${expires} from generate_series(1, ${count}) n returning id`,
      [id],
    )

  test('are the most, exactly, also when they are made at once', async () => {
    const developer = await harness.developer()
    const other = await harness.developer()
    await fill(developer.id, 45)
    const answers = await meetingAt(harness, 'app.developer_tokens', () =>
      Array.from({ length: 20 }, () => developer.post('/admin/tokens', { name: 'x', expires_in_days: null })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    expect(answers.filter(({ error }) => error?.code === 'TOKEN_LIMIT_REACHED')).toHaveLength(15)
    expect(refusalOf(await developer.post('/admin/tokens', { name: 'x' }))).toEqual([409, 'TOKEN_LIMIT_REACHED'])
    await personalToken(other)
    // revoked and expired ones leave room
    await developer.delete(`/admin/tokens/${answers.find(({ status }) => status === 201)?.data.id}`)
    await personalToken(developer)
    expect(refusalOf(await developer.post('/admin/tokens', { name: 'x' }))).toEqual([409, 'TOKEN_LIMIT_REACHED'])
    const all = await list(developer, '?limit=200')
    expect([all.total, all.data.length]).toEqual([51, 51])
    // a live one is rotated without asking for room
    const { id } = all.data.find((row: { revoked_at: string | null }) => !row.revoked_at)
    expect((await developer.post(`/admin/tokens/${id}/rotate`)).status).toBe(200)
  })

  test('do not count the expired; one that comes back by rotation needs room', async () => {
    const developer = await harness.developer()
    const [{ id }] = await fill(developer.id, 1, 'internal.now()')
    await fill(developer.id, 49)
    const revived = await developer.post(`/admin/tokens/${id}/rotate`)
    expect(revived.status).toBe(200)
    await live(withBearer(anyone, revived.data.token))
    await harness.control('update app.developer_tokens set expires_at = internal.now() where id = $1', [id])
    await personalToken(developer)
    expect(refusalOf(await developer.post(`/admin/tokens/${id}/rotate`))).toEqual([409, 'TOKEN_LIMIT_REACHED'])
  })
})

test('the list comes in pages, newest first', async () => {
  const developer = await harness.developer()
  for (let n = 0; n < 5; n += 1) await personalToken(developer, { name: `n${n}` })
  const names = async (query: string) => (await list(developer, query)).data.map((row: { name: string }) => row.name)
  expect(await names('')).toEqual(['n4', 'n3', 'n2', 'n1', 'n0'])
  expect(await names('?limit=2&offset=1')).toEqual(['n3', 'n2'])
  expect(refusalOf(await developer.get('/admin/tokens?limit=0'))).toEqual([400, 'INVALID_INPUT'])
})

test('the audit trail has what tokens do, and what is done to them, without their texts', async () => {
  const project = await harness.project()
  const { id, token, name } = await personalToken(project.developer, { name: 'deploy bot' })
  const pat = withBearer(anyone, token)
  await pat.patch(`/admin/projects/${project.id}`, { name: 'renamed' })
  await pat.post(`/admin/projects/${project.id}/streaks`, { key: 'daily', name: 'Daily', qualifying_event: 'x' })
  await project.developer.post(`/admin/tokens/${id}/rotate`)
  await project.developer.delete(`/admin/tokens/${id}`)
  const actor = { type: 'pat', id, label: name }
  const own = { type: 'developer', id: project.developer.id, label: null }
  const rows = await harness.control(
    `select actor, action, target_id, changes from app.audit_events
      where target_id = any ($1) and action <> 'projects.create' order by id`,
    [[id, project.id]],
  )
  expect(rows.map(({ actor, action, target_id }) => ({ actor, action, target_id }))).toEqual([
    { actor: own, action: 'tokens.create', target_id: id },
    { actor, action: 'projects.update', target_id: project.id },
    { actor: own, action: 'tokens.update', target_id: id },
    { actor: own, action: 'tokens.update', target_id: id },
  ])
  const inTenant = await project.sql('select actor, action from app.audit_events order by id desc limit 1')
  expect(inTenant).toEqual([{ actor, action: 'streaks.create' }])
  expect(JSON.stringify(rows)).not.toContain(sha256(token))
})

test('old tokens and texts are forgotten by the daily job', async () => {
  harness.setTime('2026-12-01T10:00:00Z')
  const developer = await harness.developer()
  const { id } = await personalToken(developer, { expires_in_days: 1 })
  const kept = await personalToken(developer, { expires_in_days: null })
  await developer.post(`/admin/tokens/${kept.id}/rotate`)
  const { database, control } = harness.running.services
  const left = async (at: string) => {
    harness.setTime(at)
    await database.call(control, 'control_worker', { caller: 'worker' }, 'control_maintain', {})
    const ids = [id, kept.id]
    const tokens = await harness.control(
      'select id from app.developer_tokens where id = any ($1) order by created_at',
      [ids],
    )
    const texts = await harness.control('select 1 from app.developer_token_secrets where token_id = any ($1)', [ids])
    return [tokens.map((row) => row.id), texts.length]
  }
  expect(await left('2026-12-02T10:59:00Z')).toEqual([[id, kept.id], 3])
  expect(await left('2027-03-02T09:59:00Z')).toEqual([[id, kept.id], 2])
  expect(await left('2027-03-02T10:01:00Z')).toEqual([[kept.id], 1])
})
