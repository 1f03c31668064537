import type { Logger } from 'pino'
import { existingHome } from '#fleet/embedded/folder.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import type { Config } from '#server/config.ts'
import { locate } from '#server/database/hosts.ts'
import { learnPasswords } from '#server/database/passwords.ts'
import { StartError } from '#server/errors.ts'
import { createSecrets, loadSecretsKey, type Secrets } from '#server/secrets.ts'

/** Where the databases are: embedded, or a server of the operator's. */
export type Postgres = { readonly dsn: string; readonly socketDirectory: string | null; stop(): Promise<void> }

export type Foundation = {
  readonly config: Config
  readonly log: Logger
  readonly secrets: Secrets
  readonly postgres: Postgres
}

/** A standby, or a restored copy, must allow as many as the server did that wrote the WAL. */
export const embeddedConnections = 300

const superuserPurpose = 'embedded superuser'

/**
 * The password that embedded Postgres is made with; whoever connects learns on the way when it is that of another key. A rotation gives it the
 * one of the current key.
 */
export const embeddedPassword = (secrets: Secrets): string => {
  learnPasswords(secrets.deriveAll(superuserPurpose, 24).map((bytes) => bytes.toString('base64url')))
  return secrets.derive(superuserPurpose, 24).toString('base64url')
}

export const currentEmbeddedPassword = (secrets: Secrets): string =>
  secrets.deriveCurrent(superuserPurpose, 24).toString('base64url')

/** Starts embedded Postgres, or takes the one of DATABASE_URL. */
export const startPostgres = async (config: Config, log: Logger): Promise<Foundation> => {
  const secrets = createSecrets(await loadSecretsKey(config.SECRETS_KEY, config.DATA_DIR))
  if (config.DATABASE_URL) {
    const dsn = config.DATABASE_URL
    await locate(dsn)
    return { config, log, secrets, postgres: { dsn, socketDirectory: null, stop: async () => undefined } }
  }
  const start = () =>
    startEmbeddedPostgres({
      dataDir: config.DATA_DIR,
      superuserPassword: embeddedPassword(secrets),
      log: (message) => log.info(message),
      maxConnections: embeddedConnections,
      archiveTo: config.ARCHIVE_TO,
    })
  return { config, log, secrets, postgres: supervise(await start(), start, log) }
}

/** As `startPostgres`, where there are data already. An operator's command makes none: it refuses, and writes nothing. */
export const startExistingPostgres = async (config: Config, log: Logger): Promise<Foundation> => {
  if (!config.DATABASE_URL && !(await existingHome(config.DATA_DIR))) throw new StartError(noDatabases)
  return startPostgres(config, log)
}

export const noDatabases = 'There are no databases here yet: run npm start, or npm run db:migrate.'

/** Embedded Postgres is ours to look after: one that was killed is started again, where it was. */
const supervise = (first: EmbeddedPostgres, start: () => Promise<EmbeddedPostgres>, log: Logger): Postgres => {
  let current = first
  let restarting: Promise<void> | undefined
  const restart = async (): Promise<void> => {
    log.warn({ pid: current.pid }, 'embedded Postgres is gone: starting it again')
    await start().then(
      (next) => {
        // else Postgres would look used for ever, and outlive the server
        current.release()
        current = next
        if (next.url !== first.url) log.error('embedded Postgres came back on another port: start the server again')
      },
      (error: Error) => log.error({ error: error.message }, 'embedded Postgres cannot be started'),
    )
    restarting = undefined
  }
  const timer = setInterval(() => {
    if (!restarting && !isAlive(current.pid)) restarting = restart()
  }, 500)
  timer.unref()
  return {
    dsn: first.url,
    socketDirectory: first.socketDirectory,
    async stop() {
      clearInterval(timer)
      await restarting
      await current.stop()
    },
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
