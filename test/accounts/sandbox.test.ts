import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { environment } from '#server/config.ts'
import { takeRateLimits } from '#server/http/app.ts'
import { createRateLimiter } from '#server/http/rate_limiter.ts'
import { mailedCode } from '#test/support/accounts.ts'
import { type Answer, type Developer, freshIp, type Project, startHarness } from '#test/support/harness.ts'
import { defineTemplate, mailCampaign, reader } from '#test/support/mail_campaigns.ts'
import { enrol, personalOf } from '#test/support/organizations.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { startMailServer } from '#test/support/smtp.ts'

/** What an account may do before anybody knows whose it is, under the settings that an installation begins with. */
const defaults = Object.fromEntries(
  (
    [
      'SANDBOX_PROJECTS',
      'SANDBOX_INVITES',
      'SANDBOX_MAIL',
      'SANDBOX_MAIL_PER_DAY',
      'ACCOUNT_MAIL_PER_DAY',
      'ACCOUNT_PROJECTS',
      'ACCOUNT_PROJECTS_PER_DAY',
    ] as const
  ).map((name) => [name, String(environment.shape[name].parse(undefined))]),
)
const mail = await startMailServer()
afterAll(() => mail.stop())
const env = { ...defaults, SMTP_URL: mail.url, MAIL_FROM: 'Installation <no-reply@trellis.example>' }
const harness = await startHarness({ env })
const small = await startHarness({
  env: {
    ...env,
    SANDBOX_MAIL_PER_DAY: '2',
    ACCOUNT_MAIL_PER_DAY: '3',
    ACCOUNT_PROJECTS: '4',
    ACCOUNT_PROJECTS_PER_DAY: '5',
  },
})
let second = Date.now() + 60_000
const nextSecond = (of = harness) => {
  second += 2000
  of.setTime(new Date(second))
}
afterEach(() => {
  for (const of of [harness, small]) of.setTime(null)
})

const verify = async (developer: Developer, of = harness) =>
  developer.post('/auth/developer/otp/verify', {
    email: developer.email,
    code: await mailedCode(of, mail, developer.email),
  })
const vouch = (developer: Developer, of = harness) =>
  of.control('select internal.operator_developer_set($1, null, true)', [developer.email])
const make = (developer: Developer, more: object = {}) => developer.post('/admin/projects', { name: 'one', ...more })
const send = (project: Project, to: string) =>
  project.admin.post('/email/send', { to, subject: 'Hello', text: 'Your account was locked' })
const codes = async (project: Project, to: string) => {
  const asked = await project.app.post(
    '/client/auth/email/otp/request',
    { email: to },
    { 'x-forwarded-for': freshIp() },
  )
  expect(asked.status).toBe(200)
  await project.drain()
}

