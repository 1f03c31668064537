import { Button, Group as Line } from '@mantine/core'
import { UsersRound } from 'lucide-react'
import { useState } from 'react'
import type { Group } from '../../../sdk/src/generated/schemas.ts'
import { List, SearchBox } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

/** Every group that users made. */
export const Page = () => {
  const [{ q }, setAddress] = useAddress<'q'>()
  const [total, setTotal] = useState<number>()
  return (
    <>
      <PageHead
        title="Groups"
        about={total === undefined ? ' ' : `${count(total)} ${q ? 'match' : 'that users made, newest first'}`}
      />
      <Line mb="sm">
        <SearchBox label="Search groups" placeholder="Part of a name" />
      </Line>
      <List<Group>
        name="Groups"
        operation="GET /v1/admin/projects/{projectId}/groups"
        query={{ search: q }}
        onTotal={setTotal}
        to={({ id }) => `groups/${id}`}
        columns={[
          {
            title: 'Name',
            show: (group) => (
              <>
                <ProjectLink to={`groups/${group.id}`}>{group.name}</ProjectLink>
                {group.description && <span className="cell-sub">{group.description}</span>}
              </>
            ),
          },
          {
            title: 'Members',
            isNumber: true,
            show: (group) => `${count(group.member_count)} of ${count(group.max_members)}`,
          },
          { title: 'Open to', show: (group) => <Status value={group.is_public ? 'everybody' : 'invited users'} /> },
          { title: 'Made', show: (group) => <When at={group.created_at} /> },
        ]}
        empty={
          q ? (
            <Empty
              title={`No group matches “${q}”`}
              action={
                <Button variant="default" onClick={() => setAddress({ q: undefined })}>
                  Show all groups
                </Button>
              }
            />
          ) : (
            <Empty
              icon={<UsersRound size={22} />}
              title="No groups yet"
              action={
                <Button component="a" variant="default" href="/docs" target="_blank" rel="noreferrer">
                  How apps make groups
                </Button>
              }
            >
              Users make groups in your app, with <code>POST /v1/client/groups</code>, and join them.
            </Empty>
          )
        }
      />
    </>
  )
}
