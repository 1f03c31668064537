import { Stack, Switch, Text } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { adminSendEvents } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { useEventNames } from '../parts/event_names.ts'
import { PropertiesEditor } from '../parts/form/properties_editor.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { UserPicker } from '../parts/users.tsx'

const Form = ({ onClose }: { onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [{ event, user: chosen }, setAddress] = useAddress<'send' | 'event' | 'user' | 'open'>()
  const [name, setName] = useState<string>()
  const [user, setUser] = useState<string>()
  const [at, setAt] = useState<string | null>(null)
  const [isOld, setOld] = useState(false)
  const [properties, setProperties] = useState<unknown>()
  const eventName = name ?? event
  const userId = user ?? chosen
  const names = useEventNames()
  // begins with what an event of this name had last
  const known = Object.fromEntries(
    (names.data?.find(({ event_name }) => event_name === eventName)?.properties ?? [])
      .filter(({ path: at }) => !at.includes('.'))
      .map(({ path: at, sample }) => [at, sample]),
  )
  const work = useMutation({
    mutationFn: () =>
      call(adminSendEvents, {
        path,
        body: {
          event_name: eventName ?? '',
          app_user_id: userId ?? '',
          properties: (properties ?? known) as Row,
          ...(at ? { occurred_at: new Date(at).toISOString() } : {}),
          ...(isOld ? { historical: true } : {}),
        },
      }),
    onSuccess: async ({ data }) => {
      const sent = (data as unknown as { event?: { id?: string } }).event
      done(`${eventName} is sent.`)
      await setAddress({ send: undefined, open: sent?.id })
      await refresh()
    },
  })
  useUnsaved([name, user, at, isOld, properties], work)
  return (
    <form
      onSubmit={(submit) => {
        submit.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          It counts as one of your app: streaks, XP, boards and webhooks follow.
        </Text>
        <ReferenceInput
          reference="event_name"
          label="Event"
          description="One that your app sends, or a new name"
          value={eventName}
          onChange={(next) => {
            setName(next ?? '')
            setProperties(undefined)
          }}
          required
        />
        <UserPicker value={userId || undefined} onChange={(next) => setUser(next ?? '')} />
        <PropertiesEditor
          key={eventName}
          label="Properties"
          help="What your app tells of it, such as points 20"
          value={properties ?? known}
          onChange={setProperties}
          error={undefined}
          beside={{}}
        />
        <DateTimePicker
          label="When"
          description="Now, if it is left empty"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear' }}
          valueFormat="D MMM YYYY, HH:mm"
          value={at}
          onChange={setAt}
        />
        {at && (
          <Switch
            label="Import it"
            description="May be of any age, counts, and sends no notifications"
            checked={isOld}
            onChange={(change) => setOld(change.currentTarget.checked)}
          />
        )}
        <FormFoot verb="Send event" work={work} onCancel={onClose} isDisabled={!eventName || !userId} />
      </Stack>
    </form>
  )
}

/** Sends an event as if the app had, and opens it with what it moved. */
export const SendEvent = () => {
  const [{ send }, setAddress] = useAddress<'send'>()
  const close = () => setAddress({ send: undefined })
  return (
    <Drawer opened={send === 'yes'} onClose={close} title="Send an event">
      {send === 'yes' && <Form onClose={close} />}
    </Drawer>
  )
}
