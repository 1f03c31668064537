/** The words, names, texts and signs of a PL/pgSQL body. */
export type Token = {
  readonly kind: 'word' | 'quoted' | 'text' | 'sign'
  readonly text: string
  readonly start: number
}

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

export const tokensOf = (source: string): Token[] => {
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
