import { ActionIcon, Avatar, Button, Group, Menu, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Ellipsis, UserPlus, UsersRound } from 'lucide-react'
import { useState } from 'react'
import { listSegments } from '../../../sdk/src/generated/admin.ts'
import type { User } from '../../../sdk/src/generated/schemas.ts'
import { Pairs } from '../activity/sentences.tsx'
import { call, type Row } from '../api.ts'
import { download } from '../parts/download.ts'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List, SearchBox } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress, useOpen, useProject } from '../parts/page.tsx'
import { count, done, Empty, failed, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { nameOf } from '../parts/users.tsx'

/** A user as the first cell of a list: picture, name, and what else is known. */
export const UserCell = ({
  user,
}: {
  user: {
    readonly id: string
    readonly display_name?: string | null
    readonly email?: string | null
    readonly external_id?: string | null
  }
}) => (
  <Group gap={10} wrap="nowrap">
    <Avatar size={28} name={nameOf(user)} color="initials" aria-hidden />
    <div>
      <ProjectLink to={`users/${user.id}`}>{nameOf(user)}</ProjectLink>
      {/* some lists answer the name alone */}
      {user.email !== undefined && <span className="cell-sub">{user.email ?? user.external_id ?? 'anonymous'}</span>}
    </div>
  </Group>
)

/** Whether a user may do everything: banned, muted for now, or neither. */
const standing = ({ user }: { user: Pick<User, 'is_banned' | 'muted_until'> }) =>
  user.is_banned ? 'banned' : user.muted_until && new Date(user.muted_until) > new Date() ? 'muted' : 'active'
const standings = { banned: 'bad', muted: 'warn', active: 'none' } as const

export const Standing = (props: Parameters<typeof standing>[0]) => {
  const value = standing(props)
  return <Status value={value} meaning={standings[value]} />
}
Standing.words = standing

const SegmentSelect = () => {
  const { path } = useProject()
  const [{ segment }, setAddress] = useAddress<'segment'>()
  const { data } = useQuery({
    queryKey: ['segments', path.projectId],
    queryFn: () => call(listSegments, { path, query: { limit: 100 } }),
  })
  return (
    <Select
      aria-label="Segment"
      placeholder="All segments"
      clearable
      clearButtonProps={{ 'aria-label': 'Clear the segment' }}
      searchable={(data?.total ?? 0) > 8}
      data={(data?.data ?? []).map(({ id, name, member_count }) => ({
        value: id,
        label: `${name} (${count(member_count)})`,
      }))}
      value={segment ?? null}
      onChange={(next) => setAddress({ segment: next ?? undefined })}
      nothingFoundMessage="No such segment"
      w={220}
    />
  )
}

const newWords = {
  external_id: { title: 'External id', help: 'What your own system calls this user' },
  anonymous_id: { isHidden: true },
  properties: { isHidden: true },
  avatar_url: { isHidden: true },
} as const

const Tools = () => {
  const { projectId } = useProject()
  const [, setAddress] = useAddress<'add' | 'tests'>()
  const all = (format: 'csv' | 'ndjson') =>
    download(`/v1/admin/projects/${projectId}/users/export?format=${format}`, `users.${format}`).catch(failed)
  return (
    <>
      <Button leftSection={<UserPlus size={16} />} onClick={() => setAddress({ add: 'yes' }, false)}>
        Add user
      </Button>
      <Menu>
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label="More actions">
            <Ellipsis size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => all('csv')}>Export as CSV</Menu.Item>
          <Menu.Item onClick={() => all('ndjson')}>Export as NDJSON</Menu.Item>
          <Menu.Item onClick={() => setAddress({ tests: 'yes' }, false)}>Add test users</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  )
}

const Drawers = () => {
  const [{ add, tests }, setAddress] = useAddress<'add' | 'tests'>()
  const open = useOpen()
  return (
    <>
      <Drawer opened={add === 'yes'} onClose={() => setAddress({ add: undefined })} title="Add user">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/users"
          verb="Add user"
          words={newWords}
          onCancel={() => setAddress({ add: undefined })}
          onDone={(data) => {
            done(`${nameOf(data as Row)} is there.`)
            void open(`users/${(data as Row)['id']}`)
          }}
        />
      </Drawer>
      <Drawer opened={tests === 'yes'} onClose={() => setAddress({ tests: undefined })} title="Add test users">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/users/cohort"
          verb="Add test users"
          words={{
            count: { title: 'How many', help: 'Anonymous users, at most 1,000' },
            label: { title: 'Label', help: 'To find them again later' },
            properties: { isHidden: true },
            segment_ids: { isHidden: true },
          }}
          preset={{ count: 10 }}
          onCancel={() => setAddress({ tests: undefined })}
          onDone={() => {
            void setAddress({ tests: undefined })
            done('The test users are there.')
          }}
        />
      </Drawer>
    </>
  )
}

/** Every user of the project. */
export const Page = () => {
  const [{ q, segment }, setAddress] = useAddress<'q' | 'segment'>()
  const [total, setTotal] = useState<number>()
  const isFiltered = q !== undefined || segment !== undefined
  const about =
    total === undefined ? ' ' : `${count(total)} ${isFiltered ? 'match' : 'in this project, active last first'}`
  return (
    <>
      <PageHead title="Users" about={about} actions={<Tools />} />
      <Group mb="sm" gap="xs">
        <SearchBox label="Search users" placeholder="Name, mail or external id" />
        <SegmentSelect />
      </Group>
      <List<User>
        name="Users"
        operation="GET /v1/admin/projects/{projectId}/users"
        query={{ search: q, segment_id: segment }}
        onTotal={setTotal}
        to={({ id }) => `users/${id}`}
        columns={[
          { title: 'User', show: (user) => <UserCell user={user} /> },
          { title: 'External id', show: (user) => <span className="mono">{user.external_id ?? '—'}</span> },
          { title: 'Properties', show: (user) => <Pairs row={user.properties as Row} most={2} /> },
          { title: 'Joined', show: (user) => <When at={user.created_at} /> },
          { title: 'Last seen', show: (user) => <When at={user.last_seen_at} none="never" /> },
          { title: 'Status', show: (user) => <Standing user={user} /> },
        ]}
        empty={
          isFiltered ? (
            <Empty
              icon={<UsersRound size={22} />}
              title={q ? `Nobody matches “${q}”` : 'Nobody is in this segment'}
              action={
                <Button variant="default" onClick={() => setAddress({ q: undefined, segment: undefined })}>
                  Show all users
                </Button>
              }
            >
              A part of a name, a mail or an external id finds its user.
            </Empty>
          ) : (
            <Empty
              icon={<UsersRound size={22} />}
              title="No users yet"
              action={<Button onClick={() => setAddress({ q: undefined, segment: undefined })}>Look again</Button>}
            >
              Users appear as your app signs them in.
            </Empty>
          )
        }
      />
      <Drawers />
    </>
  )
}
