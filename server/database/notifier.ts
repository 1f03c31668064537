import pg from 'pg'
import type { Logger } from 'pino'
import { adminConfig, type Cluster } from '#server/database/cluster.ts'
import { cutWhenMoved } from '#server/database/hosts.ts'
import { followKey, keysChanged } from '#server/database/keys.ts'
import type { Secrets } from '#server/secrets.ts'

/** The NOTIFY channel of cache invalidation: a comma-separated list of what changed; scripts notify running servers too. */
export const changedChannel = 'trellis_changed'

/** Cache invalidation in every server process. */
export type Notifier = {
  /** Drops entries here at once, and notifies the others; resolves when they were notified, or after a moment if they cannot be. */
  publish(changed: readonly string[]): Promise<void>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly notifier: Notifier
  }
}

/**
 * LISTEN and NOTIFY on one direct connection to control. A NOTIFY takes a lock of the whole cluster at its commit, so it is
 * never part of a writing transaction, and at most one goes out in 30 ms. Caches live 30 seconds at most, so a message that is
 * lost with the connection delays a revocation and loses nothing.
 */
export const createNotifier = (
  control: { cluster: Cluster; database: string; secrets: Secrets },
  log: Logger,
  drop: (changed: string) => void,
  forgetEverything: () => void,
): Notifier => {
  let client: pg.Client | undefined
  let closed = false
  let pending: string[] = []
  let flushing: Promise<void> | undefined

  const follow = async (listening: pg.Client) => {
    if (!(await followKey(listening, control.secrets)))
      log.error(
        'SECRETS_KEY lacks the key that is current: what others encrypt cannot be read here. Start this process with it.',
      )
  }

  const connect = async (): Promise<void> => {
    if (closed) return
    const next = new pg.Client(adminConfig(control.cluster, control.database))
    // the connection to a machine that is gone may stay open for hours
    cutWhenMoved(next)
    let isLost = false
    const lost = () => {
      // a connection that was never made says so twice
      if (isLost) return
      isLost = true
      if (client === next) client = undefined
      if (!closed) setTimeout(() => void connect(), 500).unref()
    }
    next.once('error', lost)
    next.once('end', () => next.removeListener('error', lost))
    next.on('error', () => undefined)
    next.on('notification', ({ payload }) => {
      for (const changed of payload?.split(',') ?? []) {
        drop(changed)
        if (changed === keysChanged)
          follow(next).catch((error: Error) => log.warn({ error: error.message }, 'cannot read which key is current'))
      }
    })
    try {
      await next.connect()
      await next.query(`listen ${changedChannel}`)
      await follow(next)
      client = next
      // notifications sent before the reconnect are lost
      forgetEverything()
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'cannot listen for changes')
      await next.end().catch(() => undefined)
      lost()
    }
  }

  const flush = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 30))
    const sent = pending
    pending = []
    flushing = undefined
    try {
      // a payload holds at most 8000 bytes
      for (let from = 0; from < sent.length; from += 60) {
        await client?.query('select pg_notify($1, $2)', [changedChannel, sent.slice(from, from + 60).join(',')])
      }
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'cannot tell the other servers of a change')
    }
  }

  const ready = connect()
  return {
    async publish(changed) {
      for (const one of changed) drop(one)
      if (closed) return
      pending.push(...changed)
      flushing ??= flush()
      const patience = new Promise<void>((resolve) => setTimeout(resolve, 500).unref())
      await Promise.race([flushing, patience])
    },
    async close() {
      closed = true
      await ready
      await flushing
      await client?.end().catch(() => undefined)
    },
  }
}
