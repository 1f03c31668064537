import type { ErrorCode } from './generated/codes.ts'

/** Why no answer came: there is no network, the time is up, the caller gave up; or what came is not of this API, as from a proxy. */
export type LocalCode = 'NETWORK_ERROR' | 'TIMEOUT' | 'ABORTED' | 'UNEXPECTED_ANSWER'

/** A refusal of the server, or the lack of an answer. Decide by `code`; `message` is for developers. */
export class TrellisError extends Error {
  override readonly name = 'TrellisError'
  /** The code of the refusal. Later servers may answer codes that this version does not name. */
  readonly code: ErrorCode | LocalCode | (string & {})
  /** The HTTP status, 0 without an answer. */
  readonly status: number
  readonly details: Readonly<Record<string, unknown>> | undefined
  /** For a question to whoever runs the server. */
  readonly requestId: string | undefined
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | undefined

  constructor(
    code: string,
    message: string,
    about: {
      status?: number
      details?: Readonly<Record<string, unknown>>
      requestId?: string | null
      retryAfter?: number
      cause?: unknown
    } = {},
  ) {
    super(message, about.cause === undefined ? undefined : { cause: about.cause })
    this.code = code
    this.status = about.status ?? 0
    this.details = about.details
    this.requestId = about.requestId ?? undefined
    this.retryAfter = about.retryAfter
  }
}

/** Whether an error is a refusal with one of these codes: with the names that the server knows, checked by the compiler. */
export const isRefusal = <Code extends ErrorCode | LocalCode>(
  error: unknown,
  ...codes: Code[]
): error is TrellisError & { readonly code: Code } =>
  error instanceof TrellisError && (codes.length === 0 ? error.status > 0 : codes.includes(error.code as Code))

/** Whether the server could not be reached, or could not answer at the moment: the same call may succeed later. */
export const isTemporary = (error: unknown): boolean =>
  error instanceof TrellisError &&
  (error.code === 'NETWORK_ERROR' || error.code === 'TIMEOUT' || error.status === 429 || error.status >= 500)
