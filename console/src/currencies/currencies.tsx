import { Coins } from 'lucide-react'
import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { Days } from '../parts/days.tsx'
import { activeColumn } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Card, ProjectLink } from '../parts/page.tsx'
import { count, Empty } from '../parts/states.tsx'
import { Cell, useAnswer } from '../parts/stats.tsx'
import { UserName } from '../parts/users.tsx'
import { GiveCurrency } from './give.tsx'
import { reasonWords } from './reasons.ts'

type Stats = {
  readonly minted: number
  readonly burned: number
  readonly circulating: number
  readonly holders: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly top_holders: readonly {
    readonly app_user_id: string
    readonly display_name: string
    readonly balance: number
  }[]
  readonly reasons: readonly {
    readonly reason: string
    readonly minted: number
    readonly burned: number
    readonly transactions: number
  }[]
}
const useStats = (row: Row) =>
  useAnswer<Stats>('GET /v1/admin/projects/{projectId}/currencies/{code}/stats', { code: String(row['code']) })

const StatCell = ({ row, of }: { row: Row; of: 'circulating' | 'holders' }) => (
  <Cell answer={useStats(row)} show={(stats: Stats) => count(stats[of])} />
)

/** `1 every 10 minutes, up to 5`. */
const regenWords = (row: Row): string => {
  const regen = row['regen'] as { amount: number; every_seconds: number; cap: number } | null
  if (!regen) return 'no'
  const { amount, every_seconds: seconds, cap } = regen
  const [size, unit] = seconds % 3600 === 0 ? [3600, 'hour'] : seconds % 60 === 0 ? [60, 'minute'] : [1, 'second']
  const every = seconds / size
  return `${count(amount)} every ${every === 1 ? unit : `${every} ${unit}s`}, up to ${count(cap)}`
}

const Detail = ({ row }: { row: Row }) => {
  const { data: stats, error, refetch } = useStats(row)
  return (
    <>
      <div className="cards">
        <Figure
          title="In circulation"
          value={count(stats?.circulating)}
          about={stats?.is_estimate ? `about, ± ${count(stats.margin)}` : 'sum of all balances'}
        />
        <Figure title="Holders" value={count(stats?.holders)} about="users" />
        <Figure title="Given" value={count(stats?.minted)} about="of all time" />
        <Figure title="Spent" value={count(stats?.burned)} about="of all time" />
      </div>
      <Days
        operation="GET /v1/admin/projects/{projectId}/currencies/{code}/daily"
        path={{ code: String(row['code']) }}
        charts={[
          ['granted', 'Given each day'],
          ['spent', 'Spent each day'],
        ]}
      />
      <Bars
        title="Given, by reason"
        of={String(row['code'])}
        by="Reason"
        bars={stats?.reasons
          .filter(({ minted }) => minted > 0)
          .map(({ reason, minted }) => ({ label: reasonWords(reason), value: minted }))}
        error={error}
        onRetry={refetch}
      />
      <div className="pair">
        <Card title="Spent, by reason" flush>
          {stats?.reasons.some(({ burned }) => burned > 0) ? (
            <table className="table" aria-label="Spent, by reason">
              <tbody>
                {stats.reasons
                  .filter(({ burned }) => burned > 0)
                  .map(({ reason, burned }) => (
                    <tr key={reason}>
                      <th scope="row">{reasonWords(reason)}</th>
                      <td data-number>{count(burned)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          ) : (
            <Empty title="Nothing is spent yet" />
          )}
        </Card>
        <Card title="Largest holders" flush>
          {stats && stats.top_holders.length > 0 ? (
            <table className="table" aria-label="Largest holders">
              <tbody>
                {stats.top_holders.map((holder) => (
                  <tr key={holder.app_user_id}>
                    <th scope="row">
                      <UserName id={holder.app_user_id} user={holder} />
                    </th>
                    <td data-number>{count(holder.balance)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <Empty title="Nobody has any yet" />
          )}
        </Card>
      </div>
      <p className="links">
        <ProjectLink to="currencies/ledger" search={{ currency: String(row['code']) }}>
          Every change in the ledger
        </ProjectLink>
      </p>
    </>
  )
}

const kind: Kind = {
  path: 'currencies',
  id: 'code',
  at: 'currencies',
  noun: 'currency',
  plural: 'currencies',
  icon: Coins,
  about: 'Coins, gems, energy: what users earn and spend',
  empty: 'A currency is what users earn and spend in your app. Each change stands in a ledger.',
  keyOf: (row) => String(row['code']),
  columns: [
    {
      title: 'Name',
      show: (row) => (
        <>
          <ProjectLink to={`currencies/${row['code']}`}>{String(row['name'])}</ProjectLink>
          <span className="cell-sub mono">{String(row['code'])}</span>
        </>
      ),
    },
    { title: 'In circulation', isNumber: true, show: (row) => <StatCell row={row} of="circulating" /> },
    { title: 'Holders', isNumber: true, show: (row) => <StatCell row={row} of="holders" /> },
    { title: 'At the start', isNumber: true, show: (row) => count(row['initial_grant'] as number) },
    { title: 'Comes back', show: regenWords },
    activeColumn,
  ],
  words: {
    name: { section: 'The currency' },
    code: { title: 'Code', help: 'Capitals, such as COINS; it never changes', section: 'The currency' },
    icon_url: { title: 'Picture', section: 'The currency' },
    initial_grant: { title: 'At the start', help: 'What every user begins with', section: 'Balances' },
    max_balance: { title: 'Most that a user may have', section: 'Balances' },
    expiry_days: { title: 'Expires after days', help: 'Never if empty', section: 'Balances' },
    client_spendable: { title: 'Your app may spend it', help: 'Else only your servers', section: 'Balances' },
    regen: { title: 'Comes back by itself', help: 'As energy does', section: 'Coming back' },
    'regen.amount': { title: 'Amount' },
    'regen.every_seconds': { title: 'Every', help: 'Seconds' },
    'regen.cap': { title: 'Up to' },
    is_active: { title: 'Active', section: 'Balances' },
  },
  facts: (row) => [
    ['Code', String(row['code'])],
    ['At the start', count(row['initial_grant'] as number)],
    ['Most of a user', count(row['max_balance'] as number)],
    ['Expires', row['expiry_days'] ? `after ${row['expiry_days']} days` : 'never'],
    ['Spent by', row['client_spendable'] ? 'your app and servers' : 'your servers'],
    ['Comes back', regenWords(row)],
    ['Active', row['is_active'] ? 'yes' : 'no'],
  ],
  Detail,
  Buttons: ({ row }) => <GiveCurrency code={String(row['code'])} />,
}
export const { List, New, One } = pagesOf(kind)
