import { afterAll, expect } from 'vitest'
import { type Client, type Project, startHarness, type User } from '#test/support/harness.ts'

/** Makes a collection and says where its rows are reached. */
export const define = async (project: Project, definition: Record<string, unknown>): Promise<string> => {
  const made = await project.admin.post('/collections', definition)
  expect(made.error, JSON.stringify(definition)).toBeUndefined()
  return `/client/collections/${definition['name']}`
}

/** A harness, a project with two users, and a collection with columns of most types. */
export const startItems = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  const user = await project.user()
  const other = await project.user()
  afterAll(() => harness.setTime(null))
  const path = await define(project, {
    name: 'items',
    columns: [
      { name: 'name', type: 'text', nullable: false },
      { name: 'n', type: 'integer' },
      { name: 'big', type: 'bigint' },
      { name: 'price', type: 'numeric' },
      { name: 'ratio', type: 'double' },
      { name: 'tags', type: 'text[]' },
      { name: 'meta', type: 'jsonb' },
      { name: 'at', type: 'timestamptz' },
    ],
  })
  const make = async (row: object = {}) => (await user.post(path, { name: 'x', ...row })).data
  return { harness, project, user, other, path, make }
}

/** A private group, with members in their roles. */
export const group = async (
  project: Project,
  members: readonly (readonly [User, string])[],
  isPublic = false,
): Promise<string> => {
  const [{ id }] = (await project.sql(`insert into app.groups (name, is_public) values ('g', $1) returning id`, [
    isPublic,
  ])) as [{ id: string }]
  for (const [user, role] of members) {
    await project.sql('insert into app.group_members (group_id, app_user_id, role) values ($1, $2, $3)', [
      id,
      user.id,
      role,
    ])
  }
  return id
}

export const inGroup = (client: Client, id: string) => client.with({ 'x-group-context': id })

/** Inserts rows one after the other, so that their order in time is theirs, and answers them. */
export const insertAll = async (
  client: Client,
  path: string,
  rows: readonly object[],
  headers: Record<string, string> = {},
): Promise<any[]> => {
  const made = []
  for (const row of rows) {
    const answer = await client.post(path, row, headers)
    expect(answer.error, JSON.stringify(row)).toBeUndefined()
    made.push(answer.data)
  }
  return made
}
