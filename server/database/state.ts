import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client } from 'pg'
import { root } from '#server/database/files.ts'

/** Tables whose rows policy files declare: a file's rows are replaced with it. */
export const registries = [
  'internal.user_data',
  'internal.definitions',
  'internal.feed_events',
  'internal.moderated_texts',
] as const

/** One object that the loader manages, see sql/cluster/state.sql. */
export type Item = {
  readonly kind: string
  readonly identity: string
  readonly definition: string
  readonly shape: string | null
}

/** By kind and identity. */
export type State = ReadonlyMap<string, Item>

export const itemKey = (kind: string, identity: string) => `${kind} ${identity}`

const sql = (name: string) => readFile(join(root, 'sql/cluster', name), 'utf8')

/** Runs in one transaction that sees every name qualified, as the two queries want it. */
const reading = async <T>(client: Client, work: () => Promise<T>): Promise<T> => {
  await client.query(`begin isolation level repeatable read; set local search_path = ''`)
  try {
    return await work()
  } finally {
    await client.query('rollback')
  }
}

type Present = {
  readonly files: boolean
  readonly loaded: boolean
  readonly migrations: boolean
  readonly registries: string[]
}

/** A database may be older than a registry. */
const presentTables = async (client: Client): Promise<Present> => {
  const { rows } = await client.query<Present>(
    `select to_regclass('ops.objects') is not null as files, to_regclass('ops.loaded') is not null as loaded,
            to_regclass('ops.schema_migrations') is not null as migrations,
            array(select r from unnest($1::text[]) r where to_regclass(r) is not null) as registries`,
    [registries],
  )
  return rows[0]!
}

/** Rows that a file declared, and not what a project's own tables add at run time. */
const declaredRows = (registry: string, selected: string) =>
  `select ${selected} from ${registry} r where r.declared_in in (select f.path from ops.files f)`

