/** A project as billing knows it. */
export type BilledProject = { readonly id: string; readonly tier: string }

/** The billing provider of developers. None is built in: an installation supplies its own. */
export type BillingProvider = {
  readonly name: string
  /**
   * Sets the project's subscription to end with the period that is paid. Answers when that is, null when none is running. Safe to do
   * twice; throws when it cannot be known to be done.
   */
  cancelAtPeriodEnd(project: BilledProject): Promise<{ readonly endsAt: Date } | null>
}

/** The one that is shipped: nobody pays, so nothing is running. */
export const createNoBilling = (): BillingProvider => ({ name: 'none', cancelAtPeriodEnd: async () => null })
