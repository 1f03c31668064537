import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import type { Answer, Project, User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { newEmail, newPhone, password, startStage } from '#test/support/sign_in.ts'
import { countRows, fillEveryTable } from '#test/support/user_rows.ts'

/** Deleting users, by administrators and by themselves. */
const stage = await startStage()
const { harness } = stage
const project = await harness.project()
afterEach(() => harness.setTime(null))

const isThere = async (id: string, of: Project = project) =>
  (await of.sql('select from app.users where id = $1', [id])).length === 1

/** A user with an address and a password. */
const named = async (): Promise<User & { password: string }> => {
  const email = `${randomUUID()}@example.org`
  const password = 'a long passphrase'
  const { data } = await project.app.post('/client/auth/email/signup', { email, password })
  return {
    ...project.app.with({ authorization: `Bearer ${data.session_token}` }),
    id: data.user.id,
    sessionToken: data.session_token,
    refreshToken: data.refresh_token,
    data: data.user,
    password,
  }
}

/** Every column of every table that still holds the id; the audit trail is kept. */
const traces = async (of: Project, id: string): Promise<string[]> => {
  const places = await of.sql<{ place: string; name: string }>(
    `select a.attrelid::regclass::text as place, a.attname as name from pg_attribute a
       join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') and not c.relispartition
      where c.relnamespace::regnamespace::text in ('app', 'collections') and a.attnum > 0 and a.atttypid = 'uuid'::regtype`,
  )
  const found: string[] = []
  for (const { place, name } of places) {
    if ((await of.sql(`select from ${place} where "${name}" = $1 limit 1`, [id])).length > 0)
      found.push(`${place}.${name}`)
  }
  return found
}

describe('deleting a user', () => {
  const ways: [string, (of: Project, user: User) => Promise<Answer>][] = [
    ['by an administrator', (of, user) => of.admin.delete(`/users/${user.id}`)],
    ['by anonymous id', (of, user) => of.admin.delete(`/users?anonymous_id=${user.data.anonymous_id}`)],
    ['with a reset', (of, user) => of.admin.delete(`/users/${user.id}/reset?sections=events&delete_user=true`)],
    ['by the user', (_of, user) => user.delete('/client/users/me', { confirm: 'DELETE' })],
  ]
  test.each(ways)(
    '%s takes every row of every registered table, and no one else’s',
    { timeout: 30_000 },
    async (_what, remove) => {
      const own = await harness.project()
      const [user, bystander] = [await own.user(), await own.user()]
      const places = await fillEveryTable(own, user.id)
      await own.sql('update app.user_sessions set expires_at = $1', ['2027-01-01T00:00:00Z'])
      await own.sql('delete from app.user_passwords where app_user_id = $1', [user.id])
      await own.sql('delete from app.user_identities where app_user_id = $1', [user.id])
      const filled = await countRows(own, user.id)
      for (const { table_name, user_column } of places) {
        const wanted = /passwords|identities/.test(table_name) ? 0 : 1
        expect([table_name, filled.get(`${table_name}.${user_column}`)! >= wanted]).toEqual([table_name, true])
      }
      const before = await countRows(own, bystander.id)
      expect((await remove(own, user)).status).toBe(200)
      for (const [place, count] of await countRows(own, user.id)) expect([place, count]).toEqual([place, 0])
      expect(await traces(own, user.id)).toEqual([])
      expect(await countRows(own, bystander.id)).toEqual(before)
    },
  )

  test('ends the sessions at once, on every server', async () => {
    const user = await project.user()
    const second = await startSecond(harness)
    const elsewhere = second.as({ 'x-api-key': project.clientKey, authorization: `Bearer ${user.sessionToken}` })
    expect([(await user.get('/client/users/me')).status, (await elsewhere.get('/client/users/me')).status]).toEqual([
      200, 200,
    ])
    expect((await project.onBehalfOf(user.id).get('/client/users/me')).status).toBe(200)
    expect(await project.admin.delete(`/users/${user.id}`)).toMatchObject({ status: 200, data: { deleted: true } })
    expectRefusal(await user.get('/client/users/me'), 401, 'UNAUTHORIZED')
    expectRefusal(await project.onBehalfOf(user.id).get('/client/users/me'), 404, 'USER_NOT_FOUND')
    expectRefusal(
      await project.app.post('/client/auth/refresh', { refresh_token: user.refreshToken }),
      401,
      'INVALID_TOKEN',
    )
    await expect.poll(async () => (await elsewhere.get('/client/users/me')).status, { interval: 20 }).toBe(401)
  })

  test('of many at once succeeds once', async () => {
    const user = await project.user()
    const answers = await Promise.all(Array.from({ length: 10 }, () => project.admin.delete(`/users/${user.id}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(404)].sort())
    // and when both have seen the user before either holds the row
    const other = await stage.anonymous()
    const remove = () => stage.project.admin.delete(`/users/${other.id}`)
    const [first, second] = await stage.queued(other.id, [remove, remove])
    expect(first?.status).toBe(200)
    expectRefusal(second as Answer, 404, 'NOT_FOUND')
  })

  test('while codes and links of the address are used never waits in a circle, and takes them along', {
    timeout: 180_000,
  }, async () => {
    for (let round = 0; round < 6; round += 1) {
      const email = newEmail()
      const user = await stage.signup(email)
      const [code, token] = [await stage.code(email), await stage.magicToken(email)]
      const [removed, byCode, byLink] = await Promise.all([
        stage.project.admin.delete(`/users/${user.id}`),
        stage.verifyCode(email, code),
        stage.verifyLink(token),
      ])
      expect(removed.status).toBe(200)
      // before: the same account; after: nobody, or, where the code was in use already, a new account of who proved the address
      for (const { status } of [byCode, byLink]) expect([200, 201, 401]).toContain(status)
      expect(await isThere(user.id, stage.project)).toBe(false)
    }
  })

  test('is refused by name where there is nobody', async () => {
    expectRefusal(await project.admin.delete(`/users/${randomUUID()}`), 404, 'NOT_FOUND')
    for (const id of ['x', '%00']) expectRefusal(await project.admin.delete(`/users/${id}`), 400, 'INVALID_USER_ID')
    expectRefusal(await project.admin.delete(`/users?anonymous_id=anon_${'x'.repeat(40)}`), 404, 'NOT_FOUND')
    for (const query of ['', '?anonymous_id='])
      expectRefusal(await project.admin.delete(`/users${query}`), 400, 'INVALID_BODY')
  })

  test('leaves no word of theirs in any table: answers kept for a repetition, codes and links that are out', {
    timeout: 180_000,
  }, async () => {
    const own = await stage.newProject()
    const email = newEmail()
    const signup = await own.app.post('/client/auth/email/signup', { email, password, display_name: 'Zyxwv Tracer' })
    const user = stage.device(signup, own)
    const phone = newPhone()
    await own.sql('update app.users set phone = $2 where id = $1', [user.id, phone])
    const columns = [{ name: 'body', type: 'text' }]
    expect((await own.admin.post('/collections', { name: 'notes', columns })).status).toBe(201)
    const keyed = { 'idempotency-key': 'once' }
    const event = { event_name: 'ran', properties: { place: 'hush hush' } }
    expect((await user.post('/client/events', event, keyed)).status).toBe(201)
    expect((await user.post('/client/collections/notes', { body: 'hush hush' }, keyed)).status).toBe(201)
    for (const path of ['email/otp/request', 'magic-link/request'])
      expect((await own.app.post(`/client/auth/${path}`, { email })).status).toBe(200)
    expect((await user.post('/client/auth/email/otp/request', { email, purpose: 'delete' })).status).toBe(200)
    await own.drain()
    const link = stage.mail.to(email).find(({ text }) => text.includes('token='))?.text ?? ''
    expect((await own.admin.delete(`/users/${user.id}`)).status).toBe(200)

    const places = await own.sql(
      `select c.oid::regclass as place from pg_class c
        where c.relnamespace::regnamespace::text in ('app', 'collections') and c.relkind in ('r', 'p') and not c.relispartition`,
    )
    const left: string[] = []
    for (const { place } of places) {
      const rows = await own.sql(
        `select to_jsonb(r)::text as row from ${place} r where to_jsonb(r)::text like any ($1)`,
        [[user.id, email, phone, 'Zyxwv', 'hush hush'].map((word) => `%${word}%`)],
      )
      left.push(...rows.map(({ row }) => `${place} ${row}`))
    }
    // the trail says that the account with this id was deleted; counters and timers of the id run out by themselves
    expect(left.filter((row) => !/^app\.(audit_events|rate_limits|outbox) /.test(row))).toEqual([])
    for (const word of [email, phone, 'Zyxwv', 'hush hush']) expect(left.join()).not.toContain(word)
    // nor does a link that is out bring the address back
    const token = /token=([\w-]+)/.exec(link)?.[1]
    expectRefusal(await own.app.post('/client/auth/magic-link/verify', { token }), 401, 'INVALID_TOKEN')
  })

  test('is in the audit trail, without what the user was called', async () => {
    const user = await named()
    await project.admin.delete(`/users/${user.id}`)
    const rows = await project.sql('select * from app.audit_events where target_id = $1', [user.id])
    expect(rows.map(({ action }) => action)).toEqual(['users.delete'])
    for (const part of [user.data.email, user.data.display_name]) expect(JSON.stringify(rows)).not.toContain(part)
  })
})

describe('deleting the own account', () => {
  const remove = (user: User, body: unknown = { confirm: 'DELETE' }, query = '') =>
    user.delete(`/client/users/me${query}`, body)

  test.each([
    ['nothing', undefined, ''],
    ['another word', { confirm: 'yes' }, ''],
    ['another case', { confirm: 'delete' }, ''],
    ['true', { confirm: true }, ''],
    ['another word in the query', undefined, '?confirm=DELETED'],
    ['the body over the query', { confirm: 'no' }, '?confirm=DELETE'],
  ])('needs the word: %s', async (_what, body, query) => {
    const user = await project.user()
    expectRefusal(await user.delete(`/client/users/me${query}`, body), 400, 'CONFIRMATION_REQUIRED')
    expect(await isThere(user.id)).toBe(true)
  })

  test('takes the word from the body or the query', async () => {
    const [one, two] = [await project.user(), await project.user()]
    expect(await remove(one)).toMatchObject({ status: 200, data: { deleted: true } })
    expect(await two.delete('/client/users/me?confirm=DELETE')).toMatchObject({ status: 200, data: { deleted: true } })
    expect([await isThere(one.id), await isThere(two.id)]).toEqual([false, false])
    expectRefusal(await one.get('/client/users/me'), 401, 'UNAUTHORIZED')
  })

  test('of a user without identity needs no fresh sign-in', async () => {
    const user = await project.user()
    harness.advance(50 * 60)
    expect((await remove(user)).status).toBe(200)
  })

  test('of one with an identity needs a sign-in less than 10 minutes ago', async () => {
    harness.setTime(new Date(Math.ceil(Date.now() / 1000) * 1000))
    const [early, late] = [await named(), await named()]
    harness.advance(599)
    expect((await remove(early)).status).toBe(200)
    harness.advance(1)
    expectRefusal(await remove(late), 401, 'REAUTH_REQUIRED')
    expect(await isThere(late.id)).toBe(true)
  })

  test('a refresh is no sign-in, a new sign-in is', async () => {
    const user = await named()
    harness.advance(601)
    const fresh = await project.app.post('/client/auth/refresh', { refresh_token: user.refreshToken })
    const refreshed = project.app.with({ authorization: `Bearer ${fresh.data.session_token}` })
    expectRefusal(await refreshed.delete('/client/users/me', { confirm: 'DELETE' }), 401, 'REAUTH_REQUIRED')
    const { data } = await project.app.post('/client/auth/email/login', {
      email: user.data.email,
      password: user.password,
    })
    const again = project.app.with({ authorization: `Bearer ${data.session_token}` })
    expect((await again.delete('/client/users/me', { confirm: 'DELETE' })).status).toBe(200)
  })

  test('is not for a server key', async () => {
    const user = await project.user()
    const answer = await project.onBehalfOf(user.id).delete('/client/users/me', { confirm: 'DELETE' })
    expectRefusal(answer, 403, 'SESSION_REQUIRED')
    expect(await isThere(user.id)).toBe(true)
  })

  test('is not to be had around its checks: as the role, in SQL', async () => {
    const user = await named()
    const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
    for (const call of ['internal.user_delete($1)', 'internal.user_delete_by_administrator($1)']) {
      await expect(project.as('app_user', claims, `select ${call}`, [user.id])).rejects.toThrow(/permission denied/)
    }
    await expect(project.as('app_user', claims, 'select internal.account_delete(null)')).rejects.toThrow(
      /session has ended/,
    )
    await expect(project.as('app_user', claims, 'delete from app.users')).rejects.toThrow(/permission denied/)
    const forged = { ...claims, 'app.caller': 'server_key' }
    await expect(
      project.as('app_admin', forged, 'select internal.user_delete_by_administrator($1)', [user.id]),
    ).rejects.toThrow(/by administrators/)
  })

  test('of a user who has just gone, or whose session has just ended, is refused', async () => {
    const [gone, out] = [await project.user(), await project.user()]
    for (const user of [gone, out]) await user.get('/client/users/me')
    await project.sql('delete from app.users where id = $1', [gone.id])
    await project.sql('update app.user_sessions set ended_at = now() where app_user_id = $1', [out.id])
    for (const user of [gone, out]) expectRefusal(await remove(user), 401, 'UNAUTHORIZED')
    expect(await isThere(out.id)).toBe(true)
  })

  const word = { confirm: 'DELETE' }
  /** A user whose sign-in is no longer fresh, with a code to delete the account, and a wrong one. */
  const coded = async () => {
    const user = await stage.signup(newEmail())
    harness.advance(601)
    const code = await stage.code(user.user.email, 'delete', user)
    return { user, code, wrong: code === '000000' ? '111111' : '000000' }
  }
  const remains = (id: string) => isThere(id, stage.project)

  test('takes a code instead of a fresh sign-in, once it is right', async () => {
    const { user, code, wrong } = await coded()
    expectRefusal(await user.delete('/client/users/me', word), 401, 'REAUTH_REQUIRED')
    expectRefusal(await user.delete('/client/users/me', { ...word, code: wrong }), 401, 'REAUTH_REQUIRED')
    expectRefusal(await user.delete('/client/users/me', { confirm: 'no', code }), 400, 'CONFIRMATION_REQUIRED')
    expectRefusal(await user.delete('/client/users/me', { ...word, code: '12' }), 400, 'VALIDATION_ERROR')
    expectRefusal(await user.delete('/client/users/me?code=12', word), 400, 'INVALID_INPUT')
    expectRefusal(await user.request('DELETE', '/client/users/me', '[]'), 400, 'INVALID_BODY')
    expect(await remains(user.id)).toBe(true)
    expect((await user.delete(`/client/users/me?confirm=DELETE&code=${code}`)).status).toBe(200)
    expect(await remains(user.id)).toBe(false)
  })

  test('counts wrong codes: after five the right one is locked', async () => {
    const { user, code, wrong } = await coded()
    for (let n = 0; n < 5; n += 1)
      expectRefusal(await user.delete('/client/users/me', { ...word, code: wrong }), 401, 'REAUTH_REQUIRED')
    expectRefusal(await user.delete('/client/users/me', { ...word, code }), 401, 'REAUTH_REQUIRED')
    expect(await remains(user.id)).toBe(true)
  })

  test('takes no code that went to an address which is not theirs any more', async () => {
    const { user, code } = await coded()
    const next = newEmail()
    const link = { provider: 'email', email: next, code: await stage.code(next, 'link', user) }
    expect((await user.post('/client/auth/link', link)).status).toBe(200)
    expectRefusal(await user.delete('/client/users/me', { ...word, code }), 401, 'REAUTH_REQUIRED')
    const fresh = await stage.code(next, 'delete', user)
    expect((await user.delete('/client/users/me', { ...word, code: fresh })).status).toBe(200)
  })

  test('waits for whatever else uses the account’s codes, in no circle', async () => {
    const { user, code } = await coded()
    const again = { email: user.user.email, purpose: 'delete' }
    const [asked, gone] = await stage.queued(user.id, [
      () => user.post('/client/auth/email/otp/request', again),
      () => user.delete('/client/users/me', { ...word, code }),
    ])
    expect(asked?.status).toBe(200)
    // the code was replaced while the deletion waited
    expectRefusal(gone as Answer, 401, 'REAUTH_REQUIRED')
    // and by a take-over, which closes the codes that the claimant asked for
    const claimed = await coded()
    const proof = await stage.code(claimed.user.user.email)
    const [proved, refused] = await stage.queued(claimed.user.id, [
      () => stage.verifyCode(claimed.user.user.email, proof),
      () => claimed.user.delete('/client/users/me', { ...word, code: claimed.code }),
    ])
    expect(proved?.status).toBe(200)
    expectRefusal(refused as Answer, 401, 'UNAUTHORIZED')
  })

  test('takes no code for another purpose, nor of another user', async () => {
    const [{ user }, other] = [await coded(), await coded()]
    const codes = [await stage.code(user.user.email, 'sign_in'), other.code]
    for (const code of codes)
      expectRefusal(await user.delete('/client/users/me', { ...word, code }), 401, 'REAUTH_REQUIRED')
    expect([await remains(user.id), await remains(other.user.id)]).toEqual([true, true])
  })
})
