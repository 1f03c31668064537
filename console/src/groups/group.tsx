import { ActionIcon, Button, Menu, Select, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { useState } from 'react'
import {
  addGroupMember,
  adminDeleteGroup,
  adminGetGroup,
  adminRemoveGroupMember,
  adminUpdateGroupMember,
} from '../../../sdk/src/generated/admin.ts'
import type { GroupMember } from '../../../sdk/src/generated/schemas.ts'
import { call, type Row } from '../api.ts'
import { AddUser } from '../parts/add_user.tsx'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { More } from '../parts/more.tsx'
import { Card, Facts, PageHead, useAddress, useOpen, useParam, useProject } from '../parts/page.tsx'
import { counted, done, Empty, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'
import { nameOf } from '../parts/users.tsx'
import { UserCell } from '../users/users.tsx'

const ranks = ['owner', 'admin', 'member', 'viewer'] as const
type Rank = (typeof ranks)[number]

const Members = ({ id, count }: { id: string; count: number }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const at = { ...path, groupId: id }
  const add = async (app_user_id: string, role: Exclude<Rank, 'owner'> = 'member') => {
    await call(addGroupMember, { path: at, body: { app_user_id, role } })
    await refresh()
  }
  const setRank = async (member: GroupMember, role: Rank) => {
    const before = member.role as Rank
    const write = async (next: Rank) => {
      await call(adminUpdateGroupMember, { path: { ...at, userId: member.app_user_id }, body: { role: next } })
      await refresh()
    }
    await write(role)
    const said = `${nameOf(member.app_users)} is ${role} now.`
    // the former owner became an admin: there is no single step back
    if (role === 'owner') done(said)
    else done(said, () => write(before))
  }
  const remove = async (member: GroupMember) => {
    await call(adminRemoveGroupMember, { path: { ...at, userId: member.app_user_id } })
    const role = member.role as Rank
    const said = `${nameOf(member.app_users)} is out of the group.`
    if (role === 'owner') done(`${said} Another member leads it now.`)
    else done(said, () => add(member.app_user_id, role))
    await refresh()
  }
  return (
    <Card title={counted(count, 'member')} flush actions={<AddUser onAdd={add} />}>
      <List<GroupMember>
        name="Members"
        isInside
        operation="GET /v1/admin/projects/{projectId}/groups/{groupId}/members"
        path={{ groupId: id }}
        keyOf={(member) => member.app_user_id}
        to={(member) => `users/${member.app_user_id}`}
        columns={[
          { title: 'User', show: (member) => <UserCell user={{ ...member.app_users, id: member.app_user_id }} /> },
          {
            title: 'Rank',
            show: (member) => (
              <Select
                size="xs"
                w={110}
                aria-label={`Rank of ${nameOf(member.app_users)}`}
                data={[...ranks]}
                value={member.role}
                allowDeselect={false}
                disabled={member.role === 'owner'}
                onChange={(role) => role && role !== member.role && setRank(member, role as Rank).catch(failed)}
              />
            ),
          },
          { title: 'Joined', show: (member) => <When at={member.joined_at} /> },
          {
            title: 'Remove',
            show: (member) => (
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${nameOf(member.app_users)}`}
                onClick={() => remove(member).catch(failed)}
              >
                <X size={15} />
              </ActionIcon>
            ),
          },
        ]}
        empty={<Empty title="Nobody is in it" />}
      />
    </Card>
  )
}

/** One group: its members, and what it is. */
export const Page = () => {
  const { path } = useProject()
  const open = useOpen()
  const id = useParam('id')
  const [{ edit }, setAddress] = useAddress<'edit'>()
  const [isDeleting, setDeleting] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ['group', path.projectId, id],
    queryFn: () => call(adminGetGroup, { path: { ...path, groupId: id } }),
  })
  const back = { title: 'Groups', to: 'groups' }
  const group = data?.data
  if (!group)
    return (
      <>
        <PageHead title="Group" back={back} />
        {error ? <Failure error={error} onRetry={refetch} /> : <Skeleton h={320} />}
      </>
    )
  return (
    <>
      <PageHead
        title={group.name}
        about={group.description ?? undefined}
        back={back}
        actions={
          <>
            <Button variant="default" onClick={() => setAddress({ edit: 'yes' }, false)}>
              Edit
            </Button>
            <More>
              <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                Delete group
              </Menu.Item>
            </More>
          </>
        }
      />
      <div className="split">
        <div className="column">
          <Members id={id} count={group.member_count} />
        </div>
        <Card title="Facts">
          <Facts
            facts={[
              ['Id', <Id key="id" value={group.id} />],
              ['Open to', <Status key="open" value={group.is_public ? 'everybody' : 'invited users'} meaning="none" />],
              ['Room for', counted(group.max_members, 'member')],
              ['Made', <When key="made" at={group.created_at} />],
              ['Changed', <When key="changed" at={group.updated_at} />],
            ]}
          />
        </Card>
      </div>
      <Drawer opened={edit === 'yes'} onClose={() => setAddress({ edit: undefined })} title={`Edit ${group.name}`}>
        <OperationForm
          operation="PATCH /v1/admin/projects/{projectId}/groups/{groupId}"
          path={{ groupId: id }}
          row={group as unknown as Row}
          verb="Save"
          words={{
            is_public: { title: 'Open to everybody', help: 'Found by its name, and joined without an invite' },
            max_members: { title: 'Room for', help: 'Members at most' },
            avatar_url: { title: 'Picture', help: 'Any address' },
          }}
          onCancel={() => setAddress({ edit: undefined })}
          onDone={() => {
            void setAddress({ edit: undefined })
            done('Saved.')
          }}
        />
      </Drawer>
      <Confirm
        title="Delete group"
        verb="Delete group"
        said={`“${group.name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed={group.name}
        run={() => call(adminDeleteGroup, { path: { ...path, groupId: id } })}
        after={() => void open('groups')}
      >
        Its {counted(group.member_count, 'member')} stay as users. Rows of collections that the group owns go with it.
      </Confirm>
    </>
  )
}
