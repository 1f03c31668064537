/**
 * Reads the body of a PL/pgSQL function that Postgres has found free of syntax errors, and writes a DO block that runs nothing of it: it has the variables of
 * the function in the same blocks, and has Postgres plan each of its statements and expressions (EXPLAIN), which finds columns, tables and functions that
 * do not exist. Postgres itself looks for them no earlier than when a statement runs for the first time. What cannot be known before is left out.
 */

type Token = { readonly kind: 'word' | 'quoted' | 'text' | 'sign'; readonly text: string; readonly start: number }

/** A construction whose names cannot be known: the function is left out. */
export class Unknowable extends Error {}

const patterns: readonly (readonly [Token['kind'] | null, RegExp])[] = [
  [null, /\s+|--[^\n]*/y],
  ['text', /[eE]'(?:[^'\\]|\\[\s\S]|'')*'|(?:[uU]&|[bBxXnN])?'(?:[^']|'')*'/y],
  ['text', /(\$[a-zA-Z_]*\$)[\s\S]*?\1/y],
  ['quoted', /"(?:[^"]|"")*"/y],
  ['word', /[a-zA-Z_\u0080-\uffff][a-zA-Z0-9_$\u0080-\uffff]*/y],
  ['text', /\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?/y],
  ['sign', /:=|=>|::|<<|>>|<=|>=|<>|!=|\.\.|[\s\S]/y],
]

/** Comments nest. */
const commentEnd = (source: string, from: number): number => {
  let depth = 0
  for (let at = from; at < source.length; at += 1) {
    if (source.startsWith('/*', at)) depth += 1
    else if (source.startsWith('*/', at)) {
      depth -= 1
      if (depth === 0) return at + 2
    } else continue
    at += 1
  }
  return source.length
}

const tokensOf = (source: string): Token[] => {
  const tokens: Token[] = []
  for (let at = 0; at < source.length; ) {
    if (source.startsWith('/*', at)) {
      at = commentEnd(source, at)
      continue
    }
    for (const [kind, pattern] of patterns) {
      pattern.lastIndex = at
      const [text] = pattern.exec(source) ?? []
      if (text === undefined) continue
      if (kind) tokens.push({ kind, text: kind === 'word' ? text.toLowerCase() : text, start: at })
      at += text.length
      break
    }
  }
  return tokens
}

type Look = { readonly sql: string; readonly at: number; readonly into?: readonly string[] }
type Declared = { readonly name: string; readonly text: string }
type Node =
  | ({ readonly kind: 'look' } & Look)
  | { readonly kind: 'block'; readonly label: string; readonly declared: readonly Declared[]; readonly body: Node[] }

const sqlWords = new Set(['select', 'insert', 'update', 'delete', 'with', 'merge', 'values'])
/** Statements that name nothing, or make what later ones name. */
const silent = new Set([
  'null',
  'commit',
  'rollback',
  'get',
  'fetch',
  'move',
  'close',
  'lock',
  'set',
  'reset',
  'notify',
])
const levels = new Set(['debug', 'log', 'info', 'notice', 'warning', 'exception'])

