import type { App } from './app.ts'
import { isRefusal, isTemporary, TrellisError } from './errors.ts'
import { sendEvents } from './generated/client.ts'
import type { SendEventsReply } from './generated/schemas.ts'
import { exclusively, later, newId, platform } from './platform.ts'
import { backoff } from './transport.ts'

export type TrackedEvent = {
  readonly id: string
  readonly event_name: string
  readonly properties: Readonly<Record<string, unknown>>
}

/** An event that the server does not take, such as one with a reserved name. It is dropped: it would be refused again. */
export type RejectedEvent = TrackedEvent & { readonly code: string; readonly message: string }

export type EventsOptions = {
  /** Milliseconds from an event to its sending, with those that come meanwhile: 2,000. */
  readonly delay?: number | undefined
  /** How many unsent events are kept: 1,000. Beyond them the oldest is dropped, and reported as `QUEUE_FULL`. */
  readonly most?: number | undefined
  readonly onRejected?: ((event: RejectedEvent) => void) | undefined
  /** Called with what was sent, and its effects, such as streaks. */
  readonly onSent?: ((sent: { readonly accepted: number; readonly effects: unknown }) => void) | undefined
}

export type Events = {
  /** Stores an event and sends it soon. When this has resolved, the event outlives a restart. Answers its id. */
  track(name: string, properties?: Readonly<Record<string, unknown>>): Promise<string>
  /** Sends what is stored now; throws when the server cannot be reached, and keeps the events. */
  flush(): Promise<{ readonly accepted: number; readonly left: number }>
  /** How many events wait. */
  size(): Promise<number>
  /** Stops sending by itself; what is stored stays. */
  close(): void
}

type Stored = TrackedEvent & {
  /** Device time, and how far the server's was from it, where that was known already. */
  readonly at: number
  readonly skew: number | null
  /** Whose event it is; null for one from before the first sign-in. */
  readonly user: string | null
}

/** A request holds at most this many, and has a body of at most 1 MB. */
const batchSize = 100
const batchLength = 500_000

/**
 * A queue of events that outlives restarts and the lack of a network. Each event gets its id before it is stored, and is removed once the server
 * has answered: when that answer is lost the event is sent again, and the server knows it by its id. Each event goes to the user who was signed in
 * when it happened.
 */
