import { afterEach, expect } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { type OpenTransaction, openTransaction } from '#test/support/transaction.ts'

/** A project for tests of leagues, and the words that these tests speak. Points come from the event `scored`, its `points`. */
export const startLeagues = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  const { admin } = project
  afterEach(async () => {
    harness.setTime(null)
    // a project has few of them
    await project.sql('delete from app.leagues')
  })
  let made = 0
  const tiers = [
    { key: 'bronze', promote_count: 2 },
    { key: 'silver', promote_count: 1, relegate_count: 2 },
    { key: 'gold', relegate_count: 2 },
  ]
  const league = async (rules: Record<string, unknown> = {}) => {
    made += 1
    const key = `league-${made}`
    const points = { type: 'event', event_name: 'scored', value_property: 'points' }
    const answer = await admin.post('/leagues', { key, name: key, tiers, cohort_size: 5, points, ...rules })
    expect(answer.status, answer.text).toBe(201)
    return answer.data as { id: string; key: string }
  }
  const people = async (count: number) => {
    const rows = await project.sql<{ id: string }>(
      `insert into app.users (display_name) select 'Player ' || n from generate_series(1, $1) n returning id`,
      [count],
    )
    return rows.map(({ id }) => ({ id, ...project.onBehalfOf(id) }))
  }
  type Someone = Awaited<ReturnType<typeof people>>[number]
  /** Scores, and answers the effect on leagues. */
  const score = async (who: Client, points: unknown, more: object = {}) => {
    const answer = await who.post('/client/events', { event_name: 'scored', properties: { points }, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.effects.league
  }
  const show = async (who: Client, key: string) => {
    const answer = await who.get(`/client/leagues/${key}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const current = async (who: Client, key: string) => (await show(who, key)).current
  const last = async (who: Client, key: string) => (await show(who, key)).last_result
  const runs = async (key: string) => (await admin.get(`/leagues/${key}/runs`)).data
  const cohorts = async (key: string, run: string, query = '') => {
    const answer = await admin.get(`/leagues/${key}/runs/${run}/cohorts?limit=200${query}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const place = async (who: Someone, key: string, tier_key: string) => {
    const answer = await admin.put(`/leagues/${key}/users/${who.id}`, { tier_key })
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const close = async (key: string, body: object = {}) => {
    const answer = await admin.post(`/leagues/${key}/close-run`, body)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  /** One step of the job, as a worker takes it at a time. */
  const turn = async (id: string, at: string): Promise<string> => {
    const claims = { 'app.caller': 'worker', 'app.clock': at }
    const [row] = await project.as('app_worker', claims, `select (api.league_turn($1)).body -> 'data' as data`, [id])
    return (row as { data: { state: string } }).data.state
  }
  /** Scores of many in one request, in order: `[who, points]`. */
  const scoreMany = async (scores: readonly (readonly [{ id: string }, number])[], more: object = {}) => {
    for (let from = 0; from < scores.length; from += 500) {
      const events = scores
        .slice(from, from + 500)
        .map(([{ id }, points]) => ({ event_name: 'scored', app_user_id: id, properties: { points }, ...more }))
      const answer = await admin.post('/events', { events })
      expect(answer.status, answer.text).toBeLessThan(300)
    }
  }
  /** A transaction of a server key that is scoring, and stays open. */
  const scoring = (at: string) =>
    openTransaction(project, 'app_server', { 'app.caller': 'server_key', 'app.clock': at })
  const scoreIn = (open: OpenTransaction, who: { id: string }, points: number) =>
    open.query('select api.events_post($1)', [
      JSON.stringify({ event_name: 'scored', app_user_id: who.id, properties: { points } }),
    ])
  /** Seats that are given more than once or not counted, in all cohorts there are: none. */
  const checkSeats = async () => {
    const wrong = await project.sql(
      `select c.id, c.members, count(e.*) as entries from app.league_cohorts c
         left join app.league_entries e on e.run_id = c.run_id and e.cohort_id = c.id
        group by c.id having c.members <> count(e.*) or count(e.*) > c.size`,
    )
    expect(wrong).toEqual([])
  }
  const eventsOf = async (userId: string) =>
    project.sql<{ name: string; properties: any }>(
      `select replace(event_name, 'svc.league.', '') as name, properties from app.engagement_events
        where app_user_id = $1 and event_name like 'svc.league.%' order by received_at, id`,
      [userId],
    )
  return {
    harness,
    project,
    admin,
    tiers,
    league,
    people,
    score,
    show,
    current,
    last,
    runs,
    cohorts,
    place,
    close,
    eventsOf,
    turn,
    scoreMany,
    scoring,
    scoreIn,
    checkSeats,
  }
}
