import { dataOf } from '#server/database/database.ts'
import type { FileLocation } from '#server/providers/project_files.ts'
import { job } from '#workers/task.ts'

/**
 * Deletes what a deleted project stored at one place. What fails is due again later, by the row and not by the queue, so that it is
 * tried for as long as it takes; the sweep queues what is due.
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
  if (error !== null) log.warn({ project: purge.project_id, kind: purge.location.kind, error }, 'files stay for now')
  await call('file_purge_end', error === null ? {} : { error })
})
