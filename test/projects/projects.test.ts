import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { type Client, type Developer, startHarness } from '#test/support/harness.ts'
import { companyOf } from '#test/support/organizations.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

afterEach(() => harness.setTime(null))

/** Makes a project whose database nobody has begun to make. */
const create = async (developer: Developer, body: object = { name: 'Garden' }) => {
  const answer = await developer.post('/admin/projects', body)
  const { project, api_keys } = answer.data ?? {}
  const path = `/admin/projects/${project?.id}`
  return { ...answer, id: project?.id as string, path, clientKey: api_keys?.client.key as string }
}

describe('creating a project', () => {
  test('answers the project with its defaults and two keys, whose texts are shown this once', async () => {
    const developer = await harness.developer()
    const { status, data, path } = await create(developer)
    expect(status).toBe(201)
    expect(data.project).toEqual({
      id: expect.stringMatching(uuid),
      name: 'Garden',
      developer_id: developer.id,
      organization_id: expect.stringMatching(uuid),
      bundle_id: null,
      google_oauth_client_id: null,
      platform: 'all',
      environment: 'production',
      tier: 'free',
      effective_tier: 'free',
      comped: false,
      default_from_email: null,
      default_from_name: null,
      default_reply_to: null,
      magic_link_redirect_url: null,
      auth_email_brand_name: null,
      user_search_enabled: false,
      graphql_enabled: false,
      rest_enabled: false,
      anonymous_reads: false,
      created_at: expect.stringMatching(time),
      updated_at: data.project.created_at,
    })
    expect(data.provisioning_status).toBe('provisioning')
    const { client, server } = data.api_keys
    expect(client.key).toMatch(/^svc_live_ck_[0-9A-Za-z]{40}$/)
    expect(server.key).toMatch(/^svc_live_sk_[0-9A-Za-z]{40}$/)
    expect(client).toEqual({ key: client.key, prefix: client.key.slice(0, 18), type: 'client' })
    expect(server).toEqual({ key: server.key, prefix: server.key.slice(0, 18), type: 'server' })

    const read = await developer.get(path)
    expect(read.data).toEqual({ ...data.project, integrations: [], api_keys: expect.any(Array) })
    expect(read.data.api_keys).toHaveLength(2)
    for (const key of read.data.api_keys) {
      expect(key).toEqual({
        id: expect.stringMatching(uuid),
        key_prefix: data.api_keys[key.key_type].prefix,
        key_type: expect.stringMatching(/^(client|server)$/),
        environment: 'production',
        is_active: true,
        created_at: expect.stringMatching(time),
        last_used_at: null,
        expires_at: null,
      })
    }
    const stored = JSON.stringify(await harness.control('select * from app.api_keys'))
    for (const key of [client.key, server.key]) {
      expect(read.text).not.toContain(key)
      expect(stored).not.toContain(key)
    }
  })

  test('takes every field that it names and ignores what it does not', async () => {
    const body = {
      name: '🌱'.repeat(200),
      bundle_id: 'org.example.garden',
      google_oauth_client_id: 'x.apps.googleusercontent.com',
      platform: 'ios',
      environment: 'development',
    }
    const theirs = {
      id: randomUUID(),
      developer_id: randomUUID(),
      tier: 'enterprise',
      comped: true,
      database_name: 'postgres',
    }
    const developer = await harness.developer()
    const { data } = await create(developer, { ...body, ...theirs })
    expect(data.project).toMatchObject({ ...body, developer_id: developer.id, tier: 'free', comped: false })
    expect(data.project.id).not.toBe(theirs.id)
    expect(data.api_keys.client.key).toMatch(/^svc_dev_ck_[0-9A-Za-z]{40}$/)
    expect(data.api_keys.server.key).toMatch(/^svc_dev_sk_[0-9A-Za-z]{40}$/)
  })

  test.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: null }, 'name'],
    [{ name: 'x'.repeat(201) }, 'name'],
    [{ name: 'x', platform: 'windows' }, 'platform'],
    [{ name: 'x', environment: 'staging' }, 'environment'],
    [{ name: 'x', bundle_id: 7 }, 'bundle_id'],
    [{ name: 'x', bundle_id: 'x'.repeat(256) }, 'bundle_id'],
    [{ name: 'x', google_oauth_client_id: 'x'.repeat(256) }, 'google_oauth_client_id'],
  ])('refuses %j', async (body, field) => {
    const answer = await create(await harness.developer(), body)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })

  test('needs a developer who may provision', async () => {
    expectRefusal(await harness.anyone.post('/admin/projects', { name: 'x' }), 401, 'INVALID_DEVELOPER_TOKEN')
    const developer = await harness.developer()
    for (const provisioning of ['off', 'revoked']) {
      await harness.control('update app.developers set provisioning = $2 where id = $1', [developer.id, provisioning])
      expectRefusal(await create(developer), 403, 'INVITE_REQUIRED')
    }
    expect((await developer.get('/auth/developer/me')).data.can_provision).toBe(false)
    expect((await developer.get('/admin/projects')).data).toEqual([])
  })
})

