import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { prepare } from '#fleet/prepare.ts'
import { root } from '#server/root.ts'
import { assemble, type Running } from '#server/start.ts'
import { type Project, startHarness, type User } from '#test/support/harness.ts'
import { loadTasks } from '#workers/task.ts'

const harness = await startHarness()
const projects: Project[] = []
const users: User[] = []
let base: string
let next: Running | undefined

const count = 6
beforeAll(async () => {
  for (let n = 0; n < count; n += 1) {
    const project = await harness.project()
    projects.push(project)
    users.push(await project.user())
  }
  base = await mkdtemp(join(tmpdir(), 'trellis-fleet-'))
  for (const folder of ['sql', 'functions', 'policies', 'db'])
    await cp(join(root, folder), join(base, folder), { recursive: true })
  await writeFile(
    join(base, 'db/tenant/migrations/20991231000000_users.sql'),
    '-- migrate:up\nalter table app.users add column newest text;\n\n-- migrate:down\nalter table app.users drop column newest;\n',
  )
})
afterAll(async () => {
  await next?.stop()
  await rm(base, { recursive: true, force: true })
})

/** A server of the next version, on the same databases. */
const upgrade = async (): Promise<Running> => {
  const { services } = harness.running
  const foundation = {
    config: { ...services.config, PORT: 0 },
    log: services.log,
    secrets: services.secrets,
    postgres: {
      dsn: services.control.cluster.dsn,
      socketDirectory: services.control.cluster.socketDirectory ?? null,
      stop: async () => undefined,
    },
  }
  const prepared = await prepare(foundation, { sqlRoot: base })
  return assemble(foundation, prepared, { sqlRoot: base })
}

const me = (port: number, project: Project, user: User) =>
  fetch(`http://127.0.0.1:${port}/v1/client/users/me`, {
    headers: { 'x-api-key': project.clientKey, authorization: user.headers['authorization'] ?? '' },
  })

