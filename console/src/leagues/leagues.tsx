import { Medal } from 'lucide-react'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { base, periods, pointsWords, tiersOf } from './data.ts'
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
  words: {
    name: { title: 'Name', help: 'What users see', section: 'The league' },
    key: { title: 'Key', help: 'How your app calls it', section: 'The league' },
    tiers: { title: 'Tiers', help: 'From the lowest to the highest', section: 'Tiers' },
    cohort_size: { title: 'Users in a cohort', section: 'Tiers' },
    inactive_relegates: { title: 'Without points go down', section: 'Tiers' },
    points: { title: 'Points come from', section: 'Points', choices: { xp: 'XP', event: 'Events' } },
    'points.event_name': { title: 'Event' },
    'points.value_property': { title: 'Property with the points', help: 'Each event counts 1 without one' },
    min_points_to_join: { title: 'Points to join', section: 'Points' },
    period: { title: 'A run ends', section: 'Runs', choices: periods },
    timezone: { title: 'Time zone', section: 'Runs' },
    rewards: { title: 'Rewards', help: 'By tier and rank, given when a run closes', section: 'Rewards' },
    is_active: { title: 'Active', section: 'Limits' },
  },
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
