import { createClient } from '@supabase/supabase-js'
import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'
import type { User } from '#test/support/harness.ts'

const { harness, project, define, insert } = await startCollections()
await project.admin.patch('', { rest_enabled: true })

const names = ['creator', 'owner', 'admin', 'member', 'viewer', 'stranger', 'former'] as const
type Caller = (typeof names)[number] | 'server'
const callers: readonly Caller[] = [...names, 'server']
const users = Object.fromEntries(
  await Promise.all(names.map(async (name) => [name, await project.user()] as const)),
) as Record<(typeof names)[number], User>
const clientOf = (key: string, session: string) => createClient(harness.url, key, { accessToken: async () => session })
const clients = Object.fromEntries(
  callers.map((caller) => [
    caller,
    caller === 'server'
      ? clientOf(project.serverKey, project.serverKey)
      : clientOf(project.clientKey, users[caller].sessionToken),
  ]),
) as Record<Caller, ReturnType<typeof clientOf>>

const made = await users.owner.post('/client/groups', { name: 'private', is_public: false })
const groupId: string = made.data.id
for (const [name, role] of [
  ['creator', 'member'],
  ['admin', 'admin'],
  ['member', 'member'],
  ['viewer', 'viewer'],
  ['former', 'member'],
] as const)
  await project.admin.post(`/groups/${groupId}/members`, { app_user_id: users[name].id, role })
await users.former.post(`/client/groups/${groupId}/leave`)

const ranks = { owner: 4, admin: 3, member: 2, viewer: 1 }
const rankOf = (caller: Caller) => (({ ...ranks, creator: 2 }) as Record<string, number>)[caller] ?? 0
const atLeast = (caller: Caller, policy: string) =>
  rankOf(caller) >= ranks[(policy.split(':')[1] ?? 'viewer') as keyof typeof ranks]

/** What the documents of collections say, in words of their own. */
const may = {
  user: {
    read: (caller: Caller, read: string) => caller === 'server' || read === 'public' || caller === 'creator',
    change: (caller: Caller, write: string) => caller === 'server' || write === 'authenticated' || caller === 'creator',
    add: (_caller: Caller, _write: string) => true,
  },
  group: {
    read: (caller: Caller, read: string) =>
      caller === 'server' || read === 'public' || (read === 'owner' ? caller === 'creator' : atLeast(caller, read)),
    change: (caller: Caller, write: string) =>
      caller === 'server' || (write === 'owner' ? caller === 'creator' : atLeast(caller, write)),
    add: (caller: Caller, write: string) =>
      caller === 'server' || (write === 'owner' ? rankOf(caller) >= 2 : atLeast(caller, write)),
  },
}

const pairs = [
  ...['owner', 'public'].flatMap((read) => ['owner', 'authenticated'].map((write) => ['user', read, write] as const)),
  ...['owner', 'public', 'member', 'member:admin'].flatMap((read) =>
    ['owner', 'member:admin', 'member:member', 'member:viewer'].map((write) => ['group', read, write] as const),
  ),
  ['group', 'member:owner', 'member:owner'] as const,
]
const collections = new Map<string, string>()
for (const [scope, read, write] of pairs)
  collections.set(
    `${scope} ${read} ${write}`,
    await define({
      owner_scope: scope,
      read_policy: read,
      write_policy: write,
      columns: [{ name: 'a', type: 'text' }],
    }),
  )

describe.each(pairs)('%s collections, read %s, write %s', (scope, read, write) => {
  const name = collections.get(`${scope} ${read} ${write}`) as string
  const group = scope === 'group' ? { group_id: groupId } : {}
  const rules = may[scope]

  test('each caller reads, changes, upserts, deletes and adds what our own routes allow', async () => {
    const row = await insert(name, { ...group, a: 'first' }, users.creator)
    const keep = () =>
      project.sql(`update collections.${name} set deleted_at = null, a = 'first' where id = $1`, [row.id])
    const stored = async () =>
      (
        await project.sql(`select a, deleted_at is not null as gone from collections.${name} where id = $1`, [row.id])
      )[0]
    for (const caller of callers) {
      const table = () => clients[caller].from(name)
      // a server key is nobody: it names whose row it writes
      const owner = caller === 'server' ? { user_id: users.creator.id } : {}
      const canRead = rules.read(caller, read)
      const canChange = canRead && rules.change(caller, write)
      const rows = (allowed: boolean) => ({ error: null, data: allowed ? [{ id: row.id }] : [] })

      expect(await table().select('id'), `${caller} reads`).toMatchObject(rows(canRead))
      expect(await table().update({ a: 'x' }).eq('id', row.id).select('id'), `${caller} changes`).toMatchObject(
        rows(canChange),
      )
      await keep()
      // without an answer, and reaching every row there is
      await table().update({ a: caller }).neq('a', 'nothing')
      expect((await stored()).a === caller, `${caller} changes blindly`).toBe(canChange)
      await keep()
      await table().upsert({ id: row.id, a: `by ${caller}`, ...group, ...owner })
      const upserted = (await stored()).a === `by ${caller}`
      // an upsert must be allowed to insert, too; of a group's row it names group_id, which no user changes
      if (!canChange || caller === 'server' || scope === 'user') expect(upserted, `${caller} upserts`).toBe(canChange)
      else expect(upserted, `${caller} upserts`).toBe(false)
      await keep()
      expect(await table().delete().eq('id', row.id).select('id'), `${caller} deletes`).toMatchObject(rows(canChange))
      expect((await stored()).gone, `${caller} has deleted`).toBe(canChange)
      // what is deleted is neither seen nor reached, by its owner or by a server key
      expect(await table().select('id').eq('id', row.id), `${caller} reads a deleted row`).toMatchObject(
        rows(!canChange && canRead),
      )
      if (canChange) {
        await table().update({ a: 'risen' }).eq('id', row.id)
        await table().upsert({ id: row.id, a: 'risen', ...(caller === 'server' ? group : {}), ...owner })
        expect(await stored(), `${caller} writes a deleted row`).toMatchObject({ a: 'first', gone: true })
      }
      await keep()
      const added = await table().insert({ a: 'new', ...group, ...owner })
      expect(added.error?.code ?? null, `${caller} adds`).toBe(rules.add(caller, write) ? null : '42501')
      const foreign = await table().insert({ a: 'new', ...group, user_id: users.owner.id })
      if (caller !== 'server' && caller !== 'owner')
        expect(foreign.error?.code, `${caller} adds for another`).toBe('42501')
      await project.sql(`delete from collections.${name} where id <> $1`, [row.id])
    }
  }, 60_000)
})
