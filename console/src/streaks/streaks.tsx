import { SegmentedControl } from '@mantine/core'
import { Flame } from 'lucide-react'
import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { activeColumn, type Kind, named, pagesOf, type RowAction, RowActions } from '../parts/definitions.tsx'
import { filterWords } from '../parts/form/filter.ts'
import { List as Entries } from '../parts/list.tsx'
import { Card, useAddress } from '../parts/page.tsx'
import { Compared, Simulate } from '../parts/simulate.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Cell, useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'

const base = '/v1/admin/projects/{projectId}/streaks/{idOrKey}'
type Stats = {
  readonly is_estimate: boolean
  readonly margin: number
  readonly active: number
  readonly at_risk: number
  readonly frozen: number
  readonly broken_7d: number
  readonly distribution: readonly { readonly bucket: string; readonly users: number }[]
  readonly freezes_used_7d: number
  readonly saved_by_freeze: number
}
const pathOf = (row: Row) => ({ idOrKey: String(row['id']) })
const useStats = (row: Row) => useAnswer<Stats>(`GET ${base}/stats`, pathOf(row))

const periods: Readonly<Record<string, string>> = { day: 'day', week: 'week', month: 'month' }
const rule = (row: Row) => {
  const times = row['min_count'] === 1 ? '' : `${row['min_count']} × `
  return `${times}${row['qualifying_event']} each ${periods[String(row['period'])]}`
}

const StatCell = ({ row, of }: { row: Row; of: 'active' | 'broken_7d' | 'at_risk' }) => (
  <Cell answer={useStats(row)} show={(stats: Stats) => count(stats[of])} />
)

const statuses: Readonly<Record<string, string>> = {
  '': 'All',
  active: 'Active',
  at_risk: 'At risk',
  frozen: 'Frozen',
  broken: 'Broken',
}

const userActions: readonly RowAction[] = [
  {
    title: 'Give freezes',
    operation: `POST ${base}/users/{userId}/freezes`,
    verb: 'Give freezes',
    said: 'The freezes are given.',
    words: { amount: { title: 'Freezes', help: 'Each covers a missed period, up to the most that the streak allows' } },
    preset: () => ({ amount: 1 }),
  },
  {
    title: 'Restore',
    operation: `POST ${base}/users/{userId}/restore`,
    verb: 'Restore the streak',
    said: 'The streak is restored.',
    words: { count: { title: 'Length', help: 'Only for users who come from another app: the length they had there' } },
    isOffered: (row) => row['status'] === 'broken',
  },
  {
    title: 'Pause for some days',
    operation: `POST ${base}/users/{userId}/pause`,
    verb: 'Pause the streak',
    said: 'The streak is paused.',
    words: {
      start: { title: 'First day', help: 'Such as 2026-12-24' },
      end: { title: 'Last day', help: 'At most 30 days at once' },
    },
    isOffered: (row) => row['status'] !== 'broken',
  },
  {
    title: 'Count this period',
    operation: `POST ${base}/users/{userId}/qualify`,
    verb: 'Count it',
    said: 'The period counts.',
    asks: () => 'The current period counts for this user, without an event.',
  },
]

const Users = ({ row }: { row: Row }) => {
  const [{ status = '' }, setAddress] = useAddress<'status'>()
  return (
    <Card
      title="Users"
      flush
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Status"
          value={status}
          onChange={(next) => setAddress({ status: next || undefined })}
          data={Object.entries(statuses).map(([value, label]) => ({ value, label }))}
        />
      }
    >
      <Entries<Row>
        name="Users"
        isInside
        operation={`GET ${base}/users`}
        path={pathOf(row)}
        query={{ status: status || undefined }}
        keyOf={(one) => String(one['app_user_id'])}
        columns={[
          {
            title: 'User',
            show: (one) => (
              <UserName id={one['app_user_id'] as string} user={one['app_users'] as { display_name: string } | null} />
            ),
          },
          { title: 'Status', show: (one) => <Status value={String(one['status'])} /> },
          { title: 'Now', isNumber: true, show: (one) => count(one['current_count'] as number) },
          { title: 'Longest', isNumber: true, show: (one) => count(one['longest_count'] as number) },
          { title: 'Last counted', show: (one) => <When at={one['last_qualified_at'] as string | null} /> },
          {
            title: 'Actions',
            isNumber: true,
            show: (one) => (
              <RowActions
                isQuiet
                row={one}
                path={{ ...pathOf(row), userId: String(one['app_user_id']) }}
                actions={userActions}
              />
            ),
          },
        ]}
        empty={
          <Empty icon={<Flame size={22} />} title={status ? 'Nobody at the moment' : 'No streaks yet'}>
            {status ? null : `They begin as users send ${row['qualifying_event']}.`}
          </Empty>
        }
      />
    </Card>
  )
}

