import { expect, test } from 'vitest'
import { breakingChanges } from '#test/support/openapi_changes.ts'

const documentOf = () => ({
  paths: {
    '/v1/things': {
      post: {
        operationId: 'createThing',
        security: [{ ApiKey: [] }],
        parameters: [{ name: 'dry_run', in: 'query', schema: { type: 'boolean' } }],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/CreateThingInput' } } } },
        responses: {
          201: { content: { 'application/json': { schema: { $ref: '#/components/schemas/ThingReply' } } } },
          409: { $ref: '#/components/responses/Conflict' },
        },
      },
    },
  } as any,
  components: {
    responses: {},
    schemas: {
      CreateThingInput: {
        type: 'object',
        properties: {
          name: { type: 'string', maxLength: 10 },
          kind: { type: 'string', enum: ['a', 'b'] },
          value: { anyOf: [{ type: 'string' }, { type: 'number' }] },
          note: { type: ['string', 'null'] },
        },
        required: ['name'],
      },
      Thing: {
        type: 'object',
        properties: { id: { type: 'string' }, count: { type: 'integer' }, kind: { type: 'string', enum: ['a'] } },
        required: ['id', 'count'],
      },
      ThingReply: { type: 'object', properties: { data: { $ref: '#/components/schemas/Thing' } }, required: ['data'] },
    } as any,
  },
})

const after = (change: (document: ReturnType<typeof documentOf>) => void): string[] => {
  const changed = documentOf()
  change(changed)
  return breakingChanges(documentOf(), changed)
}
type Document = ReturnType<typeof documentOf>
const post = (document: Document) => document.paths['/v1/things'].post
const input = (document: Document) => document.components.schemas.CreateThingInput
const thing = (document: Document) => document.components.schemas.Thing

const breaks: [string, (document: Document) => unknown, RegExp][] = [
  ['an operation is removed', (d) => delete d.paths['/v1/things'].post, /removed/],
  ['an operation has another name', (d) => (post(d).operationId = 'makeThing'), /is called makeThing/],
  ['a success is removed', (d) => delete post(d).responses[201], /no longer answers 201/],
  [
    'a credential is refused for all operations',
    (d) => {
      Object.assign(d, { security: [{ Session: [] }] })
      delete post(d).security
    },
    /ApiKey is no longer accepted/,
  ],
  [
    'a parameter of the path is required',
    (d) => (d.paths['/v1/things'].parameters = [{ name: 'x', in: 'query', required: true }]),
    /query x: now required/,
  ],
  ['a credential is refused', (d) => (post(d).security = [{ Session: [] }]), /ApiKey is no longer accepted/],
  ['a parameter is removed', (d) => (post(d).parameters = []), /query dry_run: removed/],
  ['a parameter is required', (d) => (post(d).parameters[0].required = true), /dry_run: now required/],
  [
    'there is a new required parameter',
    (d) => post(d).parameters.push({ name: 'x', in: 'query', required: true }),
    /query x: now required/,
  ],
  ['a parameter has another type', (d) => (post(d).parameters[0].schema.type = 'integer'), /type is integer/],
  ['a body is required', (d) => (post(d).requestBody.required = true), /requires a body/],
  ['a body is no longer taken', (d) => delete post(d).requestBody, /no body any more/],
  ['a field of a body is removed', (d) => delete input(d).properties.note, /note: removed/],
  ['a field of a body is required', (d) => input(d).required.push('kind'), /kind: now required/],
  ['a value is no longer accepted', (d) => input(d).properties.kind.enum.pop(), /b is no longer accepted/],
  ['only some values are accepted', (d) => (input(d).properties.name.enum = ['x']), /only some values/],
  ['a bound is narrower', (d) => (input(d).properties.name.maxLength = 5), /maxLength is 5, was 10/],
  ['there is a new bound', (d) => (input(d).properties.name.minLength = 2), /minLength is 2, was none/],
  ['there is a new pattern', (d) => (input(d).properties.name.pattern = '^x'), /pattern/],
  ['null is no longer accepted', (d) => (input(d).properties.note.type = 'string'), /note: type is string/],
  ['an alternative is no longer accepted', (d) => input(d).properties.value.anyOf.pop(), /alternatives/],
  ['unknown fields are refused', (d) => (input(d).additionalProperties = false), /unknown properties/],
  ['a field of an answer is removed', (d) => delete thing(d).properties.count, /data.count: removed/],
  ['a field of an answer may be missing', (d) => thing(d).required.pop(), /count: may be missing/],
  [
    'a field of an answer has another type',
    (d) => (thing(d).properties.count.type = 'string'),
    /count: type is string/,
  ],
  [
    'a field of an answer may be null',
    (d) => (thing(d).properties.id.type = ['string', 'null']),
    /id: type is string or null/,
  ],
  ['an integer of an answer is a number', (d) => (thing(d).properties.count.type = 'number'), /count: type is number/],
  [
    'a schema has another name',
    (d) => {
      d.components.schemas.Item = thing(d)
      d.components.schemas.ThingReply.properties.data.$ref = '#/components/schemas/Item'
      delete d.components.schemas.Thing
    },
    /schema Thing/,
  ],
]

