import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { define, group, inGroup, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, ofMembers, patch, put, remove } from '#test/support/sync.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const notes = await define(project, {
  name: 'notes',
  sync: true,
  columns: [
    { name: 'title', type: 'text', nullable: false },
    { name: 'n', type: 'integer', default: 7, max: 100 },
    { name: 'code', type: 'text', unique: true },
  ],
})
const news = await define(project, {
  name: 'news',
  sync: true,
  read_policy: 'public',
  columns: [{ name: 'title', type: 'text' }],
})
const plans = await define(project, {
  name: 'plans',
  sync: true,
  ...ofMembers,
  columns: [{ name: 'title', type: 'text' }],
})
await define(project, { name: 'unsynced', columns: [{ name: 'title', type: 'text' }] })
const id = () => randomUUID()
const device = async () => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user) }
}
const later = (time: string, before: string) => Date.parse(time) > Date.parse(before)

describe('put', () => {
  test('inserts with the id of the client, for the caller, and sets all columns of a row that is there', async () => {
    const { user, phone } = await device()
    await phone.pull()
    const row = id()
    const first = await phone.push([
      put('notes', row, { title: 'a', code: row, user_id: id(), created_at: 'x', id: id() }),
    ])
    expect(first.results[0]).toEqual({ id: expect.any(String), status: 'applied', row: expect.anything() })
    expect(first.results[0].row).toMatchObject({ id: row, title: 'a', n: 7, user_id: user.id })
    expect(first.results[0].row).toEqual((await user.get(`${notes}/${row}`)).data)
    const second = await phone.push([put('notes', row, { title: 'b', n: 1 })])
    expect(second.results[0].row).toMatchObject({ id: row, title: 'b', n: 1, code: null })
    const third = await phone.push([put('notes', row, { title: 'b' })])
    expect(third.results[0].row).toMatchObject({ n: 7, code: null })
    // what it pushed itself it holds
    expect(await phone.pull()).toMatchObject({ created: [], updated: [row], deleted: [] })
    await phone.push([put('notes', row, { title: 'c' })])
    expect(await phone.pull()).toMatchObject({ created: [], updated: [row], deleted: [] })
  })

  test('brings back a deleted row with its owner', async () => {
    const { user, phone } = await device()
    const [row] = await insertAll(user, notes, [{ title: 'a', n: 3 }])
    await user.delete(`${notes}/${row.id}`)
    const { results } = await phone.push([put('notes', row.id, { title: 'b' })])
    expect(results[0]).toMatchObject({ status: 'applied', row: { title: 'b', n: 7, created_at: row.created_at } })
    const { user: friend, phone: theirs } = await device()
    const team = await group(project, [
      [user, 'member'],
      [friend, 'member'],
    ])
    const [plan] = await insertAll(inGroup(user, team), plans, [{ title: 'a' }])
    await user.with({ 'x-group-context': team }).delete(`${plans}/${plan.id}`)
    expect((await theirs.push([put('plans', plan.id, { title: 'b', group_id: id() })])).results[0].row).toMatchObject({
      user_id: user.id,
      group_id: team,
      title: 'b',
    })
  })

  test('of a hidden row is a conflict that tells nothing', async () => {
    const { phone } = await device()
    const { user: other } = await device()
    const [row] = await insertAll(other, notes, [{ title: 'a' }])
    const rejected = { status: 'rejected', code: 'CONFLICT', row: null, message: expect.any(String) }
    expect((await phone.push([put('notes', row.id, { title: 'b' })])).results[0]).toMatchObject(rejected)
    await other.delete(`${notes}/${row.id}`)
    expect((await phone.push([put('notes', row.id, { title: 'b' })])).results[0]).toMatchObject(rejected)
    const [shown] = await insertAll(other, news, [{ title: 'a' }])
    expect((await phone.push([put('news', shown.id, { title: 'b' })])).results[0]).toMatchObject({
      status: 'rejected',
      code: 'NOT_FOUND',
      row: { title: 'a' },
    })
  })

  test('in a group: of data, else of the header, and never to another', async () => {
    const { user, phone } = await device()
    const team = await group(project, [[user, 'member']])
    const other = await group(project, [[user, 'viewer']])
    const open = await group(project, [[user, 'member']], true)
    const push = async (data: object, headers = {}) =>
      (await phone.push([put('plans', id(), data)], headers)).results[0]
    expect(await push({ group_id: team, title: 'a' })).toMatchObject({ status: 'applied', row: { group_id: team } })
    expect(await push({ title: 'a' }, { 'x-group-context': team })).toMatchObject({ row: { group_id: team } })
    expect(await push({ title: 'a' })).toMatchObject({ status: 'rejected', code: 'GROUP_CONTEXT_REQUIRED' })
    expect(await push({ group_id: other })).toMatchObject({ code: 'GROUP_ROLE_FORBIDDEN' })
    expect(await push({ group_id: open })).toMatchObject({ code: 'GROUP_NOT_PRIVATE' })
    expect(await push({ group_id: id() })).toMatchObject({ code: 'NOT_A_GROUP_MEMBER' })
    const [row] = await insertAll(inGroup(user, team), plans, [{ title: 'x' }])
    const moved = (await phone.push([put('plans', row.id, { title: 'y', group_id: other })])).results[0]
    expect(moved.row).toMatchObject({ title: 'y', group_id: team })
    // the group is named first
    const { user: stranger } = await device()
    const theirs = await group(project, [[stranger, 'owner']])
    const [hidden] = await insertAll(inGroup(stranger, theirs), plans, [{ title: 'h' }])
    expect((await phone.push([put('plans', hidden.id, { group_id: id() })])).results[0].code).toBe('NOT_A_GROUP_MEMBER')
    expect((await phone.push([put('plans', hidden.id, { group_id: team })])).results[0]).toMatchObject({
      code: 'CONFLICT',
      row: null,
    })
  })
})

