import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bodyOf, inUrl, knock, longEnough, often, queryOf, wordsOf } from '#test/support/hostile.ts'
import { appAddress, newPkce, startOauthStage, webAddress } from '#test/support/oauth.ts'

/** The addresses of a sign-in by redirect: nobody is made, nothing is set, and the browser goes nowhere else. */
const { harness, project, begin, oidc, mock } = await startOauthStage()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const { challenge } = newPkce()
const deep = 'https://orchard.example.com/deep/'
const states = await Promise.all(
  Array.from({ length: 20 }, async () => new URL((await begin()).url).searchParams.get('state') ?? ''),
)
const untaken = new URL((await begin()).url).searchParams.get('state') ?? ''

const rowsOf = async () => [
  await project.sql('select id, count(*) over () from app.users order by id'),
  await project.sql('select count(*) from app.user_identities'),
  await project.sql('select p::text from app.oauth_providers p order by p.name'),
  await project.sql('select r::text from app.oauth_redirects r order by r.position'),
  await project.sql(`select f::text from app.oauth_flows f where f.state_hash = encode(sha256($1::bytea), 'hex')`, [
    untaken,
  ]),
]
const unchanged = async (work: () => Promise<unknown>) => {
  const before = await rowsOf()
  expect(before[4]).toHaveLength(1)
  await work()
  expect(await rowsOf()).toEqual(before)
}

const word = wordsOf(
  ...['acme', 'mock', 'google', challenge, 'S256', 's256', 'plain', appAddress, webAddress, `${deep}a`, `${deep}../a`],
  ...[
    'https://evil.example',
    '//evil.example',
    `${webAddress}@evil.example`,
    'https://orchard.example.com\\@evil.example',
  ],
  ...['javascript:alert(1)', 'https://orchard.example.com.evil.example/signed-in', 'true', project.clientKey, 'openid'],
)
/** The address of a browser that was sent on: a page of a provider, or an allowed one. */
const expectWithin = (location: string, path: string) => {
  const url = new URL(location)
  const provider = [oidc.issuer, mock.issuer.url ?? ''].map((issuer) => new URL(issuer).origin)
  if (provider.includes(url.origin)) return
  const at = url.href.split('?')[0] ?? ''
  expect([webAddress, appAddress].includes(at) || at.startsWith(deep), `${path} -> ${location}`).toBe(true)
}
const roots = fc.oneof(
  { weight: 8, arbitrary: fc.constant(`/p/${project.id}`) },
  fc.constantFrom('', '/p/00000000-0000-4000-8000-000000000000', '/p/x'),
)
const methods = fc.oneof(
  { weight: 15, arbitrary: fc.constant('GET') },
  fc.constantFrom('HEAD', 'POST', 'PUT', 'DELETE'),
)

test(
  '/auth/v1/authorize',
  () =>
    unchanged(() => {
      const names = ['provider', 'redirect_to', 'code_challenge', 'code_challenge_method', 'scopes', 'prompt', 'apikey']
      const more = queryOf([...names, 'login_hint', 'skip_http_redirect', 'state', 'nonce', 'client_id'], word)
      const likely = fc
        .tuple(inUrl(word), more)
        .map(([to, rest]) => `provider=acme&code_challenge=${challenge}&redirect_to=${to}&${rest}`)
      const sent = fc.tuple(roots, methods, fc.oneof({ weight: 4, arbitrary: likely }, more))
      return often(sent, async ([root, method, query]) => {
        const path = `${root}/auth/v1/authorize?${query}`
        const { status, location } = await knock(harness.url, { method, path })
        if (location !== null && status < 400) expectWithin(location, path)
      })
    }),
  longEnough,
)

