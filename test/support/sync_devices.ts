import { expect, onTestFinished } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import type { Harness, Project } from '#test/support/harness.ts'
import { appOf, device, lossyNetwork, type Network, type Setting } from '#test/support/sdk.ts'
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
    owner_scope: 'group',
    read_policy: 'member',
    write_policy: 'member:member',
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
