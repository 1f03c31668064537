import { randomUUID } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { newEmail, newPhone, password, startStage } from '#test/support/sign_in.ts'

const { harness, project, mail } = await startStage()
await project.admin.patch('', { rest_enabled: true })

const clientOf = (key: string) =>
  createClient(harness.url, key, { auth: { autoRefreshToken: false, persistSession: false } })
const { admin } = clientOf(project.serverKey).auth
const app = () => clientOf(project.clientKey).auth

const made = async (fields: Parameters<typeof admin.createUser>[0]) => {
  const { data, error } = await admin.createUser(fields)
  expect(error).toBeNull()
  return data.user as NonNullable<typeof data.user>
}

test('a user with a password and a proved address signs in, and nobody can take the account over', async () => {
  const [email, phone] = [newEmail(), newPhone()]
  const user = await made({
    email: ` ${email.toUpperCase()}`,
    phone,
    password,
    email_confirm: true,
    user_metadata: { display_name: 'Ada', level: 3 },
  })
  expect(user).toMatchObject({
    email,
    phone,
    email_confirmed_at: user.created_at,
    app_metadata: { provider: 'email', providers: ['email'] },
    user_metadata: { display_name: 'Ada', level: 3 },
    is_anonymous: false,
  })
  expect(user.phone_confirmed_at).toBeUndefined()
  expect(user.identities).toMatchObject([{ provider: 'email', id: email }])
  const client = app()
  expect((await client.signInWithPassword({ email, password })).data.user?.id).toBe(user.id)
  // whoever proves the address by a code is the same user, whose password stays
  await client.signInWithOtp({ email })
  await project.drain()
  const code = /^(\d{6})$/m.exec(mail.to(email).at(-1)?.text ?? '')?.[1] ?? ''
  expect((await app().verifyOtp({ email, token: code, type: 'email' })).data.user?.id).toBe(user.id)
  expect((await app().signInWithPassword({ email, password })).error).toBeNull()
})

test('a password without a proved address is a claim, as after a sign-up', async () => {
  const email = newEmail()
  const user = await made({ email, password })
  expect(user.email_confirmed_at).toBeUndefined()
  await app().signInWithOtp({ email })
  await project.drain()
  const code = /^(\d{6})$/m.exec(mail.to(email).at(-1)?.text ?? '')?.[1] ?? ''
  expect((await app().verifyOtp({ email, token: code, type: 'email' })).data.user?.id).toBe(user.id)
  expect((await app().signInWithPassword({ email, password })).error?.code).toBe('invalid_credentials')
})

test('an address that another user has, a weak password, and a body without an address', async () => {
  const [email, phone] = [newEmail(), newPhone()]
  await made({ email, phone })
  expect((await admin.createUser({ email })).error?.code).toBe('email_exists')
  expect((await admin.createUser({ phone })).error?.code).toBe('phone_exists')
  expect((await admin.createUser({ email: newEmail(), password: 'short' })).error?.code).toBe('weak_password')
  expect((await admin.createUser({})).error?.code).toBe('validation_failed')
  expect((await admin.createUser({ email: 'nobody' })).error?.code).toBe('validation_failed')
  expect((await admin.createUser({ phone: newPhone(), password })).error?.code).toBe('validation_failed')
})

test.each([
  ['id', { id: randomUUID() }],
  ['password_hash', { password_hash: '$2y$10$abc' }],
  ['app_metadata', { app_metadata: { roles: ['a'] } }],
  ['role', { role: 'service_role' }],
  ['ban_duration', { ban_duration: '24h' }],
])('%s is refused by name, and nothing is made', async (field, fields) => {
  const email = newEmail()
  const { error } = await admin.createUser({ email, ...fields })
  expect(error).toMatchObject({ status: 400, code: 'validation_failed' })
  expect(error?.message).toContain(field)
  expect(await project.sql('select id from app.users where email = $1', [email])).toEqual([])
})

test('a change merges metadata, sets address and password, and ends the sessions of the former password', async () => {
  const email = newEmail()
  const { id } = await made({ email, password, email_confirm: true, user_metadata: { a: 1, b: 2 } })
  const client = app()
  await client.signInWithPassword({ email, password })
  const next = newEmail()
  const { data, error } = await admin.updateUserById(id, {
    email: next,
    email_confirm: true,
    password: 'another passphrase',
    user_metadata: { b: null, c: 3, display_name: 'Bo' },
  })
  expect(error).toBeNull()
  expect(data.user).toMatchObject({ id, email: next, user_metadata: { a: 1, c: 3, display_name: 'Bo' } })
  expect(data.user?.user_metadata).not.toHaveProperty('b')
  expect(data.user?.email_confirmed_at).toBeDefined()
  expect(data.user?.identities).toMatchObject([{ provider: 'email', id: next }])
  await expect
    .poll(async () => (await client.getUser()).error?.name, { timeout: 20_000 })
    .toBe('AuthSessionMissingError')
  expect((await app().signInWithPassword({ email: next, password })).error?.code).toBe('invalid_credentials')
  expect((await app().signInWithPassword({ email: next, password: 'another passphrase' })).error).toBeNull()
  // an address that is not said to be proved is not
  const unproved = await admin.updateUserById(id, { email: newEmail() })
  expect(unproved.data.user?.email_confirmed_at).toBeUndefined()
})

