import { afterEach, expect } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

/** A project for tests of leaderboards, and the words that these tests speak. */
export const startLeaderboards = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  afterEach(() => harness.setTime(null))
  let made = 0
  /** A board of its own for each test, that apps may write to. */
  const board = async (rules: Record<string, unknown> = {}) => {
    made += 1
    const key = `board-${made}`
    const answer = await project.admin.post('/leaderboards', { key, name: key, client_writable: true, ...rules })
    expect(answer.status, answer.text).toBe(201)
    return answer.data as { id: string; key: string }
  }
  const someone = async () => {
    const { id } = await project.user()
    return { id, ...project.onBehalfOf(id) }
  }
  type Someone = Awaited<ReturnType<typeof someone>>
  const people = async (count: number) => {
    const rows = await project.sql<{ id: string }>(
      `insert into app.users (display_name) select 'Player ' || n from generate_series(1, $1) n returning id`,
      [count],
    )
    return rows.map(({ id }): Someone => ({ id, ...project.onBehalfOf(id) }))
  }
  const submit = async (who: Client, key: string, score: number, more: object = {}) => {
    const answer = await who.post(`/client/leaderboards/${key}/scores`, { score, ...more })
    expect([200, 201], answer.text).toContain(answer.status)
    return answer.data
  }
  const send = async (who: Client, event_name: string, more: object = {}) => {
    const answer = await who.post('/client/events', { event_name, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.effects.leaderboards
  }
  const show = async (who: Client, key: string, query = '') => {
    const answer = await who.get(`/client/leaderboards/${key}${query}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.body
  }
  /** The page as pairs of a user and a rank. */
  const ranks = async (who: Client, key: string, query = '') =>
    (await show(who, key, query)).data.map((entry: any) => [entry.app_user_id, entry.rank])
  const scores = async (who: Client, key: string, query = '') =>
    (await show(who, key, query)).data.map((entry: any) => [entry.app_user_id, entry.score])
  const eventsOf = async (userId: string, name = 'rank_changed') =>
    (
      await project.sql(
        `select properties from app.engagement_events where app_user_id = $1 and event_name = $2 order by received_at, id`,
        [userId, `svc.leaderboard.${name}`],
      )
    ).map(({ properties }) => properties)
  /** Whatever the counts say is what counting says: every rank, the total, and where pages begin, in every run. */
  const checkCounts = async () => {
    // plans of tables that were just filled are bad ones without it
    for (const table of ['entries', 'buckets', 'bucket_groups', 'changes', 'runs'])
      await project.sql(`analyze app.leaderboard_${table}`)
    const wrong = await project.sql(`
      with true_ranks as materialized (
        select e.*, row_number() over (partition by e.run_id order by e.place, e.reached_at, e.app_user_id) as n,
               count(*) over (partition by e.run_id) as total
          from app.leaderboard_entries e where not e.is_hidden
      )
      select 'rank' as what, r.run_id, r.n, r.got
        from (select t.run_id, t.n, internal.leaderboard_rank(t.run_id, t.place, t.reached_at, t.app_user_id) as got from true_ranks t offset 0) r
       where r.got <> r.n
      union all
      select 'total', r.id, (select count(*) from true_ranks t where t.run_id = r.id), internal.leaderboard_total(r.id)
        from app.leaderboard_runs r
       where internal.leaderboard_total(r.id) <> (select count(*) from true_ranks t where t.run_id = r.id)
      union all
      select 'seek', t.run_id, t.n, s.before
        from true_ranks t
       cross join lateral internal.leaderboard_seek(t.run_id, t.n - 1) s
       where t.n % 101 = 0 and (s.before > t.n - 1 or s.before <> (
         select count(*) from true_ranks o where o.run_id = t.run_id
            and (o.place, o.reached_at, o.app_user_id) < ((s.bound).from_place, (s.bound).from_at, (s.bound).from_id)))
      union all
      select 'negative', k.run_id, k.entries, 0 from app.leaderboard_buckets k where k.entries < 0
      union all
      select 'bucket_group', k.run_id, k.entries, b.entries
        from app.leaderboard_bucket_groups k
       cross join lateral (
         select sum(b.entries) as entries, count(*) as buckets from app.leaderboard_buckets b
          where b.run_id = k.run_id and (b.from_place, b.from_at, b.from_id) >= (k.from_place, k.from_at, k.from_id)
            and not exists (select from app.leaderboard_bucket_groups n where n.run_id = k.run_id
                               and (n.from_place, n.from_at, n.from_id) > (k.from_place, k.from_at, k.from_id)
                               and (n.from_place, n.from_at, n.from_id) <= (b.from_place, b.from_at, b.from_id))) b
       where k.entries <> b.entries or k.buckets <> b.buckets`)
    expect(wrong).toEqual([])
  }
  return { harness, project, board, someone, people, submit, send, show, ranks, scores, eventsOf, checkCounts }
}
