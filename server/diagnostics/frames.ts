/** One line of a stack that a program wrote: where in which bundle, as far as the line says it. */
export type Frame = {
  readonly raw: string
  readonly function: string | null
  /** The path of the bundle, without its origin and query. */
  readonly file: string | null
  /** From 1. */
  readonly line: number | null
  /** From 1, also of Hermes, whose addresses begin at 0. */
  readonly column: number | null
}

const mostFrames = 100
const mostLine = 1000
const position = /:(\d{1,7}):(\d{1,9})$/

/** The path of an address, without its origin, query and folders that climb; null of what is no file. */
const pathOf = (address: string): string | null => {
  const [path = ''] = address.split(/[?#]/, 1)
  const file = path
    .replace(/^[a-z][a-z0-9+.-]{0,20}:\/\/[^/]*\//i, '')
    .replaceAll('\\', '/')
    .replace(/^[A-Za-z]:/, '')
    .replace(/^[/.]+(?=\/)/, '')
    .replace(/^\/+/, '')
  return file === '' || /\s|^<|^\[/.test(file) ? null : file
}

const located = (raw: string, name: string, location: string): Frame => {
  const isAddress = location.startsWith('address at ')
  const text = isAddress ? location.slice('address at '.length) : location
  const [found, line, column] = position.exec(text) ?? []
  const file = found === undefined ? null : pathOf(text.slice(0, -found.length))
  const at =
    file === null
      ? { file: null, line: null, column: null }
      : { file, line: Number(line), column: Number(column) + (isAddress ? 1 : 0) }
  return { raw, function: name === '' ? null : name, ...at }
}

/** Chrome, Node and Hermes: `at name (place)`, or `at place`. */
const fromV8 = (raw: string, rest: string): Frame => {
  const open = rest.indexOf(' (')
  const name = open < 0 ? '' : rest.slice(0, open)
  if (open >= 0 && rest.endsWith(')')) return located(raw, name.replace(/^async /, ''), rest.slice(open + 2, -1))
  const bare = rest.replace(/^async /, '')
  // without a place there is nothing but a name
  return position.test(bare) ? located(raw, '', bare) : located(raw, bare, '')
}

/** Firefox and Safari: `name@place`. Calls that were waited for have their kind and a star before the name. */
const fromGecko = (raw: string, text: string): Frame | null => {
  const at = text.indexOf('@')
  const name = at < 0 ? '' : text.slice(0, at)
  // Safari leaves out the name of an anonymous function, and its sign
  if (at < 0 || name.includes('://')) return /\s/.test(text) || !position.test(text) ? null : located(raw, '', text)
  return located(raw, name.slice(name.lastIndexOf('*') + 1), text.slice(at + 1))
}

const frameOf = (line: string): Frame | null => {
  const text = line.trim()
  if (text === '') return null
  const raw = text.slice(0, mostLine)
  // a longer line is no place that a map knows
  if (text.length > mostLine) return text.startsWith('at ') ? located(raw, '', '') : null
  return text.startsWith('at ') ? fromV8(raw, text.slice(3).trim()) : fromGecko(raw, text)
}

/** The first hundred frames of a stack. A line that is none, such as the message, is passed over. Linear in the length of the stack. */
export const framesOf = (stack: string): readonly Frame[] =>
  stack
    .split('\n')
    .map(frameOf)
    .filter((frame) => frame !== null)
    .slice(0, mostFrames)

const mostParts = 8

const decoded = (file: string): string => {
  try {
    return decodeURIComponent(file)
  } catch {
    return file
  }
}

/** The names under which the map of this file may be known, the most exact one first: `a/b/c.js`, `b/c.js`, `c.js`. */
export const namesOfBundle = (file: string): readonly string[] => {
  const parts = decoded(file)
    .split('/')
    .filter((part) => part !== '')
    .slice(-mostParts)
  return parts.map((_, index) => parts.slice(index).join('/')).filter((name) => name.length <= 200)
}
