import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { deviceOf, put } from '#test/support/sync.ts'

const harness = await startHarness()
const owner = await harness.developer()
const columns = [{ name: 'title', type: 'text' }]

test('a collection is promoted with its sync, and devices of the target sync it', async () => {
  const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]
  await define(from, { name: 'fresh', sync: true, columns })
  await define(from, { name: 'notes', sync: true, columns })
  const notes = await define(to, { name: 'notes', columns })
  const user = await to.user()
  const phone = deviceOf(to, user)
  const { data: row } = await user.post(notes, { title: 'before' })
  await define(to, { name: 'other', sync: true, columns })
  await phone.pull()
  const promote = async () => {
    const plan = (await from.admin.post('/promotion/plan', { target_project_id: to.id })).data
    expect(plan.blocked).toEqual([])
    expect(
      (await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash, confirm: plan.plan_hash })).status,
    ).toBe(202)
    return (await from.admin.post('/promotion/plan', { target_project_id: to.id })).data.clean
  }
  expect(await promote()).toBe(true)
  expect((await phone.pull()).created).toEqual([row.id])
  const made = [put('notes', randomUUID(), { title: 'x' }), put('fresh', randomUUID(), { title: 'y' })]
  expect((await phone.push(made)).results.map(({ status }) => status)).toEqual(['applied', 'applied'])
  expect((await deviceOf(to, user).pull()).created).toHaveLength(3)
  // and off again
  await from.admin.patch('/collections/notes', { sync: false })
  expect(await promote()).toBe(true)
  expect((await phone.page()).changes).not.toHaveProperty('notes')
  expect((await phone.push([put('notes', randomUUID(), {})])).results[0].code).toBe('COLLECTION_NOT_FOUND')
})
