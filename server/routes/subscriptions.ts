import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Flag, IncludeUser, Page, page, Time, Uuid, withUser } from '#server/http/schemas.ts'
import { Grant } from '#server/routes/entitlements/shapes.ts'

const Status = z.enum(
  ['trial', 'active', 'grace', 'cancelled', 'paused', 'refunded', 'expired'],
  'must be trial, active, grace, cancelled, paused, refunded or expired',
)
const Subscription = answer('subscription_json', { status: Status, auto_renew: z.boolean() })
const WithGrants = Subscription.extend({ grants: z.array(Grant.extend({ entitlement_id: z.string() })) })
const ProviderEvent = z.strictObject({
  id: z.string(),
  type: z.string(),
  event_at: Time,
  received_at: Time,
  outcome: z.enum(['applied', 'older', 'waiting', 'unknown_user', 'without_effect']),
  product_id: z.string().nullable(),
  period_type: z.string().nullable(),
  expiration_date: Time.nullable(),
})
const Summary = z.strictObject({
  statuses: z.record(Status, z.int()),
  trials_30d: z.strictObject({ started: z.int(), converted: z.int() }),
  active_by_product: z.array(z.strictObject({ product_id: z.string().nullable(), store: z.string(), active: z.int() })),
})

export const subscriptions = area({
  stem: 'entitlements',
  title: 'Subscriptions (admin)',
  part: 'Economy',
  about: 'Subscriptions as the provider reports them, and what followed.',
  routes: [
    ...group('/admin/projects/:projectId/subscriptions', administrator, [
      route('GET /', 'Subscriptions of stores, newest first', {
        call: 'subscriptions_list',
        query: {
          ...Page,
          status: Status.optional(),
          product_id: z.string().max(255).optional(),
          store: z.string().max(64).optional(),
          user_id: Uuid.optional(),
          expiring_before: z.string().max(40).optional().describe('Those that still run and end before this time'),
          ...IncludeUser,
        },
        replies: { 200: page(withUser(Subscription)) },
      }),
      route('GET /summary', 'Subscriptions by status, trials of 30 days, and how many give access of each product', {
        call: 'subscriptions_summary',
        replies: { 200: data(Summary) },
      }),
      route('GET /:subscriptionId', "A subscription with its grants and the provider's events, in order", {
        call: 'subscription_get',
        replies: { 200: data(WithGrants.extend({ source_ref: z.string(), events: z.array(ProviderEvent) })) },
      }),
      route('POST /:subscriptionId/replay', 'Replay the stored events of a subscription', {
        call: 'subscription_replay',
        description: 'Includes events that arrived too late to be applied. Writes nothing unless `dry_run` is false.',
        query: { dry_run: Flag(true).describe('Only say what would change') },
        replies: { 200: data(z.strictObject({ before: WithGrants, after: WithGrants, changed: z.boolean() })) },
      }),
    ]),
  ],
})
