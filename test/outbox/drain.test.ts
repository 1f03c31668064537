import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { startOutbox } from '#test/support/outbox.ts'
import { openTransaction } from '#test/support/transaction.ts'
import { drainTenant } from '#workers/drain.ts'
import { type OutboxTask, outboxTask } from '#workers/task.ts'
import { fleetMaintain } from '#workers/tasks/fleet__sweep.ts'

const { harness, project, services, enqueue, lease, rows } = await startOutbox()

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
      const requested = Math.min(21_600, 2 ** (index + 1))
      expect(wait).toBeGreaterThanOrEqual(requested * 0.89)
      expect(wait).toBeLessThanOrEqual(requested * 1.11)
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
    const ended = drainTenant(services, new Map(), '00000000-0000-4000-8000-000000000000')
    await expect(ended).resolves.toBeUndefined()
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
