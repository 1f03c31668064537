import { EventEmitter } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Logger, makeWorkerUtils, type Runner, run, type TaskList, type WorkerEvents } from 'graphile-worker'
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

  const crontab = await readFile(new URL('./crontab', import.meta.url), 'utf8')
  const start = () => {
    // a runner that ended keeps its jobs locked: its ids go silent, and the sweep of the dead frees them
    ids.clear()
    return run({
      pgPool: jobs,
      schema: 'graphile_worker',
      taskList,
      concurrency,
      pollInterval: 1000,
      noHandleSignals: true,
      crontab,
      logger,
      events,
    })
  }
  const runner = await keepRunning(services, start)
  const utils = await makeWorkerUtils({ pgPool: jobs, schema: 'graphile_worker', logger })
  const stopBeating = keepAlive(services, ids, (gone) => utils.forceUnlockWorkers(gone))
  await services.fleet.queueMigrations()
  return {
    async stop() {
      stopBeating()
      await runner.stop()
      await utils.release()
      await call(services, 'workers_stopped', { ids: [...ids] }).catch(() => undefined)
    },
  }
}

/** A runner gives up when it loses the database for long: begin again until we are told to stop. */
const keepRunning = async (services: Services, start: () => Promise<Runner>): Promise<Workers> => {
  let current = await start()
  let stopping = false
  const watch = async (): Promise<void> => {
    while (!stopping) {
      await current.promise.catch((error: Error) => services.log.warn({ error: error.message }, 'the job runner ended'))
      while (!stopping) {
        await sleep(1000)
        try {
          current = await start()
          break
        } catch (error) {
          services.log.warn({ error: (error as Error).message }, 'the job runner cannot start yet')
        }
      }
    }
  }
  const watching = watch()
  return {
    async stop() {
      stopping = true
      await current.stop().catch(() => undefined)
      await watching
      // one that began at this very moment
      await current.stop().catch(() => undefined)
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