const read = (source: string) => {
  const tokens = tokensOf(source)
  let at = 0
  const peek = (ahead = 0) => tokens[at + ahead]
  const is = (text: string, ahead = 0) => peek(ahead)?.text === text && peek(ahead)?.kind !== 'text'
  const expect = (text: string) => {
    if (!is(text)) throw new Unknowable(`${text} is missing at ${peek()?.text ?? 'the end'}`)
    at += 1
  }
  const startOf = (index: number) => tokens[index]?.start ?? source.length
  const slice = (from: number, to: number) => {
    const last = tokens[to - 1]
    return last && to > from ? source.slice(startOf(from), last.start + last.text.length) : ''
  }
  /** Moves to the first of these words outside of brackets, and of a case. */
  const seek = (...ends: readonly string[]): void => {
    for (let depth = 0; ; at += 1) {
      const token = peek()
      if (!token) throw new Unknowable(`${ends[0]} is missing`)
      if (token.kind === 'text' || token.kind === 'quoted') continue
      if (depth === 0 && ends.includes(token.text)) return
      if ('([{'.includes(token.text) || token.text === 'case') depth += 1
      else if (')]}'.includes(token.text) || (token.text === 'end' && depth > 0)) depth -= 1
    }
  }
  const until = (...ends: readonly string[]): { readonly text: string; readonly from: number; readonly to: number } => {
    const from = at
    seek(...ends)
    return { text: slice(from, at), from, to: at }
  }
  const value = (text: string, from: number): Node => ({ kind: 'look', sql: `select ${text}`, at: startOf(from) })
  /** Expressions between commas. */
  const values = (...ends: readonly string[]): Node[] => {
    const found: Node[] = []
    while (!ends.some((end) => is(end))) {
      const { text, from } = until(',', ...ends)
      if (text) found.push(value(text, from))
      if (is(',')) at += 1
    }
    return found
  }

  /** Fields that the statement being read assigns: Postgres looks for them as for any that is read. */
  const fields: Node[] = []
  /** A name with what follows it: `row.field[1]`. Answers its first part, in the case in which it is written. */
  const target = (): string => {
    const first = peek()
    const from = at
    if (first?.kind !== 'word' && first?.kind !== 'quoted') throw new Unknowable(`no name: ${first?.text}`)
    at += 1
    const hasField = is('.')
    while (is('.') || is('[')) {
      if (is('.')) at += 2
      else {
        at += 1
        seek(']')
        at += 1
      }
    }
    if (hasField) fields.push(value(slice(from, at), from))
    return first.text
  }

  /** A statement of SQL, without the INTO that is PL/pgSQL's. */
  const statement = (): Node => {
    const from = at
    let into: { readonly names: string[]; readonly from: number; readonly to: number } | undefined
    for (let depth = 0; !(depth === 0 && is(';')); ) {
      const token = peek()
      if (!token) throw new Unknowable('; is missing')
      if (token.kind !== 'text' && '([{'.includes(token.text)) depth += 1
      if (token.kind !== 'text' && ')]}'.includes(token.text)) depth -= 1
      if (depth === 0 && !into && is('into') && !is('insert', -1) && !is('merge', -1)) {
        const begun = at
        at += 1
        if (is('strict')) at += 1
        const names = [target()]
        while (is(',')) {
          at += 1
          names.push(target())
        }
        into = { names, from: begun, to: at }
        continue
      }
      at += 1
    }
    const sql = into ? `${slice(from, into.from)} ${slice(into.to, at)}` : slice(from, at)
    at += 1
    return { kind: 'look', sql, at: startOf(from), ...(into ? { into: into.names } : {}) }
  }

  const raise = (): Node[] => {
    if (peek()?.kind === 'word' && levels.has(peek()?.text ?? '')) at += 1
    const found: Node[] = []
    if (peek()?.kind === 'text') {
      at += 1
      if (is(',')) {
        at += 1
        found.push(...values('using', ';'))
      }
    } else if (!is('using') && !is(';')) seek('using', ';')
    if (is('using')) {
      at += 1
      while (!is(';')) {
        at += 2
        const { text, from } = until(',', ';')
        found.push(value(text, from))
        if (is(',')) at += 1
      }
    }
    expect(';')
    return found
  }

  const conditional = (): Node[] => {
    const found: Node[] = []
    for (;;) {
      const { text, from } = until('then')
      found.push(value(text, from))
      at += 1
      found.push(...statements('elsif', 'elseif', 'else', 'end'))
      if (is('elsif') || is('elseif')) at += 1
      else break
    }
    if (is('else')) {
      at += 1
      found.push(...statements('end'))
    }
    expect('end')
    expect('if')
    expect(';')
    return found
  }

  const caseStatement = (): Node[] => {
    const found: Node[] = []
    if (!is('when')) {
      const { text, from } = until('when')
      found.push(value(text, from))
    }
    while (is('when')) {
      at += 1
      found.push(...values('then'))
      at += 1
      found.push(...statements('when', 'else', 'end'))
    }
    if (is('else')) {
      at += 1
      found.push(...statements('end'))
    }
    expect('end')
    expect('case')
    expect(';')
    return found
  }

  const loopBody = (): Node[] => {
    expect('loop')
    const found = statements('end')
    expect('end')
    expect('loop')
    if (!is(';')) at += 1
    expect(';')
    return found
  }

  const forLoop = (label: string): Node[] => {
    const names = [target()]
    while (is(',')) {
      at += 1
      names.push(target())
    }
    expect('in')
    if (is('execute')) {
      at += 1
      const { text, from } = until('using', 'loop')
      const found = [value(text, from)]
      if (is('using')) {
        at += 1
        found.push(...values('loop'))
      }
      return [...found, { kind: 'look', sql: '', at: 0, into: names }, ...loopBody()]
    }
    if (is('reverse')) at += 1
    const from = at
    const isQuery = sqlWords.has(peek()?.text ?? '') || is('(')
    seek('..', 'loop')
    if (is('..')) {
      const found = [value(slice(from, at), from)]
      at += 1
      const high = until('by', 'loop')
      found.push(value(high.text, high.from))
      if (is('by')) {
        at += 1
        const by = until('loop')
        found.push(value(by.text, by.from))
      }
      const [name = ''] = names
      return [...found, { kind: 'block', label, declared: [{ name, text: `${name} int;` }], body: loopBody() }]
    }
    const sql = slice(from, at)
    if (isQuery) return [{ kind: 'look', sql, at: startOf(from), into: names }, ...loopBody()]
    // a cursor makes the record of its loop, whose rows are not known here
    const [name = ''] = names
    return [{ kind: 'block', label, declared: [{ name, text: `${name} record;` }], body: loopBody() }]
  }

  const returning = (): Node[] => {
    if (is(';')) {
      at += 1
      return []
    }
    if (is('query')) {
      at += 1
      return is('execute') ? dynamic() : [statement()]
    }
    if (is('next')) at += 1
    const found = values(';')
    at += 1
    return found
  }

  const dynamic = (): Node[] => {
    expect('execute')
    const first = until('into', 'using', ';')
    const found = [value(first.text, first.from)]
    while (!is(';')) {
      if (is('into')) {
        at += 1
        if (is('strict')) at += 1
        const names = [target()]
        while (is(',')) {
          at += 1
          names.push(target())
        }
        found.push({ kind: 'look', sql: '', at: 0, into: names })
      } else {
        expect('using')
        found.push(...values('into', ';'))
      }
    }
    at += 1
    return found
  }

  const one = (): Node[] => {
    let label = ''
    if (is('<<')) {
      label = peek(1)?.text ?? ''
      at += 3
    }
    const word = peek()?.kind === 'word' ? (peek()?.text ?? '') : ''
    // a variable may have the name of a word
    if (peek(1) && ['.', '[', ':=', '='].some((sign) => is(sign, 1))) {
      const from = at
      target()
      if (is(':=') || is('=')) {
        at += 1
        const { text, from: begin } = until(';')
        at += 1
        return [value(text, begin)]
      }
      fields.length = 0
      at = from
    }
    if (word === 'declare' || word === 'begin') return [block(label)]
    if (word === '' && !is('(')) throw new Unknowable(`no statement: ${peek()?.text}`)
    if (sqlWords.has(word) || is('(')) return [statement()]
    at += 1
    switch (word) {
      case 'if':
        return conditional()
      case 'case':
        return caseStatement()
      case 'loop':
        at -= 1
        return loopBody()
      case 'while': {
        const { text, from } = until('loop')
        return [value(text, from), ...loopBody()]
      }
      case 'for':
        return forLoop(label)
      case 'foreach': {
        target()
        if (is('slice')) at += 2
        expect('in')
        expect('array')
        const { text, from } = until('loop')
        return [value(text, from), ...loopBody()]
      }
      case 'exit':
      case 'continue': {
        seek('when', ';')
        if (is(';')) {
          at += 1
          return []
        }
        at += 1
        const { text, from } = until(';')
        at += 1
        return [value(text, from)]
      }
      case 'return':
        return returning()
      case 'raise':
        return raise()
      case 'assert': {
        const found = values(';')
        at += 1
        return found
      }
      case 'perform': {
        const { text, from } = until(';')
        at += 1
        return [value(text, from)]
      }
      case 'execute':
        at -= 1
        return dynamic()
      case 'open': {
        seek('for', ';')
        const isBound = is(';')
        at += 1
        if (isBound) return []
        return is('execute') ? dynamic() : [statement()]
      }
      default:
        if (!silent.has(word)) throw new Unknowable(`a statement that is not looked at: ${word}`)
        seek(';')
        at += 1
        return []
    }
  }

  const statements = (...ends: readonly string[]): Node[] => {
    const found: Node[] = []
    while (!ends.some((end) => is(end))) {
      if (!peek()) throw new Unknowable(`${ends[0]} is missing`)
      found.push(...one(), ...fields.splice(0))
    }
    return found
  }

  /** What follows the name of a cursor: its parameters, which its query alone sees. */
  const cursor = (): Node => {
    while (!is('cursor')) at += 1
    at += 1
    const declared: Declared[] = []
    while (is('(') || is(',')) {
      at += 1
      const name = peek()?.text ?? ''
      at += 1
      declared.push({ name, text: `${name} ${until(',', ')').text};` })
      if (is(')')) at += 1
    }
    at += 1
    return { kind: 'block', label: '', declared, body: [statement()] }
  }

  const declarations = (): { readonly declared: Declared[]; readonly defaults: Node[] } => {
    const declared: Declared[] = []
    const defaults: Node[] = []
    while (!is('begin')) {
      if (is('declare')) at += 1
      const name = peek()?.text ?? ''
      const from = at
      at += 1
      if (is('cursor') || is('no') || is('scroll')) {
        defaults.push(cursor())
        declared.push({ name, text: slice(from, at) })
        continue
      }
      if (is('constant')) at += 1
      if (is('alias')) throw new Unknowable('an alias')
      const type = until('collate', 'not', 'default', ':=', '=', ';').text
      seek('default', ':=', '=', ';')
      if (!is(';')) {
        at += 1
        const { text, from } = until(';')
        defaults.push(value(text, from))
      }
      at += 1
      declared.push({ name, text: `${name} ${type};` })
    }
    return { declared, defaults }
  }

  const block = (label: string): Node => {
    const { declared, defaults } = is('declare') ? declarations() : { declared: [], defaults: [] }
    expect('begin')
    const body = [...defaults, ...statements('exception', 'end')]
    if (is('exception')) {
      at += 1
      while (is('when')) {
        seek('then')
        at += 1
        body.push(...statements('when', 'end'))
      }
    }
    expect('end')
    if (!is(';') && peek()) at += 1
    if (is(';')) at += 1
    return { kind: 'block', label, declared, body }
  }

  const pragmas: string[] = []
  while (is('#')) {
    const from = startOf(at)
    const end = source.indexOf('\n', from)
    pragmas.push(source.slice(from, end))
    while (peek() && startOf(at) < end) at += 1
  }
  let label = ''
  if (is('<<')) {
    label = peek(1)?.text ?? ''
    at += 3
  }
  return { root: block(label), pragmas }
}

