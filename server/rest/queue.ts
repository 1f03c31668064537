import { refusal } from '#server/errors.ts'

/** Waits for a turn; what it answers ends the turn. Refuses 429 RATE_LIMITED where too many wait. */
export type Queue = () => Promise<() => void>

/** So many have their turn at once; who comes then waits, first come first served. */
export const createQueue = (atOnce: number, mostWaiting: number): Queue => {
  const waiting: (() => void)[] = []
  let count = 0
  const next = () => {
    const first = waiting.shift()
    if (first) first()
    else count -= 1
  }
  return async () => {
    if (count < atOnce) count += 1
    else if (waiting.length >= mostWaiting)
      throw refusal(429, 'RATE_LIMITED', 'Too many requests without a session: try again in a moment.', null, {
        'Retry-After': '2',
      })
    else
      await new Promise<void>((begin) => {
        waiting.push(begin)
      })
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      next()
    }
  }
}
