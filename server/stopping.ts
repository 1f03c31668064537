/** The two moments of an orderly stop, as everything that runs sees them. */
export type Stopping = {
  /** Aborted when the server is asked to stop: background work begins no further step, and hands back what it holds. */
  readonly asked: AbortSignal
  /** Aborted when the time for what is under way has passed: connections are closed and statements cancelled. */
  readonly over: AbortSignal
}

/** Thrown between two steps of work that a stop interrupts: not a failure, and not an attempt. */
export class Stopped extends Error {
  constructor() {
    super('the server is stopping')
  }
}

/** Begins and ends a stop: `ask` gives what is under way some seconds, `end` ends them at once. */
export const createStopping = (seconds: number) => {
  const asked = new AbortController()
  const over = new AbortController()
  const end = () => {
    asked.abort()
    over.abort()
  }
  return {
    signals: { asked: asked.signal, over: over.signal } as Stopping,
    ask() {
      if (asked.signal.aborted) return
      asked.abort()
      setTimeout(end, seconds * 1000).unref()
    },
    end,
  }
}

/** Settles as the promise `work` does, or rejects with Stopped once the signal is aborted. */
export const orStopped = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  if (signal.aborted) throw new Stopped()
  let stop: () => void = () => undefined
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(new Stopped())
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([work, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
    // what goes on alone must not end the process when it fails
    work.catch(() => undefined)
  }
}

/** Waits, and no longer than until the signal is aborted. */
export const sleepUntil = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const waiting = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await orStopped(waiting, signal).catch(() => undefined)
  clearTimeout(timer)
}
