import { Flame } from 'lucide-react'
import type { Row } from '../api.ts'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { filterWords } from '../parts/form/filter.ts'
import { count } from '../parts/states.tsx'
import { Cell } from '../parts/stats.tsx'
import { rule, type Stats, useStats } from './data.ts'
import { Detail } from './detail.tsx'
import { SimulateRules } from './simulate.tsx'
import { words } from './words.ts'

const StatCell = ({ row, of }: { row: Row; of: 'active' | 'broken_7d' | 'at_risk' }) => (
  <Cell answer={useStats(row)} show={(stats: Stats) => count(stats[of])} />
)

/** Streaks: their list, the form of a new one, and the page of one. */
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
