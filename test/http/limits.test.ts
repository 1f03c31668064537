import { afterEach, describe, expect, test, vi } from 'vitest'
import { addressKey, createRateLimiter } from '#server/http/rate_limiter.ts'
import { type Answer, type Client, freshEmail, freshIp, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'

const harness = await startHarness()
const second = await startSecond(harness)
const { anyone } = harness
const password = 'a long passphrase'

afterEach(() => harness.setTime(null))

/** Calls at once, every other one to the second server. */
const atOnce = (count: number, one: (client: Client, index: number) => Promise<Answer>, there = second.as()) =>
  Promise.all(Array.from({ length: count }, (_, index) => one(index % 2 ? there : anyone, index)))

/** Exactly `most` of the answers passed; the rest say when to come back. */
const expectExactly = (answers: readonly Answer[], most: number, window: number, code = 'RATE_LIMIT_EXCEEDED') => {
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.length - refused.length).toBe(most)
  for (const { error, headers } of refused) {
    expect(error?.code).toBe(code)
    const wait = Number(headers.get('retry-after'))
    expect(Number.isInteger(wait) && wait >= 1 && wait <= window + 2, `Retry-After ${wait}`).toBe(true)
    expect(error?.details.retry_after_seconds).toBe(wait)
  }
}

const from = (ip: string) => ({ 'x-forwarded-for': ip })
const signup = (client: Client, ip: string, body: object = {}) =>
  client.post('/auth/developer/signup', { email: freshEmail(), password, ...body }, from(ip))
const login = (client: Client, ip: string, email = freshEmail(), word = password) =>
  client.post('/auth/developer/login', { email, password: word }, from(ip))

describe('developer sign-up', () => {
  test('5 a minute per address, whichever server is asked; the window begins at the first attempt', async () => {
    harness.setTime('2026-11-21T10:00:50Z')
    const ip = freshIp()
    expectExactly(await atOnce(25, (client) => signup(client, ip)), 5, 60)
    // the clock's next minute is no new window
    harness.advance(59)
    const late = await signup(anyone, ip)
    expect([late.status, late.headers.get('retry-after')]).toEqual([429, '1'])
    expect((await signup(anyone, freshIp())).status).toBe(201)
    harness.advance(1)
    expectExactly(await atOnce(10, (client) => signup(client, ip)), 5, 60)
  })

  test('50 a day; what was refused did not count', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const ip = freshIp()
    for (let minute = 0; minute < 10; minute += 1) {
      expectExactly(await atOnce(7, (client) => signup(client, ip)), 5, 86_400)
      harness.advance(60)
    }
    const full = await signup(anyone, ip)
    expect([full.status, full.headers.get('retry-after')]).toEqual([429, String(86_400 - 600)])
    harness.setTime('2026-11-22T10:00:00Z')
    expect((await signup(anyone, ip)).status).toBe(201)
  })

  test('malformed attempts are not counted, well-formed ones are, also those that fail', async () => {
    const ip = freshIp()
    const { email } = await harness.developer()
    const malformed = [{ email: 'x' }, { password: 'short' }, { password: 7 }, { name: 1 }]
    for (const body of [...malformed, ...malformed]) expect((await signup(anyone, ip, body)).status).toBe(400)
    for (let times = 0; times < 3; times += 1) expect((await signup(anyone, ip, { email })).status).toBe(409)
    for (let times = 0; times < 2; times += 1)
      expect((await signup(anyone, ip, { email: 'x@mailinator.com' })).error?.code).toBe('DISPOSABLE_EMAIL')
    expect((await signup(anyone, ip)).status).toBe(429)
  })
})

describe('addresses', () => {
  test('an IPv6 caller counts by its /64', async () => {
    const addresses = ['2001:db8:5:6::1', '2001:DB8:5:6:ffff::2', '2001:0db8:0005:0006:1:2:3:4']
    expectExactly(await atOnce(12, (client, index) => signup(client, addresses[index % 3] ?? '')), 5, 60)
    expect((await signup(anyone, '2001:db8:5:7::1')).status).toBe(201)
  })

  test.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::FFFF:a01:203', '10.1.2.3'],
    ['10.1.2.3:49152', '10.1.2.3'],
    ['[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:ffff:ffff:ffff:ffff', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1:2::4:5:6:7.8.9.10', '1:2:0:4::/64'],
    ['nonsense', 'nonsense'],
  ])('%s counts as %s', (ip, key) => expect(addressKey(ip)).toBe(key))

  test('no text in the place of an address makes a key that cannot be stored', () => {
    expect(addressKey('x'.repeat(5000))).toBe('x'.repeat(100))
  })
})

