import { afterEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { newEmail, newPhone } from '#test/support/sign_in.ts'

/** What administrators set of how a user signs in: accounts that come from another system. */
const harness = await startHarness()
const project = await harness.project()
const { admin, app } = project
afterEach(() => harness.setTime(null))

const password = 'a long passphrase'
const login = (email: string, given = password) => app.post('/client/auth/email/login', { email, password: given })
const identities = async (id: string) => (await admin.get(`/users/${id}`)).data.auth_providers

test('a user is made with a password and proved addresses', async () => {
  const [email, phone] = [newEmail(), newPhone()]
  const made = await admin.post('/users', { email, phone, password, verify_email: true, verify_phone: true })
  expect(made.status).toBe(201)
  expect(made.data).toMatchObject({ email, phone, email_verified: true, phone_verified: true })
  expect(await identities(made.data.id)).toEqual([
    { provider: 'email', provider_id: email },
    { provider: 'phone', provider_id: phone },
  ])
  expect((await login(email)).data.user.id).toBe(made.data.id)
})

test('without these fields nothing is proved, and there is no password', async () => {
  const email = newEmail()
  const { data } = await admin.post('/users', { email })
  expect(data).toMatchObject({ email_verified: false, auth_providers: [] })
  expect((await login(email)).status).toBe(401)
})

test.each([
  ['a weak password', () => ({ email: newEmail(), password: 'short' }), 'WEAK_PASSWORD', 'password'],
  ['a password without an email', () => ({ phone: newPhone(), password }), 'INVALID_BODY', 'password'],
  ['a proof of no email', () => ({ phone: newPhone(), verify_email: true }), 'INVALID_BODY', 'verify_email'],
  ['a proof of no phone', () => ({ email: newEmail(), verify_phone: true }), 'INVALID_BODY', 'verify_phone'],
  ['a proof that is no boolean', () => ({ email: newEmail(), verify_email: 'yes' }), 'INVALID_BODY', 'verify_email'],
])('%s makes nobody', async (_, body, code, field) => {
  const before = (await admin.get('/users?limit=1')).body.total
  const refused = await admin.post('/users', body())
  expectRefusal(refused, 400, code)
  expect(refused.error?.details).toMatchObject({ field })
  expect((await admin.get('/users?limit=1')).body.total).toBe(before)
})

test('a new password ends the sessions of the former one, and is audited without its hash', async () => {
  const email = newEmail()
  const { data } = await admin.post('/users', { email, password })
  const { session_token } = (await login(email)).data
  expect((await admin.patch(`/users/${data.id}`, { password: 'another passphrase' })).status).toBe(200)
  await expect
    .poll(async () => (await app.with({ authorization: `Bearer ${session_token}` }).get('/client/users/me')).status, {
      timeout: 20_000,
    })
    .toBe(401)
  expect((await login(email)).status).toBe(401)
  expect((await login(email, 'another passphrase')).status).toBe(200)
  const rows = await project.sql(`select action, changes::text from app.audit_events where target_id = $1`, [data.id])
  expect(rows.filter(({ action }) => action === 'users.password')).toHaveLength(2)
  expect(JSON.stringify(rows)).not.toContain('argon2')
})

test('a first password leaves sessions alone', async () => {
  const email = newEmail()
  const user = await project.user()
  const { data } = await admin.patch(`/users/${user.id}`, { email })
  expect((await admin.patch(`/users/${data.id}`, { password })).status).toBe(200)
  expect((await user.get('/client/users/me')).status).toBe(200)
})

test('an address is proved with its change, and can be taken back', async () => {
  const { data } = await admin.post('/users', { email: newEmail(), verify_email: true })
  const next = newEmail()
  const changed = await admin.patch(`/users/${data.id}`, { email: next, verify_email: true })
  expect(changed.data).toMatchObject({ email: next, email_verified: true })
  expect(await identities(data.id)).toEqual([{ provider: 'email', provider_id: next }])
  const back = await admin.patch(`/users/${data.id}`, { verify_email: false })
  expect(back.data.email_verified).toBe(false)
  const refused = await admin.patch(`/users/${data.id}`, { email: null, verify_email: true })
  expectRefusal(refused, 400, 'VALIDATION_ERROR')
  expect((await admin.get(`/users/${data.id}`)).data.email).toBe(next)
  expectRefusal(await admin.patch(`/users/${data.id}`, { password: 'short' }), 400, 'WEAK_PASSWORD')
})

test('properties are replaced, or merged where asked', async () => {
  const { data } = await admin.post('/users', { properties: { a: 1, b: 2 } })
  const place = `/users/${data.id}`
  const merged = await admin.patch(place, { properties: { b: null, c: 3 }, merge_properties: true })
  expect(merged.data.properties).toEqual({ a: 1, c: 3 })
  expect((await admin.patch(place, { properties: { d: 4 }, merge_properties: false })).data.properties).toEqual({
    d: 4,
  })
  const large = { properties: { e: 'x'.repeat(65_530) }, merge_properties: true }
  expectRefusal(await admin.patch(place, large), 400, 'VALIDATION_ERROR')
  expect((await admin.get(place)).data.properties).toEqual({ d: 4 })
})

test('eight merges at the same time: none is lost', async () => {
  const { data } = await admin.post('/users', {})
  const names = Array.from({ length: 8 }, (_, n) => `key${n}`)
  await Promise.all(
    names.map((name) => admin.patch(`/users/${data.id}`, { properties: { [name]: 1 }, merge_properties: true })),
  )
  expect(Object.keys((await admin.get(`/users/${data.id}`)).data.properties).sort()).toEqual(names)
})
