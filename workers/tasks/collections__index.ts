import { cancelStatement } from '#server/database/cancel.ts'
import type { Place } from '#server/database/cluster.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'
import { servedPlace } from '#workers/operation.ts'
import { type Job, job } from '#workers/task.ts'

type Operation = {
  operation_id: string
  project_id: string
  input: {
    collection: string
    definition: Record<string, unknown>
    developer_id: string
    actor: unknown
  }
}
type Begun = { id: string; index_name: string; sql: string[] }

const runIndex: Job['run'] = async (services, { operation_id }) => {
  const control = <T>(name: string, args: Record<string, unknown>) =>
    services.database
      .call(services.control, 'control_worker', { caller: 'worker' }, name, { operation_id, ...args })
      .then((reply) => dataOf<T>(reply))
  const operation = await control<Operation | null>('operation_begin', {})
  if (!operation) return
  const place = await servedPlace(services, operation.project_id)
  if (!place) return
  const end = async (begun: Begun | null, reason: string | null) => {
    if (begun) await notifyIndexEnd(services, place, operation.project_id, begun, reason === null)
    await control(
      'operation_end',
      reason === null
        ? { result: { collection: operation.input.collection, index: operation.input.definition } }
        : { failed_reason: reason },
    )
  }

  let begun: Begun
  try {
    begun = await begin(services, place, operation)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    await end(null, error.message)
    return
  }
  const reason = await build(place, begun, services.stopping.asked)
  await end(begun, reason)
}

const begin = async (
  services: Services,
  place: Place,
  { input, project_id, operation_id }: Operation,
): Promise<Begun> => {
  const claims = {
    caller: 'developer',
    developerId: input.developer_id,
    projectId: project_id,
    actor: JSON.stringify(input.actor),
  }
  const reply = await services.database.call(place, 'app_admin', claims, 'collection_index_begin', {
    name: input.collection,
    definition: input.definition,
    operation_id,
  })
  await services.notifier.publish(reply.changed)
  return dataOf<Begun>(reply)
}

/**
 * Builds the index and returns why it could not be built, or null. First drops the invalid index of a job that died. A stop cancels the
 * build and leaves its invalid index to the next run of the job: dropping it would wait for every running transaction.
 */
const build = async (place: Place, { index_name, sql }: Begun, asked: AbortSignal): Promise<string | null> => {
  const owner = await connectAdmin(place.cluster, place.database)
  const name = owner.escapeIdentifier(index_name)
  const drop = () => owner.query(`drop index concurrently if exists collections.${name}`)
  const cancel = () => void cancelStatement(owner)
  asked.addEventListener('abort', cancel)
  try {
    await owner.query(`set statement_timeout = 0`)
    const { rows } = await owner.query<{ indisvalid: boolean }>(
      `select i.indisvalid from pg_index i where i.indexrelid = to_regclass($1)`,
      [`collections.${name}`],
    )
    if (rows[0]?.indisvalid) return null
    if (rows[0]) await drop()
    for (const statement of sql) {
      if (asked.aborted) throw new Stopped()
      await owner.query(statement)
    }
    return null
  } catch (error) {
    if (asked.aborted) throw new Stopped()
    await drop()
    const { code } = error as { code?: string }
    if (code === '23505') return 'Rows have equal values, which a unique index forbids.'
    if (code === '42P01') return 'The collection was dropped.'
    return 'The index could not be built.'
  } finally {
    asked.removeEventListener('abort', cancel)
    await owner.end()
  }
}

const notifyIndexEnd = async (services: Services, place: Place, projectId: string, { id }: Begun, isBuilt: boolean) => {
  const reply = await services.database.call(
    place,
    'app_worker',
    { caller: 'worker', projectId },
    'collection_index_end',
    {
      index_id: id,
      is_built: isBuilt,
    },
  )
  await services.notifier.publish(reply.changed)
}

/**
 * Builds an index of a large collection without blocking writes: CREATE INDEX CONCURRENTLY, as the owner, outside a transaction.
 * No invalid index is left when the operation ends, in whatever way. Safe to run again at any step.
 */
export const collectionsIndex = job('collections__index', runIndex, 'background', { slots: 'indexes' })
