import type { Client } from 'pg'
import { clusterQuery, declaredRows, fingerprintHere, type Present, presentTables, reading } from '#fleet/load/state.ts'

/** Who wrote what the loader manages: see sql/cluster/checksum.sql. */
export type Checksum = {
  readonly checksum: string
  /** How many rows there are of each part. */
  readonly counts: string
  /** Numbers of the transactions. */
  readonly writers: readonly string[]
}

/** Within a transaction with an empty search_path. */
export const checksumHere = async (client: Client, present?: Present): Promise<Checksum> => {
  const { migrations, registries: names } = present ?? (await presentTables(client))
  const parts = [
    ...names.map((name) => declaredRows(name, `'row', r.xmin`)),
    ...(migrations ? [`select 'migration', m.xmin from ops.schema_migrations m`] : []),
    `select null, null::xid where false`,
  ]
  const text = (await clusterQuery('checksum.sql')).replace('/* rows */', parts.join(' union all '))
  const { rows } = await client.query<Checksum>(text)
  return rows[0]!
}

/**
 * Within a transaction with an empty search_path. The fingerprint is computed only where the checksum is not the one that was noted with it; null in a
 * database that no program was loaded into.
 */
export const fingerprintAndChecksumHere = async (
  client: Client,
): Promise<{ readonly fingerprint: string; readonly checksum: Checksum | null } | null> => {
  const present = await presentTables(client)
  const noted = present.loaded ? await notedHere(client) : null
  const checksum = noted ? await checksumHere(client, present) : null
  const fingerprint = noted && checksum?.checksum === noted.checksum ? noted.fingerprint : await fingerprintHere(client)
  return fingerprint === null ? null : { fingerprint, checksum }
}

/** A database as it is before a program is loaded. `since` is the snapshot in which this was read. */
export type Known = { readonly fingerprint: string; readonly since: string }

/** Null in a database that no program was loaded into. */
export const knownOf = (client: Client): Promise<Known | null> =>
  reading(client, async () => {
    const { rows } = await client.query<{ since: string }>('select pg_current_snapshot()::text as since')
    const found = await fingerprintAndChecksumHere(client)
    return found && { fingerprint: found.fingerprint, since: rows[0]?.since ?? '' }
  })

type Noted = { readonly fingerprint: string; readonly checksum: string; readonly former: string | null }

const notedHere = async (client: Client): Promise<Noted | null> => {
  const { rows } = await client.query<Noted>('select l.fingerprint, l.checksum, l.former from ops.loaded l')
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
  { fingerprint, checksum, former = null }: Pick<Noted, 'fingerprint' | 'checksum'> & { former?: string | null },
): Promise<void> => {
  await client.query('delete from ops.loaded')
  await client.query('insert into ops.loaded (fingerprint, checksum, former) values ($1, $2, $3)', [
    fingerprint,
    checksum,
    former,
  ])
}

export type Loaded = { readonly fingerprint: string | null; readonly checksum: Checksum }

/** Records the state that the loader has just created, so that its fingerprint need not be computed until it changes. */
export const noteLoaded = async (client: Client, former: string | null = null): Promise<Loaded> => {
  await client.query(`begin isolation level repeatable read; set local search_path = ''`)
  try {
    const checksum = await checksumHere(client)
    const fingerprint = await fingerprintHere(client)
    if (fingerprint !== null) await noteHere(client, { fingerprint, checksum: checksum.checksum, former })
    await client.query('commit')
    return { fingerprint, checksum }
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

/**
 * Within a transaction: whether nobody but this transaction, and the migrations and files of sql/ that ran before it, wrote any of these rows since
 * that snapshot. A row that somebody else dropped is seen by the counts.
 */
export const isUndisturbed = async (client: Client, { writers }: Checksum, since: string): Promise<boolean> => {
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
