// npm run bench:graphql: memory and CPU of the processes that answer GraphQL: for each schema, and for a query.
import { readdirSync, readFileSync } from 'node:fs'
import { ask, createTestProject, endPrograms } from '#test/support/process.ts'
import { requireProc } from './support/cpu.ts'
import { install } from './support/installation.ts'
import { figure, median, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const projects = 9
const calls = isShort ? 200 : 1000

const memoryOf = (pid: number): number => {
  const [, kilobytes] = /^Rss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
  return Number(kilobytes ?? 0) / 1000
}
/** Milliseconds of CPU that a process has used; the kernel counts in hundredths of a second. */
const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}
/** The processes of GraphQL that this server has. */
const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => {
      if (!/^\d+$/.test(name)) return false
      try {
        const parent = Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1])
        return parent === pid && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('graphql/process.ts')
      } catch {
        return false
      }
    })
    .map(Number)

requireProc()
const installation = await install()
try {
  const server = await installation.serve({ GENERAL_RATE_LIMITS: 'off' })
  const parent = server.child.pid ?? 0
  const made: { readonly developer: Record<string, string>; readonly base: string }[] = []
  // sign-ups of one address are few
  const { developer } = await createTestProject(server.url)
  for (let index = 0; index < projects; index += 1) {
    const { body } = await ask(server.url, 'POST', '/v1/admin/projects', { name: 'bench' }, developer)
    const base = `/v1/admin/projects/${body.data.project.id}`
    for (;;) {
      const { body } = await ask(server.url, 'GET', `${base}/provisioning-status`, undefined, developer)
      if (body.data.status === 'ready') break
    }
    await ask(server.url, 'PATCH', base, { graphql_enabled: true }, developer)
    // each of another shape
    const columns = [{ name: 'title', type: 'text' }]
    await ask(server.url, 'POST', `${base}/collections`, { name: `notes_${index}`, columns }, developer)
    made.push({ developer, base })
  }
  const query = async (index: number, text: string) => {
    const { developer, base } = made[index] as (typeof made)[number]
    const { status, body } = await ask(server.url, 'POST', `${base}/graphql`, { query: text }, developer)
    if (status !== 200 || body.errors) throw new Error(JSON.stringify(body))
    return body.data
  }
  const before = memoryOf(parent)
  const sizes: number[] = []
  const builds: number[] = []
  let child = 0
  for (let index = 0; index < projects; index += 1) {
    const known = new Set(childrenOf(parent))
    await query(index, '{ users { totalCount } }')
    const children = childrenOf(parent)
    // each schema is made by a process of its own, which has done nothing else yet
    child = children.find((one) => !known.has(one)) ?? child
    builds.push(cpuOf(child))
    sizes.push(children.reduce((sum, one) => sum + memoryOf(one), 0))
    say(`${index + 1} schemas: ${figure(sizes.at(-1) ?? 0)} MB`)
  }
  const { base } = made[projects - 1] as (typeof made)[number]
  for (let row = 0; row < 60; row += 1)
    await ask(server.url, 'POST', `${base}/groups`, { name: `group ${row}` }, developer)
  const { groups } = await query(projects - 1, '{ groups { nodes { id } } }')
  const queries = {
    'a row by id': `{ group(id: "${groups.nodes[0]?.id}") { id name description memberCount createdAt } }`,
    'a page of 50': '{ groups(first: 50) { nodes { id name description memberCount createdAt } } }',
  }
  const rows: string[][] = []
  for (const [name, text] of Object.entries(queries)) {
    for (let call = 0; call < 50; call += 1) await query(projects - 1, text)
    const [a, b] = [cpuOf(child), cpuOf(parent)]
    for (let call = 0; call < calls; call += 1) await query(projects - 1, text)
    rows.push([name, figure((cpuOf(child) - a) / calls), figure((cpuOf(parent) - b) / calls)])
  }
  const most = memoryOf(child)
  const aims: Aim[] = [
    {
      text: `${figure(most)} MB of a process with one schema; wanted under 400`,
      isMet: most < 400,
    },
    {
      text: `${figure(memoryOf(parent) - before)} MB more in the server's own process; wanted under 60`,
      isMet: memoryOf(parent) - before < 60,
    },
  ]
  const text = `## GraphQL: memory of schemas, CPU of queries

Projects of different shapes are asked one after the other; each schema has a process, half of them for one developer. Memory is resident.

${table(['schemas made', ...sizes.map((_size, index) => String(index + 1))], [['MB of all processes', ...sizes.map((size) => figure(size))]])}

A process with its schema takes ${figure(median(builds))} ms of CPU to start.

${table(['ms of CPU a query', 'process of GraphQL', 'server'], rows)}

${aims.map(aimLine).join('\n')}

${await circumstances('npm run bench:graphql', { PostgreSQL: installation.postgresVersion })}`
  await publish({ name: 'graphql', isShort, text })
} finally {
  await installation.end()
  await endPrograms()
}
