import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness, type User } from '#test/support/harness.ts'
import {
  block,
  bodies,
  conversationOf,
  conversations,
  listed,
  nobody,
  send,
  unblock,
  unread,
  wrongCounters,
} from '#test/support/messaging.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(async () => {
  harness.setTime(null)
  await unblock(project)
})

const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user())) as Promise<any>
const three = (): Promise<[User, User, User]> => users(3)

/** Every call on a conversation and on a message of it, each with what it answers to a malformed conversation id. */
const calls = (id: string, message: string): [string, (who: Client) => Promise<any>, string][] => {
  const path = `${conversations}/${id}`
  const contract = 'INVALID_CONVERSATION_ID'
  return [
    ['get', (who) => who.get(path), 'INVALID_ID'],
    ['update', (who) => who.patch(path, { name: 'x' }), 'INVALID_ID'],
    ['mute', (who) => who.patch(path, { archived: true }), 'INVALID_ID'],
    ['send', (who) => who.post(`${path}/messages`, { body: 'x' }), contract],
    ['list', (who) => who.get(`${path}/messages`), contract],
    ['replies', (who) => who.get(`${path}/messages?parent_message_id=${nobody}`), contract],
    ['edit', (who) => who.patch(`${path}/messages/${message}`, { body: 'x' }), 'INVALID_ID'],
    ['delete', (who) => who.delete(`${path}/messages/${message}`), 'INVALID_ID'],
    ['typing', (who) => who.post(`${path}/typing`), contract],
    ['react', (who) => who.post(`${path}/messages/${message}/reactions`, { emoji: 'x' }), contract],
    ['take back', (who) => who.delete(`${path}/messages/${message}/reactions?emoji=x`), contract],
    ['reactions', (who) => who.get(`${path}/messages/${message}/reactions`), contract],
    ['receipts', (who) => who.get(`${path}/messages/${message}/receipts`), contract],
    ['add', (who) => who.post(`${path}/participants`, { user_id: nobody }), contract],
    ['leave', (who) => who.delete(`${path}/participants/me`), 'INVALID_ID'],
    ['remove', (who) => who.delete(`${path}/participants/${nobody}`), 'INVALID_ID'],
    ['read', (who) => who.post(`${path}/read`), contract],
  ]
}

describe('a conversation', () => {
  test('of others, unknown, or malformed is refused in each call, and nothing happens', async () => {
    const [one, two, stranger] = await three()
    const id = await conversationOf(one, [two])
    const { id: message } = await send(one, id, 'private')
    const other = await harness.project()
    const foreigner = await other.user()
    for (const [name, call, malformed] of calls(id, message)) {
      const refused = await call(stranger)
      if (name === 'read') expectRefusal(refused, 404, 'UPDATE_FAILED')
      else expectRefusal(refused, 403, 'NOT_A_PARTICIPANT')
      expectRefusal(await call(foreigner), 404, 'CONVERSATION_NOT_FOUND')
      const [, asUnknown] = calls(nobody, message).find(([known]) => known === name) as any
      expectRefusal(await asUnknown(one), 404, 'CONVERSATION_NOT_FOUND')
      const [, asMalformed] = calls('x', message).find(([known]) => known === name) as any
      expectRefusal(await asMalformed(one), 400, malformed, 'conversationId')
      expect([401, 403], name).toContain((await call(project.app)).status)
    }
    expect(await listed(one, id)).toMatchObject({ total: 1, data: [{ body: 'private', reactions: [] }] })
    expect(await wrongCounters(project)).toEqual([])
  })

  test('a message that is unknown, malformed, or of another conversation is refused', async () => {
    const [one, two] = await three()
    const [id, other] = [await conversationOf(one, [two]), await conversationOf(one, [two], 'group')]
    const { id: elsewhere } = await send(one, other, 'elsewhere')
    for (const [path, malformed] of [
      ['reactions', 'INVALID_ID'],
      ['receipts', 'INVALID_ID'],
    ] as const) {
      const get = (message: string) => one.get(`${conversations}/${id}/messages/${message}/${path}`)
      for (const message of [nobody, elsewhere]) expectRefusal(await get(message), 404, 'MESSAGE_NOT_FOUND')
      expectRefusal(await get('x'), 400, malformed, 'messageId')
    }
    const reactions = `${conversations}/${id}/messages/${elsewhere}/reactions`
    expectRefusal(await one.post(reactions, { emoji: 'x' }), 404, 'MESSAGE_NOT_FOUND')
    expectRefusal(await one.delete(`${reactions}?emoji=x`), 404, 'MESSAGE_NOT_FOUND')
    for (const call of [
      one.post(`${conversations}/${id}/messages/x/reactions`, { emoji: 'x' }),
      one.delete(`${conversations}/${id}/messages/x/reactions?emoji=x`),
    ]) {
      expectRefusal(await call, 400, 'INVALID_ID', 'messageId')
    }
  })
})

