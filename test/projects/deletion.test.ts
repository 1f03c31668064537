import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { refusal } from '#server/errors.ts'
import type { BilledProject } from '#server/providers/billing.ts'
import type { FileLocation } from '#server/providers/project_files.ts'
import { meetingAt } from '#test/support/accounts.ts'
import { createTestBilling } from '#test/support/billing.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { pathOf } from '#test/support/routes.ts'
import { startSecond } from '#test/support/second.ts'

/** Whoever takes the money, and whoever keeps the files, as each test wants them. */
const world = {
  subscription: null as Date | Error | null,
  cancelled: [] as BilledProject[],
  locations: [] as FileLocation[] | Error,
}
const harness = await startHarness({
  env: { LOG_LEVEL: 'silent' },
  providers: {
    billing: {
      ...createTestBilling().provider,
      async cancelAtPeriodEnd(project) {
        world.cancelled.push(project)
        if (world.subscription instanceof Error) throw world.subscription
        return world.subscription && { endsAt: world.subscription }
      },
    },
    files: {
      async locations() {
        if (world.locations instanceof Error) throw world.locations
        return world.locations
      },
      purge: async () => undefined,
    },
  },
})
const { services } = harness.running
beforeEach(() => {
  Object.assign(world, { subscription: null, cancelled: [], locations: [] })
  harness.setTime(null)
})

const pathTo = (id: string) => `/admin/projects/${id}`
const remove = (project: Project) => project.developer.delete(pathTo(project.id))
/** Nothing of it was touched: its keys work, its owner sees it, no work is queued. */
const expectAlive = async (project: Project) => {
  expect((await project.admin.get('')).status).toBe(200)
  expect((await project.app.post('/client/auth/anonymous')).status).toBe(201)
  expect((await project.developer.get('/admin/projects')).data.map(({ id }: any) => id)).toContain(project.id)
  expect(await jobsOf(project)).toEqual([])
  expect(await harness.control('select from app.file_purges where project_id = $1', [project.id])).toEqual([])
}
const jobsOf = async (project: Project) =>
  (await harness.control(`select key from graphile_worker.jobs where key = 'remove ' || $1`, [project.id])).map(
    ({ key }) => key,
  )

