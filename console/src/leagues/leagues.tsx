import { Medal } from 'lucide-react'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { base, periods, pointsWords, tiersOf, words } from './data.ts'
import { League } from './league.tsx'

/** Leagues: their list, the form of a new one, and the page of one. */
const kind: Kind = {
  path: 'leagues',
  id: 'idOrKey',
  at: 'leagues',
  noun: 'league',
  plural: 'leagues',
  icon: Medal,
  about: 'Tiers with small cohorts; the best of a cohort go up, the last go down',
  empty: 'Users play a week against some thirty others of their tier. The best go up a tier.',
  columns: [
    named('leagues'),
    { title: 'Points from', show: pointsWords },
    {
      title: 'Tiers',
      show: (row) =>
        tiersOf(row)
          .map(({ name }) => name)
          .join(', '),
    },
    { title: 'A run ends', show: (row) => periods[String(row['period'])] },
    activeColumn,
  ],
  words,
  preset: {
    points: { type: 'xp' },
    period: 'weekly',
    tiers: [
      { key: 'bronze', promote_count: 10 },
      { key: 'silver', promote_count: 7, relegate_count: 5 },
      { key: 'gold', relegate_count: 5 },
    ],
  },
  hasNoFacts: true,
  actions: [
    {
      title: 'Close this run now',
      operation: `POST ${base}/close-run`,
      verb: 'Close the run',
      said: 'The run is closed. Results and rewards follow.',
      asks: () => 'Users move between tiers, and rewards are given. The next run begins at once.',
    },
  ],
  Detail: League,
}
export const { List, New, One } = pagesOf(kind)
