// One event that moves one leaderboard and one counter: Trellis, a function called through PostgREST, and a cloud function of Parse Server.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tenantName } from '#server/database/names.ts'
import { createTestProject, endServer, freePort } from '#test/support/process.ts'
import { postgresCpu, processCpu } from './cpu.ts'
import { asAdmin, type Installation } from './installation.ts'
import { peers } from './note_peers.ts'
import { figure, medianOf, medianRatio, table } from './numbers.ts'
import { binary, tokenOf } from './postgrest.ts'
import { type Aim, say } from './results.ts'

export const peerUsers = 64
const concurrencies = [1, 8, 32] as const
/** How many times the requests of each peer, a second and a CPU second, are aimed at: the more callers, the more events go together. */
const wanted = { 1: 0.5, 8: 0.65, 32: 1 } as const
const eventName = 'lesson_completed'

type Contestant = {
  readonly name: string
  readonly version: string
  readonly pid: number
  readonly url: string
  readonly headersOf: readonly Readonly<Record<string, string>>[]
  readonly bodyOf: (user: number) => unknown
  end(): Promise<unknown>
}
type Round = { readonly perSecond: number; readonly cpu: number }

const trellis = async (installation: Installation): Promise<Contestant> => {
  const server = await installation.serve({ GENERAL_RATE_LIMITS: 'off' })
  const { projectId, serverKey } = await createTestProject(server.url)
  const database = tenantName('trellis', projectId)
  await asAdmin(
    installation.cluster,
    database,
    `insert into app.leaderboards (key, name, source, scoring, period)
     values ('board', 'Board', '{"type": "event", "event_name": "${eventName}"}', 'count', 'weekly')`,
  )
  const ids = await asAdmin<{ id: string }>(
    installation.cluster,
    database,
    `insert into app.users (display_name) select 'user ' || n from generate_series(1, ${peerUsers}) n returning id`,
  )
  return {
    name: 'Trellis',
    version: '',
    pid: server.child.pid ?? 0,
    url: `${server.url}/v1/client/events`,
    headersOf: ids.map(() => ({ 'x-api-key': serverKey })),
    bodyOf: (user) => ({ event_name: eventName, app_user_id: ids[user]?.id }),
    end: () => endServer(server),
  }
}

/** As the guides of Supabase show it: tables under policies, a function that does the two writes and answers what they came to. */
const schema = (password: string) => `
  create role web_anon nologin;
  create role web_user nologin;
  create role web_authenticator login noinherit password '${password}';
  grant web_anon, web_user to web_authenticator;
  create schema web;
  grant usage on schema web to web_user, web_anon;
  create function web.user_id() returns uuid language sql stable
    return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid;
  create table web.counters (user_id uuid not null, event_name text not null, count bigint not null, primary key (user_id, event_name));
  create table web.entries (board text not null, user_id uuid not null, score bigint not null, updated_at timestamptz not null, primary key (board, user_id));
  create index on web.entries (board, score desc);
  alter table web.counters enable row level security;
  alter table web.entries enable row level security;
  create policy "users write their counters" on web.counters to web_user using (user_id = (select web.user_id())) with check (user_id = (select web.user_id()));
  create policy "users write their entries" on web.entries to web_user using (user_id = (select web.user_id())) with check (user_id = (select web.user_id()));
  grant select, insert, update on web.counters, web.entries to web_user;
  create function web.event(event_name text) returns json language plpgsql as $$
  declare
    counted bigint;
    scored bigint;
  begin
    insert into web.counters as c (user_id, event_name, count) values (web.user_id(), event.event_name, 1)
    on conflict on constraint counters_pkey do update set count = c.count + 1 returning c.count into counted;
    insert into web.entries as e (board, user_id, score, updated_at) values ('board', web.user_id(), 1, now())
    on conflict on constraint entries_pkey do update set score = e.score + 1, updated_at = now() returning e.score into scored;
    return json_build_object('count', counted, 'score', scored);
  end $$`

