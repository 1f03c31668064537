import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { openTransaction } from '#test/support/transaction.ts'
import { drainTenant } from '#workers/drain.ts'
import { type OutboxTask, outboxTask } from '#workers/task.ts'
import { fleetMaintain, fleetSweep, fleetSweepAll } from '#workers/tasks/fleet__sweep.ts'

// tasks fail on purpose here, and say so in the log
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
const project = await harness.project()
const { services } = harness.running
const start = '2026-11-21T10:00:00.000Z'
harness.setTime(start)

afterEach(async () => {
  harness.setTime(start)
  await project.sql('delete from app.outbox')
})

type Leased = { id: string; task: string; key: string | null; payload: object; attempts: number; lease: number }
const at = (seconds: number) => new Date(Date.parse(start) + seconds * 1000).toISOString()
const enqueue = (task: string, key: string | null, more: { payload?: object; due?: string; lane?: string } = {}) =>
  project.sql(`select internal.enqueue($1, $2, $3, $4, $5) from set_config('app.clock', $6, true)`, [
    task,
    key,
    JSON.stringify(more.payload ?? {}),
    more.due ?? null,
    more.lane ?? null,
    harness.now().toISOString(),
  ])
const worker = async <T>(call: string, values: unknown[] = []): Promise<T> =>
  (
    await project.as(
      'app_worker',
      { 'app.clock': harness.now().toISOString() },
      `select r.body from api.${call} r`,
      values,
    )
  )[0].body.data
const lease = (batch = 10, laneLimit = 10) => worker<Leased[]>('outbox_lease($1, 30, $2)', [batch, laneLimit])
const settle = (row: Leased, more: { due?: string; error?: string; gaveUp?: boolean } = {}) =>
  worker('outbox_settle($1, $2, $3, $4, $5)', [
    row.id,
    row.lease,
    more.due ?? null,
    more.error ?? null,
    more.gaveUp ?? false,
  ])
const next = async () => (await worker<{ due_at: string | null }>('outbox_next()')).due_at
const rows = () => project.sql('select * from app.outbox order by task, key')
const names = (leased: readonly Leased[]) => leased.map(({ key }) => key)

describe('queueing', () => {
  test('is part of its transaction', async () => {
    await expect(project.sql(`select internal.enqueue('t', 'a'), 1 / 0`)).rejects.toThrow(/division/)
    expect(await rows()).toEqual([])
  })

  test('the same task and key again is one row: the earlier time, the newer payload', async () => {
    await enqueue('t', 'a', { payload: { n: 1 }, due: at(10) })
    await enqueue('t', 'a', { payload: { n: 2 }, due: at(20) })
    expect(await rows()).toMatchObject([{ payload: { n: 2 }, due_at: new Date(at(10)) }])
    await enqueue('t', 'a', { due: at(5) })
    await enqueue('t', 'b')
    await enqueue('u', 'a')
    await enqueue('t', null)
    await enqueue('t', null)
    expect(await rows()).toHaveLength(5)
    expect((await rows())[0].due_at).toEqual(new Date(at(5)))
  })

  test('wakes at the earliest time of the transaction, whatever the zone of the session', async () => {
    const [row] = await project.sql(`
      select internal.wake('2026-11-21 12:00+02'), internal.wake('2026-11-21 09:59:59.5Z'), internal.wake('2026-11-21 20:00+09'),
             current_setting('app.due_at') as due
        from set_config('timezone', 'Asia/Tokyo', true)`)
    expect(row.due).toBe('2026-11-21T09:59:59.500Z')
  })

  test('an event that makes work wakes its tenant, once for many', async () => {
    await project.admin.post('/webhooks', { event_name: 'paid', target_url: 'https://1.1.1.1/' })
    const user = await project.user()
    const jobs = async () => {
      await services.waker.flush()
      return harness.control(`select key from graphile_worker.jobs where key like $1`, [`${project.id}%`])
    }
    // the change of the administrator waits for its seal
    expect(await jobs()).toHaveLength(1)
    await harness.control('delete from graphile_worker._private_jobs')
    await user.post('/client/events', { event_name: 'other' })
    expect(await jobs()).toEqual([])
    await Promise.all(Array.from({ length: 10 }, () => user.post('/client/events', { event_name: 'paid' })))
    expect(await jobs()).toHaveLength(1)
    await project.sql('delete from app.webhooks')
  })

  test('what was lost, or made due by somebody in SQL, is found by the sweep, and goes after what requests woke', async () => {
    const queued = async () =>
      harness.control(`select key, priority from graphile_worker.jobs where key like $1 order by key`, [
        `${project.id}:%`,
      ])
    harness.setTime(null)
    // what waits for a seal would be found as well
    await project.drain()
    for (const sweep of [fleetSweep, fleetSweepAll]) {
      await harness.control(`delete from graphile_worker._private_jobs`)
      await harness.control(`update app.tenants set last_written_at = now(), swept_at = null where project_id = $1`, [
        project.id,
      ])
      await sweep.run(services, {})
      await services.waker.flush()
      // a drain of a tenant that has nothing to do would hold a slot for nothing
      expect(await queued()).toEqual([])
      await harness.control(`update app.tenants set swept_at = null where project_id = $1`, [project.id])
      await project.sql(`insert into app.outbox (task, key, due_at) values ('t', 'lost', now()) on conflict do nothing`)
      await sweep.run(services, {})
      await services.waker.flush()
      expect(await queued()).toEqual([{ key: `${project.id}:sweep`, priority: 10 }])
      await project.sql(`delete from app.outbox`)
    }
    // a timer that was lost is set again
    await harness.control(`update app.tenants set swept_at = null where project_id = $1`, [project.id])
    await project.sql(`insert into app.outbox (task, key, due_at) values ('t', 'later', now() + interval '1 hour')`)
    await fleetSweepAll.run(services, {})
    await services.waker.flush()
    expect((await queued()).map(({ key }) => key)).toEqual([`${project.id}:sweep`, `${project.id}:timer`])
  })
})

