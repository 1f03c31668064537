import { sqlUnavailable } from '#server/sql/failures.ts'

/** Who holds a place: a project and a developer have one each. */
export type Holder = { readonly projectId: string; readonly developerId: string }

type Waiting = { readonly holder: Holder; readonly admit: () => void }

/** Places for queries of one process. Who finds none waits a little, in their turn; those who cannot have one yet are passed over. */
export const createPlaces = (most = 2, waitMs = 3000) => {
  const held = new Set<Holder>()
  const waiting = new Set<Waiting>()
  const isFree = (holder: Holder) =>
    held.size < most &&
    ![...held].some(
      ({ projectId, developerId }) => projectId === holder.projectId || developerId === holder.developerId,
    )
  const release = (holder: Holder) => {
    held.delete(holder)
    for (const next of waiting) if (isFree(next.holder)) next.admit()
  }
  return {
    /** Resolves with how to give the place back. Refuses 503 SQL_UNAVAILABLE. */
    take(projectId: string, developerId: string): Promise<() => void> {
      const holder = { projectId, developerId }
      if (isFree(holder)) {
        held.add(holder)
        return Promise.resolve(() => release(holder))
      }
      return new Promise((resolve, reject) => {
        const entry: Waiting = {
          holder,
          admit() {
            waiting.delete(entry)
            clearTimeout(timer)
            held.add(holder)
            resolve(() => release(holder))
          },
        }
        const timer = setTimeout(() => {
          waiting.delete(entry)
          reject(sqlUnavailable('other queries are under way'))
        }, waitMs)
        waiting.add(entry)
      })
    },
  }
}
