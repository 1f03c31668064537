import { drainAlone } from '#workers/drain.ts'
import { job, loadTasks } from '#workers/task.ts'

/** Runs the due rows of a tenant's outbox. */
export const tenantDrain = job(
  'tenant__drain',
  async (services, { project_id = '' }) => {
    const { outbox } = await loadTasks()
    await drainAlone(services, outbox, project_id)
  },
  'usual',
)
