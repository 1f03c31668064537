import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { mailedCode, meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, freshEmail, startHarness } from '#test/support/harness.ts'
import {
  acceptInvite,
  at,
  companyOf,
  enrol,
  mailedInvite,
  organizationOf,
  personalOf,
} from '#test/support/organizations.ts'
import { startSecond } from '#test/support/second.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url } })
const second = await startSecond(harness)
const { anyone } = harness
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const company = () => companyOf(harness)

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
    expect(refusalOf(await viewer.get(at(id, '/members?limit=x')))).toEqual([400, 'INVALID_INPUT'])
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

test('the trail of an organization says who made and deleted its projects, also when they are gone', async () => {
  const { id, owner, admin } = await company()
  const made = await admin.post('/admin/projects', { name: 'Garden', organization_id: id })
  const project = made.data.project.id
  await harness.running.services.fleet.provision(project)
  expect((await owner.delete(`/admin/projects/${project}`)).status).toBe(200)
  await harness.control('delete from app.projects where id = $1', [project])
  expect((await owner.get(`/admin/projects/${project}/audit-events`)).status).toBe(404)
  const { data } = await owner.get(at(id, '/audit-events?action=projects.'))
  expect(data).toMatchObject([
    { action: 'projects.delete', actor: { id: owner.id }, target: { type: 'projects', id: project }, status: 200 },
    { action: 'projects.create', actor: { id: admin.id }, changes: { name: [null, 'Garden'] }, status: 201 },
  ])
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
