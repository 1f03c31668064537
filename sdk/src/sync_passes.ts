import { isTemporary, TrellisError } from './errors.ts'
import { exclusively, later, platform } from './platform.ts'
import { backoff } from './transport.ts'

export type PassOptions = {
  /** One at a time by this name, across the tabs of a page. */
  readonly place: string
  readonly work: () => Promise<void>
  readonly onError: (error: unknown) => void
  readonly random: () => number
  readonly delay: number
  readonly every: number
}

/** However often it is told that there is something, a pass begins this many milliseconds after the one before at the earliest. */
const least = 200

/** When to sync: after a write, when something tells of news, every minute, and again after a failure, later each time. */
export const createPasses = ({ place, work, onError, random, delay, every }: PassOptions) => {
  // the clock of a device may be set while a timer runs
  const { performance = Date } = platform as { performance?: { now(): number } }
  let stop: (() => void) | undefined
  let due = 0
  let begun = Number.NEGATIVE_INFINITY
  let failures = 0
  let isClosed = false

  /** A pass that has not begun is that of everybody who asks for one. */
  let next: Promise<void> | undefined
  const pass = (): Promise<void> => {
    if (next) return next
    const made: Promise<void> = exclusively(`${place}:pass`, async () => {
      if (next === made) next = undefined
      begun = performance.now()
      await work()
      failures = 0
    })
    next = made
    // a lock that was not given
    made.catch(() => {
      if (next === made) next = undefined
    })
    return made
  }

  const schedule = (ms: number): void => {
    const at = performance.now() + ms
    if (isClosed || (stop && due <= at)) return
    stop?.()
    due = at
    stop = later(() => {
      stop = undefined
      pass().then(
        () => schedule(every),
        (error: unknown) => {
          failures += 1
          const isPassing = isTemporary(error)
          schedule(isPassing ? delay + backoff(failures, random, 1000, 300_000) : every)
          // another user has signed in meanwhile: the next pass is theirs
          if (!isPassing && !(error instanceof TrellisError && error.code === 'ABORTED')) onError(error)
        },
      )
    }, ms)
  }

  return {
    pass,
    schedule,
    /** There is something to fetch. */
    news: () => schedule(Math.max(0, begun + least - performance.now())),
    close() {
      isClosed = true
      stop?.()
    },
  }
}
