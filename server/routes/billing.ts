import { z } from 'zod'
import { cancel, checkout, portal, receive } from '#server/billing/subscription.ts'
import { get, meters, usage } from '#server/billing/usage.ts'
import { administrator, anyone, projectOwner } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Day, data, Time } from '#server/http/schemas.ts'
import { Tier } from '#server/projects/shapes.ts'
import { paidTiers, subscriptionStatuses } from '#server/providers/billing.ts'

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

export const billing = area({
  stem: 'billing',
  title: 'Billing',
  part: 'Platform',
  about: 'Usage, the spend ceiling, and the subscription of a project.',
  rank: 'admin',
  words: {
    amount_usd: ['Ceiling', 'US dollars in a month; null ends the ceiling.'],
    tier: ['Plan', 'What is bought.'],
  },
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
