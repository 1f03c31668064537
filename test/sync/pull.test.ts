import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { define, group, inGroup, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, ofMembers, put } from '#test/support/sync.ts'
import { openTransaction } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const columns = [
  { name: 'title', type: 'text' },
  { name: 'n', type: 'bigint' },
]
const notes = await define(project, { name: 'notes', sync: true, columns })
const news = await define(project, { name: 'news', sync: true, read_policy: 'public', columns })
const plans = await define(project, {
  name: 'plans',
  sync: true,
  ...ofMembers,
  columns,
})
await define(project, { name: 'unsynced', columns })
const device = async (options = {}) => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user, options) }
}

describe('a pull', () => {
  test('brings what there is, as a fetch shows it, and then what has changed', async () => {
    const { user, phone } = await device({ collections: ['notes', 'news'] })
    const first = await phone.page()
    expect(first).toMatchObject({ has_more: false, schema: { notes: 1, news: 1 } })
    expect(first.changes['notes']).toEqual({ created: [], updated: [], deleted: [] })
    expect(first.checkpoint).toMatch(/^[1-9]\d{0,14}$/)
    phone.take(first)
    const [a, b] = await insertAll(user, notes, [{ title: 'a', n: '9007199254740993' }, { title: 'b' }])
    const second = phone.take(await phone.page())
    expect(second.changes['notes']).toEqual({ created: [a, b], updated: [], deleted: [] })
    expect(second.changes['notes']?.created[0]).toEqual((await user.get(`${notes}/${a.id}`)).data)
    expect(Number(second.checkpoint)).toBeGreaterThan(Number(first.checkpoint))
    const changed = (await user.patch(`${notes}/${a.id}`, { title: 'A' })).data
    await user.patch(`${notes}/${a.id}`, { title: 'AA' })
    await user.delete(`${notes}/${b.id}`)
    const third = phone.take(await phone.page())
    expect(third.changes['notes']).toEqual({
      created: [],
      updated: [{ ...changed, title: 'AA', updated_at: expect.any(String) }],
      deleted: [b.id],
    })
    const fourth = phone.take(await phone.page())
    expect(fourth.changes['notes']).toEqual({ created: [], updated: [], deleted: [] })
    expect(fourth.checkpoint).toBe(third.checkpoint)
  })

  test('takes the checkpoint as a number too', async () => {
    const { user, phone } = await device()
    await phone.pull()
    await user.post(notes, { title: 'x' })
    expect((await phone.page({ checkpoint: Number(phone.checkpoint) })).changes['notes']?.created).toHaveLength(1)
  })

  test('names no row that came and went, and none of others', async () => {
    const { user, phone } = await device()
    const { user: other } = await device()
    await phone.pull()
    const [row] = await insertAll(user, notes, [{ title: 'x' }])
    await user.delete(`${notes}/${row.id}`)
    await other.post(notes, { title: 'theirs' })
    // however many came and went: none of them is read
    await project.sql(`with made as (insert into collections.notes (user_id) select '${user.id}' from generate_series(1, 3000)
                       returning id) select count(*) from made`)
    await project.sql(
      `update collections.notes set deleted_at = now() where user_id = '${user.id}' and deleted_at is null`,
    )
    expect(await phone.pull({ limit: 1 })).toMatchObject({ created: [], updated: [], deleted: [], pages: 1 })
    await user.post(`${notes}/${row.id}/restore`)
    expect((await phone.pull()).created).toEqual([row.id])
  })

  test('goes in pages, of which none has an id twice', async () => {
    const { user, phone } = await device({ collections: ['notes', 'plans'] })
    const team = await group(project, [[user, 'member']])
    const other = await group(project, [[user, 'member']])
    await insertAll(
      user,
      notes,
      Array.from({ length: 5 }, (_, n) => ({ title: `${n}` })),
    )
    await insertAll(inGroup(user, team), plans, [{ title: 'a' }, { title: 'b' }])
    await insertAll(inGroup(user, other), plans, [{ title: 'c' }])
    const all = await phone.pull({ limit: 3 })
    expect(all.pages).toBe(3)
    expect(new Set(all.created).size).toBe(8)
    expect(phone.rows.size).toBe(8)
    for (const id of all.created.slice(0, 4)) await user.patch(`${notes}/${id}`, { title: 'new' })
    const next = await phone.pull({ limit: 2 })
    expect(next.created).toEqual([])
    expect(new Set(next.updated).size).toBe(next.updated.length)
    expect((await phone.pull()).updated).toEqual([])
  })

  test('ends a page where a row is written between pages, and brings that row', async () => {
    const { user, phone } = await device({ collections: ['notes'] })
    const rows = await insertAll(user, notes, [{ title: '1' }, { title: '2' }, { title: '3' }])
    phone.take(await phone.page({ limit: 1 }))
    const [late] = await insertAll(user, notes, [{ title: '4' }])
    await user.patch(`${notes}/${rows[0].id}`, { title: 'one' })
    await user.delete(`${notes}/${rows[2].id}`)
    await phone.pull({ limit: 1 })
    await phone.pull()
    expect([...phone.rows.values()].map((row) => row.title).sort()).toEqual(['2', '4', 'one'])
    expect(phone.rows.has(late.id)).toBe(true)
  })

  test('of another kind is refused', async () => {
    const { user, phone } = await device()
    for (const [body, field] of [
      [{ client_id: 'x' }, 'client_id'],
      [{ limit: 0 }, 'limit'],
      [{ limit: 1.5 }, 'limit'],
      [{ collections: [] }, 'collections'],
      [{ collections: [1] }, 'collections.0'],
      [{ collections: Array(201).fill('notes') }, 'collections'],
    ] as const)
      expectInvalid(await phone.ask(body), field)
    for (const checkpoint of ['', '0', '01', 'x', '1.5', '-1', '1234567890123456', 1.5, 0, true, {}, ['1']])
      expectRefusal(await phone.ask({ checkpoint }), 400, 'INVALID_CHECKPOINT')
    for (const collections of [['nothing'], ['notes', 'unsynced']])
      expectRefusal(await phone.ask({ collections }), 404, 'COLLECTION_NOT_FOUND')
    expect((await phone.ask({ limit: 1_000_000 })).status).toBe(200)
    expect((await user.post('/client/sync/pull', [])).error?.code).toBe('INVALID_BODY')
  })
})

