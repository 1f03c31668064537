import { EventEmitter } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Logger,
  makeWorkerUtils,
  type Runner,
  type RunnerOptions,
  run,
  type Task,
  type TaskList,
  type WorkerEvents,
  type WorkerUtils,
} from 'graphile-worker'
import type pg from 'pg'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { orStopped, sleepUntil } from '#server/stopping.ts'
import { errorType, within } from '#server/telemetry/spans.ts'
import { drainsEnded } from '#workers/drain.ts'
import { type Again, type Job, jobAttributes, loadTasks, type Slots, type Urgency, urgencies } from '#workers/task.ts'

export type Workers = { stop(): Promise<void> }

const heartbeatMs = 5_000
const silentSeconds = 20
/** How long a step of a background task may continue after the server was asked to stop. */
const lastStepMs = 2_000

/**
 * How many jobs run at once, by the least urgent job that a slot takes. Some slots take only `prompt` jobs, some `prompt` and `usual` jobs,
 * and the rest any job, so that background jobs never occupy all slots.
 */
export const slotsOf = (concurrency: number): Readonly<Record<Urgency, number>> => {
  if (concurrency < 3) return { prompt: 0, usual: 0, background: concurrency }
  const prompt = Math.max(1, Math.floor(concurrency / 4))
  const usual = Math.max(1, Math.floor((concurrency * 3) / 8))
  return { prompt, usual, background: concurrency - prompt - usual }
}

/** Slots beside those, for jobs that wait for servers of strangers: while they wait they hold hardly more than a timer. Receivers that fail or never answered have at most five. */
export const outboundSlotsOf = (concurrency: number): number => (concurrency < 3 ? 1 : 12)

/** Slots for builds of indexes, of which Postgres runs one statement each: how many may run at once is a question of its disk. */
export const indexSlotsOf = (concurrency: number): number => (concurrency < 3 ? 1 : 2)

/** Runs jobs of the control database until stopped. Any number of processes may do so. */
export const startWorkers = async (
  services: Services,
  jobs: pg.Pool,
  concurrency = 8,
  declared?: readonly Job[],
): Promise<Workers> => {
  const tasks = declared ?? (await loadTasks()).jobs
  const known: Set<string>[] = []
  const idsOf = () => known.flatMap((ids) => [...ids])
  const logger = new Logger(() => (level, message) => {
    if (level === 'error' || level === 'warning') services.log.warn({ worker: true }, message)
  })
  const utils = await makeWorkerUtils({ pgPool: jobs, schema: 'graphile_worker', logger })
  const crontab = declared ? '' : await readFile(new URL('./crontab', import.meta.url), 'utf8')
  const places = slotsOf(concurrency)
  const runners: Workers[] = []
  const of = (slots: Slots) => tasks.filter((task) => task.slots === slots)
  const groups = [
    ...urgencies.map((urgency, rank) => ({
      concurrency: places[urgency],
      taken: of('shared').filter((task) => urgencies.indexOf(task.urgency) <= rank),
      hasCrontab: urgency === 'background',
    })),
    { concurrency: outboundSlotsOf(concurrency), taken: of('outbound'), hasCrontab: false },
    { concurrency: indexSlotsOf(concurrency), taken: of('indexes'), hasCrontab: false },
  ]
  for (const { concurrency: atOnce, taken, hasCrontab } of groups) {
    if (atOnce === 0 || taken.length === 0) continue
    const options: RunnerOptions = {
      pgPool: jobs,
      schema: 'graphile_worker',
      taskList: Object.fromEntries(taken.map((task) => [task.name, taskOf(services, jobs, task)])) satisfies TaskList,
      concurrency: atOnce,
      pollInterval: 1000,
      noHandleSignals: true,
      // only one runner schedules the crontab
      ...(hasCrontab ? { crontab } : { parsedCronItems: [] }),
      logger,
    }
    const ids = new Set<string>()
    known.push(ids)
    runners.push(await keepRunning(services, () => startRunner(options, ids)))
  }
  const stopBeating = keepAlive(services, idsOf, (gone) => utils.forceUnlockWorkers(gone))
  await services.fleet.queueMigrations()
  return {
    async stop() {
      const stopCancelling = cancelLastSteps(services)
      await Promise.all([...runners.map((runner) => runner.stop()), drainsEnded(services)])
      stopCancelling()
      stopBeating()
      await unlockJobs(services, jobs, utils, idsOf())
    },
  }
}

/** Starts a runner and collects the ids of its workers. After a runner has ended, its ids send no heartbeat, and their jobs are unlocked. */
const startRunner = (options: RunnerOptions, ids: Set<string>): Promise<Runner> => {
  const events = new EventEmitter() as unknown as WorkerEvents
  ids.clear()
  events.on('pool:create', ({ workerPool }) => ids.add((workerPool as unknown as { id: string }).id))
  events.on('worker:create', ({ worker }) => ids.add(worker.workerId))
  return run({ ...options, events })
}

