import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

const { harness, project, define } = await startCollections()
const user = await project.user()
let name: string
const explain = (body: object, of = name) => project.admin.post(`/collections/${of}/explain`, body)
const refused = async (body: object, of = name) => {
  const { status, error } = await explain(body, of)
  return [status, error?.code, error?.details?.path]
}

beforeAll(async () => {
  name = await define({
    columns: [
      { name: 'title', type: 'text' },
      { name: 'n', type: 'integer' },
      { name: 'due', type: 'timestamptz' },
    ],
    indexes: [{ columns: ['n'] }],
  })
  await project.sql(
    `insert into collections.${name} (user_id, title, n) select $1, 'row ' || n, n from generate_series(1, 5000) n`,
    [user.id],
  )
  await project.sql(`vacuum (analyze) collections.${name}`)
})

describe('the plan of a find', () => {
  test('names what is read by which index, and the rows that are expected', async () => {
    const byIndex = await explain({ filter: { column: 'n', op: 'eq', value: 17 }, order: [{ column: 'n' }] })
    expect(byIndex.status, byIndex.text).toBe(200)
    expect(byIndex.data.cost).toBeGreaterThan(0)
    expect(byIndex.data.scans).toContainEqual(
      expect.objectContaining({ table: name, index: expect.stringContaining(`${name}_n`) }),
    )
    expect(byIndex.data.plan.join('\n')).toMatch(/Index.*Scan.*17|17.*Index/s)
    const all = await explain({ filter: { column: 'title', op: 'eq', value: "it's 1" } })
    expect(all.data.plan.join('\n')).toContain("'it''s 1'")
  })

  test('with user_id it has the policies of the collection, and the user reads nothing by it', async () => {
    const mine = await explain({ user_id: user.id })
    expect(mine.status, mine.text).toBe(200)
    expect(mine.data.plan.join('\n')).toMatch(/user_id = /)
    expect((await explain({})).data.plan.join('\n')).not.toMatch(/user_id = /)
    expect((await explain({ user_id: null })).status).toBe(200)
    expect(Object.keys(mine.data).sort()).toEqual(['cost', 'plan', 'scans'])
  })

  test('runs nothing and stores nothing, even for a page of the whole collection', async () => {
    const [before] = await project.sql(`select n_tup_ins, n_tup_upd from pg_stat_user_tables where relname = $1`, [
      name,
    ])
    const whole = await explain({ limit: 1000, include_deleted: true, search: { q: 'row', columns: ['title'] } })
    expect(whole.status, whole.text).toBe(200)
    const [after] = await project.sql(`select n_tup_ins, n_tup_upd from pg_stat_user_tables where relname = $1`, [name])
    expect(after).toEqual(before)
  })

  test('is refused as the find itself is', async () => {
    expect(await refused({ filter: { column: 'none', op: 'eq', value: 1 } })).toEqual([400, 'INVALID_COLUMN', 'column'])
    expect(await refused({ filter: { column: 'n', op: 'eq', value: 'x' } })).toEqual([400, 'INVALID_BODY', 'value'])
    expect((await refused({ filter: { column: 'due', op: 'gt', value: '2026-02-31T00:00:00Z' } })).slice(0, 2)).toEqual(
      [400, 'INVALID_BODY'],
    )
    expect((await refused({ order: [{ column: 'n; drop table collections.x' }] })).slice(0, 2)).toEqual([
      400,
      'INVALID_COLUMN',
    ])
    expect((await refused({ limit: 0 })).slice(0, 2)).toEqual([400, 'INVALID_BODY'])
    expect((await refused({ user_id: 'nobody' })).slice(0, 2)).toEqual([400, 'INVALID_BODY'])
    expect((await refused({ user_id: randomUUID() })).slice(0, 2)).toEqual([404, 'USER_NOT_FOUND'])
    expect((await refused({}, 'none')).slice(0, 2)).toEqual([404, 'COLLECTION_NOT_FOUND'])
    const shared = await define({
      owner_scope: 'group',
      read_policy: 'member',
      write_policy: 'member:member',
      columns: [],
    })
    const ofNobody = await project.admin.post(`/collections/${shared}/explain`, {}, { 'x-group-context': 'nobody' })
    expect([ofNobody.status, ofNobody.error?.code]).toEqual([403, 'NOT_A_GROUP_MEMBER'])
    const other = await harness.project()
    expect((await other.admin.post(`/collections/${name}/explain`, {})).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await other.admin.post(`/collections/${name}/explain`, { user_id: user.id })).status).toBe(404)
  })
})
