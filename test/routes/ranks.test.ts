import { describe, expect, test } from 'vitest'
import { isRanked, type OrganizationRole, organizationRoles, rankOf } from '#server/http/ranks.ts'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { startHarness } from '#test/support/harness.ts'
import { enrol, organizationOf } from '#test/support/organizations.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'

/**
 * Every route of a project and of an organization, as every role, as a stranger and as a member who was removed: made from the declarations, so a route
 * that is added later is in it. Whoever may call a route is not refused for a role; nobody else gets through.
 */
const harness = await startHarness()
const cast = await createCast(harness)
const { project, organization } = cast
const people = Object.fromEntries(
  await Promise.all(organizationRoles.map(async (role) => [role, await harness.developer()] as const)),
) as Record<OrganizationRole, Awaited<ReturnType<typeof harness.developer>>>
const stranger = await harness.developer()
const removed = await harness.developer()
const token = withBearer(harness.anyone, (await personalToken(people.viewer, { scopes: ['*:write'] })).token)
for (const role of organizationRoles) await enrol(harness, organization, people[role], role)
await enrol(harness, organization, removed, 'owner')
// cached with the role, and then removed: the removal drops the cached credential
expect((await removed.get(`/admin/projects/${project.id}`)).status).toBe(200)
expect((await project.developer.delete(`/admin/organizations/${organization}/members/${removed.id}`)).status).toBe(200)

const routes = harness.running.areas.flatMap((area) =>
  area.routes.flatMap((route) => {
    const least = rankOf(area, route)
    return least ? [{ name: nameOf(route), area, route, least }] : []
  }),
)
const ofOrganization = (path: string) => path.includes(':orgId')
test('the matrix has every route of a project and of an organization', () => {
  const guarded = harness.running.areas
    .flatMap(({ routes }) => routes)
    .filter(({ path }) => /^\/admin\/(projects\/:projectId|organizations\/:orgId)/.test(path))
  expect(routes.map(({ name }) => name).sort()).toEqual(guarded.map(nameOf).sort())
})

describe.each(routes)('$name', ({ route, area, least }) => {
  const lower = organizationRoles.filter((role) => !isRanked(role, least))

  if (lower.length > 0) {
    test(`is refused to a lower role than ${least}, and to their tokens`, async () => {
      for (const role of lower) {
        const answer = await callRoute(route, cast, people[role])
        expect(answer).toMatchObject({
          status: 403,
          error: { code: 'ROLE_FORBIDDEN', details: { required: least, role } },
        })
      }
      const answer = await callRoute(route, cast, token)
      expect(answer).toMatchObject({
        status: 403,
        error: { code: route.sessionOnly ? 'SESSION_REQUIRED' : 'ROLE_FORBIDDEN' },
      })
    })
  }

  test('is refused to a stranger and to a removed member', async () => {
    const refused = ofOrganization(route.path)
      ? { status: 404, error: { code: 'NOT_FOUND' } }
      : { status: 403, error: { code: 'PROJECT_FORBIDDEN' } }
    for (const person of [stranger, removed]) expect(await callRoute(route, cast, person)).toMatchObject(refused)
  })

  // the lowest role that may; the others are above it. What ends the project or the organization is tested where it is at home
  if (least !== 'owner') {
    test(`is open to ${least}`, async () => {
      const answer = await callRoute(route, cast, people[least])
      expect(answer.status, answer.text).not.toBe(401)
      expect(['ROLE_FORBIDDEN', 'PROJECT_FORBIDDEN']).not.toContain(answer.error?.code)
      expect(area.routes).toContain(route)
    })
  }
})

test('a viewer has every GET and nothing else', () => {
  for (const { name, least } of routes) {
    if (name.startsWith('GET ')) expect(least, name).toBe('viewer')
    // leaving is everybody's
    else if (name !== 'DELETE /admin/organizations/:orgId/members/:developerId') expect(least, name).not.toBe('viewer')
  }
})

test('what needs more than a developer', () => {
  const above = routes.filter(({ least, route }) => isRanked(least, 'admin') && !ofOrganization(route.path))
  const names = (rank: string) => above.filter(({ least }) => least === rank).map(({ name }) => name)
  const root = '/admin/projects/:projectId'
  expect(names('owner').sort()).toEqual([`DELETE ${root}`, `POST ${root}/transfer`])
  expect(names('admin')).toEqual(
    expect.arrayContaining([
      `POST ${root}/api-keys`,
      `DELETE ${root}/api-keys/:keyId`,
      `POST ${root}/api-keys/:keyId/rotate`,
      `POST ${root}/integrations`,
      `POST ${root}/ai/providers`,
      `DELETE ${root}/ai/providers/:name`,
    ]),
  )
  // an area that holds credentials declares its rank
  expect(
    names('admin').every((name) =>
      /\/(api-keys|integrations|ai\/providers|oauth|secrets|billing|credentials)\b/.test(name),
    ),
  ).toBe(true)
})

test('an organization of the same person elsewhere opens nothing here', async () => {
  await organizationOf(stranger)
  expect((await stranger.get(`/admin/projects/${project.id}`)).error?.code).toBe('PROJECT_FORBIDDEN')
})
