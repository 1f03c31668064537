import type { PgClient, WithPgClient } from 'postgraphile/@dataplan/pg'

/**
 * A hash of all that a schema is made of: what this role may read, and keys, indexes and comments of it. Two databases with the same one have the
 * same schema, and a change by hand changes it.
 */
const shape = `
  select md5(string_agg(part, ',' order by part collate "C"))
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
    ) parts`

/** The shape of the database that this connection reaches. */
export const shapeOf = async (withPgClient: WithPgClient): Promise<string> => {
  const { rows } = await withPgClient(null, (client: PgClient) =>
    client.query<[string]>({ text: shape, values: [], arrayMode: true }),
  )
  return rows[0]?.[0] ?? ''
}