describe('patch and delete', () => {
  test('write what is given, and nothing that is not there', async () => {
    const { user, phone } = await device()
    const { user: other } = await device()
    const [row, gone] = await insertAll(user, notes, [{ title: 'a', n: 1 }, { title: 'b' }])
    const [theirs] = await insertAll(other, notes, [{ title: 'c' }])
    await user.delete(`${notes}/${gone.id}`)
    const { results } = await phone.push([
      patch('notes', row.id, { n: 2, updated_at: 'x' }),
      patch('notes', row.id, {}),
      remove('notes', row.id),
      remove('notes', row.id),
      patch('notes', row.id, { n: 3 }),
      put('notes', row.id, { title: 'z' }),
      ...[gone.id, theirs.id, id()].flatMap((each) => [patch('notes', each, { n: 1 }), remove('notes', each)]),
    ])
    expect(results.map(({ status, code }) => code ?? status)).toEqual([
      'applied',
      'applied',
      'applied',
      'NOT_FOUND',
      'NOT_FOUND',
      'applied',
      ...Array(6).fill('NOT_FOUND'),
    ])
    expect(results[0].row).toMatchObject({ title: 'a', n: 2 })
    expect(later(results[0].row.updated_at, row.updated_at)).toBe(true)
    expect(later(results[1].row.updated_at, results[0].row.updated_at)).toBe(true)
    expect(results[2].row).toBeNull()
    expect(results[3]).toMatchObject({ status: 'rejected', row: null })
  })

  test('with a base that differs conflict, and write nothing', async () => {
    const { user, phone } = await device()
    const [row] = await insertAll(user, notes, [{ title: 'a' }])
    const base = { base_updated_at: row.updated_at }
    const old = { base_updated_at: '2020-01-01T00:00:00Z' }
    const { results } = await phone.push([
      patch('notes', row.id, { title: 'b' }, old),
      patch('notes', row.id, { title: 'c' }, base),
      put('notes', row.id, { title: 'd' }, base),
      remove('notes', row.id, base),
      patch('notes', row.id, { title: 'e' }, { base_updated_at: null }),
      put('notes', id(), { title: 'f' }, base),
      patch('notes', id(), { title: 'f' }, base),
    ])
    expect(results.map(({ status }) => status)).toEqual([
      'conflict',
      'applied',
      'conflict',
      'conflict',
      'applied',
      'conflict',
      'rejected',
    ])
    expect(results[0].row).toEqual(row)
    expect(results[0]).not.toHaveProperty('code')
    expect(results[2].row).toMatchObject({ title: 'c' })
    expect(results[5].row).toBeNull()
    const shown = (await user.get(`${notes}/${row.id}`)).data
    await user.delete(`${notes}/${row.id}`)
    const gone = (await phone.push([put('notes', row.id, { title: 'g' }, { base_updated_at: shown.updated_at })]))
      .results
    expect(gone[0]).toMatchObject({ status: 'conflict', row: null })
    // a base in another zone is the same time
    const [other] = await insertAll(user, notes, [{ title: 'z' }])
    const zoned = new Date(Date.parse(other.updated_at) + 7_200_000).toISOString().replace('Z', '+02:00')
    expect((await phone.push([remove('notes', other.id, { base_updated_at: zoned })])).results[0].status).toBe(
      'applied',
    )
  })
})

