import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeJwt, decodeProtectedHeader, exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterAll, afterEach, expect, test } from 'vitest'
import { appAddress, startOauthStage } from '#test/support/oauth.ts'
import { newEmail } from '#test/support/sign_in.ts'

/** GitHub's two hosts in one: codes and PKCE by a server that checks them, accounts as a test wants them. */
const github = new OAuth2Server()
await github.issuer.keys.generate('RS256')
await github.start(0, 'localhost')
let account: { user: unknown; emails: unknown } = { user: null, emails: null }
let tokenAnswer: object | null = null
const answer = (response: ServerResponse, body: unknown) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
}
const front = createServer((request, response) => {
  const [path = ''] = (request.url ?? '').split('?')
  if (path === '/user') return answer(response, account.user)
  if (path === '/user/emails') return answer(response, account.emails)
  if (path.endsWith('access_token') && tokenAnswer) return answer(response, tokenAnswer)
  request.url = (request.url ?? '')
    .replace('/login/oauth/authorize', '/authorize')
    .replace('/login/oauth/access_token', '/token')
  return github.service.requestHandler(request, response)
})
front.listen(0, '127.0.0.1')
await once(front, 'listening')
const githubUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
afterAll(async () => {
  front.close()
  await github.stop()
})
afterEach(() => {
  tokenAnswer = null
  mock.service.removeAllListeners()
})

const { mock, project, begin, exchange, newBrowser, harness } = await startOauthStage({
  env: { GITHUB_URL: githubUrl, GITHUB_API_URL: githubUrl },
  issuers: ['APPLE_ISSUER', 'GOOGLE_ISSUER'],
})
const set = (name: string, more: object = {}) =>
  project.admin.put(`/oauth/providers/${name}`, { client_id: 'orchard', client_secret: 'a secret', ...more })
const tried = async (name: string) => (await project.admin.post(`/oauth/providers/${name}/test`, {})).data
const arriving = async (provider: string) => {
  const { url, verifier } = await begin({ provider, redirect_to: appAddress })
  return { url, verifier, answer: new URL(await newBrowser().visit(url)).searchParams }
}

test('GitHub: the account, and its primary address if it is verified', async () => {
  await set('github')
  const [id, email] = [randomInt(1, 2 ** 40), newEmail()]
  account = { user: { id, login: 'octo', name: 'Octo Cat' }, emails: [{ email, primary: true, verified: true }] }
  const first = await arriving('github')
  expect(new URL(first.url).searchParams.get('scope')).toBe('read:user user:email')
  const made = await exchange(first.answer.get('code'), first.verifier)
  expect(made.data.user).toMatchObject({
    email,
    display_name: 'Octo Cat',
    auth_providers: [{ provider: 'github', provider_id: String(id) }],
  })
  account = {
    user: { id: id + 1, login: 'octo' },
    emails: [
      { email: newEmail(), primary: true, verified: false },
      { email: newEmail(), primary: false, verified: true },
    ],
  }
  const second = await arriving('github')
  expect((await exchange(second.answer.get('code'), second.verifier)).data.user).toMatchObject({
    email: null,
    display_name: 'octo',
  })
  tokenAnswer = { error: 'bad_verification_code' }
  const refused = await arriving('github')
  expect(refused.answer.get('error_code')).toBe('bad_oauth_callback')
})

test('GitHub: the test button', async () => {
  await set('github')
  const says = async (body: object) => {
    tokenAnswer = body
    return (await tried('github')).error
  }
  expect(await says({ error: 'bad_verification_code' })).toBeNull()
  expect(await says({ error: 'incorrect_client_credentials' })).toBe('client_refused')
  expect(await says({ error: 'redirect_uri_mismatch' })).toBe('redirect_refused')
  expect(await says({ error: 'something' })).toBe('provider_refused')
})

test('Google: the same identity as by an ID token', async () => {
  await set('google')
  await project.admin.patch('', { google_oauth_client_id: 'orchard' })
  const sub = randomUUID()
  mock.service.on('beforeTokenSigning', ({ payload }: { payload: Record<string, unknown> }) => {
    if (payload['aud'] !== undefined) Object.assign(payload, { sub, email: newEmail() })
  })
  const { answer: got, verifier, url } = await arriving('google')
  expect(new URL(url).searchParams.get('scope')).toBe('openid email profile')
  const { data } = await exchange(got.get('code'), verifier)
  expect(data.user.auth_providers).toEqual([{ provider: 'google', provider_id: sub }])
})

test('Apple: a secret that the server signs, an answer that the browser posts, and a name beside it', async () => {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const key = { team_id: 'TEAM', signing_key_id: 'KEY', client_secret: await exportPKCS8(privateKey) }
  expect((await set('apple', key)).status).toBe(201)
  const [sub, email] = [randomUUID(), newEmail()]
  let secret = ''
  mock.service.on('beforeResponse', (_response: unknown, request: any) => {
    // the mock names no way of authentication but none, so Basic is used
    const [, basic = ''] = String(request.headers.authorization).split(' ')
    secret = decodeURIComponent(Buffer.from(basic, 'base64').toString().split(':')[1] ?? '')
  })
  mock.service.on('beforeTokenSigning', ({ payload }: { payload: Record<string, unknown> }) => {
    if (payload['aud'] !== undefined) Object.assign(payload, { sub, email, email_verified: 'true' })
  })
  let code = ''
  mock.service.on('beforeAuthorizeRedirect', ({ url }: { url: URL }) => {
    code = url.searchParams.get('code') ?? ''
    url.href = 'com.example.orchard://apple-shows-a-page'
  })
  const { url, verifier } = await begin({ provider: 'apple', redirect_to: appAddress })
  const asked = new URL(url).searchParams
  expect([asked.get('response_mode'), asked.get('scope')]).toEqual(['form_post', 'openid name email'])
  await newBrowser().visit(url)
  const form = new URLSearchParams({
    code,
    state: asked.get('state') ?? '',
    user: JSON.stringify({ name: { firstName: 'Grace', lastName: 'Hopper' }, email: 'somebody@else.example' }),
  })
  const posted = await fetch(`${harness.url}/p/${project.id}/auth/v1/callback`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://appleid.apple.com' },
    body: form,
  })
  expect(posted.status).toBe(303)
  const got = new URL(posted.headers.get('location') ?? '').searchParams
  const { data } = await exchange(got.get('code'), verifier)
  expect(data.user).toMatchObject({ email, email_verified: true, display_name: 'Grace Hopper' })
  expect(decodeProtectedHeader(secret)).toEqual({ alg: 'ES256', kid: 'KEY' })
  expect(decodeJwt(secret)).toMatchObject({ iss: 'TEAM', sub: 'orchard', aud: mock.issuer.url })
  await jwtVerify(secret, publicKey)
})
