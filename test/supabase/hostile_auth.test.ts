import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bodyOf, inUrl, knock, longEnough, often, queryOf, wordsOf } from '#test/support/hostile.ts'
import { newEmail, password, startStage } from '#test/support/sign_in.ts'

/** What is not understood makes and changes nobody, whoever sends it. */
const { harness, project, signup } = await startStage()
await project.admin.patch('', { rest_enabled: true })
const own = await signup(newEmail())
/** Whose password and tokens nobody sends. */
const kept = await signup(newEmail(), { password: 'a passphrase that nobody knows' })
const keys = { apikey: project.clientKey }
const member = { ...keys, authorization: `Bearer ${own.token}` }

const rowsOf = () =>
  project.sql(
    `select u.*::text as "user",
            (select jsonb_agg(i order by i.id) from app.user_identities i where i.app_user_id = u.id) as identities,
            (select jsonb_agg(s order by s.id) from app.user_sessions s where s.app_user_id = u.id) as sessions
       from app.users u where u.id = $1`,
    [kept.id],
  )
const unchanged = async (work: () => Promise<unknown>) => {
  const before = await rowsOf()
  await work()
  expect(await rowsOf()).toEqual(before)
}

/** In the form of auth-js, but where the path is none. */
const expectTold = (status: number, text: string) => {
  if (status < 400) return
  const { error_code, error } = JSON.parse(text) as { error_code?: string; error?: { code: string } }
  expect(error_code ?? error?.code, text).toMatch(/^[\w]+$/)
}
const word = wordsOf(
  ...['', 'none', 'S256', 's256', 'plain', 'email', 'sms', 'google', 'password', 'refresh_token', 'id_token', 'pkce'],
  ...[
    'global',
    'local',
    'others',
    'magiclink',
    'recovery',
    'a@example.org',
    'a@xn--a.example',
    '+4930123456',
    password,
  ],
  ...[kept.id, kept.user.email, '000000', 'https://example.org', 'null', 'true', '-1', '876000h'],
)
const email = fc.oneof(
  fc.uuid().map((id) => `${id}@example.org`),
  fc.constantFrom(kept.user.email, own.user.email, 'a@xn--a.example', 'A@example.org ', '"a b"@example.org'),
)
const address = { email, phone: fc.constantFrom(undefined, '+4930123456') }
const secret = fc.constantFrom(password, 'another long passphrase', '', 'a'.repeat(2000))
const code = fc.constantFrom('000000', '123456', '0', '')
const data = fc.dictionary(word, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 })
const type = fc.constantFrom('email', 'sms', 'magiclink', 'recovery', 'signup', 'email_change')
/** What auth-js asks for. */
const asks: readonly (readonly [string, Readonly<Record<string, fc.Arbitrary<unknown>>>])[] = [
  ['POST signup', { email, password: secret, data }],
  ['POST signup', { data }],
  ['POST token?grant_type=password', { email, password: secret }],
  ['POST token?grant_type=refresh_token', { refresh_token: word }],
  ['POST token?grant_type=id_token', { provider: fc.constantFrom('google', 'apple'), id_token: word, nonce: word }],
  ['POST token?grant_type=pkce', { auth_code: word, code_verifier: word }],
  ['POST otp', { ...address, create_user: fc.boolean(), channel: word }],
  ['POST resend', { ...address, type }],
  ['POST recover', address],
  ['POST verify', { ...address, type, token: code }],
  ['POST verify', { type, token_hash: word }],
  ['PUT user', { data }],
  ['PUT user', { ...address, nonce: code, data }],
  ['PUT user', { password: secret, current_password: secret }],
  ['GET user', { data }],
  ['GET user/identities/authorize?provider=google&code_challenge_method=s256', { data }],
  ['DELETE user/identities/x', { data }],
  ['GET settings', { data }],
  ['GET .well-known/jwks.json', { data }],
]
const paths = [
  ...['health', 'authorize', 'callback', 'invite', 'admin/users', `admin/users/${kept.id}`, 'admin/generate_link'],
  ...['factors', 'sso', 'magiclink', 'reauthenticate', '', 'admin', 'user/', 'token/', 'verify', 'admin/audit'],
]
const queries = ['grant_type', 'scope', 'redirect_to', 'provider', 'code_challenge', 'code_challenge_method', 'page']
const query = fc.oneof({ weight: 3, arbitrary: fc.constant('') }, queryOf(queries, word))
const sent = fc.oneof(
  ...asks.map(([route, fields]) => fc.tuple(fc.constant(route), query, bodyOf(fields, word))),
  fc.tuple(
    fc
      .tuple(
        fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'),
        fc.oneof(fc.constantFrom(...paths), inUrl(word)),
      )
      .map((parts) => parts.join(' ')),
    query,
    bodyOf({ ...address, password: secret, type, data }, word),
  ),
)
const credentials = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<Record<string, string>>(keys, member) },
  fc.constantFrom<Record<string, string>>({}, { apikey: own.token }, { authorization: `Bearer ${project.clientKey}` }),
  fc
    .string({ maxLength: 40 })
    .map((text) => text.replace(/[^ -~]|^\s|\s$/g, ''))
    .map((text): Record<string, string> => ({ ...keys, authorization: text, 'x-on-behalf-of': text })),
)
const json = { 'content-type': 'application/json' }

