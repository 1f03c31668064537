import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { createProjectFiles, type FileLocation } from '#server/providers/project_files.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { loadTasks } from '#workers/task.ts'

/** What is stored where, and whether it can be reached. */
const store = { stored: new Map<string, string[]>(), purged: [] as string[], isDown: false }
const harness = await startHarness({
  env: { LOG_LEVEL: 'silent' },
  providers: {
    files: {
      locations: async (projectId) => (store.stored.has(projectId) ? [{ kind: 'media', path: projectId }] : []),
      async purge(_projectId, { path }) {
        store.purged.push(path)
        if (store.isDown) throw new Error('no route to host')
        store.stored.delete(path)
      },
    },
  },
})
const { services } = harness.running
const { fleet } = services
beforeEach(() => {
  Object.assign(store, { stored: new Map(), purged: [], isDown: false })
  harness.setTime(null)
})

const remove = async (project: Project) => {
  const answer = await project.developer.delete(`/admin/projects/${project.id}`)
  expect(answer.status, answer.text).toBe(200)
}
const databases = async (project: Project) =>
  (await harness.control('select from pg_database where datname = $1', [project.database])).length
const left = async (project: Project) => {
  const [row] = await harness.control(
    `select (select count(*) from app.projects where id = $1)::int as projects, (select count(*) from app.tenants where project_id = $1)::int as tenants,
            (select count(*) from app.api_keys where project_id = $1)::int as keys,
            (select count(*) from app.project_signing_keys where project_id = $1)::int as signing_keys`,
    [project.id],
  )
  return row
}
const nothing = { projects: 0, tenants: 0, keys: 0, signing_keys: 0 }
const everything = { projects: 1, tenants: 1, keys: 2, signing_keys: 1 }
const task = async (name: string, payload: Record<string, string> = {}) => {
  const { jobs } = await loadTasks()
  await jobs.find((job) => job.name === name)?.run(services, payload)
}
const queued = async (key: string) =>
  (await harness.control('select from graphile_worker.jobs where key = $1', [key])).length
/** As the superuser, in no database of ours. */
const asAdmin = async (sql: string) => {
  const { cluster } = services.control
  const client = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    return (await client.query(sql)).rowCount
  } finally {
    await client.end()
  }
}

