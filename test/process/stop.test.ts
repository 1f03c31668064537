import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, inject, test } from 'vitest'
import { root } from '#server/root.ts'
import { createStopping, Stopped } from '#server/stopping.ts'
import { startHarness } from '#test/support/harness.ts'
import { ask, createTestProject, endPrograms, endServer, startServer } from '#test/support/process.ts'
import { startSecond } from '#test/support/second.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'
import { drainTenant } from '#workers/drain.ts'
import { startWorkers } from '#workers/runner.ts'
import { job, type OutboxTask, outboxTask } from '#workers/task.ts'

// nothing here waits for the time to pass: a test ends it itself
const harness = await startHarness({ env: { LOG_LEVEL: 'silent', SHUTDOWN_SECONDS: '600' } })
const project = await harness.project()
const { services } = harness.running
const place = await services.fleet.placeOf(project.id)
if (!place) throw new Error('the project has no database')

afterAll(endPrograms, 60_000)
afterEach(async () => {
  await project.sql('delete from app.outbox')
  await harness.control('delete from graphile_worker._private_jobs')
})

const never = () => new Promise<never>(() => undefined)
const rows = () =>
  project.sql('select task, key, attempts, locked_until, last_error, due_at <= now() as is_due from app.outbox')
const handedBack = { attempts: 0, locked_until: null, last_error: null, is_due: true }
/** Drains as a worker does, with a stop of the test's own. */
const drain = (run: OutboxTask['run'], stopping = createStopping(600)) => {
  const done = drainTenant(
    { ...services, stopping: stopping.signals },
    new Map([['t', outboxTask('t', run)]]),
    project.id,
  )
  return { done, stopping }
}

describe('a drain that is asked to stop', () => {
  test('releases its lease at the next step: due at once, with the same attempt count', async () => {
    await project.sql(`select internal.enqueue('t', 'long')`)
    let steps = 0
    const { done, stopping } = drain(async ({ step }) => {
      for (;;) {
        await step('segments_due', {})
        steps += 1
        if (steps === 3) stopping.ask()
      }
    })
    await done
    expect([steps, await rows()]).toEqual([3, [{ task: 't', key: 'long', ...handedBack }]])
    // whoever works on finds it woken
    await services.waker.flush()
    expect(
      await harness.control(`select key from graphile_worker.jobs where task_identifier = 'tenant__drain'`),
    ).toEqual([{ key: `${project.id}:now` }])
  })

  test('begins nothing more, and lets a task that has no further step end', async () => {
    await project.sql(`select internal.enqueue('t', 'a'), internal.enqueue('t', 'b', due_at => now() + interval '1 s')`)
    const seen: unknown[] = []
    const { done, stopping } = drain(async ({ call }, { key }) => {
      seen.push(key)
      stopping.ask()
      await call('segments_due', {})
      return null
    })
    await done
    expect(seen).toEqual(['a'])
    expect(await rows()).toMatchObject([{ key: 'b', attempts: 0, locked_until: null }])
  })

  test('counts no attempt for what fails because of the stop', async () => {
    await project.sql(`select internal.enqueue('t', 'cancelled')`)
    const { done, stopping } = drain(async () => {
      stopping.ask()
      throw new Error('the statement was cancelled')
    })
    await done
    expect(await rows()).toMatchObject([handedBack])
  })

  test('waits no longer than SHUTDOWN_SECONDS, and releases the lease of a task that hangs', async () => {
    await project.sql(`select internal.enqueue('t', 'hangs')`)
    const { done, stopping } = drain(async () => {
      stopping.end()
      return never()
    })
    await done
    expect(await rows()).toMatchObject([{ key: 'hangs', ...handedBack }])
  })

  test('keeps what was queued again meanwhile', async () => {
    await project.sql(`select internal.enqueue('t', 'again', '{"n": 1}')`)
    const { done, stopping } = drain(async () => {
      await project.sql(`select internal.enqueue('t', 'again', '{"n": 2}')`)
      stopping.ask()
      throw new Stopped()
    })
    await done
    expect(await project.sql('select payload, requested_at, attempts from app.outbox')).toEqual([
      { payload: { n: 2 }, requested_at: null, attempts: 0 },
    ])
  })
})

