import type { Target } from '#server/database/pools.ts'

/** What the server and the process that answers GraphQL say to each other. */

/** Who asks, for the settings of each statement. */
export type Asking = {
  readonly developerId: string
  readonly projectId: string
  readonly sessionId: string
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

/** The shape of a project's database may have changed: it is looked at before the next answer. */
export type Changed = { readonly kind: 'changed'; readonly projectId: string }

export type ToProcess = Run | Changed

export type Answered = {
  readonly kind: 'answered'
  readonly id: number
  /** The whole response, `{data, errors}`; null where the database could not be reached. */
  readonly body: string | null
}

/** For the log: what the caller is not told. */
export type Problem = { readonly kind: 'problem'; readonly message: string; readonly code: string | null }

export type FromProcess = Answered | Problem | { readonly kind: 'ready' }

/** What the statements of one query may take: milliseconds together and each, bytes of rows. The response has no more bytes either. */
export const ofQuery = { requestMs: 10_000, statementMs: 5_000, bytes: 8_000_000 } as const
/** What reading the catalog may take, of which a schema is made: 9 MB, most of them functions. */
export const ofCatalog = { requestMs: 20_000, statementMs: 20_000, bytes: 64_000_000 } as const
/** Schemas that are kept: databases of one shape share one. */
export const keptSchemas = 6
