import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, put } from '#test/support/sync.ts'
import { openTransaction } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.post('/roles', { key: 'editor', name: 'Editor' })
await project.admin.post('/roles', { key: 'helper', name: 'Helper' })
const columns = [{ name: 'title', type: 'text' }]
const notes = await define(project, { name: 'notes', sync: true, columns })
const ofGroups = { sync: true, owner_scope: 'group', write_policy: 'member:viewer', columns }
const plans = await define(project, { name: 'plans', read_policy: 'member:admin', ...ofGroups })
await define(project, { name: 'tips', read_policy: 'role:helper', ...ofGroups })
await define(project, { name: 'drafts', sync: true, read_policy: 'role:editor', columns })
afterEach(() => harness.setTime(null))

/** A device that has pulled everything, and asks again. */
const idleDevice = async () => {
  const user = await project.user()
  const phone = deviceOf(project, user)
  await phone.pull()
  const written = async () =>
    (await project.sql('select c.xmin::text from app.sync_checkpoints c where c.client_id = $1', [phone.client_id]))[0]
  return {
    user,
    phone,
    /** Pulls, expects nothing, and says whether the client was written. */
    async isIdle() {
      const before = await written()
      const { changes } = phone.take(await phone.page())
      expect(Object.values(changes).flatMap(Object.values).flat()).toEqual([])
      return (await written())?.['xmin'] === before?.['xmin']
    },
  }
}
const expectIdle = async ({ isIdle }: Awaited<ReturnType<typeof idleDevice>>) => expect(await isIdle()).toBe(true)

describe('a pull that finds nothing new', () => {
  test('answers as any other, with the checkpoint that it was asked with, and writes no client', async () => {
    const device = await idleDevice()
    const { phone } = device
    const checkpoint = phone.checkpoint
    await expectIdle(device)
    expect(await phone.page()).toEqual({
      changes: Object.fromEntries(
        ['drafts', 'notes', 'plans', 'tips'].map((name) => [name, { created: [], updated: [], deleted: [] }]),
      ),
      checkpoint,
      has_more: false,
      server_time: expect.stringMatching(/^\d{4}-.*Z$/),
      schema: expect.objectContaining({ notes: expect.any(Number) }),
    })
    const one = await phone.ask({ collections: ['notes'] })
    expect(Object.keys(one.data.changes)).toEqual(['notes'])
    expectRefusal(await phone.ask({ collections: ['notes', 'nothing'] }), 404, 'COLLECTION_NOT_FOUND')
  })

  test('keeps its time once a minute, and then takes the checkpoint past what concerns others', async () => {
    const device = await idleDevice()
    const { phone, user } = device
    const other = await project.user()
    await other.post(notes, { title: 'x' })
    const status = async () => (await user.get(`/client/sync/status?client_id=${phone.client_id}`)).data
    const { checkpoint, last_pull_at } = await status()
    await expectIdle(device)
    expect(await status()).toMatchObject({ checkpoint, last_pull_at })
    const later = Date.parse(last_pull_at) + 61_000
    harness.setTime(new Date(later))
    expect(await device.isIdle()).toBe(false)
    expect((await status()).last_pull_at).toBe(new Date(later).toISOString())
    expect(Number(phone.checkpoint)).toBeGreaterThan(Number(checkpoint))
    await expectIdle(device)
    // a clock that was set back
    harness.setTime(new Date(later - 1000))
    expect(await device.isIdle()).toBe(false)
  })

  test('from another checkpoint than the last, or of other collections, goes the whole way', async () => {
    const device = await idleDevice()
    const { phone, user } = device
    const first = phone.checkpoint
    await user.post(notes, { title: 'x' })
    await phone.pull()
    await expectIdle(device)
    phone.checkpoint = first
    phone.rows.clear()
    expect((await phone.pull()).created.length).toBe(1)
    await user.post(notes, { title: 'y' })
    await phone.pull({ collections: ['notes'] })
    expect((await phone.pull({ collections: ['drafts'] })).created).toEqual([])
    const whole = await phone.page()
    expect(whole.changes['notes']?.created.length).toBe(2)
  })

  test('in the middle of a pull is none', async () => {
    const { phone, user } = await idleDevice()
    for (const title of ['a', 'b', 'c']) await user.post(notes, { title })
    for (const more of [true, true, false]) {
      const pulled = phone.take(await phone.page({ limit: 1 }))
      expect([pulled.changes['notes']?.created.length, pulled.has_more]).toEqual([1, more])
    }
  })

  test('is none after a push, whose hint the next pull reaches, also of a push that was refused', async () => {
    const device = await idleDevice()
    const { phone } = device
    await expectIdle(device)
    const other = await project.user()
    for (const mutation of [put('notes', randomUUID(), { title: 'x' }), put('notes', randomUUID(), { no: 1 })]) {
      await other.post(notes, { title: 'y' })
      const { checkpoint_hint } = await phone.push([mutation])
      await phone.pull()
      expect(Number(phone.checkpoint)).toBeGreaterThanOrEqual(Number(checkpoint_hint))
    }
  })

  test('counts for the limit, also as the first of its user that is counted', async () => {
    const device = await idleDevice()
    const { phone, user } = device
    await project.sql('delete from app.rate_limits')
    await expectIdle(device)
    harness.setTime(new Date())
    const { client_id, checkpoint } = phone
    const ask = () => user.post('/client/sync/pull', { client_id, checkpoint })
    await project.sql('delete from app.rate_limits')
    for (let n = 0; n < 10; n += 1) expect((await ask()).status).toBe(200)
    expectRefusal(await ask(), 429, 'RATE_LIMITED')
    harness.setTime(new Date(Date.now() + 2000))
    for (let n = 0; n < 10; n += 1) expect((await ask()).status).toBe(200)
    expectRefusal(await ask(), 429, 'RATE_LIMITED')
  })
})

