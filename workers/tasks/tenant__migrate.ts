import { job } from '#workers/task.ts'

/** Brings a tenant to this program. A failure is recorded by the fleet and retried by the queue. */
export const tenantMigrate = job('tenant__migrate', (services, { project_id }) =>
  services.fleet.migrate(project_id ?? ''),
)
