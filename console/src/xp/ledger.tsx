import { Button, Group } from '@mantine/core'
import { Plus, ScrollText } from 'lucide-react'
import type { Row } from '../api.ts'
import { Days } from '../parts/days.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { ReferenceName } from '../parts/form/reference_input.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress } from '../parts/page.tsx'
import { count, done, Empty, When } from '../parts/states.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'

const sources: Readonly<Record<string, string>> = {
  event: 'Event',
  achievement: 'Achievement',
  challenge: 'Challenge',
  league: 'League',
  reward: 'Reward',
  admin: 'By hand',
  merge: 'Merged users',
}

/** What the XP came from: its rule, its achievement, its reason. */
const From = ({ row }: { row: Row }) => (
  <>
    {sources[String(row['source'])] ?? String(row['source'])}
    <span className="cell-sub">
      {row['source'] === 'achievement' ? (
        <ReferenceName reference="achievement_id" value={String(row['source_id'])} />
      ) : (
        String(row['rule_key'] ?? row['reason'] ?? '')
      )}
    </span>
  </>
)

/** Every award and deduction of XP. */
export const Page = () => {
  const [{ user, give }, setAddress] = useAddress<'user' | 'give'>()
  const start = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ give: 'yes' }, false)}>
      Give XP
    </Button>
  )
  return (
    <>
      <PageHead title="XP ledger" about="Every award of XP, and who got it" actions={start} />
      <Days
        operation="GET /v1/admin/projects/{projectId}/xp/daily"
        charts={[
          ['points', 'XP given each day'],
          ['users', 'Users who got XP each day'],
        ]}
      />
      <Group my="sm">
        <UserFilter />
      </Group>
      <List<Row>
        name="XP ledger"
        operation="GET /v1/admin/projects/{projectId}/xp/transactions"
        query={{ user_id: user, include: 'user' }}
        columns={[
          {
            title: 'User',
            show: (row) => (
              <UserName id={row['app_user_id'] as string} user={row['user'] as { display_name: string } | null} />
            ),
          },
          { title: 'From', show: (row) => <From row={row} /> },
          {
            title: 'XP',
            isNumber: true,
            show: (row) => `${Number(row['amount']) > 0 ? '+' : ''}${count(row['amount'] as number)}`,
          },
          { title: 'Total after', isNumber: true, show: (row) => count(row['total_after'] as number) },
          { title: 'When', show: (row) => <When at={row['created_at'] as string} /> },
        ]}
        empty={
          <Empty icon={<ScrollText size={22} />} title={user ? 'This user has no XP yet' : 'No XP yet'} action={start}>
            Rules award it as events come.
          </Empty>
        }
      />
      <Drawer opened={give === 'yes'} onClose={() => setAddress({ give: undefined })} title="Give XP">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/xp/grant"
          {...(user ? { preset: { app_user_id: user } } : {})}
          words={{
            app_user_id: { title: 'User' },
            amount: { title: 'XP', help: 'A negative number takes XP away' },
            reason: { title: 'Reason', help: 'For the ledger' },
          }}
          verb="Give XP"
          onCancel={() => setAddress({ give: undefined })}
          onDone={() => {
            void setAddress({ give: undefined })
            done('The XP is given.')
          }}
        />
      </Drawer>
    </>
  )
}
