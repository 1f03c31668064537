import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { allows, isScope, scopeAreas, scopeNeeded, scopeOf } from '#server/http/scopes.ts'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { organizationOf, personalOf } from '#test/support/organizations.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'

/** What a personal access token may do on every route there is, from the routes' own declarations. */
const harness = await startHarness()
const cast = await createCast(harness)
const { project } = cast
const owner = project.developer
const { areas } = harness.running
const known = scopeAreas(areas)
const refusalOf = ({ status, error }: Answer) => [status, error?.code]

const routes = areas.flatMap((area) =>
  area.routes
    .filter((route) => route.caller.takesTokens)
    .map((route) => ({ name: nameOf(route), area, route, scope: scopeOf(area, route) })),
)
const scoped = routes.flatMap((entry) => (entry.scope ? [{ ...entry, scope: entry.scope }] : []))
const refusals = ['SCOPE_REQUIRED', 'SESSION_REQUIRED', 'PROJECT_FORBIDDEN', 'INVALID_DEVELOPER_TOKEN']

const clients = new Map<string, { readonly id: string; readonly client: ReturnType<typeof withBearer> }>()
/** A token of the project's owner with one scope. */
const holding = async (scope: string) => {
  const held = clients.get(scope)
  if (held) return held.client
  // an account has at most 50 live tokens
  if (clients.size >= 20) {
    for (const { id } of clients.values()) expect((await owner.delete(`/admin/tokens/${id}`)).status).toBe(200)
    clients.clear()
  }
  const { id, token } = await personalToken(owner, { scopes: [scope] })
  const client = withBearer(harness.anyone, token)
  clients.set(scope, { id, client })
  return client
}

test('most of the routes are seen here, and every way that a route can treat a token', () => {
  expect(routes.length).toBeGreaterThan(30)
  expect(routes.some(({ route }) => route.sessionOnly)).toBe(true)
  expect(routes.filter(({ route }) => route.scope === null).map(({ name }) => name)).toEqual(['GET /auth/developer/me'])
  for (const { scope, name } of scoped) expect(isScope(scope, known), `${name} ${scope}`).toBe(true)
})

describe.each(routes.filter(({ route }) => route.sessionOnly))('$name', ({ route }) => {
  test('is for sessions only', async () => {
    expect(refusalOf(await callRoute(route, cast, await holding('*:write')))).toEqual([403, 'SESSION_REQUIRED'])
  })
})

describe.each(scoped)('$name ($scope)', ({ route, scope }) => {
  const [area = '', access] = scope.split(':')
  const other = area === 'reviews' ? 'roles' : 'reviews'

  test('refuses a token without the scope, and says which it lacks', async () => {
    const wrong = [`${other}:read`, `${other}:write`, ...(access === 'write' ? [`${area}:read`, '*:read'] : [])]
    for (const held of wrong) {
      const answer = await callRoute(route, cast, await holding(held))
      expect(refusalOf(answer), held).toEqual([403, 'SCOPE_REQUIRED'])
      expect(answer.error?.details).toEqual({ required: scope })
    }
  })

  test('lets a token with the scope through to the route', async () => {
    const right = [scope, '*:write', ...(access === 'read' ? [`${area}:write`, '*:read'] : [])]
    for (const held of right) {
      const answer = await callRoute(route, cast, await holding(held))
      expect(refusals, `${held}: ${answer.text}`).not.toContain(answer.error?.code)
    }
  })
})

