import { describe, expect, test } from 'vitest'
import type { Role } from '#server/database/cluster.ts'
import { startCollections } from '#test/support/definitions.ts'
import type { User } from '#test/support/harness.ts'

const { project, define, tried, insert } = await startCollections()

/** Who calls: an end user in each relation to the row, and each other role of the database. */
const callers = [
  'creator',
  'owner',
  'admin',
  'member',
  'viewer',
  'stranger',
  'former',
  'nobody',
  'anonymous',
  'server',
  'developer',
  'dashboard',
  'sign-in',
] as const
type Caller = (typeof callers)[number]
const users = Object.fromEntries(
  await Promise.all(
    ['creator', 'owner', 'admin', 'member', 'viewer', 'stranger', 'former'].map(async (name) => [
      name,
      await project.user(),
    ]),
  ),
) as Record<string, User>
const roleOf = (caller: Caller): [Role, string | undefined] =>
  caller === 'anonymous'
    ? ['app_anon', undefined]
    : caller === 'server'
      ? ['app_server', undefined]
      : caller === 'developer'
        ? ['app_admin', undefined]
        : caller === 'dashboard'
          ? ['app_dashboard', undefined]
          : caller === 'sign-in'
            ? ['app_auth', undefined]
            : ['app_user', users[caller]?.id]

const made = await (users['owner'] as User).post('/client/groups', { name: 'private', is_public: false })
const groupId: string = made.data.id
for (const [name, role] of [
  ['creator', 'member'],
  ['admin', 'admin'],
  ['member', 'member'],
  ['viewer', 'viewer'],
  ['former', 'member'],
] as const)
  await project.admin.post(`/groups/${groupId}/members`, { app_user_id: users[name]?.id, role })
await (users['former'] as User).post(`/client/groups/${groupId}/leave`)
const strangers = await (users['stranger'] as User).post('/client/groups', {
  name: 'of the stranger',
  is_public: false,
})
const otherGroupId: string = strangers.data.id

const ranks = { owner: 4, admin: 3, member: 2, viewer: 1 }
/** The rank of each caller in the group. The creator of the rows is an ordinary member. */
const rankOf = (caller: Caller) => (({ ...ranks, creator: 2 }) as Record<string, number>)[caller] ?? 0
const isUser = (caller: Caller) => caller in users
/** A policy that lets everybody is constant, so that indexes serve it: it does not ask for a user. No request comes without one. */
const isAnyone = (caller: Caller) => isUser(caller) || caller === 'nobody'
const all = (caller: Caller) => caller === 'server' || caller === 'developer'
const atLeast = (caller: Caller, policy: string) =>
  rankOf(caller) >= ranks[(policy.split(':')[1] ?? 'viewer') as keyof typeof ranks]

/** What the documents say, in words of their own: not the policies' text. */
const may = {
  user: {
    read: (caller: Caller, read: string) =>
      all(caller) || (isAnyone(caller) && (read === 'public' || caller === 'creator')),
    change: (caller: Caller, write: string) =>
      all(caller) || (isAnyone(caller) && (write === 'authenticated' || caller === 'creator')),
    add: (caller: Caller) => isUser(caller),
  },
  group: {
    read: (caller: Caller, read: string) =>
      all(caller) ||
      (isAnyone(caller) && (read === 'public' || (read === 'owner' ? caller === 'creator' : atLeast(caller, read)))),
    change: (caller: Caller, write: string) =>
      all(caller) || (isUser(caller) && (write === 'owner' ? caller === 'creator' : atLeast(caller, write))),
    add: (caller: Caller, write: string) =>
      isUser(caller) && (write === 'owner' ? rankOf(caller) >= 2 : atLeast(caller, write)),
  },
}

const pairs = [
  ...['owner', 'public'].flatMap((read) => ['owner', 'authenticated'].map((write) => ['user', read, write] as const)),
  ...['owner', 'public', 'member', 'member:admin'].flatMap((read) =>
    ['owner', 'member:admin', 'member:member', 'member:viewer'].map((write) => ['group', read, write] as const),
  ),
  ['group', 'member:owner', 'member:owner'] as const,
]

