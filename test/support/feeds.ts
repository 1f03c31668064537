import { expect } from 'vitest'
import type { Project, User } from '#test/support/harness.ts'

/** A time shortly after now, so that sessions last. */
export const soon = (seconds: number) => new Date(Math.ceil(Date.now() / 60_000) * 60_000 + seconds * 1000)

/** What tests of feeds do with a project. */
export const feedsOf = (project: Project) => {
  const people = (count: number) => Promise.all(Array.from({ length: count }, () => project.user()))
  const befriend = (one: User, other: User) => {
    const [a, b] = [one.id, other.id].sort()
    return project.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values ($1, $2, 'accepted', $1, now())`,
      [a, b],
    )
  }
  const post = async (user: User, action: string, more: object = {}) => {
    const answer = await user.post('/client/feeds', { action, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  const actions = async (user: User, path = '') => {
    const answer = await user.get(`/client/feeds${path}`)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.total).toBeGreaterThanOrEqual(answer.data.length)
    return answer.data.map(({ action }: any) => action) as string[]
  }
  const group = async (owner: User, fields: object = {}) =>
    (await owner.post('/client/groups', { name: 'a group', ...fields })).data.id as string
  /** The totals of actors as they are kept, and as entries say. */
  const totals = () =>
    Promise.all([
      project.sql('select actor_key, entries::int, last_at, has_groups from app.feed_totals order by 1'),
      project.sql(
        `select actor_id as actor_key, (count(*) filter (where group_id is null))::int as entries,
                max(created_at) filter (where group_id is null) as last_at, bool_or(group_id is not null) as has_groups
           from app.feed_entries where is_home and actor_id is not null group by 1 order by 1`,
      ),
    ])
  const expectExactTotals = async () => {
    const [kept, counted] = await totals()
    expect(kept).toEqual(counted)
  }
  const silence = () => project.admin.put('/feeds/settings', { events: [] })
  return { people, befriend, post, actions, group, totals, expectExactTotals, silence }
}
