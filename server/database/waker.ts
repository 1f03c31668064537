import type pg from 'pg'
import type { Logger } from 'pino'
import { createLru } from '#server/lru.ts'
import { activeSpan, outside, traceparentOf } from '#server/telemetry/spans.ts'

/** Wakes the workers for a tenant that has due work. */
export type Waker = {
  wake(projectId: string, dueAt: string): void
  /** The same for what the sweep found: it goes after what requests woke. */
  wakeSwept(projectId: string): void
  /** Has the audit trails of control sealed. */
  seal(): void
  /** Records that a tenant is written to, so that the sweep of every minute checks it; at most every five minutes. */
  written(projectId: string): void
  flush(): Promise<void>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly waker: Waker
  }
}

/**
 * Adds graphile-worker jobs, coalesced for 20 ms. Three keys a tenant: `ID:now`, `ID:timer` for work due later, which only
 * ever moves to an earlier time here, and `ID:sweep`. What is lost when this process dies in between, the sweep finds.
 */
export const createWaker = (
  jobs: pg.Pool,
  log: Logger,
  noteWritten: (projectIds: string[]) => Promise<void>,
): Waker => {
  let due = new Map<string, number>()
  // the request or job that woke a tenant last, where it is traced: the drain's trace names it
  let causes = new Map<string, string>()
  let swept = new Set<string>()
  let fresh: string[] = []
  let isSealDue = false
  const noted = createLru<true>(100_000, { ttlMs: 300_000 })
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  const send = async (): Promise<void> => {
    timer = undefined
    const wakes = [...due].map(([id, at]) => ({
      id,
      at: new Date(at).toISOString(),
      kind: at <= Date.now() + 1000 ? 'now' : 'timer',
      traceparent: causes.get(id),
    }))
    const now = new Date().toISOString()
    for (const id of swept) wakes.push({ id, at: now, kind: 'sweep', traceparent: undefined })
    const written = fresh
    const seals = isSealDue
    due = new Map()
    causes = new Map()
    swept = new Set()
    fresh = []
    isSealDue = false
    try {
      if (wakes.length > 0) await jobs.query(addDrains, [JSON.stringify(wakes)])
      if (seals) await jobs.query(addSeal)
      if (written.length > 0) await noteWritten(written)
    } catch (error) {
      log.warn({ error: (error as Error).message, tenants: wakes.length }, 'cannot wake tenants now; the sweep will')
    }
  }
  const soon = () => {
    timer ??= outside(() =>
      setTimeout(() => {
        running = running.then(send)
      }, 20),
    )
  }

  return {
    wake(projectId, dueAt) {
      const at = Date.parse(dueAt)
      due.set(projectId, Math.min(at, due.get(projectId) ?? at))
      const cause = activeSpan()
      if (cause?.isSampled) causes.set(projectId, traceparentOf(cause))
      soon()
    },
    wakeSwept(projectId) {
      swept.add(projectId)
      soon()
    },
    seal() {
      isSealDue = true
      soon()
    },
    written(projectId) {
      if (noted.has(projectId)) return
      noted.set(projectId, true)
      fresh.push(projectId)
      soon()
    },
    async flush() {
      if (timer) {
        clearTimeout(timer)
        running = running.then(send)
      }
      await running
    },
    async close() {
      await this.flush()
    },
  }
}

const addSeal = `select graphile_worker.add_job('audit__seal', job_key := 'audit__seal', max_attempts := 5)`

// a lower priority goes first
const addDrains = `
  select graphile_worker.add_job('tenant__drain', json_strip_nulls(json_build_object('project_id', w.id, 'traceparent', w.traceparent)),
           job_key := w.id || ':' || w.kind,
           run_at := case when w.kind = 'timer'
                          then least(w.at, coalesce((select j.run_at from graphile_worker.jobs j where j.key = w.id || ':timer'), w.at))
                          else now() end,
           priority := case when w.kind = 'sweep' then 10 else 0 end,
           max_attempts := 5)
    from json_to_recordset($1) as w (id text, at timestamptz, kind text, traceparent text)`
