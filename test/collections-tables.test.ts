import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { readProgram, root } from '#server/database/files.ts'
import { loadBase, loadProgram } from '#server/database/load.ts'
import { startCollections } from '#test/support/definitions.ts'
import type { User } from '#test/support/harness.ts'

const { project, define, tried, insert } = await startCollections()
const user = await project.user()
const policiesOf = (name: string) =>
  project.sql(
    `select polname as name, polcmd as command, pg_get_expr(polqual, polrelid) as shown, pg_get_expr(polwithcheck, polrelid) as kept
       from pg_policy where polrelid = ('collections.' || $1)::regclass order by polname`,
    [name],
  )
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

describe('references', () => {
  const family = async (on_delete: string, nullable = true) => {
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', nullable, references: { collection: parent, on_delete } }],
    })
    const row = await insert(parent, {}, user)
    const dependent = await insert(child, { p: row.id }, await project.user())
    const drop = () =>
      tried('app_user', user.id, `update collections.${parent} set deleted_at = now() where id = $1 returning id`, [
        row.id,
      ])
    const now = async () =>
      (
        await project.sql(`select p, deleted_at is not null as deleted from collections.${child} where id = $1`, [
          dependent.id,
        ])
      )[0]
    return { parent, child, row, dependent, drop, now }
  }

  test('restrict holds a row that live rows refer to', async () => {
    const { child, row, dependent, drop, now } = await family('restrict')
    expect(await drop()).toBe('CONFLICT')
    expect(await now()).toEqual({ p: row.id, deleted: false })
    await project.sql(`update collections.${child} set deleted_at = now() where id = $1`, [dependent.id])
    expect(await drop()).toHaveLength(1)
  })
  test('cascade deletes with it, set_null lets go', async () => {
    const cascade = await family('cascade', false)
    expect(await cascade.drop()).toHaveLength(1)
    expect(await cascade.now()).toEqual({ p: cascade.row.id, deleted: true })
    const letting = await family('set_null')
    expect(await letting.drop()).toHaveLength(1)
    expect(await letting.now()).toEqual({ p: null, deleted: false })
  })
  test.each([
    ['restrict', true, { p: null, deleted: false }],
    ['restrict', false, undefined],
    ['set_null', true, { p: null, deleted: false }],
    ['cascade', true, undefined],
  ])('a deleted user is never held: %s, nullable %s', async (on_delete, nullable, after) => {
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', nullable, references: { collection: parent, on_delete } }],
    })
    const [leaving, staying] = [await project.user(), await project.user()]
    const row = await insert(parent, {}, leaving)
    await insert(child, { p: row.id }, staying)
    await project.sql('delete from app.users where id = $1', [leaving.id])
    expect((await project.sql(`select p, deleted_at is not null as deleted from collections.${child}`))[0]).toEqual(
      after,
    )
  })
  test.each([
    ['may no longer be null', true, undefined],
    ['may be null now', false, { p: null }],
  ])('nor by one that %s', async (_what, nullable, after) => {
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', nullable, references: { collection: parent, on_delete: 'restrict' } }],
    })
    const changed = await project.admin.patch(`/collections/${child}/columns/p`, { name: 'q', nullable: !nullable })
    expect(changed.status, changed.text).toBe(200)
    await project.admin.patch(`/collections/${child}/columns/q`, { name: 'p' })
    const [leaving, staying] = [await project.user(), await project.user()]
    const row = await insert(parent, {}, leaving)
    await insert(child, { p: row.id }, staying)
    expect((await project.admin.delete(`/users/${leaving.id}`)).status).toBe(200)
    expect((await project.sql(`select p from collections.${child}`))[0]).toEqual(after)
  })
  test('a circle of cascades ends', async () => {
    const one = await define()
    const two = await define({
      columns: [{ name: 'p', type: 'uuid', references: { collection: one, on_delete: 'cascade' } }],
    })
    await project.admin.post(`/collections/${one}/columns`, {
      name: 'p',
      type: 'uuid',
      references: { collection: two, on_delete: 'cascade' },
    })
    const a = await insert(one, {}, user)
    const b = await insert(two, { p: a.id }, user)
    await project.sql(`update collections.${one} set p = $1`, [b.id])
    await project.sql(`update collections.${one} set deleted_at = now()`)
    const [left] = await project.sql(
      `select (select count(*) from collections.${one} where deleted_at is null)::int + (select count(*) from collections.${two} where deleted_at is null)::int as n`,
    )
    expect(left.n).toBe(0)
  })
  test('raced: a row that is being deleted gets no new live reference', async () => {
    for (const on_delete of ['restrict', 'cascade', 'set_null']) {
      for (let round = 0; round < 8; round += 1) {
        const parent = await define()
        const child = await define({
          columns: [{ name: 'p', type: 'uuid', references: { collection: parent, on_delete } }],
        })
        const row = await insert(parent, {}, user)
        await Promise.all([
          ...Array.from({ length: 3 }, () => insert(child, { p: row.id }, user).catch(() => undefined)),
          project.sql(`update collections.${parent} set deleted_at = now()`).catch(() => undefined),
          ...Array.from({ length: 3 }, () => insert(child, { p: row.id }, user).catch(() => undefined)),
        ])
        const [wrong] = await project.sql(
          `select count(*)::int as n from collections.${child} c join collections.${parent} p on p.id = c.p where c.deleted_at is null and p.deleted_at is not null`,
        )
        expect(wrong.n, on_delete).toBe(0)
      }
    }
  }, 180_000)
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

