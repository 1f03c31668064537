import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { inviteCodes, personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, freshEmail, freshIp, startHarness } from '#test/support/harness.ts'

/** GitHub's two hosts in one: authorization and tokens by a server that checks codes and PKCE, accounts as this file wants them. */
const oauth = new OAuth2Server()
await oauth.issuer.keys.generate('RS256')
await oauth.start(0, 'localhost')
type Account = { user: unknown; emails: unknown }
let account: Account
let failing: number | null = null
const asked: string[] = []
const answer = (response: ServerResponse, body: unknown) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
}
const front = createServer((request: IncomingMessage, response) => {
  const [path = ''] = (request.url ?? '').split('?')
  asked.push(`${request.method} ${path} ${request.headers.authorization?.split(' ')[0] ?? ''}`.trim())
  if (failing !== null) {
    response.statusCode = failing
    return response.end('away')
  }
  if (path === '/user') return answer(response, account.user)
  if (path === '/user/emails') return answer(response, account.emails)
  request.url = (request.url ?? '')
    .replace('/login/oauth/authorize', '/authorize')
    .replace('/login/oauth/access_token', '/token')
  return oauth.service.requestHandler(request, response)
})
front.listen(0, '127.0.0.1')
await once(front, 'listening')
const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
afterAll(async () => {
  front.close()
  await oauth.stop()
})

const env = { GITHUB_CLIENT_ID: 'client', GITHUB_CLIENT_SECRET: 'a secret', GITHUB_URL: url, GITHUB_API_URL: url }
const harness = await startHarness({ env })
const redirect = 'http://localhost:3000/back'
const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const person = (email: string, more: object = {}): Account => ({
  user: { id: randomInt(1, 2 ** 40), login: 'octo', name: 'Octo Cat' },
  emails: [
    { email: 'other@example.org', primary: false, verified: true },
    { email, primary: true, verified: true, visibility: 'public', ...more },
  ],
})
beforeEach(() => {
  account = person(freshEmail())
})
afterEach(() => {
  failing = null
  harness.setTime(null)
})

/** What a browser does at GitHub: follows authorize_url, and comes back with a code. */
const begin = async (from = harness) => {
  const { data } = await from.anyone.get(`/auth/developer/github/start?redirect_uri=${encodeURIComponent(redirect)}`)
  const response = await fetch(data.authorize_url, { redirect: 'manual' })
  const back = new URL(response.headers.get('location') ?? '')
  expect(`${back.origin}${back.pathname}`).toBe(redirect)
  expect(back.searchParams.get('state')).toBe(data.state)
  return { code: back.searchParams.get('code') ?? '', state: data.state as string, url: new URL(data.authorize_url) }
}
const finish = ({ code, state }: { code: string; state: string }, more: object = {}, from = harness) =>
  from.anyone.post('/auth/developer/github/callback', { code, state, ...more })
const signIn = async (more: object = {}) => finish(await begin(), more)

describe('signing in with GitHub', () => {
  test('creates an account with the verified primary address, and finds it again by the id of GitHub', async () => {
    const email = freshEmail()
    account = person(email)
    const first = await signIn()
    expect(first.status, first.text).toBe(201)
    expect(first.data.developer).toMatchObject({
      email,
      name: 'Octo Cat',
      oauth_providers: ['github'],
      email_verified: true,
      has_password: false,
      account_state: 'verified_free',
    })
    // the address at GitHub is another one now
    account = { ...account, emails: person(freshEmail()).emails }
    const second = await signIn()
    expect([second.status, second.data.developer.id]).toEqual([200, first.data.developer.id])
    const held = withBearer(harness.anyone, second.data.access_token)
    expect((await held.get('/auth/developer/me')).data.email).toBe(email)
  })

  test('asks for PKCE and the addresses, and keeps no verifier and no state in the clear', async () => {
    const begun = await begin()
    const asks = Object.fromEntries(begun.url.searchParams)
    expect(asks).toMatchObject({ client_id: 'client', code_challenge_method: 'S256', scope: 'read:user user:email' })
    expect(asks['code_challenge']).toMatch(/^[\w-]{43}$/)
    const rows = await harness.control(`select to_json(s)::text as text from app.github_starts s`)
    expect(rows.map(({ text }) => text).join()).not.toContain(begun.state)
    expect((await finish(begun)).status).toBe(201)
  })

  test('takes a state once, for ten minutes, and a code only with its own state', async () => {
    const begun = await begin()
    expect((await finish(begun)).status).toBe(201)
    expect(refusalOf(await finish(begun))).toEqual([401, 'INVALID_CREDENTIALS'])
    expect(refusalOf(await finish({ ...begun, state: 'unknown' }))).toEqual([401, 'INVALID_CREDENTIALS'])
    const [mine, theirs] = [await begin(), await begin()]
    // PKCE: the code of another sign-in has another challenge
    expect(refusalOf(await finish({ code: theirs.code, state: mine.state }))).toEqual([401, 'INVALID_CREDENTIALS'])
    const late = await begin()
    harness.advance(601)
    expect(refusalOf(await finish(late))).toEqual([401, 'INVALID_CREDENTIALS'])
  })

  test('needs a primary address that GitHub has verified', async () => {
    account = person(freshEmail(), { verified: false })
    expect(refusalOf(await signIn())).toEqual([401, 'INVALID_CREDENTIALS'])
    for (const broken of [{ message: 'no' }, [], [{ email: 7 }]]) {
      account = { ...person(freshEmail()), emails: broken }
      expect(refusalOf(await signIn())).toEqual([401, 'INVALID_CREDENTIALS'])
    }
    account = { ...person(freshEmail()), user: { login: 'octo' } }
    expect(refusalOf(await signIn())).toEqual([401, 'INVALID_CREDENTIALS'])
  })

  test('says so when GitHub is away', async () => {
    const begun = await begin()
    failing = 500
    expect(refusalOf(await finish(begun))).toEqual([503, 'SERVICE_UNAVAILABLE'])
  })
})

