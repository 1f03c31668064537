// npm run bench:http: requests through one server process, beside the bare database call and beside PostgREST.
import { endServer } from '#test/support/process.ts'
import type { Called, CallerCommand, Way } from './support/caller.ts'
import { type Child, startChild } from './support/child.ts'
import { postgresCpu, processCpu, requireProc } from './support/cpu.ts'
import { createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import type { Load, Loaded } from './support/loader.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { functionCall, type Postgrest, singleRow, startPostgrest } from './support/postgrest.ts'
import { functionsDuring, profilable, profileDuring, summarize, timeFunctions, writesNote } from './support/profile.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
/** Short turns and many of them: what else the machine does lasts longer than a turn. */
const [rounds, seconds] = isShort ? [1, 1] : [9, 2]
const connectionCounts = [8, 32]
const users = 32

type Round = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Microseconds of CPU for each request: of the server that is measured, and of Postgres. */
  readonly server: number
  readonly postgres: number
}
type Contestant = { readonly name: string; run(connections: number): Promise<Round> }

const names = {
  me: '`GET /client/users/me`',
  event: '`POST /client/events`, one',
  batch: '`POST /client/events`, 500',
  bareMe: 'bare `me_get` from Node',
  bareEvent: 'bare `events_post` from Node, one',
  bareBatch: 'bare `events_post` from Node, 500',
  postgrestRow: 'PostgREST, the plain row',
  postgrestSame: 'PostgREST, a function with our answer',
}

const event = { event_name: 'lesson_completed', properties: { lesson: 3, score: 87, mode: 'daily' } }
const oneBody = JSON.stringify(event)
const batchBody = JSON.stringify({ events: Array.from({ length: 500 }, () => event) })

const httpContestant = (
  name: string,
  pid: number,
  postmaster: number,
  loader: Child,
  load: Omit<Load, 'connections' | 'seconds'>,
): Contestant => ({
  name,
  async run(connections) {
    const before = { server: processCpu(pid), postgres: postgresCpu(postmaster) }
    const loaded = await loader.ask<Loaded>({ ...load, connections, seconds } satisfies Load)
    const { requests, ...figures } = loaded
    return {
      ...figures,
      server: (processCpu(pid) - before.server) / requests,
      postgres: (postgresCpu(postmaster) - before.postgres) / requests,
    }
  },
})

const bareContestant = (name: string, postmaster: number, caller: Child, way: Way): Contestant => ({
  name,
  async run(concurrency) {
    const before = postgresCpu(postmaster)
    const called = await caller.ask<Called>({ kind: 'run', way, concurrency, seconds } satisfies CallerCommand)
    const { perSecond, p50, p99, cpu, calls } = called
    return { perSecond, p50, p99, server: cpu, postgres: (postgresCpu(postmaster) - before) / calls }
  },
})

const contestantsOf = (
  { postmaster }: Installation,
  { server, users }: Scenario,
  { caller, loader }: { caller: Child; loader: Child },
  postgrest: Postgrest | null,
): Contestant[] => {
  const pid = server.child.pid ?? 0
  const url = `${server.url}/v1/client`
  const get = (name: string, pid: number, url: string, headers: Readonly<Record<string, string>>) =>
    httpContestant(name, pid, postmaster, loader, { url, method: 'GET', headers: [headers] })
  const post = (name: string, body: string) =>
    httpContestant(name, pid, postmaster, loader, {
      url: `${url}/events`,
      method: 'POST',
      body,
      // a user's events wait for each other: as in life, each connection is another user's
      headers: users.map((user) => ({ ...user.headers, 'content-type': 'application/json' })),
    })
  const bare = (name: string, call: string, args: Record<string, unknown>, readOnly: boolean) =>
    bareContestant(name, postmaster, caller, { kind: 'call', name: call, args, readOnly })
  return [
    get(names.me, pid, `${url}/users/me`, users[0]?.headers ?? {}),
    bare(names.bareMe, 'me_get', {}, true),
    ...(postgrest
      ? [
          get(names.postgrestRow, postgrest.pid, postgrest.row, { ...postgrest.headers, ...singleRow }),
          get(names.postgrestSame, postgrest.pid, postgrest.sameAnswer, { ...postgrest.headers, ...functionCall }),
        ]
      : []),
    post(names.event, oneBody),
    bare(names.bareEvent, 'events_post', { body: oneBody }, false),
    post(names.batch, batchBody),
    bare(names.bareBatch, 'events_post', { body: batchBody }, false),
  ]
}

type Figures = Map<string, Round[]>

