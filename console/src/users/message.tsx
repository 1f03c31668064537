import { SegmentedControl, Stack, Switch, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { sendEmail, sendPush } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { useProject } from '../parts/page.tsx'
import { nameOf } from '../parts/users.tsx'
import type { DialogProps } from './one_user.ts'

/** One message to one user: as a push message to all devices, or as an email. */
export const Message = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [way, setWay] = useState('push')
  const [title, setTitle] = useState('')
  const [text, setText] = useState('')
  const [isKept, setKept] = useState(true)
  const isPush = way === 'push'
  const send = () =>
    isPush
      ? call(sendPush, { path, body: { user_ids: [user.id], message: { title, body: text }, inbox: isKept } })
      : call(sendEmail, { path, body: { user_id: user.id, subject: title, text } })
  return (
    <Confirm
      title={`Message to ${nameOf(user)}`}
      verb="Send"
      isDangerous={false}
      isDisabled={title.trim() === '' || text.trim() === ''}
      said={`Sent to ${nameOf(user)}. What became of it stands under Messages.`}
      values={[title, text]}
      isOpen={isOpen}
      onClose={onClose}
      run={async () => {
        await send()
        setTitle('')
        setText('')
      }}
    >
      <Stack gap="sm">
        <SegmentedControl
          aria-label="How"
          data={[
            { value: 'push', label: 'Push' },
            { value: 'email', label: 'Email', disabled: user.email === null },
          ]}
          value={way}
          onChange={setWay}
        />
        <TextInput
          label={isPush ? 'Title' : 'Subject'}
          value={title}
          maxLength={200}
          onChange={(event) => setTitle(event.currentTarget.value)}
          data-autofocus
        />
        <Textarea
          label="Text"
          rows={isPush ? 3 : 7}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        {isPush && (
          <Switch
            label="Keep it in the inbox of the app"
            checked={isKept}
            onChange={(event) => setKept(event.currentTarget.checked)}
          />
        )}
      </Stack>
    </Confirm>
  )
}
