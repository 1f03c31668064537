import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, freshEmail, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'
import { sealControl } from '#workers/seal.ts'

/** The account's own: name and password, sign-ins, state, and the trail of all that. */
const harness = await startHarness()
const { anyone } = harness
const second = await startSecond(harness)
const password = 'a long passphrase'
const next = 'another long passphrase'

afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const login = (email: string, word = password, headers = {}) =>
  anyone.post('/auth/developer/login', { email, password: word }, headers)
const me = '/auth/developer/me'

describe('PATCH me', () => {
  test('changes the name, and answers as GET does', async () => {
    const developer = await harness.developer()
    const before = (await developer.get(me)).data
    harness.advance(5)
    const { status, data } = await developer.patch(me, { name: 'Grace' })
    expect(status).toBe(200)
    expect(data).toEqual({ ...before, name: 'Grace', updated_at: data.updated_at })
    expect(data.updated_at > before.updated_at).toBe(true)
    expect((await developer.get(me)).data).toEqual(data)
    expect((await developer.patch(me, { name: null })).data.name).toBeNull()
    expect((await developer.patch(me, { name: '🌱'.repeat(200) })).status).toBe(200)
  })

  test('an empty body answers the account as it is; unknown fields are ignored', async () => {
    const developer = await harness.developer()
    const before = (await developer.get(me)).data
    harness.advance(5)
    for (const body of [
      {},
      { email: freshEmail(), can_provision: false, account_state: 'paid', current_password: 'x' },
    ])
      expect(await developer.patch(me, body)).toMatchObject({ status: 200, data: before })
  })

  test.each([
    [{ name: 'x'.repeat(201) }, 'name'],
    [{ name: 5 }, 'name'],
    [{ password: 5 }, 'password'],
    [{ password: null }, 'password'],
    [{ password: 'x'.repeat(1001), current_password: password }, 'password'],
    [{ password: next, current_password: '' }, 'current_password'],
    [{ password: next }, 'current_password'],
  ])('refuses %j', async (body, field) => {
    const developer = await harness.developer()
    const answer = await developer.patch(me, body)
    expect([...refusalOf(answer), answer.error?.details.field]).toEqual([400, 'VALIDATION_ERROR', field])
    expect((await login(developer.email)).status).toBe(200)
  })

  test.each(['{', '[]', '"x"'])('refuses the body %s', async (body) => {
    const developer = await harness.developer()
    expect(refusalOf(await developer.patch(me, body))).toEqual([400, 'INVALID_BODY'])
  })

  test('sets a new password with the current one, and ends all other sign-ins at once', async () => {
    const developer = await harness.developer()
    const others = [(await login(developer.email)).data, (await login(developer.email)).data]
    const there = second.as({ authorization: `Bearer ${others[0].access_token}` })
    const here = second.as(developer.headers)
    for (const client of [there, here]) expect((await client.get(me)).status).toBe(200)
    const stranger = await harness.developer()

    const { status, data } = await developer.patch(me, { name: 'Ada', password: next, current_password: password })
    expect([status, data.name, data.has_password]).toEqual([200, 'Ada', true])
    for (const other of others) {
      expect(refusalOf(await anyone.get(me, { authorization: `Bearer ${other.access_token}` }))).toEqual([
        401,
        'INVALID_DEVELOPER_TOKEN',
      ])
      const refreshed = await anyone.post('/auth/developer/refresh', { refresh_token: other.refresh_token })
      expect(refusalOf(refreshed)).toEqual([401, 'INVALID_TOKEN'])
    }
    // another server's memory too, and long before its 30 seconds are over
    await expect.poll(async () => (await there.get(me)).status, { timeout: 10_000 }).toBe(401)
    for (const client of [developer, here, stranger]) expect((await client.get(me)).status).toBe(200)
    expect((await anyone.post('/auth/developer/refresh', { refresh_token: developer.refreshToken })).status).toBe(200)
    expect(refusalOf(await login(developer.email))).toEqual([401, 'INVALID_CREDENTIALS'])
    expect((await login(developer.email, next)).status).toBe(200)
  })

  test('a wrong current password changes nothing', async () => {
    const developer = await harness.developer()
    const other = (await login(developer.email)).data
    const before = (await developer.get(me)).data
    const answer = await developer.patch(me, { name: 'Eve', password: next, current_password: 'not the passphrase' })
    expect(refusalOf(answer)).toEqual([401, 'INVALID_CREDENTIALS'])
    expect((await developer.get(me)).data).toEqual(before)
    expect((await withBearer(anyone, other.access_token).get(me)).status).toBe(200)
    expect((await login(developer.email)).status).toBe(200)
  })

  test('a weak password is refused, counted in characters', async () => {
    const developer = await harness.developer()
    for (const weak of ['', '1234567', '🌱🌱🌱🌱🌱🌱🌱'])
      expect(refusalOf(await developer.patch(me, { password: weak, current_password: password }))).toEqual([
        400,
        'WEAK_PASSWORD',
      ])
    const eight = '🌱🌱🌱🌱🌱🌱🌱🌱'
    expect((await developer.patch(me, { password: eight, current_password: password })).status).toBe(200)
    expect((await login(developer.email, eight)).status).toBe(200)
  })

  test('an account without a password sets its first one without', async () => {
    const developer = await harness.developer()
    await harness.control('update app.developers set password_hash = null where id = $1', [developer.id])
    expect((await developer.get(me)).data.has_password).toBe(false)
    expect((await developer.patch(me, { password: next })).data.has_password).toBe(true)
    expect((await login(developer.email, next)).status).toBe(200)
    // from then on the current one is due
    expect(refusalOf(await developer.patch(me, { password }))).toEqual([400, 'VALIDATION_ERROR'])
  })

  test.each([
    ['with one current password', false],
    ['where none was set', true],
  ])('ten new passwords at once %s: one is set', async (_what, isFirst) => {
    const developer = await harness.developer()
    if (isFirst) await harness.control('update app.developers set password_hash = null where id = $1', [developer.id])
    const words = Array.from({ length: 10 }, (_, n) => `passphrase number ${n}`)
    const answers = await Promise.all(
      words.map((word) => developer.patch(me, { password: word, ...(isFirst ? {} : { current_password: password }) })),
    )
    const winners = words.filter((_, n) => answers[n]?.status === 200)
    expect(winners).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      // whoever looks after the first was set lacks the current one
      expect(['INVALID_CREDENTIALS', 'VALIDATION_ERROR']).toContain(answer.error?.code)
    }
    expect((await login(developer.email, winners[0])).status).toBe(200)
  })

  test('a sign-in with the former password that comes late does not live', async () => {
    const developer = await harness.developer()
    const [changed, ...signedIn] = await Promise.all([
      developer.patch(me, { password: next, current_password: password }),
      ...Array.from({ length: 8 }, () => login(developer.email)),
    ])
    expect(changed?.status).toBe(200)
    for (const { status, data } of signedIn)
      if (status === 200) expect((await withBearer(anyone, data.access_token).get(me)).status).toBe(401)
  })

  test('with a personal access token changes the name, and never the password', async () => {
    const developer = await harness.developer()
    const { token } = await personalToken(developer, { scopes: ['account:write'] })
    const pat = withBearer(anyone, token)
    expect((await pat.patch(me, { name: 'by token' })).data.name).toBe('by token')
    for (const body of [
      { password: next, current_password: password },
      { name: 'x', password: next },
      { password: 'short' },
    ])
      expect(refusalOf(await pat.patch(me, body))).toEqual([403, 'SESSION_REQUIRED'])
    expect((await developer.get(me)).data.name).toBe('by token')
    expect((await login(developer.email)).status).toBe(200)
  })

  test('of an account that is gone', async () => {
    const developer = await harness.developer()
    expect((await developer.get(me)).status).toBe(200)
    await harness.control('delete from app.developers where id = $1', [developer.id])
    for (const body of [{ name: 'x' }, { password: next, current_password: password }])
      expect((await developer.patch(me, body)).status).toBe(401)
  })
})

