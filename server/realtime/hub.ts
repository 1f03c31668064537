import type { Logger } from 'pino'
import type { Place } from '#server/database/cluster.ts'
import { type Database, dataOf } from '#server/database/database.ts'
import type { Closings } from '#server/realtime/closings.ts'
import { createConnection } from '#server/realtime/connection.ts'
import { type ChannelEvent, closing, type EventRow, limits, readEvent } from '#server/realtime/protocol.ts'
import { createRetention } from '#server/realtime/retention.ts'
import { deliver } from '#server/realtime/subscription.ts'
import { createTransactions } from '#server/realtime/transactions.ts'
import type { Connection, Credential, Hub, Subscription, Transport } from '#server/realtime/types.ts'

export type HubOptions = {
  readonly projectId: string
  readonly serverId: string
  readonly place: Place
  readonly database: Database
  readonly log: Logger
  readonly now: () => Date
  /** Of the project on this server: a hub before this one may have left some. */
  readonly closings: Closings
  readonly isLive: (credential: Credential) => Promise<boolean>
  readonly renew: (credential: Credential, token: string) => Promise<Credential | null>
  readonly onEmpty: () => void
}

const timing = {
  /** The least time between two reads: events that come faster are read together, and reach each socket in one write. */
  paceMs: 10,
  /** The same when handing out the last ones took longer than paceMs: fewer and larger writes. */
  busyPaceMs: 20,
  /** Polling finds events without a wake-up: those written directly in SQL, or whose wake-up was lost. */
  pollMs: 1000,
  heartbeatMs: 10_000,
  sweepMs: 250,
} as const

type Tail = { position: number; events: readonly EventRow[]; is_over: boolean; is_known: boolean }

const removeFrom = (all: Map<string, Set<Subscription>>, subscription: Subscription) => {
  const held = all.get(subscription.name)
  held?.delete(subscription)
  if (held?.size === 0) all.delete(subscription.name)
}

