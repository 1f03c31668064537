import {
  Button,
  Group,
  SegmentedControl,
  Skeleton,
  Slider,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { ListTree, Plus } from 'lucide-react'
import { useState } from 'react'
import {
  deleteEventDefinition,
  listEventDefinitions,
  listEventNames,
  setEventDefinition,
} from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { isObject } from '../parts/form/schema.ts'
import { List } from '../parts/list.tsx'
import { Card, PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { count, done, Empty, Failure, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { Expectations, type Expected, expectationsOf, schemaOf } from './schema.tsx'

type Name = {
  readonly event_name: string
  readonly count_24h: number
  readonly count_30d: number
  readonly users_30d: number
  readonly last_seen: string
  readonly status: string
  readonly properties: readonly { readonly path: string; readonly types: readonly string[] }[]
}
type Definition = {
  readonly event_name: string
  readonly description: string | null
  readonly status: string
  readonly schema: unknown
  readonly sample_rate: number
}

const useDefinitions = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['event definitions', path.projectId],
    queryFn: async () =>
      (await call(listEventDefinitions, { path, query: { limit: 100 } })).data as unknown as readonly Definition[],
  })
}

const statuses = [
  { value: 'active', label: 'Taken' },
  { value: 'deprecated', label: 'Deprecated' },
  { value: 'blocked', label: 'Refused' },
]

const Form = ({
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
  const seen = useQuery({
    queryKey: ['event names', path.projectId],
    queryFn: () => call(listEventNames, { path, query: { limit: 100 } }),
  })
  const properties = seen.data?.data.find(({ event_name }) => event_name === eventName)?.properties ?? []
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
            <Expectations value={expected} onChange={setExpected} seen={properties as unknown as Name['properties']} />
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
        {(work.error ?? forget.error) && <Failure error={work.error ?? forget.error} />}
        <Group justify="space-between" gap="xs">
          {definition ? (
            <Button
              variant="subtle"
              color="gray"
              c="var(--bad)"
              loading={forget.isPending}
              onClick={() => forget.mutate()}
            >
              Remove the definition
            </Button>
          ) : (
            <span />
          )}
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={work.isPending} disabled={eventName.trim() === ''}>
              Save
            </Button>
          </Group>
        </Group>
      </Stack>
    </form>
  )
}

const rateWords = ({ sample_rate }: Definition) =>
  sample_rate < 1 ? `${Math.round(sample_rate * 100)} % kept` : undefined

/** The names of events, and what is expected of each. */
export const Page = () => {
  const [{ define }, setAddress] = useAddress<'define'>()
  const definitions = useDefinitions()
  const { path } = useProject()
  const seen = useQuery({
    queryKey: ['event names', path.projectId],
    queryFn: () => call(listEventNames, { path, query: { limit: 100 } }),
  })
  const of = (name: string) => definitions.data?.find(({ event_name }) => event_name === name)
  const close = () => setAddress({ define: undefined })
  const names = new Set(seen.data?.data.map(({ event_name }) => event_name))
  const unseen = seen.data ? (definitions.data ?? []).filter(({ event_name }) => !names.has(event_name)) : []
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ define: '+' }, false)}>
      Define an event
    </Button>
  )
  return (
    <>
      <PageHead
        title="Event definitions"
        about="Names that your app sends. A definition describes one, checks its properties or refuses it"
        actions={make}
      />
      <div className="column">
        <List<Name>
          name="Events"
          operation="GET /v1/admin/projects/{projectId}/events/names"
          keyOf={({ event_name }) => event_name}
          onOpen={({ event_name }) => setAddress({ define: event_name }, false)}
          columns={[
            {
              title: 'Event',
              show: ({ event_name }) => (
                <>
                  <button
                    type="button"
                    className="row-button"
                    onClick={() => setAddress({ define: event_name }, false)}
                  >
                    {event_name}
                  </button>
                  <span className="cell-sub">{of(event_name)?.description ?? 'not described'}</span>
                </>
              ),
            },
            { title: '24 hours', isNumber: true, show: (one) => count(one.count_24h) },
            {
              title: '30 days',
              isNumber: true,
              show: (one) => (
                <ProjectLink to="events" search={{ event: one.event_name }}>
                  {count(one.count_30d)}
                </ProjectLink>
              ),
            },
            { title: 'Users', isNumber: true, show: (one) => count(one.users_30d) },
            {
              title: 'Properties',
              show: (one) => (
                <span className="mono">
                  {one.properties
                    .slice(0, 4)
                    .map((property) => property.path)
                    .join(', ') || '—'}
                </span>
              ),
            },
            { title: 'Last', show: (one) => <When at={one.last_seen} /> },
            {
              title: 'State',
              show: (one) => (
                <Status
                  value={one.status === 'blocked' ? 'refused' : one.status === 'active' ? 'taken' : one.status}
                  meaning={one.status === 'blocked' ? 'bad' : one.status === 'active' ? 'good' : 'warn'}
                />
              ),
            },
          ]}
          empty={
            <Empty icon={<ListTree size={22} />} title="No events yet" action={make}>
              Names appear as your app sends them: they need no definition.
            </Empty>
          }
        />
        {unseen.length > 0 && (
          <Card title="Defined, and never seen">
            <Stack gap={8}>
              {unseen.map((one) => (
                <Group key={one.event_name} justify="space-between" wrap="nowrap">
                  <div>
                    <button
                      type="button"
                      className="row-button"
                      onClick={() => setAddress({ define: one.event_name }, false)}
                    >
                      {one.event_name}
                    </button>
                    <span className="cell-sub">
                      {[one.description, rateWords(one)].filter(Boolean).join(', ') || 'not described'}
                    </span>
                  </div>
                  <Status
                    value={one.status === 'blocked' ? 'refused' : one.status === 'active' ? 'taken' : one.status}
                    meaning={one.status === 'blocked' ? 'bad' : one.status === 'active' ? 'good' : 'warn'}
                  />
                </Group>
              ))}
            </Stack>
          </Card>
        )}
      </div>
      <Drawer
        opened={define !== undefined}
        onClose={close}
        title={define === '+' || define === undefined ? 'Define an event' : define}
      >
        {define !== undefined &&
          (definitions.data ? (
            <Form key={define} name={define === '+' ? '' : define} definition={of(define)} onClose={close} />
          ) : (
            <Skeleton h={320} />
          ))}
      </Drawer>
    </>
  )
}
