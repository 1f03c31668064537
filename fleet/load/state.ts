import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client } from 'pg'
import { root } from '#server/root.ts'

/** Tables with rows that policy files declare. Applying a file replaces its rows. */
export const registries = [
  'internal.user_data',
  'internal.definitions',
  'internal.composed_definitions',
  'internal.feed_events',
  'internal.moderated_texts',
  'internal.campaign_channels',
] as const

/** An object that the loader manages: see sql/cluster/state.sql. */
export type Item = {
  readonly kind: string
  readonly identity: string
  readonly definition: string
  readonly shape: string | null
}

/** Items by kind and identity (`itemKey`). */
export type State = ReadonlyMap<string, Item>

export const itemKey = (kind: string, identity: string) => `${kind} ${identity}`

/** The text of a query in sql/cluster. */
export const clusterQuery = (name: string) => readFile(join(root, 'sql/cluster', name), 'utf8')

/** Runs `work` in one snapshot with an empty search_path, so that Postgres writes every name with its schema. */
export const reading = async <T>(client: Client, work: () => Promise<T>): Promise<T> => {
  await client.query(`begin isolation level repeatable read; set local search_path = ''`)
  try {
    return await work()
  } finally {
    await client.query('rollback')
  }
}

export type Present = {
  readonly files: boolean
  readonly loaded: boolean
  readonly migrations: boolean
  readonly registries: string[]
}

/** Which of the loader's tables and registries exist: a database may be older than some of them. */
export const presentTables = async (client: Client): Promise<Present> => {
  const { rows } = await client.query<Present>(
    `select to_regclass('ops.objects') is not null as files, to_regclass('ops.loaded') is not null as loaded,
            to_regclass('ops.schema_migrations') is not null as migrations,
            array(select r from unnest($1::text[]) r where to_regclass(r) is not null) as registries`,
    [registries],
  )
  return rows[0]!
}

/** Rows that a file declared, without those that a project adds at run time. */
export const declaredRows = (registry: string, selected: string) =>
  `select ${selected} from ${registry} r where r.declared_in in (select f.path from ops.files f)`

/** Requires a transaction with an empty search_path. Null in a database into which no program was loaded. */
export const fingerprintHere = async (client: Client): Promise<string | null> => {
  const present = await presentTables(client)
  if (!present.files) return null
  const parts = [
    ...present.registries.map((name) => declaredRows(name, 'sum(hashtextextended(to_jsonb(r)::text, 0))')),
    ...(present.migrations
      ? ['select sum(hashtextextended(m.version, 0)) + count(*) from ops.schema_migrations m']
      : ['select null']),
  ]
  const { rows } = await client.query<{ fingerprint: string }>(
    `select md5(concat_ws(' ', f.fingerprint, ${parts.map((part) => `coalesce((${part})::text, '-')`).join(', ')}))::uuid::text as fingerprint
       from (${await clusterQuery('fingerprint.sql')}) f`,
  )
  return rows[0]?.fingerprint ?? null
}

/** A hash of everything that the loader manages in this database: see sql/cluster/fingerprint.sql. */
export const fingerprintOf = (client: Client): Promise<string | null> => reading(client, () => fingerprintHere(client))

/** Requires a transaction with an empty search_path. */
export const stateHere = async (client: Client): Promise<State> => {
  const { registries: present } = await presentTables(client)
  const rows = present.map((name) => declaredRows(name, `'row', '${name} ' || to_jsonb(r)::text, '', null`))
  const { rows: items } = await client.query<Item>([await clusterQuery('state.sql'), ...rows].join('\nunion all\n'))
  return new Map(items.map((item) => [itemKey(item.kind, item.identity), item]))
}

export const stateOf = (client: Client): Promise<State> => reading(client, () => stateHere(client))

/** An object that depends on the function `on`: a policy, a trigger, or a function with a body that Postgres has parsed. */
export type Dependency = {
  readonly kind: 'function' | 'policy' | 'trigger' | 'other'
  readonly identity: string
  readonly on: string
}

/** Requires a transaction with an empty search_path. */
export const dependenciesHere = async (client: Client): Promise<Dependency[]> => {
  const { rows } = await client.query<Dependency>(`
      select case d.classid when 'pg_proc'::regclass then 'function' when 'pg_policy'::regclass then 'policy'
                            when 'pg_trigger'::regclass then 'trigger' else 'other' end as kind,
             case when p.oid is not null then p.oid::regprocedure::text
                  when l.oid is not null then format('%I on %s', l.polname, l.polrelid::regclass)
                  when t.oid is not null then format('%I on %s', t.tgname, t.tgrelid::regclass)
                  else d.objid::text end as identity,
             d.refobjid::regprocedure::text as on
        from pg_catalog.pg_depend d
        join pg_catalog.pg_proc f on f.oid = d.refobjid and f.pronamespace in ('api'::regnamespace, 'internal'::regnamespace)
        left join pg_catalog.pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
        left join pg_catalog.pg_policy l on d.classid = 'pg_policy'::regclass and l.oid = d.objid
        left join pg_catalog.pg_trigger t on d.classid = 'pg_trigger'::regclass and t.oid = d.objid
       where d.refclassid = 'pg_proc'::regclass and d.deptype = 'n' and (t.oid is null or t.tgparentid = 0)`)
  return rows
}