describe('blocking', () => {
  test('hides a direct conversation from both, either way, and keeps it', async () => {
    const [one, two, third] = await three()
    const id = await conversationOf(one, [two])
    const { id: message } = await send(one, id, 'before the quarrel')
    const wider = await conversationOf(one, [two, third], 'group')
    await send(one, wider, 'in the group')
    await block(project, two, one)
    for (const who of [one, two]) {
      for (const [name, call] of calls(id, message)) {
        expectRefusal(await call(who), 404, 'USER_NOT_FOUND')
        expect(name).toBeTruthy()
      }
      expect((await who.get(conversations)).data.map((shown: any) => shown.id)).toEqual([wider])
      expect((await who.get(conversations)).body.total).toBe(1)
      const found = await who.get('/client/messaging/messages/search?q=quarrel')
      expect(found.body.total).toBe(0)
    }
    expect((await unread(two)).conversations.map((shown: any) => shown.id)).toEqual([wider])
    expect((await unread(two)).total).toBe(1)
    expectRefusal(await one.post(conversations, { participant_ids: [two.id] }), 404, 'USER_NOT_FOUND')
    expectRefusal(await two.post(conversations, { participant_ids: [one.id] }), 404, 'USER_NOT_FOUND')
    const group = { type: 'group', participant_ids: [two.id, third.id] }
    expectRefusal(await one.post(conversations, group), 404, 'USER_NOT_FOUND')
    const own = await conversationOf(one, [third], 'group')
    expectRefusal(await one.post(`${conversations}/${own}/participants`, { user_id: two.id }), 404, 'USER_NOT_FOUND')
    // somebody else may bring both into one group
    await third.post(`${conversations}/${own}/participants`, { user_id: two.id })
    await send(one, own, 'together')
    expect(await bodies(two, own)).toEqual(['together'])
    await unblock(project)
    expect(await bodies(two, id)).toEqual(['before the quarrel'])
    expect((await one.post(conversations, { participant_ids: [two.id] })).data.id).toBe(id)
  })
})

