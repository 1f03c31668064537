import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const partitionOf = async (id: string) =>
  (await project.sql('select tableoid::regclass::text as name from app.engagement_events where id = $1', [id]))[0]?.name
const maintain = () =>
  project.as('app_worker', { 'app.clock': harness.now().toISOString() }, 'select api.events_maintain()')

describe('partitions', () => {
  test('of this month and the next two are there from the start, and made again every day', async () => {
    const names = () =>
      project.sql(
        `select c.relname, c.relrowsecurity from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'app.engagement_events'::regclass order by 1`,
      )
    expect(await names()).toHaveLength(4)
    harness.setTime('2031-12-15T10:00:00Z')
    await maintain()
    await maintain()
    const found = await names()
    expect(found.map(({ relname }) => relname)).toEqual(
      expect.arrayContaining(['engagement_events_203112', 'engagement_events_203201', 'engagement_events_203202']),
    )
    expect(found.every(({ relrowsecurity }) => relrowsecurity)).toBe(true)
  })

  test('made by two at once are made once', async () => {
    harness.setTime('2035-03-15T10:00:00Z')
    const first = await openTransaction(project, 'app_worker', { 'app.clock': harness.now().toISOString() })
    await first.query('select api.events_maintain()')
    const second = maintain().then(
      () => 'done',
      (error) => error.code,
    )
    await untilBlocked(project)
    await first.commit()
    // or it gave up waiting, and its job comes again
    expect(['done', '55P03']).toContain(await second)
  })

  test('a month without one takes events, twenty first ones at once, and gets them when it is made', async () => {
    harness.setTime(new Date(Date.now() + 366 * 86_400_000))
    const month = harness.now().toISOString().slice(0, 7).replace('-', '')
    const users = await Promise.all(Array.from({ length: 20 }, () => project.user()))
    const sent = users.map((user) => ({ user, id: randomUUID() }))
    const post = () =>
      Promise.all(
        sent.map(({ user, id }) => user.post('/client/events', { id, event_name: 'first', properties: { id } })),
      )
    expect((await post()).map(({ status }) => status)).toEqual(Array(20).fill(201))
    expect(await partitionOf(sent[0]!.id)).toBe('app.engagement_events_default')

    await maintain()
    for (const { id } of sent) expect(await partitionOf(id)).toBe(`app.engagement_events_${month}`)
    expect(await project.sql(`select from only app.engagement_events_default where event_name = 'first'`)).toEqual([])
    const again = await post()
    expect(again.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(again.map(({ data }) => data.event.properties.id)).toEqual(sent.map(({ id }) => id))
    expect((await users[0]!.post('/client/events', { event_name: 'second' })).status).toBe(201)
    // the tie to its user moved along
    await project.sql('delete from app.users where id = $1', [users[0]!.id])
    expect(await partitionOf(sent[0]!.id)).toBeUndefined()
  })

  test('cannot be read directly, and the whole shows each role what it may see', async () => {
    const [one, two] = [await project.user(), await project.user()]
    for (const user of [one, two]) await user.post('/client/events', { event_name: 'private' })
    const partitions = await project.sql<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'app.engagement_events'::regclass`,
    )
    for (const { name } of partitions) {
      for (const role of ['app_user', 'app_server', 'app_admin', 'app_worker'] as const)
        await expect(project.as(role, {}, `select from ${name}`)).rejects.toThrow(/permission denied/)
      await expect(project.as('app_user', {}, `insert into ${name} select from app.engagement_events`)).rejects.toThrow(
        /permission denied/,
      )
    }
    const seen = async (role: 'app_user' | 'app_server' | 'app_admin', userId = '') =>
      (
        await project.as(
          role,
          { 'app.user_id': userId },
          `select app_user_id from app.engagement_events where event_name = 'private'`,
        )
      ).map((row) => row.app_user_id)
    expect(await seen('app_user', one.id)).toEqual([one.id])
    expect(await seen('app_user')).toEqual([])
    expect((await seen('app_server')).sort()).toEqual([one.id, two.id].sort())
    expect(await seen('app_admin')).toHaveLength(2)
    await expect(project.as('app_anon', {}, 'select from app.engagement_events')).rejects.toThrow(/permission denied/)
    for (const table of ['engagement_events', 'event_ids', 'user_event_counters'])
      await expect(project.as('app_user', {}, `delete from app.${table}`)).rejects.toThrow(/permission denied/)
    const counted = await project.as(
      'app_user',
      { 'app.user_id': one.id },
      'select distinct app_user_id from app.user_event_counters',
    )
    expect(counted).toEqual([{ app_user_id: one.id }])
  })
})

describe('one transaction', () => {
  test('four writers with overlapping batches in no order: no deadlock, and every counter exact', {
    timeout: 180_000,
  }, async () => {
    const users = (await Promise.all(Array.from({ length: 12 }, () => project.user()))).map(({ id }) => id)
    const expected = new Map<string, number>()
    const pick = (most: number) => Math.floor(Math.random() * most)
    const batch = () =>
      Array.from({ length: 40 }, () => {
        const event = { app_user_id: users[pick(users.length)]!, event_name: `n${pick(4)}` }
        const key = `${event.app_user_id} ${event.event_name}`
        expected.set(key, (expected.get(key) ?? 0) + 1)
        return event
      })
    const writer = async () => {
      for (let times = 0; times < 50; times += 1) {
        const { status, text } = await project.server.post('/client/events', { events: batch() })
        expect(status, text).toBe(201)
      }
    }
    await Promise.all([writer(), writer(), writer(), writer()])
    const rows = await project.sql(
      `select app_user_id || ' ' || event_name as key, sum(count)::int as count from app.user_event_counters
        where app_user_id = any ($1) and event_name ~ '^n' group by 1`,
      [users],
    )
    expect(new Map(rows.map(({ key, count }) => [key, count]))).toEqual(expected)
  })

  test('a killed transaction stores nothing, and does not use its key up', async () => {
    const user = await project.user()
    const hook = await project.admin.post('/webhooks', { event_name: 'precious', target_url: 'https://1.1.1.1/' })
    expect(hook.status).toBe(201)
    const id = randomUUID()
    const open = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': user.id })
    await open.query(`select api.events_post($1, 'key', 'hash')`, [JSON.stringify({ id, event_name: 'precious' })])
    await open.kill()
    for (const [table, where] of [
      ['engagement_events', `id = '${id}'`],
      ['event_ids', `id = '${id}'`],
      ['user_event_counters', `event_name = 'precious'`],
      ['webhook_deliveries', 'true'],
      ['outbox', `task = 'webhooks__deliver'`],
      ['idempotency_keys', `key = 'key'`],
    ])
      expect(await project.sql(`select from app.${table} where ${where}`), table).toEqual([])
    const headers = { 'idempotency-key': 'key' }
    expect((await user.post('/client/events', { id, event_name: 'precious' }, headers)).status).toBe(201)
    expect(await project.sql(`select from app.webhook_deliveries`)).toHaveLength(1)
  })

  test('a hook that fails undoes the event and everything that the hooks before it did', async () => {
    const user = await project.user()
    await project.sql(`
      create function internal.tg_test_fails() returns trigger language plpgsql as 'begin raise exception ''no''; end';
      create trigger tg_engagement_events__99_test after insert on app.engagement_events
        for each statement execute function internal.tg_test_fails()`)
    const id = randomUUID()
    const failed = await user.post('/client/events', { id, event_name: 'undone' })
    await project.sql('drop function internal.tg_test_fails cascade')
    expect([failed.status, failed.error?.code]).toEqual([500, 'CREATE_FAILED'])
    expect(await project.sql(`select from app.user_event_counters where event_name = 'undone'`)).toEqual([])
    expect((await user.post('/client/events', { id, event_name: 'undone' })).status).toBe(201)
  })

  test('events that cause events end after five rounds; what is beyond is recorded and moves nothing', async () => {
    const user = await project.user()
    await project.sql(`
      create function internal.tg_test_loops() returns trigger language plpgsql security definer as $$
      begin
        if internal.event_hooks_may_run() then
          perform internal.emit((select app_user_id from inserted limit 1), 'svc.test.looped');
        end if;
        return null;
      end $$;
      create trigger tg_engagement_events__80_test after insert on app.engagement_events
        referencing new table as inserted for each statement execute function internal.tg_test_loops()`)
    const { status } = await user.post('/client/events', { event_name: 'loops' })
    await project.sql('drop function internal.tg_test_loops cascade')
    expect(status).toBe(201)
    const looped = await project.sql(`select source from app.engagement_events where event_name = 'svc.test.looped'`)
    expect(looped).toEqual(Array(5).fill({ source: 'system' }))
  })

  test('what the platform does to a user is an event as well', async () => {
    const user = await project.user()
    const seen = await project.sql(
      `select event_name, source from app.engagement_events where app_user_id = $1 order by event_name`,
      [user.id],
    )
    expect(seen).toEqual([
      { event_name: 'svc.user.created', source: 'system' },
      { event_name: 'svc.user.signed_in', source: 'system' },
    ])
  })

  test('an event shows when its user was last seen, at most once a minute', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const user = await project.user()
    const seen = async () =>
      (await project.sql('select last_seen_at from app.users where id = $1', [user.id]))[0].last_seen_at.toISOString()
    for (const [at, expected] of [
      ['2026-11-21T10:00:59Z', '2026-11-21T10:00:00.000Z'],
      ['2026-11-21T10:01:01Z', '2026-11-21T10:01:01.000Z'],
    ] as const) {
      harness.setTime(at)
      await user.post('/client/events', { event_name: 'opened' })
      expect(await seen()).toBe(expected)
    }
  })
})

describe('ceilings', async () => {
  const limited = await startHarness({ env: { GENERAL_RATE_LIMITS: 'on' } })
  const busy = await limited.project()

  /** The buckets stand still: time passes only when it is told to. */
  const standing = async (work: () => Promise<void>) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      await work()
    } finally {
      vi.useRealTimers()
    }
  }
  const flood = async (times: number, one: () => Promise<{ status: number; headers: Headers; error: any }>) => {
    const answers = await Promise.all(Array.from({ length: times }, one))
    const refused = answers.filter(({ status }) => status === 429)
    for (const { error, headers } of refused) {
      expect(error.code).toBe('RATE_LIMITED')
      expect(headers.get('retry-after')).toBe('1')
    }
    return {
      passed: times - refused.length,
      others: new Set(answers.map(({ status }) => status).filter((status) => status !== 429)),
    }
  }

  test('50 requests a second for each user, whatever a batch holds, from wherever', async () => {
    await standing(async () => {
      const [user, other] = [await busy.user(), await busy.user()]
      const post = () =>
        user.post(
          '/client/events',
          { events: [{ event_name: 'a' }, { event_name: 'b' }] },
          { 'x-forwarded-for': '10.1.1.1' },
        )
      expect(await flood(80, post)).toEqual({ passed: 50, others: new Set([201]) })
      expect((await other.post('/client/events', { event_name: 'a' })).status).toBe(201)
      // the ceiling of other routes is another one
      expect((await user.get('/client/users/me')).status).toBe(200)
      vi.advanceTimersByTime(1000)
      expect((await flood(80, post)).passed).toBe(50)
    })
  })

  test('1000 requests a second for a project, also from one address', async () => {
    await standing(async () => {
      vi.advanceTimersByTime(10_000)
      const post = () => busy.server.post('/client/events', '[]', { 'x-forwarded-for': '10.1.1.2' })
      expect(await flood(1020, post)).toEqual({ passed: 1000, others: new Set([400]) })
      vi.advanceTimersByTime(100)
      expect((await flood(120, post)).passed).toBe(100)
    })
  })
})