describe('sign-ins', () => {
  const list = async (developer: { get: typeof anyone.get }, query = '') =>
    developer.get(`/auth/developer/sessions${query}`)

  test('are listed newest first, with where from, and which one asks', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    harness.setTime('2026-12-01T11:00:00Z')
    const headers = { 'user-agent': `cli/1 ${'x'.repeat(600)}`, 'x-forwarded-for': '10.1.2.3' }
    const other = await login(developer.email, password, headers)
    const { status, body } = await list(developer)
    expect(status).toBe(200)
    expect(body).toMatchObject({ total: 2, offset: 0, limit: 50 })
    expect(body.data[0]).toEqual({
      id: expect.any(String),
      created_at: '2026-12-01T11:00:00.000Z',
      last_used_at: '2026-12-01T11:00:00.000Z',
      ip: '10.1.2.3',
      user_agent: headers['user-agent'].slice(0, 500),
      current: false,
    })
    expect(body.data[1]).toMatchObject({ created_at: '2026-12-01T10:00:00.000Z', current: true })
    const theirs = (await list(withBearer(anyone, other.data.access_token))).body.data
    expect(theirs.map((session: { current: boolean }) => session.current)).toEqual([true, false])
    // a refresh is a use
    harness.setTime('2026-12-01T12:00:00Z')
    await anyone.post('/auth/developer/refresh', { refresh_token: other.data.refresh_token })
    expect((await list(developer)).body.data[0].last_used_at).toBe('2026-12-01T12:00:00.000Z')
  })

  test('come in pages, of one account', async () => {
    const developer = await harness.developer()
    for (let n = 0; n < 4; n += 1) await login(developer.email)
    const all = (await list(developer)).body.data
    const part = (await list(developer, '?limit=2&offset=1')).body
    expect(part).toEqual({ data: all.slice(1, 3), total: 5, offset: 1, limit: 2 })
    expect((await list(developer, '?limit=999')).body.limit).toBe(200)
    for (const query of ['?limit=0', '?limit=x', '?offset=-1'])
      expect(refusalOf(await list(developer, query))).toEqual([400, 'INVALID_INPUT'])
    expect((await list(await harness.developer())).body.total).toBe(1)
  })

  test('that have ended or expired are not there', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const developer = await harness.developer()
    const other = (await login(developer.email)).data
    await anyone.post('/auth/developer/logout', { refresh_token: other.refresh_token })
    expect((await list(developer)).body.total).toBe(1)
    harness.setTime('2026-12-20T10:00:00Z')
    const late = withBearer(anyone, (await login(developer.email)).data.access_token)
    expect((await list(late)).body.total).toBe(2)
    harness.setTime('2026-12-31T10:00:00Z')
    const latest = withBearer(anyone, (await login(developer.email)).data.access_token)
    // the first one was never refreshed, and its 30 days are over
    expect((await list(latest)).body.total).toBe(2)
  })

  test('end when they are deleted, here and on another server, and the others stay', async () => {
    const developer = await harness.developer()
    const other = (await login(developer.email)).data
    const there = second.as({ authorization: `Bearer ${other.access_token}` })
    expect((await there.get(me)).status).toBe(200)
    const id = (await list(developer)).body.data.find((session: { current: boolean }) => !session.current).id
    const path = `/auth/developer/sessions/${id}`
    expect(await developer.delete(path)).toMatchObject({ status: 200, data: { deleted: true } })
    expect((await withBearer(anyone, other.access_token).get(me)).status).toBe(401)
    await expect.poll(async () => (await there.get(me)).status, { timeout: 10_000 }).toBe(401)
    const refreshed = await anyone.post('/auth/developer/refresh', { refresh_token: other.refresh_token })
    expect(refusalOf(refreshed)).toEqual([401, 'INVALID_TOKEN'])
    expect((await developer.get(me)).status).toBe(200)
    expect(refusalOf(await developer.delete(path))).toEqual([404, 'NOT_FOUND'])
  })

  test("may be one's own, and nobody else's", async () => {
    const developer = await harness.developer()
    const stranger = await harness.developer()
    const { id } = (await list(developer)).body.data[0]
    for (const wrong of [id, randomUUID()])
      expect(refusalOf(await stranger.delete(`/auth/developer/sessions/${wrong}`))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await developer.delete('/auth/developer/sessions/x'))).toEqual([400, 'INVALID_ID'])
    expect((await developer.get(me)).status).toBe(200)
    expect((await developer.delete(`/auth/developer/sessions/${id}`)).status).toBe(200)
    expect((await developer.get(me)).status).toBe(401)
  })
})

