import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { sha256 } from '#server/secrets.ts'
import { meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { delegationOf, introspect, nothing, operatorTokenOf, serviceAccountOf } from '#test/support/delegation.ts'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'
import { enrol, personalOf } from '#test/support/organizations.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'

const harness = await startHarness()
const second = await startSecond(harness)
const { anyone } = harness
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const dead = [401, 'INVALID_DEVELOPER_TOKEN']
const scene = (ceiling: Parameters<typeof delegationOf>[1] = {}) => delegationOf(harness, ceiling)

test('GraphQL, which reads whatever its query names, is never delegated: no such read can pass without a row', async () => {
  const { project, account } = await scene()
  await project.admin.patch('', { graphql_enabled: true })
  for (const scopes of [['*:read'], ['*:write'], ['users:read']]) {
    const operator = await operatorTokenOf(harness, account.client, { project_id: project.id, scopes })
    const asked = await operator.client.post(`/admin/projects/${project.id}/graphql`, {
      query: '{ users { totalCount } }',
    })
    expect(refusalOf(asked), scopes.join()).toEqual([403, 'DELEGATION_NOT_ALLOWED'])
  }
  expectRefusal(
    await account.client.post('/admin/operator-tokens', { project_id: project.id, scopes: ['graphql:read'] }),
    400,
    'VALIDATION_ERROR',
  )
})

test('an export, and a read of one user, leave a row; a list and a read of a developer do not', async () => {
  const { project, account } = await scene()
  const user = await project.user()
  const operator = await operatorTokenOf(harness, account.client, {
    project_id: project.id,
    label: 'Nightly run',
    actor: 'gardener',
  })
  const at = `/admin/projects/${project.id}`
  const reads = [
    [`${at}/users/${user.id}`, 'users', user.id, 'GET /admin/projects/:projectId/users/:userId'],
    [`${at}/users/${user.id}/export`, 'users', user.id, 'GET /admin/projects/:projectId/users/:userId/export'],
    [`${at}/users/export`, 'users', null, 'GET /admin/projects/:projectId/users/export'],
    [`${at}/users/${user.id}/balances`, 'currencies', user.id, 'GET /admin/projects/:projectId/users/:userId/balances'],
  ] as const
  for (const [path] of reads) expect((await operator.client.get(path)).status, path).toBe(200)
  for (const path of [`${at}/users`, `${at}/streaks`, `${at}/users/${randomUUID()}`]) await operator.client.get(path)
  await project.admin.get(`/users/${user.id}`)
  const rows = await project.sql(
    `select action, target_type, target_id, actor, changes from app.audit_events where action like '%.read' order by position`,
  )
  expect(rows).toEqual(
    reads.map(([, area, target_id, operation]) => ({
      action: `${area}.read`,
      target_type: area,
      target_id,
      actor: { type: 'operator_token', id: operator.id, label: 'Nightly run: gardener' },
      changes: { operation: [null, operation] },
    })),
  )
})

describe('a service account', () => {
  test('is made by admins; its key is shown once and stored as its SHA-256', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const { organization, admin, account, project } = await scene()
    const { key, ...row } = account.data
    expect(key).toMatch(/^svc_dsvc_[0-9A-Za-z]{40}$/)
    expect(row).toEqual({
      id: account.id,
      organization_id: organization,
      name: 'Agents',
      scopes: ['*:write'],
      project_ids: null,
      is_active: true,
      last_used_at: null,
      created_at: '2026-12-01T10:00:00.000Z',
    })
    const at = `/admin/service-accounts/${account.id}`
    expect((await admin.get(at)).data).toEqual(row)
    expect((await admin.get('/admin/service-accounts')).body).toMatchObject({ data: [row], total: 1 })
    expect((await admin.get(`/admin/service-accounts?organization_id=${organization}`)).data).toEqual([row])
    const [stored] = await harness.control(
      'select to_json(a)::text as text, key_hash from app.service_accounts a where id = $1',
      [account.id],
    )
    expect(stored.text).not.toContain(key)
    expect(stored.key_hash).toBe(sha256(key))
    expect((await account.client.get('/admin/operator-tokens')).status).toBe(200)
    expect((await admin.get(at)).data.last_used_at).toBe('2026-12-01T10:00:00.000Z')

    const changed = await admin.patch(at, {
      name: 'Robots',
      project_ids: [project.id],
      scopes: ['users:read', 'users:read'],
    })
    expect(changed.data).toMatchObject({ name: 'Robots', project_ids: [project.id], scopes: ['users:read'] })
    expect((await admin.patch(at, {})).data.name).toBe('Robots')
    expect((await admin.patch(at, { project_ids: null })).data.project_ids).toBeNull()
    expect((await admin.delete(at)).data).toEqual({ deleted: true })
    expect(refusalOf(await admin.get(at))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await account.client.get('/admin/operator-tokens'))).toEqual(dead)
    const trail = await admin.get(`/admin/organizations/${organization}/audit-events?target_type=service_accounts`)
    expect(trail.data.map(({ action }: { action: string }) => action)).toEqual([
      'service_accounts.delete',
      'service_accounts.update',
      'service_accounts.update',
      'service_accounts.create',
    ])
    expect(trail.text).not.toContain(sha256(key))
  })

  test('is for admins with a session, and of no other organization', async () => {
    const { organization, owner, admin, account, project } = await scene()
    const developer = await harness.developer()
    const stranger = await harness.developer()
    await enrol(harness, organization, developer, 'developer')
    const at = `/admin/service-accounts/${account.id}`
    const body = { organization_id: organization, name: 'x', scopes: ['*:read'] }
    const calls: ((as: Client) => Promise<Answer>)[] = [
      (as) => as.post('/admin/service-accounts', body),
      (as) => as.get(`/admin/service-accounts?organization_id=${organization}`),
      (as) => as.get(at),
      (as) => as.patch(at, { name: 'y' }),
      (as) => as.post(`${at}/rotate-key`),
      (as) => as.delete(at),
    ]
    const pat = withBearer(anyone, (await personalToken(owner)).token)
    for (const call of calls) {
      expect(refusalOf(await call(developer))).toEqual([403, 'ROLE_FORBIDDEN'])
      expect(refusalOf(await call(stranger))).toEqual([404, 'NOT_FOUND'])
      expect(refusalOf(await call(pat))).toEqual([403, 'SESSION_REQUIRED'])
    }
    expect((await developer.get('/admin/service-accounts')).data).toEqual([])
    const elsewhere = await harness.project()
    for (const project_ids of [[elsewhere.id], [project.id, randomUUID()], [], ['x']]) {
      expect(refusalOf(await admin.post('/admin/service-accounts', { ...body, project_ids }))).toEqual([
        400,
        'VALIDATION_ERROR',
      ])
      expect(refusalOf(await admin.patch(at, { project_ids }))).toEqual([400, 'VALIDATION_ERROR'])
    }
    for (const scopes of [
      [],
      ['tokens:write'],
      ['projects:write'],
      ['integrations:read'],
      ['account:write'],
      ['ghost:read'],
      ['*:admin'],
      ['streaks'],
    ]) {
      expect(refusalOf(await admin.post('/admin/service-accounts', { ...body, scopes }))).toEqual([
        400,
        'VALIDATION_ERROR',
      ])
    }
    for (const patch of [{ name: null }, { is_active: null }, { scopes: null }, { name: '' }])
      expect(refusalOf(await admin.patch(at, patch))).toEqual([400, 'VALIDATION_ERROR'])
  })

  test('an organization has at most 50', async () => {
    const { organization, admin } = await scene()
    await harness.control(
      `insert into app.service_accounts (organization_id, name, scopes, key_hash) select $1::uuid, 'x', '{*:read}', $1::uuid::text || n from generate_series(1, 48) n`,
      [organization],
    )
    const make = () =>
      admin.post('/admin/service-accounts', { organization_id: organization, name: 'x', scopes: ['*:read'] })
    const answers = await meetingAt(harness, 'app.service_accounts', () => [make(), make()])
    expect(answers.map(refusalOf).sort()).toEqual([
      [201, undefined],
      [409, 'LIMIT_REACHED'],
    ])
  })

  test('a key that is rotated ends, live tokens do not; deactivating ends both', async () => {
    const { admin, account, project, streaks } = await scene()
    const at = `/admin/service-accounts/${account.id}`
    const token = await operatorTokenOf(harness, account.client, { project_id: project.id })
    const far = second.as(token.client.headers)
    for (const client of [token.client, far]) expect((await client.get(streaks)).status).toBe(200)
    const rotated = await admin.post(`${at}/rotate-key`)
    expect(rotated.data.key).toMatch(/^svc_dsvc_/)
    expect(refusalOf(await account.client.get('/admin/operator-tokens'))).toEqual(dead)
    const fresh = withBearer(anyone, rotated.data.key)
    expect((await fresh.get('/admin/operator-tokens')).data).toHaveLength(1)
    expect((await token.client.get(streaks)).status).toBe(200)

    await admin.patch(at, { is_active: false })
    expect(refusalOf(await fresh.get('/admin/operator-tokens'))).toEqual(dead)
    expect(refusalOf(await token.client.get(streaks))).toEqual(dead)
    await expect.poll(async () => refusalOf(await far.get(streaks))).toEqual(dead)
    await admin.patch(at, { is_active: true })
    expect((await token.client.get(streaks)).status).toBe(200)
    await admin.delete(at)
    expect(refusalOf(await token.client.get(streaks))).toEqual(dead)
  })
})

