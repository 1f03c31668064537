import { Button, SegmentedControl, Slider, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { deleteEventDefinition, setEventDefinition } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { useEventNames } from '../parts/event_names.ts'
import { isObject } from '../parts/form/schema.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import type { Definition } from './definition.ts'
import { Expectations, type Expected, expectationsOf, schemaOf } from './schema.tsx'

const statuses = [
  { value: 'active', label: 'Taken' },
  { value: 'deprecated', label: 'Deprecated' },
  { value: 'blocked', label: 'Refused' },
]

/** What is expected of the events of a name: it is described, checked, sampled or refused here. */
export const DefinitionForm = ({
  name,
  definition,
  onClose,
}: {
  name: string
  definition: Definition | undefined
  onClose: () => void
}) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [eventName, setEventName] = useState(name)
  const [about, setAbout] = useState(definition?.description ?? '')
  const [status, setStatus] = useState(definition?.status ?? 'active')
  const [rate, setRate] = useState(Math.round((definition?.sample_rate ?? 1) * 100))
  const known = expectationsOf(definition?.schema)
  const [expected, setExpected] = useState<readonly Expected[]>(known ?? [])
  const [isStrict, setStrict] = useState(
    isObject(definition?.schema) && definition.schema['additionalProperties'] === false,
  )
  const at = { ...path, eventName }
  const seen = useEventNames()
  const properties = seen.data?.find(({ event_name }) => event_name === eventName)?.properties ?? []
  const body = {
    description: about || null,
    status: status as 'active',
    sample_rate: rate / 100,
    // a schema beyond these rows is kept as it is
    schema: (known ? schemaOf(expected, isStrict) : definition?.schema) as Row | null,
  }
  const work = useMutation({
    mutationFn: () => call(setEventDefinition, { path: at, body }),
    onSuccess: async () => {
      done('Saved.')
      onClose()
      await refresh()
    },
  })
  useUnsaved([eventName, about, status, rate, expected, isStrict], work)
  const forget = useMutation({
    mutationFn: () => call(deleteEventDefinition, { path: at }),
    onSuccess: async () => {
      onClose()
      done('The definition is gone, events of this name are taken as any.', async () => {
        await call(setEventDefinition, {
          path: at,
          body: {
            description: definition?.description ?? null,
            status: definition?.status as 'active',
            sample_rate: definition?.sample_rate ?? 1,
            schema: definition?.schema as Row | null,
          },
        })
        await refresh()
      })
      await refresh()
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        {name === '' && (
          <TextInput
            label="Event"
            description="The name that your app sends"
            required
            value={eventName}
            onChange={(event) => setEventName(event.currentTarget.value)}
            data-autofocus
          />
        )}
        <Textarea
          label="Description"
          description="What it means, for your team"
          rows={2}
          value={about}
          onChange={(event) => setAbout(event.currentTarget.value)}
        />
        <div>
          <Text size="sm" fw={600} mb={4}>
            Events of this name are
          </Text>
          <SegmentedControl aria-label="State" data={statuses} value={status} onChange={setStatus} />
        </div>
        {known ? (
          <>
            <Expectations value={expected} onChange={setExpected} seen={properties} />
            {expected.length > 0 && (
              <Switch
                label="No other properties"
                checked={isStrict}
                onChange={(event) => setStrict(event.currentTarget.checked)}
              />
            )}
          </>
        ) : (
          <Text size="sm" c="dimmed">
            Its properties are checked by a schema that was written elsewhere. It is kept as it is.
          </Text>
        )}
        <div>
          <Text size="sm" fw={600}>
            Kept in the log: {rate} %
          </Text>
          <Text size="xs" c="dimmed" mb={6}>
            All events count. Fewer of them stay in the log.
          </Text>
          <Slider
            thumbLabel="Share that is kept"
            min={0}
            max={100}
            value={rate}
            onChange={setRate}
            label={(value) => `${value} %`}
          />
        </div>
        <FormFoot
          verb="Save"
          work={{ error: work.error ?? forget.error, isPending: work.isPending }}
          onCancel={onClose}
          isDisabled={eventName.trim() === ''}
          left={
            definition && (
              <Button
                variant="subtle"
                color="gray"
                c="var(--bad)"
                loading={forget.isPending}
                onClick={() => forget.mutate()}
              >
                Remove the definition
              </Button>
            )
          }
        />
      </Stack>
    </form>
  )
}