describe('leasing', () => {
  test('takes what is due, the longest due first, and nothing twice before the lease ends', async () => {
    for (const [key, due] of [
      ['c', -1],
      ['a', -3],
      ['b', -2],
      ['later', 1],
    ] as const)
      await enqueue('t', key, { due: at(due) })
    expect(names(await lease(2))).toEqual(['a', 'b'])
    expect(names(await lease())).toEqual(['c'])
    expect(await lease()).toEqual([])
    harness.advance(29)
    expect(names(await lease())).toEqual(['later'])
    harness.advance(1.001)
    const again = await lease()
    expect(names(again)).toEqual(['a', 'b', 'c'])
    expect(again.map(({ attempts, lease: number }) => [attempts, number])).toEqual(Array(3).fill([2, 2]))
  })

  test('is prolonged while the work runs, by its holder alone, and not once it has ended', async () => {
    await enqueue('t', 'a')
    await enqueue('t', 'b')
    const [a, b] = await lease()
    const renew = (...held: (Leased | undefined)[]) => worker<number>('outbox_renew($1, 30)', [JSON.stringify(held)])
    harness.advance(20)
    expect(await renew(a, { ...b!, lease: 7 })).toBe(1)
    harness.advance(11)
    expect(names(await lease())).toEqual(['b'])
    harness.advance(20)
    expect(await renew(a)).toBe(0)
    expect(names(await lease())).toEqual(['a'])
  })

  test('by twenty at once takes each row once', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, index) => enqueue('t', `k${index}`)))
    const taken = (await Promise.all(Array.from({ length: 20 }, () => lease(5)))).flat()
    expect(taken).toHaveLength(60)
    expect(new Set(names(taken)).size).toBe(60)
  })

  test('takes at most so many of a lane, however many lease at once', async () => {
    await Promise.all(Array.from({ length: 40 }, (_, index) => enqueue('t', `k${index}`, { lane: 'one' })))
    const taken = (await Promise.all(Array.from({ length: 8 }, () => lease(20, 4)))).flat()
    expect(taken).toHaveLength(4)
    await settle(taken[0]!)
    await settle(taken[1]!, { due: at(60) })
    expect(await lease(20, 4)).toHaveLength(2)
  })

  test('a long lane holds up neither another nor what has none', async () => {
    await project.sql(
      `insert into app.outbox (task, key, lane, due_at) select 't', 'long' || n, 'long', $1 from generate_series(1, 500) n`,
      [at(-100)],
    )
    await enqueue('t', 'short', { lane: 'short' })
    await enqueue('t', 'none')
    expect(await lease(10, 10)).toHaveLength(10)
    expect(names(await lease(10, 10)).sort()).toEqual(['none', 'short'])
  })
})