describe('a transaction that is open during a pull', () => {
  const insert = (title: string): [string, string[]] => [`insert into collections.notes (title) values ($1)`, [title]]
  const opened = async (id: string) => openTransaction(project, 'app_user', { 'app.user_id': id })

  test('loses no row: neither the late one nor what was committed around it', async () => {
    const { user, phone } = await device()
    const late = await opened(user.id)
    await late.query(...insert('late'))
    await user.post(notes, { title: 'early' })
    await phone.pull()
    await user.post(notes, { title: 'later' })
    await phone.pull()
    expect([...phone.rows.values()].map((row) => row.title)).toEqual(['early', 'later'])
    await late.commit()
    expect((await phone.pull()).created).toHaveLength(1)
    expect([...phone.rows.values()].map((row) => row.title)).toEqual(['early', 'later', 'late'])
  })

  test('leaves no trace when it is rolled back', async () => {
    const { user, phone } = await device()
    const broken = await opened(user.id)
    await broken.query(...insert('never'))
    await phone.pull()
    await broken.kill()
    await user.post(notes, { title: 'x' })
    expect((await phone.pull()).created).toHaveLength(1)
  })
})

describe('rows become readable and unreadable', () => {
  test('by joining and leaving a group, and by its end', async () => {
    const { user, phone } = await device({ collections: ['plans'] })
    const { user: leader, phone: theirs } = await device({ collections: ['plans'] })
    const team = await group(project, [[leader, 'owner']])
    const rows = await insertAll(inGroup(leader, team), plans, [{ title: 'a' }, { title: 'b' }, { title: 'c' }])
    await phone.pull()
    await theirs.pull()
    const join = () =>
      project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, [
        team,
        user.id,
      ])
    await join()
    const joined = await phone.pull({ limit: 2 })
    expect(new Set(joined.created)).toEqual(new Set(rows.map((row) => row.id)))
    expect(joined.pages).toBe(2)
    await project.sql('delete from app.group_members where group_id = $1 and app_user_id = $2', [team, user.id])
    const left = await phone.pull({ limit: 2 })
    expect(new Set(left.deleted)).toEqual(new Set(rows.map((row) => row.id)))
    await join()
    expect((await phone.pull()).created).toHaveLength(3)
    // the membership and a row in one transaction
    await project.sql(
      `with gone as (delete from app.group_members where group_id = '${team}' and app_user_id = '${user.id}')
       update collections.plans set deleted_at = now() where id = '${rows[0].id}'`,
    )
    expect((await phone.pull()).deleted).toHaveLength(3)
    expect((await theirs.pull()).deleted).toEqual([rows[0].id])
    await join()
    expect((await phone.pull()).created).toHaveLength(2)
    await project.sql('delete from app.groups where id = $1', [team])
    expect((await phone.pull()).deleted).toHaveLength(2)
    expect((await theirs.pull()).deleted).toHaveLength(2)
  })

  test('by the policy', async () => {
    const { user, phone } = await device({ collections: ['news'] })
    const { user: author, phone: theirs } = await device({ collections: ['news'] })
    const [own] = await insertAll(user, news, [{ title: 'mine' }])
    const [a, b, c] = await insertAll(author, news, [{ title: 'a' }, { title: 'b' }, { title: 'c' }])
    await phone.pull()
    await theirs.pull()
    expect(phone.rows.size).toBe(4)
    const policy = async (read_policy: string) =>
      expect((await project.admin.patch('/collections/news', { read_policy })).status).toBe(200)
    await author.delete(`${news}/${a.id}`)
    await policy('owner')
    await author.delete(`${news}/${b.id}`)
    await user.patch(`${news}/${own.id}`, { title: 'still mine' })
    const hidden = await phone.pull({ limit: 1 })
    expect(new Set(hidden.deleted)).toEqual(new Set([a.id, b.id, c.id]))
    expect(hidden.updated).toEqual([own.id])
    await theirs.pull()
    expect([...theirs.rows.keys()]).toEqual([c.id])
    // and back within one pull
    await author.patch(`${news}/${c.id}`, { title: 'C' })
    await policy('public')
    const [d] = await insertAll(author, news, [{ title: 'd' }])
    const shown = await phone.pull({ limit: 1 })
    expect(new Set(shown.created)).toEqual(new Set([c.id, d.id]))
    await policy('owner')
    await policy('public')
    expect(await phone.pull()).toMatchObject({ created: [], updated: [], deleted: [] })
  })

  test('by a role, also by its end in time', async () => {
    await project.admin.post('/roles', { key: 'editor', name: 'Editor' })
    const drafts = await define(project, { name: 'drafts', sync: true, read_policy: 'role:editor', columns })
    const { user, phone } = await device({ collections: ['drafts'] })
    await project.sql(`insert into collections.drafts (user_id, title) values ($1, 'x')`, [(await project.user()).id])
    expect((await phone.pull()).created).toEqual([])
    expect(
      (
        await project.admin.post('/roles/editor/assignments', {
          app_user_id: user.id,
          expires_at: new Date(Date.now() + 300_000).toISOString(),
        })
      ).status,
    ).toBe(201)
    expect((await phone.pull()).created).toHaveLength(1)
    harness.advance(400)
    expect((await phone.pull()).deleted).toHaveLength(1)
    harness.setTime(null)
    await project.admin.delete('/collections/drafts?confirm=drafts')
    expect(drafts).toBeDefined()
  })

  test('by every way to go: for good, by a cascade, with its owner', async () => {
    const lists = await define(project, { name: 'lists', sync: true, read_policy: 'public', columns })
    const entries = await define(project, {
      name: 'entries',
      sync: true,
      read_policy: 'public',
      columns: [{ name: 'list', type: 'uuid', references: { collection: 'lists', on_delete: 'cascade' } }],
    })
    const { phone } = await device({ collections: ['lists', 'entries'] })
    const author = await project.user()
    const [soft, hard, last] = await insertAll(author, lists, [{ title: '1' }, { title: '2' }, { title: '3' }])
    const [one, two] = await insertAll(author, entries, [{ list: soft.id }, { list: hard.id }])
    await phone.pull()
    await author.delete(`${lists}/${soft.id}`)
    expect(new Set((await phone.pull()).deleted)).toEqual(new Set([soft.id, one.id]))
    await project.admin.delete(`/collections/lists/rows/${hard.id}?hard=true`)
    expect(new Set((await phone.pull()).deleted)).toEqual(new Set([hard.id, two.id]))
    await project.sql('delete from app.users where id = $1', [author.id])
    expect((await phone.pull()).deleted).toEqual([last.id])
  })
})

