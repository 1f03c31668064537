import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { google_oauth_client_id: 'audience' })
const user = await project.user()
const developer = await harness.developer()
const { anyone } = harness
const { app } = project

type Sent = (credential: string) => Promise<{ status: number; error: { code: string } | undefined }>
const address = `${randomUUID()}@example.org`
const password = 'a long passphrase'
await app.post('/client/auth/email/signup', { email: address, password })

const credentials: [name: string, send: Sent, answer: [status: number, code?: string]][] = [
  ['magic link', (token) => app.post('/client/auth/magic-link/verify', { token }), [401, 'INVALID_TOKEN']],
  ['refresh', (refresh_token) => app.post('/client/auth/refresh', { refresh_token }), [401, 'INVALID_TOKEN']],
  ['logout', (refresh_token) => app.post('/client/auth/logout', { refresh_token }), [200]],
  ['merge', (token) => user.post('/client/auth/merge', { from_session_token: token }), [401, 'INVALID_TOKEN']],
  [
    'identity token',
    (id_token) => app.post('/client/auth/social', { provider: 'google', id_token }),
    [401, 'INVALID_TOKEN'],
  ],
  [
    'nonce',
    (nonce) => app.post('/client/auth/social', { provider: 'google', id_token: 'x', nonce }),
    [401, 'INVALID_TOKEN'],
  ],
  [
    'password',
    (text) => app.post('/client/auth/email/login', { email: address, password: text }),
    [401, 'UNAUTHORIZED'],
  ],
  [
    'developer password',
    (text) => anyone.post('/auth/developer/login', { email: developer.email, password: text }),
    [401, 'INVALID_CREDENTIALS'],
  ],
  ['referral code', (code) => user.post('/client/referrals/claim', { code }), [404, 'REFERRAL_NOT_FOUND']],
  [
    'developer refresh',
    (token) => anyone.post('/auth/developer/refresh', { refresh_token: token }),
    [401, 'INVALID_TOKEN'],
  ],
  ['developer logout', (token) => anyone.post('/auth/developer/logout', { refresh_token: token }), [200]],
]

test.each(credentials)('%s: one of any length answers as an unknown one does', async (_name, send, answer) => {
  for (const length of [10, 300, 5_000, 20_000, 900_000]) {
    const { status, error } = await send('x'.repeat(length))
    expect([status, ...(error ? [error.code] : [])]).toEqual(answer)
  }
})

test('API keys, Bearer tokens and users to act for: any length that a header holds', async () => {
  for (const length of [10, 300, 5_000, 12_000]) {
    const text = 'x'.repeat(length)
    const bearer = { authorization: `Bearer ${text}` }
    expect((await anyone.get('/client/users/me', { 'x-api-key': text })).error?.code).toBe('UNAUTHORIZED')
    expect((await app.get('/client/users/me', bearer)).error?.code).toBe('UNAUTHORIZED')
    expect((await project.server.get('/client/users/me', { 'x-on-behalf-of': text })).error?.code).toBe(
      'USER_NOT_FOUND',
    )
    for (const beginning of ['', 'svc_dpat_', 'svc_dop_']) {
      const token = { authorization: `Bearer ${beginning}${text}` }
      expect((await anyone.get('/auth/developer/me', token)).error?.code).toBe('INVALID_DEVELOPER_TOKEN')
    }
  }
})

test('an invite code of any length is refused as one that nobody made', async () => {
  const invited = await startHarness({ env: { SIGNUP_MODE: 'invite' } })
  for (const length of [10, 1_000, 1_001, 900_000]) {
    const answer = await invited.anyone.post('/auth/developer/signup', {
      email: `${randomUUID()}@example.org`,
      password,
      invite_code: 'x'.repeat(length),
    })
    expect([answer.status, answer.error?.code]).toEqual([403, 'INVITE_INVALID'])
  }
})