describe('fairness within a project', () => {
  type Rules = { task: string; rank: number; at_once: number | null }[]
  const rules: Rules = [
    { task: 'code', rank: 0, at_once: null },
    { task: 'rarity', rank: 2, at_once: 1 },
    { task: 'count', rank: 2, at_once: null },
  ]
  const leaseBy = (places: number[]) =>
    worker<Leased[]>('outbox_lease($1, 30, 10, $2, $3)', [
      places.reduce((a, b) => a + b),
      JSON.stringify(rules),
      places,
    ])
  const nextBy = async () =>
    (await worker<{ due_at: string | null }>('outbox_next($1)', [JSON.stringify(rules)])).due_at
  const many = (task: string, count: number, due: string) =>
    project.sql(
      `insert into app.outbox (task, key, due_at) select $1, n::text, $2 from generate_series(1, $3::int) n`,
      [task, due, count],
    )

  test('what a person waits for is leased before a thousand statistics that are due longer', async () => {
    await many('count', 1000, at(-500))
    await enqueue('code', 'mail')
    await enqueue('t', 'delivery')
    const leased = await leaseBy([1, 1, 1])
    expect(leased.map(({ task }) => task)).toEqual(['code', 't', 'count'])
    // without a place for statistics none is taken
    expect(await leaseBy([5, 5, 0])).toEqual([])
  })

  test('of a task that declares it one row runs at a time, also when two drains ask at once', async () => {
    await many('rarity', 20, at(-1))
    const taken = (await Promise.all(Array.from({ length: 8 }, () => leaseBy([5, 5, 5])))).flat()
    expect(taken).toHaveLength(1)
    await worker('audit_seal(1000)')
    // whoever runs it takes the next: nobody is woken for nothing
    expect(await nextBy()).toBe(at(30))
    await settle(taken[0]!)
    expect(await nextBy()).toBe(at(-1))
    expect(await leaseBy([5, 5, 5])).toHaveLength(1)
  })

  test('two drains at once never run two of it together', async () => {
    await many('rarity', 12, at(-1))
    let together = 0
    let most = 0
    let runs = 0
    const run = async () => {
      runs += 1
      together += 1
      most = Math.max(most, together)
      await sleep(5)
      together -= 1
      return null
    }
    const tasks = new Map([['rarity', outboxTask('rarity', run, { urgency: 'background', atOnce: 1 })]])
    const pace = { turnMs: 60_000 }
    await Promise.all([1, 2, 3].map(() => drainTenant(services, tasks, project.id, pace)))
    // a drain that found it running left the rest to the other
    await drainTenant(services, tasks, project.id, pace)
    expect([most, runs, await rows()]).toEqual([1, 12, []])
  })

  test('one drain runs all rows of a task that runs one at a time, also when one ends while the next is asked for', async () => {
    await many('rarity', 60, at(-1))
    let runs = 0
    const run = async () => {
      runs += 1
      return null
    }
    const tasks = new Map([['rarity', outboxTask('rarity', run, { atOnce: 1 })]])
    await drainTenant(services, tasks, project.id, { turnMs: 60_000 })
    expect([runs, await rows()]).toEqual([60, []])
  })

  test('a task without a key that many queue runs once for all of them, and comes back once', async () => {
    await Promise.all(Array.from({ length: 30 }, () => enqueue('rarity', null)))
    let runs = 0
    const run = async () => {
      runs += 1
      // queued again while it runs: once more
      if (runs === 1) await enqueue('rarity', null)
      return new Date(harness.now().getTime() + 3_600_000)
    }
    const tasks = new Map([['rarity', outboxTask('rarity', run, { urgency: 'background', atOnce: 1 })]])
    await drainTenant(services, tasks, project.id)
    expect(runs).toBe(2)
    expect(await rows()).toMatchObject([{ task: 'rarity', due_at: new Date(at(3600)), locked_until: null }])
    // an earlier wish takes the place of the later turn
    await enqueue('rarity', null, { due: at(60) })
    harness.advance(60)
    await drainTenant(services, tasks, project.id)
    expect(await rows()).toMatchObject([{ due_at: new Date(at(3600)) }])
    expect(runs).toBe(3)
  })

  test('a hundred thousand rows that are due cost a lease no more than it takes', async () => {
    await project.sql(
      `insert into app.outbox (task, key, lane, due_at)
       select case when n % 2 = 0 then 'count' else 't' end, n::text, case when n % 4 = 1 then 'lane ' || n % 50 end, $1::timestamptz - n * interval '1 s'
         from generate_series(1, 100000) n`,
      [start],
    )
    await project.sql('analyze app.outbox')
    const [plan] = await project.sql(
      `explain (analyze, buffers, format json) select api.outbox_lease(33, 30, 10, $1, '{10,20,3}') from set_config('app.clock', $2, true)`,
      [JSON.stringify(rules), start],
    )
    const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': read } = plan['QUERY PLAN'][0].Plan
    // a look at every row would be some thousands of blocks more
    expect(hit + read).toBeLessThan(2500)
    await project.sql('truncate app.outbox')
  })
})

