import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const { database, control } = harness.running.services

const start = async (): Promise<string> => {
  const [row] = await harness.control(
    `select internal.operation_start($1, 'test.count', 'test__count', '{"a": 1}') as id
       from set_config('app.developer_id', $2, true)`,
    [project.id, project.developer.id],
  )
  return row.id
}
const asWorker = async (name: string, args: Record<string, unknown>) =>
  JSON.parse((await database.call(control, 'control_worker', { caller: 'worker' }, name, args)).body).data
const poll = (id: string) => project.admin.get(`/operations/${id}`)

test('queued, running with progress, succeeded with a result; its job came with it', async () => {
  const id = await start()
  expect((await poll(id)).data).toMatchObject({
    operation_id: id,
    type: 'test.count',
    status: 'queued',
    progress: null,
    confirm_required: false,
    result: null,
    failed_reason: null,
  })
  expect(await harness.control(`select from graphile_worker.jobs where key = 'operation ' || $1`, [id])).toHaveLength(1)
  expect(await asWorker('operation_begin', { operation_id: id })).toMatchObject({
    project_id: project.id,
    input: { a: 1 },
  })
  expect(await asWorker('operation_progress', { operation_id: id, done: 3, total: 10 })).toBe(true)
  expect((await poll(id)).data).toMatchObject({ status: 'running', progress: { done: 3, total: 10 } })
  expect(await asWorker('operation_end', { operation_id: id, result: { counted: 10 } })).toBe(true)
  expect((await poll(id)).data).toMatchObject({
    status: 'succeeded',
    progress: { done: 10, total: 10 },
    result: { counted: 10 },
  })
})

test('one that failed says why, and what is over does not move again', async () => {
  const id = await start()
  await asWorker('operation_begin', { operation_id: id })
  await asWorker('operation_end', { operation_id: id, failed_reason: 'There was nothing to count.' })
  expect((await poll(id)).data).toMatchObject({
    status: 'failed',
    failed_reason: 'There was nothing to count.',
    result: null,
  })
  expect(await asWorker('operation_begin', { operation_id: id })).toBeNull()
  expect(await asWorker('operation_progress', { operation_id: id, done: 1 })).toBe(false)
  expect(await asWorker('operation_end', { operation_id: id, result: 1 })).toBe(false)
})

test("a worker that takes over a dead one's operation gets it again", async () => {
  const id = await start()
  await asWorker('operation_begin', { operation_id: id })
  expect(await asWorker('operation_begin', { operation_id: id })).toMatchObject({ operation_id: id })
})

test('an unknown, a malformed and a foreign operation are 404; a stranger is refused before', async () => {
  const id = await start()
  for (const wrong of [randomUUID(), 'x', '1', `${id}x`]) {
    expect(await poll(wrong)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  }
  const other = await harness.project()
  expect(await other.admin.get(`/operations/${id}`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  const path = `/admin/projects/${project.id}/operations/${id}`
  expect(await other.developer.get(path)).toMatchObject({ status: 403, error: { code: 'PROJECT_FORBIDDEN' } })
  expect(await harness.anyone.get(path)).toMatchObject({ status: 401, error: { code: 'INVALID_DEVELOPER_TOKEN' } })
})

test('an operation cannot be started on a project of somebody else', async () => {
  const stranger = await harness.developer()
  await expect(
    harness.control(
      `select internal.operation_start($1, 'test.count', 'test__count') from set_config('app.developer_id', $2, true)`,
      [project.id, stranger.id],
    ),
  ).rejects.toThrow(/own projects only/)
})
