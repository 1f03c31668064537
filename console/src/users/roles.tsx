import { ActionIcon, Button, Tooltip } from '@mantine/core'
import { KeyRound, Plus, X } from 'lucide-react'
import { useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { changedColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { useProject } from '../parts/page.tsx'
import { counted, done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'

const assign = 'POST /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments'

/** Who has a role, with giving and taking it. */
const Holders = ({ row }: { row: Row }) => {
  const { path: project } = useProject()
  const [isOpen, setOpen] = useState(false)
  const refresh = useRefresh()
  const path = { idOrKey: String(row['id']) }
  const take = async (holder: Row) => {
    const group = holder['group_id'] as string | null
    await callAny('DELETE /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments/{userId}', {
      path: { ...project, ...path, userId: holder['app_user_id'] },
      query: group ? { group_id: group } : {},
    })
    done('The role is taken.', async () => {
      const { app_user_id, group_id, expires_at } = holder
      await callAny(assign, { path: { ...project, ...path }, body: { app_user_id, group_id, expires_at } })
      await refresh()
    })
    await refresh()
  }
  const give = (
    <Button size="xs" variant="default" leftSection={<Plus size={14} />} onClick={() => setOpen(true)}>
      Give to a user
    </Button>
  )
  return (
    <>
      <ListCard<Row>
        title="Users with this role"
        actions={give}
        operation="GET /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments"
        path={path}
        query={{ include: 'user' }}
        keyOf={(holder) => `${holder['app_user_id']} ${holder['group_id']}`}
        columns={[
          {
            title: 'User',
            show: (holder) => (
              <UserName id={holder['app_user_id'] as string} user={holder['user'] as { display_name: string } | null} />
            ),
          },
          { title: 'Where', show: (holder) => (holder['group_id'] ? 'in one group' : 'everywhere') },
          { title: 'Since', show: (holder) => <When at={holder['created_at'] as string} /> },
          { title: 'Ends', show: (holder) => <When at={holder['expires_at'] as string | null} none="never" /> },
          {
            title: 'Take',
            show: (holder) => (
              <Tooltip label="Take the role">
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label="Take the role"
                  onClick={() => take(holder).catch(failed)}
                >
                  <X size={15} />
                </ActionIcon>
              </Tooltip>
            ),
          },
        ]}
        empty={
          <Empty icon={<KeyRound size={22} />} title={row['is_default'] ? 'Everybody has it' : 'Nobody has it yet'} />
        }
      />
      <Drawer opened={isOpen} onClose={() => setOpen(false)} title={`Give ${row['name']}`}>
        <OperationForm
          operation={assign}
          path={path}
          verb="Give role"
          words={{
            app_user_id: { title: 'User' },
            group_id: { isHidden: true },
            expires_at: { title: 'Until', help: 'Without a time it stays' },
          }}
          onCancel={() => setOpen(false)}
          onDone={() => {
            setOpen(false)
            done('The role is given.')
          }}
        />
      </Drawer>
    </>
  )
}

const kind: Kind = {
  path: 'roles',
  id: 'idOrKey',
  at: 'roles',
  noun: 'role',
  plural: 'roles',
  icon: KeyRound,
  about: 'Lists of permissions that users have, for your app to ask for',
  empty: 'A role such as moderator holds permissions; your app asks whether a user has one.',
  columns: [
    named('roles'),
    {
      title: 'Permissions',
      show: (row) => {
        const all = row['permissions'] as readonly string[]
        return all.length > 3 ? (
          counted(all.length, 'permission')
        ) : (
          <span className="mono">{all.join(', ') || '—'}</span>
        )
      },
    },
    {
      title: 'For',
      show: (row) => (
        <Status
          value={row['is_default'] ? 'everybody' : 'chosen users'}
          meaning={row['is_default'] ? 'good' : 'none'}
        />
      ),
    },
    changedColumn,
  ],
  words: {
    name: { title: 'Name' },
    key: { title: 'Key', help: 'What your app asks for' },
    permissions: { title: 'Permissions', help: 'Such as posts:delete. Your app decides what they allow' },
    is_default: { title: 'For everybody', help: 'Every user has it. One role may be so' },
  },
  inUse: {
    code: 'ROLE_IN_USE',
    operation: 'GET /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments',
    refusal: (total) => `Users have this role: ${counted(total, 'assignment')}. It is not deleted.`,
    consent: (total) => `Take it from them: ${counted(total, 'assignment')} end with it`,
  },
  Detail: Holders,
}
export const { List, New, One } = pagesOf(kind)
