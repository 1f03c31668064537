import type { PgClient, WithPgClient } from 'postgraphile/@dataplan/pg'
import type { NamedTable } from '#server/graphql/naming.ts'

/**
 * A hash of all that a schema is made of: what this role may read, keys, indexes and comments of it, and what names are made of. Two databases with the same
 * one have the same schema, and a change by hand changes it. Beside it the parts of the schema that are the project's own: columns of its tables, and
 * references between them, each of which makes fields on both sides. Names are read only where a schema will be made.
 */
const shape = `
  with size as (
    select (select count(*)
              from pg_catalog.pg_class c
              join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
             where c.relnamespace = 'collections'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition) as columns,
           (select count(*) from pg_catalog.pg_constraint k where k.connamespace = 'collections'::regnamespace and k.contype = 'f') as relations),
  names as (
    select case when s.columns + $2 * s.relations <= $1 then internal.graphql_tables() end as tables from size s)
  select (select md5(string_agg(part, ',' order by part collate "C"))
    from (
      select concat_ws(' ', c.oid::regclass, c.relkind, a.attname, a.atttypid::regtype, a.attnotnull, has_column_privilege(c.oid, a.attnum, 'select'),
                       md5(coalesce(col_description(c.oid, a.attnum), ''))) as part
        from pg_catalog.pg_class c
        join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relnamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('app', 'collections'))
         and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
      union all
      select concat_ws(' ', c.oid::regclass, md5(coalesce(obj_description(c.oid, 'pg_class'), '')))
        from pg_catalog.pg_class c
       where c.relnamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('app', 'collections'))
         and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
      union all
      select concat_ws(' ', k.conrelid::regclass, k.contype, k.conkey, k.confrelid::regclass, k.confkey)
        from pg_catalog.pg_constraint k
       where k.connamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('app', 'collections')) and k.conparentid = 0
      union all
      select concat_ws(' ', i.indrelid::regclass, i.indkey, i.indpred is null)
        from pg_catalog.pg_index i
        join pg_catalog.pg_class c on c.oid = i.indrelid and not c.relispartition
       where c.relnamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('app', 'collections'))
    ) parts) || md5(n.tables::text), s.columns + $2 * s.relations, n.tables
    from size s, names n`

export type Shape = {
  /** Null where the schema would be too large. */
  readonly hash: string | null
  readonly size: number
  readonly tables: readonly NamedTable[]
}

/** The most parts of a schema that are a project's own, and the parts that a reference counts for. */
export const mostParts = 6000
const partsOfRelation = 4

/** The shape of the database that this connection reaches. */
export const shapeOf = async (withPgClient: WithPgClient): Promise<Shape> => {
  const { rows } = await withPgClient(null, (client: PgClient) =>
    client.query<[string | null, string, string | null]>({
      text: shape,
      values: [mostParts, partsOfRelation],
      arrayMode: true,
    }),
  )
  const [hash = null, size = '0', tables = null] = rows[0] ?? []
  return { hash, size: Number(size), tables: tables === null ? [] : (JSON.parse(tables) as NamedTable[]) }
}