export const createEvents = (app: App, options: EventsOptions = {}): Events => {
  const { transport, sessions, store, prefix, send } = app.inside
  const { delay = 2000, most = 1000, onRejected, onSent } = options
  const place = `${prefix}:events`
  let stop: (() => void) | undefined
  let failures = 0
  let isClosed = false

  const read = async (): Promise<Stored[]> => {
    try {
      return JSON.parse((await store.getItem(place)) || '[]') as Stored[]
    } catch {
      return []
    }
  }

  /** Reads and writes the list alone: other tabs write the same one. */
  const change = (next: (events: Stored[]) => Stored[]): Promise<void> =>
    exclusively(place, async () => {
      const events = next(await read())
      if (events.length > 0) await store.setItem(place, JSON.stringify(events))
      else await store.removeItem(place)
    })

  const drop = ({ id, event_name, properties }: Stored, code: string, message: string) =>
    onRejected?.({ id, event_name, properties, code, message })

  const sentForm = ({ id, event_name, properties, at, skew }: Stored) => ({
    id,
    event_name,
    properties,
    occurred_at: new Date(at + (skew ?? transport.skew ?? 0)).toISOString(),
  })

  type Results = { accepted: number; effects: unknown; rejected: [Stored, string, string][] }
  const resultsOf = (events: readonly Stored[], { data }: SendEventsReply): Results => {
    if (!('results' in data)) return { accepted: 1, effects: data.effects, rejected: [] }
    const rejected = data.results.flatMap(({ index, status, code, message }): [Stored, string, string][] => {
      const event = events[index]
      return status === 'rejected' && event ? [[event, code ?? 'REJECTED', message ?? '']] : []
    })
    return { accepted: data.accepted, effects: data.effects, rejected }
  }

  /** Sends these, in halves where the server refuses them together. */
  const post = async (events: readonly Stored[]): Promise<Results> => {
    try {
      const body = { events: events.map(sentForm), include_effects: onSent !== undefined }
      const reply = await send(sendEvents, { body, repeatable: true })
      return resultsOf(events, reply.body)
    } catch (error) {
      const isOfContent = isRefusal(error) && [400, 409, 413, 422].includes(error.status)
      if (!isOfContent) throw error
      const [first] = events
      if (events.length === 1 && first) {
        return { accepted: 0, effects: undefined, rejected: [[first, error.code, error.message]] }
      }
      const half = events.length >> 1
      const [a, b] = [await post(events.slice(0, half)), await post(events.slice(half))]
      return {
        accepted: a.accepted + b.accepted,
        effects: b.effects ?? a.effects,
        rejected: [...a.rejected, ...b.rejected],
      }
    }
  }

  const nextBatch = (events: readonly Stored[], user: string): Stored[] => {
    const batch: Stored[] = []
    let length = 0
    for (const event of events) {
      if (event.user !== null && event.user !== user) continue
      length += JSON.stringify(event).length
      if (batch.length === batchSize || (batch.length > 0 && length > batchLength)) break
      batch.push(event)
    }
    return batch
  }

  const flush = (): Promise<{ accepted: number; left: number }> =>
    exclusively(`${place}:flush`, async () => {
      let accepted = 0
      for (;;) {
        const events = await read()
        if (events.length === 0) return { accepted, left: 0 }
        // whoever has signed out goes on as nobody: only what happened before anybody was there makes an anonymous user
        const session = events.some(({ user }) => user === null) ? await sessions.begin() : await sessions.current()
        if (!session) return { accepted, left: events.length }
        const { userId } = session
        const batch = nextBatch(events, userId)
        if (batch.length === 0) return { accepted, left: events.length }
        // whose they are is written down before they are sent: a restart must not send them for somebody else
        if (batch.some(({ user }) => user === null)) {
          const own = new Set(batch.map(({ id }) => id))
          await change((all) => all.map((event) => (own.has(event.id) ? { ...event, user: userId } : event)))
        }
        const results = await post(batch)
        const sent = new Set(batch.map(({ id }) => id))
        await change((all) => all.filter(({ id }) => !sent.has(id)))
        accepted += results.accepted
        failures = 0
        for (const [event, code, message] of results.rejected) drop(event, code, message)
        if (results.accepted > 0) onSent?.({ accepted: results.accepted, effects: results.effects })
      }
    })

  const schedule = (ms: number) => {
    if (stop || isClosed) return
    stop = later(() => {
      stop = undefined
      flush().catch((error: unknown) => {
        failures += 1
        if (isTemporary(error)) schedule(delay + backoff(failures, transport.random, 1000, 300_000))
        else if (!(error instanceof TrellisError)) throw error
      })
    }, ms)
  }

  const isOnline = () => {
    stop?.()
    stop = undefined
    schedule(0)
  }
  platform.addEventListener?.('online', isOnline)
  let user: string | undefined
  sessions.current().then(
    (session) => {
      user ??= session?.userId
    },
    () => undefined,
  )
  const forget = sessions.onChange((session, end) => {
    const gone = user
    user = session?.userId
    if (session) schedule(delay)
    // what a deleted user did is nobody's
    else if (end === 'deleted') void change((all) => all.filter((event) => event.user !== gone)).catch(() => undefined)
  })
  // what the program before this one left behind
  read().then(
    (events) => events.length > 0 && schedule(delay),
    () => undefined,
  )

  return {
    async track(name, properties = {}) {
      const session = await sessions.current()
      const event: Stored = {
        id: newId(),
        event_name: name,
        properties,
        at: transport.now(),
        skew: transport.skew ?? null,
        user: session?.userId ?? null,
      }
      let dropped: Stored | undefined
      await change((all) => {
        if (all.length >= most) dropped = all[0]
        return [...(dropped ? all.slice(1) : all), event]
      })
      if (dropped) drop(dropped, 'QUEUE_FULL', `More than ${most} events were waiting.`)
      schedule(delay)
      return event.id
    },
    flush,
    size: async () => (await read()).length,
    close() {
      isClosed = true
      stop?.()
      forget()
      platform.removeEventListener?.('online', isOnline)
    },
  }
}
