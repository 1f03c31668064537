import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { runOperation } from '#workers/operation.ts'
import { loadTasks } from '#workers/task.ts'

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
const cancel = (id: string, of = project) => of.admin.post(`/operations/${id}/cancel`)
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

test('one whose turn is over leaves its slot to others, and goes on where it was', async () => {
  const id = await start()
  const seen: number[] = []
  const turn = () =>
    runOperation(
      harness.running.services,
      id,
      async ({ done, call, progress }) => {
        for (let at = done; at < 3; at += 1) {
          await call('achievements_users_total', {})
          seen.push(at)
          if (!(await progress(at + 1, 3))) return null
        }
        return { counted: 3 }
      },
      { turnMs: -1 },
    )
  // behind whatever waits, and no longer before the chores
  const again = { again: { operation_id: id }, priority: 0 }
  expect(await turn()).toEqual(again)
  expect((await poll(id)).data).toMatchObject({ status: 'running', progress: { done: 1, total: 3 } })
  expect(await turn()).toEqual(again)
  expect(await turn()).toBeNull()
  expect(seen).toEqual([0, 1, 2])
  expect((await poll(id)).data).toMatchObject({ status: 'succeeded', result: { counted: 3 } })
})

test("a worker that takes over a dead one's operation gets it again", async () => {
  const id = await start()
  await asWorker('operation_begin', { operation_id: id })
  expect(await asWorker('operation_begin', { operation_id: id })).toMatchObject({ operation_id: id })
})

