// npm run admin -- keys: the keys of SECRETS_KEY, beside running servers.
import pg from 'pg'
import { bootstrapRoles } from '#fleet/cluster.ts'
import { withClusterLock } from '#fleet/locks.ts'
import { currentEmbeddedPassword, type Foundation, startExistingPostgres } from '#fleet/postgres.ts'
import { readConfig } from '#server/config.ts'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { checkKeys, forgetKey, keysChanged, keysStatus, rotateKey } from '#server/database/keys.ts'
import { controlName } from '#server/database/names.ts'
import { changedChannel } from '#server/database/notifier.ts'
import type { StartError } from '#server/errors.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { createSigningKey } from '#server/http/tokens.ts'
import { createLog } from '#server/log.ts'
import { type Secrets, scramVerifier } from '#server/secrets.ts'

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

export const runKeys = async (
  verb: string,
  [id = '']: readonly string[],
  wrong: (sentence: string) => StartError,
  runOn: (control: pg.Client) => <T>(name: string, args: Readonly<Record<string, string>>) => Promise<T>,
): Promise<void> => {
  const work = { status, rotate, forget, project }[verb]
  if (!work) throw wrong(`There is no command "keys ${verb}".`)
  if (verb === 'forget' && !/^[0-9a-f]{8}$/.test(id)) throw wrong('Say which key: the id that keys status shows.')
  if (verb === 'project' && !uuidPattern.test(id)) throw wrong("Say the project's id, a uuid.")
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const foundation = await startExistingPostgres(config, createLog(config))
  const { postgres, secrets } = foundation
  const cluster: Cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
  try {
    const control = await connectAdmin(cluster, controlName(config.DATABASE_PREFIX))
    try {
      await checkKeys(control, secrets)
      await work({ control, cluster, foundation, id, run: runOn(control) })
    } finally {
      await control.end()
    }
  } finally {
    await postgres.stop()
  }
}

type Work = {
  readonly control: pg.Client
  readonly cluster: Cluster
  readonly foundation: Foundation
  readonly id: string
  readonly run: <T>(name: string, args: Readonly<Record<string, string>>) => Promise<T>
}

const status = async ({ control, foundation }: Work): Promise<void> => {
  const { keys, databases, done, resealed, failed } = await keysStatus(control)
  const [newest] = foundation.secrets.keyIds
  if (newest !== undefined && !keys.some(({ id }) => id === newest))
    print(`${newest}  new: npm run admin -- keys rotate makes it current`)
  for (const key of keys) {
    if (key.is_current) print(`${key.id}  current since ${key.current_since.toISOString()}`)
    else if (key.is_droppable) print(`${key.id}  unused: it may be dropped from SECRETS_KEY`)
    else print(`${key.id}  in use: ${key.uses.join('; ')}`)
  }
  if (keys.length > 1) print(`Encrypted again: ${done} of ${databases} databases, ${resealed} stored texts.`)
  for (const { database_name, error } of failed) print(`${database_name}: ${error}`)
}

const rotate = async ({ control, cluster, foundation }: Work): Promise<void> => {
  const { config, secrets, postgres } = foundation
  const isEmbedded = config.DATABASE_URL === undefined
  // no server starts meanwhile, and sets the passwords of the former key
  const isNew = await withClusterLock(
    cluster,
    async (admin) => {
      const changed = await rotateKey(control, secrets)
      // also when the key is current already: a rotation that was interrupted is brought to its end
      await bootstrapRoles(admin, secrets)
      if (isEmbedded) await setSuperuserPassword(admin, postgres.dsn, secrets)
      return changed
    },
    foundation.log,
  )
  const { rows } = await control.query<{ name: string; dsn_sealed: string }>(
    'select name, dsn_sealed from app.clusters where dsn_sealed is not null',
  )
  for (const { dsn_sealed } of rows) {
    const other = { id: '', dsn: secrets.decrypt('cluster dsn', dsn_sealed) }
    await withClusterLock(other, (admin) => bootstrapRoles(admin, secrets), foundation.log)
  }
  await control.query('select pg_notify($1, $2)', [changedChannel, keysChanged])
  await control.query(`select graphile_worker.add_job('keys__reseal', queue_name := 'chores', job_key := 'keys')`)
  print(
    `${secrets.current} ${isNew ? 'is current now' : 'was current already'}. What is stored is encrypted again in the background: npm run admin -- keys status`,
  )
}

/** That of embedded Postgres is ours; the password in DATABASE_URL is the operator's. */
const setSuperuserPassword = async (admin: pg.Client, dsn: string, secrets: Secrets): Promise<void> => {
  const user = decodeURIComponent(new URL(dsn).username)
  const verifier = scramVerifier(currentEmbeddedPassword(secrets))
  await admin.query(`alter role ${pg.escapeIdentifier(user)} password ${pg.escapeLiteral(verifier)}`)
}

const forget = async ({ control, id }: Work): Promise<void> => {
  const key = await forgetKey(control, id)
  print(
    `${key.id} may be dropped from SECRETS_KEY. Who last renewed a sign-in before ${key.replaced_at?.toISOString()} signs in again then.`,
  )
}

const project = async ({ foundation, id, run }: Work): Promise<void> => {
  const signing = JSON.stringify(createSigningKey(foundation.secrets, id.toLowerCase()))
  const added = await run<{ name: string; use_from: string }>('operator_signing_key_add', { project_id: id, signing })
  print(
    `A new key signs the session tokens of this project from ${added.use_from}. Those signed before stay valid until they expire.`,
  )
}
