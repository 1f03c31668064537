import { describe, expect, test } from 'vitest'
import {
  bodies,
  conversationOf,
  conversations,
  listed,
  nobody,
  send,
  startMessaging,
  wrongCounters,
} from '#test/support/messaging.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Messages: sending, replies, edits, deletion, reactions and search. */
const { harness, project, three } = await startMessaging()

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
