// npm run admin: operators' chores. Works beside a running server, with the embedded Postgres of DATA_DIR or that of DATABASE_URL.
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { readConfig } from '#server/config.ts'
import { type Cluster, connectAdmin, databaseExists, maintenanceDatabase } from '#server/database/cluster.ts'
import { failureOf } from '#server/database/failures.ts'
import { changedChannel } from '#server/database/notifier.ts'
import { controlName } from '#server/database/prepare.ts'
import { StartError } from '#server/errors.ts'
import { createInvite, inviteHash } from '#server/http/invites.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { createLog } from '#server/log.ts'

const usage = `npm run admin -- <command>

  invite create [--count 1] [--days 30] [--note "for whom"]
                                   invite codes, shown once; each lets one developer in
  invite list [--all]              those that are open, or all
  invite revoke CODE|ID
  waitlist list
  waitlist remove EMAIL
  project tier ID free|pro|enterprise
  project comp ID on|off           a comped project counts as enterprise, whatever its tier
  keys status                      the keys of SECRETS_KEY, what still uses each, and how far re-encryption is
  keys rotate                      makes the first key of SECRETS_KEY current, while servers run (docs/keys.md)
  keys project ID                  a new key for a project's session tokens; those of the former key stay valid
  keys forget ID                   gives up the tokens that a former key has signed, so that it may be dropped now
  developer verify EMAIL           marks the address as verified
  developer provisioning EMAIL on|off|revoked
                                   whether the account may create projects; off: not before it redeems an invite
`

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

type Argument = string | number | boolean | null
/** Runs one of the operators' functions of control, and then tells running servers what it changed. */
type Run = <T>(name: string, args?: Readonly<Record<string, Argument>>) => Promise<T>

const runOn =
  (control: pg.Client): Run =>
  async <T>(name: string, args: Readonly<Record<string, Argument>> = {}) => {
    const names = Object.keys(args).map((key, index) => `${key} => $${index + 1}`)
    await control.query('begin')
    const { rows } = await control.query<{ answer: T; changed: string | null }>(
      `select r as answer, current_setting('app.changed', true) as changed from internal.${name}(${names.join(', ')}) r`,
      Object.values(args),
    )
    await control.query('commit')
    // what was written to the audit trail; a running server seals what this cannot
    await control.query('select internal.audit_seal(1000)')
    const [row] = rows
    // after the commit: a server that looks again must find what changed
    if (row?.changed) await control.query('select pg_notify($1, $2)', [changedChannel, row.changed])
    return row?.answer as T
  }

const onControl = async (work: (run: Run) => Promise<void>): Promise<void> => {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  // the whole server is behind this import: a mistyped command need not wait for it
  const { startExistingPostgres, noDatabases } = await import('#server/postgres.ts')
  const { postgres } = await startExistingPostgres(config, createLog(config))
  try {
    const cluster: Cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
    const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    const exists = await databaseExists(admin, controlName(config.DATABASE_PREFIX)).finally(() => admin.end())
    if (!exists) throw new StartError(noDatabases)
    const control = await connectAdmin(cluster, controlName(config.DATABASE_PREFIX))
    await work(runOn(control)).finally(() => control.end())
  } finally {
    await postgres.stop()
  }
}

const wrong = (sentence: string) => new StartError(`${sentence}\n\n${usage}`)

const oneOf = <T extends string>(value: string | undefined, choices: readonly T[], what: string): T => {
  const found = choices.find((choice) => choice === value)
  if (!found) throw wrong(`Say ${what}: ${choices.join(', ')}.`)
  return found
}

const whole = (value: string, most: number, what: string): number => {
  if (!/^[1-9]\d{0,5}$/.test(value) || Number(value) > most)
    throw wrong(`${what} must be a whole number of 1 to ${most}.`)
  return Number(value)
}

const idOf = (value: string | undefined): string => {
  if (!value || !uuidPattern.test(value)) throw wrong("Say the project's id, a uuid.")
  return value
}

const emailOf = (value: string | undefined): string => {
  if (!value?.includes('@')) throw wrong('Say the mail address.')
  return value
}

/** Reads its arguments first: what is mistyped is said before a database is started. */
type AdminCommand = (rest: readonly string[], flags: Flags) => (run: Run) => Promise<void>
type Flags = {
  readonly count: string
  readonly days: string
  readonly note?: string | undefined
  readonly all: boolean
}

const table = (rows: readonly (readonly string[])[]) => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows)
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

/** What others wrote is shown on one line, without what a terminal would obey. */
const plain = (text: string | null) => (text ?? '').replace(/[\p{Cc}\p{Cf}]+/gu, ' ')

const createInvites: AdminCommand = (_rest, flags) => {
  const count = whole(flags.count, 1000, '--count')
  const days = whole(flags.days, 3650, '--days')
  if (flags.note && [...flags.note].length > 200) throw wrong('--note must have at most 200 characters.')
  const note = flags.note ?? null
  return async (run) => {
    const invites = Array.from({ length: count }, createInvite)
    const codes = JSON.stringify(invites.map(({ code_hash, code_hint }) => ({ code_hash, code_hint })))
    const stored = await run<{ expires_at: string }[]>('operator_invites_create', {
      codes,
      days,
      note,
    })
    for (const { code } of invites) print(code)
    process.stderr.write(
      `Good until ${stored[0]?.expires_at}. Only a hash is kept: this is the only time they are shown.\n`,
    )
  }
}

