import { exportPKCS8, generateKeyPair } from 'jose'
import { expect, test } from 'vitest'
import { startOauthStage } from '#test/support/oauth.ts'
import { oidcClient } from '#test/support/oidc.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const { harness, oidc, mock, project } = await startOauthStage()
const { admin } = project
const put = (name: string, more: object = {}) => admin.put(`/oauth/providers/${name}`, { client_id: 'x', ...more })
const tried = async (name: string) => (await admin.post(`/oauth/providers/${name}/test`, {})).data

test('a provider is set, replaced, listed and deleted; its secret is encrypted and never shown', async () => {
  const made = await put('google', { client_secret: 'the-secret', scopes: ['a', 'b'] })
  expect(made.status).toBe(201)
  expect(made.data).toMatchObject({
    name: 'google',
    issuer: null,
    client_id: 'x',
    has_secret: true,
    team_id: null,
    signing_key_id: null,
    scopes: ['a', 'b'],
    is_active: true,
    callback_url: `${harness.url}/p/${project.id}/auth/v1/callback`,
  })
  const [{ secret_sealed }] = await project.sql(`select secret_sealed from app.oauth_providers where name = 'google'`)
  expect(secret_sealed).toMatch(/^v2\./)
  // the secret stays where none is given, everything else is replaced
  const again = await put('google', { client_id: 'y', is_active: false })
  expect([again.status, again.data]).toMatchObject([
    200,
    { client_id: 'y', has_secret: true, scopes: [], is_active: false },
  ])
  expect((await project.sql(`select secret_sealed from app.oauth_providers where name = 'google'`))[0]).toEqual({
    secret_sealed,
  })
  const listed = await admin.get('/oauth/providers')
  expect(listed.data.map(({ name }: { name: string }) => name)).toEqual(['acme', 'google', 'mock'])
  expect(listed.text).not.toMatch(/the-secret|v2\./)
  const audit = (await admin.get('/audit-events?limit=200')).text
  expect(audit).toContain('oauth_providers.update')
  expect(audit).toContain('oauth_redirects.create')
  expect(audit).not.toMatch(/the-secret|v2\./)
  expect((await admin.delete('/oauth/providers/google')).data).toEqual({ deleted: true })
  expectRefusal(await admin.delete('/oauth/providers/google'), 404, 'NOT_FOUND')
  expectRefusal(await admin.post('/oauth/providers/google/test', {}), 404, 'NOT_FOUND')
})

test('null removes the stored secret, and an absent one keeps it', async () => {
  const body = { issuer: oidc.issuer, client_id: 'x' }
  const set = async (more: object) => (await admin.put('/oauth/providers/public', { ...body, ...more })).data.has_secret
  expect(await set({ client_secret: 'a secret' })).toBe(true)
  expect(await set({})).toBe(true)
  expect(await set({ client_secret: null })).toBe(false)
  expect(await set({})).toBe(false)
  expect(await set({ client_secret: null })).toBe(false)
  const stored = await project.sql(`select secret_sealed, key_id from app.oauth_providers where name = 'public'`)
  expect(stored).toEqual([{ secret_sealed: null, key_id: null }])
  await admin.delete('/oauth/providers/public')
})

test('what is wrong with a provider is said by field', async () => {
  for (const [field, name, body] of [
    ['issuer', 'google', { issuer: 'https://accounts.google.com' }],
    ['issuer', 'own', {}],
    ['issuer', 'own', { issuer: 'http://login.example.com' }],
    ['client_id', 'google', { client_id: '' }],
    ['client_id', 'google', { client_id: 'x'.repeat(501) }],
    ['client_secret', 'google', { client_secret: '' }],
    ['client_secret', 'google', { client_secret: ' a' }],
    ['client_secret', 'google', { client_secret: 'x'.repeat(5001) }],
    ['signing_key_id', 'apple', { team_id: 'T' }],
    ['team_id', 'apple', { signing_key_id: 'K' }],
    ['team_id', 'google', { team_id: 'T', signing_key_id: 'K' }],
    ['client_secret', 'apple', { team_id: 'T', signing_key_id: 'K', client_secret: 'no key' }],
    ['scopes', 'google', { scopes: Array.from({ length: 21 }, (_, n) => `s${n}`) }],
    ['scopes.0', 'google', { scopes: ['a b'] }],
    ['is_active', 'google', { is_active: 'yes' }],
  ] as const)
    expectInvalid(await put(name, body), field)
  for (const name of ['email', 'phone', 'password', 'anonymous'])
    expectRefusal(await put(name, { issuer: oidc.issuer }), 400, 'VALIDATION_ERROR')
  for (const name of ['A', '1a', 'a b', 'x'.repeat(33)])
    expectRefusal(await put(encodeURIComponent(name), { issuer: oidc.issuer }), 400, 'VALIDATION_ERROR')
})

test('the issuer of users stays: another one could assert their ids', async () => {
  const { data } = await project.app.post('/client/auth/anonymous', {})
  await put('owned', { issuer: oidc.issuer })
  await project.sql(`insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'owned', '1')`, [
    data.user.id,
  ])
  expectRefusal(await put('owned', { issuer: mock.issuer.url }), 409, 'PROVIDER_HAS_USERS')
  expectRefusal(await admin.delete('/oauth/providers/owned'), 409, 'PROVIDER_HAS_USERS')
  expect((await put('owned', { issuer: oidc.issuer, is_active: false })).status).toBe(200)
  await project.sql(`delete from app.user_identities where provider = 'owned'`)
  expect((await put('owned', { issuer: mock.issuer.url })).status).toBe(200)
  expect((await admin.delete('/oauth/providers/owned')).status).toBe(200)
})

