import { readdir } from 'node:fs/promises'
import type { Place } from '#server/database/cluster.ts'
import type { Reply } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import type { Services } from '#server/services.ts'
import type { SpanAttributes } from '#server/telemetry/spans.ts'

/**
 * The scheduling class of a task. `prompt`: a short task that a person waits for; some places are reserved for these. `usual`: tasks that
 * follow from requests. `background`: statistics, maintenance, and every task that may take long; these never occupy all slots.
 */
export type Urgency = 'prompt' | 'usual' | 'background'
export const urgencies: readonly Urgency[] = ['prompt', 'usual', 'background']

/**
 * Whose slots a task takes. `shared`: those that are divided by urgency. `outbound`: it waits for servers of strangers, and those that are silent hold
 * no other job up. `indexes`: it waits for Postgres, in one statement that may take many minutes and cannot be interrupted to let others go first.
 */
export type Slots = 'shared' | 'outbound' | 'indexes'

/** The result of a job that is not done: the queue runs it again with this payload, after the jobs that wait, with this priority or that of the job. */
export type Again = { readonly again: Record<string, string>; readonly priority?: number }

/** A graphile-worker job of the control database. */
export type Job = {
  readonly kind: 'job'
  readonly name: string
  readonly urgency: Urgency
  readonly slots: Slots
  readonly run: (services: Services, payload: Record<string, string>) => Promise<Again | null> | Promise<void>
}

/** A leased row of a tenant's outbox. */
export type OutboxRow = {
  readonly id: string
  readonly task: string
  readonly key: string | null
  readonly payload: Record<string, unknown>
  readonly attempts: number
  /** The number of the lease: only the newest lease may finish the row. */
  readonly lease: number
  /** The result of internal.outbox_begun__<task>; null where the area has none, or nothing for this row. */
  readonly begun?: unknown
}

/** The result of a task whose row a function of its own has finished. */
export const finished = Symbol('finished')

/**
 * Calls an api function that finishes the task's row in its own transaction, which spares a round trip. The function takes `row_id`,
 * `lease`, `rules` and `is_last` in addition to these arguments, and answers as api.webhook_attempt_finish does.
 */
export type Finish = (name: string, args: Arguments) => Promise<typeof finished>

export type TenantContext = {
  readonly services: Services
  readonly projectId: string
  readonly place: Place
  /** Calls an api function of the tenant, as app_worker. */
  readonly call: Call
  /** Like call, for a task that may stop between two steps: throws Stopped when the server stops, and the lease of the row is released. */
  readonly step: Call
}

type Call = (
  name: string,
  args: Arguments,
  settings?: { readonly timeoutMs?: number; readonly background?: boolean },
) => Promise<Reply>

/** How the rows of a task share a project's workers with other tasks. */
export type Share = {
  /** `usual` by default. */
  readonly urgency?: Urgency
  /** How many rows of the task may run at once in a project: 1 where running two gains nothing. Unlimited by default. */
  readonly atOnce?: number
}

/**
 * A task of a tenant's outbox. Returns when it is due again, null when it is done, or `finished` when its row is finished already. A task that
 * throws is retried with back-off and jitter.
 */
export type OutboxTask = {
  readonly kind: 'outbox'
  readonly name: string
  readonly share: Share
  readonly run: (context: TenantContext, row: OutboxRow, finish: Finish) => Promise<Date | null | typeof finished>
}

/** What the span of a job has. */
export const jobAttributes = (
  queue: 'jobs' | 'outbox',
  task: string,
  projectId: string | undefined,
  attempts: number,
): SpanAttributes => ({
  'messaging.system': 'trellis',
  'messaging.operation.type': 'process',
  'messaging.destination.name': queue,
  'trellis.task': task,
  'trellis.project': projectId,
  'trellis.attempts': attempts,
})

/** Declares a job; without an urgency it is `background`, in the shared slots. */
export const job = (
  name: string,
  run: Job['run'],
  urgency: Urgency = 'background',
  { slots = 'shared' }: { readonly slots?: Slots } = {},
): Job => ({
  kind: 'job',
  name,
  urgency,
  slots,
  run,
})

/** Declares a task of the outbox. */
export const outboxTask = (name: string, run: OutboxTask['run'], share: Share = {}): OutboxTask => ({
  kind: 'outbox',
  name,
  share,
  run,
})

/** The answer of a step after which more remains. */
export const more = Symbol('more')

/** The length of a turn. */
const turnMs = 15_000

/**
 * Repeats a step until it answers when the row is due next, or null when the row is done. A turn that lasts too long ends: the row is due again
 * at once, behind rows that have waited longer.
 */
export const runTurn = async (
  { services }: Pick<TenantContext, 'services'>,
  step: () => Promise<Date | null | typeof more>,
): Promise<Date | null> => {
  const until = performance.now() + turnMs
  for (;;) {
    const next = await step()
    if (next !== more) return next
    if (performance.now() > until) return services.now()
  }
}

/** A time as SQL answers it; null where there is none. */
export const timeOf = (text: string | null | undefined): Date | null => (text ? new Date(text) : null)

export type Tasks = { readonly jobs: readonly Job[]; readonly outbox: ReadonlyMap<string, OutboxTask> }

let loaded: Promise<Tasks> | undefined

/** All tasks: the exports of the files in workers/tasks. */
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
    outbox: withFormerNames(tasks.filter((task) => task.kind === 'outbox')),
  }
}

/** Former names of tasks: rows that the functions of the former version queue, while a deployment replaces it, run as well. */
const formerNames = new Map([
  ['flags__tell', 'flags__notify'],
  ['leaderboards__tell', 'leaderboards__notify'],
  ['leaderboards__turn', 'leaderboards__rollover'],
  ['webhooks__tell', 'webhooks__notify'],
])

const withFormerNames = (tasks: readonly OutboxTask[]): Map<string, OutboxTask> => {
  const byName = new Map(tasks.map((task) => [task.name, task]))
  for (const [former, name] of formerNames) {
    const task = byName.get(name)
    if (!task) throw new Error(`The task ${name}, formerly ${former}, does not exist`)
    byName.set(former, task)
  }
  return byName
}

const isTask = (value: unknown): value is Job | OutboxTask =>
  typeof value === 'object' && value !== null && 'kind' in value && (value.kind === 'job' || value.kind === 'outbox')
