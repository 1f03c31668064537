import { Text } from '@mantine/core'
import { Zap } from 'lucide-react'
import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { filterWords } from '../parts/form/filter.ts'
import { Card, ProjectLink } from '../parts/page.tsx'
import { Compared, Simulate } from '../parts/simulate.tsx'
import { count } from '../parts/states.tsx'
import { Cell, useAnswer } from '../parts/stats.tsx'

type Sums = { readonly rule_key: string; readonly awards: number; readonly users: number; readonly total: number }
export type XpStats = {
  readonly total_awarded_7d: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly by_rule: readonly Sums[]
  readonly level_distribution: readonly { readonly level: number; readonly users: number }[]
}
export const useXpStats = () => useAnswer<XpStats>('GET /v1/admin/projects/{projectId}/xp/stats')

const none: Sums = { rule_key: '', awards: 0, users: 0, total: 0 }
const useSums = (row: Row) => {
  const { data, ...rest } = useXpStats()
  return { ...rest, data: data && (data.by_rule.find(({ rule_key }) => rule_key === row['key']) ?? none) }
}
const amountWords = (row: Row) =>
  row['amount_property']
    ? `${row['amount_property']}${row['multiplier'] === 1 ? '' : ` × ${row['multiplier']}`}`
    : count(row['amount'] as number)

const limits = (row: Row) =>
  [
    row['max_per_event'] && `${count(row['max_per_event'] as number)} an event`,
    row['max_per_day'] && `${count(row['max_per_day'] as number)} a day`,
    row['max_total'] && `${count(row['max_total'] as number)} in all`,
    row['cooldown_seconds'] && `every ${count(row['cooldown_seconds'] as number)} s`,
  ]
    .filter(Boolean)
    .join(', ')

const SumCell = ({ row, of }: { row: Row; of: 'users' | 'total' }) => (
  <Cell answer={useSums(row)} show={(sums: Sums) => count(sums[of])} />
)

const Detail = ({ row }: { row: Row }) => {
  const { data: sums } = useSums(row)
  const stats = useXpStats()
  return (
    <>
      <div className="cards">
        <Figure title="XP" value={count(sums?.total)} about="in 7 days" />
        <Figure title="Awards" value={count(sums?.awards)} about="in 7 days" />
        <Figure title="Users" value={count(sums?.users)} about="in 7 days" />
      </div>
      <Bars
        title="XP of 7 days by rule"
        of="XP"
        by="Rule"
        bars={stats.data?.by_rule.map(({ rule_key, total }) => ({ label: rule_key, value: total }))}
        error={stats.error}
        onRetry={stats.refetch}
      >
        <Text size="sm" c="dimmed" className="links" mt="xs">
          Every award stands in the <ProjectLink to="xp/ledger">ledger</ProjectLink>.
        </Text>
      </Bars>
    </>
  )
}

const SimulateRule = ({ row }: { row: Row }) => {
  const { data: sums } = useSums(row)
  return (
    <Simulate
      title={`Simulate “${row['name']}”`}
      about="What the rule, as it is saved, would have awarded for stored events. Nothing is written."
      operation="POST /v1/admin/projects/{projectId}/xp/rules/{idOrKey}/simulate"
      path={{ idOrKey: String(row['id']) }}
      preset={{ since: new Date(Date.now() - 7 * 864e5).toISOString() }}
      words={{ since: { title: 'Events since', help: 'Seven days, to be compared with what was awarded' } }}
    >
      {(result) => {
        const each = result['per_user'] as { median: number | null; p90: number | null; max: number | null }
        return (
          <Card title="What comes of it">
            <Compared
              heads={['Awarded in 7 days', 'Simulated']}
              rows={[
                ['XP', count(sums?.total), count(result['total'] as number)],
                ['Awards', count(sums?.awards), count(result['awards'] as number)],
                ['Users', count(sums?.users), count(result['users'] as number)],
                ['Median of a user', '', count(each.median)],
                ['9 of 10 users at most', '', count(each.p90)],
                ['The most of one user', '', count(each.max)],
              ]}
            />
          </Card>
        )
      }}
    </Simulate>
  )
}

const kind: Kind = {
  path: 'xp/rules',
  id: 'idOrKey',
  at: 'xp',
  noun: 'rule',
  plural: 'XP rules',
  icon: Zap,
  about: 'Award XP for events',
  empty: 'A rule gives XP for each event of a name, such as 10 for a lesson.',
  columns: [
    named('xp'),
    {
      title: 'Event',
      show: (row) => (
        <>
          {String(row['event_name'])}
          {filterWords(row['event_filter']) && <span className="cell-sub">{filterWords(row['event_filter'])}</span>}
        </>
      ),
    },
    { title: 'XP each', isNumber: true, show: amountWords },
    { title: 'At most', show: (row) => limits(row) || 'no limit' },
    { title: 'XP in 7 days', isNumber: true, show: (row) => <SumCell row={row} of="total" /> },
    { title: 'Users', isNumber: true, show: (row) => <SumCell row={row} of="users" /> },
    activeColumn,
  ],
  words: {
    name: { section: 'The rule' },
    key: { section: 'The rule' },
    event_name: { title: 'Event', section: 'What counts' },
    event_filter: { title: 'Only events where', section: 'What counts' },
    amount: { title: 'XP for each', help: 'The same for every event', section: 'How much' },
    amount_property: { title: 'Or by a property', help: 'A number among the properties', section: 'How much' },
    multiplier: { title: 'Times', help: 'What the property is multiplied by', section: 'How much' },
    max_per_event: { title: 'At most an event', section: 'Limits of a user' },
    max_per_day: { title: 'At most a day', section: 'Limits of a user' },
    max_total: { title: 'At most in all', section: 'Limits of a user' },
    cooldown_seconds: { title: 'Wait between awards', help: 'Seconds', section: 'Limits of a user' },
    starts_at: { title: 'From', section: 'When' },
    ends_at: { title: 'Until', section: 'When' },
    is_active: { title: 'Active', section: 'When' },
  },
  preset: { amount: 10 },
  Detail,
  Buttons: SimulateRule,
}
export const { List, New, One } = pagesOf(kind)
