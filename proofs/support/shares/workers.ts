// Slots of workers: webhooks of the control plane, operations, and the outboxes of projects.
import { setTimeout as sleep } from 'node:timers/promises'
import { connectAdmin } from '#server/database/cluster.ts'
import { createAuthority, type HttpsReceiver, startHttpsReceiver } from '#test/support/https.ts'
import { createProject, databaseOf, type Found, type Part, projectsOf, type Tenant, until, within } from './part.ts'

const authority = createAuthority()

/** Receivers that the server of the proof trusts: one is well, one takes what it is sent and says nothing. */
export const startReceivers = async () => {
  const well = await startHttpsReceiver({ authority })
  const silent = await startHttpsReceiver({ authority, handler: () => undefined })
  return {
    well,
    silent,
    env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: well.caFile },
    close: () => Promise.all([well.close(), silent.close()]),
  }
}
type Receivers = Awaited<ReturnType<typeof startReceivers>>
let receivers: Receivers | undefined
export const useReceivers = (started: Receivers): void => {
  receivers = started
}
const theReceivers = (): Receivers => {
  if (!receivers) throw new Error('the receivers are not started')
  return receivers
}

const arrivedAt = async (receiver: HttpsReceiver, text: string): Promise<number> => {
  await until(() => receiver.requests.some(({ body }) => body.includes(text)), 240_000)
  return receiver.requests.find(({ body }) => body.includes(text))?.receivedAt.getTime() ?? Number.POSITIVE_INFINITY
}

/** Silent receivers of many owners beside one that is well, and beside a project that is made. */
export const controlWebhooks: Part = {
  name: 'control-webhooks',
  bound: '3 s, and 10 s for a project',
  async run(world) {
    const { well, silent } = theReceivers()
    const [verified, unverified, hooks, events] = world.isShort ? [3, 6, 3, 6] : [4, 10, 5, 10]
    const greedy: Tenant[] = []
    for (let n = 0; n < verified + unverified; n += 1) greedy.push(await world.tenant(n < verified))
    const [other, newcomer] = [await world.tenant(), await world.tenant()]
    const path = '/v1/admin/control-plane-webhooks'
    const watch = ({ developer }: Tenant, { url }: HttpsReceiver) =>
      world.call(developer, 'POST', path, { event_types: ['audit.event'], target_url: url })
    const rename = ({ developer, projectId }: Tenant, name: string) =>
      world.call(developer, 'PATCH', `/v1/admin/projects/${projectId}`, { name })
    const delivered = async (tenant: Tenant, name: string) => {
      const began = Date.now()
      await rename(tenant, name)
      return (await arrivedAt(well, name)) - began
    }
    // one receiver has answered before the others come, one is as new as they are
    await watch(other, well)
    await delivered(other, 'other before')
    for (const one of greedy) for (let n = 0; n < hooks; n += 1) await watch(one, silent)
    await watch(newcomer, well)
    const end = performance.now() + (world.isShort ? 25_000 : 35_000)
    const flood = async (one: Tenant) => {
      for (let n = 0; n < events; n += 1) await rename(one, `greedy ${n}`)
    }
    await Promise.all(greedy.map(flood))
    const first = delivered(newcomer, 'newcomer')
    let [longest, made, deliveries] = [0, 0, 0]
    while (performance.now() < end) {
      const name = `other ${deliveries++}.`
      longest = Math.max(longest, await delivered(other, name))
      if (deliveries % 5 === 1) made = Math.max(made, await createProject(world, other.developer))
      await sleep(500)
      // those that have failed come later: new events keep the receivers busy
      void Promise.all(greedy.map((one) => rename(one, name)))
    }
    const waited = await first
    for (const { developer } of greedy) {
      const { body } = await world.call(developer, 'GET', path)
      for (const { id } of body.data) await world.call(developer, 'DELETE', `${path}/${id}`)
    }
    const silence = `${hooks} silent receivers of each of ${verified} owners and ${unverified} accounts that nobody has verified`
    return {
      claims: [
        within(`${silence}: the slowest of ${deliveries} deliveries to a receiver that is well`, longest, 3_000),
        within(
          `${silence}: the first delivery to a new receiver, ten seconds for each silent one before it`,
          waited,
          10_000 * (verified * hooks + 1),
        ),
        within(`${silence}: a new project`, made, 10_000),
      ],
    }
  },
}

