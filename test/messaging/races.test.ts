import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { conversationOf, conversations, counts, listed, send, wrongCounters } from '#test/support/messaging.ts'
import { meetingBehind, openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'off' } })
const project = await harness.project()
const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user()))

test('twenty callers who create one direct conversation at once get the same one', async () => {
  const [one, two] = (await users(2)) as [User, User]
  const calls = () =>
    Array.from({ length: 20 }, (_, n) =>
      n % 2
        ? one.post(conversations, { participant_ids: [two.id] })
        : two.post(conversations, { participant_ids: [one.id] }),
    )
  // all wait where they would add the first participant
  const answers = await meetingBehind(project.database, 'lock table app.conversation_participants in share mode', calls)
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
  expect(new Set(answers.map(({ data }) => data.id)).size).toBe(1)
  expect(answers.every(({ data }) => data.conversation_participants.length === 2)).toBe(true)
})

test('a direct conversation whose creation fails is created by the one who waited', async () => {
  const [one, two] = (await users(2)) as [User, User]
  const first = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': one.id })
  await first.query('select api.conversation_create(to_jsonb(array[$1::text]))', [two.id])
  const waiting = two.post(conversations, { participant_ids: [one.id] })
  await untilBlocked(project)
  await first.kill()
  expect((await waiting).status).toBe(201)
})

test('the last place in a conversation is taken once', async () => {
  const [owner, ...others] = (await users(9)) as [User, ...User[]]
  const id = await conversationOf(owner, [owner], 'group')
  await project.sql(
    `with made as (insert into app.users (anonymous_id, display_name) select 'anon_' || $2 || n, 'x' from generate_series(1, 96) n returning id)
     insert into app.conversation_participants (conversation_id, app_user_id, last_activity_at)
     select c.id, made.id, c.last_activity_at from app.conversations c cross join made where c.id = $1`,
    [id, randomUUID()],
  )
  const answers = await meetingBehind(
    project.database,
    `select from app.conversations where id = '${id}' for update`,
    () => others.map((user) => owner.post(`${conversations}/${id}/participants`, { user_id: user.id })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409, 409, 409, 409, 409])
})

test('the last of twenty emojis is taken once', async () => {
  const people = (await users(6)) as [User, ...User[]]
  const id = await conversationOf(people[0], people.slice(1), 'group')
  const { id: message } = await send(people[0], id, 'x')
  const path = `${conversations}/${id}/messages/${message}/reactions`
  for (let n = 0; n < 18; n += 1) expect((await people[0].post(path, { emoji: `${n}` })).status).toBe(201)
  const answers = await meetingBehind(
    project.database,
    `select from app.messages where id = '${message}' for update`,
    () => people.map((user, n) => user.post(path, { emoji: `new ${n}` })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409])
})

test('messages that are sent at once have an order of their own', async () => {
  const people = (await users(6)) as [User, ...User[]]
  const id = await conversationOf(people[0], people.slice(1), 'group')
  const answers = await meetingBehind(
    project.database,
    `select from app.conversations where id = '${id}' for update`,
    () => people.flatMap((user) => [send(user, id, 'a'), send(user, id, 'b')]),
  )
  expect(answers).toHaveLength(12)
  const { data, total } = await listed(people[0], id)
  expect([data.length, total]).toEqual([12, 12])
  expect(await counts(people[0], id)).toEqual([10, 0])
  expect(await wrongCounters(project)).toEqual([])
})

test('a message that commits after a reading began is unread, or is read with its time', async () => {
  const [one, two] = (await users(2)) as [User, User]
  const id = await conversationOf(one, [two])
  const sender = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': one.id })
  const [{ message }] = (await sender.query(
    "select (r.body -> 'data' ->> 'id') as message from api.message_send($1, 'written') r",
    [id],
  )) as [{ message: string }]
  const reading = two.post(`${conversations}/${id}/read`)
  await untilBlocked(project)
  await sender.commit()
  expect((await reading).status).toBe(200)
  const { data } = await one.get(`${conversations}/${id}/messages/${message}/receipts`)
  expect([data.read_count, await counts(two, id)]).toEqual([1, [0, 0]])
  expect(await wrongCounters(project)).toEqual([])
  // the other way round: what is written while somebody reads is after the reading
  const reader = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': two.id })
  await reader.query("select set_config('app.clock', (now() + interval '1 hour')::text, true)")
  await reader.query('select api.conversation_read($1)', [id])
  const writing = send(one, id, 'later')
  await untilBlocked(project)
  await reader.commit()
  const later = await one.get(`${conversations}/${id}/messages/${(await writing).id}/receipts`)
  expect([later.data.read_count, await counts(two, id)]).toEqual([0, [1, 0]])
  expect(await wrongCounters(project)).toEqual([])
})