describe('users', () => {
  test('who are muted write nothing until then; they read on', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    harness.setTime('2026-12-21T12:00:00Z')
    const me = project.onBehalfOf(one.id)
    const { id: message } = await send(me, id, 'before')
    const path = `${conversations}/${id}/messages`
    const muted_until = '2026-12-21T12:10:00.000Z'
    await project.sql('update app.users set muted_until = $2 where id = $1', [one.id, muted_until])
    for (const refused of [
      await me.post(path, { body: 'x' }),
      await me.patch(`${path}/${message}`, { body: 'x' }),
      await me.post(`${path}/${message}/reactions`, { emoji: 'x' }),
      await me.patch(`${conversations}/${id}`, { name: 'x' }),
      await me.post(conversations, { type: 'group', name: 'x', participant_ids: [two.id] }),
    ]) {
      expectRefusal(refused, 403, 'USER_MUTED', { muted_until })
    }
    expect((await me.patch(`${conversations}/${id}`, { archived: false })).status).toBe(200)
    expect((await me.post(conversations, { participant_ids: [two.id] })).status).toBe(200)
    expect(await bodies(me, id)).toEqual(['before'])
    expect((await me.post(`${conversations}/${id}/read`)).status).toBe(200)
    harness.setTime(muted_until)
    await send(project.onBehalfOf(one.id), id, 'after')
  })

  test('who are deleted take their messages along; replies stay without a parent', async () => {
    const [one, two, third] = await three()
    const direct = await conversationOf(one, [two])
    const group = await conversationOf(one, [two], 'group')
    await one.post(`${conversations}/${group}/participants`, { user_id: third.id })
    const parent = await send(one, group, 'parent')
    const reply = await send(two, group, 'reply', { parent_message_id: parent.id })
    await send(one, group, 'with its parent', { parent_message_id: parent.id })
    await send(one, group, 'own reply', { parent_message_id: reply.id, metadata: { mentions: [third.id] } })
    await one.post(`${conversations}/${group}/messages/${reply.id}/reactions`, { emoji: 'x' })
    await send(one, direct, 'hello')
    await send(two, direct, 'hello back')
    // messages of who has left go as well
    const left = await conversationOf(third, [one], 'group')
    await send(one, left, 'left behind')
    await one.delete(`${conversations}/${left}/participants/me`)
    const alone = await conversationOf(one, [one])
    expect((await project.admin.delete(`/users/${one.id}`)).status).toBe(200)
    expect((await listed(two, group)).data).toMatchObject([
      { body: 'reply', parent_message_id: null, reply_count: 0, reactions: [] },
    ])
    expect((await two.get(`${conversations}/${group}`)).data).toMatchObject({ owner_id: two.id, message_count: 1 })
    expect(await bodies(two, direct)).toEqual(['hello back'])
    expect((await two.get(`${conversations}/${direct}`)).data.conversation_participants).toHaveLength(1)
    expect((await two.post(`${conversations}/${direct}/messages`, { body: 'anyone?' })).status).toBe(201)
    expect(await project.sql('select from app.conversation_participants where peer_id = $1', [one.id])).toEqual([])
    expect(await bodies(third, left)).toEqual([])
    expect(await unread(third)).toEqual({ total: 1, conversations: [{ id: group, unread: 1, mentions: 0 }] })
    expect(await project.sql('select from app.conversations where id = $1', [alone])).toEqual([])
    expect(await wrongCounters(project)).toEqual([])
  })

  test('who are reset lose their messages and reactions, and stay', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const sent = await send(one, id, 'mine')
    const theirs = await send(two, id, 'theirs', { parent_message_id: sent.id })
    await one.post(`${conversations}/${id}/messages/${theirs.id}/reactions`, { emoji: 'x' })
    const reset = await project.admin.delete(`/users/${one.id}/reset?sections=messages`)
    expect(reset.data.rows_deleted).toEqual({ messages: 2 })
    expect((await listed(one, id)).data).toMatchObject([{ body: 'theirs', parent_message_id: null, reactions: [] }])
    expect(await wrongCounters(project)).toEqual([])
  })

  test('export what they wrote, and nothing of others', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const mine = await send(one, id, 'mine')
    await send(two, id, 'theirs')
    await one.post(`${conversations}/${id}/messages/${mine.id}/reactions`, { emoji: 'x' })
    const { text } = await one.get('/client/users/me/export')
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const section = (name: string) => lines.filter((line) => line.section === name).map((line) => line.data)
    expect(section('messages')).toMatchObject([{ id: mine.id, body: 'mine', sender_id: one.id }])
    expect(section('conversation_participants')).toMatchObject([{ conversation_id: id, app_user_id: one.id }])
    expect(section('message_reactions')).toMatchObject([{ message_id: mine.id, emoji: 'x' }])
    expect(text).not.toContain('theirs')
    expect(text).not.toContain(two.id)
  })

  test('who become one have the conversations of both', async () => {
    const [survivor, other, third] = await three()
    await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
    const kept = await conversationOf(survivor, [third])
    const doubled = await conversationOf(other, [third])
    const between = await conversationOf(survivor, [other])
    const group = await conversationOf(other, [survivor, third], 'group')
    const only = await conversationOf(other, [third], 'group')
    await send(survivor, kept, 'kept')
    await send(other, doubled, 'doubled')
    await send(third, doubled, 'answer', { metadata: { mentions: [other.id] } })
    await send(other, between, 'to myself')
    const sent = await send(other, group, 'of other')
    await send(third, group, 'of third', { metadata: { mentions: [other.id] }, parent_message_id: sent.id })
    await other.post(`${conversations}/${group}/messages/${sent.id}/reactions`, { emoji: 'x' })
    await survivor.post(`${conversations}/${group}/messages/${sent.id}/reactions`, { emoji: 'x' })
    await other.post(`${conversations}/${group}/messages/${sent.id}/reactions`, { emoji: 'y' })
    const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
    expect(merged.data?.merged, merged.text).toMatchObject({ conversation_participants: 4, message_reactions: 1 })
    const list = (await survivor.get(conversations)).data
    expect(list.map(({ id }: any) => id).sort()).toEqual([kept, doubled, between, group, only].sort())
    const shown = Object.fromEntries(list.map((conversation: any) => [conversation.id, conversation]))
    expect(shown[group]).toMatchObject({ owner_id: survivor.id, unread: 1, mentions: 1 })
    expect(shown[only].owner_id).toBe(survivor.id)
    expect(shown[doubled]).toMatchObject({ unread: 1, mentions: 1 })
    expect(shown[between].conversation_participants).toHaveLength(1)
    expect((await listed(survivor, group)).data).toMatchObject([
      { sender_id: survivor.id, reply_count: 1, reactions: [{ emoji: 'x', count: 1 }, { emoji: 'y' }] },
    ])
    // the survivor's own is found, not the doubled one; and the one between both is the survivor's alone
    expect((await third.post(conversations, { participant_ids: [survivor.id] })).data.id).toBe(kept)
    expect((await survivor.post(conversations, { participant_ids: [survivor.id] })).data.id).toBe(between)
    expect((await third.post(`${conversations}/${doubled}/messages`, { body: 'still here' })).status).toBe(201)
    expect(await wrongCounters(project)).toEqual([])
    // blocks hide what came from the other as well
    await block(project, third, survivor)
    expectRefusal(await survivor.get(`${conversations}/${doubled}`), 404, 'USER_NOT_FOUND')
  })
})

