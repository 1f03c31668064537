import { createPublicKey, randomUUID } from 'node:crypto'
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  jwtVerify,
  SignJWT,
} from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const [project, other] = [await harness.project(), await harness.project()]
const { app } = project
const { services } = harness.running

const refresh = (token: string, by: Client = app) => by.post('/client/auth/refresh', { refresh_token: token })
const logout = (token: string, by: Client = app) => by.post('/client/auth/logout', { refresh_token: token })
const me = (token: string, by: Client = app) => by.get('/client/users/me', { authorization: `Bearer ${token}` })
const signIn = async (anonymous_id?: string) => (await app.post('/client/auth/anonymous', { anonymous_id })).data

afterEach(() => harness.setTime(null))

describe('session tokens', () => {
  test('say user, project, session and anonymous id, and verify by the published key alone', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const { session_token, user } = await signIn()
    const jwks = await app.get('/client/auth/jwks')
    expect(jwks.status).toBe(200)
    expect(jwks.headers.get('cache-control')).toBe('private, max-age=300')
    expect(jwks.data.keys).toHaveLength(1)
    // the public half and nothing more
    expect(Object.keys(jwks.data.keys[0]).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    const verified = await jwtVerify(session_token, createLocalJWKSet(jwks.data), {
      algorithms: ['ES256'],
      currentDate: harness.now(),
    })
    expect(verified.protectedHeader).toEqual({ alg: 'ES256', typ: 'JWT', kid: jwks.data.keys[0].kid })
    const [session] = await project.sql('select id from app.user_sessions where app_user_id = $1', [user.id])
    const issued = Date.parse('2026-11-21T10:00:00Z') / 1000
    expect(verified.payload).toEqual({
      sub: user.id,
      pid: project.id,
      sid: session.id,
      anon: user.anonymous_id,
      iat: issued,
      exp: issued + 3600,
    })
    const theirs = await other.app.get('/client/auth/jwks')
    await expect(
      jwtVerify(session_token, createLocalJWKSet(theirs.data), { currentDate: harness.now() }),
    ).rejects.toThrow()
    expectRefusal(await harness.anyone.get('/client/auth/jwks'), 401, 'UNAUTHORIZED')
  })

  test('have no anonymous id where there never was one, and keep the original one over refreshes', async () => {
    const email = `${randomUUID()}@example.org`
    const byEmail = await app.post('/client/auth/email/signup', { email, password: 'a long passphrase' })
    expect(decodeJwt(byEmail.data.session_token)['anon']).toBeNull()
    const { refresh_token, user } = await signIn()
    await project.sql('update app.users set anonymous_id = null where id = $1', [user.id])
    const { data } = await refresh(refresh_token)
    expect(decodeJwt(data.session_token)['anon']).toBe(user.anonymous_id)
  })

  test('live for an hour, then are to be refreshed', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const { session_token, refresh_token } = await signIn()
    harness.setTime('2026-11-21T10:59:59Z')
    expect((await me(session_token)).status).toBe(200)
    harness.setTime('2026-11-21T11:00:00Z')
    expectRefusal(await me(session_token), 401, 'TOKEN_EXPIRED')
    // also where it was never seen before
    const second = await startSecond(harness)
    expectRefusal(await me(session_token, second.as(app.headers)), 401, 'TOKEN_EXPIRED')
    const { data } = await refresh(refresh_token)
    expect((await me(data.session_token)).status).toBe(200)
    expectRefusal(await me(session_token), 401, 'TOKEN_EXPIRED')
  })

  test('of another project are refused, whichever was asked first', async () => {
    const [mine, theirs] = [await signIn(), (await other.app.post('/client/auth/anonymous')).data]
    expect((await me(mine.session_token)).status).toBe(200)
    // even where a user and a session of the same ids are there, as after a copy of the database
    await other.sql(`insert into app.users (id, display_name) values ($1, 'copy')`, [mine.user.id])
    await other.sql(
      `insert into app.user_sessions (id, app_user_id, refresh_hash, expires_at) values ($1, $2, 'x', now() + interval '1 day')`,
      [decodeJwt(mine.session_token)['sid'], mine.user.id],
    )
    expectRefusal(await me(mine.session_token, other.app), 401, 'UNAUTHORIZED')
    expectRefusal(await me(theirs.session_token), 401, 'UNAUTHORIZED')
    expect((await me(theirs.session_token, other.app)).status).toBe(200)
    // also when both projects had the same key: the claim decides
    const [edge, foreign] = await Promise.all([project, other].map(({ id }) => services.projectCache.byProject(id)))
    if (!edge || !foreign) throw new Error('the projects are there')
    const claims = { userId: mine.user.id, sid: String(decodeJwt(mine.session_token)['sid']), anon: null }
    const forged = await services.tokens.session({ ...edge, projectId: foreign.projectId }, claims)
    expect(decodeJwt(forged)['pid']).toBe(other.id)
    expectRefusal(await me(forged), 401, 'UNAUTHORIZED')
  })

  test('are refused when missing, malformed, altered, or signed in any other way', async () => {
    const { session_token, refresh_token } = await signIn()
    const claims = decodeJwt(session_token)
    const header = decodeProtectedHeader(session_token) as JWTHeaderParameters
    const [head, body] = session_token.split('.')
    const [jwk] = (await app.get('/client/auth/jwks')).data.keys
    const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString()
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const sign = (protectedHeader: JWTHeaderParameters, key: Parameters<SignJWT['sign']>[0]) =>
      new SignJWT(claims).setProtectedHeader(protectedHeader).sign(key)
    const bad = [
      'x',
      'a.b.c',
      refresh_token,
      project.clientKey,
      'x'.repeat(5000),
      `${session_token.slice(0, -2)}xx`,
      `${head}.${encode({ ...claims, sub: randomUUID() })}.${session_token.split('.')[2]}`,
      ...['none', 'None', 'NONE'].map((alg) => `${encode({ ...header, alg })}.${body}.`),
      `${head}.${body}.`,
      // the public key as a shared secret, in each form that it is published in
      await sign({ ...header, alg: 'HS256' }, Buffer.from(pem)),
      await sign({ ...header, alg: 'HS256' }, Buffer.from(JSON.stringify(jwk))),
      // a key of the attacker's own, also when the token brings it along
      await sign(header, privateKey),
      await sign({ ...header, jwk: await exportJWK(publicKey) }, privateKey),
      project.developer.accessToken,
    ]
    for (const token of bad) expectRefusal(await me(token), 401, 'UNAUTHORIZED')
    expectRefusal(await app.get('/client/users/me'), 401, 'UNAUTHORIZED')
    for (const authorization of [session_token, `Basic ${session_token}`, 'Bearer']) {
      expectRefusal(await app.get('/client/users/me', { authorization }), 401, 'UNAUTHORIZED')
    }
    expect((await me(session_token)).status).toBe(200)
  })

  test('without a session, or with an unknown one, are refused although the signature is ours', async () => {
    const { session_token, user } = await signIn()
    const edge = await services.projectCache.byProject(project.id)
    if (!edge) throw new Error('the project is there')
    const make = (sid: string) => services.tokens.session(edge, { userId: user.id, sid, anon: null })
    expectRefusal(await me(await make(randomUUID())), 401, 'UNAUTHORIZED')
    expectRefusal(await me(await make(undefined as unknown as string)), 401, 'UNAUTHORIZED')
    expect((await me(await make(String(decodeJwt(session_token)['sid'])))).status).toBe(200)
  })
})

