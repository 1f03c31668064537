import { randomUUID } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** A reference points to a row that its writer may read, whichever way it comes; and the refusal does not tell why the row is none. */
const { harness, project, define, tried } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const [user, other] = [await project.user(), await project.user()]
const notes = await define({ columns: [{ name: 'text', type: 'text' }] })
const client = createClient(harness.url, project.clientKey, { accessToken: async () => other.sessionToken })
const idOf = async (by: typeof user) => (await by.post(`/client/collections/${notes}`, { text: 'x' })).data.id as string
const [hidden, missing, own] = [await idOf(user), randomUUID(), await idOf(other)]
const deleted = await idOf(other)
await other.delete(`/client/collections/${notes}/${deleted}`)

describe.each(['restrict', 'cascade', 'set_null'])('on_delete %s', async (on_delete) => {
  const holds = await define({
    columns: [
      { name: 'note_id', type: 'uuid', references: { collection: notes, on_delete } },
      { name: 'text', type: 'text' },
    ],
  })
  const refusal = {
    code: 'INVALID_BODY',
    message: `note_id: must be the id of a row of ${notes}.`,
    details: { column: 'note_id', field: 'note_id', reason: `must be the id of a row of ${notes}` },
    hint: null,
  }
  const row = (await other.post(`/client/collections/${holds}`, { text: 'mine' })).data.id as string

  test.each([
    ['hidden', hidden],
    ['missing', missing],
    ['deleted', deleted],
  ])('%s', async (_what, note_id) => {
    const table = client.from(holds)
    for (const { status, error } of [
      await table.insert({ note_id }),
      await table.insert([{ note_id: own }, { note_id }]),
      await table.upsert({ id: randomUUID(), note_id }),
      await table.upsert({ id: row, note_id }),
      await table.update({ note_id }).eq('id', row),
    ])
      expect([status, error]).toEqual([400, refusal])
    for (const answer of [
      await other.post(`/client/collections/${holds}`, { note_id }),
      await other.post(`/client/collections/${holds}/batch`, { rows: [{ note_id }] }),
      await other.patch(`/client/collections/${holds}/${row}`, { note_id }),
      await other.post('/client/collections/transaction', {
        operations: [{ op: 'insert', collection: holds, data: { note_id } }],
      }),
      await other.post('/client/collections/transaction', {
        operations: [{ op: 'update', collection: holds, id: row, data: { note_id } }],
      }),
    ])
      expect([answer.status, answer.error]).toMatchObject([
        400,
        { code: 'INVALID_BODY', details: { column: 'note_id' } },
      ])
    if (note_id !== missing)
      expect(
        await tried('app_user', other.id, `insert into collections.${holds} (note_id) values ($1)`, [note_id]),
      ).toBe('INVALID_BODY')
    expect((await table.select('note_id')).data).toEqual([{ note_id: null }])
  })

  test('one that they may read', async () => {
    expect((await client.from(holds).update({ note_id: own }).eq('id', row)).error).toBeNull()
    // a server key reads every row
    const server = createClient(harness.url, project.serverKey)
    expect((await server.from(holds).insert({ user_id: other.id, note_id: hidden })).error).toBeNull()
    expect((await client.from(holds).update({ text: 'changed' }).eq('note_id', hidden).select('text')).data).toEqual([
      { text: 'changed' },
    ])
  })
})

test('rows that one insert makes may refer to one another, in any order', async () => {
  const tree = await define({ columns: [{ name: 'text', type: 'text' }] })
  await project.admin.post(`/collections/${tree}/columns`, {
    name: 'parent',
    type: 'uuid',
    references: { collection: tree, on_delete: 'cascade' },
  })
  const [a, b] = [randomUUID(), randomUUID()]
  const made = await client.from(tree).insert([
    { id: a, parent: b },
    { id: b, parent: b },
  ])
  expect(made.error).toBeNull()
  expect((await project.admin.delete(`/collections/${tree}/columns/parent?confirm=parent`)).status).toBe(200)
})
