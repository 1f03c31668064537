import { ActionIcon, Button, Menu } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Ban, Coins, Ellipsis, ShieldCheck } from 'lucide-react'
import { Suspense, useState } from 'react'
import { getProject, updateUser } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { lazyPart } from '../outage.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { download } from '../parts/download.ts'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { useProject } from '../parts/page.tsx'
import { done, failed, useRefresh } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import { Delete, Reset, SignInAs } from './danger.tsx'
import { GiveCurrency, GiveXp } from './give.tsx'
import { GiveEntitlement, GiveRole } from './give_access.tsx'
import { GiveItem } from './give_item.tsx'
import type { DialogProps, FullUser } from './one_user.ts'

const Message = lazyPart(() => import('./message.tsx'), 'Message')

type Dialog =
  | 'currency'
  | 'xp'
  | 'entitlement'
  | 'item'
  | 'role'
  | 'message'
  | 'ban'
  | 'edit'
  | 'session'
  | 'reset'
  | 'delete'

const editWords = {
  display_name: { title: 'Name' },
  external_id: { title: 'External id', help: 'What your own system calls this user' },
  email: { title: 'Mail', help: 'A changed mail is not verified' },
  phone: { title: 'Phone', help: 'A changed phone number is not verified' },
  avatar_url: { title: 'Picture', help: 'Any address' },
  properties: { isHidden: true },
  is_banned: { isHidden: true },
  muted_until: { isHidden: true },
} as const

const BanUser = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const write = (is_banned: boolean) => call(updateUser, { path: { ...path, userId: user.id }, body: { is_banned } })
  return (
    <Confirm
      title={`Ban ${nameOf(user)}?`}
      verb="Ban"
      said={`${nameOf(user)} is banned.`}
      isOpen={isOpen}
      onClose={onClose}
      run={() => write(true)}
      undo={() => write(false)}
    >
      All sessions end at once, and nothing can be written for this user until the ban is lifted. What the user has
      stays.
    </Confirm>
  )
}

/** What can be done about a user: the usual as buttons, the rest in a menu. */
export const Actions = ({
  user,
  balances,
}: {
  user: FullUser
  balances: Readonly<Record<string, number>> | undefined
}) => {
  const { projectId, path } = useProject()
  const [dialog, setDialog] = useState<Dialog>()
  const [isOpen, setOpen] = useState(false)
  const refresh = useRefresh()
  const project = useQuery({ queryKey: ['project', projectId], queryFn: () => call(getProject, { path }) })
  const isTest = project.data?.data.environment === 'development'
  const open = (next: Dialog) => {
    setDialog(next)
    setOpen(true)
  }
  // the dialog stays mounted while it closes, so that the focus comes back to its button
  const common = (name: Dialog) => ({ user, isOpen: isOpen && dialog === name, onClose: () => setOpen(false) })
  const userPath = { ...path, userId: user.id }
  const change = async (body: { is_banned?: boolean; muted_until?: string | null }, said: string) => {
    const { is_banned, muted_until } = user
    const before = body.is_banned === undefined ? { muted_until } : { is_banned }
    await call(updateUser, { path: userPath, body })
    done(said, async () => {
      await call(updateUser, { path: userPath, body: before })
      await refresh()
    })
    await refresh()
  }
  const isMuted = user.muted_until !== null && new Date(user.muted_until) > new Date()
  const mute = (hours: number | null) =>
    change(
      { muted_until: hours === null ? null : new Date(Date.now() + hours * 36e5).toISOString() },
      hours === null ? `${nameOf(user)} may write again.` : `${nameOf(user)} is muted.`,
    ).catch(failed)
  return (
    <>
      <Button leftSection={<Coins size={16} />} variant="default" onClick={() => open('currency')}>
        Give currency
      </Button>
      {user.is_banned ? (
        <Button
          variant="default"
          leftSection={<ShieldCheck size={16} />}
          onClick={() => change({ is_banned: false }, 'The ban is lifted.').catch(failed)}
        >
          Lift the ban
        </Button>
      ) : (
        <Button variant="default" leftSection={<Ban size={16} />} onClick={() => open('ban')}>
          Ban
        </Button>
      )}
      <Menu>
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label="More actions">
            <Ellipsis size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => open('edit')}>Edit</Menu.Item>
          <Menu.Item onClick={() => open('message')}>Send a message</Menu.Item>
          <Menu.Divider />
          <Menu.Label>Give</Menu.Label>
          <Menu.Item onClick={() => open('xp')}>XP</Menu.Item>
          <Menu.Item onClick={() => open('entitlement')}>Entitlement</Menu.Item>
          <Menu.Item onClick={() => open('item')}>Item</Menu.Item>
          <Menu.Item onClick={() => open('role')}>Role</Menu.Item>
          <Menu.Divider />
          {isMuted ? (
            <Menu.Item onClick={() => mute(null)}>Let write again</Menu.Item>
          ) : (
            <>
              <Menu.Item onClick={() => mute(24)}>Mute for a day</Menu.Item>
              <Menu.Item onClick={() => mute(168)}>Mute for a week</Menu.Item>
            </>
          )}
          <Menu.Divider />
          <Menu.Item disabled={!isTest} onClick={() => open('session')}>
            {isTest ? 'Sign in as this user' : 'Sign in as this user (development only)'}
          </Menu.Item>
          <Menu.Item
            onClick={() =>
              download(`/v1/admin/projects/${projectId}/users/${user.id}/export`, `${user.id}.ndjson`).catch(failed)
            }
          >
            Export all data
          </Menu.Item>
          <Menu.Item
            onClick={() =>
              download(
                `/v1/admin/projects/${projectId}/users/${user.id}/events/export?format=csv`,
                `${user.id}-events.csv`,
              ).catch(failed)
            }
          >
            Export events as CSV
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item c="var(--bad)" onClick={() => open('reset')}>
            Reset
          </Menu.Item>
          <Menu.Item c="var(--bad)" onClick={() => open('delete')}>
            Delete user
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <GiveCurrency {...common('currency')} balances={balances} />
      <GiveXp {...common('xp')} />
      <GiveEntitlement {...common('entitlement')} />
      <GiveItem {...common('item')} />
      <GiveRole {...common('role')} />
      <BanUser {...common('ban')} />
      {dialog === 'message' && (
        <Suspense fallback={null}>
          <Message {...common('message')} />
        </Suspense>
      )}
      <Drawer opened={isOpen && dialog === 'edit'} onClose={() => setOpen(false)} title={`Edit ${nameOf(user)}`}>
        <OperationForm
          operation="PATCH /v1/admin/projects/{projectId}/users/{userId}"
          path={{ userId: user.id }}
          row={user as never}
          verb="Save"
          words={editWords}
          onCancel={() => setOpen(false)}
          onDone={() => {
            setOpen(false)
            done('Saved.')
          }}
        />
      </Drawer>
      <SignInAs {...common('session')} />
      <Reset {...common('reset')} />
      <Delete {...common('delete')} />
    </>
  )
}
