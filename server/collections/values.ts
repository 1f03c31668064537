import { type RawJson, type RawRows, readRaw } from '#server/collections/row_encoder.ts'

/** One parameter of a compiled statement: the path of its value in the request, and its wire format. */
type Param = {
  readonly path: readonly (string | number)[]
  readonly type: string
  readonly is_array?: boolean
  readonly pattern?: string | null
}

/** What `internal.collection_compile` answers. */
export type CompiledJson = {
  readonly text: string
  readonly version: string
  readonly params: readonly Param[]
  readonly pages: boolean
  readonly patterns: {
    readonly at: 'data' | 'rows'
    readonly columns: Readonly<Record<string, { readonly pattern: string }>>
  } | null
  readonly raw: RawJson | null
}

type Bound = {
  readonly path: readonly (string | number)[]
  readonly form: 'json' | 'array' | 'text'
  readonly pattern: RegExp | null
}

/** A compiled statement, its patterns ready to be tested. Without a name it is parsed each time. */
export type Compiled = {
  readonly name: string
  readonly text: string
  readonly version: string
  readonly pages: boolean
  readonly params: readonly Bound[]
  readonly columns: { readonly at: 'data' | 'rows'; readonly patterns: readonly (readonly [string, RegExp])[] } | null
  /** How its rows are read, where Postgres does not make the envelope. */
  readonly raw: RawRows | null
}

export const readCompiled = (json: CompiledJson, name: string): Compiled => ({
  name,
  text: json.text,
  version: json.version,
  pages: json.pages,
  raw: json.raw && readRaw(json.raw),
  params: json.params.map((param) => ({
    path: param.path,
    form: param.type === 'json' || param.type === 'jsonb' ? 'json' : param.is_array ? 'array' : 'text',
    pattern: param.pattern ? new RegExp(param.pattern) : null,
  })),
  columns: json.patterns && {
    at: json.patterns.at,
    patterns: Object.entries(json.patterns.columns).map(
      ([column, { pattern }]) => [column, new RegExp(pattern)] as const,
    ),
  },
})

const at = (request: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>(
    (value, part) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, part)
        ? (value as Record<string | number, unknown>)[part]
        : undefined,
    request,
  )

/** A number that JavaScript cannot hold stays as it was written (server/json/lossless_json.ts). */
const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value)

const quoted = (value: unknown): string =>
  value === null || value === undefined ? 'NULL' : `"${textOf(value).replace(/["\\]/g, '\\$&')}"`

const fits = (value: unknown, pattern: RegExp | null): boolean =>
  pattern === null || value === null || value === undefined || pattern.test(textOf(value))

const fitsEach = (value: unknown, pattern: RegExp): boolean =>
  Array.isArray(value) ? value.every((item) => fits(item, pattern)) : fits(value, pattern)

const rowFits = (row: unknown, patterns: readonly (readonly [string, RegExp])[]): boolean =>
  patterns.every(([column, pattern]) => fitsEach((row as Record<string, unknown>)[column], pattern))

/** Whether the values of the rows that a request writes are ones that Postgres reads as the types of their columns. */
export const rowsFit = ({ columns }: Compiled, request: Readonly<Record<string, unknown>>): boolean => {
  if (!columns || columns.patterns.length === 0) return true
  const sent = request[columns.at]
  return (Array.isArray(sent) ? sent : [sent]).every((row) => rowFits(row, columns.patterns))
}

/** The values of a statement, in order; null when one of them is none that Postgres would read as its type. */
export const bindValues = (
  compiled: Compiled,
  request: Readonly<Record<string, unknown>>,
): (string | null)[] | null => {
  const values: (string | null)[] = []
  for (const { path, form, pattern } of compiled.params) {
    const value = at(request, path)
    if (value === null || value === undefined) values.push(null)
    else if (form === 'json') values.push(JSON.stringify(value))
    else if (form === 'array') {
      if (pattern && !fitsEach(value, pattern)) return null
      // a list travels as one parameter, however long it is
      values.push(`{${(Array.isArray(value) ? value : [value]).map(quoted).join(',')}}`)
    } else {
      if (!fits(value, pattern)) return null
      values.push(textOf(value))
    }
  }
  return rowsFit(compiled, request) ? values : null
}
