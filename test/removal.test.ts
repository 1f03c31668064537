import { expect, test } from 'vitest'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { loadTasks } from '#workers/task.ts'

const harness = await startHarness()
const { fleet, notifier } = harness.running.services

const deleteProject = async (project: Project) => {
  await harness.control(`select internal.remove_project($1) from set_config('app.developer_id', $2, true)`, [
    project.id,
    project.developer.id,
  ])
  await notifier.publish([`project:${project.id}`])
}
const databases = async (project: Project) =>
  (await harness.control('select from pg_database where datname = $1', [project.database])).length
const left = (project: Project) =>
  harness.control(
    `select (select count(*) from app.projects where id = $1)::int as projects, (select count(*) from app.tenants where project_id = $1)::int as tenants,
            (select count(*) from app.api_keys where project_id = $1)::int as keys`,
    [project.id],
  )

test('from its deletion on nothing reaches a project; its database goes with the job', async () => {
  const [project, other] = [await harness.project(), await harness.project()]
  const user = await project.user()
  expect((await user.get('/client/users/me')).status).toBe(200)
  await deleteProject(project)
  expect(await user.get('/client/users/me')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
  expect(await project.server.post('/client/events', { event_name: 'x' })).toMatchObject({ status: 401 })
  expect(await project.admin.get('')).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  expect((await project.developer.get('/admin/projects')).data).toEqual([])
  expect(
    await harness.control(`select from graphile_worker.jobs where key = 'remove ' || $1`, [project.id]),
  ).toHaveLength(1)

  await fleet.remove(project.id)
  expect(await databases(project)).toBe(0)
  expect(await left(project)).toEqual([{ projects: 0, tenants: 0, keys: 0 }])
  expect(await databases(other)).toBe(1)
  expect((await (await other.user()).get('/client/users/me')).status).toBe(200)
})

test('it may be broken off after any step and run again, also twice at once', async () => {
  const project = await harness.project()
  await deleteProject(project)
  const place = harness.running.services.control
  await project.sql('select 1')
  // as if a worker had died between the database and the rows
  const client = await connectAdmin(place.cluster, maintenanceDatabase(place.cluster), false)
  await client.query(`drop database "${project.database}" with (force)`)
  await client.end()
  await Promise.all([fleet.remove(project.id), fleet.remove(project.id)])
  await fleet.remove(project.id)
  expect(await left(project)).toEqual([{ projects: 0, tenants: 0, keys: 0 }])
})

test('what lives is never removed, whatever job is queued for it', async () => {
  const project = await harness.project()
  await fleet.remove(project.id)
  expect(await databases(project)).toBe(1)
  expect(await left(project)).toEqual([{ projects: 1, tenants: 1, keys: 2 }])
  await expect(
    harness.control(`select internal.remove_project($1) from set_config('app.developer_id', $2, true)`, [
      project.id,
      (await harness.developer()).id,
    ]),
  ).rejects.toThrow(/by its owner/)
})

test('a deletion that nobody works on is queued again by the sweep', async () => {
  const project = await harness.project()
  await deleteProject(project)
  await harness.control(`select graphile_worker.remove_job('remove ' || $1)`, [project.id])
  await harness.control(`update app.projects set deleted_at = now() - interval '2 minutes' where id = $1`, [project.id])
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === 'fleet__sweep')?.run(harness.running.services, {})
  expect(
    await harness.control(`select from graphile_worker.jobs where key = 'remove ' || $1`, [project.id]),
  ).toHaveLength(1)
})
