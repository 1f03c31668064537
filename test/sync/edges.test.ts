import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { define, group, inGroup, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, patch, put } from '#test/support/sync.ts'
import { openTransaction } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const columns = [{ name: 'title', type: 'text' }]
const notes = await define(project, { name: 'notes', sync: true, columns })
const plans = await define(project, {
  name: 'plans',
  sync: true,
  owner_scope: 'group',
  read_policy: 'member:admin',
  write_policy: 'member:member',
  columns,
})
const shares = await define(project, { name: 'shares', sync: true, owner_scope: 'group', columns })
const device = async (collections = ['notes']) => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user, { collections }) }
}

describe('administrators see', () => {
  test('clients, last used first, and those of a user', async () => {
    const { user, phone } = await device()
    const now = Date.now()
    harness.setTime(new Date(now + 60_000))
    await phone.pull()
    harness.setTime(new Date(now + 120_000))
    const tablet = deviceOf(project, user)
    await tablet.push([put('notes', randomUUID(), { title: 'x' })])
    const list = async (query = '') => (await project.admin.get(`/sync/clients${query}`)).data
    const [first, second] = await list()
    expect(first).toEqual({
      user_id: user.id,
      client_id: tablet.client_id,
      checkpoint: null,
      last_pull_at: null,
      last_push_at: new Date(now + 120_000).toISOString(),
      created_at: new Date(now + 120_000).toISOString(),
    })
    expect(second).toMatchObject({ client_id: phone.client_id, checkpoint: phone.checkpoint, last_push_at: null })
    await (await device()).phone.pull()
    expect(await list(`?user_id=${user.id}`)).toHaveLength(2)
    expect(await list('?limit=1&offset=1')).toEqual([expect.anything()])
    expectRefusal(await project.admin.get('/sync/clients?user_id=x'), 400, 'INVALID_INPUT')
    const stranger = await harness.developer()
    expectRefusal(await stranger.get(`/admin/projects/${project.id}/sync/clients`), 403, 'PROJECT_FORBIDDEN')
  })

  test('the log, what holds it back, and rejections of a day', async () => {
    const other = await harness.project()
    await define(other, { name: 'notes', sync: true, columns })
    const stats = async () => (await other.admin.get('/sync/stats')).data
    expect(await stats()).toEqual({ change_log_rows: 0, oldest: null, lag_seconds: 0, rejected_24h: {} })
    const user = await other.user()
    const phone = deviceOf(other, user)
    await phone.push([
      put('notes', randomUUID(), { title: 'x' }),
      put('notes', randomUUID(), { nope: 1 }),
      put('notes', randomUUID(), { nope: 1 }),
      patch('notes', randomUUID(), {}),
    ])
    expect(await stats()).toMatchObject({
      change_log_rows: 1,
      oldest: expect.any(String),
      lag_seconds: 0,
      rejected_24h: { INVALID_COLUMN: 2, NOT_FOUND: 1 },
    })
    const began = new Date(Date.now() - 300_000).toISOString()
    const open = await openTransaction(other, 'app_user', { 'app.user_id': user.id, 'app.clock': began })
    await open.query(`insert into collections.notes (title) values ('late')`)
    expect((await stats()).lag_seconds).toBeGreaterThanOrEqual(299)
    await open.commit()
    expect((await stats()).lag_seconds).toBe(0)
    await other.sql(`update app.sync_mutations set at = at - interval '25 hours'`)
    expect((await stats()).rejected_24h).toEqual({})
  })
})

describe('a user', () => {
  test('has clients in the export, which a reset forgets', async () => {
    const { user, phone } = await device()
    await phone.pull()
    const lines = (await project.admin.get(`/users/${user.id}/export`)).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { section: string; data: any })
    const exported = lines.filter(({ section }) => section === 'sync_checkpoints')
    expect(exported).toHaveLength(1)
    expect(exported[0]?.data.client_id).toBe(phone.client_id)
    expect(exported[0]?.data).not.toHaveProperty('seed')
    const reset = await project.admin.delete(`/users/${user.id}/reset?sections=sync`)
    expect(reset.data.rows_deleted).toEqual({ sync: 1 })
    expectRefusal(await phone.ask(), 409, 'CHECKPOINT_EXPIRED')
  })

  test('who is deleted leaves no client, and devices of others lose the rows', async () => {
    const { user, phone } = await device(['shares'])
    const { user: friend, phone: theirs } = await device(['shares'])
    const team = await group(project, [
      [user, 'owner'],
      [friend, 'admin'],
    ])
    await insertAll(inGroup(user, team), shares, [{ title: 'x' }])
    await insertAll(inGroup(friend, team), shares, [{ title: 'y' }])
    expect((await phone.pull()).created).toHaveLength(1)
    expect((await theirs.pull()).created).toHaveLength(1)
    await project.sql('delete from app.users where id = $1', [user.id])
    const left = await project.sql('select from app.sync_checkpoints where app_user_id = $1', [user.id])
    expect(left).toEqual([])
    expect(await theirs.pull()).toMatchObject({ created: [], deleted: [] })
  })
})

describe('two users who become one', () => {
  test('have the rows of both, and what was pushed before stays applied once', async () => {
    const [survivor, other] = [await device(), await device()]
    const mutation = { id: randomUUID(), ...put('notes', randomUUID(), { title: 'x' }) }
    await other.phone.push([mutation])
    await survivor.phone.pull()
    await project.sql(
      `begin; set local app.caller = 'user'; set local app.user_id = '${survivor.user.id}';
       select internal.users_merge('${survivor.user.id}', '${other.user.id}'); commit`,
    )
    expect((await survivor.phone.pull()).created).toEqual([mutation.row_id])
    const { client_id } = other.phone
    const again = { client_id, mutations: [{ ...mutation, data: { title: 'y' } }] }
    const { results } = (await survivor.user.post('/client/sync/push', again)).data
    expect(results[0]).toMatchObject({ status: 'duplicate', first_status: 'applied' })
    expect(await project.sql('select from app.sync_checkpoints where app_user_id = $1', [other.user.id])).toEqual([])
  })
})

