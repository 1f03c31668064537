import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { StartError } from '#server/errors.ts'

/** A project as the billing provider sees it. */
export type BilledProject = { readonly id: string; readonly tier: string }

/** One that may have a customer at the provider already. */
export type Customer = BilledProject & { readonly customerRef: string | null }

export const paidTiers = ['pro', 'enterprise'] as const
export type PaidTier = (typeof paidTiers)[number]

export const subscriptionStatuses = ['trialing', 'active', 'past_due', 'ended'] as const

/** Text and times that Postgres can store. */
const Text = z
  .string()
  .max(255)
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'must be text without U+0000')
const Moment = z
  .date()
  .refine((time) => time.getUTCFullYear() >= 1 && time.getUTCFullYear() <= 9999, 'must be of the years 1 to 9999')

/** What a webhook of the provider says of a project: the whole state of its subscription. */
export const BillingEvent = z.object({
  /** The provider's id of the event: one that comes again changes nothing. */
  id: Text.min(1),
  projectId: z.uuid(),
  /** When it happened at the provider: an older event does not replace a newer one. */
  occurredAt: Moment,
  tier: z.enum(paidTiers),
  status: z.enum(subscriptionStatuses),
  customerRef: Text.nullable(),
  /** The end of the paid period. */
  endsAt: Moment.nullable(),
  cancelAtPeriodEnd: z.boolean(),
})
export type BillingEvent = z.output<typeof BillingEvent>

export type WebhookRequest = {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The bytes that were signed. */
  readonly body: Buffer
}

/** The billing provider of developers. None is built in: an installation supplies its own. */
export type BillingProvider = {
  readonly name: string
  /** The page on which a person subscribes to a tier. */
  createCheckout(project: Customer, tier: PaidTier): Promise<{ readonly url: string }>
  /** The page on which a customer sees invoices and changes the subscription. */
  portalUrl(project: Customer): Promise<{ readonly url: string }>
  /**
   * Cancels the project's subscription at the end of the paid period. Returns the end of the period, or null when no subscription is
   * active. Idempotent; throws when the cancellation cannot be confirmed.
   */
  cancelAtPeriodEnd(project: BilledProject): Promise<{ readonly endsAt: Date } | null>
  /**
   * Reads a webhook of the provider. `forged`: its signature is wrong; null: it is genuine, and says nothing of a subscription. Throws for a body that it
   * cannot read, which is answered 400, as an event is that is none.
   */
  handleWebhook(request: WebhookRequest): Promise<BillingEvent | 'forged' | null>
}

declare module '#server/services.ts' {
  interface Services {
    readonly billing: BillingProvider
  }
}

const nobody = 'none'
const notConfigured = () => Promise.reject(new Error('this installation has no billing provider'))

/** The built-in default: no project has a subscription. */
export const createNoBilling = (): BillingProvider => ({
  name: nobody,
  createCheckout: notConfigured,
  portalUrl: notConfigured,
  cancelAtPeriodEnd: async () => null,
  handleWebhook: notConfigured,
})

export const isConfigured = ({ name }: BillingProvider): boolean => name !== nobody

const functions = ['createCheckout', 'portalUrl', 'cancelAtPeriodEnd', 'handleWebhook'] as const

const isProvider = (made: unknown): made is BillingProvider => {
  const fields = made as Record<string, unknown> | null
  const name = fields?.['name']
  return (
    typeof name === 'string' &&
    /^[a-z][a-z0-9_-]{0,99}$/.test(name) &&
    name !== nobody &&
    functions.every((each) => typeof fields?.[each] === 'function')
  )
}

/** The provider of BILLING_MODULE: what its default export returns. Throws a StartError that says what is wrong. */
export const loadBilling = async (file: string | undefined, publicUrl: () => string): Promise<BillingProvider> => {
  if (!file) return createNoBilling()
  let made: unknown
  try {
    const { default: create } = (await import(pathToFileURL(resolve(file)).href)) as {
      default: (settings: { publicUrl: () => string }) => unknown
    }
    made = await create({ publicUrl })
  } catch (error) {
    throw new StartError(`BILLING_MODULE ${file} cannot be used: ${(error as Error).message}`)
  }
  if (isProvider(made)) return made
  throw new StartError(
    `BILLING_MODULE ${file} cannot be used: its default export must return {name, ${functions.join(', ')}}`,
  )
}