test('a project has at most 20 providers', async () => {
  const other = await harness.project()
  const made = (n: number) => other.admin.put(`/oauth/providers/p${n}`, { client_id: 'x', issuer: oidc.issuer })
  const answers = await Promise.all(Array.from({ length: 22 }, (_, n) => made(n)))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
  for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 409, 'LIMIT_REACHED')
})

test('redirect addresses are replaced as a list, in their order', async () => {
  const other = await harness.project()
  const list = (addresses: unknown) => other.admin.put('/oauth/redirects', { addresses })
  expect((await other.admin.get('/oauth/redirects')).data).toEqual({
    addresses: [],
    callback_url: `${harness.url}/p/${other.id}/auth/v1/callback`,
  })
  const [a, b] = ['https://a.example/*', 'com.example.app://b']
  expect((await list([a, b, a])).data.addresses).toEqual([a, b])
  expect((await list([b, a])).data.addresses).toEqual([b, a])
  expect((await list(['https://B.example'])).data.addresses).toEqual(['https://b.example/'])
  expectInvalid(await list(['https://a.example/', 'https://*.a.example/']), 'addresses.1')
  expectInvalid(await list(Array.from({ length: 51 }, (_, n) => `https://a.example/${n}`)), 'addresses')
  expect((await list(Array.from({ length: 50 }, (_, n) => `https://a.example/${n}`))).data.addresses).toHaveLength(50)
  expect((await list([])).data.addresses).toEqual([])
})

test('another developer, and an editor of the organization, change nothing', async () => {
  const stranger = await harness.developer()
  for (const [method, path] of [
    ['get', '/oauth/providers'],
    ['get', '/oauth/redirects'],
    ['delete', '/oauth/providers/acme'],
  ] as const)
    expectRefusal(await stranger[method](`/admin/projects/${project.id}${path}`), 403, 'PROJECT_FORBIDDEN')
})

test('the test says what is wrong', async () => {
  expect(await tried('acme')).toMatchObject({ ok: true, error: null, message: null })
  const own = (more: object) => put('tried', { client_id: oidcClient.id, client_secret: oidcClient.secret, ...more })

  await own({ issuer: oidc.issuer, client_secret: 'another secret' })
  expect(await tried('tried')).toMatchObject({ ok: false, error: 'client_refused' })
  await own({ issuer: oidc.issuer, client_id: 'nobody' })
  expect(await tried('tried')).toMatchObject({ ok: false, error: 'client_refused' })
  await own({ issuer: 'https://127.0.0.1:9' })
  expect(await tried('tried')).toMatchObject({
    ok: false,
    error: 'discovery_unreachable',
    message: 'https://127.0.0.1:9/.well-known/openid-configuration: connection refused.',
  })
  await own({ issuer: `${oidc.issuer}/there-is-none` })
  expect(await tried('tried')).toMatchObject({ ok: false, error: 'discovery_unreachable' })
  // an address of the machine's own networks, which this server does not allow
  await own({ issuer: 'https://10.0.0.1' })
  expect((await tried('tried')).message).toContain('TARGET_URL_NOT_ALLOWED')
  await own({ issuer: `${oidc.issuer}/` })
  expect(await tried('tried')).toMatchObject({ ok: false, error: 'issuer_mismatch' })
  expect((await tried('tried')).message).toContain(`its issuer is ${oidc.issuer}:`)
  await own({ issuer: mock.issuer.url?.replace('localhost', '127.0.0.1') })
  expect(await tried('tried')).toMatchObject({ ok: false, error: 'issuer_mismatch' })

  await put('google')
  expect(await tried('google')).toMatchObject({ ok: false, error: 'secret_missing' })
  await put('public', { client_id: oidcClient.id, issuer: oidc.issuer })
  expect(await tried('public')).toMatchObject({ ok: false, error: 'secret_missing' })

  const other = await harness.project()
  await other.admin.put('/oauth/providers/acme', {
    issuer: oidc.issuer,
    client_id: oidcClient.id,
    client_secret: oidcClient.secret,
  })
  const told = (await other.admin.post('/oauth/providers/acme/test', {})).data
  expect(told).toMatchObject({ ok: false, error: 'no_redirect_address' })
})

test('the key of Apple is checked when it is entered', async () => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const client_secret = await exportPKCS8(privateKey)
  const made = await put('apple', { team_id: 'TEAM', signing_key_id: 'KEY', client_secret })
  expect([made.status, made.data.has_secret]).toEqual([201, true])
})

test('promotion copies neither a provider nor an address, and prunes none', async () => {
  const target = await harness.project({ developer: project.developer })
  const mine = { issuer: oidc.issuer, client_id: 'of-the-target', client_secret: 'of the target' }
  expect((await target.admin.put('/oauth/providers/acme', mine)).status).toBe(201)
  const addresses = { addresses: ['https://target.example.com/'] }
  expect((await target.admin.put('/oauth/redirects', addresses)).status).toBe(200)
  const { text } = await admin.get('/promotion/export')
  expect(text).not.toMatch(/oauth|orchard\.example\.com|trellis"/)
  const plan = await admin.post('/promotion/plan', { target_project_id: target.id, prune: true })
  expect(JSON.stringify(plan.data.ops)).not.toMatch(/oauth|of-the-target/)
  expect((await target.admin.get('/oauth/providers')).data).toMatchObject([
    { client_id: 'of-the-target', has_secret: true },
  ])
  expect((await target.admin.get('/oauth/redirects')).data).toMatchObject(addresses)
})
