import type { Logger } from 'pino'
import type { Config } from '#server/config.ts'
import type { Secrets } from '#server/secrets.ts'
import type { Stopping } from '#server/stopping.ts'

/**
 * What a request handler and a worker's task may use: made once at start, closed in order at the end. The file that makes one of them
 * adds it here (`declare module '#server/services.ts'`), so that no file has to know all. A function takes those that it uses:
 * `Pick<Services, 'database' | 'control'>`.
 */
export interface Services {
  readonly config: Config
  readonly publicUrl: string
  readonly log: Logger
  readonly secrets: Secrets
  /** When the server stops: background work looks between its steps. */
  readonly stopping: Stopping
  /** The clock: real, or the one that a test harness passes. */
  readonly now: () => Date
}
