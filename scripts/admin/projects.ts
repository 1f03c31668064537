import { plain } from '#server/plain.ts'
import { type AdminCommand, type Flags, idOf, limitOf, noteOf, oneOf, type Run, whole } from './arguments.ts'
import { print, show, table } from './output.ts'

type Listed = {
  id: string
  name: string
  owner: string
  tier: string
  comped: boolean
  status: string
  hold: string | null
  most_connections: number | null
  cluster: string | null
  version: string | null
  last_written_at: string | null
}

const list: AdminCommand = ([search = null], flags) => {
  const args = { search, page_limit: limitOf(flags, 100) }
  return async (run) =>
    show(flags, await run<Listed[]>('operator_projects', args), (rows) => {
      if (rows.length === 0) return print('There are none.')
      table([
        ['id', 'name', 'owner', 'tier', 'state', 'server', 'version', 'last written'],
        ...rows.map((row) => [
          row.id,
          plain(row.name),
          plain(row.owner),
          `${row.tier}${row.comped ? ' (comped)' : ''}`,
          `${row.hold ?? row.status}${row.most_connections ? `, ${row.most_connections} connections` : ''}`,
          row.cluster ?? '-',
          row.version ?? '-',
          row.last_written_at ?? '-',
        ]),
      ])
    })
}

type ProjectRow = { name: string; tier: string; comped: boolean; effective_tier: string }
const printProject = ({ name, tier, comped, effective_tier }: ProjectRow) =>
  print(`${plain(name)}: tier ${tier}${comped ? ', comped' : ''}, effective tier ${effective_tier}`)

const setProject =
  (args: { project_id: string; tier?: string; comped?: boolean }, flags: Flags) =>
  async (run: Run): Promise<void> =>
    show(flags, await run<ProjectRow>('operator_project_set', args), printProject)

const setTier: AdminCommand = ([id, tier], flags) =>
  setProject({ project_id: idOf(id), tier: oneOf(tier, ['free', 'pro', 'enterprise'], 'which tier') }, flags)

const setComped: AdminCommand = ([id, state], flags) =>
  setProject({ project_id: idOf(id), comped: oneOf(state, ['on', 'off'], 'whether it is comped') === 'on' }, flags)

type Held = { id: string; hold: string | null; held_since: string | null }

const setPaused =
  (is_paused: boolean): AdminCommand =>
  ([id], flags) => {
    const args = { project_id: idOf(id), is_paused, note: noteOf(flags) }
    return async (run) =>
      show(flags, await run<Held>('operator_project_pause', args), (held) =>
        print(held.hold ? `Paused since ${held.held_since}.` : 'It is served again.'),
      )
  }

const setConnections: AdminCommand = ([id, count = ''], flags) => {
  const most = count === 'default' ? null : whole(count, 1000, 'The number of connections', 2)
  const args = { project_id: idOf(id), most }
  return async (run) =>
    show(
      flags,
      await run<{ most_connections: number | null }>('operator_project_connections', args),
      ({ most_connections }) =>
        print(
          most_connections
            ? `Each server process opens at most ${most_connections} connections to its database.`
            : 'DATABASE_CONNECTIONS_PER_TENANT bounds its connections.',
        ),
    )
}

export const projectCommands: Readonly<Record<string, AdminCommand>> = {
  'project list': list,
  'project tier': setTier,
  'project comp': setComped,
  'project pause': setPaused(true),
  'project unpause': setPaused(false),
  'project connections': setConnections,
}
