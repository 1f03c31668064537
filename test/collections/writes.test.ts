import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, startItems } from '#test/support/collection_rows.ts'

/** Changing, deleting and restoring rows. */
const { harness, project, user, other, path, make } = await startItems()

describe('PATCH', () => {
  test('changes what was sent and moves updated_at and the ETag', async () => {
    const made = await make({ n: 1, tags: ['a'] })
    const answer = await user.patch(`${path}/${made.id}`, {
      n: 2,
      meta: { a: 1 },
      user_id: other.id,
      created_at: '2000-01-01T00:00:00Z',
    })
    expect(answer).toMatchObject({
      status: 200,
      data: { ...made, n: 2, meta: { a: 1 }, updated_at: expect.any(String) },
    })
    expect(answer.data.updated_at >= made.updated_at).toBe(true)
    expect((await user.get(`${path}/${made.id}`)).headers.get('etag')).toBe(answer.headers.get('etag'))
    const same = await user.patch(`${path}/${made.id}`, {})
    expect(same).toMatchObject({ status: 200, data: answer.data })
    expect(same.headers.get('etag')).toBe(answer.headers.get('etag'))
    expect((await user.patch(`${path}/${made.id}`, { name: null })).error).toMatchObject({
      code: 'NOT_NULL_VIOLATION',
      details: { column: 'name' },
    })
    expect((await user.patch(`${path}/${made.id}`, { $unset: ['name'] })).error).toMatchObject({
      code: 'NOT_NULL_VIOLATION',
      details: { column: 'name' },
    })
    for (const body of ['{', '[]']) expect((await user.request('PATCH', `${path}/${made.id}`, body)).status).toBe(400)
  })

  test("another user's row, a deleted one and none at all are 404", async () => {
    const made = await make()
    const answers = [
      await other.patch(`${path}/${made.id}`, { n: 1 }),
      await other.patch(`${path}/${made.id}`, {}),
      await user.patch(`${path}/${randomUUID()}`, { n: 1 }),
    ]
    await user.delete(`${path}/${made.id}`)
    answers.push(await user.patch(`${path}/${made.id}`, { n: 1 }))
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  })

  test('$inc, $append, $remove and $unset', async () => {
    const made = await make({ n: 1, price: 0.1, ratio: 1.5, tags: ['a', 'b', 'a'] })
    const one = await user.patch(`${path}/${made.id}`, {
      $inc: { n: 2, big: 5, price: 0.2, ratio: -1 },
      $append: { tags: ['c', null] },
      $unset: ['meta'],
      name: 'y',
    })
    expect(one.data).toMatchObject({
      name: 'y',
      n: 3,
      big: 5,
      price: 0.3,
      ratio: 0.5,
      tags: ['a', 'b', 'a', 'c', null],
      meta: null,
    })
    const two = await user.patch(`${path}/${made.id}`, {
      $remove: { tags: ['a', null] },
      $inc: { big: '9007199254740993' },
    })
    expect(two.data).toMatchObject({ tags: ['b', 'c'], big: '9007199254740998' })
    const three = await user.patch(`${path}/${made.id}`, { $unset: ['tags', 'n'] })
    expect(three.data).toMatchObject({ tags: null, n: null })
    expect((await user.patch(`${path}/${made.id}`, { $append: { tags: ['z'] } })).data.tags).toEqual(['z'])
    expect((await user.patch(`${path}/${made.id}`, { $remove: { tags: ['z'] } })).data.tags).toEqual([])
  })

  test('operators that do not fit are 400 and name their column, and nothing is written', async () => {
    const made = await make({ n: 2147483647, tags: ['a'] })
    const wrong: [object, string][] = [
      [{ $inc: { n: 1 } }, 'n'],
      [{ $inc: { n: 1.5 } }, 'n'],
      [{ $inc: { n: 'x' } }, 'n'],
      [{ $inc: { n: null } }, 'n'],
      [{ $inc: { name: 1 } }, 'name'],
      [{ $inc: { tags: 1 } }, 'tags'],
      [{ $append: { n: [1] } }, 'n'],
      [{ $append: { tags: 'x' } }, 'tags'],
      [{ $append: { tags: [1] } }, 'tags'],
      [{ $remove: { meta: [1] } }, 'meta'],
      [{ n: 1, $inc: { n: 1 } }, 'n'],
      [{ $unset: ['n'], $inc: { n: 1 } }, 'n'],
      [{ $if: { n: 'x' } }, 'n'],
    ]
    for (const [body, column] of wrong) {
      const answer = await user.patch(`${path}/${made.id}`, body)
      expect(answer, JSON.stringify(body)).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
      if (!('$inc' in body) || (body as any).$inc.n !== 1 || 'n' in body || '$unset' in body)
        expect(answer.error?.details.column).toBe(column)
    }
    for (const body of [{ $set: {} }, { $inc: [] }, { $unset: {} }, { $if: 1 }, { $append: 'x' }]) {
      expect((await user.patch(`${path}/${made.id}`, body)).error?.code, JSON.stringify(body)).toBe('INVALID_BODY')
    }
    for (const body of [{ $inc: { nope: 1 } }, { $unset: ['nope'] }, { $if: { nope: 1 } }, { nope: 1 }]) {
      expect((await user.patch(`${path}/${made.id}`, body)).error?.code, JSON.stringify(body)).toBe('INVALID_COLUMN')
    }
    expect((await user.get(`${path}/${made.id}`)).data).toEqual(made)
  })

  test('$if compares and sets; a mismatch is 409 with the current row', async () => {
    const made = await make({ n: 1, tags: ['a'], meta: { a: [1] }, at: '2026-01-01T00:00:00.000Z' })
    const all = {
      n: 1,
      tags: ['a'],
      meta: { a: [1] },
      at: made.at,
      price: null,
      updated_at: made.updated_at,
      user_id: user.id,
    }
    const changed = await user.patch(`${path}/${made.id}`, { $if: all, n: 2 })
    expect(changed).toMatchObject({ status: 200, data: { n: 2 } })
    const again = await user.patch(`${path}/${made.id}`, { $if: { n: 1 }, n: 3 })
    expect(again).toMatchObject({ status: 409, error: { code: 'CONFLICT', details: { current: changed.data } } })
    expect((await user.patch(`${path}/${made.id}`, { $if: { price: 1 }, n: 3 })).status).toBe(409)
    expect((await user.patch(`${path}/${made.id}`, { $if: { n: 2 } })).data).toEqual(changed.data)
    expect((await other.patch(`${path}/${made.id}`, { $if: { n: 1 }, n: 3 })).status).toBe(404)
  })

  test('If-Match lets only the version pass that was read', async () => {
    const made = await user.post(path, { name: 'v', n: 1 })
    const etag = made.headers.get('etag') ?? ''
    const second = await user.patch(`${path}/${made.data.id}`, { n: 2 }, { 'if-match': etag })
    expect(second.status).toBe(200)
    for (const match of [etag, 'x', '"0"']) {
      const stale = await user.patch(`${path}/${made.data.id}`, { n: 3 }, { 'if-match': match })
      expect(stale, match).toMatchObject({ status: 409, error: { code: 'CONFLICT', details: { current: { n: 2 } } } })
    }
    expect((await user.patch(`${path}/${made.data.id}`, { n: 4 }, { 'if-match': '*' })).data.n).toBe(4)
  })

  test('conditions of a deletion and of a read, in every form of RFC 9110', async () => {
    const made = await user.post(path, { name: 'w', n: 1 })
    const row = `${path}/${made.data.id}`
    const etag = made.headers.get('etag') as string
    for (const known of [etag, `W/${etag}`, `"a,b", ${etag}`, '*'])
      expect(await user.get(row, { 'if-none-match': known }), known).toMatchObject({ status: 304, text: '' })
    for (const other of ['"0"', etag.slice(1, -1), 'W/"0", "1"'])
      expect((await user.get(row, { 'if-none-match': other })).status, other).toBe(200)
    expect((await user.get(`${path}/${crypto.randomUUID()}`, { 'if-none-match': '*' })).status).toBe(404)
    // the comparison of If-Match is strong, and any tag of a list may match
    for (const match of ['"0"', `W/${etag}`, 'x', '', `"0", W/${etag}`]) {
      const stale = { status: 409, error: { code: 'CONFLICT', details: { current: { n: 1 } } } }
      expect(await user.delete(row, undefined, { 'if-match': match }), match).toMatchObject(stale)
      expect(await user.patch(row, { n: 2 }, { 'if-match': match }), match).toMatchObject(stale)
    }
    const changed = await user.patch(row, { n: 2 }, { 'if-match': `"0",${etag}` })
    expect(changed.status).toBe(200)
    expect((await user.delete(row, undefined, { 'if-match': etag })).status).toBe(409)
    expect((await user.delete(row, undefined, { 'if-match': changed.headers.get('etag') as string })).status).toBe(200)
    expect((await user.delete(row, undefined, { 'if-match': '*' })).status).toBe(404)
    const next = await user.post(path, { name: 'x' })
    expect((await user.delete(`${path}/${next.data.id}`, undefined, { 'if-match': '*' })).status).toBe(200)
  })

  test('twenty at once: increments all count, and one of twenty compare-and-sets wins', async () => {
    const made = await make({ n: 0 })
    await Promise.all(Array.from({ length: 20 }, () => user.patch(`${path}/${made.id}`, { $inc: { n: 1 } })))
    expect((await user.get(`${path}/${made.id}`)).data.n).toBe(20)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => user.patch(`${path}/${made.id}`, { $if: { n: 20 }, n: 100 + n })),
    )
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1)
    expect(answers.filter((answer) => answer.error?.code === 'CONFLICT')).toHaveLength(19)
  })
})