export type Body = {
  readonly name: string
  readonly source: string
  /** Parameters, and what a trigger function finds: NEW, OLD. */
  readonly variables: readonly { readonly name: string; readonly type: string }[]
  /** Names that exist only while the function runs: transition tables. */
  readonly passing: readonly string[]
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

const caught = ['undefined_column', 'undefined_table', 'undefined_function', 'undefined_object', 'invalid_schema_name']

/** The notice of a problem: where in the body it is, and what Postgres says. */
export const noticeOf = (message: string): { readonly at: number; readonly problem: string } | null => {
  const [, at, problem] = /^trellis (\d+) ([\s\S]*)$/.exec(message) ?? []
  return at && problem ? { at: Number(at), problem } : null
}

/** The DO block. It changes nothing, and a notice says each problem. Throws what cannot be known. */
export const lookingBlock = ({ name, source, variables, passing }: Body): string => {
  const { root, pragmas } = read(source)
  const records = recordsOf(root)
  const isPassing = (sql: string) =>
    passing.some((word) => new RegExp(`\\b${word}\\b`, 'i').test(sql)) || /\$\d/.test(sql)
  /** Records whose rows are not known: a statement that reads one is left out by Postgres itself, as it has no value. */
  const write = (node: Node): string => {
    if (node.kind === 'block')
      return [
        node.label ? `<<${node.label}>>` : '',
        node.declared.length > 0 ? `declare ${node.declared.map(({ text }) => text).join('\n')}` : '',
        'begin null;',
        ...node.body.map(write),
        'end;',
      ].join('\n')
    const { sql, at, into = [] } = node
    if (sql === '' || isPassing(sql)) return ''
    const [record, ...others] = into
    const isRow =
      record !== undefined &&
      others.length === 0 &&
      records.get(record) === 1 &&
      !/^(insert|update|delete|merge)/i.test(sql)
    return `begin for trellis_plan in explain (costs off) ${sql}
 loop exit; end loop;${isRow ? ` select * into ${record} from (${sql}\n) trellis_rows where false;` : ''}
exception when ${caught.join(' or ')} then raise notice using message = 'trellis ${at} ' || sqlerrm; when others then null; end;`
  }
  const given = variables.map((one) => `${quoted(one.name)} ${one.type};`)
  const block = [
    ...pragmas,
    `<<${quoted(name)}>>`,
    `declare trellis_plan record; sqlstate text; sqlerrm text; ${given.join(' ')}`,
    'begin',
    write(root),
    'end',
  ].join('\n')
  return `do ${literal(block)}`
}

/** How often each record gets rows. The columns of one that gets them twice may differ. */
const recordsOf = (root: Node): ReadonlyMap<string, number> => {
  const records = new Map<string, number>()
  const collect = (node: Node): void => {
    if (node.kind === 'look') {
      for (const name of node.into ?? []) if (records.has(name)) records.set(name, (records.get(name) ?? 0) + 1)
      return
    }
    for (const { name, text } of node.declared)
      if (/\srecord;$/i.test(text)) records.set(name, records.has(name) ? 2 : 0)
    node.body.forEach(collect)
  }
  collect(root)
  return records
}