test('two changes of metadata at the same time: neither is lost', async () => {
  const { id } = await made({ email: newEmail() })
  await Promise.all(
    Array.from({ length: 8 }, (_, n) => admin.updateUserById(id, { user_metadata: { [`key${n}`]: n } })),
  )
  const { data } = await admin.getUserById(id)
  for (let n = 0; n < 8; n += 1) expect(data.user?.user_metadata[`key${n}`]).toBe(n)
})

test('a ban, and its end', async () => {
  const email = newEmail()
  const { id } = await made({ email, password, email_confirm: true })
  const client = app()
  await client.signInWithPassword({ email, password })
  const banned = await admin.updateUserById(id, { ban_duration: '876000h' })
  expect(banned.data.user?.banned_until).toBe('9999-12-31T23:59:59Z')
  expect((await app().signInWithPassword({ email, password })).error?.code).toBe('user_banned')
  await expect.poll(async () => (await client.getUser()).error, { timeout: 20_000 }).not.toBeNull()
  const lifted = await admin.updateUserById(id, { ban_duration: 'none' })
  expect(lifted.data.user?.banned_until).toBeUndefined()
  expect((await app().signInWithPassword({ email, password })).error).toBeNull()
  expect((await made({ email: newEmail(), ban_duration: '876000h' })).banned_until).toBeDefined()
})

test('one user, none, and the end of one', async () => {
  const { id } = await made({ email: newEmail() })
  expect((await admin.getUserById(id)).data.user?.id).toBe(id)
  expect((await admin.deleteUser(id, true)).error?.code).toBe('validation_failed')
  expect((await admin.deleteUser(id)).error).toBeNull()
  expect((await admin.getUserById(id)).error).toMatchObject({ status: 404, code: 'user_not_found' })
  expect((await admin.deleteUser(id)).error?.code).toBe('user_not_found')
  expect((await admin.updateUserById(id, { email: newEmail() })).error?.code).toBe('user_not_found')
})

test('pages of users, newest first', async () => {
  const other = await harness.project()
  await other.admin.patch('', { rest_enabled: true })
  const of = clientOf(other.serverKey).auth.admin
  const ids: string[] = []
  for (let n = 0; n < 3; n += 1) ids.unshift((await of.createUser({ email: newEmail() })).data.user?.id as string)
  const first = await of.listUsers({ page: 1, perPage: 2 })
  expect(first.error).toBeNull()
  expect(first.data).toMatchObject({ aud: 'authenticated', total: 3, nextPage: 2, lastPage: 2 })
  expect(first.data.users.map(({ id }) => id)).toEqual(ids.slice(0, 2))
  const second = await of.listUsers({ page: 2, perPage: 2 })
  expect(second.data.users.map(({ id }) => id)).toEqual(ids.slice(2))
  expect(second.data).toMatchObject({ nextPage: null, lastPage: 2 })
  expect((await of.listUsers({ page: 0 })).error?.code).toBe('validation_failed')
  expect((await of.listUsers({ perPage: 1000 })).data.users).toHaveLength(3)
})

test('an invitation is mailed, and signs the user in', async () => {
  const email = newEmail()
  const { data, error } = await admin.inviteUserByEmail(email, { data: { team: 'red' } })
  expect(error).toBeNull()
  expect(data.user).toMatchObject({ email, user_metadata: { team: 'red' }, invited_at: expect.any(String) })
  await project.drain()
  const [last] = mail.to(email).slice(-1)
  const token = /token=([\w-]+)/.exec(last?.text ?? '')?.[1] ?? ''
  const code = /^(\d{6})$/m.exec(last?.text ?? '')?.[1] ?? ''
  const asked = token
    ? ({ token_hash: token, type: 'invite' } as const)
    : ({ email, token: code, type: 'invite' } as const)
  const signedIn = await app().verifyOtp(asked)
  expect(signedIn.data.user).toMatchObject({ id: data.user?.id, user_metadata: { team: 'red' } })
  expect((await admin.inviteUserByEmail(email)).error?.code).toBe('email_exists')
})

