import { expect, onTestFinished } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import type { Harness, Project } from '#test/support/harness.ts'
import { appOf, device, lossyNetwork, type Network, type Setting } from '#test/support/sdk.ts'
import { ofMembers } from '#test/support/sync.ts'
import {
  type App,
  createSync,
  memorySyncStore,
  type Row,
  type Store,
  type SyncOptions,
  type Verdict,
} from '../../sdk/src/index.ts'

export type Note = Row & { readonly title: string; readonly n: number; readonly group_id?: string }
export const pushRoute = 'POST /v1/client/sync/push'
export const pullRoute = 'POST /v1/client/sync/pull'

/** A sync that does nothing by itself while a test looks. */
export const syncOf = (app: App, options: SyncOptions = {}) => {
  const verdicts: Verdict[] = []
  const sync = createSync(app, {
    collections: ['notes', 'plans'],
    store: memorySyncStore(),
    delay: 3_600_000,
    every: 3_600_000,
    onVerdict: (verdict) => verdicts.push(verdict),
    ...options,
  })
  onTestFinished(() => sync.close())
  const notes = sync.collection<Note>('notes')
  const titles = async () => (await notes.rows()).map(({ title }) => title).sort()
  return { sync, notes, plans: sync.collection<Note>('plans'), verdicts, titles }
}

const copyOf = (store: Store): Store => {
  const copy = device()
  for (const [key, value] of (store as ReturnType<typeof device>).values) copy.values.set(key, value)
  return copy
}

/** Two synced collections, and devices with users: for the tests of libraries that sync with them. */
export const startNotes = async (harness: Harness) => {
  const project: Project = await harness.project()
  const columns = [
    { name: 'title', type: 'text', nullable: false },
    { name: 'n', type: 'integer', default: 7, max: 100 },
  ]
  await define(project, { name: 'notes', sync: true, columns })
  await define(project, {
    name: 'plans',
    sync: true,
    ...ofMembers,
    columns,
  })

  /** A phone and a tablet of one user, each with a network that loses every third answer, or with a whole one. */
  const devices = async (net: () => Network = lossyNetwork) => {
    const phone = appOf(harness, project, { net: net() })
    const { userId } = await phone.app.ensureSignedIn()
    // an installation has an id of its own
    const tablet = appOf(harness, project, { net: net(), store: copyOf(phone.store) })
    return { userId, apps: [phone.app, tablet.app] as const, phone, tablet }
  }
  /** A device whose user is signed in, with a sync. */
  const start = async (setting: Setting = {}, options: SyncOptions = {}) => {
    const made = appOf(harness, project, setting)
    const { userId } = await made.app.ensureSignedIn()
    return { ...made, userId, ...syncOf(made.app, options) }
  }
  /** A second device of the same user. */
  const another = (first: { readonly store: Store }, setting: Setting = {}, options: SyncOptions = {}) =>
    start({ store: copyOf(first.store), ...setting }, options)
  /** Somebody else, in a group with a plan. */
  const teamOf = async () => {
    const owner = await project.user()
    const team = await group(project, [[owner, 'owner']])
    const plan = await owner.with({ 'x-group-context': team }).post('/client/collections/plans', { title: 'plan' })
    expect(plan.status).toBe(201)
    return {
      team,
      plan: plan.data.id as string,
      owner,
      join: (userId: string) =>
        project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, [
          team,
          userId,
        ]),
      leave: (userId: string) =>
        project.sql('delete from app.group_members where group_id = $1 and app_user_id = $2', [team, userId]),
    }
  }
  const stored = async (id: string): Promise<{ title: string; n: number } | undefined> =>
    (await project.sql('select title, n from collections.notes where id = $1 and deleted_at is null', [id]))[0]
  /** What another program writes. */
  const write = (id: string, title: string) =>
    project.sql('update collections.notes set title = $2 where id = $1', [id, title])
  return { project, devices, start, another, teamOf, stored, write }
}

type Shown = { readonly id: string; readonly title?: string | undefined; readonly n?: number | undefined }
/** A device with another library, as its tests use it. */
export type LibraryDevice = {
  make(row: { title: string; n?: number }): Promise<string>
  set(id: string, changes: { n: number }): Promise<unknown>
  remove(id: string): Promise<unknown>
  sync(): Promise<unknown>
  /** By their ids. */
  notes(): Promise<Shown[]> | Shown[]
  plans(): Promise<object[]> | object[]
}
type Notes = Awaited<ReturnType<typeof startNotes>>

/** Two devices write, change and delete in turn, over whatever network they have, and are to have the same rows as the server. */
export const comeTogether = async (phone: LibraryDevice, tablet: LibraryDevice, { stored }: Notes): Promise<void> => {
  const both = [phone, tablet]
  const ids: string[] = []
  for (let round = 0; round < 5; round += 1) {
    for (const [n, one] of both.entries()) ids.push(await one.make({ title: `${round} of ${n}`, n }))
    if (round > 0) await tablet.set(ids[round * 2 - 1] as string, { n: 10 + round })
    for (const one of both) await one.sync()
  }
  await phone.remove(ids[0] as string)
  const early = await phone.make({ title: 'never sent' })
  await phone.remove(early)
  for (const one of [...both, ...both]) await one.sync()
  const rows = await phone.notes()
  expect(rows).toHaveLength(9)
  expect(await tablet.notes()).toEqual(rows)
  for (const { id, title, n } of rows) expect(await stored(id)).toEqual({ title, n })
  expect(await stored(early)).toBeUndefined()
}

/** A user joins a group, leaves it and joins it again, and the device is to follow. */
export const followGroup = async (phone: LibraryDevice, userId: string, { teamOf }: Notes): Promise<void> => {
  const { plan, join, leave } = await teamOf()
  await phone.sync()
  await join(userId)
  await phone.sync()
  expect(await phone.plans()).toMatchObject([{ id: plan, title: 'plan' }])
  await leave(userId)
  await phone.sync()
  expect(await phone.plans()).toEqual([])
  await join(userId)
  await phone.sync()
  expect(await phone.plans()).toMatchObject([{ id: plan }])
}
