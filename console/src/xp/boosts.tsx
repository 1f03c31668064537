import { Rocket } from 'lucide-react'
import type { Row } from '../api.ts'
import { named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { ReferenceName } from '../parts/form/reference_input.tsx'
import { When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

const stateOf = (row: Row): string => {
  if (row['is_active'] === false) return 'paused'
  const now = Date.now()
  if (new Date(String(row['starts_at'])).getTime() > now) return 'scheduled'
  return row['ends_at'] !== null && new Date(String(row['ends_at'])).getTime() <= now ? 'over' : 'live'
}

const kind: Kind = {
  path: 'xp/boosts',
  id: 'idOrKey',
  at: 'xp/boosts',
  noun: 'boost',
  plural: 'boosts',
  icon: Rocket,
  about: 'Multiply the XP of rules for a time',
  empty: 'A boost doubles the XP of a weekend, for all rules or for some, for everybody or for a segment.',
  columns: [
    named('xp/boosts'),
    { title: 'Times', isNumber: true, show: (row) => `× ${row['multiplier']}` },
    { title: 'From', show: (row) => <When at={row['starts_at'] as string} /> },
    { title: 'Until', show: (row) => <When at={row['ends_at'] as string | null} none="open" /> },
    {
      title: 'For',
      show: (row) => {
        const rules = row['rule_keys'] as readonly string[] | null
        return (
          <>
            {rules?.join(', ') ?? 'all rules'}
            {row['segment_id'] ? (
              <span className="cell-sub">
                <ReferenceName reference="segment_id" value={String(row['segment_id'])} />
              </span>
            ) : null}
          </>
        )
      },
    },
    { title: 'Status', show: (row) => <Status value={stateOf(row)} /> },
  ],
  words: {
    multiplier: { title: 'Times', help: 'From 0.1 to 100' },
    starts_at: { title: 'From', help: 'At once if empty' },
    ends_at: { title: 'Until', help: 'Open if empty' },
    rule_keys: { title: 'Rules', help: 'All of them if empty' },
    segment_id: { title: 'Segment', help: 'Everybody if empty' },
    is_active: { title: 'Active' },
  },
  preset: { multiplier: 2 },
}
export const { List, New, One } = pagesOf(kind)