describe('a new version', () => {
  test('answers TENANT_MIGRATION_PENDING for areas that need it, and queues every tenant; one that fails holds up nobody', {
    timeout: 180_000,
  }, async () => {
    // on purpose: this tenant has the column already, so the migration fails there
    await projects[0]?.sql('alter table app.users add column newest text')
    next = await upgrade()
    const port = await next.listen()
    const pending = await me(port, projects[1]!, users[1]!)
    expect(pending.status).toBe(503)
    expect(pending.headers.get('retry-after')).toBe('5')
    expect(await pending.json()).toMatchObject({ error: { code: 'TENANT_MIGRATION_PENDING' } })

    // the version before goes on serving meanwhile
    expect((await users[1]!.get('/client/users/me')).status).toBe(200)

    await next.work(4)
    const { contentHash } = await readProgram('tenant', base)
    const rows = () =>
      harness.control('select project_id, content_hash, migration_status, migration_error from app.tenants')
    await expect
      .poll(async () => (await rows()).filter((row) => row.content_hash === contentHash).length, { timeout: 20_000 })
      .toBe(count - 1)
    await expect
      .poll(async () => (await rows()).find((row) => row.project_id === projects[0]?.id))
      .toMatchObject({
        migration_status: 'failed',
        content_hash: '',
        migration_error: expect.stringContaining('newest'),
      })
    for (let n = 1; n < count; n += 1) expect((await me(port, projects[n]!, users[n]!)).status).toBe(200)
    expect((await me(port, projects[0]!, users[0]!)).status).toBe(503)

    const { database, control } = next.services
    const status = await database.call(control, 'control_worker', {}, 'fleet_status', { content_hash: contentHash })
    expect(JSON.parse(status.body).data).toMatchObject({
      tenants: count,
      ready: count,
      current: count - 1,
      behind: 1,
      failed: [{ project_id: projects[0]?.id }],
    })

    // mended and tried again
    await projects[0]?.sql('alter table app.users drop column newest')
    await next.services.fleet.migrate(projects[0]?.id ?? '')
    expect((await me(port, projects[0]!, users[0]!)).status).toBe(200)
  })

  test('reloading functions and policies while requests run refuses none of them', { timeout: 180_000 }, async () => {
    const port = new URL(`http://127.0.0.1:${await listening()}`).port
    const statuses = new Map<number, number>()
    let running = true
    const callers = projects.slice(0, 3).map(async (project, n) => {
      while (running) {
        const { status } = await me(Number(port), project, users[n]!)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    })
    const file = join(base, 'policies/tenant/users.sql')
    const functions = join(base, 'functions/tenant/settings.sql')
    const reload = async (round: number) => {
      await writeFile(file, `${await readFile(file, 'utf8')}\n-- round ${round}\n`)
      await writeFile(functions, `${await readFile(functions, 'utf8')}\n-- round ${round}\n`)
      const program = await readProgram('tenant', base)
      await Promise.all(
        projects.map((project) => migrateDatabase(harness.running.services.control.cluster, project.database, program)),
      )
    }
    try {
      for (let round = 0; round < 3; round += 1) await reload(round)
    } finally {
      running = false
      await Promise.all(callers)
    }
    expect(Object.fromEntries(statuses)).toEqual({ 200: expect.any(Number) })
    expect(statuses.get(200)).toBeGreaterThan(20)
  })
})

const listening = async () => next?.services.publicUrl.split(':').at(-1)

describe('what a crash loses is found again', () => {
  test('a wake-up that was lost between commit and the queue is found by the sweep', { timeout: 180_000 }, async () => {
    const project = projects[2]!
    await project.sql(`insert into app.outbox (task) values ('no_such_task')`)
    const { jobs } = await loadTasks()
    // the schedule's own sweep may have looked a moment ago
    await harness.control(`update app.tenants set last_written_at = now(), swept_at = null where project_id = $1`, [
      project.id,
    ])
    await jobs.find(({ name }) => name === 'fleet__sweep')?.run(next!.services, {})
    await next!.services.waker.flush()
    await expect
      .poll(async () => (await project.sql('select attempts, last_error from app.outbox'))[0])
      .toMatchObject({ attempts: 1, last_error: expect.stringContaining('no task') })
  })

  test('a provisioning that nobody works on is queued again', { timeout: 180_000 }, async () => {
    const owning = await harness.developer()
    const made = await owning.post('/admin/projects', { name: 'lost' })
    const { id } = made.data.project
    await harness.control(`select graphile_worker.remove_job('provision ' || $1)`, [id])
    await harness.control(
      `update app.tenants set moved_at = now() - interval '2 minutes' where project_id = $1 and status = 'provisioning'`,
      [id],
    )
    const { jobs } = await loadTasks()
    await jobs.find(({ name }) => name === 'fleet__sweep')?.run(next!.services, {})
    await expect
      .poll(async () => (await owning.get(`/admin/projects/${id}/provisioning-status`)).data.status, {
        timeout: 10_000,
      })
      .toBe('ready')
  })

  test("a dead worker's jobs are freed, though the queue would hold them for four hours", {
    timeout: 180_000,
  }, async () => {
    await harness.control(
      `insert into app.workers (id, heartbeat_at) values ('dead', clock_timestamp() - interval '1 minute')`,
    )
    await harness.control(
      `select graphile_worker.add_job('tenant__drain', json_build_object('project_id', $1::text), job_key := 'held', run_at := now() + interval '1 hour')`,
      [projects[3]!.id],
    )
    await harness.control(
      `update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), run_at = now() where key = 'held'`,
    )
    await expect
      .poll(
        async () => (await harness.control(`select from graphile_worker._private_jobs where key = 'held'`)).length,
        { timeout: 20_000 },
      )
      .toBe(0)
    expect(await harness.control(`select from app.workers where id = 'dead'`)).toEqual([])
  })
})
