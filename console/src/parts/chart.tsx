import { ActionIcon, Group, Skeleton, Text, Title, Tooltip } from '@mantine/core'
import { ChartNoAxesColumn, Table2 } from 'lucide-react'
import { type ReactNode, Suspense, useState } from 'react'
import { lazyPart } from '../outage.ts'
import type { Bar, Drawn, Point } from './drawn.ts'
import { count, dayOf, Failure } from './states.tsx'

export type { Bar, Point } from './drawn.ts'

// half of the bytes of a page that has a chart, and not what it begins with
const Drawing = lazyPart(() => import('./drawing.tsx'), 'Drawing')

type FrameProps = {
  readonly title: string
  readonly error?: unknown
  readonly onRetry?: () => unknown
  readonly height?: number
  readonly children?: ReactNode
}
type Cells = readonly (readonly [string, number])[]

/** A chart in its card, with its states, and the same as a table behind a button. */
const Frame = ({
  title,
  cells,
  heads,
  said,
  drawn,
  error,
  onRetry,
  height = 240,
  children,
}: FrameProps & {
  readonly cells: Cells | undefined
  readonly heads: readonly [string, string]
  /** What the chart shows, for who does not see it. */
  readonly said: string
  readonly drawn: Drawn
}) => {
  const [asTable, setTable] = useState(false)
  const content = () => {
    if (error !== undefined && error !== null) return <Failure error={error} {...(onRetry ? { onRetry } : {})} />
    if (cells === undefined) return <Skeleton h={height} />
    if (cells.length === 0)
      return (
        <Text size="sm" c="dimmed">
          Nothing to show yet
        </Text>
      )
    if (!asTable)
      return (
        <div role="img" aria-label={`${title}: ${said}`}>
          <Suspense fallback={<Skeleton h={height} />}>
            <Drawing {...drawn} height={height} />
          </Suspense>
        </div>
      )
    return (
      <section className="chart-table" style={{ maxHeight: height }} tabIndex={0} aria-label={`${title} as a table`}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{heads[0]}</th>
              <th scope="col" data-number>
                {heads[1]}
              </th>
            </tr>
          </thead>
          <tbody>
            {cells.map(([label, value]) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td data-number>{count(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    )
  }
  const other = asTable ? 'as a chart' : 'as a table'
  return (
    <section className="card" aria-label={title}>
      <Group justify="space-between" className="card-head">
        <Title order={2}>{title}</Title>
        <Tooltip label={other}>
          <ActionIcon variant="subtle" color="gray" aria-label={`${title} ${other}`} onClick={() => setTable(!asTable)}>
            {asTable ? <ChartNoAxesColumn size={16} /> : <Table2 size={16} />}
          </ActionIcon>
        </Tooltip>
      </Group>
      {content()}
      {children}
    </section>
  )
}

const most = (values: readonly number[]) => count(Math.max(0, ...values))

/** Values by day with one colour, the current day marked as unfinished. */
export const Chart = ({
  points,
  kind = 'area',
  ...rest
}: FrameProps & { readonly points: readonly Point[] | undefined; readonly kind?: 'area' | 'bar' }) => (
  <Frame
    {...rest}
    cells={points && [...points].reverse().map(({ date, value }) => [dayOf(date), value])}
    heads={['Day', rest.title]}
    said={`${points?.length ?? 0} days, at most ${most((points ?? []).map(({ value }) => value))}`}
    drawn={{ kind, name: rest.title, points: points ?? [] }}
  />
)

/** Values by kind, such as users by level. `of` says what is counted, `by` what the bars stand for. */
export const Bars = ({
  bars,
  of,
  by = 'Group',
  ...rest
}: FrameProps & { readonly bars: readonly Bar[] | undefined; readonly of: string; readonly by?: string }) => (
  <Frame
    height={220}
    {...rest}
    cells={bars && (bars.every(({ value }) => value === 0) ? [] : bars.map(({ label, value }) => [label, value]))}
    heads={[by, of]}
    said={(bars ?? []).map(({ label, value }) => `${label} ${count(value)}`).join(', ')}
    drawn={{ kind: 'groups', name: of, bars: bars ?? [] }}
  />
)

/** The course of a figure, without axes, for a card. */
export const Spark = ({ values }: { values: readonly number[] }) => {
  const most = Math.max(1, ...values)
  const points = values.map((value, n) => `${n},${(32 - (value / most) * 30).toFixed(2)}`).join(' ')
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${Math.max(1, values.length - 1)} 34`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <polyline points={points} vectorEffect="non-scaling-stroke" />
    </svg>
  )
}

/** One figure with what it was before, and its course. `null` as change where there was nothing before. */
export const Figure = ({
  title,
  value,
  change,
  about,
  course,
  isGoodUp = true,
}: {
  title: string
  value: string
  change?: number | null
  about?: string
  course?: readonly number[]
  isGoodUp?: boolean
}) => (
  <div className="card figure">
    <Text size="sm" c="dimmed">
      {title}
    </Text>
    <Group justify="space-between" align="flex-end" wrap="nowrap" gap="sm">
      <div>
        <Text fz={26} fw={600} lh={1.25}>
          {value}
        </Text>
        <Text size="xs" c={change ? (change > 0 === isGoodUp ? 'var(--good)' : 'var(--bad)') : 'dimmed'}>
          {change === undefined || change === null
            ? (about ?? ' ')
            : `${change > 0 ? '+' : ''}${change} % ${about ?? ''}`}
        </Text>
      </div>
      {course?.some((value) => value > 0) && <Spark values={course} />}
    </Group>
  </div>
)
