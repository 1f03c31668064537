import { Button, Group, SegmentedControl, Select } from '@mantine/core'
import { MessageSquareText, Settings } from 'lucide-react'
import { useState } from 'react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress, useOpen } from '../parts/page.tsx'
import { RowActions } from '../parts/row_actions.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Subject } from '../parts/subject.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'
import { actions } from './actions.ts'
import { meanings, type Review } from './data.ts'
import { ReviewDrawer } from './review.tsx'
import { SummaryCard } from './summary.tsx'

const statuses = [
  { value: 'all', label: 'All' },
  { value: 'pending', label: 'Waiting' },
  { value: 'published', label: 'Published' },
  { value: 'hidden', label: 'Hidden' },
  { value: 'rejected', label: 'Rejected' },
]
const kinds = [
  { value: 'catalog_item', label: 'Items' },
  { value: 'content', label: 'Content' },
  { value: 'user', label: 'Users' },
  { value: 'app', label: 'The app' },
]
const ratings = ['5', '4', '3', '2', '1'].map((value) => ({
  value,
  label: value === '1' ? '1 star' : `${value} stars`,
}))

type Filter = { readonly label: string; readonly data: typeof kinds; readonly name: 'subject' | 'rating' }

const Filter = ({ label, data, name }: Filter) => {
  const [address, setAddress] = useAddress<Filter['name']>()
  const value = String(address[name] ?? '')
  const known = value === '' || data.some((one) => one.value === value)
  return (
    <Select
      aria-label={label}
      placeholder={label}
      clearable
      data={known ? data : [...data, { value, label: 'One of them' }]}
      value={value || null}
      onChange={(next) => setAddress({ [name]: next ?? undefined })}
      w={150}
    />
  )
}

/** What users think: all reviews of the project, with their sums. */
export const Page = () => {
  const [{ status = 'all', subject, rating, user }, setAddress] = useAddress<'status' | 'subject' | 'rating' | 'user'>()
  const [read, setRead] = useState<Review>()
  const open = useOpen()
  const isNarrow = status !== 'all' || Boolean(subject || rating || user)
  return (
    <>
      <PageHead
        title="Reviews"
        about="What users think of items, content, each other and the app"
        actions={
          <Button variant="default" leftSection={<Settings size={16} />} onClick={() => void open('reviews/settings')}>
            Settings
          </Button>
        }
      />
      <SummaryCard subject={subject} />
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
      <Group gap="xs" mb="sm">
        <Filter label="Of anything" data={kinds} name="subject" />
        <Filter label="Any stars" data={ratings} name="rating" />
        <UserFilter placeholder="By anybody" />
      </Group>
      <List<Review>
        name="Reviews"
        operation="GET /v1/admin/projects/{projectId}/reviews"
        query={{ status: status === 'all' ? undefined : status, subject, rating, user_id: user }}
        onOpen={setRead}
        columns={[
          {
            title: 'Review',
            show: (review) => (
              <div>
                <RowButton onClick={() => setRead(review)}>
                  {review.title ?? review.body?.slice(0, 80) ?? 'without text'}
                </RowButton>
                {review.title && review.body && <span className="cell-sub">{review.body.slice(0, 160)}</span>}
                {review.reply && <span className="cell-sub">Reply: {review.reply.body.slice(0, 160)}</span>}
              </div>
            ),
          },
          { title: 'Stars', show: (row) => row.rating, isNumber: true },
          { title: 'Of', show: ({ subject_type, subject_id }) => <Subject type={subject_type} id={subject_id} /> },
          { title: 'Status', show: (row) => <Status value={row.status} meaning={meanings[row.status] ?? 'none'} /> },
          { title: 'Helpful', show: ({ helpful_count }) => count(helpful_count), isNumber: true },
          { title: 'By', show: (row) => <UserName id={row.app_user_id} user={row.user} /> },
          { title: 'Written', show: ({ created_at }) => <When at={created_at} /> },
          {
            title: 'Actions',
            isNumber: true,
            show: (row) => (
              <RowActions row={row as unknown as Row} path={{ reviewId: row.id }} actions={actions} isQuiet />
            ),
          },
        ]}
        empty={
          <Empty icon={<MessageSquareText size={22} />} title={isNarrow ? 'Nothing matches' : 'No reviews yet'}>
            What apps send to PUT /v1/client/reviews stands here.
          </Empty>
        }
      />
      <ReviewDrawer
        review={read}
        onClose={() => setRead(undefined)}
        onNarrow={(next) => {
          setRead(undefined)
          void setAddress({ subject: next })
        }}
      />
    </>
  )
}
