import { Store } from 'lucide-react'
import type { Row } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { factsOf } from '../parts/facts.tsx'
import { count, When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { base, offersOf } from './data.ts'
import { Offers } from './offers.tsx'
import { AsSeen } from './seen.tsx'

type Stats = {
  readonly purchases: number
  readonly refunded: number
  readonly buyers: number
  readonly units: number
  readonly revenue: Readonly<Record<string, number>>
}

const Detail = ({ row }: { row: Row }) => {
  const { data: stats } = useAnswer<Stats>(`GET ${base}/stats`, { idOrKey: String(row['id']) })
  const revenue = Object.entries(stats?.revenue ?? {}).map(([code, amount]) => `${count(amount)} ${code}`)
  return (
    <>
      <div className="cards">
        <Figure
          title="Purchases"
          value={count(stats?.purchases)}
          about={stats?.refunded ? `${count(stats.refunded)} of them refunded` : 'none refunded'}
        />
        <Figure title="Buyers" value={count(stats?.buyers)} about="users" />
        <Figure title="Units" value={count(stats?.units)} about="sold" />
        <Figure title="Revenue" value={revenue.join(', ') || '0'} about="without refunds" />
      </div>
      <Offers store={row} />
      <AsSeen store={row} />
    </>
  )
}

const kind: Kind = {
  path: 'stores',
  id: 'idOrKey',
  at: 'stores',
  noun: 'store',
  plural: 'stores',
  icon: Store,
  about: 'What users buy for your currencies, with limits and times',
  empty: 'A store has offers: items of the catalog with a price, a limit and a time.',
  columns: [
    named('stores'),
    { title: 'Offers', isNumber: true, show: (row) => count(offersOf(row).length) },
    { title: 'From', show: (row) => <When at={row['starts_at'] as string | null} none="at once" /> },
    { title: 'Until', show: (row) => <When at={row['ends_at'] as string | null} none="always" /> },
    activeColumn,
  ],
  preset: { is_active: true },
  facts: ({ offers: _, ...row }) => factsOf(row),
  Detail,
}
export const { List, New, One } = pagesOf(kind)
