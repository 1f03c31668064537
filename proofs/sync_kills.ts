// Devices push and pull on two servers and one Postgres while one of the servers, or the backend of Postgres that applies a
// push, is killed with -9 at random moments, a thousand times in all; at others a backend is terminated. What got no answer is sent
// again, at times with more, and so is some of what got one. Then each answered mutation is applied once, a repeated one
// answers what the first did, and what each device was told is what the table has. `-- --kills <n>` and `--minutes <n>` end it
// before or after a thousand kills or an hour.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectAdmin } from '#server/database/cluster.ts'
import { tenantName } from '#server/database/names.ts'
import { ask, createTestProject, endServer, freePort, startServer, startWorker } from '#test/support/process.ts'
import { install, signIn } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { keep } from './support/kept.ts'
import { report } from './support/page.ts'
import { type Device, deviceOf, wrongs } from './support/sync_device.ts'

const option = (name: string, otherwise: number): number => {
  const at = process.argv.indexOf(name)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}
const wanted = option('--kills', 1000)
const until = Date.now() + option('--minutes', 60) * 60_000
const users = 3

const installation = await install()
const environment = {
  DATABASE_URL: installation.cluster.dsn,
  SECRETS_KEY: installation.secretsKey,
  DATA_DIR: installation.dataDir,
  LOG_LEVEL: 'error',
  WORKER: 'off',
}
const ports = [String(await freePort()), String(await freePort())]
const servers = []
for (const PORT of ports) servers.push(await keep(() => startServer({ ...environment, PORT })))
const urls = ports.map((port) => `http://127.0.0.1:${port}`)
const first = urls[0] ?? ''
const worker = await startWorker(environment)
const scenario = await createTestProject(first)
await endServer(worker)
const columns = [
  { name: 'title', type: 'text', nullable: false },
  { name: 'n', type: 'bigint', nullable: false, default: 0 },
]
const made = await ask(
  first,
  'POST',
  `/v1/admin/projects/${scenario.projectId}/collections`,
  { name: 'notes', sync: true, columns },
  scenario.developer,
)
if (made.status !== 201) throw new Error(JSON.stringify(made.body))

const database = tenantName('trellis', scenario.projectId)
/** Outlives the crashes: a statement that meets one is made again. */
const query = async <T extends Record<string, unknown>>(text: string, values: unknown[] = []): Promise<T[]> => {
  for (;;) {
    try {
      const admin = await connectAdmin(installation.cluster, database, false)
      admin.on('error', () => undefined)
      try {
        return (await admin.query<T>(text, values)).rows
      } finally {
        await admin.end().catch(() => undefined)
      }
    } catch {
      await sleep(50)
    }
  }
}

const devices: Device[] = []
for (let n = 0; n < users; n += 1) {
  const { headers, userId } = await signIn(first, scenario.key)
  // a phone that pushes and pulls, and a tablet of the same user, which does so too
  devices.push(deviceOf(urls, headers, userId), deviceOf(urls, headers, userId))
}
say(`${devices.length} devices of ${users} users; ${wanted} kills begin`)

