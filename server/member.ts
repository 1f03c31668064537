// One of several server processes (WEB_CONCURRENCY): serves HTTP on the shared port, and nothing else.

import { embeddedPassword } from '#fleet/postgres.ts'
import { prepare } from '#fleet/prepare.ts'
import { readConfig } from '#server/config.ts'
import { locate } from '#server/database/hosts.ts'
import { createLog } from '#server/log.ts'
import { createSecrets, loadSecretsKey } from '#server/secrets.ts'
import { assemble } from '#server/start.ts'

const config = readConfig()
const log = createLog(config)
const postgres = JSON.parse(process.env['TRELLIS_MEMBER'] ?? '{}') as { dsn: string; socketDirectory: string | null }
const secrets = createSecrets(await loadSecretsKey(config.SECRETS_KEY, config.DATA_DIR))
// learns the passwords that embedded Postgres may have
embeddedPassword(secrets)
await locate(postgres.dsn)
const foundation = { config, log, secrets, postgres: { ...postgres, stop: async () => undefined } }
const running = await assemble(foundation, await prepare(foundation))
await running.listen()

let isStopping = false
const stop = () => {
  if (isStopping) return
  isStopping = true
  // requests have their time; what hangs beyond it must not keep the port
  setTimeout(() => process.exit(1), config.SHUTDOWN_SECONDS * 1000 + 3000)
  void running.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  )
}

// the first process decides when to stop; a signal to the whole group reaches us too
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('message', (message) => {
  if (message === 'stop') stop()
})
// the primary process has exited
process.on('disconnect', stop)