describe('deletion', () => {
  test('is soft, once, and can be taken back within 30 days', async () => {
    const made = await make({ n: 7 })
    expect(await user.delete(`${path}/${made.id}`)).toMatchObject({ status: 200, data: { id: made.id, deleted: true } })
    expect(await user.delete(`${path}/${made.id}`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    expect(await user.get(`${path}/${made.id}`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const mine = { column: 'id', op: 'eq', value: made.id }
    expect((await user.post(`${path}/find`, { filter: mine })).data).toEqual([])
    const deleted = await user.post(`${path}/find`, { filter: mine, include_deleted: true })
    expect(deleted.data).toMatchObject([{ id: made.id, deleted_at: expect.any(String) }])
    expect((await user.get(`${path}/count?id=${made.id}&include_deleted=true`)).data.count).toBe(1)
    expect((await other.post(`${path}/find`, { filter: mine, include_deleted: true })).data).toEqual([])
    expect((await other.post(`${path}/${made.id}/restore`)).status).toBe(404)
    const restored = await user.post(`${path}/${made.id}/restore`)
    expect(restored).toMatchObject({ status: 200, data: { n: 7, deleted_at: null } })
    expect(await user.post(`${path}/${made.id}/restore`)).toMatchObject({ status: 200, data: { n: 7 } })
    expect((await user.post(`${path}/${randomUUID()}/restore`)).status).toBe(404)
  })

  test('is final after 30 days, when the row goes for good', async () => {
    const made = await make()
    const kept = await make()
    await user.delete(`${path}/${made.id}`)
    harness.setTime(new Date(Date.now() + 30 * 86_400_000 + 60_000))
    const server = project.onBehalfOf(user.id)
    expect((await server.post(`${path}/${made.id}/restore`)).status).toBe(404)
    expect(await project.sql('select from collections.items where id = $1', [made.id])).toHaveLength(1)
    await project.as('app_worker', { 'app.clock': harness.now().toISOString() }, 'select api.tenant_purge()')
    expect(await project.sql('select from collections.items where id = $1', [made.id])).toHaveLength(0)
    expect(await project.sql('select from collections.items where id = $1', [kept.id])).toHaveLength(1)
    harness.setTime(null)
  })

  test('a value that was taken meanwhile is 409 at restoring; what is referred to stays', async () => {
    const unique = await define(project, { name: 'slugs', columns: [{ name: 'slug', type: 'text', unique: true }] })
    const first = (await user.post(unique, { slug: 'a' })).data
    await user.delete(`${unique}/${first.id}`)
    await user.post(unique, { slug: 'a' })
    expect(await user.post(`${unique}/${first.id}/restore`)).toMatchObject({ status: 409, error: { code: 'CONFLICT' } })
    const uses = await define(project, {
      name: 'uses',
      columns: [{ name: 'slug_id', type: 'uuid', references: { collection: 'slugs', on_delete: 'restrict' } }],
    })
    const held = (await user.post(unique, { slug: 'held' })).data
    await user.post(uses, { slug_id: held.id })
    expect(await user.delete(`${unique}/${held.id}`)).toMatchObject({ status: 409, error: { code: 'CONFLICT' } })
  })
})

describe('a row that comes back', async () => {
  const parents = await define(project, { name: 'parents', columns: [{ name: 'n', type: 'integer' }] })
  const family = async (on_delete: string) => {
    const children = await define(project, {
      name: `children_${on_delete}`,
      columns: [
        { name: 'parent_id', type: 'uuid', references: { collection: 'parents', on_delete } },
        { name: 'note', type: 'text' },
      ],
    })
    const parent = `${parents}/${(await user.post(parents, { n: 1 })).data.id}`
    const made = (await user.post(children, { parent_id: parent.split('/').at(-1), note: 'kept' })).data
    const child = `${children}/${made.id}`
    return { parent, child }
  }

  test.each(['cascade', 'restrict'])('refers to live rows: %s asks for what it refers to first', async (on_delete) => {
    const { parent, child } = await family(on_delete)
    await user.delete(child)
    expect((await user.delete(parent)).status).toBe(200)
    expect(await user.post(`${child}/restore`)).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', details: { column: 'parent_id', collection: 'parents' } },
    })
    expect((await user.get(child)).status).toBe(404)
    await user.post(`${parent}/restore`)
    expect((await user.post(`${child}/restore`)).data.note).toBe('kept')
  })

  test('lets go of what went meanwhile where the column says set_null', async () => {
    const { parent, child } = await family('set_null')
    await user.delete(child)
    await user.delete(parent)
    expect((await user.post(`${child}/restore`)).data).toMatchObject({ parent_id: null, note: 'kept' })
  })

  test('may refer to itself', async () => {
    const path = await define(project, { name: 'selves', columns: [] })
    await project.admin.post('/collections/selves/columns', {
      name: 'self_id',
      type: 'uuid',
      references: { collection: 'selves', on_delete: 'cascade' },
    })
    const { id } = (await user.post(path, {})).data
    expect((await user.patch(`${path}/${id}`, { self_id: id })).status).toBe(200)
    await user.delete(`${path}/${id}`)
    expect((await user.post(`${path}/${id}/restore`)).data.self_id).toBe(id)
  })

  test('raced with the deletion of what it refers to, is never live beside it', async () => {
    for (let round = 0; round < 8; round += 1) {
      const rows = (await user.post(parents, { n: round })).data
      const path = '/client/collections/children_restrict'
      const child = (await user.post(path, { parent_id: rows.id })).data
      await user.delete(`${path}/${child.id}`)
      const [deleted, restored] = await Promise.all([
        user.delete(`${parents}/${rows.id}`),
        user.post(`${path}/${child.id}/restore`),
      ])
      expect([
        [200, 409],
        [409, 200],
      ]).toContainEqual([deleted.status, restored.status])
    }
  })
})

test('two changes of a row within an instant are two versions, also in the milliseconds that one sees', async () => {
  const made = await make({ n: 0 })
  const [first, second] = (
    await user.post('/client/collections/transaction', {
      operations: [1, 2].map((n) => ({ op: 'update', collection: 'items', id: made.id, data: { n } })),
    })
  ).data
  expect(second.updated_at > first.updated_at).toBe(true)
  const stale = await user.patch(`${path}/${made.id}`, { $if: { updated_at: first.updated_at }, n: 3 })
  expect(stale).toMatchObject({ status: 409, error: { code: 'CONFLICT' } })
})
