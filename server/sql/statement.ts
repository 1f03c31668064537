/** The text of a query as its author wrote it, and as the statement that runs. */

/** What a value has at most in an answer, in characters, when a row has so many columns: the JSON of any one row is then less than a megabyte. */
export const lengthOfValues = (columns: number): number => Math.min(50_000, Math.floor(160_000 / Math.max(1, columns)))

/** Where the text that opens here ends: a comment, a string, a quoted name; null where nothing of this kind opens. */
const skip = (sql: string, at: number): number | null => {
  const two = sql.slice(at, at + 2)
  const end = (found: number, length: number) => (found < 0 ? sql.length : found + length)
  if (two === '--') return end(sql.indexOf('\n', at), 1)
  if (two === '/*') return endOfComment(sql, at)
  const [character = ''] = two
  if (character === '"') return end(sql.indexOf('"', at + 1), 1)
  if (character === "'") return endOfString(sql, at)
  const tag =
    character === '$' ? /^\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/i.exec(sql.slice(at, at + 64))?.[0] : undefined
  // within a name, as in a$b$, it is a letter
  if (tag && !/[\w\u0080-\uffff$]/.test(sql[at - 1] ?? '')) return end(sql.indexOf(tag, at + tag.length), tag.length)
  return null
}

/** Comments of this kind stand within each other. */
const endOfComment = (sql: string, start: number): number => {
  let depth = 0
  for (const { 0: sign, index } of sql.slice(start).matchAll(/\/\*|\*\//g)) {
    depth += sign === '/*' ? 1 : -1
    if (depth === 0) return start + index + 2
  }
  return sql.length
}

/** Two quotes in a row end one part and begin the next, which is as good. Only E'' has backslashes. */
const endOfString = (sql: string, start: number): number => {
  const escapes = /(?:^|[^\w\u0080-\uffff$])e$/i.test(sql.slice(Math.max(0, start - 2), start))
  for (let at = start + 1; at < sql.length; at += 1) {
    if (escapes && sql[at] === '\\') at += 1
    else if (sql[at] === "'") return at + 1
  }
  return sql.length
}

/**
 * A statement without the semicolon behind it, so that it can stand in parentheses. Postgres has found it to be one statement, on which all safety rests: what
 * this misread would be an error of syntax.
 */
export const withoutEnd = (sql: string): string => {
  let at = 0
  while (at < sql.length) {
    if (sql[at] === ';') return sql.slice(0, at)
    at = skip(sql, at) ?? at + 1
  }
  return sql
}

export type Wrapped = { readonly text: string; readonly shift: number }

/**
 * The statement around a query: so many rows, each value as a text of so many characters. What Postgres does not take here is no query, or one with a part that
 * writes. `shift` is what stands before the author's text, for positions of errors.
 */
export const wrapped = (sql: string, columns: number, rows: number): Wrapped => {
  const names = Array.from({ length: columns }, (_, index) => `c${index + 1}`)
  const most = lengthOfValues(columns) + 1
  const list = names.map((name) => `pg_catalog.left(q.${name}::pg_catalog.text, ${most})`).join(', ')
  const start = `select ${list} from (\n`
  // a comment of the author's may be open to the end of the line
  const text = `${start}${withoutEnd(sql)}\n) as q${columns > 0 ? `(${names.join(', ')})` : ''} limit ${rows}`
  return { text, shift: start.length }
}
