import { describe, expect, test } from 'vitest'
import { freshName, startCollections } from '#test/support/definitions.ts'
import { rules } from '#test/support/lint.ts'

const { harness, project, define, definition, columns, insert } = await startCollections()
const post = (body: unknown) => project.admin.post('/collections', body)

const whole = {
  name: 'posts',
  description: 'What users write',
  columns: [
    { name: 'title', type: 'text', nullable: false, max_length: 20, unique: true },
    { name: 'score', type: 'double', min: 0, max: 10, default: 1 },
    { name: 'tags', type: 'text[]', default: ['new', "o'clock"] },
    { name: 'kind', type: 'text', enum: ["it's", 'b'], default: "it's" },
    { name: 'at', type: 'timestamptz', default: { $fn: 'now' } },
    { name: 'token', type: 'uuid', default: { $fn: 'uuid' } },
    { name: 'editor', type: 'uuid', default: { $fn: 'user_id' } },
    { name: 'parent_id', type: 'uuid', references: { collection: 'posts', on_delete: 'restrict' } },
    { name: 'embedding', type: 'vector', dimensions: 3 },
    { name: 'big', type: 'bigint', default: '9007199254740993', max: '9223372036854775807' },
    { name: 'extra', type: 'jsonb', default: { a: [null, "'; drop table collections.posts; --"] } },
  ],
  indexes: [
    { columns: ['user_id', 'title'], unique: true },
    { columns: ['tags'], method: 'gin' },
    { name: 'by_title', columns: ['title'], method: 'trgm' },
    {
      columns: ['score'],
      where: { and: [{ column: 'kind', op: 'eq', value: "it's" }, { not: { column: 'score', op: 'lt', value: 3 } }] },
    },
  ],
}

describe('making', () => {
  test('a collection is an ordinary table, and answers its definition', async () => {
    const made = await post(whole)
    expect(made.error).toBeUndefined()
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({
      name: 'posts',
      description: 'What users write',
      owner_scope: 'user',
      read_policy: 'owner',
      write_policy: 'owner',
      sync: false,
      realtime: true,
      schema_version: 1,
      row_count_estimate: 0,
    })
    expect(made.data.columns[0]).toEqual({
      name: 'title',
      type: 'text',
      nullable: false,
      default: null,
      unique: true,
      max_length: 20,
      min: null,
      max: null,
      enum: null,
      references: null,
      dimensions: null,
      moderated: false,
    })
    expect(made.data.columns[7].references).toEqual({ collection: 'posts', on_delete: 'restrict' })
    expect(made.data.columns[9]).toMatchObject({ default: '9007199254740993', max: '9223372036854775807' })
    expect(made.data.indexes.map((index: { name: string }) => index.name)).toEqual([
      'user_id_title_unique',
      'tags_gin',
      'by_title',
      'score_btree',
    ])
    expect((await project.admin.get('/collections/posts')).data).toEqual(made.data)

    expect((await columns('posts')).slice(0, 8)).toEqual([
      { name: 'id', type: 'uuid', required: true },
      { name: 'user_id', type: 'uuid', required: true },
      { name: 'created_at', type: 'timestamp with time zone', required: true },
      { name: 'updated_at', type: 'timestamp with time zone', required: true },
      { name: 'deleted_at', type: 'timestamp with time zone', required: false },
      { name: 'title', type: 'text', required: true },
      { name: 'score', type: 'double precision', required: false },
      { name: 'tags', type: 'text[]', required: false },
    ])
    const user = await project.user()
    const [vectors] = await project.sql(`select to_regtype('extensions.vector') is not null as native`)
    const [row] = await project.as(
      'app_user',
      { 'app.user_id': user.id },
      `insert into collections.posts (title, embedding) values ('a', $1) returning *, extra #>> '{a,1}' as text`,
      [vectors.native ? '[1,2,3]' : '{1,2,3}'],
    )
    expect(row).toMatchObject({
      title: 'a',
      score: 1,
      kind: "it's",
      tags: ['new', "o'clock"],
      user_id: user.id,
      editor: user.id,
      big: '9007199254740993',
    })
    expect(row.text).toBe("'; drop table collections.posts; --")
    expect(row.token).not.toBeNull()
  })

  test('constraints and indexes are named after collection and column, and say what they refuse', async () => {
    const said = await project.sql(
      `select conname as name, obj_description(oid, 'pg_constraint') as says from pg_constraint
        where conrelid = 'collections.posts'::regclass and contype in ('c', 'f') order by conname`,
    )
    expect(said).toMatchObject(
      expect.arrayContaining([
        { name: 'posts_title_max_length', says: '400 INVALID_BODY title: must have at most 20 characters.' },
        { name: 'posts_parent_id_fkey', says: '400 INVALID_BODY parent_id: must be the id of a row of posts.' },
        { name: 'posts_score_finite', says: '400 INVALID_BODY score: must be a finite number.' },
      ]) as never,
    )
    const [unique] = await project.sql(
      `select pg_get_indexdef('collections.posts_title_key'::regclass) as sql, obj_description('collections.posts_title_key'::regclass) as says`,
    )
    expect(unique.sql).toContain('WHERE (deleted_at IS NULL)')
    expect(unique.says).toBe('409 CONFLICT title: A row with this value exists.')
    const [partial] = await project.sql(`select pg_get_indexdef('collections.posts_score_btree'::regclass) as sql`)
    expect(partial.sql).toContain(`WHERE ((kind = 'it''s'::text) AND (NOT (score < '3'::double precision)))`)
  })

  test('names as long as they may be, and names that meet', async () => {
    const long = (letter: string) => letter.repeat(63)
    await define({
      name: long('c'),
      columns: [
        { name: long('a'), type: 'text', max_length: 1, unique: true },
        { name: `${'a'.repeat(62)}b`, type: 'text', max_length: 1, unique: true },
      ],
    })
    // posts_title_key is an index of posts
    await define({ name: 'posts_title_key', columns: [{ name: 'a', type: 'text' }] })
    await define({ name: 'meet', columns: [{ name: 'a_b', type: 'text', unique: true }] })
    await define({ name: 'meet_a', columns: [{ name: 'b', type: 'text', unique: true }] })
    expect((await post({ name: `${long('c')}c` })).error?.code).toBe('VALIDATION_ERROR')
  })

  test('a group-owned collection has its group in each row', async () => {
    const name = await define({ owner_scope: 'group', read_policy: 'member', write_policy: 'member:admin' })
    expect((await columns(name)).slice(0, 3)).toEqual([
      { name: 'id', type: 'uuid', required: true },
      { name: 'user_id', type: 'uuid', required: false },
      { name: 'group_id', type: 'uuid', required: true },
    ])
  })

  test('every lint of ours holds for generated tables', async () => {
    for (const rule of rules.filter((one) => one.only !== 'control')) {
      const offenders = (await project.sql(rule.find)).map((row) => String(row.offender))
      expect(
        offenders.filter((offender) => offender.startsWith('collections.')),
        rule.name,
      ).toEqual([])
    }
  })
})

