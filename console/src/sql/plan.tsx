import { Badge, Group, Text } from '@mantine/core'
import { Card } from '../parts/page.tsx'
import { count, counted } from '../parts/states.tsx'
import type { Result } from './data.ts'

/** A step of a plan, as EXPLAIN (format json) has it. */
type Step = Readonly<Record<string, unknown>> & { readonly Plans?: readonly Step[] }

const numberOf = (step: Step, key: string): number => Number(step[key] ?? 0)
const isMeasured = (step: Step) => 'Actual Rows' in step

/** What a step itself took: the milliseconds that were measured, or the cost that Postgres expects, without those of the steps below it. */
const whole = (step: Step): number =>
  isMeasured(step)
    ? numberOf(step, 'Actual Total Time') * Math.max(1, numberOf(step, 'Actual Loops'))
    : numberOf(step, 'Total Cost')
const own = (step: Step): number =>
  Math.max(0, whole(step) - (step.Plans ?? []).reduce((sum, below) => sum + whole(below), 0))

const subject = (step: Step): string => {
  const relation = step['Relation Name'] ?? step['CTE Name'] ?? step['Function Name']
  const index = step['Index Name'] ? ` by ${step['Index Name']}` : ''
  const alias = step['Alias'] && step['Alias'] !== relation ? ` ${step['Alias']}` : ''
  return relation ? `${relation}${alias}${index}` : index.trim()
}

const conditions = [
  'Index Cond',
  'Recheck Cond',
  'Hash Cond',
  'Merge Cond',
  'Join Filter',
  'Filter',
  'Sort Key',
  'Group Key',
] as const

const facts = (step: Step): string[] => {
  const found = conditions.flatMap((key) => {
    const value = step[key]
    return value === undefined ? [] : [`${key}: ${Array.isArray(value) ? value.join(', ') : String(value)}`]
  })
  const removed = numberOf(step, 'Rows Removed by Filter')
  if (removed > 0) found.push(`${counted(removed, 'row')} read and left out`)
  const read = numberOf(step, 'Shared Read Blocks')
  if (read > 0) found.push(`${counted(read, 'page')} from disk`)
  if (step['Sort Space Type'] === 'Disk') found.push('sorted on disk')
  return found
}

const rowsOf = (step: Step): string => {
  const expected = numberOf(step, 'Plan Rows')
  if (!isMeasured(step)) return `${count(expected)} rows expected`
  const real = Math.round(numberOf(step, 'Actual Rows') * Math.max(1, numberOf(step, 'Actual Loops')))
  return `${counted(real, 'row')}, ${count(expected)} expected`
}

const Node = ({ step, total, most }: { step: Step; total: number; most: number }) => {
  const mine = own(step)
  const share = total > 0 ? Math.round((mine / total) * 100) : 0
  return (
    <li>
      <div className="sql-step">
        <Group justify="space-between" gap={6} wrap="nowrap" align="flex-start">
          <Text size="sm" className="breakable">
            <b>{String(step['Node Type'])}</b> {subject(step)}
          </Text>
          {mine > 0 && mine === most && (
            <Badge
              color="orange"
              variant="light"
              className="no-shrink"
              styles={{ label: { color: 'var(--mantine-color-text)' } }}
            >
              dearest
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed">
          {rowsOf(step)} ·{' '}
          {isMeasured(step) ? `${mine.toFixed(mine < 10 ? 2 : 0)} ms` : `cost ${count(Math.round(mine))}`} · {share} %
        </Text>
        <div className="meter" aria-hidden>
          <div style={{ width: `${Math.min(100, share)}%` }} />
        </div>
        {facts(step).map((fact) => (
          <Text key={fact} size="xs" className="mono breakable" mt={4}>
            {fact}
          </Text>
        ))}
      </div>
      {step.Plans && (
        <ul>
          {step.Plans.map((below, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps have no names
            <Node key={at} step={below} total={total} most={most} />
          ))}
        </ul>
      )}
    </li>
  )
}

const all = (step: Step): readonly Step[] => [step, ...(step.Plans ?? []).flatMap(all)]

/** How Postgres runs the query, the last step first, as a tree that reads from what comes in to what comes out. */
export const PlanTree = ({ plan }: { plan: NonNullable<Result['plan']> }) => {
  const root = plan['Plan'] as Step
  const total = all(root).reduce((sum, step) => sum + own(step), 0)
  const most = Math.max(...all(root).map(own))
  const times = isMeasured(root)
    ? `Planned in ${numberOf(plan as Step, 'Planning Time').toFixed(1)} ms, run in ${numberOf(plan as Step, 'Execution Time').toFixed(1)} ms`
    : `Not run: expected cost ${count(Math.round(numberOf(root, 'Total Cost')))}`
  return (
    <Card title="Plan">
      <Text size="sm" c="dimmed" mb="xs">
        {times}
      </Text>
      <ul className="sql-plan">
        <Node step={root} total={total} most={most} />
      </ul>
    </Card>
  )
}
