// The test suite with PgBouncer in transaction mode between us and Postgres, and statements unnamed. Needs `pgbouncer` on the machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { controlRoles, targetOf, tenantRoles } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { createSecrets } from '#server/secrets.ts'
import { freePort } from '#test/support/process.ts'
import { asAdmin, install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { report } from './support/page.ts'

// these two are about one connection's own state, which is what a pooler takes away
const notThrough = ['test/database/call.test.ts', 'test/pools/pools.test.ts']

const installation = await install()
const { cluster, secretsKey } = installation
const direct = new URL(cluster.dsn)
const folder = await mkdtemp(join(tmpdir(), 'trellis-pooler-'))
const port = await freePort()
const secrets = createSecrets(secretsKey)
const logins = [...controlRoles, ...tenantRoles].map((role) => targetOf(cluster, 'postgres', role, secrets))
const console = 'pooler_console'

await writeFile(
  join(folder, 'pgbouncer.ini'),
  `[databases]
* = host=127.0.0.1 port=${direct.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, 'users.txt')}
admin_users = ${console}
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 5
server_idle_timeout = 5
logfile = ${join(folder, 'log')}
`,
)
await writeFile(
  join(folder, 'users.txt'),
  [...logins.map(({ user, password }) => `"${user}" "${password}"`), `"${console}" "proof"`, ''].join('\n'),
)
// it refuses root, as Postgres does
const isRoot = process.getuid?.() === 0
if (isRoot) for (const name of ['.', 'pgbouncer.ini', 'users.txt']) await chown(join(folder, name), 65534, 65534)
const pooler = spawn('pgbouncer', [join(folder, 'pgbouncer.ini')], {
  stdio: 'ignore',
  ...(isRoot ? { uid: 65534, gid: 65534 } : {}),
  env: { PATH: `${process.env['PATH']}:/usr/sbin` },
})
pooler.on('error', () => {
  process.stderr.write('There is no pgbouncer on this machine.\n')
  process.exit(2)
})
await sleep(1000)
const version = (await readFile(join(folder, 'log'), 'utf8')).match(/PgBouncer ([\d.]+)/)?.[1] ?? 'unknown'

const url = new URL(direct)
url.searchParams.set('pooler', `127.0.0.1:${port}`)
say('the suite runs through the pooler; this takes some minutes')
const began = performance.now()
const suite = spawn(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=json',
    `--outputFile=${join(folder, 'results.json')}`,
    ...notThrough.flatMap((file) => ['--exclude', file]),
    ...process.argv.slice(2),
  ],
  {
    cwd: root,
    env: {
      ...process.env,
      DATABASE_URL: url.href,
      SECRETS_KEY: secretsKey,
      DATABASE_STATEMENTS: 'unnamed',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  },
)
// nobody but the pooler reaches Postgres with a login of ours
const strangers = new Set<string>()
const watch = setInterval(async () => {
  const rows = await asAdmin<{ usename: string; application: string }>(
    cluster,
    'postgres',
    `select usename::text, count(*)::text as application from pg_stat_activity where usename like 'login\\_%' and client_addr is null group by 1`,
  ).catch(() => [])
  for (const { usename } of rows) strangers.add(usename)
}, 2000)
const [code] = await once(suite, 'exit')
clearInterval(watch)
const seconds = (performance.now() - began) / 1000

const admin = new pg.Client({ host: '127.0.0.1', port, user: console, password: 'proof', database: 'pgbouncer' })
await admin.connect()
const { rows } = await admin.query<{ total_xact_count: string }>('show stats')
const transactions = rows.reduce((sum, row) => sum + Number(row.total_xact_count), 0)
await admin.end()
pooler.kill('SIGTERM')
await installation.end()

type Results = {
  numPassedTests: number
  numFailedTests: number
  numTotalTests: number
  testResults: { name: string; assertionResults: { status: string; fullName: string }[] }[]
}
const results = JSON.parse(await readFile(join(folder, 'results.json'), 'utf8')) as Results
await rm(folder, { recursive: true, force: true })
const failed = results.testResults.flatMap(({ assertionResults }) =>
  assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
)
await report('proof:pooler', { Postgres: installation.postgresVersion, PgBouncer: version }, [
  {
    text: `${results.numPassedTests} of ${results.numTotalTests} tests in ${results.testResults.length} files pass (${notThrough.join(' and ')} are about connections themselves, and left out) in ${seconds.toFixed(0)} s${failed.length ? `; these fail: ${failed.join('; ')}` : ''}`,
    holds: code === 0 && results.numFailedTests === 0,
  },
  {
    text: `${transactions} transactions of open databases went through the pooler, and no login reached Postgres beside it`,
    holds: transactions > 0 && strangers.size === 0,
  },
])
process.exit()
