import { describe, expect, test } from 'vitest'
import { isCacheable } from '#server/http/vary.ts'
import { startHarness } from '#test/support/harness.ts'
import { upload } from '#test/support/media.ts'
import { createCast } from '#test/support/routes.ts'

/** What caches may store is for whoever sends the same headers. That the Vary of each declared route says so is checked in every test, by test/support/declared.ts. */
const harness = await startHarness()
const cast = await createCast(harness)
const { project, user } = cast
const other = await createCast(harness)

/** A cache as RFC 9111 has it (4.1): one stored answer for each combination of the headers that its Vary names. */
const createStore = () => {
  const stored: { url: string; vary: [string, string | null][]; body: string }[] = []
  return async (path: string, given: Record<string, string>) => {
    const headers = new Headers(given)
    const known = stored.find(
      ({ url, vary }) => url === path && vary.every(([name, value]) => headers.get(name) === value),
    )
    if (known) return known.body
    const answer = await fetch(`${harness.url}/v1${path}`, { headers })
    const body = await answer.text()
    if (!answer.ok || !isCacheable({ 'cache-control': answer.headers.get('cache-control') ?? 'no-store' })) return body
    const names = (answer.headers.get('vary') ?? '').split(/\s*,\s*/).filter(Boolean)
    stored.push({ url: path, vary: names.map((name) => [name, headers.get(name)]), body })
    return body
  }
}

describe('an answer that is stored for one project is not given to another', async () => {
  for (const { project: at } of [cast, other]) {
    await at.admin.post('/config', { key: 'who', value: at.id, value_type: 'string' })
    await at.admin.post('/flags', { key: 'who', value_type: 'string', default_value: at.id })
    const file = await upload(await at.user(), 'hello', { filename: `${at.id}.txt` })
    await at.admin.post('/media/catalogs', { slug: 'home', name: 'Home', is_public: true, asset_ids: [file.id] })
  }
  test.each([
    '/client/config',
    '/client/flags',
    '/client/flags/who',
    '/client/auth/jwks',
    '/client/media/catalogs/home',
  ])('%s', async (path) => {
    const ask = createStore()
    const keyed = [cast, other].map((one) => ({ 'x-api-key': one.project.clientKey }))
    const fresh = await Promise.all(keyed.map((key) => createStore()(path, key)))
    expect(fresh[0]).not.toBe(fresh[1])
    for (const [index, key] of keyed.entries()) expect(await ask(path, key)).toBe(fresh[index])
    for (const [index, key] of keyed.entries()) expect(await ask(path, key)).toBe(fresh[index])
    expect(JSON.parse(await ask(path, {})).error.code).toBe('UNAUTHORIZED')
    expect(JSON.parse(await ask(path, { 'x-api-key': 'svc_live_ck_nonsense' })).error.code).toBe('UNAUTHORIZED')
  })
})

test('what has no route of its own is stored by no cache, or selected by its URL alone', async () => {
  await project.admin.patch('', { rest_enabled: true })
  await project.admin.post('/collections', { name: 'caches', columns: [{ name: 'a', type: 'text' }] })
  const file = await upload(user)
  const of = { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}` }
  const at = async (path: string) => {
    const { status, headers } = await fetch(path.startsWith('http') ? path : harness.url + path, { headers: of })
    expect(status, path).toBe(200)
    return [headers.get('cache-control'), headers.get('vary')]
  }
  expect((await at('/rest/v1/caches'))[0]).toBe('no-store')
  expect((await at('/auth/v1/user'))[0]).toBe('no-store')
  // the same for everybody, in one language
  for (const path of ['/docs', '/openapi.json', '/console']) {
    const [control, vary] = await at(path)
    expect([path, control]).toEqual([
      path,
      expect.stringMatching(/^(public, max-age=(60|300|86400)|no-store|no-cache)$/),
    ])
    expect(vary ?? '').not.toMatch(/authorization/i)
  }
  // the URL is the credential
  expect((await at(file.storage_url))[0]).toBe('private, max-age=300')
})
