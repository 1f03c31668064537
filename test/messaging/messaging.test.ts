import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { bodies, conversationOf, conversations, nobody, send, startMessaging, unread } from '#test/support/messaging.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Conversations: creating, listing and changing them, and their participants. */
const { project, three } = await startMessaging()

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
