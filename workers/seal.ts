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

/**
 * Seals what waits in one database, step by step, while it is wanted; answers whether nothing waited at the end. While another sealer
 * works, its end is awaited: rows may have come after its last look.
 */
const sealTrail = async (
  step: (args: { batch: number }) => Promise<Reply>,
  asked: AbortSignal,
  isWanted: () => boolean,
): Promise<boolean> => {
  // what is left when the server stops, the next drain or sweep finds
  while (isWanted() && !asked.aborted) {
    const { is_busy, is_over } = dataOf<Step>(await step({ batch }))
    if (is_over) return true
    if (is_busy) await sleepUntil(busyMs, asked)
  }
  return false
}

/** Whether a lease of the outbox found rows of the audit trail that wait for their seal. */
export const isUnsealed = (lease: Reply): boolean =>
  (JSON.parse(lease.body) as { is_unsealed?: boolean }).is_unsealed === true

/** As sealTrail. What cannot be sealed now waits for the next drain: outbox_next has one come in some seconds. */
export const sealTenant = ({ services, projectId, call }: TenantContext, isWanted: () => boolean): Promise<boolean> =>
  sealTrail((args) => call('audit_seal', args, background), services.stopping.asked, isWanted).catch((error: Error) => {
    if (!services.stopping.asked.aborted)
      services.log.warn({ project: projectId, error: error.message }, 'the audit trail was not sealed')
    return false
  })

export const sealControl = async ({ database, control, stopping }: Services): Promise<void> => {
  const until = performance.now() + longestMs
  await sealTrail(
    (args) => database.call(control, 'control_worker', { caller: 'worker' }, 'audit_seal', args, background),
    stopping.asked,
    () => performance.now() < until,
  )
}
