import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { Filter } from '#server/http/grammars.ts'
import { columnDefaults } from '#server/http/interface.ts'
import { openApi } from '#server/http/openapi.ts'
import { area, type Declaration, group, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'
import { type Dictionary, field } from '#server/http/words.ts'
import { wordProblems } from '../../scripts/docs/words.ts'
import { type Schema, typeOf } from '../../scripts/sdk/types.ts'

/** Words of the fields of bodies: where they come from, and what is missing. */
type Verb = 'POST' | 'PATCH'
const made = async (
  body: z.ZodType,
  said: Pick<Declaration, 'words' | 'form' | 'defaultsOf'> = {},
  { words, verb = 'POST', call = 'nothing' }: { words?: Dictionary; verb?: Verb; call?: string } = {},
) => {
  const things = area({
    stem: 'things',
    title: 'Things',
    ...(words ? { words } : {}),
    routes: group('/admin/projects/:projectId/things', administrator, [
      route(`${verb} /`, 'Do it', { call, body, ...said, replies: { 200: data(body) } }),
    ]),
  })
  const document = (await openApi([things], 'https://api.trellis.test')) as any
  const operation = document.paths['/v1/admin/projects/{projectId}/things'][verb.toLowerCase()]
  const { schema } = operation.requestBody.content['application/json']
  const named = schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)] : schema
  return { document, properties: named.properties, problems: wordProblems([things], document) }
}
const problemsOf = async (...args: Parameters<typeof made>) =>
  (await made(...args)).problems.map((problem) =>
    problem.replace(/^things: (POST|PATCH) \/v1\/admin\/projects\/:projectId\/things: /, ''),
  )

const Body = z.object({ name: z.string(), weight: z.int().optional(), note: z.string().optional() })

describe('a field has the words', () => {
  test('of its route before those of the area, and those of every area otherwise', async () => {
    const { properties } = await made(
      Body,
      { words: { weight: ['Weight', 'In grams.', { default: 1 }] } },
      { words: { weight: 'Mass', note: 'Note' } },
    )
    expect(properties).toMatchObject({
      name: { title: 'Name', description: expect.any(String) },
      weight: { title: 'Weight', description: 'In grams.', default: 1 },
      note: { title: 'Note' },
    })
  })

  test('of the longest end of its path', async () => {
    const nested = z.object({ rule: z.array(z.object({ note: z.string() })), note: z.string() })
    const { properties } = await made(nested, { words: { note: 'Note', 'rule.note': 'Remark', rule: 'Rules' } })
    expect(properties.note.title).toBe('Note')
    expect(properties.rule.items.properties.note.title).toBe('Remark')
    // also where the field itself is one of the form
    const formed = await made(
      nested,
      { form: { Basics: { note: 'Note', rule: 'Rules' } } },
      { words: { 'rule.note': 'Remark' } },
    )
    expect(formed.properties.rule.items.properties.note.title).toBe('Remark')
  })

  test('that its schema says, whoever uses it, also where it may be null', async () => {
    const owned = field(z.object({ a: z.string() }), 'Own', 'Its own.')
    const { properties } = await made(z.object({ owned: owned.nullable() }), { words: { owned: 'Other', a: 'A' } })
    expect(properties.owned).toMatchObject({ title: 'Own', description: 'Its own.', anyOf: expect.any(Array) })
  })

  test('with the place in its form, and the field that it is made from if that is there', async () => {
    const keyed = z.object({ key: z.string(), name: z.string() })
    const { properties } = await made(keyed, { form: { Basics: { name: true, key: true } } })
    expect(properties.key['x-form']).toEqual({ section: 'Basics', order: 2, from: 'name' })
    expect((await made(z.object({ key: z.string() }))).properties.key['x-form']).toBeUndefined()
  })
})

