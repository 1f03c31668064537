import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf, type Reply } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import type { TenantContext } from '#workers/task.ts'

// some 30 ms of work, so that a sealer that is stopped or killed loses little
const batch = 1000
const busyMs = 50
const longestMs = 60_000

type Step = { readonly sealed: number; readonly is_busy: boolean; readonly is_over: boolean }

/** Seals what waits in one database, step by step. While another sealer works, its end is awaited: rows may have come after its last look. */
const sealTrail = async (step: (args: { batch: number }) => Promise<Reply>): Promise<void> => {
  const until = performance.now() + longestMs
  while (performance.now() < until) {
    const { is_busy, is_over } = dataOf<Step>(await step({ batch }))
    if (is_over) return
    if (is_busy) await sleep(busyMs)
  }
}

/** Whether a lease of the outbox found rows of the audit trail that wait for their seal. */
export const isUnsealed = (lease: Reply): boolean =>
  (JSON.parse(lease.body) as { is_unsealed?: boolean }).is_unsealed === true

/** What cannot be sealed now waits for the next drain: the sweep starts one within a minute. */
export const sealTenant = ({ services, projectId, call }: TenantContext): Promise<void> =>
  sealTrail((args) => call('audit_seal', args)).catch((error: Error) =>
    services.log.warn({ project: projectId, error: error.message }, 'the audit trail was not sealed'),
  )

export const sealControl = ({ database, control }: Services): Promise<void> =>
  sealTrail((args) => database.call(control, 'control_worker', { caller: 'worker' }, 'audit_seal', args))
