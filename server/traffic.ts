import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Place } from '#server/database/cluster.ts'
import type { Database } from '#server/database/database.ts'

/** The requests that apps make, and the bytes that are sent for them, counted for billing. */
export type Traffic = {
  /** Counts one request that was answered, with this status. */
  count(projectId: string, socket: Socket, status: number): void
  /** Notes what a connection had sent before a request that is not counted. */
  pass(socket: Socket): void
  /** Stores what was counted. Resolves when everything counted before the call is stored, or could not be. */
  flush(): Promise<void>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly traffic: Traffic
  }
}

type Counted = {
  readonly projectId: string
  readonly day: string
  requests: number
  failed: number
  bytes: number
  isStored: boolean
}

const everyMs = 5_000
/** Rows of a report: of more projects than that there are several. */
const mostRows = 2_000
const dayMs = 86_400_000

/**
 * Counts in memory, and reports every few seconds in one call for all projects. A report holds what this process has counted since the beginning of
 * the day, in rows of its own, so that one whose answer was lost can be sent again, and nobody waits for a lock. A process that is killed loses what it
 * has counted since its last report, which is then not charged for; nothing is ever counted twice.
 */
export const createTraffic = (
  { database, control, now, log }: { database: Database; control: Place; now: () => Date; log: Logger },
  reporter: string = randomUUID(),
): Traffic => {
  const counted = new Map<string, Counted>()
  const sentBefore = new WeakMap<Socket, number>()
  let today = { text: '', until: 0, from: 0 }
  let reporting: Promise<void> = Promise.resolve()

  const dayOf = (): string => {
    const at = now().getTime()
    if (at < today.from || at >= today.until) {
      const from = Math.floor(at / dayMs) * dayMs
      today = { text: new Date(from).toISOString().slice(0, 10), from, until: from + dayMs }
    }
    return today.text
  }

  /** The bytes of a connection since its last response: headers too. */
  const sentOn = (socket: Socket): number => {
    const all = socket.bytesWritten
    const sent = all - (sentBefore.get(socket) ?? 0)
    sentBefore.set(socket, all)
    return sent
  }

  const report = async (rows: readonly Counted[]) => {
    const sent = rows.map(({ projectId, day, requests, failed, bytes }) => ({
      project_id: projectId,
      day,
      api_requests: requests,
      failed_requests: failed,
      egress_bytes: bytes,
    }))
    for (const row of rows) row.isStored = true
    try {
      await database.call(control, 'control_worker', { caller: 'worker' }, 'traffic_report', {
        reporter,
        counted: sent,
      })
    } catch (error) {
      for (const row of rows) row.isStored = false
      log.warn({ error: (error as Error).message }, 'traffic could not be stored yet')
    }
  }

  const reportAll = async () => {
    const day = dayOf()
    // rows of a day are joined some days after it: a report that is later than this would be counted twice
    const oldest = new Date(now().getTime() - 2 * dayMs).toISOString().slice(0, 10)
    for (const [key, row] of counted) {
      if ((row.isStored && row.day !== day) || row.day < oldest) counted.delete(key)
    }
    const waiting = [...counted.values()].filter(({ isStored }) => !isStored)
    for (let first = 0; first < waiting.length; first += mostRows) await report(waiting.slice(first, first + mostRows))
  }

  const flush = (): Promise<void> => {
    reporting = reporting.then(reportAll)
    return reporting
  }
  const timer = setInterval(() => void flush(), everyMs).unref()

  return {
    count(projectId, socket, status) {
      const day = dayOf()
      const key = `${projectId} ${day}`
      const bytes = sentOn(socket)
      const failed = status >= 400 ? 1 : 0
      const row = counted.get(key)
      if (row) {
        row.requests += 1
        row.failed += failed
        row.bytes += bytes
        row.isStored = false
      } else counted.set(key, { projectId, day, requests: 1, failed, bytes, isStored: false })
    },
    pass: (socket) => void sentOn(socket),
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}
