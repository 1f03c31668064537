import { z } from 'zod'
import { targetOf } from '#server/database/cluster.ts'
import { refusal } from '#server/errors.ts'
import { keepNames } from '#server/graphql/kept_names.ts'
import type { Outcome } from '#server/graphql/messages.ts'
import { dashboard } from '#server/http/callers.ts'
import { type Answer, area, group, type HandlerContext, route } from '#server/http/route.ts'
import { JsonObject, Text } from '#server/http/schemas.ts'

const Response = z.strictObject({
  data: z.looseObject({}).nullable().optional(),
  errors: z
    .array(
      z.strictObject({
        message: z.string(),
        locations: z.array(z.strictObject({ line: z.int(), column: z.int() })).optional(),
        path: z.array(z.union([z.string(), z.int()])).optional(),
        extensions: z.looseObject({ code: z.string() }),
      }),
    )
    .optional(),
})

const mostVariables = 50_000

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

const ask = async ({ body, text, resolved, services, request }: HandlerContext): Promise<Answer> => {
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

export const graphql = area({
  stem: 'graphql',
  title: 'GraphQL',
  part: 'Platform',
  about: "Queries over a project's database, for internal dashboards.",
  source: 'supplement',
  routes: [
    ...group('/admin/projects/:projectId/graphql', dashboard, [
      route('POST /', "Query the project's database with GraphQL; it reads only", {
        handle: ask,
        description:
          'Off until `graphql_enabled` is set on the project. The response is that of GraphQL, `{"data", "errors"}` with status 200, also for a query that is refused: ' +
          '`errors[].extensions.code` is `INVALID_QUERY`, `INVALID_INPUT`, `QUERY_TOO_LARGE`, `QUERY_TIMEOUT` or `INTERNAL_ERROR`. A caller that prefers ' +
          '`application/graphql-response+json` gets that media type, and 400 for a query that is refused. A browser that opens this path gets an editor.',
        relays: true,
        body: z.object({
          query: Text(50_000, 1),
          operationName: Text(200).nullable().optional(),
          variables: JsonObject.refine(
            (value) => JSON.stringify(value).length <= mostVariables,
            `must have at most ${mostVariables} characters`,
          )
            .nullable()
            .optional(),
          extensions: JsonObject.nullable().optional(),
        }),
        example: { query: '{ users(first: 10) { nodes { id createdAt } totalCount } }' },
        readOnly: true,
        replies: { 200: Response },
        refusals: { 403: ['GRAPHQL_DISABLED'], 503: ['GRAPHQL_UNAVAILABLE'] },
        failure: null,
      }),
    ]),
  ],
})
