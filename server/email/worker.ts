import { tenantPlace } from '#server/http/callers.ts'
import type { Route } from '#server/http/route.ts'
import type { Services } from '#server/services.ts'

/** A project's database, as the worker that a link or a signature stands for. Null when there is no such project. */
export const workerOf = async (
  services: Pick<Services, 'areaOf' | 'checkMigrated' | 'database' | 'projectCache'>,
  projectId: string,
  at: Route,
) => {
  const project = await services.projectCache.byProject(projectId)
  if (!project) return null
  const place = tenantPlace(services, project, at)
  return (name: string, args: Record<string, unknown>) =>
    services.database.call(place, 'app_worker', { caller: 'worker', projectId: project.projectId }, name, args, {
      failure: at.failure ?? 'INTERNAL',
    })
}
