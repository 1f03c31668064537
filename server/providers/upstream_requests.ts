import type { Config } from '#server/config.ts'
/** Providers whose API this server calls, each with the variable that holds its base URL. */
export const providers = {
  anthropic: 'ANTHROPIC_BASE_URL',
  github: 'GITHUB_URL',
  github_api: 'GITHUB_API_URL',
  google: 'GOOGLE_AI_BASE_URL',
  mistral: 'MISTRAL_BASE_URL',
  openai: 'OPENAI_BASE_URL',
  revenuecat: 'REVENUECAT_BASE_URL',
  superwall: 'SUPERWALL_BASE_URL',
} as const satisfies Record<string, keyof Config>

export type ProviderName = keyof typeof providers

export type UpstreamRequest = {
  readonly provider: ProviderName
  readonly projectId: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * The path below the base URL, with `{name}` for each of `params`, which are percent-encoded. Log lines have it as it stands here, so it must
   * contain neither ids nor secrets.
   */
  readonly path: string
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  /** A value to send as JSON. */
  readonly json?: unknown
  /** A body to send byte for byte, beside a `content-type` in `headers`. */
  readonly body?: string | Uint8Array
  /** Whether a repetition has no further effect: GET by itself, other methods where the provider documents an idempotency key. */
  readonly idempotent?: boolean
  /** Limit of the whole call with its retries; in a stream, until its headers. 15 seconds by default. */
  readonly timeoutMs?: number
  /** Ends the call, or the stream, with ABORTED. */
  readonly signal?: AbortSignal
}
export type CallRequest = UpstreamRequest & {
  /** The longest response body, 4 MB by default; a longer one is PROVIDER_FAILED. */
  readonly maxBytes?: number
}
export type StreamRequest = UpstreamRequest & {
  /** The longest pause between two pieces of the body, a minute by default. */
  readonly idleMs?: number
  /** The longest time from the request to the end of the body; none by default. */
  readonly totalMs?: number
}