describe('an account whose address is not verified', () => {
  test('has three projects, also when it asks for them all at once, and more when it is verified', async () => {
    const developer = await harness.developer()
    const made = await Promise.all(Array.from({ length: 6 }, () => make(developer)))
    const refused = made.filter(({ status }) => status !== 201)
    expect(made.length - refused.length).toBe(3)
    for (const answer of refused) expectRefusal(answer, 409, 'LIMIT_REACHED')
    expect(refused[0]?.error?.message).toContain('verified')
    expect((await verify(developer)).status).toBe(200)
    expect((await make(developer)).status).toBe(201)
  })

  test('has them in all organizations together, and three organizations besides its own', async () => {
    const developer = await harness.developer()
    const organizations: Answer[] = []
    for (let n = 0; n < 4; n += 1)
      organizations.push(await developer.post('/admin/organizations', { name: `team ${n}` }))
    expect(organizations.map(({ status }) => status)).toEqual([201, 201, 201, 409])
    expectRefusal(organizations[3] as Answer, 409, 'LIMIT_REACHED')
    for (const { data } of organizations.slice(0, 3))
      expect((await make(developer, { organization_id: data.id })).status).toBe(201)
    expectRefusal(await make(developer), 409, 'LIMIT_REACHED')
    await vouch(developer)
    expect((await developer.post('/admin/organizations', { name: 'team' })).status).toBe(201)
  })

  test('invites nobody', async () => {
    const developer = await harness.developer()
    const invite = async () =>
      developer.post(`/admin/organizations/${await personalOf(developer)}/invites`, {
        email: newEmail(),
        role: 'viewer',
      })
    expectRefusal(await invite(), 403, 'EMAIL_NOT_VERIFIED')
    await verify(developer)
    expect((await invite()).status).toBe(201)
  })

  test('mails nobody from its projects but verified members, and everybody as soon as it is verified', async () => {
    const project = await harness.project()
    const member = await harness.developer()
    await enrol(harness, await personalOf(project.developer), member, 'viewer')
    const user = await project.user()
    const stranger = newEmail()
    nextSecond()
    for (const to of [stranger, project.developer.email, member.email])
      expectRefusal(await send(project, to), 403, 'EMAIL_NOT_VERIFIED')
    const message = { subject: 'Hello', text: 'x' }
    expectRefusal(await project.admin.post('/email/send', { ...message, user_id: user.id }), 403, 'EMAIL_NOT_VERIFIED')
    const batch = { messages: [stranger, member.email].map((to) => ({ ...message, to })) }
    expectRefusal(await project.admin.post('/email/send-batch', batch), 403, 'EMAIL_NOT_VERIFIED')
    await vouch(member)
    nextSecond()
    expect((await send(project, member.email)).status).toBe(202)
    await project.drain()
    expect(mail.to(member.email)).toHaveLength(1)
    harness.setTime(null)
    await verify(project.developer)
    nextSecond()
    expect((await send(project, stranger)).status).toBe(202)
    await project.drain()
    expect(mail.to(stranger)).toHaveLength(1)
  })

  test('starts and tests no campaign of mail, unless it is sent from a verified domain', async () => {
    const project = await harness.project()
    const { email, id } = await reader(project)
    await defineTemplate(project)
    const draft = { name: 'Everybody', template_key: 'news', audience: { all: true } }
    const begin = (more: object) => project.admin.post('/email/campaigns', { ...draft, ...more })
    nextSecond()
    const made = await mailCampaign(project)
    const campaign = `/email/campaigns/${made.id}`
    for (const answer of [
      await begin({ send_now: true }),
      await begin({ send_at: '2030-01-01T00:00:00Z' }),
      await project.admin.post(`${campaign}/schedule`, {}),
      await project.admin.post(`${campaign}/test`, { user_ids: [id] }),
    ])
      expectRefusal(answer, 403, 'EMAIL_NOT_VERIFIED')
    expectRefusal(await project.admin.post(`/email/campaigns/${randomUUID()}/schedule`, {}), 404, 'NOT_FOUND')
    await project.drain()
    expect(mail.to(email)).toHaveLength(0)
    expect((await project.admin.get(campaign)).data.status).toBe('draft')
    await harness.control(`select internal.domain_put($1, $2, 'email', 'verified')`, [
      project.id,
      `${project.id}.example`,
    ])
    const from = `news@${project.id}.example`
    nextSecond()
    expect((await project.admin.post('/email/send', { to: email, from, subject: 'Hello', text: 'x' })).status).toBe(202)
    expectRefusal(await send(project, email), 403, 'EMAIL_NOT_VERIFIED')
    expect((await begin({ from, send_now: true })).status).toBe(202)
    await harness.control('update app.projects set default_from_email = $2 where id = $1', [project.id, from])
    nextSecond()
    expect((await send(project, newEmail())).status).toBe(202)
    expect((await project.admin.post(`${campaign}/schedule`, {})).status).toBe(202)
    await project.drain()
    expect(mail.to(email).map(({ headers }) => headers['from']?.includes(from))).toEqual([true, true, true])
  })

  test('has nothing sent by workers either: what is queued already fails by name', async () => {
    const project = await harness.project()
    const stranger = newEmail()
    const [made] = await project.sql(
      `insert into app.email_messages (to_address, subject, category, status, events)
       values ($1, 'x', 'transactional', 'queued', '[]') returning id`,
      [stranger],
    )
    await project.sql(`insert into app.email_bodies (message_id, text) values ($1, 'x')`, [made.id])
    await project.sql(`select internal.enqueue('email__send', $1)`, [made.id])
    await project.drain()
    expect((await project.admin.get(`/email/messages/${made.id}`)).data).toMatchObject({
      status: 'failed',
      last_error: expect.stringContaining('EMAIL_NOT_VERIFIED'),
    })
    expect(mail.to(stranger)).toHaveLength(0)
  })

  test('signs its users in by mail, in our words, so many a day', async () => {
    const project = await small.project()
    const [first, next, last] = [newEmail(), newEmail(), newEmail()]
    const template = {
      key: 'auth.otp',
      name: 'Code',
      subject: 'Unlock your account',
      text: 'Go to https://evil.example {{code}}',
    }
    const stored = await project.admin.post('/email/templates', template)
    expect(stored.status, stored.text).toBe(201)
    await codes(project, first)
    expect(mail.to(first)).toHaveLength(0)
    expect((await project.admin.delete('/email/templates/auth.otp')).status).toBe(200)
    await codes(project, next)
    expect(mail.to(next)).toHaveLength(1)
    await codes(project, last)
    expect(mail.to(last)).toHaveLength(0)
    small.advance(86_401)
    await codes(project, last)
    expect(mail.to(last)).toHaveLength(1)
  })
})

