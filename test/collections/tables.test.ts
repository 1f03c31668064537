import { describe, expect, inject, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { startCollections } from '#test/support/definitions.ts'
import type { User } from '#test/support/harness.ts'

/** The rules that every generated table enforces by itself, for any role: times, owners, numbers, indexes of policies. */
const { project, define, tried, insert } = await startCollections()
const user = await project.user()
const privateGroup = async (of: User) =>
  (await of.post('/client/groups', { name: 'private', is_public: false })).data.id as string

describe('stamps', () => {
  test('updated_at always moves on, and nobody forges the time of a deletion', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'integer', default: 0 }] })
    const row = await insert(name, {}, user)
    const versions = new Set<string>()
    for (let n = 0; n < 5; n += 1) {
      const [at] = await project.sql(
        `update collections.${name} set a = a + 1 where id = $1 returning updated_at::text as at`,
        [row.id],
      )
      versions.add(at.at)
    }
    expect(versions.size).toBe(5)
    const twice = await project.sql(
      `with clock as (select set_config('app.clock', '2020-01-01T00:00:00Z', true))
       update collections.${name} set a = 9 from clock where id = $1 returning updated_at > $2 as later`,
      [row.id, row.updated_at],
    )
    expect(twice).toEqual([{ later: true }])
    const deleted = await tried(
      'app_user',
      user.id,
      `update collections.${name} set deleted_at = 'infinity' returning deleted_at = updated_at as now`,
    )
    expect(deleted).toEqual([{ now: true }])
  })
})

