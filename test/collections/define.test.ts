import { describe, expect, test } from 'vitest'
import { freshName, startCollections, whole } from '#test/support/definitions.ts'
import { rules } from '#test/support/lint.ts'

/** Creating collections: the generated table, and what a definition is refused for. */
const { harness, project, define, columns } = await startCollections()
const post = (body: unknown) => project.admin.post('/collections', body)

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
      graphql_name: 'title',
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
