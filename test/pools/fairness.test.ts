import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'
import { openTransaction } from '#test/support/transaction.ts'
import { drainAlone, drainsEnded, drainTenant } from '#workers/drain.ts'
import { outboundSlotsOf, slotsOf, startWorkers } from '#workers/runner.ts'
import { job, type OutboxTask, outboxTask, type Urgency } from '#workers/task.ts'
import { createWakeSignal } from '#workers/wake_signal.ts'

const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
const project = await harness.project()
const { services } = harness.running

afterEach(async () => {
  harness.setTime(null)
  await harness.control('delete from graphile_worker._private_jobs')
  await project.sql('delete from app.outbox')
})

const addJob = (task: string, count = 1) =>
  harness.control(`select graphile_worker.add_job($1, json_build_object('n', n::text)) from generate_series(1, $2) n`, [
    task,
    count,
  ])

/** A promise that a test opens when it likes. */
const gate = () => {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('slots of workers', () => {
  test.each([
    [1, { prompt: 0, usual: 0, background: 1 }],
    [2, { prompt: 0, usual: 0, background: 2 }],
    [3, { prompt: 1, usual: 1, background: 1 }],
    [4, { prompt: 1, usual: 1, background: 2 }],
    [8, { prompt: 2, usual: 3, background: 3 }],
  ])('of %i are %o', (concurrency, slots) => expect(slotsOf(concurrency)).toEqual(slots))

  test('that are full of long work leave some to what a person waits for', { timeout: 180_000 }, async () => {
    const second = await startSecond(harness)
    const { opened, open } = gate()
    const running: Record<Urgency, number> = { prompt: 0, usual: 0, background: 0 }
    const waits = (urgency: Urgency) =>
      job(
        `test__${urgency}`,
        async () => {
          running[urgency] += 1
          await opened
        },
        urgency,
      )
    const tasks = [waits('prompt'), waits('usual'), waits('background')]
    for (const { name } of tasks) await addJob(name, 40)
    const workers = await startWorkers(second.running.services, second.running.jobs, 8, tasks)
    // the general slots take any of them in the queue's order; the others never take what may last
    await expect.poll(() => running.prompt + running.usual + running.background).toBe(8)
    expect(running.background).toBeLessThanOrEqual(3)
    expect(running.prompt).toBeGreaterThanOrEqual(2)
    await harness.control(`delete from graphile_worker._private_jobs where locked_by is null`)
    open()
    await workers.stop()
    await second.running.stop()
  })
})

test('jobs that wait for servers of strangers have slots of their own', { timeout: 180_000 }, async () => {
  const second = await startSecond(harness)
  const { opened, open } = gate()
  const running = { outbound: 0, background: 0 }
  const waits = (name: keyof typeof running, isOutbound: boolean) =>
    job(
      `test__${name}`,
      async () => {
        running[name] += 1
        await opened
      },
      'background',
      { slots: isOutbound ? 'outbound' : 'shared' },
    )
  const tasks = [waits('outbound', true), waits('background', false)]
  await addJob('test__outbound', 40)
  const workers = await startWorkers(second.running.services, second.running.jobs, 8, tasks)
  await expect.poll(() => running.outbound).toBe(outboundSlotsOf(8))
  await addJob('test__background', 40)
  await expect.poll(() => running.background).toBe(slotsOf(8).background)
  expect(running.outbound).toBe(outboundSlotsOf(8))
  await harness.control(`delete from graphile_worker._private_jobs where locked_by is null`)
  open()
  await workers.stop()
  await second.running.stop()
})

test('a developer whose requests wait in control holds two of its connections, and others are answered', async () => {
  const [greedy, other] = [await harness.developer(), await harness.developer()]
  const { cluster, database } = services.control
  const holder = await connectAdmin(cluster, database)
  try {
    // a new project is placed under a lock of the cluster
    await holder.query('begin; select from app.clusters for update')
    const waiting = Array.from({ length: 12 }, (_, n) => greedy.post('/admin/projects', { name: `${n}` }))
    let refused = 0
    let answered = 0
    for (const one of waiting)
      void one.then(({ status }) => {
        answered += 1
        if (status === 429) refused += 1
      })
    let most = 0
    // as long as they wait for the lock, or for each other
    while (refused === 0 && answered < 12) {
      const [row] = await harness.control<{ waiting: number }>(
        `select count(distinct l.pid)::int as waiting from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a using (pid)
          where not l.granted and a.datname = current_database()`,
      )
      most = Math.max(most, row?.waiting ?? 0)
      expect((await other.get('/admin/projects')).status).toBe(200)
    }
    await holder.query('rollback')
    await Promise.all(waiting)
    // those beyond two give up first
    expect({ most, isRefused: refused > 0 }).toEqual({ most: 2, isRefused: true })
  } finally {
    await holder.end()
  }
})

describe('what one owner asks for, in whatever number of projects', () => {
  const queues = () =>
    harness.control<{ name: string; jobs: number }>(
      `select q.queue_name as name, count(*)::int as jobs
         from graphile_worker._private_jobs j
         join graphile_worker._private_job_queues q on q.id = j.job_queue_id
        group by 1 order by 1`,
    )
  const namesLike = async (start: string) => (await queues()).map(({ name }) => name).filter((n) => n.startsWith(start))

  test('is done in one slot for databases, two for operations and one for indexes, so that others have some', async () => {
    const owner = await harness.developer()
    await harness.control(`update app.developers set email_verified = true where id = $1`, [owner.id])
    const ids: string[] = []
    for (let n = 0; n < 12; n += 1) ids.push((await owner.post('/admin/projects', { name: `${n}` })).data.project.id)
    expect(await queues()).toEqual([{ name: `projects ${owner.id}`, jobs: 12 }])
    for (const id of ids)
      for (const task of ['events__replay', 'collections__index'])
        await harness.control(
          `select internal.operation_start($1, 'test.long', $3) from set_config('app.developer_id', $2, true)`,
          [id, owner.id, task],
        )
    expect(await namesLike('operations')).toEqual([`operations ${owner.id} 0`, `operations ${owner.id} 1`])
    expect(await namesLike('indexes')).toEqual([`indexes ${owner.id}`])
  })

  test('accounts that nobody has verified share them', async () => {
    for (let n = 0; n < 12; n += 1) await (await harness.developer()).post('/admin/projects', { name: 'p' })
    expect((await namesLike('projects')).length).toBeLessThanOrEqual(2)
    for (const name of await namesLike('projects')) expect(name).toMatch(/^projects sandbox [01]$/)
  })
})

describe('the queue', () => {
  test('gives a new project before a thousand drains that the sweep woke', async () => {
    for (let n = 0; n < 1000; n += 1) services.waker.wakeSwept(randomUUID())
    services.waker.wake(randomUUID(), new Date().toISOString())
    await services.waker.flush()
    await project.developer.post('/admin/projects', { name: 'new' })
    const order = await harness.control(
      `select task_identifier, count(*)::int as count, priority from graphile_worker.jobs
        where task_identifier like 'tenant%' group by 1, 3 order by priority, min(run_at)`,
    )
    expect(order).toEqual([
      { task_identifier: 'tenant__provision', count: 1, priority: -5 },
      { task_identifier: 'tenant__drain', count: 1, priority: 0 },
      { task_identifier: 'tenant__drain', count: 1000, priority: 10 },
    ])
  })

  test('runs chores one after the other, whatever the number of workers', async () => {
    const { readFile } = await import('node:fs/promises')
    const crontab = await readFile(new URL('../../workers/crontab', import.meta.url), 'utf8')
    const lines = crontab.trim().split('\n')
    for (const line of lines) expect(line).toMatch(/\?queue=chores&jobKey=\w+$/)
    // a chore that is not over when its time comes again is queued once
    expect(new Set(lines.map((line) => line.split('jobKey=')[1])).size).toBe(lines.length)
  })
})

describe('the sweep', () => {
  test('comes to every tenant within the hour, a share each minute', async () => {
    const start = Date.parse('2031-01-01T00:00:00Z')
    const developers = await harness.control('select id from app.developers limit 1')
    await harness.control(
      `with p as (insert into app.projects (id, developer_id, name) select internal.new_id(), $1, 'many' from generate_series(1, 1484) returning id)
       insert into app.tenants (project_id, cluster_id, database_name, workflow_id, status, last_written_at)
       select p.id, (select c.id from app.clusters c limit 1), 'none_' || p.id, 'w', 'ready', '2030-01-01' from p`,
      [developers[0].id],
    )
    const sizes: number[] = []
    const seen = new Set<string>()
    const again = new Set<string>()
    for (let minute = 0; minute < 60; minute += 1) {
      const [row] = await harness.control(
        `select r.body from set_config('app.clock', $1, true), lateral (select * from api.sweep_take(true)) r`,
        [new Date(start + minute * 60_000).toISOString()],
      )
      const ids: string[] = row.body.data
      sizes.push(ids.length)
      for (const id of ids) (seen.has(id) ? again : seen).add(id)
    }
    const [{ count }] = await harness.control(`select count(*)::int as count from app.tenants where status = 'ready'`)
    expect(seen.size).toBe(count)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(Math.ceil(count / 45))
    await harness.control(`delete from app.tenants where database_name like 'none\\_%'`)
    await harness.control(`delete from app.projects where name = 'many'`)
  })

  test('of those written to lately takes each once a minute', async () => {
    const take = async () =>
      (await harness.control('select r.body from api.sweep_take(false, 10) r'))[0].body.data as string[]
    await harness.control('update app.tenants set last_written_at = now(), swept_at = null')
    expect(await take()).toContain(project.id)
    expect(await take()).toEqual([])
    await harness.control(`update app.tenants set swept_at = now() - interval '1 minute'`)
    expect(await take()).toContain(project.id)
  })
})

test('a tenant that is woken again and again holds one slot: the drain that runs looks again', async () => {
  const { opened, open } = gate()
  const seen: (string | null)[] = []
  const run = async (_: unknown, { key }: { key: string | null }) => {
    seen.push(key)
    if (key === 'long') await opened
    return null
  }
  const tasks = new Map([['t', outboxTask('t', run)]])
  const enqueue = (key: string) => project.sql(`select internal.enqueue('t', $1)`, [key])
  await enqueue('long')
  const first = drainAlone(services, tasks, project.id)
  await expect.poll(() => seen).toEqual(['long'])
  await enqueue('short')
  // ends at once, though the row that it was woken for is still to be run
  await drainAlone(services, tasks, project.id)
  await expect.poll(() => seen).toEqual(['long', 'short'])
  open()
  await first
  expect(await project.sql('select from app.outbox')).toEqual([])
})

test('a task that waits for a silent server keeps the slot of its drain for moments, or a turn; one that works keeps it to its end', async () => {
  for (const [urgency, timing] of [
    ['usual', { turnMs: 100, overstayMs: 100 }],
    // none of its tasks begins or ends: others' drains do not wait for the end of its turn
    ['usual', { turnMs: 60_000, quietMs: 100 }],
    ['background', { turnMs: 100, overstayMs: 100, quietMs: 100 }],
  ] as const) {
    const { opened, open } = gate()
    let runs = 0
    const run = async () => {
      runs += 1
      await opened
      return null
    }
    const tasks = new Map([['t', outboxTask('t', run, { urgency })]])
    await project.sql(`select internal.enqueue('t', 'silent')`)
    let isFree = false
    const slot = drainAlone(services, tasks, project.id, timing).then(() => {
      isFree = true
    })
    await expect.poll(() => runs).toBe(1)
    if (urgency === 'usual') {
      await slot
      // it goes on: another drain of the tenant finds it, and so does a stop
      await drainAlone(services, tasks, project.id)
      expect(runs).toBe(1)
    } else {
      await sleep(1500)
      expect(isFree).toBe(false)
    }
    open()
    await drainsEnded(services)
    await slot
    expect(await project.sql('select from app.outbox')).toEqual([])
  }
})

describe('beside a background task that lasts', () => {
  /** A drain that one such task keeps, and what else it ran. */
  const startKept = async (turnMs: number, runs: OutboxTask['run']) => {
    const { opened, open } = gate()
    const tasks = new Map([
      ['long', outboxTask('long', () => opened.then(() => null), { urgency: 'background' })],
      ['usual', outboxTask('usual', runs)],
    ])
    await project.sql(`select internal.enqueue('long', 'a')`)
    const signal = createWakeSignal()
    const done = drainTenant(services, tasks, project.id, { turnMs }, signal)
    const isLeased = async () => (await project.sql('select from app.outbox where locked_until is not null')).length
    await expect.poll(isLeased).toBe(1)
    const end = async () => {
      open()
      await done
      expect(await project.sql('select from app.outbox')).toEqual([])
    }
    return { signal, end }
  }

  test('what follows from requests goes on, also when the turn of the drain is over', async () => {
    const seen: unknown[] = []
    const { signal, end } = await startKept(500, async (_, { key }) => {
      seen.push(key)
      return null
    })
    await sleep(600)
    await project.sql(`select internal.enqueue('usual', 'delivery')`)
    signal.notify()
    await expect.poll(() => seen, { timeout: 5000 }).toEqual(['delivery'])
    await end()
  })

  test('what is due again in a moment does not wait for its end', async () => {
    let runs = 0
    const { signal, end } = await startKept(60_000, async () => {
      runs += 1
      return runs < 3 ? new Date(services.now().getTime() + 100) : null
    })
    await project.sql(`select internal.enqueue('usual', 'again')`)
    signal.notify()
    await expect.poll(() => runs, { timeout: 10_000 }).toBe(3)
    await end()
  })
})

test('what is queued while another sealer is at work does not wait for its end', async () => {
  const other = await openTransaction(project, 'app_worker', {})
  await other.query('select pg_advisory_xact_lock(7305441130)')
  await project.admin.post('/webhooks', { event_name: 'sealed', target_url: 'https://1.1.1.1/' })
  const seen: unknown[] = []
  const run: OutboxTask['run'] = async (_, { key }) => {
    seen.push(key)
    return null
  }
  const signal = createWakeSignal()
  let looks = 0
  const call: typeof services.database.call = (...args) => {
    if (args[3] === 'audit_seal') looks += 1
    return services.database.call(...args)
  }
  const watched = { ...services, database: { ...services.database, call } }
  const done = drainTenant(watched, new Map([['t', outboxTask('t', run)]]), project.id, {}, signal)
  await expect.poll(() => looks).toBeGreaterThan(2)
  await project.sql(`select internal.enqueue('t', 'code')`)
  signal.notify()
  await expect.poll(() => seen, { timeout: 5000 }).toEqual(['code'])
  await other.commit()
  await done
  expect(await project.sql('select from app.audit_digests')).toEqual([])
})
