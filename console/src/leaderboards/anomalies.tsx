import type { Row } from '../api.ts'
import { ListCard } from '../parts/list_card.tsx'
import { count, Empty } from '../parts/states.tsx'
import { UserName } from '../parts/users.tsx'
import { base, pathOf } from './data.ts'

/** Scores far beyond the others, with the reason. */
export const Anomalies = ({ row }: { row: Row }) => (
  <ListCard<Row>
    title="Scores that stand out"
    name="Anomalies"
    operation={`${base}/anomalies`}
    path={pathOf(row)}
    keyOf={(one) => String((one['entry'] as Row)['app_user_id'])}
    columns={[
      {
        title: 'User',
        show: (one) => {
          const entry = one['entry'] as Row
          return <UserName id={entry['app_user_id'] as string} user={entry['user'] as { display_name: string }} />
        },
      },
      { title: 'Score', isNumber: true, show: (one) => count((one['entry'] as Row)['score'] as number) },
      { title: 'Rank', isNumber: true, show: (one) => count((one['entry'] as Row)['rank'] as number) },
      {
        title: 'Why',
        show: (one) =>
          (one['reasons'] as readonly string[])
            .map((reason) =>
              reason === 'score'
                ? `the score is ${count(Math.round(Number(one['score_sigmas'])))} times the usual spread away`
                : `one jump of ${count(Math.round(Number(one['jump_sigmas'])))} times the usual`,
            )
            .join(', '),
      },
    ]}
    empty={
      <Empty title="Nothing stands out">
        Scores that lie far beyond the others, or came in one jump of that size, are listed here. It needs ten users.
      </Empty>
    }
  />
)