const untilOk = async (ask: () => Promise<Response>, child: ChildProcess, name: string) => {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said = (said + chunk).slice(-2000)))
  for (let tries = 0; ; tries += 1) {
    const response = await ask().catch(() => null)
    if (response?.ok) return response
    if (tries > 300 || child.exitCode !== null) throw new Error(`${name} does not answer: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const ending = (child: ChildProcess) => {
  const ended = once(child, 'exit')
  return async () => {
    if (child.exitCode === null) child.kill('SIGTERM')
    await ended
  }
}

const ask = (url: string, headers: Readonly<Record<string, string>>, body: unknown) =>
  fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const postgrest = async ({ cluster }: Installation): Promise<Contestant | null> => {
  const found = binary()
  if (!found) return null
  const [password, secret] = [randomBytes(24).toString('base64url'), randomBytes(32).toString('hex')]
  await asAdmin(cluster, 'postgres', 'create database bench_events')
  await asAdmin(cluster, 'bench_events', schema(password))
  const folder = await mkdtemp(join(tmpdir(), 'trellis-postgrest-'))
  const port = await freePort()
  const dsn = new URL(cluster.dsn)
  const lines = [
    `db-uri = "postgres://web_authenticator:${password}@/bench_events?host=${encodeURIComponent(cluster.socketDirectory ?? dsn.hostname)}&port=${dsn.port}"`,
    'db-schemas = "web"',
    'db-anon-role = "web_anon"',
    'db-pool = 10',
    `jwt-secret = "${secret}"`,
    'server-host = "127.0.0.1"',
    `server-port = ${port}`,
  ]
  await writeFile(join(folder, 'postgrest.conf'), `${lines.join('\n')}\n`, { mode: 0o600 })
  const child = spawn(found.path, [join(folder, 'postgrest.conf')], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const stop = ending(child)
  const whole: Contestant = {
    name: 'PostgREST, a function with the two writes',
    version: found.version,
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}/rpc/event`,
    headersOf: Array.from({ length: peerUsers }, (_, n) => ({
      authorization: `Bearer ${tokenOf(secret, `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`)}`,
    })),
    bodyOf: () => ({ event_name: eventName }),
    end: async () => {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  await untilOk(() => ask(whole.url, whole.headersOf[0] ?? {}, whole.bodyOf(0)), child, whole.name)
  return whole
}

const parse = async ({ cluster }: Installation): Promise<Contestant | null> => {
  if (!existsSync(join(peers, 'node_modules/parse-server'))) return null
  const password = randomBytes(24).toString('base64url')
  await asAdmin(cluster, 'postgres', `create role bench_parse_events login password '${password}'`)
  await asAdmin(cluster, 'postgres', 'create database bench_parse_events owner bench_parse_events')
  const port = await freePort()
  const dsn = new URL(cluster.dsn)
  const child = spawn(process.execPath, [join(peers, 'parse_events.mjs')], {
    cwd: peers,
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      PORT: String(port),
      PARSE_SERVER_LOGS_FOLDER: 'null',
      DATABASE_HOST: cluster.socketDirectory ?? dsn.hostname,
      DATABASE_PORT: dsn.port,
      DATABASE: 'bench_parse_events',
      DATABASE_USER: 'bench_parse_events',
      DATABASE_PASSWORD: password,
      APP_ID: 'bench',
      MASTER_KEY: randomBytes(24).toString('hex'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stop = ending(child)
  const url = `http://127.0.0.1:${port}/parse`
  const key = { 'x-parse-application-id': 'bench' }
  await untilOk(() => fetch(`${url}/health`), child, 'Parse Server')
  const headersOf: Record<string, string>[] = []
  for (let n = 0; n < peerUsers; n += 1) {
    const body = { username: `user ${n}`, password: randomBytes(16).toString('hex') }
    const signedUp = await ask(`${url}/users`, { ...key, 'x-parse-revocable-session': '1' }, body)
    const { sessionToken } = (await signedUp.json()) as { sessionToken: string }
    headersOf.push({ ...key, 'x-parse-session-token': sessionToken })
  }
  return {
    name: 'Parse Server, a cloud function that does the same',
    version: '9.10.0',
    pid: child.pid ?? 0,
    url: `${url}/functions/event`,
    headersOf,
    bodyOf: () => ({ event_name: eventName }),
    end: stop,
  }
}

const turn = async (
  { postmaster }: Installation,
  { name, pid, url, headersOf, bodyOf }: Contestant,
  callers: number,
  seconds: number,
): Promise<Round> => {
  const cpuOf = () => processCpu(pid) + postgresCpu(postmaster)
  const [before, began] = [cpuOf(), performance.now()]
  let posted = 0
  const call = async (caller: number) => {
    // each caller posts for users of its own, so that none waits for another's user
    for (let n = caller; performance.now() < began + seconds * 1000; n += callers) {
      const response = await ask(url, headersOf[n % peerUsers] ?? {}, bodyOf(n % peerUsers))
      const text = await response.text()
      if (response.status >= 300) throw new Error(`${name} answers ${response.status} ${text.slice(0, 400)}`)
      posted += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  return { perSecond: (posted * 1000) / (performance.now() - began), cpu: (cpuOf() - before) / posted }
}

export const measureEventPeers = async (
  installation: Installation,
  rounds: number,
  seconds: number,
): Promise<{ text: string; aims: Aim[]; versions: Record<string, string> }> => {
  const contestants: Contestant[] = []
  try {
    for (const start of [trellis, postgrest, parse]) {
      const one = await start(installation)
      if (one) contestants.push(one)
    }
    const figures = new Map<string, Round[]>()
    for (let round = 0; round <= rounds; round += 1) {
      for (const callers of concurrencies)
        for (const who of contestants) {
          const taken = await turn(installation, who, callers, seconds)
          const key = `${who.name} ${callers}`
          if (round > 0) figures.set(key, [...(figures.get(key) ?? []), taken])
        }
      say(`round ${round} of ${rounds} beside peers`)
    }
    return report(contestants, (name, callers) => figures.get(`${name} ${callers}`) ?? [])
  } finally {
    for (const one of contestants) await one.end()
  }
}

const report = (contestants: readonly Contestant[], of: (name: string, callers: number) => readonly Round[]) => {
  const rate = ({ perSecond }: Round) => perSecond
  const cpu = (round: Round) => round.cpu
  const [ours, ...others] = contestants as [Contestant, ...Contestant[]]
  const aims = others.flatMap(({ name }) =>
    concurrencies.map((callers): Aim => {
      const times = medianRatio(of(ours.name, callers).map(rate), of(name, callers).map(rate))
      const cost = medianRatio(of(name, callers).map(cpu), of(ours.name, callers).map(cpu))
      return {
        text: `one leaderboard and one counter with ${callers} callers: ${figure(times)} times the requests a second of ${name}, ${figure(cost)} times those of a CPU second (aim: ${wanted[callers]} in both)`,
        isMet: times >= wanted[callers] && cost >= wanted[callers],
      }
    }),
  )
  return {
    versions: Object.fromEntries(
      others.map(({ name, version }) => [name.startsWith('Parse') ? 'Parse Server' : 'PostgREST', version]),
    ),
    text: table(
      ['one leaderboard and one counter', ...concurrencies.flatMap((c) => [`${c} callers, a second`, 'CPU us'])],
      contestants.map(({ name }) => [
        name,
        ...concurrencies.flatMap((c) => [figure(medianOf(of(name, c), rate)), figure(medianOf(of(name, c), cpu))]),
      ]),
    ),
    aims,
  }
}