describe('developer login', () => {
  test('10 a minute per address, successes too', async () => {
    const ip = freshIp()
    const { email } = await harness.developer()
    const answers = await atOnce(30, (client) => login(client, ip, email))
    expectExactly(answers, 10, 60)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
  })

  test('100 a day per address', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const ip = freshIp()
    for (let minute = 0; minute < 10; minute += 1) {
      expectExactly(await atOnce(12, (client) => login(client, ip)), 10, 86_400)
      harness.advance(60)
    }
    expect((await login(anyone, ip)).status).toBe(429)
    harness.setTime('2026-11-22T10:00:00Z')
    expect((await login(anyone, ip)).status).toBe(401)
  })

  test('20 failures an hour per account, from anywhere; refused attempts cost their address nothing', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const { email } = await harness.developer()
    expectExactly(await atOnce(40, (client) => login(client, freshIp(), email, 'wrong')), 20, 3600)
    // the right password is not looked at either, until the hour is over
    const ip = freshIp()
    for (let times = 0; times < 12; times += 1) expect((await login(anyone, ip, email)).status).toBe(429)
    expect((await login(anyone, ip)).status).toBe(401)
    harness.advance(3600)
    expect((await login(anyone, ip, email)).status).toBe(200)
  })

  test('100 failures a day per account', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const { email } = await harness.developer()
    for (let hour = 0; hour < 5; hour += 1) {
      expectExactly(await atOnce(21, (client) => login(client, freshIp(), email, 'wrong')), 20, 86_400)
      harness.advance(3600)
    }
    const full = await login(anyone, freshIp(), email)
    expect([full.status, full.headers.get('retry-after')]).toEqual([429, String(86_400 - 5 * 3600)])
  })

  test('a success gives its attempt back, and does not forgive the failures before it', async () => {
    const { email } = await harness.developer()
    for (let times = 0; times < 19; times += 1)
      expect((await login(anyone, freshIp(), email, 'wrong')).status).toBe(401)
    for (let times = 0; times < 3; times += 1) expect((await login(anyone, freshIp(), email)).status).toBe(200)
    expect((await login(anyone, freshIp(), email, 'wrong')).status).toBe(401)
    expect((await login(anyone, freshIp(), email)).status).toBe(429)
  })

  test('a window whose attempts were all refunded begins again with the next attempt', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const { email } = await harness.developer()
    expect((await login(anyone, freshIp(), email)).status).toBe(200)
    harness.advance(3590)
    expectExactly(await atOnce(20, (client) => login(client, freshIp(), email, 'wrong')), 20, 3600)
    harness.advance(3599)
    const late = await login(anyone, freshIp(), email)
    expect([late.status, late.headers.get('retry-after')]).toEqual([429, '1'])
    harness.advance(1)
    expect((await login(anyone, freshIp(), email)).status).toBe(200)
  })

  test('aliases share a budget whether or not there is an account, so that the limit does not reveal accounts', async () => {
    const name = freshEmail().split('@')[0]
    const answers = await atOnce(30, (client, index) => login(client, freshIp(), `${name}+${index}@example.org`))
    expectExactly(answers, 20, 3600)
  })
})

test('developer refresh: 30 a minute per address', async () => {
  const ip = freshIp()
  const answers = await atOnce(50, (client) => client.post('/auth/developer/refresh', { refresh_token: 'x' }, from(ip)))
  expectExactly(answers, 30, 60)
})