describe('groups and their rows', () => {
  test('only a private group owns rows, and it stays private', async () => {
    const name = await define({ owner_scope: 'group' })
    const open = (await user.post('/client/groups', { name: 'open' })).data.id
    const closed = await privateGroup(user)
    const add = (id: string) =>
      tried('app_user', user.id, `insert into collections.${name} (group_id) values ($1) returning id`, [id])
    expect(await add(open)).toBe('GROUP_NOT_PRIVATE')
    const [row] = await add(closed)
    const publish = (id: string) =>
      project.sql('update app.groups set is_public = true where id = $1', [id]).then(
        () => 'done',
        (error) => JSON.parse(error.detail).code,
      )
    expect(await publish(closed)).toBe('GROUP_OWNS_ROWS')
    await project.sql(`update collections.${name} set deleted_at = now()`)
    expect(await publish(closed)).toBe('GROUP_OWNS_ROWS')
    await expect(project.sql(`update collections.${name} set group_id = $1`, [open])).rejects.toThrow('private')
    await project.sql(`delete from collections.${name} where id = $1`, [row.id])
    expect(await publish(closed)).toBe('done')
  })

  test('raced: a group is never public with rows', async () => {
    const name = await define({ owner_scope: 'group' })
    const outcomes = new Set<string>()
    for (let round = 0; round < 30; round += 1) {
      const maker = round % 9 === 0 ? await project.user() : user
      const [made] = await project.sql(`insert into app.groups (name, is_public) values ('x', false) returning id`)
      await project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'owner')`, [
        made.id,
        maker.id,
      ])
      const both = await Promise.all([
        tried('app_user', maker.id, `insert into collections.${name} (group_id) values ($1) returning id`, [made.id]),
        project.sql('update app.groups set is_public = true where id = $1', [made.id]).then(
          () => 'public',
          () => 'refused',
        ),
      ])
      outcomes.add(`${Array.isArray(both[0]) ? 'added' : both[0]} ${both[1]}`)
      const [wrong] = await project.sql(
        `select count(*)::int as n from collections.${name} r join app.groups g on g.id = r.group_id where g.is_public`,
      )
      expect(wrong.n).toBe(0)
    }
    for (const outcome of outcomes) expect(['added refused', 'GROUP_NOT_PRIVATE public']).toContain(outcome)
  })

  test('rows of a user who goes stay without an author; those of a group that goes, go', async () => {
    const name = await define({ owner_scope: 'group' })
    const [maker, member] = [await project.user(), await project.user()]
    const group = await privateGroup(maker)
    await project.admin.post(`/groups/${group}/members`, { app_user_id: member.id })
    await insert(name, { group_id: group }, member)
    await project.sql('delete from app.users where id = $1', [member.id])
    expect(await project.sql(`select user_id from collections.${name}`)).toEqual([{ user_id: null }])
    await project.sql('delete from app.users where id = $1', [maker.id])
    expect(await project.sql(`select user_id from collections.${name}`)).toEqual([])
  })
})

describe('numbers and dates', () => {
  test('nothing is stored that JSON could not answer', async () => {
    const name = await define({
      columns: [
        { name: 'd', type: 'double' },
        { name: 'n', type: 'numeric' },
        { name: 'l', type: 'numeric[]' },
        { name: 't', type: 'timestamptz' },
        { name: 'b', type: 'date' },
        { name: 'i', type: 'integer[]' },
        { name: 'v', type: 'vector', dimensions: 2 },
      ],
    })
    for (const [column, value] of [
      ['d', 'NaN'],
      ['d', 'Infinity'],
      ['d', '-Infinity'],
      ['n', 'NaN'],
      ['n', 'Infinity'],
      ['l', '{1,NaN}'],
      ['t', 'infinity'],
      ['b', '-infinity'],
      ['i', '{{1},{2}}'],
      ['v', '{1,NaN}'],
      ['v', '{1,2,3}'],
      ['v', '{{1,2}}'],
      ['v', '{1,null}'],
    ] as const)
      await expect(
        insert(
          name,
          {
            [column]:
              value.startsWith('{') && column === 'v' && (await native())
                ? value.replace('{', '[').replace('}', ']')
                : value,
          },
          user,
        ),
        `${column} ${value}`,
      ).rejects.toThrow()
    await insert(name, { d: '-0', n: '1e100', l: '{}', i: '{}', v: (await native()) ? '[1,2]' : '{1,2}' }, user)
  })
  const native = async () => (await project.sql(`select to_regtype('extensions.vector') as type`))[0].type !== null

  test('vectors are pgvector where the server has it, else real[]', async () => {
    const name = await define({ columns: [{ name: 'v', type: 'vector', dimensions: 3 }] })
    const [column] = await project.sql(
      `select sql_type from app.collection_columns k join app.collections c on c.id = k.collection_id where c.name = $1`,
      [name],
    )
    const [there] = await project.sql(`select count(*)::int as n from pg_available_extensions where name = 'vector'`)
    expect(column.sql_type).toBe(there.n > 0 && (await native()) ? 'extensions.vector(3)' : 'real[]')
    const index = await project.admin.post(`/collections/${name}/indexes`, { columns: ['v'], method: 'hnsw' })
    if (await native()) expect(index.status).toBe(201)
    else expect(index.error).toMatchObject({ code: 'VALIDATION_ERROR', details: { field: 'method' } })
    expect((await project.admin.patch(`/collections/${name}/columns/v`, { type: 'text' })).status).toBe(
      (await native()) ? 409 : 200,
    )
  })
})

describe('what reading costs', () => {
  test('each policy is served by an index of the table', async () => {
    const group = await privateGroup(user)
    const plan = async (name: string, sql: string) => {
      await project.sql(
        sql.includes('group')
          ? `with others as (insert into app.groups (name, is_public) select 'x', false from generate_series(1, 40) returning id),
               every as (select id from others union all select '${group}')
             insert into collections.${name} (user_id, group_id) select '${user.id}', e.id from every e, generate_series(1, 200)`
          : `insert into collections.${name} (user_id) select u.id from (select id from app.users limit 5) u, generate_series(1, 1000)`,
      )
      await project.sql(`analyze collections.${name}`)
      const [{ 'QUERY PLAN': tree }] = await tried('app_user', user.id, `explain (format json) ${sql}`)
      return JSON.stringify(tree)
    }
    const list = (name: string, more = '') =>
      `select id from collections.${name} where deleted_at is null ${more} order by created_at desc, id desc limit 50`
    const own = await define()
    expect(await plan(own, list(own))).toContain(`${own}_of_user_idx`)
    const open = await define({ read_policy: 'public' })
    expect(await plan(open, list(open))).toContain(`${open}_newest_idx`)
    const changes = await plan(
      open,
      `select id from collections.${open} where updated_at > '2020-01-01' order by updated_at, id limit 50`,
    )
    expect(changes).toContain(`${open}_changes_idx`)
    const shared = await define({ owner_scope: 'group', read_policy: 'member' })
    const text = await plan(shared, list(shared, `and group_id = '${group}'`))
    expect(text).toContain(`${shared}_of_group_idx`)
    // membership is evaluated once, not for each row
    expect(text).toMatch(/"Subplan Name":"(hashed )?SubPlan/)
  })
})

test('a crash in the middle leaves the old', async () => {
  const name = await define({ columns: [{ name: 'a', type: 'integer' }] })
  const before = (await project.admin.get(`/collections/${name}`)).data
  const client = await connectAdmin(
    { id: 'test', dsn: inject('dsn'), socketDirectory: inject('socketDirectory') },
    project.database,
  )
  await client.query('begin')
  await client.query(`select set_config('app.caller', 'developer', true), set_config('app.developer_id', $1, true)`, [
    project.developer.id,
  ])
  await client.query(`select api.collection_column_change($1, 'a', '{"name": "b", "type": "bigint"}', false)`, [name])
  await client.query(`select internal.collection_column_add($1, '{"name": "c", "type": "text"}', false)`, [name])
  await client.query(`select internal.collection_create('{"name": "never", "columns": []}', false)`)
  await client.end()
  expect((await project.admin.get(`/collections/${name}`)).data).toEqual(before)
  expect((await project.admin.get('/collections/never')).status).toBe(404)
  expect(await project.sql(`select to_regclass('collections.never') as oid`)).toEqual([{ oid: null }])
  await insert(name, { a: 1 }, user)
})
