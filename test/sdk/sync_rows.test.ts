import { describe, expect, test } from 'vitest'
import { memorySyncStore } from '../../sdk/src/index.ts'
import type { Mutation, Pulled } from '../../sdk/src/sync_calls.ts'
import { rowsOf } from '../../sdk/src/sync_rows.ts'

const row = { id: 'a', title: 'a' }
const mutation: Mutation = { id: 'm', op: 'put', collection: 'notes', row_id: 'a', data: { title: 'a' } }
const page = (checkpoint: string, more: { created?: object[]; has_more?: boolean; isWhole?: boolean }): Pulled => {
  const { created = [], has_more = false, isWhole = false } = more
  const changes = { notes: { created: created as never[], updated: [], deleted: [] } }
  return { changes, checkpoint, has_more, isWhole, schema: { notes: 1 }, server_time: '' }
}
/** Rows with a write that the server has known already: what it wrote comes with a pull that reaches 30. */
const start = async () => {
  const rows = rowsOf(memorySyncStore(), 'place')
  await rows.add([mutation])
  const settle = () => rows.settle([{ mutation, status: 'applied', isCurrent: false, row }], '30', () => true)
  return { rows, settle, shown: () => rows.list('notes') }
}

describe('what is written', () => {
  test('between the pages of a whole pull is shown until a pull has it', async () => {
    const { rows, settle, shown } = await start()
    await rows.take(page('10', { isWhole: true, has_more: true }))
    await settle()
    await rows.take(page('20', {}))
    expect(await shown()).toEqual([row])
    await rows.take(page('30', { created: [{ ...row, title: 'b' }] }))
    expect(await shown()).toEqual([{ ...row, title: 'b' }])
    expect(await rows.queue()).toEqual([])
  })

  test.each([false, true])('before a whole pull is what its end says, several pages: %s', async (isLong) => {
    const { rows, settle, shown } = await start()
    await settle()
    // of a server that was restored: its numbers are lower
    if (isLong) {
      await rows.take(page('10', { isWhole: true, has_more: true }))
      expect(await shown()).toEqual([row])
    }
    await rows.take(page('20', { isWhole: !isLong }))
    expect(await shown()).toEqual([])
    expect(await rows.queue()).toEqual([])
  })
})
