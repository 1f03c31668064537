import type { Place, Role } from '#server/database/cluster.ts'
import type { DatabaseError, Failure } from '#server/database/failures.ts'
import { activeSpan, errorType, noSpan, type Span, startSpan } from '#server/telemetry/spans.ts'

/** A shorter wait is an idle connection that was lent at once. */
const noticedMs = 1

/** The span of a call: whose function it is, and nothing of its arguments, nor of the statement where it is no function. */
export const callSpan = (place: Place, role: Role, operation: string | undefined, waitedMs: number): Span => {
  if (!activeSpan()?.isSampled) return noSpan
  return startSpan(operation ?? 'statement', 'client', {
    'db.system.name': 'postgresql',
    'db.namespace': place.database,
    'db.stored_procedure.name': operation?.startsWith('api.') ? operation : undefined,
    'trellis.role': role,
    'trellis.pool.wait': waitedMs / 1000,
  })
}

/** A refusal, also one of a constraint, is what the function is for; anything else has failed. */
export const endFailed = (span: Span, { kind }: Failure, error: unknown): void => {
  span.set({ 'db.response.status_code': (error as DatabaseError).code })
  const isAnswer = kind === 'refusal' || kind === 'constraint' || kind === 'input'
  span.end(isAnswer ? undefined : errorType(error))
}

/** The wait for a connection, where there was one, apart from the call. */
export const leaseSpan = (asked: number, leased: number, error?: unknown): void => {
  const around = activeSpan()
  if (!around?.isSampled || (error === undefined && leased - asked < noticedMs)) return
  around.child('wait for a connection', 'internal', {}, asked).end(error === undefined ? undefined : errorType(error))
}
