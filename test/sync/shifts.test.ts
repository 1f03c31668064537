import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, group, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, ofMembers, put } from '#test/support/sync.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [{ name: 'title', type: 'text' }]
const notes = await define(project, { name: 'notes', sync: true, columns })
const things = { name: 'things', sync: true, columns }
const at = '/client/collections/things'
const drop = async () => expect((await project.admin.delete('/collections/things?confirm=things')).status).toBe(200)
const sync = async (on: boolean) =>
  expect((await project.admin.patch('/collections/things', { sync: on })).data.sync).toBe(on)
const device = async (options = {}) => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user, options) }
}
type Phone = ReturnType<typeof deviceOf>
const titles = (phone: Phone) => [...phone.rows.values()].map((row) => row.title).sort()
/** As a client does that is told so. */
const beginAnew = async (phone: Phone) => {
  expectRefusal(await phone.ask(), 409, 'CHECKPOINT_EXPIRED')
  phone.checkpoint = null
  phone.rows.clear()
  await phone.pull()
}

describe('a collection', () => {
  test('whose sync was off between two pulls leaves no ghost', async () => {
    await define(project, things)
    const { user, phone } = await device()
    const [, gone] = await insertAll(user, at, [{ title: 'kept' }, { title: 'gone' }])
    await phone.pull()
    const other = deviceOf(project, user, { collections: ['notes'] })
    await other.pull()
    await sync(false)
    await user.delete(`${at}/${gone.id}`)
    await sync(true)
    await beginAnew(phone)
    expect(titles(phone)).toEqual(['kept'])
    // who did not hold it goes on
    expect((await other.pull()).created).toEqual([])
    await drop()
  })

  test('whose sync is off during a pull is not named, and comes whole with the next one', async () => {
    await define(project, things)
    const { user, phone } = await device()
    await insertAll(user, at, [{ title: 'kept' }])
    await phone.pull()
    await sync(false)
    const { changes } = phone.take(await phone.page())
    expect(changes).not.toHaveProperty('things')
    await sync(true)
    expect((await phone.page()).changes['things']?.created).toHaveLength(1)
    await drop()
  })

  test('whose sync was off between two pages leaves no ghost', async () => {
    await define(project, things)
    const { user, phone } = await device()
    const [gone] = await insertAll(user, at, [{ title: 'gone' }, { title: 'b' }, { title: 'c' }])
    phone.take(await phone.page({ limit: 1 }))
    await sync(false)
    await user.delete(`${at}/${gone.id}`)
    await sync(true)
    await beginAnew(phone)
    expect(titles(phone)).toEqual(['b', 'c'])
    await drop()
  })

  test('that was dropped and made again under its name leaves no ghost', async () => {
    await define(project, things)
    const { user, phone } = await device()
    await insertAll(user, at, [{ title: 'old' }])
    await phone.pull()
    await drop()
    await define(project, things)
    await insertAll(user, at, [{ title: 'new' }])
    const { data } = await user.get(`/client/sync/status?client_id=${phone.client_id}`)
    expect(data.pending_changes).toBe(1)
    await beginAnew(phone)
    expect(titles(phone)).toEqual(['new'])
    // a month later nobody can hold any of it
    await project.sql(`update app.sync_collections set dropped_at = dropped_at - interval '32 days'`)
    await project.sql('select internal.purge__sync()')
    expect(await project.sql('select from app.sync_collections where dropped_at is not null')).toEqual([])
    await drop()
  })

  test('whose columns change between pages and pulls goes on, and says its version', async () => {
    await define(project, things)
    const { user, phone } = await device({ collections: ['things'] })
    await insertAll(user, at, [{ title: 'a' }, { title: 'b' }, { title: 'c' }])
    phone.take(await phone.page({ limit: 1 }))
    const added = { name: 'n', type: 'integer', default: 3 }
    expect((await project.admin.post('/collections/things/columns', added)).status).toBe(201)
    await phone.pull({ limit: 1 })
    expect([...phone.rows.values()].map((row) => row.n)).toEqual([undefined, 3, 3])
    expect(await phone.page()).toMatchObject({ schema: { things: 2 }, changes: { things: { updated: [] } } })
    const renamed = await project.admin.patch('/collections/things/columns/title', { name: 'name' })
    expect([renamed.status, renamed.error?.code]).toEqual([200, undefined])
    const row = [...phone.rows.values()][0]
    await user.patch(`${at}/${row.id}`, { name: 'A' })
    const { changes, schema } = await phone.page()
    expect([schema['things'], changes['things']?.updated]).toEqual([3, [expect.objectContaining({ name: 'A', n: 3 })]])
    expect((await project.admin.delete('/collections/things/columns/name?confirm=name')).status).toBe(200)
    expect((await phone.page()).changes['things']?.updated[0]).not.toHaveProperty('name')
    await drop()
  })
})