describe('the database of a deleted project', () => {
  test('goes with the job, and all that control knew of it; others stay', async () => {
    const [project, other] = [await harness.project(), await harness.project()]
    await remove(project)
    expect(await databases(project)).toBe(1)
    await task('tenant__remove', { project_id: project.id })
    expect(await databases(project)).toBe(0)
    expect(await left(project)).toEqual(nothing)
    expect(await databases(other)).toBe(1)
    expect((await (await other.user()).get('/client/users/me')).status).toBe(200)
    // what its developer did to it is still known
    expect(
      await harness.control(`select from app.audit_events where scope = $1 and action = 'projects.delete'`, [
        project.id,
      ]),
    ).toHaveLength(1)
  })

  test('goes though somebody is connected to it', async () => {
    const project = await harness.project()
    const user = await project.user()
    await remove(project)
    const reading = project.sql('select pg_sleep(30)').catch((error: { code: string }) => error.code)
    const reads = () =>
      asAdmin(
        `select from pg_stat_activity where datname = '${project.database}' and state = 'active' and query ~ 'pg_sleep'`,
      )
    await expect.poll(reads).toBe(1)
    await task('tenant__remove', { project_id: project.id })
    expect(await reading).toBe('57P01')
    expect((await user.get('/client/users/me')).status).toBe(401)
    expect(await left(project)).toEqual(nothing)
  })

  test('that cannot be dropped fails the job, which is queued again and goes on when it can', async () => {
    const project = await harness.project()
    await remove(project)
    await asAdmin(`alter database "${project.database}" is_template true`)
    await expect(task('tenant__remove', { project_id: project.id })).rejects.toThrow(/template/)
    expect([await databases(project), await left(project)]).toEqual([1, everything])
    await asAdmin(`alter database "${project.database}" is_template false`)
    await task('tenant__remove', { project_id: project.id })
    expect([await databases(project), await left(project)]).toEqual([0, nothing])
  })

  test.each(['tenants', 'projects'])('is gone and the end fails at %s: the job goes on there', async (table) => {
    const project = await harness.project()
    await remove(project)
    await harness.control(`
      create function app.test_break() returns trigger language plpgsql as 'begin raise exception ''broken off''; end';
      create trigger test_break before delete on app.${table} for each row execute function app.test_break()`)
    await expect(task('tenant__remove', { project_id: project.id })).rejects.toThrow()
    expect([await databases(project), await left(project)]).toEqual([0, everything])
    await harness.control('drop function app.test_break() cascade')
    await task('tenant__remove', { project_id: project.id })
    expect(await left(project)).toEqual(nothing)
  })

  test('may be removed twice at once, and again when nothing is left', async () => {
    const project = await harness.project()
    await remove(project)
    await project.sql('select 1')
    // as if a worker had died between the database and the rows
    await asAdmin(`drop database "${project.database}" with (force)`)
    await Promise.all([fleet.remove(project.id), fleet.remove(project.id)])
    await fleet.remove(project.id)
    expect(await left(project)).toEqual(nothing)
  })

  test('is not touched while the project lives, whatever job is queued for it', async () => {
    const project = await harness.project()
    await task('tenant__remove', { project_id: project.id })
    expect([await databases(project), await left(project)]).toEqual([1, everything])
  })

  test('is removed by the sweep when the job is lost', async () => {
    const project = await harness.project()
    await remove(project)
    await harness.control(`select graphile_worker.remove_job('remove ' || $1)`, [project.id])
    await task('fleet__sweep')
    expect(await queued(`remove ${project.id}`)).toBe(0)
    await harness.control(`update app.projects set deleted_at = now() - interval '2 minutes' where id = $1`, [
      project.id,
    ])
    await task('fleet__sweep')
    expect(await queued(`remove ${project.id}`)).toBe(1)
  })

  const named = (id: string) => `${harness.prefix}_${id.replaceAll('-', '')}`
  const exists = async (id: string) =>
    (await harness.control('select from pg_database where datname = $1', [named(id)])).length === 1

  test('is not made by a job which had stalled and comes after the deletion', async () => {
    const developer = await harness.developer()
    const { id } = (await developer.post('/admin/projects', { name: 'x' })).data.project
    // the project is deleted while its first step runs
    await harness.control(`
      create function app.test_delete() returns trigger language plpgsql security definer as
        'begin update app.projects set deleted_at = now() where id = new.project_id; return null; end';
      create trigger test_delete after update of steps on app.tenants for each row when (new.project_id = '${id}') execute function app.test_delete()`)
    await fleet.provision(id)
    await harness.control('drop function app.test_delete() cascade')
    expect(await exists(id)).toBe(false)
  })

  test('that is being made when its project goes is waited for, though the worker that makes it is dead', async () => {
    const developer = await harness.developer()
    const { id } = (await developer.post('/admin/projects', { name: 'x' })).data.project
    await harness.control(`update app.tenants set moved_at = now() - interval '6 minutes' where project_id = $1`, [id])
    expect((await developer.delete(`/admin/projects/${id}`)).status).toBe(200)
    // the backend of the dead worker's connection, which still copies the template
    const { cluster } = services.control
    const dead = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    await dead.query('select pg_advisory_lock(73054411, hashtext($1))', [named(id)])
    const removal = task('tenant__remove', { project_id: id })
    const waits = () =>
      dead.query(
        `select from pg_locks where locktype = 'advisory' and classid = 73054411 and objid = (hashtext($1)::bigint & 4294967295)::oid and not granted`,
        [named(id)],
      )
    await expect.poll(async () => (await waits()).rowCount).toBe(1)
    await dead.query(`create database "${named(id)}" template template0`)
    await dead.end()
    await removal
    expect(await exists(id)).toBe(false)
    expect(await harness.control('select from app.projects where id = $1', [id])).toEqual([])
  })

  test('that is made while its project goes is removed, whichever of the two is first', async () => {
    for (let n = 0; n < 4; n += 1) {
      const developer = await harness.developer()
      const { id } = (await developer.post('/admin/projects', { name: 'x' })).data.project
      await harness.control(`update app.tenants set moved_at = now() - interval '6 minutes' where project_id = $1`, [
        id,
      ])
      expect((await developer.delete(`/admin/projects/${id}`)).status).toBe(200)
      const both = [() => fleet.provision(id), () => task('tenant__remove', { project_id: id })]
      if (n % 2) both.reverse()
      await Promise.all(both.map((work) => work()))
      expect([await exists(id), await harness.control('select from app.projects where id = $1', [id])]).toEqual([
        false,
        [],
      ])
    }
  })

  test('work that was started for the project is not begun any more', async () => {
    const project = await harness.project()
    const [{ id }] = await harness.control(
      `select internal.operation_start($1, 'test', 'test__work') as id from set_config('app.developer_id', $2, true)`,
      [project.id, project.developer.id],
    )
    await remove(project)
    const { body } = await services.database.call(
      services.control,
      'control_worker',
      { caller: 'worker' },
      'operation_begin',
      { operation_id: id },
    )
    expect(JSON.parse(body).data).toBeNull()
  })
})

