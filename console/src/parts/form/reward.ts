import { isObject } from './schema.ts'

type Rest = Readonly<Record<string, unknown>>
/** One thing that a reward gives. */
export type Gift = { readonly kind: string; readonly what?: string | undefined; readonly amount?: number | undefined }

type Kind = {
  readonly kind: string
  readonly title: string
  /** The names of what is given and of how much, in the entries of a list of this kind. */
  readonly what?: string
  readonly amount?: string
  readonly amountTitle?: string
  readonly usual?: number
}

export const kinds: readonly Kind[] = [
  { kind: 'xp', title: 'XP', amount: 'xp', amountTitle: 'Points', usual: 10 },
  { kind: 'currencies', title: 'Currency', what: 'currency_code', amount: 'amount', amountTitle: 'Amount', usual: 10 },
  { kind: 'items', title: 'Item', what: 'catalog_item_key', amount: 'quantity', amountTitle: 'How many', usual: 1 },
  { kind: 'entitlements', title: 'Entitlement', what: 'entitlement_id', amount: 'duration_days', amountTitle: 'Days' },
  { kind: 'freezes', title: 'Streak freezes', what: 'streak_key', amount: 'amount', amountTitle: 'Freezes', usual: 1 },
  { kind: 'achievement_key', title: 'Achievement', what: 'achievement_key' },
]
const lists = kinds.filter(({ kind }) => !['xp', 'achievement_key'].includes(kind))

/** The rows of a reward, and what it has besides: kept as it is. */
export const giftsOf = (reward: unknown): { readonly gifts: readonly Gift[]; readonly rest: Rest } => {
  if (!isObject(reward)) return { gifts: [], rest: {} }
  const known = new Set(kinds.map(({ kind }) => kind))
  const gifts: Gift[] = []
  if (typeof reward['xp'] === 'number') gifts.push({ kind: 'xp', amount: reward['xp'] })
  for (const { kind, what = '', amount = '' } of lists)
    for (const entry of Array.isArray(reward[kind]) ? (reward[kind] as Rest[]) : [])
      gifts.push({
        kind,
        what: entry[what] as string | undefined,
        amount: typeof entry[amount] === 'number' ? entry[amount] : kind === 'items' ? 1 : undefined,
      })
  const achievement = reward['achievement_key']
  if (typeof achievement === 'string') gifts.push({ kind: 'achievement_key', what: achievement })
  return { gifts, rest: Object.fromEntries(Object.entries(reward).filter(([name]) => !known.has(name))) }
}

/** The reward of these rows; none without any. */
export const rewardOf = (gifts: readonly Gift[], rest: Rest): Rest | undefined => {
  const reward: Record<string, unknown> = { ...rest }
  const xp = gifts.filter(({ kind }) => kind === 'xp')
  if (xp.length > 0) reward['xp'] = xp.reduce((sum, { amount = 0 }) => sum + amount, 0)
  for (const { kind, what: name = '', amount: size = '' } of lists) {
    const entries = gifts.filter((gift) => gift.kind === kind)
    if (entries.length > 0)
      reward[kind] = entries.map(({ what, amount }) => ({
        ...(what === undefined ? {} : { [name]: what }),
        ...(amount === undefined ? {} : { [size]: amount }),
      }))
  }
  const achievement = gifts.find(({ kind }) => kind === 'achievement_key')
  if (achievement?.what) reward['achievement_key'] = achievement.what
  return Object.keys(reward).length > 0 ? reward : undefined
}

/** A reward in words: `100 XP, 20 COINS, 2 × potion`. */
export const rewardWords = (reward: unknown): string | undefined => {
  const { gifts } = giftsOf(reward)
  const words = gifts.map(({ kind, what, amount }) => {
    if (kind === 'xp') return `${amount} XP`
    if (kind === 'currencies') return `${amount} ${what}`
    if (kind === 'items') return amount === 1 ? `${what}` : `${amount} × ${what}`
    if (kind === 'entitlements') return amount === undefined ? `${what}` : `${what} for ${amount} days`
    if (kind === 'freezes') return `${amount} ${amount === 1 ? 'freeze' : 'freezes'} of ${what}`
    return `achievement ${what}`
  })
  return words.length > 0 ? words.join(', ') : undefined
}
