import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { runOperationJob } from '#test/support/jobs.ts'
import { startLeaderboards } from '#test/support/leaderboards.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const { harness, project, board, people, submit, send, show, ranks, scores, eventsOf, checkCounts } =
  await startLeaderboards()
const { admin } = project
const xpOf = async (who: any) => (await who.get('/client/xp')).data.total
const keysOf = async (key: string) => (await admin.get(`/leaderboards/${key}/runs`)).data.map((run: any) => run.key)

describe('periods', () => {
  test.each([
    ['daily', 'UTC', '2026-10-03', '2026-10-03T00:00:00.000Z', '2026-10-04T00:00:00.000Z'],
    ['weekly', 'UTC', '2026-W40', '2026-09-28T00:00:00.000Z', '2026-10-05T00:00:00.000Z'],
    ['monthly', 'UTC', '2026-10', '2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z'],
    ['daily', 'Asia/Tokyo', '2026-10-04', '2026-10-03T15:00:00.000Z', '2026-10-04T15:00:00.000Z'],
    ['monthly', 'Europe/Berlin', '2026-10', '2026-09-30T22:00:00.000Z', '2026-10-31T23:00:00.000Z'],
  ])('%s in %s is %s', async (period, timezone, run, starts_at, ends_at) => {
    harness.setTime('2026-10-03T20:00:00Z')
    const { key } = await board({ period, timezone })
    const [who] = (await people(1)) as [any]
    expect((await show(who, key)).run).toEqual({ key: run, status: 'open', starts_at, ends_at })
    await submit(who, key, 1)
    expect((await show(who, key, `?run=${run}`)).data).toHaveLength(1)
    expectRefusal(await who.get(`/client/leaderboards/${key}?run=previous`), 404, 'NOT_FOUND')
    expectRefusal(await who.get(`/client/leaderboards/${key}?run=2020-01`), 404, 'NOT_FOUND')
    // the next period begins with nobody, without any job
    harness.setTime(ends_at)
    expect((await show(who, key)).data).toEqual([])
    expect((await show(who, key, '?run=previous')).data).toHaveLength(1)
    await submit(who, key, 7)
    expect((await show(who, key)).me).toMatchObject({ score: 7, submissions: 1 })
    expect((await who.get(`/client/leaderboards/${key}/me?run=previous`)).data.score).toBe(1)
  })

  test('late events count until five minutes after the end, in the run of their time', async () => {
    harness.setTime('2026-10-03T23:00:00Z')
    const { key } = await board({ period: 'daily', source: { type: 'event', event_name: 'ran' }, scoring: 'count' })
    const [who] = (await people(1)) as [any]
    await send(who, 'ran')
    harness.setTime('2026-10-04T00:04:59Z')
    await send(who, 'ran', { occurred_at: '2026-10-03T23:59:59Z' })
    await send(who, 'ran')
    expect((await show(who, key, '?run=previous')).run.status).toBe('open')
    harness.setTime('2026-10-04T00:05:00Z')
    await send(who, 'ran', { occurred_at: '2026-10-03T23:59:59Z' })
    expect(await show(who, key, '?run=previous')).toMatchObject({ run: { status: 'closed' }, me: { score: 2 } })
    expect((await show(who, key)).me.score).toBe(1)
    // a clock that is ahead reaches no run that has not begun
    harness.setTime('2026-10-04T23:58:00Z')
    await send(who, 'ran', { occurred_at: '2026-10-05T00:01:00Z' })
    expect((await show(who, key)).me.score).toBe(2)
  })
})

