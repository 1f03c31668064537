import type { Outbound } from '#server/providers/outbound.ts'
import { activeSpan, errorType, startSpan, traceparentOf, within } from '#server/telemetry/spans.ts'

/**
 * Requests to URLs of tenants with their spans. The URL is not in them, because URLs of receivers often contain secrets, in the host too. A
 * receiver of webhooks is a part of the tenant's own program: it gets `traceparent`, random ids of a trace in which no other tenant is, and no
 * `tracestate`. A provider of text messages or of tokens is somebody else, and gets none.
 */
export const tracedOutbound = (outbound: Outbound): Outbound => ({
  ...outbound,
  async post(request) {
    const { purpose = 'webhook' } = request
    const span = startSpan(`POST ${purpose}`, 'client', { 'http.request.method': 'POST', 'trellis.purpose': purpose })
    return within(span, async () => {
      const named = purpose === 'webhook' ? activeSpan() : undefined
      const headers = named ? { ...request.headers, traceparent: traceparentOf(named) } : request.headers
      try {
        const outcome = await outbound.post({ ...request, headers })
        const { statusCode, error } = outcome
        span.set({ 'http.response.status_code': statusCode ?? undefined })
        span.end(error ?? (statusCode !== null && statusCode >= 400 ? String(statusCode) : undefined))
        return outcome
      } catch (error) {
        span.end(errorType(error))
        throw error
      }
    })
  },
})