test('a link is made and not mailed: its token and its code sign in, each once', async () => {
  await project.admin.patch('', { magic_link_redirect_url: 'https://app.example.org/in?from=mail' })
  const email = newEmail()
  const link = await admin.generateLink({ type: 'magiclink', email })
  expect(link.error).toBeNull()
  const { properties, user } = link.data
  expect(properties).toMatchObject({
    action_link: `https://app.example.org/in?from=mail&token=${properties?.hashed_token}`,
    email_otp: expect.stringMatching(/^\d{6}$/),
    verification_type: 'magiclink',
    redirect_to: 'https://app.example.org/in?from=mail',
  })
  await project.drain()
  expect(mail.to(email)).toEqual([])
  const byToken = { token_hash: properties?.hashed_token ?? '', type: 'magiclink' } as const
  expect((await app().verifyOtp(byToken)).data.user?.id).toBe(user?.id)
  expect((await app().verifyOtp(byToken)).error?.code).toBe('otp_expired')
  const byCode = { email, token: properties?.email_otp ?? '', type: 'email' } as const
  expect((await app().verifyOtp(byCode)).data.user?.id).toBe(user?.id)
  expect((await app().verifyOtp(byCode)).error?.code).toBe('otp_expired')
})

test('links of each type', async () => {
  const email = newEmail()
  expect((await admin.generateLink({ type: 'recovery', email })).error?.code).toBe('user_not_found')
  const signUp = await admin.generateLink({ type: 'signup', email, password, options: { data: { a: 1 } } })
  expect(signUp.data.user).toMatchObject({ email, user_metadata: { a: 1 } })
  expect((await app().signInWithPassword({ email, password })).error).toBeNull()
  expect((await admin.generateLink({ type: 'signup', email, password })).error?.code).toBe('email_exists')
  expect((await admin.generateLink({ type: 'recovery', email })).data.user?.id).toBe(signUp.data.user?.id)
  expect((await admin.generateLink({ type: 'invite', email: newEmail() })).error).toBeNull()
  const change = { type: 'email_change_new', email, newEmail: newEmail() } as const
  expect((await admin.generateLink(change)).error?.code).toBe('validation_failed')
  await admin.updateUserById(signUp.data.user?.id ?? '', { ban_duration: '876000h' })
  expect((await admin.generateLink({ type: 'magiclink', email })).error?.code).toBe('user_banned')
})

test('the sessions of a user are ended by their own token', async () => {
  const email = newEmail()
  await made({ email, password, email_confirm: true })
  const client = app()
  const { data } = await client.signInWithPassword({ email, password })
  expect((await admin.signOut(data.session?.access_token ?? '')).error).toBeNull()
  await expect
    .poll(async () => (await client.getUser()).error?.name, { timeout: 20_000 })
    .toBe('AuthSessionMissingError')
})

test('a client key, the session of a user, another project: nothing is read, made or changed', async () => {
  const { id } = await made({ email: newEmail(), password, email_confirm: true })
  const stranger = clientOf(project.clientKey).auth.admin
  const email = newEmail()
  for (const { error } of [
    await stranger.listUsers(),
    await stranger.getUserById(id),
    await stranger.createUser({ email }),
    await stranger.updateUserById(id, { ban_duration: '876000h' }),
    await stranger.deleteUser(id),
    await stranger.inviteUserByEmail(email),
    await stranger.generateLink({ type: 'magiclink', email }),
  ])
    expect(error).toMatchObject({ status: 403, code: 'not_admin' })
  const user = await fetch(`${harness.url}/auth/v1/admin/users`, {
    headers: {
      apikey: project.serverKey,
      authorization: `Bearer ${(await app().signInAnonymously()).data.session?.access_token}`,
    },
  })
  expect(user.status).toBe(403)
  const other = await harness.project()
  await other.admin.patch('', { rest_enabled: true })
  const foreign = clientOf(other.serverKey).auth.admin
  expect((await foreign.getUserById(id)).error?.code).toBe('user_not_found')
  expect((await foreign.deleteUser(id)).error?.code).toBe('user_not_found')
  expect((await foreign.updateUserById(id, { email })).error?.code).toBe('user_not_found')
  expect((await admin.getUserById(id)).data.user?.id).toBe(id)
  expect(await project.sql('select id from app.users where email = $1', [email])).toEqual([])
})

test('the audit trail names the server key, and no secret', async () => {
  const { id } = await made({ email: newEmail(), password })
  const rows = await project.sql(
    `select e.action, e.actor, e.changes::text from app.audit_events e where e.target_id = $1 order by e.position`,
    [id],
  )
  expect(rows.map(({ action }) => action)).toEqual(expect.arrayContaining(['users.create', 'users.password']))
  for (const { actor } of rows) expect(actor).toMatchObject({ type: 'server_key', id: expect.any(String) })
  expect(JSON.stringify(rows)).not.toMatch(/argon2|passphrase/)
})
