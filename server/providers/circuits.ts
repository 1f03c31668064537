import { createLru } from '#server/lru.ts'

/** Consecutive failures that open a circuit, and for how long. A failure later than a minute after the one before counts as the first. */
const failuresToOpen = 5
const openMs = 30_000
const failureMemoryMs = 60_000
const maxCircuits = 10_000

type Circuit = { failures: number; failedAt: number; openUntil: number; isProbing: boolean }

/** One circuit for each provider and project, so that one project's outage does not refuse another's calls. In memory of this process. */
export const createCircuits = (clock: () => number) => {
  const circuits = createLru<Circuit>(maxCircuits)
  return {
    /** Whether a call may be made. After the pause one call at a time probes the provider. */
    admits(key: string): boolean {
      const circuit = circuits.get(key)
      if (!circuit || circuit.openUntil === 0) return true
      if (clock() < circuit.openUntil || circuit.isProbing) return false
      circuit.isProbing = true
      return true
    },
    succeeded(key: string): void {
      circuits.delete(key)
    },
    failed(key: string): void {
      const now = clock()
      const known = circuits.get(key)
      const isRecent = known && (known.openUntil > 0 || now - known.failedAt < failureMemoryMs)
      const count = (isRecent ? known.failures : 0) + 1
      const openUntil = count >= failuresToOpen ? now + openMs : 0
      circuits.set(key, { failures: count, failedAt: now, openUntil, isProbing: false })
    },
    /** A call that says nothing about the provider: its caller went away. */
    undecided(key: string): void {
      const circuit = circuits.get(key)
      if (circuit) circuit.isProbing = false
    },
  }
}