describe('what has its place', () => {
  const passed = async () => {
    const [found] = await project.sql<{ passed: boolean }>(
      `select s.pending_after = pg_sequence_last_value('app.sync_pending_changes_id_seq') as passed from app.sync_positions s`,
    )
    return found?.passed
  }

  test('is not looked through again, also of 5000 changes, but for an open transaction that has written', async () => {
    const { user, phone } = await idleDevice()
    const other = await project.user()
    const fill = (count: number) =>
      project.sql(`insert into collections.notes (user_id, title) select $1, 'x' from generate_series(1, ${count})`, [
        other.id,
      ])
    await fill(5000)
    await phone.pull()
    expect(await passed()).toBe(true)
    const late = await openTransaction(project, 'app_user', { 'app.user_id': user.id })
    await late.query(`insert into collections.notes (title) values ('late')`)
    await fill(1)
    await phone.pull()
    expect(await passed()).toBe(false)
    await late.commit()
    expect((await phone.pull()).created).toHaveLength(1)
    expect(await passed()).toBe(true)
    await project.sql('delete from collections.notes where user_id = $1', [other.id])
  })

  test('is looked for anew where a copy of the database has its numbers from an earlier time', async () => {
    const { user, phone } = await idleDevice()
    await project.sql(`update app.sync_positions set pending_after = 1000000`)
    const { data } = await user.post(notes, { title: 'passed over' })
    expect((await phone.pull()).created).toEqual([])
    await project.sql('select internal.purge__sync()')
    expect((await phone.pull()).created).toEqual([data.id])
  })
})

describe('after one that found nothing, what decides anew is noticed', () => {
  const owned = async (title: string) => {
    const owner = await project.user()
    const team = { id: await group(project, [[owner, 'owner']]) }
    const row = (await owner.post(plans, { title }, { 'X-Group-Context': team.id })).data
    return { owner, team, row }
  }

  test('a group that is joined, a rank that is given and taken, a group that is left', async () => {
    const device = await idleDevice()
    const { phone, user } = device
    const { team, row } = await owned('x')
    await expectIdle(device)
    const member = [team.id, user.id]
    await project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, member)
    expect((await phone.pull()).created).toEqual([])
    await expectIdle(device)
    const rank = (role: string) =>
      project.sql('update app.group_members set role = $3 where group_id = $1 and app_user_id = $2', [...member, role])
    await rank('admin')
    expect((await phone.pull()).created).toEqual([row.id])
    await expectIdle(device)
    await rank('member')
    expect((await phone.pull()).deleted).toEqual([row.id])
    await rank('admin')
    await phone.pull()
    await expectIdle(device)
    await project.sql('delete from app.group_members where group_id = $1 and app_user_id = $2', member)
    expect((await phone.pull()).deleted).toEqual([row.id])
  })

  test('a role in the project, and one in a group, given and at its end', async () => {
    const device = await idleDevice()
    const { phone, user } = device
    const { team } = await owned('x')
    const author = await project.user()
    const [draft] = await project.sql<{ id: string }>(
      `insert into collections.drafts (user_id, title) values ($1, 'd') returning id`,
      [author.id],
    )
    const [tip] = await project.sql<{ id: string }>(
      `insert into collections.tips (group_id, title) values ($1, 't') returning id`,
      [team.id],
    )
    await project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, [
      team.id,
      user.id,
    ])
    await phone.pull()
    await expectIdle(device)
    const now = Date.now()
    const until = { app_user_id: user.id, expires_at: new Date(now + 300_000).toISOString() }
    await project.admin.post('/roles/editor/assignments', until)
    expect((await phone.pull()).created).toEqual([draft?.id])
    await expectIdle(device)
    await project.admin.post('/roles/helper/assignments', { ...until, group_id: team.id })
    expect((await phone.pull()).created).toEqual([tip?.id])
    await expectIdle(device)
    harness.setTime(new Date(now + 301_000))
    expect((await phone.pull()).deleted.sort()).toEqual([draft?.id, tip?.id].sort())
    await expectIdle(device)
  })

  test('a policy, a collection that is new, and one whose sync was off', async () => {
    const device = await idleDevice()
    const { phone } = device
    const other = await project.user()
    const row = (await other.post(notes, { title: 'of another' })).data
    await phone.pull()
    await expectIdle(device)
    await project.admin.patch('/collections/notes', { read_policy: 'public' })
    expect((await phone.pull()).created).toContain(row.id)
    await expectIdle(device)
    await other.patch(`${notes}/${row.id}`, { title: 'again' })
    expect((await phone.pull()).updated).toEqual([row.id])
    await project.admin.patch('/collections/notes', { read_policy: 'owner' })
    expect((await phone.pull()).deleted).toContain(row.id)
    await expectIdle(device)
    await define(project, { name: 'extras', sync: true, read_policy: 'public', columns })
    expect((await phone.page()).changes).toHaveProperty('extras')
    await phone.pull()
    await expectIdle(device)
    await project.admin.patch('/collections/extras', { sync: false })
    expect((await phone.page()).changes).not.toHaveProperty('extras')
  })
})
