import { job } from '#workers/task.ts'

/** Migrates a tenant to this version. The fleet records a failure, and the queue retries it. */
export const tenantMigrate = job('tenant__migrate', (services, { project_id }) =>
  services.fleet.migrate(project_id ?? ''),
)
