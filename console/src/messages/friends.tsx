import { UserRoundPlus } from 'lucide-react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'

const words: Readonly<Record<string, string>> = { accepted: 'friends', pending: 'asked', blocked: 'blocked' }

/** Who is whose friend, and who has asked. */
export const Page = () => (
  <>
    <PageHead title="Friends" about="Who is whose friend, and who has asked" />
    <List<Row>
      name="Friends"
      operation="GET /v1/admin/projects/{projectId}/friends"
      keyOf={(row) => `${row['user_id']} ${row['friend_id']}`}
      columns={[
        { title: 'User', show: (row) => <UserName id={String(row['user_id'])} /> },
        {
          title: 'Friend',
          show: (row) => (
            <ProjectLink to={`users/${row['friend_id']}`}>
              {String((row['friend'] as Row | null)?.['display_name'] ?? 'Anonymous user')}
            </ProjectLink>
          ),
        },
        { title: 'Status', show: (row) => <Status value={words[String(row['status'])] ?? String(row['status'])} /> },
        { title: 'Since', show: (row) => <When at={row['since'] as string} /> },
      ]}
      empty={
        <Empty icon={<UserRoundPlus size={22} />} title="Nobody yet">
          Friendships appear as users ask each other.
        </Empty>
      }
    />
  </>
)
