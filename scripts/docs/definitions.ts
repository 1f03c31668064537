import type pg from 'pg'
import { enumerated } from './answers.ts'

type Client = Pick<pg.Client, 'query'>

/**
 * What the catalog knows of a column that a developer sends, as in a `Shape`, with bounds: `text 1..200`, `line ..200` (one line), `integer 0..48`, `key`;
 * null where it knows nothing, or not all.
 */
type Field = string | null

/** The columns of an entity that developers define: those that are set once, those that may be changed, and those without which there is no row. */
export type Definition = {
  readonly singular: string
  readonly plural: string
  /** How many a project may have. */
  readonly most: number
  readonly fixed: Readonly<Record<string, Field>>
  readonly fields: Readonly<Record<string, Field>>
  readonly required: readonly string[]
  /** What a row has where a column is left out, if it is a constant; null where there is no default. */
  readonly defaults: Readonly<Record<string, unknown>>
}

export type Column = {
  readonly name: string
  readonly type: string
  readonly is_needed: boolean
  readonly has_default: boolean
  /** The expression of its default. */
  readonly usual: string | null
  readonly is_changed: boolean
  readonly checks: readonly string[]
}

/** Bounds that the checks of a column set on an expression: `CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200)))`. */
const boundsOf = (checks: readonly string[], expression: string): string | null => {
  for (const check of checks) {
    const number = (sign: string) =>
      new RegExp(`\\(${expression} ${sign} '?(-?\\d+)'?(?:::bigint)?\\)`).exec(check)?.[1] ?? ''
    const [least, most] = [number('>='), number('<=')]
    if (most) return `${least}..${most}`
  }
  return null
}

const types: Readonly<Record<string, string>> = { uuid: 'uuid', bool: 'boolean', timestamptz: 'time' }

/** A column as the schema of a request: by its type, and by the checks that name no other column. */
export const fieldOf = ({ name, type, is_needed, checks }: Column): Field => {
  const known = (): Field => {
    const values = checks.map((check) => enumerated(check, name)).find((found) => found !== null)
    if (values) return values.map((value) => `'${value}'`).join(' | ')
    if (type === 'text') {
      if (checks.includes(`CHECK ((${name} ~ '^[a-z][a-z0-9_-]{0,127}$'::text))`)) return 'key'
      const bounds = boundsOf(checks, `char_length\\(${name}\\)`)
      if (bounds === null) return null
      return `${checks.includes(`CHECK (internal.is_line(${name}))`) ? 'line' : 'text'} ${bounds}`
    }
    if (/^int/.test(type)) {
      const bounds = boundsOf(checks, name)
      return bounds === null || bounds.startsWith('..') ? null : `integer ${bounds}`
    }
    if (type === 'jsonb') return checks.includes(`CHECK ((jsonb_typeof(${name}) = 'object'::text))`) ? 'object' : null
    return types[type] ?? null
  }
  const field = known()
  return field === null || is_needed ? field : `${field} | null`
}

export const columnsOf = (columns: readonly Column[]): Pick<Definition, 'fixed' | 'fields' | 'required'> => {
  const entries = (of: readonly Column[]) => Object.fromEntries(of.map((column) => [column.name, fieldOf(column)]))
  return {
    fixed: entries(columns.filter(({ is_changed }) => !is_changed)),
    fields: entries(columns.filter(({ is_changed }) => is_changed)),
    required: columns.filter(({ is_needed, has_default }) => is_needed && !has_default).map(({ name }) => name),
  }
}

/** The entities that developers define, by kind: the columns that administrators may write, in the order of the table. */
export const definitionsIn = async (client: Client): Promise<[string, Definition][]> => {
  const { rows } = await client.query<Column & { kind: string; singular: string; plural: string; most: number }>(`
    select d.kind, d.singular, d.plural, d.max_count as most, a.attname as name, t.typname as type, a.attnotnull as is_needed, a.atthasdef as has_default,
           pg_catalog.pg_get_expr(v.adbin, v.adrelid) as usual,
           has_column_privilege('app_admin', a.attrelid, a.attnum, 'update') as is_changed,
           array(select pg_catalog.pg_get_constraintdef(k.oid)
                   from pg_catalog.pg_constraint k
                  where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum]
                  order by k.conname) as checks
      from internal.definitions d
      join pg_catalog.pg_attribute a on a.attrelid = d.table_name::regclass and a.attnum > 0 and not a.attisdropped
      join pg_catalog.pg_type t on t.oid = a.atttypid
      left join pg_catalog.pg_attrdef v on v.adrelid = a.attrelid and v.adnum = a.attnum
     where has_column_privilege('app_admin', a.attrelid, a.attnum, 'insert')
       and a.attname not in ('id', 'created_at', 'updated_at')
     order by d.kind collate "C", a.attnum`)
  const kinds = new Map(rows.map(({ kind, singular, plural, most }) => [kind, { singular, plural, most }]))
  const made: [string, Definition][] = []
  for (const [kind, named] of kinds) {
    const columns = rows.filter((row) => row.kind === kind)
    made.push([kind, { ...named, ...columnsOf(columns), defaults: await defaultsIn(client, columns) }])
  }
  return made
}

/** Whether an expression has one value: it calls no function, such as the clock. */
export const isConstant = (expression: string) => !/\w\s*\(/.test(expression.replace(/'(?:[^']|'')*'/g, "''"))

/** The constants of a row whose columns are left out. */
const defaultsIn = async (client: Client, columns: readonly Column[]): Promise<Record<string, unknown>> => {
  const constant = columns.filter(({ is_needed, usual }) => (usual === null ? !is_needed : isConstant(usual)))
  const values = constant.map(({ usual }) => `to_json(${usual ?? 'null::text'})`)
  const { rows } = await client.query<{ values: unknown[] }>(`select json_build_array(${values.join(', ')}) as values`)
  return Object.fromEntries(constant.map(({ name }, index) => [name, rows[0]?.values[index] ?? null]))
}
