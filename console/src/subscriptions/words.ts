/** What the states of subscriptions mean to a person. */
export const statuses: Readonly<Record<string, string>> = {
  trial: 'trial',
  active: 'active',
  grace: 'payment late',
  cancelled: 'ends',
  paused: 'paused',
  refunded: 'refunded',
  expired: 'expired',
}
export const meanings: Readonly<Record<string, 'good' | 'warn' | 'bad' | 'none'>> = {
  trial: 'good',
  active: 'good',
  grace: 'warn',
  cancelled: 'warn',
  paused: 'none',
  refunded: 'bad',
  expired: 'none',
}
const stores: Readonly<Record<string, string>> = {
  app_store: 'App Store',
  mac_app_store: 'Mac App Store',
  play_store: 'Play Store',
  stripe: 'Stripe',
  amazon: 'Amazon',
  promotional: 'Given',
}
export const storeWords = (store: unknown): string => stores[String(store)] ?? String(store).replace(/_/g, ' ')

/** What a project sells, as it is declared. */
export type Declaration = {
  readonly entitlements?: readonly {
    readonly key: string
    readonly display_name?: string | null
    readonly description?: string | null
    readonly product_keys?: readonly string[]
  }[]
  readonly products?: readonly {
    readonly key: string
    readonly store: string
    readonly store_identifier: string
    readonly type?: string
    readonly display_name?: string | null
  }[]
  readonly offerings?: readonly {
    readonly key: string
    readonly display_name?: string | null
    readonly is_current?: boolean
    readonly packages?: readonly { readonly key: string; readonly product_key?: string | null }[]
  }[]
  readonly paywalls?: readonly { readonly key: string; readonly offering_key: string }[]
}
export const definitions = 'GET /v1/admin/projects/{projectId}/monetization/definitions'
