import { useEffect, useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { TextField, timeOf } from '../parts/field.tsx'
import { usePolled } from '../parts/polled.ts'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

export type Event = {
  readonly id: string
  readonly app_user_id: string
  readonly event_name: string
  readonly properties: Readonly<Record<string, unknown>>
  readonly occurred_at: string
  readonly source: string
}

const most = 300

/** Events as they come, newest first. */
export const EventsLive = ({ projectId }: PageProps) => {
  const [name, setName] = useState('')
  const [user, setUser] = useState('')
  const [hasSystem, setSystem] = useState(false)
  const [isPaused, setPaused] = useState(false)
  const [events, setEvents] = useState<readonly Event[]>([])
  const filters = {
    ...(name ? { event_name: name } : {}),
    ...(user ? { user_id: user } : {}),
    ...(hasSystem ? { include_system: true } : {}),
  }
  const key = `events ${projectId} ${JSON.stringify(filters)}`
  const load = async () => {
    const input = { path: { projectId }, query: { ...filters, limit: 100 } }
    return { key, rows: (await call('GET /v1/admin/projects/{projectId}/events', input)).data as readonly Event[] }
  }
  const { value, error } = usePolled(key, load, 2, isPaused)
  // other filters show other events
  useEffect(() => setEvents([]), [key])
  useEffect(() => {
    if (!value || value.key !== key) return
    setEvents((before) => {
      const known = new Set(before.map(({ id }) => id))
      return [...value.rows.filter(({ id }) => !known.has(id)), ...before].slice(0, most)
    })
  }, [value, key])
  return (
    <>
      <h1>{texts.eventsLive}</h1>
      <div class="row">
        <TextField label={texts.eventName} value={name} onValue={setName} type="search" />
        <TextField label={texts.userId} value={user} onValue={setUser} type="search" />
        <label class="check">
          <input type="checkbox" checked={hasSystem} onChange={(event) => setSystem(event.currentTarget.checked)} />{' '}
          {texts.systemEvents}
        </label>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused((before) => !before)}>
          {isPaused ? texts.resume : texts.pause}
        </button>
      </div>
      <Refusal error={error} />
      <p role="status">{texts.shownEvents(events.length)}</p>
      <EventTable events={events} projectId={projectId} />
    </>
  )
}

export const EventTable = ({ events, projectId }: { events: readonly Event[]; projectId: string }) => (
  <Table label={texts.events} columns={texts.eventColumns}>
    {events.map((event) => (
      <tr key={event.id}>
        <td>{timeOf(event.occurred_at)}</td>
        <td>{event.event_name}</td>
        <td>
          <a href={`/console/projects/${projectId}/user/timeline?item=${event.app_user_id}`}>
            {event.app_user_id.slice(-12)}
          </a>
        </td>
        <td>{event.source}</td>
        <td>
          <code>{JSON.stringify(event.properties).slice(0, 200)}</code>
        </td>
      </tr>
    ))}
  </Table>
)