describe('the files of a deleted project', () => {
  const deleted = async () => {
    const project = await harness.project()
    store.stored.set(project.id, ['a', 'b'])
    harness.setTime(new Date(Math.ceil(Date.now() / 1000) * 1000))
    await remove(project)
    return project
  }
  const row = async (project: Project) =>
    (await harness.control('select * from app.file_purges where project_id = $1', [project.id]))[0]
  const minutesToGo = async (project: Project) => ((await row(project)).due_at - harness.now().getTime()) / 60_000
  const purge = async (project: Project) => task('files__purge', { purge_id: (await row(project)).id })

  test('go, and each place is looked at once more six hours later: what came late goes as well', async () => {
    const project = await deleted()
    await purge(project)
    expect(store.stored.has(project.id)).toBe(false)
    expect(await minutesToGo(project)).toBe(360)
    // an upload that was under way
    store.stored.set(project.id, ['late'])
    await purge(project)
    expect(store.purged).toHaveLength(1)
    harness.advance(6 * 3600 - 1)
    await purge(project)
    expect(store.purged).toHaveLength(1)
    harness.advance(1)
    await purge(project)
    expect(store.purged).toHaveLength(2)
    expect(store.stored.has(project.id)).toBe(false)
    expect(await row(project)).toBeUndefined()
  })

  test('that cannot be reached are tried again with back-off, six hours apart at most, for as long as it takes', async () => {
    const project = await deleted()
    store.isDown = true
    const waits: number[] = []
    for (let n = 0; n < 30; n += 1) {
      await purge(project)
      waits.push(await minutesToGo(project))
      harness.setTime((await row(project)).due_at)
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, ...Array(21).fill(360)])
    expect(await row(project)).toMatchObject({ attempts: 30, purged_at: null, error: 'no route to host' })
    store.isDown = false
    await purge(project)
    expect(await row(project)).toMatchObject({ attempts: 0, error: null })
    expect(await minutesToGo(project)).toBe(360)
    // the look six hours later fails, and is tried again too
    harness.advance(6 * 3600)
    store.isDown = true
    await purge(project)
    expect(await minutesToGo(project)).toBe(1)
    harness.advance(60)
    store.isDown = false
    await purge(project)
    expect(await row(project)).toBeUndefined()
  })

  test('are purged though the database is long gone, and by the sweep when the job is lost', async () => {
    const project = await deleted()
    await task('tenant__remove', { project_id: project.id })
    expect(await left(project)).toEqual(nothing)
    const { id } = await row(project)
    const key = `purge ${id}`
    await harness.control('select graphile_worker.remove_job($1)', [key])
    await task('fleet__sweep')
    expect(await queued(key)).toBe(1)
    await purge(project)
    await harness.control('select graphile_worker.remove_job($1)', [key])
    await task('fleet__sweep')
    expect(await queued(key)).toBe(0)
    harness.advance(6 * 3600)
    await task('fleet__sweep')
    expect(await queued(key)).toBe(1)
    await purge(project)
    expect(await row(project)).toBeUndefined()
  })

  test('are purged twice at once without harm, and a worker that dies in between leaves them due', async () => {
    const project = await deleted()
    const { id } = await row(project)
    await Promise.all([1, 2, 3].map(() => task('files__purge', { purge_id: id })))
    // whoever was second does not take the look to come for done
    expect(await minutesToGo(project)).toBe(360)

    const other = await deleted()
    await harness.control(`
      create function app.test_break() returns trigger language plpgsql as 'begin raise exception ''killed''; end';
      create trigger test_break before update on app.file_purges for each row execute function app.test_break()`)
    await expect(purge(other)).rejects.toThrow()
    await harness.control('drop function app.test_break() cascade')
    expect((await row(other)).due_at.getTime()).toBeLessThanOrEqual(harness.now().getTime())
    await purge(other)
    expect(await minutesToGo(other)).toBe(360)
  })

  test('stay while the project lives', async () => {
    const project = await harness.project()
    store.stored.set(project.id, ['a'])
    await task('fleet__sweep_all')
    await task('fleet__maintain')
    const [{ id }] = await harness.control(
      `insert into app.file_purges (project_id, location) values ($1::uuid, json_build_object('kind', 'media', 'path', $1::uuid)) returning id`,
      [project.id],
    )
    await task('files__purge', { purge_id: id })
    expect(store.purged).toEqual([])
  })
})

