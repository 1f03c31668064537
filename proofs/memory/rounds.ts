// npm run proof:memory -- --only rounds: a server is used by many projects in rounds, each with new users, sessions, addresses and shapes of queries. After each round
// its garbage is collected and its memory measured; heap snapshots say what has grown. Once the caches are full, it must not grow any more.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, createTestProject } from '#test/support/process.ts'
import { address, install, signIn } from '../../bench/support/installation.ts'
import { figure, table } from '../../bench/support/numbers.ts'
import { say } from '../../bench/support/results.ts'
import { grown, inspected, type Memory } from '../support/inspected.ts'
import { report } from '../support/page.ts'

const isShort = process.argv.includes('--short')
const [projects, rounds, perRound] = isShort ? [4, 9, 40] : [12, 24, 20]
/** Rounds at whose end everything that is made once is there: code, connections, caches of what all rounds use. */
const warm = Math.ceil(rounds / 3)

const installation = await install()
const inspector = await inspected()
const server = await installation.serve({ ...inspector.env, STATEMENT_CACHE_MB: '2' })
const { url } = server
const heap = await inspector.open()
// nothing that was started outlives a proof that fails
const endAll = (error: Error) => {
  say(String(error.stack))
  void installation.end().finally(() => process.exit(1))
}
process.once('uncaughtException', endAll)

type Project = Awaited<ReturnType<typeof createTestProject>>
const made: Project[] = []
for (let n = 0; n < projects; n += 1) {
  const project = await createTestProject(url)
  const columns = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({ name, type: 'integer' }))
  const path = `/v1/admin/projects/${project.projectId}/collections`
  const { status, body } = await ask(
    url,
    'POST',
    path,
    { name: 'notes', read_policy: 'owner', columns },
    project.developer,
  )
  if (status !== 201) throw new Error(JSON.stringify(body))
  made.push(project)
}
say(`${projects} projects are ready`)

const operators = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte']
/** The n-th of 46,656 shapes of a query. */
const shapeOf = (n: number) =>
  ['a', 'b', 'c', 'd', 'e', 'f'].map((column, place) => ({
    column,
    op: operators[Math.floor(n / 6 ** place) % 6],
    value: n,
  }))

let shapes = 0
let requests = 0
const failed = new Map<string, number>()
const use = async ({ key, developer, projectId }: Project, round: number, n: number) => {
  const { headers } = await signIn(url, key)
  const call = async (method: string, path: string, body?: object, as: Record<string, string> = headers) => {
    const { status, body: answer } = await ask(url, method, `/v1${path}`, body, { ...as, ...address() })
    requests += 1
    if (status >= 500) {
      const what = `${method} ${path.replace(projectId, ':id')}: ${status} ${answer.error?.code}`
      failed.set(what, (failed.get(what) ?? 0) + 1)
    }
  }
  shapes += 1
  await call('GET', '/client/users/me')
  await call('PATCH', '/client/users/me', { display_name: `user ${round} ${n}` })
  await call('POST', '/client/events', { event_name: `seen_${n % 5}`, properties: { round, n } })
  await call('POST', '/client/collections/notes', { a: n, b: round })
  await call('POST', '/client/collections/notes/find', { filter: { and: shapeOf(shapes) }, limit: 5 })
  await call('GET', '/client/config')
  await call('GET', '/client/flags')
  // strangers, and keys that nobody has
  await call('GET', '/client/users/me', undefined, { ...key, authorization: `Bearer ${headers['authorization']}x` })
  await call('GET', '/client/users/me', undefined, { 'x-api-key': `pk_${round}_${n}` })
  if (n % 10 === 0) {
    await call('GET', `/admin/projects/${projectId}/users?search=${round}`, undefined, developer)
    await call('POST', '/auth/developer/login', { email: `nobody${round}.${n}@example.org`, password: 'wrong' }, {})
  }
}

const measured: Memory[] = []
let first: Awaited<ReturnType<typeof heap.shape>> | undefined
for (let round = 1; round <= rounds; round += 1) {
  const queue = Array.from({ length: perRound * projects }, (_, n) => n)
  const workers = Array.from({ length: 8 }, async () => {
    for (let n = queue.pop(); n !== undefined; n = queue.pop()) await use(made[n % projects] as Project, round, n)
  })
  await Promise.all(workers)
  await sleep(500)
  const memory = await heap.memory()
  measured.push(memory)
  say(
    `round ${round} of ${rounds}: heap ${mb(memory.heapUsed)} MB, resident ${mb(memory.rss)} MB, ${requests} requests, ${[...failed].map(String)}`,
  )
  if (round === warm) first = await heap.shape()
}
const last = await heap.shape()
const growth = first ? grown(first, last, 12) : []
heap.close()
await installation.end()
process.off('uncaughtException', endAll)

function mb(bytes: number): string {
  return figure(bytes / 1_048_576)
}
const later = measured.slice(warm)
const mean = (of: readonly Memory[], part: keyof Memory) => of.reduce((sum, each) => sum + each[part], 0) / of.length
const half = Math.floor(later.length / 2)
const [early, late] = [later.slice(0, half), later.slice(-half)]
const heapGrowth = mean(late, 'heapUsed') - mean(early, 'heapUsed')
const rssGrowth = mean(late, 'rss') - mean(early, 'rss')
const perThousand = (heapGrowth / ((requests / rounds) * half)) * 1000

const claims = [
  {
    text: `after ${warm} rounds the heap stays where it is: ${mb(mean(early, 'heapUsed'))} MB in the first half of the others, ${mb(mean(late, 'heapUsed'))} MB in the second (${figure(perThousand / 1024)} KB for 1,000 requests)`,
    holds: heapGrowth < 0.05 * mean(early, 'heapUsed'),
  },
  {
    text: `and so does the resident memory: ${mb(mean(early, 'rss'))} MB, ${mb(mean(late, 'rss'))} MB`,
    holds: rssGrowth < 0.1 * mean(early, 'rss'),
  },
  { text: `no request of ${requests} failed`, holds: failed.size === 0 },
]
const figures = [
  `${projects} projects, ${perRound * projects} new users with a new shape of query each in a round, and \`STATEMENT_CACHE_MB=2\`, so that the cache is soon full. The heap
snapshot after round ${warm} costs the process memory that it keeps: resident memory is compared from there on.`,
  '',
  table(
    ['round', 'heap MB', 'external MB', 'resident MB'],
    measured.map(({ heapUsed, external, rss }, round) => [String(round + 1), mb(heapUsed), mb(external), mb(rss)]),
  ),
  '',
  `What grew most from round ${warm} to the end:`,
  '',
  table(
    ['kind of object', 'objects', 'KB'],
    growth.map(({ name, count, bytes }) => [`\`${name}\``, String(count), figure(bytes / 1024)]),
  ),
].join('\n')
if (isShort) say([...claims.map(({ text, holds }) => `${holds}: ${text}`), figures].join('\n'))
else await report('proof:memory', { Postgres: installation.postgresVersion }, claims, figures)
