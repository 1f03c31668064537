/** A project as the billing provider sees it. */
export type BilledProject = { readonly id: string; readonly tier: string }

/** The billing provider of developers. None is built in: an installation supplies its own. */
export type BillingProvider = {
  readonly name: string
  /**
   * Cancels the project's subscription at the end of the paid period. Returns the end of the period, or null when no subscription is
   * active. Idempotent; throws when the cancellation cannot be confirmed.
   */
  cancelAtPeriodEnd(project: BilledProject): Promise<{ readonly endsAt: Date } | null>
}

/** The built-in default: no project has a subscription. */
export const createNoBilling = (): BillingProvider => ({ name: 'none', cancelAtPeriodEnd: async () => null })
