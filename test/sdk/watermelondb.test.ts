import { randomUUID } from 'node:crypto'
import { appSchema, Database, Model, tableSchema } from '@nozbe/watermelondb'
import LokiJSAdapter from '@nozbe/watermelondb/adapters/lokijs/index.js'
import { synchronize } from '@nozbe/watermelondb/sync/index.js'
import { setGenerator } from '@nozbe/watermelondb/utils/common/randomId/index.js'
import { beforeEach, expect, test, vi } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { network } from '#test/support/sdk.ts'
import { comeTogether, followGroup, type LibraryDevice, startNotes } from '#test/support/sync_devices.ts'
import type { App, Refusal } from '../../sdk/src/index.ts'
import { type WatermelonOptions, watermelonSync } from '../../sdk/src/watermelondb.ts'

/** WatermelonDB, as it is published, against the server. */
const harness = await startHarness()
const all = await startNotes(harness)
const { project, devices, teamOf, stored, write } = all
setGenerator(() => randomUUID())
// it tells how its database is set up
vi.spyOn(console, 'log').mockImplementation(() => undefined)
const errors = vi.spyOn(console, 'error')
beforeEach(() => errors.mockClear())

const columns = [
  { name: 'title', type: 'string', isOptional: true },
  { name: 'n', type: 'number', isOptional: true },
  { name: 'created_at', type: 'number' },
  { name: 'updated_at', type: 'number' },
] as const
const schema = appSchema({
  version: 1,
  tables: [
    tableSchema({ name: 'notes', columns: [...columns] }),
    tableSchema({ name: 'plans', columns: [...columns, { name: 'group_id', type: 'string' }] }),
  ],
})
class Note extends Model {
  static override readonly table = 'notes'
}
class Plan extends Model {
  static override readonly table = 'plans'
}

const open = (app: App, options: WatermelonOptions = {}) => {
  const Adapter = ((LokiJSAdapter as any).default ?? LokiJSAdapter) as new (options: object) => any
  const adapter = new Adapter({ dbName: randomUUID(), schema, useWebWorker: false, useIncrementalIndexedDB: true })
  const database = new Database({ adapter, modelClasses: [Note, Plan] })
  const refusals: Refusal[] = []
  const args = watermelonSync(app, { onRejected: (refusal) => refusals.push(refusal), ...options })
  const get = (table: string) => database.get<Model>(table)
  return {
    refusals,
    sync: () => synchronize({ database, ...args }),
    make: (values: Record<string, unknown>, table = 'notes') =>
      database.write(async () => {
        const made = await get(table).create((row) => {
          for (const [name, value] of Object.entries(values)) row._setRaw(name, value as never)
        })
        return made.id
      }),
    set: (id: string, values: Record<string, unknown>) =>
      database.write(async () => {
        const row = await get('notes').find(id)
        await row.update(() => {
          for (const [name, value] of Object.entries(values)) row._setRaw(name, value as never)
        })
      }),
    remove: (id: string, table = 'notes') => database.write(async () => (await get(table).find(id)).markAsDeleted()),
    rows: async (table = 'notes'): Promise<any[]> =>
      (await get(table).query().fetch()).map(({ _raw }) => ({ ..._raw })).sort((a, b) => (a.id < b.id ? -1 : 1)),
  }
}
const shown = (rows: any[]) => rows.map(({ id, title, n }) => ({ id, title, n }))

type Opened = ReturnType<typeof open>
const ofLibrary = (one: Opened): LibraryDevice => ({
  ...one,
  sync: () => one.sync().catch(() => one.sync()),
  notes: async () => shown(await one.rows()),
  plans: () => one.rows('plans'),
})

test('two devices come together over a network that loses every third answer', async () => {
  const [phone, tablet] = (await devices()).apps.map((app) => open(app)) as [Opened, Opened]
  await comeTogether(ofLibrary(phone), ofLibrary(tablet), all)
  expect([...phone.refusals, ...tablet.refusals]).toEqual([])
  expect(errors.mock.calls).toEqual([])
})

test('columns of both sides are kept, and dates are numbers', async () => {
  const { apps } = await devices(network)
  const [phone, tablet] = apps.map((app) => open(app)) as [ReturnType<typeof open>, ReturnType<typeof open>]
  const id = await phone.make({ title: 'a', n: 1 })
  await phone.sync()
  await tablet.sync()
  await phone.set(id, { title: 'phone' })
  await tablet.set(id, { n: 2 })
  await phone.sync()
  await tablet.sync()
  await phone.sync()
  expect(shown(await phone.rows())).toEqual([{ id, title: 'phone', n: 2 }])
  expect(await stored(id)).toEqual({ title: 'phone', n: 2 })
  expect((await phone.rows())[0].updated_at).toBeGreaterThan(Date.now() - 600_000)
  expect(errors.mock.calls).toEqual([])
})

