import { Group } from '@mantine/core'
import { Bell } from 'lucide-react'
import type { Row } from '../api.ts'
import { wordsOf } from '../parts/form/schema.ts'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserFilter } from '../parts/users.tsx'
import { NotConnected } from './connected.tsx'

const Deliveries = ({ user }: { user: string }) => (
  <List<Row>
    name="Deliveries"
    operation="GET /v1/admin/projects/{projectId}/push/deliveries"
    query={{ user_id: user }}
    every={10_000}
    columns={[
      { title: 'Status', show: (row) => <Status value={String(row['status'])} /> },
      {
        title: 'Why',
        show: (row) => wordsOf(String(row['skip_reason'] ?? row['reason'] ?? row['error'] ?? '')) || '—',
      },
      {
        title: 'When',
        show: (row) => <When at={(row['sent_at'] ?? row['due_at'] ?? row['created_at']) as string} />,
      },
    ]}
    empty={<Empty icon={<Bell size={22} />} title="Nothing was sent yet" />}
  />
)

/** The pushes to one user, whatever they came from, with what became of each. */
export const Page = () => {
  const [{ user }] = useAddress<'user'>()
  return (
    <>
      <PageHead title="Deliveries" about="Messages to a user, with what became of each" />
      <NotConnected />
      <Group mb="sm">
        <UserFilter placeholder="To whom?" />
      </Group>
      {user ? (
        <Deliveries user={user} />
      ) : (
        <div className="card">
          <Empty icon={<Bell size={22} />} title="Choose a user">
            What was sent to them, and what was not and why, stands here. All of a campaign stand on its page.
          </Empty>
        </div>
      )}
    </>
  )
}