describe('what decides', () => {
  test('is the rank in a group too, and whose row it is', async () => {
    const { user, phone } = await device(['plans', 'shares'])
    const author = await project.user()
    const team = await group(project, [
      [user, 'member'],
      [author, 'owner'],
    ])
    await insertAll(inGroup(author, team), plans, [{ title: 'a' }])
    await insertAll(inGroup(author, team), shares, [{ title: 'theirs' }])
    const [own] = await insertAll(inGroup(user, team), shares, [{ title: 'own' }])
    expect((await phone.pull()).created).toEqual([own.id])
    const rank = (role: string) =>
      project.sql('update app.group_members set role = $3 where group_id = $1 and app_user_id = $2', [
        team,
        user.id,
        role,
      ])
    await rank('admin')
    expect((await phone.pull()).created).toHaveLength(1)
    await rank('viewer')
    expect((await phone.pull()).deleted).toHaveLength(1)
    // a row that goes to another author in the group
    await project.sql('update collections.shares set user_id = $2 where id = $1', [own.id, author.id])
    expect((await phone.pull()).deleted).toEqual([own.id])
  })

  test('is asked again for a row that the caller pushed and cannot read', async () => {
    const { user, phone } = await device(['plans'])
    const team = await group(project, [[user, 'member']])
    await phone.pull()
    const { results } = await phone.push([put('plans', randomUUID(), { title: 'x', group_id: team })])
    expect(results[0].status).toBe('rejected')
    expect((await phone.pull()).created).toEqual([])
  })
})

describe('the log', () => {
  test('is kept for a month, and what is older is refused', async () => {
    const { user, phone } = await device()
    const behalf = deviceOf(project, project.onBehalfOf(user.id), { collections: ['notes'] })
    await behalf.pull()
    const old = behalf.checkpoint
    await user.post(notes, { title: 'x' })
    await behalf.pull()
    await phone.pull()
    await project.sql(`update app.sync_times set at = at - interval '40 days'`)
    await project.sql(`update app.sync_checkpoints set last_pull_at = last_pull_at - interval '40 days',
                         used_at = used_at - interval '40 days' where client_id = '${phone.client_id}'`)
    await user.post(notes, { title: 'y' })
    await behalf.pull()
    await project.sql('select internal.purge__sync()')
    const places = await project.sql(
      `select min(place) > (select floor from app.sync_positions) as fine from app.sync_changes`,
    )
    expect(places).toEqual([{ fine: true }])
    expectRefusal(await behalf.ask({ checkpoint: old }), 409, 'CHECKPOINT_EXPIRED')
    expect((await behalf.ask()).status).toBe(200)
    expect(await project.sql(`select from app.sync_checkpoints where client_id = '${phone.client_id}'`)).toEqual([])
  })

  test('has rows of a large change, in pages', async () => {
    const { user, phone } = await device()
    await phone.pull()
    await project.sql(
      `insert into collections.notes (user_id, title) select '${user.id}', n::text from generate_series(1, 6001) n`,
    )
    const first = await phone.page({ limit: 9999 })
    expect(first.changes['notes']?.created).toHaveLength(5000)
    phone.take(first)
    expect((await phone.pull()).created).toHaveLength(1001)
    const again = deviceOf(project, user, { collections: ['notes'] })
    expect((await again.pull({ limit: 5000 })).pages).toBe(2)
    expect(again.rows.size).toBe(6001)
  })

  test('gives a page of more than 8 MB in parts', async () => {
    const { user, phone } = await device()
    await project.sql(
      `insert into collections.notes (user_id, title) select '${user.id}', repeat('x', 100000) from generate_series(1, 300) n`,
    )
    const { created, pages } = await phone.pull()
    expect(pages).toBeGreaterThan(1)
    expect(created).toHaveLength(300)
  })
})

describe('the digits of a checkpoint', () => {
  test('go on where a place has none left', async () => {
    const { user, phone } = await device()
    await insertAll(
      user,
      notes,
      Array.from({ length: 4 }, () => ({ title: 'x' })),
    )
    phone.take(await phone.page({ limit: 1 }))
    await project.sql(
      `update app.sync_steps s set number = (select place * 10000 + 9998 from app.sync_positions)
         from app.sync_checkpoints c where c.id = s.checkpoint_id and c.client_id = '${phone.client_id}'`,
    )
    await project.sql(
      `update app.sync_views v set since = (select place * 10000 + 9998 from app.sync_positions)
         from app.sync_checkpoints c where c.id = v.checkpoint_id and c.client_id = '${phone.client_id}'`,
    )
    const [{ checkpoint }] = (await project.sql(
      `update app.sync_checkpoints set checkpoint = (select place * 10000 + 9998 from app.sync_positions), first_checkpoint = 1
        where client_id = '${phone.client_id}' returning checkpoint::text`,
    )) as [{ checkpoint: string }]
    phone.checkpoint = checkpoint
    let last = Number(checkpoint)
    for (;;) {
      const pulled = phone.take(await phone.page({ limit: 1 }))
      expect(Number(pulled.checkpoint)).toBeGreaterThan(last)
      last = Number(pulled.checkpoint)
      if (!pulled.has_more) break
    }
    expect(phone.rows.size).toBe(4)
    await user.post(notes, { title: 'y' })
    const next = phone.take(await phone.page())
    expect(Number(next.checkpoint)).toBeGreaterThan(last)
    expect(phone.rows.size).toBe(5)
  })
})