test('what is written to a new row after a push without answer is kept', async () => {
  const { phone: made } = await devices(network)
  const phone = open(made.app)
  const id = await phone.make({ title: 'a' })
  made.net.losing.push(...Array.from({ length: 4 }, () => 'POST /v1/client/sync/push'))
  await expect(phone.sync()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  await phone.set(id, { title: 'b' })
  await phone.sync()
  expect(shown(await phone.rows())).toMatchObject([{ title: 'b' }])
  expect(await stored(id)).toMatchObject({ title: 'b' })
})

test('a refused write is taken back at the next sync, and told', async () => {
  const { apps } = await devices(network)
  const phone = open(apps[0])
  const id = await phone.make({ title: 'a', n: 1 })
  await phone.sync()
  const bad = await phone.make({ n: 1 })
  await phone.set(id, { n: 101 })
  await phone.sync()
  expect(phone.refusals.map(({ code }) => code)).toContain('NOT_NULL_VIOLATION')
  expect(phone.refusals).toHaveLength(2)
  await phone.sync()
  expect(shown(await phone.rows())).toEqual([{ id, title: 'a', n: 1 }])
  // once: what the server writes later is not undone
  await write(id, 'later')
  await phone.sync()
  await phone.sync()
  expect(shown(await phone.rows())).toEqual([{ id, title: 'later', n: 1 }])
  expect(await stored(bad)).toBeUndefined()
  expect(errors.mock.calls).toEqual([])
})

test('a transaction is rolled back as a whole', async () => {
  const { apps } = await devices(network)
  const phone = open(apps[0], { tx: (_, { n }) => (Number(n) > 50 ? 'order' : undefined) })
  const alone = await phone.make({ title: 'alone' })
  const good = await phone.make({ title: 'good', n: 51 })
  await phone.make({ n: 52 })
  await phone.sync()
  expect(phone.refusals.map(({ code }) => code).sort()).toEqual(['NOT_NULL_VIOLATION', 'TRANSACTION_ROLLED_BACK'])
  await phone.sync()
  expect(shown(await phone.rows())).toMatchObject([{ id: alone }])
  expect(await stored(good)).toBeUndefined()
})

test('a deletion that the server refuses is undone', async () => {
  const { team, plan, join } = await teamOf()
  const { apps, userId } = await devices(network)
  await join(userId)
  await project.sql(`update app.group_members set role = 'viewer' where group_id = $1 and app_user_id = $2`, [
    team,
    userId,
  ])
  const phone = open(apps[0])
  await phone.sync()
  await phone.remove(plan, 'plans')
  await phone.sync()
  expect(phone.refusals).toMatchObject([{ code: 'GROUP_ROLE_FORBIDDEN', row: { title: 'plan' } }])
  expect(await phone.rows('plans')).toEqual([])
  await phone.sync()
  expect(await phone.rows('plans')).toMatchObject([{ id: plan, title: 'plan' }])
})

test('rows of a group go and come with the membership', async () => {
  const { apps, userId } = await devices()
  await followGroup(ofLibrary(open(apps[0])), userId, all)
  expect(errors.mock.calls).toEqual([])
})

test('after a checkpoint that has expired everything comes again, and what was not pushed is kept', async () => {
  const { apps } = await devices(network)
  const phone = open(apps[0])
  const [kept, gone] = [await phone.make({ title: 'kept', n: 1 }), await phone.make({ title: 'gone' })]
  await phone.sync()
  await project.sql('update collections.notes set deleted_at = now() where id = $1', [gone])
  await project.sql('delete from app.sync_checkpoints')
  await phone.set(kept, { n: 3 })
  const fresh = await phone.make({ title: 'new', n: 4 })
  await phone.sync()
  const rows = [
    { id: kept, title: 'kept', n: 3 },
    { id: fresh, title: 'new', n: 4 },
  ]
  expect(shown(await phone.rows())).toEqual(rows.sort((a, b) => (a.id < b.id ? -1 : 1)))
  expect(await stored(kept)).toMatchObject({ n: 3 })
  expect(errors.mock.calls).toEqual([])
})

test('a database is of one user', async () => {
  const { phone: made } = await devices(network)
  const phone = open(made.app)
  await phone.make({ title: 'of the first' })
  await phone.sync()
  await made.app.signOut()
  await made.app.ensureSignedIn()
  await phone.make({ title: 'of whom' })
  await expect(phone.sync()).rejects.toMatchObject({ code: 'ABORTED' })
})
