import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { at, type Leased, start, startOutbox } from '#test/support/outbox.ts'
import { drainTenant } from '#workers/drain.ts'
import { outboxTask } from '#workers/task.ts'

const { harness, project, services, enqueue, worker, settle, rows } = await startOutbox()

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
