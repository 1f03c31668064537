import { createHash, randomUUID } from 'node:crypto'
import { runInNewContext } from 'node:vm'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { mailedCode, meetingAt, personalToken, runJobs, withBearer } from '#test/support/accounts.ts'
import { type Answer, freshEmail, startHarness } from '#test/support/harness.ts'
import { acceptInvite, enrol, mailedInvite, organizationOf, personalOf } from '#test/support/organizations.ts'
import { startSecond } from '#test/support/second.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url } })
const second = await startSecond(harness)
const { anyone } = harness
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const at = (id: string, rest = '') => `/admin/organizations/${id}${rest}`
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** An organization with a member of each role. */
const company = async () => {
  const owner = await harness.developer()
  const { id } = await organizationOf(owner)
  const join = async (role: 'owner' | 'admin' | 'developer' | 'viewer') => {
    const person = await harness.developer()
    await enrol(harness, id, person, role)
    return person
  }
  const members = {
    owner,
    admin: await join('admin'),
    developer: await join('developer'),
    viewer: await join('viewer'),
  }
  return { id, join, ...members }
}

describe('an organization', () => {
  test('is personal for each account, also after years, and shown with the role', async () => {
    const developer = await harness.developer()
    const { data, total } = (await developer.get('/admin/organizations')).body
    expect(total).toBe(1)
    expect(data).toEqual([
      {
        id: expect.stringMatching(uuid),
        name: developer.email.split('@')[0],
        slug: `personal-${developer.id.replaceAll('-', '')}`,
        is_personal: true,
        role: 'owner',
        created_at: expect.any(String),
      },
    ])
    expect((await developer.get('/auth/developer/me')).data.organizations).toEqual([
      { id: data[0].id, name: data[0].name, role: 'owner' },
    ])
    const project = await developer.post('/admin/projects', { name: 'Mine' })
    expect(project.data.project.organization_id).toBe(data[0].id)
  })

  test('is created, renamed and deleted', async () => {
    const owner = await harness.developer()
    const made = await owner.post('/admin/organizations', { name: ' Grün & Söhne GmbH ' })
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({ is_personal: false, role: 'owner' })
    expect(made.data.slug).toMatch(/^[a-z0-9](-?[a-z0-9])*$/)
    const again = await organizationOf(owner, made.data.name)
    expect(again.slug).toMatch(new RegExp(`^${made.data.slug}-[0-9a-f]{8}$`))
    expect((await organizationOf(owner, '漢字')).slug).toMatch(/^organization/)
    expect((await organizationOf(owner, `${'a'.repeat(39)} b`)).slug).toMatch(/^a{39}/)

    expect((await owner.patch(at(made.data.id), { name: 'Green', slug: 'x' })).data).toEqual({
      ...made.data,
      name: 'Green',
    })
    expect((await owner.patch(at(made.data.id), {})).data.name).toBe('Green')
    expect((await owner.get(at(made.data.id))).data.name).toBe('Green')
    expect(refusalOf(await owner.patch(at(made.data.id), { name: '' }))).toEqual([400, 'VALIDATION_ERROR'])
    expect(refusalOf(await owner.get(at('x')))).toEqual([400, 'INVALID_ID'])
    expect(refusalOf(await owner.get(at('constructor')))).toEqual([400, 'INVALID_ID'])

    expect((await owner.delete(at(made.data.id))).data).toEqual({ deleted: true })
    expect(refusalOf(await owner.get(at(made.data.id)))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await owner.delete(at(made.data.id)))).toEqual([404, 'NOT_FOUND'])
  })

  test('is not deleted while it has projects, nor when it is personal', async () => {
    const owner = await harness.developer()
    const { id } = await organizationOf(owner)
    const { data } = await owner.post('/admin/projects', { name: 'App', organization_id: id })
    expect(data.project).toMatchObject({ organization_id: id, developer_id: owner.id })
    expect(refusalOf(await owner.delete(at(id)))).toEqual([409, 'PROJECTS_EXIST'])
    expect(refusalOf(await owner.delete(at(await personalOf(owner))))).toEqual([409, 'PERSONAL_ORGANIZATION'])
    // a deleted project whose database is still being removed holds nothing up
    await harness.control('update app.tenants set status = $2 where project_id = $1', [data.project.id, 'failed'])
    expect((await owner.delete(`/admin/projects/${data.project.id}`)).status).toBe(200)
    expect((await owner.delete(at(id))).status).toBe(200)
  })

  test('a developer has at most 100', async () => {
    const owner = await harness.developer()
    await harness.control(
      `with made as (insert into app.organizations (name, slug) select 'x', 'x-' || n || right($1::uuid::text, 12) from generate_series(1, 98) n returning id)
       insert into app.organization_members (organization_id, developer_id, role) select id, $1::uuid, 'viewer' from made`,
      [owner.id],
    )
    const answers = await meetingAt(harness, 'app.organizations', () =>
      [1, 2, 3].map((n) => owner.post('/admin/organizations', { name: `n${n}` })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.error).toMatchObject({
      code: 'LIMIT_REACHED',
      details: { limit: 100 },
    })
    expect((await owner.get('/admin/organizations?limit=200')).body).toMatchObject({ total: 100 })
  })

  test('projects are created in it by its admins', async () => {
    const { id, admin, developer } = await company()
    const stranger = await harness.developer()
    const made = await admin.post('/admin/projects', { name: 'App', organization_id: id })
    expect(made.status).toBe(201)
    expect(refusalOf(await developer.post('/admin/projects', { name: 'x', organization_id: id }))).toEqual([
      403,
      'ROLE_FORBIDDEN',
    ])
    expect(refusalOf(await stranger.post('/admin/projects', { name: 'x', organization_id: id }))).toEqual([
      404,
      'NOT_FOUND',
    ])
    const own = await developer.post('/admin/projects', { name: 'Own' })
    const ids = async (query: string) =>
      (await developer.get(`/admin/projects${query}`)).data.map((p: { id: string }) => p.id)
    expect(await ids('')).toEqual([own.data.project.id, made.data.project.id])
    expect(await ids(`?organization_id=${id}`)).toEqual([made.data.project.id])
    expect(await ids(`?organization_id=${randomUUID()}`)).toEqual([])
    expect((await stranger.get(`/admin/projects?organization_id=${id}`)).data).toEqual([])
    expect(refusalOf(await developer.get('/admin/projects?organization_id=x'))).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('members', () => {
  test('see one another, longest membership first', async () => {
    const { id, owner, viewer } = await company()
    const { data, total } = (await viewer.get(at(id, '/members?limit=2'))).body
    expect(total).toBe(4)
    expect(data[0]).toEqual({
      developer_id: owner.id,
      email: owner.email,
      name: null,
      role: 'owner',
      joined_at: expect.any(String),
    })
    expect(data).toHaveLength(2)
  })

  test('get another role from admins; owners are made and lowered by owners', async () => {
    const { id, owner, admin, developer, viewer } = await company()
    const change = (by: typeof owner, of: { id: string }, role: string) =>
      by.patch(at(id, `/members/${of.id}`), { role })
    expect((await change(admin, viewer, 'developer')).data).toMatchObject({
      developer_id: viewer.id,
      role: 'developer',
    })
    expect((await admin.patch(at(id, `/members/${viewer.id}`), {})).data.role).toBe('developer')
    expect((await change(admin, developer, 'admin')).status).toBe(200)
    // the role is known to the server at once
    expect((await developer.patch(at(id), { name: 'By an admin now' })).status).toBe(200)
    expect(refusalOf(await change(admin, developer, 'owner'))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect(refusalOf(await change(admin, owner, 'viewer'))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect(refusalOf(await admin.delete(at(id, `/members/${owner.id}`)))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect((await change(owner, developer, 'owner')).status).toBe(200)
    expect((await change(developer, owner, 'viewer')).data.role).toBe('viewer')
    expect(refusalOf(await change(developer, developer, 'admin'))).toEqual([409, 'LAST_OWNER'])
    expect(refusalOf(await developer.delete(at(id, `/members/${developer.id}`)))).toEqual([409, 'LAST_OWNER'])
    expect(refusalOf(await change(developer, { id: randomUUID() }, 'admin'))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await change(developer, admin, 'king'))).toEqual([400, 'VALIDATION_ERROR'])
    expect(refusalOf(await change(developer, { id: 'x' }, 'admin'))).toEqual([400, 'INVALID_ID'])
  })

  test('leave by themselves, and remove nobody else', async () => {
    const { id, developer, viewer } = await company()
    expect(refusalOf(await viewer.delete(at(id, `/members/${developer.id}`)))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect((await viewer.delete(at(id, `/members/${viewer.id}`))).data).toEqual({ deleted: true })
    expect(refusalOf(await viewer.get(at(id)))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await viewer.delete(at(id, `/members/${viewer.id}`)))).toEqual([404, 'NOT_FOUND'])
  })

  test('the owner of a personal organization stays, whoever else is an owner', async () => {
    const person = await harness.developer()
    const other = await harness.developer()
    const id = await personalOf(person)
    await enrol(harness, id, other, 'owner')
    for (const by of [person, other]) {
      expect(refusalOf(await by.delete(at(id, `/members/${person.id}`)))).toEqual([409, 'PERSONAL_ORGANIZATION'])
      expect(refusalOf(await by.patch(at(id, `/members/${person.id}`), { role: 'viewer' }))).toEqual([
        409,
        'PERSONAL_ORGANIZATION',
      ])
    }
  })

  test('of two owners who leave at once one stays', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { id, owner, join } = await company()
      const other = await join('owner')
      const answers = await meetingAt(harness, 'app.organization_members', () => [
        owner.delete(at(id, `/members/${owner.id}`)),
        round === 1
          ? other.patch(at(id, `/members/${other.id}`), { role: 'viewer' })
          : other.delete(at(id, `/members/${other.id}`)),
      ])
      expect(answers.map(refusalOf).sort()).toEqual([
        [200, undefined],
        [409, 'LAST_OWNER'],
      ])
    }
  })

  test('who is removed is out at once here, and on another server, with tokens', async () => {
    const { id, owner, developer } = await company()
    const project = await harness.project({ developer: owner })
    expect((await project.admin.post('/transfer', { organization_id: id })).data.organization_id).toBe(id)
    const path = `/admin/projects/${project.id}/streaks`
    const { token } = await personalToken(developer, { scopes: ['*:read'] })
    const ways = [
      developer,
      withBearer(anyone, token),
      second.as(developer.headers),
      second.as(withBearer(anyone, token).headers),
    ]
    for (const way of ways) expect((await way.get(path)).status).toBe(200)
    expect((await owner.delete(at(id, `/members/${developer.id}`))).status).toBe(200)
    for (const way of ways.slice(0, 2)) expect(refusalOf(await way.get(path))).toEqual([403, 'PROJECT_FORBIDDEN'])
    // the other server hears of it, or forgets by itself after 30 seconds
    for (const way of ways.slice(2))
      await expect.poll(async () => refusalOf(await way.get(path))).toEqual([403, 'PROJECT_FORBIDDEN'])
    // nor does control show them anything, whatever a server may still believe
    const visible = await harness.control(
      `select set_config('app.developer_id', $1, true), internal.organization_ids() as ids`,
      [developer.id],
    )
    expect(visible[0].ids).toEqual([await personalOf(developer)])
  })
})

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

describe('a transfer', () => {
  test('moves a project; both trails and the project say so', async () => {
    const { id, owner, viewer } = await company()
    const project = await harness.project({ developer: owner })
    const home = await personalOf(owner)
    expect(refusalOf(await viewer.get(`/admin/projects/${project.id}`))).toEqual([403, 'PROJECT_FORBIDDEN'])
    const moved = await project.admin.post('/transfer', { organization_id: id })
    expect(moved.data).toMatchObject({ id: project.id, organization_id: id, developer_id: owner.id })
    expect((await project.admin.post('/transfer', { organization_id: id })).status).toBe(200)
    expect((await viewer.get(`/admin/projects/${project.id}`)).status).toBe(200)
    for (const [organization, reader] of [
      [id, viewer],
      [home, owner],
    ] as const) {
      const { data } = await reader.get(at(organization, '/audit-events?action=projects.'))
      expect(data).toHaveLength(1)
      expect(data[0]).toMatchObject({
        action: 'projects.transfer',
        actor: { type: 'developer', id: owner.id },
        target: { type: 'projects', id: project.id },
        changes: { organization_id: [home, id] },
      })
    }
    const { data } = await project.admin.get('/audit-events?action=projects.update')
    expect(data[0].changes.organization_id).toEqual([home, id])
  })

  test('needs the owner of both', async () => {
    const { id, owner, admin } = await company()
    const project = await harness.project({ developer: owner })
    const theirs = await company()
    await enrol(harness, theirs.id, owner, 'admin')
    const to = (organization: string) => project.admin.post('/transfer', { organization_id: organization })
    expect(refusalOf(await to(randomUUID()))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await to(theirs.id))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect(refusalOf(await to('x'))).toEqual([400, 'VALIDATION_ERROR'])
    expect((await to(id)).status).toBe(200)
    expect(
      refusalOf(
        await admin.post(`/admin/projects/${project.id}/transfer`, { organization_id: await personalOf(admin) }),
      ),
    ).toEqual([403, 'ROLE_FORBIDDEN'])
  })

  test('and the deletion of its target at once: one of the two', async () => {
    const owner = await harness.developer()
    const project = await harness.project({ developer: owner })
    const { id } = await organizationOf(owner)
    const answers = await meetingAt(harness, 'app.projects', () => [
      project.admin.post('/transfer', { organization_id: id }),
      owner.delete(at(id)),
    ])
    const [moved, deleted] = answers.map(refusalOf)
    expect([
      [
        [200, undefined],
        [409, 'PROJECTS_EXIST'],
      ],
      [
        [404, 'NOT_FOUND'],
        [200, undefined],
      ],
    ]).toContainEqual([moved, deleted])
  })
})

describe('the trail of an organization', () => {
  test('has its members, invites and name, and nobody else reads it', async () => {
    const { id, owner, admin, viewer } = await company()
    const guest = await harness.developer()
    const { token } = await mailedInvite(harness, mail, admin, id, { email: guest.email })
    await acceptInvite(guest, token)
    await owner.patch(at(id), { name: 'Renamed' })
    await owner.delete(at(id, `/members/${guest.id}`))
    const { data } = await viewer.get(at(id, '/audit-events'))
    expect(data.map((event: { action: string }) => event.action)).toEqual([
      'members.delete',
      'organizations.update',
      'members.create',
      'invites.update',
      'invites.create',
      'members.create',
      'organizations.create',
    ])
    expect(JSON.stringify(data)).not.toContain(token)
    expect((await viewer.get(at(id, '/audit-events?action=members.&limit=1'))).body.pagination.next_cursor).toEqual(
      expect.any(String),
    )
    expect((await viewer.get(at(id, `/audit-events?actor_id=${guest.id}`))).data).toHaveLength(2)
    expect(refusalOf(await guest.get(at(id, '/audit-events')))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await viewer.get(at(id, '/audit-events?limit=x')))).toEqual([400, 'INVALID_INPUT'])
  })
})

test('who takes an account back by its address finds nobody else in its personal organization', async () => {
  const stranger = await harness.developer()
  const accomplice = await harness.developer()
  const home = await personalOf(stranger)
  await enrol(harness, home, accomplice, 'owner')
  const waiting = await mailedInvite(harness, mail, stranger, home, { email: freshEmail(), role: 'admin' })
  harness.setTime(new Date(Date.now() + 2 * 3600_000))
  const code = await mailedCode(harness, mail, stranger.email)
  const proved = await anyone.post(
    '/auth/developer/otp/verify',
    { email: stranger.email, code },
    { 'x-forwarded-for': '203.0.113.9' },
  )
  expect(proved.status, proved.text).toBe(200)
  const owner = withBearer(anyone, proved.data.access_token)
  expect((await owner.get(at(home, '/members'))).data.map((m: { developer_id: string }) => m.developer_id)).toEqual([
    stranger.id,
  ])
  expect((await owner.get(at(home, '/invites'))).data).toMatchObject([{ id: waiting.id, status: 'revoked' }])
})