describe('checkpoints', () => {
  test('belong to one client of one user, and may be used again', async () => {
    const { user, phone } = await device()
    const other = deviceOf(project, user)
    const { phone: strange } = await device()
    await phone.pull()
    const first = phone.checkpoint
    expectRefusal(await other.ask({ checkpoint: first }), 409, 'CHECKPOINT_EXPIRED')
    await user.post(notes, { title: 'x' })
    await other.pull()
    await strange.pull()
    for (const each of [other, strange]) expectRefusal(await each.ask({ checkpoint: first }), 409, 'CHECKPOINT_EXPIRED')
    for (let n = 0; n < 3; n += 1) {
      await phone.pull()
      await user.post(notes, { title: 'y' })
    }
    const [again, twice] = [await phone.page({ checkpoint: first }), await phone.page({ checkpoint: first })]
    expect(again.changes['notes']?.created).toHaveLength(4)
    expect(twice.changes).toEqual(again.changes)
    expect(Number(again.checkpoint)).toBeGreaterThan(Number(phone.checkpoint))
    expectRefusal(await phone.ask({ checkpoint: '999999999999999' }), 409, 'CHECKPOINT_EXPIRED')
  })

  test('last for 30 days', async () => {
    const user = await project.user()
    const phone = deviceOf(project, project.onBehalfOf(user.id))
    await phone.pull()
    const [first, begin] = [phone.checkpoint, Date.now()]
    await user.post(notes, { title: 'x' })
    await phone.pull()
    const day = 86_400_000
    harness.setTime(new Date(begin + 29 * day))
    expect((await phone.page({ checkpoint: first })).changes['notes']?.created).toHaveLength(1)
    harness.setTime(new Date(begin + 31 * day))
    expectRefusal(await phone.ask({ checkpoint: first }), 409, 'CHECKPOINT_EXPIRED')
    expect((await phone.ask()).status).toBe(200)
    harness.setTime(new Date(begin + 70 * day))
    expectRefusal(await phone.ask(), 409, 'CHECKPOINT_EXPIRED')
    harness.setTime(null)
  })

  test('cover the collections of their pull', async () => {
    const { user, phone } = await device()
    await user.post(notes, { title: 'x' })
    phone.take(await phone.page({ collections: ['news'] }))
    expect(Object.keys((await phone.page({ collections: ['news'] })).changes)).toEqual(['news'])
    expect((await phone.page({ collections: ['news', 'notes'] })).changes['notes']?.created).toHaveLength(1)
  })

  test('come whole where sync was off, and not at all while it is', async () => {
    const things = await define(project, { name: 'things', columns })
    const { user, phone } = await device()
    const [row] = await insertAll(user, things, [{ title: 'x' }])
    await phone.pull()
    const sync = async (on: boolean) =>
      expect((await project.admin.patch('/collections/things', { sync: on })).data.sync).toBe(on)
    await sync(true)
    expect((await phone.page()).changes['things']?.created.map((each) => each.id)).toEqual([row.id])
    await phone.pull()
    await sync(false)
    const off = phone.take(await phone.page())
    expect(off.changes).not.toHaveProperty('things')
    phone.rows.delete(row.id)
    await user.patch(`${things}/${row.id}`, { title: 'y' })
    await sync(true)
    expect((await phone.page()).changes['things']?.created[0]).toMatchObject({ title: 'y' })
    await project.admin.delete('/collections/things?confirm=things')
    expect((await phone.page()).changes).not.toHaveProperty('things')
  })
})

