/** Why a request is refused: becomes `{error: {code, message, details}}` under this HTTP status. */
export type Refusal = {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown> | null
  readonly headers?: Record<string, string> | null
}

/** The one error type that crosses layers on purpose; everything else that is thrown is a defect and answers 500. */
export class ApiError extends Error implements Refusal {
  readonly status: number
  readonly code: string
  readonly details: Record<string, unknown> | null
  readonly headers: Record<string, string> | null

  constructor(refusal: Refusal) {
    super(refusal.message)
    this.name = 'ApiError'
    this.status = refusal.status
    this.code = refusal.code
    this.details = refusal.details ?? null
    this.headers = refusal.headers ?? null
  }
}

/** Builds the error to throw: `throw refusal(404, 'NOT_FOUND', 'No such project.')`. */
export const refusal = (
  status: number,
  code: string,
  message: string,
  details?: Record<string, unknown> | null,
  headers?: Record<string, string> | null,
) => new ApiError({ status, code, message, details: details ?? null, headers: headers ?? null })

/** A message for the operator who starts the program, printed without a stack. */
export class StartError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StartError'
  }
}
