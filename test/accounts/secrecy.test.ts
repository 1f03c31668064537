import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { sha256 } from '#server/secrets.ts'
import { developerWith, inviteCodes, otherThan, personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, freshEmail, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
// before the harness's own, which runs first then: a server keeps its connection to us for a while
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url } })
const lines: string[] = []
const sink = new Writable({
  write(chunk, _encoding, done) {
    lines.push(String(chunk))
    done()
  },
})
const server = await startSecond(harness, pino({ level: 'trace' }, sink))
const anyone = server.as()

test('no sign-in code, invite code or personal access token reaches the log, an error, a job or a table', {
  timeout: 180_000,
}, async () => {
  const errors: Answer[] = []
  const fail = async (answer: Promise<Answer>) => {
    const got = await answer
    expect(got.status, got.text).toBeGreaterThanOrEqual(400)
    errors.push(got)
  }
  const auth = '/auth/developer'
  const developer = await developerWith(harness, 'off')
  const me = withBearer(anyone, developer.accessToken)
  const { email } = developer

  // invite codes: good, used, broken
  const [code = '', spare = ''] = await inviteCodes(harness, 2)
  await me.post(`${auth}/redeem-invite`, { invite_code: code })
  const off = await developerWith(harness, 'off')
  await fail(withBearer(anyone, off.accessToken).post(`${auth}/redeem-invite`, { invite_code: code }))
  await fail(anyone.post(`${auth}/signup`, { email, password: 'a long passphrase', invite_code: spare }))
  await fail(
    anyone.post(`${auth}/signup`, { email: freshEmail(), password: 'a long passphrase', invite_code: `${spare}9` }),
  )
  await fail(anyone.post(`${auth}/signup`, `{"invite_code": "${spare}`))

  // codes by mail, by real workers of the logging server
  await server.running.work(2)
  await anyone.post(`${auth}/otp/request`, { email })
  await expect.poll(() => mail.to(email).length).toBe(1)
  const digits = /\d{6}/.exec(mail.to(email)[0]?.text ?? '')?.[0] ?? ''
  await fail(anyone.post(`${auth}/otp/verify`, { email, code: otherThan(digits) }))
  await fail(anyone.post(`${auth}/otp/verify`, { email, code: `${digits}0` }))
  // from the own sign-in, which goes on then
  expect((await me.post(`${auth}/otp/verify`, { email, code: digits })).status).toBe(200)
  await fail(anyone.post(`${auth}/otp/verify`, { email, code: digits }))
  // a mail that cannot be sent waits in the queue, with what went wrong
  mail.refuse(451)
  const late = (await harness.developer()).email
  await anyone.post(`${auth}/otp/request`, { email: late })
  const queue = async () => JSON.stringify(await harness.control('select * from graphile_worker._private_jobs'))
  await expect.poll(queue).toContain('451')
  const jobs = await queue()
  mail.refuse(null)
  await expect.poll(() => mail.to(late).length, { timeout: 20_000 }).toBe(1)

  // tokens: made, used, turned away, broken
  const made = await personalToken(me, { scopes: ['reviews:read'] })
  const rotated = (await me.post(`/admin/tokens/${made.id}/rotate`)).data
  const pat = withBearer(anyone, rotated.token)
  expect((await pat.get(`${auth}/me`)).status).toBe(200)
  await fail(pat.get('/admin/projects'))
  await fail(pat.get('/admin/tokens'))
  await fail(anyone.get(`${auth}/me?token=${rotated.token}`))
  await fail(withBearer(anyone, `${rotated.token}x`).get(`${auth}/me`))

  // a database that fails in the middle, with the values in its hands
  for (const name of [
    'invite_redeem',
    'code_verify',
    'code_request',
    'token_check',
    'developer_signup',
    'waitlist_join',
  ])
    await harness.control(`alter function api.${name} rename to ${name}_gone`)
  server.running.services.sessions.clear()
  await fail(withBearer(anyone, off.accessToken).post(`${auth}/redeem-invite`, { invite_code: spare }))
  await fail(anyone.post(`${auth}/otp/verify`, { email, code: digits }))
  await fail(anyone.post(`${auth}/otp/request`, { email: freshEmail() }))
  await fail(anyone.post(`${auth}/signup`, { email: freshEmail(), password: 'a long passphrase', invite_code: spare }))
  await fail(pat.get(`${auth}/me`))

  const log = lines.join('')
  expect(log).toContain('a database call failed')
  expect(jobs).toContain('code_id')
  const tables = JSON.stringify(
    await Promise.all(
      ['invites', 'developer_codes', 'developer_tokens', 'developer_token_secrets', 'audit_events', 'rate_limits'].map(
        (table) => harness.control(`select t::text from app.${table} t`),
      ),
    ),
  )
  const long = [code, spare, made.token, rotated.token].flatMap((text) => [text, text.replaceAll('-', '')])
  for (const secret of long) {
    expect(secret).toMatch(/^\S{19,}$/)
    for (const place of [log, jobs, tables]) expect(place).not.toContain(secret)
    for (const { text } of errors) expect(text).not.toContain(secret)
  }
  // six digits may stand in any number by chance: nowhere as a word
  const word = new RegExp(`(?<![0-9a-f.-])${digits}(?![0-9a-f.-])`)
  for (const place of [log, jobs, tables, ...errors.map(({ text }) => text)]) expect(place).not.toMatch(word)
  const audit = JSON.stringify(await harness.control('select * from app.audit_events'))
  expect(audit).toContain('tokens.create')
  for (const hash of [sha256(made.token), sha256(rotated.token), sha256(code.replaceAll('-', ''))])
    expect(audit).not.toContain(hash)
})