test('one whose job has failed as often as it may is ended by the sweep, whether it had begun or not', async () => {
  const [begun, queued, young] = [await start(), await start(), await start()]
  await asWorker('operation_begin', { operation_id: begun })
  const fail = (id: string, attempts: number) =>
    harness.control(
      `update graphile_worker._private_jobs set attempts = $2, run_at = now() + interval '1 hour' where key = 'operation ' || $1`,
      [id, attempts],
    )
  await fail(begun, 25)
  await fail(queued, 25)
  await fail(young, 24)
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === 'fleet__sweep')?.run(harness.running.services, {})
  for (const id of [begun, queued])
    expect((await poll(id)).data).toMatchObject({ status: 'failed', failed_reason: expect.stringMatching(/each time/) })
  expect((await poll(young)).data.status).toBe('queued')
  expect(
    await harness.control(`select key from graphile_worker.jobs where key = any ($1)`, [
      [begun, queued, young].map((id) => `operation ${id}`),
    ]),
  ).toEqual([{ key: `operation ${young}` }])
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

describe('cancelling', () => {
  const setStatus = (id: string, status: string) =>
    harness.control('update app.operations set status = $2 where id = $1', [id, status])

  test.each(['queued', 'waiting'])('takes back what is %s, and its job finds nothing to do', async (status) => {
    const id = await start()
    await setStatus(id, status)
    const answer = await cancel(id)
    expect([answer.status, answer.data]).toEqual([200, (await poll(id)).data])
    expect(answer.data).toMatchObject({ operation_id: id, status: 'cancelled', result: null, failed_reason: null })
    expect(await asWorker('operation_begin', { operation_id: id })).toBeNull()
    expect(await asWorker('operation_end', { operation_id: id, result: 1 })).toBe(false)
    const [row] = await harness.control(
      `select actor ->> 'id' as actor, changes from app.audit_events where action = 'operations.cancel' and target_id = $1`,
      [id],
    )
    expect(row).toEqual({ actor: project.developer.id, changes: { status: [status, 'cancelled'] } })
  })

  test.each(['running', 'succeeded', 'failed', 'cancelled'])('is refused when it is %s', async (status) => {
    const id = await start()
    await setStatus(id, status)
    const before = (await poll(id)).data
    expect(await cancel(id)).toMatchObject({
      status: 409,
      error: { code: 'OPERATION_NOT_CANCELLABLE', details: { status } },
    })
    expect((await poll(id)).data).toEqual(before)
  })

  test('of an unknown, a malformed or a foreign one is 404', async () => {
    const id = await start()
    for (const wrong of [randomUUID(), 'x'])
      expect(await cancel(wrong)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const other = await harness.project()
    expect(await cancel(id, other)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    // another project of the same developer is another project
    const twin = await harness.project({ developer: project.developer })
    expect(await cancel(id, twin)).toMatchObject({ status: 404 })
    expect((await poll(id)).data.status).toBe('queued')
  })

  test('and a worker that begins: one of the two has it, each time', async () => {
    const won = { cancel: 0, worker: 0 }
    for (let n = 0; n < 25; n += 1) {
      const id = await start()
      const both: (() => Promise<any>)[] = [() => cancel(id), () => asWorker('operation_begin', { operation_id: id })]
      if (n % 2) both.reverse()
      const results = await Promise.all(both.map((call) => call()))
      if (n % 2) results.reverse()
      const [answer, begun] = results
      expect(answer.status).toBe(begun ? 409 : 200)
      expect((await poll(id)).data.status).toBe(begun ? 'running' : 'cancelled')
      won[begun ? 'worker' : 'cancel'] += 1
    }
    expect(won.cancel + won.worker).toBe(25)
  })

  test('twenty times at once works once', async () => {
    const id = await start()
    const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(id)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
  })
})

describe('the list', () => {
  test('has what was started, newest first, in pages, by type and status', async () => {
    const own = await harness.project()
    const made: string[] = []
    for (const [n, type] of ['a.one', 'a.two', 'a.one', 'a.one'].entries()) {
      const [row] = await harness.control(
        `insert into app.operations (project_id, type, created_at, status) values ($1, $2, now() + make_interval(secs => $3), $4) returning id`,
        [own.id, type, n, n === 3 ? 'waiting' : 'queued'],
      )
      made.unshift(row.id)
    }
    await start()
    const list = async (query = '') => (await own.admin.get(`/operations?${query}`)).body
    const ids = (page: any) => page.data.map((row: any) => row.operation_id)
    const whole = await list()
    expect([ids(whole), whole.total, whole.offset, whole.limit]).toEqual([made, 4, 0, 50])
    expect(whole.data[1]).toEqual((await own.admin.get(`/operations/${made[1]}`)).data)
    const second = await list('limit=2&offset=1')
    expect([ids(second), second.total, second.offset, second.limit]).toEqual([made.slice(1, 3), 4, 1, 2])
    expect((await list('limit=900')).limit).toBe(200)
    const ones = await list('type=a.one')
    expect([ids(ones), ones.total]).toEqual([[made[0], made[1], made[3]], 3])
    expect(ids(await list('type=a.one&status=waiting'))).toEqual([made[0]])
    expect(await list('type=a')).toEqual({ data: [], total: 0, offset: 0, limit: 50 })
    expect(await list('status=failed')).toMatchObject({ data: [], total: 0 })
    // far beyond what Postgres counts in: nothing is there
    expect(await list('offset=999999999999999')).toMatchObject({ data: [], total: 4, offset: 2_000_000_000 })
  })

  test.each([
    ['limit=0', 'limit'],
    ['offset=-1', 'offset'],
    ['status=gone', 'status'],
    ['type=%00', 'type'],
    [`type=${'x'.repeat(201)}`, 'type'],
  ])('refuses %s', async (query, field) => {
    const answer = await project.admin.get(`/operations?${query}`)
    expect(answer).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT', details: { field } } })
  })
})

test('operations are kept 90 days', async () => {
  const [old, young] = [await start(), await start()]
  const age = (id: string, days: number) =>
    harness.control('update app.operations set created_at = now() - make_interval(days => $2) where id = $1', [
      id,
      days,
    ])
  await age(old, 91)
  await age(young, 89)
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === 'fleet__maintain')?.run(harness.running.services, {})
  expect((await poll(old)).status).toBe(404)
  expect((await poll(young)).status).toBe(200)
})
