import { Button, Checkbox, CopyButton, Group, Modal, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { createUserSession, deleteUser, resetUser } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { useOpen, useProject } from '../parts/page.tsx'
import { counted, Failure } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import type { DialogProps } from './one_user.ts'

const Token = ({ title, value }: { title: string; value: string }) => (
  <div>
    <Group justify="space-between">
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="default" onClick={copy}>
            {copied ? 'Copied' : 'Copy'}
          </Button>
        )}
      </CopyButton>
    </Group>
    <div className="mono secret">{value}</div>
  </div>
)

/** A session of the user for tests, whose tokens are shown once. */
export const SignInAs = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const work = useMutation({ mutationFn: () => call(createUserSession, { path: { ...path, userId: user.id } }) })
  const close = () => {
    work.reset()
    onClose()
  }
  return (
    <Modal opened={isOpen} onClose={close} title={`Sign in as ${nameOf(user)}`} size="lg">
      <Stack gap="sm">
        <Text size="sm">
          For tests: a session of this user, which your app accepts in place of a sign-in. It stands in the audit trail,
          and ends when the project leaves the environment development.
        </Text>
        {work.error && <Failure error={work.error} />}
        {work.data && (
          <>
            <Token title="Session token" value={work.data.data.session_token} />
            <Token title="Refresh token" value={work.data.data.refresh_token} />
          </>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close}>
            {work.data ? 'Done' : 'Cancel'}
          </Button>
          {!work.data && (
            <Button data-autofocus loading={work.isPending} onClick={() => work.mutate()}>
              Sign in
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  )
}

/** The parts of a user's state that can be emptied, in words. The last three are kept unless they are asked for. */
const sections = {
  events: 'Events',
  streaks: 'Streaks',
  xp: 'XP and levels',
  achievements: 'Achievements',
  challenges: 'Challenges',
  leaderboards: 'Leaderboards',
  currencies: 'Balances',
  inventory: 'Items',
  onboarding: 'Onboarding',
  properties: 'Properties',
  collections: 'Rows of collections',
  media: 'Files',
  messages: 'Messages',
  feeds: 'Feed entries',
  friends: 'Friends',
  groups: 'Groups',
  entitlements: 'Entitlements',
  push: 'Devices and push',
  sessions: 'Sessions',
} as const
const kept = new Set(['entitlements', 'push', 'sessions'])
const usual = Object.keys(sections).filter((name) => !kept.has(name))

export const Reset = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [chosen, setChosen] = useState<string[]>(usual)
  return (
    <Confirm
      title={`Reset ${nameOf(user)}`}
      verb="Reset"
      isDisabled={chosen.length === 0}
      typed={nameOf(user)}
      said={({ data }) => {
        const rows = Object.values(data.rows_deleted as Readonly<Record<string, number>>)
        return `${nameOf(user)} begins anew: ${counted(
          rows.reduce((sum, one) => sum + one, 0),
          'entry',
          'entries',
        )} gone.`
      }}
      isOpen={isOpen}
      onClose={onClose}
      run={() => call(resetUser, { path: { ...path, userId: user.id }, query: { sections: chosen.join(',') } })}
    >
      <Stack gap="sm">
        <span>The account stays. What is ticked goes for good.</span>
        <Checkbox.Group value={chosen} onChange={setChosen} aria-label="What goes">
          <div className="checks">
            {Object.entries(sections).map(([value, label]) => (
              <Checkbox key={value} value={value} label={label} size="xs" />
            ))}
          </div>
        </Checkbox.Group>
      </Stack>
    </Confirm>
  )
}

export const Delete = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const open = useOpen()
  return (
    <Confirm
      title={`Delete ${nameOf(user)}`}
      verb="Delete user"
      typed={nameOf(user)}
      said={`${nameOf(user)} is deleted.`}
      isOpen={isOpen}
      onClose={onClose}
      run={() => call(deleteUser, { path: { ...path, userId: user.id } })}
      after={() => void open('users')}
    >
      The account and everything of it go for good: events, balances, items, messages, files. Export the data first if
      somebody may ask for it.
    </Confirm>
  )
}