describe('refresh', () => {
  test('replaces both tokens within the session', async () => {
    const { session_token, refresh_token } = await signIn()
    const { status, data } = await refresh(refresh_token)
    expect(status).toBe(200)
    expect(Object.keys(data).sort()).toEqual(['refresh_token', 'session_token'])
    const sid = decodeJwt(session_token)['sid']
    expect(sid).toBeTruthy()
    for (const token of [data.session_token, data.refresh_token, refresh_token])
      expect(decodeJwt(token)['sid']).toBe(sid)
    for (const token of [session_token, data.session_token]) expect((await me(token)).status).toBe(200)
    expect((await refresh(data.refresh_token)).status).toBe(200)
  })

  test('a replaced token ends the whole session, for good, and only that one', async () => {
    const requested = `anon_${randomUUID()}`
    const [mine, elsewhere] = [await signIn(requested), await signIn(requested)]
    const { data } = await refresh(mine.refresh_token)
    expect((await me(mine.session_token)).status).toBe(200)
    expectRefusal(await refresh(mine.refresh_token), 401, 'REFRESH_TOKEN_REUSED')
    for (const token of [mine.session_token, data.session_token]) expectRefusal(await me(token), 401, 'UNAUTHORIZED')
    for (const token of [mine.refresh_token, data.refresh_token])
      expectRefusal(await refresh(token), 401, 'INVALID_TOKEN')
    const [session] = await project.sql('select ended_at, end_reason from app.user_sessions where id = $1', [
      decodeJwt(mine.session_token)['sid'],
    ])
    expect(session).toEqual({ ended_at: expect.any(Date), end_reason: 'reuse' })
    expect((await me(elsewhere.session_token)).status).toBe(200)
    expect((await refresh(elsewhere.refresh_token)).status).toBe(200)
  })

  test('twenty at once with one token: one answer, and the session has ended', async () => {
    const { session_token, refresh_token, user } = await signIn()
    const row = `select from app.user_sessions where app_user_id = '${user.id}' for update`
    const answers = await meetingBehind(project.database, row, () =>
      Array.from({ length: 20 }, () => refresh(refresh_token)),
    )
    const good = answers.filter(({ status }) => status === 200)
    expect(good).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'REFRESH_TOKEN_REUSED')).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'INVALID_TOKEN')).toHaveLength(18)
    for (const token of [session_token, good[0]?.data.session_token])
      expectRefusal(await me(token), 401, 'UNAUTHORIZED')
    expectRefusal(await refresh(good[0]?.data.refresh_token), 401, 'INVALID_TOKEN')
  })

  test('renews the 90 days of the session', async () => {
    harness.setTime('2026-11-01T00:00:00Z')
    const { refresh_token } = await signIn()
    harness.advance(89 * 86_400)
    const once = await refresh(refresh_token)
    harness.advance(90 * 86_400 - 1)
    const twice = await refresh(once.data.refresh_token)
    expect(twice.status).toBe(200)
    harness.advance(90 * 86_400)
    expectRefusal(await refresh(twice.data.refresh_token), 401, 'INVALID_TOKEN')
  })

  test('refuses what is no refresh token of this project', async () => {
    const { session_token, refresh_token } = await signIn()
    const theirs = (await other.app.post('/client/auth/anonymous')).data.refresh_token
    for (const token of [
      'x',
      session_token,
      theirs,
      `${refresh_token}x`,
      'x'.repeat(100_000),
      project.developer.refreshToken,
    ]) {
      expectRefusal(await refresh(token), 401, 'INVALID_TOKEN')
    }
    expectRefusal(await refresh(refresh_token, other.app), 401, 'INVALID_TOKEN')
    for (const body of [{}, { refresh_token: '' }, { refresh_token: 1 }]) {
      expectRefusal(await app.post('/client/auth/refresh', body), 400, 'INVALID_INPUT')
    }
    // none of which has touched the session
    expect((await refresh(refresh_token)).status).toBe(200)
  })
})

