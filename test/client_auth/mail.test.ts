import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { newEmail, startStage } from '#test/support/sign_in.ts'

const stage = await startStage({ env: { LOG_LEVEL: 'silent' } })
const { harness, project, app, mail } = stage

afterEach(() => {
  harness.setTime(null)
  mail.refuse(null)
})

const request = (email: string, more: object = {}) => app.post('/client/auth/email/otp/request', { email, ...more })
const wrongOf = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')
const count = async (sql: string, values: unknown[]) => (await project.sql(sql, values)).length

describe('what is mailed', () => {
  const lastTo = async (email: string, on = project) => {
    await on.drain()
    const last = mail.to(email).at(-1)
    if (!last) throw new Error('there is a mail')
    return last
  }

  test('comes in the brand’s name; no subject holds a secret', async () => {
    const email = newEmail()
    const token = await stage.magicToken(email)
    const link = await lastTo(email)
    expect(link.headers['subject']).toBe('Sign in to Orchard')
    expect(link.headers['from']).toMatch(/^Orchard </)
    expect(link.text).toContain(`orchard://signed-in?token=${token}`)
    const code = await stage.code(email)
    const mailed = await lastTo(email)
    expect(mailed.headers['subject']).toBe('Your sign-in code for Orchard')
    expect(mailed.text).toContain(code)
    const me = await stage.anonymous()
    await stage.code(email, 'link', me)
    expect((await lastTo(email)).headers['subject']).toBe('Confirm your address for Orchard')
    const owner = await stage.signup(newEmail())
    await stage.code(owner.user.email, 'delete', owner)
    expect((await lastTo(owner.user.email)).headers['subject']).toBe('Confirm the deletion of your account at Orchard')
  })

  test('comes from the project’s sender where it has one, and under its name where it has no brand', async () => {
    const other = await harness.project()
    await other.developer.patch(`/admin/projects/${other.id}`, {
      name: 'Plain <b>&amp;',
      default_reply_to: 'help@example.org',
    })
    const email = newEmail()
    await other.app.post('/client/auth/magic-link/request', { email })
    const plain = await lastTo(email, other)
    expect(plain.headers['subject']).toBe('Sign in to Plain <b>&amp;')
    expect(plain.headers['reply-to']).toBe('help@example.org')
    expect(plain.raw).not.toContain('<b>&amp;</')
    // without a redirect URL the mail contains the token itself
    expect(plain.text).toMatch(/^[\w-]{43}$/m)
    const verified = await other.app.post('/client/auth/magic-link/verify', {
      token: /^([\w-]{43})$/m.exec(plain.text)?.[1],
    })
    expect(verified.status).toBe(201)
    const sender = async () => {
      await other.app.post('/client/auth/email/otp/request', { email })
      return (await lastTo(email, other)).headers['from']
    }
    // the verification of sending domains is tested elsewhere; this tests the fields of the mail
    await harness.control(
      `update app.projects set default_from_email = 'hello@orchard.example', default_from_name = 'The Orchard' where id = $1`,
      [other.id],
    )
    // a domain that is not verified sends nothing: the installation's own address does
    expect(await sender()).toMatch(/^"?The Orchard"? <(?!hello@)/)
    await harness.control(`select internal.domain_put($1, 'orchard.example', 'email', 'verified')`, [other.id])
    await other.app.post('/client/auth/email/otp/request', { email })
    const own = await lastTo(email, other)
    expect(own.headers['from']).toMatch(/^"?The Orchard"? <hello@orchard.example>$/)
    expect(own.from).toBe('bounces@send.orchard.example')
  })

  test('comes in the language of the user, else of the request, from the project’s own template where it has one', async () => {
    const german = { 'accept-language': 'de-CH, fr;q=0.5' }
    const ask = (email: string) => app.with(german).post('/client/auth/email/otp/request', { email })
    const email = newEmail()
    await ask(email)
    const first = await lastTo(email)
    expect(first.headers['subject']).toBe('=?UTF-8?Q?Ihr_Anmeldecode_f=C3=BCr_Orchard?=')
    expect(first.text).toMatch(/^Ihr Code zur Anmeldung bei Orchard:\n\n\d{6}\n/)
    expect(first.raw).toContain('<html lang=3D"de">')
    await app.with({ 'accept-language': 'nl' }).post('/client/auth/magic-link/request', { email })
    expect((await lastTo(email)).headers['subject']).toBe('Sign in to Orchard')
    const owner = await stage.signup(newEmail())
    await project.sql(`update app.users set properties = '{"locale": "es-MX"}' where id = $1`, [owner.id])
    await ask(owner.user.email)
    expect((await lastTo(owner.user.email)).text).toContain('Tu código')
    const template = { key: 'auth.otp', name: 'Code', subject: 'Code of {{brand}}', text: 'code {{code}}' }
    const locales = { de: { subject: 'Kode von {{brand}}', text: 'kode {{code}}', html: '<b>{{code}}</b>' } }
    expect((await project.admin.post('/email/templates', { ...template, locales })).status).toBe(201)
    await ask(email)
    const mine = await lastTo(email)
    expect([mine.headers['subject'], mine.text]).toEqual(['Kode von Orchard', expect.stringMatching(/^kode \d{6}$/)])
    await project.admin.delete('/email/templates/auth.otp')
    await project.sql('delete from app.user_codes')
  })

  test('waits for a mail server that refuses, and then comes once, for as long as it is good', async () => {
    const [patient, late] = [newEmail(), newEmail()]
    mail.refuse(451)
    harness.setTime('2026-11-22T10:00:00Z')
    for (const email of [patient, late]) expect((await request(email)).status).toBe(200)
    for (let times = 0; times < 4; times += 1) {
      await project.drain()
      harness.advance(40)
    }
    expect(mail.to(patient)).toEqual([])
    mail.refuse(null)
    await project.sql(`update app.user_codes set expires_at = expires_at - interval '10 minutes' where address = $1`, [
      late,
    ])
    harness.advance(300)
    await project.drain()
    expect(mail.to(patient)).toHaveLength(1)
    expect(mail.to(late)).toEqual([])
    const code = /^(\d{6})$/m.exec(mail.to(patient)[0]?.text ?? '')?.[1] ?? ''
    expect((await stage.verifyCode(patient, code)).status).toBe(201)
    expect(await count(`select 1 from app.outbox where task like 'client_auth%'`, [])).toBe(0)
  })

  test('a worker that dies after sending sends the same code under the same id; what was replaced is not sent', async () => {
    const email = newEmail()
    await request(email)
    const [queued] = await project.sql(
      `select o.key, o.payload, c.sealed from app.outbox o join app.user_codes c on c.id::text = o.key where c.address = $1`,
      [email],
    )
    expect(queued.payload).toEqual({})
    await project.drain()
    await project.sql('update app.user_codes set sealed = $2, sent_at = null where address = $1', [
      email,
      queued.sealed,
    ])
    await project.sql(`insert into app.outbox (task, key) values ('client_auth__mail', $1)`, [queued.key])
    await project.drain()
    const [one, two] = mail.to(email)
    expect(two?.text).toBe(one?.text)
    expect(two?.headers['message-id']).toBe(one?.headers['message-id'])
    // two requests before the worker runs: one mail, with the valid code
    const other = newEmail()
    await request(other)
    await request(other)
    await project.drain()
    expect(mail.to(other)).toHaveLength(1)
    const code = /^(\d{6})$/m.exec(mail.to(other)[0]?.text ?? '')?.[1] ?? ''
    expect((await stage.verifyCode(other, code)).status).toBe(201)
  })

  test('no code or token stands anywhere in plain: no table, no queue, no log', async () => {
    const lines: string[] = []
    const sink = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    })
    const server = await startSecond(harness, pino({ level: 'trace' }, sink))
    const there = server.as(app.headers)
    const email = newEmail()
    const dump = async () => {
      const tables = await project.sql(
        `select c.oid::regclass::text as name from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
            and c.relname not in ('timezones', 'name_words')`,
      )
      const rows = await Promise.all(tables.map(({ name }) => project.sql(`select t::text from ${name} t`)))
      return JSON.stringify(rows)
    }
    await there.post('/client/auth/email/otp/request', { email })
    await there.post('/client/auth/magic-link/request', { email })
    const waiting = await dump()
    await project.drain()
    const texts = mail.to(email).map(({ text }) => text)
    const code = texts.map((text) => /^(\d{6})$/m.exec(text)?.[1]).find(Boolean) ?? 'none'
    const token = texts.map((text) => /token=([\w-]{43})/.exec(text)?.[1]).find(Boolean) ?? 'none'
    expect([code, token].map((secret) => secret.length)).toEqual([6, 43])
    const sent = await dump()
    expectRefusal(await there.post('/client/auth/email/otp/verify', { email, code: wrongOf(code) }), 401, 'OTP_INVALID')
    await there.post('/client/auth/email/otp/verify', { email, code })
    await there.post('/client/auth/magic-link/verify', { token })
    const used = await dump()
    const log = lines.join('')
    expect(log).toContain('/client/auth/magic-link/verify')
    for (const text of [waiting, sent, used, log]) {
      expect(text).not.toContain(token)
      // the code as a separate word: ids and times may contain six digits too
      expect(text).not.toMatch(new RegExp(`(?<![0-9a-f.-])${code}(?![0-9a-f.-])`))
    }
    const [hash] = await project.sql(`select secret_hash from app.user_codes where address = $1 and kind = 'code'`, [
      email,
    ])
    expect(hash.secret_hash).toMatch(/^[0-9a-f]{64}$/)
  })

  test('old codes and links are forgotten, sessions a month after their end', async () => {
    const email = newEmail()
    await stage.code(email)
    const user = await stage.anonymous()
    await user.post('/client/auth/logout', { refresh_token: user.refresh })
    const forget = (at: string) =>
      project.as('app_worker', { 'app.caller': 'worker', 'app.clock': at }, 'select api.tenant_purge()')
    const left = async () => [
      await count('select 1 from app.user_codes where address = $1', [email]),
      await count('select 1 from app.user_sessions where app_user_id = $1', [user.id]),
    ]
    const days = (number: number) => new Date(Date.now() + number * 86_400_000).toISOString()
    await forget(days(0.9))
    expect(await left()).toEqual([1, 1])
    await forget(days(1.1))
    expect(await left()).toEqual([0, 1])
    await forget(days(30.1))
    expect(await left()).toEqual([0, 0])
  })
})
