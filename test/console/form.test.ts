import { expect, test } from 'vitest'
import { type Document, filtersOf, resourcesOf } from '../../console/src/document.ts'
import { bodyOf, fieldOfRefusal, fieldsOf, type Schema, textOf } from '../../console/src/schema.ts'

/** What the console makes of schemas and of the document; the same code runs in the browser. */
const named: Record<string, Schema> = {
  Update: {
    type: 'object',
    properties: {
      note: { type: ['string', 'null'], maxLength: 2000 },
      name: { type: 'string', maxLength: 200 },
      period: { type: 'string', enum: ['day', 'week'] },
      least: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] },
      filter: { type: 'object' },
      is_active: { type: 'boolean' },
    },
  },
}
const input: Schema = { allOf: [{ $ref: '#/components/schemas/Update' }, { required: ['name'] }] }
const fields = fieldsOf(input, named)

test('fields have the kind of their schema, the required ones first', () => {
  expect(fields.map(({ name, kind, isRequired, isNullable }) => [name, kind, isRequired, isNullable])).toEqual([
    ['name', 'text', true, false],
    ['note', 'longtext', false, true],
    ['period', 'choice', false, false],
    ['least', 'integer', false, true],
    ['filter', 'json', false, false],
    ['is_active', 'boolean', false, false],
  ])
})

test('a body has what differs from the row, null where a value was emptied, and no field that is no JSON', () => {
  const row = { name: 'One', note: 'old', least: 3, filter: { a: 1 }, is_active: true }
  const texts = Object.fromEntries(fields.map(({ name, kind }) => [name, textOf(kind, row[name as keyof typeof row])]))
  expect(bodyOf(fields, texts, row)).toEqual({ body: {}, wrong: [] })
  const changed = { ...texts, note: '', least: '5', filter: '{"b":[2]}', is_active: 'false', name: '' }
  expect(bodyOf(fields, changed, row)).toEqual({
    body: { note: null, least: 5, filter: { b: [2] }, is_active: false },
    wrong: [],
  })
  expect(bodyOf(fields, { ...texts, filter: '{' }, row)).toEqual({ body: {}, wrong: ['filter'] })
})

test('a refusal belongs to its field, that of a nested value to the outermost', () => {
  expect(fieldOfRefusal({ field: 'name' }, fields)).toBe('name')
  expect(fieldOfRefusal({ field: 'filter.a[2].b' }, fields)).toBe('filter')
  expect(fieldOfRefusal({ field: 'filters' }, fields)).toBeUndefined()
  expect(fieldOfRefusal(undefined, fields)).toBeUndefined()
})

test('an area that the document declares is a resource by itself', () => {
  const list = { content: { 'application/json': { schema: { properties: { data: { type: 'array' } } } } } }
  const operation = (operationId: string, tags: string[]) => ({
    operationId,
    tags,
    summary: operationId,
    responses: {},
  })
  const root = '/v1/admin/projects/{projectId}'
  const document = {
    'x-tagGroups': [
      { name: 'Second', tags: ['Boats'] },
      { name: 'Third', tags: ['Apples'] },
    ],
    paths: {
      [`${root}/apples`]: { get: { ...operation('listApples', ['Apples']), responses: { 200: list } } },
      [`${root}/boats`]: {
        get: { ...operation('listBoats', ['Boats']), responses: { 200: list }, parameters: [{ $ref: '#/p/Limit' }] },
        post: operation('createBoat', ['Boats']),
      },
      [`${root}/boats/dry-run`]: { post: operation('dryRunBoat', ['Boats']) },
      [`${root}/boats/{boatId}`]: { get: operation('getBoat', ['Boats']), patch: operation('updateBoat', ['Boats']) },
      [`${root}/boats/{boatId}/sink`]: { post: operation('sinkBoat', ['Boats']) },
      [`${root}/stats`]: { get: operation('getStats', ['Boats']) },
    },
    components: { schemas: {}, responses: {}, parameters: { Limit: { name: 'limit', in: 'query', schema: {} } } },
  } as unknown as Document
  const [boats, apples, ...others] = resourcesOf(document)
  expect(others).toEqual([])
  expect([apples?.path, apples?.part, apples?.create]).toEqual(['apples', 'Third', undefined])
  expect([boats?.id, boats?.create?.call, boats?.update?.call]).toEqual([
    'boatId',
    `POST ${root}/boats`,
    `PATCH ${root}/boats/{boatId}`,
  ])
  expect(boats?.tools.map((tool) => tool.operationId)).toEqual(['dryRunBoat'])
  expect(boats?.actions.map((action) => action.operationId)).toEqual(['sinkBoat'])
  expect(filtersOf(document, boats!.list).map(({ name }) => name)).toEqual(['limit'])
})
