import { createHash, randomUUID } from 'node:crypto'
import { runInNewContext } from 'node:vm'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { meetingAt, runJobs } from '#test/support/accounts.ts'
import { type Answer, freshEmail, startHarness } from '#test/support/harness.ts'
import { acceptInvite, at, companyOf, enrol, mailedInvite } from '#test/support/organizations.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url } })
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const company = () => companyOf(harness)

describe('an invite', () => {
  test('comes by mail and makes a member', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const { id, admin } = await company()
    const guest = await harness.developer()
    // another way to write the same mailbox
    const { id: inviteId, token } = await mailedInvite(harness, mail, admin, id, { email: guest.email, role: 'viewer' })
    const letter = mail.to(guest.email).at(-1)
    expect(letter?.headers['subject']).toBe('Invite to Example Ltd')
    expect(letter?.text).toContain(admin.email)
    const row = {
      id: inviteId,
      email: guest.email,
      role: 'viewer',
      status: 'pending',
      expires_at: '2026-12-08T10:00:00.000Z',
      created_at: '2026-12-01T10:00:00.000Z',
    }
    expect((await admin.get(at(id, '/invites'))).body).toMatchObject({ data: [row], total: 1 })
    expect(refusalOf(await admin.get(at(id, '/invites?offset=x')))).toEqual([400, 'INVALID_INPUT'])
    expect(JSON.stringify(await harness.control('select * from app.organization_invites'))).not.toContain(token)

    const accepted = await acceptInvite(guest, token)
    expect(accepted.status).toBe(200)
    expect(accepted.data).toMatchObject({
      organization_id: id,
      organization_name: 'Example Ltd',
      developer_id: guest.id,
      role: 'viewer',
    })
    expect((await guest.get(at(id))).data.role).toBe('viewer')
    expect((await admin.get(at(id, '/invites'))).data[0].status).toBe('accepted')
    expect(refusalOf(await acceptInvite(guest, token))).toEqual([409, 'INVITE_NOT_PENDING'])
    expect(refusalOf(await admin.delete(at(id, `/invites/${inviteId}`)))).toEqual([409, 'INVITE_NOT_PENDING'])
  })

  test('has a page behind its link, which runs no other script and keeps the token from every server', async () => {
    const page = await fetch(`${harness.url}/invite`)
    const html = await page.text()
    const [, script = ''] = /<script>([\s\S]*)<\/script>/.exec(html) ?? []
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain(`'sha256-${createHash('sha256').update(script).digest('base64')}'`)
    expect(policy).toContain("default-src 'none'")
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(html).not.toMatch(/https?:|innerHTML/)

    // the script itself, on a page of a few parts
    const { id, admin } = await company()
    const email = freshEmail()
    const { token } = await mailedInvite(harness, mail, admin, id, { email, role: 'admin' })
    const shown: { textContent: string } = { textContent: '' }
    let submit: (event: object) => Promise<void> = async () => undefined
    const form = {
      hidden: false,
      querySelector: () => ({ disabled: false }),
      addEventListener: (_name: string, listen: typeof submit) => {
        submit = listen
      },
    }
    const fields = { email, password: 'a long passphrase', account: 'new' }
    runInNewContext(script, {
      document: { querySelector: (what: string) => (what === 'form' ? form : shown) },
      location: { hash: `#${token}` },
      FormData: class {
        [Symbol.iterator] = () => Object.entries(fields)[Symbol.iterator]()
      },
      fetch: (path: string, options: RequestInit) => fetch(`${harness.url}${path}`, options),
    })
    await submit({ preventDefault: () => undefined })
    expect(shown.textContent).toBe('You are a member of Example Ltd, as admin.')
    fields.account = 'old'
    await submit({ preventDefault: () => undefined })
    expect(shown.textContent).toBe('This invite is accepted.')
    const open = await harness.control(
      `select from app.developer_sessions s join app.developers d on d.id = s.developer_id where d.email = $1 and s.ended_at is null`,
      [email],
    )
    expect(open).toEqual([])
  })

  test('is for one address, for seven days', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const { id, admin } = await company()
    const guest = await harness.developer()
    const other = await harness.developer()
    const { token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    expect(refusalOf(await acceptInvite(other, token))).toEqual([403, 'INVITE_EMAIL_MISMATCH'])
    expect(refusalOf(await acceptInvite(guest, `${token}x`))).toEqual([404, 'NOT_FOUND'])
    harness.advance(7 * 86_400 - 1)
    const { token: another } = await mailedInvite(harness, mail, await harness.signIn(admin), id, {
      email: other.email,
    })
    harness.advance(1)
    const signedIn = await harness.signIn(guest)
    expect(refusalOf(await acceptInvite(signedIn, token))).toEqual([409, 'INVITE_NOT_PENDING'])
    expect((await acceptInvite(await harness.signIn(other), another)).status).toBe(200)
    // an expired one does not hinder the next one, nor the daily job after ninety days
    const againBy = await harness.signIn(admin)
    expect((await againBy.post(at(id, '/invites'), { email: guest.email, role: 'viewer' })).status).toBe(201)
  })

  test('is revoked: the token is dead, and a mail that was not sent yet is not sent', async () => {
    const { id, admin } = await company()
    const guest = await harness.developer()
    const { id: inviteId, token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    expect((await admin.delete(at(id, `/invites/${inviteId}`))).data).toEqual({ deleted: true })
    expect(refusalOf(await admin.delete(at(id, `/invites/${inviteId}`)))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await admin.delete(at(id, `/invites/${randomUUID()}`)))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await acceptInvite(guest, token))).toEqual([409, 'INVITE_NOT_PENDING'])
    const sent = mail.to(guest.email).length
    const next = await admin.post(at(id, '/invites'), { email: guest.email, role: 'viewer' })
    await admin.delete(at(id, `/invites/${next.data.id}`))
    await runJobs(harness, 'organizations__invite')
    expect(mail.to(guest.email)).toHaveLength(sent)
  })

  test('refuses members, a second one, and an owner by somebody who is none', async () => {
    const { id, owner, admin, viewer } = await company()
    const invite = (by: typeof owner, email: string, role = 'viewer') => by.post(at(id, '/invites'), { email, role })
    expect(refusalOf(await invite(admin, viewer.email.toUpperCase()))).toEqual([409, 'ALREADY_MEMBER'])
    const email = freshEmail()
    expect((await invite(admin, email)).status).toBe(201)
    expect(refusalOf(await invite(owner, email.toUpperCase()))).toEqual([409, 'CONFLICT'])
    expect(refusalOf(await invite(admin, freshEmail(), 'owner'))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect((await invite(owner, freshEmail(), 'owner')).status).toBe(201)
    expect(refusalOf(await invite(owner, 'nobody'))).toEqual([400, 'VALIDATION_ERROR'])
    expect(refusalOf(await invite(owner, freshEmail(), 'king'))).toEqual([400, 'VALIDATION_ERROR'])
  })

  test('who became a member meanwhile is told so', async () => {
    const { id, admin } = await company()
    const guest = await harness.developer()
    const { token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    await enrol(harness, id, guest, 'viewer')
    expect(refusalOf(await acceptInvite(guest, token))).toEqual([409, 'ALREADY_MEMBER'])
  })

  test('accepted twice at once makes one member', async () => {
    const { id, admin } = await company()
    const guest = await harness.developer()
    const { token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    const answers = await meetingAt(harness, 'app.organization_members', () =>
      [1, 2, 3].map(() => acceptInvite(guest, token)),
    )
    expect(answers.map(refusalOf).sort()).toEqual([
      [200, undefined],
      [409, 'INVITE_NOT_PENDING'],
      [409, 'INVITE_NOT_PENDING'],
    ])
  })

  test('accepted and revoked at once is one of the two', async () => {
    const { id, admin } = await company()
    const guest = await harness.developer()
    const { id: inviteId, token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    const [accepted, revoked] = await meetingAt(harness, 'app.organization_invites', () => [
      acceptInvite(guest, token),
      admin.delete(at(id, `/invites/${inviteId}`)),
    ])
    expect([accepted?.status, revoked?.status].sort()).toEqual([200, 409])
  })

  test('of an admin who is removed or lowered goes with the role', async () => {
    for (const end of ['remove', 'lower'] as const) {
      const { id, owner, admin } = await company()
      const guest = await harness.developer()
      const { token } = await mailedInvite(harness, mail, admin, id, { email: guest.email, role: 'admin' })
      if (end === 'remove') await owner.delete(at(id, `/members/${admin.id}`))
      else await owner.patch(at(id, `/members/${admin.id}`), { role: 'developer' })
      expect(refusalOf(await acceptInvite(guest, token))).toEqual([409, 'INVITE_NOT_PENDING'])
    }
  })

  test('limits: 50 pending, 20 in an hour, 100 members', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const { id, admin } = await company()
    const guest = await harness.developer()
    const { token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    await harness.control(
      `insert into app.organization_invites (organization_id, email, mailbox, role, token_hash, expires_at)
       select $1::uuid, n || '@example.org', n || '@example.org', 'viewer', $1::uuid::text || n, '2027-01-01' from generate_series(1, 49) n`,
      [id],
    )
    const invite = () => admin.post(at(id, '/invites'), { email: freshEmail(), role: 'viewer' })
    expect((await invite()).error).toMatchObject({ code: 'LIMIT_REACHED', details: { limit: 50 } })
    await harness.control('delete from app.organization_invites where invited_by is null and organization_id = $1', [
      id,
    ])
    for (let n = 0; n < 18; n += 1) expect((await invite()).status).toBe(201)
    const refused = await invite()
    expect(refusalOf(refused)).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000)

    await harness.control(
      `with made as (insert into app.developers (email, mailbox) select m, m from (select $1::uuid::text || '-' || n || '@example.org' as m from generate_series(1, 96) n) x returning id)
       insert into app.organization_members (organization_id, developer_id, role) select $1::uuid, id, 'viewer' from made`,
      [id],
    )
    expect(refusalOf(await acceptInvite(guest, token))).toEqual([409, 'LIMIT_REACHED'])
  })

  test('attempts to accept are limited', async () => {
    const guest = await harness.developer()
    const from = { 'x-forwarded-for': '203.0.113.77' }
    const answers: number[] = []
    for (let n = 0; n < 21; n += 1)
      answers.push((await guest.post('/admin/invites/accept', { token: `t${n}` }, from)).status)
    expect(answers.at(-1)).toBe(429)
  })
})
