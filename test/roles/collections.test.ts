import { afterEach, describe, expect, test } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { type Client, startHarness, type User } from '#test/support/harness.ts'

/** Policies `role:<key>` of collections: who holds a role reads and writes, in the project or in a group. */
const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const [creator, editor, nobody] = (await Promise.all([project.user(), project.user(), project.user()])) as [
  ...[User, User, User],
]
await project.admin.post('/roles', { key: 'editor', name: 'Editor' })
const assign = async (user: User, more: object = {}) =>
  expect((await project.admin.post('/roles/editor/assignments', { app_user_id: user.id, ...more })).status).toBe(201)
const revoke = (user: User) => project.admin.delete(`/roles/editor/assignments/${user.id}`)

const columns = [{ name: 'body', type: 'text' }]
let made = 0
const collection = async (scope: string, read: string, write: string) => {
  made += 1
  return define(project, {
    name: `of_roles_${made}`,
    ...{ owner_scope: scope, read_policy: read, write_policy: write, columns },
  })
}
const reads = async (client: Client, at: string, id: string) => (await client.get(`${at}/${id}`)).status
const writes = async (client: Client, at: string, id: string) =>
  (await client.patch(`${at}/${id}`, { body: 'changed' })).status
const outcome = ({ status, error }: { status: number; error: { code: string } | undefined }) => [status, error?.code]

describe('a collection of users', () => {
  test('that a role writes is read by all, and written by who holds the role now', async () => {
    const at = await collection('user', 'public', 'role:editor')
    expect(outcome(await project.onBehalfOf(creator.id).post(at, { body: 'x' }))).toEqual([403, 'FORBIDDEN'])
    expect(outcome(await creator.post(at, { body: 'x' }))).toEqual([403, 'FORBIDDEN'])
    expect(outcome(await creator.post(`${at}/batch`, { rows: [{ body: 'x' }] }))).toEqual([403, 'FORBIDDEN'])
    const kept = await project.server.post(at, { user_id: creator.id, body: 'x' })
    const { id } = kept.data
    expect([await reads(nobody, at, id), await writes(creator, at, id), await writes(editor, at, id)]).toEqual([
      200, 404, 404,
    ])
    await assign(editor)
    expect([await writes(editor, at, id), (await editor.post(at, { body: 'mine' })).status]).toEqual([200, 201])
    // never in the name of another
    expect((await editor.get(`${at}?limit=10`)).data.map((one: { user_id: string }) => one.user_id).sort()).toEqual(
      [creator.id, editor.id].sort(),
    )
    await revoke(editor)
    expect(await writes(editor, at, id)).toBe(404)
    // held in a group, it opens no collection of users
    await assign(editor, { group_id: await group(project, [[editor, 'owner']]) })
    expect(await writes(editor, at, id)).toBe(404)
    await revoke(editor)
    await assign(editor, { expires_at: new Date(harness.now().getTime() + 60_000).toISOString() })
    expect(await writes(editor, at, id)).toBe(200)
    harness.advance(60)
    expect(await writes(editor, at, id)).toBe(404)
    harness.setTime(null)
    await revoke(editor)
  })

  test('that a role reads is read by who holds it, also in lists and counts', async () => {
    const at = await collection('user', 'role:editor', 'owner')
    const { id } = (await project.server.post(at, { user_id: creator.id, body: 'x' })).data
    const count = async (client: Client) => (await client.get(`${at}/count`)).data.count
    expect([await reads(editor, at, id), await count(editor), await reads(creator, at, id)]).toEqual([404, 0, 404])
    expect(outcome(await creator.post(at, { body: 'x' }))).toEqual([403, 'FORBIDDEN'])
    await assign(editor)
    expect([await reads(editor, at, id), await count(editor), await writes(editor, at, id)]).toEqual([200, 1, 404])
    // the default role is everybody's
    await project.admin.patch('/roles/editor', { is_default: true })
    expect([await reads(nobody, at, id), (await creator.post(at, { body: 'x' })).status]).toEqual([200, 201])
    await project.admin.patch('/roles/editor', { is_default: false })
    await revoke(editor)
  })
})

describe('a collection of groups', () => {
  test('asks for membership and for the role, in the project or in the group', async () => {
    const at = await collection('group', 'member', 'role:editor')
    const home = await group(project, [
      [creator, 'owner'],
      [editor, 'viewer'],
    ])
    const other = await group(project, [
      [creator, 'owner'],
      [editor, 'viewer'],
    ])
    const add = async (client: User, where: string) => outcome(await inGroup(client, where).post(at, { body: 'x' }))
    expect(await add(creator, home)).toEqual([403, 'GROUP_ROLE_FORBIDDEN'])
    expect(await add(nobody, home)).toEqual([403, 'NOT_A_GROUP_MEMBER'])
    await assign(editor, { group_id: home })
    expect([await add(editor, home), await add(editor, other)]).toEqual([
      [201, undefined],
      [403, 'GROUP_ROLE_FORBIDDEN'],
    ])
    await assign(editor)
    await assign(nobody)
    expect([await add(editor, other), await add(nobody, other)]).toEqual([
      [201, undefined],
      [403, 'NOT_A_GROUP_MEMBER'],
    ])
    const { id } = (await inGroup(creator, home).get(`${at}?limit=1`)).data[0]
    expect(outcome(await inGroup(creator, home).patch(`${at}/${id}`, { body: 'y' }))).toEqual([
      403,
      'GROUP_ROLE_FORBIDDEN',
    ])
    await revoke(editor)
    await revoke(nobody)
    const hidden = await collection('group', 'role:editor', 'role:editor')
    await assign(editor, { group_id: home })
    const held = (await inGroup(editor, home).post(hidden, { body: 'x' })).data.id
    expect([await reads(editor, hidden, held), await reads(creator, hidden, held)]).toEqual([200, 404])
    await revoke(editor)
    expect(await reads(editor, hidden, held)).toBe(404)
  })
})

test('a policy names a role that exists, and lets nobody in when it is deleted', async () => {
  const unknown = await project.admin.post('/collections', { name: 'unknown', read_policy: 'role:nothing', columns })
  expect([unknown.error?.code, unknown.error?.details.field]).toEqual(['VALIDATION_ERROR', 'read_policy'])
  for (const policy of ['role:', "role:x'; drop table app.roles; --", 'role:Editor']) {
    const answer = await project.admin.post('/collections', { name: 'unknown', write_policy: policy, columns })
    expect([answer.status, answer.error?.details.field], policy).toEqual([400, 'write_policy'])
  }
  await project.admin.post('/roles', { key: 'passing', name: 'Passing', is_default: true })
  const at = await collection('user', 'role:passing', 'owner')
  expect((await creator.post(at, { body: 'x' })).status).toBe(201)
  expect((await project.admin.delete('/roles/passing')).status).toBe(200)
  expect((await creator.get(`${at}/count`)).data.count).toBe(0)
  // the collection still changes otherwise
  const changed = await project.admin.patch(`/collections/${at.split('/').at(-1)}`, { description: 'kept' })
  expect(changed.status, changed.text).toBe(200)
})

test('conditions are asked once a statement', async () => {
  const name = (await collection('user', 'role:editor', 'role:editor')).split('/').at(-1)
  const rows = await project.sql(
    "select cmd, qual, with_check from pg_policies where schemaname = 'collections' and tablename = $1 and 'app_user' = any (roles)",
    [name],
  )
  expect(rows).toHaveLength(3)
  for (const { qual, with_check } of rows)
    expect(String(qual ?? with_check)).toMatch(/\( ?SELECT internal\.has_role\('editor'/)
})