describe('refusals', () => {
  const column = (fields: Record<string, unknown>) => ({
    name: freshName(),
    columns: [{ name: 'a', type: 'text', ...fields }],
  })
  const index = (fields: Record<string, unknown>) => ({
    name: freshName(),
    columns: [
      { name: 'a', type: 'text' },
      { name: 'n', type: 'integer' },
      { name: 'j', type: 'jsonb' },
      { name: 'l', type: 'text[]' },
      { name: 'v', type: 'vector', dimensions: 2 },
    ],
    indexes: [fields],
  })

  test.each([
    [{ name: 'Posts' }, 'name'],
    [{ name: '1a' }, 'name'],
    [{ name: 'a-b' }, 'name'],
    [{ name: 'a"; drop table app.users; --' }, 'name'],
    [{}, 'name'],
    [{ name: 'a', columns: {} }, 'columns'],
    [{ name: 'a', columns: [null] }, 'columns.0'],
    [{ name: 'a', columns: Array.from({ length: 101 }, (_, n) => ({ name: `c${n}`, type: 'text' })) }, 'columns'],
    [{ name: 'a', indexes: Array.from({ length: 21 }, () => ({ columns: ['id'] })) }, 'indexes'],
    [{ name: 'a', description: 'x'.repeat(2001) }, 'description'],
    [{ name: 'a', owner_scope: 'team' }, 'owner_scope'],
    [{ name: 'a', realtime: 'yes' }, 'realtime'],
    [{ name: 'a', sync: true }, 'sync'],
    [{ name: 'a', read_policy: 'role:editor' }, 'read_policy'],
    [{ name: 'a', write_policy: 'role:editor' }, 'write_policy'],
    [column({ name: 'A' }), 'columns.0.name'],
    [column({ type: 'varchar' }), 'columns.0.type'],
    [column({ type: 'int[][]' }), 'columns.0.type'],
    [column({ type: 'text; drop table app.users' }), 'columns.0.type'],
    [column({ nullable: 'no' }), 'columns.0.nullable'],
    [column({ max_length: 0 }), 'columns.0.max_length'],
    [column({ max_length: 1.5 }), 'columns.0.max_length'],
    [column({ type: 'integer', max_length: 3 }), 'columns.0.max_length'],
    [column({ min: 1 }), 'columns.0.min'],
    [column({ type: 'integer', min: 2, max: 1 }), 'columns.0.max'],
    [column({ type: 'integer', min: 1.5 }), 'columns.0.min'],
    [column({ type: 'integer', max: '99999999999' }), 'columns.0.max'],
    [column({ type: 'numeric', max: 'NaN' }), 'columns.0.max'],
    [column({ enum: [] }), 'columns.0.enum'],
    [column({ enum: ['a', null] }), 'columns.0.enum'],
    [column({ enum: [1] }), 'columns.0.enum'],
    [column({ enum: Array.from({ length: 201 }, (_, n) => `v${n}`) }), 'columns.0.enum'],
    [column({ type: 'boolean', enum: [true] }), 'columns.0.enum'],
    [column({ default: 5 }), 'columns.0.default'],
    [column({ default: { $fn: 'now' } }), 'columns.0.default'],
    [column({ default: { $fn: 'pg_sleep(9)' } }), 'columns.0.default'],
    [column({ default: { a: 1 } }), 'columns.0.default'],
    [column({ max_length: 2, default: 'abc' }), 'columns.0.default'],
    [column({ enum: ['a'], default: 'b' }), 'columns.0.default'],
    [column({ type: 'integer', default: 1.5 }), 'columns.0.default'],
    [column({ type: 'integer', default: '1' }), 'columns.0.default'],
    [column({ type: 'integer', default: 3e9 }), 'columns.0.default'],
    [column({ type: 'bigint', default: '1; select 1' }), 'columns.0.default'],
    [column({ type: 'boolean', default: 'true' }), 'columns.0.default'],
    [column({ type: 'uuid', default: 'x' }), 'columns.0.default'],
    [column({ type: 'date', default: '2026-02-30' }), 'columns.0.default'],
    [column({ type: 'date', default: 'infinity' }), 'columns.0.default'],
    [column({ type: 'timestamptz', default: 'tomorrow' }), 'columns.0.default'],
    [column({ type: 'integer[]', default: [1, 'x'] }), 'columns.0.default'],
    [column({ type: 'integer[]', default: [[1]] }), 'columns.0.default'],
    [column({ type: 'vector', dimensions: 2, default: [1] }), 'columns.0.default'],
    [column({ type: 'vector' }), 'columns.0.dimensions'],
    [column({ type: 'vector', dimensions: 0 }), 'columns.0.dimensions'],
    [column({ type: 'vector', dimensions: 16001 }), 'columns.0.dimensions'],
    [column({ dimensions: 3 }), 'columns.0.dimensions'],
    [column({ type: 'jsonb', unique: true }), 'columns.0.unique'],
    [column({ references: { collection: 'posts' } }), 'columns.0.references'],
    [column({ type: 'uuid', references: { collection: 'nowhere' } }), 'columns.0.references.collection'],
    [
      column({ type: 'uuid', references: { collection: 'posts', on_delete: 'explode' } }),
      'columns.0.references.on_delete',
    ],
    [column({ type: 'uuid', nullable: false, references: { collection: 'posts' } }), 'columns.0.references.on_delete'],
    [
      {
        name: 'a',
        columns: [
          { name: 'b', type: 'text' },
          { name: 'b', type: 'text' },
        ],
      },
      'columns.1.name',
    ],
    [index({ columns: [] }), 'indexes.0.columns'],
    [index({ columns: ['zzz'] }), 'indexes.0.columns'],
    [index({ columns: ['a', 'a'] }), 'indexes.0.columns'],
    [index({ columns: ['a) where true; --'] }), 'indexes.0.columns'],
    [index({ columns: ['group_id'] }), 'indexes.0.columns'],
    [index({ columns: ['j'] }), 'indexes.0.columns'],
    [index({ columns: ['a'], method: 'gin' }), 'indexes.0.columns'],
    [index({ columns: ['n'], method: 'trgm' }), 'indexes.0.columns'],
    [index({ columns: ['a'], method: 'hnsw' }), 'indexes.0.columns'],
    [index({ columns: ['a'], method: 'hash' }), 'indexes.0.method'],
    [index({ columns: ['l'], method: 'gin', unique: true }), 'indexes.0.unique'],
    [index({ columns: ['a'], name: 'X' }), 'indexes.0.name'],
    [index({ columns: ['a'], where: { column: 'zzz', op: 'eq', value: 1 } }), 'indexes.0.where.column'],
    [
      index({ columns: ['a'], where: { column: 'n', op: 'eq', value: "1'; drop table app.users; --" } }),
      'indexes.0.where.value',
    ],
    [index({ columns: ['a'], where: { column: 'n', op: 'in', value: [1, 'x'] } }), 'indexes.0.where.value'],
    [index({ columns: ['a'], where: { column: 'n', op: 'like', value: 'x' } }), 'indexes.0.where.op'],
    [index({ columns: ['a'], where: { and: [{ column: 'n', op: 'sounds', value: 1 }] } }), 'indexes.0.where.and[0].op'],
  ])('%j', async (body, field) => {
    const refused = await post(body)
    expect([refused.status, refused.error?.code, refused.error?.details?.field]).toEqual([
      400,
      'VALIDATION_ERROR',
      field,
    ])
  })

  test.each(['select', 'user', 'table', 'authorization', 'transaction', 'id', 'user_id', 'deleted_at'])(
    'the name %s is reserved',
    async (name) => {
      const refused = await post({ name })
      expect([refused.status, refused.error?.code]).toEqual([400, 'RESERVED_NAME'])
    },
  )
  test.each(['id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at', 'order', 'ctid', 'left'])(
    'so is the column %s',
    async (name) => {
      const refused = await post({ name: freshName(), columns: [{ name, type: 'text' }] })
      expect([refused.error?.code, refused.error?.details?.field]).toEqual(['RESERVED_NAME', 'columns.0.name'])
    },
  )
  test('words that SQL does not reserve are names', async () => {
    const name = await define({
      name: 'values',
      columns: [
        { name: 'name', type: 'text' },
        { name: 'key', type: 'text' },
        { name: 'transaction', type: 'text' },
        { name: 'value', type: 'text', max_length: 3, enum: ['a'] },
      ],
    })
    expect((await columns(name)).map((column) => column.name)).toEqual(
      expect.arrayContaining(['name', 'key', 'transaction', 'value']),
    )
  })

  test('pairs of policies: these and no others', async () => {
    const reads = [
      'owner',
      'public',
      'authenticated',
      'member',
      'member:owner',
      'member:viewer',
      'member:boss',
      "owner'); --",
      '',
    ]
    const writes = ['owner', 'authenticated', 'public', 'member', 'member:admin', 'member:viewer']
    for (const owner_scope of ['user', 'group'])
      for (const read_policy of reads)
        for (const write_policy of writes) {
          const isGood =
            owner_scope === 'user'
              ? ['owner', 'public'].includes(read_policy) && ['owner', 'authenticated'].includes(write_policy)
              : ['owner', 'public', 'member', 'member:owner', 'member:viewer'].includes(read_policy) &&
                ['owner', 'member:admin', 'member:viewer'].includes(write_policy)
          const answer = await project.admin.post('/collections?dry_run=true', {
            name: 'pair',
            owner_scope,
            read_policy,
            write_policy,
          })
          expect([answer.status, answer.error?.code], `${owner_scope} ${read_policy} ${write_policy}`).toEqual(
            isGood ? [200, undefined] : [400, 'INVALID_POLICY'],
          )
        }
  })

  test('a name that is taken, also by a table of a DBA; broken bodies', async () => {
    const name = await define()
    expect((await post({ name })).error).toMatchObject({ code: 'CONFLICT', details: { field: 'name' } })
    await project.sql(
      'create table collections.by_hand (id int); alter table collections.by_hand enable row level security',
    )
    expect((await post({ name: 'by_hand' })).error?.code).toBe('CONFLICT')
    await project.sql('drop table collections.by_hand')
    expect((await post('[]')).error?.code).toBe('INVALID_BODY')
    expect((await project.admin.post('/collections?dry_run=perhaps', { name: 'x' })).error?.code).toBe('INVALID_INPUT')
  })

  test('one name made twenty times at once: one is made', async () => {
    const name = freshName()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post({ name, columns: [{ name: 'a', type: 'text', unique: true }] })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)])
  })

  test('at most 200 collections', async () => {
    const own = await harness.project()
    await own.sql(
      `insert into app.collections (name, generator) select 'filler_' || n, 1 from generate_series(1, 199) as n`,
    )
    expect((await own.admin.post('/collections', { name: 'last' })).status).toBe(201)
    expect((await own.admin.post('/collections', { name: 'over' })).error).toMatchObject({
      code: 'COLLECTION_LIMIT_REACHED',
      details: { limit: 200 },
    })
  })
})

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
    const name = await define({ columns: [{ name: 'self', type: 'uuid', references: { collection: 'posts' } }] })
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
  test('description, policies, realtime: each goes up by one version, is audited and told', async () => {
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
    expect((await patch({ sync: true })).error?.details?.field).toBe('sync')
    expect((await patch({ description: 'x'.repeat(2001) })).error?.code).toBe('VALIDATION_ERROR')
    expect((await patch({}, 'nowhere')).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await patch('[]')).error?.code).toBe('INVALID_BODY')
    expect((await project.admin.patch(`/collections/${name}?dry_run=1`, {})).error?.code).toBe('INVALID_INPUT')
  })
})