describe('closing', () => {
  const rewards = [
    { from_rank: 1, to_rank: 1, reward: { xp: 100 } },
    { from_rank: 1, to_rank: 2, reward: { xp: 10 } },
  ]
  test('freezes ranks, grants each reward once and emits each event once, however often the job runs', async () => {
    harness.setTime('2026-10-03T20:00:00Z')
    const { id, key } = await board({ period: 'daily', rewards })
    const [a, b, c, d] = (await people(4)) as [any, any, any, any]
    for (const [who, score] of [
      [a, 10],
      [b, 40],
      [c, 30],
      [d, 20],
    ] as const)
      await submit(who, key, score)
    await admin.patch(`/users/${b.id}`, { is_banned: true })
    harness.setTime('2026-10-04T00:04:00Z')
    await project.drain()
    expect(await eventsOf(a.id, 'run_closed')).toEqual([])
    harness.setTime('2026-10-04T00:05:01Z')
    await project.drain()
    const run = { leaderboard_id: id, key, run_key: '2026-10-03', total: 3 }
    expect(await eventsOf(c.id, 'run_closed')).toEqual([{ ...run, score: 30, rank: 1 }])
    expect(await eventsOf(a.id, 'run_closed')).toEqual([{ ...run, score: 10, rank: 3 }])
    expect(await eventsOf(b.id, 'run_closed')).toEqual([])
    expect([await xpOf(c), await xpOf(d), await xpOf(a)]).toEqual([110, 10, 0])
    const [closed] = (await admin.get(`/leaderboards/${key}/runs?limit=200`)).data.filter(
      (r: any) => r.key === '2026-10-03',
    )
    expect(closed).toMatchObject({
      status: 'closed',
      is_frozen: true,
      entries: 3,
      closed_at: '2026-10-04T00:05:01.000Z',
    })
    // and nothing more, by whatever it is asked
    await project.sql(`select internal.enqueue('leaderboards__rollover', $1)`, [id])
    await project.drain()
    expect([await xpOf(c), (await eventsOf(c.id, 'run_closed')).length]).toEqual([110, 1])
    // what is frozen stays, though somebody is banned afterwards
    await admin.patch(`/users/${c.id}`, { is_banned: true })
    expect(await ranks(a, key, '?run=previous')).toEqual([
      [d.id, 2],
      [a.id, 3],
    ])
    expect((await a.get(`/client/leaderboards/${key}/me?run=previous`)).data.rank).toBe(3)
    expect(await ranks(a, key, '?run=previous&around=me&limit=1')).toEqual([[a.id, 3]])
  })

  test('a worker that dies between two steps, and two at once, give no reward twice and leave nobody out', async () => {
    harness.setTime('2026-10-03T20:00:00Z')
    const { id, key } = await board({ period: 'daily', rewards: [{ from_rank: 1, to_rank: 100, reward: { xp: 5 } }] })
    const all = (await people(25)) as any[]
    await admin.post(`/leaderboards/${key}/entries/import`, {
      entries: all.map((who, n) => ({ app_user_id: who.id, score: n })),
    })
    harness.setTime('2026-10-04T00:06:00Z')
    const claims = { 'app.caller': 'worker', 'app.clock': '2026-10-04T00:06:00Z' }
    const step = async () => {
      const [row] = await project.as(
        'app_worker',
        claims,
        `select (api.leaderboard_rollover($1, 4)).body -> 'data' as data`,
        [id],
      )
      return row.data.state
    }
    // what is written in another database meanwhile holds up nothing
    const elsewhere = new pg.Client({ connectionString: inject('dsn') })
    await elsewhere.connect()
    onTestFinished(() => elsewhere.end())
    await elsewhere.query('begin; select pg_current_xact_id()')
    // as many at once as like to
    for (let round = 0; round < 20; round += 1) await Promise.all([step(), step(), step()])
    await expect.poll(step, { timeout: 30_000 }).toBe('done')
    expect(await Promise.all(all.map(xpOf))).toEqual(all.map(() => 5))
    const frozen = await project.sql(
      `select final_rank::int as rank from app.leaderboard_entries e join app.leaderboard_runs r on r.id = e.run_id where r.leaderboard_id = $1 order by 1`,
      [id],
    )
    expect(frozen.map(({ rank }) => rank)).toEqual(all.map((_, n) => n + 1))
    await expect(
      project.as('app_worker', { 'app.caller': 'user' }, `select api.leaderboard_rollover($1, 4)`, [id]),
    ).rejects.toThrow(/worker/)
  })

  test('a writer under way when the run ends is waited for', async () => {
    harness.setTime('2026-10-03T20:00:00Z')
    const { id, key } = await board({ period: 'daily' })
    const [a, b] = (await people(2)) as [any, any]
    await submit(a, key, 10)
    await submit(b, key, 5)
    const url = new URL(inject('dsn'))
    url.pathname = `/${project.database}`
    const writer = new pg.Client({ connectionString: url.href, options: '-c role=trellis_owner' })
    await writer.connect()
    const claims = { 'app.caller': 'worker', 'app.clock': '2026-10-04T00:06:00Z' }
    const step = async () =>
      (
        await project.as('app_worker', claims, `select (api.leaderboard_rollover($1, 100)).body -> 'data' as data`, [
          id,
        ])
      )[0].data.state
    await writer.query('begin')
    await writer.query(`update app.leaderboard_entries set score = 20, place = -20 where app_user_id = $1`, [b.id])
    const states = [await step(), await step(), await step(), await step()]
    expect(states).toEqual(['more', 'more', 'wait', 'wait'])
    await writer.query('commit')
    await writer.end()
    await expect.poll(step, { timeout: 30_000 }).toBe('done')
    harness.setTime('2026-10-04T00:07:00Z')
    expect(await ranks(a, key, '?run=previous')).toEqual([
      [b.id, 1],
      [a.id, 2],
    ])
  })

  test('by hand: the current run ends now, a board of all time begins the next, another waits for its period', async () => {
    harness.setTime('2026-10-03T20:00:00Z')
    const { key } = await board({ rewards })
    const [a] = (await people(1)) as [any]
    await submit(a, key, 10)
    expect((await admin.post(`/leaderboards/${key}/close-run`)).data).toMatchObject({
      key: 'all',
      status: 'closed',
      ends_at: '2026-10-03T20:00:00.000Z',
    })
    await project.drain()
    expect(await xpOf(a)).toBe(110)
    harness.advance(1)
    expect((await show(a, key)).run.key).toBe('all-2')
    await submit(a, key, 3)
    expect(await scores(a, key)).toEqual([[a.id, 3]])
    expect(await scores(a, key, '?run=previous')).toEqual([[a.id, 10]])
    expect((await admin.post(`/leaderboards/${key}/close-run`)).data.key).toBe('all-2')
    expect(await keysOf(key)).toEqual(['all-3', 'all-2', 'all'])

    const daily = await board({ period: 'daily' })
    await submit(a, daily.key, 1)
    expect((await admin.post(`/leaderboards/${daily.key}/close-run`)).status).toBe(200)
    expectRefusal(await admin.post(`/leaderboards/${daily.key}/close-run`), 409, 'LEADERBOARD_NOT_ACTIVE')
    harness.advance(1)
    expectRefusal(await a.post(`/client/leaderboards/${daily.key}/scores`, { score: 2 }), 409, 'LEADERBOARD_NOT_ACTIVE')
    expectRefusal(
      await admin.put(`/leaderboards/${daily.key}/entries/${a.id}`, { score: 2 }),
      409,
      'LEADERBOARD_NOT_ACTIVE',
    )
    expectRefusal(
      await admin.post(`/leaderboards/${daily.key}/entries/import`, { entries: [{ app_user_id: a.id, score: 1 }] }),
      409,
      'LEADERBOARD_NOT_ACTIVE',
    )
    expect((await show(a, daily.key)).run.status).toBe('closed')
    harness.setTime('2026-10-04T00:00:01Z')
    await submit(a, daily.key, 2)
    expectRefusal(await admin.post('/leaderboards/none/close-run'), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/leaderboards/none/runs'), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(`/leaderboards/${key}/runs?limit=x`), 400, 'INVALID_INPUT')
  })

  test('old runs go beyond keep_runs, and the next is made ahead of time', async () => {
    harness.setTime('2026-10-01T12:00:00Z')
    const { key } = await board({ period: 'daily', keep_runs: 2 })
    const [a] = (await people(1)) as [any]
    for (const day of ['01', '02', '03', '04', '05']) {
      harness.setTime(`2026-10-${day}T12:00:00Z`)
      await submit(a, key, Number(day))
      await project.drain()
    }
    harness.setTime('2026-10-05T23:51:00Z')
    await project.drain()
    expect(await keysOf(key)).toEqual(['2026-10-06', '2026-10-05', '2026-10-04', '2026-10-03'])
    expect(
      (
        await project.sql(
          `select count(*)::int as n from app.leaderboard_changes c where not exists (select from app.leaderboard_runs r where r.id = c.run_id)`,
        )
      )[0].n,
    ).toBe(0)
    expect((await admin.delete(`/leaderboards/${key}`)).status).toBe(200)
    expect(
      (await project.sql(`select count(*)::int as n from app.leaderboard_entries where app_user_id = $1`, [a.id]))[0].n,
    ).toBe(0)
  })

  test('the end of a board of all time closes its run', async () => {
    harness.setTime('2026-10-01T12:00:00Z')
    const { key } = await board({ ends_at: '2026-10-02T00:00:00Z', rewards })
    const [a] = (await people(1)) as [any]
    await submit(a, key, 1)
    await project.drain()
    await admin.patch(`/leaderboards/${key}`, { ends_at: '2026-10-03T00:00:00Z' })
    harness.setTime('2026-10-02T12:00:00Z')
    await project.drain()
    await submit(a, key, 2)
    harness.setTime('2026-10-03T00:00:00Z')
    expectRefusal(await a.post(`/client/leaderboards/${key}/scores`, { score: 3 }), 409, 'LEADERBOARD_NOT_ACTIVE')
    harness.setTime('2026-10-03T00:06:00Z')
    await project.drain()
    expect(await xpOf(a)).toBe(110)
    expect((await show(a, key)).run).toEqual({
      key: 'all',
      status: 'closed',
      starts_at: null,
      ends_at: '2026-10-03T00:00:00.000Z',
    })
  })
})

describe('from the log', () => {
  const rebuild = async (key: string) => {
    const answer = await admin.post(`/leaderboards/${key}/rebuild`)
    expect(answer.status, answer.text).toBe(202)
    return runOperationJob(harness, project, 'leaderboards__rebuild', answer.data.operation_id)
  }
  const board0 = (more: object = {}) =>
    board({ source: { type: 'event', event_name: 'hit', value_property: 's' }, scoring: 'sum', ...more })

  test('a rebuild gives what the events of the run say, whatever stood there; history is left out', async () => {
    const [a, b, c] = (await people(3)) as [any, any, any]
    const hit = (who: any, s: number, more: object = {}) => send(who, 'hit', { properties: { s }, ...more })
    await hit(a, 5)
    await hit(b, 3)
    await b.post('/client/events', { events: [{ event_name: 'hit', properties: { s: 50 } }], historical: true })
    const { key } = await board0()
    await hit(a, 1)
    await admin.put(`/leaderboards/${key}/entries/${c.id}`, { score: 99 })
    expect(await scores(a, key)).toEqual([
      [c.id, 99],
      [a.id, 1],
    ])
    const done = await rebuild(key)
    expect(done).toMatchObject({
      status: 'succeeded',
      type: 'leaderboards.rebuild',
      result: { entries: 2, swapped: true },
    })
    expect(await scores(a, key)).toEqual([
      [a.id, 6],
      [b.id, 3],
    ])
    // it goes on as ever, and what it replaced is swept away
    await hit(b, 4)
    expect(await scores(a, key)).toEqual([
      [b.id, 7],
      [a.id, 6],
    ])
    await project.drain()
    expect(
      await project.sql(
        `select state from app.leaderboard_runs r join app.leaderboards b on b.id = r.leaderboard_id where b.key = $1`,
        [key],
      ),
    ).toEqual([{ state: 'live' }])
    expect((await rebuild(key)).result).toMatchObject({ entries: 2 })
    expect(await scores(a, key)).toEqual([
      [b.id, 7],
      [a.id, 6],
    ])
    await checkCounts()
  })

  test('events that come in while it runs are in it, once, whether their user was counted or not', async () => {
    const { id, key } = await board0()
    const all = (await people(12)) as any[]
    for (const who of all) await send(who, 'hit', { properties: { s: 1 } })
    await project.sql(`update app.leaderboard_entries set score = 77, place = -77`)
    const operation = '0190a1b2-0000-7000-8000-0000000000aa'
    const step = async () =>
      (
        await project.as(
          'app_worker',
          { 'app.caller': 'worker' },
          `select (api.leaderboard_rebuild_step($1, $2, 5)).body -> 'data' as data`,
          [operation, id],
        )
      )[0].data
    const states: string[] = []
    for (let n = 0; n < 200; n += 1) {
      const { state } = await step()
      states.push(state)
      if (state === 'done') break
      // until it is done the old run is seen
      expect((await show(all[0], key)).data.length).toBeGreaterThanOrEqual(12)
      expect((await show(all[0], key)).data[0].score).toBeGreaterThanOrEqual(77)
      await send(all[n % 12], 'hit', { properties: { s: 10 } })
    }
    expect(states.at(-1)).toBe('done')
    expect((await step()).state).toBe('done')
    const counted = await project.sql(
      `select e.app_user_id, sum((e.properties ->> 's')::numeric)::int as s from app.engagement_events e
        where e.event_name = 'hit' and e.app_user_id = any ($1) group by 1`,
      [all.map(({ id }) => id)],
    )
    const shown = Object.fromEntries(
      (await show(all[0], key)).data.map((entry: any) => [entry.app_user_id, entry.score]),
    )
    expect(counted.length).toBe(12)
    for (const { app_user_id, s } of counted) expect(shown[app_user_id]).toBe(s)
    await checkCounts()
  })

  test('of two rebuilds at once the one that was asked for first ends, and the other counts', async () => {
    const { id, key } = await board0()
    const all = (await people(7)) as any[]
    for (const who of all) await send(who, 'hit', { properties: { s: 2 } })
    await project.sql(`update app.leaderboard_entries set score = 77, place = -77`)
    const step = async (operation: string) =>
      (
        await project.as(
          'app_worker',
          { 'app.caller': 'worker' },
          `select (api.leaderboard_rebuild_step($1, $2, 5)).body -> 'data' as data`,
          [operation, id],
        )
      )[0].data
    const rebuilds = ['0190a1b2-0000-7000-8000-0000000000ab', '0190a1b2-0000-7000-8000-0000000000ac']
    const ended = new Map<string, boolean>()
    const stepBoth = async () => {
      for (const operation of rebuilds.filter((one) => !ended.has(one))) {
        const { state, swapped } = await step(operation)
        if (state === 'done') ended.set(operation, swapped)
      }
      return ended.size
    }
    // a step waits for transactions that are older than it, those of other databases too
    await expect.poll(stepBoth, { interval: 5 }).toBe(2)
    expect(rebuilds.map((operation) => ended.get(operation))).toEqual([false, true])
    const mine = new Set(all.map((who) => who.id))
    const shown = (await show(all[0], key)).data.filter((entry: any) => mine.has(entry.app_user_id))
    expect(shown.map((entry: any) => entry.score)).toEqual(all.map(() => 2))
    const [runs] = await project.sql(
      'select count(*)::int as count from app.leaderboard_runs where leaderboard_id = $1',
      [id],
    )
    expect(runs.count).toBeLessThanOrEqual(3)
    await checkCounts()
  })

  test('XP is rebuilt from its ledger; manual boards and closed ones are not', async () => {
    const [a] = (await people(1)) as [any]
    await admin.post('/xp/grant', { app_user_id: a.id, amount: 70 })
    await admin.post('/xp/grant', { app_user_id: a.id, amount: -20 })
    const { key } = await board({ source: { type: 'xp' }, scoring: 'sum', period: 'daily' })
    expect((await rebuild(key)).result.swapped).toBe(true)
    expect((await show(a, key)).me).toMatchObject({ score: 50, submissions: 2 })
    expectRefusal(await admin.post(`/leaderboards/${(await board()).key}/rebuild`), 409, 'CONFLICT')
    await admin.post(`/leaderboards/${key}/close-run`)
    expectRefusal(await admin.post(`/leaderboards/${key}/rebuild`), 409, 'LEADERBOARD_NOT_ACTIVE')
    expectRefusal(await admin.post('/leaderboards/none/rebuild'), 404, 'NOT_FOUND')
  })

  test('a replay adds what was missed, says it, and takes nothing away', async () => {
    const [a, b] = (await people(2)) as [any, any]
    await send(a, 'shot', { properties: { s: 4 } })
    await send(a, 'shot', { properties: { s: 6 } })
    const { key } = await board({ source: { type: 'event', event_name: 'shot', value_property: 's' } })
    await admin.put(`/leaderboards/${key}/entries/${b.id}`, { score: 8 })
    const replay = async (dry_run: boolean) => {
      const { data } = await admin.post('/events/replay', {
        since: '2026-01-01T00:00:00Z',
        targets: ['leaderboards'],
        user_ids: [a.id, b.id],
        dry_run,
      })
      return (await runOperationJob(harness, project, 'events__replay', data.operation_id)).result.targets.leaderboards
    }
    const difference = { app_user_id: a.id, key, run_key: 'all', before: null, after: 6 }
    expect((await replay(true)).differences).toContainEqual(difference)
    expect(await scores(a, key)).toEqual([[b.id, 8]])
    expect((await replay(false)).differences).toContainEqual(difference)
    expect(await scores(a, key)).toEqual([
      [b.id, 8],
      [a.id, 6],
    ])
    expect((await replay(false)).differences.filter((d: any) => d.key === key)).toEqual([])
    expect(await eventsOf(a.id)).toEqual([])
  })
})