describe('a token that is limited to projects', async () => {
  const other = await harness.project({ developer: owner })
  const { token } = await personalToken(owner, { project_ids: [project.id] })
  const limited = withBearer(harness.anyone, token)
  const inProject = scoped.filter(({ route }) => route.path.startsWith('/admin/projects/:projectId'))
  const outside = scoped.filter(({ route }) => !route.path.startsWith('/admin/projects/:projectId'))

  test.each(inProject)('$name: reaches its own, and no other of the same developer', async ({ route }) => {
    expect(refusalOf(await callRoute(route, cast, limited, other.id))).toEqual([403, 'PROJECT_FORBIDDEN'])
    const answer = await callRoute(route, cast, limited, project.id.toUpperCase())
    expect(refusals, answer.text).not.toContain(answer.error?.code)
  })

  test.each(outside.filter(({ scope }) => scope.endsWith(':write')))(
    '$name: changes nothing outside of its projects',
    async ({ route }) => expect(refusalOf(await callRoute(route, cast, limited))).toEqual([403, 'PROJECT_FORBIDDEN']),
  )

  test('lists its own projects only', async () => {
    const ids = (answer: Answer) => answer.data.map(({ id }: { id: string }) => id).sort()
    expect(ids(await limited.get('/admin/projects'))).toEqual([project.id])
    expect(ids(await owner.get('/admin/projects'))).toEqual(expect.arrayContaining([project.id, other.id]))
    expect((await limited.get('/auth/developer/me')).data.id).toBe(owner.id)
  })

  test('reads no records of an organization, and lists those of its projects only', async () => {
    const team = await organizationOf(owner)
    const home = await personalOf(owner)
    for (const id of [team.id, home])
      for (const path of ['', '/members', '/invites', '/audit-events']) {
        const at = `/admin/organizations/${id}${path}`
        expect((await owner.get(at)).status).toBe(200)
        expect(refusalOf(await limited.get(at))).toEqual([403, 'PROJECT_FORBIDDEN'])
      }
    expect(refusalOf(await limited.get(`/admin/organizations/${randomUUID()}/members`))).toEqual([404, 'NOT_FOUND'])
    const listed = await limited.get('/admin/organizations')
    expect([listed.body.total, listed.data.map(({ id }: { id: string }) => id)]).toEqual([1, [home]])
    expect((await limited.get('/auth/developer/me')).data.organizations.map(({ id }: any) => id)).toEqual([home])
    const wide = withBearer(harness.anyone, (await personalToken(owner)).token)
    expect((await wide.get(`/admin/organizations/${team.id}/audit-events`)).status).toBe(200)
  })

  test('reaches nothing once its projects are gone, rather than everything', async () => {
    const gone = await harness.project({ developer: owner })
    const { token: text } = await personalToken(owner, { project_ids: [gone.id] })
    const client = withBearer(harness.anyone, text)
    expect((await client.get('/admin/projects')).data).toHaveLength(1)
    await harness.control('update app.projects set deleted_at = now() where id = $1', [gone.id])
    expect((await client.get('/admin/projects')).data).toEqual([])
  })

  test("is kept there by the database too, whatever the server's code forgets", async () => {
    const claims = {
      'app.caller': 'developer',
      'app.developer_id': owner.id,
      'app.actor': JSON.stringify({ type: 'pat', id: owner.id, project_ids: [project.id] }),
    }
    const { database, control } = harness.running.services
    const call = (name: string, args: object, actor: string | null) =>
      database.call(control, 'control_developer', { caller: 'developer', developerId: owner.id, actor }, name, {
        ...args,
      })
    await expect(call('project_get', { project_id: other.id }, claims['app.actor'])).rejects.toMatchObject({
      status: 404,
    })
    await expect(
      call('project_patch', { project_id: other.id, patch: { name: 'x' } }, claims['app.actor']),
    ).rejects.toMatchObject({ status: 404 })
    expect((await call('project_get', { project_id: other.id }, null)).status).toBe(200)
    expect((await call('project_get', { project_id: project.id }, claims['app.actor'])).status).toBe(200)
  })

  test('shows who it belongs to even when its only right is elsewhere', async () => {
    const weak = await holding('reviews:read')
    expect((await weak.get('/auth/developer/me')).data.token).toMatchObject({ type: 'pat', scopes: ['reviews:read'] })
  })
})

describe('scopes', () => {
  test.each([
    ['streaks:read', ['streaks:read'], true],
    ['streaks:read', ['streaks:write'], true],
    ['streaks:read', ['*:read'], true],
    ['streaks:read', ['*:write'], true],
    ['streaks:write', ['streaks:write'], true],
    ['streaks:write', ['*:write'], true],
    ['streaks:write', ['streaks:read', '*:read', 'users:write'], false],
    ['streaks:read', ['users:write', 'streak:read'], false],
    ['streaks:read', [], false],
  ])('%s is in %j: %s', (needed, scopes, expected) => expect(allows(scopes, needed)).toBe(expected))

  test('come from the method, and from what a route says of itself', () => {
    const [area] = areas.filter(({ stem }) => stem === 'streaks')
    const find = (name: string) => routes.find((entry) => entry.name === name)?.scope
    expect(find('GET /admin/projects/:projectId/streaks')).toBe('streaks:read')
    expect(find('POST /admin/projects/:projectId/streaks')).toBe('streaks:write')
    // a POST that only reads
    expect(find('POST /admin/projects/:projectId/streaks/:idOrKey/simulate')).toBe('streaks:read')
    expect(find('PATCH /auth/developer/me')).toBe('account:write')
    const route = area?.routes.find((one) => one.method === 'POST' && one.path.endsWith('/streaks'))
    if (!area || !route) throw new Error('no streaks')
    const dry = { query: { dry_run: 'true' } }
    // without the parameter in its declaration the route would do it for good
    expect(scopeNeeded(area, route, dry)).toBe('streaks:write')
    const withDryRun = { ...route, query: { dry_run: (route.body ?? route.query) as never } }
    expect(scopeNeeded(area, withDryRun, dry)).toBe('streaks:read')
    expect(scopeNeeded(area, withDryRun, { query: { dry_run: ['true', 'false'] } })).toBe('streaks:write')
    expect(scopeNeeded(area, withDryRun, { query: { dry_run: 'false' } })).toBe('streaks:write')
  })

  test('stand in the OpenAPI document', async () => {
    const document = (await (await fetch(`${harness.url}/openapi.json`)).json()) as any
    const at = (path: string, method: string) => document.paths[`/v1${path}`][method]['x-scope']
    expect(at('/admin/projects/{projectId}/streaks', 'post')).toBe('streaks:write')
    expect(at('/admin/tokens', 'post')).toBe('session only')
    expect(at('/auth/developer/me', 'get')).toBeNull()
    expect(document.paths['/v1/client/events'].post).not.toHaveProperty('x-scope')
  })
})
