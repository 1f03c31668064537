import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const began = new Date('2026-11-21T10:00:00.000Z')
beforeEach(() => harness.setTime(began))
afterEach(() => harness.setTime(null))

const at = (seconds: number) => new Date(began.getTime() + seconds * 1000).toISOString()
const start = (user: User, body: object = {}) => user.post('/client/sessions/start', body)
const beat = (user: User, id: string) => user.post(`/client/sessions/${id}/heartbeat`)
const end = (user: User, id: string, body: object = {}) => user.post(`/client/sessions/${id}/end`, body)
const rowOf = async (id: string) => (await project.sql('select * from app.app_sessions where id = $1', [id]))[0]
const eventsOf = async (user: User) =>
  (
    await project.sql(
      `select event_name, properties from app.engagement_events where app_user_id = $1 and event_name like 'svc.session.%' order by received_at, event_name desc`,
      [user.id],
    )
  ).map(({ event_name, properties }) => [event_name, properties.session_id, properties.end_reason])

describe('starting a session', () => {
  test('returns its row and emits an event', async () => {
    const user = await project.user()
    const device = {
      platform: 'ios',
      app_version: '2.1',
      os_version: '19',
      device_model: 'iPhone17,1',
      locale: 'de-DE',
    }
    const { status, data } = await start(user, device)
    expect(status).toBe(201)
    expect(data).toEqual({
      id: expect.any(String),
      app_user_id: user.id,
      started_at: at(0),
      last_seen_at: at(0),
      ended_at: null,
      duration_seconds: null,
      ...device,
      end_reason: null,
    })
    expect(await eventsOf(user)).toEqual([['svc.session.started', data.id, undefined]])
  })

  test('under an id of its own is safe to send again, also many times at once', async () => {
    const user = await project.user()
    const id = randomUUID()
    const answers = await Promise.all(Array.from({ length: 8 }, () => start(user, { id, platform: 'ios' })))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201])
    harness.advance(60)
    await beat(user, id)
    const again = await start(user, { id, platform: 'android' })
    expect(again).toMatchObject({ status: 200, data: { id, platform: 'ios', last_seen_at: at(60), ended_at: null } })
    expect(await eventsOf(user)).toHaveLength(1)
  })

  test('under another user’s id is refused, and shows nothing', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const { data } = await start(one, { platform: 'ios' })
    const answer = await start(two, { id: data.id })
    expectRefusal(answer, 409, 'CONFLICT', 'id')
    expect(answer.text).not.toContain(one.id)
    expect(await rowOf(data.id)).toMatchObject({ app_user_id: one.id, ended_at: null })
  })

  test('replaces what is open on the same device, and nothing else', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const phone = { platform: 'ios', device_model: 'A' }
    const first = (await start(user, phone)).data.id
    const tablet = (await start(user, { platform: 'ios', device_model: 'B' })).data.id
    const nameless = (await start(user)).data.id
    const theirs = (await start(other, phone)).data.id
    harness.advance(90)
    await beat(user, first)
    harness.advance(60)
    expect((await start(user, phone)).status).toBe(201)
    expect(await rowOf(first)).toMatchObject({ end_reason: 'replaced', ended_at: new Date(at(90)) })
    for (const id of [tablet, nameless, theirs]) expect((await rowOf(id)).ended_at).toBeNull()
    await start(user)
    expect((await rowOf(nameless)).end_reason).toBe('replaced')
    expect(await eventsOf(user)).toContainEqual(['svc.session.ended', first, 'replaced'])
    // what had ended by silence is not replaced
    harness.advance(1800)
    await start(user, { platform: 'ios', device_model: 'B' })
    expect(await rowOf(tablet)).toMatchObject({ end_reason: 'timeout', ended_at: new Date(at(0)) })
  })

  test('of many at once on one device leaves one open', async () => {
    const user = await project.user()
    const answers = await Promise.all(Array.from({ length: 8 }, () => start(user, { platform: 'ios' })))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201))
    expect(
      await project.sql('select from app.app_sessions where app_user_id = $1 and ended_at is null', [user.id]),
    ).toHaveLength(1)
  })

  test('takes the device’s own time, never one to come', async () => {
    const user = await project.user()
    expect((await start(user, { platform: 'a', started_at: at(-600) })).data).toMatchObject({
      started_at: at(-600),
      last_seen_at: at(-600),
    })
    expect((await start(user, { platform: 'b', started_at: '2026-11-21T11:30:00+01:00' })).data.started_at).toBe(at(0))
  })

  test('may be done 10 times a minute by each user', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const answers = await Promise.all(Array.from({ length: 14 }, () => start(user)))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(201), ...Array(4).fill(429)])
    const refused = answers.find(({ status }) => status === 429) as Answer
    expectRefusal(refused, 429, 'RATE_LIMITED')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await start(other)).status).toBe(201)
    harness.advance(60)
    expect((await start(user)).status).toBe(201)
  })

  test.each([
    [{ id: 'x' }, 'id'],
    [{ platform: 5 }, 'platform'],
    [{ platform: 'x'.repeat(101) }, 'platform'],
    [{ started_at: 'yesterday' }, 'started_at'],
    [{ started_at: 5 }, 'started_at'],
    [{ started_at: '2026-11-21T10:00:00+23:00' }, 'started_at'],
    [{ started_at: '0000-01-01T00:00:00Z' }, 'started_at'],
  ])('refuses %j', async (body, field) => {
    const user = await project.user()
    expectRefusal(await start(user, body), 400, 'VALIDATION_ERROR', field)
    expectRefusal(await user.request('POST', '/client/sessions/start', '[]'), 400, 'INVALID_BODY')
    expect(await project.sql('select from app.app_sessions where app_user_id = $1', [user.id])).toHaveLength(0)
  })

  test('of a user who has just gone is 404', async () => {
    const user = await project.user()
    const { data } = await start(user)
    await project.sql('delete from app.users where id = $1', [user.id])
    expectRefusal(await start(user), 404, 'NOT_FOUND')
    expectRefusal(await beat(user, data.id), 404, 'NOT_FOUND')
    expectRefusal(await end(user, data.id), 404, 'NOT_FOUND')
  })

  test('notes that the user was seen', async () => {
    const user = await project.user()
    const seen = async () =>
      (await project.sql('select last_seen_at from app.users where id = $1', [user.id]))[0].last_seen_at.toISOString()
    harness.advance(120)
    const { data } = await start(user)
    expect(await seen()).toBe(at(120))
    harness.advance(90)
    await beat(user, data.id)
    expect(await seen()).toBe(at(210))
    // within a minute of the last sighting: a start sorts the list of users, a heartbeat does not
    harness.advance(20)
    await beat(user, data.id)
    expect(await seen()).toBe(at(210))
    harness.advance(1)
    await start(user)
    expect(await seen()).toBe(at(231))
  })
})

