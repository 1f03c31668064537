import { afterEach } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

export type Leased = { id: string; task: string; key: string | null; payload: object; attempts: number; lease: number }

export const start = '2026-11-21T10:00:00.000Z'
/** The time so many seconds after the start. */
export const at = (seconds: number) => new Date(Date.parse(start) + seconds * 1000).toISOString()
export const keysOf = (leased: readonly Leased[]) => leased.map(({ key }) => key)

/** A project whose outbox is empty at the beginning of each test, under a clock that stands at the start, and what workers do with it. */
export const startOutbox = async () => {
  // tasks fail on purpose, and say so in the log
  const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
  const project = await harness.project()
  harness.setTime(start)

  afterEach(async () => {
    harness.setTime(start)
    await project.sql('delete from app.outbox')
  })

  const enqueue = (task: string, key: string | null, more: { payload?: object; due?: string; lane?: string } = {}) =>
    project.sql(`select internal.enqueue($1, $2, $3, $4, $5) from set_config('app.clock', $6, true)`, [
      task,
      key,
      JSON.stringify(more.payload ?? {}),
      more.due ?? null,
      more.lane ?? null,
      harness.now().toISOString(),
    ])
  /** Calls a function as a worker does, and answers its data. */
  const worker = async <T>(call: string, values: unknown[] = []): Promise<T> =>
    (
      await project.as(
        'app_worker',
        { 'app.clock': harness.now().toISOString() },
        `select r.body from api.${call} r`,
        values,
      )
    )[0].body.data
  const settle = (row: Leased, more: { due?: string; error?: string; gaveUp?: boolean } = {}) =>
    worker('outbox_finish($1, $2, $3, $4, $5)', [
      row.id,
      row.lease,
      more.due ?? null,
      more.error ?? null,
      more.gaveUp ?? false,
    ])
  return {
    harness,
    project,
    services: harness.running.services,
    enqueue,
    worker,
    settle,
    lease: (batch = 10, laneLimit = 10) => worker<Leased[]>('outbox_lease($1, 30, $2)', [batch, laneLimit]),
    next: async () => (await worker<{ due_at: string | null }>('outbox_next()')).due_at,
    rows: () => project.sql('select * from app.outbox order by task, key'),
  }
}
