import { useQuery } from '@tanstack/react-query'
import { callAny, TrellisError } from '../api.ts'
import { useProject } from '../parts/page.tsx'

export type Value = string | number | boolean | null
export type Column = { readonly name: string; readonly type: string }
export type Result = {
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly Value[])[]
  readonly row_count: number
  readonly is_cut: boolean
  readonly duration_ms: number
  readonly plan: Readonly<Record<string, unknown>> | null
}
export type Explain = 'plan' | 'analyze'

export const mostRows = 1000

export const runSql = async (projectId: string, sql: string, explain?: Explain): Promise<Result> => {
  const body = { sql, limit: mostRows, ...(explain ? { explain } : {}) }
  return (await callAny('POST /v1/admin/projects/{projectId}/sql', { path: { projectId }, body })).data as Result
}

/** What Postgres says of a statement that it does not take. */
export type Problem = {
  readonly message: string
  readonly position: number | null
  readonly hint: string | null
  readonly detail: string | null
}

/** A refusal that is about the statement; undefined for one that is not, such as an outage. */
export const problemOf = (error: unknown): Problem | undefined => {
  if (!(error instanceof TrellisError) || !/^(INVALID_SQL|SQL_READ_ONLY|SQL_TIMEOUT|SQL_FORBIDDEN)$/.test(error.code))
    return undefined
  const { position = null, hint = null, detail = null } = (error.details ?? {}) as Partial<Problem>
  return { message: error.message, position, hint, detail }
}

export type Table = {
  readonly schema: string
  readonly name: string
  readonly columns: readonly Column[]
}

/** Every table with the columns that a query may read: collections first, which are the developer's own. */
const tablesQuery = `
select n.nspname, c.relname, json_agg(json_build_array(a.attname, format_type(a.atttypid, a.atttypmod)) order by a.attnum)
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid
 where c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
   and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
   and a.attnum > 0 and not a.attisdropped
   and has_schema_privilege(n.oid, 'usage') and has_column_privilege(c.oid, a.attnum, 'select')
 group by 1, 2
 order by n.nspname <> 'collections', 1, 2`

export const useTables = () => {
  const { projectId } = useProject()
  return useQuery({
    queryKey: ['sql tables', projectId],
    staleTime: 60_000,
    queryFn: async (): Promise<readonly Table[]> => {
      const { rows } = await runSql(projectId, tablesQuery)
      return rows.map(([schema, name, columns]) => ({
        schema: String(schema),
        name: String(name),
        columns: (JSON.parse(String(columns)) as [string, string][]).map(([column, type]) => ({ name: column, type })),
      }))
    },
  })
}

/** A name as SQL has it, with quotes where it needs them. */
export const quoted = (name: string): string =>
  /^[a-z_][a-z0-9_]*$/.test(name) && !reserved.has(name) ? name : `"${name.replaceAll('"', '""')}"`
const reserved = new Set(
  'all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral leading limit localtime localtimestamp not null offset on only or order placing primary references returning select session_user some symmetric table then to trailing true union unique user using variadic when where window with'.split(
    ' ',
  ),
)

/** A table as a query names it: ours and collections need no schema, unless ours hides the collection. */
export const nameOf = ({ schema, name }: Table, all: readonly Table[]): string => {
  const isHidden = schema === 'collections' && all.some((other) => other.schema === 'app' && other.name === name)
  return schema === 'app' || (schema === 'collections' && !isHidden)
    ? quoted(name)
    : `${quoted(schema)}.${quoted(name)}`
}

export const isNumeric = (type: string): boolean =>
  /^(smallint|integer|bigint|real|double precision|numeric(\(.*\))?)$/.test(type)
