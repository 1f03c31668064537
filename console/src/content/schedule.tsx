import { Stack, Text } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { publishContent } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, exactly, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { type Entry, languageName } from './data.ts'

/** A moment as the field writes it, in the zone of the browser. */
const local = (at: Date) =>
  new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace('T', ' ')
const tomorrow = () => {
  const at = new Date(Date.now() + 864e5)
  at.setHours(9, 0, 0, 0)
  return local(at)
}

const Form = ({ entry, locale, onClose }: { entry: Entry; locale: string; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [at, setAt] = useState(tomorrow)
  const moment = new Date(at.replace(' ', 'T')).toISOString()
  const work = useMutation({
    mutationFn: () =>
      call(publishContent, { path: { ...path, idOrKey: entry.id, locale }, body: { publish_at: moment } }),
    onSuccess: async () => {
      done(`${languageName(locale)} is published ${exactly(moment)}.`)
      onClose()
      await refresh()
    },
  })
  useUnsaved(at, work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <DateTimePicker
          label="When"
          description="In the time zone of this browser"
          required
          valueFormat="D MMM YYYY, HH:mm"
          value={at}
          onChange={(next) => next && setAt(next)}
        />
        <Text size="sm" c="dimmed">
          The text as it is saved now is published then. What is saved later stays a draft, and what is published now
          stays until then.
        </Text>
      </Stack>
      <FormFoot verb="Schedule" work={work} onCancel={onClose} isDisabled={new Date(moment) <= new Date()} />
    </form>
  )
}

/** When a language is published. */
export const Schedule = ({
  entry,
  locale,
  isOpen,
  onClose,
}: {
  entry: Entry
  locale: string
  isOpen: boolean
  onClose: () => void
}) => (
  <Drawer opened={isOpen} onClose={onClose} title={`Schedule ${languageName(locale)}`}>
    {isOpen && <Form entry={entry} locale={locale} onClose={onClose} />}
  </Drawer>
)
