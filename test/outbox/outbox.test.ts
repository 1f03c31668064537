import { describe, expect, test } from 'vitest'
import { at, keysOf, type Leased, start, startOutbox } from '#test/support/outbox.ts'
import { fleetSweep, fleetSweepAll } from '#workers/tasks/fleet__sweep.ts'

const { harness, project, services, enqueue, worker, lease, settle, next, rows } = await startOutbox()

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
    expect(keysOf(await lease(2))).toEqual(['a', 'b'])
    expect(keysOf(await lease())).toEqual(['c'])
    expect(await lease()).toEqual([])
    harness.advance(29)
    expect(keysOf(await lease())).toEqual(['later'])
    harness.advance(1.001)
    const again = await lease()
    expect(keysOf(again)).toEqual(['a', 'b', 'c'])
    expect(again.map(({ attempts, lease: number }) => [attempts, number])).toEqual(Array(3).fill([2, 2]))
  })

  test('comes with the data that an area reads for its tasks, in one query for all rows of a task', async () => {
    await project.sql(`
      create function internal.outbox_begun__greet(keys text[]) returns table (key text, begun json) language sql stable as
        $$ select k, json_build_object('hello', k, 'of', cardinality(keys)) from unnest(keys) k where k <> 'nobody' $$;
      grant execute on function internal.outbox_begun__greet to app_worker`)
    for (const key of ['ann', 'bob', 'nobody', null]) await enqueue('greet', key)
    await enqueue('t', 'ann')
    const leased = await worker<(Leased & { begun: unknown })[]>('outbox_lease(10, 30, 10)')
    const begun = Object.fromEntries(leased.map((row) => [`${row.task} ${row.key}`, row.begun]))
    expect(begun).toEqual({
      'greet ann': { hello: 'ann', of: 3 },
      'greet bob': { hello: 'bob', of: 3 },
      'greet nobody': null,
      'greet null': null,
      't ann': null,
    })
    await project.sql('drop function internal.outbox_begun__greet')
  })

  test('is prolonged while the work runs, by its holder alone, and not once it has ended', async () => {
    await enqueue('t', 'a')
    await enqueue('t', 'b')
    const [a, b] = await lease()
    const renew = (...held: (Leased | undefined)[]) => worker<number>('outbox_renew($1, 30)', [JSON.stringify(held)])
    harness.advance(20)
    expect(await renew(a, { ...b!, lease: 7 })).toBe(1)
    harness.advance(11)
    expect(keysOf(await lease())).toEqual(['b'])
    harness.advance(20)
    expect(await renew(a)).toBe(0)
    expect(keysOf(await lease())).toEqual(['a'])
  })

  test('by twenty at once takes each row once', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, index) => enqueue('t', `k${index}`)))
    const taken = (await Promise.all(Array.from({ length: 20 }, () => lease(5)))).flat()
    expect(taken).toHaveLength(60)
    expect(new Set(keysOf(taken)).size).toBe(60)
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
    expect(keysOf(await lease(10, 10)).sort()).toEqual(['none', 'short'])
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
    expect(keysOf(await lease())).toEqual(['b'])
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

  test('keeps what was queued while it ran: once more now, or at the time that was requested', async () => {
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
      { key: 'later', due_at: new Date(at(1800)), requested_at: null, locked_until: null },
      { key: 'now', due_at: new Date(start), requested_at: null, payload: { n: 2 } },
    ])
    const again = await lease()
    expect(keysOf(again)).toEqual(['now'])
    await settle(again[0]!)
    expect(keysOf((await rows()) as Leased[])).toEqual(['later'])
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
