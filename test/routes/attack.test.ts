import fc from 'fast-check'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { fullPath } from '#server/http/openapi.ts'
import { invalidBodyCode, type Route } from '#server/http/route.ts'
import { ErrorEnvelope } from '#server/http/schemas.ts'
import { freshIp, startHarness } from '#test/support/harness.ts'
import { requestText } from '#test/support/request_text.ts'
import { callRoute, createCast } from '#test/support/routes.ts'
import { sized } from '#test/support/sized.ts'
import { watchTables } from '#test/support/watch_tables.ts'

/**
 * Every body, header, path and query of every route, attacked from the OpenAPI document: never a 5xx, always an envelope, answered
 * in time, and a refused request changes no table.
 */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
let cast = await createCast(harness)
const { project } = cast
/** Whom the first bodies name; an attack may delete this user for good. */
const named = cast.user.id
let document: any
const watched: (() => Promise<Record<string, string>>)[] = []

beforeAll(async () => {
  document = await (await fetch(`${harness.url}/openapi.json`)).json()
  watched.push(await watchTables(project.sql, marks), await watchTables(harness.control, marks))
})

/** Counters and marks that a refused request may move: they are not what it asked for. */
const marks = '^(rate_limits|workers|api_keys|traffic_reports)$'

/** Of each database, each table's rows as a hash under its name. */
const state = async (): Promise<Record<string, string>[]> => Promise.all(watched.map((hashes) => hashes()))

const nasty = fc.constantFrom(
  '',
  ' ',
  "'; drop table app.users; --",
  '$1',
  '%s%n',
  '../../etc/passwd',
  '\u202e',
  'ﷺ'.repeat(300),
  'a'.repeat(6000),
  '0x7f000001',
  '2026-02-30',
  '9999999999999999999999',
  '999999999999999',
  'a\0b',
  '-1',
  'null',
  '__proto__',
  '{"a":1}',
  '00000000-0000-4000-8000-000000000000',
  '😀',
  '\ud83d\ude00'.repeat(100),
)
const text = fc.oneof(nasty, fc.string({ unit: 'grapheme', maxLength: 40 }))
const garbage: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom(null, true, false, 0, -1, 1e308, -1e308, 2 ** 53, 1.5, 2147483648),
  fc.constant([]),
  fc.constant({}),
  fc.jsonValue({ maxDepth: 4 }),
  fc.array(text, { maxLength: 3 }),
)

/** What a part of the document stands for, where it refers to a component. */
const meant = (part: any): any =>
  part.$ref
    ? meant(
        part.$ref
          .slice(2)
          .split('/')
          .reduce((at: any, name: string) => at[name], document),
      )
    : part

/** A value after a schema, more or less: mostly right, so that the attack gets past the first check. */
const sample = (given: any, depth = 0): fc.Arbitrary<unknown> => {
  const schema = meant(given)
  // some schemas contain themselves
  if (depth > 8) return garbage
  const sampled = (part: any) => sample(part, depth + 1)
  if (schema.allOf) return fc.tuple(...schema.allOf.map(sampled)).map((parts) => Object.assign({}, ...parts))
  if (schema.anyOf ?? schema.oneOf) return fc.oneof(...(schema.anyOf ?? schema.oneOf).map(sampled))
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.type === 'object' || schema.properties) return bodyOf(schema, depth + 1)
  if (schema.type === 'array') return fc.array(sampled(schema.items ?? {}), { maxLength: 3 })
  if (schema.type === 'integer' || schema.type === 'number')
    return fc.oneof(fc.integer(), fc.integer({ min: 0, max: 50 }))
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.format === 'uuid') return fc.oneof(fc.uuid(), fc.constant(named))
  if (schema.format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString())
  return fc.oneof(fc.constantFrom('abc', 'me@example.org', 'a long passphrase', 'https://1.1.1.1/x'), text)
}

const bodyOf = (schema: any, depth: number): fc.Arbitrary<unknown> =>
  fc.record(
    Object.fromEntries(
      Object.entries(schema.properties ?? {}).map(([name, property]) => [
        name,
        fc.oneof({ arbitrary: sample(property, depth), weight: 3 }, { arbitrary: garbage, weight: 1 }),
      ]),
    ),
    { requiredKeys: [] },
  )

const header = text.map((value) => value.replace(/[^\x20-\x7e]/g, '?').trim())
const rawBody = fc.constantFrom(
  '',
  '{',
  '[]',
  'null',
  '"x"',
  '{"a":1,"a":2}',
  '{"__proto__":{"x":1}}',
  '[[[[[[',
  '{"a":"\\u0000"}',
  '\ufeff{}',
)

type Attack = {
  path: Record<string, string>
  query: Record<string, string>
  body: unknown
  raw: string | null
  headers: Record<string, string>
}

