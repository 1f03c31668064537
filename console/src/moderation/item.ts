import type { Row } from '../api.ts'

/** An item of the queue. */
export type Item = {
  readonly id: string
  readonly subject_type: string
  readonly subject_id: string
  readonly subject_user_id: string | null
  readonly user?: { readonly display_name: string | null } | null
  readonly snapshot: Row
  readonly source: 'report' | 'rule'
  readonly rule_id: string | null
  readonly reasons: Readonly<Record<string, number>>
  readonly report_count: number
  readonly priority: number
  readonly status: string
  readonly is_hidden: boolean
  readonly note: string | null
  readonly resolved_at: string | null
  readonly created_at: string
}

export const statuses = [
  { value: 'pending', label: 'Waiting' },
  { value: 'escalated', label: 'Escalated' },
  { value: 'approved', label: 'Approved' },
  { value: 'rejected', label: 'Rejected' },
] as const

/** Whether a verdict can still be given. */
export const isOpen = ({ status }: Item): boolean => status === 'pending' || status === 'escalated'

/** Whether it can be left to somebody else: once. */
export const canEscalate = ({ status }: Item): boolean => status === 'pending'

/** What was written, as people read it. */
export const textOf = ({ subject_type, snapshot }: Item): string => {
  // a rule may have caught either part of a review
  if (subject_type === 'review')
    return [snapshot['title'], snapshot['body']].filter(Boolean).join('\n') || 'without text'
  const text = snapshot['text'] ?? snapshot['body'] ?? snapshot['display_name'] ?? snapshot['name'] ?? snapshot['title']
  if (typeof text === 'string' && text !== '') return text
  const found = Object.values(snapshot).find((value) => typeof value === 'string' && value !== '')
  return typeof found === 'string' ? found : 'without text'
}

/** `feed_entry` as people say it. */
export const spaced = (name: string): string => name.replace(/_/g, ' ')

/** Why an item is in the queue. */
export const reasonsOf = ({ reasons, source }: Item): string =>
  Object.entries(reasons)
    .map(([reason, times]) => `${spaced(reason)}${times > 1 ? ` × ${times}` : ''}`)
    .join(', ') || (source === 'rule' ? 'caught by a rule' : 'reported')

/** What a rejection does to what was written, by the kind of it. */
const removals: Readonly<Record<string, string>> = {
  user: 'replaces the name by a made one and takes the picture away',
  group: 'takes the name, the description and the picture away',
  message: 'deletes the message',
  feed_entry: 'deletes the entry',
  media: 'deletes the file',
  review: 'keeps it from users and out of the sums',
  collection_row: 'deletes the row',
}

/** What either verdict means for an item, in a sentence. */
export const meaningOf = ({ subject_type, is_hidden }: Item): string =>
  `Approve ${is_hidden ? (subject_type === 'review' ? 'publishes it' : 'shows it again') : 'leaves it as it is'}; Reject ${removals[subject_type] ?? 'removes it'}.`
