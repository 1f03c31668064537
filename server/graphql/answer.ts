import { execute } from 'postgraphile/grafast'
import { GraphQLError, parse, validate } from 'postgraphile/graphql'
import { type Connections, TooLarge, TooLate, Unreachable } from '#server/graphql/connections.ts'
import { checkCost, limits, operationOf, refused } from '#server/graphql/limits.ts'
import { ofQuery, type Problem, type Run } from '#server/graphql/messages.ts'
import type { Schemas } from '#server/graphql/schemas.ts'

type Result = { readonly data?: unknown; readonly errors?: readonly GraphQLError[] }
type Report = (problem: Omit<Problem, 'kind'>) => void

const tooLate = `The query took longer than it may: ${ofQuery.statementMs / 1000} seconds for a statement, ${ofQuery.requestMs / 1000} for all.`
const tooLarge = `The response would have more than ${ofQuery.bytes / 1_000_000} MB: ask for fewer rows.`

/** An error as the caller may see it: never the text of Postgres. */
const shown = (error: GraphQLError, report: Report): GraphQLError => {
  const { originalError: cause, nodes, path } = error
  const said = (message: string, code: string) =>
    new GraphQLError(message, { nodes: nodes ?? null, path: path ?? null, extensions: { code } })
  if (!cause || cause instanceof GraphQLError)
    return error.extensions['code'] ? error : said(error.message, 'INVALID_QUERY')
  const { code = null, name, message } = cause as Error & { code?: string | null }
  if (cause instanceof TooLarge) return said(tooLarge, 'QUERY_TOO_LARGE')
  if (cause instanceof TooLate || code === '57014' || name === 'TimeoutError') return said(tooLate, 'QUERY_TIMEOUT')
  if (!code && message.startsWith('Invalid cursor'))
    return said('after must be the cursor of a row of an earlier page.', 'INVALID_INPUT')
  if (code?.startsWith('22')) return said('A value is not one of its type.', 'INVALID_INPUT')
  report({ message, code })
  return said('Something went wrong here.', 'INTERNAL_ERROR')
}

const isUnreachable = (error: unknown) =>
  error instanceof Unreachable || (error as GraphQLError).originalError instanceof Unreachable

const resultOf = async (run: Run, schemas: Schemas, connections: Connections): Promise<Result> => {
  const document = parse(run.query, { maxTokens: limits.tokens, noLocation: false })
  const { schema, resolvedPreset } = await schemas.of(run.target, run.asking)
  const invalid = validate(schema, document, undefined, { maxErrors: 10 })
  if (invalid.length > 0) return { errors: invalid }
  checkCost(schema, document, operationOf(document, run.operationName), run.variables)
  const withPgClient = connections.request(run.target, run.asking, ofQuery)
  const result = await execute({
    schema,
    document,
    resolvedPreset,
    requestContext: {},
    contextValue: { withPgClient, pgSettings: null },
    variableValues: run.variables,
    ...(run.operationName ? { operationName: run.operationName } : {}),
  })
  if (Symbol.asyncIterator in result) throw refused('Answers are not sent in parts.', 'INVALID_QUERY')
  return result as Result
}

/** The response to one request, as text; null where the database could not be reached. */
export const answer = async (
  run: Run,
  schemas: Schemas,
  connections: Connections,
  report: Report,
): Promise<string | null> => {
  let result: Result
  try {
    result = await resultOf(run, schemas, connections)
  } catch (error) {
    if (isUnreachable(error)) return null
    const wrapped =
      error instanceof GraphQLError
        ? error
        : new GraphQLError((error as Error).message, { originalError: error as Error })
    result = { errors: [wrapped] }
  }
  if (result.errors?.some(isUnreachable)) return null
  const { data, errors } = result
  const body = JSON.stringify({
    ...(data === undefined ? {} : { data }),
    ...(errors ? { errors: errors.slice(0, 20).map((error) => shown(error, report).toJSON()) } : {}),
  })
  if (Buffer.byteLength(body) <= ofQuery.bytes) return body
  return JSON.stringify({ errors: [refused(tooLarge).toJSON()] })
}
