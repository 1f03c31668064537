import { readdir } from 'node:fs/promises'
import type { Arguments, Place, Reply } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'

/**
 * Who waits for work. `prompt`: a person, and it is short; some places are kept for it. `usual`: what follows from requests.
 * `background`: statistics, chores, and whatever may take long; it never has all places.
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
  /** Which lease this is: only the newest may settle the row. */
  readonly lease: number
}

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

/** Work of a tenant's outbox: answers when it is due again, or null when it is done. A throw is retried with back-off. */
export type OutboxTask = {
  readonly kind: 'outbox'
  readonly name: string
  readonly share: Share
  readonly run: (context: TenantContext, row: OutboxRow) => Promise<Date | null>
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
