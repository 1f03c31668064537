import type { Target } from '#server/database/cluster.ts'
import type { NamedTable } from '#server/graphql/naming.ts'

/** What the server and a process that answers GraphQL say to each other. */

/** Who asks, for the settings of each statement. */
export type Asking = {
  readonly developerId: string
  readonly projectId: string
  readonly sessionId: string
}

/** Make the schema of this database; the queries that follow are answered with it. */
export type Make = {
  readonly kind: 'make'
  readonly id: number
  readonly target: Target
  readonly asking: Asking
  readonly tables: readonly NamedTable[]
}

export type Run = {
  readonly kind: 'run'
  readonly id: number
  readonly target: Target
  readonly asking: Asking
  readonly query: string
  readonly operationName: string | null
  readonly variables: Readonly<Record<string, unknown>>
}

export type ToProcess = Make | Run

/** Whether the caller got data, erred, or met a defect: the status of GraphQL over HTTP follows from it. */
export type Outcome = 'data' | 'refused' | 'failed'

export type Response = {
  /** The whole response, `{data, errors}`. */
  readonly body: string
  readonly outcome: Outcome
}

/** `response` is null where the database could not be reached. */
export type Answered = { readonly kind: 'answered'; readonly id: number; readonly response: Response | null }

/** `error` is null when the schema is made; `isUnreachable`: the database was not there, and nothing is known of its schema. */
export type MadeSchema = {
  readonly kind: 'made'
  readonly id: number
  readonly error: string | null
  readonly isUnreachable: boolean
}

/** For the log: what the caller is not told. */
export type Problem = { readonly kind: 'problem'; readonly message: string; readonly code: string | null }

export type FromProcess = Answered | MadeSchema | Problem | { readonly kind: 'ready' }

/** What the statements of one query may take: milliseconds together and each, bytes of rows. The response has no more bytes either. */
export const ofQuery = { requestMs: 10_000, statementMs: 5_000, bytes: 8_000_000 } as const
/** What reading the catalog may take, of which a schema is made: 9 MB, most of them functions. */
export const ofCatalog = { requestMs: 20_000, statementMs: 20_000, bytes: 64_000_000 } as const