describe('results', () => {
  test('have the codes of the routes, and the row that is there', async () => {
    const { user, phone } = await device()
    const [row] = await insertAll(user, notes, [{ title: 'a', code: 'taken' }])
    const cases: [object, string][] = [
      [put('notes', id(), { nope: 1 }), 'INVALID_COLUMN'],
      [put('notes', id(), { title: 1 }), 'INVALID_BODY'],
      [put('notes', id(), { title: 'x', n: 101 }), 'INVALID_BODY'],
      [put('notes', id(), { title: 'x', n: 99999999999 }), 'INVALID_BODY'],
      [put('notes', id(), { n: 1 }), 'NOT_NULL_VIOLATION'],
      [put('notes', id(), { title: 'x', code: 'taken' }), 'CONFLICT'],
      [put('notes', row.id, { n: 1 }), 'NOT_NULL_VIOLATION'],
      [patch('notes', row.id, { title: null }), 'NOT_NULL_VIOLATION'],
      [put('nothing', id(), {}), 'COLLECTION_NOT_FOUND'],
      [put('unsynced', id(), {}), 'COLLECTION_NOT_FOUND'],
      [put('notes', 'x', { title: 'x' }), 'VALIDATION_ERROR'],
      [{ ...put('notes', id(), {}), data: [] }, 'VALIDATION_ERROR'],
      [{ ...put('notes', id(), {}), data: undefined }, 'VALIDATION_ERROR'],
      [{ ...put('notes', id(), {}), op: 'upsert' }, 'VALIDATION_ERROR'],
      [{ ...put('notes', id(), {}), collection: 1 }, 'VALIDATION_ERROR'],
      [put('notes', id(), {}, { base_updated_at: 'yesterday' }), 'VALIDATION_ERROR'],
      [put('notes', id(), {}, { tx: '' }), 'VALIDATION_ERROR'],
      [put('notes', id(), {}, { tx: 'x'.repeat(129) }), 'VALIDATION_ERROR'],
      [{ ...put('notes', id(), {}), id: 'mine' }, 'VALIDATION_ERROR'],
      [{ ...put('notes', id(), {}), id: undefined }, 'VALIDATION_ERROR'],
      [put('notes', id(), { title: 'x\0' }), 'VALIDATION_ERROR'],
      [put('notes', id(), { title: '\ud800' }), 'VALIDATION_ERROR'],
      [put('notes', id(), { title: 'fine' }), ''],
    ]
    const { results } = await phone.push(cases.map(([mutation]) => mutation))
    expect(results.map(({ code }) => code ?? '')).toEqual(cases.map(([, code]) => code))
    for (const [n, { status, message }] of results.entries()) {
      expect(status).toBe(cases[n]?.[1] ? 'rejected' : 'applied')
      if (cases[n]?.[1]) expect(message).toEqual(expect.any(String))
    }
    expect(results[6].row).toEqual(row)
    expect(results[18].id).toBe('mine')
    expect(results[19].id).toBeNull()
    expect(
      (await user.post('/client/sync/push', { client_id: id(), mutations: [1, null, [], 'x'] })).data.results,
    ).toEqual(
      Array(4).fill({ id: null, status: 'rejected', row: null, code: 'VALIDATION_ERROR', message: expect.any(String) }),
    )
  })

  test('of what a trigger of the project fails at are no failure of the push', async () => {
    const { phone } = await device()
    await project.sql(`create function collections.fails() returns trigger language plpgsql as
                         $$ begin raise exception 'no'; end $$`)
    await project.sql(`create trigger fails before insert on collections.notes for each row
                         when (new.title = 'fails') execute function collections.fails()`)
    const { results } = await phone.push([
      put('notes', id(), { title: 'fails' }),
      put('notes', id(), { title: 'fine' }),
      put('notes', id(), { title: 'fails' }, { tx: 'a' }),
      put('notes', id(), { title: 'fine' }, { tx: 'a' }),
    ])
    expect(results.map(({ status, code }) => code ?? status)).toEqual([
      'CREATE_FAILED',
      'applied',
      'CREATE_FAILED',
      'TRANSACTION_ROLLED_BACK',
    ])
    await project.sql('drop function collections.fails() cascade')
  })

  test('only the frame fails', async () => {
    const { user, phone } = await device()
    const { client_id } = phone
    const push = (body: unknown) => user.post('/client/sync/push', body)
    expect((await push([])).error?.code).toBe('INVALID_BODY')
    expectInvalid(await push({ client_id: 'x', mutations: [1] }), 'client_id')
    for (const mutations of [undefined, [], {}, 'x']) expectInvalid(await push({ client_id, mutations }), 'mutations')
    expectRefusal(await push({ client_id, mutations: Array(501).fill(1) }), 400, 'BATCH_TOO_LARGE')
    expect((await push({ client_id, mutations: Array(500).fill(1) })).data.results).toHaveLength(500)
  })

  test('of a tx are all or none, at the place of the first', async () => {
    const { user, phone } = await device()
    const [a, b, c, d] = [id(), id(), id(), id()]
    const { results } = await phone.push([
      put('notes', a, { title: 'a' }, { tx: 'good' }),
      put('notes', b, { title: 'b' }, { tx: 'bad' }),
      put('notes', c, { title: 'c' }),
      put('notes', d, { nope: 1 }, { tx: 'bad' }),
      patch('notes', a, { n: 1 }, { tx: 'good' }),
      patch('notes', b, { n: 1 }, { tx: 'bad' }),
      patch('notes', a, { n: 2 }, { tx: 'old', base_updated_at: '2020-01-01T00:00:00Z' }),
      patch('notes', c, { n: 2 }, { tx: 'old' }),
      { ...put('notes', c, {}, { tx: 'odd' }), data: 1 },
      patch('notes', c, { n: 3 }, { tx: 'odd' }),
    ])
    expect(results.map(({ status, code }) => code ?? status)).toEqual([
      'applied',
      'TRANSACTION_ROLLED_BACK',
      'applied',
      'INVALID_COLUMN',
      'applied',
      'TRANSACTION_ROLLED_BACK',
      'conflict',
      'TRANSACTION_ROLLED_BACK',
      'VALIDATION_ERROR',
      'TRANSACTION_ROLLED_BACK',
    ])
    expect(results[1]).toMatchObject({ status: 'rejected', row: null })
    expect(results[7].row).toMatchObject({ id: c, n: 7 })
    expect((await user.get(`${notes}/${b}`)).status).toBe(404)
  })

  test('of a repeated mutation are those of the first', async () => {
    const { user, phone } = await device()
    const row = id()
    const mutations = [
      { id: id(), ...put('notes', row, { title: 'a' }) },
      { id: id(), ...put('notes', id(), { nope: 1 }) },
      { id: id(), ...patch('notes', row, { n: 1 }, { base_updated_at: '2020-01-01T00:00:00Z' }) },
    ]
    const first = (await phone.push(mutations)).results
    await user.patch(`${notes}/${row}`, { title: 'b' })
    await user.post('/client/sync/reset', { client_id: phone.client_id })
    const again = (await phone.push(mutations.map((each) => ({ ...each, op: 'delete' })))).results
    expect(again).toEqual(first.map((each) => ({ ...each, status: 'duplicate', first_status: each.status })))
    expect((await user.get(`${notes}/${row}`)).data.title).toBe('b')
    // within one push, and for another client
    const one = { id: id(), ...patch('notes', row, { n: 2 }) }
    const twice = (await phone.push([one, { ...one, data: { n: 3 } }])).results
    expect(twice[1]).toEqual({ ...twice[0], status: 'duplicate', first_status: 'applied' })
    expect((await deviceOf(project, user).push([one])).results[0].status).toBe('applied')
    // for 30 days
    await project.sql(`update app.sync_mutations set at = at - interval '31 days'`)
    await project.sql('select internal.purge__sync()')
    expect((await phone.push([one])).results[0].status).toBe('applied')
  })

  test('of new rows that were inserted together stay, also where a row is gone meanwhile', async () => {
    const { user, phone } = await device()
    const puts = ['a', 'b', 'c'].map((title) => ({ id: id(), ...put('notes', id(), { title }) }))
    const first = (await phone.push(puts)).results
    await project.sql('delete from collections.notes where id = any ($1::uuid[])', [puts.map((each) => each.row_id)])
    const again = (await phone.push([...puts.slice(1), { id: id(), ...put('notes', id(), { title: 'd' }) }])).results
    expect(again.map(({ status }) => status)).toEqual(['duplicate', 'duplicate', 'applied'])
    expect(again[0].row).toEqual(first[1].row)
    expect((await user.get(notes)).data.map(({ title }: any) => title)).toEqual(['d'])
  })

  test('of equal pushes at once: one applies', async () => {
    const { user, phone } = await device()
    const row = id()
    await phone.push([put('notes', row, { title: 'a', n: 0 })])
    const mutations = [{ id: id(), op: 'patch', collection: 'notes', row_id: row, data: { $inc: { n: 1 } } }]
    const answers = await meetingBehind(
      project.database,
      `select from app.users where id = '${user.id}' for update`,
      () => Array.from({ length: 8 }, () => user.post('/client/sync/push', { client_id: phone.client_id, mutations })),
    )
    expect(answers.map(({ data }) => data.results[0].status).sort()).toEqual(['applied', ...Array(7).fill('duplicate')])
    expect((await user.get(`${notes}/${row}`)).data.n).toBe(1)
  })

  test('in crossing orders wait for each other', async () => {
    const { user: friend } = await device()
    const user = await project.user()
    const team = await group(project, [
      [user, 'member'],
      [friend, 'member'],
    ])
    const rows = await insertAll(inGroup(user, team), plans, [{ title: 'a' }, { title: 'b' }, { title: 'c' }])
    const ids = rows.map((row) => row.id)
    const devices = [user, friend].map((each) => deviceOf(project, each))
    for (let n = 0; n < 5; n += 1) {
      const pushes = devices.map((each, of) =>
        each.push((of ? ids : ids.toReversed()).map((row) => patch('plans', row, { title: `${n}` }))),
      )
      for (const { results } of await Promise.all(pushes))
        expect(results.map(({ status }) => status)).toEqual(['applied', 'applied', 'applied'])
    }
  })
})

describe('the hint', () => {
  test('is reached by the next pull', async () => {
    const { phone } = await device()
    const before = await phone.pull()
    const { checkpoint_hint } = await phone.push([put('notes', id(), { title: 'a' })])
    expect(Number(checkpoint_hint)).toBeGreaterThan(Number(before.checkpoint))
    expect(Number((await phone.pull()).checkpoint)).toBeGreaterThanOrEqual(Number(checkpoint_hint))
    const rejected = await phone.push([put('notes', id(), {})])
    expect(Number((await phone.pull()).checkpoint)).toBeGreaterThanOrEqual(Number(rejected.checkpoint_hint))
  })
})

describe('a server key', () => {
  test('syncs for a user', async () => {
    const { user } = await device()
    const phone = deviceOf(project, project.onBehalfOf(user.id), { collections: ['notes'] })
    await phone.push([put('notes', id(), { title: 'a' })])
    expect((await phone.pull()).created).toHaveLength(1)
    expect([...phone.rows.values()][0].user_id).toBe(user.id)
    expect((await project.server.post('/client/sync/pull', { client_id: id() })).status).toBe(401)
  })
})
