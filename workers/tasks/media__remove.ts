import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Removes the bytes of assets that went with their user, and those that a crash left behind a deletion. */
export const mediaRemove = outboxTask(
  'media__remove',
  async ({ call, step, projectId, services: { media } }) => {
    for (;;) {
      const ids = dataOf<string[]>(await step('media_removals_next', { most: 100 }))
      if (ids.length === 0) return null
      for (const id of ids) await media.storage.remove(projectId, id)
      await call('media_removed', { asset_ids: ids })
    }
  },
  { urgency: 'background', atOnce: 1 },
)
