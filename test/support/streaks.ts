import { afterEach, expect } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

/** A definition that a test made, with the paths to it. */
export type Defined = { id: string; key: string; event: string; admin: string; client: string }

/** A project for tests of streaks, and the words that these tests speak. */
export const startStreaks = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  afterEach(() => harness.setTime(null))

  let made = 0
  /** A streak of its own for each test: they share one project, and 50 definitions are the limit. */
  const define = async (rules: Record<string, unknown> = {}) => {
    made += 1
    const key = `streak-${made}`
    const answer = await project.admin.post('/streaks', { key, name: key, qualifying_event: `event ${made}`, ...rules })
    expect(answer.status, answer.text).toBe(201)
    const { id, qualifying_event } = answer.data
    return {
      id: id as string,
      key,
      event: qualifying_event as string,
      admin: `/streaks/${key}`,
      client: `/client/streaks/${key}`,
    }
  }

  /** A user whom the clock can be moved for: sessions end after an hour, server keys do not. */
  const someone = async (timezone: string | null = null) => {
    const { id } = await project.user()
    if (timezone) await moveTo(id, timezone)
    return { id, ...project.onBehalfOf(id) }
  }
  const moveTo = (userId: string, timezone: string | null) =>
    project.as(
      'app_user',
      { 'app.user_id': userId, 'app.caller': 'user', 'app.clock': harness.now().toISOString() },
      'update app.users set timezone = $1 where id = $2',
      [timezone, userId],
    )

  /** Feeds by an event, now or at a time, and answers what it did to the streak, or undefined. */
  const event = async (who: Client, streak: Defined, occurred_at?: string) => {
    const body = { event_name: streak.event, ...(occurred_at ? { occurred_at } : {}) }
    const answer = await who.post('/client/events', body)
    expect(answer.status, answer.text).toBe(201)
    return answer.data.effects.streaks?.find((effect: { key: string }) => effect.key === streak.key)
  }
  const see = async (who: Client, streak: Defined, history = 30) => {
    const answer = await who.get(`${streak.client}?history=${history}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const statuses = (data: { history: { period_key: string; status: string }[] }) =>
    Object.fromEntries(data.history.map(({ period_key, status }) => [period_key, status]))
  /** What a streak told of a user, in order. */
  const emitted = async (userId: string, streak: Defined) => {
    const rows = await project.sql<{ event_name: string }>(
      `select event_name from app.engagement_events
      where app_user_id = $1 and event_name like 'svc.streak.%' and properties ->> 'streak_definition_id' = $2
      order by received_at, id`,
      [userId, streak.id],
    )
    return rows.map(({ event_name }) => event_name.replace('svc.streak.', ''))
  }
  return { harness, project, define, someone, moveTo, event, see, statuses, emitted }
}
