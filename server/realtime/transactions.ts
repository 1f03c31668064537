/** Longer than a statement of a request may run. */
const settleMs = 6000

/** Transactions that run, or those of a list that still do. */
type AskRunning = (before?: readonly string[]) => Promise<readonly string[]>

type Awaited = { readonly transactions: readonly string[]; readonly work: () => void }

/** Waits for transactions that may not have heard of a new channel, and so have published nothing there. */
export const createTransactions = (askRunning: AskRunning) => {
  let settling: Promise<readonly string[]> | undefined
  let late: readonly Awaited[] = []

  const waitForOthers = async (): Promise<readonly string[]> => {
    const until = performance.now() + settleMs
    let running = await askRunning()
    for (let pause = 2; running.length > 0 && performance.now() < until; pause = Math.min(pause * 2, 100)) {
      await new Promise((resolve) => setTimeout(resolve, pause))
      running = await askRunning(running)
    }
    return running
  }

  return {
    /** Resolves when all have ended that run now, or after 6 seconds: with those that have not. */
    settle(): Promise<readonly string[]> {
      // all who wait within one turn are served by one look
      settling ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        settling = undefined
        return waitForOthers()
      })
      return settling
    },
    /** Does `work` when these have ended, after a `look`. */
    afterThose(transactions: readonly string[], work: () => void): void {
      if (transactions.length > 0) late = [...late, { transactions, work }]
    },
    async look(): Promise<void> {
      if (late.length === 0) return
      const asked = late
      const running = new Set(await askRunning([...new Set(asked.flatMap(({ transactions }) => transactions))]))
      const over = asked.filter(({ transactions }) => !transactions.some((one) => running.has(one)))
      late = late.filter((one) => !over.includes(one))
      for (const { work } of over) work()
    },
  }
}
