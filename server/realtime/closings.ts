/** Connections of a project that are closed here and that the database still counts. */
export type Closings = {
  add(connectionId: string, userId: string): void
  /** Resolves when the database has been told of every connection of a user that was closed before; the batch that has one does not wait any longer. */
  settle(userId: string): Promise<void>
  /** Resolves when the database has been told of all. */
  flushed(): Promise<void>
}

type Batch = {
  readonly ids: string[]
  readonly users: Set<string>
  hurry(): void
  told: Promise<void>
}

/** Many close at once, when a network breaks or a server stops: they are told together. */
const batchMs = 20

/** `tell` tells the database, and does not reject. */
export const createClosings = (tell: (ids: readonly string[]) => Promise<void>): Closings => {
  /** The last one may still be filled; they are told one after the other. */
  const batches: Batch[] = []
  let filling: Batch | undefined
  let last: Promise<void> = Promise.resolve()

  const begin = (): Batch => {
    const { promise: due, resolve: hurry } = Promise.withResolvers<void>()
    const timer = setTimeout(hurry, batchMs)
    const batch: Batch = { ids: [], users: new Set(), hurry, told: last }
    batch.told = last = Promise.all([last, due]).then(async () => {
      clearTimeout(timer)
      if (filling === batch) filling = undefined
      await tell(batch.ids)
      batches.splice(batches.indexOf(batch), 1)
    })
    batches.push(batch)
    return batch
  }

  return {
    add(connectionId, userId) {
      filling ??= begin()
      filling.ids.push(connectionId)
      filling.users.add(userId)
    },
    async settle(userId) {
      const batch = batches.findLast(({ users }) => users.has(userId))
      batch?.hurry()
      // told in their order: with the last one all are
      await batch?.told
    },
    flushed: () => last,
  }
}
