// npm run bench:rest: the same row by id and the same page of 50 over our own route, the REST access, GraphQL, and bare PostgREST.
import { randomBytes } from 'node:crypto'
import { startChild } from './support/child.ts'
import { familyCpu, postgresCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, install } from './support/installation.ts'
import type { Load, Loaded } from './support/loader.ts'
import { type Request, shareNotes, startPostgrestOnNotes } from './support/note_peers.ts'
import { fillNotes } from './support/notes.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [rounds, seconds, rows, owners] = isShort ? [3, 1, 20_000, 200] : [3, 2, 100_000, 1000]
const warmUp = isShort ? 400 : 4000
const most = 8
const fields = 'id userId createdAt updatedAt title body rank done tags meta due'
const names = { get: 'one row by its id', list: 'a page of 50' } as const
type Operation = keyof typeof names
type Contestant = {
  readonly name: string
  readonly pid: number
  readonly connections?: number
  readonly requests: Record<Operation, Request>
}
type Figure = { readonly perSecond: number; readonly server: number; readonly postgres: number }

const notes = `${rows.toLocaleString('en')} rows of ${owners.toLocaleString('en')} owners, ${most} connections, one user, the very same table and policy. "Server" is every process that
answers: Trellis, and for the REST access its PostgREST and the process of GraphQL, which is asked by two
connections and reads as a developer, every row; for bare PostgREST that alone. The load generator is in no figure but the requests a second. The page of our own route begins at a cursor, the others' at its time.`

const main = async () => {
  requireProc()
  const installation = await install()
  const ends: (() => Promise<unknown>)[] = []
  try {
    const scenario = await createScenario(installation, 1)
    await fillNotes(installation, scenario, rows, owners)
    const [user] = scenario.users
    const [found] = await asAdmin<{ id: string; before: Date }>(
      installation.cluster,
      scenario.database,
      'select id, created_at as before from collections.notes where user_id = $1 order by created_at desc offset 10 limit 1',
      [user?.userId],
    )
    const known = { id: found?.id ?? '', before: found?.before.toISOString() ?? '', row: {}, rows: [] }
    const password = randomBytes(24).toString('base64url')
    await shareNotes(installation, scenario, password)
    const bare = await startPostgrestOnNotes(scenario, known, password)
    if (!bare) throw new Error('There is no PostgREST for this platform.')
    ends.push(() => bare.end())
    const developer = await scenario.switchOn({ rest_enabled: true, graphql_enabled: true })

    const headers = { ...user?.headers }
    const own = `${scenario.server.url}/v1/client/collections/notes`
    const json = { ...headers, 'content-type': 'application/json' }
    const first = await fetch(`${own}/find`, { method: 'POST', headers: json, body: JSON.stringify({ limit: 10 }) })
    const { next_cursor: cursor } = (await first.json()) as { next_cursor: string }
    const restUrl = `${scenario.server.url}/rest/v1/notes`
    const query = (text: string): Request => ({
      url: `${scenario.server.url}/v1/admin/projects/${scenario.projectId}/graphql`,
      method: 'POST',
      headers: { ...developer, 'content-type': 'application/json' },
      body: JSON.stringify({ query: text }),
    })
    const contestants: Contestant[] = [
      {
        name: 'our own route',
        pid: scenario.server.child.pid ?? 0,
        requests: {
          get: { url: `${own}/${known.id}`, method: 'GET', headers },
          list: { url: `${own}/find`, method: 'POST', headers: json, body: JSON.stringify({ limit: 50, cursor }) },
        },
      },
      {
        name: 'REST access',
        pid: scenario.server.child.pid ?? 0,
        requests: {
          get: {
            url: `${restUrl}?id=eq.${known.id}`,
            method: 'GET',
            headers: { ...headers, accept: 'application/vnd.pgrst.object+json' },
          },
          list: {
            url: `${restUrl}?created_at=lt.${known.before}&order=created_at.desc,id.desc&limit=50`,
            method: 'GET',
            headers,
          },
        },
      },
      {
        name: 'GraphQL',
        pid: scenario.server.child.pid ?? 0,
        connections: 2,
        requests: {
          get: query(`{ note(id: "${known.id}") { ${fields} } }`),
          list: query(
            `{ notes(first: 50, orderBy: CREATED_AT_DESC, condition: { userId: "${user?.userId}" }) { nodes { ${fields} } } }`,
          ),
        },
      },
      {
        name: 'bare PostgREST',
        pid: bare.pid,
        requests: { get: bare.requests['get'] as Request, list: bare.requests['list'] as Request },
      },
    ]
    const loader = startChild('loader.ts')
    ends.push(() => loader.end())
    const figures = new Map<string, Figure[]>()
    const operations = Object.keys(names) as Operation[]
    for (let round = 0; round <= rounds; round += 1) {
      for (const operation of operations) {
        for (const { name, pid, requests, connections = most } of contestants) {
          const { headers: sent, ...rest } = requests[operation]
          const answer = await fetch(rest.url, { ...rest, headers: sent })
          if (answer.status !== 200) throw new Error(`${name}, ${operation}: ${answer.status} ${await answer.text()}`)
          const text = await answer.text()
          if (!text.includes(known.id) && operation === 'get') throw new Error(`${name} has not found the row: ${text}`)
          const before = { server: familyCpu(pid), postgres: postgresCpu(installation.postmaster) }
          const load: Load = { ...rest, headers: [sent], connections, seconds }
          const loaded = await loader.ask<Loaded>(round > 0 ? load : { ...load, amount: warmUp })
          const measured = {
            perSecond: loaded.perSecond,
            server: (familyCpu(pid) - before.server) / loaded.requests,
            postgres: (postgresCpu(installation.postmaster) - before.postgres) / loaded.requests,
          }
          const key = `${operation} ${name}`
          if (round > 0) figures.set(key, [...(figures.get(key) ?? []), measured])
        }
      }
      say(`round ${round} of ${rounds}`)
    }
    const sum = ({ server, postgres }: Figure) => server + postgres
    const of = (operation: Operation, name: string) => figures.get(`${operation} ${name}`) ?? []
    const lines = operations.flatMap((operation) =>
      contestants.map(({ name }) => [
        names[operation],
        name,
        ...[(f: Figure) => f.perSecond, (f: Figure) => f.server, (f: Figure) => f.postgres, sum].map((part) =>
          figure(medianOf(of(operation, name), part)),
        ),
      ]),
    )
    const floor =
      'PostgREST, whose CPU is all of the other side, is a part of it; the rest is a request of HTTP more, the key and the session, and the settings of a transaction'
    const aims = operations.map((operation) => {
      const times = medianRatio(of(operation, 'REST access').map(sum), of(operation, 'bare PostgREST').map(sum))
      return {
        text: `${names[operation]}: the REST access takes ${figure(times)} times the CPU of bare PostgREST (aim: at most 1.75)`,
        isMet: times <= 1.75,
        floor,
      }
    })
    const versions = {
      Postgres: installation.postgresVersion,
      PostgREST: bare.version,
      autocannon: await versionOf('autocannon'),
    }
    const head = ['', 'who', 'a second', 'server us', 'Postgres us', 'all us']
    const parts = ['## bench:rest', await circumstances('npm run bench:rest', versions), notes, table(head, lines)]
    await publish({ name: 'bench:rest', isShort, text: [...parts, aims.map(aimLine).join('\n')].join('\n\n') })
  } finally {
    for (const end of ends.reverse()) await end()
    await installation.end()
  }
}

await main()
