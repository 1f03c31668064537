import { job } from '#workers/task.ts'

/** Removes a deleted project's database, and then what control knows of it. Safe to run again at any step. */
export const tenantRemove = job('tenant__remove', (services, { project_id }) => services.fleet.remove(project_id ?? ''))
