import { expect, test } from 'vitest'
import { newEmail, newPhone, password, startStage } from '#test/support/sign_in.ts'

/** `PUT /auth/v1/user` with several fields: all of it, or nothing. */
const { harness, project, mail, signup } = await startStage()
await project.admin.patch('', { rest_enabled: true })

type Answered = { status: number; text: string; code: string; field?: string }
const put = async (token: string, body: string | object): Promise<Answered> => {
  const response = await fetch(`${harness.url}/auth/v1/user`, {
    method: 'PUT',
    headers: { apikey: project.clientKey, authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  const { error_code, details } = JSON.parse(text) as { error_code: string; details?: { field?: string } }
  return { status: response.status, text, code: error_code, ...(details?.field ? { field: details.field } : {}) }
}
/** Everything that a change could have touched. */
const stateOf = (id: string) =>
  project.sql(
    `select u.email, u.phone, u.display_name, u.properties, p.password_hash,
            (select count(*)::int from app.user_sessions s where s.app_user_id = u.id) as sessions,
            (select count(*)::int from app.user_identities i where i.app_user_id = u.id) as identities
       from app.users u
       left join app.user_passwords p on p.app_user_id = u.id
      where u.id = $1`,
    [id],
  )
const code = async (address: string) => {
  await project.drain()
  return /^(\d{6})$/m.exec(mail.to(address).at(-1)?.text ?? '')?.[1] ?? ''
}
const other = 'another long passphrase'
const tooMuch = { a: 'x'.repeat(70_000) }

test('a password and a profile change together', async () => {
  const user = await signup(newEmail())
  const { status, text } = await put(
    user.token,
    `{"password":"${other}","data":{"display_name":"Ada","level":9007199254740993}}`,
  )
  expect([status, JSON.parse(text).user_metadata.display_name]).toEqual([200, 'Ada'])
  expect(text).toMatch(/"level": ?9007199254740993\b/)
  const [row] = await project.sql('select properties::text as text from app.users where id = $1', [user.id])
  expect(row.text).toMatch(/9007199254740993/)
  const login = (given: string) =>
    project.app.post('/client/auth/email/login', { email: user.user.email, password: given })
  expect([(await login(password)).status, (await login(other)).status]).toEqual([401, 200])
})

test.each<[string, object, string]>([
  ['a profile that is not taken', { password: other, data: { display_name: '' } }, 'validation_failed'],
  ['too large a profile', { password: other, data: tooMuch }, 'validation_failed'],
  ['a weak password', { password: 'short', data: { display_name: 'Ada' } }, 'weak_password'],
  ['a wrong password', { password: other, current_password: 'wrong', data: { level: 1 } }, 'invalid_credentials'],
  ['data that is no object', { password: other, data: [] }, 'validation_failed'],
  ['an address that is none', { email: 'none', password: other, data: { level: 1 } }, 'validation_failed'],
])('with %s nothing changes', async (_what, body, code) => {
  const email = newEmail()
  const user = await signup(email)
  // another device stays signed in
  expect((await project.app.post('/client/auth/email/login', { email, password })).status).toBe(200)
  const before = await stateOf(user.id)
  expect(await put(user.token, body)).toMatchObject({ code })
  expect(await stateOf(user.id)).toEqual(before)
})

test('a new address is proved with the profile, or not at all, and its code is not spent for nothing', async () => {
  const user = await signup(newEmail())
  const email = newEmail()
  expect((await put(user.token, { email, data: { level: 1 } })).status).toBe(200)
  const before = await stateOf(user.id)
  // the code was sent, and the profile changed: the address has not
  expect(before[0]).toMatchObject({ email: user.user.email, properties: { level: 1 } })
  const nonce = await code(email)
  const wrong = nonce === '000000' ? '000001' : '000000'
  expect(await put(user.token, { email, nonce: wrong, data: { level: 2 } })).toMatchObject({ code: 'otp_expired' })
  expect(await put(user.token, { email, nonce, data: { display_name: '' } })).toMatchObject({ field: 'display_name' })
  expect(await stateOf(user.id)).toEqual(before)
  expect((await put(user.token, { email, nonce, data: { level: 3 } })).status).toBe(200)
  expect((await stateOf(user.id))[0]).toMatchObject({ email, properties: { level: 3 } })
})

test('what cannot be one change is refused by name', async () => {
  const user = await signup(newEmail())
  const before = await stateOf(user.id)
  const both = { email: newEmail(), phone: newPhone(), nonce: '123456', data: { level: 1 } }
  expect(await put(user.token, both)).toMatchObject({ status: 400, field: 'nonce' })
  const withPassword = { email: newEmail(), nonce: '123456', password: other, data: { level: 1 } }
  expect(await put(user.token, withPassword)).toMatchObject({ status: 400, field: 'password' })
  expect(await stateOf(user.id)).toEqual(before)
})

test('a sign-up has its profile from the start, or makes nobody', async () => {
  const send = async (body: string) => {
    const response = await fetch(`${harness.url}/auth/v1/signup`, {
      method: 'POST',
      headers: { apikey: project.clientKey, 'content-type': 'application/json' },
      body,
    })
    return { status: response.status, text: await response.text() }
  }
  const count = async () => (await project.sql('select count(*)::int as count from app.users'))[0].count
  for (const who of [`"email":"${newEmail()}","password":"${password}",`, '']) {
    const before = await count()
    for (const data of ['{"display_name":""}', JSON.stringify(tooMuch), '[]'])
      expect(await send(`{${who}"data":${data}}`)).toMatchObject({ status: 400 })
    expect(await count()).toBe(before)
    const made = await send(`{${who}"data":{"display_name":"Ada","level":9007199254740993}}`)
    const { user } = JSON.parse(made.text)
    expect([made.status, user.user_metadata.display_name, await count()]).toEqual([200, 'Ada', before + 1])
    expect(made.text).toMatch(/"level": ?9007199254740993\b/)
    const [row] = await project.sql('select display_name, properties::text as text from app.users where id = $1', [
      user.id,
    ])
    expect(row).toEqual({ display_name: 'Ada', text: '{"level": 9007199254740993}' })
  }
})

test('our own routes take no profile beside a password', async () => {
  const user = await signup(newEmail())
  const [before] = await stateOf(user.id)
  expect((await user.post('/client/auth/password', { password: other, profile: { display_name: 'Ada' } })).status).toBe(
    200,
  )
  expect((await stateOf(user.id))[0].display_name).toBe(before.display_name)
})
