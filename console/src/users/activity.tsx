import { Button, Group, SegmentedControl, Select, Skeleton, Switch, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Activity as Pulse } from 'lucide-react'
import { listEvents } from '../../../sdk/src/generated/admin.ts'
import { EventDrawer } from '../activity/event.tsx'
import { type Event, iconOf, isSystem, Pairs, sentenceOfEvent } from '../activity/sentences.tsx'
import { call } from '../api.ts'
import { useEventNames } from '../parts/event_names.ts'
import { useAddress } from '../parts/page.tsx'
import { Empty, Failure } from '../parts/states.tsx'
import { useUser } from './one_user.ts'

const midnight = (daysAgo: number) => {
  const day = new Date()
  day.setHours(0, 0, 0, 0)
  day.setDate(day.getDate() - daysAgo)
  return day.toISOString()
}
const spans: Readonly<Record<string, () => { since?: string; until?: string }>> = {
  all: () => ({}),
  today: () => ({ since: midnight(0) }),
  yesterday: () => ({ since: midnight(1), until: midnight(0) }),
  week: () => ({ since: midnight(6) }),
}
const spanTitles = [
  { value: 'all', label: 'All' },
  { value: 'today', label: 'Today' },
  { value: 'yesterday', label: 'Yesterday' },
  { value: 'week', label: '7 days' },
]

const dayTitle = (at: string): string => {
  const day = new Date(at).toDateString()
  const name = new Date(at).toLocaleDateString('en', { weekday: 'long', month: 'long', day: 'numeric' })
  if (day === new Date().toDateString()) return `Today, ${name}`
  return day === new Date(midnight(1)).toDateString() ? `Yesterday, ${name}` : name
}
const timeOf = (at: string) =>
  new Date(at).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hour12: false })

const daysOf = (events: readonly Event[]): readonly (readonly [string, readonly Event[]])[] => {
  const days = new Map<string, Event[]>()
  for (const event of events) {
    const title = dayTitle(event.occurred_at)
    days.set(title, [...(days.get(title) ?? []), event])
  }
  return [...days]
}

const Moment = ({ event, onOpen }: { event: Event; onOpen: () => void }) => {
  const [Icon, colour] = iconOf(event)
  const sentence = sentenceOfEvent(event)
  return (
    <li>
      <button
        type="button"
        className="moment moment-button"
        data-effect={isSystem(event) || undefined}
        onClick={onOpen}
      >
        <Text size="xs" c="dimmed" component="time" dateTime={event.occurred_at}>
          {timeOf(event.occurred_at)}
        </Text>
        <Icon size={15} color={`var(--mantine-color-${colour}-6)`} aria-hidden />
        <span>
          {sentence ?? <b className="moment-name">{event.event_name}</b>}{' '}
          {sentence === undefined && <Pairs row={event.properties} most={4} />}
        </span>
      </button>
    </li>
  )
}

/** What a user did and what it moved, by day, newest first. */
export const Activity = () => {
  const { path } = useUser()
  const { projectId, userId } = path
  const [{ days = 'all', name, moved }, setAddress] = useAddress<'days' | 'name' | 'moved' | 'open'>()
  const isWithMoved = moved !== 'no'
  const list = useInfiniteQuery({
    queryKey: ['activity', projectId, userId, days, name, isWithMoved],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      call(listEvents, {
        path: { projectId },
        query: {
          user_id: userId,
          limit: 60,
          include_system: isWithMoved,
          ...(spans[days] ?? spans['all'])?.(),
          ...(name ? { event_name: name } : {}),
          ...(pageParam ? { cursor: pageParam } : {}),
        },
      }),
    getNextPageParam: (last) => last.pagination.next_cursor ?? undefined,
    refetchInterval: 15_000,
    placeholderData: (before) => before,
  })
  const { data: names = [] } = useEventNames()
  const events = (list.data?.pages.flatMap(({ data }) => data) ?? []) as readonly Event[]
  const isFiltered = days !== 'all' || name !== undefined
  return (
    <>
      <Group mb="xs" gap="xs">
        <SegmentedControl
          size="xs"
          aria-label="Days"
          data={spanTitles}
          value={days in spans ? days : 'all'}
          onChange={(next) => setAddress({ days: next === 'all' ? undefined : next })}
        />
        <Select
          size="xs"
          aria-label="Event"
          placeholder="All events"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear the event' }}
          searchable
          data={names.map(({ event_name }) => event_name)}
          value={name ?? null}
          onChange={(next) => setAddress({ name: next ?? undefined })}
          w={180}
        />
        <Switch
          size="xs"
          label="With what they moved"
          checked={isWithMoved}
          onChange={(event) => setAddress({ moved: event.currentTarget.checked ? undefined : 'no' })}
        />
      </Group>
      {list.error && <Failure error={list.error} onRetry={list.refetch} />}
      {list.isPending && <Skeleton h={320} />}
      {list.data && events.length === 0 && (
        <Empty
          icon={<Pulse size={22} />}
          title={isFiltered ? 'Nothing of that in this time' : 'Nothing happened yet'}
          action={
            isFiltered && (
              <Button variant="default" size="xs" onClick={() => setAddress({ days: undefined, name: undefined })}>
                Show everything
              </Button>
            )
          }
        >
          {!isFiltered && 'What your app sends for this user appears here, with what it moved.'}
        </Empty>
      )}
      {daysOf(events).map(([day, all]) => (
        <section key={day} aria-label={day}>
          <h2 className="day">{day}</h2>
          <ol className="moments">
            {all.map((event) => (
              <Moment key={event.id} event={event} onOpen={() => setAddress({ open: event.id }, false)} />
            ))}
          </ol>
        </section>
      ))}
      {list.hasNextPage && (
        <Button
          mt="sm"
          variant="default"
          size="xs"
          loading={list.isFetchingNextPage}
          onClick={() => list.fetchNextPage()}
        >
          Show more
        </Button>
      )}
      <EventDrawer />
    </>
  )
}