const counts = { server: 0, backend: 0, terminated: 0 }
/** The backend of a push that runs now, if one does within some milliseconds. */
const pushing = async (): Promise<number | undefined> => {
  const admin = await connectAdmin(installation.cluster, database, false).catch(() => undefined)
  if (!admin) return undefined
  admin.on('error', () => undefined)
  try {
    for (let tries = 0; tries < 40; tries += 1) {
      const { rows } = await admin.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
            and state = 'active' and query like '%sync_push%' order by random() limit 1`,
      )
      if (rows[0]) return rows[0].pid
      await sleep(5)
    }
  } catch {
    // it crashed meanwhile
  } finally {
    await admin.end().catch(() => undefined)
  }
  return undefined
}

const ledgerSize = () => devices.reduce((sum, one) => sum + one.ledger.size, 0)
let before = 0
/** Between two kills something is answered: what is killed faster than it starts would prove nothing. */
const progress = async () => {
  for (let waited = 0; ledgerSize() === before && waited < 20_000; waited += 20) await sleep(20)
  before = ledgerSize()
}

let lost = 0
let checks = 0
/** What was answered before a kill is there after it. */
const check = async (answered: readonly string[]) => {
  const rows = await query<{ n: string }>('select count(*) as n from app.sync_mutations where id = any ($1)', [
    answered,
  ])
  lost += answered.length - Number(rows[0]?.n)
  checks += 1
}

while (counts.server + counts.backend < wanted && Date.now() < until) {
  await progress()
  await sleep(randomInt(300))
  const answered = devices.flatMap((device) => device.takeAnswered())
  const dice = randomInt(10)
  if (dice < 1) {
    const kept = servers[randomInt(2)]
    if (kept?.kill()) counts.server += 1
  } else {
    const pid = await pushing()
    if (pid === undefined) continue
    if (dice < 8) {
      try {
        process.kill(pid, 'SIGKILL')
        counts.backend += 1
      } catch {
        // it has ended
      }
    } else {
      await query('select pg_terminate_backend($1)', [pid])
      counts.terminated += 1
    }
  }
  await check(answered)
  const killed = counts.server + counts.backend
  if (killed % 50 === 0) say(`${killed} killed, ${ledgerSize()} answered`)
}
for (const device of devices) device.stop()
await Promise.all(devices.map((device) => device.stopped))
for (const device of devices) await device.pull()
say('compared with the table')

const stored = await query<{ id: string; status: string }>('select id, status from app.sync_mutations')
const rows = await query<{ id: string; user_id: string; n: string; title: string; is_live: boolean }>(
  'select id, user_id, n::text, title, deleted_at is null as is_live from collections.notes',
)
const statusOf = new Map(stored.map(({ id, status }) => [id, status]))
const ledger = devices.flatMap((device) => [...device.ledger.values()])
const missing = ledger.filter(({ mutation, result }) => statusOf.get(mutation.id) !== result.status)
const wrong = wrongs(ledger, rows)
const differing = devices.filter((device) => {
  const live = rows.filter((row) => row.user_id === device.userId && row.is_live)
  return (
    live.length !== device.rows.size ||
    live.some(({ id, n, title }) => {
      const held = device.rows.get(id)
      return held?.n !== Number(n) || held?.title !== title
    })
  )
})
const sum = (of: (device: Device) => number) => devices.reduce((total, device) => total + of(device), 0)

for (const each of servers) await each.stop()
await installation.end()
const kills = `${counts.server} times a server and ${counts.backend} times the backend of Postgres that applied a push`
await report('proof:sync-kills', { Postgres: installation.postgresVersion }, [
  {
    text: `${counts.server + counts.backend} kills with -9: ${kills}; ${counts.terminated} more were terminated in a push`,
    holds: counts.server + counts.backend >= wanted,
  },
  {
    text: `${ledger.length} mutations answered, of which after each of ${checks} rounds ${lost} were lost; of the results that are kept ${missing.length} differ from the answers, and ${stored.length - ledger.length} were never answered`,
    holds: lost === 0 && missing.length === 0 && stored.length === ledger.length,
  },
  {
    text: `in ${rows.length} rows the applied mutations are there exactly once each: ${wrong} rows differ`,
    holds: wrong === 0,
  },
  {
    text: `${sum((device) => device.counts.repeated)} repeated mutations were \`duplicate\` with the first result, ${sum((device) => device.counts.changed)} with another one`,
    holds: sum((device) => device.counts.changed) === 0,
  },
  {
    text: `${sum((device) => device.counts.pulls)} pulls (${sum((device) => device.counts.unanswered)} requests got no answer) told no device twice that a row is new: ${sum((device) => device.counts.nonsense)} times; in the end ${differing.length} of ${devices.length} devices differ from the table`,
    holds: differing.length === 0 && sum((device) => device.counts.nonsense) === 0,
  },
])
process.exit()