describe('a DBA at work', () => {
  test('an extra column, index, policy, trigger and constraint stay through later alterations', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text', max_length: 9 }] })
    await project.sql(`
      create schema dba;
      alter table collections.${name} add column by_hand int default 3;
      create index by_hand_idx_${name} on collections.${name} (by_hand);
      create policy "auditors read all" on collections.${name} for select to app_dashboard using (true);
      grant select on collections.${name} to app_dashboard;
      alter table collections.${name} add constraint by_hand_positive check (by_hand > 0);
      create function dba.on_${name}() returns trigger language plpgsql as 'begin new.by_hand := 5; return new; end';
      create trigger by_hand before insert on collections.${name} for each row execute function dba.on_${name}()`)
    const change = async (method: string, path: string, body?: unknown) =>
      expect((await project.admin.request(method, `/collections/${name}${path}`, body)).status).toBeLessThan(300)
    await change('PATCH', '', { read_policy: 'public', write_policy: 'authenticated' })
    await change('POST', '/columns', { name: 'b', type: 'integer', unique: true })
    await change('PATCH', '/columns/b', { name: 'c', type: 'bigint', min: 0 })
    await change('POST', '/indexes', { columns: ['a'] })
    await change('DELETE', '/columns/a?confirm=a')
    await project.sql('update app.collections set generator = 0 where name = $1', [name])
    await project.sql('select internal.collections_regenerate(internal.collection_generator())')
    await insert(name, { c: 1 }, user)
    expect(await tried('app_dashboard', undefined, `select by_hand from collections.${name}`)).toEqual([{ by_hand: 5 }])
    expect((await policiesOf(name)).map((policy) => policy.name)).toContain('auditors read all')
    const [kept] = await project.sql(`select to_regclass('collections.by_hand_idx_${name}') is not null as index,
      exists (select from pg_constraint where conname = 'by_hand_positive' and conrelid = 'collections.${name}'::regclass) as rule`)
    expect(kept).toEqual({ index: true, rule: true })
    // a definition cannot add a column with the name of a column that was added by hand
    expect(
      (await project.admin.post(`/collections/${name}/columns`, { name: 'by_hand', type: 'text' })).error?.code,
    ).toBe('CONFLICT')
    // users cannot write a column that is not granted
    expect(await tried('app_user', user.id, `update collections.${name} set by_hand = 1`)).toBe('42501')
  })

  test('a constraint of ours that a DBA dropped is not missed', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text', max_length: 9 }] })
    await project.sql(`alter table collections.${name} drop constraint ${name}_a_max_length`)
    expect((await project.admin.patch(`/collections/${name}/columns/a`, { name: 'b', max_length: 8 })).status).toBe(200)
    await expect(insert(name, { b: '123456789' }, user)).rejects.toThrow(/max_length/)
  })
})