describe('an account with that address', () => {
  test('that is verified is signed in to, and keeps its password', async () => {
    const developer = await harness.developer()
    await harness.control('update app.developers set email_verified = true where id = $1', [developer.id])
    account = person(developer.email.toUpperCase())
    const { status, data } = await signIn()
    expect([status, data.developer.id, data.developer.oauth_providers, data.developer.has_password]).toEqual([
      200,
      developer.id,
      ['github'],
      true,
    ])
    expect((await developer.get('/auth/developer/me')).status).toBe(200)
  })

  test('that nobody has proved is taken back from whoever made it', async () => {
    const stranger = await harness.developer()
    const { token } = await personalToken(stranger)
    account = person(stranger.email)
    const { data } = await signIn()
    expect(data.developer).toMatchObject({ id: stranger.id, has_password: false, email_verified: true })
    for (const credential of [stranger, withBearer(harness.anyone, token)]) {
      expect(refusalOf(await credential.get('/auth/developer/me'))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
    }
  })

  test('under another alias of the mailbox is left alone', async () => {
    const developer = await harness.developer()
    account = person(developer.email.replace('@', '+alias@'))
    expect(refusalOf(await signIn())).toEqual([409, 'EMAIL_EXISTS'])
    expect((await developer.get('/auth/developer/me')).data.oauth_providers).toEqual([])
  })
})

describe('whom the server lets in', () => {
  test('disposable addresses are refused', async () => {
    account = person('octo@mailinator.com')
    expect(refusalOf(await signIn())).toEqual([400, 'DISPOSABLE_EMAIL'])
  })

  test('invites and a closed sign-up holds for new accounts', async () => {
    const invited = await startHarness({ env: { ...env, SIGNUP_MODE: 'invite' } })
    expect(refusalOf(await finish(await begin(invited), {}, invited))).toEqual([403, 'INVITE_REQUIRED'])
    const wrong = { invite_code: 'SVC-7777-7777-7777-7777' }
    expect(refusalOf(await finish(await begin(invited), wrong, invited))).toEqual([403, 'INVITE_INVALID'])
    const [invite_code] = await inviteCodes(invited)
    expect((await finish(await begin(invited), { invite_code }, invited)).status).toBe(201)
    expect((await finish(await begin(invited), {}, invited)).status).toBe(200)
    const closed = await startHarness({ env: { ...env, SIGNUP_MODE: 'closed' } })
    expect(refusalOf(await finish(await begin(closed), {}, closed))).toEqual([403, 'SIGNUPS_CLOSED'])
  })

  test('without an application there is no GitHub', async () => {
    const plain = await startHarness()
    const start = await plain.anyone.get(`/auth/developer/github/start?redirect_uri=${encodeURIComponent(redirect)}`)
    expect(refusalOf(start)).toEqual([400, 'PROVIDER_NOT_CONFIGURED'])
    expect(refusalOf(await finish({ code: 'x', state: 'x' }, {}, plain))).toEqual([400, 'PROVIDER_NOT_CONFIGURED'])
  })

  test('both are bounded for an address', async () => {
    const here = harness.anyone.with({ 'x-forwarded-for': freshIp() })
    const start = `/auth/developer/github/start?redirect_uri=${encodeURIComponent(redirect)}`
    for (let n = 0; n < 20; n++) {
      expect((await here.get(start)).status).toBe(200)
      expect((await here.post('/auth/developer/github/callback', { code: 'x', state: 'x' })).status).toBe(401)
    }
    expect(refusalOf(await here.get(start))).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
    const last = await here.post('/auth/developer/github/callback', { code: 'x', state: 'x' })
    expect(refusalOf(last)).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
    const script = await here.get('/auth/developer/github/start?redirect_uri=javascript:alert(1)')
    expect(refusalOf(script)).toEqual([400, 'INVALID_INPUT'])
  })
})