describe('the list', () => {
  test('has the own projects, newest first', async () => {
    const [mine, other] = [await harness.developer(), await harness.developer()]
    await create(other)
    const made: string[] = []
    harness.setTime(new Date())
    for (const name of ['a', 'b', 'c']) {
      made.push((await create(mine, { name })).id)
      harness.advance(1)
    }
    await harness.control(`update app.projects set tier = 'pro', comped = true where id = $1`, [made[1]])
    await harness.control(`update app.projects set deleted_at = now() where id = $1`, [made[0]])
    const { data } = await mine.get('/admin/projects')
    expect(data).toEqual([
      { id: made[2], name: 'c', tier: 'free', effective_tier: 'free', comped: false, created_at: expect.any(String) },
      {
        id: made[1],
        name: 'b',
        tier: 'pro',
        effective_tier: 'enterprise',
        comped: true,
        created_at: expect.any(String),
      },
    ])
    expectRefusal(await harness.anyone.get('/admin/projects'), 401, 'INVALID_DEVELOPER_TOKEN')
  })
})

describe('changing a project', () => {
  test('changes what is sent, clears what is null, and says when', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const developer = await harness.developer()
    const { path, id } = await create(developer)
    harness.setTime('2026-11-21T11:00:00.123Z')
    const patch = {
      name: 'Orchard',
      bundle_id: 'org.example.orchard',
      google_oauth_client_id: 'client',
      platform: 'android',
      environment: 'development',
      default_from_name: '🌱'.repeat(80),
      default_reply_to: 'help@example.org',
      magic_link_redirect_url: 'orchard://signed-in',
      auth_email_brand_name: 'Orchard',
      user_search_enabled: true,
      graphql_enabled: true,
      rest_enabled: true,
      anonymous_reads: true,
    }
    const { status, data } = await developer.patch(path, patch)
    expect([status, data]).toEqual([200, { id, name: 'Orchard', updated_at: '2026-11-21T11:00:00.123Z' }])
    expect((await developer.get(path)).data).toMatchObject({ ...patch, created_at: '2026-11-21T10:00:00.000Z' })
    const nothing = Object.fromEntries(
      [
        'bundle_id',
        'google_oauth_client_id',
        'default_from_email',
        'default_from_name',
        'default_reply_to',
        'magic_link_redirect_url',
        'auth_email_brand_name',
      ].map((field) => [field, null]),
    )
    await developer.patch(path, { default_from_name: null })
    expect((await developer.get(path)).data).toMatchObject({ ...patch, default_from_name: null })
    await developer.patch(path, nothing)
    expect((await developer.get(path)).data).toMatchObject({ ...nothing, name: 'Orchard', platform: 'android' })
  })

  test('with nothing that it knows answers the row as it is', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const developer = await harness.developer()
    const { path, data } = await create(developer)
    harness.advance(60)
    const theirs = {
      id: randomUUID(),
      developer_id: randomUUID(),
      tier: 'enterprise',
      comped: true,
      created_at: 'x',
      deleted_at: 'x',
    }
    for (const body of [{}, theirs, '']) {
      const answer = await developer.patch(path, body)
      expect(answer.data).toEqual({ id: data.project.id, name: 'Garden', updated_at: '2026-11-21T10:00:00.000Z' })
    }
    expect((await developer.get(path)).data).toMatchObject(data.project)
  })

  test.each([
    [{ name: '' }, 'name'],
    [{ name: null }, 'name'],
    [{ name: 'x'.repeat(201) }, 'name'],
    [{ platform: null }, 'platform'],
    [{ environment: 'x' }, 'environment'],
    [{ default_from_name: '🌱'.repeat(81) }, 'default_from_name'],
    [{ default_from_name: 'x'.repeat(81) }, 'default_from_name'],
    [{ auth_email_brand_name: 'x'.repeat(81) }, 'auth_email_brand_name'],
    [{ magic_link_redirect_url: `https://example.org/${'x'.repeat(2030)}` }, 'magic_link_redirect_url'],
    [{ default_from_name: 'Garden\r\nBcc: all@example.org' }, 'default_from_name'],
    [{ auth_email_brand_name: 'Garden\nX' }, 'auth_email_brand_name'],
    [{ default_from_email: 'nobody' }, 'default_from_email'],
    [{ user_search_enabled: 'yes' }, 'user_search_enabled'],
    [{ user_search_enabled: null }, 'user_search_enabled'],
    [{ graphql_enabled: 'yes' }, 'graphql_enabled'],
    [{ rest_enabled: 'yes' }, 'rest_enabled'],
    [{ anonymous_reads: 'yes' }, 'anonymous_reads'],
    [{ anonymous_reads: null }, 'anonymous_reads'],
    [{ default_reply_to: 'a@example.org, b@example.org' }, 'default_reply_to'],
    [{ magic_link_redirect_url: 'no url' }, 'magic_link_redirect_url'],
    [{ magic_link_redirect_url: 'javascript:alert(1)' }, 'magic_link_redirect_url'],
    [{ magic_link_redirect_url: 'https://example.org/\r\nhttps://example.com/' }, 'magic_link_redirect_url'],
    [{ magic_link_redirect_url: ' DATA:text/html,x' }, 'magic_link_redirect_url'],
  ])('refuses %j and changes nothing', async (body, field) => {
    const developer = await harness.developer()
    const { path, data } = await create(developer)
    const answer = await developer.patch(path, { bundle_id: 'changed', ...body })
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
    expect((await developer.get(path)).data).toMatchObject(data.project)
  })

  test('what decides how its users sign in is changed by admins, and by tokens of admins', async () => {
    const company = await companyOf(harness)
    const made = await company.owner.post('/admin/projects', { name: 'shared', organization_id: company.id })
    const path = `/admin/projects/${made.data.project.id}`
    const guarded = {
      environment: 'development',
      bundle_id: 'org.example.app',
      google_oauth_client_id: 'mine.apps.example.org',
      magic_link_redirect_url: 'https://example.org/in',
    }
    const token = async (of: Client) =>
      withBearer(harness.anyone, (await personalToken(of, { scopes: ['projects:write'] })).token)
    for (const [field, value] of Object.entries(guarded)) {
      for (const weak of [company.developer, await token(company.developer)]) {
        const answer = await weak.patch(path, { [field]: value, name: 'taken over' })
        expectRefusal(answer, 403, 'ROLE_FORBIDDEN')
        expect(answer.error?.details).toEqual({ required: 'admin', role: 'developer' })
      }
      expect((await company.admin.patch(path, { [field]: value })).status).toBe(200)
    }
    expect((await (await token(company.admin)).patch(path, { bundle_id: null })).status).toBe(200)
    // a form that sends a field as it is changes nothing
    const unchanged = { ...guarded, bundle_id: null, name: 'renamed' }
    expect((await company.developer.patch(path, unchanged)).data.name).toBe('renamed')
    expect((await company.developer.get(path)).data).toMatchObject({ ...guarded, bundle_id: null })
  })

  test('refuses a sender that is on no verified domain of the project', async () => {
    const developer = await harness.developer()
    const { path, data } = await create(developer)
    const answer = await developer.patch(path, { name: 'changed', default_from_email: 'garden@example.org' })
    expectRefusal(answer, 400, 'INVALID_SENDER')
    expect((await developer.get(path)).data).toMatchObject(data.project)
  })
})

