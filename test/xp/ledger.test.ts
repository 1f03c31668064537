import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { runOperationJob } from '#test/support/jobs.ts'
import { startXp } from '#test/support/xp.ts'

const { harness, project, rule, someone, send, me, ledger, levels, grant } = await startXp()
const { admin } = project

describe('the ledger', () => {
  test("pages newest first without gaps or doubles, one's own only", async () => {
    const user = await someone()
    const other = await someone()
    for (const n of [1, 2, 3, 4, 5]) await grant(user.id, n)
    await grant(other.id, 9)
    const seen: number[] = []
    let cursor = ''
    for (;;) {
      const { body } = await user.get(`/client/xp/history?limit=2${cursor}`)
      seen.push(...body.data.map(({ amount }: any) => amount))
      expect(body.pagination.total).toBeNull()
      if (!body.pagination.next_cursor) break
      cursor = `&cursor=${body.pagination.next_cursor}`
    }
    expect(seen).toEqual([5, 4, 3, 2, 1])
    const all = await admin.get(`/xp/transactions?user_id=${user.id}&limit=500`)
    expect(all.data).toHaveLength(5)
    expect((await admin.get('/xp/transactions?limit=1')).data[0].app_user_id).toBe(other.id)
    for (const bad of ['/client/xp/history?cursor=x', '/client/xp/history?limit=0'])
      expect((await user.get(bad)).error?.code).toBe('INVALID_INPUT')
    expect((await admin.get('/xp/transactions?user_id=x')).error?.code).toBe('INVALID_INPUT')
  })

  test('goes with its user, also when a DBA deletes one', async () => {
    const [kept, gone] = [await someone(), await someone()]
    await rule({ event_name: 'capped', amount: 5, max_per_day: 100 })
    for (const { id } of [kept, gone]) await project.onBehalfOf(id).post('/client/events', { event_name: 'capped' })
    const rows = (id: string) =>
      project.sql(
        `select (select count(*)::int from app.xp_transactions where app_user_id = $1) as ledger,
                (select count(*)::int from app.xp_rule_days where app_user_id = $1) as days`,
        [id],
      )
    expect(await rows(gone.id)).toEqual([{ ledger: 1, days: 1 }])
    await project.sql('delete from app.users where id = $1', [gone.id])
    expect(await rows(gone.id)).toEqual([{ ledger: 0, days: 0 }])
    expect(await rows(kept.id)).toEqual([{ ledger: 1, days: 1 }])
  })

  test('is summed up in figures of the week', async () => {
    const other = await harness.project()
    const users = [await other.user(), await other.user()]
    await other.admin.post('/xp/rules', { key: 'a', name: 'a', event_name: 'a', amount: 10 })
    for (const { id } of users) await other.onBehalfOf(id).post('/client/events', { event_name: 'a' })
    await other.admin.post('/xp/grant', { app_user_id: users[0]?.id, amount: -3 })
    expect((await other.admin.get('/xp/stats')).data).toEqual({
      total_awarded_7d: 20,
      is_estimate: false,
      margin: 0,
      by_rule: [{ rule_key: 'a', awards: 2, users: 2, total: 20 }],
      level_distribution: [{ level: 1, users: 2 }],
    })
    await other.sql(`update app.xp_transactions set created_at = created_at - interval '7 days 1 second'`)
    expect((await other.admin.get('/xp/stats')).data).toMatchObject({ total_awarded_7d: 0, by_rule: [] })
  })
})

