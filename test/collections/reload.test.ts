import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { loadBase, loadProgram } from '#fleet/load/load.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startCollections } from '#test/support/definitions.ts'

/** Generated tables keep what a DBA adds to them, and stay as they are when files of functions and policies are applied again. */
const { project, define, tried, insert } = await startCollections()
const user = await project.user()
const privateGroup = async () =>
  (await user.post('/client/groups', { name: 'private', is_public: false })).data.id as string
const policiesOf = (name: string) =>
  project.sql(
    `select polname as name, polcmd as command, pg_get_expr(polqual, polrelid) as shown, pg_get_expr(polwithcheck, polrelid) as kept
       from pg_policy where polrelid = ('collections.' || $1)::regclass order by polname`,
    [name],
  )

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
    const group = await privateGroup()
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
    const [{ present }] = (await project.sql('select internal.collection_generator() as present')) as [
      { present: number },
    ]
    await applied(async (folder) => {
      const next = `return ${present + 1};`
      await edit(folder, 'functions/tenant/collections/policies.sql', `return ${present};`, next)
      await edit(
        folder,
        'functions/tenant/collections/policies.sql',
        'users add rows of their own',
        'users add their rows',
      )
      const calls = [present, present + 1].map((version) => `regenerate(${version})`) as [string, string]
      await edit(folder, 'sql/seeds/tenant/collections.sql', ...calls)
    })
    expect((await policiesOf(name)).map((policy) => policy.name)).toContain('users add their rows')
    expect((await policiesOf(name)).map((policy) => policy.name)).not.toContain('users add rows of their own')
    expect(await project.sql('select distinct generator from app.collections')).toEqual([{ generator: present + 1 }])
    expect(await tried('app_user', user.id, `insert into collections.${name} (a) values ('x') returning a`)).toEqual([
      { a: 'x' },
    ])
    await applied(async () => undefined)
  }, 180_000)
})
