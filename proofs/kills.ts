// Two servers and two workers on one Postgres, four OS processes. One server and one worker are killed with -9 every two
// seconds while 1,000 events are posted: what the receiver of a webhook got must be exactly what was answered. With each event
// an error is reported: every report that was answered is counted once.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHttpsReceiver } from '#test/support/https.ts'
import { ask, createTestProject, freePort, startServer, startWorker } from '#test/support/process.ts'
import { address, install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { keep } from './support/kept.ts'
import { percentile, report } from './support/page.ts'

const events = 1000
const callers = 10
const everyMs = 2000
// so that the posting lasts through about thirty rounds of kills
const pauseMs = 600
const patienceMs = 120_000

const installation = await install()
const receiver = await startHttpsReceiver()
const environment = {
  DATABASE_URL: installation.cluster.dsn,
  SECRETS_KEY: installation.secretsKey,
  DATA_DIR: installation.dataDir,
  WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
  WEBHOOK_CA_FILE: receiver.caFile,
  LOG_LEVEL: 'error',
  WORKER: 'off',
}

const ports = [String(await freePort()), String(await freePort())]
const servers = []
for (const PORT of ports) servers.push(await keep(() => startServer({ ...environment, PORT })))
const workers = [await keep(() => startWorker(environment)), await keep(() => startWorker(environment))]
const urls = ports.map((port) => `http://127.0.0.1:${port}`)
say('two servers and two workers are running')

const scenario = await createTestProject(urls[0] ?? '')
const made = await ask(
  urls[0] ?? '',
  'POST',
  `/v1/admin/projects/${scenario.projectId}/webhooks`,
  { event_name: 'precious', target_url: receiver.url },
  scenario.developer,
)
const subscription = made.body.data.id as string

let killing = true
const killer = (async () => {
  for (let round = 0; killing; round += 1) {
    await sleep(everyMs)
    servers[round % 2]?.kill()
    workers[round % 2]?.kill()
  }
})()

const answered = new Map<string, number>()
const statuses = new Map<string, number>()
let begun = 0
/** As an SDK does: what gets no answer, or 503, is sent again as it was, to the other server. */
const insist = async (number: number, path: string, body: object, headers: Record<string, string>): Promise<void> => {
  for (let tries = number; ; tries += 1) {
    const url = urls[tries % 2] ?? ''
    const answer = await ask(url, 'POST', path, body, headers).catch(() => null)
    const status = answer ? String(answer.status) : 'no answer'
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (answer && answer.status < 300) return
    await sleep(50)
  }
}

let reported = 0
const caller = async (number: number) => {
  while (begun < events) {
    begun += 1
    const [id, from] = [randomUUID(), address()]
    await insist(number, '/v1/client/events', { event_name: 'precious', id }, { ...scenario.user, ...from })
    answered.set(id, Date.now())
    const failure = {
      id: randomUUID(),
      kind: 'crash',
      level: 'fatal',
      message: 'Killed',
      fingerprint: `crash ${number}`,
    }
    await insist(number, '/v1/client/diagnostics/reports', { reports: [failure] }, { ...scenario.key, ...from })
    reported += 1
    await sleep(pauseMs)
  }
}
await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)))
killing = false
await killer
say(`${answered.size} events answered; waiting for the receiver`)

/** UUIDv5 of subscription and event, as docs/webhooks.md says. */
const keyOf = (event: string): string => {
  const digest = createHash('sha1')
    .update(Buffer.from(subscription.replaceAll('-', ''), 'hex'))
    .update(event)
    .digest()
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x50
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
const firstOf = () => {
  const first = new Map<string, number>()
  for (const { headers, receivedAt } of receiver.requests) {
    const key = String(headers['x-service-idempotency-key'])
    if (!first.has(key)) first.set(key, receivedAt.getTime())
  }
  return first
}
const until = Date.now() + patienceMs
while (firstOf().size < answered.size && Date.now() < until) await sleep(200)
// whatever else would come, comes now
await sleep(5000)

const first = firstOf()
const expected = new Map([...answered].map(([event, at]) => [keyOf(event), at]))
const missing = [...expected.keys()].filter((key) => !first.has(key)).length
const surplus = [...first.keys()].filter((key) => !expected.has(key)).length
const waits = [...expected].map(([key, at]) => Math.max(0, ((first.get(key) ?? Number.POSITIVE_INFINITY) - at) / 1000))
const longest = Math.max(...waits)
const killed = [...servers, ...workers].reduce((sum, each) => sum + each.kills(), 0)
const seen = [...statuses].sort().map(([status, count]) => `${count} times ${status}`)

const issues = await ask(
  urls[0] ?? '',
  'GET',
  `/v1/admin/projects/${scenario.projectId}/diagnostics/issues?limit=100`,
  undefined,
  scenario.developer,
)
const counted = (issues.body.data as { count: number }[]).reduce((sum, { count }) => sum + count, 0)

for (const each of [...servers, ...workers]) await each.stop()
await receiver.close()
await installation.end()
await report('proof:kills', { Postgres: installation.postgresVersion }, [
  {
    text: `${killed} processes killed with -9, and all ${events} events answered in the end (${seen.join(', ')})`,
    holds: answered.size === events && killed > 20,
  },
  {
    text: `the receiver's ${first.size} idempotency keys are those of the ${expected.size} answered events: ${missing} missing, ${surplus} too many`,
    holds: missing === 0 && surplus === 0,
  },
  {
    text: `of ${reported} reports of errors that were answered, each sent until it was, ${counted} are counted in the issues`,
    holds: counted === reported,
  },
  {
    text: `${receiver.requests.length - first.size} deliveries came more than once, each under its first key`,
    holds: true,
  },
  {
    text: `from its answer to the receiver an event waits ${percentile(waits, 0.5).toFixed(2)} s in the median, ${percentile(waits, 0.99).toFixed(1)} s at the 99th percentile, ${longest.toFixed(1)} s at most (no more than 60)`,
    holds: longest <= 60,
  },
])
process.exit()
