import { expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()

// each is a name that our own statements use, or may come to use, for something else
const names =
  'a b c d e f g h i j k l m n o p q r s t u v w x y z t1 t2 r1 r2 d1 t_d r_d body headers made answer item line page rn kept data row_data'.split(
    ' ',
  )

test('a column may have any name that is not refused: every operation works with all of them', async () => {
  const path = await define(project, {
    name: 't',
    columns: [
      ...names.map((name) => ({ name, type: 'text' })),
      { name: 'parent_id', type: 'uuid', references: { collection: 't', on_delete: 'set_null' } },
      { name: 'near', type: 'vector', dimensions: 2 },
      { name: 'unique_one', type: 'text', unique: true },
    ],
  })
  const row = (suffix: string) => Object.fromEntries(names.map((name) => [name, `${name} ${suffix}`]))
  const first = await user.post(path, { ...row('one'), near: [1, 0], unique_one: 'u' })
  expect([first.status, first.data]).toEqual([201, expect.objectContaining(row('one'))])
  const { id } = first.data
  const batch = await user.post(`${path}/batch`, {
    rows: [{ ...row('two'), parent_id: id, near: [0, 1] }, row('three')],
  })
  expect([batch.status, batch.data[1]]).toEqual([201, expect.objectContaining(row('three'))])
  const upsert = await user.post(`${path}?on_conflict=update&conflict_target=unique_one`, {
    unique_one: 'u',
    d: 'merged',
  })
  expect([upsert.status, upsert.data]).toEqual([200, expect.objectContaining({ ...row('one'), d: 'merged' })])

  for (const name of names) {
    const found = await user.post(`${path}/find`, {
      filter: {
        and: [
          { column: name, op: 'ilike', value: '%t%' },
          { column: name, op: 'is_not_null' },
        ],
      },
      search: { q: 'thr', columns: [name] },
      order: [{ column: name, direction: 'desc' }],
      select: ['id', name],
      limit: 1,
    })
    expect([name, found.status, found.data]).toEqual([name, 200, [{ id: expect.any(String), [name]: `${name} three` }]])
    const counted = await user.post(`${path}/aggregate`, {
      group_by: [name],
      aggregates: [
        { fn: 'count', as: 'rows' },
        { fn: 'max', column: name, as: 'most' },
      ],
      having: { column: 'rows', op: 'gte', value: 1 },
    })
    expect([name, counted.status, counted.data.length]).toEqual([name, 200, 3])
  }
  expect((await user.get(`${path}/count?d=merged`)).data).toEqual({ count: 1 })
  const nearest = await user.post(`${path}/find-nearest`, { column: 'near', vector: [1, 0.1], limit: 1 })
  expect(nearest.data).toEqual([expect.objectContaining({ id, d: 'merged' })])
  const included = await user.post(`${path}/find`, {
    include: ['parent'],
    filter: { column: 'd', op: 'eq', value: 'd two' },
  })
  expect(included.data[0].parent).toMatchObject({ id, d: 'merged', t: 't one' })

  expect((await user.get(`${path}/${id}`)).data).toMatchObject({ d: 'merged' })
  expect((await user.patch(`${path}/${id}`, { ...row('new'), $if: { d: 'merged' } })).data).toMatchObject(row('new'))
  expect((await user.delete(`${path}/${id}`)).status).toBe(200)
  expect((await user.post(`${path}/${id}/restore`)).data).toMatchObject(row('new'))
  const both = await user.post('/client/collections/transaction', {
    operations: [
      { op: 'insert', collection: 't', data: { d: 'by transaction' }, as: 'made' },
      { op: 'update', collection: 't', id: { $ref: 'made.id' }, data: { t: 'changed' } },
    ],
  })
  expect([both.status, both.data[1]]).toEqual([200, expect.objectContaining({ d: 'by transaction', t: 'changed' })])
  const bundle = await project.admin.get(`/users/${user.id}/export`)
  expect(bundle.text).toContain('"d":"by transaction"')
})
