import { afterAll, beforeEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { appAddress, newPkce } from '#test/support/oauth.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** An issuer that means no good: what it publishes about itself. */
let told: object | string = {}
let location: string | null = null
const receiver = await startHttpsReceiver({
  handler: (_request, response) => {
    response.setHeader('content-type', 'application/json')
    if (location !== null) response.writeHead(302, { location })
    response.end(typeof told === 'string' ? told : JSON.stringify(told))
  },
})
const issuer = receiver.url.slice(0, -1)
const env = { WEBHOOK_CA_FILE: receiver.caFile, WEBHOOK_ALLOWED_CIDRS: '127.0.0.1' }
const harness = await startHarness({ env })
const { admin, app, id } = await harness.project()
afterAll(() => receiver.close())
expect((await admin.put('/oauth/redirects', { addresses: [appAddress] })).status).toBe(200)
const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
}
beforeEach(() => {
  told = metadata
  location = null
})

/** Of a server that knows nothing of the issuer yet. */
const begun = () => {
  harness.advance(3601)
  return app.post('/client/auth/oauth/begin', { provider: 'bad', code_challenge: newPkce().challenge })
}
const tried = async () => (await admin.post('/oauth/providers/bad/test', {})).data
expect((await admin.put('/oauth/providers/bad', { issuer, client_id: 'x', client_secret: 'y' })).status).toBe(201)

test('a good one begins a sign-in', async () => {
  expect((await begun()).data.url).toMatch(`${issuer}/authorize?`)
})

test.each(['http://127.0.0.1/authorize', 'javascript:alert(1)//', 'data:text/html,x', '', undefined])(
  'a page of sign-in at %s is not opened',
  async (authorization_endpoint) => {
    told = { ...metadata, authorization_endpoint }
    expectRefusal(await begun(), 503, 'SERVICE_UNAVAILABLE')
  },
)

test('a configuration that is huge, elsewhere, of another issuer or none is not read', async () => {
  for (const bad of [
    { ...metadata, padding: 'x'.repeat(257 * 1024) },
    { ...metadata, issuer: 'https://accounts.google.com' },
    '[]',
    'null',
    '<html>',
  ]) {
    told = bad
    expectRefusal(await begun(), 503, 'SERVICE_UNAVAILABLE')
    expect(await tried()).toMatchObject({ ok: false })
  }
  told = metadata
  const before = receiver.requests.length
  location = `${issuer}/elsewhere`
  expectRefusal(await begun(), 503, 'SERVICE_UNAVAILABLE')
  // a redirect is not followed: not to a public address, nor to one that is none
  expect(receiver.requests).toHaveLength(before + 1)
})

test('the secret is not sent to an address within, whatever the issuer says', async () => {
  for (const token_endpoint of ['https://10.0.0.1/token', 'https://169.254.169.254/', `http://127.0.0.1/token`]) {
    told = { ...metadata, token_endpoint }
    const answer = await tried()
    expect(answer, token_endpoint).toMatchObject({ ok: false, error: 'provider_refused' })
    const { data } = await begun()
    const state = new URL(data.url).searchParams.get('state')
    const address = `${harness.url}/p/${id}/auth/v1/callback?code=x&state=${state}`
    const back = new URL((await fetch(address, { redirect: 'manual' })).headers.get('location') ?? '')
    expect(Object.fromEntries(back.searchParams)).toMatchObject({ error: 'server_error' })
  }
  expect(receiver.requests.every(({ path }) => path === '/.well-known/openid-configuration')).toBe(true)
})