describe('settling', () => {
  test('removes what is done; sets the next time of what is not', async () => {
    await enqueue('t', 'a')
    await enqueue('t', 'b')
    const [a, b] = await lease()
    await settle(a!)
    await settle(b!, { due: at(60) })
    expect(await rows()).toMatchObject([
      { key: 'b', due_at: new Date(at(60)), locked_until: null, attempts: 0, last_error: null },
    ])
    expect(await lease()).toEqual([])
    harness.advance(60)
    expect(names(await lease())).toEqual(['b'])
  })

  test('keeps what went wrong, and what was given up, for a person to see; queueing it again revives it', async () => {
    await enqueue('t', 'a')
    await settle((await lease())[0]!, { due: at(2), error: 'no answer' })
    expect(await rows()).toMatchObject([{ last_error: 'no answer', attempts: 1, failed_at: null }])
    harness.advance(2)
    const [second] = await lease()
    expect(second!.attempts).toBe(2)
    await settle(second!, { error: 'never', gaveUp: true })
    expect(await rows()).toMatchObject([{ last_error: 'never', failed_at: harness.now(), locked_until: null }])
    harness.advance(86_400)
    expect([await lease(), await next()]).toEqual([[], null])
    await enqueue('t', 'a', { due: harness.now().toISOString() })
    expect(await rows()).toMatchObject([{ failed_at: null, attempts: 0, due_at: harness.now() }])
    expect((await lease())[0]!.attempts).toBe(1)
  })

  test('keeps what was queued while it ran: once more now, or at the time that was wished', async () => {
    await enqueue('t', 'now')
    await enqueue('t', 'later')
    const leased = await lease()
    await enqueue('t', 'now', { payload: { n: 2 } })
    await enqueue('t', 'later', { due: at(3600) })
    await enqueue('t', 'later', { due: at(1800) })
    // while they run nobody else runs them
    expect(await lease()).toEqual([])
    for (const row of leased) await settle(row)
    expect(await rows()).toMatchObject([
      { key: 'later', due_at: new Date(at(1800)), wished_at: null, locked_until: null },
      { key: 'now', due_at: new Date(start), wished_at: null, payload: { n: 2 } },
    ])
    const again = await lease()
    expect(names(again)).toEqual(['now'])
    await settle(again[0]!)
    expect(names((await rows()) as Leased[])).toEqual(['later'])
  })

  test('keeps it also when the run outlived its lease, and nobody took it over', async () => {
    await enqueue('t', 'a')
    const [late] = await lease()
    harness.advance(31)
    await enqueue('t', 'a', { payload: { n: 2 } })
    await settle(late!)
    const [again] = await lease()
    expect(again).toMatchObject({ key: 'a', payload: { n: 2 } })
    await settle(again!)
    expect(await rows()).toEqual([])
  })

  test('keeps it also when the run was given up, with new attempts', async () => {
    await enqueue('t', 'a')
    const [row] = await lease()
    await enqueue('t', 'a')
    await settle(row!, { error: 'never', gaveUp: true })
    expect(await rows()).toMatchObject([{ failed_at: null, attempts: 0 }])
  })

  test('is the newest lease holder alone: one that came late changes nothing', async () => {
    await enqueue('t', 'a')
    const [late] = await lease()
    harness.advance(31)
    const [newer] = await lease()
    await settle(late!)
    await settle(late!, { error: 'late', gaveUp: true })
    expect(await rows()).toMatchObject([{ lease: newer!.lease, last_error: null, failed_at: null }])
    expect(await lease()).toEqual([])
    await settle(newer!)
    expect(await rows()).toEqual([])
  })

  test('a wish that came in a lease that died is not lost', async () => {
    await enqueue('t', 'a')
    await lease()
    await enqueue('t', 'a', { due: at(3600) })
    harness.advance(31)
    const [again] = await lease()
    await settle(again!)
    expect(await rows()).toMatchObject([{ due_at: new Date(at(3600)) }])
  })
})

