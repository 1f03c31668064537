import type { Declared, Node, Reader } from '#fleet/checks/plpgsql/reader.ts'
import { Unknowable } from '#fleet/checks/plpgsql/tokens.ts'

/** What follows the name of a cursor: its parameters, which its query alone sees. */
const cursor = (r: Reader): Node => {
  while (!r.is('cursor')) r.at += 1
  r.at += 1
  const declared: Declared[] = []
  while (r.is('(') || r.is(',')) {
    r.at += 1
    const name = r.peek()?.text ?? ''
    r.at += 1
    declared.push({ name, text: `${name} ${r.until(',', ')').text};` })
    if (r.is(')')) r.at += 1
  }
  r.at += 1
  return { kind: 'block', label: '', declared, body: [r.statement()] }
}

/** The variables of a block, and the expressions that they begin with. */
export const declarations = (r: Reader): { readonly declared: Declared[]; readonly defaults: Node[] } => {
  const declared: Declared[] = []
  const defaults: Node[] = []
  while (!r.is('begin')) {
    if (r.is('declare')) r.at += 1
    const name = r.peek()?.text ?? ''
    const from = r.at
    r.at += 1
    if (r.is('cursor') || r.is('no') || r.is('scroll')) {
      defaults.push(cursor(r))
      declared.push({ name, text: r.slice(from, r.at) })
      continue
    }
    if (r.is('constant')) r.at += 1
    if (r.is('alias')) throw new Unknowable('an alias')
    const type = r.until('collate', 'not', 'default', ':=', '=', ';').text
    r.seek('default', ':=', '=', ';')
    if (!r.is(';')) {
      r.at += 1
      const { text, from } = r.until(';')
      defaults.push(r.value(text, from))
    }
    r.at += 1
    declared.push({ name, text: `${name} ${type};` })
  }
  return { declared, defaults }
}
