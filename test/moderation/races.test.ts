// Reports and rules that change what others write or report at the same moment: one lock order, so nobody is refused for a deadlock.
import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project

const rule = async (rule_type: string, config: object) => {
  const answer = await admin.post('/moderation/rules', { name: 'Rule', rule_type, config })
  expect(answer.status, answer.text).toBe(201)
}
const report = (user: User, subject_type: string, subject_id: string) =>
  user.post('/client/moderation/reports', { subject_type, subject_id, reason: 'spam' })
const pairs = (many: number) =>
  Promise.all(Array.from({ length: many }, async () => Promise.all([project.user(), project.user()])))

test('two users who report each other at once, each of whom a report hides, both succeed', async () => {
  await rule('report_threshold', { count: 1, window_hours: 1, applies_to: ['user'] })
  for (const [one, two] of await pairs(30)) {
    const answers = await Promise.all([report(one, 'user', two.id), report(two, 'user', one.id)])
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
  }
})

test('a row that is reported, hidden and rewritten at once leaves one item, and no request fails', async () => {
  await rule('report_threshold', { count: 1, window_hours: 1, applies_to: ['collection_row'] })
  await rule('keyword', { words: ['casino'], action: 'queue', applies_to: ['collection_row'] })
  const columns = [{ name: 'body', type: 'text', moderated: true }]
  const created = await admin.post('/collections', { name: 'notes', columns, read_policy: 'public' })
  expect(created.status, created.text).toBe(201)
  for (const [author, reader] of await pairs(20)) {
    const row = (await author.post('/client/collections/notes', { body: 'fine' })).data
    const [written, reported] = await Promise.all([
      author.patch(`/client/collections/notes/${row.id}`, { body: 'a casino' }),
      report(reader, 'collection_row', row.id),
    ])
    // a row that the report hid first is gone for its author
    expect([200, 404], written.text).toContain(written.status)
    expect(reported.status, reported.text).toBe(201)
    const items = await project.sql('select is_hidden from app.moderation_items where subject_id = $1', [row.id])
    expect(items).toEqual([{ is_hidden: true }])
  }
})
