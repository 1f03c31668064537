import { expect, test } from 'vitest'
import type { z } from 'zod'
import { fullPath } from '#server/http/openapi.ts'
import { invalidCode, type Route } from '#server/http/route.ts'
import { asLine, isLine } from '#server/lines.ts'
import { startHarness } from '#test/support/harness.ts'
import { bodyOf, callRoute, createCast, nameOf } from '#test/support/routes.ts'

const harness = await startHarness()
const cast = await createCast(harness)
const { project } = cast

/** What no name may have: a line break, an override of direction, a separator of lines, an isolate, a bell. */
const unlined = ['a\nb', 'a\u202eb', 'a\u2028b', 'a\u2066b', 'a\u0007b']
const isNamed = (place: string) => /(^|[._])(name|title|subject|label|actor)$/.test(place)

/** Fields that are called a name and are none. */
const others: Readonly<Record<string, string>> = {
  event_name: 'identifies an event: it is compared and not shown',
  'trigger.event_name': 'identifies an event',
  'source.event_name': 'identifies an event',
  'guardrail.event_name': 'identifies an event',
  'points.event_name': 'identifies an event',
  'POST /admin/projects/:projectId/media/buckets name': 'has a form of its own, which a line break is no part of',
  'POST /client/auth/social name': 'what Apple told once: it is put on one line, as the name in the token is',
}

type Field = { readonly place: string; readonly schema: z.core.$ZodType }

/** Every field of a body that takes text, by its path: `steps[].title`. */
const textsOf = (schema: z.core.$ZodType, place: string, within: readonly z.core.$ZodType[] = []): Field[] => {
  if (within.includes(schema)) return []
  const { def } = (schema as z.core.$ZodTypes)._zod
  const inner = (part: z.core.$ZodType, at: string) => textsOf(part, at, [...within, schema])
  if ('innerType' in def) return inner(def.innerType, place)
  if (def.type === 'pipe') return inner(def.in, place)
  if (def.type === 'array') return inner(def.element, `${place}[]`)
  if (def.type === 'union') return def.options.flatMap((option) => inner(option, place))
  if (def.type === 'record') return inner(def.valueType, `${place}{}`)
  if (def.type === 'object')
    return Object.entries(def.shape).flatMap(([name, part]) => inner(part, place ? `${place}.${name}` : name))
  return def.type === 'string' ? [{ place, schema }] : []
}

const isOther = (route: Route, place: string) => (others[place] ?? others[`${nameOf(route)} ${place}`]) !== undefined
const named = harness.running.services.areas.flatMap((area) =>
  area.routes.flatMap((route) =>
    textsOf((route.body as unknown as z.core.$ZodType) ?? { _zod: { def: { type: 'void' } } }, '')
      .filter(({ place }) => isNamed(place) && !isOther(route, place))
      .map(({ place, schema }) => ({ area, route, place, schema: schema as z.ZodType })),
  ),
)

test('every name, title, subject and label of every body is one line of text', () => {
  const taking = named.filter(({ schema }) => unlined.some((text) => schema.safeParse(text).success))
  expect(taking.map(({ route, place }) => `${nameOf(route)} ${place}`)).toEqual([])
  // names of projects, organizations, groups, collections, templates, steps, levels, ...
  expect(named.length).toBeGreaterThan(80)
})

test('a request with such a name is refused with the code of its area', { timeout: 60_000 }, async () => {
  const answered: string[] = []
  const top = named.filter(({ place, route }) => !/[.[{]/.test(place) && route.example && !route.takesText)
  for (const { area, route, place } of top) {
    for (const text of ['a\nb', 'a\u202eb']) {
      const body = JSON.stringify({ ...(bodyOf(route, cast) as object), [place]: text })
      const { status, error } = await callRoute(route, cast, undefined, project.id, body)
      const got = `${status} ${error?.code} ${error?.details?.field}`
      if (got !== `400 ${invalidCode(area, route, 'body')} ${place}`) answered.push(`${fullPath(area, route)} ${got}`)
    }
  }
  expect(answered).toEqual([])
  expect(top.length).toBeGreaterThan(40)
})

test('TypeScript and SQL mean the same by one line of text', async () => {
  const [found] = await project.sql<{ refused: string[] }>(
    `select array_agg(n order by n) as refused from generate_series(1, 65535) n
      where n not between 55296 and 57343 and not internal.is_line('a' || chr(n) || 'b')`,
  )
  const here = Array.from({ length: 65_535 }, (_, n) => n + 1).filter((n) => !isLine(`a${String.fromCharCode(n)}b`))
  expect(found?.refused.map(Number)).toEqual(here)
  expect(asLine(' a\r\n\u202eb ')).toBe('a b')
  const [{ line }] = await project.sql(`select internal.as_line(e'a\\r\\n\\u202eb') as line`)
  expect(line).toBe('a b')
})

test('a document of definitions is held to it as requests are', async () => {
  const message = { title: 'Fine', body: 'b', localized: { de: { title: 'a\u202eb' } } }
  const documents = [
    ['roles', 'named', { name: 'a\nb', permissions: ['a:b'] }],
    ['push_templates', 'titled', { message }],
    ['email_templates', 'subjected', { name: 'n', subject: 'a\nb', text: 't' }],
    ['email_templates', 'translated', { name: 'n', subject: 's', text: 't', locales: { de: { subject: 'a\u2028b' } } }],
    ['onboarding_flows', 'Steps', { steps: [{ id: 'a', type: 'info', title: 'a\nb' }] }],
  ] as const
  for (const [kind, key, row] of documents) {
    const document = { version: 1, definitions: { [kind]: { [key]: row } } }
    const answer = await project.admin.post('/promotion/import?dry_run=false', { document })
    expect([answer.status, answer.error?.message], kind).toEqual([
      400,
      expect.stringMatching(/must be one line of text/),
    ])
  }
})

test('an address with invisible characters, of which its organization would be named, makes no account', async () => {
  const email = `b\u202eob${Math.random()}@example.org`
  const made = await harness.anyone.post('/auth/developer/signup', { email, password: 'a long passphrase' })
  expect(made).toMatchObject({ status: 400, error: { details: { reason: 'must have no invisible characters' } } })
})