describe('clients', () => {
  test('have a state', async () => {
    const { user, phone } = await device({ collections: ['notes'] })
    const status = (id: string = phone.client_id) => user.get(`/client/sync/status?client_id=${id}`)
    expectRefusal(await status(), 404, 'NOT_FOUND')
    expectRefusal(await status('x'), 400, 'INVALID_INPUT')
    await phone.push([put('notes', randomUUID(), { title: 'x' })])
    expect((await status()).data).toMatchObject({
      checkpoint: null,
      last_pull_at: null,
      pending_changes: expect.any(Number),
    })
    await phone.pull()
    expect((await status()).data).toMatchObject({ checkpoint: phone.checkpoint, pending_changes: 0 })
    await insertAll(user, notes, [{ title: 'a' }, { title: 'b' }])
    expect((await status()).data.pending_changes).toBe(2)
    expect((await user.post('/client/sync/reset', { client_id: phone.client_id })).data).toEqual({
      client_id: phone.client_id,
      reset: true,
    })
    expectRefusal(await status(), 404, 'NOT_FOUND')
    expectRefusal(await phone.ask(), 409, 'CHECKPOINT_EXPIRED')
    expect((await user.post('/client/sync/reset', { client_id: randomUUID() })).status).toBe(200)
  })

  test('are 20 for a user, and pull ten times a second', async () => {
    const user = await project.user()
    const now = Date.now()
    const clients: ReturnType<typeof deviceOf>[] = []
    for (let n = 0; n < 21; n += 1) {
      harness.setTime(new Date(now + n * 1000))
      const phone = deviceOf(project, user)
      await phone.pull()
      clients.push(phone)
    }
    expectRefusal(await clients[0]!.ask(), 409, 'CHECKPOINT_EXPIRED')
    expect((await clients[1]!.ask()).status).toBe(200)
    const pull = () => user.post('/client/sync/pull', { client_id: clients[2]!.client_id })
    for (let n = 0; n < 10; n += 1) expect((await pull()).status).toBe(200)
    expectRefusal(await pull(), 429, 'RATE_LIMITED')
    harness.setTime(new Date(now + 60_000))
    expect((await pull()).status).toBe(200)
    harness.setTime(null)
  })
})
