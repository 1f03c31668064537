import { afterEach, expect } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'

/** A harness and a project with the helpers of the tests of friends. */
export const startFriends = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  afterEach(() => harness.setTime(null))

  const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user()))
  const pair = async () => (await users(2)) as [User, User]
  const ask = (one: User, two: User) => one.post('/client/friends/requests', { user_id: two.id })
  const accept = (one: User, two: User) => one.post(`/client/friends/requests/${two.id}/accept`)
  const decline = (one: User, two: User) => one.post(`/client/friends/requests/${two.id}/decline`)
  const befriend = async (one: User, two: User) => {
    expect((await ask(one, two)).status).toBe(201)
    expect((await accept(two, one)).status).toBe(200)
  }
  const friendsOf = async (user: User, query = '') => (await user.get(`/client/friends${query}`)).data
  const idsOf = (rows: { user: { id: string } }[]) => rows.map(({ user }) => user.id)
  const events = (user: User) =>
    project.sql(
      `select event_name, properties from app.engagement_events
        where app_user_id = $1 and event_name like 'svc.friend.%' order by received_at, id`,
      [user.id],
    )
  const codesOf = (answers: Answer[]) => answers.map(({ status }) => status).sort()
  /** Many users of no device, as the other side of many rows. */
  const crowd = async (many: number): Promise<string[]> => {
    const made = await project.sql(
      `insert into app.users (display_name) select 'One of many' from generate_series(1, $1::int) returning id`,
      [many],
    )
    return made.map(({ id }) => id)
  }
  const link = (user: User, others: string[], status: string, fromOthers = false) =>
    project.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by, requested_at, responded_at)
       select least($1::uuid, o.id), greatest($1::uuid, o.id), $3, case when $4 then o.id else $1::uuid end, now() - n * interval '1 minute',
              case when $3 = 'accepted' then now() - n * interval '1 minute' end
         from unnest($2::uuid[]) with ordinality o (id, n)`,
      [user.id, others, status, fromOthers],
    )
  return {
    harness,
    project,
    users,
    pair,
    ask,
    accept,
    decline,
    befriend,
    friendsOf,
    idsOf,
    events,
    codesOf,
    crowd,
    link,
  }
}
