import { describe, expect, test, vi } from 'vitest'
import { adminOf } from '#test/support/admin.ts'
import { startHarness } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { tenantDrain } from '#workers/tasks/tenant__drain.ts'

/** What operators do to projects: list them, pause them, bound their connections, look into what failed. */
vi.setConfig({ testTimeout: 120_000 })
let receives = 500
const receiver = await startHttpsReceiver({ handler: (_request, response) => response.writeHead(receives).end() })
const harness = await startHarness({
  env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile },
})
const { admin, ok, json } = await adminOf(harness)
const { services } = harness.running
const project = await harness.project()
const other = await harness.project()
const user = await project.user()

const edge = () => services.projectCache.byProject(project.id)
const pause = async (...rest: string[]) => {
  await ok('project', 'pause', project.id, ...rest)
  await expect.poll(async () => (await edge())?.hold, { timeout: 10_000 }).toBe('paused')
}
const unpause = async () => {
  await ok('project', 'unpause', project.id)
  await expect.poll(async () => (await edge())?.hold, { timeout: 10_000 }).toBe(null)
}

describe('lists', () => {
  test('of projects and developers, by text, as a table and as JSON', async () => {
    const all = await json('project', 'list')
    expect(all.map(({ id }: { id: string }) => id)).toEqual([other.id, project.id])
    expect(all[1]).toMatchObject({ status: 'ready', cluster: 'own', database: project.database, hold: null })
    expect(await json('project', 'list', project.id)).toHaveLength(1)
    expect(await json('project', 'list', '--limit', '1')).toHaveLength(1)
    expect(await ok('project', 'list', 'nobody has this name')).toBe('There are none.\n')
    expect(await ok('project', 'list', project.developer.email)).toContain(project.id)

    const [developer] = await json('developer', 'list', project.developer.email.toUpperCase())
    expect(developer).toMatchObject({ email: project.developer.email, projects: 1, provisioning: 'on' })
    expect(await ok('developer', 'list', project.developer.email)).toContain(developer.created_at)
  })
})

describe('a project that is paused', () => {
  test('is refused by name, for apps, users and administrators, and nothing else is', async () => {
    await pause('--note', 'unpaid')
    for (const answer of [
      await user.get('/client/users/me'),
      await project.onBehalfOf(user.id).get('/client/users/me'),
      await project.admin.get('/streaks'),
      await project.app.post('/client/auth/anonymous'),
    ]) {
      expectRefusal(answer, 503, 'TENANT_UNAVAILABLE', { reason: 'paused' })
      expect(answer.headers.get('retry-after')).toBe('60')
    }
    expect((await other.app.post('/client/auth/anonymous')).status).toBe(201)
    expect((await project.developer.get(`/admin/projects/${project.id}`)).status).toBe(200)
    const [listed] = await json('project', 'list', 'paused')
    expect(listed).toMatchObject({ id: project.id, hold: 'paused', hold_note: 'unpaid' })
    const [row] = await harness.control(
      `select changes from app.audit_events where target_id = $1 and action = 'projects.update' order by occurred_at desc limit 1`,
      [project.id],
    )
    expect(row.changes).toEqual({ hold: [null, 'paused'] })
    await unpause()
    expect((await user.get('/client/users/me')).status).toBe(200)
  })

  test('is left alone by workers, and its work goes on afterwards', async () => {
    await harness.control('delete from graphile_worker._private_jobs')
    await project.sql(`select internal.enqueue('webhooks__purge', 'held')`)
    const waiting = () => project.sql(`select attempts from app.outbox where key = 'held'`)
    await pause()
    await tenantDrain.run(services, { project_id: project.id })
    expect(await waiting()).toEqual([{ attempts: 0 }])
    await unpause()
    const jobs = await harness.control(`select key from graphile_worker.jobs where key = $1`, [`${project.id}:now`])
    expect(jobs).toHaveLength(1)
    await tenantDrain.run(services, { project_id: project.id })
    expect(await waiting()).not.toEqual([{ attempts: 0 }])
    await project.sql(`delete from app.outbox where key = 'held'`)
  })

  test('fails none of its operations: they wait for its return', async () => {
    await pause()
    const { runOperation } = await import('#workers/operation.ts')
    const [operation] = await harness.control(
      `insert into app.operations (project_id, type) values ($1, 'events.delete') returning id`,
      [project.id],
    )
    await expect(runOperation(services, operation.id, async () => null)).rejects.toMatchObject({
      status: 503,
      details: { reason: 'paused' },
    })
    await unpause()
    await runOperation(services, operation.id, async () => ({ done: true }))
    const [ended] = await harness.control('select status from app.operations where id = $1', [operation.id])
    expect(ended.status).toBe('succeeded')
  })

  test('cannot be paused while it moves, nor where there is none', async () => {
    await harness.control(`update app.tenants set hold = 'moving' where project_id = $1`, [project.id])
    expect(await admin(['project', 'pause', project.id])).toMatchObject({
      code: 1,
      err: expect.stringContaining('moving'),
    })
    services.projectCache.drop(`project:${project.id}`)
    const answer = await user.get('/client/users/me')
    expectRefusal(answer, 503, 'TENANT_UNAVAILABLE', { reason: 'moving' })
    expect(answer.headers.get('retry-after')).toBe('1')
    await harness.control('update app.tenants set hold = null where project_id = $1', [project.id])
    services.projectCache.drop(`project:${project.id}`)
    expect((await user.get('/client/users/me')).status).toBe(200)
    expect(await admin(['project', 'pause', '00000000-0000-4000-8000-000000000000'])).toMatchObject({ code: 1 })
  })
})

