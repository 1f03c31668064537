import type { Client } from 'pg'
import type { z } from 'zod'
import { escapeRegExp, type Finding, type Sources } from '#fleet/checks/finding.ts'
import { namesOf, readInputShape } from '#server/http/arguments.ts'
import type { Area, Route } from '#server/http/route.ts'

type ApiFunction = {
  readonly name: string
  readonly names: readonly string[]
  readonly types: readonly string[]
  /** How many of the last arguments have a default. */
  readonly defaults: number
  readonly grantees: readonly string[]
}

const functionsOf = async (client: Client): Promise<Map<string, ApiFunction>> => {
  const { rows } = await client.query<ApiFunction>(
    `select p.proname as name, coalesce(p.proargnames[1:p.pronargs], '{}')::text[] as names, p.pronargdefaults as defaults,
            array(select format_type(t.oid, null) from unnest(p.proargtypes) with ordinality as a (oid, n) join pg_catalog.pg_type t on t.oid = a.oid order by a.n) as types,
            array(select r.rolname::text from pg_catalog.pg_roles r where r.rolname ~ '^(app|control)_' and has_function_privilege(r.oid, p.oid, 'execute')) as grantees
       from pg_catalog.pg_proc p
      where p.pronamespace = 'api'::regnamespace`,
  )
  return new Map(rows.map((row) => [row.name, row]))
}

type Checked = {
  readonly area: Area
  readonly route: Route
  readonly kind: 'control' | 'tenant'
  readonly found: ApiFunction | undefined
  /** Where the route is declared. It is a search in all files: asked only where something is wrong. */
  readonly place: () => string
  readonly sources: Sources
}

/** Each route that calls a function: whether it is there, takes what the route sends, and may be executed by each caller's role. */
export const checkRoutes = async (
  client: Client,
  kind: 'control' | 'tenant',
  areas: readonly Area[],
  sources: Sources,
  { isTrial = false }: { readonly isTrial?: boolean } = {},
): Promise<Finding[]> => {
  const functions = await functionsOf(client)
  const kinds = kind === 'tenant' ? await declaredKinds(client) : new Set<string>()
  return areas.flatMap((area) =>
    area.routes
      .filter((route) => route.call && route.caller.reaches.kind === kind)
      .flatMap((route) => {
        const place = () => placeOf(route, sources)
        const checked = { area, route, kind, found: functions.get(route.call ?? ''), place, sources }
        return [...checkFunction(checked, isTrial), ...checkArguments(checked), ...checkKind(checked, kinds)]
      }),
  )
}

const declaredKinds = async (client: Client): Promise<Set<string>> => {
  const { rows } = await client.query<{ kind: string }>('select kind from internal.definitions')
  return new Set(rows.map((row) => row.kind))
}

/** Its declaration has the rest of the path behind the method, below that of its group. */
const placeOf = ({ definition, method, call = '' }: Route, sources: Sources): string =>
  sources.find(
    definition
      ? new RegExp(`definitions\\(\\s*'${escapeRegExp(definition.kind)}'`)
      : new RegExp(`'${method} /[^']*',(?:(?!\\broute\\()[\\s\\S])*?\\bcall: '${escapeRegExp(call)}'`),
    'server/routes/',
  )

const signature = ({ method, path }: Route) => `${method} ${path}`

const checkFunction = ({ area, route, kind, found, place }: Checked, isTrial: boolean): Finding[] => {
  const name = `api.${route.call}`
  if (!found) {
    const remedy = `Write it in functions/${kind}/${area.stem}.sql or correct the name in "call".`
    const problem = `${signature(route)} calls ${name}, which does not exist.`
    return [{ place: place(), severity: 'error', problem, remedy }]
  }
  // the privileges come with the policies
  if (isTrial) return []
  return route.caller.reaches.roles
    .filter((role) => !found.grantees.includes(role))
    .map((role) => ({
      place: place(),
      severity: 'error',
      problem: `${signature(route)} calls ${name} as ${role}, which may not execute it.`,
      remedy: `Write in policies/${kind}/${area.stem}.sql: grant execute on function ${name} to ${role};`,
    }))
}

