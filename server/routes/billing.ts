import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { administrator, anyone, projectOwner } from '#server/http/callers.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Time } from '#server/http/schemas.ts'
import { Tier } from '#server/http/shapes.ts'
import {
  BillingEvent,
  type Customer,
  isConfigured,
  type PaidTier,
  paidTiers,
  subscriptionStatuses,
} from '#server/providers/billing.ts'

const dayMs = 86_400_000
const mostDays = 400

/** In the order of the supplement. The first two of traffic are counted by servers, the others by the project's own database. */
const meters = [
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

const each = <T extends z.ZodType>(schema: T) =>
  z.strictObject(Object.fromEntries(meters.map((meter) => [meter, schema])) as Record<(typeof meters)[number], T>)

const Subscription = z.strictObject({
  tier: z.enum(paidTiers),
  status: z.enum(subscriptionStatuses),
  ends_at: Time.nullable(),
  cancel_at_period_end: z.boolean(),
})
const Used = z.strictObject({ used: z.number(), limit: z.number().nullable() })
const Billing = z.strictObject({
  tier: Tier,
  effective_tier: Tier,
  comped: z.boolean(),
  limits: each(z.number().nullable()).extend({ media_storage: z.number().nullable() }),
  usage: each(Used).extend({ media_storage: Used }),
  period: z.strictObject({ start: Time, end: Time }),
  subscription: Subscription.nullable(),
  spend_ceiling_usd: z.number().nullable(),
  configured: z.boolean(),
})
const Values = z.array(z.strictObject({ date: z.string(), value: z.number() }))
const Day = z.iso.date('must be a date such as 2026-10-03')

type Amounts = Readonly<Record<string, number>>
type OfControl = { readonly meters: Amounts } & Readonly<Record<string, unknown>>
type OfTenant = {
  readonly spend_ceiling_usd: number | null
  readonly media_storage: { readonly used: number; readonly limit: number | null }
  readonly meters: Amounts
}

const idOf = ({ resolved }: HandlerContext): string => resolved.project?.projectId ?? ''

/** A function of control under the claims of an administrator of the project's own database. */
const askControl = async <T>({ services, resolved }: HandlerContext, name: string, args: Record<string, unknown>) =>
  dataOf<T>(
    await services.database.call(services.control, 'control_developer', resolved.claims, name, args, {
      readOnly: true,
      failure: 'FETCH_FAILED',
    }),
  )

const get = async (context: HandlerContext) => {
  const { services, resolved, call } = context
  await services.traffic.flush()
  const [control, own] = await Promise.all([
    askControl<OfControl>(context, 'billing_get', { project_id: idOf(context), provider: services.billing.name }),
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

const usage = async (context: HandlerContext) => {
  const { services, call } = context
  const days = daysOf(context)
  const between = { first: days[0], last: days.at(-1) }
  await services.traffic.flush()
  const [traffic, own] = await Promise.all([
    askControl<Record<string, number[]>>(context, 'traffic_series', { project_id: idOf(context), ...between }),
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

/** Asks the provider. An error of its own is 502. */
const provided = async <T>({ services }: HandlerContext, code: string, ask: () => Promise<T>): Promise<T> => {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof ApiError) throw error
    services.log.error({ error: (error as Error).message }, 'the billing provider failed')
    throw refusal(502, code, 'The billing provider did not answer: try again.')
  }
}

/** What control knows of the project, before the provider is called. */
const begin = async (context: HandlerContext, action: 'checkout' | 'portal' | 'cancel'): Promise<Customer> => {
  const { services, call } = context
  if (!isConfigured(services.billing))
    throw refusal(409, 'BILLING_NOT_CONFIGURED', 'This installation has no billing provider.')
  const reply = await call('billing_begin', { project_id: idOf(context), provider: services.billing.name, action })
  const { customer_ref, ...project } = dataOf<{ id: string; tier: string; customer_ref: string | null }>(reply)
  return { ...project, customerRef: customer_ref }
}

const answer = (body: unknown) => ({ status: 200, body: JSON.stringify({ data: body }) })

const checkout = async (context: HandlerContext) => {
  const customer = await begin(context, 'checkout')
  const tier = context.body['tier'] as PaidTier
  const { url } = await provided(context, 'PROVIDER_FAILED', () =>
    context.services.billing.createCheckout(customer, tier),
  )
  return answer({ checkout_url: url })
}

const portal = async (context: HandlerContext) => {
  const customer = await begin(context, 'portal')
  const { url } = await provided(context, 'PROVIDER_FAILED', () => context.services.billing.portalUrl(customer))
  return answer({ url })
}

const cancel = async (context: HandlerContext) => {
  const { services, call } = context
  const { id, tier } = await begin(context, 'cancel')
  const ending = await provided(context, 'BILLING_CANCEL_FAILED', () =>
    services.billing.cancelAtPeriodEnd({ id, tier }),
  )
  if (!ending) throw refusal(409, 'NO_SUBSCRIPTION', 'The billing provider has no subscription of this project.')
  const ends_at = ending.endsAt.toISOString()
  return call('billing_cancelled', { project_id: id, provider: services.billing.name, ends_at })
}

/**
 * What a webhook says, as the provider's own code reads it. A body that it cannot read, or makes no event of, is the fault of whoever sent it, known or not: 400,
 * counted as a forged one is. The log says what was wrong, because the fault may be the module's too.
 */
const eventOf = async ({ request, services }: HandlerContext, refused: Refused) => {
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const unreadable = (error: unknown) => {
    services.log.warn({ error: (error as Error | null)?.message }, 'a webhook of the billing provider cannot be read')
    return refused(400, 'INVALID_BODY', 'The billing provider of this installation cannot read this body.')
  }
  const read = async () => services.billing.handleWebhook({ headers: request.headers, body })
  const found = await read().catch((error: unknown) => {
    throw unreadable(error)
  })
  if (found === 'forged') throw refused(401, 'INVALID_SIGNATURE', 'The signature of the webhook is wrong.')
  if (found === null) return null
  const { data: event, error } = BillingEvent.safeParse(found)
  if (!event) throw unreadable(error)
  return event
}
type Refused = (status: number, code: string, message: string) => ApiError

/** Stores what the provider reports. */
const receive = async (context: HandlerContext) => {
  const { request, services } = context
  const perAddress = [{ key: `webhooks ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }]
  services.rateLimiter.check(perAddress)
  const refused: Refused = (status, code, message) => {
    services.rateLimiter.take(perAddress)
    return refusal(status, code, message)
  }
  if (!isConfigured(services.billing))
    throw refused(404, 'NOT_CONFIGURED', 'This installation has no billing provider.')
  const event = await eventOf(context, refused)
  if (event === null) return answer({ received: true, applied: false })
  const reply = await services.database.call(
    services.control,
    'control_worker',
    { caller: 'worker' },
    'billing_event',
    {
      provider: services.billing.name,
      event_key: event.id,
      event: {
        project_id: event.projectId,
        occurred_at: event.occurredAt.toISOString(),
        tier: event.tier,
        status: event.status,
        customer_ref: event.customerRef,
        ends_at: event.endsAt?.toISOString() ?? null,
        cancel_at_period_end: event.cancelAtPeriodEnd,
      },
    },
    { failure: 'WEBHOOK_PROCESSING_FAILED' },
  )
  if (reply.changed.length > 0) await services.notifier.publish(reply.changed)
  return reply
}

export const billing = area({
  stem: 'billing',
  title: 'Billing',
  part: 'Platform',
  about: 'Usage, the spend ceiling, and the subscription of a project.',
  source: 'supplement',
  rank: 'admin',
  routes: [
    ...group('/admin/projects/:projectId/billing', administrator, [
      route('GET /', 'The tier of a project, what it used this month (UTC), and its subscription', {
        handle: get,
        operationId: 'getBilling',
        replies: { 200: data(Billing) },
      }),
      route('GET /usage', 'What a project used on each day (UTC)', {
        handle: usage,
        operationId: 'getUsage',
        description:
          'Both dates are included; the last 30 days by default, at most 400. `mau` is how many users were seen from the beginning of the month to the day; `failed_requests` are those of `api_requests` that were answered with 400 or more.',
        query: { from: Day.optional(), to: Day.optional(), interval: z.enum(['day']).optional() },
        replies: {
          200: data(
            z.strictObject({
              from: z.string(),
              to: z.string(),
              interval: z.literal('day'),
              series: each(Values).extend({ failed_requests: Values }),
            }),
          ),
        },
      }),
      route('PUT /spend-ceiling', 'Set the most that calls may cost in a month, or take it away with null', {
        call: 'spend_ceiling_put',
        operationId: 'setSpendCeiling',
        description:
          'When it is reached, AI and mail answer 402 SPEND_CEILING_REACHED until the month ends; 0 stops them at once.',
        body: z.object({
          amount_usd: z
            .number('must be a number or null')
            .min(0, 'must be 0 or more')
            .max(1_000_000_000, 'must be at most 1000000000')
            .nullable(),
        }),
        example: { amount_usd: 100 },
        replies: { 200: data(z.strictObject({ spend_ceiling_usd: z.number().nullable() })) },
      }),
      route('POST /checkout', 'The page on which a person subscribes to a tier', {
        handle: checkout,
        caller: projectOwner,
        operationId: 'createCheckout',
        body: z.object({ tier: z.enum(paidTiers, 'must be pro or enterprise') }),
        example: { tier: 'pro' },
        replies: { 200: data(z.strictObject({ checkout_url: z.string() })) },
        refusals: { 409: ['BILLING_NOT_CONFIGURED', 'ALREADY_SUBSCRIBED'], 502: ['PROVIDER_FAILED'] },
        failure: 'CREATE_FAILED',
      }),
      route('POST /portal', 'The page on which a customer sees invoices and changes the subscription', {
        handle: portal,
        caller: projectOwner,
        operationId: 'createBillingPortal',
        replies: { 200: data(z.strictObject({ url: z.string() })) },
        refusals: { 409: ['BILLING_NOT_CONFIGURED', 'NO_SUBSCRIPTION'], 502: ['PROVIDER_FAILED'] },
        failure: 'CREATE_FAILED',
      }),
      route('POST /cancel', 'Cancel the subscription at the end of the paid period', {
        handle: cancel,
        caller: projectOwner,
        operationId: 'cancelSubscription',
        replies: { 200: data(Subscription) },
        refusals: { 409: ['BILLING_NOT_CONFIGURED', 'NO_SUBSCRIPTION'], 502: ['BILLING_CANCEL_FAILED'] },
      }),
    ]),
  ],
})

export const billingWebhooks = area({
  stem: 'billing',
  title: 'Inbound webhooks',
  source: 'supplement',
  unversioned: true,
  routes: [
    ...group('/webhooks', anyone, [
      route('POST /billing', 'Events of the billing provider of the installation', {
        handle: receive,
        operationId: 'receiveBillingEvents',
        description:
          'The provider of BILLING_MODULE reads the body and checks its signature. An event that came before changes nothing.',
        documentedBody: z.looseObject({}),
        replies: { 200: data(z.strictObject({ received: z.literal(true), applied: z.boolean() })) },
        refusals: { 400: ['INVALID_BODY'], 401: ['INVALID_SIGNATURE'], 404: ['NOT_CONFIGURED'], 429: ['RATE_LIMITED'] },
        ceiling: 'none',
        failure: 'WEBHOOK_PROCESSING_FAILED',
      }),
    ]),
  ],
})
