import { describe, expect, test } from 'vitest'
import { define, group, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, ofMembers, put } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [{ name: 'title', type: 'text' }]
const notes = await define(project, { name: 'notes', sync: true, columns })
const plans = await define(project, {
  name: 'plans',
  sync: true,
  ...ofMembers,
  columns,
})
type Phone = ReturnType<typeof deviceOf>
const titles = (phone: Phone) => [...phone.rows.values()].map((row) => row.title).sort()

/** A phone, two rows that it is to pull page by page, and another phone that deletes them and brings them back. */
const started = async (name: 'notes' | 'plans', isLater: boolean) => {
  const user = await project.user()
  const [phone, other] = [deviceOf(project, user, { collections: [name] }), deviceOf(project, user)]
  if (isLater) await phone.pull()
  const team = await group(project, [[user, 'owner']])
  const path = name === 'notes' ? notes : plans
  const rows = await insertAll(user, path, [{ title: 'a' }, { title: 'b' }], { 'X-Group-Context': team })
  const ids: string[] = rows.map((row) => row.id)
  const remove = async (n: number, query = '') =>
    expect((await user.delete(`${path}/${ids[n]}${query}`)).status).toBe(200)
  const again = async (n: number) => {
    const data = { title: `${rows[n].title} again`, ...(name === 'plans' && { group_id: team }) }
    const { results } = await other.push([put(name, String(ids[n]), data)])
    expect(results).toMatchObject([{ status: 'applied' }])
  }
  const page = () => phone.page({ limit: 1 })
  return { user, phone, ids, path, remove, again, page }
}

describe.each([
  ['notes', false],
  ['notes', true],
  ['plans', false],
  ['plans', true],
] as const)('a row of %s that goes between the pages of a pull (from a checkpoint: %s)', (name, isLater) => {
  test('and comes back after it is created', async () => {
    const { phone, ids, remove, again, page } = await started(name, isLater)
    phone.take(await page())
    await remove(1)
    // the answer is lost once
    await page()
    phone.take(await page())
    expect(titles(phone)).toEqual(['a'])
    await again(1)
    expect((await phone.pull()).created).toEqual([ids[1]])
    await remove(1)
    await again(1)
    expect((await phone.pull()).updated).toEqual([ids[1]])
  })

  test('and comes back for a later page is held', async () => {
    const { phone, ids, remove, again, page } = await started(name, isLater)
    phone.take(await page())
    await remove(1)
    await page()
    await again(1)
    phone.take(await page())
    if (!phone.rows.has(String(ids[1]))) expect((await phone.pull()).created).toEqual([ids[1]])
    await remove(1)
    await again(1)
    expect((await phone.pull()).updated).toEqual([ids[1]])
    expect(titles(phone)).toEqual(['a', 'b again'])
  })

  test('once it was sent, and comes back, is updated', async () => {
    const { phone, ids, remove, again, page } = await started(name, isLater)
    phone.take(await page())
    await remove(0)
    phone.take(await page())
    await again(0)
    expect((await phone.pull()).updated).toEqual([ids[0]])
    expect(titles(phone)).toEqual(['a again', 'b'])
  })

  test('for good, before the first page is read, and comes back is created', async () => {
    const { phone, ids, remove, again, page } = await started(name, isLater)
    await page()
    await remove(0, '?hard=true')
    phone.take(await page())
    await again(0)
    expect((await phone.pull()).created).toEqual([ids[0]])
    expect(titles(phone)).toEqual(['a again', 'b'])
  })
})

test.each([false, true])(
  'a row that its client pushes between the pages of a pull is updated (from a checkpoint: %s)',
  async (isLater) => {
    const { phone, ids, page } = await started('notes', isLater)
    phone.take(await page())
    await phone.push([put('notes', String(ids[1]), { title: 'pushed' })])
    expect(phone.take(await page()).changes['notes']).toMatchObject({ created: [], updated: [{ id: ids[1] }] })
    expect((await phone.pull()).updated).toEqual([ids[1]])
  },
)

test('a row that is held, and goes and comes back after the pages that told so, is created', async () => {
  const { phone, user, ids, path, remove, again, page } = await started('notes', true)
  await phone.pull()
  for (const id of ids) await user.patch(`${path}/${id}`, { title: 'changed' })
  phone.take(await page())
  await remove(1)
  expect(phone.take(await page()).changes['notes']?.deleted).toEqual([ids[1]])
  await again(1)
  expect((await phone.pull()).created).toEqual([ids[1]])
})

test('of more rows than a checkpoint remembers the client begins anew', async () => {
  const { phone, user, page } = await started('notes', true)
  await project.sql(
    `insert into collections.notes (user_id, title) select '${user.id}', 'many' from generate_series(1, 5001)`,
  )
  await deviceOf(project, user).page({ limit: 1 })
  phone.take(await page())
  await project.sql(`update collections.notes set deleted_at = now() where user_id = '${user.id}' and title = 'many'`)
  expectRefusal(await phone.ask({ limit: 1 }), 409, 'CHECKPOINT_EXPIRED')
})
