import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { startFcm } from '#test/support/push_providers.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Superwall's list of projects, open to one key. */
const superwall = createServer((request, response) => {
  const isKnown = request.url === '/v2/projects?limit=1' && request.headers.authorization === 'Bearer sw_right'
  response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' }).end('{"data": []}')
}).listen(0, '127.0.0.1')
await once(superwall, 'listening')
const fcm = await startFcm(() => new Date())
afterAll(() => Promise.all([fcm.close(), new Promise((done) => superwall.close(done))]))
const harness = await startHarness({
  env: {
    PUBLIC_URL: 'https://api.example.org/',
    SUPERWALL_BASE_URL: `http://127.0.0.1:${(superwall.address() as AddressInfo).port}`,
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: fcm.caFile,
  },
})
const project = await harness.project()

const put = (provider: unknown, config: unknown, client: Client = project.admin) =>
  client.post('/integrations', { provider, config })
const account = { type: 'service_account', project_id: 'p', private_key: 'k', client_email: 'a@b.c' }

const complete: Readonly<Record<string, object>> = {
  revenuecat: { secret_api_key: 'sk_read' },
  superwall: { api_key: 'key' },
  apns: { key_id: 'a', team_id: 'b', bundle_id: 'c', private_key: 'd', sandbox: true },
  fcm: { service_account_json: account },
  google_play: { service_account_json: JSON.stringify(account) },
  smtp: { host: 'mail.example.org', port: 587, secure: false },
  sms: { url: 'https://sms.example.org', body_template: '{{text}}' },
  storage_s3: { endpoint: 'https://s3.example.org', bucket: 'b', access_key_id: 'a', secret_access_key: 's' },
  payments: { secret_key: 'sk' },
}

