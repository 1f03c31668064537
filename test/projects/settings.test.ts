import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

test('a tenant knows its project from the start; what is not set is null', async () => {
  const [row] = await project.sql(`select internal.setting('project_id') as id, internal.setting('nothing') as nothing`)
  expect(row).toEqual({ id: project.id, nothing: null })
})

test('a setting is set, and set anew', async () => {
  for (const value of [{ a: 1 }, [1, null], false]) {
    await project.sql(`select internal.set_setting('test', $1)`, [JSON.stringify(value)])
    expect((await project.sql(`select internal.setting('test') as value`))[0].value).toEqual(value)
  }
  expect(await project.sql(`select from app.settings where key = 'test'`)).toHaveLength(1)
})

test('serving roles read settings by name; none of them writes', async () => {
  for (const role of ['app_anon', 'app_user', 'app_server', 'app_admin', 'app_auth', 'app_worker'] as const) {
    const [row] = await project.as(role, {}, `select internal.setting('project_id') as id`)
    expect(row.id).toBe(project.id)
    await expect(project.as(role, {}, `select internal.set_setting('a', '1')`)).rejects.toThrow(/permission denied/)
    await expect(project.as(role, {}, `update app.settings set value = '1'`)).rejects.toThrow(/permission denied/)
    if (role !== 'app_admin')
      await expect(project.as(role, {}, 'select from app.settings')).rejects.toThrow(/permission denied/)
  }
})
