import type { Row } from '../api.ts'
import { Card } from '../parts/page.tsx'
import { Compared, Simulate } from '../parts/simulate.tsx'
import { count } from '../parts/states.tsx'
import { base, pathOf } from './data.ts'
import { words } from './words.ts'

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

/** How many streaks would break under other rules. */
export const SimulateRules = ({ row }: { row: Row }) => (
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
