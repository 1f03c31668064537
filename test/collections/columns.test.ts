import { describe, expect, test } from 'vitest'
import { startColumns } from '#test/support/definitions.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** Adding and dropping columns, and changes by many callers at once. */
const { project, define, definition, columns, insert, user, filled, patch, add, values, version, typeOf } =
  await startColumns()

describe('adding a column', () => {
  test('the rows that are there get the default; users may write it at once', async () => {
    const name = await filled('text', ['x', 'y'])
    const made = await add(name, { name: 'n', type: 'integer', nullable: false, default: 7, min: 0 })
    expect([made.status, made.data]).toMatchObject([201, { name: 'n', default: 7, min: 0, nullable: false }])
    expect(await values(name, 'n')).toEqual([7, 7])
    const rows = await project.as(
      'app_user',
      { 'app.user_id': user.id },
      `insert into collections.${name} (n) values (1) returning n, a`,
    )
    expect(rows).toEqual([{ n: 1, a: null }])
    expect(await version(name)).toBe(2)
    expect((await definition(name)).columns.map((one: { name: string }) => one.name)).toEqual(['a', 'n'])
    const [exported] = await project.sql(
      `select export_columns from internal.user_data where table_name = 'collections.' || $1`,
      [name],
    )
    expect(exported.export_columns).toContain('n')
  })

  test('uuids are each their own; an id of the caller is nobody there', async () => {
    const name = await filled('text', ['x', 'y'])
    const plan = await add(name, { name: 'u', type: 'uuid', default: { $fn: 'uuid' }, unique: true }, '?dry_run=true')
    expect(plan.data).toMatchObject({ rewrites_table: true, rows: 2 })
    expect((await add(name, { name: 'u', type: 'uuid', default: { $fn: 'uuid' }, unique: true })).status).toBe(201)
    expect(new Set(await values(name, 'u')).size).toBe(2)
    expect(
      (await add(name, { name: 'w', type: 'uuid', nullable: false, default: { $fn: 'user_id' } })).error?.code,
    ).toBe('DEFAULT_REQUIRED')
    expect((await add(name, { name: 'w', type: 'uuid', default: { $fn: 'user_id' } })).status).toBe(201)
    expect(await values(name, 'w')).toEqual([null, null])
  })

  test('a reference, and what holds it to rows that are there', async () => {
    const parent = await define()
    const row = await insert(parent, {}, user)
    const name = await filled('text', ['x'])
    const reference = { name: 'p', type: 'uuid', references: { collection: parent, on_delete: 'cascade' } }
    expect(
      (await add(name, { ...reference, default: '00000000-0000-4000-8000-000000000000' })).error?.details?.field,
    ).toBe('default')
    expect((await add(name, { ...reference, default: row.id })).status).toBe(201)
    expect(await values(name, 'p')).toEqual([row.id])
    await expect(insert(name, { p: '00000000-0000-4000-8000-000000000000' }, user)).rejects.toThrow(/foreign key/)
    await project.sql(`update collections.${parent} set deleted_at = now()`)
    await expect(insert(name, { p: row.id }, user)).rejects.toThrow('must be the id of a row')
  })

  test('refusals change nothing', async () => {
    const name = await filled('text', ['x', 'y'])
    expect((await add(name, { name: 'n', type: 'text', nullable: false })).error).toMatchObject({
      code: 'DEFAULT_REQUIRED',
      details: { field: 'default' },
    })
    expect((await add(name, { name: 'n', type: 'text', unique: true, default: 'same' })).error).toMatchObject({
      code: 'CONFLICT',
      details: { duplicates: [{ count: 2 }] },
    })
    expect((await add(name, { name: 'a', type: 'text' })).error).toMatchObject({
      code: 'CONFLICT',
      details: { field: 'name' },
    })
    expect((await add(name, { name: 'select', type: 'text' })).error?.code).toBe('RESERVED_NAME')
    expect((await add(name, { name: 'n', type: 'word' })).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { field: 'type' },
    })
    expect((await add(name, { name: 'n', type: 'integer', default: '1' })).error?.details?.field).toBe('default')
    expect((await add(name, '[]')).error?.code).toBe('INVALID_BODY')
    expect((await add(name, { name: 'n', type: 'text' }, '?dry_run=1')).error?.code).toBe('INVALID_INPUT')
    expect((await add('nowhere', { name: 'n', type: 'text' })).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await add(name, { name: 'n', type: 'text', max_length: 4 }, '?dry_run=true')).data.sql[0]).toContain(
      `add column n text constraint ${name}_n_max_length check (char_length(n) <= 4)`,
    )
    expect(await version(name)).toBe(1)
    expect((await columns(name)).map((one) => one.name)).not.toContain('n')
  })

  test('a hundred columns, and not one more; twenty indexes with the unique columns', async () => {
    const name = await define({
      columns: Array.from({ length: 99 }, (_, n) => ({ name: `c${n}`, type: 'integer', unique: n < 19 })),
    })
    expect((await add(name, { name: 'last', type: 'text', unique: true })).status).toBe(201)
    expect((await add(name, { name: 'over', type: 'text' })).error).toMatchObject({
      code: 'COLUMN_LIMIT_REACHED',
      details: { limit: 100 },
    })
    await project.admin.delete(`/collections/${name}/columns/c98?confirm=c98`)
    expect((await add(name, { name: 'over', type: 'text', unique: true })).error).toMatchObject({
      code: 'INDEX_LIMIT_REACHED',
      details: { limit: 20 },
    })
    expect((await add(name, { name: 'over', type: 'text' })).status).toBe(201)
  })
})