describe('the sender of mail', () => {
  const attach = (id: string, domain: string, kind = 'email', status = 'verified') =>
    harness.control('select internal.domain_put($1, $2, $3, $4)', [id, domain, kind, status])

  test('is an address on a verified sending domain of the project, and null clears it', async () => {
    const developer = await harness.developer()
    const { path, id } = await create(developer)
    await attach(id, 'Mail.Example.org')
    const sender = {
      default_from_email: 'Hello@MAIL.example.org',
      default_from_name: 'x'.repeat(80),
      default_reply_to: 'help@elsewhere.example',
    }
    expect((await developer.patch(path, sender)).status).toBe(200)
    expect((await developer.get(path)).data).toMatchObject(sender)
    const cleared = { default_from_email: null, default_from_name: null, default_reply_to: null }
    expect((await developer.patch(path, cleared)).status).toBe(200)
    expect((await developer.get(path)).data).toMatchObject(cleared)
  })

  test.each([
    ['no domain', 'a@example.org', null],
    ['a domain that is not verified yet', 'a@example.org', ['example.org', 'email', 'pending']],
    ['a domain that is not any more', 'a@example.org', ['example.org', 'email', 'failed']],
    ['a domain of another kind', 'a@example.org', ['example.org', 'site', 'verified']],
    ['a part of its domain', 'a@example.org', ['mail.example.org', 'email', 'verified']],
    ['a domain below its own', 'a@sub.example.org', ['example.org', 'email', 'verified']],
    ['a domain that ends alike', 'a@badexample.org', ['example.org', 'email', 'verified']],
  ] as const)('is refused on %s', async (_, default_from_email, domain) => {
    const developer = await harness.developer()
    const { path, id, data } = await create(developer)
    if (domain) await attach(id, domain[0], domain[1], domain[2])
    const answer = await developer.patch(path, { name: 'changed', default_from_email })
    expectRefusal(answer, 400, 'INVALID_SENDER')
    expect(answer.error?.details).toEqual({
      field: 'default_from_email',
      reason: 'is not on a verified sending domain',
    })
    expect((await developer.get(path)).data).toMatchObject(data.project)
    await harness.control('delete from app.domains')
  })

  test('is not lent by another project', async () => {
    const developer = await harness.developer()
    const [mine, other] = [await create(developer), await create(developer)]
    await attach(other.id, 'other.example')
    expectRefusal(await developer.patch(mine.path, { default_from_email: 'a@other.example' }), 400, 'INVALID_SENDER')
    await expect(attach(mine.id, 'other.example')).rejects.toThrow(/domains_verified_once/)
  })
})

