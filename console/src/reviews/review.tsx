import { Button, Stack, Text, Title } from '@mantine/core'
import { Drawer } from '../parts/drawer.tsx'
import { Facts } from '../parts/page.tsx'
import { count, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Subject } from '../parts/subject.tsx'
import { UserName } from '../parts/users.tsx'
import { meanings, type Review } from './data.ts'

/** A subject as the filter of lists has it. */
const subjectOf = ({ subject_type: type, subject_id: id }: Review): string => (type === 'app' ? type : `${type}:${id}`)

type Props = {
  readonly review: Review | undefined
  readonly onClose: () => void
  /** Told of the subject whose other reviews are to be seen. */
  readonly onNarrow: (subject: string) => void
}

/** A review with its whole text and the reply to it. */
export const ReviewDrawer = ({ review, onClose, onNarrow }: Props) => (
  <Drawer opened={review !== undefined} onClose={onClose} title="Review">
    {review && (
      <Stack gap="md">
        {review.title && <Title order={2}>{review.title}</Title>}
        <Text className="review-text">{review.body ?? 'Without text.'}</Text>
        {review.reply && (
          <section aria-label="Reply">
            <Title order={3}>Reply</Title>
            <Text className="review-text">{review.reply.body}</Text>
          </section>
        )}
        <Facts
          facts={[
            ['Stars', `${review.rating} of 5`],
            ['Of', <Subject key="of" type={review.subject_type} id={review.subject_id} />],
            ['By', <UserName key="by" id={review.app_user_id} user={review.user} />],
            ['Status', <Status key="status" value={review.status} meaning={meanings[review.status] ?? 'none'} />],
            ['Helpful', count(review.helpful_count)],
            ['Language', review.locale],
            ['App version', review.app_version],
            ['Written', <When key="at" at={review.created_at} />],
            ['Changed', <When key="changed" at={review.updated_at} />],
            ...(review.reply ? [['Replied', <When key="reply" at={review.reply.at} />] as const] : []),
          ]}
        />
        <Button variant="default" onClick={() => onNarrow(subjectOf(review))}>
          All reviews of it
        </Button>
      </Stack>
    )}
  </Drawer>
)