test.each([
  ['its rows are', 'collections.notes'],
  ['the log is', 'app.sync_changes'],
])('a row that is written while %s read comes once', async (_, table) => {
  const { user, phone } = await device({ collections: ['notes'] })
  await insertAll(user, notes, [{ title: 'a' }])
  await deviceOf(project, user).pull()
  await meetingBehind(
    project.database,
    `insert into collections.notes (user_id, title) values ('${user.id}', 'late');
     lock table ${table} in access exclusive mode`,
    () => [phone.pull()],
  )
  const first = phone.rows.size
  await phone.pull()
  expect([first, phone.rows.size]).toEqual([1, 2])
})

const members = (team: string, id: string) => ({
  leave: () => project.sql('delete from app.group_members where group_id = $1 and app_user_id = $2', [team, id]),
  join: () =>
    project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, [team, id]),
})

describe('a group that is left', () => {
  const started = async () => {
    const plans = `plans_${randomUUID().slice(0, 8)}`
    await define(project, { name: plans, sync: true, ...ofMembers, columns })
    const { user, phone } = await device({ collections: [plans] })
    const team = await group(project, [[await project.user(), 'owner']])
    const push = async (title: string) => {
      const row_id = randomUUID()
      const mutations = [{ id: randomUUID(), ...put(plans, row_id, { title, group_id: team }) }]
      const { data } = await user.post('/client/sync/push', { client_id: phone.client_id, mutations })
      expect(data.results[0].status).toBe('applied')
      return row_id
    }
    return { plans, user, phone, push, ...members(team, user.id) }
  }

  test('between the pages of a pull: the client begins anew, and has its rows once it is back', async () => {
    const { phone, push, join, leave } = await started()
    await join()
    for (const title of ['a', 'b', 'c']) await push(title)
    phone.take(await phone.page({ limit: 1 }))
    await leave()
    expectRefusal(await phone.ask({ limit: 1 }), 409, 'CHECKPOINT_EXPIRED')
    await join()
    // what is shown is what was: the pull goes on
    phone.take(await phone.page({ limit: 1 }))
    await leave()
    await beginAnew(phone)
    expect(titles(phone)).toEqual([])
    await join()
    await phone.pull()
    expect(titles(phone)).toEqual(['a', 'b', 'c'])
  })

  test('with what the client has pushed since it joined: those rows go', async () => {
    const { plans, phone, push, join, leave } = await started()
    await phone.pull()
    await join()
    const id = await push('held by who pushed it')
    await leave()
    const { changes } = phone.take(await phone.page())
    expect(changes[plans]).toEqual({ created: [], updated: [], deleted: [id] })
    await join()
    expect((await phone.pull()).created).toEqual([id])
  })
})

