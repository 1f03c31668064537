import { readProgram } from '#fleet/load/files.ts'
import { fleetStatus } from '#fleet/rollout.ts'
import type { AdminCommand, Flags, Run } from './arguments.ts'
import { databaseChecks } from './doctor/databases.ts'
import { type Finding, fail } from './doctor/findings.ts'
import { fleetChecks } from './doctor/fleet.ts'
import { functionChecks } from './doctor/functions.ts'
import { machineChecks } from './doctor/machine.ts'
import { outsideChecks } from './doctor/outside.ts'
import { print, show } from './output.ts'

/** One group of checks cannot hide the others: what it throws is a finding of its own. */
const guarded = async (check: string, work: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> =>
  work().catch((error: Error) => [
    fail(check, `This could not be looked at: ${error.message}`, 'Mend what the message says, and run doctor again.'),
  ])

const examine = async (run: Run, flags: Flags): Promise<Finding[]> => {
  const { config, secrets } = run.foundation
  const [control, tenant] = await Promise.all([readProgram('control'), readProgram('tenant')])
  const status = fleetStatus(run.cluster, config.DATABASE_PREFIX, { control, tenant }, secrets)
  const groups = await Promise.all([
    guarded('machine', () => machineChecks(run)),
    guarded('settings', () => outsideChecks(run, flags)),
    guarded('Postgres', () => databaseChecks(run)),
    guarded('projects', async () => fleetChecks(run, await status)),
    guarded('functions', () => functionChecks(run)),
  ])
  return groups.flat()
}

const signs = { ok: 'ok      ', warning: 'warning ', failed: 'FAILED  ', skipped: '-       ' } as const

export const doctor: AdminCommand = (_rest, flags) => async (run) => {
  const findings = await examine(run, flags)
  show(flags, findings, () => {
    for (const { state, check, found, remedy } of findings) {
      print(`${signs[state]}${check}: ${found}`)
      if (remedy) print(`          ${remedy}`)
    }
    const count = (state: Finding['state']) => findings.filter((finding) => finding.state === state).length
    print(
      `${count('failed')} failed, ${count('warning')} warnings, ${count('ok')} are well, ${count('skipped')} skipped.`,
    )
  })
  return findings.some(({ state }) => state === 'failed') ? 1 : 0
}
