import { expect, test } from 'vitest'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
let made = 0

const create = () => {
  made += 1
  return admin.post('/segments', { key: `segment-${made}`, name: 'Segment', kind: 'static' })
}
const segment = async (): Promise<string> => (await create()).data.id
const users = async (count: number): Promise<string[]> => (await admin.post('/users/cohort', { count })).data.user_ids
const together = async (ways: readonly (() => Promise<Answer>)[]) => {
  const answers = await Promise.all(ways.flatMap((way) => Array.from({ length: 8 }, way)))
  return [...new Set(answers.map(({ status, error }) => `${status} ${error?.code ?? ''}`.trim()))].sort()
}

test('bulk updates that add members, beside segments that are made, changed and deleted, never meet in a circle', {
  timeout: 180_000,
}, async () => {
  const members = await users(20)
  const lists = [await segment(), await segment(), await segment()]
  const anyOf = <T>(choices: readonly T[]) => choices[Math.floor(Math.random() * choices.length)] as T
  const bulk = () =>
    admin.post('/users/bulk-update', {
      updates: members.map((user_id) => ({ user_id, [anyOf(['add_segments', 'remove_segments'])]: [anyOf(lists)] })),
    })
  const change = () => admin.patch(`/segments/${anyOf(lists)}`, { name: 'Changed', is_active: true })
  const cohort = () => admin.post('/users/cohort', { count: 5, segment_ids: lists })
  const add = () => admin.post(`/segments/${anyOf(lists)}/members`, { user_ids: members })
  const passing = async () => admin.delete(`/segments/${await segment()}`)
  for (let round = 0; round < 3; round += 1) {
    expect(await together([bulk, create])).toEqual(['200', '201'])
    expect(await together([bulk, change, cohort, add, passing])).toEqual(['200', '201'])
  }
})

test('a segment is made while members of another are under way', async () => {
  const [user] = await users(1)
  const list = await segment()
  const open = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await open.query('select api.users_bulk_update($1)', [JSON.stringify([{ user_id: user, add_segments: [list] }])])
  // waits for nothing: it writes no state of another segment
  expect((await create()).status).toBe(201)
  await open.commit()
})

test('a segment is deleted when the bulk update that names it is done', async () => {
  const [user] = await users(1)
  const list = await segment()
  const open = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await open.query('select api.users_bulk_update($1)', [JSON.stringify([{ user_id: user, add_segments: [list] }])])
  const deleting = admin.delete(`/segments/${list}`)
  await untilBlocked(project)
  await open.commit()
  expect((await deleting).status).toBe(200)
})
