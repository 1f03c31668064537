import { Skeleton, Text } from '@mantine/core'
import { Eye } from 'lucide-react'
import type { Row } from '../api.ts'
import { ShortTable } from '../parts/list.tsx'
import { Card, useAddress } from '../parts/page.tsx'
import { count, Empty, Failure, When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserSelect } from '../parts/users.tsx'
import { base, type Price, priceWords, reasonWords } from './data.ts'

type Seen = {
  readonly id: string
  readonly key: string
  readonly item: { readonly name: string }
  readonly quantity: number
  readonly badge: string | null
  readonly ends_at: string | null
  readonly prices: readonly Price[]
  readonly visible: boolean
  readonly available: boolean
  readonly reason: string | null
  readonly remaining_for_user: number | null
  readonly remaining_stock: number | null
  readonly can_afford: boolean
}
type Preview = { readonly visible: boolean; readonly reason: string | null; readonly offers: readonly Seen[] }

const stateOf = ({ visible, available, can_afford }: Seen): readonly [string, 'good' | 'warn' | 'none'] => {
  if (!visible) return ['hidden', 'none']
  if (!available) return ['not available', 'warn']
  return can_afford ? ['can buy', 'good'] : ['cannot afford it', 'warn']
}

const left = ({ remaining_for_user: own, remaining_stock: all }: Seen): string =>
  [...(own === null ? [] : [`${count(own)} for the user`]), ...(all === null ? [] : [`${count(all)} in all`])].join(
    ', ',
  ) || 'no limit'

const SeenBy = ({ store, user }: { store: Row; user: string }) => {
  const { data, error, refetch } = useAnswer<Preview>(
    `GET ${base}/preview`,
    { idOrKey: String(store['id']) },
    { user_id: user },
  )
  if (error) return <Failure error={error} onRetry={refetch} />
  if (!data) return <Skeleton h={120} />
  return (
    <>
      <Text px="md" pb="xs" size="sm" role="status">
        {data.visible ? 'The user sees the store.' : `The user does not see the store: ${reasonWords(data.reason)}`}
      </Text>
      {data.offers.length > 0 && (
        <ShortTable<Seen>
          name="Offers as the user sees them"
          rows={data.offers}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Offer',
              show: (offer) => (
                <>
                  <span>
                    {count(offer.quantity)} × {offer.item.name}{' '}
                    {offer.badge && <Status value={offer.badge} meaning="none" />}
                  </span>
                  <span className="cell-sub mono">{offer.key}</span>
                </>
              ),
            },
            { title: 'Price', show: ({ prices }) => priceWords(prices, 'none') },
            { title: 'Left', show: left },
            { title: 'Ends', show: ({ ends_at }) => <When at={ends_at} /> },
            {
              title: 'For the user',
              show: (offer) => {
                const [value, meaning] = stateOf(offer)
                return (
                  <>
                    <Status value={value} meaning={meaning} />
                    {offer.reason && <span className="cell-sub">{reasonWords(offer.reason)}</span>}
                  </>
                )
              },
            },
          ]}
        />
      )}
    </>
  )
}

/** The store as a given user sees it, and why. The user stands in the address. */
export const AsSeen = ({ store }: { store: Row }) => {
  const [{ user }, setAddress] = useAddress<'user'>()
  return (
    <Card
      title="As a user sees it"
      actions={<UserSelect placeholder="Choose a user" value={user} onChange={(next) => setAddress({ user: next })} />}
      flush
    >
      {user ? (
        <SeenBy store={store} user={user} />
      ) : (
        <Empty icon={<Eye size={22} />} title="Nobody is chosen">
          Choose a user to see which offers they have, and why others are hidden or cannot be bought.
        </Empty>
      )}
    </Card>
  )
}
