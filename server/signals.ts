import { setTimeout as sleep } from 'node:timers/promises'
import { announce } from '#server/log.ts'

export type Ending = {
  /** Ends in order, within SHUTDOWN_SECONDS and what closing takes. */
  readonly stop: () => Promise<void>
  /** Ends whatever is still under way; `stop` resolves soon after. */
  readonly endNow: () => void
  /** The last: embedded Postgres, where it is ours. */
  readonly stopPostgres: () => Promise<void>
  readonly seconds: number
}

/** What closing may take when the time for what is under way has passed. */
const closingMs = 4_000
/** What a second signal leaves for cancelling statements and handing leases back, and then for Postgres to end. */
const atOnceMs = 1_000
/** npm forwards the signal that a terminal has sent to the whole group already: both are one request to stop. */
const sameMs = 500

/** The first SIGINT or SIGTERM stops in order, a second one at once. Ends the process either way. */
export const stopOnSignals = (ending: Ending): void => {
  let began: number | undefined
  let stopped: Promise<void> = Promise.resolve()
  const receive = (signal: string): void => {
    if (began === undefined) {
      began = performance.now()
      const text = `finishing what is under way; a second ${signal} ends it`
      announce(text, { signal }, `\n${signal}: ${text}\n`)
      stopped = ending.stop()
      void stopInOrder(ending, stopped)
    } else if (performance.now() - began > sameMs) {
      process.stderr.write(`\n${signal}: ending at once\n`)
      void endAtOnce(ending, stopped)
    }
  }
  process.on('SIGINT', receive)
  process.on('SIGTERM', receive)
}

const fail = (error: unknown): void => {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}

const stopInOrder = async (ending: Ending, stopped: Promise<void>): Promise<void> => {
  await Promise.race([stopped, sleep(ending.seconds * 1000 + closingMs)]).catch(fail)
  ending.endNow()
  await ending.stopPostgres().catch(fail)
  process.exit()
}

/** Postgres that has not ended by then goes on ending by itself: it has the signal, and keeps every commit. */
const endAtOnce = async (ending: Ending, stopped: Promise<void>): Promise<void> => {
  process.exitCode = 1
  ending.endNow()
  await Promise.race([stopped, sleep(atOnceMs)]).catch(() => undefined)
  await Promise.race([ending.stopPostgres(), sleep(atOnceMs)]).catch(() => undefined)
  process.exit()
}
