import { createHmac, randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { startOauthStage } from '#test/support/oauth.ts'
import { oidcClient } from '#test/support/oidc.ts'
import { newEmail } from '#test/support/sign_in.ts'

const { harness, mock, way, exchange } = await startOauthStage()

type Token = { readonly header: Record<string, unknown>; readonly payload: Record<string, unknown> }
type Altered = {
  readonly claims?: Record<string, unknown>
  readonly response?: (body: Record<string, any>) => void
  readonly userinfo?: Record<string, unknown>
  readonly redirect?: (url: URL) => void
}

afterEach(() => {
  mock.service.removeAllListeners()
  harness.setTime(null)
})

/** A sign-in at the provider, which asserts what the test wants: what the app gets. */
const answerTo = async ({ claims = {}, response, userinfo, redirect }: Altered) => {
  mock.service.on('beforeTokenSigning', ({ payload }: Token) => {
    // the ID token, not the access token
    if (payload['aud'] !== undefined) Object.assign(payload, claims)
  })
  if (response) mock.service.on('beforeResponse', ({ body }: { body: Record<string, any> }) => response(body))
  if (userinfo) mock.service.on('beforeUserinfo', (answer: { body: object }) => Object.assign(answer.body, userinfo))
  if (redirect) mock.service.on('beforeAuthorizeRedirect', ({ url }: { url: URL }) => redirect(url))
  const arrived = await way({ provider: 'mock' })
  mock.service.removeAllListeners()
  return arrived
}
const refused = { error: 'server_error', error_code: 'bad_oauth_callback' }

test('good claims sign in', async () => {
  const [sub, email] = [randomUUID(), newEmail()]
  const { answer, verifier } = await answerTo({ claims: { sub, email, email_verified: true, name: ' Grace\tHopper ' } })
  const { status, data } = await exchange(answer.get('code'), verifier)
  expect(status).toBe(201)
  expect(data.user).toMatchObject({
    email,
    display_name: 'Grace Hopper',
    auth_providers: [{ provider: 'mock', provider_id: sub }],
  })
})

test.each<[string, Altered]>([
  ['another issuer', { claims: { iss: 'https://evil.example' } }],
  ['another audience', { claims: { aud: 'another client' } }],
  ['several audiences without azp', { claims: { aud: ['trellis', 'another client'] } }],
  ['another nonce', { claims: { nonce: 'another' } }],
  ['no nonce', { claims: { nonce: undefined } }],
  ['no subject', { claims: { sub: undefined } }],
  ['an empty subject', { claims: { sub: '' } }],
  ['a subject that is too long', { claims: { sub: 'x'.repeat(256) } }],
  ['a subject that cannot be stored', { claims: { sub: 'a\0b' } }],
  ['an expired token', { claims: { exp: Math.floor(Date.now() / 1000) - 60 } }],
  ['no expiry', { claims: { exp: undefined } }],
  ['no ID token', { response: (body) => delete body['id_token'] }],
  [
    'a signature of nobody',
    {
      response: (body) => {
        const [head, payload] = String(body['id_token']).split('.')
        body['id_token'] = `${head}.${payload}.${Buffer.alloc(256, 7).toString('base64url')}`
      },
    },
  ],
  [
    'no signature at all',
    {
      response: (body) => {
        const head = Buffer.from('{"alg":"none"}').toString('base64url')
        body['id_token'] = `${head}.${String(body['id_token']).split('.')[1]}.`
      },
    },
  ],
  [
    'a signature with the client secret as its key',
    {
      response: (body) => {
        const head = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')
        const signed = `${head}.${String(body['id_token']).split('.')[1]}`
        body['id_token'] = `${signed}.${createHmac('sha256', oidcClient.secret).update(signed).digest('base64url')}`
      },
    },
  ],
  ['userinfo of somebody else', { userinfo: { sub: 'somebody else', email: 'a@example.org', email_verified: true } }],
])('%s: no sign-in', async (_what, altered) => {
  const { answer } = await answerTo(altered)
  expect(Object.fromEntries(answer)).toMatchObject(refused)
  expect(answer.get('code')).toBeNull()
})

test('an issuer beside the code must be that of the provider (RFC 9207)', async () => {
  const { answer } = await answerTo({ redirect: (url) => url.searchParams.set('iss', 'https://evil.example') })
  expect(Object.fromEntries(answer)).toMatchObject(refused)
})

test('the code of another sign-in is not taken: the verifier and the nonce are those of this one', async () => {
  let stolen = ''
  await answerTo({
    redirect: (url) => {
      stolen = url.searchParams.get('code') ?? ''
      url.searchParams.delete('code')
    },
  })
  const { answer } = await answerTo({ redirect: (url) => url.searchParams.set('code', stolen) })
  expect(stolen).not.toBe('')
  expect(Object.fromEntries(answer)).toMatchObject(refused)
})

test('an answer without a code, with two, or with an error of the provider is told to the app', async () => {
  const none = await answerTo({ redirect: (url) => url.searchParams.delete('code') })
  expect(Object.fromEntries(none.answer)).toMatchObject({ error: 'invalid_request', error_code: 'bad_oauth_callback' })
  const two = await answerTo({ redirect: (url) => url.searchParams.append('code', 'another') })
  expect(Object.fromEntries(two.answer)).toMatchObject(refused)
  const failed = await answerTo({
    redirect: (url) => {
      url.searchParams.delete('code')
      url.searchParams.set('error', 'login_required\u0000<b>')
      url.searchParams.set('error_description', `${'x'.repeat(400)}`)
    },
  })
  expect(failed.answer.get('error')).toBe('login_required <b>')
  expect(failed.answer.get('error_description')).toHaveLength(300)
})

test('an address comes from userinfo where the token has none, and only a verified one', async () => {
  const email = newEmail()
  const proved = await answerTo({ userinfo: { email, email_verified: true, name: 'Grace' } })
  const first = await exchange(proved.answer.get('code'), proved.verifier)
  expect(first.data.user).toMatchObject({ email, email_verified: true, display_name: 'Grace' })
  const unproved = await answerTo({ claims: { sub: randomUUID(), email: newEmail(), email_verified: false } })
  const second = await exchange(unproved.answer.get('code'), unproved.verifier)
  expect([second.status, second.data.user.email]).toEqual([201, null])
})