test.each(breaks)('a client breaks when %s', (_, change, told) => {
  const found = after(change)
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(told)
})

const additions: [string, (document: Document) => unknown][] = [
  ['nothing changes', () => {}],
  ['there is a new operation', (d) => (d.paths['/v1/others'] = { get: { operationId: 'listOthers', responses: {} } })],
  [
    'there is an optional parameter',
    (d) => post(d).parameters.push({ name: 'x', in: 'query', schema: { type: 'string' } }),
  ],
  ['there is an optional field', (d) => (input(d).properties.more = { type: 'string' })],
  ['a field need not be sent', (d) => input(d).required.pop()],
  ['another value is accepted', (d) => input(d).properties.kind.enum.push('c')],
  ['a bound is wider', (d) => (input(d).properties.name.maxLength = 20)],
  ['a number is accepted beside text', (d) => (input(d).properties.note.type = ['string', 'null', 'number'])],
  ['an answer has another field', (d) => (thing(d).properties.more = { type: 'string' })],
  ['an answer may have another value', (d) => thing(d).properties.kind.enum.push('b')],
  ['another credential is accepted', (d) => post(d).security.push({ Session: [] })],
  ['a parameter moves to the path', (d) => (d.paths['/v1/things'].parameters = post(d).parameters.splice(0))],
  [
    'its credential is told for all operations',
    (d) => {
      Object.assign(d, { security: post(d).security })
      delete post(d).security
    },
  ],
  [
    'a schema refers to another one and says the rest',
    (d) => {
      const { id, ...rest } = thing(d).properties
      d.components.schemas.Row = { type: 'object', properties: { id }, required: ['id'] }
      d.components.schemas.Thing = {
        allOf: [{ $ref: '#/components/schemas/Row' }, { type: 'object', properties: rest, required: ['count'] }],
      }
    },
  ],
  ['a schema is written out', (d) => (d.components.schemas.ThingReply.properties.data = { ...thing(d) })],
]

test.each(additions)('a client goes on when %s', (_, change) => {
  expect(after(change)).toEqual([])
})

test('a schema that contains itself is compared once, and what changes in it is found', () => {
  const recursive = (kind: string) => {
    const made = documentOf() as any
    input(made).properties.self = { $ref: '#/components/schemas/Nested' }
    made.components.schemas.Nested = {
      type: 'object',
      properties: { kind: { type: kind }, and: { type: 'array', items: { $ref: '#/components/schemas/Nested' } } },
    }
    return made
  }
  expect(breakingChanges(recursive('string'), recursive('string'))).toEqual([])
  expect(breakingChanges(recursive('string'), recursive('integer'))).toEqual([
    expect.stringContaining('self.kind: type is integer, was string'),
  ])
})
