import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import type { BillingEvent, BillingProvider, Customer, PaidTier } from '#server/providers/billing.ts'

/** A billing provider that keeps subscriptions in memory and signs its webhooks, as real ones do. */
export const createTestBilling = () => {
  const secret = randomUUID()
  const state = {
    /** The ends of the periods of live subscriptions, by project. */
    periods: new Map<string, Date>(),
    checkouts: [] as { project: Customer; tier: PaidTier }[],
    cancelled: [] as string[],
    /** Every call fails while this is set. */
    outage: null as Error | null,
  }
  const available = () => {
    if (state.outage) throw state.outage
  }
  const provider: BillingProvider = {
    name: 'test',
    async createCheckout(project, tier) {
      available()
      state.checkouts.push({ project, tier })
      return { url: `https://pay.example/checkout/${project.id}` }
    },
    async portalUrl({ customerRef }) {
      available()
      return { url: `https://pay.example/portal/${customerRef}` }
    },
    async cancelAtPeriodEnd({ id }) {
      available()
      state.cancelled.push(id)
      const endsAt = state.periods.get(id)
      return endsAt ? { endsAt } : null
    },
    async handleWebhook({ headers, body }) {
      const right = createHmac('sha256', secret).update(body).digest()
      const given = Buffer.from(String(headers['x-test-signature'] ?? ''), 'hex')
      if (given.length !== right.length || !timingSafeEqual(given, right)) return 'forged'
      const event = JSON.parse(body.toString()) as Record<string, string | boolean | null>
      if (event['type'] !== 'subscription') return null
      return {
        ...event,
        occurredAt: new Date(String(event['occurredAt'])),
        endsAt: event['endsAt'] === null ? null : new Date(String(event['endsAt'])),
      } as BillingEvent
    },
  }
  /** A webhook as the provider sends it: its body, and the header with its signature. */
  const signed = (text: string) => ({ text, signature: createHmac('sha256', secret).update(text).digest('hex') })
  const webhook = (event: Record<string, unknown>) => signed(JSON.stringify({ type: 'subscription', ...event }))
  return { provider, state, signed, webhook }
}

/** A billing provider for tests of every route: any webhook is genuine, and reports the same event. */
export const configuredBilling = (): BillingProvider => ({
  ...createTestBilling().provider,
  handleWebhook: async () => ({
    id: 'event',
    projectId: '00000000-0000-4000-8000-000000000000',
    occurredAt: new Date('2026-01-01T00:00:00Z'),
    tier: 'pro',
    status: 'active',
    customerRef: null,
    endsAt: null,
    cancelAtPeriodEnd: false,
  }),
})
