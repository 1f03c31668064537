import type { Answer, HandlerContext } from '#server/http/route.ts'
import { notThere } from '#server/sql/failures.ts'

type Body = { readonly sql: string; readonly explain?: 'plan' | 'analyze'; readonly limit: number }

/** Runs a statement of the caller's in the project's own database. */
export const query = async ({ body, resolved, services }: HandlerContext): Promise<Answer> => {
  const { place, project, developer } = resolved
  if (!project) throw notThere()
  const { sql, explain, limit } = body as Body
  const data = await services.sqlQueries.run({
    cluster: place.cluster,
    database: place.database,
    projectId: project.projectId,
    developerId: developer?.developerId ?? '',
    sql,
    explain,
    limit,
  })
  return { status: 200, body: JSON.stringify({ data }) }
}
