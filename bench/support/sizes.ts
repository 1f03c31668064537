// What an empty tenant database is made of, area by area.

import { readProgram, stemOf } from '#fleet/load/files.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import type { Installation } from './installation.ts'
import { figure, table } from './numbers.ts'

type Relation = {
  readonly name: string
  readonly space: string
  readonly bytes: number
  readonly files: number
  readonly indexes: number
}

/** Each table with its indexes and TOAST, in whole files. */
const relations = `
  with parts as (
    select c.oid, coalesce(i.indrelid, c.oid) as owner, c.relkind
      from pg_catalog.pg_class c left join pg_catalog.pg_index i on i.indexrelid = c.oid
     where c.relkind in ('r', 'i', 't', 'm', 'S') and not c.relisshared
  ), tables as (
    -- TOAST and its index belong to the table that has it
    select p.oid, p.relkind, coalesce(t.oid, p.owner) as owner
      from parts p left join pg_catalog.pg_class t on t.reltoastrelid = p.owner
  )
  select coalesce(parent.oid, o.oid)::regclass::text as name, n.nspname as space, sum(f.bytes)::float8 as bytes, sum(f.files)::int as files,
         count(*) filter (where t.relkind = 'i')::int as indexes
    from tables t
    join pg_catalog.pg_class o on o.oid = t.owner
    join pg_catalog.pg_namespace n on n.oid = o.relnamespace
    left join pg_catalog.pg_inherits h on h.inhrelid = o.oid
    left join pg_catalog.pg_class parent on parent.oid = h.inhparent
   cross join lateral (
     select sum(pg_relation_size(t.oid, k)) as bytes, 1 + count(*) filter (where k <> 'main' and pg_relation_size(t.oid, k) > 0) as files
       from unnest(array['main', 'fsm', 'vm', 'init']) k) f
   group by 1, 2`

/** The area whose migration made each table. */
const areasOfTables = async (): Promise<Map<string, string>> => {
  const { migrationFiles } = await readProgram('tenant')
  return new Map(
    migrationFiles.flatMap(({ path, text }) => {
      const area =
        path
          .split('/')
          .at(-1)
          ?.replace(/^\d+_(add_\w+_to_)?/, '')
          .replace('.sql', '') ?? ''
      return [...text.matchAll(/create table (?:if not exists )?([a-z_]+\.[a-z_0-9]+)/g)].map(
        ([, name = '']) => [name, area] as const,
      )
    }),
  )
}

type Area = { bytes: number; files: number; indexes: number; tables: number; functions: number; text: number }

export const sizesOf = async ({ cluster }: Installation, database: string): Promise<string> => {
  const client = await connectAdmin(cluster, database, false)
  try {
    const { rows } = await client.query<Relation>(relations)
    const { rows: functions } = await client.query<{ path: string; functions: number; text: number }>(
      `select o.path, count(*)::int as functions, sum(length(p.prosrc) + coalesce(length(d.description), 0))::int as text
         from ops.objects o
         join pg_catalog.pg_proc p on p.oid = to_regprocedure(o.identity)
         left join pg_catalog.pg_description d on d.objoid = p.oid and d.classoid = 'pg_proc'::regclass
        where o.kind = 'function' group by 1`,
    )
    const made = await areasOfTables()
    const areas = new Map<string, Area>()
    const areaOf = (name: string): Area => {
      const found = areas.get(name) ?? { bytes: 0, files: 0, indexes: 0, tables: 0, functions: 0, text: 0 }
      areas.set(name, found)
      return found
    }
    for (const { name, space, bytes, files, indexes } of rows) {
      const isOurs = ['app', 'internal'].includes(space)
      const area = areaOf(
        isOurs
          ? (made.get(name) ?? 'other tables')
          : space === 'ops'
            ? "the loader's records (ops)"
            : "Postgres' own catalog",
      )
      area.bytes += bytes
      area.files += files
      area.indexes += indexes
      area.tables += 1
    }
    for (const { path, functions: count, text } of functions) {
      const area = areaOf(stemOf(path))
      area.functions += count
      area.text += text
    }
    const sorted = [...areas].sort((a, b) => b[1].bytes + b[1].text - a[1].bytes - a[1].text)
    const total = sorted.reduce((sum, [, area]) => ({ bytes: sum.bytes + area.bytes, files: sum.files + area.files }), {
      bytes: 0,
      files: 0,
    })
    return table(
      ['area', 'tables', 'indexes', 'files', 'kB', 'functions', 'their text, kB'],
      [
        ...sorted.map(([name, area]) => [
          name,
          String(area.tables),
          String(area.indexes),
          String(area.files),
          figure(area.bytes / 1024),
          String(area.functions),
          figure(area.text / 1024),
        ]),
        ['all', '', '', String(total.files), figure(total.bytes / 1024), '', ''],
      ],
    )
  } finally {
    await client.end()
  }
}
