import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** References between collections: what restrict, cascade and set_null do when a row is deleted. */
const { project, define, tried, insert } = await startCollections()
const user = await project.user()

describe('references', () => {
  const family = async (on_delete: string, nullable = true) => {
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', nullable, references: { collection: parent, on_delete } }],
    })
    const row = await insert(parent, {}, user)
    const dependent = await insert(child, { p: row.id }, await project.user())
    const drop = () =>
      tried('app_user', user.id, `update collections.${parent} set deleted_at = now() where id = $1 returning id`, [
        row.id,
      ])
    const now = async () =>
      (
        await project.sql(`select p, deleted_at is not null as deleted from collections.${child} where id = $1`, [
          dependent.id,
        ])
      )[0]
    return { parent, child, row, dependent, drop, now }
  }

  test('restrict holds a row that live rows refer to', async () => {
    const { child, row, dependent, drop, now } = await family('restrict')
    expect(await drop()).toBe('CONFLICT')
    expect(await now()).toEqual({ p: row.id, deleted: false })
    await project.sql(`update collections.${child} set deleted_at = now() where id = $1`, [dependent.id])
    expect(await drop()).toHaveLength(1)
  })
  test('cascade deletes with it, set_null lets go', async () => {
    const cascade = await family('cascade', false)
    expect(await cascade.drop()).toHaveLength(1)
    expect(await cascade.now()).toEqual({ p: cascade.row.id, deleted: true })
    const letting = await family('set_null')
    expect(await letting.drop()).toHaveLength(1)
    expect(await letting.now()).toEqual({ p: null, deleted: false })
  })
  test.each([
    ['restrict', true, { p: null, deleted: false }],
    ['restrict', false, undefined],
    ['set_null', true, { p: null, deleted: false }],
    ['cascade', true, undefined],
  ])('a deleted user is never held: %s, nullable %s', async (on_delete, nullable, after) => {
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', nullable, references: { collection: parent, on_delete } }],
    })
    const [leaving, staying] = [await project.user(), await project.user()]
    const row = await insert(parent, {}, leaving)
    await insert(child, { p: row.id }, staying)
    await project.sql('delete from app.users where id = $1', [leaving.id])
    expect((await project.sql(`select p, deleted_at is not null as deleted from collections.${child}`))[0]).toEqual(
      after,
    )
  })
  test.each([
    ['may no longer be null', true, undefined],
    ['may be null now', false, { p: null }],
  ])('nor by one that %s', async (_what, nullable, after) => {
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', nullable, references: { collection: parent, on_delete: 'restrict' } }],
    })
    const changed = await project.admin.patch(`/collections/${child}/columns/p`, { name: 'q', nullable: !nullable })
    expect(changed.status, changed.text).toBe(200)
    await project.admin.patch(`/collections/${child}/columns/q`, { name: 'p' })
    const [leaving, staying] = [await project.user(), await project.user()]
    const row = await insert(parent, {}, leaving)
    await insert(child, { p: row.id }, staying)
    expect((await project.admin.delete(`/users/${leaving.id}`)).status).toBe(200)
    expect((await project.sql(`select p from collections.${child}`))[0]).toEqual(after)
  })
  test('a circle of cascades ends', async () => {
    const one = await define()
    const two = await define({
      columns: [{ name: 'p', type: 'uuid', references: { collection: one, on_delete: 'cascade' } }],
    })
    await project.admin.post(`/collections/${one}/columns`, {
      name: 'p',
      type: 'uuid',
      references: { collection: two, on_delete: 'cascade' },
    })
    const a = await insert(one, {}, user)
    const b = await insert(two, { p: a.id }, user)
    await project.sql(`update collections.${one} set p = $1`, [b.id])
    await project.sql(`update collections.${one} set deleted_at = now()`)
    const [left] = await project.sql(
      `select (select count(*) from collections.${one} where deleted_at is null)::int + (select count(*) from collections.${two} where deleted_at is null)::int as n`,
    )
    expect(left.n).toBe(0)
  })
  test('raced: a row that is being deleted gets no new live reference', async () => {
    for (const on_delete of ['restrict', 'cascade', 'set_null']) {
      for (let round = 0; round < 8; round += 1) {
        const parent = await define()
        const child = await define({
          columns: [{ name: 'p', type: 'uuid', references: { collection: parent, on_delete } }],
        })
        const row = await insert(parent, {}, user)
        await Promise.all([
          ...Array.from({ length: 3 }, () => insert(child, { p: row.id }, user).catch(() => undefined)),
          project.sql(`update collections.${parent} set deleted_at = now()`).catch(() => undefined),
          ...Array.from({ length: 3 }, () => insert(child, { p: row.id }, user).catch(() => undefined)),
        ])
        const [wrong] = await project.sql(
          `select count(*)::int as n from collections.${child} c join collections.${parent} p on p.id = c.p where c.deleted_at is null and p.deleted_at is not null`,
        )
        expect(wrong.n, on_delete).toBe(0)
      }
    }
  }, 180_000)
})
