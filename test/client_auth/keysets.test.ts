import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { expectRefusal } from '#test/support/refusals.ts'
import { googleClientId, startStage } from '#test/support/sign_in.ts'

/** Fetching, caching and rotating a provider's keys. The tests run in order, over the lifetime of one server. */
const stage = await startStage({ env: { LOG_LEVEL: 'silent' } })
const { harness, google, app, social } = stage
const signIn = async (id_token: string) => app.post('/client/auth/social', { provider: 'google', id_token })

let fetchedBefore = 0
beforeEach(() => {
  fetchedBefore = google.fetched()
})
afterEach(() => {
  google.fail(null)
  google.answer(null)
})
const fetches = () => google.fetched() - fetchedBefore

harness.setTime('2026-11-22T08:00:00Z')

describe('keys of a provider', () => {
  test('while none can be had, 503 and Retry-After; asked for at most every 30 seconds', async () => {
    google.fail(500)
    for (let times = 0; times < 5; times += 1) {
      const answer = await social('google', {})
      expectRefusal(answer, 503, 'SERVICE_UNAVAILABLE')
      expect(answer.headers.get('retry-after')).toBe('30')
    }
    expect(fetches()).toBe(1)
    google.fail(null)
    expectRefusal(await social('google', {}), 503, 'SERVICE_UNAVAILABLE')
    harness.advance(30)
    expect((await social('google', {})).status).toBe(201)
    expect(fetches()).toBe(2)
  })

  test('are fetched once for everybody, and kept', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => social('google', {})))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201))
    expect(fetches()).toBe(0)
  })

  test('a key that is new is fetched, the old one goes on while it is published', async () => {
    harness.advance(60)
    const [old] = google.keys
    const rotated = await google.rotate()
    expect((await social('google', {})).status).toBe(201)
    expect(fetches()).toBe(1)
    const byOld = await google.token({ aud: googleClientId, sub: 'old' }, {}, old)
    expect((await signIn(byOld)).status).toBe(201)
    expect(rotated.kid).not.toBe(old?.kid)
    expect(fetches()).toBe(1)
  })

  test('a thousand invented key ids fetch once in 30 seconds', async () => {
    harness.advance(60)
    const tokens = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        google.token({ aud: googleClientId, sub: 'x' }, { kid: `no-${index}` }),
      ),
    )
    for (const token of tokens.slice(0, 50)) expectRefusal(await signIn(token), 401, 'INVALID_TOKEN')
    await Promise.all(tokens.slice(50).map(async (token) => expectRefusal(await signIn(token), 401, 'INVALID_TOKEN')))
    expect(fetches()).toBe(1)
    harness.advance(30)
    for (const token of tokens.slice(0, 3)) expectRefusal(await signIn(token), 401, 'INVALID_TOKEN')
    expect(fetches()).toBe(2)
    // sign-ins with known keys still succeed
    expect((await social('google', {})).status).toBe(201)
  })

  test('an outage is survived for a day by the keys that we have', async () => {
    google.fail(503)
    harness.advance(3600)
    expect((await social('google', {})).status).toBe(201)
    expect((await social('google', {})).status).toBe(201)
    expect(fetches()).toBe(1)
    // an invalid set does not replace the cached one either
    google.fail(null)
    for (const body of ['', '{}', '[]', 'null', '{"keys": []}', '{"keys": {}}', 'x'.repeat(70_000)]) {
      google.answer(body)
      harness.advance(31)
      expect((await social('google', {})).status).toBe(201)
    }
    expect(fetches()).toBe(8)
    harness.advance(20 * 3600)
    expect((await social('google', {})).status).toBe(201)
    harness.advance(4 * 3600)
    expectRefusal(await social('google', {}), 503, 'SERVICE_UNAVAILABLE')
    google.answer(null)
    harness.advance(30)
    expect((await social('google', {})).status).toBe(201)
  })

  test('a key that is not published any more stops working within the hour', async () => {
    const gone = google.keys.splice(0, 1)[0]
    const token = () => google.token({ aud: googleClientId, sub: 'gone' }, {}, gone)
    expect((await signIn(await token())).status).toBe(201)
    harness.advance(3600)
    expectRefusal(await signIn(await token()), 401, 'INVALID_TOKEN')
    expect((await social('google', {})).status).toBe(201)
  })

  test('what a set holds beside good keys is passed over', async () => {
    harness.advance(3600)
    const [good] = google.keys
    const secret = { kty: 'oct', k: 'c2VjcmV0', kid: 'secret', alg: 'HS256' }
    const encryption = { ...good?.publicJwk, kid: 'encryption', use: 'enc' }
    const other = { ...good?.publicJwk, kid: 'other', alg: 'RS512' }
    google.answer(JSON.stringify({ keys: [null, 7, 'x', {}, secret, encryption, other, good?.publicJwk] }))
    expect((await social('google', {})).status).toBe(201)
    for (const kid of ['secret', 'encryption', 'other']) {
      expectRefusal(await signIn(await google.token({ aud: googleClientId, sub: 'x' }, { kid })), 401, 'INVALID_TOKEN')
    }
  })
})