describe('an operator token', () => {
  test('is shown once, acts in its project, and signs the trail with its label', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const { account, project, streaks } = await scene()
    const made = await operatorTokenOf(harness, account.client, {
      project_id: project.id,
      scopes: ['streaks:write', 'users:read'],
      label: 'Nightly',
      actor: 'gardener',
    })
    const { token, ...row } = made.data
    expect(token).toMatch(/^svc_dop_[0-9A-Za-z]{40}$/)
    expect(row).toEqual({
      id: made.id,
      scopes: ['streaks:write', 'users:read'],
      project_id: project.id,
      organization_id: null,
      label: 'Nightly',
      actor: 'gardener',
      status: 'active',
      expires_at: '2026-12-01T11:00:00.000Z',
      last_used_at: null,
      created_at: '2026-12-01T10:00:00.000Z',
    })
    const streak = await made.client.post(streaks, { key: 'daily', name: 'Daily', qualifying_event: 'lesson' })
    expect(streak.status, streak.text).toBe(201)
    const { data } = await project.admin.get('/audit-events?action=streaks.')
    expect(data[0]).toMatchObject({
      action: 'streaks.create',
      actor: { type: 'operator_token', id: made.id, label: 'Nightly: gardener' },
      target: { id: streak.data.id },
    })
    // its own creation is in the trail of the project, by the account
    const created = await project.admin.get('/audit-events?action=operator_tokens.')
    expect(created.data).toMatchObject([
      { action: 'operator_tokens.create', actor: { type: 'service_account', id: account.id, label: 'Agents' } },
    ])
    expect(created.text).not.toContain(sha256(token))
    expect((await account.client.get('/admin/operator-tokens')).body).toEqual({
      data: [{ ...row, last_used_at: '2026-12-01T10:00:00.000Z' }],
      total: 1,
      offset: 0,
      limit: 50,
    })
    harness.advance(3600)
    expect(refusalOf(await made.client.get(streaks))).toEqual(dead)
    expect((await account.client.get('/admin/operator-tokens')).data[0].status).toBe('expired')
    expect(await introspect(account.client, token)).toEqual(nothing)
  })

  test('starts work that control records, as in a project of its own', async () => {
    const { account, project } = await scene()
    const { client } = await operatorTokenOf(harness, account.client, {
      project_id: project.id,
      scopes: ['collections:write', 'webhooks:write'],
    })
    const root = `/admin/projects/${project.id}`
    const made = await client.post(`${root}/collections`, { name: 'notes', columns: [{ name: 'title', type: 'text' }] })
    expect(made.status, made.text).toBe(201)
    const index = await client.post(`${root}/collections/notes/indexes`, { columns: ['title'] })
    expect([201, 202]).toContain(index.status)
    const events = (await project.admin.get('/audit-events?action=collections.')).data
    expect(events.every(({ actor }: { actor: { type: string } }) => actor.type === 'operator_token')).toBe(true)
    expect(events.length).toBeGreaterThan(0)
  })

  test('of an organization acts in its projects, those of a limited account in the limited ones', async () => {
    const { account, owner, organization, project, streaks } = await scene()
    const sibling = await harness.project({ developer: owner })
    const stranger = await harness.project()
    const limited = await serviceAccountOf(harness, owner, { organization_id: organization, project_ids: [project.id] })
    const all = await operatorTokenOf(harness, account.client, { organization_id: organization })
    const some = await operatorTokenOf(harness, limited.client, { organization_id: organization })
    expect(all.data).toMatchObject({ project_id: null, organization_id: organization })
    const get = async (client: Client, id: string) => refusalOf(await client.get(`/admin/projects/${id}/streaks`))
    expect((await all.client.get(streaks)).status).toBe(200)
    expect((await some.client.get(streaks)).status).toBe(200)
    expect(await get(all.client, sibling.id)).toEqual([200, undefined])
    expect(await get(some.client, sibling.id)).toEqual([403, 'PROJECT_FORBIDDEN'])
    for (const client of [all.client, some.client]) {
      expect(await get(client, stranger.id)).toEqual([403, 'PROJECT_FORBIDDEN'])
      expect(await get(client, randomUUID())).toEqual([404, 'NOT_FOUND'])
    }
    const wanted = (project_id: string) =>
      limited.client.post('/admin/operator-tokens', { project_id, scopes: ['*:read'] })
    expect(refusalOf(await wanted(sibling.id))).toEqual([403, 'PROJECT_FORBIDDEN'])
    expect(refusalOf(await wanted(stranger.id))).toEqual([403, 'PROJECT_FORBIDDEN'])
    expect(refusalOf(await wanted(randomUUID()))).toEqual([404, 'NOT_FOUND'])
    const elsewhere = await personalOf(stranger.developer)
    expect(
      refusalOf(
        await limited.client.post('/admin/operator-tokens', { organization_id: elsewhere, scopes: ['*:read'] }),
      ),
    ).toEqual([403, 'PROJECT_FORBIDDEN'])
    expect(
      refusalOf(await owner.post('/admin/operator-tokens', { organization_id: elsewhere, scopes: ['*:read'] })),
    ).toEqual([404, 'NOT_FOUND'])
  })

  test('refuses what is malformed', async () => {
    const { account, organization, project } = await scene()
    const bodies = [
      { scopes: ['*:read'] },
      { scopes: ['*:read'], project_id: project.id, organization_id: organization },
      { scopes: [], project_id: project.id },
      { scopes: ['tokens:write'], project_id: project.id },
      { scopes: ['ghost:write'], project_id: project.id },
      { scopes: ['*:read'], project_id: 'x' },
      { scopes: ['*:read'], project_id: project.id, expires_in_seconds: 59 },
      { scopes: ['*:read'], project_id: project.id, expires_in_seconds: 7_776_001 },
      { scopes: ['*:read'], project_id: project.id, label: 'x'.repeat(201) },
    ]
    for (const body of bodies)
      expect(refusalOf(await account.client.post('/admin/operator-tokens', body))).toEqual([400, 'VALIDATION_ERROR'])
    for (const expires_in_seconds of [60, 7_776_000])
      expect(
        (
          await account.client.post('/admin/operator-tokens', {
            project_id: project.id,
            scopes: ['*:read'],
            expires_in_seconds,
          })
        ).status,
      ).toBe(201)
  })

  test('is revoked at once here, and on another server; only by its maker', async () => {
    const { account, owner, organization, project, streaks } = await scene()
    const made = await operatorTokenOf(harness, account.client, { project_id: project.id })
    const other = await serviceAccountOf(harness, owner, { organization_id: organization })
    const far = second.as(made.client.headers)
    for (const client of [made.client, far]) expect((await client.get(streaks)).status).toBe(200)
    const at = `/admin/operator-tokens/${made.id}`
    for (const client of [other.client, owner]) {
      expect(refusalOf(await client.delete(at))).toEqual([404, 'NOT_FOUND'])
      expect(await introspect(client, made.token)).toEqual(nothing)
      expect((await client.get('/admin/operator-tokens')).data).toEqual([])
    }
    expect((await account.client.delete(at)).data).toEqual({ deleted: true })
    expect(refusalOf(await account.client.delete(at))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await made.client.get(streaks))).toEqual(dead)
    await expect.poll(async () => refusalOf(await far.get(streaks))).toEqual(dead)
    expect((await account.client.get('/admin/operator-tokens')).data[0].status).toBe('revoked')
    expect(refusalOf(await account.client.delete('/admin/operator-tokens/x'))).toEqual([400, 'INVALID_ID'])
  })

  test('a maker has at most 200 that live', async () => {
    const { account, organization, project } = await scene()
    await harness.control(
      `insert into app.operator_tokens (organization_id, service_account_id, scopes, token_hash, expires_at)
       select $1, $2::uuid, '{*:read}', $2::uuid::text || n, now() + interval '1 day' from generate_series(1, 199) n`,
      [organization, account.id],
    )
    const make = () => account.client.post('/admin/operator-tokens', { project_id: project.id, scopes: ['*:read'] })
    const answers = await meetingAt(harness, 'app.operator_tokens', () => [make(), make()])
    expect(answers.map(refusalOf).sort()).toEqual([
      [201, undefined],
      [409, 'LIMIT_REACHED'],
    ])
  })
})