describe('administrators', () => {
  test('list all conversations and messages, and see no personal state', async () => {
    const [one, two, third] = await three()
    const first = await conversationOf(one, [two])
    const second = await conversationOf(one, [third], 'group')
    const parent = await send(one, first, 'parent')
    await send(two, first, 'reply', { parent_message_id: parent.id })
    const all = await project.admin.get('/messaging/conversations?limit=2')
    expect(all.data.map(({ id }: any) => id)).toEqual([second, first])
    expect(all.body.total).toBeGreaterThanOrEqual(2)
    expect(all.data[1]).not.toHaveProperty('unread')
    expect(all.data[1]).toMatchObject({ message_count: 2, last_message: { body: 'reply' } })
    const ofThird = await project.admin.get(`/messaging/conversations?user_id=${third.id}`)
    expect([ofThird.body.total, ofThird.data.map(({ id }: any) => id)]).toEqual([1, [second]])
    expect((await project.admin.get(`/messaging/conversations?user_id=${nobody}`)).body.total).toBe(0)
    expectRefusal(await project.admin.get('/messaging/conversations?user_id=x'), 400, 'INVALID_INPUT', 'user_id')
    const messages = await project.admin.get(`/messaging/conversations/${first}/messages?limit=1`)
    expect(messages.body).toMatchObject({ total: 2, limit: 1, data: [{ body: 'reply' }] })
    const path = `/messaging/conversations/${nobody}/messages`
    expectRefusal(await project.admin.get(path), 404, 'CONVERSATION_NOT_FOUND')
    expectRefusal(await project.admin.get('/messaging/conversations/x/messages'), 400, 'INVALID_ID', 'conversationId')
  })

  test('post as a participant or as the system, and delete; the audit trail has no text', async () => {
    const [one, two, third] = await three()
    const id = await conversationOf(one, [two])
    const path = `/messaging/conversations/${id}/messages`
    const system = await project.admin.post(path, { body: 'Maintenance tonight', system: true })
    expect([system.status, system.data], system.text).toEqual([
      201,
      expect.objectContaining({ sender_id: null, sender: null, message_type: 'system', body: 'Maintenance tonight' }),
    ])
    const parent_message_id = system.data.id
    const metadata = { mentions: [two.id] }
    const as = await project.admin.post(path, { body: 'as one', as_user_id: one.id, parent_message_id, metadata })
    expect(as.data).toMatchObject({ sender_id: one.id, message_type: 'text', parent_message_id })
    expect([await unread(one), await unread(two)]).toEqual([
      { total: 1, conversations: [{ id, unread: 1, mentions: 0 }] },
      { total: 2, conversations: [{ id, unread: 2, mentions: 1 }] },
    ])
    expectInvalid(await project.admin.post(path, { body: 'x' }), 'as_user_id')
    expectInvalid(await project.admin.post(path, { body: 'x', as_user_id: one.id, system: true }), 'as_user_id')
    expectInvalid(await project.admin.post(path, { body: '', system: true }), 'body')
    const malformed = await project.admin.post('/messaging/conversations/x/messages', { body: 'x', system: true })
    expectRefusal(malformed, 400, 'INVALID_ID', 'conversationId')
    const by = (more: object, to = path) => project.admin.post(to, { body: 'x', ...more })
    expectRefusal(await by({ as_user_id: nobody }), 404, 'USER_NOT_FOUND')
    expectRefusal(await by({ as_user_id: third.id }), 403, 'NOT_A_PARTICIPANT')
    expectRefusal(await by({ system: true, parent_message_id: nobody }), 404, 'PARENT_NOT_FOUND')
    expectRefusal(await by({ system: true, attachments: [{}] }), 400, 'INVALID_ATTACHMENTS', 'attachments.0.url')
    await project.sql('update app.messages set reply_count = 10000 where id = $1', [parent_message_id])
    const limit = { limit: 10_000 }
    expectRefusal(await by({ system: true, parent_message_id }), 409, 'LIMIT_REACHED', limit)
    const reply = await one.post(`${conversations}/${id}/messages`, { body: 'x', parent_message_id })
    expectRefusal(reply, 409, 'LIMIT_REACHED', limit)
    await project.sql('update app.messages set reply_count = 1 where id = $1', [parent_message_id])
    const nowhere = `/messaging/conversations/${nobody}/messages`
    expectRefusal(await by({ system: true }, nowhere), 404, 'CONVERSATION_NOT_FOUND')
    const elsewhere = await send(one, await conversationOf(one, [third]), 'elsewhere')
    const wrongParent = { as_user_id: one.id, parent_message_id: elsewhere.id }
    expectRefusal(await by(wrongParent), 400, 'INVALID_PARENT', 'parent_message_id')
    expectRefusal(await project.admin.delete(`${path}/${elsewhere.id}`), 404, 'MESSAGE_NOT_FOUND')
    expectRefusal(await project.admin.delete(`${nowhere}/${elsewhere.id}`), 404, 'CONVERSATION_NOT_FOUND')
    expect((await project.admin.delete(`${path}/${parent_message_id}`)).data).toEqual({ deleted: true })
    expect(await bodies(two, id)).toEqual(['as one'])
    const { data: trail, text } = await project.admin.get(`/audit-events?target_id=${id}`)
    expect(trail.map(({ action }: any) => action).sort()).toEqual([
      'messaging.message_delete',
      'messaging.message_post',
      'messaging.message_post',
    ])
    expect(text).not.toContain('Maintenance')
    expect(await wrongCounters(project)).toEqual([])
  })

  test('have statistics of a day and a week', async () => {
    const fresh = await harness.project()
    const [one, two] = [await fresh.user(), await fresh.user()]
    harness.setTime('2026-12-01T12:00:00Z')
    const id = await conversationOf(fresh.onBehalfOf(one.id), [two])
    await send(fresh.onBehalfOf(one.id), id, 'a month ago')
    harness.setTime('2026-12-29T12:00:00Z')
    await send(fresh.onBehalfOf(two.id), id, 'this week')
    harness.setTime('2026-12-31T12:00:00Z')
    await conversationOf(fresh.onBehalfOf(one.id), [two], 'group')
    await send(fresh.onBehalfOf(one.id), id, 'today')
    harness.setTime('2026-12-31T18:00:00Z')
    const developer = await harness.signIn(fresh.developer)
    const stats = await developer.get(`/admin/projects/${fresh.id}/messaging/stats`)
    expect(stats.data, stats.text).toEqual({
      conversations: { total: 2, direct: 1, group: 1 },
      messages: { total: 3, last_24h: 1, last_7d: 2 },
      active_senders: { last_24h: 1, last_7d: 2 },
    })
  })

  test('alone reach these routes and their functions', async () => {
    const [one, two] = await three()
    const id = await conversationOf(one, [two])
    const { id: message } = await send(one, id, 'x')
    const admin = `/admin/projects/${project.id}/messaging`
    const stranger = await harness.developer()
    for (const who of [one, project.app, project.server, harness.anyone, stranger]) {
      for (const answer of [
        await who.get(`${admin}/conversations`),
        await who.get(`${admin}/conversations/${id}/messages`),
        await who.post(`${admin}/conversations/${id}/messages`, { body: 'x', system: true }),
        await who.delete(`${admin}/conversations/${id}/messages/${message}`),
        await who.get(`${admin}/stats`),
      ]) {
        expect([401, 403]).toContain(answer.status)
      }
    }
    const asAdmin = (text: string) => project.as('app_admin', { 'app.caller': 'user', 'app.user_id': one.id }, text)
    for (const call of [
      'api.conversations_admin()',
      `api.messages_admin('${id}')`,
      `api.message_post('${id}', 'x', null, true)`,
      `api.message_delete_admin('${id}', '${message}')`,
      'api.messaging_stats()',
    ]) {
      await expect(asAdmin(`select ${call}`), call).rejects.toThrow(/administrators/)
    }
  })
})