describe('what counts where a field is left out', () => {
  const Rule = z.object({ grace_hours: z.int().optional(), timezone: z.string().nullable().optional() })
  const words: Dictionary = { grace_hours: ['Grace', 'Hours.'] }

  test('is the default of the column', async () => {
    expect(columnDefaults('streak_definition')).toMatchObject({ grace_hours: 0, timezone: null, milestones: [] })
    const { properties } = await made(Rule, { defaultsOf: 'streak_definition', words })
    expect(properties).toMatchObject({ grace_hours: { default: 0 }, timezone: { default: null } })
  })

  test('is the default of the parameter of the function', async () => {
    const quantity = z.object({ quantity: z.int().optional() })
    const { properties } = await made(quantity, {}, { call: 'inventory_revoke' })
    expect(properties.quantity.default).toBe(1)
  })

  test('is said in words where it is no one value', async () => {
    const { properties } = await made(Rule, { words: { grace_hours: ['Grace', 'Hours.', { unset: 'As it is' }] } })
    expect(properties.grace_hours).toMatchObject({ 'x-unset': 'As it is' })
    expect(properties.grace_hours).not.toHaveProperty('default')
  })

  test('is nothing in a change', async () => {
    const { properties } = await made(
      Rule,
      { defaultsOf: 'streak_definition', words: { grace_hours: ['Grace', 'Hours.', { unset: 'None' }] } },
      { verb: 'PATCH' },
    )
    expect(properties.grace_hours).toEqual({ type: 'integer', title: 'Grace', description: 'Hours.' })
  })
})

test('a grammar is a schema of its own, and the field that has it keeps its words', async () => {
  const { document, properties } = await made(z.object({ filter: Filter.nullable() }), {
    words: { filter: ['Only some', 'Of the events.'] },
  })
  expect(properties.filter).toEqual({
    anyOf: [{ $ref: '#/components/schemas/Filter' }, { type: 'null' }],
    title: 'Only some',
    description: 'Of the events.',
  })
  const { and, column } = document.components.schemas.Filter.properties
  expect(and.items).toEqual({ $ref: '#/components/schemas/Filter' })
  expect(column).toMatchObject({ type: 'string', title: 'Property' })
})

test('responses have no words', async () => {
  const { document } = await made(Body, { words: { weight: ['Weight', 'In grams.', { default: 1 }], note: 'Note' } })
  const { responses } = document.paths['/v1/admin/projects/{projectId}/things'].post
  expect(JSON.stringify(responses)).not.toContain('In grams')
})

describe('what is missing', () => {
  test.each<[string, z.ZodRawShape, Dictionary, string]>([
    ['a title', { weight: z.string() }, {}, 'weight has no title'],
    [
      'a title deep within',
      { rule: z.array(z.object({ note: z.string() })) },
      { rule: 'Rules' },
      'rule.note has no title',
    ],
    ['the unit of a number', { weight: z.int() }, { weight: 'Weight' }, 'weight has a title and no description'],
    ['the effect of a choice', { on: z.boolean() }, { on: 'On' }, 'on has a title and no description'],
    [
      'a default',
      { weight: z.int().optional() },
      { weight: ['Weight', 'In grams.'] },
      'weight is optional, and has neither a default nor x-unset, which says what follows without it',
    ],
  ])('%s', async (_, shape, words, problem) => {
    expect(await problemsOf(z.object(shape), { words })).toEqual([problem])
  })

  test('the section of a field, and its description, in the body of a definition', async () => {
    const form = { Basics: { note: 'Note' } }
    expect(await problemsOf(z.object({ note: z.string(), name: z.string() }), { form })).toEqual([
      'note has a title and no description',
      'name is in no section of the form',
    ])
  })

  test('nothing', async () => {
    const words: Dictionary = { weight: ['Weight', 'In grams.', { unset: 'Unknown' }], note: 'Note' }
    expect(await problemsOf(Body, { words })).toEqual([])
    const changed: Dictionary = { weight: ['Weight', 'In grams.'], note: 'Note' }
    expect(await problemsOf(Body.partial(), { words: changed }, { verb: 'PATCH' })).toEqual([])
  })
})

test('the SDK has them as comments', () => {
  const schema = {
    type: 'object',
    properties: {
      weight: { type: 'integer', title: 'Weight', description: 'In grams, see */.', default: 1 },
      plain: { type: 'string' },
    },
  } satisfies Schema
  expect(typeOf(schema, { open: false, indent: '' })).toBe(
    '{\n  /** Weight. In grams, see *\\/. Default: `1`. */\n  weight?: number\n  plain?: string\n}',
  )
})