describe('stored events', () => {
  test('are simulated under a rule, and nothing is written', async () => {
    const other = await harness.project()
    const users = [await other.user(), await other.user(), await other.user()]
    for (const [n, { id }] of users.entries())
      for (let times = 0; times <= n; times += 1) await other.onBehalfOf(id).post('/client/events', { event_name: 'a' })
    await other.admin.post('/xp/rules', {
      key: 'a',
      name: 'a',
      event_name: 'a',
      amount: 10,
      max_per_day: 20,
      is_active: false,
    })
    const simulated = await other.admin.post('/xp/rules/a/simulate', {
      since: new Date(Date.now() - 60_000).toISOString(),
    })
    expect(simulated.data).toEqual({
      awards: 5,
      users: 3,
      total: 50,
      is_estimate: false,
      margin: 0,
      per_user: { median: 20, p90: 20, max: 20 },
    })
    expect(await other.sql('select from app.xp_transactions')).toEqual([])
    expect(
      (await other.admin.post('/xp/rules/a/simulate', { since: '2020-01-01T00:00:00Z' })).error?.details.field,
    ).toBe('since')
    await other.admin.patch('/xp/rules/a', { event_name: 'nobody' })
    expect((await other.admin.post('/xp/rules/a/simulate')).data).toEqual({
      awards: 0,
      users: 0,
      total: 0,
      is_estimate: false,
      margin: 0,
      per_user: { median: null, p90: null, max: null },
    })
  })

  test('are replayed: what was not given is given once, within caps; a dry run writes nothing', async () => {
    const other = await harness.project()
    const { id } = await other.user()
    const who = other.onBehalfOf(id)
    for (let n = 0; n < 4; n += 1) await who.post('/client/events', { event_name: 'a' })
    await other.admin.post('/xp/rules', { key: 'a', name: 'a', event_name: 'a', amount: 10, max_total: 35 })
    await who.post('/client/events', { event_name: 'a' })
    const replay = async (dry_run: boolean) => {
      const { data } = await other.admin.post('/events/replay', {
        since: new Date(Date.now() - 3_600_000).toISOString(),
        until: new Date(Date.now() + 3_600_000).toISOString(),
        targets: ['xp'],
        dry_run,
      })
      return (await runOperationJob(harness, other, 'events__replay', data.operation_id)).result.targets.xp
    }
    const difference = { app_user_id: id, before: 10, after: 35 }
    expect((await replay(true)).differences).toEqual([difference])
    expect((await who.get('/client/xp')).data.total).toBe(10)
    expect((await replay(false)).differences).toEqual([difference])
    expect((await replay(false)).differences).toEqual([])
    expect((await who.get('/client/xp')).data.total).toBe(35)
    const emittedEvents = await other.sql(
      `select is_historical from app.engagement_events where event_name = 'svc.xp.awarded' order by received_at`,
    )
    expect(emittedEvents.map(({ is_historical }) => is_historical)).toEqual([false, true])
  })
})

describe('users', () => {
  test('of one batch each learn their own, and batches say whose', async () => {
    const some = await rule({ amount: 5 })
    const users = [await someone(), await someone()]
    const { data } = await project.server.post('/client/events', {
      events: [...users, ...users, users[0]].map((user) => ({ app_user_id: user?.id, event_name: some.event_name })),
      include_effects: true,
    })
    expect(data.effects.xp).toHaveLength(2)
    expect(data.effects.xp).toEqual(
      expect.arrayContaining(
        users.map(({ id }, n) => expect.objectContaining({ app_user_id: id, awarded: n ? 10 : 15 })),
      ),
    )
  })

  test('that become one have the sum, as a row of the ledger; what both had of one source, once; caps hold together', async () => {
    const free = await rule({ amount: 10 })
    const capped = await rule({ amount: 10, max_total: 15 })
    const made = await project.app.post('/client/auth/email/signup', {
      email: `${randomUUID()}@example.org`,
      password: 'a long passphrase',
    })
    const survivor = project.app.with({ authorization: `Bearer ${made.data.session_token}` })
    const survivorId = made.data.user.id
    const other = await project.user()
    for (const who of [survivor, other]) {
      await send(who, free.event_name)
      await send(who, capped.event_name)
    }
    for (const id of [survivorId, other.id])
      await project.sql(`select internal.grant_reward($1, '{"xp": 100}', 'challenge', 'both')`, [id])
    await project.sql(`select internal.grant_reward($1, '{"xp": 7}', 'challenge', 'theirs')`, [other.id])
    const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    // 120 of its own; 10 + 5 of events, 7 of what only the other had
    expect(await me(survivor)).toMatchObject({ total: 142 })
    const row = (await ledger(survivorId)).find(({ source }) => source === 'merge')
    expect(row).toMatchObject({ amount: 22, total_after: 142, source_id: other.id })
    expect(await send(survivor, capped.event_name)).toMatchObject({ awarded: 0, clipped_by: 'max_total' })
    // the source that paid the other pays no more
    await project.sql(`select internal.grant_reward($1, '{"xp": 7}', 'challenge', 'theirs')`, [survivorId])
    expect((await me(survivor)).total).toBe(142)
  })

  test('whose XP is reset earn levels and their rewards again', async () => {
    await levels({
      levels: [
        { level: 1, xp_required: 0 },
        { level: 2, xp_required: 5, reward: { xp: 1 } },
      ],
    })
    const user = await someone()
    await grant(user.id, 5)
    for (const table of ['xp_transactions', 'xp_rule_days', 'xp_totals'])
      await project.sql(`delete from app.${table} where app_user_id = $1`, [user.id])
    await grant(user.id, 5)
    expect((await me(user)).total).toBe(6)
    await levels({ levels: [{ level: 1, xp_required: 0 }] })
  })
})