const Detail = ({ row }: { row: Row }) => {
  const { data: stats, error, refetch } = useStats(row)
  const about = stats?.is_estimate ? `about, ± ${count(stats.margin)}` : undefined
  const figure = (title: string, value: number | undefined, note = about) => (
    <Figure title={title} value={count(value)} {...(note ? { about: note } : {})} />
  )
  return (
    <>
      <div className="cards">
        {figure('Active', stats?.active)}
        {figure('At risk', stats?.at_risk, 'the period ends soon')}
        {figure('Broken', stats?.broken_7d, 'in 7 days')}
        {figure('Freezes used', stats?.freezes_used_7d, 'in 7 days')}
      </div>
      <Bars
        title="How long streaks are"
        of="Users"
        by={`Length in ${periods[String(row['period'])]}s`}
        bars={stats?.distribution.map(({ bucket, users }) => ({ label: bucket, value: users }))}
        error={error}
        onRetry={refetch}
      />
      <Users row={row} />
    </>
  )
}

const words: NonNullable<Kind['words']> = {
  name: { section: 'The streak' },
  key: { section: 'The streak' },
  description: { section: 'The streak' },
  qualifying_event: { title: 'Event', help: 'What users do to keep it', section: 'What counts' },
  event_filter: { title: 'Only events where', section: 'What counts' },
  period: { title: 'Once each', section: 'What counts', choices: { day: 'Day', week: 'Week', month: 'Month' } },
  min_count: { title: 'Events needed', section: 'What counts' },
  week_starts_on: { title: 'Week starts on', help: '1 is Monday, 7 Sunday', section: 'Calendar' },
  timezone_mode: {
    title: 'Whose days',
    section: 'Calendar',
    choices: { user: 'Each user’s own', fixed: 'One time zone' },
  },
  timezone: { title: 'Time zone', help: 'Where everybody has the same', section: 'Calendar' },
  grace_hours: { title: 'Grace', help: 'Hours in which a missed period can still be filled', section: 'Forgiveness' },
  freezes_initial: { title: 'Freezes at the start', section: 'Forgiveness' },
  freezes_max: { title: 'Most freezes', section: 'Forgiveness' },
  freeze_earn_every: { title: 'Earn a freeze every', help: 'Periods; 0 is never', section: 'Forgiveness' },
  at_risk_hours: { title: 'At risk', help: 'Hours before the end of a period', section: 'Forgiveness' },
  restore_window_hours: { title: 'Can be restored', help: 'Hours after it broke', section: 'Forgiveness' },
  milestones: { title: 'Milestones', help: 'Each paid once per streak', section: 'Milestones' },
  'milestones.count': { title: 'Length' },
  'milestones.reward': { title: 'Reward' },
  allow_client_qualify: { title: 'Your app may count a period without an event', section: 'Limits' },
  is_active: { title: 'Active', section: 'Limits' },
}

/** What simulation may change: what the form of a definition has, without what never changes. */
const editable = [
  'qualifying_event',
  'event_filter',
  'period',
  'min_count',
  'week_starts_on',
  'timezone_mode',
  'timezone',
  'grace_hours',
  'freezes_initial',
  'freezes_max',
  'freeze_earn_every',
  'at_risk_hours',
]

/** The same words, of the rules inside of a simulation. */
const ruleWords = Object.fromEntries(
  Object.entries(words).map(([name, { section: _, ...of }]) => [
    `definition.${name}`,
    { ...of, isHidden: !editable.includes(name) },
  ]),
)

const SimulateRules = ({ row }: { row: Row }) => (
  <Simulate
    title={`Simulate “${row['name']}”`}
    about="Counts stored events again under other rules. Nothing is written."
    operation={`POST ${base}/simulate`}
    path={pathOf(row)}
    preset={{ definition: Object.fromEntries(editable.map((name) => [name, row[name]])) }}
    words={{
      definition: { title: 'Rules', help: 'As they are; change what you want to try' },
      since: { title: 'Events since', help: 'All that are stored if empty' },
      ...ruleWords,
    }}
  >
    {(result) => (
      <Card title={`${count(result['users'] as number)} users`}>
        <Compared
          heads={['As it is', 'Simulated']}
          rows={[
            ['Streaks that break', count(result['broken_before'] as number), count(result['broken_after'] as number)],
            [
              'Median length',
              count(result['median_length_before'] as number | null),
              count(result['median_length_after'] as number | null),
            ],
          ]}
        />
      </Card>
    )}
  </Simulate>
)

const kind: Kind = {
  path: 'streaks',
  id: 'idOrKey',
  at: 'streaks',
  noun: 'streak',
  plural: 'streaks',
  icon: Flame,
  about: 'Count how many days, weeks or months in a row users did something',
  empty: 'A streak counts the days in a row on which a user did something, such as a lesson.',
  columns: [
    named('streaks'),
    {
      title: 'Counts',
      show: (row) => (
        <>
          {rule(row)}
          {filterWords(row['event_filter']) && <span className="cell-sub">{filterWords(row['event_filter'])}</span>}
        </>
      ),
    },
    { title: 'Active', isNumber: true, show: (row) => <StatCell row={row} of="active" /> },
    { title: 'At risk', isNumber: true, show: (row) => <StatCell row={row} of="at_risk" /> },
    { title: 'Broken in 7 days', isNumber: true, show: (row) => <StatCell row={row} of="broken_7d" /> },
    activeColumn,
  ],
  preset: { period: 'day', min_count: 1, timezone_mode: 'user' },
  words,
  Detail,
  Buttons: SimulateRules,
}
export const { List, New, One } = pagesOf(kind)
