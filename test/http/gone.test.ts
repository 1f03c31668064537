import { describe, expect, test, vi } from 'vitest'
import { fleetStatus, readyTenants } from '#fleet/rollout.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { define } from '#test/support/collection_rows.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'
import { loadTasks } from '#workers/task.ts'

/** A project's database that is not there any more: dropped by hand, or lost with its disk. */
const harness = await startHarness()
const { services } = harness.running
const { fleet, control } = services

const onServer = async (statement: string) => {
  const admin = await connectAdmin(control.cluster, 'postgres', false)
  await admin.query(statement).finally(() => admin.end())
}
const drop = ({ database }: Project) => onServer(`drop database "${database}" with (force)`)
const status = async ({ admin }: Project) => (await admin.get('/provisioning-status')).data
const stored = async ({ id }: Project) =>
  (await harness.control('select status from app.tenants where project_id = $1', [id]))[0].status
const health = () => harness.anyone.get('//health')
const gone = { status: 'failed', completed_at: null, error: { code: 'DATABASE_GONE', message: expect.any(String) } }

describe('a database that is gone', () => {
  test('is never called ready, is named, and is made anew, empty, when that is asked for', async () => {
    const project = await harness.project()
    const user = await project.user()
    expect((await user.get('/client/users/me')).status).toBe(200)
    const second = await startSecond(harness)
    const there = second.as(user.headers)
    expect((await there.get('/client/users/me')).status).toBe(200)
    await drop(project)

    const emittedEvents = await status(project)
    expect(emittedEvents).toMatchObject(gone)
    expect(emittedEvents.steps.map((step: { status: string }) => step.status)).toEqual([
      'failed',
      ...Array.from({ length: 4 }, () => 'pending'),
    ])
    expect(await user.get('/client/users/me')).toMatchObject({ status: 503, error: { code: 'TENANT_UNAVAILABLE' } })
    const read = await project.admin.get('')
    expect([read.status, read.text.includes('ready')]).toEqual([200, false])
    expect(await health()).toMatchObject({
      status: 200,
      data: {
        status: 'degraded',
        parts: { database: 'ok', template: 'ok', tenants: 'failing' },
        gone: { count: 1, projects: [project.id] },
      },
    })
    const { tenants } = await fleetStatus(control.cluster, harness.prefix, fleet.programs, services.secrets)
    expect(tenants).toMatchObject({
      ready: 0,
      not_made: 0,
      gone: [{ project_id: project.id, database: project.database }],
    })

    const answers = await Promise.all(Array.from({ length: 6 }, () => project.admin.post('/reprovision')))
    expect(answers.filter((answer) => answer.status === 202).map(({ data }) => data)).toEqual([
      { provisioning_status: 'provisioning', workflow_id: `provision-${project.id}`, attempt: 2, data_lost: true },
    ])
    expect(answers.filter(({ error }) => error?.code === 'ALREADY_RUNNING')).toHaveLength(5)
    await fleet.provision(project.id)

    const ready = await status(project)
    expect(ready).toMatchObject({ status: 'ready', attempt: 2, error: null })
    expect(ready.data_lost_at).toBe(ready.started_at)
    expect((await health()).data).toMatchObject({ status: 'ok', parts: { tenants: 'ok' } })
    expect((await health()).data.gone).toBeUndefined()
    expect((await project.admin.post('/reprovision')).error?.code).toBe('ALREADY_PROVISIONED')

    // the former users are gone, in servers that remember them too; the keys are valid
    for (const client of [user, there])
      await expect.poll(async () => (await client.get('/client/users/me')).status).toBe(401)
    const next = await project.user()
    expect((await next.post('/client/events', { event_name: 'first' })).status).toBe(201)
    expect((await project.admin.get('/users')).body.total).toBe(1)
    const [trail] = await harness.control(
      `select changes from app.audit_events where action = 'projects.reprovision' and target_id = $1`,
      [project.id],
    )
    expect(trail.changes).toEqual({ attempt: [1, 2], data_lost: [false, true] })
  })

  test('reprovision finds out by itself', async () => {
    const project = await harness.project()
    await drop(project)
    expect(await stored(project)).toBe('ready')
    expect((await project.admin.post('/reprovision')).data).toMatchObject({ attempt: 2, data_lost: true })
    await fleet.provision(project.id)
    expect((await project.user()).id).toEqual(expect.any(String))
  })

  test('statements of its collections are forgotten: one of the same name and version is another', async () => {
    const project = await harness.project()
    const insert = async (column: { name: string; type: string }, row: object) => {
      const path = await define(project, { name: 'notes', columns: [column] })
      const user = await project.user()
      expect((await user.post(path, row)).status).toBe(201)
      return (await user.get(path)).data
    }
    expect(await insert({ name: 'word', type: 'text' }, { word: 'a' })).toMatchObject([{ word: 'a' }])
    await drop(project)
    await project.admin.post('/reprovision')
    await fleet.provision(project.id)
    expect(await insert({ name: 'word', type: 'integer' }, { word: 7 })).toMatchObject([{ word: 7 }])
  })

  test('a call finds out', async () => {
    const project = await harness.project()
    const user = await project.user()
    await drop(project)
    expect((await user.get('/client/users/me')).error?.code).toBe('TENANT_UNAVAILABLE')
    await vi.waitFor(async () => expect(await stored(project)).toBe('failed'), { timeout: 10_000 })
  })

  test('the sweep finds out, and queues no work for it; restored, it is ready again with what it had', async () => {
    const project = await harness.project()
    const user = await project.user()
    const { jobs } = await loadTasks()
    const sweep = () => jobs.find(({ name }) => name === 'fleet__sweep')?.run(services, {})
    // a database with connections cannot be renamed
    await services.database.pools.forget(`${control.cluster.id}/${project.database}`)
    await onServer(`alter database "${project.database}" rename to "${project.database}_away"`)
    await sweep()
    expect(await stored(project)).toBe('failed')
    await onServer(`alter database "${project.database}_away" rename to "${project.database}"`)
    expect((await project.admin.post('/reprovision')).error?.code).toBe('ALREADY_PROVISIONED')
    expect(await status(project)).toMatchObject({ status: 'ready', attempt: 1, error: null })
    // the backup may be older than the program
    const behind = await readyTenants(control.cluster, harness.prefix, fleet.programs.tenant.contentHash)
    expect(behind).toMatchObject([{ projectId: project.id }])
    expect((await user.get('/client/users/me')).data.id).toBe(user.id)
  })

  test('is not one that takes no connections, nor one of a server that does not answer', async () => {
    const project = await harness.project()
    const user = await project.user()
    await onServer(`alter database "${project.database}" allow_connections false`)
    await onServer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${project.database}'`)
    expect((await user.get('/client/users/me')).error?.code).toBe('TENANT_UNAVAILABLE')
    await fleet.inspect()
    expect(await fleet.confirm(project.id)).toBe(false)
    expect((await status(project)).status).toBe('ready')
    expect((await project.admin.post('/reprovision')).error?.code).toBe('ALREADY_PROVISIONED')
    await onServer(`alter database "${project.database}" allow_connections true`)
    expect((await user.get('/client/users/me')).status).toBe(200)

    const away = services.secrets.encrypt('cluster dsn', 'postgres://nobody@127.0.0.1:1/postgres')
    const [{ id }] = await harness.control(
      `insert into app.clusters (name, is_open, dsn_sealed) values ('away', false, $1) returning id`,
      [away],
    )
    await harness.control('update app.tenants set cluster_id = $2 where project_id = $1', [project.id, id])
    await fleet.inspect()
    expect((await status(project)).status).toBe('ready')
    expect(await project.admin.post('/reprovision')).toMatchObject({
      status: 503,
      error: { code: 'TENANT_UNAVAILABLE' },
    })
    expect(await stored(project)).toBe('ready')
    const found = await fleetStatus(control.cluster, harness.prefix, fleet.programs, services.secrets)
    expect(found.clusters.find(({ name }) => name === 'away')?.error).toContain('ECONNREFUSED')
  })

  test('nor one that refuses its login, which is an outage and no defect of the program', async () => {
    const project = await harness.project()
    const user = await project.user()
    await onServer(`revoke connect on database "${project.database}" from login_app_user`)
    await onServer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${project.database}'`)
    expect((await user.get('/client/users/me')).error?.code).toBe('TENANT_UNAVAILABLE')
    expect(await fleet.confirm(project.id)).toBe(false)
    await fleet.inspect()
    expect((await user.get('/client/users/me')).status).toBe(200)
  })

  test('of an attempt that has ended since is not taken for the present one', async () => {
    const project = await harness.project()
    const seen = (attempt: number, is_there: boolean) =>
      services.database
        .call(control, 'control_worker', { caller: 'worker' }, 'tenant_seen', {
          project_id: project.id,
          attempt,
          is_there,
        })
        .then(({ body }) => JSON.parse(body).data)
    expect(await seen(0, false)).toBe(false)
    expect(await seen(2, false)).toBe(false)
    expect(await seen(1, true)).toBe(false)
    expect(await seen(1, false)).toBe(true)
    expect(await seen(1, false)).toBe(false)
    await harness.control('update app.projects set deleted_at = now() where id = $1', [project.id])
    expect(await seen(1, true)).toBe(false)
  })
})
