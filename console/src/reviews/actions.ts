import type { RowAction } from '../parts/row_actions.tsx'
import type { Review } from './data.ts'

const base = '/v1/admin/projects/{projectId}/reviews/{reviewId}'

const move = (title: string, status: string, from: readonly string[], asks: string, said: string): RowAction => ({
  title,
  operation: `PATCH ${base}`,
  verb: title,
  said,
  asks: () => asks,
  isOffered: (row) => from.includes(String(row['status'])),
  body: { status },
})

/** What administrators do with a review. */
export const actions: readonly RowAction[] = [
  move('Publish', 'published', ['pending', 'hidden', 'rejected'], 'Users see the review, and it counts.', 'Published.'),
  move('Reject', 'rejected', ['pending'], 'Only its author sees the review.', 'Rejected.'),
  move('Hide', 'hidden', ['published'], 'Users do not see the review any more, and it does not count.', 'Hidden.'),
  {
    title: 'Reply',
    operation: `PUT ${base}/reply`,
    verb: 'Reply',
    said: 'Replied.',
    words: { body: { title: 'Reply' } },
    preset: (row) => ({ body: (row['reply'] as Review['reply'])?.body ?? '' }),
  },
  {
    title: 'Delete the reply',
    operation: `DELETE ${base}/reply`,
    verb: 'Delete the reply',
    said: 'The reply is deleted.',
    asks: () => 'The reply cannot be restored.',
    isOffered: (row) => row['reply'] !== null,
  },
  {
    title: 'Delete',
    operation: `DELETE ${base}`,
    verb: 'Delete the review',
    said: 'The review is deleted.',
    asks: () => 'The review and its votes cannot be restored.',
  },
]
