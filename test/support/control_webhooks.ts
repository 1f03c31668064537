import { afterEach, expect } from 'vitest'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { answering, type Handler } from '#test/support/webhooks.ts'
import { loadTasks } from '#workers/task.ts'

export const path = '/admin/control-plane-webhooks'

/**
 * A real receiver that answers as `say` tells it, and a clock that stands still from `start` on. Between tests all webhooks of the control plane go, and the
 * time begins anew.
 */
export const startControlWebhooks = async (env: Record<string, string> = {}) => {
  const start = '2026-12-01T10:00:00.000Z'
  let handler: Handler = answering(200, {}, 'ok')
  const receiver = await startHttpsReceiver({ handler: (request, response) => handler(response, request) })
  const harness = await startHarness({
    env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile, ...env },
  })
  harness.setTime(start)

  afterEach(async () => {
    handler = answering(200, {}, 'ok')
    harness.setTime(start)
    await harness.control('delete from app.webhooks')
    await harness.control('delete from app.webhook_deliveries')
    await harness.control('delete from graphile_worker._private_jobs')
    receiver.requests.splice(0)
  })

  const watch = async (who: Client, fields: object = {}): Promise<Answer['data']> => {
    const { status, data, text } = await who.post(path, {
      event_types: ['*'],
      target_url: receiver.url,
      ...fields,
    })
    expect(status, text).toBe(201)
    return data
  }
  /** Takes the next job that is due by the clock of the test, as a worker does. */
  const take = async (): Promise<{ task: string; payload: Record<string, string> } | undefined> =>
    (
      await harness.control(
        `with next as (
           select j.id, t.identifier as task, j.payload
             from graphile_worker._private_jobs j
             join graphile_worker._private_tasks t on t.id = j.task_id
            where t.identifier like 'control_webhooks\\_\\_%' and j.run_at <= $1
            order by j.run_at, j.id limit 1
         ), gone as (delete from graphile_worker._private_jobs j using next n where j.id = n.id)
         select task, payload from next`,
        [harness.now()],
      )
    )[0]
  /** Runs what is due now, to the end. */
  const work = async () => {
    const { jobs } = await loadTasks()
    for (let next = await take(); next; next = await take()) {
      const found = jobs.find(({ name }) => name === next?.task)
      if (!found) throw new Error(`there is no job ${next.task}`)
      await found.run(harness.running.services, next.payload)
    }
  }
  const deliveries = () => harness.control('select * from app.webhook_deliveries order by created_at, id')
  return {
    start,
    receiver,
    harness,
    watch,
    work,
    deliveries,
    /** So that the next failure is the last of each series. */
    lastTry: () =>
      harness.control(
        `update app.webhook_deliveries set series_attempts = 8 where status = 'pending' and series_attempts < 8`,
      ),
    hookStatus: async (id: string): Promise<string> =>
      (await harness.control('select status from app.webhooks where id = $1', [id]))[0]?.status,
    /** Jobs that wait, by task and key, with the time at which they are due. */
    queued: (task: string) =>
      harness.control(
        `select j.key, j.run_at from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
          where t.identifier = $1 order by j.run_at`,
        [`control_${task}`],
      ),
    /** The bodies that the receiver has got, of these types or of all. */
    bodies: (...types: string[]): any[] =>
      receiver.requests
        .map(({ body }) => JSON.parse(String(body)))
        .filter(({ type }) => types.length === 0 || types.includes(type)),
    say(next: Handler) {
      handler = next
    },
  }
}