describe('between the pages of a pull', () => {
  const started = async () => {
    const plans = `plans_${randomUUID().slice(0, 8)}`
    await define(project, { name: plans, sync: true, ...ofMembers, columns })
    const [{ user, phone }, other] = [await device({ collections: [plans] }), await project.user()]
    const [own, team] = [await group(project, [[user, 'owner']]), await group(project, [[other, 'owner']])]
    const insert = (client: typeof user, group_id: string, names: string[]) =>
      insertAll(
        client,
        `/client/collections/${plans}`,
        names.map((title) => ({ title })),
        { 'X-Group-Context': group_id },
      )
    return { plans, phone, other, own, insert, user, ...members(team, user.id), team }
  }

  test('a group is joined: its rows come with the next pull', async () => {
    const { phone, user, own, other, team, insert, join } = await started()
    await insert(user, own, ['a', 'b'])
    await insert(other, team, ['c'])
    phone.take(await phone.page({ limit: 1 }))
    await join()
    expect(phone.take(await phone.page({ limit: 1 }))).toMatchObject({ has_more: false })
    expect(titles(phone)).toEqual(['a', 'b'])
    await phone.pull()
    expect(titles(phone)).toEqual(['a', 'b', 'c'])
  })

  test('a group that was left is joined again: what it had goes, and comes with the next pull', async () => {
    const { plans, phone, team, join, leave } = await started()
    await join()
    await phone.pull()
    await phone.push(['a', 'b'].map((title) => put(plans, randomUUID(), { title, group_id: team })))
    await leave()
    expect(phone.take(await phone.page({ limit: 1 })).has_more).toBe(true)
    await join()
    expect(phone.take(await phone.page({ limit: 1 })).changes[plans]?.deleted).toHaveLength(1)
    expect(titles(phone)).toEqual([])
    await phone.pull()
    expect(titles(phone)).toEqual(['a', 'b'])
  })

  test('a push is repeated: the pull after it reaches its hint', async () => {
    const { plans, phone, user, own, other, team, insert } = await started()
    const mutation = { id: randomUUID(), ...put(plans, randomUUID(), { title: 'a', group_id: own }) }
    await phone.push([mutation])
    await insert(user, own, ['b'])
    expect(phone.take(await phone.page({ limit: 1 })).has_more).toBe(true)
    await insert(other, team, ['of another'])
    const { results, checkpoint_hint } = await phone.push([mutation])
    expect(results).toMatchObject([{ status: 'duplicate' }])
    expect(Number((await phone.pull({ limit: 1 })).checkpoint)).toBeLessThan(Number(checkpoint_hint))
    expect(Number((await phone.pull()).checkpoint)).toBeGreaterThanOrEqual(Number(checkpoint_hint))
  })
})

test('two users of one installation, who pushed the same mutation, become one', async () => {
  const [survivor, other] = [await device(), await device()]
  const mutation = { id: randomUUID(), ...put('notes', randomUUID(), { title: 'x' }) }
  const client_id = randomUUID()
  const push = async ({ user }: typeof other) =>
    (await user.post('/client/sync/push', { client_id, mutations: [mutation] })).data.results[0]
  expect(await push(other)).toMatchObject({ status: 'applied' })
  expect(await push(survivor)).toMatchObject({ status: 'rejected', code: 'CONFLICT' })
  await project.sql(
    `begin; set local app.caller = 'user'; set local app.user_id = '${survivor.user.id}';
     select internal.users_merge('${survivor.user.id}', '${other.user.id}'); commit`,
  )
  expect(await push(survivor)).toMatchObject({ status: 'duplicate', code: 'CONFLICT', first_status: 'rejected' })
  expect((await survivor.phone.pull()).created).toEqual([mutation.row_id])
})

test('a banned user neither pulls nor pushes', async () => {
  const { user, phone } = await device()
  await insertAll(user, notes, [{ title: 'a' }])
  await phone.pull()
  expect((await project.admin.patch(`/users/${user.id}`, { is_banned: true })).status).toBe(200)
  expectRefusal(await phone.ask(), 401, 'UNAUTHORIZED')
  const push = { client_id: phone.client_id, mutations: [put('notes', randomUUID(), {})] }
  expectRefusal(await user.post('/client/sync/push', push), 401, 'UNAUTHORIZED')
})
