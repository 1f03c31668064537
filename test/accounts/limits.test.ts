import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { mailedCode, otherThan, queuedJobs, withBearer } from '#test/support/accounts.ts'
import { type Answer, type Client, freshEmail, freshIp, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'
import { startMailServer } from '#test/support/smtp.ts'

/** Limits of developer accounts, beside those of sign-up, login and refresh in limits.test.ts. */
const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url } })
const second = await startSecond(harness)
const { anyone } = harness
const password = 'a long passphrase'

const from = (ip: string) => ({ 'x-forwarded-for': ip })
const auth = '/auth/developer'
const start = Date.parse('2026-12-01T10:00:00Z')
const at = (seconds: number) => harness.setTime(new Date(start + seconds * 1000))

beforeEach(() => at(0))
afterEach(() => harness.setTime(null))

/** Calls at once, every other one to the second server. */
const atOnce = (count: number, one: (client: Client, index: number) => Promise<Answer>, headers = {}) =>
  Promise.all(
    Array.from({ length: count }, (_, index) => one(index % 2 ? second.as(headers) : anyone.with(headers), index)),
  )

/** Exactly `most` of the answers passed; the rest say when to come back. */
const expectExactly = (answers: readonly Answer[], most: number, wait: number) => {
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.length - refused.length).toBe(most)
  for (const { error, headers } of refused) {
    expect(error?.code).toBe('RATE_LIMIT_EXCEEDED')
    expect(headers.get('retry-after')).toBe(String(wait))
    expect(error?.details.retry_after_seconds).toBe(wait)
  }
}

describe.each([
  [
    'waitlist',
    (client: Client, ip: string, email = freshEmail()) => client.post(`${auth}/waitlist`, { email }, from(ip)),
  ],
  [
    'code request',
    (client: Client, ip: string, email = freshEmail()) => client.post(`${auth}/otp/request`, { email }, from(ip)),
  ],
])('%s', (_name, ask) => {
  test('5 a minute per address of the caller, from its first attempt on', async () => {
    at(50)
    const ip = freshIp()
    expectExactly(await atOnce(20, (client) => ask(client, ip)), 5, 60)
    at(109)
    expectExactly([await ask(anyone, ip)], 0, 1)
    expect((await ask(anyone, freshIp())).status).toBe(200)
    at(110)
    expectExactly(await atOnce(8, (client) => ask(client, ip)), 5, 60)
  })

  test('50 a day', async () => {
    const ip = freshIp()
    for (let minute = 0; minute < 10; minute += 1) {
      at(60 * minute)
      expectExactly(await atOnce(5, (client) => ask(client, ip)), 5, 60)
    }
    at(600)
    expectExactly(await atOnce(6, (client) => ask(client, ip)), 0, 86_400 - 600)
    at(86_400)
    expect((await ask(anyone, ip)).status).toBe(200)
  })

  test('malformed attempts do not count', async () => {
    const ip = freshIp()
    for (let times = 0; times < 8; times += 1) expect((await ask(anyone, ip, 'nobody')).status).toBe(400)
    expectExactly(await atOnce(6, (client) => ask(client, ip)), 5, 60)
  })
})

describe('code requests for one address', () => {
  const request = (client: Client, email: string) => client.post(`${auth}/otp/request`, { email }, from(freshIp()))
  const spelled = (email: string, index: number) =>
    index % 3 ? email.replace('@', `+${index}@`) : ` ${email.toUpperCase()}`

  test.each([
    ['that has an account', async () => (await harness.developer()).email],
    ['that has none', async () => freshEmail()],
  ])('%s: 5 an hour, in every spelling', async (_which, address) => {
    const email = await address()
    expectExactly(await atOnce(20, (client, index) => request(client, spelled(email, index))), 5, 3600)
    at(3599)
    expectExactly([await request(anyone, email)], 0, 1)
    at(3600)
    expectExactly(await atOnce(8, (client, index) => request(client, spelled(email, index))), 5, 3600)
  })

  test('20 a day', async () => {
    const email = freshEmail()
    for (let hour = 0; hour < 4; hour += 1) {
      at(3600 * hour)
      expectExactly(await atOnce(5, (client) => request(client, email)), 5, 3600)
    }
    at(4 * 3600)
    expectExactly(await atOnce(4, (client) => request(client, email)), 0, 20 * 3600)
    at(86_400)
    expect((await request(anyone, email)).status).toBe(200)
  })

  test('one that is refused replaces no code, queues no mail, and costs its caller nothing', async () => {
    const { email } = await harness.developer()
    let code = ''
    for (let times = 0; times < 5; times += 1) code = await mailedCode(harness, mail, email)
    const before = (await queuedJobs(harness, 'codes__mail')).length
    const ip = freshIp()
    for (let times = 0; times < 10; times += 1)
      expect((await anyone.post(`${auth}/otp/request`, { email }, from(ip))).status).toBe(429)
    expect((await queuedJobs(harness, 'codes__mail')).length).toBe(before)
    expectExactly(
      await atOnce(8, (client) => client.post(`${auth}/otp/request`, { email: freshEmail() }, from(ip))),
      5,
      60,
    )
    expect((await anyone.post(`${auth}/otp/verify`, { email, code })).status).toBe(200)
  })
})

