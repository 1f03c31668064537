import type pg from 'pg'
import type { Logger } from 'pino'
import { clientAt, destroy, type Host, hostOfAddress, tlsOf } from '#server/database/hosts.ts'

/** A standby for reads that may be some seconds old. */
export type Replica = {
  /** How it is reached, while it answers and is not too far behind; else null, and the primary is read. */
  usable(): ReplicaAddress | null
  /** Is told when it answers no more: what waits for it may wait for ever. Answers how to hear no more. */
  onLost(listener: () => void): () => void
  close(): Promise<void>
}

export type ReplicaAddress = Host & { readonly ssl: ReturnType<typeof tlsOf> }

export type ReplicaOptions = {
  readonly dsn: string
  readonly primary: string
  readonly mostLagSeconds: number
  readonly log: Pick<Logger, 'warn' | 'info'>
}

const askMs = 1_000
const mostSeen = 3_600

type Written = { readonly server: string; readonly bytes: string }
type Replayed = { readonly server: string; readonly bytes: string | null; readonly isStandby: boolean }

const writtenQuery = `
  select (select system_identifier::text from pg_control_system()) as server, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::text as bytes`
const replayedQuery = `
  select (select system_identifier::text from pg_control_system()) as server,
         pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::text as bytes, pg_is_in_recovery() as "isStandby"`

/**
 * How long the primary has had what the standby lacks, from the places in the write-ahead log that both were seen at. What a standby knows of itself does not say it: one
 * that receives nothing has replayed all that it received, and the time of its last transaction is as old as the last write.
 */
export const createLag = () => {
  let seen: { readonly at: number; readonly bytes: bigint }[] = []
  return {
    /** At this moment the primary had written so much. */
    written(at: number, bytes: bigint) {
      const last = seen.at(-1)
      // a primary that was restored, or replaced, may be at an earlier place
      if (last && last.bytes > bytes) seen = []
      // of the same place the first time counts
      if (last?.bytes !== bytes) seen.push({ at, bytes })
      // a standby that is away for days: the older, the less exact
      if (seen.length > mostSeen) seen = seen.filter((_, index) => index % 2 === 0)
    },
    /** Seconds, once the standby has replayed so much. */
    after(now: number, replayed: bigint): number {
      seen = seen.filter(({ bytes }) => bytes > replayed)
      return seen[0] ? (now - seen[0].at) / 1000 : 0
    },
  }
}

/** Asks a server again and again over one connection, which is made anew when it is lost or the server is another one. */
const createPoller = (dsn: string) => {
  let open: { readonly client: pg.Client; readonly host: Host } | null = null
  const drop = () => {
    if (open) destroy(open.client)
    open = null
  }
  return {
    async ask<T extends object>(query: string): Promise<T> {
      const host = hostOfAddress(dsn)
      if (open && (open.host.host !== host.host || open.host.port !== host.port)) drop()
      try {
        if (!open) {
          const client = clientAt(dsn, host)
          open = { client, host }
          await client.connect()
        }
        const { rows } = await open.client.query<T>(query)
        return rows[0] as T
      } catch (error) {
        drop()
        throw error
      }
    },
    drop,
  }
}

/**
 * Asks the primary and the standby each second where they are. A standby that has become a primary is none any more: it may be one of its own; and one of another
 * server has other data.
 */
export const followReplica = ({ dsn, primary, mostLagSeconds, log }: ReplicaOptions): Replica => {
  const address = { ...hostOfAddress(dsn), ssl: tlsOf(new URL(dsn)) }
  const { host, port } = address
  const [there, here] = [createPoller(primary), createPoller(dsn)]
  const lag = createLag()
  const listeners = new Set<() => void>()
  // nothing has been said yet
  let isUsable: boolean | undefined
  let isClosed = false
  let timer: NodeJS.Timeout

  const note = (why: string | null) => {
    const now = why === null
    if (now !== isUsable) {
      if (now) log.info({ host, port }, 'the replica is used for reads that may be stale')
      else log.warn({ host, port, why }, 'the replica is not used')
    }
    isUsable = now
  }
  const problem = async (): Promise<string | null> => {
    const at = performance.now()
    const written = await there.ask<Written>(writtenQuery).catch(() => null)
    if (!written) return 'how far behind it is cannot be told: the primary does not answer'
    lag.written(at, BigInt(written.bytes))
    const found = await here.ask<Replayed>(replayedQuery).catch((error: Error) => error)
    if (found instanceof Error) {
      for (const listener of listeners) listener()
      return found.message
    }
    if (!found.isStandby || found.bytes === null) return 'it is no standby'
    if (found.server !== written.server) return 'it is the standby of another server'
    const seconds = lag.after(performance.now(), BigInt(found.bytes))
    return seconds <= mostLagSeconds ? null : `it is ${seconds.toFixed(0)} s behind`
  }
  let turn: Promise<void>
  const tick = () => {
    turn = problem().then((why) => {
      if (isClosed) return
      note(why)
      timer = setTimeout(tick, askMs).unref()
    })
  }
  tick()
  return {
    usable: () => (isUsable ? address : null),
    onLost(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await turn
      there.drop()
      here.drop()
    },
  }
}