describe('account_state', () => {
  const state = async (developer: { get: typeof anyone.get }) => (await developer.get(me)).data.account_state

  test('is paid while a project of the account is on a paid tier, and goes back to what it was', async () => {
    const project = await harness.project()
    const other = await harness.project({ developer: project.developer })
    const set = (id: string, tier: string) =>
      harness.control('select internal.operator_project_set($1, $2)', [id, tier])
    expect(await state(project.developer)).toBe('sandbox')
    await set(project.id, 'pro')
    expect(await state(project.developer)).toBe('paid')
    await set(other.id, 'enterprise')
    await set(project.id, 'free')
    expect(await state(project.developer)).toBe('paid')
    await set(other.id, 'free')
    expect(await state(project.developer)).toBe('sandbox')
    await harness.control('select internal.operator_developer_set($1, null, true)', [project.developer.email])
    await set(other.id, 'pro')
    await set(other.id, 'free')
    expect(await state(project.developer)).toBe('verified_free')
    await harness.control('select internal.operator_project_set($1, null, true)', [project.id])
    expect(await state(project.developer)).toBe('verified_free')
  })

  test('is paid no more when the last paid project is deleted, by its developer or by hand', async () => {
    const [first, second] = [await harness.project(), await harness.project()]
    for (const { id, developer } of [first, second]) {
      await harness.control('select internal.operator_project_set($1, $2)', [id, 'pro'])
      expect(await state(developer)).toBe('paid')
    }
    const left = await harness.project({ developer: first.developer })
    await harness.control('select internal.operator_project_set($1, $2)', [left.id, 'enterprise'])
    expect((await first.developer.delete(`/admin/projects/${first.id}`)).status).toBe(200)
    expect(await state(first.developer)).toBe('paid')
    expect((await first.developer.delete(`/admin/projects/${left.id}`)).status).toBe(200)
    expect(await state(first.developer)).toBe('sandbox')
    await harness.control('delete from app.projects where id = $1', [second.id])
    expect(await state(second.developer)).toBe('sandbox')
    // verified while it is paid: what it goes back to follows
    const third = await harness.project()
    await harness.control('select internal.operator_project_set($1, $2)', [third.id, 'pro'])
    await harness.control('select internal.operator_developer_set($1, null, true)', [third.developer.email])
    expect(await state(third.developer)).toBe('paid')
    expect((await third.developer.delete(`/admin/projects/${third.id}`)).status).toBe(200)
    expect(await state(third.developer)).toBe('verified_free')
  })
})

