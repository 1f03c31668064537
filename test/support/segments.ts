import { afterEach, expect } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'

export const root = '/segments'
export const tier = (value: unknown) => ({ source: 'property', column: 'tier', op: 'eq', value })

/** A project for tests of segments, and the words that these tests speak. */
export const startSegments = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  afterEach(() => harness.setTime(null))

  let made = 0
  const segmentOf = async (body: Record<string, unknown>, own: Project = project) => {
    made += 1
    const answer = await own.admin.post(root, { key: `segment-${made}`, name: `Segment ${made}`, ...body })
    expect(answer.status, answer.text).toBe(201)
    return { ...answer.data, path: `${root}/${answer.data.key}` }
  }
  const userWith = async (properties: unknown, own: Project = project): Promise<string> => {
    const { id } = await own.user()
    await own.sql('update app.users set properties = $2 where id = $1', [id, JSON.stringify(properties)])
    return id
  }
  const send = (userId: string, event_name: string, more: Record<string, unknown> = {}, own: Project = project) =>
    own.admin.post('/events', { app_user_id: userId, event_name, ...more }).then((answer) => {
      expect(answer.status, answer.text).toBe(201)
    })
  /** What the one asked about is in, by what is so now. */
  const isIn = async (segment: { path: string }, userId: string, own: Project = project): Promise<boolean> =>
    (await own.admin.get(`${segment.path}/members/${userId}/explain`)).data.member
  const stored = async (segment: { id: string }, own: Project = project): Promise<string[]> =>
    (await own.sql('select app_user_id from app.segment_members where segment_id = $1 order by 1', [segment.id])).map(
      ({ app_user_id }) => app_user_id,
    )
  const eventsOf = async (userId: string) =>
    (
      await project.sql(
        `select event_name, properties ->> 'key' as key from app.engagement_events
          where app_user_id = $1 and event_name like 'svc.segment.%' order by received_at, id`,
        [userId],
      )
    ).map(({ event_name, key }) => `${event_name.replace('svc.segment.', '')} ${key}`)
  return { harness, project, segmentOf, userWith, send, isIn, stored, eventsOf }
}