/** Everybody's turn, round after round; the first time warms up and does not count. */
const measure = async (contestants: readonly Contestant[]): Promise<Figures> => {
  const figures: Figures = new Map()
  for (let round = 0; round <= rounds; round += 1) {
    for (const connections of connectionCounts) {
      for (const contestant of contestants) {
        const measured = await contestant.run(connections)
        const key = `${contestant.name} ${connections}`
        if (round > 0) figures.set(key, [...(figures.get(key) ?? []), measured])
      }
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

const sum = (round: Round) => round.server + round.postgres

const tableOf = (contestants: readonly Contestant[], figures: Figures): string => {
  const head = [
    '',
    'connections',
    'a second',
    'p50 ms',
    'p99 ms',
    'server us',
    'Postgres us',
    'both us',
    'a CPU second',
  ]
  const rows = contestants.flatMap(({ name }) =>
    connectionCounts.map((connections) => {
      const taken = figures.get(`${name} ${connections}`) ?? []
      const of = (part: (round: Round) => number) => figure(medianOf(taken, part))
      return [
        name,
        String(connections),
        of((round) => round.perSecond),
        of((round) => round.p50),
        of((round) => round.p99),
        of((round) => round.server),
        of((round) => round.postgres),
        of(sum),
        of((round) => 1e6 / sum(round)),
      ]
    }),
  )
  return table(head, rows)
}

const ratioOf = (figures: Figures, part: (round: Round) => number, name: string, to: string, connections: number) =>
  medianRatio(
    (figures.get(`${name} ${connections}`) ?? []).map(part),
    (figures.get(`${to} ${connections}`) ?? []).map(part),
  )

/** How many times the CPU of its bare call a request may cost, and how many requests of PostgREST it is worth. */
const [mostOfBare, leastOfPostgrest] = [2.5, 1.6]
const floorOfMe =
  '45 % of what Node takes are its two writes, to Postgres and to the client; fastify, the key and the session are the rest'

const aimsOf = (figures: Figures): Aim[] => {
  const pairs = [
    [names.me, names.bareMe],
    [names.event, names.bareEvent],
    [names.batch, names.bareBatch],
  ] as const
  const costs = pairs.map(([name, to]): Aim => {
    const [few = 0, many = 0] = connectionCounts.map((connections) => ratioOf(figures, sum, name, to, connections))
    const text = `${name} costs ${figure(few)} times the CPU of the bare call at 8 connections, ${figure(many)} at 32 (aim: at most ${mostOfBare})`
    const ratios = [few, many].map((value, at) => {
      return { name: `${name} to the bare call at ${connectionCounts[at]}`, value, better: 'lower' } as const
    })
    return { text, isMet: Math.max(few, many) <= mostOfBare, ratios, ...(name === names.me && { floor: floorOfMe }) }
  })
  const peers = [names.postgrestRow, names.postgrestSame].flatMap((to) =>
    connectionCounts.map((connections): Aim => {
      const rate = ratioOf(figures, (round) => round.perSecond, names.me, to, connections)
      const perCpu = ratioOf(figures, (round) => 1 / sum(round), names.me, to, connections)
      const text = `${names.me} against ${to} at ${connections}: ${figure(rate)} times the requests a second, ${figure(perCpu)} times those of a CPU second (aim: ${leastOfPostgrest})`
      const ratio = { name: `${names.me} to ${to} at ${connections}`, value: perCpu, better: 'higher' } as const
      return {
        text,
        isMet: Number.isNaN(rate) ? null : rate >= leastOfPostgrest && perCpu >= leastOfPostgrest,
        ratios: [ratio],
      }
    }),
  )
  return [...costs, ...peers]
}

/** Where the time of GET me goes: Node by its profile, Postgres by function. */
const profileOf = async (installation: Installation, scenario: Scenario, loader: Child): Promise<string> => {
  const { cluster } = installation
  await timeFunctions(cluster, scenario.database)
  const server = await installation.serve(profilable)
  const load = {
    url: `${server.url}/v1/client/users/me`,
    method: 'GET',
    headers: [scenario.users[0]?.headers ?? {}],
    connections: 8,
    seconds: isShort ? 2 : 8,
  } satisfies Load
  await loader.ask<Loaded>({ ...load, seconds: 2 })
  const profile = await profileDuring(server.output(), () => loader.ask<Loaded>(load))
  const functions = await functionsDuring(cluster, scenario.database, async () => {
    const { requests } = await loader.ask<Loaded>(load)
    return requests
  })
  await endServer(server)
  return `#### Profile of ${names.me} at 8 connections

${writesNote}

${summarize(profile)}

${functions}`
}

const notes = `"Server" is the Node process of Trellis, PostgREST, or the Node process that makes the bare calls; "both" is that and all of Postgres.
The load generator (autocannon, a process of its own) shares the two cores and is in no figure but the requests a second.
One session reads; events come from 32 users, each connection another's, without ids of their own, and no streak or webhook listens.
PostgREST has 10 connections over the same socket, a JWT (HS256), a role switch and a policy on the same table. "The plain row" is that
row by its id with every column, and without our list of sign-in methods; the function is called by name and answers what we do.`

const main = async () => {
  requireProc()
  const installation = await install()
  const children: Child[] = []
  let postgrest: Postgrest | null = null
  try {
    const scenario = await createScenario(installation, users)
    const [caller, loader] = [await scenario.caller(), startChild('loader.ts')]
    children.push(caller, loader)
    postgrest = await startPostgrest(installation, scenario)
    const contestants = contestantsOf(installation, scenario, { caller, loader }, postgrest)
    const figures = await measure(contestants)
    const aims = aimsOf(figures)
    await endServer(scenario.server)
    const isMissed = aims.some(({ isMet }) => isMet === false)
    const profile = isMissed ? [await profileOf(installation, scenario, loader)] : []
    const versions = {
      Postgres: installation.postgresVersion,
      PostgREST: postgrest?.version ?? 'not installed: its rows are left out',
      autocannon: await versionOf('autocannon'),
    }
    const parts = [
      '## bench:http',
      await circumstances('npm run bench:http', versions),
      notes,
      tableOf(contestants, figures),
      aims.map(aimLine).join('\n'),
      ...profile,
    ]
    await publish({ name: 'bench:http', isShort, text: parts.join('\n\n'), aims })
  } finally {
    for (const child of children) await child.end()
    await postgrest?.end()
    await installation.end()
  }
}

await main()
