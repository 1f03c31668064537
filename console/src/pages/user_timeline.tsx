import { useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { timeOf } from '../parts/field.tsx'
import { texts } from '../texts.ts'
import type { Event } from './events_live.tsx'

const pageSize = 100

/** The days of events, newest first, as they come. */
const daysOf = (events: readonly Event[]): ReadonlyMap<string, readonly Event[]> => {
  const days = new Map<string, Event[]>()
  for (const event of events) {
    const day = new Date(event.occurred_at).toLocaleDateString()
    days.set(day, [...(days.get(day) ?? []), event])
  }
  return days
}

/** What a user did, and what it moved: the events of apps, and beneath each those that the system made of it. */
export const UserTimeline = ({ projectId, id }: PageProps) => {
  const [shown, setShown] = useState(pageSize)
  const path = { projectId, userId: id }
  const user = useLoaded(
    `user ${id}`,
    async () => (await call('GET /v1/admin/projects/{projectId}/users/{userId}', { path })).data as Row,
  )
  const events = useLoaded(`timeline ${id} ${shown}`, () =>
    call('GET /v1/admin/projects/{projectId}/users/{userId}/events', {
      path,
      query: { limit: shown, include_system: true },
    }),
  )
  const rows = (events.value?.data ?? []) as readonly Event[]
  const streaks = (user.value?.['streaks'] ?? []) as readonly Row[]
  return (
    <>
      <h1>{String(user.value?.['display_name'] ?? texts.timeline)}</h1>
      <p>
        <a href={`/console/projects/${projectId}/users?item=${id}`}>{texts.account}</a>
      </p>
      <Refusal error={user.error ?? events.error} />
      {streaks.length > 0 && (
        <ul class="chips" aria-label={texts.streaks}>
          {streaks.map((streak) => (
            <li key={String(streak['key'] ?? streak['streak_definition_id'])}>
              {String(streak['name'] ?? streak['key'] ?? '')}{' '}
              <b>{String(streak['current_length'] ?? streak['current'] ?? '')}</b>
            </li>
          ))}
        </ul>
      )}
      {!events.value && !events.error && <p role="status">{texts.loading}</p>}
      {events.value && rows.length === 0 && <p>{texts.nothing}</p>}
      {[...daysOf(rows)].map(([day, list]) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ol class="timeline">
            {list.map((event) => (
              <li key={event.id} class={event.source === 'system' ? 'moved' : 'did'}>
                <time datetime={event.occurred_at}>{timeOf(event.occurred_at)}</time> <b>{event.event_name}</b>{' '}
                <code>{JSON.stringify(event.properties).slice(0, 300)}</code>
              </li>
            ))}
          </ol>
        </section>
      ))}
      {events.value && (events.value.total ?? 0) > rows.length && shown < 200 && (
        <button type="button" onClick={() => setShown(200)}>
          {texts.more}
        </button>
      )}
    </>
  )
}