describe.each(pairs)('%s collections, read %s, write %s', (scope, read, write) => {
  test.each(['live', 'deleted'])(
    'each caller, each command, a %s row',
    async (state) => {
      const name = await define({
        owner_scope: scope,
        read_policy: read,
        write_policy: write,
        columns: [{ name: 'a', type: 'text' }],
      })
      const group = scope === 'group' ? { group_id: groupId } : {}
      const row = await insert(name, { ...group, a: 'first' }, users['creator'])
      if (state === 'deleted') await project.sql(`update collections.${name} set deleted_at = now()`)
      const rules = may[scope]
      for (const caller of callers) {
        const [role, userId] = roleOf(caller)
        const label = `${caller}`
        // dashboards read what the developer reads
        const canRead = caller === 'dashboard' || rules.read(caller, read)
        const canChange = canRead && rules.change(caller, write)
        const reaches = role === 'app_user' || all(caller)
        const count = (answer: unknown) => (Array.isArray(answer) ? answer.length : answer)
        const expected = (allowed: boolean) => (reaches ? (allowed ? 1 : 0) : '42501')

        expect(count(await tried(role, userId, `select id from collections.${name}`)), `${label} reads`).toBe(
          caller === 'dashboard'
            ? 1
            : caller === 'anonymous' && read === 'public'
              ? // without a session: what is not deleted
                Number(state === 'live')
              : expected(canRead),
        )
        expect(
          count(
            await tried(role, userId, `update collections.${name} set a = 'changed' where id = $1 returning id`, [
              row.id,
            ]),
          ),
          `${label} changes`,
        ).toBe(expected(canChange))
        // without a condition and without an answer, PostgreSQL asks the read policy nothing
        await tried(role, userId, `update collections.${name} set a = $1`, [`by ${caller}`])
        const [kept] = await project.sql(`select a = $2 as is_changed from collections.${name} where id = $1`, [
          row.id,
          `by ${caller}`,
        ])
        expect(kept.is_changed, `${label} changes blindly`).toBe(canChange)
        const deletes = `update collections.${name} set deleted_at = ${state === 'live' ? 'now()' : 'null'} where id = $1 returning id`
        expect(count(await tried(role, userId, deletes, [row.id])), `${label} deletes or restores`).toBe(
          expected(canChange),
        )
        await project.sql(`update collections.${name} set deleted_at = ${state === 'live' ? 'null' : 'now()'}`)

        // hard deletion is the developer's alone
        const gone = await tried(
          role,
          userId,
          `with gone as (delete from collections.${name} where a = 'nothing' returning id) select count(*) from gone`,
        )
        expect(Array.isArray(gone), `${label} deletes for good`).toBe(caller === 'developer')

        const adding = (of: string | null) =>
          scope === 'group'
            ? tried(role, userId, `insert into collections.${name} (a, group_id) values ('new', $1)`, [of])
            : tried(role, userId, `insert into collections.${name} (a) values ('new')`)
        const added = await adding(groupId)
        if (isAnyone(caller)) expect(Array.isArray(added), `${label} adds`).toBe(rules.add(caller, write))
        // a row of a group may be nobody's, one of a user never
        else expect(added, `${label} adds`).toEqual(!all(caller) ? '42501' : scope === 'user' ? '23502' : [])
        if (scope === 'group' && isUser(caller) && caller !== 'stranger')
          expect(await adding(otherGroupId), `${label} adds to another group`).toBe('42501')
        await project.sql(`delete from collections.${name} where id <> $1`, [row.id])
      }
    },
    120_000,
  )
})

describe('server-managed columns', () => {
  test.each([
    [
      'user',
      ['id', 'user_id', 'created_at', 'updated_at', 'deleted_at'],
      ['id', 'user_id', 'created_at', 'updated_at'],
    ],
    [
      'group',
      ['id', 'user_id', 'created_at', 'updated_at', 'deleted_at'],
      ['id', 'user_id', 'group_id', 'created_at', 'updated_at'],
    ],
  ])('a %s collection: no user writes them', async (scope, atInsert, atUpdate) => {
    const name = await define({ owner_scope: scope, columns: [{ name: 'a', type: 'text' }] })
    const group = scope === 'group' ? { group_id: groupId } : {}
    const creator = users['creator'] as User
    await insert(name, { ...group, a: 'x' }, creator)
    const value = (column: string) =>
      column.endsWith('_at') ? '2020-01-01T00:00:00Z' : column === 'group_id' ? otherGroupId : creator.id
    for (const column of atInsert) {
      const sql =
        scope === 'group'
          ? `insert into collections.${name} (group_id, ${column}) values ('${groupId}', $1)`
          : `insert into collections.${name} (${column}) values ($1)`
      expect(await tried('app_user', creator.id, sql, [value(column)]), `insert ${column}`).toBe('42501')
    }
    for (const column of atUpdate)
      expect(
        await tried('app_user', creator.id, `update collections.${name} set ${column} = $1`, [value(column)]),
        `update ${column}`,
      ).toBe('42501')
    // what upserts may set is what updates may
    if (scope === 'user')
      expect(
        await tried(
          'app_user',
          creator.id,
          `insert into collections.${name} (a) values ('y') on conflict (id) do update set user_id = null`,
        ),
      ).toBe('42501')
    for (const sql of [
      `truncate collections.${name}`,
      `drop table collections.${name}`,
      `alter table collections.${name} disable row level security`,
      `create table collections.mine (id int)`,
      `create policy p on collections.${name} using (true)`,
    ])
      for (const role of ['app_user', 'app_server', 'app_admin'] as const)
        expect(await tried(role, creator.id, sql), `${role} ${sql}`).toBe('42501')
  })

  test("no user reaches the catalog's rows or its makers", async () => {
    const user = users['creator'] as User
    expect(await tried('app_user', user.id, 'select name from app.collections limit 1')).toHaveLength(1)
    for (const sql of [
      `update app.collections set read_policy = 'public'`,
      `delete from app.collection_columns`,
      `insert into app.collections (name, generator) values ('x', 1)`,
    ])
      for (const role of ['app_user', 'app_server', 'app_admin', 'app_worker'] as const)
        expect(await tried(role, user.id, sql)).toBe('42501')
    for (const call of [
      `internal.collection_create('{"name": "x"}', false)`,
      `internal.collection_execute(array['select 1'])`,
      `internal.collections_regenerate(1)`,
      `api.collection_drop('x', 'x', false)`,
      `internal.collection_changed(null)`,
    ])
      for (const role of ['app_user', 'app_server', 'app_worker'] as const)
        expect(await tried(role, user.id, `select ${call}`), `${role} ${call}`).toBe('42501')
    // the right role without a developer behind it
    expect(await tried('app_admin', undefined, `select internal.collection_create('{"name": "x"}', false)`)).toBe(
      'P0001',
    )
  })
})
