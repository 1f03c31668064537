import pg from 'pg'
import { pino } from 'pino'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { configuredBilling } from '#test/support/billing.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'
import { startSecond } from '#test/support/second.ts'

/** What every route answers while a database cannot be reached, or runs an older program. */
const harness = await startHarness({
  env: { LOG_LEVEL: 'silent', GITHUB_CLIENT_ID: 'client', GITHUB_CLIENT_SECRET: 'a secret' },
  providers: { billing: configuredBilling() },
})
const cast = await createCast(harness)
const { projectCache, database, control } = harness.running.services
const admin = new pg.Client({ connectionString: inject('dsn') })
await admin.connect()
afterAll(() => admin.end())

/** Shuts a database, or opens it again; connections that are open end. */
const shut = async (name: string, isShut: boolean) => {
  await admin.query(`alter database "${name}" with allow_connections ${!isShut}`)
  for (const key of ['tenant', 'control'])
    await database.pools.forget(`${control.cluster.id}/${key === 'tenant' ? cast.project.database : control.database}`)
  await admin
    .query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()', [
      name,
    ])
    .catch(() => undefined)
}

const routes = harness.running.areas.flatMap((area) =>
  area.routes.map((route) => ({ name: nameOf(route), area, route })),
)
const tenants = new Set([
  'administrator',
  'appKey',
  'endUser',
  'sessionUser',
  'endUserOrServer',
  'appOrUser',
  'serverForUser',
  'serverAlone',
])
const inTenant = routes.filter(({ route }) => tenants.has(route.caller.name) && route.path !== '/client/auth/jwks')

describe('a tenant that is shut', () => {
  test('is 503 TENANT_UNAVAILABLE with Retry-After on each of its routes, and only there', {
    timeout: 180_000,
  }, async () => {
    await shut(cast.project.database, true)
    try {
      for (const { area, route, name } of inTenant) {
        const answer = await callRoute(route, cast)
        expect(answer, name).toMatchObject({ status: area.unavailable ?? 503, error: { code: 'TENANT_UNAVAILABLE' } })
        expect(answer.headers.get('retry-after')).toBe('2')
      }
      expect((await cast.developer.get('/admin/projects')).status).toBe(200)
    } finally {
      await shut(cast.project.database, false)
    }
    expect((await cast.user.get('/client/users/me')).status).toBe(200)
  })
})

describe('control that is shut', () => {
  test('is 503 SERVICE_UNAVAILABLE on every route that needs it, and health says so', {
    timeout: 180_000,
  }, async () => {
    await shut(control.database, true)
    try {
      for (const { route, name } of routes) {
        if (route.caller.name === 'anyone' && !route.path.startsWith('/auth')) continue
        projectCache.clear()
        harness.running.services.sessions.clear()
        const answer = await callRoute(route, cast)
        expect(answer, name).toMatchObject({ status: 503, error: { code: 'SERVICE_UNAVAILABLE' } })
        expect(answer.headers.get('retry-after')).toBe('2')
      }
      expect(await harness.anyone.get('//health')).toMatchObject({
        status: 503,
        data: { status: 'failing', parts: { database: 'failing', template: 'failing' } },
      })
    } finally {
      await shut(control.database, false)
    }
    expect((await harness.anyone.get('//health')).status).toBe(200)
  })
})

describe('a tenant that runs an older program', () => {
  test('answers 503 TENANT_MIGRATION_PENDING where something is missing, 500 never', { timeout: 180_000 }, async () => {
    await age(cast.project)
    for (const { area, route, name } of inTenant) {
      // a token that was refreshed once would end its session: each route gets a fresh look at the same missing functions
      const answer = await callRoute(route, cast)
      const { notMigrated } = area
      expect(answer, name).toMatchObject(
        notMigrated
          ? { status: 409, error: { code: notMigrated } }
          : { status: 503, error: { code: 'TENANT_MIGRATION_PENDING' } },
      )
      expect(answer.headers.get('retry-after')).toBe('5')
    }
  })
})

describe('a tenant of the program that new projects are made of', () => {
  test('answers 500 where something is missing, and the log says what, under the id of the request', async () => {
    const lines: any[] = []
    const second = await startSecond(harness, pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }))
    const project = await harness.project()
    const user = await project.user()
    await project.sql('alter function api.me_get rename to me_get_gone')
    // as after db:reload, of which this server knows nothing
    await harness.control(`update app.templates set content_hash = 'reloaded'`)
    await harness.control(`update app.tenants set content_hash = 'reloaded' where project_id = $1`, [project.id])
    const answer = await second.as(user.headers).get('/client/users/me')
    expect(answer).toMatchObject({ status: 500, error: { code: expect.stringMatching(/_FAILED$|^INTERNAL_ERROR$/) } })
    expect(lines.filter(({ msg }) => msg === 'a database call failed')).toMatchObject([
      { level: 50, sqlstate: '42883', function: 'me_get', request: answer.headers.get('x-request-id') },
    ])
    // while it is brought to that program, it is pending
    await harness.control(`update app.tenants set content_hash = 'former' where project_id = $1`, [project.id])
    second.running.services.projectCache.clear()
    expect((await second.as(user.headers).get('/client/users/me')).error?.code).toBe('TENANT_MIGRATION_PENDING')
  })
})

/** As if the project's database had been left behind by many versions. */
const age = async (project: Project) => {
  await harness.control(
    `update app.tenants set content_hash = 'old', schema_version = '20260101000000' where project_id = $1`,
    [project.id],
  )
  await project.sql(`
    do $age$ declare f record; begin
      for f in select p.oid::regprocedure::text as name from pg_proc p
                where p.pronamespace = 'api'::regnamespace and p.proname not in ('auth_session', 'rate_limit_take')
      loop execute 'drop function ' || f.name; end loop;
    end $age$`)
  projectCache.clear()
}
