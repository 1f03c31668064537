import { environment } from '#server/config.ts'
import { type ProviderName, providers, type UpstreamRequest } from '#server/providers/upstream_requests.ts'
import { activeSpan, type Span, startSpan, traceparentOf } from '#server/telemetry/spans.ts'

/** The span of a call with its retries: the path as a pattern, and the provider's host, which the environment names. */
export const upstreamSpan = ({ provider, projectId, method, path }: UpstreamRequest, base: string): Span =>
  startSpan(`${method} ${path}`, 'client', {
    'http.request.method': method,
    'url.template': path,
    'server.address': URL.parse(base)?.hostname,
    'trellis.provider': provider,
    'trellis.project': projectId,
  })

export const setAnswered = (span: Span, status: number | null, attempts: number): void =>
  span.set({
    'http.response.status_code': status ?? undefined,
    'http.request.resend_count': attempts > 1 ? attempts - 1 : undefined,
  })

/**
 * Whether requests to this base URL name their trace. A provider's own API learns nothing of ours, not even an id by which calls of one user could
 * be told together; a base URL that the operator has set is the operator's gateway, where the trace goes on.
 */
export const continuesTrace = (provider: ProviderName, base: string): boolean =>
  base !== environment.shape[providers[provider]].parse(undefined)

export const traceHeaders = (provider: ProviderName, base: string): { readonly traceparent?: string } => {
  const span = activeSpan()
  return span && continuesTrace(provider, base) ? { traceparent: traceparentOf(span) } : {}
}
