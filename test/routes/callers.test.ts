import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'

/** Every route refuses every caller but its own, in the words of names.md. */
const harness = await startHarness()
const cast = await createCast(harness)
const { project, user } = cast
const other = await createCast(harness)
const routes = harness.running.areas.flatMap((area) => area.routes)
const of = (...names: string[]) =>
  routes.filter((route) => names.includes(route.caller.name)).map((route) => ({ name: nameOf(route), route }))
afterAll(() => harness.setTime(null))

describe.each(of('developer', 'delegator', 'organizationMember', 'projectOwner', 'administrator'))(
  '$name',
  ({ route }) => {
    test('needs a developer token', async () => {
      const wrong = [
        '',
        'Bearer x',
        `Bearer ${user.sessionToken}`,
        `Bearer ${cast.developer.refreshToken}`,
        'Basic eDp5',
      ]
      for (const authorization of wrong) {
        const answer = await callRoute(route, cast, harness.anyone.with(authorization ? { authorization } : {}))
        expect(answer).toMatchObject({ status: 401, error: { code: 'INVALID_DEVELOPER_TOKEN' } })
      }
    })
  },
)

describe.each(of('projectOwner', 'administrator'))('$name', ({ route }) => {
  test("refuses another developer's project, and one that is not there", async () => {
    expect(await callRoute(route, cast, other.project.developer)).toMatchObject({
      status: 403,
      error: { code: 'PROJECT_FORBIDDEN' },
    })
    for (const id of [randomUUID(), 'x', 'undefined']) {
      expect(await callRoute(route, cast, undefined, id)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    }
  })
})

const keyed = of('appKey', 'endUser', 'sessionUser', 'endUserOrServer', 'appOrUser', 'serverForUser', 'serverAlone')
describe.each(keyed)('$name', ({ route }) => {
  test('needs a key of the project', async () => {
    const session = { authorization: user.headers['authorization'] ?? '' }
    for (const key of [undefined, '', 'x', `${project.clientKey}x`, project.clientKey.toUpperCase(), 'svc_live_ck_']) {
      const answer = await callRoute(
        route,
        cast,
        harness.anyone.with(key === undefined ? session : { ...session, 'x-api-key': key }),
      )
      expect(answer).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    }
  })
})

describe.each(of('endUser', 'sessionUser', 'endUserOrServer', 'appOrUser'))('$name', ({ route }) => {
  test('needs a live session of the same project, signed by us', async () => {
    const key = { 'x-api-key': project.clientKey }
    for (const token of ['x', other.user.sessionToken, user.refreshToken, cast.developer.accessToken]) {
      const answer = await callRoute(route, cast, harness.anyone.with({ ...key, authorization: `Bearer ${token}` }))
      expect(answer).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    }
    const keyAlone = await callRoute(route, cast, project.app)
    if (route.caller.name === 'appOrUser') expect(keyAlone.status).not.toBe(401)
    else expect(keyAlone).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
  })

  test('an expired session says so', async () => {
    harness.setTime(new Date(Date.now() + 2 * 3600_000))
    expect(await callRoute(route, cast)).toMatchObject({ status: 401, error: { code: 'TOKEN_EXPIRED' } })
    harness.setTime(null)
  })
})

describe.each(of('sessionUser'))('$name', ({ route }) => {
  test('is not for a server key, whoever it acts for, and with no Bearer beside it', async () => {
    for (const id of [user.id, randomUUID(), 'x']) {
      expect(await callRoute(route, cast, project.onBehalfOf(id))).toMatchObject({
        status: 403,
        error: { code: 'SESSION_REQUIRED' },
      })
    }
    const both = project.onBehalfOf(user.id).with({ authorization: user.headers['authorization'] ?? '' })
    expect(await callRoute(route, cast, both)).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT' } })
  })
})

describe.each(of('serverForUser', 'serverAlone'))('$name', ({ route }) => {
  test('is for server keys: a client key is refused, whoever is signed in or named', async () => {
    for (const client of [project.app, user, project.app.with({ 'x-on-behalf-of': user.id })]) {
      expect(await callRoute(route, cast, client)).toMatchObject({
        status: 403,
        error: { code: 'SERVER_KEY_REQUIRED' },
      })
    }
    const alone = await callRoute(route, cast, project.server)
    if (route.caller.name === 'serverAlone') expect(alone.status).not.toBe(401)
    else expect(alone).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
  })
})

describe.each(of('endUser', 'endUserOrServer', 'appOrUser', 'serverForUser', 'serverAlone'))('$name', ({ route }) => {
  test('a server key acts for a user who is there, and with no Bearer beside it', async () => {
    for (const id of [randomUUID(), other.user.id, 'x']) {
      expect(await callRoute(route, cast, project.onBehalfOf(id))).toMatchObject({
        status: 404,
        error: { code: 'USER_NOT_FOUND' },
      })
    }
    const both = project.onBehalfOf(user.id).with({ authorization: user.headers['authorization'] ?? '' })
    expect(await callRoute(route, cast, both)).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT' } })
  })
})
