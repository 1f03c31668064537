import { readdir } from 'node:fs/promises'
import type { Arguments, Place, Reply } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'

/**
 * Who waits for work. `prompt`: a person, and it is short; some places are kept for it. `usual`: what follows from requests.
 * `background`: statistics, maintenance, and everything that may take long; it never occupies all slots.
 */
export type Urgency = 'prompt' | 'usual' | 'background'
export const urgencies: readonly Urgency[] = ['prompt', 'usual', 'background']

/** A job that is not over: the queue runs it again, after what waits, with this payload. */
export type Again = { readonly again: Record<string, string> }

/** A graphile-worker job of the control database. */
export type Job = {
  readonly kind: 'job'
  readonly name: string
  readonly urgency: Urgency
  readonly run: (services: Services, payload: Record<string, string>) => Promise<Again | null> | Promise<void>
}

/** A leased row of a tenant's outbox. */
export type OutboxRow = {
  readonly id: string
  readonly task: string
  readonly key: string | null
  readonly payload: Record<string, unknown>
  readonly attempts: number
  /** Which lease this is: only the newest may finish the row. */
  readonly lease: number
  /** What internal.outbox_begun has for this task; absent from a tenant that waits for its migration. */
  readonly begun?: unknown
}

/** The result of a task whose row a function of its own has settled. */
export const finished = Symbol('finished')

/**
 * Calls an api function that settles the task's row in its own transaction, which spares a round trip: it takes `row_id`, `lease`,
 * `rules` and `is_last` besides these arguments, and answers as api.webhook_attempt_finish does.
 */
export type Finish = (name: string, args: Arguments) => Promise<typeof finished>

export type TenantContext = {
  readonly services: Services
  readonly projectId: string
  readonly place: Place
  /** An api function of the tenant, as app_worker. */
  readonly call: Call
  /** The same between two of which a task may stop: throws Stopped when the server does, and the row is handed back. */
  readonly step: Call
}

type Call = (
  name: string,
  args: Arguments,
  settings?: { readonly timeoutMs?: number; readonly background?: boolean },
) => Promise<Reply>

/** How the rows of a task share a project's workers with others. */
export type Share = {
  /** Without it `usual`. */
  readonly urgency?: Urgency
  /** How many rows of the task may run at once in a project: 1 where two gain nothing. */
  readonly atOnce?: number
}

/** Work of a tenant's outbox: answers when it is due again, null when it is done, or that it is finished. A throw is retried with back-off. */
export type OutboxTask = {
  readonly kind: 'outbox'
  readonly name: string
  readonly share: Share
  readonly run: (context: TenantContext, row: OutboxRow, finish: Finish) => Promise<Date | null | typeof finished>
}

/** Declares a job; without an urgency it is `background`. */
export const job = (name: string, run: Job['run'], urgency: Urgency = 'background'): Job => ({
  kind: 'job',
  name,
  urgency,
  run,
})

/** Declares a task of the outbox. */
export const outboxTask = (name: string, run: OutboxTask['run'], share: Share = {}): OutboxTask => ({
  kind: 'outbox',
  name,
  share,
  run,
})

export type Tasks = { readonly jobs: readonly Job[]; readonly outbox: ReadonlyMap<string, OutboxTask> }

let loaded: Promise<Tasks> | undefined

/** Every task there is: whatever the files of workers/tasks export. */
export const loadTasks = (): Promise<Tasks> => {
  loaded ??= readTasks()
  return loaded
}

const readTasks = async (): Promise<Tasks> => {
  const folder = new URL('./tasks/', import.meta.url)
  const names = (await readdir(folder)).filter((name) => name.endsWith('.ts')).sort()
  const modules = await Promise.all(
    names.map((name) => import(new URL(name, folder).href) as Promise<Record<string, unknown>>),
  )
  const tasks = modules.flatMap((module) => Object.values(module)).filter(isTask)
  return {
    jobs: tasks.filter((task) => task.kind === 'job'),
    outbox: new Map(tasks.filter((task) => task.kind === 'outbox').map((task) => [task.name, task])),
  }
}

const isTask = (value: unknown): value is Job | OutboxTask =>
  typeof value === 'object' && value !== null && 'kind' in value && (value.kind === 'job' || value.kind === 'outbox')
