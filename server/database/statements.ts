import type { Statement } from '#server/database/call.ts'

export type Arguments = Readonly<Record<string, unknown>>

const identifier = /^[a-z_][a-z0-9_]*$/

/** What a call answers: of `api.reply` its columns and two settings, of `api.lines` both columns. */
const columnsOf = {
  reply:
    "r.status, r.body::text, r.headers::text, pg_catalog.current_setting('app.due_at', true), pg_catalog.current_setting('app.changed', true)",
  lines: 'r.lines, r.next_cursor',
} as const

/** The text of a call is made of names alone; values are always parameters. */
const statementOf = (kind: keyof typeof columnsOf, name: string, names: readonly string[]) => {
  for (const part of [name, ...names]) if (!identifier.test(part)) throw new Error(`not a name: ${part}`)
  const list = names.map((argument, index) => `"${argument}" => $${index + 1}`).join(', ')
  return {
    // the arguments present are part of the shape, and so of the prepared statement's name
    name: `${name}(${names.join(',')})`,
    text: `select ${columnsOf[kind]} from api."${name}"(${list}) r`,
  }
}

/** Calls are declared in code, so their shapes are few; those beyond this are parsed each time, here as in Postgres. */
const mostShapes = 10_000

/** Postgres truncates names of prepared statements silently at 63 bytes: longer ones are numbered here. */
const statements = new Map<string, { name: string; text: string }>()
const statementFor = (kind: keyof typeof columnsOf, name: string, names: readonly string[]) => {
  const key = `${kind} ${name}(${names.join(',')})`
  let statement = statements.get(key)
  if (!statement) {
    const made = statementOf(kind, name, names)
    if (statements.size >= mostShapes) return { ...made, name: '' }
    statement = { ...made, name: `t${statements.size}_${name}`.slice(0, 60) }
    statements.set(key, statement)
  }
  return statement
}

/** The call of a function with these arguments, as a statement. */
export const callStatement = (kind: keyof typeof columnsOf, name: string, args: Arguments): Statement => {
  const present = Object.entries(args).filter(([, value]) => value !== undefined)
  const shape = statementFor(
    kind,
    name,
    present.map(([key]) => key),
  )
  return { ...shape, operation: `api.${name}`, values: present.map(([, value]) => encode(value)) }
}

const encode = (value: unknown): string | null => {
  if (value === null) return null
  if (typeof value === 'string') return value
  if (typeof value === 'object') return JSON.stringify(value)
  return String(value)
}
