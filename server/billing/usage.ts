/** What a project used, from the two databases that count it, and its tier. */
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { callControl } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { isConfigured } from '#server/providers/billing.ts'

const dayMs = 86_400_000
const mostDays = 400

/** In the order of the answer. The first two of traffic are counted by servers, the others by the project's own database. */
export const meters = [
  'mau',
  'events',
  'api_requests',
  'storage_bytes',
  'egress_bytes',
  'push_sent',
  'emails_sent',
  'ai_spend_usd',
  'function_ms',
] as const

type Amounts = Readonly<Record<string, number>>
type OfControl = { readonly meters: Amounts } & Readonly<Record<string, unknown>>
type OfTenant = {
  readonly spend_ceiling_usd: number | null
  readonly media_storage: { readonly used: number; readonly limit: number | null }
  readonly meters: Amounts
}

const reading = { readOnly: true, failure: 'FETCH_FAILED' } as const

export const get = async (context: HandlerContext) => {
  const { services, resolved, call } = context
  await services.traffic.flush()
  const [control, own] = await Promise.all([
    callControl(context, 'billing_get', { provider: services.billing.name }, reading).then(dataOf<OfControl>),
    call('usage_month', { is_free: resolved.project?.effectiveTier === 'free' }).then(dataOf<OfTenant>),
  ])
  const { meters: traffic, ...account } = control
  const amounts = { ...own.meters, ...traffic }
  const unlimited = Object.fromEntries(meters.map((meter) => [meter, null]))
  const used = Object.fromEntries(meters.map((meter) => [meter, { used: amounts[meter] ?? 0, limit: null }]))
  return {
    status: 200,
    body: JSON.stringify({
      data: {
        ...account,
        limits: { ...unlimited, media_storage: own.media_storage.limit },
        usage: { ...used, media_storage: own.media_storage },
        spend_ceiling_usd: own.spend_ceiling_usd,
        configured: isConfigured(services.billing),
      },
    }),
  }
}

const dayText = (at: number) => new Date(at).toISOString().slice(0, 10)
const invalidDay = (field: string, reason: string) =>
  refusal(400, 'INVALID_INPUT', `${field}: ${reason}`, { field, reason })

/** The days of a series: the last 30 by default. */
const daysOf = ({ query, services }: HandlerContext): readonly string[] => {
  const last = Date.parse(String(query['to'] ?? dayText(services.now().getTime())))
  const first = query['from'] === undefined ? last - 29 * dayMs : Date.parse(String(query['from']))
  if (first > last) throw invalidDay('from', 'must not be after to')
  const count = (last - first) / dayMs + 1
  if (count > mostDays) throw invalidDay('from', `must be at most ${mostDays} days before the end`)
  return Array.from({ length: count }, (_, index) => dayText(first + index * dayMs))
}

export const usage = async (context: HandlerContext) => {
  const { services, call } = context
  const days = daysOf(context)
  const between = { first: days[0], last: days.at(-1) }
  await services.traffic.flush()
  const [traffic, own] = await Promise.all([
    callControl(context, 'traffic_series', between, reading).then(dataOf<Record<string, number[]>>),
    call('usage_series', between).then(dataOf<Record<string, number[]>>),
  ])
  const series = Object.fromEntries(
    [...meters, 'failed_requests'].map((meter) => [
      meter,
      days.map((date, index) => ({ date, value: (own[meter] ?? traffic[meter])?.[index] ?? 0 })),
    ]),
  )
  return {
    status: 200,
    body: JSON.stringify({ data: { from: between.first, to: between.last, interval: 'day', series } }),
  }
}