describe('deleting a project', () => {
  test('answers what goes with it: nothing stored and nothing paid', async () => {
    const answer = await remove(await harness.project())
    expect([answer.status, answer.data]).toEqual([
      200,
      { deleted: true, file_purge: { locations: 0 }, subscription: null },
    ])
  })

  test('counts the places that hold files, and says when the subscription ends', async () => {
    const project = await harness.project()
    await harness.control(`update app.projects set tier = 'pro' where id = $1`, [project.id])
    world.subscription = new Date('2026-12-24T00:00:00Z')
    world.locations = [
      { kind: 'media', path: project.id },
      { kind: 'functions', path: `f/${project.id}` },
      { kind: 'sites', path: `s/${project.id}` },
    ]
    const { data } = await remove(project)
    expect(data).toEqual({
      deleted: true,
      file_purge: { locations: 3 },
      subscription: { ends_at: '2026-12-24T00:00:00.000Z' },
    })
    expect(world.cancelled).toEqual([{ id: project.id, tier: 'pro' }])
    const purges = await harness.control(
      `select f.location, j.key = 'purge ' || f.id as is_queued
         from app.file_purges f left join graphile_worker.jobs j on j.key = 'purge ' || f.id
        where f.project_id = $1 order by f.location::text`,
      [project.id],
    )
    expect(purges).toHaveLength(3)
    expect(purges).toEqual(expect.arrayContaining(world.locations.map((location) => ({ location, is_queued: true }))))
    expect(await jobsOf(project)).toEqual([`remove ${project.id}`])
  })

  test('ends it at once, for every route and every key, here and in another server', async () => {
    const [project, stranger] = [await harness.project(), await harness.developer()]
    const second = await startSecond(harness)
    const user = await project.user()
    const there = second.as(user.headers)
    const theirs = second.as(project.developer.headers)
    expect((await there.get('/client/users/me')).status).toBe(200)
    expect((await theirs.get(pathTo(project.id))).status).toBe(200)
    const refused = await stranger.delete(pathTo(project.id))
    expect(refused).toMatchObject({ status: 403, error: { code: 'PROJECT_FORBIDDEN' } })
    await expectAlive(project)

    expect((await remove(project)).status).toBe(200)
    expect(await user.get('/client/users/me')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    for (const client of [project.app, project.server, project.onBehalfOf(user.id)])
      expect(await client.post('/client/auth/anonymous')).toMatchObject({ status: 401 })
    const routes = harness.running.areas
      .flatMap((area) => area.routes)
      .filter((route) => route.path.startsWith('/admin/projects/:projectId'))
    expect(routes.length).toBeGreaterThan(20)
    for (const route of routes) {
      for (const client of [project.developer, stranger]) {
        const answer = await client.request(
          route.method,
          pathOf(route, project.id),
          route.body ? route.example : undefined,
        )
        expect(answer, `${route.method} ${route.path}`).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
      }
    }
    expect((await project.developer.get('/admin/projects')).data).toEqual([])
    expect(await there.get('/client/users/me')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    expect(await theirs.get(pathTo(project.id))).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  })

  test('knows the id in capitals as well', async () => {
    const project = await harness.project()
    expect((await project.developer.delete(pathTo(project.id.toUpperCase()))).status).toBe(200)
    expect((await project.admin.get('')).status).toBe(404)
    expect(world.cancelled).toEqual([{ id: project.id, tier: 'free' }])
  })

  test('is in the audit trail', async () => {
    const project = await harness.project()
    await remove(project)
    const rows = await harness.control(
      `select action, actor ->> 'id' as actor, status from app.audit_events where scope = $1 order by position desc limit 3`,
      [project.id],
    )
    expect(rows).toContainEqual({ action: 'projects.delete', actor: project.developer.id, status: 200 })
  })

  test('of what is not there is 404, and needs its developer', async () => {
    const project = await harness.project()
    for (const id of [randomUUID(), 'x'])
      expect(await project.developer.delete(pathTo(id))).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    expect(await harness.anyone.delete(pathTo(project.id))).toMatchObject({
      status: 401,
      error: { code: 'INVALID_DEVELOPER_TOKEN' },
    })
    expect(await project.server.delete(pathTo(project.id))).toMatchObject({ status: 401 })
    expect(world.cancelled).toEqual([])
    await expectAlive(project)
  })
})

describe('a deletion that cannot be done', () => {
  test('for the subscription does nothing, says nothing of why, and can be tried again', async () => {
    const project = await harness.project()
    world.subscription = new Error('card processor: secret-4711')
    world.locations = [{ kind: 'media', path: project.id }]
    const answer = await remove(project)
    expect(answer).toMatchObject({ status: 502, error: { code: 'BILLING_CANCEL_FAILED' } })
    expect(answer.text).not.toContain('4711')
    await expectAlive(project)
    // an end that is no time is no answer either
    world.subscription = new Date(Number.NaN)
    expect(await remove(project)).toMatchObject({ status: 502, error: { code: 'BILLING_CANCEL_FAILED' } })
    world.subscription = refusal(409, 'BILLING_NOT_CONFIGURED', 'none of ours')
    expect(await remove(project)).toMatchObject({ status: 502, error: { code: 'BILLING_CANCEL_FAILED' } })
    await expectAlive(project)
    world.subscription = new Date('2027-01-01T00:00:00Z')
    expect((await remove(project)).data).toMatchObject({ deleted: true, file_purge: { locations: 1 } })
  })

  test('for its files deletes nothing, and can be tried again', async () => {
    const project = await harness.project()
    world.locations = new Error('no route to host')
    expect(await remove(project)).toMatchObject({ status: 502, error: { code: 'TENANT_RESOURCE_DELETE_FAILED' } })
    await expectAlive(project)
    world.locations = []
    expect((await remove(project)).status).toBe(200)
  })

  test('while the database is being made is 409, until that is over or has stalled', async () => {
    const developer = await harness.developer()
    const make = async () => (await developer.post('/admin/projects', { name: 'x' })).data.project.id as string
    harness.setTime(new Date())
    const id = await make()
    const answer = await developer.delete(pathTo(id))
    expect(answer).toMatchObject({ status: 409, error: { code: 'PROVISIONING_IN_PROGRESS' } })
    expect(answer.headers.get('retry-after')).toBe('5')
    expect(world.cancelled).toEqual([])
    harness.advance(300)
    expect((await developer.delete(pathTo(id))).status).toBe(409)
    harness.advance(1)
    expect((await developer.delete(pathTo(id))).status).toBe(200)

    const failed = await make()
    await harness.control(`update app.tenants set status = 'failed' where project_id = $1`, [failed])
    expect((await developer.delete(pathTo(failed))).status).toBe(200)
    const unplaced = await make()
    await harness.control('delete from app.tenants where project_id = $1', [unplaced])
    expect((await developer.delete(pathTo(unplaced))).status).toBe(200)
    const ready = await make()
    await services.fleet.provision(ready)
    expect((await developer.delete(pathTo(ready))).status).toBe(200)
  })

  test('while its functions answer under a domain is 409; domains of other kinds go with it', async () => {
    const project = await harness.project()
    const put = (domain: string, kind: string, status: string) =>
      harness.control('select internal.domain_put($1, $2, $3, $4)', [project.id, domain, kind, status])
    await put('mail.example.org', 'email', 'verified')
    await put('www.example.org', 'site', 'verified')
    await put('api.example.org', 'function', 'pending')
    expect(await remove(project)).toMatchObject({ status: 409, error: { code: 'FUNCTION_DOMAINS_ATTACHED' } })
    expect(world.cancelled).toEqual([])
    await expectAlive(project)
    await harness.control(`delete from app.domains where project_id = $1 and kind = 'function'`, [project.id])
    expect((await remove(project)).status).toBe(200)
    await services.fleet.remove(project.id)
    expect(await harness.control('select from app.domains where project_id = $1', [project.id])).toEqual([])
  })

  test('looks again when everything else is done: what was attached meanwhile is not run over', async () => {
    const project = await harness.project()
    const { billing } = services
    const original = billing.cancelAtPeriodEnd
    Object.assign(billing, {
      cancelAtPeriodEnd: async () => {
        await harness.control(`select internal.domain_put($1, 'late.example.org', 'function')`, [project.id])
        return null
      },
    })
    const answer = await remove(project)
    Object.assign(billing, { cancelAtPeriodEnd: original })
    expect(answer).toMatchObject({ status: 409, error: { code: 'FUNCTION_DOMAINS_ATTACHED' } })
    await expectAlive(project)
  })
})

describe('deletions that meet', () => {
  test('each other: one of ten is done, once', async () => {
    const project = await harness.project()
    world.locations = [{ kind: 'media', path: project.id }]
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(project)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(404)])
    expect(await harness.control('select from app.file_purges where project_id = $1', [project.id])).toHaveLength(1)
  })

  test('a restart of provisioning: one of the two, never both', async () => {
    const seen = new Set<string>()
    for (let n = 0; n < 12; n += 1) {
      const developer = await harness.developer()
      const { id } = (await developer.post('/admin/projects', { name: 'x' })).data.project
      await harness.control(`update app.tenants set status = 'failed' where project_id = $1`, [id])
      const both = [() => developer.delete(pathTo(id)), () => developer.post(`${pathTo(id)}/reprovision`)]
      if (n % 2) both.reverse()
      const answers = await Promise.all(both.map((call) => call()))
      if (n % 2) answers.reverse()
      const outcome = answers.map(({ status }) => status).join(' ')
      seen.add(outcome)
      expect(['200 404', '409 202'], answers.map(({ text }) => text).join()).toContain(outcome)
      const [tenant] = await harness.control('select status from app.tenants where project_id = $1', [id])
      expect(tenant.status).toBe(outcome === '200 404' ? 'failed' : 'provisioning')
    }
    expect(seen.size).toBeGreaterThan(0)
  })

  test('what its developer does to the project: done before it, or 404, never half', async () => {
    for (let n = 0; n < 2; n += 1) {
      const project = await harness.project()
      const [removed, key, patched] = await meetingAt(harness, 'app.api_keys', () => [
        remove(project),
        project.admin.post('/api-keys', { key_type: 'server', environment: 'production' }),
        project.admin.patch('', { name: 'late' }),
      ])
      expect(removed?.status).toBe(200)
      for (const answer of [key, patched]) expect([200, 201, 404], answer?.text).toContain(answer?.status)
      const [left] = await harness.control(
        `select p.name, (select count(*)::int from app.api_keys k where k.project_id = p.id and k.is_active) as live from app.projects p where p.id = $1`,
        [project.id],
      )
      expect(left).toEqual({ name: patched?.status === 200 ? 'late' : 'test', live: 0 })
    }
  })

  test('a key or a change that waited for the deletion is 404, and makes nothing', async () => {
    const project = await harness.project()
    const { cluster, database } = services.control
    const deletion = await connectAdmin(cluster, database, false)
    await deletion.query(`begin; select from app.projects where id = '${project.id}' for update;
      update app.projects set deleted_at = now() where id = '${project.id}'`)
    const requests = Promise.all([
      project.admin.post('/api-keys', { key_type: 'client', environment: 'production' }),
      project.admin.patch('', { name: 'late' }),
    ])
    const waiting = () =>
      deletion.query(`select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`, [database])
    await expect.poll(async () => (await waiting()).rowCount).toBe(2)
    await deletion.query('commit')
    await deletion.end()
    const answers = await requests
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    expect(await harness.control('select from app.api_keys where project_id = $1', [project.id])).toHaveLength(2)
  })
})
