import { Trophy } from 'lucide-react'
import type { Row } from '../api.ts'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { count } from '../parts/states.tsx'
import { Cell, useTotal } from '../parts/stats.tsx'
import { Board } from './board.tsx'
import { base, pathOf, periods, rebuild, sourceWords } from './data.ts'
import { ImportScores } from './import.tsx'
import { words } from './words.ts'

const Participants = ({ row }: { row: Row }) => (
  <Cell answer={useTotal(`${base}/entries`, pathOf(row))} show={(total: number) => count(total)} />
)

/** Leaderboards: their list, the form of a new one, and the page of one. */
const kind: Kind = {
  path: 'leaderboards',
  id: 'idOrKey',
  at: 'leaderboards',
  noun: 'leaderboard',
  plural: 'leaderboards',
  icon: Trophy,
  about: 'Rank users by a score, once or in runs of a day, a week or a month',
  empty: 'A board ranks users by what they do: points of a week, the fastest lap, the longest streak.',
  columns: [
    named('leaderboards'),
    { title: 'Scores from', show: sourceWords },
    { title: 'Starts again', show: (row) => periods[String(row['period'])] },
    { title: 'Users in this run', isNumber: true, show: (row) => <Participants row={row} /> },
    activeColumn,
  ],
  words,
  preset: { source: { type: 'event' }, scoring: 'sum', sort: 'desc', period: 'weekly' },
  hasNoFacts: true,
  actions: [
    {
      title: 'Close this run now',
      operation: 'POST /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/close-run',
      verb: 'Close the run',
      said: 'The run is closed. Final ranks and rewards follow.',
      asks: () => 'Ranks become final, and rewards are given. The next run begins with its period.',
    },
    {
      title: 'Count again from events',
      operation: `POST ${rebuild}`,
      verb: 'Count again',
      said: 'The run is counted again in the background.',
      asks: () => 'The current run is counted again from stored events, by the rules as they are now.',
      isOffered: (row) => (row['source'] as Row)['type'] !== 'manual',
    },
  ],
  Buttons: ImportScores,
  Detail: Board,
}
export const { List, New, One } = pagesOf(kind)