describe('a heartbeat', () => {
  test('keeps a session going, past half an hour', async () => {
    const user = await project.user()
    const { id } = (await start(user)).data
    for (const seconds of [1799, 1799]) {
      harness.advance(seconds)
      expect((await beat(user, id)).status).toBe(200)
    }
    expect((await beat(user, id)).data).toMatchObject({ last_seen_at: at(3598), ended_at: null })
  })

  test('comes too late after 30 minutes of silence', async () => {
    const user = await project.user()
    const { id } = (await start(user)).data
    harness.advance(1800)
    expectRefusal(await beat(user, id), 409, 'SESSION_ENDED')
    expect((await rowOf(id)).ended_at).toBeNull()
  })

  test('after the end is refused; of another user, or of nothing, it is 404', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const { id } = (await start(user)).data
    expectRefusal(await beat(other, id), 404, 'NOT_FOUND')
    expectRefusal(await beat(user, randomUUID()), 404, 'NOT_FOUND')
    expectRefusal(await beat(user, 'x'), 400, 'INVALID_ID')
    await end(user, id)
    expectRefusal(await beat(user, id), 409, 'SESSION_ENDED')
  })

  test('is what an event is that names the session', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const { id } = (await start(user)).data
    const ended = (await start(user, { platform: 'x' })).data.id
    await end(user, ended, { ended_at: at(0) })
    harness.advance(600)
    await user.post('/client/events', {
      events: [
        { event_name: 'a', session_id: id, occurred_at: at(300) },
        { event_name: 'b', session_id: id, occurred_at: at(120) },
        { event_name: 'c', session_id: ended },
        { event_name: 'd', session_id: randomUUID() },
      ],
    })
    expect(await rowOf(id)).toMatchObject({ last_seen_at: new Date(at(300)), ended_at: null })
    expect(await rowOf(ended)).toMatchObject({ last_seen_at: new Date(at(0)), ended_at: new Date(at(0)) })
    await other.post('/client/events', { event_name: 'a', session_id: id })
    await user.post('/client/events', { event_name: 'a', session_id: id, occurred_at: at(-60) })
    expect((await rowOf(id)).last_seen_at).toEqual(new Date(at(300)))
    harness.advance(1500)
    await user.post('/client/events', { event_name: 'late', session_id: id })
    expectRefusal(await beat(user, id), 409, 'SESSION_ENDED')
  })
})

