import type { Row } from '../api.ts'
import type { FieldWords } from '../parts/form/field.ts'
import { count } from '../parts/states.tsx'

export type Price = { readonly currency_code: string; readonly price: number; readonly original_price: number | null }
export type Offer = Row & {
  readonly id: string
  readonly key: string
  readonly catalog_item_key: string
  readonly quantity: number
  readonly prices: readonly Price[]
  readonly limit_per_user: number | null
  readonly limit_period: string
  readonly stock_total: number | null
  readonly stock_sold: number
  readonly is_active: boolean
}

export const base = '/v1/admin/projects/{projectId}/stores/{idOrKey}'
export const offersOf = (store: Row) => (store['offers'] ?? []) as readonly Offer[]

/** `10 COINS or 1 GEMS`. */
export const priceWords = (prices: readonly Price[], none: string): string =>
  prices.map(({ currency_code, price }) => (price === 0 ? 'free' : `${count(price)} ${currency_code}`)).join(' or ') ||
  none

const periods: Readonly<Record<string, string>> = {
  total: 'per user',
  day: 'per user and day',
  week: 'per user and week',
  month: 'per user and month',
}

/** `3 per user and day, 100 in all`. */
export const limitWords = ({ limit_per_user, limit_period, stock_total }: Offer): string =>
  [
    ...(limit_per_user === null ? [] : [`${count(limit_per_user)} ${periods[limit_period]}`]),
    ...(stock_total === null ? [] : [`${count(stock_total)} in all`]),
  ].join(', ') || 'none'

const reasons: Readonly<Record<string, string>> = {
  inactive: 'It is switched off.',
  item_inactive: 'Its item is switched off, or gives nothing.',
  not_started: 'It has not started.',
  ended: 'It has ended.',
  segment: 'It is for a segment that the user is not in.',
  no_price: 'It has no price in an active currency.',
  limit_reached: 'The user has bought as many as a user may.',
  out_of_stock: 'It is sold out.',
  max_owned: 'The user would have more of the item than a user may.',
}
/** Why a user does not see something, or cannot buy it. */
export const reasonWords = (reason: string | null): string => (reason === null ? '' : (reasons[reason] ?? reason))

export const offerWords: Readonly<Record<string, FieldWords>> = {
  key: { title: 'Key', help: 'The name in code; it never changes' },
  catalog_item_id: { isHidden: true },
  catalog_item_key: { title: 'Item', help: 'It never changes' },
  'prices.currency_code': { title: 'Currency' },
  'prices.price': { title: 'Price', help: '0 is free' },
  'prices.original_price': { title: 'Former price' },
  limit_period: {
    choices: { total: 'For ever', day: 'Each day', week: 'Each week', month: 'Each month' },
  },
}
