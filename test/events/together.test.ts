import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { Answer } from '#test/support/client.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Single events of several users that arrive at once are recorded in one call: each is answered as if it had come alone. */
const harness = await startHarness({ env: { STATEMENT_TIMEOUT_MS: '30000' } })
const project = await harness.project()
const { admin } = project
const users = await Promise.all(Array.from({ length: 40 }, () => project.user()))

const url = new URL(inject('dsn'))
url.pathname = `/${project.database}`
const holder = new pg.Client({ connectionString: url.href })
const watcher = new pg.Client({ connectionString: url.href })
beforeAll(() => Promise.all([holder.connect(), watcher.connect()]))
afterAll(() => Promise.all([holder.end(), watcher.end()]))

type Send = () => Promise<Answer>
const event =
  (n: number, body: object): Send =>
  () =>
    (users[n] as (typeof users)[number]).post('/client/events', body)

const waiting = `from pg_stat_activity where datname = '${project.database}' and wait_event_type = 'Lock'`
const together = `${waiting} and query like '%events_post_together%'`
// within the transaction that holds the lock the answer would stay what it was at first
const count = async (what: string) => (await watcher.query(`select ${what}`)).rowCount ?? 0

/** Sends while nothing can be counted, until no more of them come, and lets go. */
const atOnce = async (sends: readonly Send[], during?: () => Promise<unknown>): Promise<Answer[]> => {
  await holder.query('begin; lock table app.user_event_counters in share mode')
  const answers = Promise.all(sends.map((send) => send()))
  let [before, quiet] = [0, 0]
  const isQuiet = async () => {
    const now = await count(waiting)
    quiet = now > 0 && now === before ? quiet + 1 : 0
    before = now
    return quiet >= 10
  }
  try {
    await expect.poll(isQuiet, { interval: 20, timeout: 20_000 }).toBe(true)
    await during?.()
  } finally {
    await holder.query('commit')
  }
  return answers
}

const recordedAs = async (name: string) =>
  (await project.sql(
    `select app_user_id, transaction_id::text as tx, source, session_id from app.engagement_events where event_name = $1`,
    [name],
  )) as { app_user_id: string; tx: string; source: string; session_id: string | null }[]

test('each event is its own user’s, with its own answer and effects, in fewer transactions', async () => {
  const board = await admin.post('/leaderboards', {
    key: 'together',
    name: 'Together',
    source: { type: 'event', event_name: 'went', value_property: 'points' },
  })
  expect(board.status, board.text).toBe(201)
  const session = randomUUID()
  const answers = await atOnce(
    users.map((_, n) => event(n, { event_name: 'went', properties: { points: n + 1 }, session_id: session })),
  )
  answers.forEach(({ status, data, text }, n) => {
    expect(status, text).toBe(201)
    expect(data.event).toMatchObject({
      app_user_id: users[n]?.id,
      event_name: 'went',
      properties: { points: n + 1 },
      session_id: session,
      source: 'client',
    })
    expect(data.effects.leaderboards).toMatchObject([{ key: 'together', score: n + 1 }])
    expect(data.effects.leaderboards[0]).not.toHaveProperty('app_user_id')
  })
  const rows = await recordedAs('went')
  expect(rows.map(({ app_user_id }) => app_user_id).sort()).toEqual(users.map(({ id }) => id).sort())
  expect(rows.every(({ source, session_id }) => source === 'client' && session_id === session)).toBe(true)
  expect(new Set(rows.map(({ tx }) => tx)).size).toBeLessThan(30)
})

