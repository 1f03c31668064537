import { dataOf } from '#server/database/database.ts'
import type { FileLocation } from '#server/providers/project_files.ts'
import { job } from '#workers/task.ts'

/**
 * Deletes the files of a deleted project at one location. A failure is retried from the row of the location and not by the queue, so that
 * the number of attempts is not limited; the sweep queues due rows.
 */
export const filesPurge = job('files__purge', async ({ database, control, files, log }, { purge_id = '' }) => {
  const call = (name: string, args: Record<string, string>) =>
    database.call(control, 'control_worker', { caller: 'worker' }, name, { purge_id, ...args })
  const purge = dataOf<{ project_id: string; location: FileLocation } | null>(await call('file_purge_begin', {}))
  if (!purge) return
  const error = await files.purge(purge.project_id, purge.location).then(
    () => null,
    (failed: Error) => failed.message.slice(0, 1000),
  )
  if (error !== null)
    log.warn({ project: purge.project_id, kind: purge.location.kind, error }, 'the files could not be deleted yet')
  await call('file_purge_end', error === null ? {} : { error })
})
