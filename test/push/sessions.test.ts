import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { message } from '#test/support/push.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** A device is pushed to for as long as the session lives that registered it. */
const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
const { admin, app } = project
afterEach(() => harness.setTime(null))

const password = 'a long passphrase'
const asSession = (data: any) => ({
  ...app.with({ authorization: `Bearer ${data.session_token}` }),
  id: data.user.id as string,
  refreshToken: data.refresh_token as string,
  sid: JSON.parse(Buffer.from(data.session_token.split('.')[1], 'base64url').toString()).sid as string,
})
type Session = ReturnType<typeof asSession>
const signUp = async () => {
  const email = `${randomUUID()}@example.com`
  const answer = await app.post('/client/auth/email/signup', { email, password })
  expect(answer.status, answer.text).toBe(201)
  return { email, first: asSession(answer.data) }
}
const signIn = async (email: string) => {
  const answer = await app.post('/client/auth/email/login', { email, password })
  expect(answer.status, answer.text).toBe(200)
  return asSession(answer.data)
}
const register = async (by: Pick<Session, 'post'>, token: string = randomUUID()) => {
  expect((await by.post('/client/users/me/push-token', { token, platform: 'ios' })).status).toBe(200)
  return token
}
/** To which devices a message to the user goes. */
const reached = async (userId: string) => {
  const sent = await admin.post('/push/send', { user_ids: [userId], message })
  expect(sent.status, sent.text).toBe(202)
  await project.drain()
  const rows = await project.sql(
    `select t.token from app.campaign_deliveries d cross join lateral jsonb_array_elements(d.attempts) e
       join app.push_tokens t on t.id = (e ->> 'push_token_id')::uuid where d.id = $1 order by 1`,
    [sent.data.delivery_ids[0]],
  )
  return rows.map(({ token }) => token as string)
}
const activeOf = async (userId: string) =>
  (await project.sql('select token from app.push_tokens where app_user_id = $1 and is_active', [userId])).map(
    ({ token }) => token as string,
  )

type Case = { readonly by: Session; readonly other: Session; readonly email: string }
/** Each ends the session `other`; `by` is another one of the same user. */
const ends: Record<string, (of: Case) => Promise<unknown>> = {
  logout: ({ other }) => app.post('/client/auth/logout', { refresh_token: other.refreshToken }),
  'logout of all': ({ by }) => by.post('/client/auth/logout', { refresh_token: by.refreshToken, all: true }),
  'DELETE sessions/:id': ({ by, other }) => by.delete(`/client/auth/sessions/${other.sid}`),
  'a new password': ({ by }) =>
    by.post('/client/auth/password', { password: 'another long passphrase', current_password: password }),
  'a refresh token that is used again': async ({ other }) => {
    await app.post('/client/auth/refresh', { refresh_token: other.refreshToken })
    return expectRefusal(
      await app.post('/client/auth/refresh', { refresh_token: other.refreshToken }),
      401,
      'REFRESH_TOKEN_REUSED',
    )
  },
  'a reset by an administrator': ({ by }) => admin.delete(`/users/${by.id}/reset?sections=sessions`),
  'an end in SQL': ({ other }) =>
    project.sql('update app.user_sessions set ended_at = now() where id = $1', [other.sid]),
  'a deletion in SQL': ({ other }) => project.sql('delete from app.user_sessions where id = $1', [other.sid]),
}

describe.each(Object.entries(ends))('%s', (name, end) => {
  test('ends the devices of the session, and leaves those of others', async () => {
    const { email, first } = await signUp()
    const second = await signIn(email)
    const [here, there] = [await register(first), await register(second)]
    const behalf = await register(project.onBehalfOf(first.id))
    expect(await reached(first.id)).toEqual([here, there, behalf].sort())
    const answer = await end({ by: first, other: second, email })
    if (answer && typeof answer === 'object' && 'status' in answer)
      expect((answer as { status: number }).status).toBeLessThan(300)
    const isAll = ['logout of all', 'a reset by an administrator'].includes(name)
    expect(await activeOf(first.id)).toEqual(expect.not.arrayContaining([there]))
    expect(await reached(first.id)).toEqual((isAll ? [behalf] : [here, behalf]).sort())
  })
})

