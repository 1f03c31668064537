import { readdir } from 'node:fs/promises'
import type { Arguments, Place, Reply } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'

/** A graphile-worker job of the control database. */
export type Job = {
  readonly kind: 'job'
  readonly name: string
  readonly run: (services: Services, payload: Record<string, string>) => Promise<void>
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
  readonly call: (name: string, args: Arguments) => Promise<Reply>
}

/** Work of a tenant's outbox: answers when it is due again, or null when it is done. A throw is retried with back-off. */
export type OutboxTask = {
  readonly kind: 'outbox'
  readonly name: string
  readonly run: (context: TenantContext, row: OutboxRow) => Promise<Date | null>
}

export const job = (name: string, run: Job['run']): Job => ({ kind: 'job', name, run })
export const outboxTask = (name: string, run: OutboxTask['run']): OutboxTask => ({ kind: 'outbox', name, run })

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
