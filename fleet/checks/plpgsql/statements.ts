import { declarations } from '#fleet/checks/plpgsql/declarations.ts'
import { createReader, type Node, type Reader } from '#fleet/checks/plpgsql/reader.ts'
import { Unknowable } from '#fleet/checks/plpgsql/tokens.ts'

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

const raise = (r: Reader): Node[] => {
  if (r.peek()?.kind === 'word' && levels.has(r.peek()?.text ?? '')) r.at += 1
  const found: Node[] = []
  if (r.peek()?.kind === 'text') {
    r.at += 1
    if (r.is(',')) {
      r.at += 1
      found.push(...r.values('using', ';'))
    }
  } else if (!r.is('using') && !r.is(';')) r.seek('using', ';')
  if (r.is('using')) {
    r.at += 1
    while (!r.is(';')) {
      r.at += 2
      const { text, from } = r.until(',', ';')
      found.push(r.value(text, from))
      if (r.is(',')) r.at += 1
    }
  }
  r.expect(';')
  return found
}

const conditional = (r: Reader): Node[] => {
  const found: Node[] = []
  for (;;) {
    const { text, from } = r.until('then')
    found.push(r.value(text, from))
    r.at += 1
    found.push(...statements(r, 'elsif', 'elseif', 'else', 'end'))
    if (r.is('elsif') || r.is('elseif')) r.at += 1
    else break
  }
  if (r.is('else')) {
    r.at += 1
    found.push(...statements(r, 'end'))
  }
  r.expect('end')
  r.expect('if')
  r.expect(';')
  return found
}

const caseStatement = (r: Reader): Node[] => {
  const found: Node[] = []
  if (!r.is('when')) {
    const { text, from } = r.until('when')
    found.push(r.value(text, from))
  }
  while (r.is('when')) {
    r.at += 1
    found.push(...r.values('then'))
    r.at += 1
    found.push(...statements(r, 'when', 'else', 'end'))
  }
  if (r.is('else')) {
    r.at += 1
    found.push(...statements(r, 'end'))
  }
  r.expect('end')
  r.expect('case')
  r.expect(';')
  return found
}

const loopBody = (r: Reader): Node[] => {
  r.expect('loop')
  const found = statements(r, 'end')
  r.expect('end')
  r.expect('loop')
  if (!r.is(';')) r.at += 1
  r.expect(';')
  return found
}

const forLoop = (r: Reader, label: string): Node[] => {
  const names = [r.target()]
  while (r.is(',')) {
    r.at += 1
    names.push(r.target())
  }
  r.expect('in')
  if (r.is('execute')) {
    r.at += 1
    const { text, from } = r.until('using', 'loop')
    const found = [r.value(text, from)]
    if (r.is('using')) {
      r.at += 1
      found.push(...r.values('loop'))
    }
    return [...found, { kind: 'look', sql: '', at: 0, into: names }, ...loopBody(r)]
  }
  if (r.is('reverse')) r.at += 1
  const from = r.at
  const isQuery = sqlWords.has(r.peek()?.text ?? '') || r.is('(')
  r.seek('..', 'loop')
  if (r.is('..')) {
    const found = [r.value(r.slice(from, r.at), from)]
    r.at += 1
    const high = r.until('by', 'loop')
    found.push(r.value(high.text, high.from))
    if (r.is('by')) {
      r.at += 1
      const by = r.until('loop')
      found.push(r.value(by.text, by.from))
    }
    const [name = ''] = names
    return [...found, { kind: 'block', label, declared: [{ name, text: `${name} int;` }], body: loopBody(r) }]
  }
  const sql = r.slice(from, r.at)
  if (isQuery) return [{ kind: 'look', sql, at: r.startOf(from), into: names }, ...loopBody(r)]
  // a cursor makes the record of its loop, whose rows are not known here
  const [name = ''] = names
  return [{ kind: 'block', label, declared: [{ name, text: `${name} record;` }], body: loopBody(r) }]
}

const returning = (r: Reader): Node[] => {
  if (r.is(';')) {
    r.at += 1
    return []
  }
  if (r.is('query')) {
    r.at += 1
    return r.is('execute') ? dynamic(r) : [r.statement()]
  }
  if (r.is('next')) r.at += 1
  const found = r.values(';')
  r.at += 1
  return found
}

