import { EventEmitter } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Logger, makeWorkerUtils, run, type TaskList, type WorkerEvents } from 'graphile-worker'
import type pg from 'pg'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { loadTasks } from '#workers/task.ts'

export type Workers = { stop(): Promise<void> }

const beatMs = 5_000
const silentSeconds = 20

/** Runs jobs of the control database until stopped. Any number of processes may do so. */
export const startWorkers = async (services: Services, jobs: pg.Pool, concurrency = 8): Promise<Workers> => {
  const { jobs: tasks } = await loadTasks()
  const taskList: TaskList = Object.fromEntries(
    tasks.map((task) => [task.name, async (payload: unknown) => task.run(services, payload as Record<string, string>)]),
  )
  const ids = new Set<string>()
  const events = new EventEmitter() as unknown as WorkerEvents
  events.on('pool:create', ({ workerPool }) => ids.add((workerPool as unknown as { id: string }).id))
  events.on('worker:create', ({ worker }) => ids.add(worker.workerId))
  const logger = new Logger(() => (level, message) => {
    if (level === 'error' || level === 'warning') services.log.warn({ worker: true }, message)
  })

  const runner = await run({
    pgPool: jobs,
    schema: 'graphile_worker',
    taskList,
    concurrency,
    pollInterval: 1000,
    noHandleSignals: true,
    crontab: await readFile(new URL('./crontab', import.meta.url), 'utf8'),
    logger,
    events,
  })
  const utils = await makeWorkerUtils({ pgPool: jobs, schema: 'graphile_worker', logger })
  const stopBeating = keepAlive(services, ids, (gone) => utils.forceUnlockWorkers(gone))
  await services.fleet.queueMigrations()
  return {
    async stop() {
      stopBeating()
      await runner.stop().catch(() => undefined)
      await utils.release()
      await call(services, 'workers_stopped', { ids: [...ids] }).catch(() => undefined)
    },
  }
}

const call = (services: Services, name: string, args: Record<string, unknown>) =>
  services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args)

/** graphile-worker leaves a dead worker's jobs locked for four hours: whoever lives frees them after some seconds. */
const keepAlive = (
  services: Services,
  ids: ReadonlySet<string>,
  unlock: (gone: string[]) => Promise<void>,
): (() => void) => {
  const beat = async () => {
    try {
      await call(services, 'workers_beat', { ids: [...ids] })
      const gone = dataOf<string[]>(await call(services, 'workers_gone', { silent_seconds: silentSeconds }))
      if (gone.length > 0) await unlock(gone)
    } catch (error) {
      services.log.warn({ error: (error as Error).message }, 'no heartbeat')
    }
  }
  void beat()
  const timer = setInterval(() => void beat(), beatMs)
  return () => clearInterval(timer)
}
