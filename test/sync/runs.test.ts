import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { deviceOf, patch, put } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [
  { name: 'title', type: 'text' },
  { name: 'n', type: 'integer', default: 7, max: 100 },
  { name: 'big', type: 'numeric' },
  { name: 'tags', type: 'text[]' },
  { name: 'ranks', type: 'integer[]' },
  { name: 'due', type: 'timestamptz' },
  { name: 'meta', type: 'jsonb' },
]
const notes = await define(project, { name: 'notes', sync: true, columns })
const plans = { name: 'plans', sync: true, owner_scope: 'group', read_policy: 'member', write_policy: 'member:member' }
await define(project, { ...plans, columns: [{ name: 'title', type: 'text' }] })
const id = () => randomUUID()
const device = async () => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user) }
}
const outcomes = (results: readonly any[]) => results.map(({ status, code }) => code ?? status)

describe('new rows that are put one after the other', () => {
  test('are inserted by one statement, with their ids and the defaults of what they leave out', async () => {
    const { user, phone } = await device()
    await project.sql(`create table collections.counted (n int);
      create function collections.count_them() returns trigger language plpgsql security definer as
        $$ begin insert into collections.counted select count(*) from made; return null; end $$;
      create trigger count_them after insert on collections.notes referencing new table as made
        for each statement execute function collections.count_them()`)
    const rows = [id(), id(), id()]
    const data = { title: 'a', tags: ['x', null], ranks: [1, null], meta: { k: [1] }, big: '1e20' }
    const { results } = await phone.push(
      rows.map((row, n) => put('notes', row, { ...data, title: `${n}`, id: id(), user_id: id(), created_at: 'x' })),
    )
    expect(await project.sql('select n from collections.counted')).toEqual([{ n: 3 }])
    await project.sql('drop function collections.count_them() cascade; drop table collections.counted')
    for (const [n, row] of rows.entries()) {
      expect(results[n]).toEqual({
        id: expect.any(String),
        status: 'applied',
        row: (await user.get(`${notes}/${row}`)).data,
      })
      expect(results[n].row).toMatchObject({ id: row, user_id: user.id, title: `${n}`, n: 7, meta: { k: [1] } })
    }
  })

  const wrong: readonly (readonly [string, string, unknown])[] = [
    ['a text', 'title', 1],
    ['a whole number', 'n', '1'],
    ['a whole number', 'n', 1.5],
    ['a number of the column', 'n', 101],
    ['a number that the type holds', 'n', 9_999_999_999],
    ['a number of at most 1000 characters', 'big', '1'.repeat(1001)],
    ['a list', 'tags', 'x'],
    ['a list of texts', 'tags', [1]],
    ['a list of whole numbers', 'ranks', [1, 'x']],
    ['a time', 'due', 'tomorrow'],
  ]
  test.each(wrong)('that have no %s in %s stop no other: %j', async (_, name, value) => {
    const { phone } = await device()
    const fine = { n: 1, title: 'a', big: 1, tags: [], ranks: [1], due: '2026-01-01T00:00:00Z' }
    const { results } = await phone.push([
      put('notes', id(), fine),
      put('notes', id(), { ...fine, [name]: value }),
      put('notes', id(), fine),
    ])
    expect(outcomes(results)).toEqual(['applied', 'INVALID_BODY', 'applied'])
    expect(results[1].row).toBeNull()
  })

  test('with a number that is too long when it is written out stop no other', async () => {
    const { user, phone } = await device()
    const mutations = [1, -1, 3].map((n) => ({ id: id(), ...put('notes', id(), { n }) }))
    const body = JSON.stringify({ client_id: phone.client_id, mutations }).replace(':-1}', ':1e999}')
    const { data } = await user.post('/client/sync/push', body)
    expect(outcomes(data.results)).toEqual(['applied', 'INVALID_BODY', 'applied'])
  })

  test('with other columns, or one row twice, have results of their own', async () => {
    const { user, phone } = await device()
    const { phone: theirs } = await device()
    const [row, hidden] = [id(), id()]
    await theirs.push([put('notes', hidden, { title: 'theirs' })])
    const again = { id: id(), ...put('notes', id(), { title: 'a', n: 1 }) }
    const { results } = await phone.push([
      put('notes', id(), { title: 'a', n: 1 }),
      put('notes', id(), { 'n title': 1 }),
      put('notes', id(), { title: 'a' }),
      put('notes', row, { title: 'b' }),
      put('notes', row, { title: 'c' }),
      put('notes', hidden, { title: 'd' }),
      again,
      again,
      put('notes', id(), { title: 'e', n: 1 }),
      patch('notes', row, { n: 2 }),
    ])
    expect(outcomes(results)).toEqual([
      'applied',
      'INVALID_COLUMN',
      'applied',
      'applied',
      'applied',
      'CONFLICT',
      'applied',
      'duplicate',
      'applied',
      'applied',
    ])
    expect((await user.get(`${notes}/${row}`)).data).toMatchObject({ title: 'c', n: 2 })
    expect(results[7]).toEqual({ ...results[6], status: 'duplicate', first_status: 'applied' })
    expect((await phone.push([again, put('notes', id(), { title: 'f', n: 1 })])).results.map((r) => r.status)).toEqual([
      'duplicate',
      'applied',
    ])
  })

  test('belong to the group that each names, or the header', async () => {
    const { user, phone } = await device()
    const team = await group(project, [[user, 'member']])
    const other = await group(project, [[user, 'member']])
    const watched = await group(project, [[user, 'viewer']])
    const of = (group_id?: string) => put('plans', id(), { title: 'a', ...(group_id && { group_id }) })
    const { results } = await phone.push(
      [of(team), of(team), of(other), of(other), of(), of(), of(watched), of(watched)],
      { 'x-group-context': other },
    )
    expect(results.map(({ row }) => row?.group_id)).toEqual([
      team,
      team,
      other,
      other,
      other,
      other,
      undefined,
      undefined,
    ])
    expect(outcomes(results.slice(6))).toEqual(['GROUP_ROLE_FORBIDDEN', 'GROUP_ROLE_FORBIDDEN'])
    expect(outcomes((await phone.push([of(), of()])).results)).toEqual(Array(2).fill('GROUP_CONTEXT_REQUIRED'))
  })
})
