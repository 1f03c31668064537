import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { expectInvalid } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(() => harness.setTime(null))

const start = async (body: object, on: Project = project): Promise<string> => {
  const answer = await on.admin.post('/events/replay', body)
  expect([answer.status, answer.data.status], answer.text).toEqual([202, 'queued'])
  return answer.data.operation_id
}
const replay = async (body: object, on: Project = project) =>
  runOperationJob(harness, on, 'events__replay', await start(body, on))
const post = async (events: object[], on: Project = project) => {
  const { status, text } = await on.admin.post('/events', { events, historical: true })
  expect(status, text).toBe(201)
}
const streakOf = async (userId: string, key: string) =>
  (await project.onBehalfOf(userId).get(`/client/streaks/${key}`)).data
const days = (userId: string, event_name: string, dates: string[]) =>
  dates.map((date) => ({ app_user_id: userId, event_name, occurred_at: `${date}T12:00:00Z` }))
const since = '2026-11-01T00:00:00Z'

describe('streaks', () => {
  test('of a definition that came later: a dry run says what would be, and writes nothing; then it is so', async () => {
    harness.setTime('2026-11-21T13:00:00Z')
    const { id } = await project.user()
    await post(days(id, 'late', ['2026-11-18', '2026-11-19', '2026-11-20', '2026-11-21']))
    const reward = { freezes: [{ streak_key: 'late', amount: 1 }] }
    const made = await admin.post('/streaks', {
      key: 'late',
      name: 'Late',
      qualifying_event: 'late',
      milestones: [{ count: 3, reward }],
    })
    const before = await project.sql(`select count(*)::int as count from app.engagement_events`)
    const dry = await replay({ since, targets: ['streaks'] })
    const difference = {
      app_user_id: id,
      streak_definition_id: made.data.id,
      key: 'late',
      before: { status: 'none', current_count: 0, longest_count: 0, freezes_remaining: 0 },
      after: { status: 'active', current_count: 4, longest_count: 4, freezes_remaining: 1 },
    }
    expect(dry).toMatchObject({ type: 'events.replay', status: 'succeeded' })
    expect(dry.progress.done).toBe(dry.progress.total)
    expect(dry.result).toEqual({
      dry_run: true,
      targets: { streaks: { users: 1, changes: 1, differences: [difference], truncated: false } },
    })
    expect((await streakOf(id, 'late')).status).toBe('none')
    for (const table of ['user_streaks', 'streak_periods', 'reward_grants', 'streak_milestones'])
      expect(await project.sql(`select from app.${table} where app_user_id = $1`, [id]), table).toEqual([])

    const wet = await replay({ since, targets: ['streaks'], dry_run: false })
    expect(wet.result).toEqual({ ...dry.result, dry_run: false })
    expect(await streakOf(id, 'late')).toMatchObject({ status: 'active', current_count: 4, freezes_remaining: 1 })
    // nobody hears of what is old
    expect(await project.sql(`select count(*)::int as count from app.engagement_events`)).toEqual(before)

    const again = await replay({ since, dry_run: false })
    expect(again.result.targets.streaks).toEqual({ users: 0, changes: 0, differences: [], truncated: false })
    expect(await project.sql('select from app.reward_grants where app_user_id = $1', [id])).toHaveLength(1)
  })

  test('after a rule became easier, a day that was fed too seldom counts; what counted already is not taken away', async () => {
    harness.setTime('2026-11-21T13:00:00Z')
    const { id } = await project.user()
    await admin.post('/streaks', { key: 'eased', name: 'Eased', qualifying_event: 'eased', min_count: 2 })
    await post(days(id, 'eased', ['2026-11-19', '2026-11-20', '2026-11-20', '2026-11-21']))
    expect(await streakOf(id, 'eased')).toMatchObject({ current_count: 1 })
    await admin.patch('/streaks/eased', { min_count: 1 })
    await replay({ since, targets: ['streaks'], user_ids: [id], dry_run: false })
    expect(await streakOf(id, 'eased')).toMatchObject({ current_count: 3 })
    await admin.patch('/streaks/eased', { min_count: 5 })
    await replay({ since, user_ids: [id], dry_run: false })
    expect(await streakOf(id, 'eased')).toMatchObject({ current_count: 3 })
  })

  test('looks at the events of its time, its users, and what the filter lets through', async () => {
    harness.setTime('2026-11-21T13:00:00Z')
    const [one, two] = [await project.user(), await project.user()]
    for (const { id } of [one, two])
      await post([
        ...days(id, 'ranged', ['2026-11-19', '2026-11-20', '2026-11-21']),
        { app_user_id: id, event_name: 'ranged', occurred_at: '2026-11-18T12:00:00Z', properties: { skip: true } },
      ])
    await admin.post('/streaks', {
      key: 'ranged',
      name: 'Ranged',
      qualifying_event: 'ranged',
      event_filter: { column: 'skip', op: 'is_null' },
    })
    const range = { targets: ['streaks'], since: '2026-11-20T00:00:00Z', until: '2026-11-21T00:00:00Z', dry_run: false }
    const first = await replay({ ...range, user_ids: [one.id.toUpperCase(), one.id] })
    expect(first.progress).toEqual({ done: 1, total: 1 })
    expect(await streakOf(one.id, 'ranged')).toMatchObject({ longest_count: 1 })
    expect(await streakOf(two.id, 'ranged')).toMatchObject({ status: 'none' })
    await replay({ since, dry_run: false })
    for (const { id } of [one, two]) expect(await streakOf(id, 'ranged')).toMatchObject({ current_count: 3 })
  })

  test('while events come in: nothing is lost, and nothing counts twice', { timeout: 180_000 }, async () => {
    const busy = await harness.project()
    await busy.admin.post('/streaks', { key: 'busy', name: 'Busy', qualifying_event: 'busy', min_count: 1000 })
    const users = (await Promise.all(Array.from({ length: 8 }, () => busy.user()))).map(({ id }) => id)
    const sent = new Map(users.map((id) => [id, 0]))
    const writer = async () => {
      for (let n = 0; n < 25; n += 1) {
        const events = Array.from({ length: 6 }, () => users[Math.floor(Math.random() * users.length)]!)
        for (const id of events) sent.set(id, sent.get(id)! + 1)
        const body = { events: events.map((app_user_id) => ({ app_user_id, event_name: 'busy' })) }
        const answer = await busy.server.post('/client/events', body)
        expect(answer.status, answer.text).toBe(201)
      }
    }
    const replays = async () => {
      for (let n = 0; n < 4; n += 1) {
        const ended = await replay({ since, dry_run: n % 2 === 0 }, busy)
        expect(ended.status).toBe('succeeded')
        expect(ended.result.targets.streaks.changes).toBe(0)
      }
    }
    await Promise.all([writer(), writer(), writer(), replays()])
    const rows = await busy.sql('select app_user_id, sum(count)::int as count from app.streak_periods group by 1')
    expect(new Map(rows.map(({ app_user_id, count }) => [app_user_id, count]))).toEqual(sent)
  })

  test('over more users than one step takes; a worker who takes over goes on, and two at once do no harm', async () => {
    const many = await harness.project()
    await many.sql(`with made as (insert into app.users (display_name) select 'u' || n from generate_series(1, 450) n returning id)
      insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
      select internal.new_id(), m.id, 'crowd', now(), now(), 'client' from made m`)
    await many.admin.post('/streaks', { key: 'crowd', name: 'Crowd', qualifying_event: 'crowd' })
    const id = await start({ since, targets: ['streaks'], dry_run: false }, many)
    const ended = await Promise.all([1, 2].map(() => runOperationJob(harness, many, 'events__replay', id)))
    expect(ended[0]).toMatchObject({ status: 'succeeded', progress: { done: 450, total: 450 } })
    expect(ended[0].result.targets.streaks).toMatchObject({ users: 450, changes: 450, truncated: false })
    expect(ended[0].result.targets.streaks.differences).toHaveLength(450)
    expect(await many.sql('select from app.user_streaks where current_count = 1')).toHaveLength(450)
  })
})

