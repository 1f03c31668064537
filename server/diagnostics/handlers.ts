import { randomUUID } from 'node:crypto'
import { dataOf } from '#server/database/database.ts'
import { Report } from '#server/diagnostics/schemas.ts'
import { refusal } from '#server/errors.ts'
import { liveSession } from '#server/http/client_credentials.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { isFree } from '#server/media/assets.ts'

const mostReports = 50

const invalid = (field: string, reason: string) =>
  refusal(400, 'VALIDATION_ERROR', `${field}: ${reason}`, { field, reason })

const checked = (item: unknown, n: number) => {
  const result = Report.safeParse(item)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const place = ['reports', ...(issue?.path ?? [])].join('.').replace(/^reports/, `reports[${n}]`)
  const isMissing = issue?.code === 'invalid_type' && Reflect.get(Object(item), issue.path[0] ?? '') === undefined
  throw invalid(place, isMissing && issue.path.length > 0 ? 'is required' : (issue?.message ?? 'is not valid'))
}

/** One bad report refuses the batch, so that a client learns of its mistake; nothing of it is stored. */
export const report = async (context: HandlerContext) => {
  const { reports } = context.body
  if (!Array.isArray(reports) || reports.length === 0) throw invalid('reports', 'must be a list of 1 to 50 reports')
  if (reports.length > mostReports)
    throw refusal(400, 'BATCH_TOO_LARGE', `A batch has at most ${mostReports} reports.`, {
      limit: mostReports,
      got: reports.length,
    })
  return context.call('diagnostics_report', {
    reports: JSON.stringify(reports.map(checked)),
    device: addressKey(context.request.ip),
    is_free: isFree(context),
  })
}

const expiry = async ({ request, services, resolved, route }: HandlerContext): Promise<string | null> => {
  if (resolved.claims.caller !== 'user' || !resolved.project) return null
  const { claims } = await liveSession(request, services, resolved.project, route)
  return new Date(claims.expiresAt * 1000).toISOString()
}

export const ping = async (context: HandlerContext) => {
  const { request, services, resolved, call } = context
  const key = await services.projectCache.byKey(String(request.headers['x-api-key']))
  const { server_time, min_app_version } = dataOf<{ server_time: string; min_app_version: string | null }>(
    await call('diagnostics_ping', {}),
  )
  const data = {
    server_time,
    api_version: '1.0.0',
    project_id: resolved.project?.projectId,
    key_type: key?.keyType,
    environment: key?.project.environment,
    user_id: resolved.claims.userId ?? null,
    session_expires_at: await expiry(context),
    request_id: request.id,
    min_app_version,
  }
  return { status: 200, body: JSON.stringify({ data }), headers: { 'Cache-Control': 'no-store' } }
}

/** The latency is that of the call which reads the counts: one round trip from this server. */
export const health = async ({ call, services, resolved }: HandlerContext) => {
  const began = performance.now()
  const { schema_version, ...counts } = dataOf<{ schema_version: string } & Record<string, number>>(
    await call('diagnostics_health', {}),
  )
  const latency_ms = Math.round((performance.now() - began) * 100) / 100
  // whether it answers, not whether there is a file
  const nothing = { projectId: resolved.project?.projectId ?? '', assetId: randomUUID(), object: randomUUID() }
  const storage_ok = await services.media.storage.stat(nothing).then(
    () => true,
    () => false,
  )
  const database = { ok: true, latency_ms, schema_version }
  return { status: 200, body: JSON.stringify({ data: { database, ...counts, storage_ok } }) }
}
