import { dataOf, type Reply } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { sleepUntil } from '#server/stopping.ts'
import type { TenantContext } from '#workers/task.ts'

// some 30 ms of work, so that a sealer that is stopped or killed loses little
const batch = 1000
const busyMs = 50
const longestMs = 60_000
const background = { background: true }

type Step = { readonly sealed: number; readonly is_busy: boolean; readonly is_over: boolean }

/** Seals what waits in one database, step by step. While another sealer works, its end is awaited: rows may have come after its last look. */
const sealTrail = async (step: (args: { batch: number }) => Promise<Reply>, asked: AbortSignal): Promise<void> => {
  const until = performance.now() + longestMs
  // what is left when the server stops, the next drain or sweep finds
  while (performance.now() < until && !asked.aborted) {
    const { is_busy, is_over } = dataOf<Step>(await step({ batch }))
    if (is_over) return
    if (is_busy) await sleepUntil(busyMs, asked)
  }
}

/** Whether a lease of the outbox found rows of the audit trail that wait for their seal. */
export const isUnsealed = (lease: Reply): boolean =>
  (JSON.parse(lease.body) as { is_unsealed?: boolean }).is_unsealed === true

/** What cannot be sealed now waits for the next drain: outbox_next has one come in some seconds. */
export const sealTenant = ({ services, projectId, call }: TenantContext): Promise<void> =>
  sealTrail((args) => call('audit_seal', args, background), services.stopping.asked).catch((error: Error) => {
    if (services.stopping.asked.aborted) return
    services.log.warn({ project: projectId, error: error.message }, 'the audit trail was not sealed')
  })

export const sealControl = ({ database, control, stopping }: Services): Promise<void> =>
  sealTrail(
    (args) => database.call(control, 'control_worker', { caller: 'worker' }, 'audit_seal', args, background),
    stopping.asked,
  )
