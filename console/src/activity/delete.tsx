import { Stack } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useState } from 'react'
import { deleteEvents } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { useAddress, useOpen, useProject } from '../parts/page.tsx'
import { UserSelect } from '../parts/users.tsx'

/** Deletes events of a name or of a user, before a time. */
export const DeleteEvents = () => {
  const { path } = useProject()
  const open = useOpen()
  const [{ delete: isAsked, event, user }, setAddress] = useAddress<'delete' | 'event' | 'user'>()
  const [name, setName] = useState<string>()
  const [userId, setUserId] = useState<string>()
  const [before, setBefore] = useState<string | null>(null)
  const eventName = name ?? event
  const of = userId ?? user
  return (
    <Confirm
      title="Delete events"
      verb="Delete events"
      said="They are being deleted."
      typed="delete"
      isDisabled={!(eventName || of) || !before}
      isOpen={isAsked === 'yes'}
      onClose={() => setAddress({ delete: undefined })}
      run={() =>
        call(deleteEvents, {
          path,
          query: {
            ...(eventName ? { event_name: eventName } : {}),
            ...(of ? { user_id: of } : {}),
            before: new Date(before ?? 0).toISOString(),
          },
        })
      }
      after={() => void open('operations')}
    >
      <Stack gap="sm">
        <span>They leave the log for good. What they moved stays: XP, streaks, ranks.</span>
        <ReferenceInput
          reference="event_name"
          label="Event"
          placeholder="All events of the user"
          value={eventName}
          onChange={(next) => setName(next ?? '')}
        />
        <UserSelect placeholder="Of all users" value={of || undefined} onChange={(next) => setUserId(next ?? '')} />
        <DateTimePicker label="Before" required valueFormat="D MMM YYYY, HH:mm" value={before} onChange={setBefore} />
      </Stack>
    </Confirm>
  )
}
