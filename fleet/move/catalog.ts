import type pg from 'pg'
import { clusterQuery, reading } from '#fleet/load/state.ts'
import type { DatabaseError } from '#server/database/failures.ts'
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

export const keyOf = ({ kind, identity }: CatalogItem) => `${kind} ${identity}`

export const readCatalog = (client: pg.Client): Promise<Catalog> =>
  reading(client as Parameters<typeof reading>[0], async () => {
    const { rows } = await client.query<CatalogItem>(await clusterQuery('catalog.sql'))
    return new Map(rows.map((row) => [keyOf(row), row]))
  })

/**
 * Statements of a source that were run on the target, by the object that they make. Another major version of Postgres writes the same object in other
 * words: what was made by the source's own words counts as the same.
 */
export type Made = Map<string, string | null>

/** An object that cannot be made is compared by its name. */
const isSame = (a: CatalogItem, b: CatalogItem | undefined, made: Made) =>
  b !== undefined && (a.make === null || a.make === b.make || made.get(keyOf(a)) === a.make)

/** What the two differ in, as a person reads it. */
export const differences = (source: Catalog, target: Catalog, made: Made = new Map()): string[] => {
  const missing = [...source].filter(([key, item]) => !isSame(item, target.get(key), made)).map(([key]) => key)
  const surplus = [...target.keys()].filter((key) => !source.has(key)).map((key) => `${key} (too much)`)
  return [...missing, ...surplus].sort()
}

/** What no statement of ours makes: foreign tables, event triggers, operators and the like. */
export const unmakeable = (source: Catalog): string[] =>
  [...source].filter(([, { make }]) => make === null).map(([key]) => key)

/** Objects that are changed where they are, by taking the former one away. Of a table that differs, rows could be lost. */
const replaceable = new Set([
  ...['trigger', 'rule', 'policy', 'constraint', 'index', 'statistics', 'comment', 'privilege', 'default privilege'],
  ...['owner', 'owner of sequence', 'function', 'view', 'rows of'],
])

/** Of these the former one is taken away before the new one is made. */
const dropped = new Set(['trigger', 'rule', 'policy', 'constraint', 'index', 'statistics'])

type Step = { readonly sql: string; readonly item: CatalogItem }

/** The statements that make the target like the source, in their order. */
const stepsOf = (source: Catalog, target: Catalog, made: Made): Step[] => {
  const gone = [...target].filter(([key, item]) => !source.has(key) && item.unmake).map(([, item]) => item)
  gone.sort((a, b) => b.rank - a.rank)
  const wanted = [...source].filter(([key, item]) => {
    const there = target.get(key)
    return item.make && !isSame(item, there, made) && (!there || replaceable.has(item.kind))
  })
  wanted.sort(([, a], [, b]) => a.rank - b.rank)
  return [
    ...gone.map((item) => ({ sql: String(item.unmake), item })),
    ...wanted.map(([key, item]) => {
      const there = target.get(key)
      const first = there?.unmake && dropped.has(item.kind) ? `${there.unmake}; ` : ''
      return { sql: `${first}${item.make}`, item }
    }),
  ]
}

/** Statements in one message, which is one transaction. */
const atOnce = 100

/** What a statement needs may be made by a later one: a view of a view, a function that takes rows of a table. Those are tried again. */
const isEarly = (error: unknown) => /^(0A|2B|3F|42|55)/.test((error as DatabaseError).code ?? '')

const runAll = async (client: pg.Client, steps: readonly Step[]): Promise<void> => {
  for (let waiting = steps; waiting.length > 0; ) {
    const failed: { readonly step: Step; readonly error: unknown }[] = []
    for (let at = 0; at < waiting.length; at += atOnce) {
      const some = waiting.slice(at, at + atOnce)
      const isDone = await client.query(some.map(({ sql }) => sql).join(';\n')).then(
        () => true,
        (error) => {
          if (!isEarly(error)) throw error
          return false
        },
      )
      if (isDone) continue
      for (const step of some)
        await client.query(step.sql).catch((error) => {
          if (!isEarly(error)) throw error
          failed.push({ step, error })
        })
    }
    if (failed[0] && failed.length === waiting.length) {
      const { step, error } = failed[0]
      throw Object.assign(error as Error, { message: `${keyOf(step.item)}: ${(error as Error).message}` })
    }
    waiting = failed.map(({ step }) => step)
  }
}

/** Who owns what, and extensions that are not trusted: for the role of the server's address. */
const isForAdmin = ({ kind }: CatalogItem) => kind === 'owner' || kind === 'extension'

type Ends = {
  /** Connected to the target as the owner of our objects. */
  readonly owner: pg.Client
  /** As the role of the server's address, which need not be a superuser. */
  readonly admin: pg.Client
}

/**
 * Gives the target what the source has besides rows: partitions, tables of collections, what somebody made by hand. A round makes objects, and the next
 * what belongs to them. Nobody is served from the target meanwhile, so that each group of statements is a transaction of its own.
 */
const reproduce = async (
  wanted: Catalog,
  { owner, admin }: Ends,
  made: Made,
  isLeft: (item: CatalogItem) => boolean = () => false,
): Promise<void> => {
  await owner.query(`set check_function_bodies = off; set synchronous_commit = off; set search_path = ''`)
  for (let round = 1; ; round += 1) {
    const found = new Map([...(await readCatalog(owner))].filter(([, item]) => !isLeft(item)))
    const left = differences(wanted, found, made)
    if (left.length === 0) return
    const steps = stepsOf(wanted, found, made)
    if (steps.length === 0 || round > 4)
      throw new StartError(
        `This cannot be made there: ${left.slice(0, 5).join('; ')}${left.length > 5 ? ` and ${left.length - 5} more` : ''}. Drop it at the source, or use pg_dump and pg_restore.`,
      )
    const [extensions, owners] = ['extension', 'owner'].map((kind) => steps.filter(({ item }) => item.kind === kind))
    await runAll(admin, extensions ?? [])
    await runAll(
      owner,
      steps.filter(({ item }) => !isForAdmin(item)),
    )
    await runAll(admin, owners ?? [])
    for (const { item } of steps) if (wanted.has(keyOf(item))) made.set(keyOf(item), item.make)
  }
}

/**
 * What must not be there while rows come: triggers and rules would do again what they did at the source, rows come before those that they refer to, and a
 * row may be older than a constraint that is not valid yet. No setting that only a superuser may change is needed so.
 */
const isLate = ({ rank, kind, identity }: CatalogItem) =>
  rank === 50 ||
  ['trigger', 'rule', 'forced row security', 'owner', 'rows of'].includes(kind) ||
  (kind === 'comment' && /^(constraint|trigger|rule) /.test(identity))

/** The first half: everything in which rows come. Afterwards the target has neither triggers nor foreign keys. */
export const reproduceTables = (wanted: Catalog, ends: Ends, made: Made = new Map()): Promise<void> =>
  reproduce(
    new Map([...wanted].filter(([, item]) => !isLate(item))),
    ends,
    made,
    // an owner is no obstacle, and nothing takes it away
    (item) => isLate(item) && item.unmake === null,
  )

/** All of it: with the rows that are there by now. */
export const reproduceAll = (wanted: Catalog, ends: Ends, made: Made = new Map()): Promise<void> =>
  reproduce(wanted, ends, made)