/** A job as a task of graphile-worker. A job that the stop of the server interrupts is queued again, unchanged, for another worker. */
const taskOf =
  (services: Services, jobs: pg.Pool, task: Job): Task =>
  async (payload, helpers) => {
    const queueAgain = async (next: unknown, priority = helpers.job.priority) => {
      const { key, max_attempts } = helpers.job
      const { rows } = await jobs.query<{ queue_name: string | null }>(
        'select queue_name from graphile_worker.jobs where id = $1',
        [helpers.job.id],
      )
      await helpers.addJob(task.name, next, {
        priority,
        maxAttempts: max_attempts,
        ...(key === null ? {} : { jobKey: key }),
        ...(rows[0]?.queue_name ? { queueName: rows[0].queue_name } : {}),
      })
    }
    const { asked, over } = services.stopping
    const { measures, traces } = services.telemetry
    const began = performance.now()
    const { traceparent, ...own } = payload as Record<string, string>
    const attributes = jobAttributes('jobs', task.name, own['project_id'], helpers.job.attempts)
    const span = traces.job(task.name, attributes, [traceparent])
    try {
      const result = await within(span, () =>
        orStopped(task.run(services, own) as Promise<Again | null | undefined>, over),
      )
      span.end()
      measures.job(task.name, result ? 'again' : 'done', performance.now() - began)
      if (result) await queueAgain(result.again, result.priority)
    } catch (error) {
      measures.job(task.name, asked.aborted ? 'stopped' : 'failed', performance.now() - began)
      span.end(asked.aborted ? undefined : errorType(error))
      if (!asked.aborted) throw error
      await queueAgain(payload)
    }
  }

/** Cancels steps of background tasks that outlast a stop by 2 s: a step is a transaction that is safe to run again. */
const cancelLastSteps = ({ database, log }: Services): (() => void) => {
  const began = performance.now()
  const timer = setInterval(() => {
    if (performance.now() - began < lastStepMs) return
    database.cancel({ background: true, olderThanMs: lastStepMs }).then(
      (cancelled) => cancelled > 0 && log.info({ cancelled }, 'steps of background work were cancelled'),
      (error: Error) => log.warn({ error: error.message }, 'steps of background work were not cancelled'),
    )
  }, 250)
  return () => clearInterval(timer)
}

/** Unlocks all jobs that the workers of this process have left locked. */
const unlockJobs = async (services: Services, jobs: pg.Pool, utils: WorkerUtils, ids: readonly string[]) => {
  // graphile-worker does not wait for the query that removes a finished job, and a job must not be unlocked before it is removed
  const until = performance.now() + 1000
  while (jobs.idleCount < jobs.totalCount && performance.now() < until) await sleep(10)
  try {
    await utils.forceUnlockWorkers([...ids])
    await call(services, 'workers_stopped', { ids })
  } catch (error) {
    services.log.warn({ error: (error as Error).message }, 'jobs may be locked until others notice')
  }
  await utils.release()
}

/** Restarts a runner whenever it ends, until the process is stopped: a runner ends when it loses the database for long. */
const keepRunning = async (services: Services, start: () => Promise<Runner>): Promise<Workers> => {
  const { asked } = services.stopping
  let current = await start()
  let stopping = false
  const watch = async (): Promise<void> => {
    while (!stopping) {
      await current.promise.catch((error: Error) => services.log.warn({ error: error.message }, 'the job runner ended'))
      while (!stopping) {
        await sleepUntil(1000, asked)
        if (stopping) return
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
      // a runner that was started during the stop
      await current.stop().catch(() => undefined)
    },
  }
}

const call = (services: Services, name: string, args: Record<string, unknown>) =>
  services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args)

/** Sends heartbeats and unlocks the jobs of dead workers after some seconds; graphile-worker would leave them locked for four hours. */
const keepAlive = (
  services: Services,
  ids: () => string[],
  unlock: (gone: string[]) => Promise<void>,
): (() => void) => {
  const heartbeat = async () => {
    try {
      await call(services, 'workers_beat', { ids: ids() })
      const gone = dataOf<string[]>(await call(services, 'workers_gone', { silent_seconds: silentSeconds }))
      if (gone.length > 0) await unlock(gone)
    } catch (error) {
      services.log.warn({ error: (error as Error).message }, 'no heartbeat')
    }
  }
  void heartbeat()
  const timer = setInterval(() => void heartbeat(), heartbeatMs)
  return () => clearInterval(timer)
}
