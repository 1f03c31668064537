import { createHash, createPublicKey, randomUUID } from 'node:crypto'
import { exportSPKI, generateKeyPair, importJWK, SignJWT } from 'jose'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { bundleId, googleClientId, newEmail, startStage } from '#test/support/sign_in.ts'

const stage = await startStage()
const { harness, project, app, apple, google, device, social } = stage
const post = (id_token: string, more: object = {}) =>
  app.post('/client/auth/social', { provider: 'google', id_token, ...more })

afterEach(() => harness.setTime(null))

describe.each(['apple', 'google'] as const)('%s', (provider) => {
  test('makes a user with the verified address and the name of the token, and knows them again', async () => {
    const [sub, email] = [randomUUID(), newEmail()]
    const first = await social(provider, {
      sub,
      email: ` ${email.toUpperCase()}`,
      email_verified: true,
      name: 'Ada Byron',
    })
    expect([first.status, first.data.is_new_user]).toEqual([201, true])
    expect(first.data.user).toMatchObject({
      email,
      email_verified: true,
      display_name: 'Ada Byron',
      anonymous_id: null,
      auth_providers: [{ provider, provider_id: sub }],
    })
    expect((await stage.me(device(first))).status).toBe(200)
    // recognised by the provider's id, also with another address and name
    const again = await social(provider, { sub, email: newEmail(), email_verified: true, name: 'Other' })
    expect([again.status, again.data.is_new_user, again.data.user.id]).toEqual([200, false, first.data.user.id])
    expect(again.data.user).toMatchObject({ email, display_name: 'Ada Byron' })
    const events = await project.sql(
      `select event_name, properties from app.engagement_events where app_user_id = $1 order by id`,
      [first.data.user.id],
    )
    expect(events).toEqual([
      { event_name: 'svc.user.created', properties: { method: provider } },
      { event_name: 'svc.user.signed_in', properties: { method: provider } },
      { event_name: 'svc.user.signed_in', properties: { method: provider } },
    ])
  })

  test('an address that the provider has not verified is nobody’s', async () => {
    const email = newEmail()
    const victim = await stage.signup(email)
    for (const email_verified of [false, 'false', undefined, 0, 1, 'yes', null]) {
      const { status, data } = await social(provider, { email, email_verified })
      expect(status).toBe(201)
      expect(data.user).toMatchObject({ email: null, email_verified: false })
      expect(data.user.id).not.toBe(victim.id)
    }
    expect((await stage.login(email)).status).toBe(200)
  })

  test('twenty at once with one new identity make one user', async () => {
    const claims = { sub: randomUUID(), email: newEmail(), email_verified: true }
    const answers = await Promise.all(Array.from({ length: 20 }, () => social(provider, claims)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    expect(new Set(answers.map(({ data }) => data.user.id)).size).toBe(1)
  })
})

test('Apple sends email_verified as a string, and the name only to the app', async () => {
  const email = newEmail()
  const { data } = await social('apple', { email, email_verified: 'true' }, { name: '  Grace\tHopper ' })
  expect(data.user).toMatchObject({ email, email_verified: true, display_name: 'Grace Hopper' })
})

test('the name is the claim, else what was sent, else generated; too long ones are cut, odd ones cleaned', async () => {
  const named = async (name: unknown, sent?: string) =>
    (await social('google', { name }, sent === undefined ? {} : { name: sent })).data.user.display_name
  expect(await named('Claim', 'Sent')).toBe('Claim')
  expect(await named(undefined, 'Sent')).toBe('Sent')
  for (const nothing of [undefined, '', '  ', '\u0000\u0007', '\u200b\u200d', '\u3000', 7, null])
    expect(await named(nothing)).toMatch(/^[A-Z][a-z]+ [A-Z][a-z]+$/)
  expect(await named('🌱'.repeat(150))).toBe('🌱'.repeat(100))
  expect(await named('a\u0000b\ud800c')).toBe('a b c')
})

test('one identity is one user per project, and apple’s is not google’s', async () => {
  const sub = randomUUID()
  const [mine, theirs] = [await social('google', { sub }), await social('apple', { sub })]
  expect(mine.data.user.id).not.toBe(theirs.data.user.id)
  const other = await stage.newProject()
  const id_token = await stage.socialToken('google', { sub })
  const elsewhere = await other.app.post('/client/auth/social', { provider: 'google', id_token })
  expect(elsewhere.status).toBe(201)
})

describe('audiences', () => {
  test('a project without one refuses, by name', async () => {
    const bare = await harness.project()
    for (const [provider, field] of [
      ['apple', 'bundle_id'],
      ['google', 'google_oauth_client_id'],
    ] as const) {
      const answer = await bare.app.post('/client/auth/social', {
        provider,
        id_token: await stage.socialToken(provider, {}),
      })
      expectRefusal(answer, 400, 'AUDIENCE_NOT_CONFIGURED')
      expect(answer.error?.details).toEqual({ field })
    }
    // an audience that is configured later takes effect at once
    await bare.developer.patch(`/admin/projects/${bare.id}`, { bundle_id: bundleId })
    const id_token = await stage.socialToken('apple', {})
    expect((await bare.app.post('/client/auth/social', { provider: 'apple', id_token })).status).toBe(201)
  })

  test.each([
    ['another app', 'someone.else'],
    ['nobody', undefined],
    ['another app as well', [googleClientId, 'someone.else']],
    ['the other provider’s audience', bundleId],
    ['an empty list', []],
  ])('a token for %s is refused', async (_what, aud) => {
    expectRefusal(await social('google', { aud }), 401, 'INVALID_TOKEN')
  })

  test('a list of one is one', async () => expect((await social('google', { aud: [googleClientId] })).status).toBe(201))
})

describe('issuers', () => {
  test('Google spells itself in two ways', async () => {
    for (const iss of ['https://accounts.google.com', 'accounts.google.com'])
      expect((await social('google', { iss })).status).toBe(201)
  })
  test.each([
    'http://accounts.google.com',
    'https://accounts.google.com/',
    'https://appleid.apple.com',
    'evil',
    undefined,
  ])('%s is not Google', async (iss) => expectRefusal(await social('google', { iss }), 401, 'INVALID_TOKEN'))
  test('Apple has one spelling, and each its own keys', async () => {
    expectRefusal(await social('apple', { iss: 'appleid.apple.com' }), 401, 'INVALID_TOKEN')
    const signedByGoogle = await google.token({ iss: apple.issuer, aud: bundleId, sub: 'x' })
    expectRefusal(
      await app.post('/client/auth/social', { provider: 'apple', id_token: signedByGoogle }),
      401,
      'INVALID_TOKEN',
    )
  })
})

describe('times', () => {
  const at = (seconds: number) => Math.floor(harness.now().getTime() / 1000) + seconds
  test('expiry is exact, a clock that is ahead is forgiven a minute', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    expect((await social('google', { exp: at(1) })).status).toBe(201)
    expectRefusal(await social('google', { exp: at(0) }), 401, 'INVALID_TOKEN')
    expectRefusal(await social('google', { exp: at(-1) }), 401, 'INVALID_TOKEN')
    expect((await social('google', { iat: at(60) })).status).toBe(201)
    expectRefusal(await social('google', { iat: at(61) }), 401, 'INVALID_TOKEN')
    expectRefusal(await social('google', { nbf: at(61) }), 401, 'INVALID_TOKEN')
  })
  test.each([[{ exp: undefined }], [{ iat: undefined }], [{ exp: '9999999999' }], [{ iat: '1' }], [{ exp: null }]])(
    '%j is refused',
    async (claims) => expectRefusal(await social('google', claims), 401, 'INVALID_TOKEN'),
  )
})

describe('subjects', () => {
  test.each([undefined, '', 7, null, 'x'.repeat(256), 'a\u0000b', ['x']])('%j is nobody', async (sub) =>
    expectRefusal(await social('google', { sub }), 401, 'INVALID_TOKEN'),
  )
  test('of 255 characters is somebody', async () => {
    const sub = randomUUID().padEnd(255, 'x')
    expect((await social('google', { sub })).status).toBe(201)
  })
})

describe('nonces', () => {
  const sent = 'n-0S6_WzA2Mj'
  const hashed = createHash('sha256').update(sent).digest('hex')
  test.each([sent, hashed, hashed.toUpperCase()])('the claim %s fits', async (nonce) =>
    expect((await social('google', { nonce }, { nonce: sent })).status).toBe(201),
  )
  test.each([
    ['another', { nonce: 'x' }, { nonce: sent }],
    ['none in the token', {}, { nonce: sent }],
    ['none sent: whoever stole the token does not know it', { nonce: sent }, {}],
    ['the hash sent in the place of what was hashed', { nonce: sent }, { nonce: hashed }],
    ['a claim that is no text', { nonce: 7 }, { nonce: '7' }],
    ['an empty claim', { nonce: '' }, {}],
  ])('%s: refused', async (_what, claims, more) =>
    expectRefusal(await social('google', claims, more), 401, 'INVALID_TOKEN'),
  )
})

describe('bad tokens', () => {
  const encode = (value: object | string) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

  test('are refused whatever is wrong with them, and make nobody', async () => {
    const good = await stage.socialToken('google', { sub: 'bad-tokens' })
    const [head = '', body = '', signature = ''] = good.split('.')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const [key] = google.keys
    if (!key) throw new Error('the provider has a key')
    const kid = key.kid
    const publicPem = await exportSPKI((await importJWK(key.publicJwk, 'RS256')) as never)
    const pkcs1 = createPublicKey(publicPem).export({ type: 'pkcs1', format: 'pem' }).toString()
    const foreign = await generateKeyPair('RS256')
    const elliptic = await generateKeyPair('ES256')
    const sign = (alg: string, by: any, header: object = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(by)
    const other = async (alg: string) => sign(alg, (await generateKeyPair(alg)).privateKey)
    const jwk = { kty: 'oct', k: encode('secret'), kid }
    const bad = [
      'x',
      'a.b.c',
      '..',
      `${head}..${signature}`,
      `${head}.${body}.`,
      `${head}.${body}`,
      `${good}.x`,
      `${head}.${body}.${signature.slice(0, -8)}`,
      `${head}.${encode({ ...claims, sub: 'victim' })}.${signature}`,
      ...['none', 'None', 'NONE', 'nOnE', ''].map((alg) => `${encode({ alg, kid })}.${body}.`),
      `${encode({ kid })}.${body}.${signature}`,
      `${encode({ alg: 'RS256', kid, crit: ['exp'], exp: 1 })}.${body}.${signature}`,
      `${encode({ alg: 'RS256', kid, b64: false, crit: ['b64'] })}.${body}.${signature}`,
      `${encode('[]')}.${body}.${signature}`,
      `${head}.${encode('"x"')}.${signature}`,
      // the public key taken for a shared secret, in each form that it is known in
      ...(await Promise.all(
        [publicPem, pkcs1, JSON.stringify(key.publicJwk), key.publicJwk.n ?? ''].map((text) =>
          sign('HS256', Buffer.from(text)),
        ),
      )),
      // a key of the attacker, also when the token contains it (jwk) or names its URL (jku)
      await sign('RS256', foreign.privateKey),
      await sign('RS256', foreign.privateKey, { jwk: { kty: 'RSA', n: 'x', e: 'AQAB' } }),
      await sign('RS256', foreign.privateKey, { jku: 'https://evil.example/keys', x5u: 'https://evil.example/cert' }),
      await sign('ES256', elliptic.privateKey),
      await sign('HS256', Buffer.from('secret'), { jwk }),
      ...(await Promise.all(['PS256', 'RS384', 'RS512', 'ES384', 'EdDSA'].map(other))),
      // the right key with an algorithm that it was not published for
      await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid }).sign(elliptic.privateKey),
      // no key id, or one that is not a string
      await sign('RS256', key.privateKey, { kid: undefined }),
      `${encode({ alg: 'RS256', kid: 7 })}.${body}.${signature}`,
      `${encode({ alg: 'RS256', kid: '../../dev/null' })}.${body}.${signature}`,
    ]
    for (const token of bad) expectRefusal(await post(token), 401, 'INVALID_TOKEN')
    const rows = await project.sql(`select 1 from app.user_identities where provider_id in ('bad-tokens', 'victim')`)
    expect(rows).toEqual([])
    expect((await post(good)).status).toBe(201)
  })

  test('an encrypted, nested or repeated one is none of ours', async () => {
    const good = await stage.socialToken('google', {})
    for (const token of [`${good}.${good}`, good.split('.').slice(1).join('.'), `"${good}"`, good.replaceAll('.', ' ')])
      expectRefusal(await post(token), 401, 'INVALID_TOKEN')
  })

  test.each([
    [{}, 'provider'],
    [{ provider: 'facebook', id_token: 'x' }, 'provider'],
    [{ provider: 'google' }, 'id_token'],
    [{ provider: 'google', id_token: '' }, 'id_token'],
    [{ provider: 'google', id_token: 7 }, 'id_token'],
    [{ provider: 'google', id_token: 'x', nonce: '' }, 'nonce'],
    [{ provider: 'google', id_token: 'x', name: 7 }, 'name'],
  ])('the body %j is refused', async (body, field) => {
    const answer = await app.post('/client/auth/social', body)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })
})

