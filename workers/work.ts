import { startPostgres } from '#fleet/postgres.ts'
import { prepare } from '#fleet/prepare.ts'
import { readConfig } from '#server/config.ts'
import { StartError } from '#server/errors.ts'
import { announce, createLog } from '#server/log.ts'
import { stopOnSignals } from '#server/signals.ts'
import { assemble } from '#server/start.ts'

const main = async (): Promise<void> => {
  const config = readConfig()
  const log = createLog(config)
  const foundation = await startPostgres(config, log)
  const running = await assemble(foundation, await prepare(foundation))
  await running.work()
  announce('The worker is running', {}, 'The worker is running. Ctrl-C stops it.\n')
  stopOnSignals({
    stop: () => running.stop(),
    endNow: () => running.endNow(),
    stopPostgres: () => foundation.postgres.stop(),
    seconds: config.SHUTDOWN_SECONDS,
  })
}

main().catch((error: unknown) => {
  process.stderr.write(`\nThe worker cannot start.\n${error instanceof StartError ? error.message : String(error)}\n`)
  process.exit(1)
})
