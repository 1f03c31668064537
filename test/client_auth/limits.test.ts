import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type Answer, type Client, freshIp } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { newEmail, newPhone, startStage } from '#test/support/sign_in.ts'

/** The rate limits of passwordless sign-in are exact under concurrency and across two servers. */
const receiver = await startHttpsReceiver()
afterAll(() => receiver.close())
const stage = await startStage({ env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile } })
const { harness, project, app, mail } = stage
const second = (await startSecond(harness)).as(app.headers)
await project.admin.post('/integrations', {
  provider: 'sms',
  config: { url: receiver.url, body_template: '{{to}} {{text}}', headers: { 'content-type': 'text/plain' } },
})

afterEach(() => harness.setTime(null))

const from = (ip: string) => ({ 'x-forwarded-for': ip })
/** Makes concurrent calls, every other one to the second server. */
const atOnce = (count: number, one: (client: Client, index: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: count }, (_, index) => one(index % 2 ? second : app, index)))
/** Exactly `most` of the responses succeeded; the rest have a Retry-After. */
const expectExactly = (answers: readonly Answer[], most: number, window: number) => {
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.length - refused.length).toBe(most)
  for (const { error, headers } of refused) {
    expect(error?.code).toBe('RATE_LIMITED')
    const wait = Number(headers.get('retry-after'))
    expect(Number.isInteger(wait) && wait >= 1 && wait <= window, `Retry-After ${wait}`).toBe(true)
  }
}
const made = async (address: string) =>
  Number(
    (
      await project.sql(
        'select count(*) as n from app.outbox o join app.user_codes c on c.id::text = o.key where c.address = $1',
        [address],
      )
    )[0].n,
  )

const kinds = [
  ['/client/auth/magic-link/request', 'email', 5],
  ['/client/auth/email/otp/request', 'email', 5],
  ['/client/auth/phone/otp/request', 'phone', 3],
] as const

describe.each(kinds)('%s', (path, field, hourly) => {
  const address = () => (field === 'email' ? newEmail() : newPhone())
  const send = (client: Client, to: string, ip = freshIp()) => client.post(path, { [field]: to }, from(ip))
  const received = async (to: string) => {
    await project.drain()
    return field === 'email' ? mail.to(to).length : receiver.requests.filter(({ body }) => body.startsWith(to)).length
  }

  test(`${hourly} an hour to one address, in every spelling: 200 beyond, and no message`, async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const to = address()
    const spelled = (index: number) => (field === 'email' && index % 3 ? ` ${to.toUpperCase()}` : to)
    for (let times = 0; times < hourly; times += 1) {
      expect((await send(times % 2 ? second : app, spelled(times))).status).toBe(200)
      await project.drain()
    }
    const beyond = await atOnce(12, (client, index) => send(client, spelled(index)))
    for (const answer of beyond) expect([answer.status, answer.data]).toEqual([200, { ok: true }])
    expect(await received(to)).toBe(hourly)
    harness.advance(3599)
    await send(app, to)
    expect(await received(to)).toBe(hourly)
    harness.advance(1)
    await send(app, to)
    expect(await received(to)).toBe(hourly + 1)
  })

  test('twenty a day to one address', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const to = address()
    for (let hour = 0; hour < 8; hour += 1) {
      for (let times = 0; times < hourly + 1; times += 1) {
        expect((await send(app, to)).status).toBe(200)
        await project.drain()
      }
      harness.advance(3600)
    }
    expect(await received(to)).toBe(20)
    harness.setTime('2026-11-23T10:00:00Z')
    await send(app, to)
    expect(await received(to)).toBe(21)
  })

  test('many at once over two servers take no more than the hour’s', async () => {
    const to = address()
    const answers = await atOnce(16, (client) => send(client, to))
    for (const { status } of answers) expect(status).toBe(200)
    const [counted] = await project.sql(
      `select count from app.rate_limits where key like 'client %address % hour' and key like '%' || encode(sha256(convert_to($1, 'UTF8')), 'hex') || '%'`,
      [to],
    )
    expect(counted.count).toBe(hourly)
    if (path.includes('magic')) expect(await made(to)).toBe(hourly)
    else expect(await made(to)).toBe(1)
  })

  test('ten a minute from one address of the network, and 200 a day: 429', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const ip = freshIp()
    expectExactly(await atOnce(25, (client) => send(client, address(), ip)), 10, 60)
    harness.advance(60)
    expectExactly(await atOnce(12, (client) => send(client, address(), ip)), 10, 60)
    // malformed requests do not count
    harness.advance(60)
    for (let times = 0; times < 12; times += 1)
      expectRefusal(await app.post(path, { [field]: 'x' }, from(ip)), 400, 'INVALID_INPUT')
    await project.sql(`update app.rate_limits set count = 195 where key like 'client % ip ' || $1 || ' day'`, [ip])
    expectExactly(await atOnce(12, (client) => send(client, address(), ip)), 5, 86_400)
    expect((await send(app, address())).status).toBe(200)
  })
})

