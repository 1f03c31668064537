import type pg from 'pg'
import { clusterQuery, reading } from '#server/database/state.ts'
import { StartError } from '#server/errors.ts'

/** An object of a database besides its rows: see sql/cluster/catalog.sql. */
export type CatalogItem = {
  readonly rank: number
  readonly kind: string
  readonly identity: string
  readonly make: string | null
  readonly unmake: string | null
}

export type Catalog = ReadonlyMap<string, CatalogItem>

export const readCatalog = (client: pg.Client): Promise<Catalog> =>
  reading(client as Parameters<typeof reading>[0], async () => {
    const { rows } = await client.query<CatalogItem>(await clusterQuery('catalog.sql'))
    return new Map(rows.map((row) => [`${row.kind} ${row.identity}`, row]))
  })

const isSame = (a: CatalogItem, b: CatalogItem | undefined) => b !== undefined && a.make === b.make

/** What the two differ in, as a person reads it. */
export const differences = (source: Catalog, target: Catalog): string[] => {
  const missing = [...source].filter(([key, item]) => !isSame(item, target.get(key))).map(([key]) => key)
  const surplus = [...target.keys()].filter((key) => !source.has(key)).map((key) => `${key} (too much)`)
  return [...missing, ...surplus].sort()
}

/** Objects that are changed where they are, by taking the former one away. Of a table that differs, rows could be lost. */
const replaceable = new Set(['trigger', 'policy', 'constraint', 'index', 'comment', 'privilege', 'owner', 'function'])

/** The statements that make the target like the source, in their order. */
const stepsOf = (source: Catalog, target: Catalog): { readonly sql: string; readonly isOwner: boolean }[] => {
  const gone = [...target].filter(([key, item]) => !source.has(key) && item.unmake).map(([, item]) => item)
  gone.sort((a, b) => b.rank - a.rank)
  const made = [...source].filter(([key, item]) => {
    const there = target.get(key)
    return item.make && !isSame(item, there) && (!there || replaceable.has(item.kind))
  })
  made.sort(([, a], [, b]) => a.rank - b.rank)
  return [
    ...gone.map(({ unmake }) => ({ sql: String(unmake), isOwner: false })),
    ...made.flatMap(([key, item]) => {
      const there = target.get(key)
      const isReplaced = there?.unmake && ['trigger', 'policy', 'constraint', 'index'].includes(item.kind)
      const first = isReplaced ? [{ sql: String(there?.unmake), isOwner: false }] : []
      return [...first, { sql: String(item.make), isOwner: item.kind === 'owner' }]
    }),
  ]
}

/**
 * Gives the target what the source has besides rows: partitions, tables of collections, what somebody made by hand. A round makes objects, and the next
 * what belongs to them. `owner` is connected to the target as the owner of our objects, `admin` as the superuser.
 */
export const reproduce = async (source: pg.Client, owner: pg.Client, admin: pg.Client): Promise<void> =>
  reproduceCatalog(await readCatalog(source), owner, admin)

export const reproduceCatalog = async (wanted: Catalog, owner: pg.Client, admin: pg.Client): Promise<void> => {
  for (let round = 1; ; round += 1) {
    const found = await readCatalog(owner)
    const left = differences(wanted, found)
    if (left.length === 0) return
    const steps = stepsOf(wanted, found)
    if (steps.length === 0 || round > 4)
      throw new StartError(
        `This cannot be made there: ${left.slice(0, 5).join('; ')}${left.length > 5 ? ` and ${left.length - 5} more` : ''}. Drop it at the source, or use pg_dump and pg_restore.`,
      )
    await owner.query('begin; set local check_function_bodies = off')
    try {
      for (const { sql, isOwner } of steps) if (!isOwner) await owner.query(sql)
      await owner.query('commit')
    } catch (error) {
      await owner.query('rollback')
      throw error
    }
    for (const { sql, isOwner } of steps) if (isOwner) await admin.query(sql)
  }
}
