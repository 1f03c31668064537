import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { type Client, startHarness, type User } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const [owner, admin, member, viewer, stranger] = (await Promise.all(
  Array.from({ length: 5 }, () => project.user()),
)) as [User, User, User, User, User]
const columns = [{ name: 'body', type: 'text' }]
const home = await group(project, [
  [owner, 'owner'],
  [admin, 'admin'],
  [member, 'member'],
  [viewer, 'viewer'],
])
const second = await group(project, [[owner, 'owner']])
const open = await group(
  project,
  [
    [owner, 'owner'],
    [viewer, 'viewer'],
  ],
  true,
)
const shared = await define(project, {
  name: 'shared',
  owner_scope: 'group',
  read_policy: 'member',
  write_policy: 'member:member',
  columns,
})

describe('rows of groups', () => {
  test('need X-Group-Context to insert, and are refused in a fixed order', async () => {
    const cases: [string, Client, number, string][] = [
      ['no group', member, 400, 'GROUP_CONTEXT_REQUIRED'],
      ['a malformed one', inGroup(member, 'x'), 403, 'NOT_A_GROUP_MEMBER'],
      ['an unknown one', inGroup(member, randomUUID()), 403, 'NOT_A_GROUP_MEMBER'],
      ['no member', inGroup(stranger, home), 403, 'NOT_A_GROUP_MEMBER'],
      ['no member of a public one', inGroup(member, open), 403, 'NOT_A_GROUP_MEMBER'],
      ['a public one', inGroup(owner, open), 400, 'GROUP_NOT_PRIVATE'],
      ['a public one before the role', inGroup(viewer, open), 400, 'GROUP_NOT_PRIVATE'],
      ['a rank too low', inGroup(viewer, home), 403, 'GROUP_ROLE_FORBIDDEN'],
    ]
    for (const [name, client, status, code] of cases) {
      for (const body of [{ body: 'x' }, {}]) {
        expect(await client.post(shared, body), name).toMatchObject({ status, error: { code } })
        expect(await client.post(`${shared}/batch`, { rows: [body] }), name).toMatchObject({ status, error: { code } })
      }
      expect(
        await client.post('/client/collections/transaction', {
          operations: [{ op: 'insert', collection: 'shared', data: { body: 'x' } }],
        }),
        name,
      ).toMatchObject({ status, error: { code } })
    }
    expect((await owner.get(`${shared}/count`)).data.count).toBe(0)
  })

  test('are read across all groups of the caller, or in one', async () => {
    for (const [client, body] of [
      [inGroup(member, home), 'm'],
      [inGroup(owner, second), 'o'],
      [inGroup(admin, home), 'a'],
    ] as const) {
      expect(await client.post(shared, { body })).toMatchObject({ status: 201, data: { body } })
    }
    const bodies = async (client: Client, options = {}) =>
      (await client.post(`${shared}/find`, options)).data.map((row: any) => row.body)
    expect(await bodies(owner)).toEqual(['a', 'o', 'm'])
    expect(await bodies(owner, { order: [{ column: 'created_at', direction: 'asc' }] })).toEqual(['m', 'o', 'a'])
    expect(await bodies(owner, { order: [{ column: 'body', direction: 'asc' }] })).toEqual(['a', 'm', 'o'])
    expect(await bodies(viewer)).toEqual(['a', 'm'])
    expect(await bodies(stranger)).toEqual([])
    expect(await bodies(inGroup(owner, second))).toEqual(['o'])
    const first = await owner.post(`${shared}/find`, { limit: 2 })
    expect(await bodies(owner, { limit: 2, cursor: first.body.next_cursor })).toEqual(['m'])
    // a cursor of all groups is none of one group
    expect(
      (await inGroup(owner, second).post(`${shared}/find`, { limit: 2, cursor: first.body.next_cursor })).error?.code,
    ).toBe('INVALID_BODY')
    for (const id of [home, 'x', randomUUID()]) {
      for (const answer of [
        await inGroup(stranger, id).post(`${shared}/find`),
        await inGroup(stranger, id).get(shared),
        await inGroup(stranger, id).get(`${shared}/count`),
        await inGroup(stranger, id).post(`${shared}/aggregate`, { aggregates: [{ fn: 'count', as: 'n' }] }),
        await inGroup(stranger, id).get(`${shared}/${randomUUID()}`),
        await inGroup(stranger, id).patch(`${shared}/${randomUUID()}`, { body: 'x' }),
        await inGroup(stranger, id).delete(`${shared}/${randomUUID()}`),
        await inGroup(stranger, id).post(`${shared}/${randomUUID()}/restore`),
      ]) {
        expect(answer, id).toMatchObject({ status: 403, error: { code: 'NOT_A_GROUP_MEMBER' } })
      }
    }
    expect((await viewer.get(`${shared}/count`)).data.count).toBe(2)
    expect(
      (await viewer.post(`${shared}/aggregate`, { group_by: ['group_id'], aggregates: [{ fn: 'count', as: 'n' }] }))
        .data,
    ).toEqual([{ group_id: home, n: 2 }])
  })

  test('that one may read but not write are 403, that one may not read 404', async () => {
    const row = (await inGroup(member, home).post(shared, { body: 'mine' })).data
    for (const [client, status, code] of [
      [viewer, 403, 'GROUP_ROLE_FORBIDDEN'],
      [stranger, 404, 'NOT_FOUND'],
      [inGroup(owner, second), 404, 'NOT_FOUND'],
    ] as const) {
      expect(await client.patch(`${shared}/${row.id}`, { body: 'x' })).toMatchObject({ status, error: { code } })
      expect(await client.delete(`${shared}/${row.id}`)).toMatchObject({ status, error: { code } })
      expect(await client.patch(`${shared}/${row.id}`, {})).toMatchObject({ status, error: { code } })
      expect(await client.post(`${shared}/${row.id}/restore`)).toMatchObject({ status, error: { code } })
    }
    expect((await viewer.get(`${shared}/${row.id}`)).status).toBe(200)
    expect((await stranger.get(`${shared}/${row.id}`)).status).toBe(404)
    expect((await inGroup(viewer, home).get(`${shared}/${row.id}`)).status).toBe(200)
    expect((await inGroup(owner, second).get(`${shared}/${row.id}`)).status).toBe(404)
    // a fellow member changes it; it stays in its group
    expect(
      (await admin.patch(`${shared}/${row.id}`, { body: 'ours', group_id: second, user_id: admin.id })).data,
    ).toMatchObject({ body: 'ours', group_id: home, user_id: member.id })
    expect((await admin.delete(`${shared}/${row.id}`)).status).toBe(200)
    expect(await viewer.post(`${shared}/${row.id}/restore`)).toMatchObject({
      status: 403,
      error: { code: 'GROUP_ROLE_FORBIDDEN' },
    })
    expect((await member.post(`${shared}/${row.id}/restore`)).status).toBe(200)
  })

  test('a read rank keeps out those below it', async () => {
    const high = await define(project, {
      name: 'high',
      owner_scope: 'group',
      read_policy: 'member:admin',
      write_policy: 'member:owner',
      columns,
    })
    const row = (await inGroup(owner, home).post(high, { body: 'x' })).data
    expect((await member.post(`${high}/find`)).data).toEqual([])
    for (const answer of [
      await inGroup(member, home).post(`${high}/find`),
      await inGroup(member, home).get(`${high}/count`),
      await inGroup(member, home).get(high),
      await inGroup(member, home).post(`${high}/aggregate`, { aggregates: [{ fn: 'count', as: 'n' }] }),
    ]) {
      expect(answer).toMatchObject({ status: 403, error: { code: 'GROUP_ROLE_FORBIDDEN' } })
    }
    expect((await admin.post(`${high}/find`)).data).toHaveLength(1)
    expect(await inGroup(admin, home).post(high, { body: 'y' })).toMatchObject({
      status: 403,
      error: { code: 'GROUP_ROLE_FORBIDDEN' },
    })
    expect((await member.patch(`${high}/${row.id}`, { body: 'z' })).status).toBe(404)
    expect((await admin.patch(`${high}/${row.id}`, { body: 'z' })).error?.code).toBe('GROUP_ROLE_FORBIDDEN')
  })
})