describe('the end of a session', () => {
  test('is now, or when the device says; twice is the same row', async () => {
    const user = await project.user()
    const [one, two] = [(await start(user, { platform: 'a' })).data.id, (await start(user, { platform: 'b' })).data.id]
    harness.advance(125)
    const first = await end(user, one)
    expect(first).toMatchObject({
      status: 200,
      data: { ended_at: at(125), duration_seconds: 125, end_reason: 'client' },
    })
    harness.advance(60)
    expect((await end(user, one)).data).toEqual(first.data)
    expect((await end(user, one, { ended_at: at(10) })).data).toEqual(first.data)
    expect((await end(user, two, { ended_at: at(100.9) })).data).toMatchObject({
      ended_at: at(100.9),
      duration_seconds: 100,
    })
    expect((await eventsOf(user)).filter(([name]) => name === 'svc.session.ended')).toHaveLength(2)
  })

  test('lies between its start and now', async () => {
    const user = await project.user()
    const [one, two] = [(await start(user, { platform: 'a' })).data.id, (await start(user, { platform: 'b' })).data.id]
    harness.advance(60)
    expect((await end(user, one, { ended_at: at(-5) })).data).toMatchObject({ ended_at: at(0), duration_seconds: 0 })
    expect((await end(user, two, { ended_at: at(6000) })).data).toMatchObject({
      ended_at: at(60),
      duration_seconds: 60,
    })
  })

  test('of many at once is one', async () => {
    const user = await project.user()
    const { id } = (await start(user)).data
    harness.advance(30)
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => end(user, id, { ended_at: at(n) })))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect((await eventsOf(user)).filter(([name]) => name === 'svc.session.ended')).toHaveLength(1)
  })

  test('by silence counts from when the session was last heard of, worked out on read', async () => {
    const user = await project.user()
    const { id } = (await start(user)).data
    harness.advance(60)
    await beat(user, id)
    harness.advance(1799)
    expect((await start(user, { id })).data).toMatchObject({ ended_at: null, end_reason: null })
    harness.advance(1)
    const timedOut = { ended_at: at(60), duration_seconds: 60, end_reason: 'timeout' }
    expect((await start(user, { id })).data).toMatchObject(timedOut)
    expect((await end(user, id)).data).toMatchObject(timedOut)
    expect((await rowOf(id)).ended_at).toBeNull()
    await project.drain()
    expect(await rowOf(id)).toMatchObject({ ended_at: new Date(at(60)), end_reason: 'timeout' })
    expect((await start(user, { id })).data).toMatchObject(timedOut)
    expect(await eventsOf(user)).toContainEqual(['svc.session.ended', id, 'timeout'])
  })

  test('that silence was taken for is put right by the device', async () => {
    const user = await project.user()
    const { id } = (await start(user)).data
    harness.advance(3000)
    await project.drain()
    expect((await end(user, id, { ended_at: at(2000) })).data).toMatchObject({
      ended_at: at(2000),
      duration_seconds: 2000,
      end_reason: 'client',
    })
    expect((await eventsOf(user)).filter(([name]) => name === 'svc.session.ended')).toHaveLength(1)
  })

  test('is written down by the worker when it is due, and looked for as long as a session is open', async () => {
    const user = await project.user()
    const { id } = (await start(user)).data
    const queued = () =>
      project.sql(`select due_at from app.outbox where task = 'app_sessions__timeout' and key = $1`, [user.id])
    expect(await queued()).toEqual([{ due_at: new Date(at(1800)) }])
    harness.advance(1200)
    await beat(user, id)
    harness.advance(700)
    await project.drain()
    expect([(await rowOf(id)).ended_at, await queued()]).toEqual([null, [{ due_at: new Date(at(3000)) }]])
    harness.advance(1100)
    await project.drain()
    expect([(await rowOf(id)).end_reason, await queued()]).toEqual(['timeout', []])
  })

  test('is looked for also where a merge brought the session', async () => {
    const [survivor, guest] = [await project.user(), await project.user()]
    const { id } = (await start(guest)).data
    const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
    expect([merged.status, merged.data.merged.app_sessions]).toEqual([200, 1])
    harness.advance(1800)
    await project.drain()
    expect(await rowOf(id)).toMatchObject({ app_user_id: survivor.id, end_reason: 'timeout' })
    expect(await eventsOf(survivor)).toContainEqual(['svc.session.ended', id, 'timeout'])
  })

  test('is refused by name', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const { id } = (await start(user)).data
    expectRefusal(await end(other, id), 404, 'NOT_FOUND')
    expectRefusal(await end(user, 'x'), 400, 'INVALID_ID')
    expectRefusal(await end(user, id, { ended_at: 'soon' }), 400, 'VALIDATION_ERROR', 'ended_at')
    expectRefusal(await user.request('POST', `/client/sessions/${id}/end`, '{'), 400, 'INVALID_BODY')
    expect((await rowOf(id)).ended_at).toBeNull()
  })
})

test('as a role in SQL a user reads own sessions only, and writes none', async () => {
  const [mine, theirs] = [await project.user(), await project.user()]
  const { id } = (await start(mine)).data
  await start(theirs)
  const claims = { 'app.user_id': mine.id, 'app.caller': 'user' }
  expect(await project.as('app_user', claims, 'select id from app.app_sessions')).toEqual([{ id }])
  for (const sql of [
    'delete from app.app_sessions',
    'update app.app_sessions set ended_at = now()',
    'insert into app.app_sessions default values',
  ]) {
    await expect(project.as('app_user', claims, sql)).rejects.toThrow(/permission denied/)
  }
  await expect(project.as('app_user', claims, 'select api.app_sessions_timeout($1)', [mine.id])).rejects.toThrow(
    /permission denied/,
  )
})