test('a session that expires ends its devices, also before the daily clean-up switches them off', async () => {
  const { first } = await signUp()
  const [token, behalf] = [await register(first), await register(project.onBehalfOf(first.id))]
  const expireIn = (text: string) =>
    project.sql('update app.user_sessions set expires_at = now() + $2::interval where id = $1', [first.sid, text])
  await expireIn('1 minute')
  expect(await reached(first.id)).toEqual([token, behalf].sort())
  await expireIn('-1 second')
  expect(await reached(first.id)).toEqual([behalf])
  expect((await activeOf(first.id)).sort()).toEqual([token, behalf].sort())
  await project.sql('select internal.purge__push_tokens()')
  expect(await activeOf(first.id)).toEqual([behalf])
})

test('a refresh keeps the session, and its devices', async () => {
  const { first } = await signUp()
  const token = await register(first)
  await project.sql(`update app.user_sessions set expires_at = now() + interval '1 minute' where id = $1`, [first.sid])
  expect((await app.post('/client/auth/refresh', { refresh_token: first.refreshToken })).status).toBe(200)
  harness.advance(600)
  expect(await reached(first.id)).toEqual([token])
})

test('a session that registers the device again takes it over from the one before', async () => {
  const { email, first } = await signUp()
  const token = await register(first)
  const second = await signIn(email)
  await register(second, token)
  await app.post('/client/auth/logout', { refresh_token: first.refreshToken })
  expect(await reached(first.id)).toEqual([token])
  await app.post('/client/auth/logout', { refresh_token: second.refreshToken })
  expect(await reached(first.id)).toEqual([])
  const third = await signIn(email)
  await register(third, token)
  expect(await reached(first.id)).toEqual([token])
})

test('a merge hands the devices of the merged session over to the one that merges', async () => {
  const { first } = await signUp()
  const guest = await project.user()
  const token = await register(guest)
  const merged = await first.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  expect(merged.status, merged.text).toBe(200)
  expect(await reached(first.id)).toEqual([token])
  await app.post('/client/auth/logout', { refresh_token: first.refreshToken })
  expect(await reached(first.id)).toEqual([])
})

test('what waits for a device whose session has ended is not sent', async () => {
  const { first } = await signUp()
  await register(first)
  const sent = await admin.post('/push/send', { user_ids: [first.id], message })
  await app.post('/client/auth/logout', { refresh_token: first.refreshToken })
  await project.drain()
  const [delivery] = await project.sql('select status, reason, attempts from app.campaign_deliveries where id = $1', [
    sent.data.delivery_ids[0],
  ])
  expect(delivery).toEqual({ status: 'skipped', reason: 'no_token', attempts: [] })
})

test('private messages are not pushed after a logout', async () => {
  const { first } = await signUp()
  await register(first)
  const other = await project.user()
  const talk = await other.post('/client/messaging/conversations', { participant_ids: [first.id] })
  await app.post('/client/auth/logout', { refresh_token: first.refreshToken })
  await other.post(`/client/messaging/conversations/${talk.data.id}/messages`, { body: 'private' })
  await project.drain()
  expect(
    await project.sql(`select from app.campaign_deliveries where app_user_id = $1 and attempts <> '[]'`, [first.id]),
  ).toEqual([])
})

test('a registration and the end of its session never leave a device behind', async () => {
  const { email } = await signUp()
  for (let round = 0; round < 5; round += 1) {
    const session = await signIn(email)
    const token = randomUUID()
    await Promise.all([
      session.post('/client/users/me/push-token', { token, platform: 'ios' }),
      app.post('/client/auth/logout', { refresh_token: session.refreshToken }),
    ])
    expect(await project.sql('select from app.push_tokens where token = $1 and is_active', [token])).toEqual([])
  }
})
