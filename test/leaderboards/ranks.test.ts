import { expect, test } from 'vitest'
import { startLeaderboards } from '#test/support/leaderboards.ts'

const { project, board, people, submit, show, checkCounts } = await startLeaderboards()

/** Repeatable numbers from 0 to 1. */
const dice = (seed: number) => () => {
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed / 2147483648
}
const runOf = async (id: string) =>
  (await project.sql(`select id from app.leaderboard_runs where leaderboard_id = $1 and state = 'live'`, [id]))[0].id
const fill = (runId: string, sql: string, values: unknown[] = []) =>
  project.sql(
    `insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at)
     select '${runId}', u.id, s.score, -s.score, '2026-11-01'::timestamptz + s.seconds * interval '1 second'
       from app.users u cross join lateral (${sql}) s where u.display_name like 'Player %'`,
    values,
  )
const buckets = async (runId: string) =>
  (
    await project.sql(
      `select count(*)::int as buckets, coalesce(max(entries), 0)::int as most,
              (select count(*)::int from app.leaderboard_bucket_groups s where s.run_id = $1) as bucket_groups,
              (select count(*)::int from app.leaderboard_changes c where c.run_id = $1) as waiting
         from app.leaderboard_buckets where run_id = $1`,
      [runId],
    )
  )[0]
const fold = (runId: string) => project.sql(`select internal.leaderboard_fold($1)`, [runId])

test('ranks are what sorting says, after thousands of random scores, updates, bans and deletions, folded at random', {
  timeout: 300_000,
}, async () => {
  const { id, key } = await board()
  const players = await people(1500)
  await submit(players[0] as never, key, 1)
  const run = await runOf(id)
  await project.sql(`delete from app.leaderboard_entries where run_id = $1`, [run])
  // many ties of score, some of time too
  await fill(
    run,
    `select floor(random() * 200)::numeric as score, floor(random() * 50 + length(u.id::text)) as seconds`,
  )
  await checkCounts()
  const roll = dice(7)
  for (let round = 0; round < 9; round += 1) {
    const some = `select app_user_id from app.leaderboard_entries where run_id = '${run}' order by md5(app_user_id::text || ${round}) limit ${Math.ceil(roll() * 200)}`
    const act = Math.floor(roll() * 5)
    if (act === 0)
      await project.sql(
        `update app.leaderboard_entries set score = x.s, place = -x.s, reached_at = '2026-11-02'
      from (select round((random() * 1000)::numeric, 2) as s) x where run_id = $1 and app_user_id in (${some})`,
        [run],
      )
    // everybody rises: what counted the low ones runs empty
    if (act === 1)
      await project.sql(
        `update app.leaderboard_entries set score = score + 500, place = place - 500 where run_id = $1`,
        [run],
      )
    if (act === 2) await project.sql(`update app.users set is_banned = not is_banned where id in (${some})`)
    if (act === 3) await project.sql(`delete from app.users where id in (${some})`)
    if (act === 4)
      await project.sql(`delete from app.leaderboard_entries where run_id = $1 and app_user_id in (${some})`, [run])
    if (roll() < 0.5) await fold(run)
    await checkCounts()
  }
  await fold(run)
  const end = await buckets(run)
  expect(end.buckets).toBeGreaterThan(5)
  expect(end.most).toBeLessThanOrEqual(512)
})