describe('any account', () => {
  test('has its projects and makes so many a day', async () => {
    const developer = await small.developer()
    await vouch(developer, small)
    for (let n = 0; n < 4; n += 1) expect((await make(developer)).status).toBe(201)
    // what is refused is not counted
    for (let n = 0; n < 3; n += 1) expectRefusal(await make(developer), 409, 'LIMIT_REACHED')
    await small.control('update app.projects set deleted_at = now() where developer_id = $1', [developer.id])
    expect((await make(developer)).status).toBe(201)
    const over = await make(developer)
    expectRefusal(over, 429, 'RATE_LIMIT_EXCEEDED')
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(80_000)
    // a paying one has as many as it likes
    small.advance(86_401)
    const back = await small.signIn(developer)
    for (let n = 0; n < 3; n += 1) expect((await make(back)).status).toBe(201)
    await small.control(`update app.projects set tier = 'pro' where developer_id = $1 and deleted_at is null`, [
      developer.id,
    ])
    expect((await make(back)).status).toBe(201)
  })

  test('has so many messages a day sent from the address of the installation; the others wait', async () => {
    const project = await small.project()
    await vouch(project.developer, small)
    small.running.services.projectCache.clear()
    const people = Array.from({ length: 4 }, newEmail)
    nextSecond(small)
    const batch = { messages: people.map((to) => ({ to, subject: 'Hello', text: 'x' })) }
    expect((await project.admin.post('/email/send-batch', batch)).status).toBe(202)
    await project.drain()
    const came = () => people.filter((to) => mail.to(to).length > 0).length
    expect(came()).toBe(3)
    // of another project of the same account too
    const other = await small.project({ developer: project.developer })
    const elsewhere = newEmail()
    nextSecond(small)
    expect((await send(other, elsewhere)).status).toBe(202)
    await other.drain()
    expect(mail.to(elsewhere)).toHaveLength(0)
    small.advance(86_401)
    await project.drain()
    await other.drain()
    expect([came(), mail.to(elsewhere).length]).toEqual([4, 1])
  })

  test('has no such bound where it sends through a mail server of its own', async () => {
    const own = await startHarness({ env: { ...env, WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', ACCOUNT_MAIL_PER_DAY: '0' } })
    const project = await own.project()
    const stranger = newEmail()
    expectRefusal(await send(project, stranger), 403, 'EMAIL_NOT_VERIFIED')
    const config = { host: '127.0.0.1', port: Number(new URL(mail.url).port), secure: false }
    expect((await project.admin.post('/integrations', { provider: 'smtp', config })).status).toBe(201)
    expect((await send(project, stranger)).status).toBe(202)
    await project.drain()
    expect(mail.to(stranger)).toHaveLength(1)
  })

  test('has a rate over all addresses together, that of one address', () => {
    const services = { ...harness.running.services, rateLimiter: createRateLimiter(true) }
    const call = (developerId: string) => {
      const developer = { developerId, sid: null, token: null, expiresAt: null, roles: {} }
      const claims = { caller: 'developer' } as const
      takeRateLimits(
        {},
        { place: services.control, role: 'control_developer', claims, project: null, developer },
        services,
      )
    }
    const tooMany = () => {
      for (let n = 0; n < 260; n += 1) call('a')
    }
    expect(tooMany).toThrow('Too many requests')
    expect(() => call('b')).not.toThrow()
  })
})