describe('targets', () => {
  test('register themselves: a function is a target, and a dry run is the same function taken back', async () => {
    expectInvalid(await admin.post('/events/replay', { since, targets: ['streaks', 'marks'] }), 'targets', /marks/)
    expectInvalid(await admin.post('/events/replay', { since, targets: ['feeds'] }), 'targets', /feeds.*only .*streaks/)
    const { id } = await project.user()
    await project.sql(`
      create table app.test_marks (app_user_id uuid primary key, is_history boolean);
      create function internal.replay__marks(app_user_ids uuid[], since timestamptz, until timestamptz) returns jsonb
      language sql volatile security definer set search_path = '' as $$
        with marked as (
          insert into app.test_marks select u, internal.is_history() from unnest(replay__marks.app_user_ids) u
          on conflict do nothing returning app_user_id)
        select coalesce(jsonb_agg(jsonb_build_object('app_user_id', m.app_user_id)), '[]') from marked m
      $$`)
    try {
      const wanted = { since, targets: ['marks'], user_ids: [id, randomUUID()] }
      const dry = await replay(wanted)
      expect(dry.result.targets).toEqual({
        marks: { users: 1, changes: 1, differences: [{ app_user_id: id }], truncated: false },
      })
      expect(await project.sql('select from app.test_marks')).toEqual([])
      await replay({ ...wanted, dry_run: false })
      expect(await project.sql('select * from app.test_marks')).toEqual([{ app_user_id: id, is_history: true }])
      expect(Object.keys((await replay({ since })).result.targets)).toEqual(
        expect.arrayContaining(['marks', 'streaks']),
      )
    } finally {
      await project.sql('drop function internal.replay__marks; drop table app.test_marks')
    }
  })

  test.each([
    ['since', {}],
    ['since', { since: 'soon' }],
    ['until', { since, until: 'soon' }],
    ['until', { since, until: since }],
    ['targets', { since, targets: [] }],
    ['user_ids', { since, user_ids: [] }],
    ['user_ids.0', { since, user_ids: ['x'] }],
    ['dry_run', { since, dry_run: 'no' }],
  ])('a bad %s is refused: %j', async (field, body) => {
    expectInvalid(await admin.post('/events/replay', body), field, /./)
  })

  test('a body that is no object, and a project that is gone', async () => {
    const { status, error } = await admin.post('/events/replay', '[]')
    expect([status, error?.code]).toEqual([400, 'INVALID_BODY'])
    const gone = await harness.project()
    const id = await start({ since }, gone)
    await harness.control(`update app.tenants set status = 'failed' where project_id = $1`, [gone.id])
    await harness.running.services.notifier.publish([`project:${gone.id}`])
    expect(await runOperationJob(harness, gone, 'events__replay', id)).toMatchObject({
      status: 'failed',
      failed_reason: expect.stringMatching(/no database/),
      result: null,
    })
  })

  test('only a worker takes steps', async () => {
    await expect(
      project.as('app_admin', { 'app.caller': 'developer' }, `select api.events_replay_step($1, 'streaks', '{}', 1)`, [
        randomUUID(),
      ]),
    ).rejects.toThrow(/permission denied/)
  })
})
