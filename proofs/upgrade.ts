// npm run proof:upgrade -- --from FOLDER: projects that were used on the former major version of Postgres, whose package is in FOLDER, are upgraded to the installed one.
// Everything that was answered before must be true afterwards, and sessions and keys must hold.
import { randomBytes } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { binariesIn } from '#fleet/embedded/binaries.ts'
import { existingHome } from '#fleet/embedded/folder.ts'
import { startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { embeddedConnections, embeddedPassword } from '#fleet/postgres.ts'
import { createSecrets } from '#server/secrets.ts'
import { runScript } from '#test/support/admin.ts'
import { download, uploadFile } from '#test/support/backups.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import {
  createTestProject,
  endPrograms,
  endServer,
  freePort,
  startServer,
  temporaryFolder,
} from '#test/support/process.ts'
import { say } from '../bench/support/results.ts'
import { report } from './support/page.ts'
import { createCaller } from './support/soak/caller.ts'
import { act, define, type SoakProject, signUp } from './support/soak/project.ts'
import { checkProject, createTruths } from './support/soak/truths.ts'

const { values: options } = parseArgs({ options: { from: { type: 'string' } } })
if (options.from === undefined)
  throw new Error('Say where the former binaries are: --from FOLDER, as for npm run db:upgrade.')
const projectCount = 10
const visits = 200

const former = await binariesIn(resolve(options.from))
const dataDir = join(await temporaryFolder(), 'data')
const SECRETS_KEY = randomBytes(32).toString('base64')
const receiver = await startHttpsReceiver()
const postgres = await startEmbeddedPostgres({
  dataDir,
  binaries: former,
  superuserPassword: embeddedPassword(createSecrets(SECRETS_KEY)),
  log: () => undefined,
  maxConnections: embeddedConnections,
})
const environment = {
  DATA_DIR: dataDir,
  SECRETS_KEY,
  WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
  WEBHOOK_CA_FILE: receiver.caFile,
  LOG_LEVEL: 'error',
  PORT: String(await freePort()),
}
const settled = 'select count(*)::int as n from app.outbox o where o.failed_at is null and o.due_at <= now()'
const connect = async (dsn: string, { made }: SoakProject) => {
  const url = new URL(dsn)
  url.pathname = `/trellis_${made.projectId.replaceAll('-', '')}`
  const client = new pg.Client({ connectionString: url.href })
  client.on('error', () => undefined)
  await client.connect()
  return client
}
const drained = async (tenant: pg.Client): Promise<void> => {
  const { rows } = await tenant.query<{ n: number }>(settled)
  if (rows[0]?.n === 0) return
  await new Promise((done) => setTimeout(done, 250))
  return drained(tenant)
}

try {
  const server = await startServer({ ...environment, DATABASE_URL: postgres.url })
  const caller = await createCaller([server.url])
  const projects: SoakProject[] = []
  const files: { readonly project: SoakProject; readonly id: string; readonly bytes: Buffer }[] = []
  for (let n = 0; n < projectCount; n += 1) {
    const project = await define(caller, await createTestProject(server.url), receiver.url)
    for (let people = 0; people < 4; people += 1) await signUp(caller, project)
    for (let visit = 0; visit < visits; visit += 1) await act(caller, project)
    const bytes = randomBytes(50_000)
    files.push({ project, id: await uploadFile(server.url, project.made, bytes), bytes })
    projects.push(project)
  }
  for (const project of projects) {
    const tenant = await connect(postgres.url, project)
    await drained(tenant)
    await tenant.end()
  }
  const requests = caller.requests()
  await endServer(server)
  await postgres.stop()
  say(`${projectCount} projects on Postgres ${former.version}, ${requests} requests`)

  const began = performance.now()
  const done = await runScript('scripts/database.ts', ['upgrade', '--from', resolve(options.from)], environment)
  const seconds = (performance.now() - began) / 1000
  say(done.out + done.err)
  const home = (await existingHome(dataDir)) ?? ''
  const sizes = await Promise.all(
    ['cluster', `cluster-${former.version.split('.')[0]}`].map(async (name) => {
      const folder = join(home, name)
      const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
      const all = entries.filter((entry) => entry.isFile() && !entry.parentPath.includes('pg_wal'))
      const bytes = await Promise.all(all.map((entry) => stat(join(entry.parentPath, entry.name))))
      return bytes.reduce((sum, { size }) => sum + size, 0)
    }),
  )

  const next = await startServer(environment)
  if (next.child.exitCode !== null) throw new Error(next.output())
  const running = await runScript('scripts/database.ts', ['status'], environment)
  const truths = createTruths()
  const found = await runScript('scripts/database.ts', ['url', projects[0]?.made.projectId ?? ''], environment)
  const dsn = new URL(found.out.trim())
  dsn.searchParams.delete('options')
  for (const project of projects) {
    const tenant = await connect(dsn.href, project)
    const keys = new Set(
      receiver.requests
        .filter(({ path }) => path.includes(project.made.projectId))
        .map(({ headers }) => String(headers['x-service-idempotency-key'])),
    )
    await checkProject(caller, truths, project, tenant, keys)
    await tenant.end()
  }
  let lost = 0
  for (const { project, id, bytes } of files)
    if (!(await download(next.url, project.made, id))?.equals(bytes)) lost += 1
  const before = caller.requests()
  for (const project of projects) {
    await signUp(caller, project)
    for (let visit = 0; visit < visits / 4; visit += 1) await act(caller, project)
  }
  const other = await createTestProject(next.url)
  const internal = [...caller.statuses].filter(([status]) => /^5/.test(status))
  const checked = [...truths.checked].map(([kind, count]) => `${count} ${kind}`).join(', ')
  for (const wrong of truths.wrong) say(wrong)
  for (const [problem, at] of caller.undeclared) say(`${at} ${problem}`)
  await endServer(next)
  await report(
    'proof:upgrade',
    { 'former Postgres': former.version },
    [
      {
        text: `${projectCount} projects with ${projects.reduce((sum, { people }) => sum + people.length, 0)} users, made by ${requests} requests, are upgraded in ${seconds.toFixed(1)} s, every table compared`,
        holds: done.code === 0 && running.code === 0,
      },
      {
        text: `everything that was answered before is true: ${checked} (${truths.wrong.length} wrong), ${files.length} files (${lost} lost)`,
        holds: truths.wrong.length === 0 && lost === 0,
      },
      {
        text: `sessions and keys hold: ${caller.requests() - before} requests afterwards, ${caller.undeclared.size} answers undeclared, ${internal.length} kinds of 5xx; a new project is provisioned`,
        holds: caller.undeclared.size === 0 && internal.length === 0 && other.projectId !== '',
      },
    ],
    `The former cluster has ${((sizes[1] ?? 0) / 1e6).toFixed(0)} MB, the new one ${((sizes[0] ?? 0) / 1e6).toFixed(0)} MB.`,
  )
} finally {
  await endPrograms()
  await receiver.close()
  await postgres.stop().catch(() => undefined)
}