describe('upserts in groups', async () => {
  const slugs = await define(project, {
    name: 'slugs',
    owner_scope: 'group',
    read_policy: 'member',
    write_policy: 'member:member',
    columns: [
      { name: 'slug', type: 'text' },
      { name: 'mark', type: 'text', unique: true },
    ],
    indexes: [{ columns: ['group_id', 'slug'], unique: true }],
  })
  const both = await group(project, [
    [owner, 'owner'],
    [member, 'member'],
  ])

  test('meet rows of the group that was named, and of no other', async () => {
    const upsert = (client: Client, id: string, how: string, slug: string) =>
      inGroup(client, id).post(`${slugs}?on_conflict=${how}&conflict_target=group_id,slug`, { slug })
    const here = (await inGroup(member, home).post(slugs, { slug: 'mine' })).data
    const there = (await inGroup(member, both).post(slugs, { slug: 'mine' })).data
    await inGroup(member, home).post(slugs, { slug: 'taken' })
    const theirs = (await inGroup(owner, both).post(slugs, { slug: 'taken' })).data
    for (const how of ['ignore', 'update']) {
      expect((await upsert(member, home, how, 'mine')).data.id, how).toBe(here.id)
      expect((await upsert(member, both, how, 'mine')).data.id, how).toBe(there.id)
      const refused = await upsert(member, both, how, 'taken')
      expect(refused, how).toMatchObject({ status: 409, error: { code: 'CONFLICT' } })
      expect(refused.text).not.toContain(theirs.id)
      expect((await upsert(member, both, how, `new by ${how}`)).status).toBe(201)
    }
  })

  test("a value that is unique over all groups: another group's row and another user's are 409", async () => {
    const row = (await inGroup(member, home).post(slugs, { mark: 'm' })).data
    const upsert = (client: Client, how: string, path = slugs) =>
      client.post(`${path}?on_conflict=${how}&conflict_target=mark`, { mark: 'm' })
    for (const how of ['ignore', 'update']) {
      for (const client of [inGroup(member, both), inGroup(owner, home), inGroup(project.server, home)])
        expect(await upsert(client, how), how).toMatchObject({ status: 409, error: { code: 'CONFLICT' } })
      expect((await upsert(inGroup(project.admin, home), how, '/collections/slugs/rows')).status).toBe(409)
      expect((await upsert(inGroup(member, home), how)).data.id).toBe(row.id)
      const named = { mark: 'm', group_id: home, user_id: member.id }
      expect((await project.server.post(`${slugs}?on_conflict=${how}&conflict_target=mark`, named)).data.id).toBe(
        row.id,
      )
      // nobody's row is the server key's own
      const first = await inGroup(project.server, home).post(`${slugs}?on_conflict=${how}&conflict_target=mark`, {
        mark: how,
      })
      const again = await inGroup(project.server, home).post(`${slugs}?on_conflict=${how}&conflict_target=mark`, {
        mark: how,
      })
      expect([first.status, again.status, again.data.id]).toEqual([201, 200, first.data.id])
    }
  })

  test('an empty batch is 201 with or without a group, but not for strangers', async () => {
    const path = `${await define(project, { name: 'plain_rows', columns })}/batch`
    for (const client of [member, inGroup(member, home), project.server]) {
      expect(await client.post(`${slugs}/batch`, { rows: [] })).toMatchObject({ status: 201, data: [] })
    }
    expect((await inGroup(stranger, home).post(`${slugs}/batch`, { rows: [] })).error?.code).toBe('NOT_A_GROUP_MEMBER')
    // and says nothing of a batch that only names no column
    expect((await member.post(`${slugs}/batch`, { rows: [{}] })).error?.code).toBe('GROUP_CONTEXT_REQUIRED')
    for (const rows of [[], [{}], []]) expect((await member.post(path, { rows })).data).toHaveLength(rows.length)
    expect((await inGroup(viewer, home).post(`${slugs}/batch`, { rows: [] })).error?.code).toBe('GROUP_ROLE_FORBIDDEN')
  })
})

