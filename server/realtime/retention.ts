import { type ChannelEvent, limits } from '#server/realtime/protocol.ts'

/** The events of a channel that were handed out since `retain`; null when they are not all there any more. */
export type Retained = {
  eventsOf(channel: string): readonly ChannelEvent[] | null
  end(): void
}

/**
 * What a hub hands out while the answer to a subscription is awaited. The answer may be older than these events, and the subscription joins the
 * hub after them: without them it would never hear of them.
 */
export const createRetention = (most: number = limits.waiting) => {
  let events: ChannelEvent[] = []
  /** The number of the first of them. */
  let first = 0
  const asking = new Set<{ readonly from: number }>()
  const forgetBefore = (number: number) => {
    const gone = Math.min(number - first, events.length)
    if (gone <= 0) return
    events = events.slice(gone)
    first += gone
  }
  return {
    add(handedOut: readonly ChannelEvent[]) {
      if (asking.size === 0) return
      for (const of of handedOut) events.push(of)
      forgetBefore(first + events.length - most)
    },
    retain(): Retained {
      const mine = { from: first + events.length }
      asking.add(mine)
      return {
        eventsOf: (channel) =>
          mine.from < first ? null : events.slice(mine.from - first).filter((of) => of.channel === channel),
        end() {
          asking.delete(mine)
          const [eldest] = asking
          forgetBefore(eldest?.from ?? first + events.length)
        },
      }
    },
  }
}
