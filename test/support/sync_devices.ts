import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import type { Harness, Project } from '#test/support/harness.ts'
import { appOf, device, lossyNetwork, type Network, network } from '#test/support/sdk.ts'

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
    const store = device()
    for (const [key, value] of (phone.store as ReturnType<typeof device>).values) store.values.set(key, value)
    // an installation has an id of its own
    const tablet = appOf(harness, project, { net: net(), store })
    return { userId, apps: [phone.app, tablet.app] as const, phone, tablet }
  }
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
  return { project, devices, teamOf, stored, write, network, id: randomUUID }
}
