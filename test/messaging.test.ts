import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import {
  bodies,
  conversationOf,
  conversations,
  counts,
  listed,
  nobody,
  send,
  unread,
  wrongCounters,
} from '#test/support/messaging.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user())) as Promise<any>
const three = (): Promise<[User, User, User]> => users(3)

describe('conversations', () => {
  test('a direct conversation is created once, whoever asks, in which order, and with whom twice', async () => {
    const [one, two, three_] = await three()
    const first = await one.post(conversations, { participant_ids: [two.id] })
    expect([first.status, first.data], first.text).toEqual([
      201,
      {
        id: expect.any(String),
        type: 'direct',
        name: null,
        owner_id: null,
        conversation_participants: [one, two]
          .map(({ id, data }) => ({
            user_id: id,
            display_name: data.display_name,
            avatar_url: null,
            last_read_at: null,
            joined_at: expect.any(String),
          }))
          .sort((a, b) => (a.user_id < b.user_id ? -1 : 1)),
        last_message: null,
        message_count: 0,
        last_activity_at: first.data.created_at,
        created_at: expect.any(String),
        updated_at: expect.any(String),
        unread: 0,
        mentions: 0,
        muted_until: null,
        archived: false,
      },
    ])
    for (const [who, ids] of [
      [one, [two.id, two.id]],
      [one, [one.id, two.id]],
      [two, [one.id.toUpperCase()]],
    ] as const) {
      const again = await who.post(conversations, { participant_ids: ids })
      expect([again.status, again.data.id], again.text).toEqual([200, first.data.id])
    }
    // other sets of participants are other conversations
    const wider = await one.post(conversations, { participant_ids: [two.id, three_.id] })
    const alone = await one.post(conversations, { participant_ids: [one.id] })
    expect([wider.status, alone.status]).toEqual([201, 201])
    expect(new Set([wider.data.id, alone.data.id, first.data.id]).size).toBe(3)
    expect((await three_.post(conversations, { participant_ids: [two.id, one.id] })).data.id).toBe(wider.data.id)
    expect(alone.data.conversation_participants).toHaveLength(1)
  })

  test('a group conversation is new each time, named, and owned by its creator', async () => {
    const [one, two, three_] = await three()
    const made = await one.post(conversations, { type: 'group', name: 'Trip', participant_ids: [two.id, three_.id] })
    expect([made.status, made.data.name, made.data.owner_id]).toEqual([201, 'Trip', one.id])
    const again = await one.post(conversations, { type: 'group', name: 'Trip', participant_ids: [two.id, three_.id] })
    expect([again.status, again.data.id === made.data.id]).toEqual([201, false])
  })

  test('what is wrong with a new one is refused by its field', async () => {
    const [one, two] = await three()
    const wrong: [object, string][] = [
      [{}, 'participant_ids'],
      [{ participant_ids: [] }, 'participant_ids'],
      [{ participant_ids: 'all' }, 'participant_ids'],
      [{ participant_ids: ['x'] }, 'participant_ids.0'],
      [{ participant_ids: Array.from({ length: 101 }, () => two.id) }, 'participant_ids'],
      [{ participant_ids: Array.from({ length: 100 }, () => randomUUID()) }, 'participant_ids'],
      [{ participant_ids: [two.id], type: 'public' }, 'type'],
      [{ participant_ids: [two.id], name: '' }, 'name'],
      [{ participant_ids: [two.id], name: 'x'.repeat(101) }, 'name'],
    ]
    for (const [sent, field] of wrong) {
      expectRefusal(await one.post(conversations, sent), 400, 'INVALID_PAYLOAD', field)
    }
    expectRefusal(await one.post(conversations, [two.id]), 400, 'INVALID_PAYLOAD')
    expectRefusal(await one.post(conversations, { participant_ids: [two.id, nobody] }), 404, 'USER_NOT_FOUND')
    await project.admin.patch(`/users/${two.id}`, { is_banned: true })
    expectRefusal(await one.post(conversations, { participant_ids: [two.id] }), 404, 'USER_NOT_FOUND')
    // unknown fields are ignored
    const made = await one.post(conversations, { participant_ids: [one.id], owner_id: two.id, id: nobody })
    expect([made.status, made.data.owner_id, made.data.id === nobody]).toEqual([201, null, false])
  })

  test('the list has the newest activity first, pages, and totals that are exact', async () => {
    const [one, two, three_] = await three()
    const first = await conversationOf(one, [two])
    const second = await conversationOf(one, [three_])
    const third = await conversationOf(one, [two, three_], 'group')
    const ids = async (query = '') =>
      (await one.get(`${conversations}${query}`)).data.map(({ id }: { id: string }) => id)
    expect(await ids()).toEqual([third, second, first])
    await send(two, first, 'a reply moves nothing else', {})
    const sent = await send(two, first, 'new'.repeat(100))
    expect(await ids()).toEqual([first, third, second])
    const page = await one.get(`${conversations}?limit=1&offset=1`)
    expect([page.body.total, page.body.offset, page.body.limit]).toEqual([3, 1, 1])
    expect(page.data[0].id).toBe(third)
    expect((await one.get(conversations)).body.limit).toBe(20)
    const [shown] = (await one.get(conversations)).data
    expect(shown).toMatchObject({
      last_message: { id: sent.id, sender_id: two.id, body: 'new'.repeat(100).slice(0, 200), message_type: 'text' },
      last_activity_at: sent.created_at,
      message_count: 2,
      unread: 2,
    })
    expect((await one.get(`${conversations}/${first}`)).data).toEqual(shown)
    for (const query of ['?limit=0', '?limit=x', '?offset=-1', '?archived=1']) {
      expectRefusal(await one.get(`${conversations}${query}`), 400, 'INVALID_PAYLOAD')
    }
    expect((await one.get(`${conversations}?limit=5000`)).body.limit).toBe(200)
  })

  test('each participant mutes and archives alone; the name is for all', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const path = `${conversations}/${id}`
    const until = '2031-01-01T00:00:00.000Z'
    const mine = await one.patch(path, { name: 'Us', muted_until: until, archived: true, type: 'group', unread: 9 })
    expect(mine.data).toMatchObject({ name: 'Us', muted_until: until, archived: true, type: 'direct', unread: 0 })
    expect((await two.get(path)).data).toMatchObject({ name: 'Us', muted_until: null, archived: false })
    expect((await one.get(conversations)).body.total).toBe(0)
    expect((await one.get(`${conversations}?archived=true`)).data[0].id).toBe(id)
    // a new message counts, and leaves it archived
    await send(two, id, 'hello')
    expect((await one.get(conversations)).body.total).toBe(0)
    expect(await unread(one)).toEqual({ total: 1, conversations: [{ id, unread: 1, mentions: 0 }] })
    expect((await one.patch(path, {})).data).toMatchObject({ name: 'Us', archived: true })
    const back = await one.patch(path, { name: null, muted_until: null, archived: false })
    expect(back.data).toMatchObject({ name: null, muted_until: null, archived: false })
    for (const [sent, field] of [
      [{ name: '' }, 'name'],
      [{ muted_until: 'soon' }, 'muted_until'],
      [{ archived: 'yes' }, 'archived'],
    ] as const) {
      expectRefusal(await one.patch(path, sent), 400, 'VALIDATION_ERROR', field)
    }
  })

  test('participants are added by participants, once, and not to a direct conversation', async () => {
    const [one, two, three_] = await three()
    const group = await conversationOf(one, [two], 'group')
    const path = `${conversations}/${group}/participants`
    const added = await two.post(path, { user_id: three_.id })
    expect([added.status, added.data]).toEqual([
      200,
      {
        user_id: three_.id,
        display_name: three_.data.display_name,
        avatar_url: null,
        last_read_at: null,
        joined_at: expect.any(String),
      },
    ])
    const again = await one.post(path, { app_user_id: three_.id })
    expect([again.status, again.data]).toEqual([200, { ...added.data, already_member: true }])
    expectRefusal(await one.post(path, {}), 400, 'INVALID_PAYLOAD', 'user_id')
    expectRefusal(await one.post(path, { user_id: 'x' }), 400, 'INVALID_PAYLOAD', 'user_id')
    expectRefusal(await one.post(path, { user_id: nobody }), 404, 'USER_NOT_FOUND')
    const direct = `${conversations}/${await conversationOf(one, [two])}/participants`
    expectRefusal(await one.post(direct, { user_id: three_.id }), 409, 'CONVERSATION_IS_DIRECT')
    expect((await one.post(direct, { user_id: two.id })).data.already_member).toBe(true)
    const crowd = await project.admin.post('/users/cohort', { count: 98 })
    await project.sql(
      `insert into app.conversation_participants (conversation_id, app_user_id, last_activity_at)
       select c.id, u, c.last_activity_at from app.conversations c cross join unnest($2::uuid[]) u where c.id = $1`,
      [group, crowd.data.user_ids.slice(0, 97)],
    )
    const full = await one.post(path, { user_id: crowd.data.user_ids[97] })
    expectRefusal(full, 409, 'LIMIT_REACHED', { limit: 100 })
  })

  test('leaving keeps the messages; ownership goes to who joined first; the last one takes all along', async () => {
    const [one, two, three_] = await three()
    const id = await conversationOf(one, [two], 'group')
    await one.post(`${conversations}/${id}/participants`, { user_id: three_.id })
    await send(one, id, 'stays')
    const path = `${conversations}/${id}/participants`
    expectRefusal(await two.delete(`${path}/${three_.id}`), 403, 'FORBIDDEN')
    expectRefusal(await one.delete(`${path}/${nobody}`), 404, 'USER_NOT_FOUND')
    expectRefusal(await one.delete(`${path}/x`), 400, 'INVALID_ID', 'userId')
    expect((await one.delete(`${path}/me`)).data).toEqual({ deleted: true })
    expectRefusal(await one.get(`${conversations}/${id}`), 403, 'NOT_A_PARTICIPANT')
    expect((await two.get(`${conversations}/${id}`)).data.owner_id).toBe(two.id)
    expect(await bodies(two, id)).toEqual(['stays'])
    expect((await two.delete(`${path}/${three_.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await three_.get(`${conversations}/${id}/messages`), 403, 'NOT_A_PARTICIPANT')
    // by one's own id as well
    expect((await two.delete(`${path}/${two.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await two.get(`${conversations}/${id}`), 404, 'CONVERSATION_NOT_FOUND')
    expect(await project.sql('select from app.messages where conversation_id = $1', [id])).toEqual([])
    const direct = `${conversations}/${await conversationOf(one, [two])}/participants`
    expectRefusal(await one.delete(`${direct}/me`), 409, 'CONVERSATION_IS_DIRECT')
    expectRefusal(await one.delete(`${direct}/${two.id}`), 409, 'CONVERSATION_IS_DIRECT')
  })
})

describe('messages', () => {
  test('are shown whole, newest first, in pages with an exact total', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const metadata = { card: { n: 12345678901234567890n.toString(), deep: [1, null] } }
    const sent = await one.post(`${conversations}/${id}/messages`, {
      body: ' Hi ',
      message_type: 'card',
      metadata,
      attachments: [
        { url: 'https://files.example.com/a.png', content_type: 'image/png', size_bytes: 3, metadata: { w: 1 }, x: 1 },
        { url: '/b', content_type: null, size_bytes: null, metadata: null },
      ],
    })
    expect([sent.status, sent.data], sent.text).toEqual([
      201,
      {
        id: expect.any(String),
        conversation_id: id,
        sender_id: one.id,
        sender: { id: one.id, display_name: one.data.display_name, avatar_url: null },
        body: ' Hi ',
        message_type: 'card',
        metadata,
        parent_message_id: null,
        attachments: [
          { url: 'https://files.example.com/a.png', content_type: 'image/png', size_bytes: 3, metadata: { w: 1 } },
          { url: '/b' },
        ],
        reactions: [],
        reply_count: 0,
        created_at: expect.any(String),
        edited_at: null,
      },
    ])
    // one millisecond, and even so an order
    harness.setTime(harness.now())
    for (const body of ['2', '3', '4']) await send(two, id, body)
    expect(await bodies(one, id)).toEqual(['4', '3', '2', ' Hi '])
    expect(await listed(one, id, '?limit=2&offset=1')).toMatchObject({ total: 4, offset: 1, limit: 2 })
    expect(await bodies(one, id, '?limit=2&offset=1')).toEqual(['3', '2'])
    expect((await listed(one, id)).limit).toBe(50)
    expect((await listed(one, id)).data[3]).toEqual(sent.data)
    expect((await one.get(`${conversations}/${id}/messages?limit=999`)).body.limit).toBe(200)
    expectRefusal(await one.get(`${conversations}/${id}/messages?limit=no`), 400, 'INVALID_PAYLOAD', 'limit')
    const events = await project.sql(
      `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.message.sent'`,
      [one.id],
    )
    expect(events).toEqual([
      {
        properties: {
          conversation_id: id,
          conversation_type: 'direct',
          message_id: sent.data.id,
          message_type: 'card',
          is_reply: false,
        },
      },
    ])
  })

  test('have bounds', async () => {
    const [one, two] = await three()
    const path = `${conversations}/${await conversationOf(one, [two])}/messages`
    const wrong: [object, string][] = [
      [{}, 'body'],
      [{ body: '' }, 'body'],
      [{ body: ' \n\t' }, 'body'],
      [{ body: 'é'.repeat(5121) }, 'body'],
      [{ body: 1 }, 'body'],
      [{ body: 'x', message_type: '' }, 'message_type'],
      [{ body: 'x', message_type: 'x'.repeat(65) }, 'message_type'],
      [{ body: 'x', metadata: [] }, 'metadata'],
      [{ body: 'x', metadata: { x: 'x'.repeat(8192) } }, 'metadata'],
      [{ body: 'x', parent_message_id: 7 }, 'parent_message_id'],
    ]
    for (const [sent, field] of wrong) {
      expectRefusal(await one.post(path, sent), 400, 'INVALID_PAYLOAD', field)
    }
    const url = 'https://files.example.com/a.png'
    const attachments: [unknown, string][] = [
      ['x', 'attachments'],
      [{ url }, 'attachments'],
      [Array.from({ length: 11 }, () => ({ url })), 'attachments'],
      [[url], 'attachments.0'],
      [[{ url }, {}], 'attachments.1.url'],
      [[{ url: '' }], 'attachments.0.url'],
      [[{ url: 'x'.repeat(2001) }], 'attachments.0.url'],
      [[{ url: null }], 'attachments.0.url'],
      [[{ url, content_type: 1 }], 'attachments.0.content_type'],
      [[{ url, content_type: 'x'.repeat(256) }], 'attachments.0.content_type'],
      [[{ url, size_bytes: -1 }], 'attachments.0.size_bytes'],
      [[{ url, size_bytes: 1.5 }], 'attachments.0.size_bytes'],
      [[{ url, size_bytes: '1' }], 'attachments.0.size_bytes'],
      [[{ url, metadata: [] }], 'attachments.0.metadata'],
      [[{ url, metadata: { x: 'x'.repeat(2048) } }], 'attachments.0.metadata'],
    ]
    for (const [sent, field] of attachments) {
      const refused = await one.post(path, { body: 'x', attachments: sent })
      expectRefusal(refused, 400, 'INVALID_ATTACHMENTS', field)
    }
    const most = await one.post(path, {
      body: 'é'.repeat(5120),
      attachments: Array.from({ length: 10 }, () => ({ url, size_bytes: Number.MAX_SAFE_INTEGER })),
    })
    expect([most.status, most.data?.attachments.length], most.text).toEqual([201, 10])
  })

  test('replies are listed under their parent and counted; a deleted parent leaves them', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const parent = await send(one, id, 'parent')
    const reply = await send(two, id, 'reply', { parent_message_id: parent.id })
    await send(one, id, 'second', { parent_message_id: parent.id })
    await send(one, id, 'of reply', { parent_message_id: reply.id })
    expect(await bodies(one, id)).toEqual(['parent'])
    expect((await listed(one, id)).data[0].reply_count).toBe(2)
    expect(await listed(two, id, `?parent_message_id=${parent.id}&limit=1`)).toMatchObject({ total: 2, limit: 1 })
    expect(await bodies(two, id, `?parent_message_id=${parent.id}`)).toEqual(['second', 'reply'])
    expect(await bodies(two, id, `?parent_message_id=${reply.id}`)).toEqual(['of reply'])
    const path = `${conversations}/${id}/messages`
    const elsewhere = await conversationOf(one, [two], 'group')
    const other = await send(one, elsewhere, 'elsewhere')
    const private_ = await send(two, await conversationOf(two, [two]), 'private')
    for (const [parent_message_id, status, code] of [
      ['x', 400, 'INVALID_PARENT'],
      [other.id, 400, 'INVALID_PARENT'],
      [private_.id, 404, 'PARENT_NOT_FOUND'],
      [nobody, 404, 'PARENT_NOT_FOUND'],
    ] as const) {
      expectRefusal(await one.post(path, { body: 'x', parent_message_id }), status, code)
    }
    expectRefusal(await one.get(`${path}?parent_message_id=x`), 400, 'INVALID_PARENT', 'parent_message_id')
    expectRefusal(await one.get(`${path}?parent_message_id=${other.id}`), 404, 'PARENT_NOT_FOUND')
    expect((await one.post(path, { body: 'top', parent_message_id: null })).status).toBe(201)
    expect((await one.delete(`${path}/${parent.id}`)).data).toEqual({ deleted: true })
    expect((await listed(two, id)).data.map(({ body, parent_message_id }) => [body, parent_message_id])).toEqual([
      ['top', null],
      ['second', null],
      ['reply', null],
    ])
    expect((await listed(two, id)).total).toBe(3)
    expectRefusal(await one.post(path, { body: 'x', parent_message_id: parent.id }), 404, 'PARENT_NOT_FOUND')
    expect(await wrongCounters(project)).toEqual([])
  })

  test('are edited by their sender for fifteen minutes', async () => {
    const [one, two] = await three()
    harness.setTime('2026-12-21T12:00:00Z')
    const [me, them] = [project.onBehalfOf(one.id), project.onBehalfOf(two.id)]
    const id = await conversationOf(me, [two])
    const sent = await send(me, id, 'firts', { metadata: { a: 1 } })
    const path = `${conversations}/${id}/messages/${sent.id}`
    harness.setTime('2026-12-21T12:14:59Z')
    const edited = await me.patch(path, { body: 'first', message_type: 'x' })
    expect(edited.data).toMatchObject({
      body: 'first',
      metadata: { a: 1 },
      message_type: 'text',
      edited_at: '2026-12-21T12:14:59.000Z',
      created_at: sent.created_at,
    })
    expect((await me.patch(path, { metadata: {} })).data).toMatchObject({ body: 'first', metadata: {} })
    expectRefusal(await them.patch(path, { body: 'x' }), 403, 'FORBIDDEN')
    for (const sentBody of [{ body: ' ' }, { body: null }, { body: 'x'.repeat(10_241) }]) {
      expectRefusal(await me.patch(path, sentBody), 400, 'VALIDATION_ERROR', 'body')
    }
    expectRefusal(await me.patch(path, { metadata: null }), 400, 'VALIDATION_ERROR', 'metadata')
    harness.setTime('2026-12-21T12:15:00.001Z')
    expectRefusal(await me.patch(path, { body: 'late' }), 409, 'EDIT_WINDOW_CLOSED')
    expect((await me.patch(path, {})).data.body).toBe('first')
    expectRefusal(await me.patch(`${conversations}/${id}/messages/${nobody}`, { body: 'x' }), 404, 'MESSAGE_NOT_FOUND')
    expectRefusal(await me.patch(`${conversations}/${id}/messages/x`, { body: 'x' }), 400, 'INVALID_ID', 'messageId')
  })

  test('are deleted by their sender, and by the owner of a group conversation', async () => {
    const [one, two, three_] = await three()
    const group = await conversationOf(one, [two, three_], 'group')
    const path = `${conversations}/${group}/messages`
    const [first, second] = [await send(two, group, 'first'), await send(two, group, 'second')]
    expectRefusal(await three_.delete(`${path}/${first.id}`), 403, 'FORBIDDEN')
    expect((await two.delete(`${path}/${first.id}`)).data).toEqual({ deleted: true })
    expect((await one.delete(`${path}/${second.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await one.delete(`${path}/${second.id}`), 404, 'MESSAGE_NOT_FOUND')
    const direct = await conversationOf(one, [two])
    const theirs = await send(two, direct, 'theirs')
    expectRefusal(await one.delete(`${conversations}/${direct}/messages/${theirs.id}`), 403, 'FORBIDDEN')
    // a message is found in its own conversation alone
    expectRefusal(await two.delete(`${path}/${theirs.id}`), 404, 'MESSAGE_NOT_FOUND')
    expect(await wrongCounters(project)).toEqual([])
  })

  test('are at most 60 a minute for a user; refused ones do not count', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const me = project.onBehalfOf(one.id)
    const path = `${conversations}/${id}/messages`
    expect((await me.post(path, { body: 'x', parent_message_id: nobody })).status).toBe(404)
    for (let n = 0; n < 60; n += 1) await send(me, id, `${n}`)
    const over = await me.post(path, { body: 'over' })
    expectRefusal(over, 429, 'RATE_LIMITED', { retry_after_seconds: 60 })
    expect(over.headers.get('retry-after')).toBe('60')
    expect((await project.onBehalfOf(two.id).post(path, { body: 'another' })).status).toBe(201)
    harness.setTime('2026-11-21T12:01:00Z')
    expect((await project.onBehalfOf(one.id).post(path, { body: 'again' })).status).toBe(201)
  })

  test('typing is accepted and stores nothing', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const state = () =>
      project.sql(
        `select (select count(*) from app.engagement_events) as events, (select count(*) from app.messages) as messages,
                (select xmin::text from app.conversations where id = $1) as xmin`,
        [id],
      )
    const before = await state()
    const typing = await one.post(`${conversations}/${id}/typing`)
    expect([typing.status, typing.data]).toEqual([202, { accepted: true }])
    expect(await state()).toEqual(before)
  })
})

describe('reactions', () => {
  test('are counted by emoji, once for each user, the oldest first', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const { id: message } = await send(one, id, 'x')
    const path = `${conversations}/${id}/messages/${message}/reactions`
    const first = await one.post(path, { emoji: '👍' })
    expect([first.status, first.data]).toEqual([201, [{ emoji: '👍', count: 1, reacted: true }]])
    const again = await one.post(path, { emoji: '👍' })
    expect([again.status, again.data]).toEqual([200, first.data])
    await two.post(path, { emoji: '👍' })
    await two.post(path, { emoji: '🎉' })
    const mine = [
      { emoji: '👍', count: 2, reacted: true },
      { emoji: '🎉', count: 1, reacted: false },
    ]
    expect((await one.get(path)).data).toEqual(mine)
    expect((await listed(one, id)).data[0].reactions).toEqual(mine)
    expect((await listed(two, id)).data[0].reactions.map(({ reacted }: any) => reacted)).toEqual([true, true])
    const emoji = encodeURIComponent('👍')
    const removed = await one.delete(`${path}?emoji=${emoji}`)
    const rest = [
      { emoji: '👍', count: 1, reacted: false },
      { emoji: '🎉', count: 1, reacted: false },
    ]
    expect([removed.status, removed.data]).toEqual([200, rest])
    expect((await one.delete(`${path}?emoji=${emoji}`)).data).toEqual(rest)
    for (const sent of [{}, { emoji: '' }, { emoji: 'x'.repeat(65) }, { emoji: 1 }]) {
      expectRefusal(await one.post(path, sent), 400, 'INVALID_PAYLOAD', 'emoji')
    }
    expectRefusal(await one.delete(path), 400, 'INVALID_PAYLOAD', 'emoji')
  })

  test('are at most 20 different ones on a message', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const path = `${conversations}/${id}/messages/${(await send(one, id, 'x')).id}/reactions`
    for (let n = 0; n < 20; n += 1) expect((await one.post(path, { emoji: `:${n}:` })).status).toBe(201)
    expectRefusal(await two.post(path, { emoji: ':20:' }), 409, 'LIMIT_REACHED', { limit: 20 })
    expect((await two.post(path, { emoji: ':3:' })).status).toBe(201)
  })
})

describe('reading', () => {
  test('receipts follow last_read_at, in the order of reading, without the sender', async () => {
    const [one, two, three_] = await three()
    const id = await conversationOf(one, [two, three_], 'group')
    const first = await send(one, id, 'first')
    const receipts = async (message: { id: string }) =>
      (await one.get(`${conversations}/${id}/messages/${message.id}/receipts`)).data
    expect(await receipts(first)).toEqual({ read_by: [], read_count: 0, total_recipients: 2 })
    const read = await three_.post(`${conversations}/${id}/read`)
    expect(read.data).toEqual({
      user_id: three_.id,
      display_name: three_.data.display_name,
      avatar_url: null,
      joined_at: expect.any(String),
      last_read_at: expect.any(String),
    })
    await two.post(`${conversations}/${id}/read`)
    // the sender's own reading is no receipt
    await one.post(`${conversations}/${id}/read`)
    const { read_by, ...rest } = await receipts(first)
    expect(rest).toEqual({ read_count: 2, total_recipients: 2 })
    expect(read_by).toEqual([
      { user_id: three_.id, display_name: three_.data.display_name, read_at: read.data.last_read_at },
      { user_id: two.id, display_name: two.data.display_name, read_at: expect.any(String) },
    ])
    const second = await send(one, id, 'second')
    expect((await receipts(second)).read_count).toBe(0)
    expect((await receipts(first)).read_count).toBe(2)
    const shown = (await two.get(`${conversations}/${id}`)).data.conversation_participants
    expect(shown.find(({ user_id }: any) => user_id === three_.id).last_read_at).toBe(read.data.last_read_at)
  })

  test('a message after a reading is unread, even at the same moment or when the clock goes back', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    harness.setTime('2026-11-23T12:00:00Z')
    const [me, them] = [project.onBehalfOf(one.id), project.onBehalfOf(two.id)]
    await send(me, id, 'first')
    await them.post(`${conversations}/${id}/read`)
    for (const at of ['2026-11-23T12:00:00Z', '2026-11-23T11:00:00Z']) {
      harness.setTime(at)
      const [me_, them_] = [project.onBehalfOf(one.id), project.onBehalfOf(two.id)]
      const sent = await send(me_, id, at)
      expect((await bodies(them_, id))[0]).toBe(at)
      expect((await me_.get(`${conversations}/${id}/messages/${sent.id}/receipts`)).data.read_count).toBe(0)
      expect((await counts(them_, id))[0]).toBe(1)
      await them_.post(`${conversations}/${id}/read`)
      expect((await me_.get(`${conversations}/${id}/messages/${sent.id}/receipts`)).data.read_count).toBe(1)
      expect((await counts(them_, id))[0]).toBe(0)
    }
    expect(await wrongCounters(project)).toEqual([])
  })

  test('unread counts leave out own messages and those before joining; mentions are of participants', async () => {
    const [one, two, three_] = await three()
    const id = await conversationOf(one, [two], 'group')
    await send(one, id, 'before')
    await one.post(`${conversations}/${id}/participants`, { user_id: three_.id })
    expect(await counts(three_, id)).toEqual([0, 0])
    const mentions = [three_.id.toUpperCase(), one.id, nobody, 7, null, three_.id]
    const sent = await send(one, id, 'you', { metadata: { mentions } })
    await send(two, id, 'no list', { metadata: { mentions: three_.id } })
    expect([await counts(one, id), await counts(two, id), await counts(three_, id)]).toEqual([
      [1, 0],
      [2, 0],
      [2, 1],
    ])
    // an edit changes who is mentioned
    const path = `${conversations}/${id}/messages/${sent.id}`
    await one.patch(path, { metadata: { mentions: [two.id] } })
    expect([await counts(two, id), await counts(three_, id)]).toEqual([
      [2, 1],
      [2, 0],
    ])
    await one.delete(path)
    expect([await counts(two, id), await counts(three_, id)]).toEqual([
      [1, 0],
      [1, 0],
    ])
    await three_.post(`${conversations}/${id}/read`)
    expect(await unread(three_)).toEqual({ total: 0, conversations: [] })
    expect(await wrongCounters(project)).toEqual([])
  })

  test('unread messages are totalled over all conversations and listed newest activity first', async () => {
    const [one, two, three_] = await three()
    const first = await conversationOf(one, [two])
    const second = await conversationOf(one, [three_])
    await send(two, first, '1')
    await send(three_, second, '2')
    await send(two, first, '3', { metadata: { mentions: [one.id] } })
    const all = [
      { id: first, unread: 2, mentions: 1 },
      { id: second, unread: 1, mentions: 0 },
    ]
    expect(await unread(one)).toEqual({ total: 3, conversations: all })
    const page = (await one.get('/client/messaging/unread?limit=1')).data
    expect(page).toEqual({ total: 3, conversations: all.slice(0, 1) })
    expectRefusal(await one.get('/client/messaging/unread?limit=0'), 400, 'INVALID_INPUT', 'limit')
  })
})

test('search finds texts of own conversations alone, literally and whatever their case', async () => {
  const [one, two, three_] = await three()
  const shared = await conversationOf(one, [two])
  const group = await conversationOf(one, [three_], 'group')
  const foreign = await conversationOf(two, [three_])
  const parent = await send(one, shared, 'A Purple Elephant')
  await send(two, shared, 'no elephants: 100% certain', { parent_message_id: parent.id })
  await send(three_, group, 'ELEPHANT_house')
  await send(two, foreign, 'a secret elephant')
  const found = async (q: string, more = '') => {
    const answer = await one.get(`/client/messaging/messages/search?q=${encodeURIComponent(q)}${more}`)
    expect(answer.status, answer.text).toBe(200)
    return [answer.body.total, answer.data.map(({ body }: any) => body)]
  }
  expect(await found('elephant')).toEqual([3, ['ELEPHANT_house', 'no elephants: 100% certain', 'A Purple Elephant']])
  expect(await found('elephant', '&limit=1&offset=1')).toEqual([3, ['no elephants: 100% certain']])
  expect(await found('0%')).toEqual([1, ['no elephants: 100% certain']])
  // as patterns these would match
  for (const q of ['1%c', 'e_e', '\\%']) expect(await found(q), q).toEqual([0, []])
  expect(await found('t_h')).toEqual([1, ['ELEPHANT_house']])
  expect(await found('\\\\')).toEqual([0, []])
  for (const q of ['', 'x', 'x'.repeat(201)]) {
    expectRefusal(await one.get(`/client/messaging/messages/search?q=${q}`), 400, 'INVALID_INPUT', 'q')
  }
  await one.delete(`${conversations}/${group}/participants/me`)
  expect((await found('elephant'))[0]).toBe(2)
})

test('a page, a count, and a message cost the same in a long conversation as in a short one', async () => {
  const [one, two] = await three()
  const lengths = [100, 5000]
  const costs: number[][] = []
  for (const length of lengths) {
    const id = await conversationOf(one, [two], 'group')
    await project.sql(
      `insert into app.messages (conversation_id, sender_id, body, created_at)
       select $1, $2, 'message ' || n, internal.now() + n * interval '1 microsecond' from generate_series(1, $3::int) n`,
      [id, two.id, length],
    )
    await project.sql('analyze app.messages')
    const claims = { 'app.caller': 'user', 'app.user_id': one.id }
    const pagesOf = async (call: string) => {
      // the second call in a session: the first also reads the catalog
      const explain = `explain (analyze, buffers, format json) select ${call}`
      await project.as('app_user', claims, explain)
      const [row] = await project.as('app_user', claims, explain)
      const [{ Plan: plan }] = Object.values(row)[0] as any
      return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    }
    costs.push([
      await pagesOf(`api.messages_list('${id}')`),
      await pagesOf('api.unread_get()'),
      await pagesOf(`api.conversation_get('${id}')`),
      await pagesOf(`api.message_send('${id}', 'hello')`),
      await pagesOf(`api.conversation_read('${id}')`),
    ])
    expect((await listed(one, id)).total).toBe(length + 2)
  }
  const [short, long] = costs as [number[], number[]]
  for (const [n, cost] of long.entries())
    expect(cost, `${n}: ${short} ${long}`).toBeLessThan((short[n] ?? 0) * 1.5 + 20)
})