type InviteRow = {
  id: string
  hint: string
  status: string
  expires_at: string
  used_by: string | null
  note: string | null
}

const listInvites: AdminCommand = (_rest, flags) => async (run) => {
  const rows = await run<InviteRow[]>('operator_invites_list', { whole: flags.all })
  if (rows.length === 0) print(flags.all ? 'There are no invites.' : 'There are no open invites.')
  else
    table([
      ['id', 'code', 'status', 'expires', 'used by', 'note'],
      ...rows.map((row) => [row.id, `${row.hint}-…`, row.status, row.expires_at, plain(row.used_by), plain(row.note)]),
    ])
}

const revokeInvite: AdminCommand = ([given = '']) => {
  if (!given) throw wrong('Say which: the whole code, or the id that invite list shows.')
  const isId = uuidPattern.test(given)
  return async (run) => {
    const { hint } = await run<{ hint: string }>('operator_invite_revoke', {
      invite_id: isId ? given : null,
      code_hash: isId ? null : inviteHash(given),
    })
    print(`The invite ${hint}-… is revoked.`)
  }
}

const listWaitlist: AdminCommand = () => async (run) => {
  const rows = await run<{ email: string; note: string | null; created_at: string }[]>('operator_waitlist')
  if (rows.length === 0) print('Nobody waits.')
  else table(rows.map((row) => [row.created_at, plain(row.email), plain(row.note)]))
}

const removeFromWaitlist: AdminCommand = ([email]) => {
  const args = { email: emailOf(email) }
  return async (run) =>
    print(
      `${plain((await run<{ email: string }>('operator_waitlist_delete', args)).email)} is not on the waitlist any more.`,
    )
}

type ProjectRow = { name: string; tier: string; comped: boolean; effective_tier: string }
const printProject = ({ name, tier, comped, effective_tier }: ProjectRow) =>
  print(`${plain(name)}: tier ${tier}${comped ? ', comped' : ''}, effective tier ${effective_tier}`)

const setProject =
  (args: { project_id: string; tier?: string; comped?: boolean }) =>
  async (run: Run): Promise<void> =>
    printProject(await run<ProjectRow>('operator_project_set', args))

const setTier: AdminCommand = ([id, tier]) =>
  setProject({ project_id: idOf(id), tier: oneOf(tier, ['free', 'pro', 'enterprise'], 'which tier') })

const setComped: AdminCommand = ([id, state]) =>
  setProject({ project_id: idOf(id), comped: oneOf(state, ['on', 'off'], 'whether it is comped') === 'on' })

type DeveloperRow = { email: string; provisioning: string; account_state: string }
const printDeveloper = ({ email, provisioning, account_state }: DeveloperRow) =>
  print(`${plain(email)}: ${account_state}, provisioning ${provisioning}`)

const setDeveloper =
  (args: { email: string; verified?: boolean; provisioning?: string }) =>
  async (run: Run): Promise<void> =>
    printDeveloper(await run<DeveloperRow>('operator_developer_set', args))

const verifyDeveloper: AdminCommand = ([email]) => setDeveloper({ email: emailOf(email), verified: true })

const setProvisioning: AdminCommand = ([email, state]) =>
  setDeveloper({
    email: emailOf(email),
    provisioning: oneOf(state, ['on', 'off', 'revoked'], 'whether it may create projects'),
  })

const adminCommands: Readonly<Record<string, AdminCommand>> = {
  'invite create': createInvites,
  'invite list': listInvites,
  'invite revoke': revokeInvite,
  'waitlist list': listWaitlist,
  'waitlist remove': removeFromWaitlist,
  'project tier': setTier,
  'project comp': setComped,
  'developer verify': verifyDeveloper,
  'developer provisioning': setProvisioning,
}

const readArguments = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        count: { type: 'string', default: '1' },
        days: { type: 'string', default: '30' },
        note: { type: 'string' },
        all: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw wrong((error as Error).message)
  }
}

const main = async (): Promise<void> => {
  const { positionals, values } = readArguments()
  if (values.help) return print(usage)
  const [area = '', verb = '', ...rest] = positionals
  if (area === 'keys') {
    const { runKeys } = await import('./keys.ts')
    return runKeys(verb, rest, wrong, runOn)
  }
  const command = adminCommands[`${area} ${verb}`]
  if (!command)
    throw wrong(positionals.length === 0 ? 'Say what to do.' : `There is no command "${area} ${verb}".`.trim())
  await onControl(command(rest, values))
}

/** What went wrong, as a sentence; never a stack, and nothing of the inside that helps nobody. */
const explain = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof StartError) return message
  const failure = failureOf(error)
  if (failure.kind === 'refusal') return failure.error.message
  if (failure.kind === 'missing')
    return 'The databases are of an older version than this program: run npm run db:migrate, or start the server once.'
  if (failure.kind === 'unavailable') return `The database cannot be reached: ${message}`
  return code ? `${message} (${code})` : String(message)
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
}
