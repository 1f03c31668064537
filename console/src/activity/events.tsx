import { Badge, Box, Button, Group, Menu, Popover, Select, Switch } from '@mantine/core'
import { Activity, ListFilter, Pause, Play, Send, Shapes } from 'lucide-react'
import { useState } from 'react'
import type { Row } from '../api.ts'
import { filterWords } from '../parts/form/filter.ts'
import { FilterEditor } from '../parts/form/filter_editor.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { List } from '../parts/list.tsx'
import { More } from '../parts/more.tsx'
import { PageHead, useAddress, useOpen } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'
import { DeleteEvents } from './delete.tsx'
import { EventDrawer } from './event.tsx'
import { SendEvent } from './send.tsx'
import { type Event, iconOf, Pairs, sentenceOfEvent } from './sentences.tsx'

type Logged = Event & {
  readonly is_historical: boolean
  readonly schema_violation: boolean
  readonly user?: { readonly display_name: string | null } | null
}

const days = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
]

const parsed = (text: string | undefined): unknown => {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A filter of properties, which stands in the address. */
const Where = () => {
  const [{ where, event }, setAddress] = useAddress<'where' | 'event'>()
  const value = parsed(where)
  const words = filterWords(value)
  return (
    <Popover width={560} position="bottom-start" trapFocus returnFocus withinPortal>
      <Popover.Target>
        <Button
          size="sm"
          variant={words ? 'light' : 'default'}
          leftSection={<ListFilter size={15} />}
          fw={400}
          maw={320}
        >
          {words ?? 'Properties'}
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 24px)">
        <FilterEditor
          label="Only events whose properties"
          help={undefined}
          error={undefined}
          value={value}
          beside={{ event_name: event }}
          onChange={(next) => setAddress({ where: next === undefined ? undefined : JSON.stringify(next) })}
        />
      </Popover.Dropdown>
    </Popover>
  )
}

const isWhole = (where: unknown): boolean => {
  const row = (where ?? {}) as Row
  for (const join of ['and', 'or'] as const)
    if (Array.isArray(row[join])) return (row[join] as unknown[]).length > 0 && (row[join] as unknown[]).every(isWhole)
  if (row['not'] !== undefined) return isWhole(row['not'])
  return (
    Boolean(row['column']) && (/null/.test(String(row['op'])) || (row['value'] !== undefined && row['value'] !== ''))
  )
}

/** Where the rows begin, a whole minute: the query would be another one each second. */
const sinceOf = (span: string | undefined) =>
  span ? { since: new Date(Math.floor(Date.now() / 60_000) * 60_000 - Number(span) * 864e5).toISOString() } : {}

/** Events of all users as they come. */
export const Page = () => {
  const [{ event, user, span, where, system }, setAddress] = useAddress<
    'event' | 'user' | 'span' | 'where' | 'system' | 'open' | 'send' | 'delete'
  >()
  const open = useOpen()
  const [isLive, setLive] = useState(true)
  const filter = parsed(where)
  const isFiltered = Boolean(event || user || span || where)
  return (
    <>
      <PageHead
        title="Events"
        about="What your app sends, as it comes"
        actions={
          <>
            <Button
              variant="default"
              leftSection={isLive ? <Pause size={15} /> : <Play size={15} />}
              onClick={() => setLive(!isLive)}
            >
              {isLive ? 'Pause' : 'Go on'}
            </Button>
            <Button leftSection={<Send size={15} />} onClick={() => setAddress({ send: 'yes' }, false)}>
              Send an event
            </Button>
            <More>
              <Menu.Item onClick={() => open('operations', { replay: 'yes' })}>Replay events</Menu.Item>
              <Menu.Item c="var(--bad)" onClick={() => setAddress({ delete: 'yes' }, false)}>
                Delete events
              </Menu.Item>
            </More>
          </>
        }
      />
      <Group mb="sm" gap="xs">
        <Box w={200} maw="100%">
          <ReferenceInput
            reference="event_name"
            aria-label="Event"
            placeholder="All events"
            value={event}
            onChange={(next) => setAddress({ event: next || undefined })}
          />
        </Box>
        <Box w={200} maw="100%">
          <UserFilter />
        </Box>
        <Select
          aria-label="Time"
          placeholder="All time"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear the time' }}
          data={days}
          value={span ?? null}
          onChange={(next) => setAddress({ span: next ?? undefined })}
          w={150}
        />
        <Where />
        <Switch
          size="xs"
          label="With what they moved"
          checked={system === 'yes'}
          onChange={({ currentTarget }) => setAddress({ system: currentTarget.checked ? 'yes' : undefined })}
        />
        <div className="grow" />
        {event && (
          <Button
            size="xs"
            variant="default"
            leftSection={<Shapes size={14} />}
            onClick={() => open('segments/new', { event, days: span ?? '30' })}
          >
            Save as segment
          </Button>
        )}
        <Badge variant="dot" color={isLive ? 'leaf' : 'gray'} role="status">
          {isLive ? 'live' : 'paused'}
        </Badge>
      </Group>
      <List<Logged>
        name="Events"
        operation="GET /v1/admin/projects/{projectId}/events"
        query={{
          event_name: event,
          user_id: user,
          include: 'user',
          where: isWhole(filter) ? JSON.stringify(filter) : undefined,
          include_system: system === 'yes' ? true : undefined,
          ...sinceOf(span),
        }}
        {...(isLive ? { every: 4000 } : {})}
        onOpen={({ id }) => setAddress({ open: id }, false)}
        columns={[
          {
            title: 'Event',
            show: (one) => {
              const [Icon, colour] = iconOf(one)
              return (
                <Group gap={10} wrap="nowrap">
                  <Icon size={16} color={`var(--mantine-color-${colour}-6)`} aria-hidden className="no-shrink" />
                  <RowButton onClick={() => setAddress({ open: one.id }, false)}>
                    {sentenceOfEvent(one) ?? one.event_name}
                  </RowButton>
                  {one.schema_violation && <Status value="does not fit" meaning="warn" />}
                  {one.is_historical && <Status value="imported" />}
                </Group>
              )
            },
          },
          { title: 'User', show: (one) => <UserName id={one.app_user_id} user={one.user} /> },
          { title: 'Properties', show: (one) => <Pairs row={one.properties} /> },
          { title: 'When', show: (one) => <When at={one.occurred_at} /> },
        ]}
        empty={
          isFiltered ? (
            <Empty
              title="No event matches"
              action={
                <Button
                  variant="default"
                  onClick={() => setAddress({ event: undefined, user: undefined, span: undefined, where: undefined })}
                >
                  Show all events
                </Button>
              }
            />
          ) : (
            <Empty
              icon={<Activity size={22} />}
              title="No events yet"
              action={<Button onClick={() => setAddress({ send: 'yes' }, false)}>Send an event</Button>}
            >
              They appear here within seconds after your app sends them with <code>POST /v1/client/events</code>.
            </Empty>
          )
        }
      />
      <EventDrawer />
      <SendEvent />
      <DeleteEvents />
    </>
  )
}