describe('files that are applied anew', () => {
  const applied = async (change: (path: string) => Promise<void>) => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-collections-'))
    for (const part of ['sql', 'functions', 'policies', 'db'])
      await cp(join(root, part), join(folder, part), { recursive: true })
    await change(folder)
    const program = await readProgram('tenant', folder)
    const client = await connectAdmin(
      { id: 'test', dsn: inject('dsn'), socketDirectory: inject('socketDirectory') },
      project.database,
    )
    try {
      await loadBase(client, program)
      return await loadProgram(client, program)
    } finally {
      await client.end()
    }
  }
  const edit = (folder: string, path: string, from: string | RegExp, to: string) =>
    readFile(join(folder, path), 'utf8').then((text) => {
      if (text.replace(from, to) === text) throw new Error(`${path} has no ${from}`)
      return writeFile(join(folder, path), text.replace(from, to))
    })

  test('leave generated tables as they are, policies and grants too', async () => {
    const name = await define({
      owner_scope: 'group',
      read_policy: 'member',
      write_policy: 'member:admin',
      columns: [{ name: 'a', type: 'text' }],
    })
    const before = await policiesOf(name)
    const grants = () =>
      project.sql(
        `select coalesce(relacl::text, '') || coalesce((select string_agg(attname || attacl::text, ',' order by attnum) from pg_attribute where attrelid = c.oid and attacl is not null), '') as acl from pg_class c where oid = 'collections.${name}'::regclass`,
      )
    const granted = await grants()
    await applied(async (folder) => {
      for (const file of [
        'policies/tenant/groups.sql',
        'policies/tenant/collections/definitions.sql',
        'functions/tenant/groups/membership.sql',
        'functions/tenant/collections/policies.sql',
        'functions/tenant/collections/row_triggers.sql',
      ])
        await writeFile(join(folder, file), `${await readFile(join(folder, file), 'utf8')}\n-- another version\n`)
      // a function that policies call gets another result type, so it must be dropped and created again
      await edit(
        folder,
        'functions/tenant/groups/membership.sql',
        "min_role text default 'viewer') returns setof uuid",
        "min_role text default 'viewer', more int default null) returns setof uuid",
      )
    }).then((files) => expect(files.length).toBeGreaterThan(3))
    const after = await policiesOf(name)
    expect(after.map((policy) => [policy.name, policy.command])).toEqual(
      before.map((policy) => [policy.name, policy.command]),
    )
    expect(await grants()).toEqual(granted)
    const group = await privateGroup(user)
    expect(
      await tried('app_user', user.id, `insert into collections.${name} (group_id, a) values ($1, 'x') returning a`, [
        group,
      ]),
    ).toEqual([{ a: 'x' }])
    await applied(async () => undefined)
    expect(await policiesOf(name)).toEqual(before)
  }, 180_000)

  test('a collection that is made while policies are applied keeps its grants', async () => {
    const client = await connectAdmin(
      { id: 'test', dsn: inject('dsn'), socketDirectory: inject('socketDirectory') },
      project.database,
    )
    const names: string[] = []
    try {
      await Promise.all([
        applied((folder) => edit(folder, 'policies/tenant/groups.sql', /$/, '\nselect pg_sleep(0.5);\n')),
        (async () => {
          for (let n = 0; n < 5; n += 1) names.push(await define({ columns: [{ name: 'a', type: 'text' }] }))
        })(),
      ])
      await applied(async () => undefined)
    } finally {
      await client.end()
    }
    for (const name of names)
      expect(await tried('app_user', user.id, `insert into collections.${name} (a) values ('x') returning a`)).toEqual([
        { a: 'x' },
      ])
    expect(await project.sql(`select identity from ops.grants where identity like 'collections.%'`)).toEqual([])
  }, 180_000)

  test('a newer generator makes the policies of every collection anew', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text' }] })
    await applied(async (folder) => {
      await edit(folder, 'functions/tenant/collections/policies.sql', /return 2;/, 'return 3;')
      await edit(
        folder,
        'functions/tenant/collections/policies.sql',
        'users add rows of their own',
        'users add their rows',
      )
      await edit(folder, 'sql/seeds/tenant/collections.sql', 'regenerate(2)', 'regenerate(3)')
    })
    expect((await policiesOf(name)).map((policy) => policy.name)).toContain('users add their rows')
    expect((await policiesOf(name)).map((policy) => policy.name)).not.toContain('users add rows of their own')
    expect(await project.sql('select distinct generator from app.collections')).toEqual([{ generator: 3 }])
    expect(await tried('app_user', user.id, `insert into collections.${name} (a) values ('x') returning a`)).toEqual([
      { a: 'x' },
    ])
    await applied(async () => undefined)
  }, 180_000)
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
  await client.query(`select internal.collection_column_change($1, 'a', '{"name": "b", "type": "bigint"}', false)`, [
    name,
  ])
  await client.query(`select internal.collection_column_add($1, '{"name": "c", "type": "text"}', false)`, [name])
  await client.query(`select internal.collection_create('{"name": "never", "columns": []}', false)`)
  await client.end()
  expect((await project.admin.get(`/collections/${name}`)).data).toEqual(before)
  expect((await project.admin.get('/collections/never')).status).toBe(404)
  expect(await project.sql(`select to_regclass('collections.never') as oid`)).toEqual([{ oid: null }])
  await insert(name, { a: 1 }, user)
})
