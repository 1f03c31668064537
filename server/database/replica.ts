import type pg from 'pg'
import type { Logger } from 'pino'
import { clientAt, destroy, type Host } from '#server/database/hosts.ts'

/** A standby for reads that may be some seconds old. */
export type Replica = {
  /** Where it is, while it answers and is not too far behind; else null, and the primary is read. */
  usable(): Host | null
  close(): Promise<void>
}

const askMs = 1_000

/** What has not been replayed, in seconds: nothing while everything that came is replayed, since then the primary has nothing newer. */
const lagQuery = `
  select pg_is_in_recovery() as "isStandby",
         case when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
              else extract(epoch from clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), '-infinity')) end::float8 as lag`

/** Asks the standby each second how far behind it is. A standby that has become a primary is none any more: it may be one of its own. */
export const followReplica = (dsn: string, mostLagSeconds: number, log: Pick<Logger, 'warn' | 'info'>): Replica => {
  const url = new URL(dsn)
  const host: Host = {
    host: decodeURIComponent(url.searchParams.get('host') ?? url.hostname),
    port: Number(url.port || 5432),
  }
  let client: pg.Client | null = null
  let isUsable = false
  let isClosed = false
  let turn: Promise<void> | undefined
  let timer: NodeJS.Timeout

  const note = (now: boolean, why: string) => {
    if (now !== isUsable) {
      if (now) log.info({ host: host.host, port: host.port }, 'the replica is used for reads that may be stale')
      else log.warn({ host: host.host, port: host.port, why }, 'the replica is not used')
    }
    isUsable = now
  }
  const look = async () => {
    try {
      if (!client) {
        const next = clientAt(dsn, host)
        await next.connect()
        client = next
      }
      const { rows } = await client.query<{ isStandby: boolean; lag: number }>(lagQuery)
      const { isStandby = false, lag = Number.POSITIVE_INFINITY } = rows[0] ?? {}
      note(isStandby && lag <= mostLagSeconds, isStandby ? `it is ${lag.toFixed(0)} s behind` : 'it is no standby')
    } catch (error) {
      if (client) destroy(client)
      client = null
      note(false, (error as Error).message)
    }
  }
  const tick = async () => {
    turn = look()
    await turn
    if (!isClosed) timer = setTimeout(tick, askMs).unref()
  }
  timer = setTimeout(tick, 0).unref()
  return {
    usable: () => (isUsable ? host : null),
    async close() {
      isClosed = true
      clearTimeout(timer)
      await turn
      await client?.end().catch(() => undefined)
    },
  }
}