const ndjson = (rows: number, userId: string) =>
  Array.from({ length: rows }, (_, n) => JSON.stringify({ user_id: userId, title: `row ${n}`, rank: n })).join('\n')

const collection = {
  name: 'rows',
  read_policy: 'public',
  columns: [
    { name: 'title', type: 'text' },
    { name: 'rank', type: 'integer' },
  ],
}

/** One organization has rows imported and indexes built in all of its projects; another makes a project, imports and builds too. */
export const operations: Part = {
  name: 'operations',
  bound: '10 s for a project, 15 s for an import or an index',
  async run(world) {
    const [many, imports, rows] = world.isShort ? [4, 2, 20_000] : [5, 3, 30_000]
    const greedy = await world.tenant()
    const other = await world.tenant()
    const projects = await projectsOf(world, greedy, many)
    const start = async (developer: Tenant['developer'], path: string, body: unknown): Promise<string> => {
      const { status, body: answer } = await world.call(developer, 'POST', path, body)
      if (status !== 202) throw new Error(`${path} answered ${status}: ${JSON.stringify(answer)}`)
      return answer.data.operation_id
    }
    const importRows = async (developer: Tenant['developer'], projectId: string, file: string): Promise<string> => {
      const response = await fetch(`${world.url}${pathOf(projectId)}/rows/import?format=ndjson`, {
        method: 'POST',
        body: file,
        headers: { ...developer, 'content-type': 'application/x-ndjson' },
      })
      const { data } = (await response.json()) as { data?: { operation_id: string } }
      if (!data) throw new Error(`an import answered ${response.status}`)
      return data.operation_id
    }
    const isOver = async ({ developer }: Tenant, projectId: string, id: string) => {
      const { body } = await world.call(developer, 'GET', `/v1/admin/projects/${projectId}/operations/${id}`)
      if (body.data?.status === 'failed') throw new Error(`an operation failed: ${JSON.stringify(body.data)}`)
      return body.data?.status === 'succeeded'
    }
    const pathOf = (projectId: string) => `/v1/admin/projects/${projectId}/collections`
    for (const { projectId, developer } of [...projects.map((one) => ({ ...one, developer: greedy.developer })), other])
      await world.call(developer, 'POST', pathOf(projectId), collection)
    await world.call(other.developer, 'POST', pathOf(other.projectId), { ...collection, name: 'indexed' })
    await world.sql(other.projectId, fill, [other.user.userId, 100_500])
    await world.sql(other.projectId, 'analyze collections.indexed')
    const holders = []
    const begun: { projectId: string; id: string }[] = []
    for (const { projectId, key } of projects) {
      const { body } = await world.call(key, 'POST', '/v1/client/auth/anonymous', {})
      const file = ndjson(rows, body.data.user.id)
      for (let n = 0; n < imports; n += 1)
        begun.push({
          projectId,
          id: await importRows(greedy.developer, projectId, file),
        })
      await world.call(greedy.developer, 'POST', pathOf(projectId), { ...collection, name: 'indexed' })
      // a build that lasts: Postgres takes the table for a large one, and somebody holds it
      await world.sql(projectId, fill, [body.data.user.id, 30_000])
      await world.sql(projectId, 'analyze collections.indexed')
      await world.sql(projectId, `update pg_class set reltuples = 200000 where oid = 'collections.indexed'::regclass`)
      const holder = await connectAdmin(world.installation.cluster, databaseOf(projectId))
      await holder.query('begin; lock table collections.indexed in row exclusive mode')
      holders.push(holder)
      for (const column of ['title', 'rank'])
        await start(greedy.developer, `${pathOf(projectId)}/indexed/indexes`, { columns: [column] })
    }
    const waited = async (starting: () => Promise<string>) => {
      const began = performance.now()
      const id = await starting()
      await until(() => isOver(other, other.projectId, id))
      return performance.now() - began
    }
    const most = { project: 0, import: 0, index: 0 }
    let turns = 0
    let left = begun.length
    while (left > 0 && turns < (world.isShort ? 3 : 4)) {
      const seen = {
        project: await createProject(world, other.developer),
        import: await waited(() => importRows(other.developer, other.projectId, ndjson(2000, other.user.userId))),
        index: await waited(() =>
          start(other.developer, `${pathOf(other.projectId)}/indexed/indexes`, {
            columns: ['rank'],
            name: `i_${turns}`,
          }),
        ),
      }
      for (const key of ['project', 'import', 'index'] as const) most[key] = Math.max(most[key], seen[key])
      turns += 1
      const over = await Promise.all(begun.map(({ projectId, id }) => isOver(greedy, projectId, id)))
      left = over.filter((one) => !one).length
    }
    for (const holder of holders) await holder.end()
    const beside = `${begun.length} imports of ${rows} rows and ${projects.length * 2} indexes that cannot be built, of one organization, ${left} imports of which are left at the end`
    return {
      claims: [
        within(`${beside}: a new project of another`, most.project, 10_000),
        within('beside them an import of 2,000 rows', most.import, 15_000),
        within('beside them an index', most.index, 15_000),
      ],
    } satisfies Found
  },
}

