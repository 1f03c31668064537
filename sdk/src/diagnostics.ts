import type { App } from './app.ts'
import { isRefusal, isTemporary, TrellisError } from './errors.ts'
import { sendReports } from './generated/client.ts'
import { exclusively, later, newId } from './platform.ts'
import { backoff } from './transport.ts'

export type DiagnosticsOptions = {
  /** Report uncaught errors and rejections: off unless asked for. */
  readonly uncaught?: boolean | undefined
  readonly appVersion?: string | undefined
  readonly osVersion?: string | undefined
  readonly deviceModel?: string | undefined
  /** Milliseconds from a report to its sending: 2,000. */
  readonly delay?: number | undefined
  /** How many reports are taken in a minute: 20. A loop that fails must not cost the user's network. */
  readonly perMinute?: number | undefined
  /** How many unsent reports are kept: 100. Beyond them the oldest is dropped. */
  readonly most?: number | undefined
}

export type ReportFields = {
  readonly kind?: 'log' | 'error' | 'crash' | 'performance' | undefined
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | 'fatal' | undefined
  readonly context?: Readonly<Record<string, unknown>> | undefined
  readonly fingerprint?: string | undefined
}

export type Diagnostics = {
  /** Stores an error and sends it soon. False where the limit of a minute is reached. */
  report(error: unknown, fields?: ReportFields): Promise<boolean>
  /** Sends what is stored now; throws when the server cannot be reached, and keeps the reports. */
  flush(): Promise<{ readonly accepted: number; readonly left: number }>
  size(): Promise<number>
  /** Listens and sends no more; what is stored stays. */
  close(): void
}

type Handler = (error: unknown, isFatal?: boolean) => void
type Listen = (type: string, listener: (event: never) => void) => void
type Globals = {
  readonly addEventListener?: Listen
  readonly removeEventListener?: Listen
  /** React Native. */
  readonly ErrorUtils?: { getGlobalHandler(): Handler | undefined; setGlobalHandler(handler: Handler): void }
  /** Node: the monitor sees uncaught errors and rejections, and changes nothing of what happens then. */
  readonly process?: { on?(type: string, listener: Handler): void; off?(type: string, listener: Handler): void }
  readonly document?: unknown
}

/** Tells of what nobody caught, as a page, React Native or Node has it. Answers how to end it. */
const listen = (told: Handler): (() => void) => {
  const { ErrorUtils, addEventListener, removeEventListener, process, document } = globalThis as unknown as Globals
  if (ErrorUtils) {
    const before = ErrorUtils.getGlobalHandler()
    let isOver = false
    ErrorUtils.setGlobalHandler((error, isFatal) => {
      if (!isOver) told(error, isFatal)
      before?.(error, isFatal)
    })
    return () => {
      isOver = true
    }
  }
  if (document && addEventListener) {
    const onError = (event: { error?: unknown; message?: string }) => told(event.error ?? event.message)
    const onRejection = (event: { reason?: unknown }) => told(event.reason)
    addEventListener('error', onError)
    addEventListener('unhandledrejection', onRejection)
    return () => {
      removeEventListener?.('error', onError)
      removeEventListener?.('unhandledrejection', onRejection)
    }
  }
  const onUncaught: Handler = (error) => told(error, true)
  process?.on?.('uncaughtExceptionMonitor', onUncaught)
  return () => process?.off?.('uncaughtExceptionMonitor', onUncaught)
}

type Stored = ReportFields & {
  /** The server knows by it a report whose answer was lost. */
  readonly id?: string
  readonly message: string
  readonly stack: string | undefined
  readonly at: number
  /** Whose report it is: it is never sent as another user's. */
  readonly user: string | null
}

/** A body has at most 1 MB. */
const batchSize = 20
/** What the server takes of a context, in bytes. */
const mostContext = 16_384

/** A context that can be sent: an error must not be lost because of what stands beside it. */
const contextOf = (context: ReportFields['context']): ReportFields['context'] => {
  try {
    // React Native has no TextEncoder in every version
    const bytes = encodeURIComponent(JSON.stringify(context)).replace(/%../g, '.').length
    return bytes <= mostContext ? context : { omitted: 'The context was too large.' }
  } catch {
    return { omitted: 'The context was no JSON.' }
  }
}

