import type { Kind } from '../parts/definitions/kind.ts'
import { periods, sources } from './data.ts'

/** The fields of a board in the words of its form. */
export const words: NonNullable<Kind['words']> = {
  name: { title: 'Name', help: 'What users see', section: 'The board' },
  key: { title: 'Key', help: 'How your app calls it', section: 'The board' },
  description: { section: 'The board' },
  source: { title: 'Scores come from', section: 'Scores', choices: sources },
  'source.value_property': { title: 'Property with the score', help: 'Each event counts 1 without one' },
  'source.event_name': { title: 'Event' },
  'source.filter': { title: 'Only events where' },
  scoring: {
    title: 'Several scores of a user',
    section: 'Scores',
    choices: { best: 'The best', sum: 'Their sum', last: 'The last', count: 'Their number' },
  },
  sort: { title: 'Who leads', section: 'Scores', choices: { desc: 'The highest', asc: 'The lowest' } },
  period: { title: 'Starts again', section: 'Runs', choices: periods },
  timezone: { title: 'Time zone', section: 'Runs' },
  keep_runs: { title: 'Closed runs kept', section: 'Runs' },
  starts_at: { section: 'Runs' },
  ends_at: { section: 'Runs' },
  rewards: { title: 'Rewards', help: 'By rank, given when a run closes', section: 'Rewards' },
  segment_id: { section: 'Limits' },
  client_writable: { title: 'Apps may send scores', section: 'Limits' },
  min_score: { title: 'Lowest score', section: 'Limits' },
  max_score: { title: 'Highest score', section: 'Limits' },
  max_per_minute: { title: 'Scores a minute, at most', section: 'Limits' },
  is_active: { title: 'Active', section: 'Limits' },
}