const checkArguments = ({ route, kind, found, place, sources }: Checked): Finding[] => {
  const sent = found ? namesOf(route) : null
  if (!found || !sent) return []
  const where = () =>
    `api.${found.name} (${sources.find(new RegExp(`create or replace function api\\.${found.name}\\(`), 'functions/')})`
  const has = () => `${where()} has ${found.names.length > 0 ? found.names.join(', ') : 'no arguments'}`
  const findings: Finding[] = []
  const add = (problem: string, remedy: string) => findings.push({ place: place(), severity: 'error', problem, remedy })
  for (const [name, schema] of sent) {
    const index = found.names.indexOf(name)
    if (index < 0) {
      add(`${signature(route)} sends "${name}"; ${has()}.`, 'Give both the same name, in the route or in the function.')
    } else if (schema && !takes(found.types[index] ?? '', schema)) {
      const type = found.types[index]
      add(
        `${signature(route)} sends "${name}" as ${kindsOf(schema).join(' or ')}, and ${where()} takes ${type}.`,
        `Change the type of the argument in functions/${kind}, or the schema of the route.`,
      )
    }
  }
  for (const name of found.names.slice(0, found.names.length - found.defaults)) {
    const schema = sent.get(name)
    if (!sent.has(name))
      add(
        `${signature(route)} never sends "${name}", which ${where()} needs.`,
        'Add it to the route, or give the argument a default.',
      )
    else if (schema && isOptional(schema))
      add(
        `${signature(route)} may leave out "${name}", which ${where()} needs.`,
        `Give the argument a default: "${name} ... default null".`,
      )
  }
  return findings
}

const isOptional = (schema: z.ZodType) =>
  schema.safeParse(undefined).success && schema.safeParse(undefined).data === undefined

/** What a value may be as JSON, after its schema has read it. */
const kindsOf = (schema: z.ZodType): string[] => {
  const read = readInputShape(schema)
  const kinds = (part: Record<string, unknown>): string[] => {
    for (const word of ['anyOf', 'oneOf'] as const)
      if (Array.isArray(part[word])) return part[word].flatMap((one) => kinds(one as Record<string, unknown>))
    if (Array.isArray(part['type'])) return part['type'] as string[]
    return typeof part['type'] === 'string' ? [part['type']] : []
  }
  return read ? [...new Set(kinds(read))].filter((kind) => kind !== 'null') : []
}

const whatTakes: Readonly<Record<string, RegExp>> = {
  object: /^(jsonb?|text)$/,
  // sent as JSON text, which no array of Postgres reads
  array: /^(jsonb?|text)$/,
  boolean: /^(boolean|jsonb?|text)$/,
  integer: /^(smallint|integer|bigint|numeric|real|double precision|jsonb?|text)$/,
  number: /^(smallint|integer|bigint|numeric|real|double precision|jsonb?|text)$/,
  string: /^(?!(boolean|smallint|integer|real|double precision)$)/,
}

const takes = (type: string, schema: z.ZodType): boolean =>
  kindsOf(schema).every((kind) => whatTakes[kind]?.test(type) ?? true)

const checkKind = ({ area, route, place }: Checked, kinds: ReadonlySet<string>): Finding[] => {
  const { definition } = route
  if (!definition || kinds.has(definition.kind)) return []
  return [
    {
      place: place(),
      severity: 'error',
      problem: `${signature(route)} is of the kind "${definition.kind}", and the registry internal.definitions has no such row.`,
      remedy: `Write in policies/tenant/${area.stem}.sql: insert into internal.definitions (kind, table_name, singular, plural, create_order, declared_in) values ('${definition.kind}', ...); see docs/definitions.md.`,
    },
  ]
}
