import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { root } from '#server/root.ts'
import { breakingChanges } from '#test/support/openapi_changes.ts'

const document = JSON.parse(JSON.stringify(await openApi(await loadAreas(), 'https://api.trellis.test'))) as any
const operations: any[] = Object.values(document.paths).flatMap(({ parameters: _, ...item }: any) =>
  Object.values(item),
)

test('operation ids are short, unique, and words of a program', () => {
  const ids = operations.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]{1,39}$/)
})

test('end users and administrators do the same under different names', () => {
  const idOf = (method: string, path: string) => document.paths[path][method].operationId
  const admin = '/v1/admin/projects/{projectId}'
  expect(idOf('get', '/v1/client/streaks')).toBe('listStreaks')
  expect(idOf('get', `${admin}/streaks`)).toBe('listStreakDefinitions')
  expect(idOf('post', `${admin}/achievements`)).toBe('createAchievementDefinition')
  expect(idOf('get', `${admin}/groups/{groupId}/members`)).toBe('adminListGroupMembers')
  expect(idOf('post', '/v1/client/auth/email/login')).toBe('signInWithPassword')
})

test('every row, answer and body of JSON is a named schema, used by reference', () => {
  const inlined: string[] = []
  for (const { operationId, requestBody, responses } of operations) {
    for (const holder of [requestBody ?? {}, ...Object.values<any>(responses)]) {
      const schema = holder.content?.['application/json']?.schema
      if (schema?.properties && JSON.stringify(schema).length > 60) inlined.push(operationId)
    }
  }
  expect(inlined).toEqual([])
  expect(document.components.schemas.StreakPage ?? document.components.schemas.StreakList).toBeDefined()
  expect(document.components.schemas.StreakDefinitionPage.properties.data.items).toEqual({
    $ref: '#/components/schemas/StreakDefinition',
  })
})

const eachSchema = (value: any, visit: (schema: any) => void): void => {
  if (Array.isArray(value)) for (const one of value) eachSchema(one, visit)
  else if (typeof value === 'object' && value !== null) {
    visit(value)
    for (const [key, one] of Object.entries(value)) {
      if (!['example', 'examples', 'default', 'enum', 'const'].includes(key)) eachSchema(one, visit)
    }
  }
}

test('references lead somewhere, and every component is used', () => {
  const references = JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)
  const used = new Set([...references].map(([, reference]) => reference))
  const there = ['schemas', 'responses', 'parameters'].flatMap((kind) =>
    Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
  )
  expect([...used].sort()).toEqual(there.sort())
})

test('schemas can be satisfied: booleans, tuples and required properties are what they say', () => {
  const wrong: unknown[] = []
  eachSchema(document, (schema) => {
    const isBoolean = [schema.type].flat().includes('boolean')
    if (isBoolean && schema.enum?.some((value: unknown) => typeof value === 'string')) wrong.push(schema)
    if (Array.isArray(schema.prefixItems) && !schema.items) wrong.push(schema)
    if (Array.isArray(schema.required) && schema.required.some((name: string) => !schema.properties?.[name])) {
      wrong.push(schema)
    }
  })
  expect(wrong).toEqual([])
})

test('generators stumble over nothing: a form is fields, and what consists of constants is closed', () => {
  for (const { operationId, requestBody } of operations) {
    for (const [type, { schema }] of Object.entries<any>(requestBody?.content ?? {})) {
      if (type.includes('form-')) expect(schema.additionalProperties ?? schema.properties, operationId).toBeDefined()
    }
  }
  eachSchema(document.components.schemas, ({ properties, additionalProperties }) => {
    const parts = Object.values<any>(properties ?? {})
    const isOpen = typeof additionalProperties === 'object' && parts.length > 0
    if (isOpen) expect(parts.every((part) => 'const' in part)).toBe(false)
  })
})

test('a schema that says more than another one refers to it, and means the same', () => {
  const { StreakDetail, CreateStreakDefinitionInput } = document.components.schemas
  expect(StreakDetail.allOf[0]).toEqual({ $ref: '#/components/schemas/Streak' })
  const [base, own] = CreateStreakDefinitionInput.allOf
  expect(base).toEqual({ $ref: '#/components/schemas/UpdateStreakDefinitionInput' })
  expect(own.required.length).toBeGreaterThan(0)
  expect(base).not.toHaveProperty('default')
  expect(own.properties.min_count).toMatchObject({ type: 'integer', default: 1 })
  for (const schema of Object.values<any>(document.components.schemas)) {
    if (!schema.allOf) continue
    const [{ $ref }, more] = schema.allOf
    const under = document.components.schemas[$ref.split('/').at(-1)]
    // a property that both have accepts the same, and is required in the one that says more, or has a default there
    for (const [name, { default: usual, 'x-unset': unset, ...own }] of Object.entries<any>(more.properties)) {
      if (!under.properties?.[name]) continue
      expect(under.properties[name]).toMatchObject(own)
      expect(usual !== undefined || unset !== undefined || more.required.includes(name), name).toBe(true)
    }
  }
})

test('every operation can succeed', () => {
  for (const { operationId, responses } of operations) {
    expect(
      Object.keys(responses).some((status) => /^[23]/.test(status)),
      operationId,
    ).toBe(true)
  }
})

test('examples are true', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema({ ...document, $id: 'trellis' })
  let seen = 0
  for (const { operationId, requestBody } of operations) {
    const { schema, example } = requestBody?.content['application/json'] ?? {}
    if (example === undefined) continue
    seen += 1
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"trellis#'))
    const isValid = ajv.compile(absolute)
    expect(isValid(example) || isValid.errors, operationId).toBe(true)
  }
  expect(seen).toBeGreaterThan(150)
}, 60_000)

test('every tag is described and belongs to one part', () => {
  const names = document.tags.map(({ name }: any) => name)
  const grouped = document['x-tagGroups'].flatMap(({ tags }: any) => tags)
  expect([...grouped].sort()).toEqual([...names].sort())
  expect(new Set(operations.flatMap(({ tags }) => tags))).toEqual(new Set(names))
  for (const { name, description } of document.tags) expect(description.length, name).toBeGreaterThan(name.length)
})

test('it has not grown out of hand', () => {
  expect(JSON.stringify(document).length / operations.length).toBeLessThan(2000)
})

test('nothing that a client of the released document uses is gone', async () => {
  const released = JSON.parse(gunzipSync(await readFile(join(root, 'docs/schema/openapi-released.json.gz'))).toString())
  expect(Object.keys(released.paths).length).toBeGreaterThan(300)
  expect(breakingChanges(released, document)).toEqual([])
})
