import { SegmentedControl } from '@mantine/core'
import { MessageSquareText } from 'lucide-react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress } from '../parts/page.tsx'
import { type RowAction, RowActions } from '../parts/row_actions.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { SummaryCard } from './summary.tsx'

type Review = {
  readonly id: string
  readonly app_user_id: string
  readonly subject_type: string
  readonly rating: number
  readonly title: string | null
  readonly body: string | null
  readonly status: string
  readonly helpful_count: number
  readonly reply: { readonly body: string } | null
  readonly created_at: string
  readonly user: { readonly display_name: string | null }
}

const base = '/v1/admin/projects/{projectId}/reviews/{reviewId}'
const statuses = [
  { value: 'all', label: 'All' },
  { value: 'pending', label: 'Waiting' },
  { value: 'published', label: 'Published' },
  { value: 'hidden', label: 'Hidden' },
  { value: 'rejected', label: 'Rejected' },
]
const meanings = { pending: 'warn', published: 'good', hidden: 'bad', rejected: 'bad' } as const

const move = (title: string, status: string, from: readonly string[], asks: string, said: string): RowAction => ({
  title,
  operation: `PATCH ${base}`,
  verb: title,
  said,
  asks: () => asks,
  isOffered: (row) => from.includes(String(row['status'])),
  body: { status },
})
const actions: readonly RowAction[] = [
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

/** What users think: all reviews of the project, with their sums. */
export const Page = () => {
  const [{ status = 'all' }, setAddress] = useAddress<'status'>()
  return (
    <>
      <PageHead title="Reviews" about="What users think of items, content, each other and the app" />
      <SummaryCard />
      <div className="scroll-x">
        <SegmentedControl
          size="xs"
          my="sm"
          aria-label="Status"
          value={status}
          onChange={(next) => setAddress({ status: next === 'all' ? undefined : next })}
          data={statuses}
        />
      </div>
      <List<Review>
        name="Reviews"
        operation="GET /v1/admin/projects/{projectId}/reviews"
        query={{ status: status === 'all' ? undefined : status }}
        columns={[
          {
            title: 'Review',
            show: ({ title, body, reply }) => (
              <>
                {title ?? body?.slice(0, 80) ?? 'without text'}
                {title && body && <span className="cell-sub">{body.slice(0, 160)}</span>}
                {reply && <span className="cell-sub">Reply: {reply.body.slice(0, 160)}</span>}
              </>
            ),
          },
          { title: 'Stars', show: ({ rating }) => rating, isNumber: true },
          { title: 'Of', show: ({ subject_type }) => subject_type.replace('_', ' ') },
          { title: 'Status', show: (row) => <Status value={row.status} meaning={meanings[row.status as 'hidden']} /> },
          { title: 'Helpful', show: ({ helpful_count }) => count(helpful_count), isNumber: true },
          { title: 'By', show: ({ app_user_id, user }) => <UserName id={app_user_id} user={user} /> },
          { title: 'Written', show: ({ created_at }) => <When at={created_at} /> },
          {
            title: 'Actions',
            show: (row) => (
              <RowActions row={row as unknown as Row} path={{ reviewId: row.id }} actions={actions} isQuiet />
            ),
          },
        ]}
        empty={
          <Empty icon={<MessageSquareText size={22} />} title="No reviews">
            What apps send to PUT /v1/client/reviews stands here.
          </Empty>
        }
      />
    </>
  )
}