const dynamic = (r: Reader): Node[] => {
  r.expect('execute')
  const first = r.until('into', 'using', ';')
  const found = [r.value(first.text, first.from)]
  while (!r.is(';')) {
    if (r.is('into')) {
      r.at += 1
      if (r.is('strict')) r.at += 1
      const names = [r.target()]
      while (r.is(',')) {
        r.at += 1
        names.push(r.target())
      }
      found.push({ kind: 'look', sql: '', at: 0, into: names })
    } else {
      r.expect('using')
      found.push(...r.values('into', ';'))
    }
  }
  r.at += 1
  return found
}

const one = (r: Reader): Node[] => {
  let label = ''
  if (r.is('<<')) {
    label = r.peek(1)?.text ?? ''
    r.at += 3
  }
  const word = r.peek()?.kind === 'word' ? (r.peek()?.text ?? '') : ''
  // a variable may have the name of a word
  if (r.peek(1) && ['.', '[', ':=', '='].some((sign) => r.is(sign, 1))) {
    const from = r.at
    r.target()
    if (r.is(':=') || r.is('=')) {
      r.at += 1
      const { text, from: begin } = r.until(';')
      r.at += 1
      return [r.value(text, begin)]
    }
    r.fields.length = 0
    r.at = from
  }
  if (word === 'declare' || word === 'begin') return [block(r, label)]
  if (word === '' && !r.is('(')) throw new Unknowable(`no statement: ${r.peek()?.text}`)
  if (sqlWords.has(word) || r.is('(')) return [r.statement()]
  r.at += 1
  switch (word) {
    case 'if':
      return conditional(r)
    case 'case':
      return caseStatement(r)
    case 'loop':
      r.at -= 1
      return loopBody(r)
    case 'while': {
      const { text, from } = r.until('loop')
      return [r.value(text, from), ...loopBody(r)]
    }
    case 'for':
      return forLoop(r, label)
    case 'foreach': {
      r.target()
      if (r.is('slice')) r.at += 2
      r.expect('in')
      r.expect('array')
      const { text, from } = r.until('loop')
      return [r.value(text, from), ...loopBody(r)]
    }
    case 'exit':
    case 'continue': {
      r.seek('when', ';')
      if (r.is(';')) {
        r.at += 1
        return []
      }
      r.at += 1
      const { text, from } = r.until(';')
      r.at += 1
      return [r.value(text, from)]
    }
    case 'return':
      return returning(r)
    case 'raise':
      return raise(r)
    case 'assert': {
      const found = r.values(';')
      r.at += 1
      return found
    }
    case 'perform': {
      const { text, from } = r.until(';')
      r.at += 1
      return [r.value(text, from)]
    }
    case 'execute':
      r.at -= 1
      return dynamic(r)
    case 'open': {
      r.seek('for', ';')
      const isBound = r.is(';')
      r.at += 1
      if (isBound) return []
      return r.is('execute') ? dynamic(r) : [r.statement()]
    }
    default:
      if (!silent.has(word)) throw new Unknowable(`a statement that is not looked at: ${word}`)
      r.seek(';')
      r.at += 1
      return []
  }
}

const statements = (r: Reader, ...ends: readonly string[]): Node[] => {
  const found: Node[] = []
  while (!ends.some((end) => r.is(end))) {
    if (!r.peek()) throw new Unknowable(`${ends[0]} is missing`)
    found.push(...one(r), ...r.fields.splice(0))
  }
  return found
}

const block = (r: Reader, label: string): Node => {
  const { declared, defaults } = r.is('declare') ? declarations(r) : { declared: [], defaults: [] }
  r.expect('begin')
  const body = [...defaults, ...statements(r, 'exception', 'end')]
  if (r.is('exception')) {
    r.at += 1
    while (r.is('when')) {
      r.seek('then')
      r.at += 1
      body.push(...statements(r, 'when', 'end'))
    }
  }
  r.expect('end')
  if (!r.is(';') && r.peek()) r.at += 1
  if (r.is(';')) r.at += 1
  return { kind: 'block', label, declared, body }
}

/** The outermost block of a body, and the options of the compiler that stand before it. */
export const readBody = (source: string): { readonly root: Node; readonly pragmas: readonly string[] } => {
  const r = createReader(source)
  const pragmas: string[] = []
  while (r.is('#')) {
    const from = r.startOf(r.at)
    const end = source.indexOf('\n', from)
    pragmas.push(source.slice(from, end))
    while (r.peek() && r.startOf(r.at) < end) r.at += 1
  }
  let label = ''
  if (r.is('<<')) {
    label = r.peek(1)?.text ?? ''
    r.at += 3
  }
  return { root: block(r, label), pragmas }
}
