import { dataOf } from '#server/database/database.ts'
import type { FileLocation } from '#server/providers/project_files.ts'
import { type Job, job } from '#workers/task.ts'

const purge: Job['run'] = async ({ database, control, files, log }, { purge_id = '' }) => {
  const call = (name: string, args: Record<string, string>) =>
    database.call(control, 'control_worker', { caller: 'worker' }, name, { purge_id, ...args })
  const due = dataOf<{ project_id: string; location: FileLocation } | null>(await call('file_purge_begin', {}))
  if (!due) return
  const error = await files.purge(due.project_id, due.location).then(
    () => null,
    (failed: Error) => failed.message.slice(0, 1000),
  )
  if (error !== null)
    log.warn({ project: due.project_id, kind: due.location.kind, error }, 'the files could not be deleted yet')
  await call('file_purge_end', error === null ? {} : { error })
}

/**
 * Deletes the files of a deleted project at one location. A failure is retried from the row of the location and not by the queue, so that
 * the number of attempts is not limited; the sweep queues due rows. The storage may be one that a developer has named.
 */
export const filesPurge = job('files__purge', purge, 'background', { slots: 'outbound' })