test('a message that is deleted while somebody reads it is taken out of no count twice', async () => {
  const [one, two] = (await users(2)) as [User, User]
  const id = await conversationOf(one, [two], 'group')
  const path = `${conversations}/${id}`
  const mentions = [two.id]
  const meanwhile = async (deletion: () => Promise<Answer>) => {
    const reader = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': two.id })
    await reader.query('select api.conversation_read($1)', [id])
    const deleting = deletion()
    await untilBlocked(project)
    await reader.commit()
    const { status, text } = await deleting
    expect(status, text).toBe(200)
    expect([await counts(two, id), await wrongCounters(project)]).toEqual([[0, 0], []])
  }
  const { id: message } = await send(one, id, 'a', { metadata: { mentions } })
  await meanwhile(() => one.delete(`${path}/messages/${message}`))
  await send(one, id, 'b', { metadata: { mentions } })
  await meanwhile(() => project.admin.delete(`/users/${one.id}/reset?sections=messages`))
  await send(one, id, 'c', { metadata: { mentions } })
  await meanwhile(() => project.admin.delete(`/users/${one.id}`))
})

test('somebody who waits to write is refused after being removed meanwhile', async () => {
  const [owner, member] = (await users(2)) as [User, User]
  const id = await conversationOf(owner, [member], 'group')
  const removal = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': owner.id })
  await removal.query('select api.participant_remove($1, $2)', [id, member.id])
  const late = member.post(`${conversations}/${id}/messages`, { body: 'late' })
  await untilBlocked(project)
  await removal.commit()
  expect([(await late).status, (await late).error?.code]).toEqual([403, 'NOT_A_PARTICIPANT'])
})

/** Everything that moves counters, at once, with deletions, resets and merges among it: no deadlock, and every count is exact. */
test('a storm of messages, edits, deletions, readings, leaving, resets, merges and deleted users', async () => {
  const people = (await users(10)) as [User, User, User, ...User[]]
  const [survivor, merged] = (await users(2)) as [User, User]
  await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
  const everybody = [...people, survivor, merged]
  const rooms = [
    await conversationOf(people[0], everybody, 'group'),
    await conversationOf(people[1], everybody, 'group'),
    await conversationOf(people[2], [people[3] as User]),
    await conversationOf(survivor, [people[4] as User]),
    await conversationOf(merged, [people[4] as User]),
  ]
  const path = (room: number) => `${conversations}/${rooms[room]}`
  const firsts = [
    await send(people[0], rooms[0] as string, 'first'),
    await send(people[1], rooms[1] as string, 'second', { metadata: { mentions: everybody.map(({ id }) => id) } }),
  ]
  const round = (n: number): Promise<Answer>[] =>
    everybody.flatMap((user, place) => {
      const room = (n + place) % 2
      const parent_message_id = firsts[room]?.id
      const mentions = everybody.slice(place % 4).map(({ id }) => id)
      return [
        user.post(`${path(room)}/messages`, { body: `${n}`, metadata: { mentions } }),
        user.post(`${path(room)}/messages`, { body: `reply ${n}`, parent_message_id }),
        user.post(`${path(1 - room)}/read`),
        user.post(`${path(room)}/messages/${parent_message_id}/reactions`, { emoji: `${place % 3}` }),
        user.patch(`${path(room)}/messages/${parent_message_id}`, { metadata: { mentions: mentions.slice(n) } }),
        user.get('/client/messaging/unread'),
        user.get(`${path(room)}/messages`),
      ]
    })
  const answers = await Promise.all([
    ...round(0),
    ...round(1),
    people[2].post(`${path(2)}/messages`, { body: 'direct' }),
    people[4]?.post(`${path(3)}/messages`, { body: 'direct' }) as Promise<Answer>,
    merged.post(`${path(4)}/messages`, { body: 'direct' }),
    people[5]?.delete(`${path(0)}/participants/me`) as Promise<Answer>,
    people[1].delete(`${path(1)}/participants/${people[6]?.id}`),
    people[0].delete(`${path(0)}/messages/${firsts[0]?.id}`),
    project.admin.delete(`/users/${people[7]?.id}`),
    project.admin.delete(`/users/${people[0].id}`),
    project.admin.delete(`/users/${people[8]?.id}/reset?sections=messages`),
    survivor.post('/client/auth/merge', { from_session_token: merged.sessionToken }),
    ...round(2),
  ])
  expect(answers.filter(({ status }) => status >= 500).map(({ text }) => text)).toEqual([])
  expect(answers.filter(({ status }) => status < 300).length).toBeGreaterThan(50)
  expect(await wrongCounters(project)).toEqual([])
  const left = await project.sql(
    'select from app.conversation_participants where app_user_id = any ($1) union all select from app.messages where sender_id = any ($1)',
    [[people[7]?.id, people[0].id, merged.id]],
  )
  expect(left).toEqual([])
})