/** Within a transaction with an empty search_path. Null in a database that no program was loaded into. */
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
       from (${await sql('fingerprint.sql')}) f`,
  )
  return rows[0]?.fingerprint ?? null
}

/** What the loader manages in this database, as one value: see sql/cluster/fingerprint.sql. */
export const fingerprintOf = (client: Client): Promise<string | null> => reading(client, () => fingerprintHere(client))

/** Who wrote what the loader manages: see sql/cluster/witness.sql. */
export type Witness = {
  readonly witness: string
  /** How many rows there are of each part. */
  readonly counts: string
  /** Numbers of the transactions. */
  readonly writers: readonly string[]
}

/** Within a transaction with an empty search_path. */
export const witnessHere = async (client: Client, present?: Present): Promise<Witness> => {
  const { migrations, registries: names } = present ?? (await presentTables(client))
  const parts = [
    ...names.map((name) => declaredRows(name, `'row', r.xmin`)),
    ...(migrations ? [`select 'migration', m.xmin from ops.schema_migrations m`] : []),
    `select null, null::xid where false`,
  ]
  const text = (await sql('witness.sql')).replace('/* rows */', parts.join(' union all '))
  const { rows } = await client.query<Witness>(text)
  return rows[0]!
}

/** A database as it is before a program is loaded. `since` is the snapshot in which this was read. */
export type Known = { readonly fingerprint: string; readonly since: string }

/** Null in a database that no program was loaded into. The fingerprint is computed only where the witness is not the one that was noted with it. */
export const knownOf = (client: Client): Promise<Known | null> =>
  reading(client, async () => {
    const { rows } = await client.query<{ since: string }>('select pg_current_snapshot()::text as since')
    const since = rows[0]?.since ?? ''
    const present = await presentTables(client)
    const noted = present.loaded ? await notedHere(client) : null
    if (noted && (await witnessHere(client, present)).witness === noted.witness)
      return { fingerprint: noted.fingerprint, since }
    const fingerprint = await fingerprintHere(client)
    return fingerprint === null ? null : { fingerprint, since }
  })

type Noted = { readonly fingerprint: string; readonly witness: string; readonly former: string | null }

const notedHere = async (client: Client): Promise<Noted | null> => {
  const { rows } = await client.query<Noted>('select l.fingerprint, l.witness, l.former from ops.loaded l')
  return rows.length === 1 ? rows[0]! : null
}

/** Of a template: the fingerprint of the template before it. */
export const formerNotedIn = (client: Client): Promise<string | null> =>
  reading(client, async () =>
    (await presentTables(client)).loaded ? ((await notedHere(client))?.former ?? null) : null,
  )

/** Within a transaction: notes that the database, as this transaction sees it, has this fingerprint. */
export const noteHere = async (
  client: Client,
  { fingerprint, witness, former = null }: Pick<Noted, 'fingerprint' | 'witness'> & { former?: string | null },
): Promise<void> => {
  await client.query('delete from ops.loaded')
  await client.query('insert into ops.loaded (fingerprint, witness, former) values ($1, $2, $3)', [
    fingerprint,
    witness,
    former,
  ])
}

/** Notes what the loader has just made, so that nobody has to compute the fingerprint while it stays so. */
export const noteLoaded = async (client: Client, former: string | null = null): Promise<void> => {
  await client.query(`begin isolation level repeatable read; set local search_path = ''`)
  try {
    const { witness } = await witnessHere(client)
    const fingerprint = await fingerprintHere(client)
    if (fingerprint !== null) await noteHere(client, { fingerprint, witness, former })
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

/**
 * Within a transaction: whether nobody but this transaction, and the migrations and files of sql/ that ran before it, wrote any of these rows since
 * that snapshot. A row that somebody else dropped is seen by the counts.
 */
export const isUndisturbed = async (client: Client, { writers }: Witness, since: string): Promise<boolean> => {
  const { rows } = await client.query<{ disturbed: boolean }>(
    `with now as (
       select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as xid
     ), written as (
       -- a number is one of the last four billion transactions; those below three are of initdb
       select w.xid as short, ((n.xid >> 32) - case when w.xid > (n.xid & 4294967295) then 1 else 0 end) * 4294967296 + w.xid as xid
         from now n, unnest($1::bigint[]) w (xid)
        where w.xid >= 3
     )
     select exists (
       select from written w
        where w.xid > 0 and not pg_visible_in_snapshot(w.xid::text::xid8, $2::pg_snapshot)
          -- a subtransaction of this transaction is in progress too
          and pg_xact_status(w.xid::text::xid8) <> 'in progress'
          and not exists (select from ops.files f where f.xmin::text::bigint = w.short)
          and not exists (select from ops.schema_migrations m where m.xmin::text::bigint = w.short)) as disturbed`,
    [writers, since],
  )
  return rows[0]?.disturbed === false
}

export const stateOf = (client: Client): Promise<State> =>
  reading(client, async () => {
    const { registries: present } = await presentTables(client)
    const rows = present.map((name) => declaredRows(name, `'row', '${name} ' || to_jsonb(r)::text, '', null`))
    const { rows: items } = await client.query<Item>([await sql('state.sql'), ...rows].join('\nunion all\n'))
    return new Map(items.map((item) => [itemKey(item.kind, item.identity), item]))
  })

/** A function, and what cannot stand without it: a policy, a trigger, or a function whose body Postgres has parsed. */
export type Dependency = {
  readonly kind: 'function' | 'policy' | 'trigger' | 'other'
  readonly identity: string
  readonly on: string
}

export const dependenciesOf = (client: Client): Promise<Dependency[]> =>
  reading(client, async () => {
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
  })

/** What a database that holds a program is like, so that others can be brought to it. */
export type Target = {
  readonly state: State
  readonly dependencies: readonly Dependency[]
  readonly fingerprint: string | null
  readonly counts: string
  /** The SQL that makes each function, and the one that comments on it; null where Postgres cannot say it (an aggregate). */
  readonly texts: ReadonlyMap<string, FunctionText>
}

export type FunctionText = { readonly text: string | null; readonly comment: string }

const functionTexts = (client: Client): Promise<Map<string, FunctionText>> =>
  reading(client, async () => {
    const { rows } = await client.query<FunctionText & { identity: string }>(
      `select p.oid::regprocedure::text as identity,
              case when p.prokind <> 'a' then pg_get_functiondef(p.oid) end as text,
              format('comment on routine %s is %L', p.oid::regprocedure, obj_description(p.oid, 'pg_proc')) as comment
         from pg_catalog.pg_proc p
        where p.pronamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('app', 'internal', 'api', 'ops'))`,
    )
    return new Map(rows.map((row) => [row.identity, row]))
  })

export const readTarget = async (client: Client): Promise<Target> => ({
  state: await stateOf(client),
  dependencies: await dependenciesOf(client),
  fingerprint: await fingerprintOf(client),
  counts: await reading(client, async () => (await witnessHere(client)).counts),
  texts: await functionTexts(client),
})
