// npm run bench:call: the role-switched call beside what limits it (pgbench) and what it replaces (four steps in sequence).
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Statement } from '#server/database/call.ts'
import type { Target } from '#server/database/cluster.ts'
import { endServer } from '#test/support/process.ts'
import type { Called, CallerCommand, Profile, Way } from './support/caller.ts'
import type { Child } from './support/child.ts'
import { postgresCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { findPgbench, runPgbench, type Script, writeScript } from './support/pgbench.ts'
import { functionsDuring, summarize, timeFunctions, writesNote } from './support/profile.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const concurrencies = [1, 8, 32]
/** Short turns and many of them: what else the machine does lasts longer than a turn. */
const [rounds, seconds] = isShort ? [2, 1] : [11, 1]

type Round = { readonly perSecond: number; readonly client: number; readonly postgres: number }
type Contestant = {
  readonly name: string
  readonly subject: string
  /** How the Node process makes it, where that makes it. */
  readonly way?: Way
  run(concurrency: number): Promise<{ perSecond: number; calls: number; cpu: number }>
}

const names = {
  oneSync: 'one Sync, from our pools',
  sequence: 'BEGIN, set_config, call, COMMIT in sequence, `pg` pool',
  pgbench: 'pgbench, one trip, role switched',
  plain: 'pgbench, one trip, no switch',
}

/** What each setting of the call holds when this user makes it. */
const settingsOf = ({ users, projectId }: Scenario): Readonly<Record<string, string>> => ({
  role: 'app_user',
  'app.caller': 'user',
  'app.user_id': users[0]?.userId ?? '',
  'app.session_id': users[0]?.sessionId ?? '',
  'app.project_id': projectId,
  transaction_read_only: 'on',
  statement_timeout: '5000',
})

const setupOf = (text: string, scenario: Scenario): Statement => {
  const settings = settingsOf(scenario)
  const names = [...text.matchAll(/set_config\('([^']+)', \$\d+, true\)/g)].map(([, name = '']) => name)
  return { name: 'bench_setup', text, values: names.map((name) => settings[name] ?? '') }
}

const nodeContestant = (name: string, subject: string, way: Way, child: Child): Contestant => ({
  name,
  subject,
  way,
  run: (concurrency) => child.ask<Called>({ kind: 'run', way, concurrency, seconds } satisfies CallerCommand),
})

const pgbenchContestant = (name: string, subject: string, script: Script, login: Target): Contestant => ({
  name,
  subject,
  run: (concurrency) => runPgbench(login, script, concurrency, seconds),
})

/** `$n` becomes pgbench's variable, and a parameter of the same prepared statement again; it knows no empty variables. */
const asScript = (prefix: string, { text, values }: Statement): string =>
  `${text.replaceAll(/\$(\d+)/g, (_, n: string) => (values[Number(n) - 1] ? `:${prefix}${n}` : "''"))};`

const variablesOf = (prefix: string, { values }: Statement): Record<string, string> =>
  Object.fromEntries(values.flatMap((value, index) => (value ? [[`${prefix}${index + 1}`, value]] : [])))

/** The same texts in pgbench's own one-trip form; without the switch, role and user are settings of the connection. */
const pgbenchContestants = async (
  folder: string,
  subject: string,
  setup: Statement,
  target: Statement,
  scenario: Scenario,
  login: Target,
): Promise<Contestant[]> => {
  const call = asScript('v', target)
  const lines = ['\\startpipeline', asScript('s', setup), call, '\\endpipeline']
  const values = { ...variablesOf('s', setup), ...variablesOf('v', target) }
  const switched = await writeScript(folder, `${target.name}_switched`, lines, { values, session: {} })
  const { role, 'app.user_id': userId } = settingsOf(scenario)
  const session = { role: role ?? '', 'app.user_id': userId ?? '' }
  const plain = await writeScript(folder, `${target.name}_plain`, [call], { values: variablesOf('v', target), session })
  return [
    pgbenchContestant(names.pgbench, subject, switched, login),
    pgbenchContestant(names.plain, subject, plain, login),
  ]
}

/**
 * pgbench prepares every statement before it runs the first, so its login must find their names; our own logins find none.
 * What it may do is still nothing but switch.
 */
const makePgbenchLogin = async ({ cluster }: Installation, { database, target }: Scenario): Promise<Target> => {
  const password = randomBytes(24).toString('base64url')
  const text = `
    create role bench_login login noinherit password '${password}';
    grant app_user to bench_login with inherit false, set true;
    grant connect on database "${database}" to bench_login;
    grant usage on schema api, app to bench_login`
  await asAdmin(cluster, database, text)
  return { ...target, user: 'bench_login', password }
}

const contestantsOf = async (
  scenario: Scenario,
  child: Child,
  folder: string,
  login: Target | null,
): Promise<Contestant[]> => {
  const texts = await child.ask<Record<string, string>>({ kind: 'statements' } satisfies CallerCommand)
  const setup = setupOf(texts['trellis_setup'] ?? '', scenario)
  const me = Object.values(texts).find((text) => text.includes('"me_get"')) ?? ''
  const meGet: Statement = { name: 'bench_me', text: me, values: [] }
  const row: Statement = {
    name: 'bench_row',
    text: 'select u.id, u.display_name, u.timezone, u.created_at from app.users u where u.id = $1',
    values: [scenario.users[0]?.userId ?? ''],
  }
  const subjects = [
    {
      subject: '`database.call` of `me_get`',
      statement: meGet,
      way: { kind: 'call', name: 'me_get', args: {}, readOnly: true },
    },
    { subject: 'bare statement: one row by id', statement: row, way: { kind: 'one sync', statement: row } },
  ] as const
  const all: Contestant[] = []
  for (const { subject, statement, way } of subjects) {
    all.push(nodeContestant(names.oneSync, subject, way, child))
    all.push(nodeContestant(names.sequence, subject, { kind: 'sequence', setup, statement }, child))
    if (login) all.push(...(await pgbenchContestants(folder, subject, setup, statement, scenario, login)))
  }
  return all
}

const keyOf = ({ subject, name }: Contestant, concurrency: number) => `${subject} ${name} ${concurrency}`

/** Everybody's turn, round after round; the first time warms up and does not count. */
const measure = async (contestants: readonly Contestant[], postmaster: number): Promise<Map<string, Round[]>> => {
  const figures = new Map<string, Round[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const concurrency of concurrencies) {
      for (const contestant of contestants) {
        const before = postgresCpu(postmaster)
        const { perSecond, calls, cpu } = await contestant.run(concurrency)
        const postgres = (postgresCpu(postmaster) - before) / calls
        const key = keyOf(contestant, concurrency)
        if (round > 0) figures.set(key, [...(figures.get(key) ?? []), { perSecond, client: cpu, postgres }])
      }
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

const report = (contestants: readonly Contestant[], figures: Map<string, Round[]>): { text: string; aims: Aim[] } => {
  const aims: Aim[] = []
  const parts = [...new Set(contestants.map(({ subject }) => subject))].map((subject) => {
    const mine = contestants.filter((contestant) => contestant.subject === subject)
    const rate = (name: string, concurrency: number) =>
      medianOf(figures.get(`${subject} ${name} ${concurrency}`) ?? [], (round) => round.perSecond)
    const ratio = (name: string, to: string, concurrency: number) =>
      medianRatio(
        (figures.get(`${subject} ${name} ${concurrency}`) ?? []).map((round) => round.perSecond),
        (figures.get(`${subject} ${to} ${concurrency}`) ?? []).map((round) => round.perSecond),
      )
    const rows = mine.map((contestant) => [
      contestant.name,
      ...concurrencies.flatMap((concurrency) => [
        figure(rate(contestant.name, concurrency)),
        figure(ratio(contestant.name, names.sequence, concurrency)),
      ]),
      ...(['client', 'postgres'] as const).map((part) =>
        figure(medianOf(figures.get(keyOf(contestant, 8)) ?? [], (round) => round[part])),
      ),
    ])
    const least = Math.min(...concurrencies.map((concurrency) => ratio(names.oneSync, names.sequence, concurrency)))
    const bound = Math.min(...concurrencies.map((concurrency) => ratio(names.pgbench, names.sequence, concurrency)))
    aims.push({
      text: `${subject}: at least ${figure(least)} times the sequence at every concurrency (aim: 2.1)`,
      isMet: least >= 2.1,
      floor: `pgbench, whose client costs almost nothing, reaches ${figure(bound)}: the rest of a call is Postgres`,
      ratios: [{ name: `${subject} to the sequence`, value: least, better: 'higher' }],
    })
    const share = ratio(names.oneSync, names.pgbench, 8)
    aims.push({
      text: `${subject}: ${figure(share)} of pgbench's one-trip role-switched figure at 8 (aim: at least 0.7)`,
      isMet: Number.isNaN(share) ? null : share >= 0.7,
      ratios: [{ name: `${subject} to pgbench at 8`, value: share, better: 'higher' }],
    })
    const head = ['calls a second', ...concurrencies.flatMap((c) => [`c=${c}`, 'ratio']), 'client us', 'Postgres us']
    return `### ${subject}\n\n${table(head, rows)}`
  })
  return { text: parts.join('\n\n'), aims }
}

/** Where the time of our own ways goes at 8: in the Node process, and in the functions of Postgres. */
const profilesOf = async (contestants: readonly Contestant[], { cluster }: Installation, scenario: Scenario) => {
  await timeFunctions(cluster, scenario.database)
  const child = await scenario.caller()
  const parts: string[] = []
  try {
    for (const { name, subject, way } of contestants) {
      if (!way || name !== names.oneSync) continue
      const turn = { way, concurrency: 8, seconds: isShort ? 1 : 5 }
      const profile = await child.ask<Profile>({ kind: 'profile', ...turn } satisfies CallerCommand)
      const functions = await functionsDuring(cluster, scenario.database, async () => {
        const { calls } = await child.ask<Called>({ kind: 'run', ...turn } satisfies CallerCommand)
        return calls
      })
      parts.push(`#### Profile of ${subject}, ${name}, at 8\n\n${writesNote}\n\n${summarize(profile)}\n\n${functions}`)
    }
  } finally {
    await child.end()
  }
  return parts
}

const main = async () => {
  requireProc()
  const pgbench = await findPgbench()
  const installation = await install()
  const folder = await mkdtemp(join(tmpdir(), 'trellis-bench-'))
  let child: Child | undefined
  try {
    const scenario = await createScenario(installation, 1)
    await endServer(scenario.server)
    child = await scenario.caller()
    const login = pgbench ? await makePgbenchLogin(installation, scenario) : null
    const contestants = await contestantsOf(scenario, child, folder, login)
    const { text, aims } = report(contestants, await measure(contestants, installation.postmaster))
    const isMissed = aims.some(({ isMet }) => isMet === false)
    const profiles = isMissed ? await profilesOf(contestants, installation, scenario) : []
    const versions = { Postgres: installation.postgresVersion, pgbench: pgbench ?? 'not installed' }
    const missing = pgbench
      ? ''
      : '\nThe rows of pgbench are left out: it is not on the PATH of this machine (Debian: `apt install postgresql-contrib`).\n'
    const notes = `Ratios are to the sequence, round by round, and their median. CPU microseconds for each
call are those at c=8; the client is the Node process, or pgbench. \`pg\` and our pools hold at most 10 connections,
pgbench one for each of c. Without the switch, role and user are settings of the connection.`
    const parts = [
      '## bench:call',
      await circumstances('npm run bench:call', versions),
      `${notes}\n${missing}`,
      text,
      aims.map(aimLine).join('\n'),
      ...profiles,
    ]
    await publish({ name: 'bench:call', isShort, text: parts.join('\n\n'), aims })
  } finally {
    await child?.end()
    await rm(folder, { recursive: true, force: true })
    await installation.end()
  }
}

await main()
