import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getEvent } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { Facts, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { count, Failure, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { iconOf, pairsOf, sentenceOfEvent } from './sentences.tsx'

const words = (name: string) => name.replace(/_/g, ' ').replace(/^./, (first) => first.toUpperCase())

const EffectLine = ({ event }: { event: { readonly event_name: string; readonly properties: Row } }) => {
  const [Icon, colour] = iconOf(event)
  return (
    <Group gap={8} wrap="nowrap" align="flex-start">
      <Icon size={16} color={`var(--mantine-color-${colour}-6)`} aria-hidden className="no-shrink" />
      <Text size="sm">{sentenceOfEvent(event) ?? event.event_name}</Text>
    </Group>
  )
}

const lineOf = (name: string, row: Row): string => {
  if (name === 'xp') return `${Number(row['amount']) > 0 ? '+' : ''}${row['amount']} XP by the rule ${row['rule_key']}`
  const pairs = pairsOf(row).map(([key, value]) => `${key.replace(/_/g, ' ')} ${value}`)
  return `${words(name)}: ${pairs.join(', ')}`
}

/** What the other parts of the answer hold, such as deliveries of webhooks: a line for each. */
const OtherEffects = ({ name, rows }: { name: string; rows: readonly Row[] }) => (
  <>
    {rows.slice(0, 5).map((row, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: these rows never change their places
      <Text key={at} size="sm" pl={24}>
        {lineOf(name, row)}
      </Text>
    ))}
    {rows.length > 5 && (
      <Text size="sm" c="dimmed" pl={24}>
        and {count(rows.length - 5)} more
      </Text>
    )}
  </>
)

const Loaded = ({ id }: { id: string }) => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['event', path.projectId, id],
    queryFn: () => call(getEvent, { path: { ...path, eventId: id } }),
  })
  if (error) return <Failure error={error} onRetry={refetch} />
  if (!data) return <Skeleton h={240} />
  const event = data.data
  const properties = pairsOf(event.properties)
  const effects = event.effects as Readonly<Record<string, readonly Row[]>>
  const { events: made = [], ...others } = effects
  const isNothing = Object.values(effects).every((rows) => rows.length === 0)
  return (
    <Stack gap="lg">
      <div>
        <Title order={2}>{sentenceOfEvent(event) ?? event.event_name}</Title>
        {sentenceOfEvent(event) && <Text className="mono">{event.event_name}</Text>}
      </div>
      <Facts
        facts={[
          ['User', <UserName key="user" id={event.app_user_id} />],
          ['Happened', <When key="at" at={event.occurred_at} />],
          ['Received', <When key="received" at={event.received_at} />],
          ['Sent by', words(event.source)],
          ...(event.is_historical ? [['Imported', 'yes, sends no notifications'] as const] : []),
          ...(event.clock_adjusted ? [['Clock', 'was ahead, set to the time of receipt'] as const] : []),
          ['Id', <Id key="id" value={event.id} />],
        ]}
      />
      {event.schema_violation && <Status value="does not fit its definition" meaning="warn" />}
      <section aria-label="Properties">
        <Title order={3} mb={6}>
          Properties
        </Title>
        {properties.length === 0 ? (
          <Text size="sm" c="dimmed">
            It has none.
          </Text>
        ) : (
          <Facts facts={properties} />
        )}
      </section>
      <section aria-label="What it moved">
        <Title order={3} mb={6}>
          What it moved
        </Title>
        <Stack gap={6}>
          {isNothing && (
            <Text size="sm" c="dimmed">
              Nothing: no definition counts it.
            </Text>
          )}
          {made.map((effect) => (
            <EffectLine key={String(effect['id'])} event={effect as never} />
          ))}
          {Object.entries(others).map(([name, rows]) => (
            <OtherEffects key={name} name={name} rows={rows} />
          ))}
        </Stack>
      </section>
      <Group gap="xs">
        <Button component={ProjectLink} to="events" search={{ event: event.event_name }} variant="default" size="xs">
          All events of this name
        </Button>
      </Group>
    </Stack>
  )
}

/** One event and what it moved, in a drawer whose event stands in the address as `open`. */
export const EventDrawer = () => {
  const [{ open }, setAddress] = useAddress<'open'>()
  return (
    <Drawer opened={open !== undefined} onClose={() => setAddress({ open: undefined })} title="Event">
      {open && <Loaded id={open} />}
    </Drawer>
  )
}
