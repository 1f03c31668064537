import pg from 'pg'
import { inject } from 'vitest'
import type { Project } from '#test/support/harness.ts'

export type Registered = {
  readonly table_name: string
  readonly user_column: string
  readonly export_columns: string[] | null
  readonly secret_columns: string[]
  readonly reset_section: string | null
}

/** Every table that names a user, as the areas registered them. */
export const registered = (project: Project): Promise<Registered[]> =>
  project.sql<Registered>(
    `select table_name, user_column, export_columns, secret_columns, reset_section from internal.user_data
      where table_name <> 'app.users' order by table_name, user_column`,
  )

/** Any id that is no user's: rows of one user that lean on each other have it in common. */
const other = '00000000-0000-4000-8000-00000000000f'
const another = '00000000-0000-4000-8000-00000000000e'

const columns = `
  select a.attname as name, format_type(a.atttypid, a.atttypmod) as type
    from pg_attribute a
   where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     and (a.attnotnull and not a.atthasdef and a.attidentity = '' or a.attname = $2
          or exists (select from pg_index i where i.indrelid = a.attrelid and i.indisprimary and a.attnum = any (i.indkey)))`

const sampleOf = (type: string, unique: string): string => {
  if (type === 'uuid') return other
  if (type.endsWith('[]')) return '{}'
  if (/^(json|jsonb)$/.test(type)) return '{}'
  if (/^timestamp|^date/.test(type)) return '2026-11-01T00:00:00Z'
  if (/^(small|big)?int|^numeric|^integer/.test(type)) return '1'
  if (type === 'boolean') return 'false'
  return unique
}

/**
 * A row of the user in every registered table, whatever the tables are: checks are dropped and foreign keys are not asked. For
 * a project of the test's own, which is not used for anything else.
 */
export const fillEveryTable = async (project: Project, userId: string): Promise<Registered[]> => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const admin = new pg.Client({ connectionString: url.href, options: '-c role=trellis_owner' })
  await admin.connect()
  try {
    const { rows: checks } = await admin.query<{ drop: string }>(
      `select format('alter table %s drop constraint %I', k.conrelid::regclass, k.conname) as drop
         from pg_constraint k
        where k.contype = 'c' and k.conparentid = 0 and k.coninhcount = 0 and k.connamespace = 'app'::regnamespace`,
    )
    for (const { drop } of checks) await admin.query(drop)
    // foreign keys are taken off and come back for what is to come; only a superuser could switch them off
    const { rows: keys } = await admin.query<{ place: string; name: string; definition: string }>(
      `select k.conrelid::regclass as place, quote_ident(k.conname) as name, pg_get_constraintdef(k.oid) as definition
         from pg_constraint k join pg_class c on c.oid = k.conrelid
        where k.contype = 'f' and c.relkind = 'r' and not c.relispartition and k.connamespace = 'app'::regnamespace`,
    )
    for (const { place, name } of keys) await admin.query(`alter table ${place} drop constraint ${name}`)
    const { rows: tables } = await admin.query<{ place: string }>(
      `select c.oid::regclass as place from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')`,
    )
    for (const { place } of tables) await admin.query(`alter table ${place} disable trigger user`)
    const places = await registered(project)
    for (const [place, { table_name, user_column }] of places.entries()) {
      // a table that names users in two columns has a row for each, and so two ids
      const isSecond = places[place - 1]?.table_name === table_name
      const { rows } = await admin.query<{ name: string; type: string }>(columns, [table_name, user_column])
      const names = rows.map(({ name }) => `"${name}"`).join(', ')
      const values = rows.map(({ name, type }) =>
        name === user_column
          ? userId
          : isSecond && name === 'id'
            ? another
            : sampleOf(type, `${userId} ${table_name} ${user_column}`),
      )
      await admin.query(
        `insert into ${table_name} (${names}) overriding system value values (${values.map((_, index) => `$${index + 1}`).join(', ')})
         on conflict do nothing`,
        values,
      )
    }
    for (const { place } of tables) await admin.query(`alter table ${place} enable trigger user`)
    for (const { place, name, definition } of keys)
      await admin.query(
        `alter table ${place} add constraint ${name} ${definition.replace(/ NOT VALID$/, '')} not valid`,
      )
    return places
  } finally {
    await admin.end()
  }
}

/** How many rows of a user each registered table has. */
export const countRows = async (project: Project, userId: string): Promise<Map<string, number>> => {
  const counts = new Map<string, number>()
  for (const { table_name, user_column } of await registered(project)) {
    const [row] = await project.sql(
      `select count(*)::int as count from ${table_name} where ${user_column}::text = $1`,
      [userId],
    )
    counts.set(`${table_name}.${user_column}`, row.count)
  }
  return counts
}