describe('the audit trail', () => {
  const trail = (id: string) =>
    harness.control(
      `select actor, action, changes, ip, user_agent, request_id from app.audit_events
        where scope = $1::uuid and target_type = 'developers' and target_id = $1::text order by position`,
      [id],
    )

  test('has sign-up, every sign-in and every change, by whom and from where, and no hash', async () => {
    const origin = { 'x-forwarded-for': '10.9.8.7', 'user-agent': 'console/2', 'x-request-id': 'login-1' }
    const developer = await harness.developer()
    await login(developer.email, password, origin)
    await login(developer.email, 'wrong')
    await developer.patch(me, { name: 'Ada' })
    await developer.patch(me, { name: 'Ada' })
    await developer.patch(me, { password: next, current_password: password })
    await harness.control('select internal.operator_developer_set($1, null, true)', [developer.email])
    const rows = await trail(developer.id)
    expect(rows.map(({ action }) => action)).toEqual([
      'developer.created',
      'developer.login',
      'developer.login',
      'developer.updated',
      'developer.updated',
      'developer.updated',
    ])
    const own = { type: 'developer', id: developer.id, label: null }
    expect(rows[0]).toMatchObject({ actor: own, changes: { email: [null, developer.email] } })
    expect(rows[2]).toEqual({
      actor: own,
      action: 'developer.login',
      changes: {},
      ip: '10.9.8.7',
      user_agent: 'console/2',
      request_id: 'login-1',
    })
    expect(rows[3]).toMatchObject({ actor: own, changes: { name: [null, 'Ada'] } })
    expect(rows[4]?.changes).toEqual({ password_hash: ['[redacted]', '[redacted]'] })
    expect(rows[5]).toMatchObject({
      actor: { type: 'system', id: null },
      changes: { email_verified: [false, true], account_state: ['sandbox', 'verified_free'] },
    })
    expect(JSON.stringify(rows)).not.toContain('argon2')
  })

  test('is a chain of each account', async () => {
    const [one, other] = [await harness.developer(), await harness.developer()]
    await harness.control('select internal.operator_developer_set($1, $2)', [one.email, 'off'])
    await sealControl(harness.running.services)
    const rows = await harness.control(
      `select s.scope, s.position::int, e.action
         from app.audit_seals s join app.audit_events e on e.id = s.event_id
        where s.scope in ($1, $2) order by s.scope, s.position`,
      [one.id, other.id],
    )
    const chain = (id: string, actions: string[]) =>
      actions.map((action, index) => ({ scope: id, position: index + 1, action: `developer.${action}` }))
    expect(rows).toEqual([...chain(one.id, ['created', 'login', 'updated']), ...chain(other.id, ['created', 'login'])])
  })
})