/** Policy, caller, command: what comes of it over HTTP. */
describe('access', async () => {
  const [me, you] = [member, stranger]
  const policies = [
    ['owner', 'owner'],
    ['public', 'owner'],
    ['owner', 'authenticated'],
    ['public', 'authenticated'],
  ] as const
  test.each(policies)('of users: read %s, write %s', async (read, write) => {
    const path = await define(project, {
      name: `u_${read}_${write}`,
      read_policy: read,
      write_policy: write,
      columns: [{ name: 'body', type: 'text' }],
    })
    const row = (await me.post(path, { body: 'x' })).data
    const sees = read === 'public'
    const writes = sees && write === 'authenticated'
    expect((await you.get(`${path}/${row.id}`)).status).toBe(sees ? 200 : 404)
    expect((await you.post(`${path}/find`)).data).toHaveLength(sees ? 1 : 0)
    expect((await you.get(`${path}/count`)).data.count).toBe(sees ? 1 : 0)
    for (const change of [{ body: 'y' }, {}, { $if: { body: writes ? 'y' : 'x' } }, { user_id: you.id }])
      expect((await you.patch(`${path}/${row.id}`, change)).status, JSON.stringify(change)).toBe(writes ? 200 : 404)
    expect((await you.post(`${path}/${row.id}/restore`)).status).toBe(writes ? 200 : 404)
    expect((await you.delete(`${path}/${row.id}`)).status).toBe(writes ? 200 : 404)
    if (!writes) await me.delete(`${path}/${row.id}`)
    expect((await you.post(`${path}/find`, { include_deleted: true })).data).toHaveLength(writes ? 1 : 0)
    expect((await me.post(`${path}/find`, { include_deleted: true })).data).toHaveLength(1)
    expect((await you.post(`${path}/${row.id}/restore`)).status).toBe(writes ? 200 : 404)
    expect((await you.post(path, { body: 'own', user_id: me.id })).data.user_id).toBe(you.id)
    const behalf = project.onBehalfOf(you.id)
    await me.post(`${path}/${row.id}/restore`)
    expect((await behalf.get(`${path}/${row.id}`)).status).toBe(sees ? 200 : 404)
    expect((await project.server.get(`${path}/${row.id}`)).status).toBe(200)
    expect((await project.admin.get(`/collections/u_${read}_${write}/rows/${row.id}`)).status).toBe(200)
  })
})

