import { Text } from '@mantine/core'
import { Milestone } from 'lucide-react'
import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { ReferenceName } from '../parts/form/reference_input.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { Card } from '../parts/page.tsx'
import { count, Empty } from '../parts/states.tsx'
import { Cell, useAnswer } from '../parts/stats.tsx'

type Stats = {
  readonly flow_id: string
  readonly total_started: number
  readonly total_completed: number
  readonly total_skipped: number
  readonly completion_rate: number | null
}
type Step = {
  readonly id: string
  readonly type: string
  readonly title: string | null
  readonly description: string | null
  readonly skippable: boolean
  readonly segment_id: string | null
}
const useStats = (row: Row) => {
  const { data, ...rest } = useAnswer<readonly Stats[]>('GET /v1/admin/projects/{projectId}/onboarding/stats')
  return { ...rest, data: data?.find(({ flow_id }) => flow_id === row['id']) }
}
const rate = (stats: Stats | undefined) =>
  stats?.completion_rate === null || stats === undefined ? '—' : `${Math.round(stats.completion_rate * 100)} %`

const StatCell = ({ row, show }: { row: Row; show: (stats: Stats) => string }) => (
  <Cell answer={useStats(row)} show={show} />
)

const Steps = ({ steps }: { steps: readonly Step[] }) => (
  <Card title="Steps">
    {steps.length === 0 ? (
      <Empty title="No steps yet">“Edit” adds some.</Empty>
    ) : (
      <ol className="numbered">
        {steps.map(({ id, type, title, description, skippable, segment_id }) => (
          <li key={id}>
            <Text fw={500} component="span">
              {title ?? wordsOf(id)}
            </Text>
            <Text size="sm" c="dimmed">
              {wordsOf(type)}
              {skippable ? ', can be skipped' : ''}
              {segment_id && (
                <>
                  , for <ReferenceName reference="segment_id" value={segment_id} />
                </>
              )}
              {description ? `: ${description}` : ''}
            </Text>
          </li>
        ))}
      </ol>
    )}
  </Card>
)

const Detail = ({ row }: { row: Row }) => {
  const { data: stats, error, refetch } = useStats(row)
  const left = stats && Math.max(0, stats.total_started - stats.total_completed - stats.total_skipped)
  return (
    <>
      <div className="cards">
        <Figure title="Started" value={count(stats?.total_started)} about="users" />
        <Figure title="Completed" value={count(stats?.total_completed)} about="users" />
        <Figure title="Of those who started" value={rate(stats)} about="completed" />
      </div>
      <Bars
        title="What became of them"
        of="Users"
        by="State"
        bars={
          stats && [
            { label: 'Started', value: stats.total_started },
            { label: 'Completed', value: stats.total_completed },
            { label: 'Skipped', value: stats.total_skipped },
            { label: 'On the way', value: left ?? 0 },
          ]
        }
        error={error}
        onRetry={refetch}
      />
      <Steps steps={(row['steps'] as readonly Step[] | undefined) ?? []} />
    </>
  )
}

const kind: Kind = {
  path: 'onboarding/flows',
  id: 'flowId',
  at: 'onboarding',
  noun: 'flow',
  plural: 'onboarding flows',
  icon: Milestone,
  about: 'Steps for new users, one after the other; the newest active flow is shown',
  empty: 'A flow leads new users through steps: a welcome, a question, a permission.',
  columns: [
    named('onboarding'),
    {
      title: 'Started',
      isNumber: true,
      show: (row) => <StatCell row={row} show={(stats) => count(stats.total_started)} />,
    },
    {
      title: 'Completed',
      isNumber: true,
      show: (row) => <StatCell row={row} show={(stats) => count(stats.total_completed)} />,
    },
    {
      title: 'Skipped',
      isNumber: true,
      show: (row) => <StatCell row={row} show={(stats) => count(stats.total_skipped)} />,
    },
    { title: 'Rate', isNumber: true, show: (row) => <StatCell row={row} show={rate} /> },
    activeColumn,
  ],
  words: {
    name: { title: 'Name', section: 'The flow' },
    is_active: { title: 'Active', section: 'The flow' },
    steps: { title: 'Steps', help: 'In their order', section: 'Steps' },
    'steps.id': { title: 'Key', help: 'Made from its place if empty' },
    'steps.type': { title: 'Kind' },
    'steps.title': { title: 'Title' },
    'steps.description': { title: 'Text' },
    'steps.config': { title: 'Details' },
    'steps.skippable': { title: 'Can be skipped' },
    'steps.segment_id': { title: 'Segment', help: 'Everybody if empty' },
  },
  preset: { steps: [{ type: 'info', title: 'Welcome', skippable: true }], is_active: true },
  Detail,
  facts: (row) => [
    ['Active', row['is_active'] ? 'yes' : 'no'],
    ['Steps', count((row['steps'] as readonly Step[] | undefined)?.length ?? 0)],
  ],
}
export const { List, New, One } = pagesOf(kind)