test('in SQL users read their own conversations, and write nothing by hand', async () => {
  const [one, two, stranger] = await three()
  const id = await conversationOf(one, [two])
  const { id: message } = await send(one, id, 'x')
  await two.post(`${conversations}/${id}/messages/${message}/reactions`, { emoji: 'x' })
  const as = (who: User, text: string) => project.as('app_user', { 'app.caller': 'user', 'app.user_id': who.id }, text)
  const tables = [
    ['conversations', `id = '${id}'`, 1],
    ['conversation_participants', `conversation_id = '${id}'`, 1],
    ['messages', `conversation_id = '${id}'`, 1],
    ['message_reactions', `message_id = '${message}'`, 1],
  ] as const
  for (const [table, where, many] of tables) {
    const query = `select from app.${table} where ${where}`
    expect(await as(one, query), table).toHaveLength(many)
    expect(await as(two, query), table).toHaveLength(many)
    expect(await as(stranger, query), table).toEqual([])
    expect((await project.as('app_admin', { 'app.caller': 'developer' }, query)).length, table).toBeGreaterThan(0)
    for (const statement of [`delete from app.${table} where ${where}`, `update app.${table} set ${where}`]) {
      await expect(as(one, statement), statement).rejects.toThrow(/permission denied/)
    }
  }
  await block(project, one, two)
  expect(await as(one, `select from app.messages where conversation_id = '${id}'`)).toEqual([])
  for (const call of [
    `internal.message_post('${id}', '${two.id}', 'x', 'text', '{}', null, '[]')`,
    `internal.messages_json(array['${message}']::uuid[])`,
    `internal.conversations_json(array['${id}']::uuid[])`,
  ]) {
    await expect(as(stranger, `select ${call}`), call).rejects.toThrow(/permission denied/)
  }
})
