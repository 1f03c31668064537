import { type Project, startHarness, type User } from '#test/support/harness.ts'

let made = 0
/** A name that no other collection of the file has. */
export const freshName = (stem = 'things') => {
  made += 1
  return `${stem}_${made}`
}

/** A harness, a project, and short words for what tests of collections do all the time. */
export const startCollections = async (options: Parameters<typeof startHarness>[0] = {}) => {
  const harness = await startHarness(options)
  const project = await harness.project()
  return { harness, project, ...wordsFor(project) }
}

export const wordsFor = (project: Project) => {
  const define = async (definition: Record<string, unknown> = {}) => {
    const name = (definition['name'] as string | undefined) ?? freshName()
    const answer = await project.admin.post('/collections', { ...definition, name })
    if (answer.status !== 201) throw new Error(`${name}: ${answer.text}`)
    return name
  }
  /** SQL as one of the database roles, on behalf of a user; the SQLSTATE where it is refused. */
  const tried = (
    role: Parameters<Project['as']>[0],
    userId: string | undefined,
    sql: string,
    values: unknown[] = [],
  ): Promise<any> =>
    project
      .as(role, userId ? { 'app.user_id': userId } : {}, sql, values)
      .catch((error: Error & { code?: string }) => (error.code === 'TR000' ? refusalOf(error) : error.code))
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
