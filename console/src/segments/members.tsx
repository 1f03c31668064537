import { ActionIcon, Tooltip } from '@mantine/core'
import { UsersRound, X } from 'lucide-react'
import { addSegmentMembers, removeSegmentMember } from '../../../sdk/src/generated/admin.ts'
import type { Segment } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { AddUser } from '../parts/add_user.tsx'
import { List } from '../parts/list.tsx'
import { Card, useProject } from '../parts/page.tsx'
import { counted, done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { UserCell } from '../users/users.tsx'

/** Who belongs to a segment; to one of chosen users they are added and taken out here. */
export const Members = ({ segment }: { segment: Segment }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const isStatic = segment.kind === 'static'
  const at = { ...path, idOrKey: segment.id }
  const add = async (id: string) => {
    await call(addSegmentMembers, { path: at, body: { user_ids: [id] } })
    await refresh()
  }
  const remove = async (id: string) => {
    await call(removeSegmentMember, { path: { ...at, userId: id } })
    done('Taken out of the segment.', () => add(id))
    await refresh()
  }
  return (
    <Card title={counted(segment.member_count, 'user')} flush actions={isStatic && <AddUser onAdd={add} />}>
      <List<{ app_user_id: string; entered_at: string; app_users: Parameters<typeof UserCell>[0]['user'] }>
        name="Members"
        isInside
        operation="GET /v1/admin/projects/{projectId}/segments/{idOrKey}/members"
        path={{ idOrKey: segment.id }}
        keyOf={(member) => member.app_user_id}
        to={(member) => `users/${member.app_user_id}`}
        columns={[
          { title: 'User', show: (member) => <UserCell user={member.app_users} /> },
          { title: 'Entered', show: (member) => <When at={member.entered_at} /> },
          ...(isStatic
            ? [
                {
                  title: 'Take out',
                  show: (member: { app_user_id: string }) => (
                    <Tooltip label="Take out of the segment">
                      <ActionIcon
                        variant="subtle"
                        color="gray"
                        aria-label="Take out of the segment"
                        onClick={() => remove(member.app_user_id).catch(failed)}
                      >
                        <X size={15} />
                      </ActionIcon>
                    </Tooltip>
                  ),
                },
              ]
            : []),
        ]}
        empty={
          <Empty icon={<UsersRound size={22} />} title="Nobody yet">
            {isStatic
              ? 'Choose users above.'
              : 'Who meets the conditions appears within five minutes, or at once by Count now.'}
          </Empty>
        }
      />
    </Card>
  )
}
