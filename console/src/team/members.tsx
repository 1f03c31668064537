import { Button, Select, Stack } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Mail, UserPlus, UsersRound } from 'lucide-react'
import { useState } from 'react'
import {
  deleteOrganizationInvite,
  deleteOrganizationMember,
  getProject,
  updateOrganizationMember,
} from '../../../sdk/src/generated/admin.ts'
import type { OrganizationInvite, OrganizationMember } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { Card, PageHead, useProject } from '../parts/page.tsx'
import { done, Empty, Failure, failed, Rows, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

const roles = [
  { value: 'viewer', label: 'Viewer: reads' },
  { value: 'developer', label: 'Developer: builds' },
  { value: 'admin', label: 'Admin: keys and members' },
  { value: 'owner', label: 'Owner: everything' },
]

/** Members of the project's organization and who is invited. */
export const Team = ({ orgId }: { orgId: string }) => {
  const [left, setLeft] = useState<OrganizationMember>()
  const [withdrawn, setWithdrawn] = useState<OrganizationInvite>()
  const refresh = useRefresh()
  const change = useMutation({
    mutationFn: ({ developerId, role }: { developerId: string; role: string }) =>
      call(updateOrganizationMember, { path: { orgId, developerId }, body: { role: role as 'viewer' } }),
    onSuccess: async () => {
      done('The role is changed.')
      await refresh()
    },
    onError: failed,
  })
  return (
    <Stack gap="md">
      <List<OrganizationMember>
        name="Members"
        operation="GET /v1/admin/organizations/{orgId}/members"
        path={{ orgId }}
        keyOf={(member) => member.developer_id}
        columns={[
          {
            title: 'Member',
            show: (member) => (
              <>
                {member.name ?? member.email}
                {member.name && <span className="cell-sub">{member.email}</span>}
              </>
            ),
          },
          {
            title: 'Role',
            show: (member) => (
              <Select
                aria-label={`Role of ${member.email}`}
                size="xs"
                w={210}
                allowDeselect={false}
                data={roles}
                value={member.role}
                onChange={(role) => role && change.mutate({ developerId: member.developer_id, role })}
              />
            ),
          },
          { title: 'Since', show: (member) => <When at={member.joined_at} /> },
          {
            title: 'Actions',
            show: (member) => (
              <Button size="compact-sm" variant="default" onClick={() => setLeft(member)}>
                Remove
              </Button>
            ),
          },
        ]}
        empty={<Empty icon={<UsersRound size={22} />} title="Nobody" />}
      />
      <Card title="Invites" flush>
        <List<OrganizationInvite>
          name="Invites"
          isInside
          operation="GET /v1/admin/organizations/{orgId}/invites"
          path={{ orgId }}
          columns={[
            { title: 'Address', show: (invite) => invite.email },
            { title: 'Role', show: (invite) => invite.role },
            { title: 'Status', show: (invite) => <Status value={invite.status} /> },
            { title: 'Ends', show: (invite) => invite.status === 'pending' && <When at={invite.expires_at} /> },
            {
              title: 'Actions',
              show: (invite) =>
                invite.status === 'pending' && (
                  <Button size="compact-sm" variant="default" onClick={() => setWithdrawn(invite)}>
                    Withdraw
                  </Button>
                ),
            },
          ]}
          empty={
            <Empty icon={<Mail size={22} />} title="No invites">
              Who is invited gets a mail with a link.
            </Empty>
          }
        />
      </Card>
      <Confirm
        title="Remove the member"
        verb="Remove"
        said={`${left?.email} is removed.`}
        isOpen={left !== undefined}
        onClose={() => setLeft(undefined)}
        run={() => call(deleteOrganizationMember, { path: { orgId, developerId: left?.developer_id ?? '' } })}
      >
        {left?.email} loses every project of this organization at once.
      </Confirm>
      <Confirm
        title="Withdraw the invite"
        verb="Withdraw"
        said="The invite is withdrawn."
        isOpen={withdrawn !== undefined}
        onClose={() => setWithdrawn(undefined)}
        run={() => call(deleteOrganizationInvite, { path: { orgId, inviteId: withdrawn?.id ?? '' } })}
      >
        The link in the mail to {withdrawn?.email} stops working.
      </Confirm>
    </Stack>
  )
}

/** A button that invites somebody by mail. */
export const Invite = ({ orgId }: { orgId: string }) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button leftSection={<UserPlus size={16} />} onClick={() => setOpen(true)}>
        Invite
      </Button>
      <Drawer opened={isOpen} onClose={() => setOpen(false)} title="Invite somebody">
        <OperationForm
          operation="POST /v1/admin/organizations/{orgId}/invites"
          path={{ orgId }}
          verb="Send the invite"
          preset={{ role: 'developer' }}
          words={{ role: { choices: { viewer: 'Viewer', developer: 'Developer', admin: 'Admin', owner: 'Owner' } } }}
          onCancel={() => setOpen(false)}
          onDone={() => {
            setOpen(false)
            done('The invite is on its way.')
          }}
        />
      </Drawer>
    </>
  )
}

export const Page = () => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['project', path.projectId],
    queryFn: () => call(getProject, { path }),
  })
  const orgId = data?.data.organization_id
  return (
    <>
      <PageHead
        title="Members"
        about="Who works on this project: the members of its organization"
        actions={
          orgId && (
            <>
              <Button variant="default" component={Link} to={`/organizations/${orgId}` as never}>
                The organization
              </Button>
              <Invite orgId={orgId} />
            </>
          )
        }
      />
      {orgId ? <Team orgId={orgId} /> : error ? <Failure error={error} onRetry={refetch} /> : <Rows count={3} />}
    </>
  )
}
