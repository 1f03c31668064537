import { sealControl } from '#workers/seal.ts'
import { job } from '#workers/task.ts'

/** Seals the audit trails of the control database. Those of projects are sealed by their drains. */
export const auditSeal = job('audit__seal', (services) => sealControl(services), 'usual')