describe('POST integrations', () => {
  test.each(Object.entries(complete))(
    'connects %s: 201, then 200; the config is never shown',
    async (provider, config) => {
      const made = await put(provider, { ...config, webhook_secret: 'hidden-secret' })
      expect(made.status).toBe(201)
      const path = { revenuecat: 'revenuecat', superwall: 'superwall', smtp: 'email' }[provider]
      expect(made.data).toEqual({
        id: expect.any(String),
        provider,
        is_active: true,
        has_credentials: true,
        webhook_url: path ? `https://api.example.org/webhooks/${path}?project_id=${project.id}` : null,
        created_at: expect.any(String),
        updated_at: expect.any(String),
      })
      const again = await put(provider, config)
      expect([again.status, again.data.id, again.data.created_at]).toEqual([200, made.data.id, made.data.created_at])
      expect(made.text + again.text).not.toContain('hidden-secret')
    },
  )

  test('stores the config sealed, and replaces it whole', async () => {
    await put('superwall', { api_key: 'first-key', webhook_secret: 'first-secret', kept: { as: 'it is' } })
    const sealed = async () =>
      (await project.sql(`select config_sealed, key_id from app.integrations where provider = 'superwall'`))[0]
    const open = async () =>
      JSON.parse(
        harness.running.services.secrets.decrypt(`integration ${project.id} superwall`, (await sealed()).config_sealed),
      )
    expect(await open()).toEqual({ api_key: 'first-key', webhook_secret: 'first-secret', kept: { as: 'it is' } })
    expect(JSON.stringify(await project.sql('select * from app.integrations'))).not.toMatch(/first-/)
    expect((await sealed()).key_id).toBe(harness.running.services.secrets.current)
    await put('superwall', { api_key: 'second-key' })
    expect(await open()).toEqual({ api_key: 'second-key' })
    // sealed for this project and provider: moved elsewhere, it does not open
    const { config_sealed } = await sealed()
    for (const purpose of [`integration ${randomUUID()} superwall`, `integration ${project.id} revenuecat`])
      expect(() => harness.running.services.secrets.decrypt(purpose, config_sealed)).toThrow()
  })

  test.each(
    Object.entries(complete).map(([provider, config]) => [
      provider,
      Object.keys(config).filter((field) => !['sandbox', 'secure'].includes(field)),
    ]),
  )('refuses %s without %s, by name', async (provider, fields) => {
    expectRefusal(await put(provider, {}), 400, 'INVALID_CONFIG', { missing: fields })
    const blank = Object.fromEntries((fields as string[]).map((field, index) => [field, ['', null, '  '][index % 3]]))
    expectRefusal(await put(provider, blank), 400, 'INVALID_CONFIG', { missing: fields })
  })

  type Wrong = [provider: string, config: object, field: string]
  test.each<Wrong>([
    ['revenuecat', { secret_api_key: 5 }, 'config.secret_api_key'],
    ['revenuecat', { secret_api_key: 'a', webhook_secret: {} }, 'config.webhook_secret'],
    ['revenuecat', { secret_api_key: 'a', secret_api_key_write: 1 }, 'config.secret_api_key_write'],
    ['superwall', { api_key: ['a'] }, 'config.api_key'],
    ['fcm', { service_account_json: '{' }, 'config.service_account_json'],
    ['fcm', { service_account_json: '[]' }, 'config.service_account_json'],
    ['google_play', { service_account_json: [] }, 'config.service_account_json'],
    ['smtp', { host: 'a', port: 'x' }, 'config.port'],
    ['smtp', { host: 'a', port: 70_000 }, 'config.port'],
    ...[[587], true, '0x10', '587 ', 1.5, 0].map((port): Wrong => ['smtp', { host: 'a', port }, 'config.port']),
  ])('refuses %s with %j', async (provider, config, field) => {
    expectRefusal(await put(provider, config), 400, 'INVALID_CONFIG', { field, reason: expect.any(String) })
  })

  test('refuses a secret of webhooks that no header brings', async () => {
    for (const webhook_secret of ['secret ', ' secret', 'se\ncret', 'sécret', 5])
      expectRefusal(
        await put('revenuecat', { secret_api_key: 'sk', webhook_secret }),
        400,
        'INVALID_CONFIG',
        'config.webhook_secret',
      )
    expect((await put('revenuecat', { secret_api_key: 'sk', webhook_secret: 'two words' })).status).toBe(200)
  })

  test('refuses a provider that is none, and a body that is none', async () => {
    for (const provider of ['unknown', 'constructor', ''])
      expectRefusal(await put(provider, {}), 400, 'PROVIDER_UNKNOWN', { field: 'provider' })
    expectRefusal(await put(undefined, {}), 400, 'INVALID_CONFIG', { field: 'provider' })
    expectRefusal(await put('superwall', 'key'), 400, 'INVALID_CONFIG', { field: 'config' })
    expectRefusal(await put('superwall', undefined), 400, 'INVALID_CONFIG', { field: 'config' })
    expectRefusal(await project.admin.post('/integrations', '{'), 400, 'INVALID_CONFIG')
  })

  test('twenty at once make one', async () => {
    const own = await harness.project()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => put('payments', { secret_key: `k${n}` }, own.admin)),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    expect(await own.sql('select from app.integrations')).toHaveLength(1)
  })

  test('shows in the project, and to nobody else', async () => {
    const own = await harness.project()
    await put('fcm', complete['fcm'], own.admin)
    const shown = await own.developer.get(`/admin/projects/${own.id}`)
    expect(shown.data.integrations).toEqual([expect.objectContaining({ provider: 'fcm', webhook_url: null })])
    const stranger = await harness.developer()
    const path = `/admin/projects/${own.id}/integrations`
    const body = { provider: 'fcm', config: complete['fcm'] }
    expectRefusal(await stranger.post(path, body), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await stranger.post(`/admin/projects/${randomUUID()}/integrations`, body), 404, 'NOT_FOUND')
    expectRefusal(await harness.anyone.post(path, body), 401, 'INVALID_DEVELOPER_TOKEN')
    for (const role of ['app_user', 'app_server', 'app_anon', 'app_auth'] as const)
      await expect(own.as(role, {}, 'select from app.integrations')).rejects.toThrow(/permission denied/)
  })
})

describe('the credentials', () => {
  const tried = async (provider: string) => {
    const answer = await project.admin.post(`/integrations/${provider}/test`)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.data.latency_ms).toBeGreaterThanOrEqual(0)
    return [answer.data.ok, answer.data.error]
  }

  test('of the paywall provider are tried with its list of projects', async () => {
    await put('superwall', { api_key: 'sw_right' })
    expect(await tried('superwall')).toEqual([true, null])
    await put('superwall', { api_key: 'sw_wrong' })
    expect(await tried('superwall')).toEqual([false, 'INVALID_CREDENTIALS'])
  })

  test('of the Play store are tried by asking for a token', async () => {
    await put('google_play', fcm.config)
    expect(await tried('google_play')).toEqual([true, null])
    await put('google_play', { service_account_json: account })
    expect(await tried('google_play')).toEqual([false, 'INVALID_CREDENTIALS'])
  })

  test('of others cannot be tried', async () => {
    for (const provider of ['sms', 'storage_s3', 'payments']) {
      await put(provider, complete[provider])
      expectRefusal(await project.admin.post(`/integrations/${provider}/test`), 400, 'PROVIDER_UNKNOWN')
    }
    await project.admin.delete('/integrations/superwall')
    expectRefusal(await project.admin.post('/integrations/superwall/test'), 404, 'NOT_CONFIGURED')
  })
})