test(
  '/auth/v1/callback',
  () =>
    unchanged(() => {
      const state = fc.oneof(fc.constantFrom(...states), word)
      const more = queryOf(['code', 'state', 'error', 'error_description', 'iss', 'user', 'id_token', 'scope'], word)
      const likely = fc.tuple(inUrl(state), more).map(([text, rest]) => `state=${text}&${rest}`)
      const sent = fc.tuple(roots, methods, fc.oneof(likely, more), fc.oneof(likely, fc.string()))
      return often(sent, async ([root, method, query, body]) => {
        const path = `${root}/auth/v1/callback?${query}`
        const headers = method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
        const { status, location } = await knock(harness.url, { method, path, headers, body })
        if (location !== null && status < 400) expectWithin(location, path)
      })
    }),
  longEnough,
)

test(
  'the routes of our own',
  () =>
    unchanged(() => {
      const admin = `/v1/admin/projects/${project.id}/oauth`
      const client = '/v1/client/auth/oauth'
      const at = fc.oneof(
        {
          weight: 9,
          arbitrary: fc.constantFrom(`POST ${client}/begin`, `POST ${client}/link`, `POST ${client}/exchange`),
        },
        fc.constantFrom(`GET ${admin}/providers`, `PUT ${admin}/redirects`, `DELETE ${admin}/providers/acme`),
        inUrl(word).map((text) => `PUT ${admin}/providers/${text}`),
        inUrl(word).map((text) => `POST ${client}/${text}`),
        fc.constantFrom(`POST ${admin}/providers/acme/test`, `GET ${client}/begin`, `DELETE ${client}/exchange`),
      )
      const begun = {
        provider: fc.constantFrom('acme', 'mock'),
        redirect_to: word,
        code_challenge: fc.constant(challenge),
      }
      const body = fc.oneof(
        bodyOf({ ...begun, scopes: fc.array(word), login_hint: word, prompt: word }, word),
        bodyOf({ code: word, code_verifier: fc.constant(challenge) }, word),
        bodyOf(
          { issuer: fc.constant(oidc.issuer), client_id: word, client_secret: word, addresses: fc.array(word) },
          word,
        ),
      )
      const who = fc.constantFrom<Record<string, string>>(
        {},
        { 'x-api-key': project.clientKey },
        { 'x-api-key': project.serverKey },
        { 'x-api-key': project.clientKey, authorization: `Bearer ${user.sessionToken}` },
        { authorization: `Bearer ${user.sessionToken}` },
      )
      return often(fc.tuple(at, queryOf(['a'], word), body, who), async ([route, query, text, headers]) => {
        const [method = '', path = ''] = route.split(' ')
        const type = { 'content-type': 'application/json' }
        await knock(harness.url, { method, path: `${path}?${query}`, headers: { ...headers, ...type }, body: text })
      })
    }),
  longEnough,
)

test(
  'the routes of our own, as an administrator: what is no provider is refused',
  async () => {
    const admin = `/v1/admin/projects/${project.id}/oauth`
    const at = fc.oneof(
      fc.constantFrom('/redirects', '/providers/apple', '/providers/github', '/providers/own'),
      inUrl(word).map((text) => `/providers/${text}`),
    )
    const body = fc.oneof(
      bodyOf({ client_id: word, client_secret: word, scopes: fc.array(word) }, word),
      bodyOf({ issuer: fc.constantFrom(oidc.issuer, webAddress), client_id: word, is_active: fc.boolean() }, word),
      bodyOf({ client_id: word, client_secret: word, team_id: word, signing_key_id: word }, word),
      bodyOf({ addresses: fc.array(word) }, word),
    )
    const method = fc.oneof({ weight: 5, arbitrary: fc.constant('PUT') }, fc.constantFrom('GET', 'DELETE', 'POST'))
    const asked = fc.tuple(method, at, queryOf(['a'], word), body)
    const { authorization = '' } = project.admin.headers
    const headers = { authorization, 'content-type': 'application/json' }
    await often(asked, async ([method, path, query, body]) => {
      await knock(harness.url, { method, path: `${admin}${path}?${query}`, headers, body })
    })
  },
  longEnough,
)