describe('code checks', () => {
  const verify = (client: Client, ip: string, body: object = {}) =>
    client.post(`${auth}/otp/verify`, { email: freshEmail(), code: '123456', ...body }, from(ip))

  test('20 a minute and 200 a day per address of the caller, right ones too', async () => {
    const ip = freshIp()
    const { email } = await harness.developer()
    const code = await mailedCode(harness, mail, email)
    for (let times = 0; times < 5; times += 1) expect((await verify(anyone, ip, { code: 'x' })).status).toBe(400)
    expect((await verify(anyone, ip, { email, code })).status).toBe(200)
    expectExactly(await atOnce(30, (client) => verify(client, ip)), 19, 60)
    for (let minute = 1; minute < 10; minute += 1) {
      at(60 * minute)
      expectExactly(await atOnce(20, (client) => verify(client, ip)), 20, 60)
    }
    at(600)
    expectExactly(await atOnce(4, (client) => verify(client, ip)), 0, 86_400 - 600)
    at(86_400)
    expect((await verify(anyone, ip)).status).toBe(401)
  })

  test('one that is refused is no attempt at the code', async () => {
    const ip = freshIp()
    const { email } = await harness.developer()
    const code = await mailedCode(harness, mail, email)
    await atOnce(20, (client) => verify(client, ip))
    for (let times = 0; times < 10; times += 1)
      expect((await verify(anyone, ip, { email, code: otherThan(code) })).status).toBe(429)
    expect((await verify(anyone, freshIp(), { email, code })).status).toBe(200)
  })
})

test('redeeming an invite: 10 a minute per address of the caller', async () => {
  const developer = await harness.developer()
  const ip = freshIp()
  const redeem = (client: Client, invite_code: unknown = 'x') =>
    client.with(developer.headers).post(`${auth}/redeem-invite`, { invite_code }, from(ip))
  for (let times = 0; times < 5; times += 1) expect((await redeem(anyone, 5)).status).toBe(400)
  expectExactly(await atOnce(25, (client) => redeem(client)), 10, 60)
  at(59)
  expectExactly([await redeem(anyone)], 0, 1)
  at(60)
  expectExactly(await atOnce(12, (client) => redeem(client)), 10, 60)
})

describe('failed passwords of an account', () => {
  const login = (client: Client, email: string, word = 'wrong') =>
    client.post(`${auth}/login`, { email, password: word }, from(freshIp()))
  const change = (client: Client, word = 'wrong') =>
    client.patch(`${auth}/me`, { password: 'another long passphrase', current_password: word }, from(freshIp()))

  test('20 an hour over login and the change of the password together', async () => {
    const developer = await harness.developer()
    const answers = await atOnce(
      40,
      (client, index) => (index % 4 < 2 ? login(client, developer.email) : change(client)),
      developer.headers,
    )
    expectExactly(answers, 20, 3600)
    expect(answers.filter(({ error }) => error?.code === 'INVALID_CREDENTIALS')).toHaveLength(20)
    // the right one is not looked at either
    expectExactly([await change(developer, password), await login(anyone, developer.email, password)], 0, 3600)
    // what needs no password goes on
    expect((await developer.patch(`${auth}/me`, { name: 'Ada' })).status).toBe(200)
    at(3600)
    expect((await change(developer, password)).status).toBe(200)
  })

  test('100 a day', async () => {
    const developer = await harness.developer()
    for (let hour = 0; hour < 5; hour += 1) {
      at(3600 * hour)
      expectExactly(await atOnce(20, (client) => change(client), developer.headers), 20, 3600)
    }
    at(5 * 3600)
    expectExactly([await change(developer, password)], 0, 86_400 - 5 * 3600)
    at(86_400 - 1)
    expectExactly([await change(developer, password)], 0, 1)
  })

  test('a right one gives its attempt back, and forgives none', async () => {
    const developer = await harness.developer()
    for (let times = 0; times < 19; times += 1) expect((await change(developer)).status).toBe(401)
    expect((await change(developer, password)).status).toBe(200)
    const word = 'another long passphrase'
    expect((await change(developer, word)).status).toBe(200)
    expect((await change(developer)).status).toBe(401)
    expect((await change(developer, word)).status).toBe(429)
  })

  test('what is malformed, and a first password, costs nothing', async () => {
    const developer = await harness.developer()
    const other = withBearer(anyone, developer.accessToken)
    for (let times = 0; times < 25; times += 1) {
      expect((await other.patch(`${auth}/me`, { password: 'short', current_password: 'wrong' })).status).toBe(400)
      expect((await other.patch(`${auth}/me`, { password: 'long enough' })).status).toBe(400)
    }
    await harness.control('update app.developers set password_hash = null where id = $1', [developer.id])
    expect((await change(developer)).status).toBe(200)
    expect((await change(developer, 'another long passphrase')).status).toBe(200)
  })
})
