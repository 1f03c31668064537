import { Group, SegmentedControl } from '@mantine/core'
import { UserRoundPlus } from 'lucide-react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { UserFilter } from '../parts/users.tsx'

const kinds = [
  { value: 'accepted', label: 'Friends' },
  { value: 'pending_outgoing', label: 'Asked by them' },
  { value: 'pending_incoming', label: 'Who asked them' },
]

const Friends = ({ user, status }: { user: string; status: string }) => (
  <List<Row>
    name="Friends"
    operation="GET /v1/admin/projects/{projectId}/friends"
    query={{ user_id: user, status }}
    keyOf={(row) => `${row['user_id']} ${row['friend_id']}`}
    columns={[
      {
        title: 'Friend',
        show: (row) => (
          <ProjectLink to={`users/${row['friend_id']}`}>
            {String((row['friend'] as Row | null)?.['display_name'] ?? 'Anonymous user')}
          </ProjectLink>
        ),
      },
      { title: 'Since', show: (row) => <When at={row['since'] as string} /> },
    ]}
    empty={
      <Empty icon={<UserRoundPlus size={22} />} title="Nobody yet">
        Friendships appear as users ask each other.
      </Empty>
    }
  />
)

/** The friends of one user, and who has asked. */
export const Page = () => {
  const [{ user, status = 'accepted' }, setAddress] = useAddress<'user' | 'status'>()
  return (
    <>
      <PageHead title="Friends" about="Who is whose friend, and who has asked" />
      <Group mb="sm" gap="xs">
        <UserFilter placeholder="Whose friends?" />
        <SegmentedControl
          aria-label="Kind"
          data={kinds}
          value={status}
          onChange={(next) => setAddress({ status: next === 'accepted' ? undefined : next })}
        />
      </Group>
      {user ? (
        <Friends user={user} status={status} />
      ) : (
        <div className="card">
          <Empty icon={<UserRoundPlus size={22} />} title="Choose a user">
            Their friends, and who asked whom, stand here.
          </Empty>
        </div>
      )}
    </>
  )
}
