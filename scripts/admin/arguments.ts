import type pg from 'pg'
import type { Foundation } from '#fleet/postgres.ts'
import type { Cluster } from '#server/database/cluster.ts'
import { StartError } from '#server/errors.ts'
import { uuidPattern } from '#server/http/schemas.ts'

export const usage = `npm run admin -- <command> [--json]

  invite create [--count 1] [--days 30] [--note "for whom"]
                                   invite codes, shown once; each lets one developer in
  invite list [--all]              those that are open, or all
  invite revoke CODE|ID
  waitlist list
  waitlist remove EMAIL
  developer list [TEXT] [--limit 100]
  keys status                      the keys of SECRETS_KEY, what still uses each, and how far re-encryption is
  keys rotate                      makes the first key of SECRETS_KEY current, while servers run (docs/keys.md)
  keys project ID                  a new key for a project's session tokens; those of the former key stay valid
  keys forget ID                   gives up the tokens that a former key has signed, so that it may be dropped now
  developer verify EMAIL           marks the address as verified
  developer provisioning EMAIL on|off|revoked
                                   whether the account may create projects; off: not before it redeems an invite
  project list [TEXT] [--limit 100]
                                   projects whose id, name, owner, cluster or state has this text
  project tier ID free|pro|enterprise
  project comp ID on|off           a comped project counts as enterprise, whatever its tier
  project pause ID [--note "why"]  its requests are refused with 503, and its work waits
  project unpause ID
  project connections ID N|default what one server process may open to its database
  failed list ID [--limit 100]     work of a project that was given up: outbox rows and deliveries of webhooks
  failed retry ID all|ROW...       gives it new attempts
  slow list [--limit 20]           which functions of which projects take most time (needs pg_stat_statements)
  doctor [--backups FOLDER]        looks at all that an installation needs; ends with 1 if something is wrong
`

export type Argument = string | number | boolean | null
/** Runs one of the operators' functions of control, and then tells running servers what it changed. */
export type Call = <T>(name: string, args?: Readonly<Record<string, Argument>>) => Promise<T>

/** What a command works on. */
export type Run = Call & {
  readonly control: pg.Client
  readonly cluster: Cluster
  readonly foundation: Foundation
}

export type Flags = {
  readonly count: string
  readonly days: string
  readonly limit?: string | undefined
  readonly note?: string | undefined
  readonly backups?: string | undefined
  readonly all: boolean
  readonly json: boolean
}

/** Reads its arguments first: what is mistyped is said before a database is started. Answers the exit code, if it is not 0. */
export type AdminCommand = (rest: readonly string[], flags: Flags) => (run: Run) => Promise<number> | Promise<void>

export const wrong = (sentence: string) => new StartError(`${sentence}\n\n${usage}`)

export const oneOf = <T extends string>(value: string | undefined, choices: readonly T[], what: string): T => {
  const found = choices.find((choice) => choice === value)
  if (!found) throw wrong(`Say ${what}: ${choices.join(', ')}.`)
  return found
}

export const whole = (value: string, most: number, what: string, least = 1): number => {
  if (!/^[1-9]\d{0,5}$/.test(value) || Number(value) > most || Number(value) < least)
    throw wrong(`${what} must be a whole number of ${least} to ${most}.`)
  return Number(value)
}

export const limitOf = ({ limit }: Flags, usual: number) => whole(limit ?? String(usual), 10_000, '--limit')

export const noteOf = ({ note }: Flags): string | null => {
  if (note && [...note].length > 200) throw wrong('--note must have at most 200 characters.')
  return note ?? null
}

export const idOf = (value: string | undefined): string => {
  if (!value || !uuidPattern.test(value)) throw wrong("Say the project's id, a uuid.")
  return value
}

export const emailOf = (value: string | undefined): string => {
  if (!value?.includes('@')) throw wrong('Say the mail address.')
  return value
}
