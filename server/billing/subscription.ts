/** The subscription of a project, through the billing provider of the installation, and what that provider reports. */
import { dataOf } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { BillingEvent, type Customer, isConfigured, type PaidTier } from '#server/providers/billing.ts'

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
  const reply = await call('billing_begin', {
    project_id: projectIdOf(context),
    provider: services.billing.name,
    action,
  })
  const { customer_ref, ...project } = dataOf<{ id: string; tier: string; customer_ref: string | null }>(reply)
  return { ...project, customerRef: customer_ref }
}

const answer = (body: unknown) => ({ status: 200, body: JSON.stringify({ data: body }) })

export const checkout = async (context: HandlerContext) => {
  const customer = await begin(context, 'checkout')
  const tier = context.body['tier'] as PaidTier
  const { url } = await provided(context, 'PROVIDER_FAILED', () =>
    context.services.billing.createCheckout(customer, tier),
  )
  return answer({ checkout_url: url })
}

export const portal = async (context: HandlerContext) => {
  const customer = await begin(context, 'portal')
  const { url } = await provided(context, 'PROVIDER_FAILED', () => context.services.billing.portalUrl(customer))
  return answer({ url })
}

export const cancel = async (context: HandlerContext) => {
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
export const receive = async (context: HandlerContext) => {
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