describe('client sign-in with a password', async () => {
  const project = await harness.project()
  const there = second.as({ 'x-api-key': project.clientKey })
  const signIn = (client: Client, ip: string, email = freshEmail(), word = password) =>
    client
      .with({ 'x-api-key': project.clientKey })
      .post('/client/auth/email/login', { email, password: word }, from(ip))
  /** A new minute, hour and day: the ceiling of the app is shared by these tests. */
  let day = 0
  const tomorrow = () => harness.setTime(new Date(Date.parse('2026-11-21T10:00:00Z') + 2 * 86_400_000 * ++day))

  test('20 a minute and 200 an hour per address', async () => {
    tomorrow()
    const ip = freshIp()
    expectExactly(await atOnce(40, (client) => signIn(client, ip), there), 20, 60)
    for (let minute = 1; minute < 10; minute += 1) {
      harness.advance(60)
      expectExactly(await atOnce(20, (client) => signIn(client, ip), there), 20, 60)
    }
    harness.advance(60)
    const full = await signIn(anyone, ip)
    expect([full.status, full.headers.get('retry-after')]).toEqual([429, '3000'])
    harness.advance(3000)
    expect((await signIn(anyone, ip)).status).toBe(401)
  })

  test('whoever is refused anyhow begins no window for an address that is made up', async () => {
    tomorrow()
    const ip = freshIp()
    expectExactly(await atOnce(21, (client) => signIn(client, ip), there), 20, 60)
    const windows = async () => (await project.sql(`select 1 from app.rate_limits`)).length
    const before = await windows()
    expectExactly(await atOnce(10, (client) => signIn(client, ip), there), 0, 60)
    expect(await windows()).toBe(before)
  })

  test('10 in a quarter of an hour and 100 a day per account, in every spelling; successes count', async () => {
    tomorrow()
    const email = freshEmail()
    await project.app.post('/client/auth/email/signup', { email, password })
    const spelled = (index: number) => (index % 3 ? email : ` ${email.toUpperCase()} `)
    const right = await atOnce(30, (client, index) => signIn(client, freshIp(), spelled(index)), there)
    expectExactly(right, 10, 900)
    expect(right.filter(({ status }) => status === 200)).toHaveLength(10)
    for (let quarter = 1; quarter < 10; quarter += 1) {
      harness.advance(900)
      expectExactly(await atOnce(11, (client) => signIn(client, freshIp(), email, 'wrong'), there), 10, 86_400)
    }
    harness.advance(900)
    const full = await signIn(anyone, freshIp(), email)
    expect([full.status, full.headers.get('retry-after')]).toEqual([429, String(86_400 - 9000)])
    harness.advance(86_400 - 9000)
    expect((await signIn(anyone, freshIp(), email)).status).toBe(200)
  })

  test('60 a minute for the whole app when free, 600 when paid or comped', async () => {
    tomorrow()
    expectExactly(await atOnce(80, (client) => signIn(client, freshIp()), there), 60, 60)
    for (const change of [`tier = 'pro'`, `tier = 'free', comped = true`]) {
      tomorrow()
      await harness.control(`update app.projects set ${change} where id = $1`, [project.id])
      for (const server of [harness.running, second.running]) server.services.projectCache.drop(`project:${project.id}`)
      // as many as make no difference were made before
      expectExactly(await atOnce(1, (client) => signIn(client, freshIp())), 1, 60)
      await project.sql(`update app.rate_limits set count = 590 where key = 'client login app minute'`)
      expectExactly(await atOnce(30, (client) => signIn(client, freshIp()), there), 10, 60)
    }
  })

  test('another project has a ceiling of its own', async () => {
    const other = await harness.project()
    const answer = await other.app.post('/client/auth/email/login', { email: freshEmail(), password })
    expect(answer.status).toBe(401)
  })
})

test('newcomers to an app: 30 a minute and 500 a day per address, anonymous and by email together', async () => {
  harness.setTime('2026-11-21T10:00:00Z')
  const project = await harness.project()
  const there = second.as({ 'x-api-key': project.clientKey })
  const ip = freshIp()
  const come = (client: Client, index: number) => {
    const app = client.with({ 'x-api-key': project.clientKey })
    return index % 10
      ? app.post('/client/auth/anonymous', {}, from(ip))
      : app.post('/client/auth/email/signup', { email: freshEmail(), password }, from(ip))
  }
  expectExactly(await atOnce(50, come, there), 30, 60, 'RATE_LIMITED')
  // what is malformed costs nothing
  harness.advance(60)
  for (let times = 0; times < 5; times += 1)
    expect((await project.app.post('/client/auth/anonymous', { anonymous_id: 'x' }, from(ip))).status).toBe(400)
  await project.sql(`update app.rate_limits set count = 480 where key like 'client signup ip % day'`)
  expectExactly(await atOnce(40, come, there), 20, 86_400, 'RATE_LIMITED')
})

describe('general ceilings', () => {
  test('refuse a flood from one address, and from nowhere else', async () => {
    const limited = await startHarness({ env: { GENERAL_RATE_LIMITS: 'on' } })
    const ip = freshIp()
    // time stands still meanwhile: a slow machine would be given back what it takes
    vi.useFakeTimers({ toFake: ['performance'] })
    const flood = await Promise.all(
      Array.from({ length: 400 }, () => limited.anyone.get('/auth/developer/me', from(ip))),
    ).finally(() => vi.useRealTimers())
    const refused = flood.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(200)
    for (const { error, headers } of refused) {
      expect(error?.code).toBe('RATE_LIMITED')
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    expect((await limited.anyone.get('/auth/developer/me')).status).toBe(401)
    await limited.stop()
  })

  test('refill with time, and consume nothing when they refuse', () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      const rateLimiter = createRateLimiter(true)
      const user = { key: 'user', perSecond: 20, burst: 60 }
      const project = { key: 'project', perSecond: 1000, burst: 61 }
      for (let times = 0; times < 60; times += 1) rateLimiter.take([project, user])
      for (let times = 0; times < 3; times += 1) expect(() => rateLimiter.take([project, user])).toThrow(/slow down/)
      // the project's one is still there
      rateLimiter.take([project])
      vi.advanceTimersByTime(50)
      rateLimiter.take([user])
      expect(() => rateLimiter.take([user])).toThrow()
      vi.advanceTimersByTime(10_000)
      for (let times = 0; times < 60; times += 1) rateLimiter.take([user])
      expect(() => rateLimiter.take([user])).toThrow()
      expect(() => createRateLimiter(false).take(Array(1000).fill(user))).not.toThrow()
    } finally {
      vi.useRealTimers()
    }
  })
})
