import { describe, expect, test } from 'vitest'
import {
  bodies,
  conversationOf,
  conversations,
  counts,
  listed,
  nobody,
  send,
  startMessaging,
  unread,
  wrongCounters,
} from '#test/support/messaging.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Read receipts and unread messages, and the cost of pages and counts in long conversations. */
const { harness, project, three } = await startMessaging()

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
