import { afterEach, describe, expect, test } from 'vitest'
import { meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { delegationOf, introspect, nothing, operatorTokenOf, serviceAccountOf } from '#test/support/delegation.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { enrol, organizationOf, personalOf } from '#test/support/organizations.ts'

const harness = await startHarness()
const { anyone } = harness
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const dead = [401, 'INVALID_DEVELOPER_TOKEN']
const scene = (ceiling: Parameters<typeof delegationOf>[1] = {}) => delegationOf(harness, ceiling)

describe('escalation', () => {
  test('a token makes no token, nor anything that would outlive it', async () => {
    const { account, owner, organization, project } = await scene()
    const operator = (await operatorTokenOf(harness, account.client, { organization_id: organization })).client
    const pat = withBearer(anyone, (await personalToken(owner)).token)
    const body = { project_id: project.id, scopes: ['*:read'] }
    expect(refusalOf(await operator.post('/admin/operator-tokens', body))).toEqual([403, 'DELEGATION_NOT_ALLOWED'])
    expect(refusalOf(await pat.post('/admin/operator-tokens', body))).toEqual([403, 'SESSION_REQUIRED'])
    for (const path of [
      '/admin/tokens',
      '/admin/service-accounts',
      `/admin/organizations/${organization}/invites`,
      `/admin/projects/${project.id}/api-keys`,
    ])
      expect(refusalOf(await operator.post(path, {}))).toEqual([403, 'DELEGATION_NOT_ALLOWED'])
    expect(refusalOf(await operator.get('/auth/developer/me'))).toEqual([403, 'DELEGATION_NOT_ALLOWED'])
  })

  test('no token does more than its maker: neither when it is made, nor when the ceiling comes down', async () => {
    const { account, admin, project, streaks } = await scene({ scopes: ['streaks:write', 'users:read'] })
    const ask = (scopes: string[]) => account.client.post('/admin/operator-tokens', { project_id: project.id, scopes })
    for (const scopes of [['*:read'], ['*:write'], ['users:write'], ['streaks:write', 'flags:read']]) {
      const refused = await ask(scopes)
      expect(refusalOf(refused)).toEqual([403, 'SCOPE_EXCEEDS_CEILING'])
      expect(refused.error?.details).toMatchObject({ ceiling: ['streaks:write', 'users:read'] })
    }
    expect((await ask(['streaks:read'])).status).toBe(201)
    const made = await operatorTokenOf(harness, account.client, {
      project_id: project.id,
      scopes: ['streaks:write', 'users:read'],
    })
    const create = (key: string) => made.client.post(streaks, { key, name: key, qualifying_event: 'lesson' })
    expect((await create('a')).status).toBe(201)
    await admin.patch(`/admin/service-accounts/${account.id}`, { scopes: ['streaks:read'] })
    expect(refusalOf(await create('b'))).toEqual([403, 'SCOPE_REQUIRED'])
    expect((await made.client.get(streaks)).status).toBe(200)
    expect(refusalOf(await made.client.get(`/admin/projects/${project.id}/users`))).toEqual([403, 'SCOPE_REQUIRED'])
    expect(await introspect(account.client, made.token)).toMatchObject({
      active: true,
      scopes: ['streaks:read'],
      project_id: project.id,
      organization_id: null,
    })
    const elsewhere = (await harness.project({ developer: admin })).id
    expect(elsewhere).not.toBe(project.id)
    await admin.patch(`/admin/service-accounts/${account.id}`, { scopes: ['*:read'] })
    expect((await introspect(account.client, made.token)).scopes).toEqual(['streaks:read', 'users:read'])
  })

  test('a project that leaves the ceiling or the organization is out of reach', async () => {
    const { account, admin, owner, organization, project, streaks } = await scene()
    const sibling = await harness.project({ developer: owner })
    const one = await operatorTokenOf(harness, account.client, { project_id: project.id })
    const all = await operatorTokenOf(harness, account.client, { organization_id: organization })
    for (const { client } of [one, all]) expect((await client.get(streaks)).status).toBe(200)
    await admin.patch(`/admin/service-accounts/${account.id}`, { project_ids: [sibling.id] })
    expect(refusalOf(await one.client.get(streaks))).toEqual(dead)
    expect(refusalOf(await all.client.get(streaks))).toEqual([403, 'PROJECT_FORBIDDEN'])
    await admin.patch(`/admin/service-accounts/${account.id}`, { project_ids: null })
    for (const { client } of [one, all]) expect((await client.get(streaks)).status).toBe(200)
    const target = await organizationOf(owner)
    const moved = await project.admin.post('/transfer', { organization_id: target.id })
    expect(moved.status, moved.text).toBe(200)
    expect(refusalOf(await one.client.get(streaks))).toEqual(dead)
    expect(refusalOf(await all.client.get(streaks))).toEqual([403, 'PROJECT_FORBIDDEN'])
    // not even when nothing is cached
    harness.running.services.sessions.clear()
    expect(refusalOf(await one.client.get(streaks))).toEqual(dead)
    expect(await introspect(account.client, one.token)).toEqual(nothing)
  })

  test('what a member delegated ends when they leave, and does not come back with them', async () => {
    const { organization, owner, project, streaks } = await scene()
    const member = await harness.developer()
    await enrol(harness, organization, member, 'developer')
    const made = await operatorTokenOf(harness, member, { project_id: project.id })
    const wide = await operatorTokenOf(harness, member, { organization_id: organization })
    const elsewhere = await operatorTokenOf(harness, member, { organization_id: await personalOf(member) })
    for (const { client } of [made, wide]) expect((await client.get(streaks)).status).toBe(200)
    expect((await owner.delete(`/admin/organizations/${organization}/members/${member.id}`)).status).toBe(200)
    await enrol(harness, organization, member, 'viewer')
    for (const { client, token } of [made, wide]) {
      expect(refusalOf(await client.get(streaks))).toEqual(dead)
      expect(await introspect(member, token)).toEqual(nothing)
    }
    expect((await introspect(member, elsewhere.token)).active).toBe(true)
    const listed = (await member.get('/admin/operator-tokens')).data
    expect(listed.map(({ status }: { status: string }) => status)).toEqual(['active', 'revoked', 'revoked'])
    const trail = await owner.get(`/admin/projects/${project.id}/audit-events?target_id=${made.id}`)
    expect(trail.data[0].changes.revoked_at).toEqual([null, expect.any(String)])
  })

  test('what was delegated for a project ends when it moves, and does not come back with it', async () => {
    const { account, admin, owner, organization, project, streaks } = await scene()
    const sibling = await harness.project({ developer: owner })
    const limited = (
      await serviceAccountOf(harness, admin, { organization_id: organization, project_ids: [project.id] })
    ).id
    const both = await serviceAccountOf(harness, admin, {
      organization_id: organization,
      project_ids: [project.id, sibling.id],
    })
    const tokens = [
      await operatorTokenOf(harness, account.client, { project_id: project.id }),
      await operatorTokenOf(harness, owner, { project_id: project.id }),
      await operatorTokenOf(harness, both.client, { project_id: project.id }),
    ]
    const kept = await operatorTokenOf(harness, both.client, { project_id: sibling.id })
    for (const { client } of tokens) expect((await client.get(streaks)).status).toBe(200)
    for (const organization_id of [(await organizationOf(owner)).id, organization])
      expect((await project.admin.post('/transfer', { organization_id })).status).toBe(200)
    for (const { client } of tokens) expect(refusalOf(await client.get(streaks))).toEqual(dead)
    expect((await kept.client.get(`/admin/projects/${sibling.id}/streaks`)).status).toBe(200)
    const stateOf = async (id: string) => (await admin.get(`/admin/service-accounts/${id}`)).data
    expect(await stateOf(limited)).toMatchObject({ is_active: false })
    expect(await stateOf(both.id)).toMatchObject({ is_active: true, project_ids: [sibling.id] })
    // one for every project of the organization has the projects that it has now
    const again = await operatorTokenOf(harness, account.client, { project_id: project.id })
    expect((await again.client.get(streaks)).status).toBe(200)
  })

  test('a removal or a transfer that meets the making of a token leaves none that lives', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { organization, owner, account, project } = await scene()
      const member = await harness.developer()
      await enrol(harness, organization, member, 'developer')
      const target = (await organizationOf(owner)).id
      await meetingAt(harness, 'app.operator_tokens', () => [
        member.post('/admin/operator-tokens', { project_id: project.id, scopes: ['*:read'] }),
        account.client.post('/admin/operator-tokens', { project_id: project.id, scopes: ['*:read'] }),
        owner.delete(`/admin/organizations/${organization}/members/${member.id}`),
        project.admin.post('/transfer', { organization_id: target }),
      ])
      const alive = await harness.control(
        `select t.id from app.operator_tokens t join app.projects p on p.id = t.project_id
          where t.project_id = $1 and t.revoked_at is null and p.organization_id <> t.organization_id
          union all
         select t.id from app.operator_tokens t where t.developer_id = $2 and t.revoked_at is null`,
        [project.id, member.id],
      )
      expect(alive).toEqual([])
    }
  })

  test('a scope of an area that is gone opens nothing, wherever it stands', async () => {
    const { account, project, streaks } = await scene()
    const made = await operatorTokenOf(harness, account.client, { project_id: project.id, scopes: ['streaks:read'] })
    await harness.control(
      `update app.operator_tokens set scopes = '{ghost:write,projects:write,tokens:write,integrations:write}' where id = $1`,
      [made.id],
    )
    harness.running.services.sessions.clear()
    expect(refusalOf(await made.client.get(streaks))).toEqual([403, 'SCOPE_REQUIRED'])
    for (const path of ['', '/integrations', '/audit-events'])
      expect(refusalOf(await made.client.get(`/admin/projects/${project.id}${path}`))).toEqual([
        403,
        'DELEGATION_NOT_ALLOWED',
      ])
  })

  test("a developer's tokens follow the developer's role", async () => {
    const { owner, organization, project, streaks } = await scene()
    const person = await harness.developer()
    await enrol(harness, organization, person, 'viewer')
    const ask = (scopes: string[]) => person.post('/admin/operator-tokens', { project_id: project.id, scopes })
    expect(refusalOf(await ask(['streaks:write']))).toEqual([403, 'SCOPE_EXCEEDS_CEILING'])
    expect(
      refusalOf(
        await person.post('/admin/operator-tokens', { project_id: (await harness.project()).id, scopes: ['*:read'] }),
      ),
    ).toEqual([403, 'PROJECT_FORBIDDEN'])
    const reading = await operatorTokenOf(harness, person, { project_id: project.id, scopes: ['*:read'] })
    expect((await reading.client.get(streaks)).status).toBe(200)
    // a viewer has GET only, and so have their tokens
    const preview = await reading.client.post(`/admin/projects/${project.id}/segments/preview`, {
      definition: { column: 'email', op: 'eq', value: 'x' },
    })
    expect(refusalOf(preview)).toEqual([403, 'ROLE_FORBIDDEN'])

    const member = `/admin/organizations/${organization}/members/${person.id}`
    await owner.patch(member, { role: 'admin' })
    const writing = await operatorTokenOf(harness, person, { project_id: project.id, scopes: ['*:write'] })
    const create = (key: string) => writing.client.post(streaks, { key, name: key, qualifying_event: 'lesson' })
    expect((await create('a')).status).toBe(201)
    await owner.patch(member, { role: 'viewer' })
    expect(refusalOf(await create('b'))).toEqual([403, 'SCOPE_REQUIRED'])
    expect((await writing.client.get(streaks)).status).toBe(200)
    await owner.delete(member)
    for (const { client } of [reading, writing]) expect(refusalOf(await client.get(streaks))).toEqual(dead)
  })

  test('a token that is made while its account is deactivated is dead, or not made', async () => {
    const { account, admin, project, streaks } = await scene()
    const [made] = await meetingAt(harness, 'app.service_accounts', () => [
      account.client.post('/admin/operator-tokens', { project_id: project.id, scopes: ['*:read'] }),
      admin.patch(`/admin/service-accounts/${account.id}`, { is_active: false }),
    ])
    if (made?.status === 201) expect(refusalOf(await withBearer(anyone, made.data.token).get(streaks))).toEqual(dead)
    else expect(refusalOf(made as Answer)).toEqual(dead)
  })
})
