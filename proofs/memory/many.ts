// npm run proof:memory -- --only many: a server serves many projects, each with a user at work, a collection and a developer who looks; then nobody does. Once
// the pools have closed what is idle, its memory is compared with that of the server when it had just started and served nobody.
import { setTimeout as sleep } from 'node:timers/promises'
import { controlName } from '#server/database/names.ts'
import { ask } from '#test/support/process.ts'
import { createTenants, idleMemory, signUp, type Tenant } from '../../bench/support/fleet.ts'
import { address, asAdmin, install, signIn } from '../../bench/support/installation.ts'
import { figure, table } from '../../bench/support/numbers.ts'
import { say } from '../../bench/support/results.ts'
import { inspected, type Memory } from '../support/inspected.ts'
import { reportPart } from '../support/page.ts'

const isShort = process.argv.includes('--short')
const asked = process.argv.includes('--projects') ? Number(process.argv[process.argv.indexOf('--projects') + 1]) : null
const projects = asked ?? (isShort ? 10 : 500)
const rounds = 3
const most = 1.3

const installation = await install()
const inspector = await inspected()
const server = await installation.serve(inspector.env)
const heap = await inspector.open()
// nothing that was started outlives a proof that fails
const endAll = (error: Error) => {
  say(String(error.stack))
  void installation.end().finally(() => process.exit(1))
}
process.once('uncaughtException', endAll)

const megabytes = (bytes: number) => figure(bytes / 2 ** 20)
const rows: string[][] = []
const measure = async (when: string): Promise<Memory> => {
  const memory = await heap.memory()
  const row = [when, megabytes(memory.heapUsed), megabytes(memory.external), megabytes(memory.rss)]
  rows.push(row)
  say(row.join(', '))
  return memory
}

let requests = 0
const failed: string[] = []
const call = async (method: string, path: string, body: object | undefined, as: Readonly<Record<string, string>>) => {
  const { status } = await ask(server.url, method, `/v1${path}`, body, { ...as, ...address() })
  requests += 1
  if (status >= 500) failed.push(`${method} ${path}: ${status}`)
}

const developer = await signUp(server)
const use = async ({ projectId, key }: Tenant, round: number) => {
  const { headers } = await signIn(server.url, key)
  const admin = `/admin/projects/${projectId}`
  const columns = [{ name: 'place', type: 'integer' }]
  if (round === 1)
    await call('POST', `${admin}/collections`, { name: 'notes', read_policy: 'owner', columns }, developer)
  await call('GET', '/client/users/me', undefined, headers)
  await call('PATCH', '/client/users/me', { display_name: `user ${round}` }, headers)
  await call('POST', '/client/events', { event_name: 'seen', properties: { round } }, headers)
  await call('POST', '/client/collections/notes', { place: round }, headers)
  const filter = { column: 'place', op: 'eq', value: round }
  await call('POST', '/client/collections/notes/find', { filter, limit: 5 }, headers)
  await call('GET', '/client/config', undefined, headers)
  await call('GET', '/client/flags', undefined, headers)
  await call('GET', `${admin}/users`, undefined, developer)
}

// what a start leaves is collected, and its connections are closed
await sleep(5000)
const before = await measure('at rest, nobody served yet')
await asAdmin(installation.cluster, controlName('trellis'), 'update app.clusters set capacity = 100000')
const tenants = await createTenants(server, developer, projects)
await measure(`${projects} projects made`)
for (let round = 1; round <= rounds; round += 1) {
  const queue = [...tenants]
  const work = async () => {
    for (let tenant = queue.pop(); tenant; tenant = queue.pop()) await use(tenant, round)
  }
  await Promise.all(Array.from({ length: 8 }, work))
  await measure(`each used ${round} times`)
}
await idleMemory(installation)
const after = await measure('when all pools are closed')
heap.close()
await installation.end()
process.off('uncaughtException', endAll)

const ratio = after.rss / before.rss
const claims = [
  {
    text: `a server that has served ${projects} projects returns to ${figure(ratio)} times its resident memory at rest (at most ${most})`,
    holds: ratio <= most,
  },
  {
    text: `no request of ${requests} failed with a 5xx${failed.length > 0 ? `: ${failed[0]}` : ''}`,
    holds: failed.length === 0,
  },
]
const kept = (after.heapUsed + after.external - before.heapUsed - before.external) / projects / 1024
const more = [
  `Garbage is collected before each measurement. What is kept of a project, code and caches that all share included: ${figure(kept)} KB.`,
  '',
  table(['when', 'heap MB', 'external MB', 'resident MB'], rows),
].join('\n')
const command = `npm run proof:memory -- --only many${asked === null ? '' : ` --projects ${asked}`}`
const versions = { Postgres: installation.postgresVersion }
await reportPart(command, 'proof:memory many', versions, { claims, more }, !isShort)