test('tier, effective tier and comped are the same wherever a project is read', async () => {
  const developer = await harness.developer()
  const { path, id } = await create(developer)
  const cases = [
    ['free', false, 'free'],
    ['pro', false, 'pro'],
    ['enterprise', false, 'enterprise'],
    ['free', true, 'enterprise'],
    ['pro', true, 'enterprise'],
  ]
  for (const [tier, comped, effective_tier] of cases) {
    await harness.control('update app.projects set tier = $2, comped = $3 where id = $1', [id, tier, comped])
    const wanted = { tier, comped, effective_tier }
    expect((await developer.get(path)).data).toMatchObject(wanted)
    expect((await developer.get('/admin/projects')).data).toEqual([expect.objectContaining(wanted)])
  }
})

describe('who may reach a project', () => {
  const routes: [string, string, object?][] = [
    ['GET', ''],
    ['PATCH', '', { name: 'theirs now' }],
    ['POST', '/api-keys', { key_type: 'server', environment: 'production' }],
    ['DELETE', `/api-keys/${randomUUID()}`],
    ['GET', '/provisioning-status'],
    ['POST', '/reprovision', {}],
  ]
  test.each(routes)('%s %s: its developer and nobody else', async (method, path, body) => {
    const [mine, other] = [await harness.developer(), await harness.developer()]
    const { id } = await create(mine)
    const at = (projectId: string) => `/admin/projects/${projectId}${path}`
    expectRefusal(await other.request(method, at(id), body), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await other.request(method, at(id.toUpperCase()), body), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await harness.anyone.request(method, at(id), body), 401, 'INVALID_DEVELOPER_TOKEN')
    for (const unknown of [randomUUID(), 'none', `${id}x`, '%00', "'--"]) {
      expectRefusal(await mine.request(method, at(unknown), body), 404, 'NOT_FOUND')
    }
    await harness.control('update app.projects set deleted_at = now() where id = $1', [id])
    harness.running.services.projectCache.clear()
    for (const developer of [mine, other]) {
      expectRefusal(await developer.request(method, at(id), body), 404, 'NOT_FOUND')
    }
  })

  test('row-level security alone keeps them apart as well', async () => {
    const [mine, other] = [await harness.developer(), await harness.developer()]
    const { id } = await create(mine)
    const place = harness.running.services.control
    const call = (developerId: string) =>
      harness.running.services.database.call(
        place,
        'control_developer',
        { caller: 'developer', developerId },
        'project_get',
        { project_id: id },
      )
    await expect(call(other.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(call(mine.id)).resolves.toMatchObject({ status: 200 })
  })
})
