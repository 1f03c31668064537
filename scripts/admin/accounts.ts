import { createInvite, inviteHash } from '#server/accounts/invite_codes.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { plain } from '#server/plain.ts'
import { type AdminCommand, emailOf, type Flags, limitOf, noteOf, oneOf, type Run, whole, wrong } from './arguments.ts'
import { print, show, table } from './output.ts'

const createInvites: AdminCommand = (_rest, flags) => {
  const count = whole(flags.count, 1000, '--count')
  const days = whole(flags.days, 3650, '--days')
  const note = noteOf(flags)
  return async (run) => {
    const invites = Array.from({ length: count }, createInvite)
    const codes = JSON.stringify(invites.map(({ code_hash, code_hint }) => ({ code_hash, code_hint })))
    const stored = await run<{ expires_at: string }[]>('operator_invites_create', {
      codes,
      days,
      note,
    })
    if (flags.json)
      return print(JSON.stringify({ codes: invites.map(({ code }) => code), expires_at: stored[0]?.expires_at }))
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
  show(flags, rows, () => {
    if (rows.length === 0) return print(flags.all ? 'There are no invites.' : 'There are no open invites.')
    table([
      ['id', 'code', 'status', 'expires', 'used by', 'note'],
      ...rows.map((row) => [row.id, `${row.hint}-…`, row.status, row.expires_at, plain(row.used_by), plain(row.note)]),
    ])
  })
}

const revokeInvite: AdminCommand = ([given = ''], flags) => {
  if (!given) throw wrong('Say which: the whole code, or the id that invite list shows.')
  const isId = uuidPattern.test(given)
  return async (run) => {
    const revoked = await run<{ id: string; hint: string }>('operator_invite_revoke', {
      invite_id: isId ? given : null,
      code_hash: isId ? null : inviteHash(given),
    })
    show(flags, revoked, ({ hint }) => print(`The invite ${hint}-… is revoked.`))
  }
}

const listWaitlist: AdminCommand = (_rest, flags) => async (run) => {
  const rows = await run<{ email: string; note: string | null; created_at: string }[]>('operator_waitlist')
  show(flags, rows, () => {
    if (rows.length === 0) print('Nobody waits.')
    else table(rows.map((row) => [row.created_at, plain(row.email), plain(row.note)]))
  })
}

const removeFromWaitlist: AdminCommand = ([email], flags) => {
  const args = { email: emailOf(email) }
  return async (run) =>
    show(flags, await run<{ email: string }>('operator_waitlist_delete', args), (removed) =>
      print(`${plain(removed.email)} is not on the waitlist any more.`),
    )
}

type Developer = {
  id: string
  email: string
  account_state: string
  provisioning: string
  projects: number
  last_seen_at: string | null
  created_at: string
}

const listDevelopers: AdminCommand = ([search = null], flags) => {
  const args = { search, page_limit: limitOf(flags, 100) }
  return async (run) =>
    show(flags, await run<Developer[]>('operator_developers', args), (rows) => {
      if (rows.length === 0) return print('There are none.')
      table([
        ['address', 'account', 'provisioning', 'projects', 'last seen', 'since'],
        ...rows.map((row) => [
          plain(row.email),
          row.account_state,
          row.provisioning,
          String(row.projects),
          row.last_seen_at ?? '-',
          row.created_at,
        ]),
      ])
    })
}

type DeveloperRow = { email: string; provisioning: string; account_state: string }
const printDeveloper = ({ email, provisioning, account_state }: DeveloperRow) =>
  print(`${plain(email)}: ${account_state}, provisioning ${provisioning}`)

const setDeveloper =
  (args: { email: string; verified?: boolean; provisioning?: string }, flags: Flags) =>
  async (run: Run): Promise<void> =>
    show(flags, await run<DeveloperRow>('operator_developer_set', args), printDeveloper)

const verifyDeveloper: AdminCommand = ([email], flags) => setDeveloper({ email: emailOf(email), verified: true }, flags)

const setProvisioning: AdminCommand = ([email, state], flags) => {
  const provisioning = oneOf(state, ['on', 'off', 'revoked'], 'whether it may create projects')
  return setDeveloper({ email: emailOf(email), provisioning }, flags)
}

export const accountCommands: Readonly<Record<string, AdminCommand>> = {
  'invite create': createInvites,
  'invite list': listInvites,
  'invite revoke': revokeInvite,
  'waitlist list': listWaitlist,
  'waitlist remove': removeFromWaitlist,
  'developer list': listDevelopers,
  'developer verify': verifyDeveloper,
  'developer provisioning': setProvisioning,
}