test('what an open transaction has locked is looked at again later, not at once and again', async () => {
  harness.setTime(null)
  await enqueue('t', 'locked')
  const other = await openTransaction(project, 'app_worker', {})
  await other.query('select from app.outbox for update')
  await services.waker.flush()
  await harness.control('delete from graphile_worker._private_jobs')
  const seen: unknown[] = []
  const run: OutboxTask['run'] = async (_, { key }) => {
    seen.push(key)
    return null
  }
  const drain = () => drainTenant(services, new Map([['t', outboxTask('t', run)]]), project.id)
  await drain()
  await services.waker.flush()
  const jobs = await harness.control('select key, run_at > now() as is_later from graphile_worker.jobs')
  expect([seen, jobs]).toEqual([[], [{ key: `${project.id}:timer`, is_later: true }]])
  await other.commit()
  await drain()
  expect(seen).toEqual(['locked'])
})

describe('when to look again', () => {
  test('is the earliest due time, or the end of a lease; never where others of the lane run', async () => {
    expect(await next()).toBeNull()
    await enqueue('t', 'later', { due: at(600) })
    expect(await next()).toBe(at(600))
    await enqueue('t', 'a', { lane: 'one' })
    expect(await next()).toBe(start)
    await enqueue('t', 'b', { lane: 'one' })
    const [row] = await lease(10, 1)
    expect(await next()).toBe(at(30))
    await settle(row!)
    expect(await next()).toBe(start)
  })
})