test('a request over its limit replaces no live code', async () => {
  const email = newEmail()
  let code = ''
  for (let times = 0; times < 5; times += 1) code = await stage.code(email)
  for (let times = 0; times < 3; times += 1)
    expect((await app.post('/client/auth/email/otp/request', { email })).status).toBe(200)
  await project.drain()
  expect(mail.to(email)).toHaveLength(5)
  expect((await stage.verifyCode(email, code)).status).toBe(201)
})

test('a lock is not lifted by requests that are over the limit', async () => {
  const email = newEmail()
  let code = ''
  for (let times = 0; times < 5; times += 1) code = await stage.code(email)
  const wrong = String((Number(code) + 1) % 1e6).padStart(6, '0')
  for (let times = 0; times < 5; times += 1) expectRefusal(await stage.verifyCode(email, wrong), 401, 'OTP_INVALID')
  await app.post('/client/auth/email/otp/request', { email })
  expectRefusal(await stage.verifyCode(email, code), 401, 'OTP_INVALID')
})

test('links and codes of one address have budgets of their own, codes for a link share that of codes', async () => {
  const email = newEmail()
  const me = await stage.anonymous()
  for (let times = 0; times < 5; times += 1) await stage.magicToken(email)
  for (let times = 0; times < 5; times += 1) await stage.code(email, 'link', me)
  await app.post('/client/auth/email/otp/request', { email })
  await app.post('/client/auth/magic-link/request', { email })
  await project.drain()
  expect(mail.to(email)).toHaveLength(10)
})

test('codes are tried 20 times a minute from one address of the network, mail and phone together', async () => {
  harness.setTime('2026-11-22T10:00:00Z')
  const ip = freshIp()
  const attempt = (client: Client, index: number) =>
    index % 4 > 1
      ? client.post('/client/auth/email/otp/verify', { email: newEmail(), code: '123456' }, from(ip))
      : client.post('/client/auth/phone/otp/verify', { phone: newPhone(), code: '123456' }, from(ip))
  expectExactly(await atOnce(40, attempt), 20, 60)
  harness.advance(60)
  expectExactly(await atOnce(24, attempt), 20, 60)
})

test('linking: 10 a minute for one user, from anywhere', async () => {
  harness.setTime('2026-11-22T10:00:00Z')
  const [me, other] = [await stage.anonymous(), await stage.anonymous()]
  const authorization = `Bearer ${me.token}`
  const attempt = (client: Client) =>
    client.post('/client/auth/link', { provider: 'email', email: newEmail(), code: '123456' }, { authorization })
  expectExactly(await atOnce(24, attempt), 10, 60)
  const theirs = await other.post('/client/auth/link', { provider: 'email', email: newEmail(), code: '123456' })
  expectRefusal(theirs, 401, 'OTP_INVALID')
  harness.advance(60)
  expectExactly(await atOnce(12, attempt), 10, 60)
})

test('the current password: 10 tries in a quarter of an hour, also with an open session in hand', async () => {
  harness.setTime('2026-11-22T10:00:00Z')
  const me = await stage.signup(newEmail())
  const authorization = `Bearer ${me.token}`
  const attempt = (client: Client) =>
    client.post(
      '/client/auth/password',
      { password: 'another passphrase', current_password: 'wrong' },
      { authorization },
    )
  const answers = await atOnce(20, attempt)
  expectExactly(answers, 10, 900)
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(10)
  harness.advance(900)
  await project.sql(`update app.rate_limits set count = 97 where key like 'client current password %day'`)
  expectExactly(await atOnce(8, attempt), 3, 86_400)
})

test('newcomers: social, anonymous and sign-up together 30 a minute and 500 a day from one address', async () => {
  harness.setTime('2026-11-22T10:00:00Z')
  const ip = freshIp()
  const come = async (client: Client, index: number) =>
    index % 3
      ? client.post(
          '/client/auth/social',
          { provider: 'google', id_token: await stage.socialToken('google', {}) },
          from(ip),
        )
      : client.post('/client/auth/anonymous', {}, from(ip))
  expectExactly(await atOnce(45, come), 30, 60)
  harness.advance(60)
  await project.sql(`update app.rate_limits set count = 490 where key = 'client signup ip ' || $1 || ' day'`, [ip])
  expectExactly(await atOnce(20, come), 10, 86_400)
  // invalid tokens count as attempts, so that they cannot be guessed in bulk
  const other = freshIp()
  const bad = (client: Client) => client.post('/client/auth/social', { provider: 'google', id_token: 'x' }, from(other))
  expectExactly(await atOnce(40, bad), 30, 60)
})

test('a million users do not look alike: names of a thousand repeat hardly', async () => {
  const rows = await project.sql('select internal.generated_name() as name from generate_series(1, 1000)')
  expect(new Set(rows.map(({ name }) => name)).size).toBeGreaterThan(980)
  const [words] = await project.sql(
    `select count(*) filter (where kind = 'adjective') * count(*) filter (where kind = 'noun') as pairs from app.name_words`,
  )
  expect(Number(words.pairs)).toBeGreaterThan(100_000)
})
