import { job } from '#workers/task.ts'

/** Drops a deleted project's database, then deletes its rows in the control database. Safe to run again at any step. */
export const tenantRemove = job('tenant__remove', (services, { project_id }) => services.fleet.remove(project_id ?? ''))
