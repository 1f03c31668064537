import { describe, expect, test } from 'vitest'
import { startColumns } from '#test/support/definitions.ts'

/** Changing columns in place: name, type, bounds, default. */
const { project, define, definition, insert, user, filled, patch, values, version } = await startColumns()

describe('changing a column', () => {
  test('a new name keeps the data, and goes with constraints, indexes and filters', async () => {
    const name = await define({
      columns: [
        { name: 'a', type: 'text', max_length: 5, unique: true },
        { name: 'p', type: 'uuid', references: { collection: await define(), on_delete: 'restrict' } },
      ],
      indexes: [
        {
          name: 'mine',
          columns: ['a', 'user_id'],
          where: { or: [{ column: 'a', op: 'ne', value: 'a' }, { not: { column: 'a', op: 'eq', value: 'b' } }] },
        },
      ],
    })
    await insert(name, { a: 'x' }, user)
    expect((await patch(name, { name: 'title' })).data).toMatchObject({ name: 'title', max_length: 5 })
    expect((await patch(name, { name: 'parent' }, '', 'p')).data).toMatchObject({ name: 'parent' })
    expect(await values(name, 'title')).toEqual(['x'])
    const names = await project.sql(
      `select conname as name, obj_description(oid) as says from pg_constraint where conrelid = $1::regclass and contype in ('c', 'f') order by conname`,
      [`collections.${name}`],
    )
    expect(names.map((one) => one.name)).toEqual(
      expect.arrayContaining([`${name}_title_max_length`, `${name}_parent_fkey`]),
    )
    expect(names.find((one) => one.name.endsWith('max_length')).says).toBe(
      '400 INVALID_BODY title: must have at most 5 characters.',
    )
    const [unique] = await project.sql(`select obj_description('collections.${name}_title_key'::regclass) as says`)
    expect(unique.says).toBe('409 CONFLICT title: A row with this value exists.')
    const after = await definition(name)
    expect(after.indexes[0]).toMatchObject({
      columns: ['title', 'user_id'],
      where: { or: [{ column: 'title', op: 'ne', value: 'a' }, { not: { column: 'title', op: 'eq', value: 'b' } }] },
    })
    expect(after.schema_version).toBe(3)
    await expect(insert(name, { title: 'too long' }, user)).rejects.toThrow(/max_length/)
    const rows = await project.as(
      'app_user',
      { 'app.user_id': user.id },
      `update collections.${name} set title = 'y' returning title`,
    )
    expect(rows).toEqual([{ title: 'y' }])
  })

  test.each([
    ['integer', 'bigint', [1, null, -2147483648], ['1', null, '-2147483648']],
    ['integer', 'numeric', [1], ['1']],
    ['bigint', 'numeric', ['9007199254740993'], ['9007199254740993']],
    ['integer', 'double', [3], [3]],
    ['date', 'timestamptz', ['2026-01-31'], [new Date('2026-01-31T00:00:00Z')]],
    ['integer', 'text', [5], ['5']],
    ['numeric', 'text', ['1.50'], ['1.50']],
    ['double', 'text', [0.1], ['0.1']],
    ['boolean', 'text', [true], ['true']],
    ['date', 'text', ['2026-01-31'], ['2026-01-31']],
    ['timestamptz', 'text', ['2026-01-31T10:00:00.123456Z'], ['2026-01-31T10:00:00.123456Z']],
    ['uuid', 'text', ['00000000-0000-4000-8000-00000000000a'], ['00000000-0000-4000-8000-00000000000a']],
    ['jsonb', 'text', ['{"a":[1]}'], ['{"a": [1]}']],
    ['integer[]', 'text', ['{1,null}'], ['[1,null]']],
    ['text[]', 'text', ['{"a,b"}'], ['["a,b"]']],
  ])('%s becomes %s without loss', async (from, to, before, after) => {
    const name = await filled(from, before)
    const plan = await patch(name, { type: to }, '?dry_run=true')
    expect(plan.data).toMatchObject({ rewrites_table: true, rows: before.length })
    expect(await version(name)).toBe(1)
    expect((await patch(name, { type: to })).data).toMatchObject({ type: to })
    expect(await values(name)).toEqual(after)
    expect(await version(name)).toBe(2)
    await insert(name, { a: before[0] }, user)
  })

  test.each([
    ['text', 'integer'],
    ['text', 'varchar'],
    ['bigint', 'integer'],
    ['double', 'numeric'],
    ['timestamptz', 'date'],
    ['boolean', 'integer'],
    ['text', 'text[]'],
    ['jsonb', 'uuid'],
  ])('%s does not become %s', async (from, to) => {
    const value = {
      text: 'abc',
      bigint: '1',
      double: 1,
      timestamptz: '2026-01-01T00:00:00Z',
      boolean: true,
      jsonb: '1',
    }[from]
    const name = await filled(from, [value, null])
    const refused = await patch(name, { type: to })
    if (to === 'varchar') expect(refused.error).toMatchObject({ code: 'VALIDATION_ERROR', details: { field: 'type' } })
    else
      expect(refused.error).toMatchObject({
        code: 'UNSAFE_TYPE_CHANGE',
        details: { failing_rows: 1, sample: [{ id: expect.any(String) }] },
      })
    expect(await version(name)).toBe(1)
  })

  test('a type without a way there is that, whatever else the column has', async () => {
    for (const more of [{ max_length: 5 }, { default: 'abc' }, { enum: ['abc'] }]) {
      const name = await filled('text', ['abc'], more)
      expect(await patch(name, { type: 'integer' }), JSON.stringify(more)).toMatchObject({
        status: 409,
        error: { code: 'UNSAFE_TYPE_CHANGE', details: { failing_rows: 1, sample: [{ value: 'abc' }] } },
      })
    }
    const bounded = await filled('integer', [1], { min: 0 })
    expect((await patch(bounded, { type: 'boolean' })).error?.code).toBe('UNSAFE_TYPE_CHANGE')
    const name = await define({ columns: [{ name: 'p', type: 'uuid', references: { collection: bounded } }] })
    expect((await project.admin.patch(`/collections/${name}/columns/p`, { type: 'text' })).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { field: 'type' },
    })
  })

  test('bounds move if all rows fit, deleted ones too', async () => {
    const name = await filled('text', ['abc', 'abcdef', null], { max_length: 10 })
    await project.sql(`update collections.${name} set deleted_at = now() where a = 'abcdef'`)
    const refused = await patch(name, { max_length: 5 })
    expect([refused.status, refused.error]).toMatchObject([
      409,
      { code: 'UNSAFE_TYPE_CHANGE', details: { failing_rows: 1, sample: [{ value: 'abcdef' }] } },
    ])
    expect((await patch(name, { max_length: 6 })).data.max_length).toBe(6)
    await expect(insert(name, { a: 'abcdefg' }, user)).rejects.toThrow(/max_length/)
    expect((await patch(name, { max_length: null })).data.max_length).toBe(null)
    await insert(name, { a: 'x'.repeat(1000) }, user)
    expect((await patch(name, { enum: ['abc'] })).error).toMatchObject({
      code: 'UNSAFE_TYPE_CHANGE',
      details: { failing_rows: 2 },
    })

    const number = await filled('integer', [1, 5])
    expect((await patch(number, { min: 2 })).error?.details?.failing_rows).toBe(1)
    expect((await patch(number, { min: 1, max: 5 })).data).toMatchObject({ min: 1, max: 5 })
    expect((await patch(number, { max: 0 })).error?.details?.field).toBe('max')
    await expect(insert(number, { a: 6 }, user)).rejects.toThrow(/_max/)
    expect((await patch(number, { type: 'bigint', max: '9007199254740993' })).data).toMatchObject({
      type: 'bigint',
      max: '9007199254740993',
    })
    await insert(number, { a: 6 }, user)
    // a number's bounds mean nothing for text
    expect((await patch(number, { type: 'text', enum: ['1', '5', '6'] })).data).toMatchObject({
      type: 'text',
      min: null,
      max: null,
    })
    await expect(insert(number, { a: '7' }, user)).rejects.toThrow(/enum/)
  })

  test('defaults follow', async () => {
    const name = await filled('integer', [1], { default: 5 })
    expect((await patch(name, { default: 'x' })).error?.details?.field).toBe('default')
    expect((await patch(name, { type: 'text' })).data.default).toBe('5')
    await insert(name, {}, user)
    expect(await values(name)).toEqual(['1', '5'])
    expect((await patch(name, { default: "it's" })).data.default).toBe("it's")
    await insert(name, {}, user)
    expect((await patch(name, { default: null })).data.default).toBe(null)
    await insert(name, {}, user)
    expect(await values(name)).toEqual(['1', '5', "it's", null])
  })

  test('not null wants a value for every row', async () => {
    const name = await filled('text', ['x', null])
    expect((await patch(name, { nullable: false })).error).toMatchObject({
      code: 'DEFAULT_REQUIRED',
      details: { failing_rows: 1 },
    })
    const plan = await patch(name, { nullable: false, default: 'filled' }, '?dry_run=true')
    expect(plan.data.warnings).toEqual(['1 rows without a value get the default.'])
    expect(await values(name)).toEqual(['x', null])
    expect((await patch(name, { nullable: false, default: 'filled' })).data.nullable).toBe(false)
    expect(await values(name)).toEqual(['x', 'filled'])
    expect((await patch(name, { nullable: true })).data.nullable).toBe(true)
    await insert(name, { a: null }, user)
  })

  test('all at once: a name, a type, bounds and a default', async () => {
    const name = await filled('integer', [1, 2], { min: 0 })
    const changed = await patch(name, { name: 'b', type: 'bigint', min: 1, max: 10, default: 3, nullable: false })
    expect(changed.data).toMatchObject({ name: 'b', type: 'bigint', min: 1, max: 10, default: 3, nullable: false })
    expect(await values(name, 'b')).toEqual(['1', '2'])
    await expect(insert(name, { b: 0 }, user)).rejects.toThrow(`${name}_b_min`)
    expect(await version(name)).toBe(2)
  })

  test('columns whose names stand in expressions and values', async () => {
    const name = await define({
      columns: [
        { name: 'a', type: 'text', enum: ['a', 'char_length(a)'], max_length: 20 },
        { name: 'char_length', type: 'text', max_length: 3 },
      ],
    })
    await insert(name, { a: 'a', char_length: 'abc' }, user)
    expect((await patch(name, { name: 'enum', max_length: 19 })).status).toBe(200)
    expect((await patch(name, { name: 'l', max_length: 2 }, '', 'char_length')).error?.code).toBe('UNSAFE_TYPE_CHANGE')
    expect((await patch(name, { name: 'l', max_length: 4 }, '', 'char_length')).status).toBe(200)
    await expect(insert(name, { enum: 'b' }, user)).rejects.toThrow(`${name}_enum_enum`)
  })

  test('refusals', async () => {
    const name = await define({
      columns: [
        { name: 'a', type: 'integer' },
        { name: 'b', type: 'text' },
        { name: 'l', type: 'text[]' },
        { name: 'p', type: 'uuid', references: { collection: await define() } },
      ],
      indexes: [
        { name: 'on_l', columns: ['l'], method: 'gin' },
        { name: 'on_a', columns: ['b'], where: { column: 'a', op: 'gt', value: 1 } },
      ],
    })
    expect((await patch(name, { name: 'b' })).error).toMatchObject({ code: 'CONFLICT', details: { field: 'name' } })
    expect((await patch(name, { name: 'user_id' })).error?.code).toBe('RESERVED_NAME')
    expect((await patch(name, { type: 'text' }, '', 'l')).error).toMatchObject({
      code: 'CONFLICT',
      details: { index: 'on_l' },
    })
    expect((await patch(name, { type: 'text' })).error).toMatchObject({ code: 'CONFLICT', details: { index: 'on_a' } })
    expect((await patch(name, { type: 'text' }, '', 'p')).error?.details?.field).toMatch(/type|references/)
    expect((await patch(name, { nullable: false }, '', 'p')).error?.details?.field).toBe('references.on_delete')
    expect((await patch(name, { max_length: 3 })).error?.details?.field).toBe('max_length')
    expect((await patch(name, {}, '', 'zzz')).error?.code).toBe('NOT_FOUND')
    expect((await patch('nowhere', {})).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await patch(name, '[]')).error?.code).toBe('INVALID_BODY')
    expect((await patch(name, {}, '?dry_run=x')).error?.code).toBe('INVALID_INPUT')
    expect((await patch(name, {})).data).toMatchObject({ name: 'a', type: 'integer' })
    expect(await version(name)).toBe(1)
  })

  test('what a DBA made stands in the way with 409, never 500', async () => {
    const name = await filled('integer', [1])
    await project.sql('create schema dba')
    await project.sql(`create view dba.over_${name} as select a from collections.${name}`)
    expect((await patch(name, { type: 'bigint' })).error?.code).toBe('CONFLICT')
    expect((await project.admin.delete(`/collections/${name}/columns/a?confirm=a`)).error?.code).toBe('CONFLICT')
    expect((await patch(name, { name: 'b' })).status).toBe(200)
  })
})