export const createHub = (options: HubOptions): Hub => {
  const { projectId, serverId, place, database, log, now, closings } = options
  const connections = new Set<Connection>()
  const byUser = new Map<string, Set<Connection>>()
  const channels = new Map<string, Set<Subscription>>()
  /** Subscriptions that only ever get rows of their own user: an event finds them by its owner. */
  const open = new Map<string, Set<Subscription>>()
  let admitting = 0
  let position: number | null = null
  let isEnded = false
  let reading: Promise<void> | undefined
  let isWoken = false
  let lastRead = 0
  let pace: number = timing.paceMs
  let ready: Promise<void> | undefined
  let timers: NodeJS.Timeout[] = []

  const worker = { caller: 'worker', projectId }
  const ask = async <T>(name: string, args: Record<string, unknown>): Promise<T> =>
    dataOf<T>(await database.call(place, 'app_worker', worker, name, args))
  const retention = createRetention()
  const transactions = createTransactions((before) => ask('realtime_running', before ? { before } : {}))

  const heartbeat = async (): Promise<void> => {
    const listeners = Object.fromEntries([
      ...[...byUser].map(([user, held]) => [`~${user}`, held.size] as const),
      ...[...channels].map(([name, held]) => [name, held.size] as const),
    ])
    await ask('realtime_heartbeat', { server_id: serverId, listeners })
  }

  const start = async (): Promise<void> => {
    await heartbeat()
    const tail = await ask<Tail>('realtime_tail', { server_id: serverId })
    position = tail.position
    if (isEnded) return
    timers = [
      setInterval(wake, timing.pollMs),
      setInterval(() => void heartbeat().catch(failed), timing.heartbeatMs),
      setInterval(sweep, timing.sweepMs),
      setInterval(() => void transactions.look().catch(failed), timing.pollMs),
    ]
    for (const timer of timers) timer.unref()
    if (wantsBoards()) lookAtBoards()
  }
  const failed = (error: unknown) =>
    log.warn(
      { project: projectId, error: (error as Error).message },
      'realtime cannot reach the database; it tries again',
    )

  const wake = () => {
    isWoken = true
    if (reading || position === null || isEnded) return
    reading = read()
      .catch(failed)
      .finally(() => {
        reading = undefined
        lastRead = performance.now()
        if (isWoken) wake()
      })
  }
  const read = async (): Promise<void> => {
    const pause = lastRead + pace - performance.now()
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause))
    isWoken = false
    const tail = await ask<Tail>('realtime_tail', { server_id: serverId, after: position })
    if (!tail.is_known) {
      // Postgres has crashed and its unlogged tables are empty, or others took this server for dead: clients begin anew
      log.warn({ project: projectId }, 'realtime begins anew: its connections are closed')
      closeAll(closing.restart, 'connect again')
      return
    }
    position = tail.position
    if (!tail.is_over) isWoken = true
    await pass(tail.events.map(readEvent))
  }

  /** Hands events to their subscribers, in their order. */
  const pass = async (events: readonly ChannelEvent[]): Promise<void> => {
    for (;;) {
      const asking = events.filter(({ meta }) => meta?.rows)
      const due = asking.filter((of) => subscribersOf(of).some((held) => isUnmatched(of, held)))
      if (due.length === 0) break
      const isMatched = await match(due, [...new Set(due.flatMap(subscribersOf))]).then(
        () => true,
        (error: unknown) => {
          failed(error)
          return false
        },
      )
      // those with a filter are told to fetch again; nobody else waits for that
      if (!isMatched) break
    }
    const began = performance.now()
    retention.add(events)
    for (const of of events) {
      if (of.channel.startsWith('~') || of.event.startsWith('~')) applyControlEvent(of)
      else for (const subscription of subscribersOf(of)) hand(subscription, of)
    }
    // the writes come at the end of this turn
    if (events.length > 0) await new Promise((resolve) => setImmediate(resolve))
    pace = performance.now() - began > timing.paceMs ? timing.busyPaceMs : timing.paceMs
  }
  const hand = (subscription: Subscription, of: ChannelEvent) => {
    try {
      deliver(subscription, of)
    } catch (error) {
      // the others get theirs; this client connects again, with since
      failed(error)
      subscription.connection.close(closing.failure, 'try again')
    }
  }

  const isUnmatched = (of: ChannelEvent, { filter }: Subscription) => filter !== null && !of.matches.has(filter)

  const subscribersOf = (of: ChannelEvent): Subscription[] => {
    const { meta } = of
    if (!meta || meta.action !== undefined || meta.sender !== undefined || meta.except !== undefined)
      return [...(channels.get(of.channel) ?? [])]
    const { to } = meta
    if (to?.groups || to?.roles) return [...(channels.get(of.channel) ?? [])]
    const owners = new Set([meta.only, ...(to?.users ?? []), meta.now?.user_id, meta.was?.user_id])
    const own = [...owners]
      .flatMap((user) => [...(byUser.get(user ?? '') ?? [])])
      .flatMap((connection) =>
        [...connection.subscriptions.values()].filter(
          ({ name, scope }) => name === of.channel && (scope.is_owner || meta.only || to),
        ),
      )
    return meta.only || to ? own : [...own, ...(open.get(of.channel) ?? [])]
  }

  const match: Hub['match'] = async (events, subscriptions) => {
    const asking = events.filter(({ meta }) => meta?.rows)
    const filters = [...new Set(subscriptions.flatMap(({ filter }) => (filter === null ? [] : [filter])))]
    const due = asking.filter(({ matches }) => filters.some((filter) => !matches.has(filter)))
    if (due.length === 0) return
    const rows = due.flatMap(({ meta }) => meta?.rows ?? [])
    const found = await ask<boolean[][]>('realtime_matches', {
      filters: filters.map((filter) => JSON.parse(filter) as unknown),
      items: rows.map((row) => row ?? null),
    })
    for (const [index, of] of due.entries()) {
      for (const [nth, filter] of filters.entries())
        of.matches.set(filter, [found[index * 2]?.[nth] ?? false, found[index * 2 + 1]?.[nth] ?? false])
    }
  }

  /** Notices for servers, see internal.notify_servers. */
  const applyControlEvent = (of: ChannelEvent) => {
    const users = of.channel.startsWith('~') ? [...(byUser.get(of.channel.slice(1)) ?? [])] : []
    if (of.event === '~session') void checkCredentials(({ userId }) => `~${userId}` === of.channel)
    if (of.event !== '~check') return
    for (const connection of users) connection.recheckAll()
    if (users.length > 0) return
    for (const subscription of channels.get(of.channel) ?? []) subscription.connection.recheck([subscription])
  }

  const checkCredentials: Hub['checkCredentials'] = async (which) => {
    const asked = [...connections].filter(({ credential }) => which(credential))
    await Promise.all(
      asked.map(async (connection) => {
        const isLive = await options.isLive(connection.credential).catch(() => null)
        // not known is not ended; a client that connects again is checked then
        if (isLive === null) connection.close(closing.failure, 'try again')
        else if (!isLive) connection.close(closing.unauthorized, 'the session has ended')
      }),
    )
  }

  const sweep = () => {
    const at = now().getTime()
    for (const connection of connections) {
      const { expiresAt } = connection.credential
      if (expiresAt !== null && expiresAt * 1000 <= at) connection.close(closing.unauthorized, 'the token has expired')
      else if (at - connection.seenAt > limits.idleMs) connection.close(closing.idle, 'no ping for 60 seconds')
      else {
        const due = [...connection.subscriptions.values()].filter(
          ({ scope, state }) => scope.until !== undefined && state === 'live' && Date.parse(scope.until) <= at,
        )
        if (due.length > 0) connection.recheck(due)
      }
    }
  }

  const wantsBoards = () => [...channels.keys()].some((name) => name.startsWith('leaderboard:'))
  let isLooking = false
  let boardsTimer: NodeJS.Timeout | undefined
  const lookAtBoards = () => {
    if (boardsTimer || isEnded) return
    boardsTimer = setInterval(() => {
      const wanted = [...channels].filter(([name]) => name.startsWith('leaderboard:'))
      if (wanted.length === 0 || isEnded) {
        clearInterval(boardsTimer)
        boardsTimer = undefined
        return
      }
      // one that takes longer than a second is not asked again meanwhile
      if (isLooking) return
      isLooking = true
      void ask('realtime_boards', {
        boards: wanted.map(([name, held]) => [
          name.slice('leaderboard:'.length),
          [...new Set([...held].map(({ connection }) => connection.userId))],
        ]),
      })
        .then(() => undefined, failed)
        .finally(() => {
          isLooking = false
        })
    }, 1000)
    boardsTimer.unref()
  }

  const end = () => {
    if (connections.size > 0 || admitting > 0 || isEnded) return
    isEnded = true
    for (const timer of timers) clearInterval(timer)
    clearInterval(boardsTimer)
    options.onEmpty()
  }
  const closeAll: Hub['closeAll'] = (code, reason) => {
    for (const connection of [...connections]) connection.close(code, reason)
  }

  const admit = async (credential: Credential, transport: Transport): Promise<Connection> => {
    ready ??= start()
    await ready
    // of the user's connections only those are counted that are open: one that was closed just now makes room
    for (const held of [...(byUser.get(credential.userId) ?? [])]) held.endIfGone()
    await closings.settle(credential.userId)
    const connection = createConnection(hub, credential, transport)
    const { claims, role } = credential.resolved
    const opened = dataOf<{ is_new: boolean }>(
      await database.call(place, role, claims, 'realtime_open', { server_id: serverId, connection_id: connection.id }),
    )
    connections.add(connection)
    const held = byUser.get(connection.userId) ?? new Set()
    byUser.set(connection.userId, held.add(connection))
    try {
      const left = opened.is_new ? await transactions.settle() : []
      // what ended the session until now could not be told
      if (!(await options.isLive(credential))) connection.close(closing.unauthorized, 'the session has ended')
      transactions.afterThose(left, () => void checkCredentials((one) => one === connection.credential))
    } catch (error) {
      connection.ended()
      throw error
    }
    return connection
  }

  const hub: Hub = {
    projectId,
    place,
    log,
    now,
    call: database.call,
    async open(credential, transport) {
      admitting += 1
      try {
        return await admit(credential, transport)
      } finally {
        admitting -= 1
        end()
      }
    },
    remove(connection) {
      if (!connections.delete(connection)) return
      const held = byUser.get(connection.userId)
      held?.delete(connection)
      if (held?.size === 0) byUser.delete(connection.userId)
      closings.add(connection.id, connection.userId)
      end()
    },
    join(subscription) {
      const held = channels.get(subscription.name) ?? new Set()
      channels.set(subscription.name, held.add(subscription))
      // whose scope is asked for again may be about to see rows of others
      if (!subscription.scope.is_owner || subscription.state !== 'live') {
        const others = open.get(subscription.name) ?? new Set()
        open.set(subscription.name, others.add(subscription))
      } else removeFrom(open, subscription)
      if (subscription.scope.me) lookAtBoards()
    },
    leave(subscription) {
      for (const all of [channels, open]) removeFrom(all, subscription)
    },
    settle: transactions.settle,
    afterThose: transactions.afterThose,
    retain: retention.retain,
    match,
    renew: options.renew,
    wake,
    checkCredentials,
    closeAll,
    listeners: (channel) => channels.get(channel)?.size ?? 0,
    get size() {
      return connections.size
    },
  }
  return hub
}