test('of a project that has just been deleted the key is no good, though a server still knows it', async () => {
  const gone = await stage.newProject()
  expect((await gone.app.post('/client/auth/anonymous')).status).toBe(201)
  await harness.control('update app.projects set deleted_at = now() where id = $1', [gone.id])
  const id_token = await stage.socialToken('google', {})
  expectRefusal(await gone.app.post('/client/auth/social', { provider: 'google', id_token }), 401, 'UNAUTHORIZED')
})

test('a banned user is refused as banned, after the token has been verified', async () => {
  const sub = randomUUID()
  const { data } = await social('google', { sub })
  await project.sql('update app.users set is_banned = true where id = $1', [data.user.id])
  expectRefusal(await social('google', { sub }), 403, 'USER_BANNED')
})

test('an address of odd form is as if there were none', async () => {
  for (const email of [
    'nobody',
    'a@b',
    'a b@example.org',
    'x'.repeat(300),
    7,
    null,
    'a\u0000@example.org,b@example.org',
  ]) {
    const { status, data } = await social('google', { email, email_verified: true })
    expect([status, data.user.email]).toEqual([201, null])
  }
})

test('an OpenID provider that is not ours to write: oauth2-mock-server', async () => {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(0, 'localhost')
  const issuer = server.issuer.url ?? ''
  const own = await startHarness({ env: { GOOGLE_JWKS_URL: `${issuer}/jwks`, GOOGLE_ISSUER: issuer } })
  try {
    const there = await own.project()
    await there.developer.patch(`/admin/projects/${there.id}`, { google_oauth_client_id: googleClientId })
    const build = (aud: string) =>
      server.issuer.buildToken({
        scopesOrTransform: (_header, payload) => {
          payload['aud'] = aud
          payload['sub'] = 'subject-1'
          payload['email'] = 'grace@example.org'
          payload['email_verified'] = true
        },
      })
    const signIn = async (aud: string) =>
      there.app.post('/client/auth/social', { provider: 'google', id_token: await build(aud) })
    const { status, data } = await signIn(googleClientId)
    expect([status, data.user.email, data.user.auth_providers]).toEqual([
      201,
      'grace@example.org',
      [{ provider: 'google', provider_id: 'subject-1' }],
    ])
    expectRefusal(await signIn('someone.else'), 401, 'INVALID_TOKEN')
  } finally {
    await own.stop()
    await server.stop()
  }
})

test('a name of the provider that a rule of moderation blocks is hidden, and its bearer signs in', async () => {
  const rule = await project.admin.post('/moderation/rules', {
    name: 'Rule',
    rule_type: 'keyword',
    config: { words: ['casino'], action: 'block' },
  })
  const { status, data } = await social('google', { sub: 'moderated', name: 'Casino Royale' })
  expect([status, /casino/i.test(data.user.display_name)]).toEqual([201, false])
  const { data: queue } = await project.admin.get('/moderation/queue')
  expect(queue).toMatchObject([{ subject_id: data.user.id, rule_id: rule.data.id, is_hidden: true }])
  await project.admin.delete(`/moderation/rules/${rule.data.id}`)
})
