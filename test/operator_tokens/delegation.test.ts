import { describe, expect, test } from 'vitest'
import { rankOf } from '#server/http/ranks.ts'
import { delegableAreas, isDelegable, scopeOf } from '#server/http/scopes.ts'
import { operatorTokenOf, serviceAccountOf } from '#test/support/delegation.ts'
import { startHarness } from '#test/support/harness.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'

/**
 * Every route that accepts a developer's Bearer, called with an operator token that has every scope, with one that has none of the route's, and with the key of
 * a service account: made from the declarations, so a route that is added later is in it.
 */
const harness = await startHarness()
const cast = await createCast(harness)
const { project, organization } = cast
const other = await createCast(harness)
const account = await serviceAccountOf(harness, project.developer, { organization_id: organization })
const whole = await operatorTokenOf(harness, account.client, { organization_id: organization })
const narrow = await operatorTokenOf(harness, account.client, { project_id: project.id, scopes: ['affiliate:write'] })
const routes = harness.running.areas.flatMap((area) =>
  area.routes
    .filter((route) => route.caller.takesTokens)
    .map((route) => ({ name: nameOf(route), area, route, delegable: isDelegable(area, route) })),
)
const of = (delegable: boolean) => routes.filter((entry) => entry.delegable === delegable)

describe.each(of(false))('$name', ({ route }) => {
  test('is never delegated', async () => {
    for (const client of [whole.client, narrow.client]) {
      expect(await callRoute(route, cast, client)).toMatchObject({
        status: 403,
        error: { code: 'DELEGATION_NOT_ALLOWED' },
      })
    }
  })
})

describe.each(of(true))('$name', ({ area, route }) => {
  test('needs its scope and a project of the organization', async () => {
    const needed = scopeOf(area, route)
    expect(await callRoute(route, cast, narrow.client)).toMatchObject({
      status: 403,
      error: {
        code: 'SCOPE_REQUIRED',
        details: { required: expect.stringMatching(new RegExp(`^${needed?.split(':')[0]}:`)) },
      },
    })
    expect(await callRoute(route, other, whole.client)).toMatchObject({
      status: 403,
      error: { code: 'PROJECT_FORBIDDEN' },
    })
    const answer = await callRoute(route, cast, whole.client)
    expect(['SCOPE_REQUIRED', 'DELEGATION_NOT_ALLOWED', 'ROLE_FORBIDDEN', 'PROJECT_FORBIDDEN']).not.toContain(
      answer.error?.code,
    )
    expect(answer.status, answer.text).not.toBe(401)
    expect(answer.status, answer.text).toBeLessThan(500)
  })
})

describe.each(routes.filter(({ route }) => route.caller.name !== 'delegator'))('$name', ({ route }) => {
  test('is closed to the key of a service account', async () => {
    expect(await callRoute(route, cast, account.client)).toMatchObject({
      status: 401,
      error: { code: 'INVALID_DEVELOPER_TOKEN' },
    })
  })
})

test('what is delegated: routes of projects, of named areas, for developers', () => {
  const names = of(true).map(({ name }) => name)
  for (const { area, route, name } of of(true)) {
    expect(route.path, name).toMatch(/^\/admin\/projects\/:projectId\//)
    expect(delegableAreas.has(scopeOf(area, route)?.split(':')[0] ?? ''), name).toBe(true)
    expect(['viewer', 'developer']).toContain(rankOf(area, route))
    expect(name).not.toMatch(
      /api-keys|integrations|providers$|secrets|billing|audit|transfer|operator-tokens|service-accounts/,
    )
  }
  const root = '/admin/projects/:projectId'
  expect(names).toEqual(expect.arrayContaining([`POST ${root}/streaks`, `GET ${root}/users`, `POST ${root}/webhooks`]))
  for (const never of [
    `PATCH ${root}`,
    `DELETE ${root}`,
    `POST ${root}/api-keys`,
    `GET ${root}/audit-events/export`,
    'POST /admin/tokens',
    'POST /admin/operator-tokens',
  ])
    expect(names).not.toContain(never)
})