test('buckets split as a run grows, bucket_groups with them, and both go again when it empties', {
  timeout: 300_000,
}, async () => {
  const { id, key } = await board()
  const players = await people(1)
  await submit(players[0] as never, key, 1)
  const run = await runOf(id)
  await project.sql(`insert into app.users (display_name) select 'Many ' || n from generate_series(1, 36000) n`)
  await project.sql(
    `insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at)
     select $1, u.id, 5, -5, '2026-11-01'::timestamptz + row_number() over () * interval '1 microsecond' from app.users u where u.display_name like 'Many %'`,
    [run],
  )
  await fold(run)
  const grown = await buckets(run)
  expect(grown.buckets).toBeGreaterThan(250)
  expect(grown.bucket_groups).toBeGreaterThan(1)
  const sample = await project.sql(
    `with t as materialized (select e.*, row_number() over (order by e.place, e.reached_at, e.app_user_id) as n from app.leaderboard_entries e where e.run_id = $1)
     select count(*)::int as checked, count(*) filter (where internal.leaderboard_rank(t.run_id, t.place, t.reached_at, t.app_user_id) <> t.n)::int as wrong
       from t where t.n % 211 = 0`,
    [run],
  )
  expect(sample[0].wrong).toBe(0)
  expect(sample[0].checked).toBeGreaterThan(150)
  // the last page is found without walking there
  const page = await show(players[0] as never, key, '?limit=3&offset=35998')
  expect(page.data.map((entry: any) => entry.rank)).toEqual([35999, 36000, 36001])
  expect(page.total).toBe(36001)
  await project.sql(`delete from app.leaderboard_entries where run_id = $1 and score = 5`, [run])
  for (let turn = 0; turn < 3; turn += 1) await fold(run)
  expect((await buckets(run)).bucket_groups).toBeLessThan(grown.bucket_groups + 1)
  await checkCounts()
})

test('the ranks before and after a move, near or far, and the page around it are what sorting says, folded or not', {
  timeout: 180_000,
}, async () => {
  const { id, key } = await board({ scoring: 'sum', max_per_minute: 1000 })
  const players = await people(600)
  const [mover] = players as [(typeof players)[number]]
  await submit(mover, key, 100)
  const run = await runOf(id)
  // ties of score, and of time
  await project.sql(
    `insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at)
     select $1, u.id, 100 + n / 3, -100 - n / 3, '2026-11-01'::timestamptz + n / 2 * interval '1 second'
       from unnest($2::uuid[]) with ordinality as u (id, n)`,
    [run, players.slice(1).map(({ id }) => id)],
  )
  const sorted = () =>
    project.sql<{ id: string; score: number; reached_at: string }>(
      `select app_user_id as id, score::float8 as score from app.leaderboard_entries
        where run_id = $1 order by place, reached_at, app_user_id`,
      [run],
    )
  const roll = dice(11)
  for (const step of [0, 1, 150, -150, 2, 199, -1, -3, ...Array.from({ length: 12 }, () => Math.ceil(roll() * 80))]) {
    const before = await sorted()
    const { entry, previous, improved } = await submit(mover, key, step)
    const after = await sorted()
    const ids = after.map(({ id }) => id)
    const rank = ids.indexOf(mover.id) + 1
    expect([entry.rank, improved]).toEqual([rank, step > 0])
    // among the others, who have not moved
    expect(previous.rank).toBe(before.findIndex(({ id }) => id === mover.id) + 1)
    const { data, offset, me } = await show(mover, key, '?around=me&limit=9')
    const first = Math.max(0, Math.min(rank - 5, 600 - 9))
    expect([offset, me.rank]).toEqual([first, rank])
    expect(data.map((each: any) => [each.app_user_id, each.rank])).toEqual(
      ids.slice(first, first + 9).map((each, n) => [each, first + n + 1]),
    )
    expect(data.find((each: any) => each.app_user_id === mover.id).user).toEqual({
      id: mover.id,
      display_name: 'Player 1',
      avatar_url: null,
    })
    if (roll() < 0.3) await fold(run)
  }
  await checkCounts()
})

test('an import leaves its changes folded, and an entry that does not move leaves none', async () => {
  const { id, key } = await board()
  const players = await people(120)
  const imported = (score: number) =>
    project.admin.post(`/leaderboards/${key}/entries/import`, {
      entries: players.map((player, n) => ({ app_user_id: player.id, score: score + n })),
    })
  expect((await imported(10)).status).toBe(200)
  const run = await runOf(id)
  // over entries that are there, which only their rows note
  expect((await imported(500)).status).toBe(200)
  expect((await buckets(run)).waiting).toBe(0)
  await submit(players[0] as never, key, 1)
  await project.sql(`update app.leaderboard_entries set place = place, final_rank = null where run_id = $1`, [run])
  expect((await buckets(run)).waiting).toBe(0)
  await checkCounts()
})