describe('dropping a column', () => {
  test('with its name repeated; its indexes and filters go, its references let go', async () => {
    const parent = await define()
    const name = await define({
      columns: [
        { name: 'a', type: 'text' },
        { name: 'b', type: 'text' },
        { name: 'p', type: 'uuid', references: { collection: parent } },
        { name: 'q', type: 'uuid', references: { collection: parent } },
      ],
      indexes: [
        { name: 'one', columns: ['a', 'b'] },
        { name: 'two', columns: ['b'], where: { not: { column: 'a', op: 'eq', value: 'x' } } },
        { name: 'three', columns: ['b'] },
      ],
    })
    const drop = (column: string, query = `?confirm=${column}`) =>
      project.admin.delete(`/collections/${name}/columns/${column}${query}`)
    expect((await drop('a', '')).error).toMatchObject({ code: 'CONFIRMATION_REQUIRED', details: { confirm: 'a' } })
    expect((await drop('a', '?dry_run=true')).data.warnings).toEqual([
      'The values of all rows are deleted.',
      'The index one goes with it.',
      'The index two goes with it.',
    ])
    expect((await drop('a')).data).toEqual({ name: 'a', deleted: true })
    expect((await drop('a')).error?.code).toBe('NOT_FOUND')
    expect((await drop('p')).status).toBe(200)
    const after = await definition(name)
    expect(after.columns.map((one: { name: string }) => one.name)).toEqual(['b', 'q'])
    expect(after.indexes.map((one: { name: string }) => one.name)).toEqual(['three'])
    // the reference that stays is still held to live rows
    const row = await insert(parent, {}, user)
    const mine = await insert(name, {}, user)
    await project.sql(`update collections.${parent} set deleted_at = now()`)
    await expect(project.sql(`update collections.${name} set q = $1 where id = $2`, [row.id, mine.id])).rejects.toThrow(
      'must be the id of a row',
    )
    await drop('q')
    expect(
      await project.sql(
        `select tgname from pg_trigger where tgrelid = 'collections.${name}'::regclass and tgname like 'collection_references%'`,
      ),
    ).toEqual([])
    expect((await project.admin.delete(`/collections/${parent}?confirm=${parent}`)).status).toBe(200)
    expect((await drop('b', '?confirm=b&dry_run=0')).error?.code).toBe('INVALID_INPUT')
    expect((await project.admin.delete('/collections/nowhere/columns/b?confirm=b')).error?.code).toBe(
      'COLLECTION_NOT_FOUND',
    )
  })
})

describe('many at once', () => {
  test('twenty columns added by twenty callers: each is there, each counted', async () => {
    const name = await define()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => add(name, { name: `c${n}`, type: 'text', max_length: 5 })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201))
    expect((await columns(name)).length).toBe(25)
    const after = await definition(name)
    expect(after.schema_version).toBe(21)
    expect(after.columns.length).toBe(20)
    const [bad] = await project.sql(
      `select count(*)::int as n from app.collection_columns k join app.collections c on c.id = k.collection_id where c.name = $1 group by k.position having count(*) > 1`,
      [name],
    )
    expect(bad).toBeUndefined()
  })

  test('one column added, renamed and dropped by many: definition and table never part', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'integer' }] })
    await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        n % 4 === 0
          ? patch(name, { name: n % 8 === 0 ? 'b' : 'a' }, '', n % 8 === 0 ? 'a' : 'b')
          : n % 4 === 1
            ? add(name, { name: 'a', type: 'integer', unique: true })
            : n % 4 === 2
              ? project.admin.delete(`/collections/${name}/columns/a?confirm=a`)
              : patch(name, { type: 'bigint' }),
      ),
    )
    const said = (await definition(name)).columns
      .map((one: { name: string; type: string }) => `${one.name} ${one.type}`)
      .sort()
    const there = (await columns(name))
      .slice(5)
      .map((one) => `${one.name} ${one.type}`)
      .sort()
    expect(said).toEqual(there)
  })

  test('a table that is held: the change gives way to readers and writers, and says 503 at last', async () => {
    const name = await filled('integer', [1])
    const hold = async () => {
      const held = await openTransaction(project, 'app_admin', {})
      await held.query(`update collections.${name} set a = a where false`)
      return held
    }
    const held = await hold()
    const changing = patch(name, { type: 'bigint' })
    await untilBlocked(project)
    // whoever writes meanwhile waits for one attempt at most, not for the one who holds it
    await insert(name, { a: 2 }, user)
    await held.commit()
    expect((await changing).status).toBe(200)
    expect(await typeOf(name)).toBe('bigint')

    const stuck = await hold()
    const gaveUp = await patch(name, { type: 'numeric' })
    expect([gaveUp.status, gaveUp.error?.code, gaveUp.headers.get('retry-after')]).toEqual([
      503,
      'TENANT_UNAVAILABLE',
      '2',
    ])
    await stuck.commit()
    expect(await typeOf(name)).toBe('bigint')
  })
})
