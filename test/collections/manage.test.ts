import { describe, expect, test } from 'vitest'
import { freshName, startCollections, whole } from '#test/support/definitions.ts'

/** Listing, changing and dropping whole collections. */
const { harness, project, define, definition, insert } = await startCollections()

describe('showing and dropping', () => {
  test('a page, newest first; what is not there', async () => {
    const own = await harness.project()
    for (const name of ['a', 'b', 'c']) await own.admin.post('/collections', { name })
    const list = await own.admin.get('/collections?limit=2&offset=1')
    expect(list.body).toMatchObject({ total: 3, limit: 2, offset: 1 })
    expect(list.data.map((one: { name: string }) => one.name)).toEqual(['b', 'a'])
    expect((await own.admin.get('/collections?limit=x')).error?.code).toBe('INVALID_INPUT')
    expect((await own.admin.get('/collections/nowhere')).error?.code).toBe('COLLECTION_NOT_FOUND')
  })

  test('dry run: the SQL, and nothing changed', async () => {
    const name = freshName()
    const plan = await project.admin.post('/collections?dry_run=true', {
      ...whole,
      name,
      columns: whole.columns.filter((one) => one.name !== 'parent_id'),
    })
    expect(plan.status).toBe(200)
    expect(plan.data).toMatchObject({ rewrites_table: false, rows: 0, warnings: [] })
    expect(plan.data.sql[0]).toContain(`create table collections.${name} (`)
    expect((await project.admin.get(`/collections/${name}`)).status).toBe(404)
    expect(await project.sql(`select to_regclass('collections.${name}') as oid`)).toEqual([{ oid: null }])
    // what it shows is what would be done
    await project.sql(`begin; ${plan.data.sql.join(';')}; rollback`)
  })

  test('dropping wants the name repeated, and no reference from elsewhere', async () => {
    const name = await define({ columns: [{ name: 'self', type: 'uuid', references: { collection: await define() } }] })
    const parent = await define()
    const child = await define({
      columns: [{ name: 'p', type: 'uuid', references: { collection: parent, on_delete: 'cascade' } }],
    })
    const drop = (path: string) => project.admin.delete(`/collections/${path}`)
    for (const bad of [name, `${name}?confirm=`, `${name}?confirm=${parent}`])
      expect((await drop(bad)).error).toMatchObject({ code: 'CONFIRMATION_REQUIRED', details: { confirm: name } })
    expect((await drop(`${parent}?confirm=${parent}`)).error).toMatchObject({
      code: 'COLLECTION_REFERENCED',
      details: { columns: [{ collection: child, column: 'p' }] },
    })
    expect((await drop(`${name}?dry_run=true`)).data).toMatchObject({
      sql: [`drop table collections.${name}`],
      warnings: ['All rows are deleted.'],
    })
    expect((await definition(name)).name).toBe(name)
    expect((await drop(`${name}?confirm=${name}`)).data).toEqual({ name, deleted: true })
    expect((await drop(`${name}?confirm=${name}`)).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await drop(`${name}?dry_run=2`)).error?.code).toBe('INVALID_INPUT')
    expect(await project.sql(`select from internal.user_data where table_name = 'collections.' || $1`, [name])).toEqual(
      [],
    )
    await drop(`${child}?confirm=${child}`)
    expect((await drop(`${parent}?confirm=${parent}`)).status).toBe(200)
    // one that refers to itself
    const own = await define({ name: 'tree' })
    await project.admin.post('/collections/tree/columns', {
      name: 'up',
      type: 'uuid',
      references: { collection: 'tree' },
    })
    expect((await drop(`${own}?confirm=${own}`)).status).toBe(200)
  })

  test("a DBA's view holds the table", async () => {
    const name = await define()
    await project.sql('create schema dba')
    await project.sql(`create view dba.over_it as select id from collections.${name}`)
    expect((await project.admin.delete(`/collections/${name}?confirm=${name}`)).error?.code).toBe('CONFLICT')
    await project.sql('drop view dba.over_it')
    expect((await project.admin.delete(`/collections/${name}?confirm=${name}`)).status).toBe(200)
  })
})

describe('changing the collection itself', () => {
  test('description, policies, realtime: each change raises the version by one, is audited and notified', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text' }] })
    const patch = (body: unknown, query = '') => project.admin.patch(`/collections/${name}${query}`, body)
    const user = await project.user()
    const other = await project.user()
    await insert(name, { a: 'x' }, user)
    const seen = () => project.as('app_user', { 'app.user_id': other.id }, `select a from collections.${name}`)
    expect(await seen()).toEqual([])
    const dry = await patch({ read_policy: 'public' }, '?dry_run=true')
    expect(dry.data.sql.join('\n')).toContain('using (true)')
    expect(await seen()).toEqual([])
    expect((await patch({ read_policy: 'public' })).data).toMatchObject({ read_policy: 'public', schema_version: 2 })
    expect(await seen()).toEqual([{ a: 'x' }])
    expect((await patch({ description: 'new', realtime: false, name: 'ignored', columns: [] })).data).toMatchObject({
      name,
      description: 'new',
      realtime: false,
      schema_version: 3,
    })
    expect((await patch({ description: null, owner_scope: 'user' })).data).toMatchObject({
      description: null,
      schema_version: 4,
    })
    expect((await patch({})).data.schema_version).toBe(4)
    const audited = await project.sql(
      `select changes from app.audit_events where action = 'collections.update' and changes ? 'read_policy'
      and target_id = (select id::text from app.collections where name = $1)`.replace('changes ?', 'changes::jsonb ?'),
      [name],
    )
    expect(audited[0].changes.read_policy).toEqual(['owner', 'public'])
  })

  test('what it refuses', async () => {
    const name = await define()
    const patch = (body: unknown, at = name) => project.admin.patch(`/collections/${at}`, body)
    expect((await patch({ owner_scope: 'group' })).error?.code).toBe('OWNER_SCOPE_IMMUTABLE')
    expect((await patch({ read_policy: 'member' })).error?.code).toBe('INVALID_POLICY')
    expect((await patch({ sync: 'yes' })).error?.details?.field).toBe('sync')
    expect((await patch({ description: 'x'.repeat(2001) })).error?.code).toBe('VALIDATION_ERROR')
    expect((await patch({}, 'nowhere')).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await patch('[]')).error?.code).toBe('INVALID_BODY')
    expect((await project.admin.patch(`/collections/${name}?dry_run=1`, {})).error?.code).toBe('INVALID_INPUT')
  })
})
