import pg from 'pg'
import { afterAll, inject } from 'vitest'
import { type Role, targetOf } from '#server/database/cluster.ts'
import { createSecrets } from '#server/secrets.ts'
import { type Project, startHarness, type User } from '#test/support/harness.ts'

let made = 0
/** A name that no other collection of the file has. */
export const freshName = (stem = 'things') => {
  made += 1
  return `${stem}_${made}`
}

/** A definition with every feature: types, defaults, bounds, references, indexes. */
export const whole = {
  name: 'posts',
  description: 'What users write',
  columns: [
    { name: 'title', type: 'text', nullable: false, max_length: 20, unique: true },
    { name: 'score', type: 'double', min: 0, max: 10, default: 1 },
    { name: 'tags', type: 'text[]', default: ['new', "o'clock"] },
    { name: 'kind', type: 'text', enum: ["it's", 'b'], default: "it's" },
    { name: 'at', type: 'timestamptz', default: { $fn: 'now' } },
    { name: 'token', type: 'uuid', default: { $fn: 'uuid' } },
    { name: 'editor', type: 'uuid', default: { $fn: 'user_id' } },
    { name: 'parent_id', type: 'uuid', references: { collection: 'posts', on_delete: 'restrict' } },
    { name: 'embedding', type: 'vector', dimensions: 3 },
    { name: 'big', type: 'bigint', default: '9007199254740993', max: '9223372036854775807' },
    { name: 'extra', type: 'jsonb', default: { a: [null, "'; drop table collections.posts; --"] } },
  ],
  indexes: [
    { columns: ['user_id', 'title'], unique: true },
    { columns: ['tags'], method: 'gin' },
    { name: 'by_title', columns: ['title'], method: 'trgm' },
    {
      columns: ['score'],
      where: { and: [{ column: 'kind', op: 'eq', value: "it's" }, { not: { column: 'score', op: 'lt', value: 3 } }] },
    },
  ],
}

/** A harness, a project, and short words for what tests of collections do all the time. */
export const startCollections = async (options: Parameters<typeof startHarness>[0] = {}) => {
  const harness = await startHarness(options)
  const project = await harness.project()
  return { harness, project, ...wordsFor(project) }
}

/** startCollections with a user, and helpers that change columns. */
export const startColumns = async () => {
  const { project, define, definition, columns, insert } = await startCollections()
  const user = await project.user()
  const filled = async (type: string, values: unknown[], fields: Record<string, unknown> = {}) => {
    const name = await define({ columns: [{ name: 'a', type, ...fields }] })
    for (const value of values) await insert(name, { a: value }, user)
    return name
  }
  const patch = (name: string, body: unknown, query = '', column = 'a') =>
    project.admin.patch(`/collections/${name}/columns/${column}${query}`, body)
  const add = (name: string, body: unknown, query = '') =>
    project.admin.post(`/collections/${name}/columns${query}`, body)
  const values = async (name: string, column = 'a') =>
    (await project.sql(`select "${column}" as v from collections.${name} order by created_at, id`)).map((row) => row.v)
  const version = async (name: string) => (await definition(name)).schema_version
  const typeOf = async (name: string, column = 'a') => (await columns(name)).find((one) => one.name === column)?.type
  return { project, define, definition, columns, insert, user, filled, patch, add, values, version, typeOf }
}

export const wordsFor = (project: Project) => {
  const define = async (definition: Record<string, unknown> = {}) => {
    const name = (definition['name'] as string | undefined) ?? freshName()
    const answer = await project.admin.post('/collections', { ...definition, name })
    if (answer.status !== 201) throw new Error(`${name}: ${answer.text}`)
    return name
  }
  const asRole = openSessions(project.database)
  /** SQL as one of the database roles, on behalf of a user; the code of the refusal where it is refused. */
  const tried = (role: Role, userId: string | undefined, sql: string, values: unknown[] = []): Promise<any> =>
    asRole(role, userId, sql, values).catch((error: Error & { code?: string }) =>
      error.code === 'TR000' ? refusalOf(error) : error.code,
    )
  const definition = async (name: string) => (await project.admin.get(`/collections/${name}`)).data
  const columns = (name: string) =>
    project.sql(
      `select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as required
         from pg_attribute where attrelid = to_regclass('collections.' || quote_ident($1)) and attnum > 0 and not attisdropped order by attnum`,
      [name],
    )
  const insert = async (name: string, row: Record<string, unknown>, user?: User) => {
    const keys = Object.keys(row)
    const list = [...(user ? ['user_id'] : []), ...keys]
    const [inserted] = await project.sql(
      `insert into collections."${name}" (${list.map((key) => `"${key}"`).join(', ')})
       values (${list.map((_, n) => `$${n + 1}`).join(', ')}) returning *`,
      [...(user ? [user.id] : []), ...Object.values(row)],
    )
    return inserted
  }
  return { define, tried, definition, columns, insert }
}

const refusalOf = (error: Error & { detail?: string }) =>
  (JSON.parse(error.detail ?? '{}') as { code?: string }).code ?? error.message

/** One connection for each role's own login, kept: thousands of statements, each in a transaction of its own. */
const openSessions = (database: string) => {
  const secrets = createSecrets(inject('secretsKey'))
  const cluster = { id: 'test', dsn: inject('dsn'), socketDirectory: inject('socketDirectory') }
  const open = new Map<Role, Promise<pg.Client>>()
  const connect = async (role: Role) => {
    const { host, port, user, password } = targetOf(cluster, database, role, secrets)
    const client = new pg.Client({ host, port, database, user, password })
    await client.connect()
    return client
  }
  afterAll(async () => {
    for (const client of open.values()) await (await client).end()
  })
  return async (role: Role, userId: string | undefined, sql: string, values: unknown[]) => {
    if (!open.has(role)) open.set(role, connect(role))
    const client = (await open.get(role)) as pg.Client
    await client.query(`begin; set local role ${role}; set local app.user_id = '${userId ?? ''}'`)
    try {
      const { rows } = await client.query(sql, values)
      await client.query('commit')
      return rows
    } catch (error) {
      await client.query('rollback')
      throw error
    }
  }
}
