import type pg from 'pg'

type Client = Pick<pg.Client, 'query'>

/**
 * What the catalog knows of a value in an answer: `uuid`, `text`, `integer`, `number`, `boolean`, `time`, `date`, `object`, the values of an enumeration
 * as `'a' | 'b'`, each with ` | null` where it may be null; the keys of an object; null where it knows nothing.
 */
export type Shape = string | null | { readonly [key: string]: Shape }

export type Builder = {
  readonly name: string
  readonly body: string
  /** The tables of the parameters that are rows, by the parameter's name. */
  readonly rows: Readonly<Record<string, string>>
}

/** The types of columns, by table and column, as they stand in a `Shape`. */
export type Columns = ReadonlyMap<string, ReadonlyMap<string, Shape>>

/** The arguments of a call: what stands between commas outside parentheses, texts and comments; none where the text goes on behind the call. */
const partsOf = (text: string): string[] => {
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (const [token] of text.matchAll(/'(?:[^']|'')*'|--[^\n]*|\s+|[\s\S]/g)) {
    if (token.startsWith('--')) continue
    if (/^\s/.test(token)) {
      part += ' '
      continue
    }
    if (token === ',' && depth === 0) {
      parts.push(part.trim())
      part = ''
      continue
    }
    if (token === '(' || token === '[') depth += 1
    if (token === ')' || token === ']') depth -= 1
    if (depth < 0) return []
    part += token
  }
  return [...parts, part.trim()]
}

const nullable = (shape: Shape): Shape =>
  typeof shape === 'string' && !shape.endsWith(' | null') ? `${shape} | null` : typeof shape === 'string' ? shape : null

const shapeOfValue = (value: string, of: Builder, columns: Columns): Shape => {
  const [, object] = /^json_build_object\((.*)\)$/s.exec(value) ?? []
  if (object !== undefined) return shapeOfObject(object, of, columns)
  const [, moment] = /^internal\.iso\(([^()]*\([^()]*\)[^()]*|[^()]*)\)$/.exec(value) ?? []
  if (moment !== undefined) {
    const shape = shapeOfValue(moment, of, columns)
    return shape === 'timestamptz' || shape === 'timestamptz | null' ? shape.replace('timestamptz', 'time') : null
  }
  const [, qualified, plain, name = ''] = /^(?:\((?:\w+\.)?(\w+)\)|(\w+))\.(\w+)$/.exec(value) ?? []
  const table = of.rows[qualified ?? plain ?? '']
  return (table !== undefined && columns.get(table)?.get(name)) || null
}

const shapeOfObject = (list: string, of: Builder, columns: Columns): Shape => {
  const parts = partsOf(list)
  if (parts.length === 0) return null
  const entries: [string, Shape][] = []
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, key] = /^'([^']*)'$/.exec(parts[at] ?? '') ?? []
    if (key === undefined) return null
    const [, chosen] = /^case when .* then (.*) end$/s.exec(parts[at + 1] ?? '') ?? []
    const shape =
      chosen === undefined || / else | when /.test(chosen)
        ? shapeOfValue(parts[at + 1] ?? '', of, columns)
        : nullable(shapeOfValue(chosen, of, columns))
    // as it stands in the table, a time is no answer: `internal.iso` makes it one
    entries.push([key, typeof shape === 'string' && shape.startsWith('timestamptz') ? null : shape])
  }
  return Object.fromEntries(entries)
}

/** The answer of a function that builds it from rows: `select json_build_object('id', (f.row).id, ...)`, without a FROM; null for all others. */
export const answerOf = (builder: Builder, columns: Columns): Shape => {
  const [, list] = /^\s*select json_build_object\((.*)\);?\s*$/s.exec(builder.body) ?? []
  return list === undefined || Object.keys(builder.rows).length === 0 ? null : shapeOfObject(list, builder, columns)
}

/** The values of `CHECK ((status = ANY (ARRAY['a'::text, 'b'::text])))`, also of a column that may be null. */
export const enumerated = (check: string, column: string): string[] | null => {
  const found = new RegExp(`^CHECK \\(\\(${column} = ANY \\(ARRAY\\[([^\\]]*)\\]\\)\\)\\)$`).exec(check)
  return found ? [...(found[1] ?? '').matchAll(/'([^']*)'::/g)].map(([, value = '']) => value) : null
}

const types: Readonly<Record<string, string>> = {
  uuid: 'uuid',
  text: 'text',
  bool: 'boolean',
  int2: 'integer',
  int4: 'integer',
  int8: 'integer',
  numeric: 'numeric',
  date: 'date',
  timestamptz: 'timestamptz',
}

const readColumns = async (client: Client): Promise<Columns> => {
  const { rows } = await client.query<{
    table: string
    column: string
    type: string
    is_needed: boolean
    checks: string[]
  }>(`
    select c.oid::regclass::text as table, a.attname as column, t.typname as type, a.attnotnull as is_needed,
           array(select pg_catalog.pg_get_constraintdef(k.oid)
                   from pg_catalog.pg_constraint k
                  where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum]
                  order by k.conname) as checks
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'app'
      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      join pg_catalog.pg_type t on t.oid = a.atttypid
     where c.relkind in ('r', 'p')`)
  const columns = new Map<string, Map<string, Shape>>()
  for (const { table, column, type, is_needed, checks } of rows) {
    const values = checks.map((check) => enumerated(check, column)).find((found) => found !== null)
    const isObject = checks.some((check) => check === `CHECK ((jsonb_typeof(${column}) = 'object'::text))`)
    const shape = values ? values.map((value) => `'${value}'`).join(' | ') : isObject ? 'object' : (types[type] ?? null)
    const of = columns.get(table) ?? new Map<string, Shape>()
    columns.set(table, of.set(column, is_needed ? shape : nullable(shape)))
  }
  return columns
}

const readBuilders = async (client: Client): Promise<Builder[]> => {
  const { rows } = await client.query<{
    name: string
    body: string
    names: string[] | null
    tables: (string | null)[]
  }>(`
    select p.proname as name, p.prosrc as body, p.proargnames as names,
           array(select case when t.typtype = 'c' then t.typrelid::regclass::text end
                   from unnest(p.proargtypes) with ordinality as of_argument(type, position)
                   join pg_catalog.pg_type t on t.oid = of_argument.type
                  order by of_argument.position) as tables
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = 'internal'
      join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname = 'sql'
     where p.proname ~ '_json$' and p.prosqlbody is null
     order by p.proname collate "C"`)
  return rows.map(({ name, body, names, tables }) => ({
    name,
    body,
    rows: Object.fromEntries(tables.flatMap((table, at) => (table ? [[names?.[at] ?? '', table]] : []))),
  }))
}

/** The answers that functions of `internal` build from rows, by the function's name. */
export const answersIn = async (client: Client): Promise<[string, Shape][]> => {
  const columns = await readColumns(client)
  const builders = await readBuilders(client)
  return builders.flatMap((builder) => {
    const shape = answerOf(builder, columns)
    return shape === null ? [] : [[builder.name, shape] as [string, Shape]]
  })
}
