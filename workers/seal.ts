import { dataOf, type Reply } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { sleepUntil } from '#server/stopping.ts'
import type { TenantContext } from '#workers/task.ts'

// a step of about 30 ms, so that a sealer that is stopped or killed loses little work
const batch = 1000
const busyMs = 50
const longestMs = 60_000
const background = { background: true }

type Step = { readonly sealed: number; readonly is_busy: boolean; readonly is_over: boolean }

/**
 * Seals the unsealed rows of one database, step by step, while isWanted; answers whether none were left at the end. While another sealer
 * works, it polls until that one ends: rows may have been written after the other sealer's last step.
 */
const sealTrail = async (
  step: (args: { batch: number }) => Promise<Reply>,
  asked: AbortSignal,
  isWanted: () => boolean,
): Promise<boolean> => {
  // rows that are left when the server stops are found by the next drain or sweep
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

/** How many rows of a trail are reported at once. */
const reported = 100

type Watched = { readonly since: string; readonly after: number | null } | null
type Sealed = { readonly events: readonly object[]; readonly last: number; readonly is_over: boolean }

/**
 * Reports what was sealed to the webhooks of the control plane, if one watches it. Each row comes once: what a worker that dies has not reported is
 * reported after the next seal.
 */
const reportTrail = async ({ services, projectId, call }: TenantContext): Promise<void> => {
  const control = (name: string, args: Record<string, unknown>) =>
    services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args, background)
  for (let isOver = false; !isOver && !services.stopping.asked.aborted; ) {
    const watched = dataOf<Watched>(await control('webhook_audit_begin', { project_id: projectId }))
    if (!watched) return
    const sealed = dataOf<Sealed>(await call('audit_sealed_since', { ...watched, most: reported }, background))
    await control('webhook_audit_report', { project_id: projectId, events: sealed.events, last: sealed.last })
    isOver = sealed.is_over
  }
}

/** As sealTrail, for a tenant. Rows that cannot be sealed now wait for the next drain, which outbox_next schedules within seconds. */
export const sealTenant = async (context: TenantContext, isWanted: () => boolean): Promise<boolean> => {
  const { services, projectId, call } = context
  const warn = (text: string) => (error: Error) => {
    if (!services.stopping.asked.aborted) services.log.warn({ project: projectId, error: error.message }, text)
    return false
  }
  const step = (args: { batch: number }) => call('audit_seal', args, background)
  const isSealed = await sealTrail(step, services.stopping.asked, isWanted).catch(
    warn('the audit trail was not sealed'),
  )
  await reportTrail(context).catch(warn('the audit trail was not reported to webhooks'))
  return isSealed
}

export const sealControl = async ({ database, control, stopping }: Services): Promise<void> => {
  const until = performance.now() + longestMs
  await sealTrail(
    (args) => database.call(control, 'control_worker', { caller: 'worker' }, 'audit_seal', args, background),
    stopping.asked,
    () => performance.now() < until,
  )
}
