import { SegmentedControl } from '@mantine/core'
import { Flame } from 'lucide-react'
import type { Row } from '../api.ts'
import { List as Entries } from '../parts/list.tsx'
import { Card, useAddress } from '../parts/page.tsx'
import { type RowAction, RowActions } from '../parts/row_actions.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { base, pathOf } from './data.ts'

const statuses: Readonly<Record<string, string>> = {
  '': 'All',
  active: 'Active',
  at_risk: 'At risk',
  frozen: 'Frozen',
  broken: 'Broken',
}

const userActions: readonly RowAction[] = [
  {
    title: 'Give freezes',
    operation: `POST ${base}/users/{userId}/freezes`,
    verb: 'Give freezes',
    said: 'The freezes are given.',
    words: { amount: { title: 'Freezes', help: 'Each covers a missed period, up to the most that the streak allows' } },
    preset: () => ({ amount: 1 }),
  },
  {
    title: 'Restore',
    operation: `POST ${base}/users/{userId}/restore`,
    verb: 'Restore the streak',
    said: 'The streak is restored.',
    words: { count: { title: 'Length', help: 'Only for users who come from another app: the length they had there' } },
    isOffered: (row) => row['status'] === 'broken',
  },
  {
    title: 'Pause for some days',
    operation: `POST ${base}/users/{userId}/pause`,
    verb: 'Pause the streak',
    said: 'The streak is paused.',
    words: {
      start: { title: 'First day', help: 'Such as 2026-12-24' },
      end: { title: 'Last day', help: 'At most 30 days at once' },
    },
    isOffered: (row) => row['status'] !== 'broken',
  },
  {
    title: 'Count this period',
    operation: `POST ${base}/users/{userId}/qualify`,
    verb: 'Count it',
    said: 'The period counts.',
    asks: () => 'The current period counts for this user, without an event.',
  },
]

/** Who has a streak, by status, and what can be done for each. */
export const Users = ({ row }: { row: Row }) => {
  const [{ status = '' }, setAddress] = useAddress<'status'>()
  return (
    <Card
      title="Users"
      flush
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Status"
          value={status}
          onChange={(next) => setAddress({ status: next || undefined })}
          data={Object.entries(statuses).map(([value, label]) => ({ value, label }))}
        />
      }
    >
      <Entries<Row>
        name="Users"
        isInside
        operation={`GET ${base}/users`}
        path={pathOf(row)}
        query={{ status: status || undefined }}
        keyOf={(one) => String(one['app_user_id'])}
        columns={[
          {
            title: 'User',
            show: (one) => (
              <UserName id={one['app_user_id'] as string} user={one['app_users'] as { display_name: string } | null} />
            ),
          },
          { title: 'Status', show: (one) => <Status value={String(one['status'])} /> },
          { title: 'Now', isNumber: true, show: (one) => count(one['current_count'] as number) },
          { title: 'Longest', isNumber: true, show: (one) => count(one['longest_count'] as number) },
          { title: 'Last counted', show: (one) => <When at={one['last_qualified_at'] as string | null} /> },
          {
            title: 'Actions',
            isNumber: true,
            show: (one) => (
              <RowActions
                isQuiet
                row={one}
                path={{ ...pathOf(row), userId: String(one['app_user_id']) }}
                actions={userActions}
              />
            ),
          },
        ]}
        empty={
          <Empty icon={<Flame size={22} />} title={status ? 'Nobody at the moment' : 'No streaks yet'}>
            {status ? null : `They begin as users send ${row['qualifying_event']}.`}
          </Empty>
        }
      />
    </Card>
  )
}