describe('a drain', () => {
  const drain = (run: Parameters<typeof outboxTask>[1]) =>
    drainTenant(services, new Map([['t', outboxTask('t', run)]]), project.id)

  test('runs what is due until nothing is, with what the row says', async () => {
    for (let index = 0; index < 50; index += 1) await enqueue('t', `k${index}`, { payload: { index } })
    const seen: unknown[] = []
    await drain(async (context, row) => {
      expect([context.projectId, row.task]).toEqual([project.id, 't'])
      seen.push(row.payload['index'])
      if (seen.length === 50) await enqueue('t', 'more', { payload: { index: 50 } })
      return null
    })
    expect(seen.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 51 }, (_, index) => index))
    expect(await rows()).toEqual([])
  })

  test('tries what throws again, later each time, and gives up in the end', async () => {
    await enqueue('t', 'a')
    let runs = 0
    const waits: number[] = []
    for (; runs < 25; ) {
      const before = runs
      await drain(async () => {
        runs += 1
        throw new Error('no answer')
      })
      const [row] = await rows()
      expect(row.last_error).toBe('no answer')
      if (row.failed_at || runs === before) break
      waits.push((row.due_at.getTime() - harness.now().getTime()) / 1000)
      harness.setTime(new Date(row.due_at.getTime() + 1))
    }
    expect(runs).toBe(20)
    waits.forEach((wait, index) => {
      const wished = Math.min(21_600, 2 ** (index + 1))
      expect(wait).toBeGreaterThanOrEqual(wished * 0.89)
      expect(wait).toBeLessThanOrEqual(wished * 1.11)
    })
    expect(await rows()).toMatchObject([{ attempts: 20, failed_at: expect.any(Date) }])
  })

  test('keeps the lease of work that takes long, so that nobody else begins it', async () => {
    harness.setTime(null)
    await enqueue('t', 'long')
    let runs = 0
    const run = async () => {
      runs += 1
      // three leases long, and another worker looks all the time
      for (let look = 0; look < 30; look += 1) {
        expect(await lease()).toEqual([])
        await sleep(100)
      }
      return null
    }
    await drainTenant(services, new Map([['t', outboxTask('t', run)]]), project.id, {
      leaseSeconds: 1,
      renewMs: 200,
      turnMs: 60_000,
    })
    expect([runs, await rows()]).toEqual([1, []])
  })

  test('keeps a task that this version does not know', async () => {
    await enqueue('unknown', 'a')
    await drain(async () => null)
    expect(await rows()).toMatchObject([{ last_error: 'there is no task unknown in this version', attempts: 1 }])
  })

  test('waits for what is due in a moment', async () => {
    harness.setTime(null)
    await project.sql(`select internal.enqueue('t', 'soon', '{}', now() + interval '400 ms')`)
    let runs = 0
    await drain(async () => {
      runs += 1
      return null
    })
    expect(runs).toBe(1)
  })

  test('works for a tenant that waits for its migration as before', async () => {
    const [newer] = await project.sql(
      `select pg_get_functiondef('api.outbox_lease'::regproc) as lease, pg_get_functiondef('api.outbox_next'::regproc) as next`,
    )
    await project.sql(`
      drop function api.outbox_lease; drop function api.outbox_next;
      create function api.outbox_lease(batch int, seconds int, lane_limit int) returns api.reply language sql as $$
        with l as (update app.outbox o set locked_until = internal.now() + interval '1 minute', lease = 1, attempts = 1 where locked_until is null returning o.*)
        select internal.reply(200, (select coalesce(json_agg(l), '[]') from l)) $$;
      create function api.outbox_next() returns api.reply language sql as $$ select internal.reply(200, '{"due_at": null}') $$;
      grant execute on function api.outbox_lease, api.outbox_next to app_worker`)
    await enqueue('t', 'a')
    let runs = 0
    await drain(async () => {
      runs += 1
      return null
    })
    expect([runs, await rows()]).toEqual([1, []])
    await project.sql(`drop function api.outbox_lease; drop function api.outbox_next; ${newer.lease}; ${newer.next};
      grant execute on function api.outbox_lease, api.outbox_next to app_worker`)
  })

  test('of a project that is gone does nothing', async () => {
    await drainTenant(services, new Map(), '00000000-0000-4000-8000-000000000000')
  })
})

test('the daily job makes partitions, and forgets what has outlived its use, in every tenant', async () => {
  const user = await project.user()
  await user.post('/client/events', { id: '00000000-0000-4000-8000-0000000000aa', event_name: 'old' })
  harness.setTime('2033-05-05T10:00:00Z')
  await fleetMaintain.run(services, {})
  const [found] = await project.sql(
    `select to_regclass('app.engagement_events_203307')::text as partition,
            (select count(*)::int from app.event_ids) as ids, (select count(*)::int from app.rate_limits) as limits`,
  )
  expect(found).toEqual({ partition: 'app.engagement_events_203307', ids: 0, limits: 0 })
})

test('only workers reach the outbox, and even they queue nothing by hand', async () => {
  for (const role of ['app_user', 'app_server', 'app_admin', 'app_anon'] as const) {
    await expect(project.as(role, {}, 'select from app.outbox')).rejects.toThrow(/permission denied/)
    await expect(project.as(role, {}, `select internal.enqueue('t')`)).rejects.toThrow(/permission denied/)
    await expect(project.as(role, {}, 'select api.outbox_lease(1, 1, 1)')).rejects.toThrow(/permission denied/)
  }
  await expect(project.as('app_worker', {}, `insert into app.outbox (task) values ('t')`)).rejects.toThrow(
    /permission denied/,
  )
  await expect(project.as('app_worker', {}, `update app.outbox set task = 't'`)).rejects.toThrow(/permission denied/)
})