describe('logout', () => {
  test('ends this session at once, here and in another server, and no other one; twice is no mistake', async () => {
    const second = await startSecond(harness)
    const there = second.as(app.headers)
    const requested = `anon_${randomUUID()}`
    const [mine, elsewhere] = [await signIn(requested), await signIn(requested)]
    expect((await me(mine.session_token)).status).toBe(200)
    expect((await me(mine.session_token, there)).status).toBe(200)
    for (let times = 0; times < 2; times += 1) {
      const { status, data } = await logout(mine.refresh_token)
      expect([status, data]).toEqual([200, { success: true }])
      expectRefusal(await me(mine.session_token), 401, 'UNAUTHORIZED')
      expectRefusal(await refresh(mine.refresh_token), 401, 'INVALID_TOKEN')
    }
    await expect.poll(async () => (await me(mine.session_token, there)).status).toBe(401)
    expect((await me(elsewhere.session_token)).status).toBe(200)
  })

  test('takes an unknown, expired or foreign token without doing anything', async () => {
    harness.setTime('2026-11-01T00:00:00Z')
    const { session_token, refresh_token } = await signIn()
    expect((await logout('x')).data).toEqual({ success: true })
    expect((await logout(session_token)).data).toEqual({ success: true })
    expect((await logout(refresh_token, other.app)).data).toEqual({ success: true })
    expect((await me(session_token)).status).toBe(200)
    harness.advance(90 * 86_400)
    expect((await logout(refresh_token)).data).toEqual({ success: true })
    expectRefusal(await app.post('/client/auth/logout', {}), 400, 'INVALID_INPUT')
  })
})

describe('API keys', () => {
  test.each([
    ['POST', '/client/auth/anonymous'],
    ['POST', '/client/auth/email/signup'],
    ['POST', '/client/auth/email/login'],
    ['POST', '/client/auth/refresh'],
    ['POST', '/client/auth/logout'],
    ['GET', '/client/auth/jwks'],
    ['GET', '/client/users/me'],
  ])('%s %s needs one that works', async (method, path) => {
    const body =
      method === 'POST' ? { email: 'a@example.org', password: 'a long passphrase', refresh_token: 'x' } : undefined
    const prefix = project.clientKey.slice(0, 18)
    for (const key of [
      undefined,
      '',
      'x',
      prefix,
      `${project.clientKey}x`,
      project.clientKey.toLowerCase(),
      'x'.repeat(300),
    ]) {
      const headers = key === undefined ? {} : { 'x-api-key': key }
      expectRefusal(await harness.anyone.request(method, path, body, headers), 401, 'UNAUTHORIZED')
    }
    // a developer's token is none
    expectRefusal(await project.developer.request(method, path, body), 401, 'UNAUTHORIZED')
  })
})