test('a parameter that is given twice is refused by name', async () => {
  const path = '/auth/v1/user/identities/authorize?provider=google&code_challenge=a&code_challenge=b'
  const { status, text } = await knock(harness.url, { method: 'GET', path, headers: member })
  expect([status, JSON.parse(text)]).toMatchObject([400, { details: { field: 'code_challenge' } }])
})

test(
  '/auth/v1, without a session and with one',
  () =>
    unchanged(() =>
      often(fc.tuple(sent, credentials), async ([[route, more, body], who]) => {
        const [method = '', path = ''] = route.split(' ')
        const url = `/auth/v1/${path}${path.includes('?') ? '&' : '?'}${more}`
        const { status, text } = await knock(harness.url, { method, path: url, headers: { ...who, ...json }, body })
        if (method !== 'HEAD') expectTold(status, text)
      }),
    ),
  longEnough,
)

test(
  'users, with the server key: what is not understood is refused by name',
  () =>
    unchanged(async () => {
      const value = wordsOf('a@example.org', '+4930123456', 'none', '24h', '876000h', password, 'magiclink', 'invite')
      const fields = { ...address, password: secret, user_metadata: data, email_confirm: fc.boolean() }
      const ban_duration = fc.constantFrom('none', '24h', '876000h')
      const refused = {
        id: word,
        role: word,
        app_metadata: data,
        nonce: word,
        password_hash: word,
        should_soft_delete: word,
      }
      const link = {
        type: fc.constantFrom('signup', 'magiclink', 'recovery', 'invite'),
        email,
        data,
        redirect_to: word,
      }
      const routes = ['POST admin/users', `PUT admin/users/${own.id}`, 'POST admin/generate_link', 'POST invite']
      const at = fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...routes, 'GET admin/users', `GET admin/users/${own.id}`) },
        inUrl(value).map((text) => `GET admin/users/${text}`),
        inUrl(value).map((text) => `PUT admin/users/${text}`),
        inUrl(value).map((text) => `DELETE admin/users/${text}`),
      )
      const body = fc.oneof(
        ...[fields, { ...fields, ban_duration }, { email, ...refused }, link].map((one) => bodyOf(one, value)),
      )
      const asked = fc.tuple(at, queryOf(['page', 'per_page', 'filter'], value), body)
      await often(asked, async ([route, more, sentBody]) => {
        const [method = '', path = ''] = route.split(' ')
        const headers = { apikey: project.serverKey, ...json }
        const { status, text } = await knock(harness.url, {
          method,
          path: `/auth/v1/${path}?${more}`,
          headers,
          body: sentBody,
        })
        expectTold(status, text)
      })
    }),
  longEnough,
)
