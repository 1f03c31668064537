import { execute } from 'postgraphile/grafast'
import { GraphQLError, parse, validate } from 'postgraphile/graphql'
import { type Connections, TooLarge, TooLate, Unreachable } from '#server/graphql/connections.ts'
import { checkCost, limits, operationOf, refused } from '#server/graphql/limits.ts'
import { type Outcome, ofQuery, type Problem, type Response, type Run } from '#server/graphql/messages.ts'
import type { Made } from '#server/graphql/schema.ts'

type Result = { readonly data?: unknown; readonly errors?: readonly GraphQLError[] }
type Report = (problem: Omit<Problem, 'kind'>) => void

const tooLate = `The query took longer than it may: ${ofQuery.statementMs / 1000} seconds for a statement, ${ofQuery.requestMs / 1000} for all.`
const tooLarge = `The response would have more than ${ofQuery.bytes / 1_000_000} MB: ask for fewer rows.`

/** The generator's words for a cursor that is none, or one of another order: whoever sends it erred. */
const badCursor = /^(Invalid|Can only use) .*\bcursor\b/

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
  if (!code && badCursor.test(message))
    return said('after must be the cursor of a row of an earlier page, in the same order.', 'INVALID_INPUT')
  if (code?.startsWith('22')) return said('A value is not one of its type.', 'INVALID_INPUT')
  report({ message, code })
  return said('Something went wrong here.', 'INTERNAL_ERROR')
}

const isUnreachable = (error: unknown) =>
  error instanceof Unreachable || (error as GraphQLError).originalError instanceof Unreachable

const resultOf = async (run: Run, { schema, resolvedPreset }: Made, connections: Connections): Promise<Result> => {
  const document = parse(run.query, { maxTokens: limits.tokens, noLocation: false })
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

const outcomeOf = (data: unknown, errors: readonly GraphQLError[] | undefined): Outcome => {
  if (data !== undefined) return 'data'
  return errors?.some(({ extensions }) => extensions['code'] === 'INTERNAL_ERROR') ? 'failed' : 'refused'
}

/** The response to one request; null where the database could not be reached. */
export const answer = async (
  run: Run,
  made: Made,
  connections: Connections,
  report: Report,
): Promise<Response | null> => {
  let result: Result
  try {
    result = await resultOf(run, made, connections)
  } catch (error) {
    if (isUnreachable(error)) return null
    const wrapped =
      error instanceof GraphQLError
        ? error
        : new GraphQLError((error as Error).message, { originalError: error as Error })
    result = { errors: [wrapped] }
  }
  if (result.errors?.some(isUnreachable)) return null
  const { data } = result
  const errors = result.errors?.slice(0, 20).map((error) => shown(error, report))
  const body = JSON.stringify({
    ...(data === undefined ? {} : { data }),
    ...(errors ? { errors: errors.map((error) => error.toJSON()) } : {}),
  })
  if (Buffer.byteLength(body) <= ofQuery.bytes) return { body, outcome: outcomeOf(data, errors) }
  return { body: JSON.stringify({ errors: [refused(tooLarge).toJSON()] }), outcome: 'refused' }
}