describe('files on our own disk', () => {
  test('are a project folder under DATA_DIR/media, and nothing beside it is ever deleted', async () => {
    const { DATA_DIR } = services.config
    const media = join(DATA_DIR, 'media')
    const files = createProjectFiles(media)
    const [project, other] = ['0b0e7a52-0000-4000-8000-000000000001', '0b0e7a52-0000-4000-8000-000000000002']
    expect(await files.locations(project ?? '')).toEqual([])
    for (const id of [project, other]) {
      await mkdir(join(media, id ?? '', 'user', 'u1'), { recursive: true })
      await writeFile(join(media, id ?? '', 'user', 'u1', 'file.png'), 'x')
    }
    const [location] = await files.locations(project ?? '')
    expect(location).toEqual({ kind: 'media', path: project })
    await files.purge(project ?? '', location as FileLocation)
    await files.purge(project ?? '', location as FileLocation)
    expect(existsSync(join(media, project ?? ''))).toBe(false)
    expect(existsSync(join(media, other ?? '', 'user', 'u1', 'file.png'))).toBe(true)
    expect(await files.locations(project ?? '')).toEqual([])
    for (const path of ['', '.', '..', `../media/${other}`, `${other}/..`, '/', other ?? ''])
      await expect(files.purge(project ?? '', { kind: 'media', path })).rejects.toThrow(/not the folder/)
    await expect(files.purge('..', { kind: 'media', path: '..' })).rejects.toThrow(/not the folder/)
    expect(existsSync(join(media, other ?? ''))).toBe(true)
    // what stands in its way is an error, never "nothing stored"
    await writeFile(join(media, '0b0e7a52-0000-4000-8000-000000000003'), 'a file')
    await expect(files.locations('0b0e7a52-0000-4000-8000-000000000003')).rejects.toThrow(/ENOTDIR/)
  })
})

test('with workers running all of it goes by itself', { timeout: 180_000 }, async () => {
  const working = await startHarness({ work: true })
  const project = await working.project()
  const folder = join(working.running.services.config.DATA_DIR, 'media', project.id)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'a.png'), 'x')
  const { data } = await project.developer.delete(`/admin/projects/${project.id}`)
  expect(data).toEqual({ deleted: true, file_purge: { locations: 1 }, subscription: null })
  const isLeft = async () => {
    const rows = await working.control(
      `select from pg_database where datname = $1 union all select from app.projects where id = $2
       union all select from app.file_purges where project_id = $2 and purged_at is null`,
      [project.database, project.id],
    )
    return rows.length > 0 || existsSync(folder)
  }
  await expect.poll(isLeft, { timeout: 30_000 }).toBe(false)
  await working.stop()
})
