import { z } from 'zod'
import { ask } from '#server/graphql/handler.ts'
import { dashboard } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
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

export const graphql = area({
  stem: 'graphql',
  title: 'GraphQL',
  part: 'Platform',
  about: "Queries over a project's database, for internal dashboards.",
  words: {
    query: ['Query', 'A document of GraphQL.'],
    operationName: ['Operation', 'Which of several in the document.'],
    variables: ['Variables', 'Values by name.'],
    extensions: ['Extensions', 'As clients send them; they have no effect.'],
  },
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
