import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '#server/root.ts'

/** The kind of database that a file is for. */
export type Kind = 'control' | 'tenant'

export type SqlFile = { readonly path: string; readonly hash: string; readonly text: string }

/** All SQL of one kind of database, in the order in which it is applied. */
export type Program = {
  readonly kind: Kind
  readonly base: readonly SqlFile[]
  /** Versions, in their order; a reload has none. */
  readonly migrations: readonly string[]
  readonly migrationFiles: readonly SqlFile[]
  readonly functions: readonly SqlFile[]
  readonly policies: readonly SqlFile[]
  readonly seeds: readonly SqlFile[]
  readonly schemaVersion: string
  /** One hash over every file: two databases with the same one behave the same. */
  readonly contentHash: string
  /** Newest migration of an area's stem, `…_streaks.sql` or `…_add_index_to_streaks.sql`, for `TENANT_MIGRATION_PENDING`. */
  readonly newestOf: (stem: string) => string | undefined
}

const read = async (base: string, folder: string): Promise<SqlFile[]> => {
  const entries = await readdir(join(base, folder), { recursive: true }).catch(() => [] as string[])
  const names = entries.filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(base, folder, name), 'utf8')
      return { path: `${folder}/${name}`, hash: hashOf(text), text }
    }),
  )
}

/** `db/tenant/migrations/20261121090000_streaks.sql` is version 20261121090000 of the stem streaks. */
export const versionOf = (path: string) => path.split('/').at(-1)?.split('_')[0] ?? ''
const isOfStem = (name: string, stem: string) => name.endsWith(`_${stem}.sql`)

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

/** `policies/tenant/collections/queries.sql` is of the area collections. */
export const stemOf = (path: string) => path.replace(/^[a-z]+\/[a-z]+\//, '').replace(/(\/.*)?\.sql$/, '')

/** A policy file may grant what the catalog says is there: it is applied again after this migration. */
const withMigration = (file: SqlFile, migration: string | undefined): SqlFile =>
  migration ? { ...file, hash: hashOf(`${file.hash} ${migration}`) } : file

/** The newest migration that names a table which the file shows to dashboards: of the columns that it adds some may be secrets. */
const newestShown = (file: SqlFile, migrations: readonly SqlFile[]): string | undefined => {
  const tables = [...file.text.matchAll(/\binternal\.graphql_declare\('app\.(\w+)'/g)].map(([, table]) => table)
  if (tables.length === 0) return undefined
  const named = new RegExp(`\\bapp\\.(${tables.join('|')})\\b`)
  return migrations
    .filter(({ text }) => named.test(text))
    .map(({ path }) => versionOf(path))
    .at(-1)
}

const ofPackages = createRequire(import.meta.url)

/** A seed may take a list from a package: `npm:<package>/<file>` stands for the text of that file, and an update of the package is a change of the seed. */
const withLists = async (file: SqlFile): Promise<SqlFile> => {
  const names = [...new Set(file.text.match(/(?<=\$npm:)[\w@./-]+/g))]
  if (names.length === 0) return file
  const texts = new Map<string, string>()
  for (const name of names) texts.set(`npm:${name}`, await readFile(ofPackages.resolve(name), 'utf8'))
  const text = file.text.replaceAll(/(?<=\$)npm:[\w@./-]+/g, (name) => texts.get(name) ?? name)
  return { ...file, hash: hashOf(text), text }
}

/** Reads every SQL file of a kind. `base` is the repository, or a copy of its SQL folders in tests. */
export const readProgram = async (kind: Kind, base = root): Promise<Program> => {
  const [shared, own, sharedFunctions, functions, policies, seeds, migrations] = await Promise.all([
    read(base, 'sql/shared'),
    read(base, `sql/${kind}`),
    read(base, 'functions/shared'),
    read(base, `functions/${kind}`),
    read(base, `policies/${kind}`),
    read(base, `sql/seeds/${kind}`),
    read(base, `db/${kind}/migrations`),
  ])
  const names = migrations.map((file) => file.path.split('/').at(-1) ?? '')
  const newestOf = (stem: string) =>
    names
      .filter((name) => isOfStem(name, stem))
      .map(versionOf)
      .at(-1)
  const files = {
    base: [...shared, ...own],
    functions: [...sharedFunctions, ...functions],
    policies: policies.map((file) =>
      withMigration(
        file,
        [newestOf(stemOf(file.path)), newestShown(file, migrations)]
          .filter((v) => v !== undefined)
          .sort()
          .at(-1),
      ),
    ),
    seeds: await Promise.all(seeds.map(withLists)),
  }
  const hash = createHash('sha256')
  for (const file of [...files.base, ...migrations, ...files.functions, ...policies, ...files.seeds]) {
    hash.update(`${file.path} ${file.hash}\n`)
  }
  return {
    kind,
    ...files,
    migrations: names.map(versionOf),
    migrationFiles: migrations,
    schemaVersion: names.map(versionOf).at(-1) ?? '',
    contentHash: hash.digest('hex'),
    newestOf,
  }
}
