import { beforeEach, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project

beforeEach(() => project.sql('delete from app.moderation_rules'))

const rule = (action: string, words = ['casino']) =>
  admin.post('/moderation/rules', { name: 'Rule', rule_type: 'keyword', config: { words, action } })
let made = 0
const collection = async (columns: object[], more: object = {}) => {
  made += 1
  const name = `notes_${made}`
  const created = await admin.post('/collections', { name, columns, ...more })
  expect(created.status, created.text).toBe(201)
  return { name, path: `/client/collections/${name}`, definition: created.data }
}
const text = [
  { name: 'title', type: 'text', moderated: true },
  { name: 'body', type: 'text', moderated: true },
  { name: 'plain', type: 'text' },
]
const itemOf = async (id: string) =>
  (await admin.get('/moderation/queue?limit=200')).data.find((item: any) => item.subject_id === id)
const move = (id: string, verb: string) => admin.post(`/moderation/queue/${id}/${verb}`, {})
const listed = async (client: Client, path: string) => (await client.get(path)).data.map(({ id }: any) => id)

test('a column names itself moderated, in its creation and later', async () => {
  const { name, path, definition } = await collection(text)
  expect(definition.columns.map(({ moderated }: any) => moderated)).toEqual([true, true, false])
  const user = await project.user()
  await rule('block')
  const isRead = async (column: string) =>
    (await user.post(path, { [column]: 'my casino' })).error?.code === 'CONTENT_REJECTED'
  expect([await isRead('title'), await isRead('body'), await isRead('plain')]).toEqual([true, true, false])
  const change = (column: string, body: object) => admin.patch(`/collections/${name}/columns/${column}`, body)
  expect((await change('title', { moderated: false })).data.moderated).toBe(false)
  expect([await isRead('title'), await isRead('body')]).toEqual([false, true])
  await change('body', { moderated: false })
  expect(await isRead('body')).toBe(false)
  await change('plain', { moderated: true, name: 'renamed' })
  expect(await isRead('renamed')).toBe(true)
  await admin.post(`/collections/${name}/columns`, { name: 'added', type: 'text', moderated: true })
  expect(await isRead('added')).toBe(true)
  expect((await admin.delete(`/collections/${name}/columns/renamed?confirm=renamed`)).status).toBe(200)
  expect([await isRead('added'), await isRead('title')]).toEqual([true, false])
  expectInvalid(
    await admin.post(`/collections/${name}/columns`, { name: 'n', type: 'integer', moderated: true }),
    'moderated',
  )
  expectInvalid(
    await admin.post(`/collections/${name}/columns`, { name: 'n', type: 'text[]', moderated: true }),
    'moderated',
  )
  expectInvalid(await change('title', { moderated: 'yes' }), 'moderated')
})

test('a rule blocks in every write, of users alone', async () => {
  const { name, path } = await collection(text)
  const user = await project.user()
  await rule('block')
  const row = (await user.post(path, { title: 'fine' })).data
  const bad = { title: 'casino' }
  const refused = [
    await user.post(path, bad),
    await user.post(`${path}/batch`, { rows: [{ title: 'fine' }, bad] }),
    await user.patch(`${path}/${row.id}`, bad),
    await user.post('/client/collections/transaction', { operations: [{ op: 'insert', collection: name, data: bad }] }),
    await project.onBehalfOf(user.id).post(path, bad),
  ]
  for (const answer of refused) expectRefusal(answer, 400, 'CONTENT_REJECTED')
  expect(await listed(user, path)).toEqual([row.id])
  expect((await project.server.post(path, { ...bad, user_id: user.id })).status).toBe(201)
  expect((await admin.post(`/collections/${name}/rows`, { ...bad, user_id: user.id })).status).toBe(201)
  // what is not changed is not read
  await rule('block', ['fine'])
  expect((await user.patch(`${path}/${row.id}`, { plain: 'x' })).status).toBe(200)
})

test('a muted user writes no moderated text, and others', async () => {
  const { name, path } = await collection(text)
  const user = await project.user()
  const row = (await user.post(path, { title: 'fine' })).data
  await admin.patch(`/users/${user.id}`, { muted_until: '2100-01-01T00:00:00Z' })
  const operations = [{ op: 'insert', collection: name, data: { title: 'x' } }]
  for (const answer of [
    await user.post(path, { title: 'x' }),
    await user.post(`${path}/batch`, { rows: [{ title: 'x' }] }),
    await user.patch(`${path}/${row.id}`, { title: 'x' }),
    await user.post('/client/collections/transaction', { operations }),
  ]) {
    expectRefusal(answer, 403, 'USER_MUTED')
  }
  expect((await user.post(path, { plain: 'x' })).status).toBe(201)
})

test('a hidden row is gone for all, stays so, and comes back when it is approved', async () => {
  const { name, path } = await collection(text, { read_policy: 'public' })
  const [user, other] = [await project.user(), await project.user()]
  await rule('hide')
  const row = await user.post(path, { title: 'casino', body: 'mine' })
  expect(row.status).toBe(201)
  const { id } = row.data
  expect([await listed(user, path), await listed(other, path)]).toEqual([[], []])
  const item = await itemOf(id)
  expect(item).toMatchObject({
    subject_type: 'collection_row',
    subject_user_id: user.id,
    is_hidden: true,
    snapshot: { collection: name, kind: 'collection_row', text: 'casino\nmine' },
  })
  expectRefusal(await user.post(`${path}/${id}/restore`), 400, 'CONTENT_REJECTED')
  expect((await move(item.id, 'approve')).data.is_hidden).toBe(false)
  expect(await listed(other, path)).toEqual([id])
  // what its author deletes and restores is the author's affair
  expect((await user.delete(`${path}/${id}`)).status).toBe(200)
  expect((await user.post(`${path}/${id}/restore`)).status).toBe(200)
})

test('a reported row: approve leaves it, reject removes it for good; what was deleted meanwhile stays deleted', async () => {
  const { name, path } = await collection([{ name: 'title', type: 'text' }], { read_policy: 'public' })
  const [user, other] = [await project.user(), await project.user()]
  const write = async () => (await user.post(path, { title: 'rude' })).data.id as string
  const report = async (id: string) => {
    const answer = await other.post('/client/moderation/reports', {
      subject_type: 'collection_row',
      subject_id: id,
      reason: 'abuse',
    })
    expect(answer.status, answer.text).toBe(201)
    return (await itemOf(id)) as { id: string; snapshot: object }
  }
  const [stays, goes, deleted] = [await write(), await write(), await write()]
  const item = await report(stays)
  expect(item.snapshot).toEqual({ collection: name, row: { title: 'rude' } })
  await move(item.id, 'approve')
  await move((await report(goes)).id, 'reject')
  const late = await report(deleted)
  await user.delete(`${path}/${deleted}`)
  await move(late.id, 'approve')
  expect(await listed(other, path)).toEqual([stays])
  expectRefusal(await user.post(`${path}/${goes}/restore`), 400, 'CONTENT_REJECTED')
  expectRefusal(
    await user.post('/client/moderation/reports', {
      subject_type: 'collection_row',
      subject_id: stays,
      reason: 'spam',
    }),
    400,
    'SELF_REPORT',
  )
})

test('a row that the caller may not read cannot be reported', async () => {
  const { path } = await collection([{ name: 'title', type: 'text' }])
  const [user, other] = [await project.user(), await project.user()]
  const { id } = (await user.post(path, { title: 'secret' })).data
  const answer = await other.post('/client/moderation/reports', {
    subject_type: 'collection_row',
    subject_id: id,
    reason: 'spam',
  })
  expectRefusal(answer, 404, 'SUBJECT_NOT_FOUND')
})

test('a text that is longer than rules read is queued, and 1 MB is read in a moment', async () => {
  const { path } = await collection(text)
  const user = await project.user()
  for (const config of [{ pattern: '[ab]*a[ab]{140}c' }, { pattern: '(?:\\w\\W?){12}\\d{100}x' }, { pattern: 'z$' }]) {
    expect((await admin.post('/moderation/rules', { name: 'Slow', rule_type: 'regex', config })).status).toBe(201)
  }
  await admin.post('/moderation/rules', { name: 'Links', rule_type: 'link', config: { action: 'block' } })
  const began = performance.now()
  for (const unit of ['ab', 'a.', 'a-', 'www.', 'https://']) {
    const row = await user.post(path, { title: unit.repeat(Math.floor(900_000 / unit.length)) })
    if (row.status === 400) {
      expectRefusal(row, 400, 'CONTENT_REJECTED')
      continue
    }
    const item = await itemOf(row.data.id)
    expect([item.rule_id, item.snapshot.text.length]).toEqual([null, 10_240])
  }
  // five writes of 900 KB, each read by four rules
  expect(performance.now() - began).toBeLessThan(20_000)
  const short = await user.post(path, { title: 'ab'.repeat(5000) })
  expect(await itemOf(short.data.id)).toBeUndefined()
})

test('simulations read moderated columns', async () => {
  const { path } = await collection(text)
  const user = await project.user()
  for (const title of ['roulette', 'a roulette', 'fine']) await user.post(path, { title, plain: 'roulette' })
  const { data } = await rule('queue', ['roulette'])
  const simulated = await admin.post(`/moderation/rules/${data.id}/simulate`, {})
  expect(simulated.data.by_kind.collection_row).toBe(2)
})