const attackOn = (operation: any): fc.Arbitrary<Attack> => {
  const parameters = (operation.parameters ?? []).map(meant)
  const schema = operation.requestBody?.content['application/json']?.schema
  const parametersIn = (where: string, value: (parameter: any) => fc.Arbitrary<string>) =>
    fc.record(
      Object.fromEntries(parameters.filter((p: any) => p.in === where).map((p: any) => [p.name, value(p)])),
      where === 'path' ? {} : { requiredKeys: [] },
    ) as fc.Arbitrary<Record<string, string>>
  return fc.record({
    path: parametersIn('path', (parameter) =>
      parameter.name === 'projectId'
        ? fc.oneof({ arbitrary: fc.constant(project.id), weight: 9 }, { arbitrary: text, weight: 1 })
        : fc.oneof(
            fc.uuid(),
            text.filter((value) => value !== '' && value !== '.' && value !== '..'),
          ),
    ),
    query: parametersIn('query', (parameter) => fc.oneof(text, sample(parameter.schema).map(String))),
    body: schema
      ? fc.oneof({ arbitrary: sample(schema), weight: 8 }, { arbitrary: garbage, weight: 1 })
      : fc.constant(undefined),
    raw: schema ? fc.option(rawBody, { freq: 10 }) : fc.constant(null),
    headers: fc.record(
      {
        'idempotency-key': header,
        'time-zone': header,
        'x-service-timezone': fc.oneof(header, fc.constant('Europe/Berlin')),
        'x-on-behalf-of': fc.oneof(header, fc.constant(named)),
        'x-request-id': header,
        'content-type': fc.constantFrom(
          'application/json',
          'text/plain',
          'application/json; charset=x',
          'multipart/form-data',
        ),
        authorization: header,
        'x-api-key': header,
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<Record<string, string>>,
  })
}

const credentials = (route: Route): Record<string, string> =>
  route.path.startsWith('/client')
    ? { 'x-api-key': project.clientKey, authorization: cast.user.headers['authorization'] ?? '' }
    : { authorization: cast.project.developer.headers['authorization'] ?? '' }

const send = async (route: Route, path: string, attack: Attack, withCredentials: boolean) => {
  // now and then a path that cannot be decoded
  const broken = attack.raw === '{' ? '%zz%E0' : ''
  const url = path.replace(
    /:([A-Za-z]+)/g,
    (_, name: string) => encodeURIComponent((attack.path[name] ?? '').toWellFormed()) + broken,
  )
  const query = new URLSearchParams(attack.query).toString()
  const { authorization: _a, 'x-api-key': _k, 'content-type': type, ...harmless } = attack.headers
  const body = attack.raw ?? (attack.body === undefined ? undefined : JSON.stringify(attack.body))
  const began = performance.now()
  const { status, text } = await requestText(`${harness.url}${url}${query ? `?${query}` : ''}`, {
    method: route.method,
    headers: {
      'x-forwarded-for': freshIp(),
      ...(withCredentials ? { ...harmless, ...credentials(route) } : attack.headers),
      ...(body === undefined
        ? {}
        : { 'content-type': withCredentials ? 'application/json' : (type ?? 'application/json') }),
    },
    ...(body === undefined || route.method === 'GET' ? {} : { body }),
  })
  return { status, text, milliseconds: performance.now() - began }
}

/** It ends the project that all others need. */
const isEnd = ({ route }: { route: Route }) => route.method === 'DELETE' && route.path === '/admin/projects/:projectId'

const routes = harness.running.areas
  .filter((area) => area.stem !== 'openapi' && area.stem !== 'docs')
  .flatMap((area) => area.routes.map((route) => ({ name: `${route.method} ${fullPath(area, route)}`, area, route })))
  .sort((a, b) => Number(isEnd(a)) - Number(isEnd(b)))

/** An attack with the right credentials may well end the session that it was made with: the next route begins with a live one. */
beforeEach(async () => {
  const [user, developer] = await Promise.all([
    cast.user.get('/client/users/me'),
    cast.project.developer.get('/auth/developer/me'),
  ])
  if (user.status !== 200) cast = { ...cast, user: await project.user() }
  if (developer.status !== 200)
    cast = { ...cast, project: { ...project, developer: await harness.signIn(project.developer) } }
})

test.each(routes)('$name', { timeout: 180_000 }, async ({ area, route }) => {
  const path = fullPath(area, route)
  const item = document.paths[path.replace(/:([A-Za-z]+)/g, '{$1}')]
  const { parameters = [], ...told } = item[route.method.toLowerCase()]
  const operation = { ...told, parameters: [...(item.parameters ?? []), ...parameters] }
  if (route.body) {
    const list = await callRoute(route, cast, undefined, project.id, '[]')
    expect(list, 'a list in place of an object').toMatchObject({
      status: 400,
      error: { code: invalidBodyCode(area, route) },
    })
  }
  let before = await state()
  await fc.assert(
    fc.asyncProperty(attackOn(operation), fc.boolean(), async (attack, withCredentials) => {
      const { status, text: answer, milliseconds } = await send(route, path, attack, withCredentials)
      expect(status, answer).toBeLessThan(500)
      expect(milliseconds).toBeLessThan(10_000)
      if (status < 400) {
        before = await state()
        return
      }
      const parsed = JSON.parse(answer)
      expect(ErrorEnvelope.safeParse(parsed).error?.issues ?? []).toEqual([])
      const after = await state()
      expect(after, `a refused request changed something: ${status} ${answer}`).toEqual(before)
    }),
    { numRuns: sized(10, 40) },
  )
})