test('a hundred updates at once leave ranks unique and gapless, and every answer saw a rank that there was', {
  timeout: 180_000,
}, async () => {
  const { key } = await board({ scoring: 'sum', max_per_minute: 1000 })
  const players = await people(25)
  const roll = dice(3)
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, n) => submit(players[n % 25] as never, key, Math.ceil(roll() * 100))),
  )
  for (const { entry } of answers) {
    expect(entry.rank).toBeGreaterThanOrEqual(1)
    expect(entry.rank).toBeLessThanOrEqual(25)
  }
  const page = await show(players[0] as never, key)
  expect(page.data.map((entry: any) => entry.rank)).toEqual(Array.from({ length: 25 }, (_, n) => n + 1))
  expect(page.data.map((entry: any) => entry.submissions).reduce((a: number, b: number) => a + b)).toBe(200)
  expect([...page.data].sort((a: any, b: any) => b.score - a.score)).toEqual(page.data)
  await checkCounts()
})

test('moves under way in other transactions are neither lost nor counted twice by who folds meanwhile', async () => {
  const { id, key } = await board()
  const [one, two, three] = await people(3)
  await submit(one as never, key, 10)
  await submit(two as never, key, 20)
  const run = await runOf(id)
  await fold(run)
  const pg = await import('pg')
  const { inject } = await import('vitest')
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const other = new pg.default.Client({ connectionString: url.href, options: '-c role=trellis_owner' })
  await other.connect()
  try {
    await other.query('begin')
    await other.query(
      `update app.leaderboard_entries set score = 30, place = -30 where run_id = $1 and app_user_id = $2`,
      [run, one?.id],
    )
    await submit(three as never, key, 15)
    await fold(run)
    await checkCounts()
    expect((await show(one as never, key)).data.map((entry: any) => entry.app_user_id)).toEqual([
      two?.id,
      three?.id,
      one?.id,
    ])
    await other.query('commit')
    await checkCounts()
    expect((await show(one as never, key)).data.map((entry: any) => entry.app_user_id)).toEqual([
      one?.id,
      two?.id,
      three?.id,
    ])
    await fold(run)
    await checkCounts()
    // and what is undone leaves nothing
    await other.query('begin')
    await other.query(`delete from app.leaderboard_entries where run_id = $1`, [run])
    await other.query(`select internal.leaderboard_fold($1)`, [run])
    await other.query('rollback')
    await checkCounts()
  } finally {
    await other.end()
  }
})

test('moves that wait are folded by a task, which is queued once; where it waits long, by who asks for it', async () => {
  const { id, key } = await board()
  const players = await people(3)
  for (const [n, player] of players.entries()) await submit(player as never, key, n + 1)
  const run = await runOf(id)
  const queued = async () =>
    (
      await project.sql(`select count(*)::int as n from app.outbox where task = 'leaderboards__fold' and key = $1`, [
        run,
      ])
    )[0].n
  await project.drain()
  await submit(players[0] as never, key, 50)
  for (let time = 0; time < 5; time += 1) await project.sql('select internal.leaderboard_fold_later($1)', [run])
  expect((await buckets(run)).waiting).toBeGreaterThan(0)
  expect(await queued()).toBe(1)
  // no worker has come for it: one in ten that ask folds
  await project.sql(
    `update app.outbox set created_at = created_at - interval '1 minute' where task = 'leaderboards__fold'`,
  )
  await project.sql('select internal.leaderboard_fold_later($1) from generate_series(1, 300)', [run])
  expect(await buckets(run)).toMatchObject({ waiting: 0 })
  await project.sql(`select internal.enqueue('leaderboards__fold', $1)`, [run])
  await submit(players[1] as never, key, 60)
  expect((await buckets(run)).waiting).toBeGreaterThan(0)
  await project.drain()
  expect(await buckets(run)).toMatchObject({ waiting: 0, most: 3 })
  expect(await queued()).toBe(0)
  await checkCounts()
})
