import { tokensOf, Unknowable } from '#fleet/checks/plpgsql/tokens.ts'

type Look = { readonly sql: string; readonly at: number; readonly into?: readonly string[] }
export type Declared = { readonly name: string; readonly text: string }
export type Node =
  | ({ readonly kind: 'look' } & Look)
  | { readonly kind: 'block'; readonly label: string; readonly declared: readonly Declared[]; readonly body: Node[] }

export type Reader = ReturnType<typeof createReader>

/** Goes through the tokens of a body: `at` is the next one. Reads expressions, names and statements of SQL out of it. */
export const createReader = (source: string) => {
  const tokens = tokensOf(source)
  const reader = { at: 0 }
  const peek = (ahead = 0) => tokens[reader.at + ahead]
  const is = (text: string, ahead = 0) => peek(ahead)?.text === text && peek(ahead)?.kind !== 'text'
  const expect = (text: string) => {
    if (!is(text)) throw new Unknowable(`${text} is missing at ${peek()?.text ?? 'the end'}`)
    reader.at += 1
  }
  const startOf = (index: number) => tokens[index]?.start ?? source.length
  const slice = (from: number, to: number) => {
    const last = tokens[to - 1]
    return last && to > from ? source.slice(startOf(from), last.start + last.text.length) : ''
  }
  /** Moves to the first of these words outside of brackets, and of a case. */
  const seek = (...ends: readonly string[]): void => {
    for (let depth = 0; ; reader.at += 1) {
      const token = peek()
      if (!token) throw new Unknowable(`${ends[0]} is missing`)
      if (token.kind === 'text' || token.kind === 'quoted') continue
      if (depth === 0 && ends.includes(token.text)) return
      if ('([{'.includes(token.text) || token.text === 'case') depth += 1
      else if (')]}'.includes(token.text) || (token.text === 'end' && depth > 0)) depth -= 1
    }
  }
  const until = (...ends: readonly string[]): { readonly text: string; readonly from: number; readonly to: number } => {
    const from = reader.at
    seek(...ends)
    return { text: slice(from, reader.at), from, to: reader.at }
  }
  const value = (text: string, from: number): Node => ({ kind: 'look', sql: `select ${text}`, at: startOf(from) })
  /** Expressions between commas. */
  const values = (...ends: readonly string[]): Node[] => {
    const found: Node[] = []
    while (!ends.some((end) => is(end))) {
      const { text, from } = until(',', ...ends)
      if (text) found.push(value(text, from))
      if (is(',')) reader.at += 1
    }
    return found
  }

  /** Fields that the statement being read assigns: Postgres looks for them as for any that is read. */
  const fields: Node[] = []
  /** A name with what follows it: `row.field[1]`. Answers its first part, in the case in which it is written. */
  const target = (): string => {
    const first = peek()
    const from = reader.at
    if (first?.kind !== 'word' && first?.kind !== 'quoted') throw new Unknowable(`no name: ${first?.text}`)
    reader.at += 1
    const hasField = is('.')
    while (is('.') || is('[')) {
      if (is('.')) reader.at += 2
      else {
        reader.at += 1
        seek(']')
        reader.at += 1
      }
    }
    if (hasField) fields.push(value(slice(from, reader.at), from))
    return first.text
  }

  /** A statement of SQL, without the INTO that is PL/pgSQL's. */
  const statement = (): Node => {
    const from = reader.at
    let into: { readonly names: string[]; readonly from: number; readonly to: number } | undefined
    for (let depth = 0; !(depth === 0 && is(';')); ) {
      const token = peek()
      if (!token) throw new Unknowable('; is missing')
      if (token.kind !== 'text' && '([{'.includes(token.text)) depth += 1
      if (token.kind !== 'text' && ')]}'.includes(token.text)) depth -= 1
      if (depth === 0 && !into && is('into') && !is('insert', -1) && !is('merge', -1)) {
        const begun = reader.at
        reader.at += 1
        if (is('strict')) reader.at += 1
        const names = [target()]
        while (is(',')) {
          reader.at += 1
          names.push(target())
        }
        into = { names, from: begun, to: reader.at }
        continue
      }
      reader.at += 1
    }
    const sql = into ? `${slice(from, into.from)} ${slice(into.to, reader.at)}` : slice(from, reader.at)
    reader.at += 1
    return { kind: 'look', sql, at: startOf(from), ...(into ? { into: into.names } : {}) }
  }

  return Object.assign(reader, {
    peek,
    is,
    expect,
    startOf,
    slice,
    seek,
    until,
    value,
    values,
    target,
    fields,
    statement,
  })
}