const textOf = (error: unknown): string => {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  } catch {
    return 'Unknown'
  }
}

/** Reports of errors, in a queue that outlives restarts and the lack of a network. Each counts once, also where an answer was lost. */
export const createDiagnostics = (app: App, options: DiagnosticsOptions = {}): Diagnostics => {
  const { transport, sessions, store, prefix, send } = app.inside
  const { delay = 2000, perMinute = 20, most = 100, appVersion, osVersion, deviceModel } = options
  const place = `${prefix}:reports`
  let stop: (() => void) | undefined
  let failures = 0
  let isClosed = false
  let minute = { began: 0, taken: 0 }

  const read = async (): Promise<Stored[]> => {
    try {
      return JSON.parse((await store.getItem(place)) || '[]') as Stored[]
    } catch {
      return []
    }
  }
  const change = (next: (reports: Stored[]) => Stored[]): Promise<void> =>
    exclusively(place, async () => {
      const reports = next(await read())
      if (reports.length > 0) await store.setItem(place, JSON.stringify(reports))
      else await store.removeItem(place)
    })

  const sentForm = ({ id, kind = 'error', level = 'error', message, stack, context, fingerprint, at }: Stored) => ({
    id,
    kind,
    level,
    message,
    stack,
    context,
    fingerprint,
    occurred_at: new Date(at + (transport.skew ?? 0)).toISOString(),
    app_version: appVersion,
    os_version: osVersion,
    device_model: deviceModel,
  })

  const post = async (batch: readonly Stored[]): Promise<number> => {
    try {
      const { body } = await send(sendReports, { body: { reports: batch.map(sentForm) } as never })
      return body.data.accepted
    } catch (error) {
      if (!isRefusal(error) || ![400, 413].includes(error.status)) throw error
      // what the server will never take must not hold up the rest, nor take it along
      if (batch.length <= 1) return 0
      const half = Math.ceil(batch.length / 2)
      return (await post(batch.slice(0, half))) + (await post(batch.slice(half)))
    }
  }

  const flush = (): Promise<{ accepted: number; left: number }> =>
    exclusively(`${place}:flush`, async () => {
      let accepted = 0
      for (;;) {
        const user = (await sessions.current())?.userId ?? null
        const all = await read()
        const batch = all.filter((one) => one.user === null || one.user === user).slice(0, batchSize)
        if (batch.length === 0) return { accepted, left: all.length }
        accepted += await post(batch)
        const sent = new Set(batch.map((one) => JSON.stringify(one)))
        await change((now) => now.filter((one) => !sent.has(JSON.stringify(one))))
        failures = 0
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

  const report: Diagnostics['report'] = async (error, fields = {}) => {
    const at = transport.now()
    // also when somebody sets the clock back
    if (Math.abs(at - minute.began) >= 60_000) minute = { began: at, taken: 0 }
    if (minute.taken >= perMinute) return false
    minute.taken += 1
    const message = textOf(error).slice(0, 4096) || 'Unknown'
    const stack = error instanceof Error ? error.stack?.slice(0, 32_768) : undefined
    const context = fields.context && contextOf(fields.context)
    const user = (await sessions.current())?.userId ?? null
    await change((all) => [...all, { ...fields, context, id: newId(), message, stack, at, user }].slice(-most))
    schedule(delay)
    return true
  }

  const end = options.uncaught
    ? listen((error, isFatal) => {
        const fields = isFatal ? ({ kind: 'crash', level: 'fatal' } as const) : {}
        // a report that cannot be stored must not make another one
        report(error, fields).catch(() => undefined)
      })
    : undefined
  read().then(
    (reports) => reports.length > 0 && schedule(delay),
    () => undefined,
  )

  return {
    report,
    flush,
    size: async () => (await read()).length,
    close() {
      isClosed = true
      stop?.()
      end?.()
    },
  }
}