test('connections to a database are bounded, in running servers too', async () => {
  await ok('project', 'connections', project.id, '2')
  await expect.poll(async () => (await edge())?.place?.mostConnections, { timeout: 10_000 }).toBe(2)
  const most = async () => {
    const [row] = await harness.control(
      `select count(*)::int as count from pg_stat_activity where datname = $1 and application_name = 'trellis'`,
      [project.database],
    )
    return row.count
  }
  // those that were open before
  await services.database.pools.forget(`${services.control.cluster.id}/${project.database}`)
  const users = await Promise.all(Array.from({ length: 6 }, () => project.user()))
  const seen: number[] = []
  await Promise.all(
    users.map(async (one) => {
      expect((await one.get('/client/users/me')).status).toBe(200)
      seen.push(await most())
    }),
  )
  expect(Math.max(...seen)).toBeLessThanOrEqual(2)
  expect((await admin(['project', 'connections', project.id, '1'])).err).toContain('2 to 1000')
  expect(await ok('project', 'connections', project.id, 'default')).toContain('DATABASE_CONNECTIONS_PER_TENANT')
  await expect.poll(async () => (await edge())?.place?.mostConnections, { timeout: 10_000 }).toBe(undefined)
})

describe('work that was given up', () => {
  test('is shown with its error, and done when it is tried again', async () => {
    expect(await ok('failed', 'list', project.id)).toBe('Nothing was given up.\n')
    await project.sql(`select internal.enqueue('nobody__knows', 'a')`)
    await project.sql(
      `update app.outbox set attempts = 20, failed_at = now(), last_error = e'it\\nbroke' where key = 'a'`,
    )
    await project.admin.post('/webhooks', { event_name: 'paid', target_url: receiver.url })
    await user.post('/client/events', { event_name: 'paid' })
    await project.sql(`update app.webhook_deliveries set series_attempts = 8`)
    await project.drain()
    const found = await json('failed', 'list', project.id)
    expect(found.outbox).toMatchObject([{ task: 'nobody__knows', key: 'a', attempts: 20, error: 'it\nbroke' }])
    expect(found.deliveries).toMatchObject([{ event: 'paid', status: 'dlq', url: receiver.url }])
    const shown = await ok('failed', 'list', project.id)
    expect(shown).toContain('it broke')
    expect(shown).toContain(found.deliveries[0].id)

    expect(await json('failed', 'retry', project.id, found.deliveries[0].id)).toEqual({ outbox: 0, deliveries: 1 })
    receives = 200
    await project.drain()
    expect((await json('failed', 'list', project.id)).deliveries).toEqual([])
    expect(await json('failed', 'retry', project.id, 'all')).toEqual({ outbox: 1, deliveries: 0 })
    expect((await json('failed', 'list', project.id)).outbox).toEqual([])
    expect(await project.sql(`select attempts from app.outbox where key = 'a'`)).toEqual([{ attempts: 0 }])
    expect((await admin(['failed', 'retry', project.id, found.deliveries[0].id])).code).toBe(1)
    expect((await admin(['failed', 'retry', project.id])).err).toContain('Say which')
  })
})
