import { dataOf, type Place } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'
import { job } from '#workers/task.ts'

type Operation = {
  readonly operation_id: string
  readonly project_id: string
  readonly total: number | null
  readonly input: {
    readonly webhook_id: string
    readonly statuses: readonly string[]
    readonly since: string | null
    readonly until: string | null
    readonly as_of: string
  }
}

const batchSize = 500

const ask = async <T>(services: Services, name: string, args: Record<string, unknown>) =>
  dataOf<T>(await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args))

/** How many deliveries of the range are left after these were queued again, or null when the subscription is gone. */
const queueBatch = async (services: Services, place: Place, { project_id, input }: Operation, batch: number) => {
  const claims = { caller: 'worker', projectId: project_id }
  const args = { ...input, batch }
  const settings = { background: true }
  const reply = await services.database.call(place, 'app_worker', claims, 'webhook_replay_batch', args, settings)
  if (reply.dueAt) services.waker.wake(project_id, reply.dueAt)
  return dataOf<{ remaining: number } | null>(reply)
}

/** Queues the deliveries of a range again. A worker that dies is followed by another, which goes on with what is left. */
export const webhooksReplay = job('webhooks__replay', async (services, { operation_id }) => {
  const operation = await ask<Operation | null>(services, 'operation_begin', { operation_id })
  if (!operation) return
  const end = (args: Record<string, unknown>) => ask<boolean>(services, 'operation_end', { operation_id, ...args })
  const gone = () => end({ failed_reason: 'The subscription was deleted.' })
  const place = await services.fleet.placeOf(operation.project_id)
  if (!place) return void (await gone())

  const counted = await queueBatch(services, place, operation, 0)
  if (!counted) return void (await gone())
  const total = operation.total ?? counted.remaining
  for (let remaining = counted.remaining; ; ) {
    if (services.stopping.asked.aborted) throw new Stopped()
    const goesOn = await ask<boolean>(services, 'operation_progress', { operation_id, done: total - remaining, total })
    if (!goesOn) return
    if (remaining === 0) break
    const after = await queueBatch(services, place, operation, batchSize)
    if (!after) return void (await gone())
    remaining = after.remaining
  }
  await end({ result: { replayed: total } })
})
