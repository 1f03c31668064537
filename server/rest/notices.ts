/** The longest that PostgREST takes until it has read the schema again after a change. */
const reloadMs = 5_000

/** So long another process of ours may take to tell of a change. */
const noticeMs = 200

/** What one process of PostgREST is told of changes of collections: it reads the schema again some moments later. */
export type Notices = {
  changed(): void
  /**
   * After an answer that a change may have made wrong: waits until PostgREST has read the schema. False when no collection has changed in the last
   * seconds, nor another process tells of a change within 200 ms.
   */
  readAgain(loadedWithin: (ms: number) => Promise<boolean>): Promise<boolean>
}

export const createNotices = (): Notices => {
  const waiting = new Set<() => void>()
  let changedAt = Number.NEGATIVE_INFINITY
  const left = () => changedAt + reloadMs - performance.now()
  const isTold = (): Promise<boolean> =>
    new Promise((resolve) => {
      const settle = (isChanged: boolean) => {
        clearTimeout(timer)
        waiting.delete(told)
        resolve(isChanged)
      }
      const told = () => settle(true)
      const timer = setTimeout(() => settle(false), noticeMs)
      waiting.add(told)
    })
  return {
    changed() {
      changedAt = performance.now()
      for (const told of [...waiting]) told()
    },
    readAgain: async (loadedWithin) => (left() > 0 || (await isTold())) && loadedWithin(left()),
  }
}