test('several events of one user are never together: each says what it alone did', async () => {
  const answers = await atOnce(
    [0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((n) => event(n, { event_name: 'often', id: randomUUID() })),
  )
  for (const { status, text } of answers) expect(status, text).toBe(201)
  const rows = await recordedAs('often')
  expect(rows).toHaveLength(16)
  expect(new Set(rows.map(({ app_user_id, tx }) => `${app_user_id} ${tx}`)).size).toBe(16)
})

test('what is refused, known, or no single event is answered as alone, and what it is with is recorded', async () => {
  const id = randomUUID()
  expect((await event(0, { event_name: 'known', id })()).status).toBe(201)
  const good = (n: number) => event(n, { event_name: 'good' })
  const [known, taken, nameless, reserved, old, wrong, disguised, ...rest] = await atOnce([
    ...[0, 1].map((n) => event(n, { event_name: 'known', id })),
    event(2, {}),
    event(3, { event_name: 'svc.mine' }),
    event(4, { event_name: 'good', occurred_at: '2020-01-01T00:00:00Z' }),
    event(5, { event_name: 'good', historical: 'perhaps' }),
    // a batch by an escape: no text of the body says so
    () => (users[6] as (typeof users)[number]).post('/client/events', '{"\\u0065vents": [{"event_name": "good"}]}'),
    ...Array.from({ length: 20 }, (_, n) => good(n + 10)),
  ])
  expect([known?.status, known?.data]).toMatchObject([200, { event: { id }, effects: {} }])
  expectRefusal(taken as Answer, 409, 'EVENT_ID_CONFLICT')
  expectRefusal(nameless as Answer, 400, 'VALIDATION_ERROR')
  expectRefusal(reserved as Answer, 400, 'RESERVED_EVENT_NAME')
  expectRefusal(old as Answer, 400, 'EVENT_TOO_OLD')
  expectRefusal(wrong as Answer, 400, 'VALIDATION_ERROR')
  expect([disguised?.status, disguised?.data.accepted]).toEqual([201, 1])
  for (const { status, text } of rest) expect(status, text).toBe(201)
  expect(await recordedAs('good')).toHaveLength(21)
})

test('events of a server go together by the users that it names, and never with those of devices', async () => {
  const { server } = project
  const named =
    (n: number, more: object = {}): Send =>
    () =>
      server.post('/client/events', { event_name: 'served', app_user_id: users[n]?.id, ...more })
  const [unknown, nobody, twice, history, behalf, ...rest] = await atOnce([
    named(0, { app_user_id: randomUUID() }),
    () => server.post('/client/events', { event_name: 'served' }),
    // the last one counts, whoever reads it
    () =>
      server.post(
        '/client/events',
        `{"event_name": "served", "app_user_id": "${users[1]?.id}", "app_user_id": "${users[2]?.id}"}`,
      ),
    named(3, { historical: true, occurred_at: '2020-01-01T00:00:00Z' }),
    () => project.onBehalfOf(users[4]?.id as string).post('/client/events', { event_name: 'served' }),
    ...Array.from({ length: 20 }, (_, n) => named(n + 10)),
    ...Array.from({ length: 10 }, (_, n) => event(n + 30, { event_name: 'served' })),
  ])
  expectRefusal(unknown as Answer, 404, 'USER_NOT_FOUND')
  expectRefusal(nobody as Answer, 400, 'INVALID_INPUT')
  expect(twice?.data.event).toMatchObject({ app_user_id: users[2]?.id, source: 'server' })
  expect(history?.data.event).toMatchObject({ app_user_id: users[3]?.id, source: 'server' })
  expect(behalf?.data.event).toMatchObject({ app_user_id: users[4]?.id, source: 'server' })
  rest.forEach(({ status, data, text }, n) => {
    expect(status, text).toBe(201)
    expect(data.event).toMatchObject({ app_user_id: users[n + 10]?.id, source: n < 20 ? 'server' : 'client' })
  })
  const rows = await recordedAs('served')
  expect(rows).toHaveLength(33)
  const sources = new Map<string, Set<string>>()
  for (const { tx, source } of rows) sources.set(tx, (sources.get(tx) ?? new Set()).add(source))
  expect([...sources.values()].every(({ size }) => size === 1)).toBe(true)
  expect(sources.size).toBeLessThan(30)
})

test('nobody waits for the row of somebody else', async () => {
  const [held, ...others] = users
  await holder.query(`begin; select from app.users where id = '${held?.id}' for update`)
  const late = event(0, { event_name: 'apart' })()
  const answers = await Promise.all(others.map((_, n) => event(n + 1, { event_name: 'apart' })()))
  for (const { status, text } of answers) expect(status, text).toBe(201)
  expect(await recordedAs('apart')).toHaveLength(39)
  await holder.query('rollback')
  expect((await late).status).toBe(201)
})

test('an event that breaks what it causes fails alone', async () => {
  await project.sql(`
    create function public.break() returns trigger language plpgsql as $$
    begin
      raise exception 'broken';
    end $$;
    create trigger break before insert on app.engagement_events for each row
      when (new.event_name = 'breaks') execute function public.break()`)
  const answers = await atOnce(users.map((_, n) => event(n, { event_name: n === 20 ? 'breaks' : 'holds' })))
  expect(answers.map(({ status }) => status)).toEqual(users.map((_, n) => (n === 20 ? 500 : 201)))
  expect(await recordedAs('holds')).toHaveLength(39)
  expect(await recordedAs('breaks')).toEqual([])
  await project.sql('drop trigger break on app.engagement_events; drop function public.break()')
})

test('a lost connection is told, and nothing is recorded twice', async () => {
  const answers = await atOnce(
    users.map((_, n) => event(n, { event_name: 'cut' })),
    async () => {
      expect(await count(together)).toBeGreaterThan(0)
      await watcher.query(`select pg_terminate_backend(pid) ${together}`)
    },
  )
  const lost = answers.filter(({ status }) => status === 503)
  expect(lost.length).toBeGreaterThan(1)
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(users.length - lost.length)
  expect(await recordedAs('cut')).toHaveLength(users.length - lost.length)
})