test('every task that goes on step by step looks whether the server stops', async () => {
  const folder = `${root}/workers/tasks`
  for (const name of await readdir(folder)) {
    const text = await readFile(`${folder}/${name}`, 'utf8')
    if (!/\b(for|while) \(/.test(text)) continue
    expect(text, name).toMatch(/\bstep\(|stopping\.asked|runOperation\(|forEachTenant\(/)
  }
})

describe('a job that a stop interrupts', () => {
  const stopped = async (run: () => Promise<never>, how: 'ask' | 'end') => {
    const second = await startSecond(harness)
    const stopping = createStopping(600)
    let begun = false
    const tasks = [
      job('test__job', () => {
        begun = true
        return run()
      }),
    ]
    const all = { ...second.running.services, stopping: stopping.signals }
    await harness.control(
      `select graphile_worker.add_job('test__job', '{"n": "1"}', job_key := 'one', max_attempts := 7, priority := 3, queue_name := 'q')`,
    )
    const workers = await startWorkers(all, second.running.jobs, 4, tasks)
    await expect.poll(() => begun).toBe(true)
    stopping[how]()
    await workers.stop()
    await second.running.stop()
    return harness.control(
      `select j.key, j.attempts, j.max_attempts, j.priority, j.queue_name, j.locked_by, j.run_at <= now() as is_due, p.payload::jsonb as payload
         from graphile_worker.jobs j join graphile_worker._private_jobs p on p.id = j.id
        where j.task_identifier = 'test__job'`,
    )
  }
  const free = {
    key: 'one',
    attempts: 0,
    max_attempts: 7,
    priority: 3,
    queue_name: 'q',
    locked_by: null,
    is_due: true,
    payload: { n: '1' },
  }

  test('is free for others at once, as it was', { timeout: 180_000 }, async () => {
    const run = async () => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      throw new Stopped()
    }
    expect(await stopped(run, 'ask')).toEqual([free])
    expect(
      await harness.control('select from graphile_worker._private_job_queues where locked_by is not null'),
    ).toEqual([])
  })

  test('also when it does not end by itself', { timeout: 180_000 }, async () => {
    expect(await stopped(never, 'end')).toEqual([free])
  })
})

describe('a statement', () => {
  /** Seen by the superuser: other roles are not shown the text. */
  const running = async (name: string): Promise<number> => {
    const admin = new pg.Client({ connectionString: inject('dsn') })
    await admin.connect()
    const { rows } = await admin.query(
      `select count(*)::int as count from pg_stat_activity where datname = $1 and state = 'active' and query like $2`,
      [project.database, `%api."${name}"(%`],
    )
    await admin.end()
    return rows[0].count
  }

  test('of background work is cancelled alone; the connection of a cancelled one serves nobody else', async () => {
    await project.sql(`
      create function api.slow() returns api.reply language plpgsql as $$ begin perform pg_sleep(600); return internal.reply(200, 'true'); end $$;
      create function api.slower() returns api.reply language plpgsql as $$ begin perform pg_sleep(600); return internal.reply(200, 'true'); end $$;
      grant execute on function api.slow, api.slower to app_worker`)
    const { database } = services
    const claims = { caller: 'worker', projectId: project.id }
    const settings = { timeoutMs: 0 }
    const slow = database.call(place, 'app_worker', claims, 'slow', {}, { ...settings, background: true })
    const slower = database.call(place, 'app_worker', claims, 'slower', {}, settings)
    for (const call of [slow, slower]) call.catch(() => undefined)
    await expect.poll(async () => [await running('slow'), await running('slower')]).toEqual([1, 1])
    expect(await database.cancel({ background: true, olderThanMs: 3_600_000 })).toBe(0)
    expect(await database.cancel({ background: true })).toBe(1)
    await expect(slow).rejects.toMatchObject({ status: 503 })
    expect(await running('slower')).toBe(1)
    expect(await database.cancel()).toBe(1)
    await expect(slower).rejects.toMatchObject({ status: 503 })
    await expect.poll(() => running('slower')).toBe(0)
    await project.sql('drop function api.slow(); drop function api.slower()')
  })
})

describe('requests', () => {
  const port = (url: string) => Number(new URL(url).port)
  const isRefused = (url: string) =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port(url), '127.0.0.1')
      socket.once('connect', () => {
        socket.destroy()
        resolve(false)
      })
      socket.once('error', () => resolve(true))
    })

  const waiting = async () => {
    const second = await startSecond(harness)
    const user = await project.user()
    const held = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': user.id })
    await held.query('select from app.users where id = $1 for update', [user.id])
    const client = second.as(user.headers)
    const answer = client.patch('/client/users/me', { display_name: 'changed' })
    answer.catch(() => undefined)
    await untilBlocked(project)
    const stopped = second.running.stop()
    await expect.poll(() => isRefused(second.running.services.publicUrl)).toBe(true)
    return { second, user, held, answer, stopped }
  }

  test('under way are answered, and their connections closed; new ones are refused', { timeout: 180_000 }, async () => {
    const { user, held, answer, stopped } = await waiting()
    await held.commit()
    const { status, headers } = await answer
    expect([status, headers.get('connection')]).toEqual([200, 'close'])
    await stopped
    expect((await user.get('/client/users/me')).data).toMatchObject({ display_name: 'changed' })
  })

  test('that are not answered in time are cut off, and change nothing', { timeout: 180_000 }, async () => {
    const { second, user, held, answer, stopped } = await waiting()
    second.running.endNow()
    await expect(answer).rejects.toThrow()
    await stopped
    await held.commit()
    expect((await user.get('/client/users/me')).data.display_name).not.toBe('changed')
  })

  test('half an export does not look whole, to HTTP/1.0 neither', { timeout: 180_000 }, async () => {
    // more than the buffers of a connection hold
    await project.sql(
      `insert into app.users (id, display_name, properties) select internal.new_id(), 'u' || n, jsonb_build_object('text', repeat('x', 4000)) from generate_series(1, 8000) n`,
    )
    const second = await startSecond(harness)
    const path = `/v1/admin/projects/${project.id}/users/export?format=ndjson`
    const socket = connect(port(second.running.services.publicUrl), '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: ${project.developer.headers['authorization']}\r\n\r\n`)
    let size = 0
    const end = new Promise<string>((resolve) => {
      socket.on('end', () => resolve('end'))
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
    })
    await new Promise<void>((resolve) => {
      socket.once('data', (chunk) => {
        size += chunk.length
        socket.pause()
        resolve()
      })
    })
    const stopped = second.running.stop()
    second.running.endNow()
    await stopped
    socket.resume()
    expect([await end, size > 0]).toEqual(['ECONNRESET', true])
    socket.destroy()
  })
})

describe('the process', () => {
  test('ends at once at a second signal, though a request hangs, and Postgres with it', {
    timeout: 180_000,
  }, async () => {
    const server = await startServer({ SHUTDOWN_SECONDS: '600' })
    const story = await createTestProject(server.url)
    const event = { event_name: 'kept', id: crypto.randomUUID() }
    expect((await ask(server.url, 'POST', '/v1/client/events', event, story.user)).status).toBe(201)
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.on('error', () => undefined)
    const key = `x-api-key: ${story.key['x-api-key']}`
    socket.write(
      `POST /v1/client/auth/anonymous HTTP/1.1\r\nHost: x\r\n${key}\r\nContent-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n{`,
    )
    // the server has read the request: it is under way
    await once(socket, 'data')
    // as Ctrl-C under npm does: the terminal's and npm's are one wish
    server.child.kill('SIGINT')
    server.child.kill('SIGINT')
    await expect.poll(() => server.output()).toContain('finishing what is under way')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(server.output()).not.toContain('ending at once')
    expect(server.child.exitCode).toBeNull()
    server.child.kill('SIGTERM')
    expect(await server.ended).toBe(1)
    expect(server.output()).toContain('ending at once')
    await expect.poll(() => postgresRuns(server.dataDir), { timeout: 20_000 }).toBe(false)

    const next = await startServer({ DATA_DIR: server.dataDir })
    const again = await ask(next.url, 'POST', '/v1/client/events', { events: [event] }, story.user)
    expect(again.body.data).toMatchObject({ accepted: 0, duplicates: 1 })
    await endServer(next)
  })

  test('of several ends when its group gets the signal, after its members have finished what they had begun', {
    timeout: 180_000,
  }, async () => {
    const server = await startServer({ WEB_CONCURRENCY: '2' })
    const story = await createTestProject(server.url)
    const answers = Array.from({ length: 20 }, (_, n) =>
      ask(server.url, 'POST', '/v1/client/events', { event_name: `e${n}` }, story.user).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    await Promise.race(answers)
    // as a service manager does it, which tells every process of the group
    process.kill(-(server.child.pid ?? 0), 'SIGTERM')
    // answered, or refused before it began: never cut off in the middle by a signal
    expect([0, 201]).toEqual(expect.arrayContaining([...new Set(await Promise.all(answers))]))
    expect(await server.ended).toBe(0)
    expect(await postgresRuns(server.dataDir)).toBe(false)
  })
})

/** Whether any program runs on this folder. */
const postgresRuns = async (dataDir: string): Promise<boolean> => {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')))
  return lines.some((line) => line.includes(dataDir))
}
