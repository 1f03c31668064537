import { job } from '#workers/task.ts'

/** Creates a project's database. */
export const tenantProvision = job(
  'tenant__provision',
  (services, { project_id }) => services.fleet.provision(project_id ?? ''),
  'prompt',
)
