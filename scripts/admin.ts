// npm run admin: operators' chores. Works beside a running server, with the embedded Postgres of DATA_DIR or that of DATABASE_URL.
import { parseArgs } from 'node:util'
import { databaseExists } from '#fleet/cluster.ts'
import { readConfig } from '#server/config.ts'
import { type Cluster, connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { failureOf } from '#server/database/failures.ts'
import { controlName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import { createLog } from '#server/log.ts'
import { accountCommands } from './admin/accounts.ts'
import { type AdminCommand, type Run, usage, wrong } from './admin/arguments.ts'
import { callOn } from './admin/call.ts'
import { doctor } from './admin/doctor.ts'
import { failedCommands } from './admin/failed.ts'
import { print } from './admin/output.ts'
import { projectCommands } from './admin/projects.ts'
import { slowCommands } from './admin/slow.ts'

const onControl = async (work: (run: Run) => Promise<number> | Promise<void>): Promise<number> => {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  // the whole server is behind this import: a mistyped command need not wait for it
  const { startExistingPostgres, noDatabases } = await import('#fleet/postgres.ts')
  const foundation = await startExistingPostgres(config, createLog(config))
  const { postgres } = foundation
  try {
    const cluster: Cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
    const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    const exists = await databaseExists(admin, controlName(config.DATABASE_PREFIX)).finally(() => admin.end())
    if (!exists) throw new StartError(noDatabases)
    const control = await connectAdmin(cluster, controlName(config.DATABASE_PREFIX))
    const run: Run = Object.assign(callOn(control), { control, cluster, foundation })
    return (await work(run).finally(() => control.end())) ?? 0
  } finally {
    await postgres.stop()
  }
}

const adminCommands: Readonly<Record<string, AdminCommand>> = {
  ...accountCommands,
  ...projectCommands,
  ...failedCommands,
  ...slowCommands,
  'doctor ': doctor,
}

const readArguments = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        count: { type: 'string', default: '1' },
        days: { type: 'string', default: '30' },
        limit: { type: 'string' },
        note: { type: 'string' },
        backups: { type: 'string' },
        all: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw wrong((error as Error).message)
  }
}

const main = async (): Promise<number> => {
  const { positionals, values } = readArguments()
  if (values.help) {
    print(usage)
    return 0
  }
  const [area = '', verb = '', ...rest] = positionals
  if (area === 'keys') {
    const { runKeys } = await import('./keys.ts')
    await runKeys(verb, rest, wrong, callOn)
    return 0
  }
  const command = adminCommands[`${area} ${verb}`]
  if (!command)
    throw wrong(positionals.length === 0 ? 'Say what to do.' : `There is no command "${area} ${verb}".`.trim())
  return onControl(command(rest, values))
}

/** What went wrong, as a sentence; never a stack, and nothing of the inside that helps nobody. */
const explain = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof StartError) return message
  const failure = failureOf(error)
  if (failure.kind === 'refusal') return failure.error.message
  if (failure.kind === 'missing')
    return 'The databases are of an older version than this program: run npm run db:migrate, or start the server once.'
  if (code === 'ENOSPC') return 'The disk of DATA_DIR is full: free some space on it first. Nothing else was looked at.'
  if (failure.kind === 'unavailable') return `The database cannot be reached: ${message}`
  return code ? `${message} (${code})` : String(message)
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
}
