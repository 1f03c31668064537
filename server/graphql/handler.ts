/** GraphQL over HTTP. */
import { targetOf } from '#server/database/cluster.ts'
import { refusal } from '#server/errors.ts'
import { keepNames } from '#server/graphql/kept_names.ts'
import type { Outcome } from '#server/graphql/messages.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'

type Body = {
  readonly query: string
  readonly operationName?: string | null
  readonly variables?: Record<string, unknown> | null
}

const graphqlType = 'application/graphql-response+json'
/** GraphQL over HTTP: only with its own media type the status says how a query went. */
const statuses: Readonly<Record<Outcome, number>> = { data: 200, refused: 400, failed: 500 }

/** Whether the caller wants the media type of GraphQL: named, and with no lower weight than JSON. */
export const prefersGraphQL = (accept: string | undefined): boolean => {
  const weights = new Map<string, number>()
  for (const part of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    weights.set(type, weight === undefined ? 1 : Number(weight) || 0)
  }
  const weight = weights.get(graphqlType) ?? 0
  return weight > 0 && weight >= (weights.get('application/json') ?? 0)
}

export const ask = async ({ body, text, resolved, services, request }: HandlerContext): Promise<Answer> => {
  const { place, project, developer } = resolved
  if (!project?.graphqlEnabled) {
    throw refusal(
      403,
      'GRAPHQL_DISABLED',
      'GraphQL is off in this project: set graphql_enabled with PATCH on the project.',
    )
  }
  const { query, operationName = null } = body as Body
  // numbers as they are written: GraphQL has types of its own
  const { variables } = JSON.parse(text) as Body
  const response = await services.graphql.ask({
    target: targetOf(place.cluster, place.database, 'app_dashboard', services.secrets),
    asking: {
      projectId: project.projectId,
      developerId: developer?.developerId ?? '',
      sessionId: developer?.sid ?? '',
    },
    query,
    operationName,
    variables: variables ?? {},
    keepNames: () => keepNames(services, place, project.projectId),
  })
  if (!prefersGraphQL(request.headers.accept)) return { status: 200, body: response.body }
  return {
    status: statuses[response.outcome],
    body: response.body,
    headers: { 'content-type': `${graphqlType}; charset=utf-8` },
  }
}