/** So many rows that an index of them is built by an operation. */
const fill = `
  with made as (
    insert into collections.indexed (user_id, title, rank) select $1, 'x' || n, n from generate_series(1, $2::int) as n returning 1)
  select count(*) from made`

/** Silent receivers in all projects of one organization, beside a delivery of another's. */
export const outboxes: Part = {
  name: 'outboxes',
  bound: '10 s',
  async run(world) {
    const { well, silent } = theReceivers()
    const [many, events] = world.isShort ? [8, 20] : [20, 30]
    const greedy = await world.tenant()
    const other = await world.tenant()
    const projects = await projectsOf(world, greedy, many)
    const watch = (developer: Tenant['developer'], projectId: string, { url }: HttpsReceiver) =>
      world.call(developer, 'POST', `/v1/admin/projects/${projectId}/webhooks`, { event_name: 'paid', target_url: url })
    const users = await Promise.all(
      projects.map(async ({ projectId, key }) => {
        for (let n = 0; n < 3; n += 1) await watch(greedy.developer, projectId, silent)
        const { body } = await world.call(key, 'POST', '/v1/client/auth/anonymous', {})
        return { ...key, authorization: `Bearer ${body.data.session_token}` }
      }),
    )
    await watch(other.developer, other.projectId, well)
    const pay = (headers: Readonly<Record<string, string>>, note: string) =>
      world.call(headers, 'POST', '/v1/client/events', { event_name: 'paid', properties: { note } })
    const end = performance.now() + (world.isShort ? 25_000 : 30_000)
    let isOver = false
    const flooding = users.map(async (headers) => {
      for (let n = 0; n < events && !isOver; n += 1) {
        await pay(headers, 'greedy')
        await sleep(1000)
      }
    })
    await sleep(2000)
    let [longest, deliveries] = [0, 0]
    while (performance.now() < end) {
      const note = `other-${deliveries++}`
      const began = Date.now()
      await pay(other.user.headers, note)
      longest = Math.max(longest, (await arrivedAt(well, note)) - began)
      await sleep(500)
    }
    isOver = true
    await Promise.all(flooding)
    for (const { projectId } of projects) await world.sql(projectId, `delete from app.webhooks; delete from app.outbox`)
    const text = `three silent receivers of each of ${many} projects of one account: the slowest of ${deliveries} deliveries of another project`
    return { claims: [within(text, longest, 10_000)] }
  },
}