describe('server keys and administrators', async () => {
  const path = await define(project, { name: 'ledger', columns: [{ name: 'body', type: 'text', unique: true }] })
  test('read and write every row, and say whose a new one is', async () => {
    for (const [client, at, rows] of [
      [project.server, path, path],
      [project.admin, '/collections/ledger/rows', '/collections/ledger/rows'],
    ] as const) {
      const base = at === path ? path : '/collections/ledger'
      expect(await client.post(at, { body: 'whose' })).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY', details: { column: 'user_id' } },
      })
      expect(await client.post(at, { body: 'nobody', user_id: randomUUID() })).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY', details: { column: 'user_id' } },
      })
      const made = await client.post(at, { body: `by ${at}`, user_id: member.id })
      expect(made).toMatchObject({ status: 201, data: { user_id: member.id } })
      expect(
        (await client.post(`${at}?on_conflict=update&conflict_target=body`, { body: `by ${at}`, user_id: member.id }))
          .status,
      ).toBe(200)
      expect(
        (await client.post(`${at}?on_conflict=update&conflict_target=body`, { body: `by ${at}`, user_id: viewer.id }))
          .error?.code,
      ).toBe('CONFLICT')
      expect(
        (await client.post(`${at}?on_conflict=ignore&conflict_target=body`, { body: `by ${at}`, user_id: member.id }))
          .status,
      ).toBe(200)
      const batch = await client.post(`${at}/batch`, {
        rows: [
          { body: `b1 ${at}`, user_id: viewer.id },
          { body: `b2 ${at}`, user_id: member.id },
        ],
      })
      expect(batch.data.map((row: any) => row.user_id)).toEqual([viewer.id, member.id])
      expect((await client.post(`${at}/batch`, { rows: [{ body: 'x' }] })).error?.code).toBe('NOT_NULL_VIOLATION')
      const key = { 'idempotency-key': randomUUID() }
      expect((await client.post(at, { body: `k ${at}`, user_id: member.id }, key)).status).toBe(201)
      expect((await client.post(at, { body: `k ${at}`, user_id: member.id }, key)).status).toBe(200)
      const id = made.data.id
      expect((await client.patch(`${rows}/${id}`, { body: `changed ${at}`, user_id: viewer.id })).data).toMatchObject({
        body: `changed ${at}`,
        user_id: member.id,
      })
      expect((await client.patch(`${rows}/${id}`, { nope: 1 })).error?.code).toBe('INVALID_COLUMN')
      expect(
        (await client.post(`${base}/find`, { filter: { column: 'body', op: 'like', value: '%' } })).data.length,
      ).toBeGreaterThanOrEqual(4)
      expect(
        (await client.post(`${base}/aggregate`, { aggregates: [{ fn: 'count', as: 'n' }] })).data[0].n,
      ).toBeGreaterThanOrEqual(4)
      expect((await client.delete(`${rows}/${id}`)).status).toBe(200)
      expect((await client.get(`${rows}/${id}`)).status).toBe(404)
    }
    const kept = (await project.admin.post('/collections/ledger/rows', { body: 'hard', user_id: member.id })).data
    expect((await project.admin.delete(`/collections/ledger/rows/${kept.id}?hard=true`)).data).toEqual({
      id: kept.id,
      deleted: true,
    })
    expect(await project.sql('select from collections.ledger where id = $1', [kept.id])).toHaveLength(0)
    expect((await project.admin.delete(`/collections/ledger/rows/${kept.id}?hard=true`)).status).toBe(404)
    // hard is the administrator's alone
    const soft = (await member.post(path, { body: 'soft' })).data
    await member.delete(`${path}/${soft.id}?hard=true`)
    expect(await project.sql('select from collections.ledger where id = $1', [soft.id])).toHaveLength(1)
  })

  test('name the group of a group row', async () => {
    for (const [client, at] of [
      [project.server, shared],
      [project.admin, '/collections/shared/rows'],
    ] as const) {
      expect((await client.post(at, { body: 'g' })).error?.code).toBe('GROUP_CONTEXT_REQUIRED')
      expect((await client.post(`${at}/batch`, { rows: [{ body: 'g' }] })).status).toBe(400)
      expect(await client.post(at, { body: 'g', group_id: home, user_id: member.id })).toMatchObject({
        status: 201,
        data: { group_id: home, user_id: member.id },
      })
      expect(await inGroup(client, home).post(at, { body: 'g' })).toMatchObject({
        status: 201,
        data: { group_id: home, user_id: null },
      })
      expect((await inGroup(client, open).post(at, { body: 'g' })).error?.code).toBe('GROUP_NOT_PRIVATE')
      expect((await client.post(at, { body: 'g', group_id: open })).error?.code).toBe('GROUP_NOT_PRIVATE')
      expect((await inGroup(client, randomUUID()).post(at, { body: 'g' })).error?.code).toBe('NOT_A_GROUP_MEMBER')
    }
  })
})
