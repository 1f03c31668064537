import { beforeEach, describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { bodies, conversationOf, conversations, listed, send } from '#test/support/messaging.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** Rules of moderation read messages as they are written, and moderators act on them; the same for a group's new name. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const [ann, bob, eve] = (await Promise.all([project.user(), project.user(), project.user()])) as [User, User, User]
const conversation = await conversationOf(ann, [bob])
beforeEach(() => project.sql('delete from app.moderation_rules'))

const rule = async (action: string, applies_to = 'message') => {
  const made = await admin.post('/moderation/rules', {
    name: 'Casinos',
    rule_type: 'keyword',
    config: { words: ['casino'], action, applies_to: [applies_to] },
  })
  expect(made.status, made.text).toBe(201)
}
const itemOf = async (id: string) =>
  (await admin.get('/moderation/queue?limit=200')).data.find((item: any) => item.subject_id === id)
const move = async (id: string, verb: string) => {
  const moved = await admin.post(`/moderation/queue/${id}/${verb}`, {})
  expect(moved.status, moved.text).toBe(200)
}
const edit = (id: string, body: string) => ann.patch(`${conversations}/${conversation}/messages/${id}`, { body })
const report = (from: User, subject_id: string) =>
  from.post('/client/moderation/reports', { subject_type: 'message', subject_id, reason: 'spam' })

describe('a message', () => {
  test('that a rule blocks is refused, new or edited, and changes nothing', async () => {
    await rule('block')
    const { total } = await listed(ann, conversation)
    const refused = await ann.post(`${conversations}/${conversation}/messages`, { body: 'The Casino!' })
    expectRefusal(refused, 400, 'CONTENT_REJECTED')
    const { id } = await send(ann, conversation, 'hello')
    expectRefusal(await edit(id, 'casino'), 400, 'CONTENT_REJECTED')
    const page = await listed(bob, conversation)
    expect([page.total, page.data[0].body]).toEqual([total + 1, 'hello'])
  })

  test('that a rule hides shows an ellipsis until it is approved, and cannot be edited meanwhile', async () => {
    await rule('hide')
    const attachments = [{ url: 'https://files.example.com/a.png' }]
    const { id } = await send(ann, conversation, 'my casino', { metadata: { a: 1 }, attachments })
    expect((await listed(bob, conversation)).data[0]).toMatchObject({ id, body: '…', metadata: {}, attachments: [] })
    expectRefusal(await edit(id, 'harmless'), 400, 'CONTENT_REJECTED')
    const item = await itemOf(id)
    expect(item).toMatchObject({ subject_type: 'message', subject_user_id: ann.id, is_hidden: true, source: 'rule' })
    await move(item.id, 'approve')
    expect((await listed(bob, conversation)).data[0]).toMatchObject({
      body: 'my casino',
      metadata: { a: 1 },
      attachments,
    })
    expect((await edit(id, 'harmless')).status).toBe(200)
  })

  test('is reported by its readers only, and deleted when it is rejected; replies stay', async () => {
    const { id } = await send(ann, conversation, 'spam')
    const reply = await send(bob, conversation, 'stop', { parent_message_id: id })
    expectRefusal(await report(eve, id), 404, 'SUBJECT_NOT_FOUND')
    expectRefusal(await report(ann, id), 400, 'SELF_REPORT')
    expect((await report(bob, id)).status).toBe(201)
    const item = await itemOf(id)
    expect(item.snapshot).toMatchObject({ body: 'spam', conversation_id: conversation })
    await move(item.id, 'reject')
    expect(await bodies(bob, conversation)).not.toContain('spam')
    const kept = (await listed(bob, conversation)).data.find((message) => message.id === reply.id)
    expect(kept).toMatchObject({ parent_message_id: null })
  })

  test('is moved in the queue beside an edit that a rule catches: one waits for the other', async () => {
    await rule('queue')
    const { id } = await send(ann, conversation, 'casino one')
    const item = await itemOf(id)
    const open = await openTransaction(project, 'app_user', {
      'app.caller': 'user',
      'app.user_id': ann.id,
      'app.project_id': project.id,
    })
    // the edit holds the conversation and has not come to the item
    await open.query('select api.message_edit($1, $2, $3)', [conversation, id, JSON.stringify({ metadata: { n: 1 } })])
    const rejected = admin.post(`/moderation/queue/${item.id}/reject`, {})
    await untilBlocked(project)
    await open.query('select api.message_edit($1, $2, $3)', [conversation, id, JSON.stringify({ body: 'casino two' })])
    await open.commit()
    expect((await rejected).status).toBe(200)
    expect(await bodies(bob, conversation)).not.toContain('casino two')
  })

  test('is found by a simulation', async () => {
    await send(ann, conversation, 'a casino of old')
    await rule('queue')
    const [{ id }] = (await admin.get('/moderation/rules')).data
    const { data } = await admin.post(`/moderation/rules/${id}/simulate`, { days: 7 })
    expect(JSON.stringify(data)).toMatch(/[1-9]/)
  })
})

test("a group's new name is read, and a muted user does not change it", async () => {
  const { id } = (await ann.post('/client/groups', { name: 'Cards' })).data
  await rule('block', 'group_name')
  expectRefusal(await ann.patch(`/client/groups/${id}`, { name: 'Casino' }), 400, 'CONTENT_REJECTED')
  expect((await ann.patch(`/client/groups/${id}`, { name: 'Chess' })).data.name).toBe('Chess')
  await project.sql(`update app.users set muted_until = now() + interval '1 hour' where id = $1`, [ann.id])
  expectRefusal(await ann.patch(`/client/groups/${id}`, { name: 'Go' }), 403, 'USER_MUTED')
  await project.sql('update app.users set muted_until = null where id = $1', [ann.id])
})
